/* Writing of Zarr chunks, from any thread of any process in any order.
 *
 * Every chunk is written, also one that holds only the fill value 0, so that a lost file shows; in a shard those beyond the
 * image's end are left out. A file is written under a temporary name in ".partial" and renamed; sync makes files and folders
 * durable; finish writes the metadata last. */
#include "formats/zarr_writer.h"
#include "op/dense.h"
#include <stdlib.h>
#include <unistd.h>

static const bool host_is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

char *fv_zarr_level_folder(const fv_zarr_writer *w, int level) {
    return w->ome ? fv_sprintf("%s/%d", w->base.path, level) : fv_strdup(w->base.path);
}
char *fv_zarr_partial_folder(const fv_zarr_writer *w) { return fv_sprintf("%s/.partial", w->base.path); }

fv_status fv_zarr_begin(fv_writer *base, fv_error *error) {
    fv_zarr_writer *w = (fv_zarr_writer *)base;
    char           *partial = fv_zarr_partial_folder(w);
    fv_status       status = fv_path_make_folders(partial, error);
    for (int i = 0; i < w->nlevels && status == FV_OK; i++) {
        char *folder = fv_zarr_level_folder(w, i), *files = fv_sprintf("%s%s", folder, w->level[i].array.prefixed ? "/c" : "");
        status = fv_path_make_folders(files, error);
        free(folder);
        free(files);
    }
    free(partial);
    return status;
}

/* ---------------------------------------------------------------- files */

/* Under its own name, in a folder that may not be there yet. */
static fv_status move_file(const char *from, const char *to, fv_error *error) {
    char *folder = fv_strdup(to);
    *strrchr(folder, '/') = 0;
    fv_status status = fv_path_is_folder(folder) ? FV_OK : fv_path_make_folders(folder, error);
    free(folder);
    return status == FV_OK ? fv_rename(from, to, error) : status;
}

static fv_status fill_file(const char *path, const void *data, size_t size, bool lasting, fv_error *error) {
    int fd;
    FV_TRY(fv_file_open_write(path, &fd, error));
    fv_status status = fv_file_write_at(fd, data, size, 0, path, error);
    fv_io_enter();
    if (lasting) fv_file_start_sync(fd);
    fv_io_leave();
    fv_status closed = fv_file_close(fd, path, status == FV_OK ? error : NULL);
    return status == FV_OK ? closed : status;
}

fv_status fv_zarr_write_file(const fv_zarr_writer *w, const char *path, const void *data, size_t size, bool lasting,
                             fv_error *error) {
    char     *partial = fv_zarr_partial_folder(w);
    char     *temporary = fv_sprintf("%s/%016llx-%d-%.0f", partial, (unsigned long long)fv_hash_bytes(path, strlen(path)).low,
                                     (int)getpid(), fv_now() * 1e9);
    fv_status status = fill_file(temporary, data, size, lasting, error);
    if (status == FV_OK) status = move_file(temporary, path, error);
    if (status != FV_OK) unlink(temporary);
    free(partial);
    free(temporary);
    return status;
}

static void remember(fv_zarr_writer *w, fv_zarr_place place) {
    pthread_mutex_lock(&w->mutex);
    if (w->nwritten == w->capacity) {
        w->capacity = FV_MAX(2 * w->capacity, (size_t)64);
        w->written = fv_realloc(w->written, w->capacity * sizeof *w->written);
    }
    w->written[w->nwritten++] = place;
    pthread_mutex_unlock(&w->mutex);
}

static fv_lattice lattice_of(const fv_zarr_array *array) {
    fv_lattice lattice;
    fv_lattice_init(&lattice, array->ndim, array->shape, array->file);
    return lattice;
}

static fv_status store_bytes(fv_zarr_writer *w, int level, const int64_t *start, const void *data, size_t size, fv_error *error) {
    const fv_zarr_array *array = &w->level[level].array;
    fv_lattice           lattice = lattice_of(array);
    char                *folder = fv_zarr_level_folder(w, level), *path = fv_zarr_file_path(array, folder, start);
    fv_status            status = fv_zarr_write_file(w, path, data, size, true, error);
    if (status == FV_OK) remember(w, (fv_zarr_place){ level, fv_lattice_index(&lattice, start) });
    free(folder);
    free(path);
    return status;
}

/* ---------------------------------------------------------------- packing */

/* A chunk at the image's end is filled up with zeros, the fill value. */
static const void *gather(const fv_zarr_array *array, const fv_block *window, const fv_region *chunk, void *memory,
                          int64_t bytes) {
    bool whole = fv_region_equal(chunk, &window->region);
    if (whole && fv_block_dense(window) && !host_is_big) return window->data;
    fv_block all;
    fv_block_init(&all, window->dtype, chunk, memory);
    if (!whole) memset(memory, 0, (size_t)bytes);
    fv_block part = fv_block_window(&all, &window->region);
    fv_block_copy(&part, window);
    if (host_is_big) fv_swap_elements(array->dtype, memory, bytes / (int64_t)fv_dtype_size(array->dtype));
    return memory;
}

static void put_little(uint8_t *to, uint64_t value) {
    for (int i = 0; i < 8; i++) to[i] = (uint8_t)(value >> 8 * i);
}

/* Chunks one after the other, then where each of them lies, in memory that is used again for the next shard. */
typedef struct {
    uint8_t *data;
    size_t   size, room;
    fv_bytes index;
} shard;

static void begin_shard(shard *s, const fv_zarr_array *array, int64_t packed_room) {
    if (!array->sharded) return;
    s->room = (size_t)(fv_zarr_shard_chunks(array) * (packed_room + 16) + 4);
    s->data = fv_buffer_new(s->room);
}

static void append(shard *s, const void *data, size_t size) {
    memcpy(s->data + s->size, data, size);
    s->size += size;
}

static void add_to_shard(shard *s, const void *packed, int64_t size) {
    uint8_t *entry = fv_bytes_append(&s->index, NULL, 16);
    put_little(entry, packed ? s->size : UINT64_MAX);
    put_little(entry + 8, packed ? (uint64_t)size : UINT64_MAX);
    if (packed) append(s, packed, (size_t)size);
}

static void end_shard(shard *s) {
    uint8_t sum[4];
    fv_zarr_checksum(s->index.data, s->index.size, sum);
    append(s, s->index.data, s->index.size);
    append(s, sum, sizeof sum);
}

static void release_shard(shard *s) {
    if (s->data) fv_buffer_free(s->data, s->room);
    fv_bytes_release(&s->index);
}

fv_status fv_zarr_store(fv_zarr_writer *w, int level, const int64_t *start, const fv_block *block, fv_error *error) {
    const fv_zarr_array *array = &w->level[level].array;
    int64_t              bytes = fv_zarr_chunk_bytes(array), room = fv_zarr_packed_bound(bytes), size = 0;
    void                *memory = fv_buffer_new((size_t)bytes), *space = fv_buffer_new((size_t)room);
    const void          *packed = NULL;
    fv_region            chunk = { 0 }, file = { .ndim = array->ndim };
    fv_status            status = FV_OK;
    shard                s = { 0 };
    memcpy(file.start, start, sizeof(int64_t) * (size_t)array->ndim);
    memcpy(file.size, array->file, sizeof file.size);
    begin_shard(&s, array, room);
    while (status == FV_OK && fv_zarr_next(array->ndim, array->chunk, &file, &chunk)) {
        fv_region part = fv_region_intersect(&chunk, &block->region);
        if (fv_region_empty(&part)) { /* beyond the image's end */
            add_to_shard(&s, NULL, 0);
            continue;
        }
        fv_block window = fv_block_window(block, &part);
        const void *data = gather(array, &window, &chunk, memory, bytes);
        status = fv_zarr_pack(&array->codec, data, bytes, space, &packed, &size, error);
        if (status == FV_OK && array->sharded) add_to_shard(&s, packed, size);
    }
    if (array->sharded) end_shard(&s);
    if (status == FV_OK)
        status = store_bytes(w, level, start, array->sharded ? s.data : packed,
                             array->sharded ? s.size : (size_t)size, error);
    fv_buffer_free(memory, (size_t)bytes);
    fv_buffer_free(space, (size_t)room);
    release_shard(&s);
    return status;
}

fv_status fv_zarr_put(fv_writer *base, const fv_block *block, fv_error *error) {
    fv_zarr_writer      *w = (fv_zarr_writer *)base;
    const fv_zarr_array *array = &w->level[0].array;
    fv_region            file = { 0 };
    if (fv_region_empty(&block->region)) return FV_OK;
    while (fv_zarr_next(array->ndim, array->file, &block->region, &file)) {
        fv_region part = fv_region_intersect(&file, &block->region);
        fv_block  window = fv_block_window(block, &part);
        FV_TRY(fv_zarr_store(w, 0, file.start, &window, error));
    }
    return w->nlevels > 1 ? fv_zarr_climb(w, 0, block, error) : FV_OK;
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
        fv_zarr_add_path(folders, fv_sprintf("%.*s", (int)length, path));
    }
}

/* A file that a later put has taken away again is nobody's loss. */
static fv_status sync_files(const fv_zarr_writer *w, fv_zarr_place *places, size_t n, fv_error *error) {
    fv_zarr_paths files = { 0 }, folders = { 0 };
    qsort(places, n, sizeof *places, compare);
    for (size_t i = 0; i < n; i++) {
        const fv_zarr_array *array = &w->level[places[i].level].array;
        fv_lattice           lattice = lattice_of(array);
        fv_region            region = fv_lattice_chunk(&lattice, places[i].index);
        char                *folder = fv_zarr_level_folder(w, places[i].level);
        char                *path = fv_zarr_file_path(array, folder, region.start);
        free(folder);
        if (places[i].level && !fv_file_exists(path)) {
            free(path);
            continue;
        }
        fv_zarr_add_path(&files, path);
        add_folders(w, path, files.count > 1 ? files.path[files.count - 2] : NULL, &folders);
    }
    fv_status status = fv_paths_sync(files.path, files.count, error);
    if (status == FV_OK) status = fv_paths_sync(folders.path, folders.count, error);
    fv_zarr_release_paths(&files);
    fv_zarr_release_paths(&folders);
    return status;
}

fv_status fv_zarr_sync(fv_writer *base, fv_error *error) {
    fv_zarr_writer *w = (fv_zarr_writer *)base;
    fv_io_lock(&w->sync_mutex);
    pthread_mutex_lock(&w->mutex);
    fv_zarr_place *places = w->written;
    size_t         n = w->nwritten;
    w->written = NULL;
    w->nwritten = w->capacity = 0;
    pthread_mutex_unlock(&w->mutex);
    fv_status status = n ? sync_files(w, places, n, error) : FV_OK;
    for (size_t i = 0; i < n && status != FV_OK; i++) remember(w, places[i]); /* still not durable */
    free(places);
    pthread_mutex_unlock(&w->sync_mutex);
    return status;
}

fv_status fv_zarr_finish(fv_writer *base, fv_error *error) {
    fv_zarr_writer *w = (fv_zarr_writer *)base;
    FV_TRY(fv_zarr_mend(w, error));
    FV_TRY(fv_zarr_sync(base, error));
    char         *partial = fv_zarr_partial_folder(w);
    fv_zarr_paths files = { 0 };
    fv_status     status = fv_zarr_write_metadata(w, &files, error);
    if (status == FV_OK) status = fv_path_remove(partial, error);
    if (status == FV_OK) status = fv_paths_sync(files.path, files.count, error);
    fv_zarr_release_paths(&files);
    free(partial);
    return status;
}
