/* diffract: the frames that a detector, far away or near, would see of an object that is lit at each position of a scan. */
#include "op/scratch.h"
#include "ops/ptychography/complex_rows.h"
#include "ops/ptychography/near_field.h"
#include "ops/ptychography/probe_classes.h"

typedef struct {
    fv_list positions;
    double  saturation, near;
} diffract;
enum { OBJECT, PROBE };

static const fv_param params[] = {
    FV_PARAM(diffract, positions, .doc = "row and column of each frame's corner in the object, in pixels: y0, x0, y1, x1, ..."),
    FV_PARAM(diffract, saturation, .def = "0", .min = 0, .max = 1e18, .doc = "largest value of the detector; 0: none"),
    FV_PARAM(
        diffract, near, .def = "0", .min = -1e9, .max = 1e9, .unit = "px^2",
        .doc =
            "a detector near by: wavelength times distance, by the area of a pixel; its pixels are those of the object. 0: far "
            "away"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "object", FV_KIND_IMAGE, .doc = "what is looked at: complex, axes y x" },
    { "probe", FV_KIND_IMAGE, .doc = "the wave that lights it: complex, axes y x, or mode y x for partly coherent light" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const diffract      *p = i->params;
    const fv_image_type *o = &i->in[OBJECT]->image, *a = &i->in[PROBE]->image;
    int                  y = a->ndim - 2;
    int64_t              count = p->positions.count / 2;
    if (o->ndim != 2 || (a->ndim != 2 && a->ndim != 3))
        return fv_fail(error, FV_ERROR_USAGE, "object must have the axes y x, and probe y x or mode y x");
    if (count < 1 || p->positions.count % 2)
        return fv_fail(error, FV_ERROR_USAGE, "positions has %lld numbers; it takes a row and a column for each frame",
                       (long long)p->positions.count);
    for (int d = 0; d < 2; d++)
        if (!FV_ISA_NAME(fv__plane_fourier_able)(a->shape[y + d]))
            return fv_fail(error, FV_ERROR_USAGE,
                           "the probe has %lld x %lld pixels; both sides must be products of 2, 3, 5 and 7",
                           (long long)a->shape[y], (long long)a->shape[y + 1]);
    for (int64_t k = 0; k < 2 * count; k++) {
        double at = p->positions.value[k];
        if (!(at >= 0 && ceil(at) + (double)a->shape[y + k % 2] <= (double)o->shape[k % 2]))
            return fv_fail(error, FV_ERROR_USAGE,
                           "position %lld is %g in %s: a probe of %lld pixels leaves the object, which has %lld",
                           (long long)(k / 2), at, k % 2 ? "x" : "y", (long long)a->shape[y + k % 2], (long long)o->shape[k % 2]);
    }
    int64_t shape[] = { count, a->shape[y], a->shape[y + 1] };
    fv_image_type_init(&i->out->image, FV_FLOAT32, 3, shape);
    memcpy(i->out->image.axis[0], "frame", 6);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    const diffract *p = n->params;
    int64_t         first[2] = { INT64_MAX, INT64_MAX }, last[2] = { 0, 0 };
    for (int64_t k = 2 * n->region.start[0]; k < 2 * (n->region.start[0] + n->region.size[0]); k++) {
        int64_t at = (int64_t)floor(p->positions.value[k]);
        first[k % 2] = FV_MIN(first[k % 2], at);
        last[k % 2] = FV_MAX(last[k % 2], at);
    }
    in[OBJECT] = fv__region_whole(&n->in[OBJECT]->image);
    for (int d = 0; d < 2; d++) {
        in[OBJECT].start[d] = first[d];
        in[OBJECT].size[d] = last[d] - first[d] + n->out->image.shape[1 + d];
    }
    in[PROBE] = fv__region_whole(&n->in[PROBE]->image);
}

typedef struct {
    fv_probe_classes c;
    fv_list          shift;
    double           values[4]; /* no shift; that of this frame */
    float           *probe;     /* [2][height][2][width]: as given, and shifted */
    float           *row, *size;
    float           *travel; /* cosine and sine of each frequency's phase on its way to a detector near by */
} work;

static bool is_near(const fv_need *n) { return ((const diffract *)n->params)->near != 0; }

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    int64_t    height = n->out->image.shape[1], width = n->out->image.shape[2];
    fv_scratch pieces = { memory };
    k->shift = (fv_list){ 4, k->values };
    k->probe = fv__scratch_take(&pieces, 4 * height * width * (int64_t)sizeof(float));
    k->row = fv__scratch_take(&pieces, 2 * width * (int64_t)sizeof(float));
    k->size = fv__scratch_take(&pieces, height * width * (int64_t)sizeof(float));
    k->travel = fv__scratch_take(&pieces, is_near(n) ? 2 * height * width * (int64_t)sizeof(float) : 0);
    return pieces.used + fv__probe_classes_lay_out(&k->c, height, width, &k->shift, memory ? (char *)memory + pieces.used : NULL);
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

static void load_probe(const work *k, const fv_block *probe, int64_t mode) {
    for (int64_t y = 0; y < k->c.height; y++) {
        int64_t at[3] = { mode, y, 0 };
        float  *row = k->probe + y * 2 * k->c.width;
        fv__complex_row(probe, probe->region.ndim == 3 ? at : at + 1, k->c.width, row, row + k->c.width);
    }
}

/* From the spectrum of the wave behind the object to the wave at the detector. */
static void travel(const work *k) {
    fv__near_turn(k->c.height, k->c.width, k->travel, k->c.plane, k->c.stride, false);
    FV_ISA_NAME(fv__plane_fourier)(&k->c.fourier, k->c.plane, k->c.stride, true);
}

/* Adds what one mode brings to the frame, of a detector far away zero frequency at the corner. */
static void add_mode(work *k, const fv_block *object, const double *position, bool near) {
    int64_t n = k->c.width, plane = k->c.height * 2 * n, corner[2];
    for (int d = 0; d < 2; d++) {
        corner[d] = (int64_t)floor(position[d]);
        k->values[2 + d] = position[d] - (double)corner[d];
    }
    bool shifted = k->values[2] > 0 || k->values[3] > 0;
    if (shifted) fv__probe_classes_fill(&k->c, k->probe, plane);
    const float *probe = k->probe + (shifted ? plane : 0);
    for (int64_t y = 0; y < k->c.height; y++) {
        int64_t      at[2] = { corner[0] + y, corner[1] };
        const float *p = probe + y * 2 * n, *q = p + n, *o = k->row, *i = o + n;
        float *restrict re = k->c.plane + y * k->c.stride, *restrict im = re + n;
        fv__complex_row(object, at, n, k->row, k->row + n);
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            re[x] = p[x] * o[x] - q[x] * i[x];
            im[x] = p[x] * i[x] + q[x] * o[x];
        }
    }
    FV_ISA_NAME(fv__plane_fourier)(&k->c.fourier, k->c.plane, k->c.stride, false);
    if (near) travel(k);
    for (int64_t y = 0; y < k->c.height; y++) {
        const float *re = k->c.plane + y * k->c.stride, *im = re + n;
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) k->size[y * n + x] += re[x] * re[x] + im[x] * im[x];
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    const diffract *p = r->need.params;
    const fv_block *out = r->out, *probe = r->in[PROBE];
    work            k;
    (void)error;
    lay_out(&r->need, &k, r->scratch);
    memset(k.values, 0, sizeof k.values);
    int64_t height = k.c.height, width = k.c.width, modes = probe->region.ndim == 3 ? probe->region.size[0] : 1;
    int64_t dy = is_near(&r->need) ? 0 : height - height / 2, dx = is_near(&r->need) ? 0 : width - width / 2;
    float   one = 1 / (float)(height * width), whole = is_near(&r->need) ? one * one : one,
          most = p->saturation > 0 ? (float)p->saturation : INFINITY;
    if (is_near(&r->need)) fv__near_fill(height, width, p->near, 1, k.travel);
    for (int64_t f = 0; f < out->region.size[0]; f++) {
        memset(k.size, 0, (size_t)(height * width) * sizeof *k.size);
        for (int64_t m = 0; m < modes; m++) {
            load_probe(&k, probe, m);
            add_mode(&k, r->in[OBJECT], p->positions.value + 2 * (out->region.start[0] + f), is_near(&r->need));
        }
        for (int64_t y = 0; y < out->region.size[1]; y++) {
            float       *to = (float *)out->data + f * out->stride[0] + y * out->stride[1];
            const float *from = k.size + (out->region.start[1] + y + dy) % height * width;
            for (int64_t x = 0; x < out->region.size[2]; x++) {
                float value = from[(out->region.start[2] + x + dx) % width] * whole;
                to[x] = value > most ? most : value; /* what is not a number stays so */
            }
        }
    }
    return FV_OK;
}

static void slab(const fv_need *n, int64_t *chunk) {
    memcpy(chunk, n->out->image.shape, 3 * sizeof *chunk);
    chunk[0] = 16;
}

static double cost(const fv_need *n) {
    (void)n;
    return 10;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(diffract) = {
    .name = "diffract",
    .family = "ptychography",
    .stage = "simulate",
    .brief = "simulate the diffraction patterns of a scan",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(diffract),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .doc =
        "Each frame is the squared amplitude of the Fourier transform of probe times object, divided by the number of pixels, so "
        "that its sum is that of the squared wave: expected counts, zero frequency in the middle. Modes of the probe are added "
        "as intensities, which is what partly coherent light does. poisson turns expected counts into counted ones; "
        "minimum(poisson(frames), most) is what a detector makes of them that saturates. Positions between pixels are exact: the "
        "probe is shifted by its spectrum. With near, the wave travels to a detector close behind the object (Fresnel), whose "
        "pixels are those of the object; what leaves the frame on one side comes in on the other, so leave room around the "
        "probe.",
    .citation = "Rodenburg and Faulkner, A phase retrieval algorithm for shifting illumination, Appl. Phys. Lett. 85, 2004",
    .example = "o = complex_image(ones([160, 160]), phantom(\"cells\", [160, 160]) / 255)\n"
               "p = make_probe(64, radius = 16, defocus = 200, counts = 1e5)\n"
               "frames = poisson(diffract(o, p, scan_positions(\"fermat\", 96, 12)))\n"
               "write(log(frames[0] + 1), \"frame.tif\")",
    .see = "ptycho make_probe scan_positions poisson complex_image",
};
