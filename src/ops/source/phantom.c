/* phantom: made-up images of known structure, for examples, tests and benchmarks. */
#include "ops/source/phantom.h"
#include "op/source.h"

typedef struct {
    fv_choice  kind;
    fv_numbers shape;
    int64_t    seed, size;
    double     noise;
} phantom;

enum { FOAM, CELLS, T1, NOISE, SHEPP_LOGAN };

static const fv_param params[] = {
    FV_PARAM(phantom, kind, .choices = "foam|cells|t1|noise|shepp-logan", .doc = "what to make"),
    FV_PARAM_SHAPE(phantom),
    FV_PARAM(phantom, seed, .def = "1", .doc = "another number gives another specimen"),
    FV_PARAM(phantom, size, .def = "0", .min = 0, .max = 4000, .unit = "px",
             .doc = "typical distance between bubbles or cells, at least 4; 0: 88 for foam, 28 for cells"),
    FV_PARAM(phantom, noise, .def = "1", .min = 0, .max = 100, .doc = "1: as in a typical recording, 0: none"),
    FV_PARAM_END,
};

static const struct {
    fv_dtype dtype;
    int64_t  pitch; /* default distance between objects */
    double   nanoseconds;
    void (*fill)(const fv_phantom *p);
} kinds[] = {
    [FOAM] = { FV_UINT8, 88, 8, FV_ISA_NAME(fv__phantom_foam) },
    [CELLS] = { FV_UINT8, 28, 8, FV_ISA_NAME(fv__phantom_cells) },
    [T1] = { FV_INT16, 1, 20, FV_ISA_NAME(fv__phantom_t1) },
    [NOISE] = { FV_FLOAT32, 1, 1, FV_ISA_NAME(fv__phantom_noise) },
    [SHEPP_LOGAN] = { FV_FLOAT32, 1, 30, FV_ISA_NAME(fv__phantom_shepp_logan) },
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const phantom *p = i->params;
    if (p->size > 0 && p->size < 4) return fv_fail(error, FV_ERROR_USAGE, "size = %d: must be 0 or at least 4", (int)p->size);
    FV_TRY(fv__source_type(&p->shape, kinds[p->kind.index].dtype, 2, 3, i->out, error));
    for (int d = 0; p->kind.index == T1 && d < i->out->image.ndim; d++)
        memcpy(i->out->image.unit[d], "millimeter", sizeof "millimeter");
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const phantom  *p = r->need.params;
    const fv_block *out = r->out;
    int             missing = 3 - out->region.ndim;
    fv_phantom      part = { .shape = { 1, 1, 1 },
                             .size = { 1, 1, 1 },
                             .data = out->data,
                             .flat = missing > 0,
                             .seed = (uint64_t)p->seed * 4 + (uint64_t)p->kind.index,
                             .noise = (float)p->noise,
                             .pitch = p->size ? p->size : kinds[p->kind.index].pitch };
    for (int d = missing; d < 3; d++) {
        part.shape[d] = r->need.out->image.shape[d - missing];
        part.start[d] = out->region.start[d - missing];
        part.size[d] = out->region.size[d - missing];
        if (d < 2) part.stride[d] = out->stride[d - missing];
    }
    kinds[p->kind.index].fill(&part);
    return FV_OK;
}

void FV_ISA_NAME(fv__phantom_noise)(const fv_phantom *p) {
    for (int64_t z = p->start[0]; z < p->start[0] + p->size[0]; z++)
        for (int64_t y = p->start[1]; y < p->start[1] + p->size[1]; y++) {
            uint64_t key = fv__place_hash(p->seed, 0, z, y, 0);
            float   *row = (float *)p->data + fv__phantom_at(p, z, y, p->start[2]);
            uint32_t first = (uint32_t)p->start[2];
            for (int64_t x = 0; x < p->size[2]; x++)
                row[x] = (float)(int32_t)(fv__voxel_hash(key, first + (uint32_t)x) >> 8) * 0x1p-24f;
        }
}

static double cost(const fv_need *n) { return kinds[((const phantom *)n->params)->kind.index].nanoseconds; }

static const fv_pass passes[] = { { .run = run }, FV_PASS_END };

const fv_op FV_OP(phantom) = {
    .name = "phantom",
    .family = "source",
    .brief = "a synthetic specimen: foam, cells, a head, or noise",
    .version = 1,
    .also = "shepp_logan_phantom, shepp3d, binary_blobs",
    .doc = "Works in a plane and in a volume. Each voxel depends only on seed, shape and its place, so any part can be "
           "computed by itself.\n"
           "foam (uint8): gas bubbles of different sizes, values near 6, between walls near 210.\n"
           "cells (uint8): bright soft ellipsoids, some of which touch, on a dark noisy background.\n"
           "t1 (int16): a head as in T1-weighted magnetic resonance, with scalp 600, skull 60, fluid 160, grey matter 520, "
           "white matter 800, folded cortex, ventricles, a smooth bias and noise. It fills the image, whatever its shape.\n"
           "noise (float32): independent random numbers from 0 to just below 1.\n"
           "shepp-logan (float32): the ellipses (in a volume, ellipsoids) with which tomography is tested, with densities "
           "from 0 to 1 and Toft's contrast. seed, size and noise do not change it.",
    .params = params,
    .params_size = sizeof(phantom),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .example = "phantom(\"cells\", [200, 200], seed = 3) |> write(\"cells.png\")",
    .see = "zeros ones read xray_phantom",
};
