/* kmeans: classes of voxels whose grey values, or the values of whose channels, are alike.
 *
 * Grey values have an order, so that the best classes can be found exactly from the histogram. Vectors of channels have none:
 * their classes are those of a sample of voxels, which depends on the seed and on places only, and Lloyd's method finds them.
 */
#include "base/take.h"
#include "kernels/levels.h"
#include "kernels/partition.h"
#include "op/axes.h"
#include "op/kernels.h"
#include "op/random.h"
#include "op/scratch.h"
#include "ops/intensity/lloyd.h"
#include <stdlib.h>

typedef struct {
    int64_t classes, seed;
    bool    vectors; /* the image has an axis c */
} kmeans;

enum { BINS = 1 << 16, MOST_CLASSES = 64, MOST_CHANNELS = 16, SAMPLE = 1 << 16 };

static const fv_param params[] = {
    FV_PARAM(kmeans, classes, .def = "2", .min = 2, .max = MOST_CLASSES, .doc = "number of classes"),
    FV_PARAM(kmeans, seed, .def = "0", .min = 0, .max = 9e15,
             .doc = "of the random numbers that choose where the search begins, for images with channels"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "grey image, or one with channels along an axis c" },
                                   FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    kmeans              *p = i->params;
    const fv_image_type *in = &i->in[0]->image;
    int                  axis = fv__axis_find(in, "c");
    if (fv_dtype_is_complex(in->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s: it must be real", fv_dtype_name(in->dtype));
    p->vectors = axis >= 0;
    i->out->image.dtype = FV_UINT8;
    if (!p->vectors) return FV_OK;
    if (in->ndim == 1) return fv_fail(error, FV_ERROR_USAGE, "the image has no other axis than c");
    if (in->shape[axis] > MOST_CHANNELS)
        return fv_fail(error, FV_ERROR_USAGE, "the image has %lld channels; at most %d are possible: split takes some of them",
                       (long long)in->shape[axis], MOST_CHANNELS);
    fv__axis_drop(&i->out->image, axis);
    return FV_OK;
}

static bool    is_vectors(const fv_need *n) { return ((const kmeans *)n->params)->vectors; }
static int     channel_axis(const fv_type *type) { return fv__axis_find(&type->image, "c"); }
static int64_t channels_of(const fv_type *type) { return type->image.shape[channel_axis(type)]; }

/* What the last pass reads: vectors 1 and centres, class by class; or vectors 0 and what lies between the classes. */
typedef struct {
    int64_t vectors, classes, channels;
    double  number[];
} model;

static fv_status put_model(fv_finish *f, int64_t channels, const double *numbers, int64_t count, fv_error *error) {
    model head = { ((const kmeans *)f->params)->vectors, ((const kmeans *)f->params)->classes, channels };
    FV_TRY(f->put(f, 0, &head, sizeof head, error));
    return f->put(f, 0, numbers, (size_t)count * sizeof *numbers, error);
}

static fv_status too_few(const kmeans *p, int64_t found, fv_error *error) {
    return fv_fail(error, FV_ERROR_INPUT, "the image has only %lld different value%s; %lld classes need as many",
                   (long long)found, found == 1 ? "" : "s", (long long)p->classes);
}

/* ---------------------------------------------------------------- grey values */

static fv_status put(fv_finish *f, const fv__levels *l, fv_error *error) {
    const kmeans *p = l->params;
    double       *value = fv__alloc((size_t)l->count * 2 * sizeof *value), *weight = value + l->count, mean[MOST_CLASSES];
    int64_t       first[MOST_CLASSES], n = 0;
    fv_status     status;
    for (int64_t i = 0; i < l->count; i++)
        if (l->counts[i]) value[n] = l->centres[i], weight[n++] = (double)l->counts[i];
    if (n < p->classes)
        status = too_few(p, n, error);
    else {
        fv__partition(value, weight, n, (int)p->classes, first, mean);
        for (int64_t k = 0; k + 1 < p->classes; k++) mean[k] = (mean[k] + mean[k + 1]) / 2;
        status = put_model(f, 1, mean, p->classes - 1, error);
    }
    free(value);
    return status;
}

static const fv__method method = { .bins = BINS, .put = put };

/* ---------------------------------------------------------------- first pass: counts, range or sample */

/* A chunk may hold only some of the channels: the one with the first takes them all. */
static void need_sample(const fv_need *n, fv_region *in) {
    if (!is_vectors(n)) return;
    int axis = channel_axis(n->in[0]);
    if (in[0].start[axis] > 0) {
        fv__need_nothing(&in[0]);
        return;
    }
    in[0].size[axis] = channels_of(n->in[0]);
}

static size_t record_size(const fv_type *type) { return (size_t)(1 + channels_of(type)) * 8; }

static size_t scratch_sample(const fv_need *n) { return is_vectors(n) ? MOST_CHANNELS * 8 : fv__survey_scratch(n); }
static size_t bound_sample(const fv_need *n) {
    if (!is_vectors(n)) return fv__survey_bound(n);
    return (size_t)FV_MIN(fv__region_voxels(&n->region), SAMPLE + 1) * record_size(n->in[0]);
}

static int64_t pixels_of(const fv_image_type *image) {
    return fv_image_type_voxels(image) / image->shape[fv__axis_find(image, "c")];
}

/* Of every `step` voxels in the order of the image one, which the seed chooses. */
static void take_voxel(fv_run *r, int64_t *position, int64_t index) {
    const fv_type *type = r->need.in[0];
    int            axis = channel_axis(type);
    int64_t        channels = channels_of(type);
    double        *record = fv__bytes_append(r->partial, NULL, record_size(type));
    memcpy(record, &index, sizeof index);
    for (int64_t c = 0; c < channels; c++) {
        position[axis] = c;
        fv__kernels_current()->convert(record + 1 + c, FV_FLOAT64, fv__block_at(r->in[0], position), r->in[0]->dtype, 1);
    }
    position[axis] = 0;
}

static fv_status run_sample(fv_run *r, fv_error *error) {
    if (!is_vectors(&r->need)) return fv__survey_run(r, error);
    const fv_image_type *image = &r->need.in[0]->image;
    fv_region            flat = r->in[0]->region;
    int                  axis = channel_axis(r->need.in[0]);
    if (fv__region_empty(&flat)) return FV_OK;
    flat.size[axis] = 1;
    int64_t  step = (pixels_of(image) + SAMPLE - 1) / SAMPLE;
    uint64_t seed = (uint64_t)((const kmeans *)r->need.params)->seed;
    fv_rows  rows;
    int      last = axis == image->ndim - 1 ? image->ndim - 2 : image->ndim - 1; /* the fastest axis beside c */
    int64_t  n = flat.size[last];
    flat.size[last] = 1;
    for (fv__rows_begin(&rows, &flat); fv__rows_next(&rows);) {
        int64_t index = 0, position[FV_MAX_DIMS];
        memcpy(position, rows.position, sizeof position);
        for (int d = 0; d < image->ndim; d++)
            if (d != axis) index = index * image->shape[d] + position[d];
        for (int64_t block = index / step; block <= (index + n - 1) / step; block++) {
            int64_t chosen = block * step + (int64_t)(fv__place_hash(seed, 1, 0, 0, block) % (uint64_t)step);
            if (chosen < index || chosen >= index + n) continue;
            position[last] = rows.position[last] + chosen - index;
            take_voxel(r, position, chosen);
        }
    }
    return FV_OK;
}

static void combine_sample(const void *params_, fv_bytes *into, const void *partial, size_t size) {
    if (((const kmeans *)params_)->vectors)
        fv__bytes_append(into, partial, size);
    else
        fv__survey_combine(params_, into, partial, size);
}

static int by_index(const void *a, const void *b) {
    int64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static fv_status find_centres(fv_finish *f, fv_error *error) {
    const kmeans *p = f->params;
    const void   *partial;
    size_t        size = f->npartials ? f->size(f, 0) : 0, record = record_size(f->in[0]);
    int64_t       n = (int64_t)(size / record), channels = channels_of(f->in[0]);
    if (!n) return fv_fail(error, FV_ERROR_INPUT, "the image has no voxels");
    FV_TRY(f->partial(f, 0, &partial, error));
    double *points, centre[MOST_CLASSES * MOST_CHANNELS];
    FV_TRY(FV_TAKE(points, (size_t)(n * channels) * sizeof *points + size, error));
    char *records = (char *)(points + n * channels);
    memcpy(records, partial, size);
    qsort(records, (size_t)n, record, by_index); /* partials come in any order */
    for (int64_t i = 0; i < n; i++) memcpy(points + i * channels, records + (size_t)i * record + 8, (size_t)channels * 8);
    fv__lloyd job = { points, n, (int)channels, (int)p->classes, (uint64_t)p->seed };
    int64_t   found = 0;
    fv_status status = fv__lloyd_find(&job, centre, &found, error);
    free(points);
    if (status != FV_OK) return status;
    return found < 0            ? fv_fail(error, FV_ERROR_INPUT, "the image holds nan or infinite values")
           : found < p->classes ? too_few(p, found, error)
                                : put_model(f, channels, centre, p->classes * channels, error);
}

static fv_status finish_sample(fv_finish *f, fv_error *error) {
    return ((const kmeans *)f->params)->vectors ? find_centres(f, error) : fv__levels_finish_survey(f, &method, error);
}

/* ---------------------------------------------------------------- second pass: counting in bins */

static void need_bins(const fv_need *n, fv_region *in) {
    if (is_vectors(n))
        fv__need_nothing(&in[0]);
    else
        fv__survey_need_bins(n, in);
}
static size_t    scratch_bins(const fv_need *n) { return is_vectors(n) ? 0 : fv__levels_scratch(n, &method); }
static size_t    bound_bins(const fv_need *n) { return is_vectors(n) ? 64 : fv__levels_bound(n, &method); }
static fv_status run_bins(fv_run *r, fv_error *error) { return is_vectors(&r->need) ? FV_OK : fv__levels_run(r, &method, error); }
static fv_status finish_bins(fv_finish *f, fv_error *error) {
    const void *earlier;
    size_t      size;
    if (!((const kmeans *)f->params)->vectors) return fv__levels_finish(f, &method, error);
    FV_TRY(f->results->get(f->results, 0, &earlier, &size, error));
    return f->put(f, 0, earlier, size, error);
}

/* ---------------------------------------------------------------- third pass: the class of each voxel */

static void need_apply(const fv_need *n, fv_region *in) {
    if (!is_vectors(n)) return;
    int axis = channel_axis(n->in[0]);
    in[0].ndim = n->in[0]->image.ndim;
    for (int d = in[0].ndim - 1; d > axis; d--) {
        in[0].start[d] = n->region.start[d - 1];
        in[0].size[d] = n->region.size[d - 1];
    }
    in[0].start[axis] = 0;
    in[0].size[axis] = channels_of(n->in[0]);
}

/* Rows of all channels as float64, the squared distance from the nearest centre so far, and one more row. */
typedef struct {
    double *values, *best, *distance, *mixed;
} apply_memory;

static size_t lay_out(const fv_need *n, void *scratch, apply_memory *m) {
    fv_scratch pieces = { scratch, 0 };
    int64_t    row = n->region.size[n->region.ndim - 1] * 8, channels = is_vectors(n) ? channels_of(n->in[0]) : 1;
    m->values = fv__scratch_take(&pieces, row * channels);
    m->best = fv__scratch_take(&pieces, row);
    m->distance = fv__scratch_take(&pieces, row);
    m->mixed = fv__scratch_take(&pieces, row * channels);
    return pieces.used;
}

static size_t scratch_apply(const fv_need *n) {
    apply_memory m;
    return lay_out(n, NULL, &m);
}

/* The channels of a row of n voxels, one behind the other. */
static void load_channels(const fv_block *in, int axis, const int64_t *flat, int64_t n, const apply_memory *m) {
    const fv_kernels *k = fv__kernels_current();
    int64_t           position[FV_MAX_DIMS], channels = in->region.size[axis], last = in->region.ndim - 1;
    for (int d = 0, e = 0; d < in->region.ndim; d++) position[d] = d == axis ? 0 : flat[e++];
    if (axis != last) {
        for (int64_t c = 0; c < channels; c++) {
            position[axis] = c;
            k->convert(m->values + c * n, FV_FLOAT64, fv__block_at(in, position), in->dtype, n);
        }
        return;
    }
    int64_t piece = in->stride[last - 1] == channels ? n : 1;
    for (int64_t i = 0; i < n; i += piece, position[last - 1] += piece)
        k->convert(m->mixed + i * channels, FV_FLOAT64, fv__block_at(in, position), in->dtype, piece * channels);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < n; i++) m->values[c * n + i] = m->mixed[i * channels + c];
}

static void nearest(const model *o, const apply_memory *m, int64_t n, uint8_t *restrict to) {
    double *restrict best = m->best, *restrict distance = m->distance;
    for (int64_t k = 0; k < o->classes; k++) {
        const double *centre = o->number + k * o->channels;
        for (int64_t i = 0; i < n; i++) distance[i] = 0;
        for (int64_t c = 0; c < o->channels; c++) {
            const double *restrict v = m->values + c * n;
            double at = centre[c];
            for (int64_t i = 0; i < n; i++) distance[i] += (v[i] - at) * (v[i] - at);
        }
        for (int64_t i = 0; i < n; i++) {
            bool nearer = k == 0 || distance[i] < best[i];
            best[i] = nearer ? distance[i] : best[i];
            to[i] = nearer ? (uint8_t)k : to[i];
        }
    }
}

static void count_below(const model *o, const double *restrict values, int64_t n, uint8_t *restrict to) {
    memset(to, 0, (size_t)n);
    for (int64_t k = 0; k + 1 < o->classes; k++) {
        double limit = o->number[k];
        for (int64_t i = 0; i < n; i++) to[i] = (uint8_t)(to[i] + (values[i] > limit));
    }
}

static fv_status run_apply(fv_run *r, fv_error *error) {
    const fv_block *in = r->in[0], *out = r->out;
    int64_t         n = out->region.size[out->region.ndim - 1];
    const model    *o;
    apply_memory    m;
    size_t          size;
    fv_rows         rows;
    FV_TRY(r->results->get(r->results, 0, (const void **)&o, &size, error));
    lay_out(&r->need, r->scratch, &m);
    for (fv__rows_begin(&rows, &out->region); fv__rows_next(&rows);) {
        uint8_t *to = fv__block_at(out, rows.position);
        if (o->vectors) {
            load_channels(in, channel_axis(r->need.in[0]), rows.position, n, &m);
            nearest(o, &m, n, to);
        } else {
            fv__kernels_current()->convert(m.values, FV_FLOAT64, fv__block_at(in, rows.position), in->dtype, n);
            count_below(o, m.values, n, to);
        }
    }
    return FV_OK;
}

static const fv_pass passes[] = {
    { .name = "survey",
      .need = need_sample,
      .scratch = scratch_sample,
      .run = run_sample,
      .bound = bound_sample,
      .combine = combine_sample,
      .finish = finish_sample },
    { .name = "bins",
      .need = need_bins,
      .scratch = scratch_bins,
      .run = run_bins,
      .bound = bound_bins,
      .combine = fv__tally_combine,
      .finish = finish_bins },
    { .name = "apply", .need = need_apply, .scratch = scratch_apply, .run = run_apply },
    FV_PASS_END,
};

static double cost(const fv_need *n) {
    double classes = (double)((const kmeans *)n->params)->classes;
    return is_vectors(n) ? classes * (double)channels_of(n->in[0]) * 0.5 : 1 + classes * 0.3;
}

/* A table: another operator. */
static const char *becomes(const void *params_) { return params_ ? NULL : "kmeans_table"; }

const fv_op FV_OP(kmeans) = {
    .name = "kmeans",
    .family = "intensity",
    .brief = "sort voxels into classes of similar grey values or colours",
    .version = 1,
    .also = "KMeans, imsegkmeans, kmeans2, cluster",
    .doc =
        "Gives the number of its class to each voxel (uint8), 0 for the darkest. Grey values: the classes with the least sum of "
        "squared distances from their means. Integers are counted value by value and floating-point images in 65536 bins, and "
        "the best classes are found exactly: there is no seed that matters. With an axis c, voxels are compared by all their "
        "channels: as sklearn.cluster.KMeans, from starts that seed chooses; of an image with more than 65536 voxels, the "
        "means of the classes are those of that many voxels that seed chooses. Nan and infinity are refused. "
        "Of a table, it puts rows into classes.",
    .citation = "H. Wang, M. Song, Ckmeans.1d.dp, R Journal 3, 2011; D. Arthur, S. Vassilvitskii, k-means++, SODA 2007",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(kmeans),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .becomes = becomes,
    .passes = passes,
    .cost = cost,
    .example = "a = gaussian(phantom(\"cells\", [200, 200]), 1)\n"
               "kmeans(a, 3) |> colorize(map = \"viridis\", high = 2) |> write(\"classes.png\")",
    .see = "kmeans_table multi_otsu otsu watershed label",
};
