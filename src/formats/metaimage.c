/* MetaImage, ITK's own format: .mha with the voxels behind the header, .mhd with the voxels in another file. Uncompressed voxels
 * are read by region in either byte order, compressed ones (zlib, gzip) in order. Both are written; compressed as gzip, which
 * MetaIO inflates as it does zlib.
 *
 * Axes are t z y x, and c where an element has several channels. Spacing and offset are kept; with a TransformMatrix they become
 * the voxel to world matrix (ITK's world points left, back and up). bool is written as MET_UCHAR. */
#include "base/take.h"
#include "formats/text_header.h"
#include "formats/volume.h"
#include "op/axes.h"
#include "op/output_parts.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

extern const fv_format fv_format_metaimage;
enum { MOST_AXES = FV_MAX_DIMS };

static const fv_type_name types[] = {
    { "MET_UCHAR", FV_UINT8 },
    { "MET_CHAR", FV_INT8 },
    { "MET_USHORT", FV_UINT16 },
    { "MET_SHORT", FV_INT16 },
    { "MET_UINT", FV_UINT32 },
    { "MET_INT", FV_INT32 },
    { "MET_FLOAT", FV_FLOAT32 },
    { "MET_DOUBLE", FV_FLOAT64 },
    { "MET_ULONG_LONG|MET_ULONG", FV_UINT64 },
    { "MET_LONG_LONG|MET_LONG", FV_INT64 },
};

typedef struct {
    int      ndim, channels;
    bool     big, compressed, has_matrix, binary;
    fv_dtype dtype; /* FV_DTYPES: not told */
    double   sizes[MOST_AXES], spacing[MOST_AXES], offset[MOST_AXES], matrix[MOST_AXES * MOST_AXES];
    int64_t  skip; /* bytes before the voxels; -1: they end with the file */
    int64_t  data; /* where the header ends */
    char     data_file[512];
} header;

typedef struct {
    fv_reader base;
    fv_volume volume;
    header    header;
} reader;

/* ---------------------------------------------------------------- the header */

static fv_status wrong(const char *path, const char *field, const char *value, const char *why, fv_error *error) {
    return fv_fail(error, FV_ERROR_INPUT, "%s: the MetaImage field \"%s = %.60s\" %s", path, field, value, why);
}

static bool is_true(const char *value) { return tolower((unsigned char)*value) == 't' || *value == '1'; }

static fv_status take_field(const char *path, header *h, const char *field, const char *value, fv_error *error) {
    struct {
        const char *names;
        double     *numbers;
        int         count;
    } lists[] = {
        { "DimSize", h->sizes, h->ndim },
        { "ElementSpacing", h->spacing, h->ndim },
        { "Offset|Position|Origin", h->offset, h->ndim },
        { "TransformMatrix|Rotation|Orientation", h->matrix, h->ndim * h->ndim },
    };
    for (int i = 0; i < FV_COUNT(lists); i++) {
        fv_dtype     unused;
        fv_type_name name = { lists[i].names, FV_BOOL };
        if (!fv__type_by_name(&name, 1, field, &unused)) continue;
        if (!h->ndim) return wrong(path, field, value, "comes before NDims", error);
        if (fv__text_numbers(value, lists[i].numbers, lists[i].count) != lists[i].count)
            return wrong(path, field, value, "has another number of values than NDims asks for", error);
        h->has_matrix = h->has_matrix || i == 3;
    }
    if (!strcmp(field, "NDims")) {
        h->ndim = atoi(value);
        if (h->ndim < 1 || h->ndim > MOST_AXES) return wrong(path, field, value, "is not possible here; 1 to 6 are", error);
    }
    if (!strcmp(field, "ElementNumberOfChannels")) {
        h->channels = atoi(value);
        if (h->channels < 1) return wrong(path, field, value, "must be 1 or more", error);
    }
    if (!strcmp(field, "ElementType")) {
        char word[40];
        snprintf(word, sizeof word, "%s", value);
        char *array = strstr(word, "_ARRAY");
        if (array) *array = 0;
        if (!fv__type_by_name(types, FV_COUNT(types), word, &h->dtype))
            return wrong(path, field, value, "is no type that can be read", error);
    }
    if (!strcmp(field, "BinaryDataByteOrderMSB") || !strcmp(field, "ElementByteOrderMSB")) h->big = is_true(value);
    if (!strcmp(field, "CompressedData")) h->compressed = is_true(value);
    if (!strcmp(field, "BinaryData")) h->binary = is_true(value);
    if (!strcmp(field, "HeaderSize")) h->skip = atoll(value);
    if (!strcmp(field, "ElementDataFile")) {
        if (!strncmp(value, "LIST", 4) || strchr(value, '%'))
            return wrong(path, field, value, "names several files; only one is possible", error);
        snprintf(h->data_file, sizeof h->data_file, "%s", value);
    }
    return FV_OK;
}

static fv_status parse_lines(reader *r, char *text, size_t size, fv_error *error) {
    header *h = &r->header;
    for (char *line = text; line < text + size && !*h->data_file;) {
        char *end = memchr(line, '\n', (size_t)(text + size - line));
        if (!end) break;
        *end = 0;
        h->data = end + 1 - text;
        char *equal = strchr(line, '=');
        if (equal) {
            char *value = equal + 1 + strspn(equal + 1, " \t");
            for (size_t n = strlen(value); n && isspace((unsigned char)value[n - 1]);) value[--n] = 0;
            for (*equal = 0; equal > line && isspace((unsigned char)equal[-1]);) *--equal = 0;
            line += strspn(line, " \t");
            FV_TRY(take_field(r->base.path, h, line, value, error));
        } else if (line == text)
            break; /* the very first line says what this is */
        line = end + 1;
    }
    return FV_OK;
}

static fv_status check_header(const reader *r, fv_error *error) {
    const header *h = &r->header;
    const char   *missing = !h->ndim                ? "NDims"
                            : !(h->sizes[0] >= 1)   ? "DimSize"
                            : h->dtype == FV_DTYPES ? "ElementType"
                            : !*h->data_file        ? "ElementDataFile"
                                                    : NULL;
    if (missing)
        return fv_fail(error, FV_ERROR_INPUT, "%s: not a MetaImage file, or damaged: its header has no %s", r->base.path,
                       missing);
    for (int i = 0; i < h->ndim; i++)
        if (!(h->sizes[i] >= 1 && h->sizes[i] <= 0x1p53) || h->sizes[i] != floor(h->sizes[i]))
            return fv_fail(error, FV_ERROR_INPUT,
                           "%s: the MetaImage field DimSize holds %g; whole numbers from 1 on are possible", r->base.path,
                           h->sizes[i]);
    if (!h->binary) return fv_fail(error, FV_ERROR_INPUT, "%s: voxels as text (BinaryData = False) cannot be read", r->base.path);
    return FV_OK;
}

static fv_status read_header(reader *r, fv_error *error) {
    size_t size = (size_t)FV_MIN(r->volume.file_size, FV_TEXT_HEADER_MOST);
    char  *text;
    FV_TRY(FV_TAKE_ZEROED(text, size + 1, error));
    r->header = (header){ .dtype = FV_DTYPES, .channels = 1, .binary = true };
    for (int i = 0; i < MOST_AXES; i++) r->header.spacing[i] = 1;
    fv_status status =
        r->volume.gzip ? fv_fail(error, FV_ERROR_INPUT, "%s: not a MetaImage file (it is compressed as a whole)", r->base.path)
                       : fv__file_read_at(r->volume.fd, text, size, 0, r->base.path, error);
    if (status == FV_OK) status = parse_lines(r, text, size, error);
    if (status == FV_OK) status = check_header(r, error);
    r->base.header = fv__hash_bytes(text, (size_t)r->header.data);
    free(text);
    return status;
}

/* ---------------------------------------------------------------- opening */

static void find_geometry(const header *h, fv_image_type *type) {
    double direction[3][3] = { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } }, origin[3] = { 0 };
    int    last = type->ndim - 1 - (h->channels > 1);
    for (int i = 0; i < h->ndim; i++) {
        if (h->spacing[i] > 0 && isfinite(h->spacing[i])) type->spacing[last - i] = h->spacing[i];
        if (isfinite(h->offset[i])) type->origin[last - i] = h->offset[i];
    }
    if (!h->has_matrix || h->ndim < 2) return;
    for (int i = 0; i < FV_MIN(h->ndim, 3); i++) {
        origin[i] = h->offset[i];
        for (int k = 0; k < 3; k++) direction[i][k] = (k < h->ndim ? h->matrix[i * h->ndim + k] : 0) * type->spacing[last - i];
    }
    fv__world_set(type, direction, origin, true, true);
}

static fv_status make_type(reader *r, fv_error *error) {
    const header *h = &r->header;
    fv_dense     *dense = &r->volume.dense;
    bool          little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    *dense = (fv_dense){ .dtype = h->dtype, .swapped = fv_dtype_size(h->dtype) > 1 && h->big == little };
    dense->ndim = h->ndim + (h->channels > 1);
    if (dense->ndim > FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_INPUT, "%s: the image has %d axes; at most %d are possible", r->base.path, dense->ndim,
                       FV_MAX_DIMS);
    for (int i = 0; i < h->ndim; i++) dense->shape[h->ndim - 1 - i] = (int64_t)h->sizes[i];
    if (h->channels > 1) dense->shape[h->ndim] = h->channels;
    fv_image_type plain;
    fv_image_type_init(&plain, h->dtype, h->ndim, dense->shape);
    fv_image_type_init(&r->base.type, h->dtype, dense->ndim, dense->shape);
    for (int d = 0; d < h->ndim; d++) memcpy(r->base.type.axis[d], plain.axis[d], sizeof plain.axis[d]);
    if (h->channels > 1) snprintf(r->base.type.axis[h->ndim], sizeof plain.axis[0], "c");
    find_geometry(h, &r->base.type);
    return FV_OK;
}

static void close_reader(fv_reader *base) {
    fv__volume_close(&((reader *)base)->volume);
    fv__reader_free(base);
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    (void)options;
    reader        *r = fv__reader_new(sizeof *r, &fv_format_metaimage, path);
    const header  *h = &r->header;
    fv_voxel_place place = { .format = "MetaImage", .field = "HeaderSize" };
    fv_status      status = fv__volume_open(&r->volume, path, error);
    if (status == FV_OK) status = read_header(r, error);
    if (status == FV_OK) status = make_type(r, error);
    if (status == FV_OK) {
        place.file = strcmp(h->data_file, "LOCAL") ? h->data_file : NULL;
        place.behind = h->data;
        place.skip = h->compressed ? 0 : h->skip;
        place.packed = h->compressed;
        status = fv__volume_enter(&r->volume, path, &place, error);
    }
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    fv__volume_layout(&r->volume, &r->base);
    fv__volume_facts(&r->volume, &place, &r->base.facts);
    *out = &r->base;
    return FV_OK;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    return fv__volume_read(&((reader *)base)->volume, block, error);
}

/* ---------------------------------------------------------------- writing */

static void put_numbers(fv_bytes *out, const char *field, const double *numbers, int count) {
    fv__bytes_printf(out, "%s =", field);
    for (int i = 0; i < count; i++) fv__bytes_printf(out, " %.17g", numbers[i]);
    fv__bytes_printf(out, "\n");
}

/* The matrix of a file of two axes has no third row: a plane that leaves x and y cannot be told. */
static bool has_world(const fv_image_type *type, int ndim) {
    static const char *const names[] = { "x", "y", "z" };
    bool                     good = type->has_affine && ndim >= 2;
    for (int i = 0; i < FV_MIN(ndim, 3); i++) good = good && !strcmp(type->axis[ndim - 1 - i], names[i]);
    return good && (ndim > 2 || (type->affine[8] == 0 && type->affine[9] == 0));
}

static void put_geometry(const fv_image_type *type, int ndim, fv_bytes *out) {
    double spacing[MOST_AXES], offset[MOST_AXES], matrix[MOST_AXES * MOST_AXES] = { 0 }, direction[3][3], origin[3];
    for (int i = 0; i < ndim; i++) {
        spacing[i] = type->spacing[ndim - 1 - i];
        offset[i] = type->origin[ndim - 1 - i];
        matrix[i * ndim + i] = 1;
    }
    if (has_world(type, ndim)) {
        fv__world_get(type, direction, origin, true, true);
        for (int i = 0; i < FV_MIN(ndim, 3); i++) {
            double length =
                sqrt(direction[i][0] * direction[i][0] + direction[i][1] * direction[i][1] + direction[i][2] * direction[i][2]);
            spacing[i] = length > 0 ? length : 1;
            offset[i] = origin[i];
            for (int k = 0; k < FV_MIN(ndim, 3); k++) matrix[i * ndim + k] = direction[i][k] / spacing[i];
        }
        put_numbers(out, "TransformMatrix", matrix, ndim * ndim);
    }
    put_numbers(out, "Offset", offset, ndim);
    put_numbers(out, "ElementSpacing", spacing, ndim);
}

enum { RAW, GZIP, SIZE_DIGITS = 20 };
static const char size_field[] = "CompressedDataSize = ";

/* The size of the stream, which readers want to know, is put in its place in the header afterwards. */
static fv_status put_size(const fv_writer *writer, const char *file, int64_t size, fv_error *error) {
    const fv_bytes *text = fv__volume_gz_header(writer);
    const uint8_t  *field = memmem(text->data, text->size, size_field, strlen(size_field));
    char            digits[SIZE_DIGITS + 1];
    int             fd, n = snprintf(digits, sizeof digits, "%lld", (long long)size);
    FV_TRY(fv__file_open_update(file, &fd, error));
    fv_status status = fv__file_write_at(fd, digits, (size_t)n, field + strlen(size_field) - text->data, file, error);
    fv_status closed = fv__file_close(fd, file, status == FV_OK ? error : &(fv_error){ 0 });
    return status == FV_OK ? closed : status;
}

static fv_status assemble(fv_writer *writer, fv_pieces *pieces, fv_error *error) {
    const char *part = fv__volume_gz_part(writer);
    char       *text = part ? fv__parts_header(writer->path) : fv__strdup(writer->path);
    char       *voxels = part ? fv__sprintf("%s/%s", writer->path, part) : fv__strdup(writer->path);
    int64_t     before = part ? 0 : (int64_t)fv__volume_gz_header(writer)->size;
    fv_file_id  id;
    fv_status   status = fv__volume_gz_assemble(writer, pieces, error);
    if (status == FV_OK) status = fv__file_identify(voxels, &id, error);
    if (status == FV_OK) status = put_size(writer, text, id.size - before, error);
    if (status == FV_OK && part) status = fv__paths_sync(&text, 1, error);
    free(text);
    free(voxels);
    return status;
}

typedef struct {
    fv_dtype stored;
    bool     packed, apart;
} described;

/* The header, and how and where the voxels are written. */
static fv_status describe(const fv_image_file *file, described *m, fv_bytes *text, fv_error *error) {
    const fv_image_type *type = file->type;
    int                  chosen, colour = type->ndim > 1 && !strcmp(type->axis[type->ndim - 1], "c"), ndim = type->ndim - colour;
    const char          *name = NULL;
    FV_TRY(fv__compression_choose(&fv_format_metaimage, file->options, &chosen, error));
    FV_TRY(fv__writer_check(file->path, type, error));
    *m = (described){ .stored = type->dtype == FV_BOOL ? FV_UINT8 : type->dtype,
                      .packed = chosen == GZIP,
                      .apart = fv__format_in_parts(file->path) };
    if (m->apart) FV_TRY(fv__parts_check(file->path, error));
    for (int i = 0; i < FV_COUNT(types); i++)
        if (types[i].dtype == m->stored) name = types[i].names;
    if (!name)
        return fv_fail(error, FV_ERROR_USAGE, "%s: MetaImage cannot hold %s; write real and imaginary part apart", file->path,
                       fv_dtype_name(type->dtype));
    fv__bytes_printf(text,
                     "ObjectType = Image\nNDims = %d\nBinaryData = True\nBinaryDataByteOrderMSB = %s\nCompressedData = %s\n",
                     ndim, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "False" : "True", m->packed ? "True" : "False");
    if (m->packed) fv__bytes_printf(text, "%s%-*d\n", size_field, SIZE_DIGITS, 0);
    put_geometry(type, ndim, text);
    fv__bytes_printf(text, "DimSize =");
    for (int d = ndim - 1; d >= 0; d--) fv__bytes_printf(text, " %lld", (long long)type->shape[d]);
    if (colour) fv__bytes_printf(text, "\nElementNumberOfChannels = %lld", (long long)type->shape[ndim]);
    fv__bytes_printf(text, "\nElementType = %.*s\nElementDataFile = %s", (int)strcspn(name, "|"), name,
                     m->apart ? "" : "LOCAL\n");
    return FV_OK;
}

static fv_status lay_out(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    described m;
    fv_bytes  text = { 0 };
    fv_status status = FV_OK;
    FV_TRY(describe(file, &m, &text, error));
    if (m.packed)
        status = fv__volume_gz_layout(file, m.stored, layout, error);
    else
        fv__dense_layout(file->type, file->type->dtype, false, layout);
    fv__bytes_release(&text);
    return status;
}

static fv_status create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                        fv_error *error) {
    described m;
    fv_bytes  text = { 0 };
    FV_TRY(describe(file, &m, &text, error));
    if (m.packed) {
        *out = fv__volume_gz_new(&fv_format_metaimage, file, layout, temporary, m.stored, &text, true);
        if (m.apart) fv__volume_gz_apart(*out, "voxels.zraw");
        return FV_OK;
    }
    *out = fv__dense_writer_new(&fv_format_metaimage, file, layout, temporary, &text);
    if (m.apart) fv__dense_writer_apart(*out, "voxels.raw");
    return FV_OK;
}

const fv_format fv_format_metaimage = {
    .name = "metaimage",
    .extensions = "mha mhd",
    .magic = { { 0, 10, "ObjectType" } },
    .brief = "MetaImage volume, the format of ITK",
    .reads = "by region; compressed in order; voxels in a separate file",
    .writes = "in parallel; `.mhd` with the voxels in a separate file",
    .keeps = "spacing, offset, orientation",
    .compressions = "none|gzip",
    .parts = "mhd",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
    .layout = lay_out,
    .create = create,
    .begin = fv__dense_begin,
    .put = fv__dense_put,
    .sync = fv__dense_sync,
    .finish = fv__dense_finish,
    .encode = fv__volume_gz_encode,
    .assemble = assemble,
    .free_writer = fv__volume_free,
};
