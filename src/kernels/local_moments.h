/* Mean and variance of a box around every voxel, in double precision.
 *
 * Along each axis in turn: the mean of the means, and the mean of the variances plus the variance of the means. Nothing large is
 * subtracted from something large, so that a small variance around a large mean keeps its digits, and that of equal voxels is 0.
 */
#ifndef FV_LOCAL_MOMENTS_H
#define FV_LOCAL_MOMENTS_H

#include "kernels/box.h"

typedef struct fv_local_moments {
    fv_box      box;
    const void *params;
    /* n results from n means and variances; result may be either of these. */
    void (*emit)(const void *params, int64_t n, const double *mean, const double *variance, double *result);
} fv_local_moments;

/* Compiled per instruction set; a caller uses its own. */
#define fv__local_moments_scratch FV_ISA_NAME(fv__local_moments_scratch)
#define fv__local_moments_run FV_ISA_NAME(fv__local_moments_run)
#define fv__local_moments_cost FV_ISA_NAME(fv__local_moments_cost)

size_t fv__local_moments_scratch(const fv_local_moments *m, const fv_need *need);
/* The output block is float32 or float64. */
void   fv__local_moments_run(const fv_local_moments *m, const fv_run *r);
double fv__local_moments_cost(const fv_local_moments *m); /* nanoseconds a voxel */

/* The passes of an operator whose file has `static fv_local_moments moments(const fv_need *n)`. */
#define FV_LOCAL_MOMENTS_PASSES                                                                                                  \
    static void need(const fv_need *n, fv_region *in) {                                                                          \
        fv_local_moments m = moments(n);                                                                                         \
        in[0] = fv__box_need(&m.box, &n->in[0]->image, &n->region);                                                              \
    }                                                                                                                            \
    static size_t scratch(const fv_need *n) {                                                                                    \
        fv_local_moments m = moments(n);                                                                                         \
        return fv__local_moments_scratch(&m, n);                                                                                 \
    }                                                                                                                            \
    static fv_status run(fv_run *r, fv_error *error) {                                                                           \
        (void)error;                                                                                                             \
        fv_local_moments m = moments(&r->need);                                                                                  \
        fv__local_moments_run(&m, r);                                                                                            \
        return FV_OK;                                                                                                            \
    }                                                                                                                            \
    static double cost(const fv_need *n) {                                                                                       \
        fv_local_moments m = moments(n);                                                                                         \
        return fv__local_moments_cost(&m);                                                                                       \
    }                                                                                                                            \
    static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

#endif
