/* composite: channels, each in its colour, as one RGB picture. */
#include "op/axes.h"
#include "op/channels.h"
#include "op/colors.h"

typedef struct {
    const char *colors;
    fv_numbers  ranges;
} composite;

static const fv_param params[] = {
    FV_PARAM(composite, colors, .def = "",
             .doc =
                 "a colour for each channel, such as \"green magenta\": " FV__COLORS_DOC
                 "; left out: those of the channels, or if they have none green and magenta, or red, green, blue, white, cyan, "
                 "magenta, yellow, orange"),
    FV_PARAM(composite, ranges, .def = "", .blank = true,
             .doc = "[low, high, low, high, ...] of each channel: low and below is black, high and above the full colour; left "
                    "out: what the channel says, or its smallest and largest value"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image with an axis c" }, FV_INPUT_END };

static fv_status choose_colors(const composite *p, const fv_image_type *in, int count, uint32_t *color, fv_error *error) {
    int given = 0;
    FV_TRY(fv__colors_parse(p->colors ? p->colors : "", "colors", color, &given, error));
    if (given && given != count)
        return fv_fail(error, FV_ERROR_USAGE, "colors = \"%.60s\": %d for %d channels", p->colors, given, count);
    for (int k = 0; k < count && !given; k++) color[k] = fv__channel_color(in, k);
    return FV_OK;
}

static void write_end(fv_bytes *text, const fv_image_type *in, const fv_numbers *ranges, int channel, int end) {
    double value = ranges->count ? ranges->value[2 * channel + end] : NAN;
    if (!ranges->count && channel < in->nchannels && in->channel[channel].low < in->channel[channel].high)
        value = end ? in->channel[channel].high : in->channel[channel].low;
    if (value == value)
        fv__bytes_printf(text, "%s%d = %.17g\n", end ? "high" : "low", channel, value);
    else
        fv__bytes_printf(text, "%s%d = %s(ch%d)\n", end ? "high" : "low", channel, end ? "max" : "min", channel);
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const composite     *p = i->params;
    const fv_image_type *in = &i->in[0]->image;
    uint32_t             color[FV__COLORS_MOST];
    int                  axis = fv__axis_find(in, "c"), count = axis < 0 ? 0 : (int)FV_MIN(in->shape[axis], FV__COLORS_MOST + 1);
    if (fv_dtype_is_complex(in->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s: show its magnitude or one of its parts", fv_dtype_name(in->dtype));
    if (axis < 0)
        return fv_fail(error, FV_ERROR_USAGE, "image has no axis c; merge_channels makes one, and colorize shows a single image");
    if (in->ndim == 1) return fv_fail(error, FV_ERROR_USAGE, "image has no other axis than c");
    if (count > FV__COLORS_MOST)
        return fv_fail(error, FV_ERROR_USAGE, "image has %lld channels, and a picture can show %d: split takes some of them",
                       (long long)in->shape[axis], FV__COLORS_MOST);
    FV_TRY(choose_colors(p, in, count, color, error));
    FV_TRY(fv__channels_check_ranges(&p->ranges, count, error));
    for (int k = 0; k < count; k++) {
        fv__bytes_printf(text, "ch%d = split(image, %d)\n", k, k);
        write_end(text, in, &p->ranges, k, 0);
        write_end(text, in, &p->ranges, k, 1);
        fv__bytes_printf(text, "n%d = clip((ch%d - low%d) / where(high%d > low%d, high%d - low%d, 1), 0, 1)\n", k, k, k, k, k, k,
                         k);
    }
    for (int c = 0; c < 3; c++) {
        fv__bytes_printf(text, "%c = convert(minimum(0", "rgb"[c]);
        for (int k = 0; k < count; k++) fv__bytes_printf(text, " + n%d * %u", k, (unsigned)(color[k] >> (16 - 8 * c) & 255));
        fv__bytes_printf(text, ", 255) + 0.5, \"uint8\")\n");
    }
    fv__bytes_printf(text, "stack(r, g, b, axis = \"c\", position = -1)");
    return FV_OK;
}

const fv_op FV_OP(composite) = {
    .name = "composite",
    .family = "channels",
    .brief = "show channels, each in its colour, as one picture",
    .version = 2,
    .also = "make_composite, merge_to_rgb, rgb_composite",
    .doc = "Each channel is stretched from its low to its high value, painted in its colour, and the colours are added as "
           "light is: green and magenta give white. Gives red, green and blue (uint8) along a last axis c, as PNG and TIFF "
           "files hold it. Nan is black.",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(composite),
    .result = FV_KIND_IMAGE,
    .unroll = unroll,
    .example = "nuclei = phantom(\"cells\", [200, 200], seed = 1)\n"
               "actin  = phantom(\"cells\", [200, 200], seed = 5)\n"
               "merge_channels(nuclei, actin) |> composite(ranges = [30, 200, 30, 200]) |> write(\"both.png\")",
    .see = "merge_channels name_channels overlay colorize split",
};
