/* integrate_slopes: a phase from its slopes at scattered places. */
#include "base/math.h"
#include "kernels/spectrum.h"
#include "op/kernels.h"
#include "op/op.h"
#include "op/scratch.h"

typedef struct {
    fv_list    positions;
    fv_numbers size;
    double     step;
} integrate_slopes;

enum { MOST_SIDE = 8192 };
static const double turn = 0x1.921fb54442d18p+2;

static const fv_param params[] = {
    FV_PARAM(integrate_slopes, positions, .each = 2,
             .doc = "row and column of each center in pixels of the object: y0, x0, y1, x1, ..."),
    FV_PARAM(integrate_slopes, size, .min = 1, .max = 65536, .unit = "px", .doc = "rows and columns of a frame"),
    FV_PARAM(integrate_slopes, step, .def = "0", .min = 0, .max = 1e6, .unit = "px",
             .doc = "pixel of the result, in pixels of the object; 0: the mean distance of neighbours"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "centers", FV_KIND_IMAGE, .doc = "what frame_centers gives" }, FV_INPUT_END };

/* The field of the positions. */
static void find_field(const fv_list *positions, double first[2], double last[2]) {
    for (int d = 0; d < 2; d++) {
        first[d] = INFINITY;
        last[d] = -INFINITY;
    }
    for (int64_t k = 0; k < positions->count; k++) {
        first[k % 2] = FV_MIN(first[k % 2], positions->value[k]);
        last[k % 2] = FV_MAX(last[k % 2], positions->value[k]);
    }
}

static fv_status infer(fv_infer *i, fv_error *error) {
    integrate_slopes    *p = i->params;
    const fv_image_type *c = &i->in[0]->image;
    double               first[2], last[2];
    int64_t              shape[2], count = p->positions.count / 2;
    FV_TRY(fv__numbers_spread(&p->size, 2, "size", error));
    if (c->ndim != 2 || c->shape[1] != 3 || fv_dtype_is_complex(c->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "centers must be what frame_centers gives of frames with the axes frame y x");
    if (p->positions.count != 2 * c->shape[0])
        return fv_fail(error, FV_ERROR_USAGE, "there are %lld frames and %g positions", (long long)c->shape[0],
                       (double)p->positions.count / 2);
    find_field(&p->positions, first, last);
    if (count < 4 || !(last[0] > first[0]) || !(last[1] > first[1]))
        return fv_fail(error, FV_ERROR_USAGE, "%lld positions do not cover a field: at least four, on several rows and columns",
                       (long long)count);
    if (!(p->step > 0))
        p->step = sqrt((last[0] - first[0]) * (last[1] - first[1]) / (sqrt((double)count) - 1) / (sqrt((double)count) - 1));
    for (int d = 0; d < 2; d++) {
        double side = floor((last[d] - first[d]) / p->step + 0.5) + 1;
        if (!(side <= MOST_SIDE))
            return fv_fail(error, FV_ERROR_USAGE, "step = %g: the result would have %g pixels in %s, more than %d", p->step, side,
                           d ? "x" : "y", (int)MOST_SIDE);
        shape[d] = FV_MAX((int64_t)side, 2);
    }
    fv_image_type_init(&i->out->image, FV_FLOAT32, 2, shape);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) { in[0] = fv__region_whole(&n->in[0]->image); }

typedef struct {
    int64_t     height, width; /* of the result; planes are twice as high and wide */
    fv_spectrum axes[2];
    double     *slope[2]; /* y and x on the grid and, mirrored, beyond it */
    double     *centers;
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    fv_scratch pieces = { memory };
    k->height = n->out->image.shape[0];
    k->width = n->out->image.shape[1];
    for (int d = 0; d < 2; d++) {
        int64_t side = 2 * n->out->image.shape[d];
        void   *room = fv__scratch_take(&pieces, FV_ISA_NAME(fv__spectrum_bytes)(side));
        if (memory) FV_ISA_NAME(fv__spectrum_prepare)(&k->axes[d], side, room);
        k->slope[d] = fv__scratch_take(&pieces, 64 * k->height * k->width);
    }
    k->centers = fv__scratch_take(&pieces, 24 * n->in[0]->image.shape[0]);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

/* Centers become slopes, in radians a pixel of the result, from the mean of all. */
static fv_status find_slopes(const work *k, const integrate_slopes *p, int64_t count, fv_error *error) {
    double  mean[2] = { 0 };
    int64_t good = 0;
    for (int64_t i = 0; i < count; i++) {
        const double *c = k->centers + 3 * i;
        if (!(fabs(c[0]) < INFINITY && fabs(c[1]) < INFINITY)) continue;
        mean[0] += c[0];
        mean[1] += c[1];
        good++;
    }
    if (good < 4)
        return fv_fail(error, FV_ERROR_INPUT, "only %lld frames have counts; at least four are needed", (long long)good);
    for (int64_t i = 0; i < count; i++)
        for (int d = 0; d < 2; d++)
            k->centers[3 * i + d] = (k->centers[3 * i + d] - mean[d] / (double)good) * turn / p->size.value[d] * p->step;
    return FV_OK;
}

/* The slopes at a pixel of the result: a mean of those around it, the nearer ones more. */
static void slopes_at(const work *k, const integrate_slopes *p, const double at[2], double slope[2]) {
    double reach = 0.5 * p->step, weight = 0, nearest = INFINITY, next[2] = { 0 };
    slope[0] = slope[1] = 0;
    for (int64_t i = 0; i < p->positions.count / 2; i++) {
        const double *c = k->centers + 3 * i, *q = p->positions.value + 2 * i;
        double        dy = q[0] - at[0], dx = q[1] - at[1], square = (dy * dy + dx * dx) / (reach * reach);
        if (!(fabs(c[0]) < INFINITY)) continue;
        if (square < nearest) {
            nearest = square;
            memcpy(next, c, sizeof next);
        }
        if (square > 25) continue;
        double w = fv__exp(-square / 2);
        weight += w;
        slope[0] += w * c[0];
        slope[1] += w * c[1];
    }
    for (int d = 0; d < 2; d++) slope[d] = weight > 0 ? slope[d] / weight : next[d];
}

/* The mirrored phase is even, so that no border jumps: a slope changes its sign where its own axis is mirrored. */
static void fill(const work *k, const integrate_slopes *p) {
    double first[2], last[2], slope[2];
    find_field(&p->positions, first, last);
    for (int64_t y = 0; y < k->height; y++)
        for (int64_t x = 0; x < k->width; x++) {
            double at[2] = { first[0] + (double)y * p->step, first[1] + (double)x * p->step };
            slopes_at(k, p, at, slope);
            for (int mirror = 0; mirror < 4; mirror++) {
                int64_t row = mirror & 1 ? 2 * k->height - 1 - y : y, column = mirror & 2 ? 2 * k->width - 1 - x : x;
                for (int d = 0; d < 2; d++) {
                    double *to = k->slope[d] + 2 * (row * 2 * k->width + column);
                    to[0] = mirror & (d + 1) ? -slope[d] : slope[d];
                    to[1] = 0;
                }
            }
        }
}

static double frequency(int64_t at, int64_t n) {
    return 2 * at == n ? 0 : turn * (double)(2 * at > n ? at - n : at) / (double)n; /* the highest has no sign */
}

/* The phase of which these are the slopes by least squares, into the plane of the first. */
static void integrate(const work *k) {
    int64_t height = 2 * k->height, width = 2 * k->width;
    for (int d = 0; d < 2; d++) FV_ISA_NAME(fv__spectrum_image)(k->axes, 2, k->slope[d], false);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            int64_t at = 2 * (y * width + x);
            double  v = frequency(y, height), u = frequency(x, width), square = v * v + u * u;
            double  by = square > 0 ? 1 / (square * (double)(height * width)) : 0;
            double  re = v * k->slope[0][at] + u * k->slope[1][at], im = v * k->slope[0][at + 1] + u * k->slope[1][at + 1];
            k->slope[0][at] = im * by;
            k->slope[0][at + 1] = -re * by;
        }
    FV_ISA_NAME(fv__spectrum_image)(k->axes, 2, k->slope[0], true);
}

static fv_status run(fv_run *r, fv_error *error) {
    const integrate_slopes *p = r->need.params;
    const fv_block         *out = r->out, *in = r->in[0];
    work                    k;
    lay_out(&r->need, &k, r->scratch);
    for (int64_t i = 0; i < in->region.size[0]; i++)
        fv__kernels_current()->convert(k.centers + 3 * i, FV_FLOAT64, fv__block_at(in, (int64_t[]){ i, 0 }), in->dtype, 3);
    FV_TRY(find_slopes(&k, p, in->region.size[0], error));
    fill(&k, p);
    integrate(&k);
    for (int64_t y = 0; y < out->region.size[0]; y++)
        for (int64_t x = 0; x < out->region.size[1]; x++)
            ((float *)out->data)[y * out->stride[0] + x] =
                (float)k.slope[0][2 * ((out->region.start[0] + y) * 2 * k.width + out->region.start[1] + x)];
    return FV_OK;
}

static void slab(const fv_need *n, int64_t *chunk) { memcpy(chunk, n->out->image.shape, 2 * sizeof *chunk); }

static double cost(const fv_need *n) { return 5 * (double)n->in[0]->image.shape[0] + 500; }

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(integrate_slopes) = {
    .name = "integrate_slopes",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "a phase from the centers of mass of frames: the second step of dpc",
    .also = "Frankot-Chellappa, Fourier integration",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(integrate_slopes),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .doc = "A center that is d pixels away from the mean of all stands for a slope of 2 pi d / pixels of a frame, in radians a "
           "pixel of "
           "the object. Slopes are averaged onto a grid, the nearer ones with more weight, and the phase that fits them best is "
           "found by "
           "their spectra; the field is mirrored, so that it need not be periodic.",
    .citation =
        "Frankot and Chellappa, A method for enforcing integrability in shape from shading algorithms, IEEE Trans. PAMI 10, "
        "1988",
    .example = "o = complex_image(ones([200, 200]), gaussian(phantom(\"cells\", [200, 200]) / 100, 2))\n"
               "at = scan_positions(\"raster\", 167, 4)\n"
               "c = frame_centers(diffract(o, make_probe(32, radius = 6, counts = 1e5), at))\n"
               "write(integrate_slopes(c, positions = at, size = 32, step = 4), \"phase.tif\")",
    .see = "dpc frame_centers",
};
