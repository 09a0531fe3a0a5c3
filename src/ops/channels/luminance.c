/* luminance: the grey of a colour image, as skimage.color.rgb2gray. */
#include "op/axes.h"
#include "op/op.h"

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "colour image with an axis c of 3 (RGB) or 4 (RGBA), or grey" }, FV_INPUT_END
};

/* The value of white, and of alpha where nothing shines through. */
static double white(fv_dtype dtype) {
    if (fv_dtype_is_float(dtype) || dtype == FV_BOOL) return 1;
    return ldexp(1, (int)fv_dtype_size(dtype) * 8 - fv_dtype_is_signed(dtype)) - 1;
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const fv_image_type *in = &i->in[0]->image;
    int                  axis = fv__axis_find(in, "c");
    if (fv_dtype_is_complex(in->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s: a colour image is real", fv_dtype_name(in->dtype));
    if (axis < 0) {
        fv__bytes_printf(text, "image");
        return FV_OK;
    }
    if (in->shape[axis] == 1) {
        fv__bytes_printf(text, "split(image, 0)");
        return FV_OK;
    }
    if (in->shape[axis] != 3 && in->shape[axis] != 4)
        return fv_fail(error, FV_ERROR_USAGE,
                       "image has %lld channels: RGB has 3 and RGBA has 4; split takes one channel, composite shows several",
                       (long long)in->shape[axis]);
    const char *grey = "split(image, 0) * 0.2125 + split(image, 1) * 0.7154 + split(image, 2) * 0.0721";
    if (in->shape[axis] == 3)
        fv__bytes_printf(text, "%s", grey);
    else /* in front of white */
        fv__bytes_printf(text,
                         "alpha = split(image, 3) / %.17g\n"
                         "(%s) * alpha + (1 - alpha) * %.17g",
                         white(in->dtype), grey, white(in->dtype));
    return FV_OK;
}

const fv_op FV_OP(luminance) = {
    .name = "luminance",
    .family = "channels",
    .brief = "the grey of a colour image",
    .version = 1,
    .also = "rgb2gray, rgb2grey, im2gray, cvtColor",
    .doc = "0.2125 red + 0.7154 green + 0.0721 blue, as skimage.color.rgb2gray, but in the units of the image: white of uint8 "
           "is 255, not 1. What shines through an RGBA image is white, as with skimage.color.rgba2rgb. A grey image stays "
           "as it is. The result of a colour image is float32; it is float64 for float64 and for integers of 32 or 64 bits.",
    .citation = "skimage.color.rgb2gray; ITU-R BT.709",
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .unroll = unroll,
    .example = "colorize(phantom(\"cells\", [200, 200]), map = \"viridis\") |> luminance() |> convert(\"uint8\") |> "
               "write(\"grey.png\")",
    .see = "split colorize composite project",
};
