/* Zarr: version 3 is written, as OME-Zarr 0.5 with one level "0" where the axes allow it (t c z y x), otherwise as a plain
 * array with the axes in the private attribute "fovea"; versions 3 and 2, alone or as the finest level of an OME-Zarr image,
 * are read by region.
 *
 * Chunks are 128 long in z, y and x, or 1024 in a plane, and 1 in other axes, unless asked for; no chunk is longer than the
 * image. Every chunk is written, also one that holds only the fill value 0, so that a lost file shows. A chunk is written under
 * a temporary name in ".partial" and renamed; sync makes chunks and folders durable; finish writes the metadata last.
 *
 * Invariants of a writer: 1. the mutex guards the list of chunks that are not durable; 2. whoever syncs holds the sync mutex
 * until those are durable, so that a second sync cannot return before. */
#include "formats/zarr_array.h"
#include "formats/zarr_axes.h"
#include "op/dense.h"
#include "op/format.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { EDGE_3D = 128, EDGE_2D = 1024, EDGE_1D = 1 << 20 };
extern const fv_format fv_format_zarr;
static const bool host_is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

/* ---------------------------------------------------------------- opening */

typedef struct {
    fv_reader     base;
    fv_zarr_array array;
    char         *folder; /* of the array */
    int           version;
} reader;

/* A group or an array with its attributes. */
typedef struct {
    int          version;
    bool         array;
    char        *path; /* of the metadata file */
    cJSON       *json, *own_attributes;
    const cJSON *attributes;
} node;

static void release_node(node *n) {
    cJSON_Delete(n->json);
    cJSON_Delete(n->own_attributes);
    free(n->path);
    *n = (node){ 0 };
}

static bool find_file(node *n, const char *folder, const char *name) {
    free(n->path);
    n->path = fv_sprintf("%s/%s", folder, name);
    return fv_file_exists(n->path);
}

static fv_status load_v2_attributes(node *n, const char *folder, fv_hasher *hasher, fv_error *error) {
    char     *path = fv_sprintf("%s/.zattrs", folder);
    fv_status status = fv_file_exists(path) ? fv_zarr_load(path, hasher, &n->own_attributes, error) : FV_OK;
    free(path);
    n->attributes = n->own_attributes;
    return status;
}

static fv_status load_node(node *n, const char *folder, fv_hasher *hasher, fv_error *error) {
    *n = (node){ .version = 3 };
    if (find_file(n, folder, "zarr.json")) {
        FV_TRY(fv_zarr_load(n->path, hasher, &n->json, error));
        const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(n->json, "node_type"));
        n->array = kind && !strcmp(kind, "array");
        n->attributes = cJSON_GetObjectItemCaseSensitive(n->json, "attributes");
        return FV_OK;
    }
    n->version = 2;
    n->array = find_file(n, folder, ".zarray");
    if (!n->array && !find_file(n, folder, ".zgroup"))
        return fv_fail(error, FV_ERROR_INPUT, "%s is not Zarr: it holds neither zarr.json nor .zarray nor .zgroup", folder);
    FV_TRY(fv_zarr_load(n->path, hasher, &n->json, error));
    return load_v2_attributes(n, folder, hasher, error);
}

static const cJSON *names_of(const node *n) {
    return n->version == 3 ? cJSON_GetObjectItemCaseSensitive(n->json, "dimension_names")
                           : cJSON_GetObjectItemCaseSensitive(n->attributes, "_ARRAY_DIMENSIONS");
}

/* group: the node that describes the image, or NULL if the array stands alone. */
static fv_status take_array(reader *r, const node *array, const node *group, fv_error *error) {
    if (!array->array) return fv_fail(error, FV_ERROR_INPUT, "%s describes a group where an array was expected", array->path);
    r->version = array->version;
    FV_TRY((array->version == 3 ? fv_zarr_array_parse : fv_zarr_array_parse_v2)(array->json, array->path, &r->array, error));
    fv_image_type_init(&r->base.type, r->array.dtype, r->array.ndim, r->array.shape);
    const node  *about = group ? group : array;
    const cJSON *multiscale = group ? fv_zarr_multiscale(group->attributes) : NULL;
    return fv_zarr_axes_parse(names_of(array), about->attributes, multiscale, about->path, &r->base.type, error);
}

static fv_status open_image(reader *r, fv_hasher *hasher, fv_error *error) {
    node      top, level = { 0 };
    fv_status status = load_node(&top, r->folder, hasher, error);
    if (status == FV_OK && top.array)
        status = take_array(r, &top, NULL, error);
    else if (status == FV_OK) {
        const char *dataset = fv_zarr_first_dataset(fv_zarr_multiscale(top.attributes));
        if (!dataset)
            status =
                fv_fail(error, FV_ERROR_INPUT, "%s is a group without a multiscale image; name an array inside it", r->folder);
        else {
            char *folder = fv_sprintf("%s/%s", r->folder, dataset);
            free(r->folder);
            r->folder = folder;
            status = load_node(&level, folder, hasher, error);
            if (status == FV_OK) status = take_array(r, &level, &top, error);
        }
    }
    release_node(&top);
    release_node(&level);
    return status;
}

static void describe(reader *r) {
    static const char *const packings[] = { "none", "zstd", "blosc", "gzip", "zlib" };
    const fv_zarr_array     *a = &r->array;
    fv_bytes_printf(&r->base.facts, "version: Zarr %d\ncompression: %s\nbyte order: %s\nchunk:", r->version,
                    packings[a->codec.packing], a->big_endian ? "big" : "little");
    for (int d = 0; d < a->ndim; d++) fv_bytes_printf(&r->base.facts, " %lld", (long long)a->chunk[d]);
    fv_bytes_printf(&r->base.facts, "\n");
}

static void close_reader(fv_reader *base) {
    free(((reader *)base)->folder);
    fv_reader_free(base);
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    reader    *r = fv_reader_new(sizeof *r, &fv_format_zarr, path);
    size_t     length = strlen(path);
    fv_hasher  hasher;
    const char *inside = options && options->path_inside ? options->path_inside : "";
    while (length > 1 && path[length - 1] == '/') length--;
    while (*inside == '/') inside++;
    r->folder = fv_sprintf("%.*s%s%s", (int)length, path, *inside ? "/" : "", inside);
    fv_hasher_init(&hasher);
    fv_status status = open_image(r, &hasher, error);
    r->base.header = fv_hasher_finish(&hasher);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    for (int d = 0; d < r->array.ndim; d++) r->base.chunk[d] = FV_MIN(r->array.chunk[d], r->array.shape[d]);
    r->base.read_memory = fv_zarr_chunk_bytes(&r->array) + fv_zarr_packed_bound(fv_zarr_chunk_bytes(&r->array));
    describe(r);
    *out = &r->base;
    return FV_OK;
}

/* ---------------------------------------------------------------- reading */

static void fill_block(const fv_block *block, const uint8_t *element) {
    size_t  size = fv_dtype_size(block->dtype), row = size * (size_t)block->region.size[block->region.ndim - 1];
    fv_rows rows;
    for (fv_rows_begin(&rows, &block->region); fv_rows_next(&rows);) {
        uint8_t *to = fv_block_at(block, rows.position);
        for (size_t i = 0; i < row; i += size) memcpy(to + i, element, size);
    }
}

/* Bytes of a file into packed, which has room for as many as a chunk can sensibly take. */
static fv_status read_packed(const char *path, void *packed, int64_t room, int64_t *size, fv_error *error) {
    int        fd;
    fv_file_id id;
    FV_TRY(fv_file_identify(path, &id, error));
    if (id.size > room)
        return fv_fail(error, FV_ERROR_INPUT, "%s is damaged: %lld bytes are too many for a chunk", path, (long long)id.size);
    FV_TRY(fv_file_open_read(path, &fd, error));
    fv_status status = fv_file_read_at(fd, packed, (size_t)id.size, 0, path, error);
    close(fd);
    *size = id.size;
    return status;
}

typedef struct {
    const reader *r;
    int64_t       bytes, room; /* of a chunk, unpacked and packed at most */
    void         *packed, *chunk; /* buffers, made when first needed */
} job;

static void normalise(const fv_zarr_array *array, void *data, int64_t bytes) {
    if (array->big_endian != host_is_big) fv_swap_elements(array->dtype, data, bytes / (int64_t)fv_dtype_size(array->dtype));
    for (uint8_t *p = data; array->dtype == FV_BOOL && bytes > 0; bytes--, p++) *p = *p != 0;
}

/* The part of one chunk that the window covers; a whole chunk is unpacked in place. */
static fv_status read_chunk(job *j, const char *path, const fv_region *chunk, const fv_block *window, fv_error *error) {
    const fv_zarr_array *array = &j->r->array;
    int64_t              size = 0;
    if (!j->packed) j->packed = fv_buffer_new((size_t)j->room);
    FV_TRY(read_packed(path, j->packed, j->room, &size, error));
    bool     whole = fv_region_equal(chunk, &window->region) && fv_block_dense(window);
    fv_block from;
    if (!whole && !j->chunk) j->chunk = fv_buffer_new((size_t)j->bytes);
    fv_block_init(&from, array->dtype, chunk, whole ? window->data : j->chunk);
    const char *fault = fv_zarr_unpack(&array->codec, j->packed, size, from.data, j->bytes);
    if (fault) return fv_fail(error, FV_ERROR_INPUT, "%s is damaged: %s", path, fault);
    normalise(array, from.data, j->bytes);
    if (!whole) fv_block_copy(window, &from);
    return FV_OK;
}

/* The next chunk that meets the region, in C order; its own region is not cut at the image's end. False after the last. */
static bool next_chunk(const fv_zarr_array *array, const fv_region *region, fv_region *chunk) {
    bool first = chunk->ndim == 0;
    chunk->ndim = array->ndim;
    for (int d = array->ndim - 1; d >= 0; d--) {
        int64_t low = region->start[d] / array->chunk[d] * array->chunk[d];
        chunk->size[d] = array->chunk[d];
        if (!first) {
            chunk->start[d] += array->chunk[d];
            if (chunk->start[d] < region->start[d] + region->size[d]) return true;
        }
        chunk->start[d] = low;
    }
    return first;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    const reader *r = (reader *)base;
    fv_region     chunk = { 0 };
    fv_status     status = FV_OK;
    job           j = { .r = r, .bytes = fv_zarr_chunk_bytes(&r->array) };
    j.room = fv_zarr_packed_bound(j.bytes);
    if (fv_region_empty(&block->region)) return FV_OK;
    while (status == FV_OK && next_chunk(&r->array, &block->region, &chunk)) {
        fv_region part = fv_region_intersect(&chunk, &block->region);
        fv_block  window = fv_block_window(block, &part);
        char     *path = fv_zarr_chunk_path(&r->array, r->folder, chunk.start);
        if (fv_file_exists(path))
            status = read_chunk(&j, path, &chunk, &window, error);
        else
            fill_block(&window, r->array.fill);
        free(path);
    }
    if (j.packed) fv_buffer_free(j.packed, (size_t)j.room);
    if (j.chunk) fv_buffer_free(j.chunk, (size_t)j.bytes);
    return status;
}

/* ---------------------------------------------------------------- creating */

typedef struct {
    fv_writer       base;
    fv_zarr_array   array;
    bool            ome;
    pthread_mutex_t mutex, sync_mutex;
    int64_t        *written; /* indices of chunks that are not durable yet */
    size_t          nwritten, capacity;
} writer;

static bool is_long_axis(const char *name) { return strlen(name) == 1 && strchr("zyx", name[0]); }

/* z, y and x; in an image without them the last three axes, but never a last axis c, which stays whole. */
static void long_axes(const fv_image_type *type, bool is_long[FV_MAX_DIMS]) {
    int found = 0, n = type->ndim - !strcmp(type->axis[type->ndim - 1], "c");
    for (int d = 0; d < FV_MAX_DIMS; d++) is_long[d] = d < type->ndim && is_long_axis(type->axis[d]);
    for (int d = 0; d < type->ndim; d++) found += is_long[d];
    for (int d = FV_MAX(n - 3, 0); d < n && !found; d++) is_long[d] = true;
}

static fv_status choose_chunk(writer *w, fv_error *error) {
    const fv_image_type    *type = &w->base.type;
    const fv_write_options *options = &w->base.options;
    bool                    is_long[FV_MAX_DIMS];
    int                     extended = 0, given = options->chunk_ndim;
    if (given > type->ndim)
        return fv_fail(error, FV_ERROR_USAGE, "chunk has %d numbers; the image has %d axes", given, type->ndim);
    long_axes(type, is_long);
    for (int d = 0; d < type->ndim; d++) extended += is_long[d] && type->shape[d] > 1;
    int64_t edge = extended >= 3 ? EDGE_3D : extended == 2 ? EDGE_2D : EDGE_1D;
    for (int d = 0; d < type->ndim; d++) {
        bool    channels = d == type->ndim - 1 && !strcmp(type->axis[d], "c");
        int64_t size = is_long[d] ? edge : channels ? type->shape[d] : 1, asked = 0;
        if (given == 1 && is_long[d]) asked = options->chunk[0]; /* one number: for z, y and x; several: for the last axes */
        if (given > 1 && d >= type->ndim - given) asked = options->chunk[d - (type->ndim - given)];
        if (asked < 0) return fv_fail(error, FV_ERROR_USAGE, "chunk = %lld: a chunk has at least one voxel", (long long)asked);
        w->array.chunk[d] = FV_MAX(FV_MIN(asked ? asked : size, type->shape[d]), 1);
        w->base.piece[d] = w->array.chunk[d];
    }
    int64_t bytes = fv_zarr_chunk_bytes(&w->array);
    if (bytes < 0 || bytes > FV_ZARR_LARGEST_CHUNK)
        return fv_fail(error, FV_ERROR_USAGE, "chunk: one chunk would have more than %lld bytes, the most that is written",
                       (long long)FV_ZARR_LARGEST_CHUNK);
    w->base.piece_memory = bytes + fv_zarr_packed_bound(bytes);
    return FV_OK;
}

static fv_status choose_codec(writer *w, fv_error *error) {
    static const struct { fv_zarr_packing packing; const char *inner; int level, most;
    } choices[] = {
        { FV_ZARR_ZSTD, NULL, 1, 22 },
        { FV_ZARR_BLOSC, "lz4", 5, 9 },
        { FV_ZARR_BLOSC, "zstd", 1, 9 },
        { FV_ZARR_NONE, NULL, 0, 0 },
    };
    int     index;
    int64_t level = w->base.options.level;
    FV_TRY(fv_compression_choose(&fv_format_zarr, &w->base.options, &index, error));
    if (level < 0 || level > choices[index].most)
        return fv_fail(error, FV_ERROR_USAGE, "level = %lld: this compression has levels up to %d", (long long)level,
                       choices[index].most);
    w->array.codec = (fv_zarr_codec){ .packing = choices[index].packing,
                                      .level = level ? (int)level : choices[index].level,
                                      .inner = choices[index].inner,
                                      .element = (int)fv_dtype_size(w->base.type.dtype) };
    return FV_OK;
}

static void free_writer(fv_writer *base) {
    writer *w = (writer *)base;
    pthread_mutex_destroy(&w->mutex);
    pthread_mutex_destroy(&w->sync_mutex);
    free(w->written);
    fv_writer_free(base);
}

static fv_status create(const char *path, const fv_image_type *type, const fv_write_options *options, fv_writer **out,
                        fv_error *error) {
    if (type->ndim < 1 || fv_image_type_bytes(type) < 0)
        return fv_fail(error, FV_ERROR_USAGE, "%s: an image without axes or beyond 2^63 bytes cannot be written", path);
    writer *w = fv_writer_new(sizeof *w, &fv_format_zarr, path, type, options);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_mutex_init(&w->sync_mutex, NULL);
    w->array = (fv_zarr_array){ .dtype = type->dtype, .ndim = type->ndim, .prefixed = true, .separator = '/' };
    memcpy(w->array.shape, type->shape, sizeof w->array.shape);
    w->ome = fv_zarr_is_ome(type);
    w->base.parallel = true;
    fv_status status = choose_chunk(w, error);
    if (status == FV_OK) status = choose_codec(w, error);
    if (status != FV_OK) {
        free_writer(&w->base);
        return status;
    }
    *out = &w->base;
    return FV_OK;
}

/* ---------------------------------------------------------------- writing */

/* The path is only known for good when writing begins. Callers free. */
static char *array_folder(const writer *w) { return fv_sprintf("%s%s", w->base.path, w->ome ? "/0" : ""); }
static char *partial_folder(const writer *w) { return fv_sprintf("%s/.partial", w->base.path); }

static fv_status begin(fv_writer *base, fv_error *error) {
    writer   *w = (writer *)base;
    char     *folder = array_folder(w), *chunks = fv_sprintf("%s/c", folder), *partial = partial_folder(w);
    fv_status status = fv_path_make_folders(chunks, error);
    if (status == FV_OK) status = fv_path_make_folders(partial, error);
    free(folder);
    free(chunks);
    free(partial);
    return status;
}

/* Under its own name, in a folder that may not be there yet. */
static fv_status move_chunk(const char *from, const char *to, fv_error *error) {
    char *folder = fv_strdup(to);
    *strrchr(folder, '/') = 0;
    fv_status status = fv_path_is_folder(folder) ? FV_OK : fv_path_make_folders(folder, error);
    free(folder);
    return status == FV_OK ? fv_rename(from, to, error) : status;
}

static fv_status write_file(const char *path, const void *data, int64_t size, fv_error *error) {
    int fd;
    FV_TRY(fv_file_open_write(path, &fd, error));
    fv_status status = fv_file_write_at(fd, data, (size_t)size, 0, path, error);
    fv_io_enter();
    fv_file_start_sync(fd);
    fv_io_leave();
    fv_status closed = fv_file_close(fd, path, status == FV_OK ? error : NULL);
    return status == FV_OK ? closed : status;
}

static void remember(writer *w, int64_t chunk) {
    pthread_mutex_lock(&w->mutex);
    if (w->nwritten == w->capacity) {
        w->capacity = FV_MAX(2 * w->capacity, (size_t)64);
        w->written = fv_realloc(w->written, w->capacity * sizeof *w->written);
    }
    w->written[w->nwritten++] = chunk;
    pthread_mutex_unlock(&w->mutex);
}

static fv_lattice lattice_of(const writer *w) {
    fv_lattice lattice;
    fv_lattice_init(&lattice, w->array.ndim, w->array.shape, w->array.chunk);
    return lattice;
}

static fv_status store_chunk(writer *w, const int64_t *start, const void *packed, int64_t size, fv_error *error) {
    fv_lattice lattice = lattice_of(w);
    int64_t    index = fv_lattice_index(&lattice, start);
    char      *folder = array_folder(w), *partial = partial_folder(w), *path = fv_zarr_chunk_path(&w->array, folder, start);
    char      *temporary = fv_sprintf("%s/%lld-%d-%.0f", partial, (long long)index, (int)getpid(), fv_now() * 1e9);
    fv_status  status = write_file(temporary, packed, size, error);
    if (status == FV_OK) status = move_chunk(temporary, path, error);
    if (status == FV_OK) remember(w, index);
    else unlink(temporary);
    free(folder);
    free(partial);
    free(path);
    free(temporary);
    return status;
}

/* A chunk at the image's end is filled up with zeros, the fill value. */
static const void *gather(const writer *w, const fv_block *window, const fv_region *chunk, void *memory, int64_t bytes) {
    bool whole = fv_region_equal(chunk, &window->region);
    if (whole && fv_block_dense(window) && !host_is_big) return window->data;
    fv_block all;
    fv_block_init(&all, window->dtype, chunk, memory);
    if (!whole) memset(memory, 0, (size_t)bytes);
    fv_block part = fv_block_window(&all, &window->region);
    fv_block_copy(&part, window);
    if (host_is_big) fv_swap_elements(w->array.dtype, memory, bytes / (int64_t)fv_dtype_size(w->array.dtype));
    return memory;
}

static fv_status put(fv_writer *base, const fv_block *block, fv_error *error) {
    writer   *w = (writer *)base;
    int64_t   bytes = fv_zarr_chunk_bytes(&w->array), room = fv_zarr_packed_bound(bytes), size;
    void     *memory = fv_buffer_new((size_t)bytes), *packed = fv_buffer_new((size_t)room);
    fv_region chunk = { 0 };
    fv_status status = FV_OK;
    while (status == FV_OK && !fv_region_empty(&block->region) && next_chunk(&w->array, &block->region, &chunk)) {
        fv_region   part = fv_region_intersect(&chunk, &block->region);
        fv_block    window = fv_block_window(block, &part);
        const void *data = gather(w, &window, &chunk, memory, bytes);
        status = fv_zarr_pack(&w->array.codec, data, bytes, packed, &size, error);
        if (status == FV_OK) status = store_chunk(w, chunk.start, packed, size, error);
    }
    fv_buffer_free(memory, (size_t)bytes);
    fv_buffer_free(packed, (size_t)room);
    return status;
}

/* ---------------------------------------------------------------- durability */

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

typedef struct {
    char **path;
    size_t count, capacity;
} path_list;

static void add_path_take(path_list *list, char *path_take) {
    if (list->count == list->capacity) {
        list->capacity = FV_MAX(2 * list->capacity, (size_t)64);
        list->path = fv_realloc(list->path, list->capacity * sizeof *list->path);
    }
    list->path[list->count++] = path_take;
}

static void release_paths(path_list *list) {
    for (size_t i = 0; i < list->count; i++) free(list->path[i]);
    free(list->path);
}

/* The folders above path, down to the output's own, that are not above `before` as well: chunks come in order. */
static void add_folders(const writer *w, const char *path, const char *before, path_list *folders) {
    size_t root = strlen(w->base.path);
    for (size_t length = strlen(path); length-- > root;) {
        if (path[length] != '/') continue;
        if (before && !strncmp(path, before, length + 1)) return;
        add_path_take(folders, fv_sprintf("%.*s", (int)length, path));
    }
}

static fv_status sync_chunks(const writer *w, int64_t *chunks, size_t n, fv_error *error) {
    fv_lattice lattice = lattice_of(w);
    path_list  files = { 0 }, folders = { 0 };
    char      *folder = array_folder(w);
    qsort(chunks, n, sizeof *chunks, compare);
    for (size_t i = 0; i < n; i++) {
        fv_region region = fv_lattice_chunk(&lattice, chunks[i]);
        add_path_take(&files, fv_zarr_chunk_path(&w->array, folder, region.start));
        add_folders(w, files.path[i], i ? files.path[i - 1] : NULL, &folders);
    }
    fv_status status = fv_paths_sync(files.path, files.count, error);
    if (status == FV_OK) status = fv_paths_sync(folders.path, folders.count, error);
    release_paths(&files);
    release_paths(&folders);
    free(folder);
    return status;
}

static fv_status sync_writer(fv_writer *base, fv_error *error) {
    writer *w = (writer *)base;
    fv_io_lock(&w->sync_mutex);
    pthread_mutex_lock(&w->mutex);
    int64_t *chunks = w->written;
    size_t   n = w->nwritten;
    w->written = NULL;
    w->nwritten = w->capacity = 0;
    pthread_mutex_unlock(&w->mutex);
    fv_status status = n ? sync_chunks(w, chunks, n, error) : FV_OK;
    for (size_t i = 0; i < n && status != FV_OK; i++) remember(w, chunks[i]); /* still not durable */
    free(chunks);
    pthread_mutex_unlock(&w->sync_mutex);
    return status;
}

/* ---------------------------------------------------------------- finishing */

/* Written, but not durable yet: its path joins the list. */
static fv_status write_json(const char *folder, cJSON *json_take, path_list *files, fv_error *error) {
    char     *path = fv_sprintf("%s/zarr.json", folder), *text = cJSON_Print(json_take);
    fv_bytes  file = { 0 };
    fv_bytes_printf(&file, "%s\n", text);
    fv_status status = write_file(path, file.data, (int64_t)file.size, error); /* the folder itself is still a temporary */
    fv_bytes_release(&file);
    cJSON_free(text);
    cJSON_Delete(json_take);
    add_path_take(files, path);
    return status;
}

static cJSON *compose_group(cJSON *attributes_take) {
    cJSON *group = cJSON_CreateObject();
    cJSON_AddItemToObject(group, "zarr_format", fv_zarr_integer(3));
    cJSON_AddStringToObject(group, "node_type", "group");
    cJSON_AddItemToObject(group, "attributes", attributes_take);
    return group;
}

static fv_status write_metadata(const writer *w, const char *folder, path_list *files, fv_error *error) {
    cJSON *array = fv_zarr_array_compose(&w->array), *attributes = fv_zarr_attributes_compose(&w->base.type, "0");
    cJSON_AddItemToObject(array, "dimension_names", fv_zarr_dimension_names(&w->base.type));
    if (!w->ome) cJSON_AddItemToObject(array, "attributes", attributes);
    fv_status status = write_json(folder, array, files, error);
    if (!w->ome) return status;
    cJSON *group = compose_group(attributes);
    if (status == FV_OK) return write_json(w->base.path, group, files, error);
    cJSON_Delete(group);
    return status;
}

static fv_status finish(fv_writer *base, fv_error *error) {
    writer *w = (writer *)base;
    FV_TRY(sync_writer(base, error));
    char     *folder = array_folder(w), *partial = partial_folder(w);
    path_list files = { 0 };
    fv_status status = write_metadata(w, folder, &files, error);
    if (status == FV_OK) status = fv_path_remove(partial, error);
    if (status == FV_OK) status = fv_paths_sync(files.path, files.count, error);
    if (status == FV_OK) status = fv_paths_sync((char *[]){ folder, base->path }, 2, error);
    release_paths(&files);
    free(folder);
    free(partial);
    return status;
}

const fv_format fv_format_zarr = {
    .name = "zarr",
    .extensions = "zarr",
    .brief = "Zarr 3, OME-Zarr 0.5",
    .compressions = "zstd|blosc|blosc-zstd|none",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
    .create = create,
    .begin = begin,
    .put = put,
    .sync = sync_writer,
    .finish = finish,
    .free_writer = free_writer,
};
