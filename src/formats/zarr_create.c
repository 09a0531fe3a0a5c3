/* Choosing how a Zarr image is laid out: chunks, shards, compression, version, levels of the pyramid.
 *
 * Chunks are 128 long in z, y and x, or 1024 in a plane, and 1 in other axes, unless asked for; no chunk is longer than the
 * image. The pyramid halves z, y and x until none is longer than two such chunks (in a plane: than one). */
#include "formats/zarr_axes.h"
#include "formats/zarr_writer.h"
#include <stdlib.h>

enum { EDGE_3D = 128, EDGE_2D = 1024, EDGE_1D = 1 << 20, SMALL_3D = 256, SMALL_2D = 1024 };

static bool is_long_axis(const char *name) { return strlen(name) == 1 && strchr("zyx", name[0]); }

/* z, y and x; in an image without them the last three axes, but never a last axis c, which stays whole. */
static void long_axes(const fv_image_type *type, bool is_long[FV_MAX_DIMS]) {
    int found = 0, n = type->ndim - !strcmp(type->axis[type->ndim - 1], "c");
    for (int d = 0; d < FV_MAX_DIMS; d++) is_long[d] = d < type->ndim && is_long_axis(type->axis[d]);
    for (int d = 0; d < type->ndim; d++) found += is_long[d];
    for (int d = FV_MAX(n - 3, 0); d < n && !found; d++) is_long[d] = true;
}

static int extended_axes(const fv_image_type *type, const bool *is_long) {
    int extended = 0;
    for (int d = 0; d < type->ndim; d++) extended += is_long[d] && type->shape[d] > 1;
    return extended;
}

/* ---------------------------------------------------------------- chunks and shards */

/* What a list of lengths asks of one axis: one number is for z, y and x; several are for the last axes; 0: nothing. */
static int64_t asked_of(const int64_t *numbers, int given, int ndim, int d, bool is_long) {
    if (given == 1) return is_long ? numbers[0] : 0;
    return given > 1 && d >= ndim - given ? numbers[d - (ndim - given)] : 0;
}

static fv_status check_numbers(const char *name, const int64_t *numbers, int given, int ndim, fv_error *error) {
    if (given > ndim) return fv_fail(error, FV_ERROR_USAGE, "%s has %d numbers; the image has %d axes", name, given, ndim);
    for (int i = 0; i < given; i++)
        if (numbers[i] < 0)
            return fv_fail(error, FV_ERROR_USAGE, "%s = %lld: it has at least one voxel", name, (long long)numbers[i]);
    return FV_OK;
}

static fv_status choose_chunk(fv_zarr_design *design, const fv_image_file *file, const bool *is_long, fv_error *error) {
    const fv_image_type    *type = file->type;
    const fv_write_options *options = file->options;
    fv_zarr_array          *array = &design->level[0].array;
    int                     extended = extended_axes(type, is_long);
    int64_t                 edge = extended >= 3 ? EDGE_3D : extended == 2 ? EDGE_2D : EDGE_1D;
    FV_TRY(check_numbers("chunk", options->chunk, options->chunk_ndim, type->ndim, error));
    for (int d = 0; d < type->ndim; d++) {
        bool    channels = d == type->ndim - 1 && !strcmp(type->axis[d], "c");
        int64_t size = is_long[d] ? edge : channels ? type->shape[d] : 1;
        int64_t asked = asked_of(options->chunk, options->chunk_ndim, type->ndim, d, is_long[d]);
        array->chunk[d] = FV_MAX(FV_MIN(asked ? asked : size, type->shape[d]), 1);
    }
    int64_t bytes = fv__zarr_chunk_bytes(array);
    if (bytes < 0 || bytes > FV_ZARR_LARGEST_CHUNK)
        return fv_fail(error, FV_ERROR_USAGE, "chunk: one chunk would have more than %lld bytes, the most that is written",
                       (long long)FV_ZARR_LARGEST_CHUNK);
    return FV_OK;
}

static fv_status choose_shard(fv_zarr_design *design, const fv_image_file *file, const bool *is_long, fv_error *error) {
    const fv_write_options *options = file->options;
    fv_zarr_array          *array = &design->level[0].array;
    memcpy(array->file, array->chunk, sizeof array->file);
    if (!options->shard_ndim) return FV_OK;
    if (array->version == 2) return fv_fail(error, FV_ERROR_USAGE, "shard: version 0.4 has none; 0.5 has");
    FV_TRY(check_numbers("shard", options->shard, options->shard_ndim, array->ndim, error));
    array->sharded = array->index_summed = true;
    int64_t bytes = (int64_t)fv_dtype_size(array->dtype);
    for (int d = 0; d < array->ndim; d++) {
        int64_t asked = asked_of(options->shard, options->shard_ndim, array->ndim, d, is_long[d]), chunk = array->chunk[d];
        bool    single = array->chunk[d] == array->shape[d]; /* one chunk along this axis: the shard is as long */
        if (single || !asked) asked = chunk;
        if (asked % chunk)
            return fv_fail(error, FV_ERROR_USAGE, "shard = %lld: along %s it must be a multiple of the chunk, %lld",
                           (long long)asked, file->type->axis[d], (long long)chunk);
        array->file[d] = FV_MIN(asked, (array->shape[d] + chunk - 1) / chunk * chunk);
        if (!fv__mul(bytes, array->file[d], &bytes)) bytes = INT64_MAX;
    }
    if (bytes > FV_ZARR_LARGEST_CHUNK || fv__zarr_shard_chunks(array) < 0)
        return fv_fail(error, FV_ERROR_USAGE, "shard: one shard would have more than %lld bytes, the most that is written",
                       (long long)FV_ZARR_LARGEST_CHUNK);
    return FV_OK;
}

/* ---------------------------------------------------------------- compression and version */

/* Without a word on it, integers are packed by zstd and floating-point numbers by blosc (lz4): bytes of equal weight side by side
 * pack better than numbers as they are, in half the time. A level alone is zstd's. */
static int usual_choice(const fv_image_file *file) {
    bool said = file->options->level || (file->options->compression && *file->options->compression);
    return !said && !fv_dtype_is_integer(file->type->dtype) && file->type->dtype != FV_BOOL;
}

static fv_status choose_codec(fv_zarr_design *design, const fv_image_file *file, fv_error *error) {
    static const struct {
        fv_zarr_packing packing;
        const char     *inner;
        int             level, most;
    } choices[] = {
        { FV_ZARR_ZSTD, NULL, 1, 22 }, { FV_ZARR_BLOSC, "lz4", 5, 9 }, { FV_ZARR_BLOSC, "zstd", 1, 9 },
        { FV_ZARR_GZIP, NULL, 1, 9 },  { FV_ZARR_NONE, NULL, 0, 0 },
    };
    int     index;
    int64_t level = file->options->level;
    FV_TRY(fv__compression_choose(&fv_format_zarr, file->options, &index, error));
    if (!index) index = usual_choice(file);
    if (level < 0 || level > choices[index].most)
        return fv_fail(error, FV_ERROR_USAGE, "level = %lld: this compression has levels up to %d", (long long)level,
                       choices[index].most);
    design->level[0].array.codec = (fv_zarr_codec){ .packing = choices[index].packing,
                                                    .level = level ? (int)level : choices[index].level,
                                                    .inner = choices[index].inner,
                                                    .element = (int)fv_dtype_size(file->type->dtype) };
    return FV_OK;
}

static fv_status choose_version(fv_zarr_design *design, const fv_image_file *file, fv_error *error) {
    const char    *version = file->options->version;
    fv_zarr_array *array = &design->level[0].array;
    array->version = version && !strcmp(version, "0.4") ? 2 : 3;
    array->prefixed = array->version == 3;
    array->separator = '/';
    if (!version || !strcmp(version, "0.4") || !strcmp(version, "0.5")) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "version = \"%.20s\": OME-Zarr is written as \"0.5\" (Zarr 3) or \"0.4\" (Zarr 2)",
                   version);
}

/* ---------------------------------------------------------------- levels */

/* Half the level before; false if that cannot be halved. */
static bool add_level(fv_zarr_design *design, const fv_image_file *file) {
    const fv_zarr_level *before = &design->level[design->nlevels - 1];
    fv_zarr_level        level = *before;
    bool                 any = false;
    for (int d = 0; d < level.array.ndim; d++) {
        level.halved[d] = is_long_axis(file->type->axis[d]) && before->array.shape[d] > 1;
        if (!level.halved[d]) continue;
        any = true;
        level.factor[d] *= 2;
        level.array.shape[d] = (before->array.shape[d] + 1) / 2;
        if (!level.array.sharded) level.array.file[d] = level.array.chunk[d] = FV_MIN(level.array.chunk[d], level.array.shape[d]);
    }
    if (any) design->level[design->nlevels++] = level;
    return any;
}

static bool is_small(const fv_zarr_design *design, const fv_image_file *file, int64_t edge) {
    const fv_zarr_array *array = &design->level[design->nlevels - 1].array;
    for (int d = 0; d < array->ndim; d++)
        if (is_long_axis(file->type->axis[d]) && array->shape[d] > edge) return false;
    return true;
}

/* A voxel of a coarser level must not lie over two files. */
static int odd_axis(const fv_zarr_design *design, const fv_image_file *file) {
    const fv_zarr_array *array = &design->level[0].array;
    for (int d = 0; d < array->ndim; d++)
        if (is_long_axis(file->type->axis[d]) && array->file[d] % 2 && array->file[d] < array->shape[d]) return d;
    return -1;
}

static fv_status choose_levels(fv_zarr_design *design, const fv_image_file *file, const bool *is_long, fv_error *error) {
    int64_t asked = file->options->levels, edge = extended_axes(file->type, is_long) >= 3 ? SMALL_3D : SMALL_2D;
    int     odd = odd_axis(design, file);
    for (int d = 0; d < FV_MAX_DIMS; d++) design->level[0].factor[d] = 1;
    design->nlevels = 1;
    design->mean = !fv_dtype_is_integer(file->type->dtype) || fv_dtype_size(file->type->dtype) < 4;
    if (file->type->dtype == FV_BOOL || design->label) design->mean = false;
    if (asked > FV_ZARR_MOST_LEVELS || asked < 0)
        return fv_fail(error, FV_ERROR_USAGE, "levels = %lld: at most %d", (long long)asked, FV_ZARR_MOST_LEVELS);
    if (asked > 1 && !design->ome)
        return fv_fail(error, FV_ERROR_USAGE, "levels: only images with axes out of t c z y x, in this order, have a pyramid");
    if (asked > 1 && odd >= 0)
        return fv_fail(error, FV_ERROR_USAGE, "levels: with a pyramid chunks must be even; along %s they are %lld long",
                       file->type->axis[odd], (long long)design->level[0].array.file[odd]);
    if (!design->ome || odd >= 0) return FV_OK;
    while (design->nlevels < FV_ZARR_MOST_LEVELS && (asked ? design->nlevels < asked : !is_small(design, file, edge)) &&
           add_level(design, file)) {
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- all of it */

/* One file packed: a chunk filled up to its whole, the same packed, and of a shard the index. */
static int64_t store_memory(const fv_zarr_array *array) {
    int64_t chunk = fv__zarr_chunk_bytes(array), memory = chunk + fv__zarr_pack_memory(&array->codec, chunk);
    if (array->sharded) memory += fv__zarr_shard_chunks(array) * 16;
    return memory;
}

static fv_status make_design(const fv_image_file *file, fv_zarr_design *design, fv_error *error) {
    const fv_image_type *type = file->type;
    fv_zarr_array       *array = &design->level[0].array;
    bool                 is_long[FV_MAX_DIMS];
    FV_TRY(fv__writer_check(file->path, type, error));
    array->dtype = type->dtype;
    array->ndim = type->ndim;
    memcpy(array->shape, type->shape, sizeof array->shape);
    for (int d = 0; d < FV_MAX_DIMS; d++) array->order[d] = d;
    design->ome = fv__zarr_is_ome(type);
    design->label = fv__format_around(file->path) > 0;
    long_axes(type, is_long);
    FV_TRY(choose_version(design, file, error));
    if (design->label) FV_TRY(fv__zarr_check_label(design, file, error));
    FV_TRY(choose_chunk(design, file, is_long, error));
    FV_TRY(choose_shard(design, file, is_long, error));
    FV_TRY(choose_codec(design, file, error));
    return choose_levels(design, file, is_long, error);
}

fv_status fv__zarr_layout(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    fv_zarr_design design = { 0 };
    FV_TRY(make_design(file, &design, error));
    memcpy(layout->piece, design.level[0].array.file, sizeof layout->piece);
    layout->parallel = true;
    layout->piece_memory = store_memory(&design.level[0].array) + fv__zarr_pyramid_memory(&design);
    layout->spare_wanted = fv__zarr_pyramid_bytes(&design);
    return FV_OK;
}

fv_status fv__zarr_create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                          fv_error *error) {
    fv_zarr_design design = { 0 };
    FV_TRY(make_design(file, &design, error));
    fv_zarr_writer *w = fv__writer_new(sizeof *w, &fv_format_zarr, file, layout, temporary);
    w->design = design;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_mutex_init(&w->sync_mutex, NULL);
    *out = &w->base;
    return FV_OK;
}

void fv__zarr_free_writer(fv_writer *base) {
    fv_zarr_writer *w = (fv_zarr_writer *)base;
    fv__zarr_form_clear(w);
    pthread_mutex_destroy(&w->mutex);
    pthread_mutex_destroy(&w->sync_mutex);
    free(w->written);
    fv__writer_free(base);
}
