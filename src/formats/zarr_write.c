/* Writing of Zarr chunks, from any thread of any process in any order.
 *
 * Every chunk is written, also one that holds only the fill value 0, so that a lost file shows; in a shard those beyond the
 * image's end are left out. A file is written under a temporary name, ".partial-...", and renamed; sync makes files and folders
 * durable; finish writes the metadata and syncs all that is not durable yet. */
#include "base/take.h"
#include "formats/zarr_shrink.h"
#include "formats/zarr_writer.h"
#include "op/dense.h"
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

enum { SLAB = 1 << 16 }; /* bytes that are written together where nothing is packed */
static const bool host_is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

char *fv__zarr_level_folder(const fv_zarr_writer *w, int level) {
    return w->design.ome ? fv__sprintf("%s/%d", w->base.path, level) : fv__strdup(w->base.path);
}

fv_status fv__zarr_begin(fv_writer *base, fv_error *error) {
    fv_zarr_writer *w = (fv_zarr_writer *)base;
    fv_status       status = FV_OK;
    for (int i = 0; i < w->design.nlevels && status == FV_OK; i++) {
        char *folder = fv__zarr_level_folder(w, i),
             *files = fv__sprintf("%s%s", folder, w->design.level[i].array.prefixed ? "/c" : "");
        status = fv__path_make_folders(files, error);
        free(folder);
        free(files);
    }
    return status;
}

/* ---------------------------------------------------------------- files */

/* Under its own name, in a folder that may not be there yet. */
static fv_status move_file(const char *from, const char *to, fv_error *error) {
    char *folder = fv__strdup(to);
    *strrchr(folder, '/') = 0;
    fv_status status = fv__path_is_folder(folder) ? FV_OK : fv__path_make_folders(folder, error);
    free(folder);
    return status == FV_OK ? fv__rename(from, to, error) : status;
}

/* A file that grows where nobody looks and gets its name when it is complete. */
typedef struct {
    char   *temporary;
    int     fd;
    int64_t size;
} growing;

static fv_status begin_file(const fv_zarr_writer *w, const char *path, growing *g, fv_error *error) {
    *g = (growing){ .temporary =
                        fv__sprintf("%s/" FV_ZARR_PARTIAL "-%016llx-%d-%.0f", w->base.path,
                                    (unsigned long long)fv__hash_bytes(path, strlen(path)).low, (int)getpid(), fv__now() * 1e9) };
    fv_status status = fv__file_open_write(g->temporary, &g->fd, error);
    if (status != FV_OK) free(g->temporary);
    return status;
}

static fv_status append(growing *g, const void *data, int64_t size, fv_error *error) {
    FV_TRY(fv__file_write_at(g->fd, data, (size_t)size, g->size, g->temporary, error));
    g->size += size;
    return FV_OK;
}

/* status: how filling it went; it has no name unless that is FV_OK. */
static fv_status end_file(growing *g, const char *path, bool lasting, fv_status status, fv_error *error) {
    if (lasting && status == FV_OK) fv__file_start_sync(g->fd);
    fv_status closed = fv__file_close(g->fd, g->temporary, status == FV_OK ? error : NULL);
    if (status == FV_OK) status = closed;
    if (status == FV_OK) status = move_file(g->temporary, path, error);
    if (status != FV_OK) unlink(g->temporary);
    free(g->temporary);
    return status;
}

fv_status fv__zarr_write_file(const fv_zarr_writer *w, const char *path, const void *data, size_t size, bool lasting,
                              fv_error *error) {
    growing g;
    FV_TRY(begin_file(w, path, &g, error));
    return end_file(&g, path, lasting, append(&g, data, (int64_t)size, error), error);
}

static void remember(fv_zarr_writer *w, fv_zarr_place place) {
    pthread_mutex_lock(&w->mutex);
    if (w->nwritten == w->capacity) {
        w->capacity = FV_MAX(2 * w->capacity, (size_t)64);
        w->written = fv__realloc(w->written, w->capacity * sizeof *w->written);
    }
    w->written[w->nwritten++] = place;
    pthread_mutex_unlock(&w->mutex);
}

static fv_lattice lattice_of(const fv_zarr_array *array) {
    fv_lattice lattice;
    fv__lattice_init(&lattice, array->ndim, array->shape, array->file);
    return lattice;
}

/* ---------------------------------------------------------------- packing */

/* What one file is made with: buffers are used again for every chunk of it. */
typedef struct {
    const fv_zarr_array  *array;
    growing               file;
    int64_t               bytes, room; /* of a chunk; of one packed */
    void                 *chunk, *packed;
    fv_bytes              index; /* of a shard: where each chunk lies */
    const fv_zarr_coarse *coarse;
} packing;

static void shrink(const packing *p, const fv_block *part) {
    if (!p->coarse) return;
    fv_region over = fv__zarr_shrunk(&part->region, p->coarse->halved);
    fv_block  to = fv__block_window(&p->coarse->to, &over);
    fv__zarr_shrink(part, &to, p->coarse->halved, p->coarse->mean);
}

/* Copies and shrinks few planes at a time, an even number of them: they are still in the cache for the second. */
static void copy_and_shrink(const packing *p, const fv_block *all, const fv_block *window) {
    int64_t   count = window->region.size[0];
    int64_t   plane = fv__region_voxels(&window->region) / count * (int64_t)fv_dtype_size(window->dtype);
    int64_t   step = p->coarse ? FV_MAX(SLAB / 2 / plane / 2, 1) * 2 : count;
    fv_region planes = window->region;
    for (int64_t i = 0; i < count; i += step) {
        planes.start[0] = window->region.start[0] + i;
        planes.size[0] = FV_MIN(step, count - i);
        fv_block from = fv__block_window(window, &planes), to = fv__block_window(all, &planes);
        fv__block_copy(&to, &from);
        shrink(p, &from);
    }
}

/* A box at the image's end is filled up with zeros, the fill value. */
static const void *gather(const packing *p, const fv_block *window, const fv_region *box, void *memory) {
    bool whole = fv__region_equal(box, &window->region);
    if (whole && fv__block_dense(window) && !host_is_big) {
        shrink(p, window);
        return window->data;
    }
    int64_t  n = fv__region_voxels(box);
    fv_block all;
    fv__block_init(&all, window->dtype, box, memory);
    if (!whole) memset(memory, 0, (size_t)n * fv_dtype_size(window->dtype));
    if (!fv__region_empty(&window->region)) copy_and_shrink(p, &all, window);
    if (host_is_big) fv__swap_elements(window->dtype, memory, n);
    return memory;
}

/* An uncompressed chunk goes to its file in slabs that stay in the cache. */
static fv_status append_slabs(packing *p, const fv_region *chunk, const fv_block *window, fv_error *error) {
    int64_t plane = p->bytes / chunk->size[0], planes = FV_MAX(SLAB / plane / 2, 1) * 2;
    for (int64_t i = 0; i < chunk->size[0]; i += planes) {
        fv_region slab = *chunk;
        slab.start[0] += i;
        slab.size[0] = FV_MIN(planes, chunk->size[0] - i);
        fv_region part = fv__region_intersect(&slab, &window->region);
        fv_block  inner =
            fv__region_empty(&part) ? (fv_block){ .dtype = window->dtype, .region = part } : fv__block_window(window, &part);
        FV_TRY(append(&p->file, gather(p, &inner, &slab, p->chunk), slab.size[0] * plane, error));
    }
    return FV_OK;
}

static fv_status append_chunk(packing *p, const fv_region *chunk, const fv_block *window, fv_error *error) {
    const void *packed;
    int64_t     size;
    bool        dense = fv__region_equal(chunk, &window->region) && fv__block_dense(window);
    if (p->array->codec.packing == FV_ZARR_NONE && !dense) return append_slabs(p, chunk, window, error);
    FV_TRY(fv__zarr_pack(&p->array->codec, gather(p, window, chunk, p->chunk), p->bytes, p->packed, &packed, &size, error));
    return append(&p->file, packed, size, error);
}

static void put_little(uint8_t *to, uint64_t value) {
    for (int i = 0; i < 8; i++) to[i] = (uint8_t)(value >> 8 * i);
}

static void add_to_index(fv_bytes *index, uint64_t offset, uint64_t size) {
    uint8_t *entry = fv__bytes_append(index, NULL, 16);
    put_little(entry, offset);
    put_little(entry + 8, size);
}

static fv_status append_index(packing *p, fv_error *error) {
    uint8_t sum[4];
    fv__zarr_checksum(p->index.data, p->index.size, sum);
    fv__bytes_append(&p->index, sum, sizeof sum);
    return append(&p->file, p->index.data, (int64_t)p->index.size, error);
}

/* Chunks one after the other; in a shard those beyond the image's end are left out, and the index follows. */
static fv_status append_all(packing *p, const int64_t *start, const fv_block *block, fv_error *error) {
    const fv_zarr_array *array = p->array;
    fv_region            chunk = { 0 }, file = { .ndim = array->ndim };
    memcpy(file.start, start, sizeof(int64_t) * (size_t)array->ndim);
    memcpy(file.size, array->file, sizeof file.size);
    while (fv__zarr_next(array->ndim, array->chunk, &file, &chunk)) {
        fv_region part = fv__region_intersect(&chunk, &block->region);
        if (fv__region_empty(&part)) {
            add_to_index(&p->index, UINT64_MAX, UINT64_MAX);
            continue;
        }
        fv_block window = fv__block_window(block, &part);
        int64_t  offset = p->file.size;
        FV_TRY(append_chunk(p, &chunk, &window, error));
        if (array->sharded) add_to_index(&p->index, (uint64_t)offset, (uint64_t)(p->file.size - offset));
    }
    return array->sharded ? append_index(p, error) : FV_OK;
}

static fv_status store_file(const fv_zarr_writer *w, const fv_zarr_array *array, const char *path, const int64_t *start,
                            const fv_block *block, const fv_zarr_coarse *coarse, fv_error *error) {
    packing p = { .array = array, .bytes = fv__zarr_chunk_bytes(array), .coarse = coarse };
    p.room = fv__zarr_packed_bound(p.bytes);
    FV_TRY(begin_file(w, path, &p.file, error));
    fv_status status = FV_TAKE_BUFFER(p.chunk, (size_t)p.bytes, error);
    if (status == FV_OK) status = FV_TAKE_BUFFER(p.packed, (size_t)p.room, error);
    if (status == FV_OK) status = append_all(&p, start, block, error);
    fv__buffer_free(p.chunk, (size_t)p.bytes);
    fv__buffer_free(p.packed, (size_t)p.room);
    fv__bytes_release(&p.index);
    return end_file(&p.file, path, true, status, error);
}

fv_status fv__zarr_store(fv_zarr_writer *w, int level, const int64_t *start, const fv_block *block, const fv_zarr_coarse *coarse,
                         fv_error *error) {
    const fv_zarr_array *array = &w->design.level[level].array;
    fv_lattice           lattice = lattice_of(array);
    char                *folder = fv__zarr_level_folder(w, level), *path = fv__zarr_file_path(array, folder, start);
    fv_status            status = store_file(w, array, path, start, block, coarse, error);
    if (status == FV_OK) remember(w, (fv_zarr_place){ level, fv__lattice_index(&lattice, start) });
    free(folder);
    free(path);
    return status;
}

fv_status fv__zarr_store_all(fv_zarr_writer *w, int level, const fv_block *block, const fv_region *region,
                             const fv_zarr_coarse *coarse, fv_error *error) {
    const fv_zarr_array *array = &w->design.level[level].array;
    for (fv_region file = { 0 }; fv__zarr_next(array->ndim, array->file, region, &file);) {
        fv_region part = fv__region_intersect(&file, region);
        fv_block  window = fv__block_window(block, &part);
        FV_TRY(fv__zarr_store(w, level, file.start, &window, coarse, error));
    }
    return FV_OK;
}

fv_status fv__zarr_put(fv_writer *base, const fv_block *block, fv_error *error) {
    fv_zarr_writer *w = (fv_zarr_writer *)base;
    if (fv__region_empty(&block->region)) return FV_OK;
    return w->design.nlevels > 1 ? fv__zarr_climb(w, 0, block, true, error)
                                 : fv__zarr_store_all(w, 0, block, &block->region, NULL, error);
}

/* ---------------------------------------------------------------- durability */

static int compare(const void *a, const void *b) {
    const fv_zarr_place *x = a, *y = b;
    return x->level != y->level ? (x->level > y->level) - (x->level < y->level) : (x->index > y->index) - (x->index < y->index);
}

/* The folders above path, down to the output's own, that are not above `before` as well: files come in order. */
static void add_folders(const fv_zarr_writer *w, const char *path, const char *before, fv_zarr_paths *folders) {
    size_t root = strlen(w->base.path);
    for (size_t length = strlen(path); length-- > root;) {
        if (path[length] != '/') continue;
        if (before && !strncmp(path, before, length + 1)) return;
        fv__zarr_add_path(folders, fv__sprintf("%.*s", (int)length, path));
    }
}

static void take_paths(fv_zarr_paths *to, fv_zarr_paths *from) {
    for (size_t i = 0; i < from->count; i++) fv__zarr_add_path(to, from->path[i]);
    from->count = 0;
    fv__zarr_release_paths(from);
    *from = (fv_zarr_paths){ 0 };
}

/* Files and the folders above them, in no order: none counts before all are durable. A coarser file that a later put has taken
 * away again, perhaps just now, is nobody's loss. */
static fv_status sync_files(const fv_zarr_writer *w, fv_zarr_place *places, size_t n, fv_zarr_paths *more, fv_error *error) {
    fv_zarr_paths files = { 0 }, folders = { 0 };
    size_t        fine = 0; /* files of the image itself, which come first */
    if (n) qsort(places, n, sizeof *places, compare);
    for (size_t i = 0; i < n; i++) {
        const fv_zarr_array *array = &w->design.level[places[i].level].array;
        fv_lattice           lattice = lattice_of(array);
        fv_region            region = fv__lattice_chunk(&lattice, places[i].index);
        char                *folder = fv__zarr_level_folder(w, places[i].level);
        char                *path = fv__zarr_file_path(array, folder, region.start);
        free(folder);
        fv__zarr_add_path(&files, path);
        if (!places[i].level) fine = files.count;
        add_folders(w, path, files.count > 1 ? files.path[files.count - 2] : NULL, &folders);
    }
    take_paths(&files, &folders);
    take_paths(&files, more);
    fv_status status = fv__paths_sync_some(files.path, files.count, fine, n, error);
    fv__zarr_release_paths(&files);
    return status;
}

/* more: other paths to sync with them, taken. */
static fv_status sync_written(fv_zarr_writer *w, fv_zarr_paths *more, fv_error *error) {
    fv__io_lock(&w->sync_mutex);
    pthread_mutex_lock(&w->mutex);
    fv_zarr_place *places = w->written;
    size_t         n = w->nwritten;
    w->written = NULL;
    w->nwritten = w->capacity = 0;
    pthread_mutex_unlock(&w->mutex);
    fv_status status = n || more->count ? sync_files(w, places, n, more, error) : FV_OK;
    for (size_t i = 0; i < n && status != FV_OK; i++) remember(w, places[i]); /* still not durable */
    free(places);
    pthread_mutex_unlock(&w->sync_mutex);
    return status;
}

fv_status fv__zarr_sync(fv_writer *base, fv_error *error) {
    return sync_written((fv_zarr_writer *)base, &(fv_zarr_paths){ 0 }, error);
}

/* Parts of coarser files, and what writers that were killed have left. */
static fv_status remove_partial(const char *folder, fv_error *error) {
    DIR      *listed = opendir(folder);
    fv_status status = FV_OK;
    for (struct dirent *entry; listed && status == FV_OK && (entry = readdir(listed));) {
        if (strncmp(entry->d_name, FV_ZARR_PARTIAL, strlen(FV_ZARR_PARTIAL))) continue;
        char *path = fv__sprintf("%s/%s", folder, entry->d_name);
        status = fv__path_remove(path, error);
        free(path);
    }
    if (listed) closedir(listed);
    return status;
}

fv_status fv__zarr_finish(fv_writer *base, fv_error *error) {
    fv_zarr_writer *w = (fv_zarr_writer *)base;
    fv__zarr_form_clear(w);
    FV_TRY(fv__zarr_mend(w, error));
    fv_zarr_paths files = { 0 };
    fv_status     status = fv__zarr_write_metadata(w, &files, error);
    if (status == FV_OK) status = remove_partial(w->base.path, error);
    if (status == FV_OK) status = sync_written(w, &files, error);
    fv__zarr_release_paths(&files);
    return status;
}
