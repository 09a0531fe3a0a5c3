/* sart: simultaneous algebraic reconstruction, projection by projection. */
#include "base/math.h"
#include "ops/tomography/solver.h"

static const fv_param params[] = { FV_SOLVER_GEOMETRY,
                                   FV_SOLVER_ITERATIONS("2"),
                                   FV_SOLVER_RELAXATION("0.8"),
                                   FV_SOLVER_NONNEGATIVE,
                                   FV_SOLVER_STOP,
                                   FV_SOLVER_SIZE,
                                   FV_SOLVER_SUBSETS,
                                   FV_SOLVER_WINDOW,
                                   FV_SOLVER_PART,
                                   FV_PARAM_END };
static const fv_input inputs[] = { FV_SOLVER_INPUT_TABLE };

/* Radius of the circle that a window confines corrections to. */
static double radius_of(const fv_beam *b) { return (double)FV_MIN(b->rows, b->width) / 2; }
static bool   is_windowed(const fv_solving *s) { return s->solver->window.index == FV_SOLVER_HAMMING; }

/* Length of a ray where it may correct anything. */
static float length_of(const fv_solving *s, int64_t angle, int64_t column) {
    const fv_geometry *g = &s->solver->geometry;
    float              length = s->lengths[angle * s->beam.columns + column];
    if (!is_windowed(s)) return length;
    double center = g->center.count ? g->center.value[g->center.count > 1 ? angle : 0] : (double)(s->beam.columns - 1) / 2;
    double radius = radius_of(&s->beam), across = (double)column - center, chord = radius * radius - across * across;
    return chord > 0 ? FV_MIN(length, (float)FV_MAX(2 * sqrt(chord), 1)) : 0;
}

/* What each ray of a projection lacks, per length. */
static void lack(fv_solving *s, int64_t angle) {
    const fv_beam *b = &s->beam;
    float         *rest = fv__beam_ray(b, s->rest, angle, 0), *measured = fv__beam_ray(b, s->measured, angle, 0);
    double         square[FV_BEAM_LANES];
    FV_ISA_NAME(fv__beam_project)(b, s->image, angle, 0, b->columns, rest);
    for (int64_t i = 0; i < b->columns * FV_BEAM_LANES; i++) rest[i] = measured[i] - rest[i];
    fv__solver_square(rest, b->columns, square);
    for (int l = 0; l < FV_BEAM_LANES; l++) s->residual[l] += square[l];
    for (int64_t i = 0; i < b->columns; i++) {
        float length = length_of(s, angle, i), share = length > 1e-3f ? 1 / length : 0;
        for (int l = 0; l < FV_BEAM_LANES; l++) rest[i * FV_BEAM_LANES + l] *= share;
    }
}

/* Hamming's window of the place on a chord, squared: 0 in its middle, 1 at its ends. The cosine as a sum of even powers. */
static float window_of(double q) {
    double cosine = 0.0019295743;
    cosine = fma(cosine, q, -0.0258068914);
    cosine = fma(cosine, q, 0.2353306304);
    cosine = fma(cosine, q, -1.3352627689);
    cosine = fma(cosine, q, 4.0587121264);
    cosine = fma(cosine, q, -4.9348022005);
    return q < 1 ? (float)fma(0.46, fma(cosine, q, 1), 0.54) : 0;
}

/* Row y of the image goes from what it was (in s->line) only the windowed part of the way to what it is. */
static void hold_back(fv_solving *s, double cosine, double sine, int64_t y) {
    const fv_beam *b = &s->beam;
    double         radius = radius_of(b), down = (double)y - (double)(b->rows - 1) / 2;
    for (int64_t i = 0; i < b->width; i++) {
        float *x = fv__beam_voxel(b, s->image, y, i), *old = s->line + i * FV_BEAM_LANES;
        double right = (double)i - (double)(b->width - 1) / 2, across = right * cosine - down * sine;
        double along = right * sine + down * cosine, chord = radius * radius - across * across;
        float  part = chord > 0 ? window_of(along * along / chord) : 0;
        for (int l = 0; l < FV_BEAM_LANES; l++) x[l] = fmaf(part, x[l] - old[l], old[l]);
    }
}

static void use_projection(fv_solving *s, int64_t angle) {
    const fv_beam     *b = &s->beam;
    const fv_geometry *g = &s->solver->geometry;
    double             turn = g->angles.value[angle] * (g->radians ? 1 : 0x1.1df46a2529d39p-6); /* pi / 180 */
    double             cosine = fv__cos(turn), sine = fv__sin(turn);
    bool               windowed = is_windowed(s);
    lack(s, angle);
    for (int64_t y = 0; y < b->rows; y++) {
        if (windowed) memcpy(s->line, fv__beam_voxel(b, s->image, y, 0), (size_t)(b->width * FV_BEAM_LANES) * sizeof(float));
        FV_ISA_NAME(fv__beam_correct)(b, s->rest, angle, y, s->step, s->image);
        if (windowed) hold_back(s, cosine, sine, y);
        fv__solver_limit(s, y);
    }
}

static void iterate(fv_solving *s) {
    memset(s->residual, 0, sizeof s->residual);
    for (int64_t a = 0; a < s->beam.nangles; a++) use_projection(s, s->order[a]);
}

static const fv_method method = { .weights = true, .ordered = true, .iterate = iterate };
FV_SOLVER_OP(method);
FV_SOLVER_UNROLL(FV_UNROLLED_SART, "sart")

const fv_op FV_OP(sart) = {
    .name = "sart",
    .brief = "reconstruct by algebraic iterations, projection by projection (SART)",
    FV_SOLVER_FIELDS,
    .also = "iradon_sart",
    .doc = "After each projection, every voxel takes the weighted mean of what the rays through it lack. It is faster than "
           "sirt and less noisy than art. Projections are used in an order that spreads them over all angles (golden ratio). "
           "The result is float32.\n"
           "The residual that stop looks at is that of each projection at the moment it is used.\n"
           "window = \"hamming\" is for objects in the middle of the slice with air around them: few angles then leave fewer "
           "streaks. skimage.transform.iradon_sart always does so, and its relaxation r corresponds to 4.5 r here.\n"
           "With a cone beam, subsets = n uses every n-th projection at once (ordered subsets), which saves passes over the "
           "volume.",
    .citation = "Andersen and Kak, Simultaneous algebraic reconstruction technique, Ultrasonic Imaging 6, 1984",
    .example = "g = parallel(range(-72, 72, 3))\n"
               "p = xray(phantom(\"shepp-logan\", [128, 128]), g)\n"
               "write(sart(p, g, iterations = 2), \"slice.tif\")",
    .see = "sirt art cgls mlem fbp residuals",
};
