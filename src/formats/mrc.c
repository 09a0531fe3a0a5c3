/* MRC (.mrc .map .rec .st .ali .mrcs), the format of electron microscopy: modes 0, 1, 2, 4, 6 and 12 are read in either byte
 * order, by region, or in order from .gz; modes 0, 1, 2, 4 and 6 are written.
 *
 * Axes are z y x with the voxel size in ångström; a file that stores them in another order names them so. A tilt series, which
 * has an angle for every section in its extended header (SerialEM, FEI, Agard) or in a file beside it, has the axes angle y x.
 * uint8 and bool are written as mode 6, the least that holds them. Minimum, maximum and mean are written as unknown, as the
 * definition allows (Cheng et al. 2015, MRC2014). Labels and symmetry records are not carried over. */
#include "base/take.h"
#include "formats/tilts.h"
#include "formats/volume.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEADER = 1024, MOST_EXTENDED = 256 << 20, LABEL = 80 };
extern const fv_format fv_format_mrc, fv_format_mrc_gz;

static const struct {
    int      mode;
    fv_dtype dtype;
} modes[] = { { 0, FV_INT8 }, { 1, FV_INT16 }, { 2, FV_FLOAT32 }, { 4, FV_COMPLEX64 }, { 6, FV_UINT16 } };

typedef struct {
    fv_reader base;
    fv_volume volume;
    uint8_t   bytes[HEADER];
    bool      swapped;
    int32_t   mode, extended; /* bytes of the extended header */
    fv_tilts  tilts;
} reader;

/* ---------------------------------------------------------------- the header */

static int32_t integer(const reader *r, int at) {
    uint32_t value;
    memcpy(&value, r->bytes + at, 4);
    return (int32_t)(r->swapped ? __builtin_bswap32(value) : value);
}

static double real(const reader *r, int at) {
    int32_t bits = integer(r, at);
    float   value;
    memcpy(&value, &bits, 4);
    return value;
}

/* Either the stamp tells the byte order, or the mode and the axes do, which are small numbers in one of them. */
static bool find_order(reader *r) {
    for (int k = 0; k < 2; k++) {
        r->swapped = k;
        int32_t mode = integer(r, 12), first = integer(r, 64);
        if (mode >= 0 && mode <= 101 && integer(r, 0) > 0 && integer(r, 4) > 0 && integer(r, 8) > 0 && first >= 0 && first <= 3)
            return true;
    }
    return false;
}

static fv_status find_type(reader *r, fv_dense *dense, fv_error *error) {
    static const int32_t signed_bytes = 1, imod = 1146047817;
    *dense = (fv_dense){ .swapped = r->swapped, .ndim = 3, .dtype = FV_DTYPES };
    r->mode = integer(r, 12);
    for (int i = 0; i < FV_COUNT(modes); i++)
        if (modes[i].mode == r->mode) dense->dtype = modes[i].dtype;
    if (r->mode == 12) {
        dense->dtype = FV_FLOAT32;
        dense->half = true;
    }
    /* IMOD notes which sign its bytes have. */
    if (r->mode == 0 && integer(r, 152) == imod && !(integer(r, 156) & signed_bytes)) dense->dtype = FV_UINT8;
    if (dense->dtype == FV_DTYPES)
        return fv_fail(error, FV_ERROR_INPUT, "%s: MRC mode %d cannot be read; 0, 1, 2, 4, 6 and 12 can", r->volume.path,
                       r->mode);
    return FV_OK;
}

/* Which axis of space the columns, rows and sections are, 0 to 2; false where the header does not say. */
static bool find_axes(const reader *r, int *space) {
    int seen = 0;
    for (int i = 0; i < 3; i++) {
        int axis = integer(r, 64 + 4 * i); /* from 1 */
        if (axis < 1 || axis > 3) continue;
        space[i] = axis - 1;
        seen |= 1 << space[i];
    }
    if (seen == 7) return true;
    for (int i = 0; i < 3; i++) space[i] = i;
    return false;
}

static void find_geometry(reader *r) {
    static const char *const names[] = { "x", "y", "z" };
    fv_image_type           *type = &r->base.type;
    int                      space[3];
    find_axes(r, space);
    for (int i = 0; i < 3; i++) {
        int    d = 2 - i;
        double cell = real(r, 40 + 4 * space[i]), origin = real(r, 196 + 4 * space[i]);
        int    samples = integer(r, 28 + 4 * space[i]);
        snprintf(type->axis[d], sizeof type->axis[d], "%s", names[space[i]]);
        if (cell > 0 && samples > 0 && isfinite(cell)) {
            type->spacing[d] = cell / samples;
            snprintf(type->unit[d], sizeof type->unit[d], "angstrom");
        }
        if (isfinite(origin)) type->origin[d] = origin;
    }
}

/* ---------------------------------------------------------------- tilt angles */

static double stored_real(const reader *r, const uint8_t *at, size_t size) {
    uint64_t bits = 0;
    memcpy(&bits, at, size);
    if (size == 2) return (int16_t)(r->swapped ? __builtin_bswap16((uint16_t)bits) : (uint16_t)bits);
    if (size == 4) {
        uint32_t word = r->swapped ? __builtin_bswap32((uint32_t)bits) : (uint32_t)bits;
        float    value;
        memcpy(&value, &word, 4);
        return value;
    }
    double value;
    bits = r->swapped ? __builtin_bswap64(bits) : bits;
    memcpy(&value, &bits, 8);
    return value;
}

/* Where the angle lies in the record of a section: SerialEM keeps hundredths of a degree first if its flags have bit 0, FEI a
 * double at byte 100, older ones (Agard) the first of some real numbers behind some integers. */
static bool angle_place(const reader *r, int64_t *record, int64_t *at, size_t *size, double *scale) {
    int64_t first = (int16_t)integer(r, 128), second = integer(r, 128) >> 16;
    if (r->swapped) { /* two 16-bit numbers in one word */
        int64_t swap = first;
        first = second;
        second = (int16_t)swap;
    }
    const char *kind = (const char *)r->bytes + 104;
    *scale = 1;
    if (!memcmp(kind, "FEI1", 4) || !memcmp(kind, "FEI2", 4)) {
        *record = !memcmp(kind, "FEI1", 4) ? 768 : 888;
        *at = 100;
        *size = 8;
        return true;
    }
    if (!memcmp(kind, "SERI", 4) && second & 1) {
        *record = first;
        *at = 0;
        *size = 2;
        *scale = 0.01;
        return first >= 2;
    }
    *record = 4 * (first + second);
    *at = 4 * first;
    *size = 4;
    return !memcmp(kind, "AGAR", 4) && first >= 0 && second > 0;
}

static fv_status read_extended(reader *r, int64_t sections, fv_error *error) {
    int64_t record, at;
    size_t  size;
    double  scale;
    if (!angle_place(r, &record, &at, &size, &scale) || record <= 0 || sections > FV_TILTS_MOST ||
        sections > r->extended / record || r->extended > MOST_EXTENDED)
        return FV_OK;
    uint8_t *bytes;
    FV_TRY(FV_TAKE(bytes, (size_t)(record * sections), error));
    fv_status status = fv__volume_fetch(&r->volume, HEADER, bytes, (size_t)(record * sections), error);
    bool      usable = status == FV_OK;
    for (int64_t i = 0; i < sections && usable; i++) {
        double angle = scale * stored_real(r, bytes + i * record + at, size);
        usable = isfinite(angle) && fabs(angle) <= 360;
        if (usable) fv__tilts_add(&r->tilts, angle);
    }
    if (!usable)
        fv__tilts_release(&r->tilts);
    else
        r->tilts.source = fv__strdup("extended header");
    free(bytes);
    return status;
}

/* ---------------------------------------------------------------- opening */

static void close_reader(fv_reader *base) {
    reader *r = (reader *)base;
    fv__volume_close(&r->volume);
    fv__tilts_release(&r->tilts);
    fv__reader_free(base);
}

static void describe(reader *r) {
    fv_bytes *facts = &r->base.facts;
    char      text[LABEL + 1];
    fv__bytes_printf(facts, "mode: %d\ncompression: %s\nbyte order: %s\n", r->mode, r->volume.gzip ? "gzip" : "none",
                     r->swapped ? "swapped" : "native");
    if (r->volume.dense.half) fv__bytes_printf(facts, "stored as: float16\n");
    if (integer(r, 88)) fv__bytes_printf(facts, "space group: %d\n", integer(r, 88));
    if (r->extended) fv__bytes_printf(facts, "extended header: %d bytes, %.4s\n", r->extended, (const char *)r->bytes + 104);
    if (r->tilts.count) {
        fv__bytes_printf(facts, "tilt angles: %d from %s:", r->tilts.count, r->tilts.source);
        for (int i = 0; i < r->tilts.count; i++) fv__bytes_printf(facts, " %.6g", r->tilts.angle[i]);
        fv__bytes_printf(facts, "\n");
    }
    for (int i = 0; i < FV_MIN(integer(r, 220), 10); i++) {
        snprintf(text, sizeof text, "%.*s", LABEL, (const char *)r->bytes + 224 + i * LABEL);
        for (char *c = text; *c; c++)
            if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e) *c = ' ';
        for (size_t n = strlen(text); n && text[n - 1] == ' ';) text[--n] = 0;
        if (*text) fv__bytes_printf(facts, "label %d: %s\n", i + 1, text);
    }
}

static fv_status read_header(reader *r, fv_error *error) {
    fv_dense *dense = &r->volume.dense;
    FV_TRY(fv__volume_fetch(&r->volume, 0, r->bytes, HEADER, error));
    r->base.header = fv__hash_bytes(r->bytes, HEADER);
    if (!find_order(r))
        return fv_fail(error, FV_ERROR_INPUT, "%s: not an MRC file (its size or its mode is no possible one)", r->volume.path);
    FV_TRY(find_type(r, dense, error));
    r->extended = integer(r, 92);
    if (r->extended < 0)
        return fv_fail(error, FV_ERROR_INPUT, "%s: the MRC header claims an extended header of %d bytes", r->volume.path,
                       r->extended);
    dense->offset = HEADER + (int64_t)r->extended;
    for (int d = 0; d < 3; d++) dense->shape[d] = integer(r, 8 - 4 * d);
    FV_TRY(fv__volume_check(&r->volume, "MRC", error));
    fv_image_type_init(&r->base.type, dense->dtype, 3, dense->shape);
    find_geometry(r);
    return read_extended(r, dense->shape[0], error);
}

/* A single section is a plane. */
static void name_axes(reader *r) {
    fv_image_type *type = &r->base.type;
    fv_dense      *dense = &r->volume.dense;
    if (!r->tilts.count) fv__tilts_find(r->base.path, &r->tilts);
    if (r->tilts.count == type->shape[0] && type->shape[0] > 1) {
        snprintf(type->axis[0], sizeof type->axis[0], "angle");
        type->spacing[0] = 1;
        type->origin[0] = 0;
        type->unit[0][0] = 0;
        r->base.nangles = r->tilts.count;
        r->base.angles = fv__alloc((size_t)r->tilts.count * sizeof *r->base.angles);
        memcpy(r->base.angles, r->tilts.angle, (size_t)r->tilts.count * sizeof *r->base.angles);
    } else
        fv__tilts_release(&r->tilts);
    if (type->shape[0] > 1) return;
    for (int d = 0; d < 2; d++) {
        dense->shape[d] = type->shape[d] = type->shape[d + 1];
        type->spacing[d] = type->spacing[d + 1];
        type->origin[d] = type->origin[d + 1];
        memcpy(type->axis[d], type->axis[d + 1], sizeof type->axis[d]);
        memcpy(type->unit[d], type->unit[d + 1], sizeof type->unit[d]);
    }
    dense->ndim = type->ndim = 2;
}

static fv_status open_as(const fv_format *format, const char *path, fv_reader **out, fv_error *error) {
    reader   *r = fv__reader_new(sizeof *r, format, path);
    fv_status status = fv__volume_open(&r->volume, path, error);
    if (status == FV_OK) status = read_header(r, error);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    name_axes(r);
    fv__volume_layout(&r->volume, &r->base);
    describe(r);
    *out = &r->base;
    return FV_OK;
}

static fv_status open_plain(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    (void)options;
    return open_as(&fv_format_mrc, path, out, error);
}

static fv_status open_gz(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    (void)options;
    return open_as(&fv_format_mrc_gz, path, out, error);
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    return fv__volume_read(&((reader *)base)->volume, block, error);
}

/* ---------------------------------------------------------------- writing */

static void put_integer(fv_bytes *header, int at, int32_t value) { memcpy(header->data + at, &value, 4); }
static void put_real(fv_bytes *header, int at, double value) { memcpy(header->data + at, &(float){ (float)value }, 4); }

/* The format counts in ångström. */
static double in_angstrom(const char *unit) {
    static const struct {
        const char *name;
        double      size;
    } units[] = { { "angstrom", 1 }, { "nanometer", 10 }, { "micrometer", 1e4 }, { "millimeter", 1e7 }, { "picometer", 0.01 } };
    for (int i = 0; i < FV_COUNT(units); i++)
        if (!strcmp(units[i].name, unit)) return units[i].size;
    return 1;
}

static void fill_header(const fv_image_type *type, int mode, fv_bytes *header) {
    static const char stamp[] = "MAP \x44\x44\x00\x00";
    memset(fv__bytes_append(header, NULL, HEADER), 0, HEADER);
    put_integer(header, 12, mode);
    for (int i = 0; i < 3; i++) {
        int     d = type->ndim - 1 - i;
        int64_t size = d >= 0 ? type->shape[d] : 1;
        bool    spatial = d >= 0 && strlen(type->axis[d]) == 1 && strchr("xyz", type->axis[d][0]);
        double  unit = spatial ? in_angstrom(type->unit[d]) : 1;
        put_integer(header, 4 * i, (int32_t)size);
        put_integer(header, 28 + 4 * i, (int32_t)size);
        put_real(header, 40 + 4 * i, (double)size * (spatial ? type->spacing[d] * unit : 1));
        put_real(header, 52 + 4 * i, 90);
        put_integer(header, 64 + 4 * i, i + 1);
        put_real(header, 196 + 4 * i, spatial ? type->origin[d] * unit : 0);
    }
    put_real(header, 80, -1); /* maximum below minimum: both unknown; mean below both, deviation below 0: the same */
    put_real(header, 84, -2);
    put_integer(header, 88, type->ndim == 3 && !strcmp(type->axis[0], "z"));
    put_integer(header, 108, 20140);
    memcpy(header->data + 208, stamp, 8);
    put_real(header, 216, -1);
}

static fv_status make_header(const char *path, const fv_image_type *type, fv_dtype *stored, fv_bytes *header, fv_error *error) {
    int mode = -1;
    *stored = type->dtype == FV_UINT8 || type->dtype == FV_BOOL ? FV_UINT16 : type->dtype;
    for (int i = 0; i < FV_COUNT(modes); i++)
        if (modes[i].dtype == *stored) mode = modes[i].mode;
    if (mode < 0)
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s: MRC cannot hold %s; it holds int8, int16, uint8, uint16, float32 and complex64 "
                       "(convert(image, \"float32\") first)",
                       path, fv_dtype_name(type->dtype));
    if (type->ndim < 2 || type->ndim > 3)
        return fv_fail(error, FV_ERROR_USAGE, "%s: the image has %d axes; MRC holds 2 or 3", path, type->ndim);
    for (int d = 0; d < type->ndim; d++)
        if (type->shape[d] > INT32_MAX)
            return fv_fail(error, FV_ERROR_USAGE, "%s: axis %s is longer than the 2^31 - 1 of MRC", path, type->axis[d]);
    fill_header(type, mode, header);
    return FV_OK;
}

static fv_status lay_out_plain(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    int      compression;
    fv_dtype stored;
    fv_bytes header = { 0 };
    FV_TRY(fv__compression_choose(&fv_format_mrc, file->options, &compression, error));
    FV_TRY(make_header(file->path, file->type, &stored, &header, error));
    fv__bytes_release(&header);
    fv__dense_layout(file->type, stored, false, layout);
    return FV_OK;
}

static fv_status create_plain(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                              fv_error *error) {
    fv_dtype stored;
    fv_bytes header = { 0 };
    FV_TRY(make_header(file->path, file->type, &stored, &header, error));
    *out = fv__dense_writer_new(&fv_format_mrc, file, layout, temporary, &header);
    fv__dense_writer_store(*out, stored, false, NULL);
    return FV_OK;
}

static fv_status lay_out_gz(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    int      compression;
    fv_dtype stored;
    fv_bytes header = { 0 };
    FV_TRY(fv__compression_choose(&fv_format_mrc_gz, file->options, &compression, error));
    FV_TRY(make_header(file->path, file->type, &stored, &header, error));
    fv_status status = fv__volume_gz_layout(file, stored, layout, error);
    fv__bytes_release(&header);
    return status;
}

static fv_status create_gz(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                           fv_error *error) {
    fv_dtype stored;
    fv_bytes header = { 0 };
    FV_TRY(make_header(file->path, file->type, &stored, &header, error));
    *out = fv__volume_gz_new(&fv_format_mrc_gz, file, layout, temporary, stored, &header, false);
    return FV_OK;
}

const fv_format fv_format_mrc = {
    .name = "mrc",
    .extensions = "mrc map rec st ali mrcs",
    .magic = { { 208, 4, "MAP " } },
    .brief = "MRC volume or tilt series of electron microscopy",
    .reads = "by region; modes 0, 1, 2, 4, 6, 12; tilt angles from the extended header, `.tlt`, `.rawtlt`, `.mdoc`",
    .writes = "in parallel; modes 0, 1, 2, 4, 6; uint8 becomes mode 6",
    .keeps = "voxel size in ångström, origin",
    .open = open_plain,
    .read = read_block,
    .close = close_reader,
    .layout = lay_out_plain,
    .create = create_plain,
    .begin = fv__dense_begin,
    .put = fv__dense_put,
    .sync = fv__dense_sync,
    .finish = fv__dense_sync,
    .free_writer = fv__dense_free,
};

const fv_format fv_format_mrc_gz = {
    .name = "mrc-gz",
    .extensions = "mrc.gz map.gz rec.gz st.gz",
    .brief = "compressed MRC volume",
    .reads = "in order",
    .writes = "on all cores",
    .keeps = "voxel size in ångström, origin",
    .compressions = "gzip",
    .open = open_gz,
    .read = read_block,
    .close = close_reader,
    .layout = lay_out_gz,
    .create = create_gz,
    .encode = fv__volume_gz_encode,
    .assemble = fv__volume_gz_assemble,
    .free_writer = fv__volume_gz_free,
};
