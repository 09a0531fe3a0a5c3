/* Rank filters: of the voxels in the box around each voxel, sorted, the one at a given place. The median is the middle one.
 *
 * Values are compared by a total order (for floats: -NaN, -infinity ... -0, +0 ... infinity, NaN), so the result is one
 * definite voxel of the box, and every method below gives the same bits:
 *   network    small boxes, all types: sorted columns merged and selected from by comparator networks, on vectors
 *   histogram  8-bit types: column histograms, constant time a voxel (S. Perreault, P. Hebert, Median filtering in constant
 *              time, 2007)
 *   ordinal    everything else: voxels of a tile are numbered by rank once, then a set of numbers slides along x (B. Weiss, Fast
 *              median and bilateral filtering, 2006)
 */
#ifndef FV_RANK_H
#define FV_RANK_H

#include "kernels/box.h"
#include "op/window.h"

typedef struct fv_rank {
    fv_box  box;
    int64_t rank; /* voxels of the box that come before the result */
} fv_rank;

enum { FV_RANK_MAX_VOXELS = 1 << 20 }; /* of a box */

/* One method each; compiled per instruction set, a caller uses its own. */
#define fv__rank_network_scratch FV_ISA_NAME(fv__rank_network_scratch)
#define fv__rank_network_run FV_ISA_NAME(fv__rank_network_run)
#define fv__rank_network_fits FV_ISA_NAME(fv__rank_network_fits)
#define fv__rank_histogram_scratch FV_ISA_NAME(fv__rank_histogram_scratch)
#define fv__rank_histogram_run FV_ISA_NAME(fv__rank_histogram_run)
#define fv__rank_ordinal_scratch FV_ISA_NAME(fv__rank_ordinal_scratch)
#define fv__rank_ordinal_run FV_ISA_NAME(fv__rank_ordinal_run)
bool   fv__rank_network_fits(const fv_rank *f);
size_t fv__rank_network_scratch(const fv_rank *f, const fv_need *need);
void   fv__rank_network_run(const fv_rank *f, const fv_run *r);
size_t fv__rank_histogram_scratch(const fv_rank *f, const fv_need *need);
void   fv__rank_histogram_run(const fv_rank *f, const fv_run *r);
size_t fv__rank_ordinal_scratch(const fv_rank *f, const fv_need *need);
void   fv__rank_ordinal_run(const fv_rank *f, const fv_run *r);

/* The method that suits box and type. */
#define fv__rank_scratch FV_ISA_NAME(fv__rank_scratch)
#define fv__rank_run FV_ISA_NAME(fv__rank_run)
#define fv__rank_cost FV_ISA_NAME(fv__rank_cost)
size_t fv__rank_scratch(const fv_rank *f, const fv_need *need);
void   fv__rank_run(const fv_rank *f, const fv_run *r);
double fv__rank_cost(const fv_rank *f, fv_dtype dtype); /* nanoseconds a voxel */

/* Voxels of the box, and the checks that rank filters share: a real image, sizes that fit. */
static inline int64_t fv__rank_voxels(const fv_numbers *size) {
    double n = 1;
    for (int k = 0; k < size->count; k++) n *= size->value[k];
    return n < 1e18 ? (int64_t)n : INT64_MAX;
}
static inline fv_status fv__rank_infer(const fv_infer *i, fv_numbers *size, fv_error *error) {
    int axis[FV_MAX_DIMS], n;
    FV_TRY(fv__window_real(i->in[0], error));
    FV_TRY(fv__window_axes(i->in[0], axis, &n, error));
    FV_TRY(fv__window_sizes(size, n, FV_RANK_MAX_VOXELS, error));
    if (fv__rank_voxels(size) > FV_RANK_MAX_VOXELS)
        return fv_fail(error, FV_ERROR_USAGE, "size: the box has %lld voxels; at most %d are possible",
                       (long long)fv__rank_voxels(size), FV_RANK_MAX_VOXELS);
    return FV_OK;
}

/* The passes of an operator whose file has `static fv_rank filter(const fv_need *n)`. */
#define FV_RANK_PASSES                                                                                                           \
    static void need(const fv_need *n, fv_region *in) {                                                                          \
        fv_rank f = filter(n);                                                                                                   \
        in[0] = fv__box_need(&f.box, &n->in[0]->image, &n->region);                                                              \
    }                                                                                                                            \
    static size_t scratch(const fv_need *n) {                                                                                    \
        fv_rank f = filter(n);                                                                                                   \
        return fv__rank_scratch(&f, n);                                                                                          \
    }                                                                                                                            \
    static fv_status run(fv_run *r, fv_error *error) {                                                                           \
        (void)error;                                                                                                             \
        fv_rank f = filter(&r->need);                                                                                            \
        fv__rank_run(&f, r);                                                                                                     \
        return FV_OK;                                                                                                            \
    }                                                                                                                            \
    static double cost(const fv_need *n) {                                                                                       \
        fv_rank f = filter(n);                                                                                                   \
        return fv__rank_cost(&f, n->in[0]->image.dtype);                                                                         \
    }                                                                                                                            \
    static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

/* ---- keys: voxels as integers that compare in the order above ---- */
typedef enum fv_key { FV_KEY_PLAIN, FV_KEY_FLIP, FV_KEY_FLOAT } fv_key;

/* How a type becomes an unsigned key of its size (or a signed one), and back: both ways are the same. */
static inline fv_key fv__key_of(fv_dtype dtype, bool is_signed) {
    if (fv_dtype_is_float(dtype)) return FV_KEY_FLOAT;
    return fv_dtype_is_signed(dtype) == is_signed ? FV_KEY_PLAIN : FV_KEY_FLIP;
}

#endif
