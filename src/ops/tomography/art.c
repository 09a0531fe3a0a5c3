/* art: algebraic reconstruction, ray by ray. */
#include "ops/tomography/solver.h"

static const fv_param params[] = { FV_SOLVER_GEOMETRY,
                                   FV_SOLVER_ITERATIONS("4"),
                                   FV_SOLVER_RELAXATION("0.5"),
                                   FV_SOLVER_NONNEGATIVE,
                                   FV_SOLVER_STOP,
                                   FV_SOLVER_SIZE,
                                   FV_SOLVER_SUBSETS,
                                   FV_SOLVER_PART,
                                   FV_PARAM_END };
static const fv_input inputs[] = { FV_SOLVER_INPUT_TABLE };

static void use_ray(fv_solving *s, int64_t angle, int64_t ray) {
    float norm = FV_ISA_NAME(fv__beam_trace)(&s->beam, angle, ray, &s->trail), lacks[FV_BEAM_LANES];
    float inverse = s->beam.angle[angle].inverse;
    if (norm < 1e-3f) return;
    const float *measured = fv__beam_ray(&s->beam, s->measured, angle, ray);
    FV_ISA_NAME(fv__beam_dot)(&s->trail, s->image, lacks);
    for (int l = 0; l < FV_BEAM_LANES; l++) {
        float rest = measured[l] - lacks[l] * inverse;
        s->residual[l] += (double)rest * (double)rest;
        lacks[l] = s->step[l] * (rest / (inverse * norm));
    }
    FV_ISA_NAME(fv__beam_add)(&s->trail, lacks, s->image);
}

static void iterate(fv_solving *s) {
    memset(s->residual, 0, sizeof s->residual);
    for (int64_t a = 0; a < s->beam.nangles; a++)
        for (int64_t i = 0; i < s->beam.columns; i++) use_ray(s, a, i);
    for (int64_t y = 0; y < s->beam.rows; y++) fv__solver_limit(s, y);
}

static const fv_method method = { .ordered = true, .iterate = iterate };
FV_SOLVER_OP(method);
FV_SOLVER_UNROLL(FV_UNROLLED_ART, "art")

const fv_op FV_OP(art) = {
    .name = "art",
    .brief = "reconstruct by algebraic iterations, ray by ray (ART)",
    FV_SOLVER_FIELDS,
    .doc = "Kaczmarz's method: for each ray in turn, the volume is changed until it explains what that ray measured; angles "
           "are used in the order given. It is fast at first. A relaxation well below 1 keeps noise down. The result is "
           "float32.\n"
           "The residual that stop looks at is that of each ray at the moment it is used.\n"
           "With a cone beam, all rays of a projection (or of a subset of projections) are used at once, each divided by its "
           "scalar product with all of them. Where they share no voxel this is the same, and no relaxation below 2 diverges. "
           "mask and nonnegative are applied after each of these steps.",
    .citation = "Gordon, Bender and Herman, Algebraic reconstruction techniques, J. Theor. Biol. 29, 1970",
    .example = "g = parallel(range(-72, 72, 3))\n"
               "p = xray(phantom(\"shepp-logan\", [128, 128]), g)\n"
               "write(art(p, g, iterations = 2), \"slice.tif\")",
    .see = "sirt sart cgls mlem fbp residuals",
};
