/* invert: dark becomes bright, as skimage.util.invert. */
#include "op/point.h"

typedef struct {
    double top; /* what 0 becomes, by the image's type */
} invert;

#define TOP ((const invert *)parameters)->top
FV_POINT1(real32, float, float, (float)TOP - x)
FV_POINT1(real64, double, double, TOP - x)
FV_POINT1(whole, int64_t, int64_t, (int64_t)TOP - x)
FV_POINT1(natural, uint64_t, uint64_t, UINT64_MAX - x)
FV_POINT1(flag, uint8_t, uint8_t, !x)

static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image or mask" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_dtype dtype = i->in[0]->image.dtype;
    FV_TRY(fv__infer_keep(i, error));
    ((invert *)i->params)->top = fv_dtype_is_float(dtype)    ? 1
                                 : fv_dtype_is_signed(dtype) ? -1
                                                             : ldexp(1, 8 * (int)fv_dtype_size(dtype)) - 1;
    return FV_OK;
}

static const fv_param params[] = { FV_PARAM_END };

const fv_op FV_OP(invert) = {
    .name = "invert",
    .family = "intensity",
    .brief = "make dark bright and bright dark",
    .version = 1,
    .also = "imcomplement, complement, util.invert",
    .doc = "The largest value of the type minus the image, -1 minus an image of signed integers, 1 minus a floating-point "
           "image, and the opposite of a mask: as skimage.util.invert. The type is kept.",
    .citation = "skimage.util.invert",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(invert),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64, [FV_INT64] = whole, [FV_UINT64] = natural, [FV_BOOL] = flag },
    .example = "phantom(\"cells\", [200, 200]) |> invert() |> write(\"negative.png\")",
    .see = "negative not rescale gamma",
};
