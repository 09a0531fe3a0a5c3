/* clahe: local contrast made equal, without raising noise beyond a limit; as OpenCV's createCLAHE. */
#include "op/axes.h"
#include "op/scratch.h"
#include "op/window.h"
#include "ops/intensity/tiles.h"

typedef struct {
    fv_numbers tiles;
    double     clip_limit;
} clahe;

enum { IMAGE, TABLES };

static const fv_param params[] = {
    FV_PARAM(clahe, tiles, .def = "8", .min = 1, .max = 256,
             .doc = "number of tiles along the spatial axes, one for all or one for each"),
    FV_PARAM(clahe, clip_limit, .def = "40", .min = 0,
             .doc = "how much contrast may be raised: bins of a tile's histogram are cut off at this multiple of their mean; 0: "
                    "no limit"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image with uneven contrast" },
    { "tables", FV_KIND_IMAGE, .optional = true, .doc = "from clahe_tables of another image; left out: those of the image" },
    FV_INPUT_END,
};

/* Types that have no tables: integers are moved to where they have, others are stretched. */
static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    fv_dtype dtype = i->in[IMAGE]->image.dtype;
    bool     small = dtype == FV_UINT8 || dtype == FV_UINT16;
    if (fv_dtype_is_complex(dtype) || dtype == FV_BOOL)
        return fv_fail(error, FV_ERROR_USAGE, "image is %s: it must hold grey values", fv_dtype_name(dtype));
    if (i->in[TABLES]->kind == FV_KIND_IMAGE) return FV_OK;
    if (small)
        fv__bytes_printf(text, "clahe(image, clahe_tables(image, tiles = tiles, clip_limit = clip_limit))");
    else if (dtype == FV_INT8 || dtype == FV_INT16)
        fv__bytes_printf(text, "convert(clahe(convert(image + %d, \"%s\"), tiles = tiles, clip_limit = clip_limit) - %d, \"%s\")",
                         dtype == FV_INT8 ? 128 : 32768, dtype == FV_INT8 ? "uint8" : "uint16", dtype == FV_INT8 ? 128 : 32768,
                         fv_dtype_name(dtype));
    else
        fv__bytes_printf(text,
                         "clahe(convert(rescale(image, 0, 65535) + 0.5, \"uint16\"), tiles = tiles, clip_limit = clip_limit) / "
                         "65535 + (max(image) - max(image))");
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *image = &i->in[IMAGE]->image, *tables = &i->in[TABLES]->image;
    int                  axis[FV_MAX_DIMS], n, ndim = image->ndim;
    FV_TRY(fv__window_axes(i->in[IMAGE], axis, &n, error));
    bool    fits = tables->ndim == ndim + 1 && tables->dtype == image->dtype;
    int64_t levels = image->dtype == FV_UINT8 ? 256 : 65536;
    for (int d = 0, k = 0; d < ndim && fits; d++) {
        bool spatial = k < n && axis[k] == d;
        k += spatial;
        fits = !strcmp(tables->axis[d], image->axis[d]) && (spatial || tables->shape[d] == image->shape[d]);
    }
    if (!fits || tables->shape[ndim] != levels)
        return fv_fail(error, FV_ERROR_USAGE, "tables must be clahe_tables of an image of the same type and axes");
    return FV_OK;
}

static fv__tiles tiles_of(const fv_need *n) {
    int64_t count[3];
    int     axis[FV_MAX_DIMS], naxes = fv_image_type_spatial(&n->in[IMAGE]->image, axis);
    for (int k = 0; k < naxes && k < 3; k++) count[k] = n->in[TABLES]->image.shape[axis[k]];
    return fv__tiles_new(&n->in[IMAGE]->image, count);
}

static void need(const fv_need *n, fv_region *in) {
    fv__tiles t = tiles_of(n);
    int       ndim = n->in[IMAGE]->image.ndim;
    in[TABLES] = n->region;
    in[TABLES].ndim = ndim + 1;
    in[TABLES].start[ndim] = 0;
    in[TABLES].size[ndim] = n->in[TABLES]->image.shape[ndim];
    for (int k = 0; k < t.naxes; k++) {
        int     d = t.axis[k];
        int64_t first = fv__tiles_between(&t, k, n->region.start[d]).first;
        int64_t last = fv__tiles_between(&t, k, n->region.start[d] + n->region.size[d] - 1).second;
        in[TABLES].start[d] = first;
        in[TABLES].size[d] = last - first + 1;
    }
}

/* How far each voxel of a row is on its way to the next tile. */
static size_t scratch(const fv_need *n) {
    fv__tiles t = tiles_of(n);
    return (size_t)n->region.size[t.axis[t.naxes - 1]] * sizeof(float);
}

/* Part of a row that lies between the same two tiles: their tables for one, two or four neighbouring rows of tiles, and how far
 * the row is on its way between these. */
typedef struct {
    int          rows;
    const void  *first[4], *second[4];
    float        y, z;
    const float *x;
} cell;

#define ROUND 0x1.8p23f /* x + ROUND - ROUND is x rounded to an integer, as OpenCV rounds */
#define LINE(TYPE, J) ((float)((const TYPE *)c->first[J])[v] * before + (float)((const TYPE *)c->second[J])[v] * after)
#define SPAN(NAME, TYPE)                                                                                                         \
    static void NAME(const cell *c, const TYPE *from, TYPE *to, int64_t n, int64_t step) {                                       \
        float y = c->y, z = c->z, y1 = 1.0f - y, z1 = 1.0f - z;                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                                        \
            float after = c->x[i], before = 1.0f - after, value;                                                                 \
            TYPE  v = from[i * step];                                                                                            \
            if (c->rows == 2)                                                                                                    \
                value = LINE(TYPE, 0) * y1 + LINE(TYPE, 1) * y;                                                                  \
            else if (c->rows == 1)                                                                                               \
                value = LINE(TYPE, 0);                                                                                           \
            else                                                                                                                 \
                value = (LINE(TYPE, 0) * y1 + LINE(TYPE, 1) * y) * z1 + (LINE(TYPE, 2) * y1 + LINE(TYPE, 3) * y) * z;            \
            to[i * step] = (TYPE)(value + ROUND - ROUND);                                                                        \
        }                                                                                                                        \
    }
SPAN(span_uint8, uint8_t)
SPAN(span_uint16, uint16_t)

/* Tables of the tiles at two places along x, for each of the neighbouring rows of tiles. */
static void choose_tables(const fv_block *tables, const fv__tiles *t, const int64_t *position, fv__between x, cell *c) {
    int64_t     at[FV_MAX_DIMS];
    fv__between other[2] = { { 0 } };
    int         others = t->naxes - 1, ndim = tables->region.ndim - 1;
    for (int k = 0; k < others; k++) other[k] = fv__tiles_between(t, k, position[t->axis[k]]);
    c->rows = 1 << others;
    c->y = others ? other[others - 1].part : 0;
    c->z = others == 2 ? other[0].part : 0;
    memcpy(at, position, sizeof at);
    at[ndim] = 0;
    for (int j = 0; j < c->rows; j++) {
        for (int k = 0; k < others; k++) {
            int bit = others == 2 && k == 0 ? j >> 1 : j & 1;
            at[t->axis[k]] = bit ? other[k].second : other[k].first;
        }
        at[t->axis[others]] = x.first;
        c->first[j] = fv__block_at(tables, at);
        at[t->axis[others]] = x.second;
        c->second[j] = fv__block_at(tables, at);
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const fv_block *in = r->in[IMAGE], *out = r->out;
    fv__tiles       t = tiles_of(&r->need);
    int             d = t.axis[t.naxes - 1]; /* x, the last of the spatial axes */
    fv_region       lines = out->region;
    int64_t         start = lines.start[d], n = lines.size[d], step_in = in->stride[d];
    float          *part = r->scratch;
    fv_rows         rows;
    for (int64_t i = 0; i < n; i++) part[i] = fv__tiles_between(&t, t.naxes - 1, start + i).part;
    lines.size[d] = 1;
    for (fv__rows_begin(&rows, &lines); fv__rows_next(&rows);) {
        int64_t more = d == lines.ndim - 1 ? 1 : lines.size[lines.ndim - 1]; /* channels behind x */
        for (int64_t m = 0; m < more; m++)
            for (int64_t i = 0, end; i < n; i = end) {
                fv__between x = fv__tiles_between(&t, t.naxes - 1, start + i);
                int64_t     position[FV_MAX_DIMS];
                cell        c = { .x = part + i };
                for (end = i + 1; end < n; end++) {
                    fv__between next = fv__tiles_between(&t, t.naxes - 1, start + end);
                    if (next.first != x.first || next.second != x.second) break;
                }
                memcpy(position, rows.position, sizeof position);
                position[d] = start + i;
                if (d != lines.ndim - 1) position[lines.ndim - 1] += m;
                choose_tables(r->in[TABLES], &t, position, x, &c);
                if (in->dtype == FV_UINT8)
                    span_uint8(&c, fv__block_at(in, position), fv__block_at(out, position), end - i, step_in);
                else
                    span_uint16(&c, fv__block_at(in, position), fv__block_at(out, position), end - i, step_in);
            }
    }
    return FV_OK;
}

static double        cost(const fv_need *n) { return (void)n, 6; }
static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(clahe) = {
    .name = "clahe",
    .family = "intensity",
    .brief = "make local contrast equal without raising noise beyond a limit",
    .version = 1,
    .also = "createCLAHE, equalize_adapthist, adapthisteq",
    .doc =
        "Contrast limited adaptive histogram equalization, equal to OpenCV's createCLAHE: the histogram of each tile is "
        "equalized, and between the middles of tiles their results are blended. A volume has tiles along z too. uint8, uint16, "
        "int8 and int16 keep their type; other images are first stretched to 65536 levels, and give float32 or float64 "
        "between 0 and 1 (all nan if there is a nan). scikit-image's equalize_adapthist is the same method with other "
        "defaults and other rules at the border.",
    .citation = "K. Zuiderveld, Contrast limited adaptive histogram equalization, Graphics Gems IV, 1994; OpenCV: createCLAHE",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(clahe),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .cost = cost,
    .example = "phantom(\"cells\", [200, 200]) |> clahe(tiles = 4, clip_limit = 3) |> write(\"contrast.png\")",
    .see = "equalize normalize clahe_tables background",
};
