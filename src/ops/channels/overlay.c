/* overlay: labels or their outlines in colour over an image. */
#include "op/axes.h"
#include "op/colors.h"
#include "op/kernels.h"
#include "op/scratch.h"

typedef struct {
    fv_choice   mode;
    double      alpha;
    const char *colors;
    int         count; /* of the colours */
    uint32_t    color[FV__COLORS_MOST];
} overlay;

enum { FILL, OUTLINE };
enum { IMAGE, LABELS, LOW, HIGH };

static const fv_param params[] = {
    FV_PARAM(overlay, mode, .def = "fill", .choices = "fill|outline",
             .doc = "fill: labels as coloured glass over the image; outline: a line around each of them"),
    FV_PARAM(overlay, alpha, .def = "0.3", .min = 0, .max = 1,
             .doc = "how much of the colour is seen in a filled label: 0 nothing, 1 only the colour"),
    FV_PARAM(overlay, colors, .def = "",
             .doc = "colours for labels 1, 2, ..., used again from the first on: " FV__COLORS_DOC
                    "; left out: ten colours for filled labels, and yellow for outlines"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "grey image, or RGB with a last axis c of 3" },
    { "labels", FV_KIND_IMAGE, .doc = "label image or mask of the same place; 0 is background" },
    { "low", FV_KIND_SCALAR, .optional = true,
      .doc = "value of the image that is shown black; left out: 0, or without high the smallest of the image" },
    { "high", FV_KIND_SCALAR, .optional = true,
      .doc = "value of the image that is shown white; left out: the largest of the image, of uint8 and of colours that of their "
             "type" },
    FV_INPUT_END,
};

/* Those that skimage.color.label2rgb takes. */
static const uint32_t usual[] = { 0xff0000, 0x0000ff, 0xffff00, 0xff00ff, 0x008000,
                                  0x4b0082, 0xff8c00, 0x00ffff, 0xffc0cb, 0x9acd32 };

static double white(fv_dtype dtype) {
    if (fv_dtype_is_float(dtype) || dtype == FV_BOOL) return 1;
    return ldexp(1, (int)fv_dtype_size(dtype) * 8 - fv_dtype_is_signed(dtype)) - 1;
}

static bool is_colour(const fv_image_type *image) { return image->ndim > 1 && !strcmp(image->axis[image->ndim - 1], "c"); }

static fv_status check(const fv_infer *i, fv_error *error) {
    const fv_image_type *image = &i->in[IMAGE]->image, *labels = &i->in[LABELS]->image;
    int                  axis = fv__axis_find(image, "c"), ndim = image->ndim - is_colour(image);
    if (fv_dtype_is_complex(image->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s: show its magnitude or one of its parts", fv_dtype_name(image->dtype));
    if (labels->dtype != FV_BOOL && !fv_dtype_is_integer(labels->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "labels is %s; it must be an integer label image or bool",
                       fv_dtype_name(labels->dtype));
    if (axis >= 0 && (!is_colour(image) || image->shape[axis] != 3))
        return fv_fail(error, FV_ERROR_USAGE,
                       "image has an axis c that is not red, green and blue at its end: use composite(image) or split first");
    bool same = labels->ndim == ndim;
    for (int d = 0; d < ndim && same; d++) same = image->shape[d] == labels->shape[d];
    if (!same) return fv_fail(error, FV_ERROR_USAGE, "labels and image have different shapes");
    if (axis < 0 && image->ndim == FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_USAGE, "image has %d axes already: there is no room for the colour axis", image->ndim);
    return FV_OK;
}

/* Whether the grey values that are shown have to be looked for: 12 bits in 16 would be nearly black else. */
static bool has_open_range(const fv_infer *i) {
    const fv_image_type *image = &i->in[IMAGE]->image;
    bool                 given = i->in[HIGH]->kind == FV_KIND_SCALAR;
    return !given && !is_colour(image) && image->dtype != FV_BOOL && image->dtype != FV_UINT8;
}

/* Outlines are labels of their own, which hide what is below. */
static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const overlay *p = i->params;
    if (p->mode.index != OUTLINE && !has_open_range(i)) return FV_OK;
    FV_TRY(check(i, error));
    if (p->mode.index != OUTLINE) {
        fv__bytes_printf(text, "overlay(image, labels, low = %s, high = max(image), alpha = alpha%s)",
                         i->in[LOW]->kind == FV_KIND_SCALAR ? "low" : "min(image)",
                         p->colors && *p->colors ? ", colors = colors" : "");
        return FV_OK;
    }
    fv__bytes_printf(text, "overlay(image, where(boundaries(labels, mode = \"outer\"), maximum(labels, 1), 0)");
    if (i->in[LOW]->kind == FV_KIND_SCALAR) fv__bytes_printf(text, ", low = low");
    if (i->in[HIGH]->kind == FV_KIND_SCALAR) fv__bytes_printf(text, ", high = high");
    fv__bytes_printf(text, ", mode = \"fill\", alpha = 1, colors = %s)", p->colors && *p->colors ? "colors" : "\"yellow\"");
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    overlay *p = i->params;
    FV_TRY(check(i, error));
    FV_TRY(fv__colors_parse(p->colors ? p->colors : "", "colors", p->color, &p->count, error));
    if (!p->count) memcpy(p->color, usual, sizeof usual), p->count = FV_COUNT(usual);
    i->out->image.dtype = FV_UINT8;
    if (!is_colour(&i->in[IMAGE]->image)) fv__axis_append(&i->out->image, "c", 3);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    fv_region flat = n->region;
    flat.ndim--;
    flat.start[flat.ndim] = flat.size[flat.ndim] = 0;
    in[LABELS] = flat;
    in[IMAGE] = is_colour(&n->in[IMAGE]->image) ? n->region : flat;
}

/* A row of the image and one of the labels, as 8-byte numbers. */
typedef struct {
    double  *values;
    int64_t *labels;
} row_memory;

static size_t lay_out(const fv_need *n, void *scratch, row_memory *m) {
    fv_scratch pieces = { scratch, 0 };
    int64_t    row = n->region.size[n->region.ndim - 2];
    m->values = fv__scratch_take(&pieces, row * 3 * 8);
    m->labels = fv__scratch_take(&pieces, row * 8);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    row_memory m;
    return lay_out(n, NULL, &m);
}

typedef struct {
    double  low, high;
    int     colour;          /* the image has colours */
    int64_t n, first, count; /* pixels; channels of the output */
} row_shape;

static void paint_row(const overlay *p, const row_shape *s, const row_memory *m, uint8_t *to) {
    double scale = s->high > s->low ? 255 / (s->high - s->low) : 0;
    for (int64_t i = 0; i < s->n; i++) {
        int64_t  label = m->labels[i], place = label ? (label - 1) % p->count : 0;
        uint32_t color = p->color[place < 0 ? place + p->count : place];
        for (int64_t c = 0; c < s->count; c++) {
            double v = (m->values[s->colour ? i * s->count + c : i] - s->low) * scale;
            v = v > 0 ? v : 0; /* nan too */
            v = v < 255 ? v : 255;
            if (label) v = (double)(color >> (16 - 8 * (s->first + c)) & 255) * p->alpha + v * (1 - p->alpha);
            to[i * s->count + c] = (uint8_t)(v + 0.5);
        }
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const fv_kernels *k = fv__kernels_current();
    const overlay    *p = r->need.params;
    const fv_block   *image = r->in[IMAGE], *labels = r->in[LABELS], *out = r->out;
    int               last = labels->region.ndim - 1;
    row_memory        m;
    row_shape         s = { .low = r->scalar[LOW] ? fv__scalar_number(r->scalar[LOW]) : 0,
                            .high = r->scalar[HIGH] ? fv__scalar_number(r->scalar[HIGH]) : white(image->dtype),
                            .colour = is_colour(&r->need.in[IMAGE]->image),
                            .n = labels->region.size[last],
                            .first = out->region.start[last + 1],
                            .count = out->region.size[last + 1] };
    bool              dense = out->stride[last] == s.count && (!s.colour || image->stride[last] == s.count);
    int64_t           pixels = dense ? s.n : 1, end = labels->region.start[last] + s.n, at[FV_MAX_DIMS];
    fv_rows           rows;
    lay_out(&r->need, r->scratch, &m);
    if (!isfinite(s.low) || !isfinite(s.high)) s.low = 0, s.high = white(image->dtype); /* of an image with nan or inf */
    s.n = pixels;
    for (fv__rows_begin(&rows, &labels->region); fv__rows_next(&rows);) {
        memcpy(at, rows.position, sizeof at);
        at[last + 1] = s.first; /* so that it is a place of the colours too */
        for (; at[last] < end; at[last] += pixels) {
            k->convert(m.labels, FV_INT64, fv__block_at(labels, at), labels->dtype, pixels);
            k->convert(m.values, FV_FLOAT64, fv__block_at(image, at), image->dtype, pixels * (s.colour ? s.count : 1));
            paint_row(p, &s, &m, fv__block_at(out, at));
        }
    }
    return FV_OK;
}

static double        cost(const fv_need *n) { return (void)n, 3; }
static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(overlay) = {
    .name = "overlay",
    .family = "channels",
    .brief = "show labels or their outlines in colour over an image",
    .version = 2,
    .also = "label2rgb, mark_boundaries, labeloverlay, imoverlay",
    .doc = "fill is skimage.color.label2rgb with bg_color = None (a coloured image keeps its colours), outline is "
           "skimage.segmentation.mark_boundaries. Gives red, green and blue (uint8) along a last axis c. The colour of a "
           "label depends only on its number. Grey images are stretched from their smallest to their largest value, uint8 "
           "is shown as it is. low and high choose other grey values: overlay(a, labels, high = 4000).",
    .citation = "skimage.color.label2rgb, skimage.segmentation.mark_boundaries",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(overlay),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .cost = cost,
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "overlay(a, label(gaussian(a, 2) > 90), mode = \"outline\") |> write(\"outlines.png\")",
    .see = "colorize boundaries composite label",
};
