/* Zarr: versions 3 and 2, alone or as a level of an OME-Zarr image, with chunks in files of their own or in shards, are read by
 * region. Written as OME-Zarr 0.5 (version 3) or 0.4 (version 2) with a pyramid where the axes allow it (t c z y x), otherwise as
 * a plain array with the axes in the private attribute "fovea". */
#include "formats/zarr_axes.h"
#include "formats/zarr_channels.h"
#include "formats/zarr_contents.h"
#include "formats/zarr_node.h"
#include "formats/zarr_read.h"
#include "formats/zarr_writer.h"
#include <stdlib.h>

typedef struct {
    fv_reader     base;
    fv_zarr_array array;
    char         *folder; /* of the array */
    int           levels; /* of the image that it is the finest of */
} reader;

/* group: the node that describes the image, or NULL if the array stands alone. */
static fv_status take_array(reader *r, const fv_zarr_node *array, const fv_zarr_node *group, fv_error *error) {
    FV_TRY(fv__zarr_node_array(array, &r->array, error));
    fv_image_type_init(&r->base.type, r->array.dtype, r->array.ndim, r->array.shape);
    FV_TRY(fv__zarr_check_claim(&r->base.type, r->folder, error));
    const fv_zarr_node *about = group ? group : array;
    const cJSON        *multiscale = group ? fv__zarr_multiscale(group->attributes) : NULL;
    r->levels = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(multiscale, "datasets"));
    FV_TRY(fv__zarr_axes_parse(fv__zarr_node_names(array), about->attributes, multiscale, about->path, &r->base.type, error));
    if (multiscale) fv__zarr_channels_parse(about->attributes, &r->base.type);
    return FV_OK;
}

static fv_status open_group(reader *r, const fv_zarr_node *group, fv_hasher *hasher, fv_error *error) {
    const char  *dataset = fv__zarr_dataset(fv__zarr_multiscale(group->attributes), 0);
    fv_zarr_node level = { 0 };
    if (!dataset)
        return fv_fail(error, FV_ERROR_INPUT,
                       "%s is a group without a multiscale image; name an array inside it, as in "
                       "read(\"%s\", path = \"0\"); fovea info lists them",
                       r->folder, r->base.path);
    char *folder = fv__path_inside(r->folder, dataset);
    free(r->folder);
    r->folder = folder;
    fv_status status = fv__zarr_node_load(&level, folder, hasher, error);
    if (status == FV_OK) status = take_array(r, &level, group, error);
    fv__zarr_node_release(&level);
    return status;
}

static fv_status open_image(reader *r, fv_hasher *hasher, fv_error *error) {
    fv_zarr_node top;
    fv_status    status = fv__zarr_node_load(&top, r->folder, hasher, error);
    if (status == FV_OK) status = top.array ? take_array(r, &top, NULL, error) : open_group(r, &top, hasher, error);
    fv__zarr_node_release(&top);
    return status;
}

static void put_sizes(fv_bytes *out, const char *name, const int64_t *sizes, int n) {
    fv__bytes_printf(out, "%s:", name);
    for (int d = 0; d < n; d++) fv__bytes_printf(out, " %lld", (long long)sizes[d]);
    fv__bytes_printf(out, "\n");
}

static void describe(reader *r) {
    const fv_zarr_array *a = &r->array;
    fv_bytes            *facts = &r->base.facts;
    fv__bytes_printf(facts, "version: Zarr %d\ncompression: %s\nbyte order: %s\n", a->version,
                     fv__zarr_packing_name(a->codec.packing), a->big_endian ? "big" : "little");
    put_sizes(facts, "chunk", a->chunk, a->ndim);
    if (a->sharded) put_sizes(facts, "shard", a->file, a->ndim);
    if (r->levels) fv__bytes_printf(facts, "levels: %d\n", r->levels);
}

static void close_reader(fv_reader *base) {
    free(((reader *)base)->folder);
    fv__reader_free(base);
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    reader     *r = fv__reader_new(sizeof *r, &fv_format_zarr, path);
    fv_hasher   hasher;
    const char *inside = options && options->path_inside ? options->path_inside : "";
    while (*inside == '/') inside++;
    r->folder = *inside ? fv__path_inside(path, inside) : fv__strdup(path);
    fv__hasher_init(&hasher);
    fv_status status = open_image(r, &hasher, error);
    if (status == FV_OK) fv__zarr_identify(r->folder, &hasher);
    r->base.header = fv__hasher_finish(&hasher);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    for (int d = 0; d < r->array.ndim; d++) r->base.chunk[d] = FV_MIN(r->array.chunk[d], r->array.shape[d]);
    r->base.whole_pieces = fv__zarr_unpacks(&r->array);
    r->base.read_memory = fv__zarr_read_memory(&r->array);
    describe(r);
    *out = &r->base;
    return FV_OK;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    const reader *r = (reader *)base;
    return fv__zarr_read(&r->array, r->folder, block, error);
}

static fv_status list_levels(const char *path, const fv_read_options *options, fv_bytes *names, fv_error *error) {
    const char  *inside = options && options->path_inside ? options->path_inside : "", *name;
    fv_zarr_node group = { 0 };
    fv_hasher    hasher;
    while (*inside == '/') inside++;
    char *folder = *inside ? fv__path_inside(path, inside) : fv__strdup(path);
    fv__hasher_init(&hasher);
    fv_status    status = fv__zarr_node_load(&group, folder, &hasher, error);
    const cJSON *multiscale = status == FV_OK && !group.array ? fv__zarr_multiscale(group.attributes) : NULL;
    for (int k = 0; multiscale && (name = fv__zarr_dataset(multiscale, k)); k++) {
        char *level = *inside ? fv__path_inside(inside, name) : fv__strdup(name);
        fv__bytes_append(names, level, strlen(level) + 1);
        free(level);
    }
    fv__hasher_finish(&hasher);
    fv__zarr_node_release(&group);
    free(folder);
    return status;
}

const fv_format fv_format_zarr = {
    .name = "zarr",
    .extensions = "zarr",
    .brief = "Zarr 3 and 2, OME-Zarr 0.5 and 0.4",
    .reads = "by region; chunks or shards, any level",
    .writes = "in parallel, with a pyramid; best for large results",
    .keeps = "axes, units, scale, translation, orientation, channels",
    .compressions = "zstd|blosc|blosc-zstd|gzip|none",
    .folder = true,
    .marks = "zarr.json .zgroup .zarray",
    .takes = "shard levels version",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
    .contents = fv__zarr_contents,
    .levels = list_levels,
    .layout = fv__zarr_layout,
    .create = fv__zarr_create,
    .begin = fv__zarr_begin,
    .put = fv__zarr_put,
    .sync = fv__zarr_sync,
    .finish = fv__zarr_finish,
    .free_writer = fv__zarr_free_writer,
    .adopt = fv__zarr_adopt_labels,
    .named = fv__zarr_list_label,
};
