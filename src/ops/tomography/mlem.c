/* mlem: maximum likelihood by expectation maximisation, for counted quanta. */
#include "ops/tomography/solver.h"

enum { LANES = FV_BEAM_LANES };

static const fv_param params[] = { FV_SOLVER_GEOMETRY, FV_SOLVER_ITERATIONS("20"), FV_SOLVER_STOP, FV_SOLVER_SIZE, FV_SOLVER_PART,
                                   FV_PARAM_END };
static const fv_input inputs[] = { FV_SOLVER_INPUT_TABLE };

/* Measured over expected; what cannot be counted (negative, or where nothing is expected) changes nothing by being there. */
static void compare(fv_solving *s) {
    const fv_beam *b = &s->beam;
    double         sum[LANES] = { 0 };
    for (int64_t a = 0; a < b->nangles; a++) {
        float *ratio = fv__beam_ray(b, s->rest, a, 0), *measured = fv__beam_ray(b, s->measured, a, 0);
        FV_ISA_NAME(fv__beam_project)(b, s->image, a, 0, b->columns, ratio);
        for (int64_t i = 0; i < b->columns; i++)
            for (int l = 0; l < LANES; l++) {
                float *to = ratio + i * LANES + l, counted = measured[i * LANES + l], rest = counted - *to;
                sum[l] += (double)rest * (double)rest;
                *to = *to > 1e-12f && counted > 0 ? counted / *to : 0;
            }
    }
    memcpy(s->residual, sum, sizeof sum);
}

static void iterate(fv_solving *s) {
    const fv_beam *b = &s->beam;
    compare(s);
    if (!fv__solver_stop(s)) return;
    for (int64_t y = 0; y < b->rows; y++) {
        float *x = fv__beam_voxel(b, s->image, y, 0);
        FV_ISA_NAME(fv__beam_gather)(b, s->rest, FV_BEAM_JOSEPH, 0, b->nangles, y, 0, b->width, s->line);
        for (int64_t i = 0; i < b->width; i++) {
            float cover = s->coverage[y * b->width + i], share = cover > 1e-3f ? 1 / cover : 0;
            for (int l = 0; l < LANES; l++) x[i * LANES + l] *= s->step[l] > 0 ? s->line[i * LANES + l] * share : 1;
        }
        fv__solver_limit(s, y);
    }
}

static const fv_method method = { .positive = true, .weights = true, .iterate = iterate };
FV_SOLVER_OP(method);
FV_SOLVER_UNROLL(FV_UNROLLED_MLEM, "mlem")

const fv_op FV_OP(mlem) = {
    .name = "mlem",
    .brief = "reconstruct by expectation maximisation (MLEM)",
    FV_SOLVER_FIELDS,
    .doc = "For projections that count quanta, as in emission tomography. In each iteration every voxel is multiplied by the "
           "mean ratio of measured to expected counts along its rays. It starts from ones and stays positive; negative "
           "measurements count as 0. The result is float32.",
    .citation = "Shepp and Vardi, Maximum likelihood reconstruction for emission tomography, IEEE Trans. Med. Imaging 1, 1982",
    .example = "g = parallel(range(-72, 72, 3))\n"
               "p = xray(phantom(\"shepp-logan\", [128, 128]), g)\n"
               "write(mlem(p, g, iterations = 20), \"slice.tif\")",
    .see = "sirt art sart cgls poisson residuals",
};
