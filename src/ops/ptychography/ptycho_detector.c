/* ptycho_detector: squared amplitudes as counts of the detector's own pixels, the way back from what ptycho_frames does. */
#include "op/op.h"
#include "ops/ptychography/detector_pixel.h"

typedef struct {
    int64_t orientation;
    bool    near;
} ptycho_detector;

static const fv_param params[] = {
    FV_PARAM(ptycho_detector, orientation, .def = "0", .min = 0, .max = 7, .doc = FV_DETECTOR_ORIENTATION),
    FV_PARAM(ptycho_detector, near, .def = "false", .doc = "whether the detector is near by and sees places, not frequencies"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "squared amplitudes: float32, y x, zero frequency at the corner" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const ptycho_detector *p = i->params;
    const fv_image_type   *a = &i->in[0]->image;
    if (a->ndim != 2 || a->dtype != FV_FLOAT32) return fv_fail(error, FV_ERROR_USAGE, "image must be float32 with the axes y x");
    if (p->orientation & 4 && a->shape[0] != a->shape[1])
        return fv_fail(error, FV_ERROR_USAGE, "orientation = %lld exchanges rows and columns of an image that is not square",
                       (long long)p->orientation);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) { in[0] = fv__region_whole(&n->in[0]->image); }

static fv_status run(fv_run *r, fv_error *error) {
    const ptycho_detector *p = r->need.params;
    const fv_block        *in = r->in[0], *out = r->out;
    fv_detector            detector = { in->region.size[0], in->region.size[1], p->orientation, p->near };
    float                  whole = (float)(detector.height * detector.width);
    (void)error;
    for (int64_t y = 0; y < detector.height; y++)
        for (int64_t x = 0; x < detector.width; x++) {
            int64_t pixel[2];
            fv__detector_pixel(&detector, y, x, pixel);
            for (int a = 0; a < 2; a++) pixel[a] -= out->region.start[a];
            if (pixel[0] < 0 || pixel[1] < 0 || pixel[0] >= out->region.size[0] || pixel[1] >= out->region.size[1]) continue;
            ((float *)out->data)[pixel[0] * out->stride[0] + pixel[1]] = ((float *)in->data)[y * in->stride[0] + x] / whole;
        }
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_detector) = {
    .name = "ptycho_detector",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "squared amplitudes as counts of the detector's pixels: a step of ptycho",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_detector),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .doc = "Divided by the number of pixels, zero frequency in the middle, turned back as orientation says.",
    .example = "write(ptycho_detector(ones([16, 16], \"float32\") * 256, orientation = 3), \"counts.npy\")",
    .see = "ptycho ptycho_frames ptycho_background",
};
