/* clahe: local contrast made equal, without raising noise beyond a limit; as OpenCV's createCLAHE. */
#include "kernels/vectors.h"
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

/* How far each voxel of a row is on its way to the next tile, and the tables of four neighbouring tiles side by side. */
static size_t lay_out(const fv_need *n, float **part, uint64_t **quads, void *memory) {
    fv__tiles  t = tiles_of(n);
    fv_scratch pieces = { memory };
    *part = fv__scratch_take(&pieces, n->region.size[t.axis[t.naxes - 1]] * (int64_t)sizeof **part);
    *quads = fv__scratch_take(&pieces, n->in[TABLES]->image.shape[n->in[IMAGE]->image.ndim] * (int64_t)sizeof **quads);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    float    *part;
    uint64_t *quads;
    return lay_out(n, &part, &quads, NULL);
}

/* Part of a row that lies between the same two tiles: their tables for one, two or four neighbouring rows of tiles, and how far
 * the row is on its way between these. */
typedef struct {
    int             rows;
    const void     *first[4], *second[4];
    float           y, z;
    const float    *x;
    const uint64_t *quads; /* by level, 16 bits each: first[0], second[0], first[1], second[1]; NULL: not worth it */
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

/* ---------------------------------------------------------------- four tables at once */

#if FV_VECTOR_BYTES > 16
/* Eight levels of four tables. */
FV_INLINE void mix_eight(__m128i a, __m128i b, __m128i d, __m128i e, uint64_t *quads) {
    __m128i low0 = _mm_unpacklo_epi16(a, b), high0 = _mm_unpackhi_epi16(a, b);
    __m128i low1 = _mm_unpacklo_epi16(d, e), high1 = _mm_unpackhi_epi16(d, e);
    _mm_storeu_si128((__m128i *)quads, _mm_unpacklo_epi32(low0, low1));
    _mm_storeu_si128((__m128i *)(quads + 2), _mm_unpackhi_epi32(low0, low1));
    _mm_storeu_si128((__m128i *)(quads + 4), _mm_unpacklo_epi32(high0, high1));
    _mm_storeu_si128((__m128i *)(quads + 6), _mm_unpackhi_epi32(high0, high1));
}

FV_INLINE __m128i eight(const void *table, int64_t v, bool narrow) {
    return narrow ? _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)((const uint8_t *)table + v)))
                  : _mm_loadu_si128((const __m128i *)((const uint16_t *)table + v));
}

static void mix(const cell *c, int64_t first, int64_t last, bool narrow, uint64_t *quads) {
    for (int64_t v = first / 8 * 8; v <= last; v += 8)
        mix_eight(eight(c->first[0], v, narrow), eight(c->second[0], v, narrow), eight(c->first[1], v, narrow),
                  eight(c->second[1], v, narrow), quads + v);
}

/* The levels that occur in a box of a plane of uint16: often a small part of all, and a table costs as much as a box's voxels. */
static void find_levels(const fv_block *in, const fv_region *box, int64_t *first, int64_t *last) {
    int      d = box->ndim - 1;
    uint16_t low = UINT16_MAX, high = 0;
    fv_rows  rows;
    for (fv__rows_begin(&rows, box); fv__rows_next(&rows);) {
        const uint16_t *v = fv__block_at(in, rows.position);
        for (int64_t i = 0; i < box->size[d]; i++) {
            low = FV_MIN(low, v[i]);
            high = FV_MAX(high, v[i]);
        }
    }
    *first = low;
    *last = high;
}

enum { GROUP = 8 };

/* What becomes of eight levels: the same arithmetic in the same order as in SPAN, on eight voxels. */
FV_INLINE __m256i blend(const uint64_t *q, const int64_t *v, __m256 after, __m256 y, __m256 y1) {
    __m256 t[4];
    for (int l = 0; l < 4; l++) { /* the tables of voxels l and l + 4 */
        __m128i two = _mm_set_epi64x((long long)q[v[l + 4]], (long long)q[v[l]]);
        t[l] = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(two));
    }
    __m256 low01 = _mm256_unpacklo_ps(t[0], t[1]), high01 = _mm256_unpackhi_ps(t[0], t[1]);
    __m256 low23 = _mm256_unpacklo_ps(t[2], t[3]), high23 = _mm256_unpackhi_ps(t[2], t[3]);
    __m256 first0 = _mm256_shuffle_ps(low01, low23, 0x44), second0 = _mm256_shuffle_ps(low01, low23, 0xee);
    __m256 first1 = _mm256_shuffle_ps(high01, high23, 0x44), second1 = _mm256_shuffle_ps(high01, high23, 0xee);
    __m256 before = _mm256_set1_ps(1.0f) - after;
    __m256 value = (first0 * before + second0 * after) * y1 + (first1 * before + second1 * after) * y;
    return _mm256_cvtps_epi32(value); /* to the nearest, as ROUND does */
}

/* Whole numbers as elements; none is too large for them. */
FV_INLINE void put_uint16(uint16_t *to, __m256i v) {
    _mm_storeu_si128((__m128i *)to, _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)));
}
FV_INLINE void put_uint8(uint8_t *to, __m256i v) {
    __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64((__m128i *)to, _mm_packus_epi16(words, words));
}

#define QUADS(NAME, TYPE, PUT)                                                                                                   \
    static int64_t NAME(const cell *c, const TYPE *from, TYPE *to, int64_t n) {                                                  \
        __m256  y = _mm256_set1_ps(c->y), y1 = _mm256_set1_ps(1.0f - c->y);                                                      \
        int64_t i = 0;                                                                                                           \
        for (; i + GROUP <= n; i += GROUP) {                                                                                     \
            int64_t v[GROUP];                                                                                                    \
            for (int l = 0; l < GROUP; l++) v[l] = from[i + l];                                                                  \
            PUT(to + i, blend(c->quads, v, _mm256_loadu_ps(c->x + i), y, y1));                                                   \
        }                                                                                                                        \
        return i;                                                                                                                \
    }
QUADS(quads_uint8, uint8_t, put_uint8)
QUADS(quads_uint16, uint16_t, put_uint16)
#endif

static void make_span(const cell *c, fv_dtype dtype, const char *from, char *to, int64_t n, int64_t step) {
    cell    rest = *c;
    int64_t done = 0;
    bool    narrow = dtype == FV_UINT8;
#if FV_VECTOR_BYTES > 16
    if (c->quads)
        done = narrow ? quads_uint8(c, (const uint8_t *)from, (uint8_t *)to, n)
                      : quads_uint16(c, (const uint16_t *)from, (uint16_t *)to, n);
#endif
    rest.x += done;
    if (narrow)
        span_uint8(&rest, (const uint8_t *)from + done * step, (uint8_t *)to + done * step, n - done, step);
    else
        span_uint16(&rest, (const uint16_t *)from + done * step, (uint16_t *)to + done * step, n - done, step);
}

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

/* End of the voxels, from `from` on and before `to`, that lie between the same two tiles of axis k. */
static int64_t same_tiles(const fv__tiles *t, int k, int64_t from, int64_t to) {
    fv__between here = fv__tiles_between(t, k, from);
    int64_t     end = from + 1;
    for (; end < to; end++) {
        fv__between next = fv__tiles_between(t, k, end);
        if (next.first != here.first || next.second != here.second) break;
    }
    return end;
}

/* Voxels of the box, whose rows along x all lie between the same two tiles; those of a plane also along y. */
static void make_box(const fv_run *r, const fv__tiles *t, const fv_region *box, const float *part, uint64_t *quads) {
    const fv_block *in = r->in[IMAGE], *out = r->out, *tables = r->in[TABLES];
    int             d = t->axis[t->naxes - 1], last = box->ndim - 1; /* d: x, the last of the spatial axes */
    int64_t         levels = in->dtype == FV_UINT8 ? 256 : 65536;
    fv__between     x = fv__tiles_between(t, t->naxes - 1, box->start[d]);
    fv_region       lines = *box;
    fv_rows         rows;
    cell            c = { .x = part };
    bool            plane = t->naxes == 2 && d == last; /* of one image: the same tables serve all rows */
    if (plane) choose_tables(tables, t, box->start, x, &c);
#if FV_VECTOR_BYTES > 16
    if (plane && in->stride[d] == 1 && fv__region_voxels(box) > levels / 4) {
        int64_t lowest = 0, highest = levels - 1;
        if (in->dtype == FV_UINT16) find_levels(in, box, &lowest, &highest);
        mix(&c, lowest, highest, in->dtype == FV_UINT8, quads);
        c.quads = quads;
    }
#else
    (void)quads, (void)levels;
#endif
    lines.size[d] = 1;
    int64_t more = d == last ? 1 : lines.size[last]; /* channels behind x */
    for (fv__rows_begin(&rows, &lines); fv__rows_next(&rows);)
        for (int64_t m = 0; m < more; m++) {
            int64_t position[FV_MAX_DIMS];
            memcpy(position, rows.position, sizeof position);
            if (d != last) position[last] += m;
            if (plane)
                c.y = fv__tiles_between(t, 0, position[t->axis[0]]).part;
            else
                choose_tables(tables, t, position, x, &c);
            make_span(&c, in->dtype, fv__block_at(in, position), fv__block_at(out, position), box->size[d], in->stride[d]);
        }
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    fv__tiles        t = tiles_of(&r->need);
    int              x = t.naxes - 1, d = t.axis[x], y = t.naxes > 1 ? t.axis[x - 1] : -1;
    const fv_region *region = &r->out->region;
    int64_t          end = region->start[d] + region->size[d];
    float           *part;
    uint64_t        *quads;
    lay_out(&r->need, &part, &quads, r->scratch);
    for (int64_t i = 0; i < region->size[d]; i++) part[i] = fv__tiles_between(&t, x, region->start[d] + i).part;
    fv_region outer = *region; /* a plane of several images is made image by image */
    for (int k = 0; k < outer.ndim; k++)
        if (t.naxes == 2 && k < y) outer.size[k] = 1;
    fv_region walk = *region;
    for (int k = 0; k < walk.ndim; k++)
        if (!(t.naxes == 2 && k < y)) walk.size[k] = 1;
    fv_rows images;
    for (fv__rows_begin(&images, &walk); fv__rows_next(&images);) {
        fv_region box = outer;
        for (int k = 0; k < y && t.naxes == 2; k++) box.start[k] = images.position[k];
        int64_t bottom = y < 0 ? 1 : region->start[y] + region->size[y];
        for (int64_t from = y < 0 ? 0 : region->start[y], next; from < bottom; from = next) {
            next = t.naxes == 2 ? same_tiles(&t, 0, from, bottom) : bottom;
            if (y >= 0) box.start[y] = from, box.size[y] = next - from;
            for (int64_t i = region->start[d], to; i < end; i = to) {
                to = same_tiles(&t, x, i, end);
                box.start[d] = i;
                box.size[d] = to - i;
                make_box(r, &t, &box, part + (i - region->start[d]), quads);
            }
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
