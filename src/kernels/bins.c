/* Equal bins between two values. */
#include "kernels/bins.h"
#include "kernels/vectors.h"

void fv__bins_init(fv_bins *bins, fv_dtype dtype, double first, double last, bool own, int64_t count) {
    *bins = (fv_bins){ .count = count, .first = first, .last = last, .single = dtype == FV_FLOAT32 };
    bins->scale = (double)count / (bins->single && own ? (double)((float)last - (float)first) : last - first);
}

void fv__bins_edges(const fv_bins *bins, double *edges) { /* as numpy.linspace */
    double width = bins->last - bins->first, step = width / (double)bins->count;
    for (int64_t i = 0; i <= bins->count; i++) {
        double distance = step == 0 ? (double)i / (double)bins->count * width : (double)i * step;
        double edge = i == bins->count ? bins->last : distance + bins->first;
        edges[i] = bins->single ? (float)edge : edge;
    }
}

/* ---------------------------------------------------------------- float images
 * The bin is computed for many values at a time and trusted unless it is near an edge. Neighbours often share a bin, and a
 * counter that was just written is slow to read, so that neighbours count in tables of their own. */

enum { PIECE = 256, TABLES = 4, MOST_IN_TABLES = 1024 };
typedef uint32_t tables[TABLES][MOST_IN_TABLES + 1]; /* the last bin takes the values outside */

/* How near to an edge, in bins, rounding could have put a value on its wrong side: a place is rounded four times, an edge
 * once. */
static float doubt_of(const fv_bins *bins) {
    return 0x1p-21f * (float)((double)bins->count + bins->scale * fmax(fabs(bins->first), fabs(bins->last)));
}

/* n values, a multiple of the lanes of a vector; whether some are unsure. */
static bool place_piece(const fv_bins *bins, const float *value, int n, int32_t *index, int32_t *unsure) {
    fv_f32v first = fv_f32v_splat((float)bins->first), last = fv_f32v_splat((float)bins->last);
    fv_f32v scale = fv_f32v_splat((float)bins->scale), low = fv_f32v_splat(doubt_of(bins)), high = 1 - low;
    fv_i32v top = (int32_t)bins->count - 1 - (fv_i32v){ 0 }, any = { 0 };
    for (int i = 0; i < n; i += FV_F32_LANES) {
        fv_f32v v = fv_f32v_load(value + i);
        fv_i32v inside = (v >= first) & (v <= last);
        fv_f32v known = (fv_f32v)((inside & (fv_i32v)v) | (~inside & (fv_i32v)first)), place = (known - first) * scale;
        fv_i32v bin = __builtin_convertvector(place, fv_i32v);
        fv_f32v part = place - __builtin_convertvector(bin, fv_f32v);
        fv_i32v near = (part < low) | (part > high);
        bin = fv_i32v_min(bin, top);
        *(fv_i32v_unaligned *)(index + i) = (bin & inside) | ((top + 1) & ~inside);
        *(fv_i32v_unaligned *)(unsure + i) = near;
        any |= near;
    }
    int32_t some = 0;
    for (int lane = 0; lane < FV_F32_LANES; lane++) some |= any[lane];
    return some;
}

static void count_floats(const fv_bins *bins, const double *edges, const float *value, int64_t n, tables table) {
    int32_t index[PIECE], unsure[PIECE], outside = (int32_t)bins->count;
    for (int64_t start = 0; start < n; start += PIECE) {
        int  count = (int)FV_MIN(n - start, (int64_t)PIECE), whole = count - count % FV_F32_LANES;
        bool some = place_piece(bins, value + start, whole, index, unsure);
        for (int i = some ? 0 : whole; i < count; i++) {
            if (i < whole && !unsure[i]) continue;
            int64_t bin = fv_bin_of_float(bins, edges, value[start + i]);
            index[i] = bin < 0 ? outside : (int32_t)bin;
        }
        while (count % TABLES) index[count++] = outside;
        for (int i = 0; i < count; i += TABLES) {
#pragma GCC unroll 4
            for (int t = 0; t < TABLES; t++) table[t][index[i + t]]++;
        }
    }
}

static void count_float_rows(const fv_bins *bins, const double *edges, const fv_block *block, int64_t n, uint32_t *counts) {
    tables  table;
    fv_rows rows;
    for (int t = 0; t < TABLES; t++) memset(table[t], 0, (size_t)(bins->count + 1) * sizeof **table);
    for (fv__rows_begin(&rows, &block->region); fv__rows_next(&rows);)
        count_floats(bins, edges, fv__block_at(block, rows.position), n, table);
    for (int64_t bin = 0; bin < bins->count; bin++)
        for (int t = 0; t < TABLES; t++) counts[bin] += table[t][bin];
}

/* ---------------------------------------------------------------- all types */

#define COUNT(TYPE, BIN_OF)                                                                                                      \
    for (int64_t i = 0; i < n; i++) {                                                                                            \
        int64_t bin = BIN_OF(bins, edges, ((const TYPE *)data)[i]);                                                              \
        if (bin >= 0) counts[bin]++;                                                                                             \
    }                                                                                                                            \
    break;

void fv__bins_count(const fv_bins *bins, const double *edges, const fv_block *block, uint32_t *counts) {
    int64_t n = block->region.ndim ? block->region.size[block->region.ndim - 1] : 1;
    if (block->dtype == FV_FLOAT32 && bins->count <= MOST_IN_TABLES) {
        count_float_rows(bins, edges, block, n, counts);
        return;
    }
    fv_rows rows;
    for (fv__rows_begin(&rows, &block->region); fv__rows_next(&rows);) {
        const void *data = fv__block_at(block, rows.position);
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
