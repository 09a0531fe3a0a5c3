/* Coarser levels of a Zarr image, made while it is written.
 *
 * A file of a coarser level lies over up to 2 x 2 x 2 files of the finer one, its children. Where one put brings all of them, it
 * is made at once. Otherwise each child adds its part, half as long along each axis, to the file as it grows in memory, or leaves
 * it in ".partial" where memory or the only process is lacking; who brings the last one, or finds all parts there, makes the file
 * and goes on with the next level. Two may find them at the same time: both write the same bytes.
 *
 * Invariants: 1. a put that completes a file is not over before that file is written, so its sync covers it; 2. a put that
 * finds files above it already before it leaves its part is a repeated one; unless it can make them again it takes them away,
 * because they may be what a lost machine had not made durable;
 * 3. finish makes what is missing then from the finer level, so parts never matter but for time. */
#include "base/take.h"
#include "formats/zarr_read.h"
#include "formats/zarr_shrink.h"
#include "formats/zarr_writer.h"
#include <stdlib.h>
#include <unistd.h>

static int64_t file_bytes(const fv_zarr_array *array) {
    int64_t bytes = (int64_t)fv_dtype_size(array->dtype);
    for (int d = 0; d < array->ndim; d++) bytes *= FV_MIN(array->file[d], array->shape[d]);
    return bytes;
}

/* Each level holds one file while it goes on with the next; a part is packed and read with its hash. */
int64_t fv__zarr_pyramid_memory(const fv_zarr_design *design) {
    int64_t most = 0;
    for (int i = 1; i < design->nlevels; i++) most += file_bytes(&design->level[i].array);
    if (design->nlevels > 1) most += file_bytes(&design->level[1].array) + (int64_t)sizeof(fv_hash);
    return most;
}

int64_t fv__zarr_pyramid_bytes(const fv_zarr_design *design) {
    int64_t bytes = 0;
    for (int i = 1; i < design->nlevels; i++) {
        const fv_zarr_array *array = &design->level[i].array;
        int64_t              level = (int64_t)fv_dtype_size(array->dtype);
        for (int d = 0; d < array->ndim; d++) level *= array->shape[d];
        bytes += level;
    }
    return bytes;
}

/* ---------------------------------------------------------------- geometry */

/* The box of the finer level that lies below one of the coarser, cut at the image's end. */
static fv_region below(const fv_zarr_writer *w, int level, const fv_region *box) {
    const fv_zarr_level *coarse = &w->design.level[level];
    fv_region            region = *box;
    for (int d = 0; d < box->ndim; d++)
        if (coarse->halved[d]) {
            region.start[d] *= 2;
            region.size[d] *= 2;
        }
    return fv__region_clip(&region, w->design.level[level - 1].array.shape);
}

/* The box of the coarser level above whole files of the finer. */
static fv_region above(const fv_zarr_writer *w, int level, const fv_region *box) {
    return fv__zarr_shrunk(box, w->design.level[level].halved);
}

/* ---------------------------------------------------------------- parts */

static char *part_path(const fv_zarr_writer *w, int level, const fv_region *child) {
    const fv_zarr_array *fine = &w->design.level[level - 1].array;
    fv_lattice           lattice;
    fv__lattice_init(&lattice, fine->ndim, fine->shape, fine->file);
    return fv__sprintf("%s/" FV_ZARR_PARTIAL "/%d-%lld", w->base.path, level,
                       (long long)fv__lattice_index(&lattice, child->start));
}

/* What one child adds to the file above it. */
static fv_status write_part(fv_zarr_writer *w, int level, const fv_block *block, const fv_region *child, fv_error *error) {
    fv_region region = above(w, level, child);
    fv_block  from = fv__block_window(block, child), to;
    size_t    size = (size_t)fv__region_voxels(&region) * fv_dtype_size(block->dtype), room = size + sizeof(fv_hash);
    char     *data;
    FV_TRY(FV_TAKE_BUFFER(data, room, error));
    char *path = part_path(w, level, child);
    fv__block_init(&to, block->dtype, &region, data);
    fv__zarr_shrink(&from, &to, w->design.level[level].halved, w->design.mean);
    fv_hash hash = fv__hash_bytes(data, size);
    memcpy(data + size, &hash, sizeof hash);
    fv_status status = fv__zarr_write_file(w, path, data, room, false, error);
    fv__buffer_free(data, room);
    free(path);
    return status;
}

/* complete: it is there, and whole. */
static fv_status read_part(const fv_zarr_writer *w, int level, const fv_region *child, const fv_block *file, bool *complete,
                           fv_error *error) {
    fv_region region = above(w, level, child);
    size_t    size = (size_t)fv__region_voxels(&region) * fv_dtype_size(file->dtype), room = size + sizeof(fv_hash);
    char     *data;
    FV_TRY(FV_TAKE_BUFFER(data, room, error));
    char   *path = part_path(w, level, child);
    int     fd;
    fv_hash hash;
    bool    good = fv__file_exists(path) && fv__file_open_read(path, &fd, NULL) == FV_OK;
    if (good) {
        good = fv__file_read_at(fd, data, room, 0, path, NULL) == FV_OK;
        close(fd);
    }
    memcpy(&hash, data + size, sizeof hash);
    good = good && fv__hash_equal(hash, fv__hash_bytes(data, size));
    if (good) {
        fv_block from, to = fv__block_window(file, &region);
        fv__block_init(&from, file->dtype, &region, data);
        fv__block_copy(&to, &from);
    }
    fv__buffer_free(data, room);
    free(path);
    *complete = good;
    return FV_OK;
}

/* Puts the parts of all children together. Not complete: some are not there, or not any more, because somebody else has used
 * them. */
static fv_status read_parts(const fv_zarr_writer *w, int level, const fv_region *under, const fv_block *file, bool *complete,
                            fv_error *error) {
    *complete = false;
    const fv_zarr_array *fine = &w->design.level[level - 1].array;
    for (fv_region child = { 0 }; fv__zarr_next(fine->ndim, fine->file, under, &child);) {
        char *path = part_path(w, level, &child);
        bool  there = fv__file_exists(path);
        free(path);
        if (!there) return FV_OK;
    }
    for (fv_region child = { 0 }; fv__zarr_next(fine->ndim, fine->file, under, &child);) {
        fv_region part = fv__region_intersect(&child, under);
        FV_TRY(read_part(w, level, &part, file, complete, error));
        if (!*complete) return FV_OK;
    }
    *complete = true;
    return FV_OK;
}

static void remove_parts(const fv_zarr_writer *w, int level, const fv_region *under) {
    const fv_zarr_array *fine = &w->design.level[level - 1].array;
    for (fv_region child = { 0 }; fv__zarr_next(fine->ndim, fine->file, under, &child);) {
        char *path = part_path(w, level, &child);
        unlink(path);
        free(path);
    }
}

static char *file_path(const fv_zarr_writer *w, int level, const int64_t *start) {
    char *folder = fv__zarr_level_folder(w, level), *path = fv__zarr_file_path(&w->design.level[level].array, folder, start);
    free(folder);
    return path;
}

/* Whether this file or one above it is there; those are removed if asked for. */
static bool each_file_above(const fv_zarr_writer *w, int level, const fv_region *file, bool removing) {
    fv_region at = *file;
    bool      any = false;
    for (int i = level; i < w->design.nlevels; i++) {
        fv_region box = { 0 };
        if (i > level) at = above(w, i, &at);
        fv__zarr_next(at.ndim, w->design.level[i].array.file, &at, &box);
        char *path = file_path(w, i, box.start);
        any = any || fv__file_exists(path);
        if (removing) unlink(path);
        free(path);
    }
    return any;
}

/* ---------------------------------------------------------------- climbing */

static fv_status keep_parts(fv_zarr_writer *w, int level, const fv_block *block, const fv_region *under, fv_error *error) {
    const fv_zarr_array *fine = &w->design.level[level - 1].array;
    fv_region            mine = fv__region_intersect(under, &block->region);
    for (fv_region child = { 0 }; fv__zarr_next(fine->ndim, fine->file, &mine, &child);) {
        fv_region part = fv__region_intersect(&child, &mine);
        FV_TRY(write_part(w, level, block, &part, error));
    }
    return FV_OK;
}

/* A file whose voxels are all known. */
static fv_status store_and_climb(fv_zarr_writer *w, int level, const fv_block *file, fv_error *error) {
    FV_TRY(fv__zarr_store(w, level, file->region.start, file, NULL, error));
    return level + 1 < w->design.nlevels ? fv__zarr_climb(w, level, file, false, error) : FV_OK;
}

/* Those of the children below a file that lie within a region, a bit each. */
static uint64_t children_within(const fv_zarr_writer *w, int level, const fv_region *under, const fv_region *region) {
    const fv_zarr_array *fine = &w->design.level[level - 1].array;
    uint64_t             bits = 0, bit = 1;
    for (fv_region child = { 0 }; fv__zarr_next(fine->ndim, fine->file, under, &child); bit <<= 1) {
        fv_region part = fv__region_intersect(&child, under);
        if (fv__region_inside(&part, region)) bits |= bit;
    }
    return bits;
}

static fv_status make_at_once(fv_zarr_writer *w, int level, const fv_block *block, const fv_region *under,
                              const fv_region *region, fv_error *error) {
    size_t   bytes = (size_t)fv__region_voxels(region) * fv_dtype_size(block->dtype);
    fv_block file, from = fv__block_window(block, under);
    void    *data;
    FV_TRY(FV_TAKE_BUFFER(data, bytes, error));
    fv__block_init(&file, block->dtype, region, data);
    fv__zarr_shrink(&from, &file, w->design.level[level].halved, w->design.mean);
    fv_status status = store_and_climb(w, level, &file, error);
    fv__buffer_free(file.data, bytes);
    return status;
}

static int64_t index_of(const fv_zarr_writer *w, int level, const fv_region *region) {
    fv_lattice lattice;
    fv__lattice_init(&lattice, region->ndim, w->design.level[level].array.shape, w->design.level[level].array.file);
    return fv__lattice_index(&lattice, region->start);
}

/* Whether no voxel of the coarser level lies over two chunks of a shard. */
static bool chunks_are_even(const fv_zarr_writer *w, int level) {
    const fv_zarr_array *fine = &w->design.level[level - 1].array;
    for (int d = 0; d < fine->ndim; d++)
        if (w->design.level[level].halved[d] && fine->chunk[d] % 2 && fine->chunk[d] != fine->file[d]) return false;
    return true;
}

static fv_status fill_in(fv_zarr_writer *w, int level, const fv_block *block, const fv_region *mine, fv_zarr_coarse *coarse,
                         bool store, fv_error *error) {
    if (store && chunks_are_even(w, level)) return fv__zarr_store_all(w, level - 1, block, mine, coarse, error);
    fv_region over = above(w, level, mine);
    fv_block  from = fv__block_window(block, mine), to = fv__block_window(&coarse->to, &over);
    fv__zarr_shrink(&from, &to, coarse->halved, coarse->mean);
    return store ? fv__zarr_store_all(w, level - 1, block, mine, NULL, error) : FV_OK;
}

static fv_status fill_and_climb(fv_zarr_writer *w, int level, const fv_block *block, const fv_region *under,
                                const fv_region *region, fv_zarr_forming *forming, bool store, bool *complete, fv_error *error) {
    fv_region      mine = fv__region_intersect(under, &block->region);
    fv_zarr_coarse coarse = { .halved = w->design.level[level].halved, .mean = w->design.mean };
    fv__block_init(&coarse.to, block->dtype, region, forming->data);
    fv_status status = fill_in(w, level, block, &mine, &coarse, store, error);
    *complete = fv__zarr_formed(w, forming, status == FV_OK ? children_within(w, level, under, &mine) : 0);
    if (!*complete) return status;
    if (status == FV_OK) status = store_and_climb(w, level, &coarse.to, error);
    fv__zarr_form_release(w, forming);
    return status;
}

static fv_status leave_parts(fv_zarr_writer *w, int level, const fv_block *block, const fv_region *under, const fv_region *region,
                             bool *complete, fv_error *error) {
    FV_TRY(keep_parts(w, level, block, under, error));
    size_t   bytes = (size_t)fv__region_voxels(region) * fv_dtype_size(block->dtype);
    fv_block file;
    void    *data;
    FV_TRY(FV_TAKE_BUFFER(data, bytes, error));
    fv__block_init(&file, block->dtype, region, data);
    fv_status status = read_parts(w, level, under, &file, complete, error);
    if (status == FV_OK && *complete) {
        status = fv__zarr_store(w, level, region->start, &file, NULL, error);
        if (status == FV_OK) remove_parts(w, level, under);
        if (status == FV_OK && level + 1 < w->design.nlevels) status = fv__zarr_climb(w, level, &file, false, error);
        fv__zarr_form_forget(w, level, index_of(w, level, region));
    }
    fv__buffer_free(file.data, bytes);
    return status;
}

/* One file of a level, if block completes it. */
static fv_status climb_to(fv_zarr_writer *w, int level, const fv_region *box, const fv_block *block, bool store,
                          fv_error *error) {
    fv_region        region = fv__region_clip(box, w->design.level[level].array.shape), under = below(w, level, &region);
    fv_region        mine = fv__region_intersect(&under, &block->region);
    bool             covered = fv__region_inside(&under, &block->region), complete = false;
    bool             repeated = !covered && each_file_above(w, level, &region, false);
    size_t           bytes = (size_t)fv__region_voxels(&region) * fv_dtype_size(block->dtype);
    fv_zarr_forming *forming =
        covered ? NULL : fv__zarr_form(w, level, index_of(w, level, &region), bytes, children_within(w, level, &under, &under));
    if (forming)
        FV_TRY(fill_and_climb(w, level, block, &under, &region, forming, store, &complete, error));
    else if (store)
        FV_TRY(fv__zarr_store_all(w, level - 1, block, &mine, NULL, error));
    if (covered) return make_at_once(w, level, block, &under, &region, error);
    if (!forming) FV_TRY(leave_parts(w, level, block, &under, &region, &complete, error));
    if (!complete && repeated) each_file_above(w, level, &region, true);
    return FV_OK;
}

fv_status fv__zarr_climb(fv_zarr_writer *w, int level, const fv_block *block, bool store, fv_error *error) {
    const fv_zarr_array *coarse = &w->design.level[level + 1].array;
    fv_region            region = above(w, level + 1, &block->region);
    for (fv_region box = { 0 }; fv__zarr_next(coarse->ndim, coarse->file, &region, &box);)
        FV_TRY(climb_to(w, level + 1, &box, block, store, error));
    return FV_OK;
}

/* ---------------------------------------------------------------- mending */

static fv_status mend_file(fv_zarr_writer *w, int level, const fv_region *region, fv_error *error) {
    fv_region under = below(w, level, region);
    size_t    element = fv_dtype_size(w->base.type.dtype), bytes = (size_t)fv__region_voxels(region) * element;
    void     *data;
    fv_block  file;
    fv_status status = FV_OK;
    FV_TRY(FV_TAKE_BUFFER(data, bytes, error));
    fv__block_init(&file, w->base.type.dtype, region, data);
    const fv_zarr_array *fine = &w->design.level[level - 1].array;
    char                *folder = fv__zarr_level_folder(w, level - 1);
    for (fv_region child = { 0 }; status == FV_OK && fv__zarr_next(fine->ndim, fine->file, &under, &child);) {
        fv_region part = fv__region_intersect(&child, &under), over = above(w, level, &part);
        size_t    size = (size_t)fv__region_voxels(&part) * element;
        fv_block  from, to = fv__block_window(&file, &over);
        void     *room;
        status = FV_TAKE_BUFFER(room, size, error);
        if (status != FV_OK) break;
        fv__block_init(&from, w->base.type.dtype, &part, room);
        status = fv__zarr_read(fine, folder, &from, error);
        if (status == FV_OK) fv__zarr_shrink(&from, &to, w->design.level[level].halved, w->design.mean);
        fv__buffer_free(from.data, size);
    }
    if (status == FV_OK) status = fv__zarr_store(w, level, region->start, &file, NULL, error);
    free(folder);
    fv__buffer_free(data, bytes);
    return status;
}

fv_status fv__zarr_mend(fv_zarr_writer *w, fv_error *error) {
    for (int i = 1; i < w->design.nlevels; i++) {
        const fv_zarr_array *array = &w->design.level[i].array;
        fv_lattice           lattice;
        fv__lattice_init(&lattice, array->ndim, array->shape, array->file);
        for (int64_t k = 0; k < fv__lattice_count(&lattice); k++) {
            fv_region region = fv__lattice_chunk(&lattice, k);
            char     *path = file_path(w, i, region.start);
            bool      there = fv__file_exists(path);
            free(path);
            if (!there) FV_TRY(mend_file(w, i, &region, error));
        }
    }
    return FV_OK;
}
