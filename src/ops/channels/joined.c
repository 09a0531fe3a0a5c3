/* Images put together along an axis. */
#include "ops/channels/joined.h"
#include "op/broadcast.h"
#include "op/channels.h"
#include "op/place.h"

fv_status fv__joined_count(const fv_infer *i, int *count, fv_error *error) {
    *count = 0;
    while (*count < i->ninputs && i->in[*count]->kind == FV_KIND_IMAGE) ++*count;
    for (int k = *count; k < i->ninputs; k++)
        if (i->in[k]->kind == FV_KIND_IMAGE) return fv_fail(error, FV_ERROR_USAGE, "there is a gap between the images");
    return FV_OK;
}

fv_status fv__joined_alike(const fv_infer *i, int count, int free, fv_error *error) {
    const fv_image_type *first = &i->in[0]->image;
    char                 one[FV_AXES_TEXT], other[FV_AXES_TEXT];
    for (int k = 1; k < count; k++) {
        const fv_image_type *image = &i->in[k]->image;
        const char          *name = fv__joined_inputs[k].name;
        if (image->dtype != first->dtype)
            return fv_fail(error, FV_ERROR_USAGE, "%s is %s and first is %s: they must have one type; convert one of them", name,
                           fv_dtype_name(image->dtype), fv_dtype_name(first->dtype));
        bool alike = image->ndim == first->ndim;
        for (int d = 0; d < first->ndim && alike; d++)
            alike = !strcmp(image->axis[d], first->axis[d]) && (d == free || image->shape[d] == first->shape[d]);
        if (!alike)
            return fv_fail(error, FV_ERROR_USAGE, "%s has the axes %s and first has %s: they must be equal%s%s", name,
                           fv__axes_text(image, other), fv__axes_text(first, one), free < 0 ? "" : ", apart from the length of ",
                           free < 0 ? "" : first->axis[free]);
    }
    for (int k = 1; k < count && !fv__place_known(&i->out->image); k++) fv__place_take(&i->out->image, &i->in[k]->image);
    fv__channels_agree(i->in, count, &i->out->image);
    return FV_OK;
}

void fv__joined_channels(const fv_infer *i, int count) {
    fv_image_type *out = &i->out->image;
    int64_t        at = 0;
    bool           known = false;
    memset(out->channel, 0, sizeof out->channel);
    for (int k = 0; k < count; k++) {
        const fv_image_type *image = &i->in[k]->image;
        for (int j = 0; j < image->nchannels && at + j < FV_MAX_CHANNELS; j++) out->channel[at + j] = image->channel[j];
        known = known || image->nchannels;
        at += fv__channels_count(image);
    }
    out->nchannels = known && at <= FV_MAX_CHANNELS ? (int)at : 0;
}

/* The part of a region of the result that comes from input k, in places of the result; false: none. */
static bool part_of(const fv__joining *j, int k, const fv_region *region, fv_region *part) {
    int64_t start = FV_MAX(region->start[j->axis], j->start[k]);
    int64_t end = FV_MIN(region->start[j->axis] + region->size[j->axis], j->start[k + 1]);
    *part = *region;
    part->start[j->axis] = start;
    part->size[j->axis] = end - start;
    return end > start;
}

static void drop(fv_region *region, int axis) {
    region->ndim--;
    for (int d = axis; d < region->ndim; d++) {
        region->start[d] = region->start[d + 1];
        region->size[d] = region->size[d + 1];
    }
    region->start[region->ndim] = region->size[region->ndim] = 0;
}

void fv__joined_need(const fv__joining *j, const fv_need *n, fv_region *in) {
    for (int k = 0; k < j->count; k++) {
        bool any = part_of(j, k, &n->region, &in[k]);
        if (j->fresh)
            drop(&in[k], j->axis);
        else
            in[k].start[j->axis] -= j->start[k];
        for (int d = 0; d < in[k].ndim && !any; d++) in[k].start[d] = in[k].size[d] = 0;
    }
}

/* Elements of a row go to places that lie `step` elements apart. */
#define SPREAD(TYPE)                                                                                                             \
    for (int64_t i = 0; i < n; i++) ((TYPE *)to)[i * step] = ((const TYPE *)from)[i];                                            \
    break;
static void spread(void *restrict to, const void *restrict from, int64_t step, int64_t n, size_t size) {
    switch (size) {
    case 1: SPREAD(uint8_t)
    case 2: SPREAD(uint16_t)
    case 4: SPREAD(uint32_t)
    case 8: SPREAD(uint64_t)
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy((char *)to + (size_t)(i * step) * size, (const char *)from + (size_t)i * size, size);
    }
}

static void copy_spread(const fv_block *out, const fv_block *in, int64_t place) {
    int     last = in->region.ndim - 1;
    fv_rows rows;
    for (fv__rows_begin(&rows, &in->region); fv__rows_next(&rows);) {
        rows.position[last + 1] = place; /* so that it is a place of the output too */
        spread(fv__block_at(out, rows.position), fv__block_at(in, rows.position), out->stride[last], in->region.size[last],
               fv_dtype_size(in->dtype));
    }
}

fv_status fv__joined_run(const fv__joining *j, fv_run *r) {
    for (int k = 0; k < j->count; k++) {
        fv_region part;
        if (!part_of(j, k, &r->need.region, &part)) continue;
        if (j->fresh && j->axis == r->out->region.ndim - 1) {
            copy_spread(r->out, r->in[k], j->start[k]);
            continue;
        }
        fv_block to = fv__block_window(r->out, &part);
        if (j->fresh) {
            for (int d = j->axis; d + 1 < part.ndim; d++) to.stride[d] = to.stride[d + 1];
            drop(&to.region, j->axis);
        } else
            to.region.start[j->axis] -= j->start[k];
        fv__block_copy(&to, r->in[k]);
    }
    return FV_OK;
}
