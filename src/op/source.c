/* The shape parameter of sources, and constant blocks. */
#include "op/source.h"

fv_status fv__source_type(const fv_numbers *shape, fv_dtype dtype, int least, int most, fv_type *out, fv_error *error) {
    int64_t size[FV_MAX_DIMS];
    if (shape->count < least || shape->count > most)
        return fv_fail(error, FV_ERROR_USAGE, "shape has %d axes; %d to %d are possible", shape->count, least, most);
    for (int d = 0; d < shape->count; d++) {
        if (shape->value[d] != floor(shape->value[d]))
            return fv_fail(error, FV_ERROR_USAGE, "shape = %g: must be a whole number", shape->value[d]);
        size[d] = (int64_t)shape->value[d];
    }
    out->kind = FV_KIND_IMAGE;
    fv_image_type_init(&out->image, dtype, shape->count, size);
    if (fv_image_type_bytes(&out->image) < 0)
        return fv_fail(error, FV_ERROR_USAGE, "shape: an image of this size has more bytes than can be counted");
    return FV_OK;
}

void fv__block_fill(const fv_block *block, const void *element) {
    size_t  size = fv_dtype_size(block->dtype);
    int64_t n = block->region.size[block->region.ndim - 1];
    fv_rows rows;
    void   *first = NULL;
    for (fv__rows_begin(&rows, &block->region); fv__rows_next(&rows);) {
        char *row = fv__block_at(block, rows.position);
        if (first) {
            memcpy(row, first, (size_t)n * size);
            continue;
        }
        for (int64_t x = 0; x < n; x++) memcpy(row + x * (int64_t)size, element, size);
        first = row;
    }
}
