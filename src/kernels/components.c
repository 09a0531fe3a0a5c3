/* Components across chunks; see components.h. */
#include "kernels/components.h"
#include "base/take.h"
#include <stdlib.h>

#define WINDOW 4096 /* runs read at a time */

fv_region fv__components_need(const fv_region *region, const fv_image_type *image) {
    int       spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    fv_region grown = *region;
    for (int i = 0; i < n; i++) grown.size[spatial[i]]++;
    return fv__region_clip(&grown, image->shape);
}

fv_status fv__components_check(const fv_image_type *image, const fv_region *region, int64_t connectivity, fv_error *error) {
    if (fv__runs_most(image, region->size, connectivity) <= INT32_MAX) return FV_OK;
    return fv_fail(error, FV_ERROR_MEMORY, "a chunk of %lld voxels is too large to label at once; use smaller chunks",
                   (long long)fv__region_voxels(region));
}

size_t fv__components_bound(const fv_need *n, int64_t connectivity) {
    fv_region region = fv__components_need(&n->region, &n->in[0]->image);
    int64_t   voxels = fv__region_voxels(&region), runs = 0;
    for (int d = 0; d < region.ndim; d++) runs += 2 * (voxels / region.size[d]); /* two planes an axis, at most a run a voxel */
    return sizeof(fv__components_head) + (size_t)fv__runs_most(&n->in[0]->image, region.size, connectivity) * 8 +
           (size_t)runs * 4;
}

/* ---------------------------------------------------------------- shared planes of a chunk */

/* One run on a shared plane: names its component, and marks it in the components' entries. */
static void add_run(const fv__runs *r, fv_bytes *partial, int64_t row, int64_t w, int bit, int64_t *count) {
    uint32_t component = (uint32_t)fv__runs_component(r, row, w, bit);
    ((int64_t *)(partial->data + sizeof(fv__components_head)))[component] |= 1;
    fv__bytes_append(partial, &component, sizeof component);
    ++*count;
}

static void add_row(const fv__runs *r, fv_bytes *partial, int64_t group, int64_t z, int64_t y, int64_t *count) {
    const uint64_t *bits = fv__runs_row(r, group, z, y);
    int64_t         row = fv__runs_joined(r, group, z, y);
    uint64_t        before = 0;
    for (int64_t w = 0; w < r->words; before = bits[w++] >> 63)
        for (uint64_t starts = bits[w] & ~(bits[w] << 1 | before); starts; starts &= starts - 1)
            add_run(r, partial, row, w, __builtin_ctzll(starts), count);
}

/* A plane across the rows: runs along y. */
static void add_column(const fv__runs *r, fv_bytes *partial, int64_t group, int64_t z, int64_t x, int64_t *count) {
    bool before = false;
    for (int64_t y = 0; y < r->ny; y++) {
        bool set = fv__runs_row(r, group, z, y)[x / 64] >> (x % 64) & 1;
        if (set && !before) add_run(r, partial, fv__runs_joined(r, group, z, y), x / 64, (int)(x % 64), count);
        before = set;
    }
}

/* The plane at position `at` of spatial axis 0 (z), 1 (y) or 2 (x). */
static int64_t add_plane(const fv__runs *r, fv_bytes *partial, int which, int64_t at) {
    int64_t count = 0;
    for (int64_t group = 0; group < r->groups; group++) {
        if (which == 0)
            for (int64_t y = 0; y < r->ny; y++) add_row(r, partial, group, at, y, &count);
        else
            for (int64_t z = 0; z < r->nz; z++) (which == 1 ? add_row : add_column)(r, partial, group, z, at, &count);
    }
    return count;
}

/* From components to their ranks among those on shared planes. */
static void rank_runs(fv__components_head *head, int32_t *rank, fv_bytes *partial) {
    int64_t  *entry = (int64_t *)(partial->data + sizeof *head);
    uint32_t *run = (uint32_t *)(entry + head->components), *end = (uint32_t *)(partial->data + partial->size);
    for (int64_t i = 0; i < head->components; i++)
        if (entry[i] & 1) rank[i] = (int32_t)head->shared++;
    for (; run < end; run++) *run = (uint32_t)rank[*run];
}

void fv__components_close(fv__runs *runs, const fv_region *own, fv_bytes *partial) {
    fv__components_head head = { .components = runs->ncomponents };
    for (int d = 0; d < own->ndim; d++)
        for (int which = 0; which < 3; which++) {
            if (runs->axis[which] != d) continue;
            if (own->start[d] > 0) head.plane[d][0] = add_plane(runs, partial, which, 0);
            if (own->start[d] + own->size[d] < runs->shape[d]) head.plane[d][1] = add_plane(runs, partial, which, own->size[d]);
        }
    rank_runs(&head, runs->parent, partial); /* parents have done their duty */
    memcpy(partial->data, &head, sizeof head);
}

/* ---------------------------------------------------------------- joining chunks */

static size_t plane_offset(const fv__components_head *head, int axis, int side) {
    int64_t runs = 0;
    for (int d = 0; d < axis; d++) runs += head->plane[d][0] + head->plane[d][1];
    if (side) runs += head->plane[axis][0];
    return sizeof *head + (size_t)head->components * sizeof(int64_t) + (size_t)runs * sizeof(uint32_t);
}

/* The far plane of one chunk is the near plane of the next. */
static fv_status join_planes(fv__components *m, int64_t chunk, int64_t next, int axis, fv_error *error) {
    uint32_t             a[WINDOW], b[WINDOW];
    fv__components_head *head = &m->head[chunk], *other = &m->head[next];
    int64_t              runs = head->plane[axis][1];
    if (runs != other->plane[axis][0])
        return fv_fail(error, FV_ERROR_INTERNAL, "chunks %lld and %lld do not share a plane", (long long)chunk, (long long)next);
    for (int64_t done = 0; done < runs; done += WINDOW) {
        int64_t n = FV_MIN(WINDOW, runs - done);
        size_t  skip = (size_t)done * sizeof *a, size = (size_t)n * sizeof *a;
        FV_TRY(m->f->read(m->f, chunk, plane_offset(head, axis, 1) + skip, a, size, error));
        FV_TRY(m->f->read(m->f, next, plane_offset(other, axis, 0) + skip, b, size, error));
        for (int64_t i = 0; i < n; i++) {
            int64_t x = fv__components_root(m->parent, m->base[chunk] + a[i]);
            int64_t y = fv__components_root(m->parent, m->base[next] + b[i]);
            m->parent[FV_MAX(x, y)] = FV_MIN(x, y);
        }
    }
    return FV_OK;
}

fv_status fv__components_join(fv__components *m, fv_finish *f, fv_error *error) {
    const fv_lattice *lattice = f->lattice;
    int64_t           nodes = 0;
    *m = (fv__components){ .f = f, .chunks = f->npartials };
    FV_TRY(FV_TAKE(m->head, (size_t)m->chunks * sizeof *m->head, error));
    FV_TRY(FV_TAKE(m->base, (size_t)m->chunks * sizeof *m->base, error));
    for (int64_t c = 0; c < m->chunks; c++) {
        FV_TRY(m->f->read(m->f, c, 0, &m->head[c], sizeof *m->head, error));
        m->base[c] = nodes;
        nodes += m->head[c].shared;
    }
    FV_TRY(FV_TAKE(m->parent, (size_t)nodes * sizeof *m->parent + 1, error));
    m->nodes = nodes;
    for (int64_t i = 0; i < nodes; i++) m->parent[i] = i;
    for (int64_t c = 0; c < m->chunks; c++)
        for (int axis = 0, d; axis < lattice->ndim; axis++) {
            int64_t step = 1;
            for (d = axis + 1; d < lattice->ndim; d++) step *= fv__lattice_count_axis(lattice, d);
            if (m->head[c].plane[axis][1]) FV_TRY(join_planes(m, c, c + step, axis, error));
        }
    return FV_OK;
}

void fv__components_free(fv__components *m) {
    free(m->head);
    free(m->base);
    free(m->parent);
}
