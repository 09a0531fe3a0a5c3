/* Images with different axes in one operator. */
#include "op/broadcast.h"
#include "op/axes.h"
#include <stdio.h>

const char *fv__axes_text(const fv_image_type *type, char text[FV_AXES_TEXT]) {
    int used = 0;
    for (int d = 0; d < type->ndim; d++)
        used += snprintf(text + used, FV_AXES_TEXT - (size_t)used, "%s%.7s", d ? " " : "", type->axis[d]);
    for (int d = 0; d < type->ndim; d++)
        used += snprintf(text + used, FV_AXES_TEXT - (size_t)used, "%s%lld", d ? " x " : " (", (long long)type->shape[d]);
    snprintf(text + used, FV_AXES_TEXT - (size_t)used, ")");
    return text;
}

/* ---------------------------------------------------------------- matching */

static bool same_names_in_another_order(const fv_image_type *a, const fv_image_type *b) {
    bool moved = false;
    for (int d = 0; d < a->ndim; d++) {
        int other = fv__axis_find(b, a->axis[d]);
        if (other < 0) return false;
        moved = moved || other != d;
    }
    return moved;
}

static bool by_position(const fv_image_type *a, const fv_image_type *b) {
    return a->ndim == b->ndim && !memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) &&
           !same_names_in_another_order(a, b);
}

bool fv__match(const fv_image_type *result, const fv_image_type *image, fv_matching *matching) {
    bool whole = by_position(result, image);
    *matching = (fv_matching){ .same = image->ndim == result->ndim, .ndim = image->ndim };
    for (int d = 0; d < result->ndim; d++) {
        int axis = whole ? d : fv__axis_find(image, result->axis[d]);
        if (axis >= 0 && image->shape[axis] != result->shape[d] && image->shape[axis] != 1) return false;
        matching->from[d] = axis >= 0 && image->shape[axis] == result->shape[d] ? axis : -1;
        matching->same = matching->same && matching->from[d] == d;
    }
    for (int k = 0; k < image->ndim && !whole; k++)
        if (image->shape[k] > 1 && fv__axis_find(result, image->axis[k]) < 0) return false;
    return true;
}

fv_region fv__matched_region(const fv_matching *matching, const fv_region *region) {
    fv_region in = { .ndim = matching->ndim };
    if (matching->same) return *region;
    for (int k = 0; k < in.ndim; k++) in.size[k] = 1;
    for (int d = 0; d < region->ndim; d++) {
        int axis = matching->from[d];
        if (axis < 0) continue;
        in.start[axis] = region->start[d];
        in.size[axis] = region->size[d];
    }
    return in;
}

int64_t fv__matched_repeats(const fv_matching *matching, const int64_t *shape, int ndim) {
    int64_t repeats = 1;
    for (int d = 0; d < ndim; d++)
        if (matching->from[d] < 0) repeats *= shape[d];
    return repeats;
}

/* ---------------------------------------------------------------- the result */

/* The first axis of the image, longer than one voxel, that the result lacks; -1: none. */
static int lacks(const fv_image_type *result, const fv_image_type *image) {
    for (int k = 0; k < image->ndim && !by_position(result, image); k++)
        if (image->shape[k] > 1 && fv__axis_find(result, image->axis[k]) < 0) return k;
    return -1;
}

static bool fuller(const fv_image_type *a, const fv_image_type *b) {
    return a->ndim != b->ndim ? a->ndim > b->ndim : fv_image_type_voxels(a) > fv_image_type_voxels(b);
}

static const fv_image_type *fullest(const fv_image_type *const *images, int count) {
    const fv_image_type *best = NULL;
    for (int i = 0; i < count; i++) {
        bool has_all = true;
        for (int k = 0; k < count; k++) has_all = has_all && lacks(images[i], images[k]) < 0;
        if (has_all && (!best || fuller(images[i], best))) best = images[i];
    }
    return best;
}

/* Names the two with most axes that each have one that the other lacks. */
static fv_status missing_axes(const fv_image_type *const *images, int count, fv_error *error) {
    const fv_image_type *a = NULL, *b = NULL;
    char                 one[FV_AXES_TEXT], other[FV_AXES_TEXT];
    for (int i = 0; i < count; i++)
        for (int k = i + 1; k < count; k++) {
            if (lacks(images[i], images[k]) < 0 || lacks(images[k], images[i]) < 0) continue;
            if (a && images[i]->ndim + images[k]->ndim <= a->ndim + b->ndim) continue;
            a = images[i];
            b = images[k];
        }
    if (!a)
        return fv_fail(error, FV_ERROR_USAGE, "none of the images has all the axes that the others have; the first is %s",
                       fv__axes_text(images[0], one));
    return fv_fail(error, FV_ERROR_USAGE,
                   "the axes of the images are %s and %s: the second has no axis %s and the first no axis %s. One image must "
                   "have all axes of the other; name_axes(image, ...) gives axes other names",
                   fv__axes_text(a, one), fv__axes_text(b, other), a->axis[lacks(b, a)], b->axis[lacks(a, b)]);
}

static fv_status other_length(const fv_image_type *a, const fv_image_type *b, const char *axis, fv_error *error) {
    char      one[FV_AXES_TEXT], other[FV_AXES_TEXT];
    bool      named = a->ndim != b->ndim || same_names_in_another_order(a, b);
    long long length = a->shape[fv__axis_find(a, axis)], second = b->shape[fv__axis_find(b, axis)];
    return fv_fail(error, FV_ERROR_USAGE,
                   "the axes of the images are %s and %s: %s has %lld voxels in the first and %lld in the second%s",
                   fv__axes_text(a, one), fv__axes_text(b, other), axis, length, second,
                   named ? ". Axes are matched by name; name_axes(image, ...) gives them other names" : "");
}

static void take_axis(fv_image_type *to, int axis, const fv_image_type *from, int of_from) {
    to->shape[axis] = from->shape[of_from];
    to->spacing[axis] = from->spacing[of_from];
    to->origin[axis] = from->origin[of_from];
    memcpy(to->unit[axis], from->unit[of_from], sizeof to->unit[axis]);
}

fv_status fv__broadcast(const fv_image_type *const *images, int count, fv_image_type *result, fv_error *error) {
    const fv_image_type *base = fullest(images, count);
    int                  giver[FV_MAX_DIMS]; /* of the axis' length */
    if (!base) return missing_axes(images, count, error);
    *result = *base;
    for (int d = 0; d < base->ndim; d++)
        for (giver[d] = 0; images[giver[d]] != base;) giver[d]++;
    for (int i = 0; i < count; i++)
        for (int d = 0; d < base->ndim && !by_position(base, images[i]); d++) {
            int axis = fv__axis_find(images[i], base->axis[d]);
            if (axis < 0 || images[i]->shape[axis] == 1 || images[i]->shape[axis] == result->shape[d]) continue;
            if (result->shape[d] > 1)
                return other_length(images[FV_MIN(i, giver[d])], images[FV_MAX(i, giver[d])], base->axis[d], error);
            take_axis(result, d, images[i], axis);
            giver[d] = i;
        }
    for (int i = 0; i < count; i++) {
        const fv_image_type *pair[] = { result, images[i] };
        fv_matching          matching;
        if (!fv__match(result, images[i], &matching)) return missing_axes(pair, 2, error);
    }
    return FV_OK;
}
