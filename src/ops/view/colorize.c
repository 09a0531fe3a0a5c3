/* colorize: labels or grey values as colours. */
#include "op/axes.h"
#include "op/colors.h"
#include "op/kernels.h"
#include "op/op.h"

typedef struct {
    fv_choice map;
} colorize;

enum { LABELS, GREY, HEAT, VIRIDIS };
enum { IMAGE, LOW, HIGH };

static const fv_param params[] = {
    FV_PARAM(colorize, map, .def = "labels", .choices = "labels|grey|heat|viridis",
             .doc = "a colour for each label, or a scale of colours"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "labels, or grey values" },
    { "low", FV_KIND_SCALAR, .optional = true, .doc = "value at the start of the scale; left out: 0" },
    { "high", FV_KIND_SCALAR, .optional = true,
      .doc = "value at the end of the scale; left out: the largest of the image's "
             "type (1 for floats)" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const colorize      *p = i->params;
    const fv_image_type *in = &i->in[IMAGE]->image;
    if (fv_dtype_is_complex(in->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s: colour its magnitude or one of its parts", fv_dtype_name(in->dtype));
    if (p->map.index == LABELS && fv_dtype_is_float(in->dtype))
        return fv_fail(error, FV_ERROR_USAGE,
                       "image is %s, and labels are whole numbers: give map = \"grey\", \"heat\" or \"viridis\"",
                       fv_dtype_name(in->dtype));
    if (in->ndim == FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_USAGE, "image has %d axes already: there is no room for the colour axis", in->ndim);
    if (fv__axis_find(in, "c") >= 0) return fv_fail(error, FV_ERROR_USAGE, "image has an axis c already: take one channel of it");
    i->out->image.dtype = FV_UINT8;
    fv__axis_append(&i->out->image, "c", 3);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    in[IMAGE] = n->region;
    in[IMAGE].ndim--;
    in[IMAGE].start[in[IMAGE].ndim] = in[IMAGE].size[in[IMAGE].ndim] = 0;
}

/* A row of the image as 8-byte numbers. */
static size_t scratch(const fv_need *n) { return (size_t)n->region.size[n->region.ndim - 2] * 8; }

/* Scales as colours at equal steps, straight lines between them. */
typedef struct {
    int     count;
    uint8_t at[10][3];
} scale;
static const scale scales[] = {
    [GREY] = { 2, { { 0, 0, 0 }, { 255, 255, 255 } } },
    [HEAT] = { 4, { { 0, 0, 0 }, { 255, 0, 0 }, { 255, 255, 0 }, { 255, 255, 255 } } },
    [VIRIDIS] = { 10,
                  { { 68, 1, 84 },
                    { 72, 40, 120 },
                    { 62, 74, 137 },
                    { 49, 104, 142 },
                    { 38, 130, 142 },
                    { 31, 158, 137 },
                    { 53, 183, 121 },
                    { 109, 205, 89 },
                    { 180, 222, 44 },
                    { 253, 231, 37 } } },
};

static void scale_table(const scale *s, uint8_t table[256][3]) {
    for (int i = 0; i < 256; i++) {
        int steps = s->count - 1, first = FV_MIN(i * steps / 255, steps - 1), part = i * steps - first * 255;
        for (int c = 0; c < 3; c++)
            table[i][c] = (uint8_t)((s->at[first][c] * (255 - part) + s->at[first + 1][c] * part + 127) / 255);
    }
}

static double largest(fv_dtype dtype) {
    if (fv_dtype_is_float(dtype) || dtype == FV_BOOL) return 1;
    return ldexp(1, (int)fv_dtype_size(dtype) * 8 - fv_dtype_is_signed(dtype)) - 1;
}

/* Colours of n numbers, pixel step bytes apart; only the channels first..first + count - 1. */
typedef struct {
    int64_t  n, step, first, count;
    uint8_t *to;
} strip;

static inline void put(const strip *s, int64_t i, const uint8_t colour[3]) {
    for (int64_t c = 0; c < s->count; c++) s->to[i * s->step + c] = colour[s->first + c];
}

static void colour_labels(const strip *s, const uint64_t *labels) {
    uint8_t  colour[3] = { 0 };
    uint64_t known = 0;
    for (int64_t i = 0; i < s->n; i++) {
        if (labels[i] != known) fv__label_color(known = labels[i], colour);
        put(s, i, colour);
    }
}

static void colour_scale(const strip *s, const double *values, double low, double high, uint8_t table[256][3]) {
    for (int64_t i = 0; i < s->n; i++) {
        double t = (values[i] - low) / (high - low);
        t = t > 0 ? t : 0; /* NaN too */
        put(s, i, table[(int)((t < 1 ? t : 1) * 255 + 0.5)]);
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const colorize *p = r->need.params;
    const fv_block *in = r->in[IMAGE], *out = r->out;
    int             last = in->region.ndim - 1;
    double          low = r->scalar[LOW] ? fv__scalar_number(r->scalar[LOW]) : 0;
    double          high = r->scalar[HIGH] ? fv__scalar_number(r->scalar[HIGH]) : largest(in->dtype);
    fv_dtype        whole = in->dtype == FV_UINT64 ? FV_UINT64 : FV_INT64;
    uint8_t         table[256][3];
    strip   s = { in->region.size[last], out->stride[last], out->region.start[last + 1], out->region.size[last + 1], NULL };
    fv_rows rows;
    if (p->map.index != LABELS) scale_table(&scales[p->map.index], table);
    for (fv__rows_begin(&rows, &in->region); fv__rows_next(&rows);) {
        rows.position[last + 1] = s.first; /* so that it is a place of the output too */
        s.to = fv__block_at(out, rows.position);
        fv__kernels_current()->convert(r->scratch, p->map.index == LABELS ? whole : FV_FLOAT64, fv__block_at(in, rows.position),
                                       in->dtype, s.n);
        if (p->map.index == LABELS)
            colour_labels(&s, r->scratch);
        else
            colour_scale(&s, r->scratch, low, high, table);
    }
    return FV_OK;
}

static double        cost(const fv_need *n) { return (void)n, 1; }
static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(colorize) = {
    .name = "colorize",
    .family = "view",
    .brief = "show labels or grey values in colour",
    .also = "apply_colormap, applyColorMap, imfuse, colormap, gray2rgb",
    .version = 1,
    .doc = "Adds an axis c of red, green and blue (uint8). The colour of a label depends only on its number, so it is the "
           "same in every slice; 0 is black. The scales grey, heat (black, red, yellow, white) and viridis go from low to "
           "high.",
    .citation = "viridis: S. van der Walt, N. Smith, E. Firing, matplotlib 2.0 (CC0), ten of its colours",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(colorize),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .example = "phantom(\"cells\", [200, 200]) |> colorize(map = \"viridis\") |> write(\"cells.png\")",
    .see = "label montage boundaries write",
};
