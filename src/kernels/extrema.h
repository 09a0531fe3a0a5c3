/* The least or the greatest value of a window around every voxel: grey erosion and dilation, minimum and maximum filters.
 *
 * Values are compared by the total order of rank filters (for floats: -NaN, -infinity ... -0, +0 ... infinity, NaN), so that the
 * result is one definite voxel of the window. A box costs the same whatever its size (doubling shifted copies along each axis), a
 * round window as many comparisons as it has rows (each row a running extremum), a pattern as many as it has voxels.
 */
#ifndef FV_EXTREMA_H
#define FV_EXTREMA_H

#include "kernels/box.h"

typedef struct fv_extrema {
    fv_box        box;     /* the window, or the box around it; border and cval say what lies outside */
    bool          neutral; /* what lies outside never is the result; border must be FV_BORDER_CONSTANT */
    bool          round;   /* only offsets whose squares add up to at most `limit`; the box is then symmetric */
    int64_t       limit;
    const double *pattern;         /* only offsets where it is not 0; the box is then symmetric. NULL: all */
    int64_t       pattern_size[3]; /* along z, y, x; the box may have been cut to the image */
    bool          greatest;        /* not the least */
} fv_extrema;

enum { FV_EXTREMA_MAX_SIZE = 1 << 16 }; /* of a box, along each axis */

/* Compiled per instruction set; a caller uses its own. */
#define fv__extrema_scratch FV_ISA_NAME(fv__extrema_scratch)
#define fv__extrema_run FV_ISA_NAME(fv__extrema_run)
#define fv__extrema_cost FV_ISA_NAME(fv__extrema_cost)

size_t fv__extrema_scratch(const fv_extrema *e, const fv_need *need);
void   fv__extrema_run(const fv_extrema *e, const fv_run *r);
double fv__extrema_cost(const fv_extrema *e, fv_dtype dtype); /* nanoseconds a voxel */

/* The passes of an operator whose file has `static fv_extrema extrema(const fv_need *n)`. */
#define FV_EXTREMA_PASSES                                                                                                        \
    static void need(const fv_need *n, fv_region *in) {                                                                          \
        fv_extrema e = extrema(n);                                                                                               \
        in[0] = fv__box_need(&e.box, &n->in[0]->image, &n->region);                                                              \
    }                                                                                                                            \
    static size_t scratch(const fv_need *n) {                                                                                    \
        fv_extrema e = extrema(n);                                                                                               \
        return fv__extrema_scratch(&e, n);                                                                                       \
    }                                                                                                                            \
    static fv_status run(fv_run *r, fv_error *error) {                                                                           \
        (void)error;                                                                                                             \
        fv_extrema e = extrema(&r->need);                                                                                        \
        fv__extrema_run(&e, r);                                                                                                  \
        return FV_OK;                                                                                                            \
    }                                                                                                                            \
    static double cost(const fv_need *n) {                                                                                       \
        fv_extrema e = extrema(n);                                                                                               \
        return fv__extrema_cost(&e, n->in[0]->image.dtype);                                                                      \
    }                                                                                                                            \
    static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

#endif
