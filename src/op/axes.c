/* Axes of an image type by name. */
#include "op/axes.h"
#include "op/place.h"
#include <stdio.h>
#include <string.h>

void fv__axes_guess_colour(fv_image_type *type) {
    int last = type->ndim - 1;
    if (last < 2 || last > 3 || type->dtype != FV_UINT8 || (type->shape[last] != 3 && type->shape[last] != 4)) return;
    if (type->shape[last - 1] <= 4) return; /* as narrow along another axis: that may mean anything */
    fv_image_type without;
    fv_image_type_init(&without, type->dtype, last, type->shape);
    for (int d = 0; d < last; d++) memcpy(type->axis[d], without.axis[d], sizeof type->axis[d]);
    snprintf(type->axis[last], sizeof type->axis[last], "c");
}

int fv__axis_find(const fv_image_type *type, const char *name) {
    for (int d = 0; d < type->ndim; d++)
        if (!strcmp(type->axis[d], name)) return d;
    return -1;
}

static void clear(fv_image_type *type, int d) {
    type->shape[d] = 0;
    type->spacing[d] = type->origin[d] = 0;
    memset(type->axis[d], 0, sizeof type->axis[d]);
    memset(type->unit[d], 0, sizeof type->unit[d]);
}

void fv__axis_drop(fv_image_type *type, int axis) {
    type->ndim--;
    for (int d = axis; d < type->ndim; d++) {
        type->shape[d] = type->shape[d + 1];
        type->spacing[d] = type->spacing[d + 1];
        type->origin[d] = type->origin[d + 1];
        memcpy(type->axis[d], type->axis[d + 1], sizeof type->axis[d]);
        memcpy(type->unit[d], type->unit[d + 1], sizeof type->unit[d]);
    }
    clear(type, type->ndim);
}

void fv__axis_append(fv_image_type *type, const char *name, int64_t size) {
    int d = type->ndim++;
    clear(type, d);
    type->shape[d] = size;
    type->spacing[d] = 1;
    snprintf(type->axis[d], sizeof type->axis[d], "%s", name);
}

/* "z, y, x" */
static void list_axes(const fv_image_type *type, char *text, size_t size) {
    size_t used = 0;
    for (int d = 0; d < type->ndim && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", d ? ", " : "", type->axis[d]);
}

fv_status fv__axes_pick(const fv_image_type *type, const char *words, int axis[FV_MAX_DIMS], int *count, fv_error *error) {
    char all[80];
    if (!words) words = "";
    list_axes(type, all, sizeof all);
    *count = 0;
    for (const char *p = words + strspn(words, " "); *p; p += strspn(p, " ")) {
        size_t length = strcspn(p, " ");
        int    found = -1;
        for (int d = 0; d < type->ndim; d++)
            if (strlen(type->axis[d]) == length && !memcmp(type->axis[d], p, length)) found = d;
        if (found < 0)
            return fv_fail(error, FV_ERROR_USAGE, "axes = \"%s\": the image has no axis %.*s; it has %s", words, (int)length, p,
                           all);
        for (int k = 0; k < *count; k++)
            if (axis[k] == found)
                return fv_fail(error, FV_ERROR_USAGE, "axes = \"%s\": %s is there twice", words, type->axis[found]);
        axis[(*count)++] = found;
        p += length;
    }
    if (!*count) *count = fv_image_type_spatial(type, axis);
    if (!*count)
        return fv_fail(error, FV_ERROR_USAGE, "the image has no spatial axes, only %s: name the axes, as in axes = \"%s\"", all,
                       type->axis[type->ndim - 1]);
    return FV_OK;
}

void fv__axis_insert(fv_image_type *type, int axis, const char *name, int64_t size) {
    fv_image_type before = *type;
    fv__axis_append(type, name, size);
    for (int d = axis; d < before.ndim; d++) {
        type->shape[d + 1] = before.shape[d];
        type->spacing[d + 1] = before.spacing[d];
        type->origin[d + 1] = before.origin[d];
        memcpy(type->axis[d + 1], before.axis[d], sizeof type->axis[d]);
        memcpy(type->unit[d + 1], before.unit[d], sizeof type->unit[d]);
    }
    clear(type, axis);
    type->shape[axis] = size;
    type->spacing[axis] = 1;
    snprintf(type->axis[axis], sizeof type->axis[axis], "%s", name);
}

static bool is_space(const char *name) { return strlen(name) == 1 && strchr("zyx", *name); }

fv_status fv__axes_name(fv_image_type *type, const char *words, fv_error *error) {
    char names[FV_MAX_DIMS][8];
    int  count = 0;
    for (const char *p = words + strspn(words, " "); *p; count++) {
        size_t length = strcspn(p, " ");
        if (length > 7) return fv_fail(error, FV_ERROR_USAGE, "axes = \"%s\": a name has at most 7 letters", words);
        if (count < type->ndim) snprintf(names[count], sizeof names[count], "%.*s", (int)length, p);
        for (int k = 0; k < count && count < type->ndim; k++)
            if (!strcmp(names[k], names[count]))
                return fv_fail(error, FV_ERROR_USAGE, "axes = \"%s\": %s is there twice", words, names[k]);
        p += length;
        p += strspn(p, " ");
    }
    if (count != type->ndim)
        return fv_fail(error, FV_ERROR_USAGE, "axes = \"%s\": %d names for an image of %d axes", words, count, type->ndim);
    for (int d = 0; d < count && type->has_affine; d++)
        if (strcmp(type->axis[d], names[d]) && (is_space(type->axis[d]) || is_space(names[d]))) fv__place_forget_world(type);
    memcpy(type->axis, names, sizeof(names[0]) * (size_t)count);
    return FV_OK;
}
