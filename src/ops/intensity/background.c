/* background: what lies below the objects of an image, by a rolling ball, an opening or a polynomial. */
#include "kernels/separable.h"
#include "op/kernels.h"
#include "op/scratch.h"
#include "op/window.h"

typedef struct {
    double    radius;
    fv_choice method;
    int64_t   order;
} background;

enum { ROLLING_BALL, TOPHAT, POLYNOMIAL };

static const fv_param params[] = {
    FV_PARAM(background, radius, .def = "100", .min = 1, .max = 1000, .unit = "px",
             .doc = "of the ball; larger than the objects"),
    FV_PARAM(background, method, .def = "rolling_ball", .choices = "rolling_ball|tophat|polynomial",
             .doc = "rolling_ball: the highest places of a ball that rolls below the grey values; tophat: the opening by a flat "
                    "ball or disk; polynomial: the smooth surface that fits all voxels best"),
    FV_PARAM(background, order, .def = "2", .min = 0, .max = 6, .doc = "of the polynomial"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "bright objects before an uneven background" },
                                   FV_INPUT_END };

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const background *p = i->params;
    int               axis[FV_MAX_DIMS], n;
    FV_TRY(fv__window_real(i->in[0], error));
    FV_TRY(fv__window_axes(i->in[0], axis, &n, error));
    if (p->method.index == TOPHAT) fv__bytes_printf(text, "open(image, ball(radius))");
    if (p->method.index == POLYNOMIAL) fv__bytes_printf(text, "fit_polynomial(image, order)");
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    if (i->in[0]->image.dtype == FV_BOOL) return fv_fail(error, FV_ERROR_USAGE, "image is bool: it must hold grey values");
    return FV_OK;
}

/* ---------------------------------------------------------------- the rolling ball */

typedef struct {
    int     naxes, axis[3];
    int64_t reach; /* of the ball, whole voxels */
} ball;

static ball ball_of(const fv_need *n) {
    ball b = { .reach = (int64_t)ceil(((const background *)n->params)->radius) };
    int  axis[FV_MAX_DIMS];
    b.naxes = fv_image_type_spatial(&n->in[0]->image, axis);
    for (int k = 0; k < b.naxes && k < 3; k++) b.axis[k] = axis[k];
    return b;
}

static void need(const fv_need *n, fv_region *in) {
    ball    b = ball_of(n);
    int64_t reach[FV_MAX_DIMS] = { 0 };
    for (int k = 0; k < b.naxes; k++) reach[b.axis[k]] = b.reach;
    in[0] = fv__region_grow(&n->region, reach, reach);
    in[0] = fv__region_clip(&in[0], n->in[0]->image.shape);
}

/* Unsigned integers of up to 16 bits are computed as such: the fraction of a height is cut off at the end, and that of the least
 * is the least of those whose fractions are cut off before. Others as floats, float32 in itself. */
static fv_dtype computed(fv_dtype dtype) {
    return dtype == FV_UINT8 || dtype == FV_UINT16 ? FV_UINT16 : dtype == FV_FLOAT32 ? FV_FLOAT32 : FV_FLOAT64;
}

typedef struct {
    void   *source, *least; /* a row of the image with its surroundings, and the least sums */
    double *depth;          /* how far the ball's surface lies below its top, along a row of it */
} memory;

static size_t lay_out(const fv_need *n, void *scratch, memory *m) {
    fv_scratch pieces = { scratch, 0 };
    ball       b = ball_of(n);
    int64_t    row = n->region.size[b.axis[b.naxes - 1]], wide = row + 2 * b.reach;
    m->source = fv__scratch_take(&pieces, wide * 8);
    m->least = fv__scratch_take(&pieces, row * 8);
    m->depth = fv__scratch_take(&pieces, (2 * b.reach + 1) * 8);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    memory m;
    return lay_out(n, NULL, &m);
}

/* Least of source[i + k] + depth[k] over the part of a row of the ball of half width `half`; source begins `reach` before. */
#define LOWER_REAL(NAME, TYPE)                                                                                                   \
    static void NAME(const memory *m, int64_t n, int64_t reach, int64_t half) {                                                  \
        TYPE *restrict least = m->least;                                                                                         \
        for (int64_t k = -half; k <= half; k++) {                                                                                \
            const TYPE *restrict from = (const TYPE *)m->source + reach + k;                                                     \
            TYPE depth = (TYPE)m->depth[reach + k];                                                                              \
            for (int64_t i = 0; i < n; i++) {                                                                                    \
                TYPE height = from[i] + depth;                                                                                   \
                least[i] = height < least[i] ? height : least[i];                                                                \
            }                                                                                                                    \
        }                                                                                                                        \
    }
LOWER_REAL(lower_float32, float)
LOWER_REAL(lower_float64, double)

static void lower_uint16(const memory *m, int64_t n, int64_t reach, int64_t half) {
    uint16_t *restrict least = m->least;
    for (int64_t k = -half; k <= half; k++) {
        const uint16_t *restrict from = (const uint16_t *)m->source + reach + k;
        uint16_t depth = (uint16_t)m->depth[reach + k], limit = (uint16_t)(UINT16_MAX - depth);
        for (int64_t i = 0; i < n; i++) {
            uint16_t height = (uint16_t)((from[i] < limit ? from[i] : limit) + depth);
            least[i] = height < least[i] ? height : least[i];
        }
    }
}

static void fill(void *to, fv_dtype dtype, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (dtype == FV_UINT16)
            ((uint16_t *)to)[i] = UINT16_MAX;
        else if (dtype == FV_FLOAT32)
            ((float *)to)[i] = INFINITY;
        else
            ((double *)to)[i] = INFINITY;
}

/* The row of the image at a place, from `start - reach` on; outside the image everything is higher than any ball. */
static void load(const fv_block *in, const ball *b, const int64_t *position, int64_t start, int64_t n, fv_dtype dtype, void *to) {
    const fv_kernels *k = fv__kernels_current();
    int               d = b->axis[b->naxes - 1];
    int64_t           at[FV_MAX_DIMS], begin = in->region.start[d], end = begin + in->region.size[d];
    size_t            size = fv_dtype_size(dtype);
    fill(to, dtype, n + 2 * b->reach);
    memcpy(at, position, sizeof at);
    at[d] = begin;
    char *target = (char *)to + (size_t)(begin - (start - b->reach)) * size;
    if (d == in->region.ndim - 1) {
        k->convert(target, dtype, fv__block_at(in, at), in->dtype, end - begin);
        return;
    }
    for (; at[d] < end; at[d]++, target += size) k->convert(target, dtype, fv__block_at(in, at), in->dtype, 1);
}

/* Depths along the row of the ball that lies so far from its middle; gives the half width, -1 outside the ball. */
static int64_t depths(double radius, int64_t reach, int64_t square, bool whole, double *depth) {
    int64_t half = -1;
    for (int64_t k = 0; k <= reach; k++) {
        double left = radius * radius - (double)(square + k * k);
        if (sqrt((double)(square + k * k)) > radius) break;
        double below = radius - sqrt(left > 0 ? left : 0);
        depth[reach + k] = depth[reach - k] = whole ? floor(below) : below;
        half = k;
    }
    return half;
}

static void roll_row(const fv_run *r, const ball *b, const int64_t *place, const memory *m) {
    const fv_block *in = r->in[0];
    const double    radius = ((const background *)r->need.params)->radius;
    fv_dtype        dtype = computed(in->dtype);
    int             d = b->axis[b->naxes - 1];
    int64_t         n = r->need.region.size[d], start = r->need.region.start[d], low[2] = { 0 }, high[2] = { 0 };
    fill(m->least, dtype, n);
    for (int k = 0; k + 1 < b->naxes; k++) {
        int64_t at = place[b->axis[k]], first = in->region.start[b->axis[k]];
        low[k] = FV_MAX(-b->reach, first - at);
        high[k] = FV_MIN(b->reach, first + in->region.size[b->axis[k]] - 1 - at);
    }
    for (int64_t u = low[0]; u <= high[0]; u++)
        for (int64_t v = low[1]; v <= high[1]; v++) {
            int64_t position[FV_MAX_DIMS], half = depths(radius, b->reach, u * u + v * v, dtype == FV_UINT16, m->depth);
            if (half < 0) continue;
            memcpy(position, place, sizeof position);
            if (b->naxes > 1) position[b->axis[0]] += u;
            if (b->naxes > 2) position[b->axis[1]] += v;
            load(in, b, position, start, n, dtype, m->source);
            if (dtype == FV_UINT16)
                lower_uint16(m, n, b->reach, half);
            else if (dtype == FV_FLOAT32)
                lower_float32(m, n, b->reach, half);
            else
                lower_float64(m, n, b->reach, half);
        }
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const fv_kernels *k = fv__kernels_current();
    const fv_block   *out = r->out;
    ball              b = ball_of(&r->need);
    fv_dtype          dtype = computed(r->in[0]->dtype);
    fv_region         lines = out->region;
    int               d = b.axis[b.naxes - 1], last = lines.ndim - 1;
    int64_t           n = lines.size[d], more = d == last ? 1 : lines.size[last]; /* channels behind x */
    memory            m;
    fv_rows           rows;
    lay_out(&r->need, r->scratch, &m);
    lines.size[d] = 1;
    for (fv__rows_begin(&rows, &lines); fv__rows_next(&rows);)
        for (int64_t c = 0; c < more; c++) {
            int64_t place[FV_MAX_DIMS];
            memcpy(place, rows.position, sizeof place);
            if (d != last) place[last] += c;
            roll_row(r, &b, place, &m);
            for (int64_t i = 0; i < n; i += d == last ? n : 1, place[d]++)
                k->convert(fv__block_at(out, place), out->dtype, (char *)m.least + (size_t)i * fv_dtype_size(dtype), dtype,
                           d == last ? n : 1);
        }
    return FV_OK;
}

static double cost(const fv_need *n) {
    double radius = ((const background *)n->params)->radius, voxels = 1;
    for (int k = 0; k < ball_of(n).naxes; k++) voxels *= 2 * radius;
    return 1 + voxels * (computed(n->in[0]->image.dtype) == FV_UINT16 ? 0.05 : 0.2);
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(background) = {
    .name = "background",
    .family = "intensity",
    .brief = "estimate the uneven background of an image",
    .version = 1,
    .also = "rolling_ball, subtract_background, detrend",
    .doc = "Gives the background; take it off with excess(a, background(a, 20)). The rolling ball equals "
           "skimage.restoration.rolling_ball, and keeps the type of the image. A voxel of its ball is as high as wide, so the "
           "radius "
           "also counts grey values: scale floating-point images of small range first. Its time grows with the square of the "
           "radius (in volumes with its cube). For dark objects use invert before and after. Nan is left out by the rolling ball "
           "where there are other values.",
    .citation = "S. Sternberg, Biomedical image processing, Computer 16, 1983; skimage.restoration.rolling_ball",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(background),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .cost = cost,
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "excess(a, background(a, 25)) |> write(\"objects.png\")",
    .see = "tophat open fit_polynomial flatfield",
};
