/* What is known of the channels of an image: names, colours, and the values between which they are shown. */
#ifndef FV_CHANNELS_H
#define FV_CHANNELS_H

#include "op/op.h"

/* How many channels an image has: the length of its axis c, 1 without it. */
int64_t fv__channels_count(const fv_image_type *type);
/* Of the channels that a type has: `count` of them, every step-th from start on. The shape is not looked at. */
void fv__channels_step(fv_image_type *type, int64_t start, int64_t step, int64_t count);
/* Says the same of as many channels as the image has; false, and nothing is known of them, if they are too many. */
bool fv__channels_begin(fv_image_type *type);
/* Tells what those inputs agree upon that have as many channels as the output: a channel less its background is still that
 * channel, and the ratio of two is neither. */
void fv__channels_agree(const fv_type *const *in, int ninputs, fv_image_type *out);
/* What an operator's result may say: nothing if it has other channels than its input, no range where values have changed. An
 * operator of elements tells what its inputs agree upon. */
void fv__channels_settle(const fv_op *op, const fv_type *const *in, int ninputs, fv_image_type *out);

/* What a user says of all channels, in parameters of these names. Texts may be NULL or empty, ranges may have no numbers. */
#define FV__CHANNELS_NAMES_DOC "a name for each channel, such as \"DAPI actin\"; names that hold blanks are separated by commas"
#define FV__CHANNELS_RANGES_DOC                                                                                                  \
    "[low, high, low, high, ...] of each channel, the values that viewers show black and in the full colour"
fv_status fv__channels_say(fv_image_type *type, const char *colors, const char *names, const fv_numbers *ranges, fv_error *error);
fv_status fv__channels_check_ranges(const fv_numbers *ranges, int64_t count, fv_error *error);

/* What a file calls it: cut where it is too long, without control characters. */
void fv__channel_call(fv_channel *channel, const char *name, size_t length);
/* Colour of a channel, or the usual one if it has none. */
uint32_t fv__channel_color(const fv_image_type *type, int channel);

#endif
