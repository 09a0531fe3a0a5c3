/* Arithmetic of boxes, lattices and blocks. */
#include "image/region.h"
#include <assert.h>
#include <stdio.h>

fv_region fv__region_whole(const fv_image_type *type) {
    fv_region r = { .ndim = type->ndim };
    for (int d = 0; d < type->ndim; d++) r.size[d] = type->shape[d];
    return r;
}

int64_t fv__region_voxels(const fv_region *region) {
    int64_t n = 1;
    for (int d = 0; d < region->ndim; d++) n *= region->size[d];
    return n;
}

bool fv__region_empty(const fv_region *region) {
    for (int d = 0; d < region->ndim; d++)
        if (region->size[d] <= 0) return true;
    return false;
}

bool fv__region_equal(const fv_region *a, const fv_region *b) {
    if (a->ndim != b->ndim) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->start[d] != b->start[d] || a->size[d] != b->size[d]) return false;
    return true;
}

bool fv__region_inside(const fv_region *inner, const fv_region *outer) {
    if (inner->ndim != outer->ndim) return false;
    for (int d = 0; d < inner->ndim; d++)
        if (inner->start[d] < outer->start[d] || inner->start[d] + inner->size[d] > outer->start[d] + outer->size[d])
            return false;
    return true;
}

fv_region fv__region_intersect(const fv_region *a, const fv_region *b) {
    fv_region r = { .ndim = a->ndim };
    for (int d = 0; d < a->ndim; d++) {
        int64_t start = FV_MAX(a->start[d], b->start[d]);
        int64_t end = FV_MIN(a->start[d] + a->size[d], b->start[d] + b->size[d]);
        r.start[d] = start;
        r.size[d] = FV_MAX(end - start, 0);
    }
    return r;
}

fv_region fv__region_bound(const fv_region *a, const fv_region *b) {
    if (a->ndim == 0 && b->ndim > 0) return *b;
    if (fv__region_empty(b)) return *a;
    if (fv__region_empty(a)) return *b;
    fv_region r = { .ndim = a->ndim };
    for (int d = 0; d < a->ndim; d++) {
        int64_t start = FV_MIN(a->start[d], b->start[d]);
        int64_t end = FV_MAX(a->start[d] + a->size[d], b->start[d] + b->size[d]);
        r.start[d] = start;
        r.size[d] = end - start;
    }
    return r;
}

fv_region fv__region_grow(const fv_region *region, const int64_t *before, const int64_t *after) {
    fv_region r = *region;
    for (int d = 0; d < r.ndim; d++) {
        r.start[d] -= before[d];
        r.size[d] += before[d] + after[d];
    }
    return r;
}

fv_region fv__region_clip(const fv_region *region, const int64_t *shape) {
    fv_region whole = { .ndim = region->ndim };
    for (int d = 0; d < region->ndim; d++) whole.size[d] = shape[d];
    return fv__region_intersect(region, &whole);
}

void fv__region_format(const fv_region *region, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (int d = 0; d < region->ndim && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld:%lld", d ? ", " : "", (long long)region->start[d],
                                 (long long)(region->start[d] + region->size[d]));
}

/* ---------------------------------------------------------------- lattice */

void fv__lattice_init(fv_lattice *lattice, int ndim, const int64_t *shape, const int64_t *chunk) {
    *lattice = (fv_lattice){ .ndim = ndim };
    for (int d = 0; d < ndim; d++) {
        lattice->shape[d] = shape[d];
        lattice->chunk[d] = FV_MAX(FV_MIN(chunk[d], shape[d]), 1);
    }
}

int64_t fv__lattice_count_axis(const fv_lattice *lattice, int axis) {
    return (lattice->shape[axis] + lattice->chunk[axis] - 1) / lattice->chunk[axis];
}

int64_t fv__lattice_count(const fv_lattice *lattice) {
    int64_t n = 1;
    for (int d = 0; d < lattice->ndim; d++) n *= fv__lattice_count_axis(lattice, d);
    return n;
}

fv_region fv__lattice_chunk(const fv_lattice *lattice, int64_t index) {
    fv_region r = { .ndim = lattice->ndim };
    for (int d = lattice->ndim - 1; d >= 0; d--) {
        int64_t n = fv__lattice_count_axis(lattice, d);
        r.start[d] = index % n * lattice->chunk[d];
        r.size[d] = FV_MIN(lattice->chunk[d], lattice->shape[d] - r.start[d]);
        index /= n;
    }
    return r;
}

int64_t fv__lattice_index(const fv_lattice *lattice, const int64_t *position) {
    int64_t index = 0;
    for (int d = 0; d < lattice->ndim; d++) index = index * fv__lattice_count_axis(lattice, d) + position[d] / lattice->chunk[d];
    return index;
}

fv_region fv__lattice_align(const fv_lattice *lattice, const fv_region *region) {
    fv_region r = { .ndim = region->ndim };
    if (fv__region_empty(region)) return *region;
    for (int d = 0; d < region->ndim; d++) {
        int64_t c = lattice->chunk[d];
        r.start[d] = region->start[d] / c * c;
        int64_t end = (region->start[d] + region->size[d] + c - 1) / c * c;
        r.size[d] = FV_MIN(end, lattice->shape[d]) - r.start[d];
    }
    return r;
}

/* ---------------------------------------------------------------- blocks */

void fv__block_init(fv_block *block, fv_dtype dtype, const fv_region *region, void *data) {
    *block = (fv_block){ .dtype = dtype, .region = *region, .data = data };
    int64_t stride = 1;
    for (int d = region->ndim - 1; d >= 0; d--) {
        block->stride[d] = stride;
        stride *= region->size[d];
    }
}

fv_block fv__block_window(const fv_block *block, const fv_region *region) {
    assert(fv__region_inside(region, &block->region));
    fv_block window = *block;
    window.region = *region;
    window.data = fv__block_at(block, region->start);
    return window;
}

bool fv__block_dense(const fv_block *block) {
    int64_t stride = 1;
    for (int d = block->region.ndim - 1; d >= 0; d--) {
        if (block->region.size[d] > 1 && block->stride[d] != stride) return false;
        stride *= block->region.size[d];
    }
    return true;
}

void fv__block_copy(const fv_block *to, const fv_block *from) {
    if (fv__region_empty(&to->region)) return;
    fv_block  window = fv__block_window(from, &to->region);
    fv_region runs = to->region; /* one voxel for each run that is contiguous in both, over as many axes as possible */
    int64_t   run = 1;
    for (int d = runs.ndim - 1; d >= 0 && (runs.size[d] == 1 || (to->stride[d] == run && window.stride[d] == run)); d--) {
        run *= runs.size[d];
        runs.size[d] = 1;
    }
    size_t  bytes = (size_t)run * fv_dtype_size(to->dtype);
    fv_rows rows;
    for (fv__rows_begin(&rows, &runs); fv__rows_next(&rows);)
        memcpy(fv__block_at(to, rows.position), fv__block_at(&window, rows.position), bytes);
}

void fv__rows_begin(fv_rows *rows, const fv_region *region) {
    *rows = (fv_rows){ .region = *region, .done = fv__region_empty(region) };
    for (int d = 0; d < region->ndim; d++) rows->position[d] = region->start[d];
}

bool fv__rows_next(fv_rows *rows) {
    if (rows->done) return false;
    if (!rows->started) return rows->started = true;
    for (int d = rows->region.ndim - 2; d >= 0; d--) {
        if (++rows->position[d] < rows->region.start[d] + rows->region.size[d]) return true;
        rows->position[d] = rows->region.start[d];
    }
    rows->done = true;
    return false;
}
