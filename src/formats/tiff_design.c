/* The design of a TIFF file: pieces, levels, compression and the order of its pages. */
#include "formats/tiff_design.h"
#include "base/deflate.h"
#include "formats/planes.h"

enum { STRIP_BYTES = 256 << 10, TILE = 512, MOST_TILE_BYTES = 4 << 20, WIDEST_STRIP = 8192 };
enum { LARGE = 2048, COARSEST = 1024 }; /* an image longer than the first gets levels until none is longer than the second */

static fv_status choose_level(fv_tiff_design *chosen, const fv_write_options *options, fv_error *error) {
    static const int64_t most[] = {
        [FV_TIFF_DEFLATE] = FV_DEFLATE_LEVELS, [FV_TIFF_ZSTD] = 19, [FV_TIFF_LZW] = 0, [FV_TIFF_NONE] = 0
    };
    int64_t level = options->level;
    if (level && !most[chosen->compression])
        return fv_fail(error, FV_ERROR_USAGE, "level = %lld: this compression of TIFF has no level", (long long)level);
    if (level < 0 || level > most[chosen->compression])
        return fv_fail(error, FV_ERROR_USAGE, "level = %lld: TIFF takes 1 to %lld with this compression", (long long)level,
                       (long long)most[chosen->compression]);
    chosen->level = level ? (int)level : 1;
    return FV_OK;
}

static fv_status choose_pieces(fv_tiff_design *chosen, const fv_image_file *file, bool pyramid, fv_error *error) {
    const fv_write_options *options = file->options;
    int64_t                 pixel = chosen->samples * (int64_t)fv_dtype_size(file->type->dtype), tile = TILE;
    while (tile > 16 && tile * tile * pixel > MOST_TILE_BYTES) tile /= 2;
    bool several = file->options->levels ? file->options->levels > 1 : FV_MAX(chosen->width, chosen->height) > LARGE;
    chosen->tiled = chosen->width > WIDEST_STRIP || (pyramid && several);
    chosen->piece_width = chosen->tiled ? tile : chosen->width;
    chosen->piece_height = chosen->tiled ? tile : FV_MAX(FV_MIN(STRIP_BYTES / (pixel * chosen->width), chosen->height), 1);
    if (options->chunk_ndim > 0) {
        if (options->chunk_ndim != 2)
            return fv_fail(error, FV_ERROR_USAGE, "chunk has %d numbers: TIFF takes two, rows and columns", options->chunk_ndim);
        chosen->piece_height = options->chunk[0] > 0 ? options->chunk[0] : chosen->height;
        chosen->piece_width = options->chunk[1] > 0 ? options->chunk[1] : chosen->width;
        chosen->tiled = chosen->piece_width < chosen->width;
        if (chosen->tiled && (chosen->piece_height % 16 || chosen->piece_width % 16))
            return fv_fail(error, FV_ERROR_USAGE, "chunk = [%lld, %lld]: the sides of a TIFF tile are multiples of 16",
                           (long long)chosen->piece_height, (long long)chosen->piece_width);
        if (!chosen->tiled) chosen->piece_width = chosen->width;
        if (!chosen->tiled) chosen->piece_height = FV_MIN(chosen->piece_height, chosen->height);
    }
    int64_t bytes;
    if (!fv__mul(chosen->piece_width * pixel, chosen->piece_height, &bytes) || bytes > INT32_MAX / 2)
        return fv_fail(error, FV_ERROR_USAGE, "chunk = [%lld, %lld]: a piece of a TIFF file would be larger than 1 GB",
                       (long long)chosen->piece_height, (long long)chosen->piece_width);
    return FV_OK;
}

/* A piece holds whole pixels of every level. */
static fv_status choose_levels(fv_tiff_design *chosen, const fv_image_file *file, fv_error *error) {
    int64_t longest = FV_MAX(chosen->width, chosen->height), wanted = file->options->levels;
    int     most = 1;
    while (chosen->piece_width % ((int64_t)2 << (most - 1)) == 0 && chosen->piece_height % ((int64_t)2 << (most - 1)) == 0)
        most++;
    if (wanted > most)
        return fv_fail(error, FV_ERROR_USAGE, "levels = %lld: tiles of %lld x %lld pixels can have %d", (long long)wanted,
                       (long long)chosen->piece_height, (long long)chosen->piece_width, most);
    chosen->levels = wanted ? (int)wanted : 1;
    while (!wanted && longest > LARGE && chosen->levels < most && longest >> (chosen->levels - 1) > COARSEST) chosen->levels++;
    return FV_OK;
}

static fv_status check_type(const char *path, const fv_image_type *type, bool channels, fv_error *error) {
    if (type->ndim < (channels ? 3 : 2))
        return fv_fail(error, FV_ERROR_USAGE, "%s: TIFF holds images with at least the axes y x; " FV_LINE_ADVICE, path);
    int64_t bytes = fv_image_type_bytes(type), samples = channels ? type->shape[type->ndim - 1] : 1;
    for (int d = 0; d < type->ndim; d++)
        if (type->shape[d] < 1 || type->shape[d] > INT32_MAX || bytes < 0 || samples > UINT16_MAX)
            return fv_fail(error, FV_ERROR_USAGE, "%s: axis %s of %lld is more than TIFF holds", path, type->axis[d],
                           (long long)type->shape[d]);
    return FV_OK;
}

static fv_status check_hyperstack(const fv_image_file *file, int leading, fv_error *error) {
    fv_dtype dtype = file->type->dtype;
    if (!fv__tiff_hyperstack_axes(file->type, leading))
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s: a hyperstack has axes among t, z and c before y x; name_axes() gives them other names", file->path);
    if (dtype != FV_UINT8 && dtype != FV_BOOL && dtype != FV_UINT16 && dtype != FV_FLOAT32)
        return fv_fail(error, FV_ERROR_USAGE, "%s: hyperstacks are uint8, uint16 or float32, and this image is %s; convert() it",
                       file->path, fv_dtype_name(dtype));
    return FV_OK;
}

fv_status fv__tiff_design(const fv_image_file *file, bool pyramid, fv_tiff_design *chosen, fv_error *error) {
    const fv_image_type *type = file->type;
    bool                 channels = type->ndim >= 3 && !strcmp(type->axis[type->ndim - 1], "c");
    FV_TRY(fv__compression_choose(&fv_format_tiff, file->options, &chosen->compression, error));
    FV_TRY(check_type(file->path, type, channels, error));
    chosen->leading = type->ndim - (channels ? 3 : 2);
    chosen->hyperstack = file->options->hyperstack;
    if (chosen->hyperstack) FV_TRY(check_hyperstack(file, chosen->leading, error));
    chosen->height = type->shape[chosen->leading];
    chosen->width = type->shape[chosen->leading + 1];
    chosen->samples = channels ? type->shape[chosen->leading + 2] : 1;
    chosen->predict = chosen->compression != FV_TIFF_NONE && fv_dtype_is_integer(type->dtype) && fv_dtype_size(type->dtype) <= 4;
    FV_TRY(choose_level(chosen, file->options, error));
    FV_TRY(choose_pieces(chosen, file, pyramid, error));
    chosen->levels = 1;
    if (pyramid && chosen->tiled) FV_TRY(choose_levels(chosen, file, error));
    chosen->pages = 1;
    for (int d = 0; d < chosen->leading; d++) chosen->pages *= type->shape[d];
    chosen->pieces_a_page = ((chosen->height + chosen->piece_height - 1) / chosen->piece_height) *
                            ((chosen->width + chosen->piece_width - 1) / chosen->piece_width);
    return FV_OK;
}

int64_t fv__tiff_page_in_file(const fv_image_type *type, const fv_tiff_design *chosen, int64_t page) {
    int64_t index[FV_MAX_DIMS] = { 0 }, number = 0;
    if (!chosen->hyperstack) return page;
    for (const char *axis = "czt"; *axis; axis++)
        for (int d = 0; d < chosen->leading; d++)
            if (type->axis[d][0] == *axis) {
                index[d] = page % type->shape[d];
                page /= type->shape[d];
            }
    for (int d = 0; d < chosen->leading; d++) number = number * type->shape[d] + index[d];
    return number;
}

/* Whether pages lie in the file in another order than in the image. */
static bool reorders(const fv_image_type *type, const fv_tiff_design *chosen) {
    for (int d = 0; chosen->hyperstack && d + 1 < chosen->leading; d++)
        if (strchr("tzc", type->axis[d][0]) > strchr("tzc", type->axis[d + 1][0])) return true;
    return false;
}

static fv_status lay_out(const fv_image_file *file, bool pyramid, fv_file_layout *layout, fv_error *error) {
    const fv_image_type *type = file->type;
    fv_tiff_design       chosen = { 0 };
    FV_TRY(fv__tiff_design(file, pyramid, &chosen, error));
    for (int d = 0; d < type->ndim; d++) layout->piece[d] = d < chosen.leading ? 1 : type->shape[d];
    layout->piece[chosen.leading] = chosen.piece_height;
    layout->piece[chosen.leading + 1] = chosen.piece_width;
    int64_t bytes = chosen.piece_height * chosen.piece_width * chosen.samples * (int64_t)fv_dtype_size(type->dtype);
    layout->piece_memory = bytes + FV_MAX(fv__deflate_memory(bytes), bytes * 3 / 2) + (8 << 20); /* LZW's growth, zstd's tables */
    if (chosen.levels > 1) layout->piece_memory += bytes;
    layout->parallel =
        chosen.compression == FV_TIFF_NONE && chosen.levels == 1 && type->dtype != FV_BOOL && !reorders(type, &chosen);
    layout->any_region = layout->parallel && !chosen.tiled;
    return FV_OK;
}

fv_status fv__tiff_layout(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    return lay_out(file, false, layout, error);
}

fv_status fv__tiff_ome_layout(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    return lay_out(file, true, layout, error);
}
