/* cgls: conjugate gradients for least squares. */
#include "ops/tomography/solver.h"

enum { GRADIENT, DIRECTION, LANES = FV_BEAM_LANES };

static const fv_param params[] = {
    FV_SOLVER_GEOMETRY, FV_SOLVER_ITERATIONS("10"),
    FV_SOLVER_STOP,     FV_PARAM(fv_solver, nonnegative, .def = "false", .doc = "negative voxels become 0 at the end"),
    FV_SOLVER_SIZE,     FV_SOLVER_PART,
    FV_PARAM_END
};
static const fv_input inputs[] = { FV_SOLVER_INPUT_TABLE };

/* The gradient of what rest lacks, inside the mask, and its squared norm. */
static void find_gradient(fv_solving *s, double square[LANES]) {
    const fv_beam *b = &s->beam;
    for (int64_t y = 0; y < b->rows; y++) {
        float *to = fv__beam_voxel(b, s->spare[GRADIENT], y, 0), *inside = s->mask ? fv__beam_voxel(b, s->mask, y, 0) : NULL;
        FV_ISA_NAME(fv__beam_gather)(b, s->rest, FV_BEAM_JOSEPH, 0, b->nangles, y, 0, b->width, to);
        for (int64_t i = 0; i < b->width * LANES && inside; i++) to[i] = inside[i] != 0 ? to[i] : 0;
    }
    fv__solver_square(s->spare[GRADIENT], (b->rows + 2 * FV_BEAM_PAD) * (b->width + 2 * FV_BEAM_PAD), square);
}

/* to += factor * from, each slice with its own factor. */
static void add(float *to, const float *from, int64_t n, const float factor[LANES]) {
    for (int64_t i = 0; i < n; i++)
        for (int l = 0; l < LANES; l++) to[i * LANES + l] += factor[l] * from[i * LANES + l];
}

/* The length of the step along the direction; the projection of the direction is made twice to save a sinogram. */
static void take_step(fv_solving *s) {
    const fv_beam *b = &s->beam;
    double         square[LANES], sum[LANES] = { 0 };
    float          length[LANES], back[LANES];
    for (int64_t a = 0; a < b->nangles; a++) {
        FV_ISA_NAME(fv__beam_project)(b, s->spare[DIRECTION], a, 0, b->columns, s->line);
        fv__solver_square(s->line, b->columns, square);
        for (int l = 0; l < LANES; l++) sum[l] += square[l];
    }
    for (int l = 0; l < LANES; l++) {
        length[l] = s->step[l] > 0 && sum[l] > 0 ? (float)(s->scale[l] / sum[l]) : 0;
        back[l] = -length[l];
    }
    add(s->image, s->spare[DIRECTION], (b->rows + 2 * FV_BEAM_PAD) * (b->width + 2 * FV_BEAM_PAD), length);
    for (int64_t a = 0; a < b->nangles; a++) {
        FV_ISA_NAME(fv__beam_project)(b, s->spare[DIRECTION], a, 0, b->columns, s->line);
        add(fv__beam_ray(b, s->rest, a, 0), s->line, b->columns, back);
    }
}

static void iterate(fv_solving *s) {
    const fv_beam *b = &s->beam;
    int64_t        voxels = (b->rows + 2 * FV_BEAM_PAD) * (b->width + 2 * FV_BEAM_PAD);
    double         square[LANES];
    float          turn[LANES];
    if (!s->iteration) {
        fv__solver_residual(s);
        find_gradient(s, s->scale);
        if (s->solver->done <= 0) memcpy(s->spare[DIRECTION], s->spare[GRADIENT], (size_t)fv__beam_image_bytes(b));
    } else
        fv__solver_square(s->rest, b->nangles * (b->columns + 2 * FV_BEAM_PAD), s->residual);
    if (!fv__solver_stop(s)) return;
    take_step(s);
    find_gradient(s, square);
    for (int l = 0; l < LANES; l++) {
        turn[l] = s->scale[l] > 0 ? (float)(square[l] / s->scale[l]) : 0;
        s->scale[l] = square[l];
    }
    for (int64_t i = 0; i < voxels; i++)
        for (int l = 0; l < LANES; l++) {
            float *p = s->spare[DIRECTION] + i * LANES + l;
            *p = s->spare[GRADIENT][i * LANES + l] + turn[l] * *p;
        }
}

static const fv_method method = { .spares = 2, .carried = 1, .iterate = iterate };
FV_SOLVER_OP(method);
FV_SOLVER_UNROLL(FV_UNROLLED_CGLS, "cgls")

const fv_op FV_OP(cgls) = {
    .name = "cgls",
    .brief = "reconstruct by conjugate gradients for least squares (CGLS)",
    FV_SOLVER_FIELDS,
    .doc = "Finds the least-squares solution among the volumes that the iterations can reach. It needs the fewest iterations "
           "of all methods. Too many of them reproduce the noise, so stop early. The result is float32.",
    .citation = "Hestenes and Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49, 1952",
    .example = "g = parallel(range(-72, 72, 3))\n"
               "p = xray(phantom(\"shepp-logan\", [128, 128]), g)\n"
               "write(cgls(p, g, iterations = 6), \"slice.tif\")",
    .see = "sirt art sart mlem fbp residuals",
};
