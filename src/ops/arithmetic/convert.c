/* convert: an image in another element type. The engine converts on the way into and out of a kernel, so that nothing is left
 * to do but to choose a compute type that holds every value of the input. */
#include "op/point.h"

typedef struct {
    fv_dtype_choice dtype;
} convert;

static const fv_param params[] = {
    FV_PARAM(convert, dtype, .doc = "element type of the result, such as \"uint8\" or \"float32\""),
    FV_PARAM_END,
};

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image to convert" },
    FV_INPUT_END,
};

FV_POINT_COPIES
FV_POINT1(real32, float, float, x)
FV_POINT1(real64, double, double, x)

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_dtype dtype = (fv_dtype)((const convert *)i->params)->dtype.dtype;
    if (fv_dtype_is_complex(dtype))
        return fv_fail(error, FV_ERROR_USAGE, "dtype = \"%s\": a real, integer or bool type is needed", fv_dtype_name(dtype));
    FV_TRY(fv__infer_keep(i, error));
    i->out->image.dtype = dtype;
    if (dtype == FV_BOOL) i->compute = FV_BOOL;
    return FV_OK;
}

const fv_op FV_OP(convert) = {
    .name = "convert",
    .family = "arithmetic",
    .brief = "change the element type of an image",
    .version = 1,
    .also = "astype, cast, img_as_ubyte, img_as_float, im2double, im2uint8, im2uint16, uint8, uint16, float32, float64",
    .doc = "Values are kept, not rescaled. When an image is converted to integers, fractions are cut off (use round before, "
           "to round them), values outside the range of the type become its nearest end, and nan becomes 0. When it is "
           "converted to bool, every value other than 0 is true.",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(convert),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64, [FV_INT64] = whole, [FV_UINT64] = natural, [FV_BOOL] = flag },
    .example = "phantom(\"cells\", [200, 200]) * 2 |> convert(\"uint8\") |> write(\"brighter.png\")",
    .see = "rescale round clip",
};
