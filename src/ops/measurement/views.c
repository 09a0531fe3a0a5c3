/* How intensity images lie over labels; see views.h. */
#include "ops/measurement/views.h"
#include "op/axes.h"
#include "op/broadcast.h"
#include <stdio.h>

/* ---------------------------------------------------------------- matching */

/* called: the input of labels, as its operator names it. */
static fv_status other_length(const fv_image_type *labels, const char *called, int d, const fv_image_type *image, int axis,
                              const char *name, fv_error *error) {
    char one[FV_AXES_TEXT], other[FV_AXES_TEXT];
    return fv_fail(error, FV_ERROR_USAGE,
                   "%s has the axes %s and %s has %s: %s has %lld voxels in %s and %lld in %s. Axes are matched by name; "
                   "name_axes(image, ...) gives them other names",
                   called, fv__axes_text(labels, one), name, fv__axes_text(image, other), labels->axis[d],
                   (long long)labels->shape[d], called, (long long)image->shape[axis], name);
}

/* The number of an axis of rows; a new one if there is none of that name. */
static fv_status row_axis(fv__views *v, const fv_image_type *image, int axis, const char *name, int *number, fv_error *error) {
    for (*number = 0; *number < v->naxes; ++*number) {
        if (strcmp(v->axis[*number], image->axis[axis])) continue;
        if (v->length[*number] == image->shape[axis]) return FV_OK;
        return fv_fail(error, FV_ERROR_USAGE, "%s has %lld voxels along %s, an image before it %lld; they must agree", name,
                       (long long)image->shape[axis], image->axis[axis], (long long)v->length[*number]);
    }
    if (v->naxes == FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_USAGE, "%s: the images have more than %d axes that labels lacks", name, FV_MAX_DIMS);
    memcpy(v->axis[v->naxes], image->axis[axis], sizeof v->axis[0]);
    v->length[v->naxes] = image->shape[axis];
    v->rows *= image->shape[axis];
    *number = v->naxes++;
    return FV_OK;
}

/* The view without its channel. */
static fv_status match(fv__views *v, const fv_image_type *labels, const char *called, const fv_image_type *image,
                       const char *name, fv__view *view, fv_error *error) {
    fv_matching same;
    bool        whole = fv__match(labels, image, &same) && same.same;
    for (int k = 0; k < FV_MAX_DIMS; k++) view->along[k] = view->row[k] = -1;
    view->channel_axis = -1;
    for (int axis = 0; axis < image->ndim; axis++) {
        int d = whole ? axis : fv__axis_find(labels, image->axis[axis]), number;
        if (d >= 0 && image->shape[axis] == labels->shape[d])
            view->along[d] = axis;
        else if (image->shape[axis] == 1)
            continue;
        else if (d >= 0 && labels->shape[d] > 1)
            return other_length(labels, called, d, image, axis, name, error);
        else if (!strcmp(image->axis[axis], "c"))
            view->channel_axis = axis;
        else {
            FV_TRY(row_axis(v, image, axis, name, &number, error));
            view->row[number] = axis;
        }
    }
    return FV_OK;
}

fv_status fv__views_init(fv__views *v, const fv_type *const *in, const fv_input *inputs, fv_error *error) {
    *v = (fv__views){ .rows = 1 };
    for (int k = 1; inputs[k].name; k++) {
        if (in[k]->kind != FV_KIND_IMAGE) continue;
        fv__view view = { .input = k };
        FV_TRY(match(v, &in[0]->image, inputs[0].name, &in[k]->image, inputs[k].name, &view, error));
        int64_t channels = view.channel_axis < 0 ? 1 : in[k]->image.shape[view.channel_axis];
        if (v->count + channels > FV__CHANNELS)
            return fv_fail(error, FV_ERROR_USAGE,
                           "%s has %lld channels; at most %d of all images can be measured at once: take a slice of it",
                           inputs[k].name, (long long)channels, FV__CHANNELS);
        for (view.channel = 0; view.channel < channels; view.channel++) {
            char of_image[16] = "", of_channel[16] = "";
            if (k > 1) snprintf(of_image, sizeof of_image, "_%d", k);
            if (view.channel_axis >= 0) snprintf(of_channel, sizeof of_channel, "_c%d", (int)view.channel);
            snprintf(view.suffix, sizeof view.suffix, "%s%s", of_image, of_channel);
            v->view[v->count++] = view;
        }
    }
    return FV_OK;
}

fv_status fv__views_apart(fv__views *v, const char *axis, int64_t length, fv_error *error) {
    if (v->naxes && (v->naxes > 1 || strcmp(v->axis[0], axis)))
        return fv_fail(error, FV_ERROR_USAGE, "per = \"%s\": an image has another axis that labels lacks; slice it apart", axis);
    if (v->naxes && v->length[0] != length)
        return fv_fail(error, FV_ERROR_USAGE, "per = \"%s\": labels has %lld voxels along it and an image %lld; they must agree",
                       axis, (long long)length, (long long)v->length[0]);
    v->naxes = 1;
    snprintf(v->axis[0], sizeof v->axis[0], "%s", axis);
    v->length[0] = v->rows = length;
    return FV_OK;
}

/* ---------------------------------------------------------------- reading */

void fv__views_need(const fv__views *v, const fv_type *const *in, const fv_region *chunk, fv_region *regions) {
    for (int k = 0; k < v->count; k++) {
        const fv__view      *view = &v->view[k];
        const fv_image_type *image = &in[view->input]->image;
        fv_region           *region = &regions[view->input];
        *region = fv__region_whole(image);
        for (int d = 0; d < chunk->ndim; d++) {
            if (view->along[d] < 0) continue;
            region->start[view->along[d]] = chunk->start[d];
            region->size[view->along[d]] = chunk->size[d];
        }
    }
}

bool fv__view_in_place(const fv__view *view, const fv_type *const *in) {
    return view->along[in[0]->image.ndim - 1] == in[view->input]->image.ndim - 1;
}

#define GATHER(TYPE)                                                                                                             \
    {                                                                                                                            \
        for (int64_t i = 0; i < n; i++) ((TYPE *)room)[i] = ((const TYPE *)from)[i * stride];                                    \
        return room;                                                                                                             \
    }

const void *fv__view_row(const fv__views *v, int number, const fv_block *image, const int64_t *position, int ndim, int64_t row,
                         int64_t n, void *room) {
    const fv__view *view = &v->view[number];
    int64_t         at[FV_MAX_DIMS] = { 0 };
    for (int d = 0; d < ndim; d++)
        if (view->along[d] >= 0) at[view->along[d]] = position[d];
    for (int k = v->naxes - 1; k >= 0; k--) {
        if (view->row[k] >= 0) at[view->row[k]] = row % v->length[k];
        row /= v->length[k];
    }
    if (view->channel_axis >= 0) at[view->channel_axis] = view->channel;
    const void *from = fv__block_at(image, at);
    int64_t     stride = view->along[ndim - 1] < 0 ? 0 : image->stride[view->along[ndim - 1]];
    if (view->along[ndim - 1] == image->region.ndim - 1) return from;
    switch (fv_dtype_size(image->dtype)) {
    case 1: GATHER(uint8_t)
    case 2: GATHER(uint16_t)
    case 4: GATHER(uint32_t)
    default: GATHER(uint64_t)
    }
}
