/* bias_lattice: the control points of the smooth field by which the grey values of an image are multiplied, as N4 finds it.
 *
 * One round: the histogram of the logarithms is sharpened; a smooth field is fitted to what has to be taken off each voxel for
 * it, and added to the field so far. Every sum is over the voxels in their order, in a fixed number of lanes.
 */
#include "base/math.h"
#include "op/axes.h"
#include "op/kernels.h"
#include "op/window.h"
#include "ops/intensity/bias_spline.h"
#include "ops/intensity/sharpen_histogram.h"

enum { IMAGE, MASK };
enum { LANES = 8 };

static const fv_param params[] = {
    FV_BIAS_PARAMS,
    FV_PARAM(fv__bias, shape, .def = "", .min = 1, .max = 1e15, .unit = "px",
             .doc =
                 "of the whole image along its spatial axes, of which image holds each shrink-th voxel, the first of them number "
                 "shrink / 2 counted from 0; left out: image is the whole one"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image with an uneven brightness; small: all of it is in memory" },
    { "mask", FV_KIND_IMAGE, .doc = "where it is above one half, voxels above 0 count; it may lack axes such as t" },
    FV_INPUT_END,
};

/* ---------------------------------------------------------------- types */

static fv_status check_mask(const fv_image_type *image, const fv_image_type *mask, fv_error *error) {
    int axis[FV_MAX_DIMS], n = fv_image_type_spatial(image, axis);
    if (fv_dtype_is_complex(mask->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "mask is %s: it must be bool or real", fv_dtype_name(mask->dtype));
    for (int k = 0; k < n; k++)
        if (fv__axis_find(mask, image->axis[axis[k]]) < 0)
            return fv_fail(error, FV_ERROR_USAGE, "mask has no axis %s, as image does", image->axis[axis[k]]);
    for (int d = 0; d < mask->ndim; d++) {
        int own = fv__axis_find(image, mask->axis[d]);
        if (own < 0) return fv_fail(error, FV_ERROR_USAGE, "mask has an axis %s, which image has not", mask->axis[d]);
        if (image->shape[own] != mask->shape[d])
            return fv_fail(error, FV_ERROR_USAGE, "mask has %lld voxels along %s, and image has %lld: they must be equal",
                           (long long)mask->shape[d], mask->axis[d], (long long)image->shape[own]);
    }
    return FV_OK;
}

/* That the image has the voxels that shrink leaves of the whole. */
static fv_status check_shape(fv__bias *p, const fv_image_type *image, const int *axis, int n, fv_error *error) {
    if (!p->shape.count) return FV_OK;
    FV_TRY(fv__numbers_spread(&p->shape, n, "shape", error));
    FV_TRY(fv__numbers_spread(&p->shrink, n, "shrink", error));
    for (int k = 0; k < n; k++) {
        int64_t left = fv__bias_left((int64_t)p->shape.value[k], (int64_t)p->shrink.value[k]);
        if (left != image->shape[axis[k]])
            return fv_fail(error, FV_ERROR_USAGE, "shape = %.0f and shrink = %.0f leave %lld voxels along %s; image has %lld",
                           p->shape.value[k], p->shrink.value[k], (long long)left, image->axis[axis[k]],
                           (long long)image->shape[axis[k]]);
    }
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv__bias            *p = i->params;
    const fv_image_type *image = &i->in[IMAGE]->image;
    fv_image_type       *out = &i->out->image;
    int                  axis[FV_MAX_DIMS], n;
    int64_t              shape[FV_MAX_DIMS];
    FV_TRY(fv__window_real(i->in[IMAGE], error));
    FV_TRY(fv__window_axes(i->in[IMAGE], axis, &n, error));
    if (axis[n - 1] != image->ndim - 1)
        return fv_fail(error, FV_ERROR_USAGE, "image has an axis %s behind its spatial axes: transpose brings it to the front",
                       image->axis[image->ndim - 1]);
    FV_TRY(check_shape(p, image, axis, n, error));
    FV_TRY(check_mask(image, &i->in[MASK]->image, error));
    if (p->iterations.count > FV__BIAS_LEVELS || fv__bias_points(p, p->iterations.count - 1) > 1000)
        return fv_fail(error, FV_ERROR_USAGE, "iterations has %d levels, too many for %lld control points at the first",
                       p->iterations.count, (long long)p->points);
    fv__bias_shape(p, image, shape);
    fv_image_type_init(out, FV_FLOAT64, image->ndim, shape);
    memcpy(out->axis, image->axis, sizeof image->axis);
    return FV_OK;
}

/* All of the spatial axes, at the places of the others that the lattice is wanted for. */
static void whole_of(const fv_need *n, int input, fv_region *in) {
    const fv_image_type *image = &n->in[input]->image;
    int                  axis[FV_MAX_DIMS], count = fv_image_type_spatial(image, axis);
    *in = fv__region_whole(image);
    for (int d = 0, k = 0; d < image->ndim; d++) {
        if (k < count && axis[k] == d) {
            k++;
            continue;
        }
        int own = fv__axis_find(&n->out->image, image->axis[d]);
        in->start[d] = n->region.start[own];
        in->size[d] = n->region.size[own];
    }
}

static void need(const fv_need *n, fv_region *in) {
    for (int k = IMAGE; k <= MASK; k++) whole_of(n, k, &in[k]);
}

/* ---------------------------------------------------------------- memory */

typedef struct {
    const fv__bias *p;
    int64_t         shape[3], voxels, inside_count; /* along z, y, x */
    int64_t         step[3], length[3];             /* of these voxels in the whole image */
    int64_t         most[3];                        /* control points at the last level */
    fv__bias_axis   axis[3];
    float          *log, *bias, *residual, *inside; /* inside: 1 where a voxel counts, 0 elsewhere */
    double         *row, *line, *plane;
    double         *lattice, *update, *share, *room;
    double         *spread[3], *square[3]; /* by axis, as its weights: what of a value goes to each point, and squared weights */
    fv__sharpen     sharpen;
} state;

static size_t lay_out(const fv_need *n, void *scratch, state *s) {
    fv_scratch           pieces = { scratch, 0 };
    const fv_image_type *image = &n->in[IMAGE]->image;
    int                  axis[FV_MAX_DIMS], count = fv_image_type_spatial(image, axis), missing = 3 - count;
    s->p = n->params;
    s->voxels = 1;
    for (int k = 0; k < 3; k++) {
        s->shape[k] = k < missing ? 1 : image->shape[axis[k - missing]];
        s->step[k] = k < missing || !s->p->shape.count ? 1 : (int64_t)s->p->shrink.value[k - missing];
        s->length[k] = k < missing || !s->p->shape.count ? s->shape[k] : (int64_t)s->p->shape.value[k - missing];
        s->most[k] = k < missing ? 1 : fv__bias_points(s->p, s->p->iterations.count - 1);
        s->voxels *= s->shape[k];
        fv__bias_axis_take(&s->axis[k], s->shape[k], &pieces);
        s->spread[k] = fv__scratch_take(&pieces, s->shape[k] * FV__BIAS_WIDTH * 8);
        s->square[k] = fv__scratch_take(&pieces, s->shape[k] * FV__BIAS_WIDTH * 8);
    }
    float **voxel[] = { &s->log, &s->bias, &s->residual, &s->inside };
    for (int k = 0; k < FV_COUNT(voxel); k++) *voxel[k] = fv__scratch_take(&pieces, s->voxels * (int64_t)sizeof(float));
    s->row = fv__scratch_take(&pieces, s->shape[2] * 8);
    s->line = fv__scratch_take(&pieces, s->most[2] * 8);
    s->plane = fv__scratch_take(&pieces, s->most[1] * s->most[2] * 8);
    double **lattice[] = { &s->lattice, &s->update, &s->share, &s->room };
    for (int k = 0; k < FV_COUNT(lattice); k++) *lattice[k] = fv__scratch_take(&pieces, s->most[0] * s->most[1] * s->most[2] * 8);
    fv__sharpen_lay_out(&s->sharpen, s->p->bins, &pieces);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    state s;
    return lay_out(n, NULL, &s);
}

/* ---------------------------------------------------------------- reading */

/* One place of the axes that are not spatial, of a region that has others. */
static fv_region part_of(const fv_image_type *image, const fv_region *all, const int64_t *place) {
    fv_region part = *all;
    int       axis[FV_MAX_DIMS], count = fv_image_type_spatial(image, axis);
    for (int d = 0, k = 0; d < image->ndim; d++) {
        if (k < count && axis[k] == d) {
            k++;
            continue;
        }
        part.start[d] = place[d];
        part.size[d] = 1;
    }
    return part;
}

/* Where the mask counts, along a row of the image. */
static void load_mask(const fv_run *r, const int64_t *position, int64_t n, float *inside) {
    const fv_image_type *image = &r->need.in[IMAGE]->image, *mask = &r->need.in[MASK]->image;
    const fv_block      *block = r->in[MASK];
    int64_t              at[FV_MAX_DIMS] = { 0 }, step = block->stride[fv__axis_find(mask, image->axis[image->ndim - 1])];
    size_t               size = fv_dtype_size(block->dtype);
    for (int d = 0; d < mask->ndim; d++) at[d] = position[fv__axis_find(image, mask->axis[d])];
    const char *from = fv__block_at(block, at);
    if (step == 1) fv__kernels_current()->convert(inside, FV_FLOAT32, from, block->dtype, n);
    for (int64_t i = 0; i < n && step != 1; i++)
        fv__kernels_current()->convert(&inside[i], FV_FLOAT32, from + (size_t)(i * step) * size, block->dtype, 1);
}

static void load(state *s, const fv_run *r, const int64_t *place) {
    const fv_block *in = r->in[IMAGE];
    fv_region       part = part_of(&r->need.in[IMAGE]->image, &in->region, place);
    int64_t         n = s->shape[2], done = 0;
    fv_rows         rows;
    s->inside_count = 0;
    for (fv__rows_begin(&rows, &part); fv__rows_next(&rows); done += n) {
        float *inside = s->inside + done, *log = s->log + done;
        load_mask(r, rows.position, n, inside);
        fv__kernels_current()->convert(s->row, FV_FLOAT64, fv__block_at(in, rows.position), in->dtype, n);
        for (int64_t i = 0; i < n; i++) {
            bool counts = inside[i] > 0.5f && s->row[i] > 0 && s->row[i] < INFINITY;
            s->row[i] = counts ? s->row[i] : 1;
            inside[i] = counts;
            s->inside_count += counts;
        }
        for (int64_t i = 0; i < n; i++) log[i] = (float)fv__ln(s->row[i]);
    }
}

/* ---------------------------------------------------------------- one round */

static void range_of(const state *s, double *low, double *high) {
    float least[LANES], most[LANES];
    for (int l = 0; l < LANES; l++) least[l] = INFINITY, most[l] = -INFINITY;
    for (int64_t i = 0; i < s->voxels; i++) {
        float value = s->log[i] - s->bias[i];
        int   l = i % LANES;
        if (s->inside[i] == 0) continue;
        least[l] = FV_MIN(least[l], value);
        most[l] = FV_MAX(most[l], value);
    }
    for (int l = 1; l < LANES; l++) {
        least[0] = FV_MIN(least[0], least[l]);
        most[0] = FV_MAX(most[0], most[l]);
    }
    *low = (double)least[0];
    *high = (double)most[0];
}

/* What has to be taken off each voxel. */
static void find_residual(state *s, double low, double step) {
    double *counts = s->sharpen.counts, *expected = s->sharpen.expected;
    double  per = 1 / step, last = (double)(s->p->bins - 1);
    memset(counts, 0, (size_t)s->p->bins * sizeof *counts);
    for (int64_t i = 0; i < s->voxels; i++) {
        if (s->inside[i] == 0) continue;
        double  at = FV_MIN(((double)(s->log[i] - s->bias[i]) - low) * per, last), part = at - floor(at);
        int64_t bin = (int64_t)at;
        counts[bin] += 1 - part;
        if (part > 0) counts[bin + 1] += part;
    }
    fv__sharpen_run(&s->sharpen, low, step, s->p->width, s->p->noise);
    for (int64_t i = 0; i < s->voxels; i++) {
        double  value = (double)(s->log[i] - s->bias[i]), at = FV_MIN(FV_MAX((value - low) * per, 0), last);
        int64_t bin = FV_MIN((int64_t)at, s->p->bins - 2);
        double  part = at - (double)bin, sharp = expected[bin] + (expected[bin + 1] - expected[bin]) * part;
        s->residual[i] = s->inside[i] * (float)(value - sharp);
    }
}

/* Sums over a row of what goes to each control point. */
static void gather_row(const fv__bias_axis *x, const double *weight, const float *values, double *line) {
    int64_t n = x->n;
    for (int64_t i = 0, end; i < n; i = end) {
        double *c = line + x->first[i];
        for (end = i + 1; end < n && x->first[end] == x->first[i];) end++;
        for (int j = 0; j < x->width; j++) {
            const double *w = weight + j * n;
            double        lane[LANES] = { 0 };
            int64_t       k = i;
            for (; k + LANES <= end; k += LANES)
                for (int l = 0; l < LANES; l++) lane[l] += w[k + l] * (double)values[k + l];
            for (; k < end; k++) lane[0] += w[k] * (double)values[k];
            c[j] += ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
        }
    }
}

/* Adds a row of n numbers to all those that the voxel depends on. */
static void spread(const fv__bias_axis *axis, const double *weight, int64_t voxel, const double *from, int64_t n, double *to) {
    for (int j = 0; j < axis->width; j++) {
        double *row = to + (axis->first[voxel] + j) * n, by = weight[j * axis->n + voxel];
        for (int64_t i = 0; i < n; i++) row[i] += by * from[i];
    }
}

/* Sums over all voxels, by control point, of values times the product of the weights along the axes. */
static void gather(state *s, double *const weight[3], const float *values, double *to) {
    const fv__bias_axis *a = s->axis;
    int64_t              nline = a[2].points, nplane = a[1].points * nline;
    memset(to, 0, (size_t)(a[0].points * nplane) * sizeof *to);
    for (int64_t z = 0; z < a[0].n; z++) {
        memset(s->plane, 0, (size_t)nplane * sizeof *s->plane);
        for (int64_t y = 0; y < a[1].n; y++, values += a[2].n) {
            memset(s->line, 0, (size_t)nline * sizeof *s->line);
            gather_row(&a[2], weight[2], values, s->line);
            spread(&a[1], weight[1], y, s->line, nline, s->plane);
        }
        spread(&a[0], weight[0], z, s->plane, nplane, to);
    }
}

/* The field by its control points; gives how much it has changed: the coefficient of variation of the quotient. */
static double update_bias(state *s) {
    double  sum[LANES] = { 0 }, squares[LANES] = { 0 }, n = (double)s->inside_count;
    int64_t done = 0;
    for (int64_t z = 0; z < s->shape[0]; z++) {
        fv__bias_plane(s->axis, s->lattice, z, s->plane);
        for (int64_t y = 0; y < s->shape[1]; y++, done += s->shape[2]) {
            float *bias = s->bias + done;
            fv__bias_line(s->axis, s->plane, y, s->line);
            fv__bias_row(s->axis, s->line, s->row);
            for (int64_t i = 0; i < s->shape[2]; i++) {
                double change = (double)s->inside[done + i] * (fv__exp(s->row[i] - (double)bias[i]) - 1);
                bias[i] = (float)s->row[i];
                s->row[i] = change;
            }
            for (int64_t i = 0; i < s->shape[2]; i++) {
                sum[i % LANES] += s->row[i];
                squares[i % LANES] += s->row[i] * s->row[i];
            }
        }
    }
    for (int l = 1; l < LANES; l++) {
        sum[0] += sum[l];
        squares[0] += squares[l];
    }
    double variance = (squares[0] - sum[0] * sum[0] / n) / FV_MAX(n - 1, 1);
    return sqrt(FV_MAX(variance, 0)) / (1 + sum[0] / n);
}

static int64_t lattice_size(const state *s) { return s->axis[0].points * s->axis[1].points * s->axis[2].points; }

/* Weights for the control points of a level, and what of all voxels belongs to each point (Lee, Wolberg, Shin). */
static void begin_level(state *s, int level) {
    for (int k = 0; k < 3; k++) {
        fv__bias_axis *a = &s->axis[k];
        fv__bias_axis_fill(a, fv__bias_first(s->step[k]), s->step[k], s->length[k],
                           s->most[k] == 1 ? 1 : fv__bias_points(s->p, level));
        for (int64_t i = 0; i < a->n; i++) {
            double all = 0;
            for (int j = 0; j < a->width; j++) all += a->weight[j * a->n + i] * a->weight[j * a->n + i];
            for (int j = 0; j < a->width; j++) {
                double w = a->weight[j * a->n + i];
                s->square[k][j * a->n + i] = w * w;
                s->spread[k][j * a->n + i] = w * w * w / all;
            }
        }
    }
    gather(s, s->square, s->inside, s->share);
}

static void fit(state *s) {
    memset(s->lattice, 0, (size_t)(s->most[0] * s->most[1] * s->most[2]) * sizeof *s->lattice);
    memset(s->bias, 0, (size_t)s->voxels * sizeof *s->bias);
    fv__sharpen_prepare(&s->sharpen);
    for (int level = 0; level < s->p->iterations.count; level++) {
        int64_t points[3] = { s->axis[0].points, s->axis[1].points, s->axis[2].points };
        if (level) fv__bias_refine(points, s->lattice, s->room);
        begin_level(s, level);
        for (int64_t round = 0; round < (int64_t)s->p->iterations.value[level]; round++) {
            double low, high;
            range_of(s, &low, &high);
            if (!(high - low > 1e-9)) break; /* all is even already */
            find_residual(s, low, (high - low) / (double)(s->p->bins - 1));
            gather(s, s->spread, s->residual, s->update);
            for (int64_t i = 0; i < lattice_size(s); i++)
                if (s->share[i] > 0) s->lattice[i] += s->update[i] / s->share[i];
            if (update_bias(s) < s->p->tolerance) break;
        }
    }
}

/* ---------------------------------------------------------------- the operator */

/* The part of the lattice of a place that a block holds. */
static void store(const state *s, const fv_image_type *type, const fv_block *out, const int64_t *place) {
    fv_region part = part_of(type, &out->region, place);
    int       axis[FV_MAX_DIMS], count = fv_image_type_spatial(type, axis);
    fv_rows   rows;
    for (fv__rows_begin(&rows, &part); fv__rows_next(&rows);) {
        int64_t from = 0;
        for (int k = 0; k < count; k++) from = from * s->axis[3 - count + k].points + rows.position[axis[k]];
        memcpy(fv__block_at(out, rows.position), s->lattice + from, (size_t)part.size[part.ndim - 1] * sizeof *s->lattice);
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_image_type *type = &r->need.out->image;
    fv_region            places = r->out->region;
    int                  axis[FV_MAX_DIMS], count = fv_image_type_spatial(type, axis);
    state                s = { 0 };
    fv_rows              walk;
    lay_out(&r->need, r->scratch, &s);
    for (int k = 0; k < count; k++) places.size[axis[k]] = 1;
    for (fv__rows_begin(&walk, &places); fv__rows_next(&walk);) {
        load(&s, r, walk.position);
        if (s.inside_count < 2)
            return fv_fail(error, FV_ERROR_INPUT, "no voxels of image above 0 lie in mask: there is nothing to fit a field to");
        fit(&s);
        store(&s, type, r->out, walk.position);
    }
    return FV_OK;
}

/* Each lattice whole, and by itself. */
static void slab(const fv_need *n, int64_t *chunk) {
    const fv_image_type *out = &n->out->image;
    int                  axis[FV_MAX_DIMS], count = fv_image_type_spatial(out, axis);
    for (int d = 0; d < out->ndim; d++) chunk[d] = 1;
    for (int k = 0; k < count; k++) chunk[axis[k]] = out->shape[axis[k]];
}

static double cost(const fv_need *n) {
    const fv__bias *p = n->params;
    double          rounds = 0, points = 1;
    state           s;
    lay_out(n, NULL, &s);
    for (int k = 0; k < p->iterations.count; k++) rounds += p->iterations.value[k];
    for (int k = 0; k < 3; k++) points *= (double)s.most[k];
    return (double)s.voxels * (30 + rounds * 5) / points; /* few levels need all of their rounds */
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(bias_lattice) = {
    .name = "bias_lattice",
    .family = "intensity",
    .brief = "the control points of the uneven brightness of an image",
    .version = 1,
    .doc = "What bias_field computes on a smaller image: the logarithm of the field is a cubic B-spline, and these are the "
           "points that control it. They lie over the whole image at even distances; the first and last of an axis lie one "
           "distance outside. Give the lattice to "
           "bias_field to see the field of one image on another: bias_field(b, lattice = bias_lattice(a, mask)).",
    .citation = "Tustison et al., N4ITK: improved N3 bias correction, IEEE TMI 29, 2010; Sled, Zijdenbos, Evans, A "
                "nonparametric method for automatic correction of intensity nonuniformity in MRI data, IEEE TMI 17, 1998; Lee, "
                "Wolberg, Shin, Scattered data interpolation with multilevel B-splines, IEEE TVCG 3, 1997",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(fv__bias),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .example = "head = phantom(\"t1\", [32, 40, 40])\n"
               "bias_lattice(head, head > otsu(head)) |> write(\"lattice.npy\")",
    .see = "bias_field correct_bias",
};
