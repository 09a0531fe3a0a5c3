/* The way of a wave to a detector close behind the object: Fresnel's phases, by which its spectrum is turned. */
#ifndef FV_NEAR_FIELD_H
#define FV_NEAR_FIELD_H

#include "base/math.h"

static inline double fv__near_frequency(int64_t at, int64_t n) { return (double)(2 * at > n ? at - n : at) / (double)n; }

/* by times cosine and sine of each frequency's phase, in rows of real and then imaginary parts. near: wavelength times distance,
 * by the area of a pixel. */
static inline void fv__near_fill(int64_t height, int64_t width, double near, double by, float *travel) {
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            double v = fv__near_frequency(y, height), u = fv__near_frequency(x, width);
            double angle = -0x1.921fb54442d18p+1 * near * (v * v + u * u);
            float *to = travel + 2 * y * width + x;
            to[0] = (float)(by * fv__cos(angle));
            to[width] = (float)(by * fv__sin(angle));
        }
}

/* The spectrum of a wave behind the object becomes that of the wave at the detector, or back. */
static inline void fv__near_turn(int64_t height, int64_t width, const float *travel, float *plane, int64_t stride, bool back) {
    float sign = back ? -1 : 1;
    for (int64_t y = 0; y < height; y++) {
        float *restrict re = plane + y * stride, *restrict im = re + width;
        const float *c = travel + 2 * y * width, *s = c + width;
#pragma GCC ivdep
        for (int64_t x = 0; x < width; x++) {
            float a = re[x] * c[x] - sign * (im[x] * s[x]);
            im[x] = sign * (re[x] * s[x]) + im[x] * c[x];
            re[x] = a;
        }
    }
}

#endif
