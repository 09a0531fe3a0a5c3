/* Element types and image types. */
#include "base/base.h"
#include <fovea/image.h>
#include <stdio.h>

static const struct {
    const char *name;
    uint8_t     size;
    char class;
    bool is_signed;
} table[FV_DTYPES] = {
    [FV_BOOL] = { "bool", 1, 'b', false },
    [FV_UINT8] = { "uint8", 1, 'i', false },
    [FV_INT8] = { "int8", 1, 'i', true },
    [FV_UINT16] = { "uint16", 2, 'i', false },
    [FV_INT16] = { "int16", 2, 'i', true },
    [FV_UINT32] = { "uint32", 4, 'i', false },
    [FV_INT32] = { "int32", 4, 'i', true },
    [FV_UINT64] = { "uint64", 8, 'i', false },
    [FV_INT64] = { "int64", 8, 'i', true },
    [FV_FLOAT32] = { "float32", 4, 'f', true },
    [FV_FLOAT64] = { "float64", 8, 'f', true },
    [FV_COMPLEX64] = { "complex64", 8, 'c', true },
    [FV_COMPLEX128] = { "complex128", 16, 'c', true },
};

size_t      fv_dtype_size(fv_dtype dtype) { return table[dtype].size; }
const char *fv_dtype_name(fv_dtype dtype) { return table[dtype].name; }
bool        fv_dtype_is_float(fv_dtype dtype) { return table[dtype].class == 'f'; }
bool        fv_dtype_is_integer(fv_dtype dtype) { return table[dtype].class == 'i'; }
bool        fv_dtype_is_signed(fv_dtype dtype) { return table[dtype].is_signed; }
bool        fv_dtype_is_complex(fv_dtype dtype) { return table[dtype].class == 'c'; }

bool fv_dtype_parse(const char *name, fv_dtype *dtype) {
    for (int d = 0; d < FV_DTYPES; d++)
        if (!strcmp(name, table[d].name)) {
            *dtype = (fv_dtype)d;
            return true;
        }
    return false;
}

void fv_image_type_init(fv_image_type *type, fv_dtype dtype, int ndim, const int64_t *shape) {
    static const char *const names[] = { "x", "y", "z", "c", "t", "p" };
    *type = (fv_image_type){ .dtype = dtype, .ndim = ndim };
    for (int d = 0; d < ndim; d++) {
        type->shape[d] = shape[d];
        snprintf(type->axis[d], sizeof type->axis[d], "%s", names[ndim - 1 - d]);
        type->spacing[d] = 1;
    }
}

int64_t fv_image_type_voxels(const fv_image_type *type) {
    int64_t n = 1;
    for (int d = 0; d < type->ndim; d++)
        if (type->shape[d] < 0 || !fv__mul(n, type->shape[d], &n)) return -1;
    return n;
}

int64_t fv_image_type_bytes(const fv_image_type *type) {
    int64_t n = fv_image_type_voxels(type);
    return n < 0 || !fv__mul(n, (int64_t)fv_dtype_size(type->dtype), &n) ? -1 : n;
}

static int find_letters(const fv_image_type *type, const char *letters, int found[FV_MAX_DIMS]) {
    int n = 0;
    for (int d = 0; d < type->ndim; d++)
        if (strlen(type->axis[d]) == 1 && strchr(letters, type->axis[d][0])) found[n++] = d;
    return n;
}

int fv_image_type_spatial(const fv_image_type *type, int spatial[FV_MAX_DIMS]) {
    int n = find_letters(type, "zyx", spatial);
    return n ? n : find_letters(type, "vu", spatial);
}
