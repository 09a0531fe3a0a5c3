/* bias_field: the smooth field by which the grey values of an image are multiplied, as N4 finds it. */
#include "base/math.h"
#include "op/axes.h"
#include "op/kernels.h"
#include "op/place.h"
#include "op/reduce.h"
#include "op/window.h"
#include "ops/intensity/bias_spline.h"

enum { IMAGE, MASK, LATTICE };
enum { ENOUGH = 1 << 20 }; /* voxels of the image that the field is estimated on */

static const fv_param params[] = { FV_BIAS_PARAMS, FV_PARAM_END };
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image with an uneven brightness" },
    { "mask", FV_KIND_IMAGE, .optional = true,
      .doc = "voxels that count, those of the object; left out: those above Otsu's threshold" },
    { "lattice", FV_KIND_IMAGE, .optional = true, .doc = "from bias_lattice; left out: that of the image" },
    FV_INPUT_END,
};

/* ---------------------------------------------------------------- how it is made */

/* Of so many voxels along each spatial axis one is taken. */
static fv_status factors_of(const fv__bias *p, const fv_image_type *image, int64_t factor[FV_MAX_DIMS], fv_error *error) {
    int        axis[FV_MAX_DIMS], n = fv_image_type_spatial(image, axis);
    double     voxels = INFINITY;
    fv_numbers given = p->shrink;
    for (double shrink = 1; !given.count && voxels > ENOUGH && shrink < 1e6; shrink++) {
        voxels = 1;
        fv__place_factors(image, shrink * fv__place_finest(image), factor);
        for (int k = 0; k < n; k++) voxels *= (double)fv__bias_left(image->shape[axis[k]], factor[k]);
    }
    if (!given.count) return FV_OK;
    FV_TRY(fv__numbers_spread(&given, n, "shrink", error));
    for (int k = 0; k < n; k++) {
        factor[k] = (int64_t)given.value[k];
        if ((double)factor[k] != given.value[k])
            return fv_fail(error, FV_ERROR_USAGE, "shrink = %g: must be a whole number", given.value[k]);
        if (factor[k] > image->shape[axis[k]])
            return fv_fail(error, FV_ERROR_USAGE, "shrink = %lld along %s, which has only %lld voxels: nothing would be left",
                           (long long)factor[k], image->axis[axis[k]], (long long)image->shape[axis[k]]);
    }
    return FV_OK;
}

/* Every so many voxels of an image along the spatial axes that it has in common with the image of the factors. */
static void say_small(const char *name, const fv_image_type *type, const fv_image_type *image, const int64_t *factor,
                      fv_bytes *text) {
    int axis[FV_MAX_DIMS], n = fv_image_type_spatial(image, axis);
    for (int d = 0; d < type->ndim; d++) {
        int k = 0;
        while (k < n && strcmp(image->axis[axis[k]], type->axis[d])) k++;
        fv__bytes_printf(text, d ? ", " : "%s[", name);
        if (k < n && factor[k] > 1)
            fv__bytes_printf(text, "%lld::%lld", (long long)fv__bias_first(factor[k]), (long long)factor[k]);
        else
            fv__bytes_printf(text, ":");
    }
    fv__bytes_printf(text, "]");
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const fv_image_type *image = &i->in[IMAGE]->image;
    int                  axis[FV_MAX_DIMS], n;
    int64_t              factor[FV_MAX_DIMS];
    if (i->in[LATTICE]->kind == FV_KIND_IMAGE) return FV_OK;
    FV_TRY(fv__window_real(i->in[IMAGE], error));
    FV_TRY(fv__window_axes(i->in[IMAGE], axis, &n, error));
    FV_TRY(factors_of(i->params, image, factor, error));
    fv__bytes_printf(text, "small = ");
    say_small("image", image, image, factor, text);
    fv__bytes_printf(text, "\ninside = ");
    if (i->in[MASK]->kind == FV_KIND_IMAGE)
        say_small("mask", &i->in[MASK]->image, image, factor, text);
    else
        fv__bytes_printf(text, "small > otsu(small)");
    fv__bytes_printf(text, "\nbias_field(image, lattice = bias_lattice(small, inside, " FV_BIAS_SAME);
    for (int k = 0; k < n; k++) fv__bytes_printf(text, "%s%lld", k ? ", " : ", shrink = [", (long long)factor[k]);
    for (int k = 0; k < n; k++) fv__bytes_printf(text, "%s%lld", k ? ", " : "], shape = [", (long long)image->shape[axis[k]]);
    fv__bytes_printf(text, "]))\n");
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *image = &i->in[IMAGE]->image, *lattice = &i->in[LATTICE]->image;
    int                  axis[FV_MAX_DIMS], n;
    FV_TRY(fv__window_axes(i->in[IMAGE], axis, &n, error));
    bool fits = lattice->ndim == image->ndim && lattice->dtype == FV_FLOAT64;
    for (int d = 0, k = 0; d < image->ndim && fits; d++) {
        bool spatial = k < n && axis[k] == d;
        k += spatial;
        fits =
            !strcmp(lattice->axis[d], image->axis[d]) && (spatial ? lattice->shape[d] > 3 : lattice->shape[d] == image->shape[d]);
    }
    if (!fits) return fv_fail(error, FV_ERROR_USAGE, "lattice must be the bias_lattice of an image with the same axes");
    i->out->image.dtype = FV_FLOAT32;
    return FV_OK;
}

/* ---------------------------------------------------------------- the field */

static void need(const fv_need *n, fv_region *in) {
    int axis[FV_MAX_DIMS], count = fv_image_type_spatial(&n->in[IMAGE]->image, axis);
    fv__need_nothing(&in[IMAGE]);
    in[MASK] = (fv_region){ .ndim = n->in[MASK]->kind == FV_KIND_IMAGE ? n->in[MASK]->image.ndim : 0 };
    in[LATTICE] = n->region;
    for (int k = 0; k < count; k++) {
        in[LATTICE].start[axis[k]] = 0;
        in[LATTICE].size[axis[k]] = n->in[LATTICE]->image.shape[axis[k]];
    }
}

typedef struct {
    int           count, spatial[FV_MAX_DIMS]; /* axes */
    int64_t       start[3];
    fv__bias_axis axis[3]; /* z, y, x */
    double       *lattice, *plane, *line, *row;
} state;

static size_t lay_out(const fv_need *n, void *scratch, state *s) {
    fv_scratch           pieces = { scratch, 0 };
    const fv_image_type *lattice = &n->in[LATTICE]->image;
    s->count = fv_image_type_spatial(&n->out->image, s->spatial);
    int missing = 3 - s->count;
    for (int k = 0; k < 3; k++) {
        int d = k < missing ? -1 : s->spatial[k - missing];
        s->start[k] = d < 0 ? 0 : n->region.start[d];
        fv__bias_axis_take(&s->axis[k], d < 0 ? 1 : n->region.size[d], &pieces);
        s->axis[k].points = d < 0 ? 1 : lattice->shape[d];
    }
    int64_t line = s->axis[2].points, plane = s->axis[1].points * line;
    s->lattice = fv__scratch_take(&pieces, s->axis[0].points * plane * 8);
    s->plane = fv__scratch_take(&pieces, plane * 8);
    s->line = fv__scratch_take(&pieces, line * 8);
    s->row = fv__scratch_take(&pieces, s->axis[2].n * 8);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    state s;
    return lay_out(n, NULL, &s);
}

/* The control points at a place of the axes that are not spatial. */
static void load(state *s, const fv_block *in, const int64_t *place) {
    fv_region one = in->region;
    fv_rows   rows;
    double   *to = s->lattice;
    for (int d = 0, k = 0; d < one.ndim; d++) {
        if (k < s->count && s->spatial[k] == d) {
            k++;
            continue;
        }
        one.start[d] = place[d];
        one.size[d] = 1;
    }
    for (fv__rows_begin(&rows, &one); fv__rows_next(&rows); to += s->axis[2].points)
        memcpy(to, fv__block_at(in, rows.position), (size_t)s->axis[2].points * sizeof *to);
}

static void fill(state *s, const fv_block *out, const int64_t *place) {
    int64_t at[FV_MAX_DIMS], n = s->axis[2].n;
    int     missing = 3 - s->count;
    memcpy(at, place, sizeof at);
    for (int64_t z = 0; z < s->axis[0].n; z++) {
        fv__bias_plane(s->axis, s->lattice, z, s->plane);
        if (!missing) at[s->spatial[0]] = s->start[0] + z;
        for (int64_t y = 0; y < s->axis[1].n; y++) {
            if (missing < 2) at[s->spatial[1 - missing]] = s->start[1] + y;
            fv__bias_line(s->axis, s->plane, y, s->line);
            fv__bias_row(s->axis, s->line, s->row);
            float *restrict to = fv__block_at(out, at);
            for (int64_t i = 0; i < n; i++) to[i] = (float)fv__exp(s->row[i]);
        }
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_image_type *image = &r->need.in[IMAGE]->image;
    fv_region            places = r->out->region;
    state                s;
    fv_rows              walk;
    (void)error;
    lay_out(&r->need, r->scratch, &s);
    for (int k = 0; k < 3; k++) {
        int missing = 3 - s.count;
        fv__bias_axis_fill(&s.axis[k], s.start[k], 1, k < missing ? 1 : image->shape[s.spatial[k - missing]], s.axis[k].points);
    }
    for (int k = 0; k < s.count; k++) places.size[s.spatial[k]] = 1;
    for (fv__rows_begin(&walk, &places); fv__rows_next(&walk);) {
        load(&s, r->in[LATTICE], walk.position);
        fill(&s, r->out, walk.position);
    }
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

static double cost(const fv_need *n) { return (void)n, 4; }

const fv_op FV_OP(bias_field) = {
    .name = "bias_field",
    .family = "intensity",
    .brief = "find the uneven brightness of an image, such as coils of magnetic resonance cause",
    .also = "shading, gain field",
    .version = 1,
    .doc =
        "The image is thought to be what it shows, times a smooth field. The field is the one under which the histogram of the "
        "logarithms is sharpest, as N4ITK finds it: round by round the histogram is sharpened, and a cubic B-spline is fitted to "
        "the difference; from level to level its control points become twice as dense. It is estimated on a smaller image and "
        "then computed for every voxel, so the image may be larger than memory; all of the smaller image is in memory. Where "
        "nothing counts, outside mask, the field goes on smoothly towards 1. Each place of other axes (a time, a channel) has a "
        "field of its own. image / bias_field(image) is correct_bias(image). The result is float32.",
    .citation = "Tustison et al., N4ITK: improved N3 bias correction, IEEE TMI 29, 2010",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(fv__bias),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .cost = cost,
    .example = "head = phantom(\"t1\", [48, 64, 64])\n"
               "field = bias_field(head)\n"
               "rescale(field[24], 0, 255) |> convert(\"uint8\") |> write(\"field.png\")",
    .see = "correct_bias bias_lattice background flatfield",
};
