/* profile: the values along a line, as skimage.measure.profile_line.
 *
 * A sample is interpolated between the voxels around it; the chunk that holds the one of lowest coordinates computes it, with the
 * next voxel along each axis. The end puts the samples of all chunks in order and averages across the line.
 */
#include "base/math.h"
#include "base/take.h"
#include "op/border.h"
#include "op/sorted_runs.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    fv_numbers start, end;
    int64_t    linewidth, order;
} profile;

enum { MOST_SAMPLES = 1 << 24, MOST_CHANNELS = 32 };

static const fv_param params[] = {
    FV_PARAM(profile, start, .unit = "px", .doc = "first point of the line, a number for each spatial axis"),
    FV_PARAM(profile, end, .unit = "px", .doc = "last point of the line, which is included"),
    FV_PARAM(profile, linewidth, .def = "1", .min = 1, .max = 10000, .unit = "px",
             .doc = "how many samples across the line are averaged, one voxel apart; only in planes"),
    FV_PARAM(profile, order, .def = "1", .min = 0, .max = 1, .doc = "0: the nearest voxel; 1: linear interpolation"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "real image" }, FV_INPUT_END };

/* ---------------------------------------------------------------- the line */

typedef struct {
    int     axes, spatial[FV_MAX_DIMS];
    int64_t length, width;
    double  from[3], to[3], across[3]; /* across: from one side of the line to its middle */
} line;

static line line_of(const profile *p, const fv_image_type *image) {
    line   l = { .width = p->linewidth };
    double squares = 0, way[3] = { 0 };
    l.axes = fv_image_type_spatial(image, l.spatial);
    for (int k = 0; k < l.axes; k++) {
        l.from[k] = p->start.value[k];
        l.to[k] = p->end.value[k];
        way[k] = l.to[k] - l.from[k];
        squares += way[k] * way[k];
    }
    double far = sqrt(squares);
    l.length = (int64_t)ceil(far + 1);
    if (l.axes == 2) {
        l.across[0] = (double)(l.width - 1) * (far > 0 ? way[1] / far : 1) / 2;
        l.across[1] = (double)(l.width - 1) * (far > 0 ? -way[0] / far : 0) / 2;
    }
    return l;
}

/* numpy.linspace */
static double spaced(double from, double to, int64_t count, int64_t i) {
    if (count == 1) return from;
    return i == count - 1 ? to : (double)i * ((to - from) / (double)(count - 1)) + from;
}

static void sample_place(const line *l, int64_t sample, double *place) {
    int64_t along = sample / l->width, side = sample % l->width;
    for (int k = 0; k < l->axes; k++) {
        double middle = spaced(l->from[k], l->to[k], l->length, along);
        place[k] = spaced(middle - l->across[k], middle + l->across[k], l->width, side);
    }
}

/* ---------------------------------------------------------------- inference */

static int64_t channels_of(const fv_image_type *image) {
    int     spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    int64_t channels = fv_image_type_voxels(image);
    for (int k = 0; k < n; k++) channels /= image->shape[spatial[k]];
    return channels;
}

static fv_status check_point(const fv_numbers *point, const char *name, const fv_image_type *image, fv_error *error) {
    int spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    if (n < 1 || n > 3)
        return fv_fail(error, FV_ERROR_USAGE, "image has %d spatial axes; one to three named z, y, x are needed", n);
    if (point->count != n)
        return fv_fail(error, FV_ERROR_USAGE, "%s has %d numbers; the image has %d spatial axes", name, point->count, n);
    for (int k = 0; k < n; k++) {
        double last = (double)(image->shape[spatial[k]] - 1);
        if (!(point->value[k] >= 0 && point->value[k] <= last))
            return fv_fail(error, FV_ERROR_USAGE, "%s: %g lies outside axis %s of the image; it must be within 0 and %g", name,
                           point->value[k], image->axis[spatial[k]], last);
    }
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const profile       *p = i->params;
    const fv_image_type *image = &i->in[0]->image;
    fv_table_type       *table = fv__arena_alloc(i->arena, sizeof *table);
    if (fv_dtype_is_complex(image->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s; it must be real", fv_dtype_name(image->dtype));
    FV_TRY(check_point(&p->start, "start", image, error));
    FV_TRY(check_point(&p->end, "end", image, error));
    line    l = line_of(p, image);
    int64_t channels = channels_of(image);
    if (l.axes != 2 && p->linewidth > 1)
        return fv_fail(error, FV_ERROR_USAGE, "linewidth = %lld: only planes have one direction across a line; it must be 1 here",
                       (long long)p->linewidth);
    if (channels > MOST_CHANNELS)
        return fv_fail(error, FV_ERROR_USAGE, "image has %lld values at each place; at most %d are possible (slice it first)",
                       (long long)channels, MOST_CHANNELS);
    if (l.length * l.width > MOST_SAMPLES)
        return fv_fail(error, FV_ERROR_USAGE, "linewidth = %lld: there would be more than %d samples", (long long)p->linewidth,
                       MOST_SAMPLES);
    snprintf(table->column[table->ncolumns++].name, sizeof table->column[0].name, "distance");
    for (int64_t c = 0; c < channels; c++)
        snprintf(table->column[table->ncolumns++].name, sizeof table->column[0].name, channels == 1 ? "value" : "value_%d",
                 (int)c);
    for (int c = 0; c < table->ncolumns; c++) table->column[c].kind = FV_COLUMN_REAL;
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = table };
    return FV_OK;
}

/* ---------------------------------------------------------------- samples of a chunk */

static void need(const fv_need *n, fv_region *in) {
    int     spatial[FV_MAX_DIMS], count = fv_image_type_spatial(&n->in[0]->image, spatial);
    int64_t none[FV_MAX_DIMS] = { 0 }, next[FV_MAX_DIMS] = { 0 };
    for (int k = 0; k < count; k++) next[spatial[k]] = 1;
    fv_region grown = fv__region_grow(&n->region, none, next);
    in[0] = fv__region_clip(&grown, n->in[0]->image.shape);
}

typedef struct {
    int64_t sample, channel;
    double  value;
} taken;

/* The voxels below and above a place along an axis, in the reflected image, and the share of the one above. */
typedef struct {
    int64_t low, high;
    double  above;
} between;

static between around(double place, int64_t n, int64_t order) {
    double  whole = order == 0 ? floor(place + 0.5) : floor(place);
    int64_t at = (int64_t)whole;
    between b = { .low = fv__border_index(FV_BORDER_REFLECT, at, n), .above = order == 0 ? 0 : place - whole };
    b.high = b.above == 0 ? b.low : fv__border_index(FV_BORDER_REFLECT, at + 1, n);
    return b;
}

static double voxel(const fv_block *in, const int64_t *position) {
    const void *at = fv__block_at(in, position);
    switch (in->dtype) {
    case FV_BOOL:
    case FV_UINT8: return *(const uint8_t *)at;
    case FV_INT8: return *(const int8_t *)at;
    case FV_UINT16: return *(const uint16_t *)at;
    case FV_INT16: return *(const int16_t *)at;
    case FV_UINT32: return *(const uint32_t *)at;
    case FV_INT32: return *(const int32_t *)at;
    case FV_UINT64: return (double)*(const uint64_t *)at;
    case FV_INT64: return (double)*(const int64_t *)at;
    case FV_FLOAT32: return *(const float *)at;
    default: return *(const double *)at;
    }
}

static double interpolate(const fv_block *in, const line *l, const between *b, const int64_t *channel) {
    double  sum = 0;
    int64_t position[FV_MAX_DIMS];
    memcpy(position, channel, sizeof position);
    for (int corner = 0; corner < 1 << l->axes; corner++) {
        double weight = 1;
        for (int k = 0; k < l->axes; k++) {
            bool above = corner >> (l->axes - 1 - k) & 1;
            position[l->spatial[k]] = above ? b[k].high : b[k].low;
            weight *= above ? b[k].above : 1 - b[k].above;
        }
        if (weight != 0) sum += weight * voxel(in, position);
    }
    return sum;
}

/* All channels of a sample that belongs to this chunk. */
static void take(fv_run *r, const line *l, int64_t sample, const between *b) {
    fv_region channels = r->need.region;
    fv_rows   rows;
    for (int k = 0; k < l->axes; k++) channels.start[l->spatial[k]] = b[k].low, channels.size[l->spatial[k]] = 1;
    for (fv__rows_begin(&rows, &channels); fv__rows_next(&rows);)
        for (int64_t i = 0; i < channels.size[channels.ndim - 1]; i++) {
            const fv_image_type *image = &r->need.in[0]->image;
            int64_t              position[FV_MAX_DIMS], channel = 0;
            memcpy(position, rows.position, sizeof position);
            position[channels.ndim - 1] += i;
            for (int d = 0; d < image->ndim; d++) {
                bool spatial = false;
                for (int k = 0; k < l->axes; k++) spatial |= l->spatial[k] == d;
                if (!spatial) channel = channel * image->shape[d] + position[d];
            }
            taken t = { sample, channel, interpolate(r->in[0], l, b, position) };
            fv__bytes_append(r->partial, &t, sizeof t);
        }
}

static fv_status run(fv_run *r, fv_error *error) {
    const profile       *p = r->need.params;
    const fv_image_type *image = &r->need.in[0]->image;
    line                 l = line_of(p, image);
    (void)error;
    for (int64_t sample = 0; sample < l.length * l.width; sample++) {
        double  place[3];
        between b[3];
        bool    own = true;
        sample_place(&l, sample, place);
        for (int k = 0; k < l.axes; k++) {
            int     d = l.spatial[k];
            int64_t from = r->need.region.start[d];
            b[k] = around(place[k], image->shape[d], p->order);
            int64_t first = FV_MIN(b[k].low, b[k].high);
            own = own && first >= from && first < from + r->need.region.size[d];
        }
        if (own) take(r, &l, sample, b);
    }
    return FV_OK;
}

/* Every sample could lie in one chunk. */
static size_t bound(const fv_need *n) {
    line l = line_of(n->params, &n->in[0]->image);
    return (size_t)(FV_MIN(l.length * l.width * channels_of(&n->in[0]->image), 4 * fv__region_voxels(&n->region) * l.width)) *
           sizeof(taken);
}

/* ---------------------------------------------------------------- the table */

static fv_status gather(fv_finish *f, double *values, int64_t channels, fv_error *error) {
    for (int64_t i = 0; i < f->npartials; i++) {
        const void *data;
        size_t      size = f->size(f, i);
        if (!size) continue;
        FV_TRY(f->partial(f, i, &data, error));
        for (const taken *t = data; t < (const taken *)data + size / sizeof *t; t++)
            values[t->sample * channels + t->channel] = t->value;
    }
    return FV_OK;
}

static fv_status put_rows(fv_finish *f, const line *l, const double *values, int64_t channels, fv_error *error) {
    const fv_image_type *image = &f->in[0]->image;
    fv_row_writer        writer;
    double               squares = 0;
    fv_status            status = FV_OK;
    for (int k = 0; k < l->axes; k++) {
        double way = (l->to[k] - l->from[k]) * image->spacing[l->spatial[k]];
        squares += way * way;
    }
    fv__row_writer_init(&writer, f);
    for (int64_t i = 0; i < l->length && status == FV_OK; i++) {
        fv_cell *row;
        status = fv__row_writer_next(&writer, &row, error);
        if (status != FV_OK) break;
        row[0].real = spaced(0, sqrt(squares), l->length, i);
        for (int64_t c = 0; c < channels; c++) {
            double sum = 0;
            for (int64_t w = 0; w < l->width; w++) sum += values[(i * l->width + w) * channels + c];
            row[1 + c].real = sum / (double)l->width;
        }
    }
    if (status == FV_OK) status = fv__row_writer_flush(&writer, error);
    fv__row_writer_release(&writer);
    return status;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    line    l = line_of(f->params, &f->in[0]->image);
    int64_t channels = channels_of(&f->in[0]->image);
    double *values;
    FV_TRY(FV_TAKE_ZEROED(values, (size_t)(l.length * l.width * channels) * sizeof *values, error));
    fv_status status = gather(f, values, channels, error);
    if (status == FV_OK) status = put_rows(f, &l, values, channels, error);
    free(values);
    return status;
}

static const fv_pass passes[] = { { .name = "samples", .need = need, .bound = bound, .run = run, .finish = finish },
                                  FV_PASS_END };

static const fv_column_doc columns[] = {
    { "distance", "length", .doc = "distance from the start of the line" },
    { "value", .doc = "value of the image there" },
    { "value_N", .doc = "instead of value, if the image has further axes such as colours: one column for each channel" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(profile) = {
    .name = "profile",
    .family = "measurement",
    .brief = "read the values along a line",
    .also = "profile_line, improfile, line_profile, plot_profile",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(profile),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .doc = "The result is a table with one row for each voxel length from start to end, both included. It equals "
           "skimage.measure.profile_line with the mean as reduce_func, and works in volumes too. Where a wide line reaches "
           "outside the image, the image is reflected.\n"
           "The mean along a whole axis is project(image, \"y\", \"mean\").",
    .citation = "scikit-image: skimage.measure.profile_line",
    .example = "image = phantom(\"cells\", [200, 200])\n"
               "profile(image, [10, 20], [150, 180], linewidth = 3)",
    .see = "project measure",
    .columns = columns,
};
