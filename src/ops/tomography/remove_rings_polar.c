/* remove_rings_polar: rings about the axis of rotation, taken out of reconstructed slices. */
#include "base/math.h"
#include "kernels/find_place.h"
#include "op/kernels.h"
#include "op/op.h"
#include "op/scratch.h"

typedef struct {
    int64_t size, sectors;
    double  most;
} remove_rings_polar;

enum { DIRECTIONS = 720 };

static const fv_param params[] = {
    FV_PARAM(remove_rings_polar, size, .def = "9", .min = 3, .max = 999, .unit = "px",
             .doc = "how many radii a radius is compared with: an odd number, a few more than the widest ring"),
    FV_PARAM(remove_rings_polar, sectors, .def = "1", .min = 1, .max = 36,
             .doc = "number of parts into which the turn is divided; each gets its own correction"),
    FV_PARAM(remove_rings_polar, most, .def = "0", .min = 0, .max = 1e30,
             .doc = "differences above this belong to objects and do not count; 0: all count"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "volume", FV_KIND_IMAGE, .doc = "real volume z y x, or one slice y x" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    const remove_rings_polar *p = i->params;
    const fv_image_type      *in = &i->in[0]->image;
    int                       spatial[FV_MAX_DIMS];
    if (in->ndim < 2 || in->ndim > 3 || fv_image_type_spatial(in, spatial) != in->ndim || fv_dtype_is_complex(in->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "volume must be real with the axes z y x or y x");
    if (p->size % 2 == 0) return fv_fail(error, FV_ERROR_USAGE, "size = %lld: must be odd", (long long)p->size);
    for (int d = in->ndim - 2; d < in->ndim; d++)
        if (in->shape[d] > 8192) return fv_fail(error, FV_ERROR_USAGE, "slices may have at most 8192 rows and columns");
    i->out->image.dtype = FV_FLOAT32;
    return FV_OK;
}

/* Whole slices. */
static void need(const fv_need *n, fv_region *in) {
    in[0] = fv__region_whole(&n->in[0]->image);
    if (in[0].ndim < 3) return;
    in[0].start[0] = n->region.start[0];
    in[0].size[0] = n->region.size[0];
}

typedef struct work {
    int64_t height, width, radii;
    float  *slice, *polar, *ring, *room, *values; /* polar [radii][directions], ring [sectors][radii] */
} work;

static size_t lay_out(const fv_need *n, work *w, void *memory) {
    const remove_rings_polar *p = n->params;
    const fv_image_type      *in = &n->in[0]->image;
    fv_scratch                pieces = { memory };
    w->height = in->shape[in->ndim - 2];
    w->width = in->shape[in->ndim - 1];
    double my = (double)(w->height - 1) / 2, mx = (double)(w->width - 1) / 2;
    w->radii = (int64_t)ceil(sqrt(my * my + mx * mx)) + 2;
    w->slice = fv__scratch_take(&pieces, w->height * w->width * (int64_t)sizeof(float));
    w->polar = fv__scratch_take(&pieces, w->radii * DIRECTIONS * (int64_t)sizeof(float));
    w->ring = fv__scratch_take(&pieces, w->radii * p->sectors * (int64_t)sizeof(float));
    w->room = fv__scratch_take(&pieces, p->size * (int64_t)sizeof(float));
    w->values = fv__scratch_take(&pieces, DIRECTIONS * (int64_t)sizeof(float));
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work w;
    return lay_out(n, &w, NULL);
}

FV_FIND_PLACE(find_place, float)

/* The middle one of n values, which are reordered; of an even number the lower one. */
static float middle(float *v, int64_t n) { return find_place(v, n, (n - 1) / 2); }

/* Rays from the middle; NaN outside the slice. */
static void to_polar(const work *w) {
    double my = (double)(w->height - 1) / 2, mx = (double)(w->width - 1) / 2;
    for (int64_t t = 0; t < DIRECTIONS; t++) {
        double angle = 0x1.921fb54442d18p+2 * (double)t / DIRECTIONS, c = fv__cos(angle), s = fv__sin(angle);
        for (int64_t r = 0; r < w->radii; r++) {
            double  y = my + (double)r * s, x = mx + (double)r * c;
            int64_t i = (int64_t)floor(y), k = (int64_t)floor(x);
            float  *to = w->polar + r * DIRECTIONS + t, fy = (float)(y - (double)i), fx = (float)(x - (double)k);
            *to = NAN;
            if (i < 0 || k < 0 || i + 1 >= w->height || k + 1 >= w->width) continue;
            const float *v = w->slice + i * w->width + k;
            float        top = v[0] + fx * (v[1] - v[0]), bottom = v[w->width] + fx * (v[w->width + 1] - v[w->width]);
            *to = top + fy * (bottom - top);
        }
    }
}

/* By how much a place exceeds the median of the radii around it. */
static float excess(const work *w, int64_t r, int64_t t, int64_t half) {
    int64_t count = 0;
    for (int64_t k = FV_MAX(r - half, 0); k <= FV_MIN(r + half, w->radii - 1); k++) {
        float v = w->polar[k * DIRECTIONS + t];
        if (v == v) w->room[count++] = v;
    }
    return w->polar[r * DIRECTIONS + t] - middle(w->room, FV_MAX(count, 1));
}

/* The ring of a radius in a sector: the median of the excess over its directions. */
static void find_rings(const work *w, const remove_rings_polar *p) {
    for (int64_t s = 0; s < p->sectors; s++)
        for (int64_t r = 0; r < w->radii; r++) {
            int64_t count = 0, from = s * DIRECTIONS / p->sectors, until = (s + 1) * DIRECTIONS / p->sectors;
            for (int64_t t = from; t < until; t++) {
                if (!(w->polar[r * DIRECTIONS + t] == w->polar[r * DIRECTIONS + t])) continue;
                float e = excess(w, r, t, p->size / 2);
                if (!(p->most > 0) || fabsf(e) <= (float)p->most) w->values[count++] = e;
            }
            w->ring[s * w->radii + r] = count ? middle(w->values, count) : 0;
        }
}

/* Between two radii and, with several sectors, between the middles of two of them. */
static float ring_at(const work *w, const remove_rings_polar *p, double y, double x) {
    double  radius = sqrt(y * y + x * x), place = 0;
    int64_t r = (int64_t)radius;
    float   f = (float)(radius - (double)r);
    if (p->sectors > 1) place = fv__atan2(y, x) * (double)p->sectors / 0x1.921fb54442d18p+2 - 0.5;
    double  whole = floor(place);
    int64_t s = ((int64_t)whole % p->sectors + p->sectors) % p->sectors, next = (s + 1) % p->sectors;
    float   g = (float)(place - whole), value[2];
    for (int k = 0; k < 2; k++) {
        const float *ring = w->ring + (k ? next : s) * w->radii;
        value[k] = ring[r] + f * (ring[r + 1] - ring[r]);
    }
    return value[0] + g * (value[1] - value[0]);
}

static void load_slice(const work *w, const fv_block *in, int64_t z) {
    int flat = in->region.ndim < 3;
    for (int64_t y = 0; y < w->height; y++) {
        int64_t offset = (flat ? 0 : z * in->stride[0]) + y * in->stride[1 - flat];
        fv__kernels_current()->convert(w->slice + y * w->width, FV_FLOAT32,
                                       (const char *)in->data + offset * (int64_t)fv_dtype_size(in->dtype), in->dtype, w->width);
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const remove_rings_polar *p = r->need.params;
    const fv_block           *out = r->out;
    int                       flat = out->region.ndim < 3;
    work                      w;
    lay_out(&r->need, &w, r->scratch);
    double my = (double)(w.height - 1) / 2, mx = (double)(w.width - 1) / 2;
    for (int64_t z = 0; z < (flat ? 1 : out->region.size[0]); z++) {
        load_slice(&w, r->in[0], z);
        to_polar(&w);
        find_rings(&w, p);
        for (int64_t i = 0; i < out->region.size[1 - flat]; i++) {
            int64_t y = out->region.start[1 - flat] + i, x0 = out->region.start[2 - flat];
            float  *to = (float *)out->data + (flat ? 0 : z * out->stride[0]) + i * out->stride[1 - flat];
            for (int64_t k = 0; k < out->region.size[2 - flat]; k++)
                to[k] = w.slice[y * w.width + x0 + k] - ring_at(&w, p, (double)y - my, (double)(x0 + k) - mx);
        }
    }
    return FV_OK;
}

static void slab(const fv_need *n, int64_t *chunk) {
    memcpy(chunk, n->out->image.shape, sizeof(int64_t) * FV_MAX_DIMS);
    if (n->out->image.ndim == 3) chunk[0] = 4;
}

static double cost(const fv_need *n) {
    (void)n;
    return 60;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(remove_rings_polar) = {
    .name = "remove_rings_polar",
    .family = "tomography",
    .also = "remove_ring",
    .stage = "filter",
    .brief = "remove rings about the axis from reconstructed slices",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(remove_rings_polar),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .doc = "Along rays from the middle of a slice, every place is compared with the median of the radii around it. The "
           "median of that difference over a turn, or over each of its sectors, is the ring, and it is subtracted. For "
           "volumes whose projections are no longer there; remove_rings works on sinograms. Values must be finite. The "
           "result is float32.",
    .citation =
        "Sijbers and Postnov, Reduction of ring artefacts in high resolution micro-CT reconstructions, Phys. Med. Biol. 49, "
        "2004",
    .example = "g = parallel(range(0, 179))\n"
               "stripes = phantom(\"noise\", [1, 128]) > 0.9\n"
               "p = xray(phantom(\"shepp-logan\", [128, 128]), g) + matmul(ones([180, 1]), stripes) * 2\n"
               "remove_rings_polar(fbp(p, g)) |> write(\"clean.tif\")",
    .see = "remove_rings fbp circle",
};
