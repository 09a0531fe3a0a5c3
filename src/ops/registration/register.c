/* register: the transform that brings one image upon another. */
#include "op/axes.h"
#include "op/control_grid.h"
#include "op/physical.h"
#include "op/place.h"
#include "op/random.h"
#include "ops/registration/fitting.h"
#include "ops/registration/phase.h"
#include "ops/registration/voxels.h"
#include <stdio.h>

typedef struct {
    fv_choice  kind, metric, init;
    int64_t    iterations, samples, bins;
    double     smoothing, grid, bending;
    fv_numbers shrink;
    int64_t    level; /* given by the operator's own expansion: one resolution, and no other */
} registering;

enum { MOVING, FIXED, START };
enum { AUTO, PHASE, FIRST_FIT }; /* metrics; those of the fit follow */
enum { CENTER, WORLD, MASS };
enum { BSPLINE = FV_FIT_AFFINE + 1 }; /* the kind after those of the linear fit */
enum { ENOUGH = 1 << 24, LEAST = 16, LEVELS = 4, SAMPLES = 500000 };

static const fv_param params[] = {
    FV_PARAM(registering, kind, .def = "rigid", .choices = "shift|rigid|similarity|affine|bspline",
             .doc = "what the transform may do: move; turn too; scale too; stretch and shear as well; or bend, by B-splines"),
    FV_PARAM(registering, metric, .def = "auto", .choices = "auto|phase|mean_squares|correlation|mutual_information",
             .doc =
                 "auto: phase for a shift between equal grids, else correlation; phase: the spectra of both, for a shift of any "
                 "size (axes of 512 voxels and more at half resolution, unless both show only fine texture; strong noise can "
                 "hide that "
                 "this is so); mean_squares: both images have the same grey values; correlation: values of one are a line in "
                 "those of the "
                 "other; mutual_information (Mattes): any relation, as between T1 and T2, or two stains"),
    FV_PARAM(registering, init, .def = "center", .choices = "center|world|mass",
             .doc =
                 "where it begins: the middles of both grids upon each other, the images where they lie in the world, or their "
                 "centres of mass upon each other; not used with start"),
    FV_PARAM(registering, iterations, .def = "40", .min = 1, .max = 10000, .doc = "most steps at each resolution"),
    FV_PARAM(
        registering, shrink, .def = "", .min = 1, .max = 1024,
        .doc = "resolutions, coarsest first: [8, 4, 2, 1] bins voxels of the finest spacing 8 times, 4 times, ... Left out: from "
               "the size of fixed; the finest has at most 16 million voxels"),
    FV_PARAM(registering, smoothing, .def = "0.5", .min = 0, .max = 100, .unit = "px",
             .doc = "sigma of a Gaussian, in voxels of each resolution"),
    FV_PARAM(registering, samples, .def = "", .min = 100, .max = 1e9,
             .doc = "most voxels of fixed that are compared: a random choice of them, always the same; left out: 500000, and 4 "
                    "million where the image bends"),
    FV_PARAM(registering, bins, .def = "32", .min = 8, .max = FV_FIT_BINS, .doc = "of mutual_information, for each image"),
    FV_PARAM(registering, grid, .def = "", .min = 0, .above = true,
             .doc = "of bspline: distance of control points, in units of the spacing; left out: an eighth of the longest side"),
    FV_PARAM(
        registering, bending, .def = "0.01", .min = 0, .max = 1e6,
        .doc =
            "of bspline: weight of the bending energy, times 30 for mutual_information; the more, the smoother the displacement"),
    FV_PARAM(registering, level, .def = "0", .min = 0, .max = 1, .own = true, .doc = "1: this resolution only"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "moving", FV_KIND_IMAGE, .doc = "image to bring upon the other; of a movie each time by itself" },
    { "fixed", FV_KIND_IMAGE, .doc = "image that stays where it is" },
    { "start", FV_KIND_IMAGE, .optional = true, .doc = "a transform to begin with: linear, or for bspline also B-splines" },
    FV_INPUT_END,
};

/* ---------------------------------------------------------------- types */

static fv_status check_start(const registering *p, const fv_type *const *in, int n, fv_error *error) {
    fv_transform t;
    int          axis[FV_MAX_DIMS];
    if (in[START]->kind != FV_KIND_IMAGE) return FV_OK;
    if (p->kind.index == BSPLINE && fv__control_is(&in[START]->image)) {
        fv_control_grid grid;
        FV_TRY(fv__control_find(&in[START]->image, "start", &grid, error));
        t = (fv_transform){ .n = grid.n, .before = grid.before };
    } else
        FV_TRY(fv__transform_find(&in[START]->image, "start", &t, error));
    if (t.n != n) return fv_fail(error, FV_ERROR_USAGE, "start must be a transform of %d dimensions", n);
    return fv__transform_match(&in[START]->image, &t, &in[MOVING]->image, "moving", axis, error);
}

/* Whether a shift by whole voxels brings one grid upon the other. */
static bool equal_grids(const fv_image_type *moving, const fv_image_type *fixed) {
    fv_physical a, b;
    if (fv__physical_find(moving, "moving", &a, NULL) != FV_OK || fv__physical_find(fixed, "fixed", &b, NULL) != FV_OK)
        return false;
    for (int c = 0; c < a.n; c++) {
        if (moving->shape[a.axis[c]] != fixed->shape[b.axis[c]]) return false;
        for (int r = 0; r < 3; r++)
            if (fabs(a.space[r * 4 + c] - b.space[r * 4 + c]) * (double)fixed->shape[b.axis[c]] > 0.01 * fabs(b.space[c * 5]))
                return false;
    }
    return a.n == b.n;
}

static bool by_phase(const registering *p, const fv_type *const *in) {
    return p->metric.index == PHASE ||
           (p->metric.index == AUTO && p->kind.index == FV_FIT_SHIFT && equal_grids(&in[MOVING]->image, &in[FIXED]->image));
}

static fv_status check(const registering *p, const fv_type *const *in, fv_error *error) {
    const fv_image_type *fixed = &in[FIXED]->image;
    fv_physical          place;
    for (int k = MOVING; k <= FIXED; k++)
        if (fv_dtype_is_complex(in[k]->image.dtype))
            return fv_fail(error, FV_ERROR_USAGE, "%s is %s: it must be real", inputs[k].name, fv_dtype_name(in[k]->image.dtype));
    FV_TRY(fv__physical_compare(&in[MOVING]->image, "moving", fixed, "fixed", error));
    FV_TRY(fv__physical_find(fixed, "fixed", &place, error));
    for (int d = 0; d < fixed->ndim && fixed->ndim != place.n; d++) {
        bool spatial = false;
        for (int c = 0; c < place.n; c++) spatial = spatial || place.axis[c] == d;
        if (!spatial)
            return fv_fail(error, FV_ERROR_USAGE,
                           "fixed has an axis %s: take one image of it, as fixed[0], or project(fixed, \"%s\", \"mean\")",
                           fixed->axis[d], fixed->axis[d]);
    }
    if (in[MOVING]->image.ndim - place.n > FV_MAX_DIMS - 2)
        return fv_fail(error, FV_ERROR_USAGE, "moving has too many axes that are not spatial");
    for (int k = 1; k < p->shrink.count; k++)
        if (p->shrink.value[k] > p->shrink.value[k - 1])
            return fv_fail(error, FV_ERROR_USAGE, "shrink = [..., %g, %g, ...]: the coarsest comes first", p->shrink.value[k - 1],
                           p->shrink.value[k]);
    if (p->metric.index == PHASE && p->kind.index != FV_FIT_SHIFT)
        return fv_fail(error, FV_ERROR_USAGE, "metric = \"phase\" finds shifts only: give kind = \"shift\", or another metric");
    if (p->metric.index == PHASE && !equal_grids(&in[MOVING]->image, fixed))
        return fv_fail(error, FV_ERROR_USAGE,
                       "metric = \"phase\" needs images of the same shape, spacing and orientation: resample(moving, fixed) "
                       "first, or use metric = \"correlation\"");
    if (p->grid > 0 && p->kind.index != BSPLINE)
        return fv_fail(error, FV_ERROR_USAGE, "grid is that of B-splines: give kind = \"bspline\" with it");
    return check_start(p, in, place.n, error);
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_physical place;
    FV_TRY(check(i->params, i->in, error));
    FV_TRY(fv__physical_find(&i->in[FIXED]->image, "fixed", &place, error));
    fv__transform_linear(&i->in[MOVING]->image, place.n, &i->out->image);
    return FV_OK;
}

/* ---------------------------------------------------------------- resolutions */

/* Resolutions, coarsest first: powers of two until an axis would be short. */
static int resolutions(const registering *p, const fv_image_type *fixed, double shrink[FV_MAX_NUMBERS]) {
    int     axis[FV_MAX_DIMS], n = fv_image_type_spatial(fixed, axis), count = 0;
    int64_t factor[FV_MAX_DIMS];
    double  finest = 1, coarsest;
    if (p->shrink.count) {
        memcpy(shrink, p->shrink.value, sizeof p->shrink.value);
        return p->shrink.count;
    }
    for (;; finest *= 2) {
        double voxels = 1;
        fv__place_factors(fixed, finest * fv__place_finest(fixed), factor);
        for (int k = 0; k < n; k++) voxels *= (double)(fixed->shape[axis[k]] / factor[k]);
        if (voxels <= ENOUGH || finest >= 1024) break;
    }
    for (coarsest = finest; coarsest < finest * (1 << (LEVELS - 1)); coarsest *= 2) {
        bool small = false;
        fv__place_factors(fixed, 2 * coarsest * fv__place_finest(fixed), factor);
        for (int k = 0; k < n; k++) small = small || (factor[k] > 1 && fixed->shape[axis[k]] / factor[k] < LEAST);
        if (small) break;
    }
    for (double s = coarsest; s >= finest; s /= 2) shrink[count++] = s;
    return count;
}

static void say_image(const char *name, const fv_image_type *type, double spacing, double smoothing, fv_bytes *text) {
    int     axis[FV_MAX_DIMS], n = fv_image_type_spatial(type, axis);
    int64_t factor[FV_MAX_DIMS];
    bool    whole = true;
    fv__place_factors(type, spacing, factor);
    for (int k = 0; k < n; k++) whole = whole && factor[k] == 1;
    fv__bytes_printf(text, "%s%s%s", smoothing > 0 ? "gaussian(" : "", whole ? "" : "bin(", name);
    for (int k = 0; k < n && !whole; k++) fv__bytes_printf(text, "%s%lld", k ? ", " : ", [", (long long)factor[k]);
    fv__bytes_printf(text, "%s%s", whole ? "" : "])", smoothing > 0 ? ", smoothing)" : "");
}

/* The longest side in physical space. */
static double longest_side(const fv_image_type *type) {
    int    axis[FV_MAX_DIMS], n = fv_image_type_spatial(type, axis);
    double longest = 0;
    for (int k = 0; k < n; k++) longest = FV_MAX(longest, fabs(type->spacing[axis[k]]) * (double)type->shape[axis[k]]);
    return longest;
}

/* B-splines: from coarse images and grids to fine ones, after an affine transform if nothing else is there to begin with. */
static void unroll_bspline(const fv_infer *i, fv_bytes *text) {
    static const char *const metrics[] = { "correlation", "", "mean_squares", "correlation", "mutual_information" };
    const registering       *p = i->params;
    const fv_image_type     *moving = &i->in[MOVING]->image, *fixed = &i->in[FIXED]->image;
    const char              *samples = p->samples ? "samples = samples, " : "";
    double                   shrink[FV_MAX_NUMBERS], finest = fv__place_finest(fixed), grid = p->grid;
    int                      count = resolutions(p, fixed, shrink);
    if (grid <= 0) grid = longest_side(fixed) / 8;
    if (i->in[START]->kind != FV_KIND_IMAGE)
        fv__bytes_printf(text,
                         "start = register(moving, fixed, kind = \"affine\", metric = metric, init = init, iterations = "
                         "iterations, %s%ssmoothing = smoothing, bins = bins)\n",
                         p->shrink.count ? "shrink = shrink, " : "", samples);
    for (int k = 0; k < count; k++) {
        fv__bytes_printf(text, "at%d = register_bspline(", k);
        say_image("moving", moving, shrink[k] * finest, p->smoothing, text);
        fv__bytes_printf(text, ", ");
        say_image("fixed", fixed, shrink[k] * finest, p->smoothing, text);
        if (k) fv__bytes_printf(text, ", at%d", k - 1);
        fv__bytes_printf(text, "%s, grid = %.17g, metric = \"%s\", iterations = iterations, bending = bending, %sbins = bins)\n",
                         k ? "" : ", start", grid * FV_MIN(1 << (count - 1 - k), 4), metrics[p->metric.index], samples);
    }
    fv__bytes_printf(text, "at%d\n", count - 1);
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const registering   *p = i->params;
    const fv_image_type *moving = &i->in[MOVING]->image, *fixed = &i->in[FIXED]->image;
    double               shrink[FV_MAX_NUMBERS], finest = fv__place_finest(fixed);
    if (p->level) return FV_OK;
    FV_TRY(check(p, i->in, error));
    if (p->kind.index == BSPLINE) {
        unroll_bspline(i, text);
        return FV_OK;
    }
    if (by_phase(p, i->in)) return FV_OK;
    int count = resolutions(p, fixed, shrink);
    for (int k = 0; k < count; k++) {
        fv__bytes_printf(text, "at%d = register(", k);
        say_image("moving", moving, shrink[k] * finest, p->smoothing, text);
        fv__bytes_printf(text, ", ");
        say_image("fixed", fixed, shrink[k] * finest, p->smoothing, text);
        if (k) fv__bytes_printf(text, ", at%d", k - 1);
        if (!k && i->in[START]->kind == FV_KIND_IMAGE) fv__bytes_printf(text, ", start");
        fv__bytes_printf(text,
                         ", kind = kind, metric = metric, init = init, iterations = iterations, smoothing = smoothing, "
                         "%sbins = bins, level = 1)\n",
                         p->samples ? "samples = samples, " : "");
    }
    fv__bytes_printf(text, "at%d\n", count - 1);
    return FV_OK;
}

/* ---------------------------------------------------------------- reading the images */

static void need(const fv_need *n, fv_region *in) {
    for (int k = MOVING; k <= START; k++) {
        in[k] = (fv_region){ 0 };
        if (n->in[k]->kind == FV_KIND_IMAGE) fv__voxels_part(n, k, n->out->image.ndim - 2, &in[k]);
    }
}

typedef struct {
    bool        by_phase; /* which of the two is in use */
    fv_phase    phase;
    fv_fit      fit;
    fv_physical moving, fixed;
    float      *row;
    int64_t     voxels; /* of fixed */
} state;

static size_t lay_out(const fv_need *n, void *scratch, state *s) {
    const registering *p = n->params;
    fv_scratch         pieces = { scratch, 0 };
    fv__physical_find(&n->in[MOVING]->image, "", &s->moving, NULL);
    fv__physical_find(&n->in[FIXED]->image, "", &s->fixed, NULL);
    s->voxels = fv__voxels_count(&n->in[FIXED]->image, &s->fixed);
    s->fit = (fv_fit){ .n = s->fixed.n,
                       .kind = p->kind.index,
                       .metric = p->metric.index < FIRST_FIT ? FV_FIT_CORRELATION : p->metric.index - FIRST_FIT,
                       .bins = (int)p->bins,
                       .iterations = (int)p->iterations,
                       .room = FV_MIN(s->voxels, p->samples ? p->samples : SAMPLES) };
    int64_t longest = 0;
    for (int k = MOVING; k <= FIXED; k++) longest = FV_MAX(longest, n->in[k]->image.shape[n->in[k]->image.ndim - 1]);
    s->row = fv__scratch_take(&pieces, longest * (int64_t)sizeof(float));
    s->by_phase = by_phase(p, n->in);
    s->phase = (fv_phase){ .n = s->fixed.n, .size = { 1, 1, 1 } };
    for (int c = 0; c < s->fixed.n; c++) s->phase.size[c] = n->in[FIXED]->image.shape[s->fixed.axis[c]];
    if (s->by_phase)
        fv__phase_lay_out(&s->phase, &pieces);
    else
        fv__fit_lay_out(&s->fit, fv__voxels_count(&n->in[MOVING]->image, &s->moving), &pieces);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    state s;
    return lay_out(n, NULL, &s);
}

/* How voxels of the fixed image become samples. */
typedef struct {
    state           *s;
    fv_voxel_scale   by;
    fv_voxel_summary of;
    uint64_t         limit; /* a voxel is taken whose hash is below; 0: all are */
} sampling;

static void sample_row(void *context, const float *row, int64_t n, const int64_t at[3], int along) {
    const sampling *by = context;
    fv_fit         *f = &by->s->fit;
    const double   *m = by->s->fixed.space;
    for (int64_t i = 0; i < n && f->count < f->room; i++) {
        int64_t voxel[3] = { at[0], at[1], at[2] };
        if (along < 3) voxel[along] += i;
        if (by->limit && fv__place_hash(1, 0, voxel[2], voxel[1], voxel[0]) >= by->limit) continue;
        for (int c = 0; c < 3; c++)
            f->place[c][f->count] =
                (float)(((m[c * 4] * (double)voxel[0] + m[c * 4 + 1] * (double)voxel[1]) + m[c * 4 + 2] * (double)voxel[2]) +
                        m[c * 4 + 3] - f->centre[c]);
        double bin = ((double)row[i] - by->of.low) / (by->of.high - by->of.low) * f->bins;
        f->bin[f->count] = (uint8_t)FV_MIN(bin, f->bins - 1);
        f->value[f->count++] = (float)(((double)row[i] - by->by.offset) * by->by.share);
    }
}

/* ---------------------------------------------------------------- the work */

/* The physical place of a voxel that need not be whole. */
static void place_at(const double space[12], const double voxel[3], double place[3]) {
    for (int c = 0; c < 3; c++)
        place[c] = space[c * 4] * voxel[0] + space[c * 4 + 1] * voxel[1] + space[c * 4 + 2] * voxel[2] + space[c * 4 + 3];
}

static void middle_of(const fv_image_type *type, const fv_physical *place, double middle[3]) {
    double voxel[3] = { 0 };
    for (int c = 0; c < place->n; c++) voxel[c] = (double)(type->shape[place->axis[c]] - 1) / 2;
    place_at(place->space, voxel, middle);
}

/* The centre of what lies above the least value. */
static void mass_of(const fv_image_type *type, const fv_physical *place, const fv_voxel_summary *m, double mass[3]) {
    double voxel[3] = { 0 }, voxels = (double)fv__voxels_count(type, place), weight = m->sum - m->low * voxels;
    for (int c = 0; c < place->n; c++)
        voxel[c] = (m->moment[c] - m->low * voxels * (double)(type->shape[place->axis[c]] - 1) / 2) / weight;
    place_at(place->space, voxel, mass);
}

static void begin(state *s, const fv_run *r, const fv_voxel_summary *moving, const fv_voxel_summary *fixed,
                  const int64_t *before) {
    const registering *p = r->need.params;
    fv_fit            *f = &s->fit;
    double             from[3], to[3], matrix[12];
    for (int k = 0; k < 9; k++) f->matrix[k] = k % 4 == 0;
    middle_of(&r->need.in[FIXED]->image, &s->fixed, f->centre);
    memcpy(f->target, f->centre, sizeof f->target);
    if (r->in[START]) {
        fv_transform t;
        int          axis[FV_MAX_DIMS];
        int64_t      at[FV_MAX_DIMS] = { 0 };
        fv__transform_find(&r->need.in[START]->image, "start", &t, NULL);
        fv__transform_match(&r->need.in[START]->image, &t, &r->need.out->image, "moving", axis, NULL);
        for (int d = 0; d < t.before; d++) at[d] = before[axis[d]];
        fv__transform_load(r->in[START], &t, at, matrix);
        for (int k = 0; k < 9; k++) f->matrix[k] = matrix[k / 3 * 4 + k % 3];
        place_at(matrix, f->centre, f->target);
        return;
    }
    if (p->init.index == WORLD) return;
    if (p->init.index == CENTER) {
        memcpy(from, f->centre, sizeof from);
        middle_of(&r->need.in[MOVING]->image, &s->moving, to);
    } else {
        mass_of(&r->need.in[FIXED]->image, &s->fixed, fixed, from);
        mass_of(&r->need.in[MOVING]->image, &s->moving, moving, to);
    }
    for (int c = 0; c < 3; c++) f->target[c] += to[c] - from[c];
}

static bool flat(const double m[9]) {
    double whole[12] = { m[0], m[1], m[2], 0, m[3], m[4], m[5], 0, m[6], m[7], m[8], 0 };
    return !fv__matrix_invert(whole, whole);
}

static double edge_of(const fv_physical *place) {
    double least = INFINITY;
    for (int c = 0; c < place->n; c++) {
        const double *m = place->space + c;
        least = FV_MIN(least, sqrt(m[0] * m[0] + m[4] * m[4] + m[8] * m[8]));
    }
    return least;
}

static void prepare(state *s, const fv_run *r, const fv_voxel_summary *moving, const fv_voxel_summary *fixed,
                    const fv_region part[2]) {
    fv_fit        *f = &s->fit;
    double         squares = 0;
    int64_t        voxels = fv__voxels_count(&r->need.in[MOVING]->image, &s->moving);
    sampling       by = { .s = s, .by = fv__voxels_scale(fixed, s->voxels), .of = *fixed };
    fv_voxel_scale to = f->metric == FV_FIT_MEAN_SQUARES ? by.by : fv__voxels_scale(moving, voxels);
    for (int c = 0; c < 3; c++) f->size[c] = c < f->n ? r->need.in[MOVING]->image.shape[s->moving.axis[c]] : 1;
    fv__matrix_invert(s->moving.space, f->voxels);
    f->edge = edge_of(&s->fixed);
    f->count = 0;
    if (s->voxels > f->room) by.limit = (uint64_t)((double)f->room / (double)s->voxels * 0x1p64);
    fv__voxels_keep(r->in[MOVING], &s->moving, &part[MOVING], s->row, &to, f->size, f->moving);
    fv__voxels_visit(r->in[FIXED], &s->fixed, &part[FIXED], s->row, sample_row, &by);
    f->low = (moving->low - to.offset) * to.share;
    f->width = (moving->high - moving->low) * to.share / (f->bins - 5);
    for (int64_t i = 0; i < f->count; i++)
        for (int c = 0; c < 3; c++) squares += (double)f->place[c][i] * (double)f->place[c][i];
    f->radius = FV_MAX(sqrt(squares / (double)FV_MAX(f->count, 1)), f->edge);
}

static void matrix_of(const fv_fit *f, double matrix[12]) {
    for (int r = 0; r < 3; r++) {
        matrix[r * 4 + 3] = f->target[r];
        for (int c = 0; c < 3; c++) {
            matrix[r * 4 + c] = f->matrix[r * 3 + c];
            matrix[r * 4 + 3] -= f->matrix[r * 3 + c] * f->centre[c];
        }
    }
}

/* Floats are compared as they are, unless their mean is so large that they tell little of what lies around it. */
static fv_voxel_scale scale_for_phase(const fv_voxel_summary *of, int64_t voxels, fv_dtype dtype) {
    fv_voxel_scale to = fv__voxels_scale(of, voxels);
    return dtype == FV_FLOAT32 && fabs(to.offset) * to.share < 1000 ? (fv_voxel_scale){ 0, 1 } : to;
}

/* The voxels where they are, if they need no change and lie one after another: a copy of a large image costs as much as a part of
 * the transform. NULL: they must be copied. */
static const float *in_place(const fv_block *block, const fv_physical *place, const fv_region *part, const int64_t size[3],
                             const fv_voxel_scale *scale) {
    int64_t step = 1;
    bool    dense = block->dtype == FV_FLOAT32 && scale->offset == 0 && scale->share == 1;
    for (int c = 0; c < place->n; step *= size[c++]) dense = dense && block->stride[place->axis[c]] == step;
    return dense ? fv__block_at(block, part->start) : NULL;
}

static fv_status fit_shift(state *s, const fv_run *r, const fv_voxel_summary of[2], const fv_region part[2], double matrix[12],
                           fv_error *error) {
    double back[12], by[12] = { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0 }, shift[3];
    for (int k = MOVING; k <= FIXED; k++) {
        const fv_physical *place = k == MOVING ? &s->moving : &s->fixed;
        fv_voxel_scale     to = scale_for_phase(&of[k], s->voxels, r->in[k]->dtype);
        const float       *voxels = in_place(r->in[k], place, &part[k], s->phase.size, &to);
        if (!voxels) fv__voxels_keep(r->in[k], place, &part[k], s->row, &to, s->phase.size, s->phase.room[k]);
        *(k == MOVING ? &s->phase.moving : &s->phase.fixed) = voxels ? voxels : s->phase.room[k];
    }
    if (!fv__phase_run(&s->phase, shift))
        return fv_fail(error, FV_ERROR_INPUT, "moving and fixed have nothing in common: no shift fits better than others");
    for (int c = 0; c < s->fixed.n; c++) by[c * 4 + 3] = shift[c];
    fv__matrix_invert(s->fixed.space, back);
    fv__matrix_chain(by, back, matrix);
    fv__matrix_chain(s->moving.space, matrix, matrix);
    for (int k = 0; k < 12; k++) /* but for rounding, and the little by which equal grids may differ */
        if (k % 4 < 3) matrix[k] = k % 5 == 0;
    return FV_OK;
}

/* One transform: that of a place of the axes before. */
static fv_status fit_one(state *s, const fv_run *r, const int64_t *before, double matrix[12], fv_error *error) {
    fv_voxel_summary of[2];
    fv_region        part[2];
    for (int k = MOVING; k <= FIXED; k++) {
        fv_need one = r->need;
        for (int d = 0; d < one.out->image.ndim - 2; d++) {
            one.region.start[d] = before[d];
            one.region.size[d] = 1;
        }
        fv__voxels_part(&one, k, one.out->image.ndim - 2, &part[k]);
        FV_TRY(fv__voxels_summarize(r->in[k], k == MOVING ? &s->moving : &s->fixed, &part[k], s->row, inputs[k].name, &of[k],
                                    error));
    }
    if (s->by_phase) return fit_shift(s, r, of, part, matrix, error);
    begin(s, r, &of[MOVING], &of[FIXED], before);
    if (flat(s->fit.matrix))
        return fv_fail(error, FV_ERROR_INPUT, "start is singular: it presses the image flat, and nothing can begin there");
    prepare(s, r, &of[MOVING], &of[FIXED], part);
    if (!fv__fit_run(&s->fit))
        return fv_fail(error, FV_ERROR_INPUT,
                       "moving and fixed do not overlap, or are constant where they do, at the place where it begins: choose "
                       "another init, or give start");
    matrix_of(&s->fit, matrix);
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) {
    fv_transform t;
    state        s;
    fv_rows      walk;
    fv_region    places = r->out->region;
    lay_out(&r->need, r->scratch, &s);
    fv__transform_find(&r->need.out->image, "", &t, NULL);
    for (int d = t.row; d < places.ndim; d++) places.size[d] = 1;
    for (fv__rows_begin(&walk, &places); fv__rows_next(&walk);) {
        double matrix[12];
        FV_TRY(fit_one(&s, r, walk.position, matrix, error));
        fv__transform_store(r->out, &t, walk.position, matrix);
    }
    return FV_OK;
}

/* Each transform whole, and by itself. */
static void slab(const fv_need *n, int64_t *chunk) {
    const fv_image_type *out = &n->out->image;
    for (int d = 0; d < out->ndim; d++) chunk[d] = d < out->ndim - 2 ? 1 : out->shape[d];
}

static double cost(const fv_need *n) {
    const registering *p = n->params;
    state              s;
    lay_out(n, NULL, &s);
    if (s.by_phase) return (double)s.voxels * 80 / (s.fit.n * (s.fit.n + 1));
    int steps = (int)FV_MIN(p->iterations, 15);
    return (double)(s.fit.room * steps) * (s.fit.metric == FV_FIT_MUTUAL_INFORMATION ? 60 : 25) / (s.fit.n * (s.fit.n + 1));
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(register) = {
    .name = "register",
    .family = "registration",
    .brief = "find the transform that brings one image upon another",
    .also = "ImageRegistrationMethod, elastix, antsRegistration, flirt, imregister, phase_cross_correlation, align images",
    .doc =
        "The images are compared at several resolutions, coarse ones first; each continues from the one before. All is done in "
        "physical space: spacing, origin and the matrix of NIfTI count, and the images may have different grids. The result is a "
        "small image with the axes row and column: a place p of fixed (x, y, z, as in ITK) belongs to the place matrix * p + "
        "last "
        "column of moving. Use it in transform(moving, t, onto = fixed), or write it as .tfm for ITK. What a coarse resolution "
        "found is found for all: register(bin(a, 4), bin(b, 4)) fits the whole images too.\n"
        "Steps are those of Gauss and Newton, damped as Levenberg and Marquardt do, and end early when they move less than a "
        "ten-thousandth of a voxel.",
    .citation =
        "Mattes et al., PET-CT image registration in the chest using free-form deformations, IEEE TMI 22, 2003; Marquardt, "
        "An algorithm for least-squares estimation of nonlinear parameters, J. SIAM 11, 1963",
    .example = "fixed = phantom(\"t1\", [40, 60, 60])\n"
               "moving = rotate(fixed, 6, reshape = false) |> shift([0, 2, -3])\n"
               "t = register(moving, fixed)\n"
               "write(t, \"t.tfm\")\n"
               "transform(moving, t, onto = fixed) |> write(\"aligned.nii.gz\")",
    .version = 7,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(registering),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .see = "transform stabilise motion groupwise invert_transform concatenate_transforms fsl_matrix",
};
