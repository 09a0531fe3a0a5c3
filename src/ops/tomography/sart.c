/* sart: simultaneous algebraic reconstruction, projection by projection. */
#include "ops/tomography/solver.h"

static const fv_param params[] = { FV_SOLVER_GEOMETRY,
                                   FV_SOLVER_ITERATIONS("2"),
                                   FV_SOLVER_RELAXATION("0.8"),
                                   FV_SOLVER_NONNEGATIVE,
                                   FV_SOLVER_STOP,
                                   FV_SOLVER_SIZE,
                                   FV_SOLVER_SUBSETS,
                                   FV_SOLVER_PART,
                                   FV_PARAM_END };
static const fv_input inputs[] = { FV_SOLVER_INPUT_TABLE };

/* What each ray of a projection lacks, per length. */
static void lack(fv_solving *s, int64_t angle) {
    const fv_beam *b = &s->beam;
    float         *rest = fv_beam_ray(b, s->rest, angle, 0), *measured = fv_beam_ray(b, s->measured, angle, 0);
    double         square[FV_BEAM_LANES];
    FV_ISA_NAME(fv_beam_project)(b, s->image, angle, 0, b->columns, rest);
    for (int64_t i = 0; i < b->columns * FV_BEAM_LANES; i++) rest[i] = measured[i] - rest[i];
    fv__solver_square(rest, b->columns, square);
    for (int l = 0; l < FV_BEAM_LANES; l++) s->residual[l] += square[l];
    for (int64_t i = 0; i < b->columns; i++) {
        float length = s->lengths[angle * b->columns + i], share = length > 1e-3f ? 1 / length : 0;
        for (int l = 0; l < FV_BEAM_LANES; l++) rest[i * FV_BEAM_LANES + l] *= share;
    }
}

static void use_projection(fv_solving *s, int64_t angle) {
    const fv_beam *b = &s->beam;
    lack(s, angle);
    for (int64_t y = 0; y < b->rows; y++) {
        FV_ISA_NAME(fv_beam_correct)(b, s->rest, angle, y, s->step, s->image);
        fv__solver_limit(s, y);
    }
}

static void iterate(fv_solving *s) {
    memset(s->residual, 0, sizeof s->residual);
    for (int64_t a = 0; a < s->beam.nangles; a++) use_projection(s, s->order[a]);
}

static const fv_method method = { .weights = true, .iterate = iterate };
FV_SOLVER_OP(method);
FV_SOLVER_UNROLL(FV_UNROLLED_SART, "sart")

const fv_op FV_OP(sart) = {
    .name = "sart",
    .brief = "reconstruct by algebraic iterations, projection by projection (SART)",
    FV_SOLVER_FIELDS,
    .doc = "After each projection every voxel takes the weighted mean of what the rays through it lack: faster than sirt, calmer "
           "than art; the method of skimage.transform.iradon_sart, whose kernel and default relaxation differ. Projections are "
           "taken "
           "in an order that spreads them over all angles by the golden ratio. The residual that stop looks at is that of each "
           "projection when its turn came. Of a cone, subsets = n uses every n-th projection at once (ordered "
           "subsets), which saves passes over the volume. float32.",
    .citation = "Andersen and Kak, Simultaneous algebraic reconstruction technique, Ultrasonic Imaging 6, 1984",
    .example =
        "g = parallel(angles = range(-72, 72, 6)); sart(xray(phantom(\"shepp-logan\", [64, 64]), g), g, iterations = 1) |> "
        "write(\"a.tif\")",
};
