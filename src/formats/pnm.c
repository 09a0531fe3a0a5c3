/* PNM: .pgm, .ppm and .pbm. Binary grey and colour images of 8 and 16 bit are read by region and written by many workers at once;
 * the forms as text and the bitmaps are read whole.
 *
 * Values are those of the file, whatever its largest value; 16 bits where that is above 255. A bool is written as a grey image
 * whose largest value is 1. */
#include "op/dense_writer.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern const fv_format fv_format_pnm;
enum { MOST_HEADER = 4096, MOST_TEXT = 256 << 20 };

typedef struct {
    fv_reader base;
    int       fd, kind; /* P1 to P6 */
    int64_t   file_size;
    fv_dense  dense;
    long      most;
    uint8_t  *whole; /* of text and bitmaps: all values, as the image has them */
} reader;

/* ---------------------------------------------------------------- the header */

typedef struct {
    const uint8_t *at, *end;
} scanner;

static void skip_blanks(scanner *s) {
    while (s->at < s->end && (isspace(*s->at) || *s->at == '#'))
        if (*s->at == '#')
            while (s->at < s->end && *s->at != '\n') s->at++;
        else
            s->at++;
}

static bool take_number(scanner *s, long *value) {
    skip_blanks(s);
    const uint8_t *start = s->at;
    for (*value = 0; s->at < s->end && isdigit(*s->at) && s->at - start < 10; s->at++) *value = *value * 10 + (*s->at - '0');
    return s->at > start && (s->at == s->end || !isdigit(*s->at));
}

static fv_status parse(reader *r, const uint8_t *bytes, size_t size, fv_error *error) {
    scanner s = { bytes + 2, bytes + size };
    long    width, height;
    if (size < 3 || bytes[0] != 'P' || bytes[1] < '1' || bytes[1] > '6')
        return fv_fail(error, FV_ERROR_INPUT, "%s: not a PGM or PPM file (it does not begin with P1 to P6)", r->base.path);
    r->kind = bytes[1] - '0';
    r->most = 1;
    if (!take_number(&s, &width) || !take_number(&s, &height) || (r->kind % 3 != 1 && !take_number(&s, &r->most)))
        return fv_fail(error, FV_ERROR_INPUT, "%s: the PNM header has no width, height and largest value", r->base.path);
    if (width < 1 || height < 1 || r->most < 1 || r->most > 65535)
        return fv_fail(error, FV_ERROR_INPUT, "%s: a PNM header with width %ld, height %ld and largest value %ld is not possible",
                       r->base.path, width, height, r->most);
    bool colour = r->kind % 3 == 0;
    r->dense = (fv_dense){ .ndim = 2 + colour, .shape = { height, width, 3 }, .offset = s.at - bytes + 1 };
    r->dense.dtype = r->kind % 3 == 1 ? FV_BOOL : r->most > 255 ? FV_UINT16 : FV_UINT8;
    r->dense.swapped = r->dense.dtype == FV_UINT16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    fv_image_type_init(&r->base.type, r->dense.dtype, r->dense.ndim, r->dense.shape);
    for (int d = 0; d < r->dense.ndim; d++) snprintf(r->base.type.axis[d], 8, "%c", "yxc"[d]);
    return FV_OK;
}

/* ---------------------------------------------------------------- text and bitmaps */

static bool take_value(const reader *r, scanner *s, long *value) {
    if (r->kind != 1) return take_number(s, value) && *value <= r->most;
    skip_blanks(s); /* bits need no blank between them */
    *value = s->at < s->end ? *s->at++ - '0' : -1;
    return *value == 0 || *value == 1;
}

static fv_status decode_text(reader *r, const fv_bytes *file, int64_t count, fv_error *error) {
    scanner s = { file->data + r->dense.offset - 1, file->data + file->size };
    for (int64_t i = 0; i < count; i++) {
        long value;
        if (!take_value(r, &s, &value))
            return fv_fail(error, FV_ERROR_INPUT, "%s: value %lld of the PNM file is missing, no number or too large",
                           r->base.path, (long long)i + 1);
        if (r->dense.dtype == FV_UINT16)
            ((uint16_t *)r->whole)[i] = (uint16_t)value;
        else
            r->whole[i] = (uint8_t)value;
    }
    return FV_OK;
}

static void decode_bits(reader *r, const fv_bytes *file) {
    int64_t        width = r->dense.shape[1];
    const uint8_t *from = file->data + r->dense.offset;
    for (int64_t y = 0; y < r->dense.shape[0]; y++, from += (width + 7) / 8)
        for (int64_t x = 0; x < width; x++) r->whole[y * width + x] = from[x / 8] >> (7 - x % 8) & 1;
}

/* In a bitmap 1 is black; the image says what the file says. */
static fv_status load_whole(reader *r, fv_error *error) {
    fv_bytes file = { 0 };
    int64_t  count = fv_image_type_voxels(&r->base.type);
    int64_t  least = r->kind == 4 ? (r->dense.shape[1] + 7) / 8 * r->dense.shape[0] : r->kind == 1 ? count : 2 * count - 1;
    if (count < 0 || least > r->file_size - r->dense.offset + 1)
        return fv_fail(error, FV_ERROR_INPUT, "%s ends early: %lld values need more than its %lld bytes", r->base.path,
                       (long long)count, (long long)r->file_size);
    FV_TRY(fv__file_read_all(r->base.path, MOST_TEXT, &file, error));
    fv_status status = FV_OK;
    r->whole = fv__try_alloc((size_t)count * fv_dtype_size(r->dense.dtype));
    if (!r->whole)
        status = fv_fail(error, FV_ERROR_MEMORY, "%s does not fit into memory", r->base.path);
    else if (r->kind == 4 && r->dense.offset + least > (int64_t)file.size)
        status = fv_fail(error, FV_ERROR_INPUT, "%s ends early", r->base.path);
    else if (r->kind == 4)
        decode_bits(r, &file);
    else
        status = decode_text(r, &file, count, error);
    fv__bytes_release(&file);
    return status;
}

/* ---------------------------------------------------------------- opening */

static void close_reader(fv_reader *base) {
    reader *r = (reader *)base;
    if (r->fd >= 0) close(r->fd);
    free(r->whole);
    fv__reader_free(base);
}

static fv_status read_header(reader *r, fv_error *error) {
    uint8_t    bytes[MOST_HEADER];
    fv_file_id id;
    FV_TRY(fv__file_open_read(r->base.path, &r->fd, error));
    FV_TRY(fv__file_identify(r->base.path, &id, error));
    r->file_size = id.size;
    size_t size = (size_t)FV_MIN(id.size, MOST_HEADER);
    FV_TRY(fv__file_read_at(r->fd, bytes, size, 0, r->base.path, error));
    FV_TRY(parse(r, bytes, size, error));
    r->base.header = fv__hash_bytes(bytes, (size_t)r->dense.offset - 1);
    if (r->kind < 5) return load_whole(r, error);
    int64_t voxels = fv__dense_bytes(&r->dense);
    if (voxels < 0 || r->dense.offset + voxels > id.size)
        return fv_fail(error, FV_ERROR_INPUT, "%s ends early: its header promises %lld bytes, the file has %lld", r->base.path,
                       (long long)(r->dense.offset + voxels), (long long)id.size);
    return FV_OK;
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    (void)options;
    reader *r = fv__reader_new(sizeof *r, &fv_format_pnm, path);
    r->fd = -1;
    fv_status status = read_header(r, error);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    memcpy(r->base.chunk, r->base.type.shape, sizeof r->base.chunk);
    r->base.read_memory = FV_DENSE_MEMORY;
    fv__bytes_printf(&r->base.facts, "kind: P%d\nlargest value: %ld\n", r->kind, r->most);
    *out = &r->base;
    return FV_OK;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    reader *r = (reader *)base;
    if (!r->whole) return fv__dense_read(&r->dense, r->fd, base->path, block, error);
    fv_region whole = fv__region_whole(&base->type);
    fv_block  from;
    fv__block_init(&from, block->dtype, &whole, r->whole);
    fv__block_copy(block, &from);
    return FV_OK;
}

/* ---------------------------------------------------------------- writing */

static bool is_colour(const fv_image_type *type) { return type->ndim == 3 && type->shape[2] == 3 && !strcmp(type->axis[2], "c"); }

static const bool swapped = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

static fv_status lay_out(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    int  compression;
    bool colour = is_colour(file->type);
    FV_TRY(fv__compression_choose(&fv_format_pnm, file->options, &compression, error));
    if (file->type->ndim != 2 && !colour)
        return fv_fail(error, FV_ERROR_USAGE, "%s: PGM and PPM hold a plane (y x) or a colour image (y x c with three colours)",
                       file->path);
    if (colour ? fv__path_has_extension(file->path, "pgm") : fv__path_has_extension(file->path, "ppm"))
        return fv_fail(error, FV_ERROR_USAGE, "%s: %s", file->path, colour ? "PGM is grey; use .ppm" : "PPM is colour; use .pgm");
    if (fv__path_has_extension(file->path, "pbm"))
        return fv_fail(error, FV_ERROR_USAGE, "%s: bitmaps are not written; use .pgm", file->path);
    if (file->type->dtype != FV_UINT8 && file->type->dtype != FV_UINT16 && file->type->dtype != FV_BOOL)
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s: PGM and PPM hold uint8, uint16 and bool, not %s (convert(image, \"uint8\") or "
                       "rescale(image) first)",
                       file->path, fv_dtype_name(file->type->dtype));
    fv__dense_layout(file->type, file->type->dtype, swapped, layout);
    return FV_OK;
}

static fv_status create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                        fv_error *error) {
    const fv_image_type *type = file->type;
    fv_bytes             header = { 0 };
    (void)error;
    fv__bytes_printf(&header, "P%d\n%lld %lld\n%d\n", is_colour(type) ? 6 : 5, (long long)type->shape[1],
                     (long long)type->shape[0],
                     type->dtype == FV_UINT16 ? 65535
                     : type->dtype == FV_BOOL ? 1
                                              : 255);
    *out = fv__dense_writer_new(&fv_format_pnm, file, layout, temporary, &header);
    fv__dense_writer_store(*out, type->dtype, swapped, NULL);
    return FV_OK;
}

const fv_format fv_format_pnm = {
    .name = "pnm",
    .extensions = "pgm ppm pbm pnm",
    .magic = { { 0, 3, "P5\n" }, { 0, 3, "P6\n" }, { 0, 3, "P2\n" }, { 0, 3, "P3\n" } },
    .brief = "grey or colour image, uncompressed",
    .reads = "binary by region, text whole",
    .writes = "uint8, uint16, bool",
    .keeps = "nothing",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
    .layout = lay_out,
    .create = create,
    .begin = fv__dense_begin,
    .put = fv__dense_put,
    .sync = fv__dense_sync,
    .finish = fv__dense_sync,
    .free_writer = fv__dense_free,
};
