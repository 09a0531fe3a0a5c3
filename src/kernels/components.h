/* Connected components of a chunked image: what a chunk says about its components, and how they are joined across chunks.
 *
 * A chunk is searched together with the next voxel on the far side of each spatial axis, so every pair of neighbours lies in
 * some chunk, and neighbouring chunks share a plane. Both see the same runs in it in the same order; the merge joins the
 * components that they name, pair by pair.
 *
 * A partial is: the head; per component, ordered by first voxel, int64 2 * (a number that the operator chooses) + (it lies on a
 * shared plane); per shared plane in order of `plane` one uint32 a run: the component's rank among those on shared planes.
 */
#ifndef FV_COMPONENTS_H
#define FV_COMPONENTS_H

#include "kernels/runs.h"

typedef struct fv__components_head {
    int64_t components, shared;    /* shared: how many lie on shared planes */
    int64_t plane[FV_MAX_DIMS][2]; /* runs on the near and far shared plane of each axis */
} fv__components_head;

#define fv__components_need FV_ISA_NAME(fv__components_need)
#define fv__components_bound FV_ISA_NAME(fv__components_bound)
#define fv__components_check FV_ISA_NAME(fv__components_check)
#define fv__components_close FV_ISA_NAME(fv__components_close)
#define fv__components_join FV_ISA_NAME(fv__components_join)
#define fv__components_free FV_ISA_NAME(fv__components_free)

/* A region together with the next voxel along each spatial axis. */
fv_region fv__components_need(const fv_region *region, const fv_image_type *image);
/* Most bytes of a chunk's partial. */
size_t fv__components_bound(const fv_need *n, int64_t connectivity);
/* An error where a region has more runs than can be counted. */
fv_status fv__components_check(const fv_image_type *image, const fv_region *region, int64_t connectivity, fv_error *error);
/* The partial holds room for a head and, per component, its number times 2: adds the planes, ranks and head. runs->parent holds
 * ranks (of components on shared planes) afterwards; the components are no longer known by their runs. */
void fv__components_close(fv__runs *runs, const fv_region *own, fv_bytes *partial);

/* Joined components; node base[chunk] + rank stands for one of them. */
typedef struct fv__components {
    fv_finish           *f;
    int64_t              chunks, nodes;
    fv__components_head *head;
    int64_t             *base, *parent;
} fv__components;
fv_status fv__components_join(fv__components *c, fv_finish *f, fv_error *error);
void      fv__components_free(fv__components *c);

static inline int64_t fv__components_root(int64_t *parent, int64_t i) {
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

#endif
