/* NRRD: .nrrd with the voxels behind the header, .nhdr with the voxels in another file; raw in either byte order is read by
 * region, gzip in order. Both are written.
 *
 * The axes are those of the file from the slowest to the fastest: kinds tell colours (c) and time (t), the others are z y x.
 * Spacings, units, space directions and origin are kept; the directions become the voxel to world matrix where the file says in
 * which space they are. A first axis of kind complex becomes complex numbers. bool is written as unsigned char. */
#include "base/take.h"
#include "formats/text_header.h"
#include "formats/volume.h"
#include "op/axes.h"
#include "op/output_parts.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

extern const fv_format fv_format_nrrd;
enum { MOST_AXES = FV_MAX_DIMS + 1 };

static const fv_type_name types[] = {
    { "uchar|unsigned char|uint8|uint8_t", FV_UINT8 },
    { "signed char|int8|int8_t", FV_INT8 },
    { "ushort|unsigned short|unsigned short int|uint16|uint16_t", FV_UINT16 },
    { "short|short int|signed short|signed short int|int16|int16_t", FV_INT16 },
    { "uint|unsigned int|uint32|uint32_t", FV_UINT32 },
    { "int|signed int|int32|int32_t", FV_INT32 },
    { "ulonglong|unsigned long long|unsigned long long int|uint64|uint64_t", FV_UINT64 },
    { "longlong|long long|long long int|signed long long|signed long long int|int64|int64_t", FV_INT64 },
    { "float", FV_FLOAT32 },
    { "double", FV_FLOAT64 },
};

static const struct {
    const char *names;
    bool        flip_x, flip_y;
} spaces[] = {
    { "right-anterior-superior|RAS", false, false },
    { "left-anterior-superior|LAS", true, false },
    { "left-posterior-superior|LPS", true, true },
};

/* What the header says, axes fastest first as in the file. */
typedef struct {
    int      ndim;
    bool     has_type, has_sizes, big, gzip;
    fv_dtype dtype;
    int64_t  sizes[MOST_AXES];
    char     kind[MOST_AXES][24], unit[MOST_AXES][16];
    double   spacing[MOST_AXES];
    double   direction[MOST_AXES][3];
    bool     has_direction[MOST_AXES];
    int      space; /* index in spaces, -1: none of them */
    int      space_ndim;
    double   origin[3];
    char     space_unit[16];
    int64_t  skip; /* bytes before the voxels in the file that holds them; -1: they end with it */
    char     data_file[512];
    int64_t  data; /* where the header ends */
} header;

typedef struct {
    fv_reader base;
    fv_volume volume;
    header    header;
} reader;

/* ---------------------------------------------------------------- fields */

typedef struct {
    header     *h;
    const char *path;
    fv_error   *error;
} parser;

static fv_status wrong(const parser *p, const char *field, const char *value, const char *why) {
    return fv_fail(p->error, FV_ERROR_INPUT, "%s: the NRRD field \"%s: %.60s\" %s", p->path, field, value, why);
}

/* The next word, or text in quotes; NULL at the end. */
static const char *next_word(const char *text, char *word, size_t size) {
    text += strspn(text, " \t\r");
    if (!*text) return NULL;
    bool   quoted = *text == '"';
    size_t n = strcspn(text += quoted, quoted ? "\"" : " \t\r");
    snprintf(word, size, "%.*s", (int)FV_MIN(n, size - 1), text);
    return text + n + (quoted && text[n]);
}

static fv_status take_sizes(parser *p, const char *value) {
    double  numbers[MOST_AXES];
    header *h = p->h;
    if (!h->ndim) return wrong(p, "sizes", value, "comes before dimension");
    if (fv__text_numbers(value, numbers, MOST_AXES) != h->ndim)
        return wrong(p, "sizes", value, "must have a number for each axis");
    for (int i = 0; i < h->ndim; i++) {
        if (!(numbers[i] >= 1 && numbers[i] <= 0x1p53) || numbers[i] != floor(numbers[i]))
            return wrong(p, "sizes", value, "must have whole numbers from 1 on");
        h->sizes[i] = (int64_t)numbers[i];
    }
    h->has_sizes = true;
    return FV_OK;
}

static fv_status take_directions(parser *p, const char *value) {
    for (int i = 0; i < p->h->ndim; i++) {
        double numbers[4];
        value += strspn(value, " \t\r");
        if (!strncmp(value, "none", 4)) {
            value += 4;
            continue;
        }
        const char *end = *value == '(' ? strchr(value, ')') : NULL;
        char        vector[256];
        if (!end || end - value > 200) return wrong(p, "space directions", value, "must have a vector in brackets for each axis");
        snprintf(vector, sizeof vector, "%.*s", (int)(end - value + 1), value);
        int n = fv__text_numbers(vector, numbers, 3);
        if (n < 1) return wrong(p, "space directions", value, "has something that is no number");
        memcpy(p->h->direction[i], numbers, (size_t)n * sizeof *numbers);
        p->h->has_direction[i] = true;
        value = end + 1;
    }
    return FV_OK;
}

static void take_words(const header *h, const char *value, char *words, size_t size) {
    for (int i = 0; i < h->ndim && value; i++) value = next_word(value, words + (size_t)i * size, size);
}

static fv_status take_space(parser *p, const char *value) {
    p->h->space_ndim = 3;
    for (int i = 0; i < FV_COUNT(spaces); i++) {
        fv_dtype     unused;
        fv_type_name name = { spaces[i].names, FV_BOOL };
        if (fv__type_by_name(&name, 1, value, &unused)) p->h->space = i;
    }
    return FV_OK;
}

static fv_status take_encoding(parser *p, const char *value) {
    p->h->gzip = !strcmp(value, "gzip") || !strcmp(value, "gz");
    if (p->h->gzip || !strcmp(value, "raw")) return FV_OK;
    return wrong(p, "encoding", value, "cannot be read; raw and gzip can");
}

static fv_status take_dimension(parser *p, const char *value) {
    p->h->ndim = atoi(value);
    p->h->has_sizes = false; /* those before were of another number of axes */
    if (p->h->ndim >= 1 && p->h->ndim <= MOST_AXES) return FV_OK;
    p->h->ndim = 0;
    return wrong(p, "dimension", value, "is not possible here; 1 to 6 are");
}

static fv_status take_field(parser *p, const char *field, const char *value) {
    header *h = p->h;
    if (!strcmp(field, "dimension")) return take_dimension(p, value);
    if (!strcmp(field, "type")) {
        h->has_type = fv__type_by_name(types, FV_COUNT(types), value, &h->dtype);
        return h->has_type ? FV_OK : wrong(p, field, value, "is no type that can be read");
    }
    if (!strcmp(field, "sizes")) return take_sizes(p, value);
    if (!strcmp(field, "encoding")) return take_encoding(p, value);
    if (!strcmp(field, "endian")) h->big = !strcmp(value, "big");
    if (!strcmp(field, "spacings") && fv__text_numbers(value, h->spacing, h->ndim) != h->ndim)
        return wrong(p, field, value, "must have a number for each axis");
    if (!strcmp(field, "space directions")) return take_directions(p, value);
    if (!strcmp(field, "space origin") && fv__text_numbers(value, h->origin, 3) < 1)
        return wrong(p, field, value, "must be a vector");
    if (!strcmp(field, "space")) return take_space(p, value);
    if (!strcmp(field, "space dimension")) h->space_ndim = atoi(value);
    if (!strcmp(field, "space units")) next_word(value, h->space_unit, sizeof h->space_unit);
    if (!strcmp(field, "units")) take_words(h, value, h->unit[0], sizeof h->unit[0]);
    if (!strcmp(field, "kinds")) take_words(h, value, h->kind[0], sizeof h->kind[0]);
    if (!strcmp(field, "byte skip") || !strcmp(field, "byteskip")) h->skip = atoll(value);
    if ((!strcmp(field, "line skip") || !strcmp(field, "lineskip")) && atoll(value))
        return wrong(p, field, value, "cannot be read; only 0 can");
    if (!strcmp(field, "data file") || !strcmp(field, "datafile")) {
        if (!strncmp(value, "LIST", 4) || strchr(value, '%'))
            return wrong(p, field, value, "names several files; only one is possible");
        snprintf(h->data_file, sizeof h->data_file, "%s", value);
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- the header */

static fv_status parse_line(parser *p, char *line) {
    char *colon = strchr(line, ':');
    if (*line == '#' || !colon || colon[1] == '=') return FV_OK; /* comments and pairs of key:=value */
    *colon = 0;
    char *value = colon + 1 + strspn(colon + 1, " \t");
    for (size_t n = strlen(value); n && isspace((unsigned char)value[n - 1]);) value[--n] = 0;
    for (char *c = line; *c; c++) *c = (char)tolower((unsigned char)*c);
    return take_field(p, line, value);
}

static fv_status parse_header(reader *r, char *text, size_t size, fv_error *error) {
    header *h = &r->header;
    parser  p = { h, r->base.path, error };
    if (size < 8 || memcmp(text, "NRRD000", 7))
        return fv_fail(error, FV_ERROR_INPUT, "%s: not an NRRD file (its first bytes are different)", r->base.path);
    h->space = -1;
    for (int i = 0; i < MOST_AXES; i++) h->spacing[i] = NAN;
    for (char *line = text; line < text + size;) {
        char *end = memchr(line, '\n', (size_t)(text + size - line));
        h->data = end ? end + 1 - text : (int64_t)size;
        if (end) *end = 0;
        bool blank = !line[strspn(line, "\r")];
        if (blank || !end) break;
        FV_TRY(parse_line(&p, line));
        line = end + 1;
    }
    r->base.header = fv__hash_bytes(text, (size_t)h->data);
    const char *missing = !h->ndim ? "dimension" : !h->has_type ? "type" : !h->has_sizes ? "sizes" : NULL;
    if (missing) return fv_fail(error, FV_ERROR_INPUT, "%s: the NRRD header has no field %s", r->base.path, missing);
    return FV_OK;
}

static fv_status read_header(reader *r, fv_error *error) {
    size_t size = (size_t)FV_MIN(r->volume.file_size, FV_TEXT_HEADER_MOST);
    char  *text;
    FV_TRY(FV_TAKE_ZEROED(text, size + 1, error));
    fv_status status = r->volume.gzip
                           ? fv_fail(error, FV_ERROR_INPUT, "%s: not an NRRD file (it is compressed as a whole)", r->base.path)
                           : fv__file_read_at(r->volume.fd, text, size, 0, r->base.path, error);
    if (status == FV_OK) status = parse_header(r, text, size, error);
    free(text);
    return status;
}

/* ---------------------------------------------------------------- the image */

static bool is_kind(const char *kind, const char *names) {
    fv_dtype     unused;
    fv_type_name name = { names, FV_BOOL };
    return fv__type_by_name(&name, 1, kind, &unused);
}

static void name_axes(const header *h, int first, fv_image_type *type) {
    static const char *const spatial[] = { "x", "y", "z" };
    static const char *const others[] = { "t", "c", "a", "b", "d", "e" };
    int                      nspatial = 0, nothers = 0;
    for (int i = first; i < h->ndim; i++) {
        char       *axis = type->axis[type->ndim - 1 - (i - first)];
        const char *kind = h->kind[i];
        bool colour = is_kind(kind, "RGB-color|RGBA-color|HSV-color|XYZ-color|3-color|4-color|vector|list|covariant-vector|"
                                    "normal|2-vector|3-vector|4-vector|3-gradient|3-normal|point");
        const char *name = colour                  ? "c"
                           : !strcmp(kind, "time") ? "t"
                           : nspatial < 3          ? spatial[nspatial++]
                                                   : others[FV_MIN(nothers, 5)];
        nothers += name == others[FV_MIN(nothers, 5)];
        snprintf(axis, sizeof type->axis[0], "%s", name);
    }
}

static const char *unit_name(const char *text) {
    static const struct {
        const char *words, *name;
    } units[] = { { "mm|millimeter|millimeters", "millimeter" },
                  { "um|micron|microns|micrometer|µm|μm", "micrometer" },
                  { "nm|nanometer", "nanometer" },
                  { "m|meter", "meter" },
                  { "cm", "centimeter" },
                  { "s|sec|second", "second" },
                  { "ms", "millisecond" },
                  { "angstrom|A|Å", "angstrom" } };
    for (int i = 0; i < FV_COUNT(units); i++)
        if (is_kind(text, units[i].words)) return units[i].name;
    return "";
}

/* Spatial axes whose direction is known, by x y z. */
static void find_geometry(const header *h, int first, fv_image_type *type) {
    static const char *const names[] = { "x", "y", "z" };
    double                   direction[3][3] = { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } };
    bool                     directed = false;
    for (int i = first; i < h->ndim; i++) {
        int d = type->ndim - 1 - (i - first);
        if (h->spacing[i] > 0 && isfinite(h->spacing[i])) type->spacing[d] = h->spacing[i];
        snprintf(type->unit[d], sizeof type->unit[d], "%s", unit_name(h->unit[i]));
        for (int k = 0; k < 3; k++)
            if (h->has_direction[i] && !strcmp(type->axis[d], names[k])) {
                memcpy(direction[k], h->direction[i], sizeof direction[k]);
                directed = true;
                if (!*type->unit[d]) snprintf(type->unit[d], sizeof type->unit[d], "%s", unit_name(h->space_unit));
            }
    }
    bool known = h->space >= 0;
    if (directed) fv__world_set(type, direction, h->origin, known && spaces[h->space].flip_x, known && spaces[h->space].flip_y);
}

static fv_status make_type(reader *r, fv_error *error) {
    header   *h = &r->header;
    fv_dense *dense = &r->volume.dense;
    int       first = 0;
    *dense = (fv_dense){ .dtype = h->dtype };
    if (!strcmp(h->kind[0], "complex") && h->sizes[0] == 2 && fv_dtype_is_float(h->dtype)) {
        dense->dtype = h->dtype == FV_FLOAT32 ? FV_COMPLEX64 : FV_COMPLEX128;
        first = 1;
    }
    bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    dense->swapped = fv_dtype_size(h->dtype) > 1 && h->big == little;
    dense->ndim = h->ndim - first;
    if (dense->ndim < 1 || dense->ndim > FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_INPUT, "%s: the NRRD field dimension gives %d axes; 1 to %d are possible", r->base.path,
                       dense->ndim, FV_MAX_DIMS);
    for (int d = 0; d < dense->ndim; d++) dense->shape[d] = h->sizes[h->ndim - 1 - d];
    fv_image_type_init(&r->base.type, dense->dtype, dense->ndim, dense->shape);
    name_axes(h, first, &r->base.type);
    find_geometry(h, first, &r->base.type);
    return FV_OK;
}

/* ---------------------------------------------------------------- opening */

static void close_reader(fv_reader *base) {
    fv__volume_close(&((reader *)base)->volume);
    fv__reader_free(base);
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    (void)options;
    reader        *r = fv__reader_new(sizeof *r, &fv_format_nrrd, path);
    const header  *h = &r->header;
    fv_voxel_place place = { .format = "NRRD", .field = "byte skip" };
    fv_status      status = fv__volume_open(&r->volume, path, error);
    if (status == FV_OK) status = read_header(r, error);
    if (status == FV_OK) status = make_type(r, error);
    if (status == FV_OK) {
        place.file = *h->data_file ? h->data_file : NULL;
        place.behind = h->data;
        place.skip = h->skip;
        place.packed = h->gzip;
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

static const char *kind_of(const char *axis) {
    if (!strcmp(axis, "c")) return "vector";
    if (!strcmp(axis, "t")) return "time";
    return strlen(axis) == 1 && strchr("xyz", *axis) ? "space" : "domain";
}

static bool is_spatial(const char *axis) { return !strcmp(kind_of(axis), "space"); }

static void put_world(const fv_image_type *type, bool complex, fv_bytes *out) {
    double direction[3][3], origin[3];
    int    axes = fv__world_get(type, direction, origin, false, false);
    if (type->has_affine)
        fv__bytes_printf(out, "space: right-anterior-superior\n");
    else
        fv__bytes_printf(out, "space dimension: %d\n", axes);
    int n = type->has_affine ? 3 : axes;
    fv__bytes_printf(out, "space directions:%s", complex ? " none" : "");
    for (int d = type->ndim - 1; d >= 0; d--) {
        const double *v = is_spatial(type->axis[d]) ? direction[type->axis[d][0] - 'x'] : NULL;
        fv__bytes_printf(out, v ? " (" : " none");
        for (int k = 0; v && k < n; k++) fv__bytes_printf(out, "%s%.17g", k ? "," : "", v[k]);
        if (v) fv__bytes_printf(out, ")");
    }
    fv__bytes_printf(out, "\nspace origin: (");
    for (int k = 0; k < n; k++) fv__bytes_printf(out, "%s%.17g", k ? "," : "", origin[k]);
    fv__bytes_printf(out, ")\n");
}

/* x alone, x y or x y z: then the space has as many axes, and directions and origin can be told. */
static bool has_space(const fv_image_type *type) {
    bool x = fv__axis_find(type, "x") >= 0, y = fv__axis_find(type, "y") >= 0, z = fv__axis_find(type, "z") >= 0;
    return x && (y || !z);
}

static void put_axes(const fv_image_type *type, bool complex, fv_bytes *out) {
    bool units = false;
    fv__bytes_printf(out, "kinds:%s", complex ? " complex" : "");
    for (int d = type->ndim - 1; d >= 0; d--) fv__bytes_printf(out, " %s", kind_of(type->axis[d]));
    fv__bytes_printf(out, "\n");
    if (has_space(type))
        put_world(type, complex, out);
    else {
        fv__bytes_printf(out, "spacings:%s", complex ? " nan" : "");
        for (int d = type->ndim - 1; d >= 0; d--) fv__bytes_printf(out, " %.17g", type->spacing[d]);
        fv__bytes_printf(out, "\n");
    }
    for (int d = 0; d < type->ndim; d++) units = units || *type->unit[d];
    if (!units) return;
    fv__bytes_printf(out, "units:%s", complex ? " \"\"" : "");
    for (int d = type->ndim - 1; d >= 0; d--) fv__bytes_printf(out, " \"%s\"", type->unit[d]);
    fv__bytes_printf(out, "\n");
}

/* apart: the text ends where the path of the file with the voxels belongs. */
static void make_header(const fv_image_type *type, bool gzip, bool apart, fv_bytes *out) {
    bool     complex = fv_dtype_is_complex(type->dtype);
    fv_dtype stored = type->dtype == FV_BOOL        ? FV_UINT8
                      : type->dtype == FV_COMPLEX64 ? FV_FLOAT32
                      : complex                     ? FV_FLOAT64
                                                    : type->dtype;
    fv__bytes_printf(out, "NRRD0005\n# http://teem.sourceforge.net/nrrd/format.html\n");
    for (int i = 0; i < FV_COUNT(types); i++)
        if (types[i].dtype == stored) {
            const char *last = strrchr(types[i].names, '|'); /* a word without blanks that numbers its bits */
            fv__bytes_printf(out, "type: %s\n", last ? last + 1 : types[i].names);
        }
    fv__bytes_printf(out, "dimension: %d\nsizes:%s", type->ndim + complex, complex ? " 2" : "");
    for (int d = type->ndim - 1; d >= 0; d--) fv__bytes_printf(out, " %lld", (long long)type->shape[d]);
    fv__bytes_printf(out, "\n");
    put_axes(type, complex, out);
    if (fv_dtype_size(stored) > 1)
        fv__bytes_printf(out, "endian: %s\n", __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "little" : "big");
    fv__bytes_printf(out, "encoding: %s\n%s", gzip ? "gzip" : "raw", apart ? "data file: " : "\n");
}

enum { RAW, GZIP };

/* The header, and where the voxels go. */
static fv_status describe(const fv_image_file *file, bool *packed, bool *apart, fv_bytes *text, fv_error *error) {
    int chosen;
    FV_TRY(fv__compression_choose(&fv_format_nrrd, file->options, &chosen, error));
    FV_TRY(fv__writer_check(file->path, file->type, error));
    *packed = chosen == GZIP;
    *apart = fv__format_in_parts(file->path);
    if (*apart) FV_TRY(fv__parts_check(file->path, error));
    make_header(file->type, *packed, *apart, text);
    return FV_OK;
}

static fv_status lay_out(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    bool      packed, apart;
    fv_bytes  text = { 0 };
    fv_status status = FV_OK;
    FV_TRY(describe(file, &packed, &apart, &text, error));
    if (packed)
        status = fv__volume_gz_layout(file, file->type->dtype, layout, error);
    else
        fv__dense_layout(file->type, file->type->dtype, false, layout);
    fv__bytes_release(&text);
    return status;
}

static fv_status create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                        fv_error *error) {
    bool     packed, apart;
    fv_bytes text = { 0 };
    FV_TRY(describe(file, &packed, &apart, &text, error));
    if (packed) {
        *out = fv__volume_gz_new(&fv_format_nrrd, file, layout, temporary, file->type->dtype, &text, true);
        if (apart) fv__volume_gz_apart(*out, "voxels.raw.gz");
        return FV_OK;
    }
    *out = fv__dense_writer_new(&fv_format_nrrd, file, layout, temporary, &text);
    if (apart) fv__dense_writer_apart(*out, "voxels.raw");
    return FV_OK;
}

const fv_format fv_format_nrrd = {
    .name = "nrrd",
    .extensions = "nrrd nhdr",
    .magic = { { 0, 7, "NRRD000" } },
    .brief = "NRRD volume",
    .reads = "raw by region, gzip in order; voxels in a separate file",
    .writes = "raw in parallel, gzip on all cores; `.nhdr` with the voxels in a separate file",
    .keeps = "spacing, units, orientation, kinds",
    .compressions = "none|gzip",
    .parts = "nhdr",
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
    .assemble = fv__volume_gz_assemble,
    .free_writer = fv__volume_free,
};
