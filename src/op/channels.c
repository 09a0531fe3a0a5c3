/* Names, colours and ranges of channels. */
#include "op/channels.h"
#include "op/axes.h"
#include "op/colors.h"

int64_t fv__channels_count(const fv_image_type *type) {
    int c = fv__axis_find(type, "c");
    return c < 0 ? 1 : type->shape[c];
}

static void forget(fv_image_type *type) {
    memset(type->channel, 0, sizeof type->channel);
    type->nchannels = 0;
}

void fv__channels_step(fv_image_type *type, int64_t start, int64_t step, int64_t count) {
    fv_channel taken[FV_MAX_CHANNELS] = { 0 };
    if (!type->nchannels) return;
    for (int64_t i = 0; i < count; i++) {
        int64_t from = start + i * step;
        if (i >= FV_MAX_CHANNELS || from < 0 || from >= type->nchannels) {
            forget(type);
            return;
        }
        taken[i] = type->channel[from];
    }
    memcpy(type->channel, taken, sizeof taken);
    type->nchannels = (int)count;
}

bool fv__channels_begin(fv_image_type *type) {
    int64_t count = fv__channels_count(type);
    if (type->nchannels != count) forget(type);
    if (count > FV_MAX_CHANNELS) return false;
    type->nchannels = (int)count;
    return true;
}

static bool same(const fv_image_type *a, const fv_image_type *b) {
    bool alike = a->nchannels == b->nchannels;
    for (int k = 0; k < a->nchannels && alike; k++) {
        const fv_channel *one = &a->channel[k], *other = &b->channel[k];
        alike = !strcmp(one->name, other->name) && one->has_color == other->has_color && one->color == other->color;
    }
    return alike;
}

void fv__channels_agree(const fv_type *const *in, int ninputs, fv_image_type *out) {
    const fv_image_type *teller = NULL;
    int64_t              count = fv__channels_count(out);
    bool                 differ = false;
    for (int k = 0; k < ninputs; k++) {
        const fv_image_type *image = &in[k]->image;
        if (in[k]->kind != FV_KIND_IMAGE || !image->nchannels || image->nchannels != count) continue;
        if (!teller) teller = image;
        differ = differ || !same(teller, image);
    }
    forget(out);
    if (!teller || differ) return;
    memcpy(out->channel, teller->channel, sizeof out->channel);
    out->nchannels = teller->nchannels;
}

void fv__channels_settle(const fv_op *op, const fv_type *const *in, int ninputs, fv_image_type *out) {
    bool point = fv__op_is_point(op), image = ninputs && in[0]->kind == FV_KIND_IMAGE;
    if (point) fv__channels_agree(in, ninputs, out);
    if (out->nchannels != fv__channels_count(out)) forget(out);
    bool changed = point || (image && out->dtype != in[0]->image.dtype && !fv_dtype_is_float(out->dtype));
    for (int k = 0; k < out->nchannels && changed; k++) out->channel[k].low = out->channel[k].high = 0;
}

/* ---------------------------------------------------------------- what a user says */

static fv_status say_colors(fv_image_type *type, const char *text, fv_error *error) {
    uint32_t color[FV__COLORS_MOST];
    int      given;
    FV_TRY(fv__colors_parse(text, "colors", color, &given, error));
    if (given != type->nchannels)
        return fv_fail(error, FV_ERROR_USAGE, "colors = \"%.60s\": %d for %d channels", text, given, type->nchannels);
    for (int k = 0; k < given; k++) {
        type->channel[k].has_color = true;
        type->channel[k].color = color[k];
    }
    return FV_OK;
}

static fv_status say_names(fv_image_type *type, const char *text, fv_error *error) {
    const char *between = strchr(text, ',') ? "," : " ";
    int         given = 0;
    for (const char *at = text + strspn(text, " "); *at; given++) {
        size_t whole = strcspn(at, between), length = whole;
        while (length && at[length - 1] == ' ') length--;
        if (length >= sizeof type->channel[0].name)
            return fv_fail(error, FV_ERROR_USAGE, "names: \"%.*s\" is longer than %d letters", (int)FV_MIN(length, 60), at,
                           (int)sizeof type->channel[0].name - 1);
        if (given < type->nchannels) fv__channel_call(&type->channel[given], at, length);
        at += whole;
        at += *at == ',';
        at += strspn(at, " ");
    }
    if (given != type->nchannels)
        return fv_fail(error, FV_ERROR_USAGE, "names = \"%.60s\": %d for %d channels", text, given, type->nchannels);
    return FV_OK;
}

fv_status fv__channels_check_ranges(const fv_numbers *ranges, int64_t count, fv_error *error) {
    if (ranges->count && ranges->count != 2 * count)
        return fv_fail(error, FV_ERROR_USAGE, "ranges has %d numbers: %lld channels need %lld, low and high of each",
                       ranges->count, (long long)count, 2 * (long long)count);
    for (int k = 0; k < ranges->count; k += 2)
        if (ranges->value[k] >= ranges->value[k + 1])
            return fv_fail(error, FV_ERROR_USAGE, "ranges: channel %d goes from %g to %g; low must be below high", k / 2,
                           ranges->value[k], ranges->value[k + 1]);
    return FV_OK;
}

fv_status fv__channels_say(fv_image_type *type, const char *colors, const char *names, const fv_numbers *ranges,
                           fv_error *error) {
    bool told = (colors && *colors) || (names && *names) || ranges->count;
    if (!told) return FV_OK;
    if (!fv__channels_begin(type))
        return fv_fail(error, FV_ERROR_USAGE, "the image has %lld channels, and at most %d can have names and colours",
                       (long long)fv__channels_count(type), FV_MAX_CHANNELS);
    if (colors && *colors) FV_TRY(say_colors(type, colors, error));
    if (names && *names) FV_TRY(say_names(type, names, error));
    FV_TRY(fv__channels_check_ranges(ranges, type->nchannels, error));
    for (int k = 0; 2 * k < ranges->count; k++) {
        double low = ranges->value[2 * k], high = ranges->value[2 * k + 1];
        if (low != low || high != high) continue;
        type->channel[k].low = low;
        type->channel[k].high = high;
    }
    return FV_OK;
}

void fv__channel_call(fv_channel *channel, const char *name, size_t length) {
    size_t most = sizeof channel->name - 1;
    if (length > most)
        for (length = most; length && ((unsigned char)name[length] & 0xc0) == 0x80;) length--; /* whole characters of UTF-8 */
    for (size_t i = 0; i < length; i++) channel->name[i] = (unsigned char)name[i] < ' ' ? ' ' : name[i];
    channel->name[length] = 0;
}

uint32_t fv__channel_color(const fv_image_type *type, int channel) {
    if (channel < type->nchannels && type->channel[channel].has_color) return type->channel[channel].color;
    return fv__color_default(channel, (int)FV_MIN(fv__channels_count(type), FV_MAX_CHANNELS));
}
