/* crop_frames: the middle of diffraction patterns, in a size that is transformed fast. */
#include "kernels/plane_fourier.h"
#include "op/op.h"

typedef struct {
    fv_numbers size, center;
} crop_frames;

static const fv_param params[] = {
    FV_PARAM(crop_frames, size, .def = "", .min = 1, .max = 65536, .unit = "px",
             .doc =
                 "rows and columns that are left, one number or two; left out: the largest power of two that fits, the same for "
                 "both"),
    FV_PARAM(crop_frames, center, .def = "", .min = 0, .max = 65536, .unit = "px",
             .doc = "row and column of the direct beam, which comes to lie in the middle; left out: the middle"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "frames", FV_KIND_IMAGE, .doc = "frames; axes frame y x" }, FV_INPUT_END };

/* First pixel and size along one axis of n pixels. */
static fv_status find_part(int64_t n, double center, double size, const char *axis, int64_t *first, fv_error *error) {
    int64_t middle = (int64_t)floor(center + 0.5), wanted = (int64_t)size;
    *first = middle - wanted / 2;
    if (!FV_ISA_NAME(fv__plane_fourier_able)(wanted))
        return fv_fail(error, FV_ERROR_USAGE, "size = %lld in %s: it must be a product of 2, 3, 5 and 7", (long long)wanted,
                       axis);
    if (*first < 0 || *first + wanted > n)
        return fv_fail(error, FV_ERROR_USAGE, "%lld pixels around %lld do not fit into the %lld that frames have in %s",
                       (long long)wanted, (long long)middle, (long long)n, axis);
    return FV_OK;
}

/* The largest power of two that fits around the middle on both axes. */
static double largest(const int64_t *shape, const double *center) {
    int64_t size = 1, room = INT64_MAX;
    for (int d = 0; d < 2; d++) {
        int64_t middle = (int64_t)floor(center[d] + 0.5);
        room = FV_MIN(room, 2 * FV_MIN(middle, shape[d] - middle));
    }
    while (2 * size <= room) size *= 2;
    return (double)size;
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const crop_frames   *p = i->params;
    const fv_image_type *f = &i->in[0]->image;
    fv_numbers           size = p->size, center = p->center;
    int64_t              first[2];
    if (f->ndim != 3) return fv_fail(error, FV_ERROR_USAGE, "frames must have three axes: frame, y and x");
    if (!center.count) center = (fv_numbers){ 2, { (double)(f->shape[1] / 2), (double)(f->shape[2] / 2) } };
    if (center.count != 2) return fv_fail(error, FV_ERROR_USAGE, "center takes a row and a column");
    if (!size.count) size = (fv_numbers){ 1, { largest(f->shape + 1, center.value) } };
    FV_TRY(fv__numbers_spread(&size, 2, "size", error));
    for (int d = 0; d < 2; d++)
        FV_TRY(find_part(f->shape[1 + d], center.value[d], size.value[d], d ? "x" : "y", &first[d], error));
    fv__bytes_printf(text, "frames[:, %lld:%lld, %lld:%lld]\n", (long long)first[0],
                     (long long)(first[0] + (int64_t)size.value[0]), (long long)first[1],
                     (long long)(first[1] + (int64_t)size.value[1]));
    return FV_OK;
}

/* It is always written as a slice. */
static fv_status infer(fv_infer *i, fv_error *error) {
    (void)i;
    return fv_fail(error, FV_ERROR_INTERNAL, "crop_frames was not written as a slice");
}
static fv_status run(fv_run *r, fv_error *error) {
    (void)r;
    return fv_fail(error, FV_ERROR_INTERNAL, "crop_frames was not written as a slice");
}
static const fv_pass passes[] = { { .run = run }, FV_PASS_END };

const fv_op FV_OP(crop_frames) = {
    .name = "crop_frames",
    .family = "ptychography",
    .stage = "prepare",
    .brief = "cut the middle out of diffraction patterns",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(crop_frames),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .doc =
        "The direct beam comes to lie at row size / 2 and column size / 2, where ptycho expects it. A smaller frame means larger "
        "pixels of the object: size and pixel of the object times each other stay the same.",
    .example = "o = complex_image(ones([160, 160]), phantom(\"cells\", [160, 160]) / 255)\n"
               "frames = diffract(o, make_probe(80, radius = 16, counts = 1e5), scan_positions(\"fermat\", 80, 12))\n"
               "write(log(crop_frames(frames)[0] + 1), \"frame.tif\")",
    .see = "ptycho diffract crop",
};
