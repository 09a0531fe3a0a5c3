/* Reconstruction by dilation: the highest level at which a voxel is connected to the seed under the mask. What reconstruct,
 * h_maxima, h_minima, local_maxima and local_minima share.
 *
 * result(v) = max over all voxels u of min(seed(u), the least mask value on the best path from u to v). Values are keys in their
 * order (kernels/keys.h); reconstruction by erosion is the same with keys turned upside down. Inside a box the result is found by
 * two scans and a queue.
 *
 * Across chunks: a chunk is taken together with the next voxel on the far side of each spatial axis, so that neighbouring chunks
 * share planes. How well the voxels on these planes ("terminals") are connected through the chunk is told by a spanning forest of
 * them whose edges carry the level at which two parts meet when the mask is flooded from the top. Pass "local" makes these trees
 * and the result so far at the terminals, the merge finds the final result at all terminals, and pass "rebuild" takes it as
 * further seed. An image that is not cut along a spatial axis needs the last pass only.
 */
#ifndef FV_REBUILD_H
#define FV_REBUILD_H

#include "op/op.h"

typedef struct fv__rebuild {
    enum {
        FV__SEEDED,  /* inputs: seed and mask; gives the reconstruction */
        FV__LOWERED, /* input: the mask; the seed lies h below it; gives true where the seed stayed as it was */
        FV__STEPPED, /* the same with the next lower value as seed */
    } kind;
    bool    erosion; /* upside down */
    int64_t connectivity;
    double  h;
} fv__rebuild;

#define fv__rebuild_infer FV_ISA_NAME(fv__rebuild_infer)
#define fv__rebuild_local_need FV_ISA_NAME(fv__rebuild_local_need)
#define fv__rebuild_local_scratch FV_ISA_NAME(fv__rebuild_local_scratch)
#define fv__rebuild_local_bound FV_ISA_NAME(fv__rebuild_local_bound)
#define fv__rebuild_local FV_ISA_NAME(fv__rebuild_local)
#define fv__rebuild_finish FV_ISA_NAME(fv__rebuild_finish)
#define fv__rebuild_need FV_ISA_NAME(fv__rebuild_need)
#define fv__rebuild_scratch FV_ISA_NAME(fv__rebuild_scratch)
#define fv__rebuild_run FV_ISA_NAME(fv__rebuild_run)

/* connectivity is set to the number of spatial axes if it is 0. */
fv_status fv__rebuild_infer(fv_infer *i, const fv__rebuild *b, int64_t *connectivity, fv_error *error);
void      fv__rebuild_local_need(const fv_need *n, fv_region *in);
size_t    fv__rebuild_local_scratch(const fv_need *n, const fv__rebuild *b);
size_t    fv__rebuild_local_bound(const fv_need *n);
fv_status fv__rebuild_local(fv_run *r, const fv__rebuild *b, fv_error *error);
fv_status fv__rebuild_finish(fv_finish *f, fv_error *error);
void      fv__rebuild_need(const fv_need *n, fv_region *in);
size_t    fv__rebuild_scratch(const fv_need *n, const fv__rebuild *b);
fv_status fv__rebuild_run(fv_run *r, const fv__rebuild *b, fv_error *error);

/* What a partial starts with; see rebuild_merge.c for the rest. */
typedef struct fv__rebuild_head {
    int64_t terminals, edges, groups;
} fv__rebuild_head;
typedef struct fv__rebuild_edge {
    uint64_t level;
    uint32_t a, b;
} fv__rebuild_edge; /* two terminals */
typedef struct fv__rebuild_range {
    uint64_t low, high;
} fv__rebuild_range; /* keys of one position along the other axes */
static inline size_t fv__rebuild_edges_offset(const fv__rebuild_head *h) {
    return sizeof *h + (size_t)h->terminals * 8 + (size_t)h->groups * sizeof(fv__rebuild_range);
}

#define fv__rebuild_shared FV_ISA_NAME(fv__rebuild_shared)
#define fv__rebuild_number FV_ISA_NAME(fv__rebuild_number)
#define fv__rebuild_region FV_ISA_NAME(fv__rebuild_region)
/* A chunk with the next voxel along each spatial axis. */
fv_region fv__rebuild_region(const fv_region *own, const fv_image_type *image);
/* Whether the voxels at a position along axis d lie on a plane that chunks share. */
static inline bool fv__rebuild_on_plane(const fv_lattice *lattice, int d, int64_t at) {
    return at && at % lattice->chunk[d] == 0;
}
/* Numbers of all voxels on shared planes, some of which none has; what number one of them has. */
int64_t fv__rebuild_shared(const fv_lattice *lattice, const fv_image_type *image);
int64_t fv__rebuild_number(const fv_lattice *lattice, const fv_image_type *image, const int64_t *position);

/* The passes of an operator with a function rebuild_of(params), which gives its fv__rebuild. */
#define FV__REBUILD_PASSES                                                                                                       \
    static size_t local_scratch(const fv_need *n) {                                                                              \
        fv__rebuild b = rebuild_of(n->params);                                                                                   \
        return fv__rebuild_local_scratch(n, &b);                                                                                 \
    }                                                                                                                            \
    static size_t rebuild_scratch(const fv_need *n) {                                                                            \
        fv__rebuild b = rebuild_of(n->params);                                                                                   \
        return fv__rebuild_scratch(n, &b);                                                                                       \
    }                                                                                                                            \
    static fv_status local_run(fv_run *r, fv_error *error) {                                                                     \
        fv__rebuild b = rebuild_of(r->need.params);                                                                              \
        return fv__rebuild_local(r, &b, error);                                                                                  \
    }                                                                                                                            \
    static fv_status rebuild_run(fv_run *r, fv_error *error) {                                                                   \
        fv__rebuild b = rebuild_of(r->need.params);                                                                              \
        return fv__rebuild_run(r, &b, error);                                                                                    \
    }                                                                                                                            \
    static double cost(const fv_need *n) {                                                                                       \
        (void)n;                                                                                                                 \
        return 20;                                                                                                               \
    }                                                                                                                            \
    static const fv_pass passes[] = {                                                                                            \
        { .name = "local",                                                                                                       \
          .need = fv__rebuild_local_need,                                                                                        \
          .scratch = local_scratch,                                                                                              \
          .bound = fv__rebuild_local_bound,                                                                                      \
          .run = local_run,                                                                                                      \
          .finish = fv__rebuild_finish },                                                                                        \
        { .name = "rebuild", .need = fv__rebuild_need, .scratch = rebuild_scratch, .run = rebuild_run },                         \
        FV_PASS_END,                                                                                                             \
    };

#endif
