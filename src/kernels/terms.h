/* Sums and magnitudes of separable filters of one image: Laplacians, gradients, differences of Gaussians.
 *
 * Each term is a separable filter; terms are computed slab by slab, so that what is added up stays in the cache, and added in
 * their order, so that the result does not depend on the region.
 */
#ifndef FV_TERMS_H
#define FV_TERMS_H

#include "kernels/separable.h"

typedef struct fv_terms {
    const void *params;
    fv_border   border;
    double      cval;
    int         count;     /* at least 1 */
    bool        padded;    /* as in fv_separable */
    bool        magnitude; /* the root of the sum of squares, not the sum */
    double      scale;     /* of the magnitude */
    /* Odd number of weights of a term along the k-th axis, and the weights themselves. 1: the term leaves the axis alone. */
    int64_t (*size)(const void *params, int term, int k);
    void (*weights)(const void *params, int term, int k, double *weight);
} fv_terms;

/* Compiled per instruction set; a caller uses its own. */
#define fv__terms_need FV_ISA_NAME(fv__terms_need)
#define fv__terms_scratch FV_ISA_NAME(fv__terms_scratch)
#define fv__terms_run FV_ISA_NAME(fv__terms_run)
#define fv__terms_cost FV_ISA_NAME(fv__terms_cost)
#define fv__spread_axis FV_ISA_NAME(fv__spread_axis)

fv_region fv__terms_need(const fv_terms *t, const fv_need *n);
size_t    fv__terms_scratch(const fv_terms *t, const fv_need *n);
void      fv__terms_run(const fv_terms *t, const fv_run *r);
double    fv__terms_cost(const fv_terms *t, const fv_need *n); /* nanoseconds a voxel */

/* The passes of an operator whose file has `static fv_terms terms(const fv_need *n)`. */
#define FV_TERMS_PASSES                                                                                                          \
    static void need(const fv_need *n, fv_region *in) {                                                                          \
        fv_terms t = terms(n);                                                                                                   \
        in[0] = fv__terms_need(&t, n);                                                                                           \
    }                                                                                                                            \
    static size_t scratch(const fv_need *n) {                                                                                    \
        fv_terms t = terms(n);                                                                                                   \
        return fv__terms_scratch(&t, n);                                                                                         \
    }                                                                                                                            \
    static fv_status run(fv_run *r, fv_error *error) {                                                                           \
        (void)error;                                                                                                             \
        fv_terms t = terms(&r->need);                                                                                            \
        fv__terms_run(&t, r);                                                                                                    \
        return FV_OK;                                                                                                            \
    }                                                                                                                            \
    static double cost(const fv_need *n) {                                                                                       \
        fv_terms t = terms(n);                                                                                                   \
        return fv__terms_cost(&t, n);                                                                                            \
    }                                                                                                                            \
    static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

/* Spatial axis given as scipy counts: 0 the first, -1 the last. Makes it 0 ... n - 1. */
fv_status fv__spread_axis(int64_t *axis, int n, fv_error *error);

#endif
