/* sirt: simultaneous iterative reconstruction. */
#include "ops/tomography/solver.h"

static const fv_param params[] = { FV_SOLVER_GEOMETRY,
                                   FV_SOLVER_ITERATIONS("20"),
                                   FV_SOLVER_RELAXATION("1"),
                                   FV_SOLVER_NONNEGATIVE,
                                   FV_SOLVER_STOP,
                                   FV_SOLVER_SIZE,
                                   FV_PARAM_END };
static const fv_input inputs[] = { FV_SOLVER_INPUT_TABLE };

static void iterate(fv_solving *s) {
    const fv_beam *b = &s->beam;
    fv__solver_residual(s);
    for (int64_t a = 0; a < b->nangles; a++)
        for (int64_t i = 0; i < b->columns; i++) {
            float *ray = fv_beam_ray(b, s->rest, a, i), length = s->lengths[a * b->columns + i];
            float  share = length > 1e-3f ? 1 / length : 0;
            for (int l = 0; l < FV_BEAM_LANES; l++) ray[l] *= share;
        }
    for (int64_t y = 0; y < b->rows; y++) {
        float *x = fv_beam_voxel(b, s->image, y, 0);
        FV_ISA_NAME(fv_beam_gather)(b, s->rest, FV_BEAM_JOSEPH, 0, b->nangles, y, 0, b->width, s->line);
        for (int64_t i = 0; i < b->width; i++) {
            float cover = s->coverage[y * b->width + i], share = cover > 1e-3f ? 1 / cover : 0;
            for (int l = 0; l < FV_BEAM_LANES; l++)
                x[i * FV_BEAM_LANES + l] += s->step[l] * (share * s->line[i * FV_BEAM_LANES + l]);
        }
        fv__solver_limit(s, y);
    }
}

static const fv_method method = { .weights = true, .iterate = iterate };
FV_SOLVER_OP(method);
FV_SOLVER_UNROLL(FV_UNROLLED_SIRT, "sirt")

const fv_op FV_OP(sirt) = {
    .name = "sirt",
    .brief = "reconstruct by simultaneous iterations (SIRT)",
    FV_SOLVER_FIELDS,
    .doc =
        "In each iteration every voxel takes the mean of what all its rays lack, each divided by its length inside the volume. "
        "Slow to converge and calm in noise: the method for electron tomography with few, missing or noisy angles. float32.",
    .citation =
        "Gilbert, Iterative methods for the three-dimensional reconstruction of an object from projections, J. Theor. Biol. "
        "36, 1972",
    .example =
        "g = parallel(angles = range(-72, 72, 6)); sirt(xray(phantom(\"shepp-logan\", [64, 64]), g), g, iterations = 5) |> "
        "write(\"a.tif\")",
};
