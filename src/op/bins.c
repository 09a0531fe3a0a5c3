/* Equal bins between two values. */
#include "op/bins.h"

void fv_bins_init(fv_bins *bins, fv_dtype dtype, double first, double last, bool own, int64_t count) {
    *bins = (fv_bins){ .count = count, .first = first, .last = last, .single = dtype == FV_FLOAT32 };
    bins->scale = (double)count / (bins->single && own ? (double)((float)last - (float)first) : last - first);
}

void fv_bins_edges(const fv_bins *bins, double *edges) { /* as numpy.linspace */
    double width = bins->last - bins->first, step = width / (double)bins->count;
    for (int64_t i = 0; i <= bins->count; i++) {
        double distance = step == 0 ? (double)i / (double)bins->count * width : (double)i * step;
        double edge = i == bins->count ? bins->last : distance + bins->first;
        edges[i] = bins->single ? (float)edge : edge;
    }
}

#define COUNT(TYPE, BIN_OF)                                               \
    for (int64_t i = 0; i < n; i++) {                                     \
        int64_t bin = BIN_OF(bins, edges, ((const TYPE *)data)[i]);       \
        if (bin >= 0) counts[bin]++;                                      \
    }                                                                     \
    break;

void fv_bins_count(const fv_bins *bins, const double *edges, const fv_block *block, uint32_t *counts) {
    int64_t n = block->region.ndim ? block->region.size[block->region.ndim - 1] : 1;
    fv_rows rows;
    for (fv_rows_begin(&rows, &block->region); fv_rows_next(&rows);) {
        const void *data = fv_block_at(block, rows.position);
        switch (block->dtype) {
        case FV_BOOL:
        case FV_UINT8: COUNT(uint8_t, fv_bin_of_double)
        case FV_INT8: COUNT(int8_t, fv_bin_of_double)
        case FV_UINT16: COUNT(uint16_t, fv_bin_of_double)
        case FV_INT16: COUNT(int16_t, fv_bin_of_double)
        case FV_UINT32: COUNT(uint32_t, fv_bin_of_double)
        case FV_INT32: COUNT(int32_t, fv_bin_of_double)
        case FV_UINT64: COUNT(uint64_t, fv_bin_of_double)
        case FV_INT64: COUNT(int64_t, fv_bin_of_double)
        case FV_FLOAT32: COUNT(float, fv_bin_of_float)
        default: COUNT(double, fv_bin_of_double)
        }
    }
}
