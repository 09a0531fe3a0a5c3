/* A picture of an image file: the middle slice, small enough for a page, with its contrast said. */
#include "op/axes.h"
#include "op/colors.h"
#include "op/format.h"
#include "story/story_parts.h"
#include <complex.h>
#include <math.h>
#include <stdlib.h>

enum { EDGE = 320, MOST_BYTES = 48 << 20, SLAB = 8 << 20, MOST_IN_ORDER = 256 << 20 };

typedef struct view {
    fv_reader    *reader;
    fv_image_type type[1];
    int           y, x, c; /* axes; c: of an RGB picture, -1: none */
    fv_region     plane;   /* what is shown, whole */
    int64_t       step;    /* every so many pixels */
    int           width, height, channels;
    bool          labels, part; /* part: the middle of a slice that is very large */
    double       *values;       /* height * width * channels */
    fv_bytes      where;        /* "z = 20 of 40" */
} view;

static bool is_color(const fv_image_type *type) {
    int c = type->ndim - 1;
    return type->ndim >= 3 && !strcmp(type->axis[c], "c") && type->shape[c] == 3 && type->dtype == FV_UINT8;
}

static int64_t bytes_of(const view *v) { return fv__region_voxels(&v->plane) * (int64_t)fv_dtype_size(v->type->dtype); }

/* Middle of every axis but those of the picture. */
static void choose(view *v) {
    const fv_image_type *type = v->type;
    v->c = is_color(type) ? type->ndim - 1 : -1;
    v->x = type->ndim - 1 - (v->c >= 0);
    v->y = v->x - 1;
    v->channels = v->c >= 0 ? 3 : 1;
    v->plane = fv__region_whole(type);
    for (int d = 0; d < type->ndim; d++) {
        if (d == v->y || d == v->x || d == v->c) continue;
        bool channel = !strcmp(type->axis[d], "c");
        v->plane.start[d] = channel ? 0 : type->shape[d] / 2;
        v->plane.size[d] = 1;
        if (type->shape[d] > 1)
            fv__bytes_printf(&v->where, ", %s = %lld of %lld", type->axis[d], (long long)v->plane.start[d],
                             (long long)type->shape[d]);
    }
    while (bytes_of(v) > MOST_BYTES) {
        int64_t *size = v->y < 0 || v->plane.size[v->x] > v->plane.size[v->y] ? &v->plane.size[v->x] : &v->plane.size[v->y];
        *size = (*size + 1) / 2;
        v->part = true;
    }
    for (int d = FV_MAX(v->y, 0); v->part && d <= v->x; d++) v->plane.start[d] = (type->shape[d] - v->plane.size[d]) / 2;
    int64_t rows = v->y < 0 ? 1 : v->plane.size[v->y];
    v->step = FV_MAX((FV_MAX(rows, v->plane.size[v->x]) + EDGE - 1) / EDGE, 1);
    v->height = (int)((rows + v->step - 1) / v->step);
    v->width = (int)((v->plane.size[v->x] + v->step - 1) / v->step);
    v->labels = fv_dtype_is_integer(type->dtype) && fv_dtype_size(type->dtype) >= 4;
}

static double value_at(const void *data, fv_dtype dtype, int64_t i) {
    switch (dtype) {
    case FV_BOOL:
    case FV_UINT8: return ((const uint8_t *)data)[i];
    case FV_INT8: return ((const int8_t *)data)[i];
    case FV_UINT16: return ((const uint16_t *)data)[i];
    case FV_INT16: return ((const int16_t *)data)[i];
    case FV_UINT32: return ((const uint32_t *)data)[i];
    case FV_INT32: return ((const int32_t *)data)[i];
    case FV_UINT64: return (double)((const uint64_t *)data)[i];
    case FV_INT64: return (double)((const int64_t *)data)[i];
    case FV_FLOAT32: return (double)((const float *)data)[i];
    case FV_FLOAT64: return ((const double *)data)[i];
    case FV_COMPLEX64: return (double)cabsf(((const float complex *)data)[i]);
    default: return cabs(((const double complex *)data)[i]);
    }
}

/* Slab by slab, so that a slice of 48 MiB takes 8. */
static fv_status read_plane(view *v, fv_error *error) {
    int64_t rows = v->y < 0 ? 1 : v->plane.size[v->y], row_bytes = bytes_of(v) / rows;
    int64_t most = FV_MIN(FV_MAX(SLAB / FV_MAX(row_bytes, 1), 1), rows);
    void   *data = fv__try_alloc((size_t)(most * row_bytes));
    if (!data) return fv_fail(error, FV_ERROR_MEMORY, "no memory for a picture");
    v->values = fv__alloc((size_t)(v->width * v->height * v->channels) * sizeof *v->values);
    fv_status status = FV_OK;
    double   *to = v->values;
    for (int64_t at = 0; at < rows && status == FV_OK; at += most) {
        fv_region region = v->plane;
        fv_block  block;
        if (v->y >= 0) {
            region.start[v->y] += at;
            region.size[v->y] = FV_MIN(most, rows - at);
        }
        fv__block_init(&block, v->type->dtype, &region, data);
        status = fv__reader_read(v->reader, &block, error);
        for (int64_t y = (at + v->step - 1) / v->step * v->step; status == FV_OK && y < FV_MIN(at + most, rows); y += v->step)
            for (int64_t x = 0; x < v->plane.size[v->x]; x += v->step)
                for (int c = 0; c < v->channels; c++)
                    *to++ = value_at(data, v->type->dtype, ((y - at) * v->plane.size[v->x] + x) * v->channels + c);
    }
    free(data);
    return status;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Values at 0.1 and 99.9 %. */
static void find_range(const view *v, double *low, double *high) {
    int     n = v->width * v->height * v->channels, count = 0;
    double *sorted = fv__alloc((size_t)(n + 1) * sizeof *sorted);
    for (int i = 0; i < n; i++)
        if (isfinite(v->values[i])) sorted[count++] = v->values[i];
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    *low = count ? sorted[(int)(0.001 * (count - 1))] : 0;
    *high = count ? sorted[(int)ceil(0.999 * (count - 1))] : 0;
    free(sorted);
}

static uint8_t *paint(const view *v, double low, double high, int *channels) {
    int      n = v->width * v->height * v->channels;
    uint8_t *pixels = fv__alloc((size_t)n * 3);
    *channels = v->labels ? 3 : v->channels;
    for (int i = 0; i < n; i++) {
        double value = v->values[i];
        if (v->labels)
            fv__label_color(value < 0        ? (uint64_t)(int64_t)value
                            : value < 0x1p64 ? (uint64_t)value
                                             : UINT64_MAX,
                            pixels + 3 * (size_t)i);
        else if (v->channels == 3)
            pixels[i] = (uint8_t)value;
        else
            pixels[i] = isfinite(value) && high > low ? (uint8_t)lround(255 * fmin(fmax((value - low) / (high - low), 0), 1)) : 0;
    }
    return pixels;
}

static void put_caption(fv_bytes *out, const view *v, const char *name, double low, double high) {
    fv__bytes_printf(out, "<figcaption><b>");
    fv__html_text(out, name);
    fv__bytes_printf(out, "</b><br>%s ", fv_dtype_name(v->type->dtype));
    for (int d = 0; d < v->type->ndim; d++) fv__bytes_printf(out, "%s%lld", d ? "\xc3\x97" : "", (long long)v->type->shape[d]);
    if (v->where.size) fv__html_text(out, (char *)v->where.data);
    if (v->part) fv__bytes_printf(out, ", the middle of the slice");
    if (v->step > 1) fv__bytes_printf(out, ", shown at 1/%lld of its size", (long long)v->step);
    fv__bytes_printf(out, "<br>");
    if (v->labels)
        fv__bytes_printf(out, "a colour for each label");
    else if (v->type->dtype == FV_BOOL)
        fv__bytes_printf(out, "black: false, white: true");
    else if (v->channels == 3)
        fv__bytes_printf(out, "colours as they are");
    else if (high > low)
        fv__bytes_printf(out, "%scontrast %.4g to %.4g (0.1 to 99.9 %% of what is shown)",
                         fv_dtype_is_complex(v->type->dtype) ? "magnitude, " : "", low, high);
    else
        fv__bytes_printf(out, "%.4g everywhere", low);
    fv__bytes_printf(out, "</figcaption>");
}

static void put_png(fv_bytes *png, const view *v, double *low, double *high) {
    int channels;
    *low = 0;
    *high = 1;
    if (!v->labels && v->channels == 1 && v->type->dtype != FV_BOOL) find_range(v, low, high);
    uint8_t *pixels = paint(v, *low, *high, &channels);
    fv__html_png(png, pixels, v->width, v->height, channels);
    free(pixels);
}

static void put_picture(fv_bytes *out, const view *v, const char *name) {
    double   low, high;
    fv_bytes png = { 0 };
    put_png(&png, v, &low, &high);
    fv__bytes_printf(out, "<figure><img alt=\"");
    fv__html_text(out, name);
    fv__bytes_printf(out, "\" width=\"%d\" height=\"%d\" src=\"data:image/png;base64,", v->width, v->height);
    fv__html_base64(out, png.data, png.size);
    fv__bytes_printf(out, "\">");
    put_caption(out, v, name, low, high);
    fv__bytes_printf(out, "</figure>\n");
    fv__bytes_release(&png);
}

/* False: it is no image, or not readable. Close it in any case. */
static bool open_view(const char *path, view *v) {
    const fv_format *format;
    fv_read_options  options = { 0 };
    *v = (view){ 0 };
    if (!fv__story_may_open(path) || fv__format_for_reading(path, &format, NULL) != FV_OK) return false;
    if (fv__reader_acquire(path, &options, &v->reader, NULL) != FV_OK) return false;
    v->type[0] = v->reader->type;
    if (!strcmp(format->name, "npy")) fv__axes_guess_colour(v->type);
    bool quick = !v->reader->sequential || fv_image_type_bytes(v->type) <= MOST_IN_ORDER; /* half of it is read to the middle */
    if (v->type->ndim < 1 || fv_image_type_voxels(v->type) < 1 || !quick) return false;
    choose(v);
    return read_plane(v, NULL) == FV_OK;
}

static void close_view(view *v) {
    if (v->reader) fv__reader_release(v->reader);
    fv__bytes_release(&v->where);
    free(v->values);
}

bool fv__put_thumbnail(fv_bytes *out, const char *path, const char *name) {
    view v;
    bool shown = open_view(path, &v);
    if (shown) put_picture(out, &v, name);
    close_view(&v);
    return shown;
}

bool fv__thumbnail_png(fv_bytes *png, const char *path) {
    view   v;
    double low, high;
    bool   shown = open_view(path, &v);
    if (shown) put_png(png, &v, &low, &high);
    close_view(&v);
    return shown;
}
