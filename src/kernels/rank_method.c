/* Rank filters: the choice of a method. All give the same bits, so it may follow speed alone; it depends on box and type. */
#include "kernels/rank.h"

typedef enum method { NETWORK, HISTOGRAM, ORDINAL } method;

/* Nanoseconds a voxel, as measured with AVX2. */
static double network_cost(double voxels, double bytes) { return 0.2 + 0.65 * voxels * sqrt(voxels) * bytes / 32 * 0.45; }
static double histogram_cost(double column) { return 25 + column / 10; }
static double ordinal_cost(double column) { return 60 + 3 * column; }

static method choose(const fv_rank *f, fv_dtype dtype, double *cost) {
    double voxels = 1, column, bytes = (double)fv_dtype_size(dtype);
    for (int k = 0; k < f->box.naxes; k++) voxels *= (double)f->box.size[k];
    column = voxels / (double)f->box.size[f->box.naxes - 1];
    method best = ORDINAL;
    *cost = ordinal_cost(column);
    if (bytes == 1 && voxels <= UINT16_MAX && histogram_cost(column) < *cost) {
        best = HISTOGRAM;
        *cost = histogram_cost(column);
    }
    if (fv__rank_network_fits(f) && network_cost(voxels, bytes) < *cost) {
        best = NETWORK;
        *cost = network_cost(voxels, bytes);
    }
    return best;
}

double fv__rank_cost(const fv_rank *f, fv_dtype dtype) {
    double cost;
    choose(f, dtype, &cost);
    return cost;
}

size_t fv__rank_scratch(const fv_rank *f, const fv_need *need) {
    double cost;
    switch (choose(f, need->in[0]->image.dtype, &cost)) {
    case NETWORK: return fv__rank_network_scratch(f, need);
    case HISTOGRAM: return fv__rank_histogram_scratch(f, need);
    default: return fv__rank_ordinal_scratch(f, need);
    }
}

void fv__rank_run(const fv_rank *f, const fv_run *r) {
    double cost;
    switch (choose(f, r->in[0]->dtype, &cost)) {
    case NETWORK: fv__rank_network_run(f, r); break;
    case HISTOGRAM: fv__rank_histogram_run(f, r); break;
    default: fv__rank_ordinal_run(f, r);
    }
}
