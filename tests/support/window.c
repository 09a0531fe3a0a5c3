/* Boxes around voxels by brute force. */
#include "support/window.h"

const char *const test_borders[] = { "reflect", "nearest", "mirror", "constant", "wrap", NULL };

double test_number(fv_dtype dtype, const void *data, int64_t index) {
    switch (dtype) {
    case FV_BOOL:
    case FV_UINT8: return ((const uint8_t *)data)[index];
    case FV_INT8: return ((const int8_t *)data)[index];
    case FV_UINT16: return ((const uint16_t *)data)[index];
    case FV_INT16: return ((const int16_t *)data)[index];
    case FV_UINT32: return ((const uint32_t *)data)[index];
    case FV_INT32: return ((const int32_t *)data)[index];
    case FV_UINT64: return (double)((const uint64_t *)data)[index];
    case FV_INT64: return (double)((const int64_t *)data)[index];
    case FV_FLOAT32: return ((const float *)data)[index];
    default: return ((const double *)data)[index];
    }
}

test_window test_window_new(const test_image *image, const int64_t *size, fv_border border, double cval) {
    test_window w = { .border = border, .cval = cval };
    w.naxes = fv_image_type_spatial(&image->type.image, w.axis);
    for (int k = 0; k < w.naxes; k++) {
        w.size[k] = size[k];
        w.before[k] = size[k] / 2;
    }
    return w;
}

int64_t test_window_count(const test_window *window) {
    int64_t n = 1;
    for (int k = 0; k < window->naxes; k++) n *= window->size[k];
    return n;
}

void test_window_values(const test_window *window, const test_image *image, int64_t index, double *values) {
    const fv_image_type *type = &image->type.image;
    int64_t              centre[FV_MAX_DIMS], stride[FV_MAX_DIMS], step = 1;
    for (int d = type->ndim - 1; d >= 0; d--) {
        centre[d] = index / step % type->shape[d];
        stride[d] = step;
        step *= type->shape[d];
    }
    int64_t count = test_window_count(window);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, place = index;
        bool    outside = false;
        for (int k = window->naxes - 1; k >= 0; k--) {
            int     d = window->axis[k];
            int64_t at = fv__border_index(window->border, centre[d] - window->before[k] + rest % window->size[k], type->shape[d]);
            rest /= window->size[k];
            outside |= at < 0;
            place += (at - centre[d]) * stride[d];
        }
        values[i] = outside ? window->cval : test_number(type->dtype, image->data, place);
    }
}
