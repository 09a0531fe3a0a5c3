/* Every n-th position of a scan, as frames[first::every] takes its frames: for halves that are compared. */
#ifndef FV_EVERY_POSITION_H
#define FV_EVERY_POSITION_H

#include "base/take.h"
#include "op/op.h"
#include "ops/ptychography/frame_order.h"
#include <stdlib.h>

#define FV_EVERY_FIELDS int64_t first, every, shuffle;
#define FV_EVERY_PARAMS(type)                                                                                                    \
    FV_PARAM(type, first, .def = "0", .min = 0, .max = 1000000,                                                                  \
             .doc = "number of the first position that is taken; with every = 2, 0 and 1 give the halves of a scan"),            \
        FV_PARAM(type, every, .def = "1", .min = 1, .max = 1000000,                                                              \
                 .doc = "how many further on the next one is, as frames[first::every] takes frames"),                            \
        FV_PARAM(type, shuffle, .def = "0", .min = 0, .max = 1000000,                                                            \
                 .doc = "before that, positions come in the order of shuffle_frames with this seed; 0: as they are")

/* Positions in the order of shuffle_frames. */
static inline fv_status fv__shuffle_positions(int64_t seed, const fv_list *list, fv_error *error) {
    double *value = (double *)(uintptr_t)list->value, *old;
    size_t  bytes = (size_t)list->count * sizeof *value;
    FV_TRY(FV_TAKE(old, bytes, error));
    memcpy(old, value, bytes);
    for (int64_t i = 0; i < list->count / 2; i++)
        memcpy(value + 2 * i, old + 2 * fv__frame_order(i, list->count / 2, seed), 2 * sizeof *value);
    free(old);
    return FV_OK;
}

static inline fv_status fv__every_position(int64_t first, int64_t every, int64_t shuffle, fv_list *list, fv_error *error) {
    double *value = (double *)(uintptr_t)list->value; /* of whoever made the list */
    int64_t count = 0;
    if (shuffle) FV_TRY(fv__shuffle_positions(shuffle, list, error));
    for (int64_t i = first; i < list->count / 2; i += every, count++)
        memmove(value + 2 * count, value + 2 * i, 2 * sizeof *value);
    if (!count)
        return fv_fail(error, FV_ERROR_USAGE, "first = %lld: there are %lld positions", (long long)first,
                       (long long)(list->count / 2));
    list->count = 2 * count;
    return FV_OK;
}

#endif
