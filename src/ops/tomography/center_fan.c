/* The column of the axis in a fan beam, from rays that were measured twice.
 *
 * The ray that leaves the source at angle a under the fan angle g is met again, from its other end, at a + half a turn + 2 g
 * under -g. With u = center + (source to detector) tan(g) / pitch the two values are equal for the true centre only.
 */
#include "base/math.h"
#include "ops/tomography/center_methods.h"

#define HALF_TURN 0x1.921fb54442d18p+1

/* The sinogram at an angle, in degrees, between the two that were measured next to it, and at a place between two columns. */
static double look(const fv_fan *f, double angle, double column) {
    double  turned = angle - f->angle[0];
    int64_t low = 0, high = f->nangles - 1;
    turned -= 360 * floor(turned / 360);
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (f->angle[middle] - f->angle[0] <= turned)
            low = middle;
        else
            high = middle;
    }
    if (turned >= f->angle[high] - f->angle[0]) low = high; /* in the gap before the first angle comes again */
    int64_t next = low + 1 < f->nangles ? low + 1 : 0, u = (int64_t)floor(column);
    double  gap = next ? f->angle[next] - f->angle[low] : f->angle[0] + 360 - f->angle[low];
    double  part = gap > 0 ? (turned - (f->angle[low] - f->angle[0])) / gap : 0, beside = column - (double)u;
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    const float *a = f->sinogram + low * f->n + u, *b = f->sinogram + next * f->n + u;
    int64_t      right = u + 1 < f->n;
    return (1 - part) * ((1 - beside) * (double)a[0] + beside * (double)a[right]) +
           part * ((1 - beside) * (double)b[0] + beside * (double)b[right]);
}

/* Mean squared difference of rays and what is met from their other ends, where the detector has both. */
static double mismatch(const fv_fan *f, double center, int64_t step) {
    double  sum = 0;
    int64_t count = 0;
    for (int64_t u = 0; u < f->n; u++) {
        double other = 2 * center - (double)u, fan = fv__atan(((double)u - center) * f->pitch / f->distance) * (180 / HALF_TURN);
        if (other < 0 || other > (double)(f->n - 1)) continue;
        for (int64_t a = 0; a < f->nangles; a += step) {
            double d = (double)f->sinogram[a * f->n + u] - look(f, f->angle[a] + 180 + 2 * fan, other);
            sum += d * d;
            count++;
        }
    }
    return count ? sum / (double)count : INFINITY;
}

static double least(const fv_fan *f, double from, double until, double by, int64_t step) {
    double best = from, value = INFINITY;
    for (int64_t i = 0; from + (double)i * by <= until; i++) {
        double here = mismatch(f, from + (double)i * by, step);
        if (!(here < value)) continue;
        value = here;
        best = from + (double)i * by;
    }
    return best;
}

double FV_ISA_NAME(fv__center_fan)(const fv_fan *f) {
    int64_t few = FV_MAX(f->nangles / 32, 1); /* some angles show the place, all of them find it */
    double  center = least(f, (double)(f->n / 4), (double)(f->n - 1 - f->n / 4), 0.5, few);
    center = least(f, center - 1, center + 1, 0.125, 1);
    double before = mismatch(f, center - 0.125, 1), here = mismatch(f, center, 1), after = mismatch(f, center + 0.125, 1);
    return center + 0.125 * fv__summit(-before, -here, -after, 1);
}
