/* A plane of phase over an image, and directions that are added up to find it. */
#ifndef FV_PHASE_RAMP_H
#define FV_PHASE_RAMP_H

#include "base/math.h"
#include "op/op.h"

typedef struct fv_phase_ramp {
    double y, x, offset; /* radians a pixel, and at the first one */
} fv_phase_ramp;

/* Adds the turn from b to a, times both lengths; fused as written, and not as a compiler likes it. */
static inline void fv__turn_add(double sum[2], const double *a, const double *b) {
    sum[0] += fma(a[0], b[0], a[1] * b[1]);
    sum[1] += fma(a[1], b[0], -(a[0] * b[1]));
}

static inline double fv__turn_angle(const double sum[2]) { return fv__atan2(sum[1], sum[0]); }

/* Turns a number back by the ramp at a pixel. */
static inline void fv__ramp_remove(const fv_phase_ramp *ramp, int64_t y, int64_t x, double *value) {
    double angle = ramp->y * (double)y + ramp->x * (double)x + ramp->offset, c = fv__cos(angle), s = fv__sin(angle);
    double re = fma(value[0], c, value[1] * s);
    value[1] = fma(value[1], c, -(value[0] * s));
    value[0] = re;
}

#endif
