/* Equal bins between two values, and which bin a value falls in: exactly as numpy.histogram decides it. */
#ifndef FV_BINS_H
#define FV_BINS_H

#include "base/isa.h"
#include "op/op.h"

typedef struct fv_bins {
    int64_t count;
    double  first, last;
    double  scale;  /* bins a unit */
    bool    single; /* numpy computes in float32: for float32 images */
} fv_bins;

#define fv__bins_init FV_ISA_NAME(fv__bins_init)
#define fv__bins_edges FV_ISA_NAME(fv__bins_edges)
#define fv__bins_count FV_ISA_NAME(fv__bins_count)

/* first < last, both finite. own: they are values of the image, whose difference numpy forms in the image's type. */
void fv__bins_init(fv_bins *bins, fv_dtype dtype, double first, double last, bool own, int64_t count);
/* count + 1 edges; as floats the values that numpy rounds them to. */
void fv__bins_edges(const fv_bins *bins, double *edges);

/* The bin of a value, -1 outside. The last bin includes its upper edge, the others do not. */
#define FV__BIN_OF(NAME, TYPE)                                                                                                   \
    static inline int64_t NAME(const fv_bins *bins, const double *edges, TYPE value) {                                           \
        TYPE first = (TYPE)bins->first, last = (TYPE)bins->last;                                                                 \
        if (!(value >= first && value <= last)) return -1;                                                                       \
        TYPE    place = (TYPE)((TYPE)(value - first) * (TYPE)bins->scale);                                                       \
        int64_t bin = (int64_t)place;                                                                                            \
        if (bin >= bins->count) bin = bins->count - 1;                                                                           \
        if (value < edges[bin])                                                                                                  \
            bin--;                                                                                                               \
        else if (value >= edges[bin + 1] && bin != bins->count - 1)                                                              \
            bin++;                                                                                                               \
        return bin;                                                                                                              \
    }
FV__BIN_OF(fv_bin_of_float, float)
FV__BIN_OF(fv_bin_of_double, double)
#undef FV__BIN_OF

/* Adds the values of a block (of fewer than 2^32 voxels) to counts[bins->count]. */
void fv__bins_count(const fv_bins *bins, const double *edges, const fv_block *block, uint32_t *counts);

#endif
