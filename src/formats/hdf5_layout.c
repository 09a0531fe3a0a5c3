/* What HDF5 files are laid out for: which dataset is meant, and what its axes are.
 *
 * DataExchange (https://dxfile.readthedocs.io): projections /exchange/data, flat and dark fields, angles /exchange/theta.
 * NeXus (https://www.nexusformat.org): groups of class NXdata name their signal. CXI: /entry_1/data_1/data.
 * NetCDF 4: every axis of a variable has a dimension scale. Fovea's own files: labels of axes, spacing, origin and units as
 * attributes. */
#include "formats/hdf5_parts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { MOST_LISTED = 200, NAME = 300 };

bool fv__hdf5_dtype(const fv_hdf5_about *about, fv_dtype *dtype) {
    char name[24];
    if (about->kind == 'b')
        snprintf(name, sizeof name, "bool");
    else
        snprintf(name, sizeof name, "%s%d",
                 about->kind == 'u'   ? "uint"
                 : about->kind == 'i' ? "int"
                 : about->kind == 'f' ? "float"
                                      : "complex",
                 8 * about->size);
    return about->kind && fv_dtype_parse(name, dtype);
}

/* ---------------------------------------------------------------- layouts */

/* Group and name of a dataset; the group of "/a" is "/". */
static const char *split(const char *path, char *group, size_t room) {
    const char *slash = strrchr(path, '/');
    snprintf(group, room, "%.*s", (int)FV_MAX(slash - path, 1), path);
    return slash + 1;
}

/* What its group, or itself, calls the signal of the data. */
static bool is_signal(const fv_hdf5_plugin *h5, void *file, const char *path) {
    char        group[NAME], text[NAME];
    double      value = 0;
    const char *name = split(path, group, sizeof group);
    if (h5->get_text(file, group, "signal", 0, text, sizeof text) && !strcmp(text, name)) return true;
    if (h5->get_text(file, path, "signal", 0, text, sizeof text)) return !strcmp(text, "1");
    return h5->get_numbers(file, path, "signal", &value, 1) == 1 && value == 1;
}

static bool is_cxi(const char *path) { return !strcmp(path, "/entry_1/data_1/data") || !strcmp(path, "/entry_1/image_1/data"); }

typedef struct {
    const fv_hdf5_plugin *h5;
    void                 *file;
    char                 *exchange, *signal, *cxi, *image, *any; /* the first of each kind */
    int                   images, usable, datasets;
    fv_bytes              names;
} search;

static void keep(char **first, const char *name) {
    if (!*first) *first = fv__strdup(name);
}

static bool consider(void *context, const char *name, const fv_hdf5_about *about) {
    search *s = context;
    s->datasets++;
    if (!about->kind || about->ndim < 1 || about->ndim > FV_MAX_DIMS) return true;
    if (s->names.size < 200) fv__bytes_printf(&s->names, "%s%s", s->names.size ? ", " : "", name);
    if (!strcmp(name, "/exchange/data")) keep(&s->exchange, name);
    if (is_cxi(name)) keep(&s->cxi, name);
    s->usable++;
    keep(&s->any, name);
    if (about->ndim < 2) return true;
    s->images++;
    keep(&s->image, name);
    if (!s->signal && is_signal(s->h5, s->file, name)) keep(&s->signal, name);
    return true;
}

/* A word for a part of a scan of diffraction patterns; a dataset of that name goes first. */
static bool is_word(const char *inside) {
    static const char *const words[] = { "frames", "mask", "dark", "probe", "positions" };
    for (int i = 0; i < FV_COUNT(words); i++)
        if (!strcmp(inside, words[i])) return true;
    return false;
}

fv_status fv__hdf5_choose(const fv_hdf5_plugin *h5, void *file, const char *path, const char *inside, fv_hdf5_part *part,
                          fv_error *error) {
    search s = { .h5 = h5, .file = file };
    FV_TRY(fv__hdf5_find_part(h5, file, path, inside, part, error));
    if (part->name) return FV_OK;
    if (!inside || !*inside || is_word(inside)) part->name = fv__hdf5_find_ptycho(h5, file, inside && *inside ? inside : NULL);
    if (part->name) return FV_OK;
    if (inside && *inside) {
        part->name = fv__sprintf("%s%s", *inside == '/' ? "" : "/", inside);
        return FV_OK;
    }
    h5->visit(file, consider, &s);
    const char *chosen = s.exchange ? s.exchange : s.signal ? s.signal : s.cxi ? s.cxi : s.images == 1 ? s.image : NULL;
    if (!chosen && s.usable == 1) chosen = s.any;
    fv_status status = FV_OK;
    if (chosen)
        part->name = fv__strdup(chosen);
    else if (!s.names.size)
        status = fv_fail(error, FV_ERROR_INPUT, "%s holds no dataset of numbers (%d datasets in all)", path, s.datasets);
    else
        status = fv_fail(error, FV_ERROR_INPUT, "%s holds several datasets; name one, as in read(\"%s\", path = \"...\"): %.*s%s",
                         path, path, (int)s.names.size, (char *)s.names.data, s.names.size >= 200 ? ", ..." : "");
    free(s.exchange);
    free(s.signal);
    free(s.cxi);
    free(s.image);
    free(s.any);
    fv__bytes_release(&s.names);
    return status;
}

typedef struct {
    bool exchange, cxi;
} marks;

static bool look(void *context, const char *name, const fv_hdf5_about *about) {
    marks *m = context;
    (void)about;
    m->exchange = m->exchange || !strcmp(name, "/exchange/data");
    m->cxi = m->cxi || !strcmp(name, "/cxi_version") || is_cxi(name);
    return !m->exchange;
}

const char *fv__hdf5_layout(const fv_hdf5_plugin *h5, void *file) {
    marks m = { 0 };
    char  text[NAME];
    if (h5->get_text(file, "/", "_NCProperties", 0, text, sizeof text)) return "NetCDF 4";
    h5->visit(file, look, &m);
    if (m.exchange) return "DataExchange";
    if (m.cxi) return "CXI";
    static const char *const marks_of_nexus[] = { "default", "NeXus_version", "NX_class" };
    for (int i = 0; i < FV_COUNT(marks_of_nexus); i++)
        if (h5->get_text(file, "/", marks_of_nexus[i], 0, text, sizeof text)) return "NeXus";
    return NULL;
}

/* ---------------------------------------------------------------- listing */

typedef struct {
    const fv_hdf5_plugin *h5;
    void                 *file;
    fv_bytes             *lines;
    int                   count;
} listing;

/* What a dataset is for, where the layout says so. */
static const char *role_of(listing *l, const char *name) {
    static const struct {
        const char *path, *role;
    } exchange[] = {
        { "/exchange/data", "projections" },      { "/exchange/data_white", "flat fields" }, { "/exchange/flat", "flat fields" },
        { "/exchange/data_dark", "dark fields" }, { "/exchange/dark", "dark fields" },       { "/exchange/theta", "angles" },
    };
    char text[NAME];
    for (int i = 0; i < FV_COUNT(exchange); i++)
        if (!strcmp(name, exchange[i].path)) return exchange[i].role;
    if (l->h5->get_text(l->file, name, "CLASS", 0, text, sizeof text) && !strcmp(text, "DIMENSION_SCALE")) return "coordinates";
    static const char *const ends[][2] = { { "/image_key", "what each frame is" }, { "/rotation_angle", "angles" } };
    for (int i = 0; i < FV_COUNT(ends); i++)
        if (strlen(name) > strlen(ends[i][0]) && !strcmp(name + strlen(name) - strlen(ends[i][0]), ends[i][0])) return ends[i][1];
    return is_signal(l->h5, l->file, name) ? "signal" : NULL;
}

static void put_sizes(fv_bytes *out, const char *before, const int64_t *sizes, int n) {
    fv__bytes_printf(out, "%s", before);
    for (int d = 0; d < n; d++) fv__bytes_printf(out, "%s%lld", d ? " x " : "", (long long)sizes[d]);
}

static bool put_line(void *context, const char *name, const fv_hdf5_about *about) {
    listing    *l = context;
    fv_dtype    dtype;
    char        units[64];
    const char *role = role_of(l, name);
    if (l->count++ == MOST_LISTED) {
        fv__bytes_printf(l->lines, "...: only the first %d are listed\n", MOST_LISTED);
        return false;
    }
    fv__bytes_printf(l->lines, "%s: %s", name, fv__hdf5_dtype(about, &dtype) ? fv_dtype_name(dtype) : "no numbers");
    put_sizes(l->lines, about->ndim ? ", " : ", a scalar", about->shape, about->ndim);
    if (about->chunked) put_sizes(l->lines, ", chunks of ", about->chunk, about->ndim);
    if (about->nfilters) {
        fv__bytes_printf(l->lines, ", ");
        fv__hdf5_filter_names(about, l->lines);
    }
    if (l->h5->get_text(l->file, name, "units", 0, units, sizeof units) && *units) fv__bytes_printf(l->lines, ", in %s", units);
    fv__bytes_printf(l->lines, "%s%s\n", role ? ": " : "", role ? role : "");
    return true;
}

void fv__hdf5_list(const fv_hdf5_plugin *h5, void *file, fv_bytes *lines) {
    listing l = { .h5 = h5, .file = file, .lines = lines };
    h5->visit(file, put_line, &l);
}

/* ---------------------------------------------------------------- axes */

/* One number of a dataset of one axis. */
static bool read_number(const fv_hdf5_plugin *h5, void *dataset, const fv_hdf5_about *about, int64_t at, double *value) {
    char    message[FV_HDF5_MESSAGE];
    int64_t one = 1;
    union {
        float    f;
        double   d;
        int8_t   i1;
        uint8_t  u1;
        int16_t  i2;
        uint16_t u2;
        int32_t  i4;
        uint32_t u4;
        int64_t  i8;
        uint64_t u8;
    } n;
    if (!h5->read_box(dataset, &at, &one, &n, message)) return false;
    int code = about->kind << 8 | about->size;
    switch (code) {
    case 'f' << 8 | 4: *value = n.f; break;
    case 'f' << 8 | 8: *value = n.d; break;
    case 'i' << 8 | 1: *value = n.i1; break;
    case 'u' << 8 | 1: *value = n.u1; break;
    case 'i' << 8 | 2: *value = n.i2; break;
    case 'u' << 8 | 2: *value = n.u2; break;
    case 'i' << 8 | 4: *value = n.i4; break;
    case 'u' << 8 | 4: *value = n.u4; break;
    case 'i' << 8 | 8: *value = (double)n.i8; break;
    case 'u' << 8 | 8: *value = (double)n.u8; break;
    default: return false;
    }
    return isfinite(*value);
}

/* Spacing and origin from coordinates that are evenly spaced, judged by the first, second and last. */
static void take_coordinates(const fv_hdf5_plugin *h5, void *file, const char *scale, fv_image_type *type, int d) {
    fv_hdf5_about about;
    char          message[FV_HDF5_MESSAGE];
    void         *dataset = h5->open_dataset(file, scale, &about, message);
    double        first, second, last;
    int64_t       n = type->shape[d];
    if (dataset && about.ndim == 1 && about.shape[0] == n && n > 1 && about.kind && about.kind != 'c' &&
        read_number(h5, dataset, &about, 0, &first) && read_number(h5, dataset, &about, 1, &second) &&
        read_number(h5, dataset, &about, n - 1, &last)) {
        double step = (last - first) / (double)(n - 1);
        if (step > 0 && fabs(step - (second - first)) <= 1e-5 * step) {
            type->spacing[d] = step;
            type->origin[d] = first;
        }
    }
    h5->close_dataset(dataset);
}

static void set_axis(fv_image_type *type, int d, const char *name) {
    static const char *const usual[][2] = { { "time", "t" }, { "latitude", "y" }, { "lat", "y" },  { "longitude", "x" },
                                            { "lon", "x" },  { "depth", "z" },    { "level", "z" } };
    for (int i = 0; i < FV_COUNT(usual); i++)
        if (!strcasecmp(name, usual[i][0])) name = usual[i][1];
    snprintf(type->axis[d], sizeof type->axis[d], "%.7s", name);
}

static void take_scales(const fv_hdf5_plugin *h5, void *file, const char *name, fv_image_type *type) {
    char scale[NAME], group[NAME], units[NAME];
    for (int d = 0; d < type->ndim; d++) {
        if (!h5->get_scale(file, name, d, scale, sizeof scale) || !strchr(scale, '/')) continue;
        set_axis(type, d, split(scale, group, sizeof group));
        take_coordinates(h5, file, scale, type, d);
        if (h5->get_text(file, scale, "units", 0, units, sizeof units) && strlen(units) < sizeof type->unit[d])
            strcpy(type->unit[d], units);
    }
}

static void take_own(const fv_hdf5_plugin *h5, void *file, const char *name, fv_image_type *type) {
    char   text[NAME];
    double values[FV_MAX_DIMS], code = 0;
    for (int d = 0; d < type->ndim; d++) {
        if (h5->get_text(file, name, "DIMENSION_LABELS", d, text, sizeof text) && *text) set_axis(type, d, text);
        if (h5->get_text(file, name, "axis_units", d, text, sizeof text) && strlen(text) < sizeof type->unit[d])
            strcpy(type->unit[d], text);
    }
    if (h5->get_numbers(file, name, "spacing", values, FV_MAX_DIMS) == type->ndim)
        for (int d = 0; d < type->ndim; d++) type->spacing[d] = isfinite(values[d]) && values[d] > 0 ? values[d] : 1;
    if (h5->get_numbers(file, name, "origin", values, FV_MAX_DIMS) == type->ndim)
        for (int d = 0; d < type->ndim; d++) type->origin[d] = isfinite(values[d]) ? values[d] : 0;
    type->has_affine = h5->get_numbers(file, name, "affine", type->affine, 12) == 12;
    if (!type->has_affine) memset(type->affine, 0, sizeof type->affine);
    bool coded = type->has_affine && h5->get_numbers(file, name, "affine_code", &code, 1) == 1 && code >= 0 && code < 100;
    if (coded) type->affine_code = (int)code;
}

/* Fiji's and ilastik's way: the last three axes, in micrometres. */
static void take_element_size(const fv_hdf5_plugin *h5, void *file, const char *name, fv_image_type *type) {
    double size[3];
    if (type->ndim < 3 || h5->get_numbers(file, name, "element_size_um", size, 3) != 3) return;
    for (int i = 0; i < 3; i++) {
        int d = type->ndim - 3 + i;
        if (!(isfinite(size[i]) && size[i] > 0)) continue;
        type->spacing[d] = size[i];
        strcpy(type->unit[d], "micrometer");
    }
}

static bool names_differ(const fv_image_type *type) {
    for (int d = 0; d < type->ndim; d++)
        for (int e = 0; e < d; e++)
            if (!type->axis[d][0] || !strcmp(type->axis[d], type->axis[e])) return false;
    return true;
}

void fv__hdf5_axes(const fv_hdf5_plugin *h5, void *file, const char *name, bool projections, fv_image_type *type) {
    static const char *const scan[] = { "angle", "v", "u" };
    fv_image_type            usual = *type;
    projections = (projections || !strncmp(name, "/exchange/", 10)) && type->ndim == 3;
    for (int d = 0; d < 3 && projections; d++) strcpy(type->axis[d], scan[d]);
    take_scales(h5, file, name, type);
    take_element_size(h5, file, name, type);
    take_own(h5, file, name, type);
    if (!names_differ(type)) memcpy(type->axis, usual.axis, sizeof type->axis);
}
