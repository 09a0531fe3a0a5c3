/* Scales of an image; see scale_space.h.
 *
 * Work is done on strips: COLUMNS neighbouring lines along the axis that is filtered, line index innermost, so that every sum
 * is over whole vectors that lie one after the other. Along x the lines are those of the plane transposed.
 *
 *     in --z--> smooth and curved volume --y, transposed--> smooth and curved plane --x, transposed back--> out
 *
 * "Curved" is the sum of second derivatives along the axes done so far: curved' = g * curved + g'' * smooth, and
 * smooth' = g * smooth.
 */
#include "kernels/scale_space.h"
#include "base/math.h"
#include "kernels/vectors.h"
#include "op/border.h"
#include "op/scratch.h"

enum { Z, Y, X };
enum { COLUMNS = 16 };

int64_t fv__scale_radius(double sigma) { return sigma > 0 ? (int64_t)(4 * sigma + 0.5) : 0; }

typedef struct {
    const fv_scale *scale;
    int64_t         radius[3];
    void           *smooth[3], *curve[3]; /* weights of the voxel itself and of those to one side */
    int64_t        *map;                  /* where the voxels of a line come from, in the input */
    void           *volume[2];            /* smooth and curved after z: size z, in y, in x */
    void           *plane[2];             /* after y: in x rounded up, `pitch` */
    void           *strip[2], *sums[2];   /* lines before and after */
    void           *parts;                /* the smooth lines in groups of vectors, as strip[CURVED] is */
    int64_t         pitch;
} job;

enum { SMOOTH, CURVED };

static int64_t round_up(int64_t n) { return (n + COLUMNS - 1) / COLUMNS * COLUMNS; }

static size_t lay_out(job *j, const fv_scale *s, void *scratch) {
    fv_scratch pieces = { scratch, 0 };
    int64_t    real = s->wide ? 8 : 4, longest = 0;
    *j = (job){ .scale = s, .pitch = round_up(s->side[Y].size) };
    if (j->pitch * real % 1024 < 256) j->pitch += 5 * COLUMNS; /* rows whose addresses agree in the low bits evict each other */
    for (int d = 0; d < 3; d++) {
        j->radius[d] = fv__scale_radius(s->sigma[d]);
        longest = FV_MAX(longest, s->side[d].size + 2 * j->radius[d] + COLUMNS);
        j->smooth[d] = fv__scratch_take(&pieces, (j->radius[d] + 1) * real);
        j->curve[d] = fv__scratch_take(&pieces, (j->radius[d] + 1) * real);
    }
    j->map = fv__scratch_take(&pieces, longest * 8);
    for (int k = 0; k < (s->laplacian ? 2 : 1); k++) {
        if (s->sigma[Z] > 0)
            j->volume[k] = fv__scratch_take(&pieces, s->side[Z].size * s->side[Y].in_size * s->side[X].in_size * real);
        j->plane[k] = fv__scratch_take(&pieces, round_up(s->side[X].in_size) * j->pitch * real);
        j->strip[k] = fv__scratch_take(&pieces, longest * COLUMNS * real);
        j->sums[k] = fv__scratch_take(&pieces, longest * COLUMNS * real);
    }
    j->parts = fv__scratch_take(&pieces, s->laplacian ? longest * COLUMNS * real : 0);
    return pieces.used;
}

size_t fv__scale_scratch(const fv_scale *scale) {
    job j;
    return lay_out(&j, scale, NULL);
}

/* Positions start - radius ... start + size + radius - 1 of a side, in the input. */
static void map_side(const job *j, int d) {
    const fv_scale_side *side = &j->scale->side[d];
    fv__border_map(FV_BORDER_REFLECT, side->n, side->start - j->radius[d], side->size + 2 * j->radius[d], j->map);
    for (int64_t i = 0; i < side->size + 2 * j->radius[d]; i++) j->map[i] -= side->in_start;
}

/* The Gaussian and its second derivative at 0 ... radius, as scipy.ndimage normalises them. */
static double smooth_total(double sigma, int64_t radius) {
    double total = 0;
    for (int64_t i = -radius; i <= radius; i++) total += fv__exp(-0.5 / (sigma * sigma) * (double)(i * i));
    return total;
}
static double smooth_weight(double sigma, double total, int64_t i) {
    return fv__exp(-0.5 / (sigma * sigma) * (double)(i * i)) / total;
}
static double curve_weight(double sigma, double total, int64_t i) {
    double variance = sigma * sigma;
    return ((double)(i * i) / (variance * variance) - 1 / variance) * smooth_weight(sigma, total, i);
}

#define REAL float
#define VECTOR fv_f32v
#define LANES FV_F32_LANES
#define R(name) FV_PASTE(name, _f32)
#include "kernels/scale_space_real.h"
#undef REAL
#undef VECTOR
#undef LANES
#undef R

#define REAL double
#define VECTOR fv_f64v
#define LANES FV_F64_LANES
#define R(name) FV_PASTE(name, _f64)
#include "kernels/scale_space_real.h"

void fv__scale_run(const fv_scale *scale, const void *in, void *out, void *scratch) {
    job j;
    lay_out(&j, scale, scratch);
    if (scale->wide)
        run_f64(&j, in, out);
    else
        run_f32(&j, in, out);
}
