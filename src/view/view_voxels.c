/* Voxels in other types. */
#include "view/view_voxels.h"
#include <complex.h>
#include <math.h>

double fv_view_voxel(fv_dtype dtype, const void *data, int64_t i, fv_view_part part) {
    switch (dtype) {
    case FV_BOOL:
    case FV_UINT8: return ((const uint8_t *)data)[i];
    case FV_INT8: return ((const int8_t *)data)[i];
    case FV_UINT16: return ((const uint16_t *)data)[i];
    case FV_INT16: return ((const int16_t *)data)[i];
    case FV_UINT32: return ((const uint32_t *)data)[i];
    case FV_INT32: return ((const int32_t *)data)[i];
    case FV_UINT64: return (double)((const uint64_t *)data)[i];
    case FV_INT64: return (double)((const int64_t *)data)[i];
    case FV_FLOAT32: return ((const float *)data)[i];
    case FV_FLOAT64: return ((const double *)data)[i];
    case FV_COMPLEX64: {
        float complex value = ((const float complex *)data)[i];
        return part == FV_VIEW_PHASE ? cargf(value) : cabsf(value);
    }
    case FV_COMPLEX128: {
        double complex value = ((const double complex *)data)[i];
        return part == FV_VIEW_PHASE ? carg(value) : cabs(value);
    }
    default: return 0;
    }
}

fv_dtype fv_view_voxels_sent(fv_dtype dtype) {
    return dtype == FV_BOOL ? FV_UINT8 : fv_dtype_is_complex(dtype) ? FV_FLOAT32 : dtype;
}

/* Whole numbers of 64 bits lose nothing on the way to those of 32. */
static int64_t whole(fv_dtype dtype, const void *data, int64_t i, fv_view_part part) {
    if (dtype == FV_INT64 || dtype == FV_UINT64) return ((const int64_t *)data)[i];
    double value = fv_view_voxel(dtype, data, i, part);
    return value > -9e18 && value < 9e18 ? (int64_t)value : 0;
}

void fv_view_voxels_convert(fv_dtype from_type, const void *from, fv_view_part part, fv_dtype to_type, void *to, int64_t n) {
    if (from_type == to_type || (from_type == FV_BOOL && to_type == FV_UINT8)) {
        memmove(to, from, (size_t)n * fv_dtype_size(from_type));
        return;
    }
    for (int64_t i = 0; i < n; i++) switch (to_type) {
        case FV_FLOAT32: ((float *)to)[i] = (float)fv_view_voxel(from_type, from, i, part); break;
        case FV_FLOAT64: ((double *)to)[i] = fv_view_voxel(from_type, from, i, part); break;
        case FV_UINT8: ((uint8_t *)to)[i] = (uint8_t)whole(from_type, from, i, part); break;
        case FV_UINT16: ((uint16_t *)to)[i] = (uint16_t)whole(from_type, from, i, part); break;
        default: ((uint32_t *)to)[i] = (uint32_t)whole(from_type, from, i, part); break;
        }
}

void fv_view_voxels_scale(fv_dtype from_type, const void *from, fv_view_part part, double low, double high, uint8_t *to,
                          int64_t n) {
    double scale = high > low ? 255 / (high - low) : 0;
    for (int64_t i = 0; i < n; i++) {
        double value = (fv_view_voxel(from_type, from, i, part) - low) * scale;
        to[i] = value >= 255 ? 255 : value > 0 ? (uint8_t)lrint(value) : 0;
    }
}
