/* A histogram without the blur that a smooth field gave it, by Wiener's filter.
 *
 * The Fourier transforms are written out here: they are short, and of doubles without contraction they give the same bits on
 * every processor.
 */
#include "ops/intensity/sharpen_histogram.h"
#include "base/math.h"

#define LN2 0.69314718055994531

void fv__sharpen_lay_out(fv__sharpen *s, int64_t bins, fv_scratch *pieces) {
    s->bins = bins;
    for (s->size = 2; s->size < 2 * bins;) s->size *= 2;
    s->counts = fv__scratch_take(pieces, bins * 8);
    s->expected = fv__scratch_take(pieces, bins * 8);
    s->turn = fv__scratch_take(pieces, s->size * 8);
    s->blur = fv__scratch_take(pieces, s->size * 8);
    s->a = fv__scratch_take(pieces, 2 * s->size * 8);
    s->b = fv__scratch_take(pieces, 2 * s->size * 8);
}

void fv__sharpen_prepare(fv__sharpen *s) {
    int64_t half = s->size / 2;
    for (int64_t k = 0; k < half; k++) {
        double angle = 0x1.921fb54442d18p+2 * (double)k / (double)s->size;
        s->turn[k] = fv__cos(angle);
        s->turn[half + k] = fv__sin(angle);
    }
}

static void swap(double *a, double *b) {
    double kept = *a;
    *a = *b;
    *b = kept;
}

/* In place, by Cooley and Tukey; sign 1: forward, -1: backward, without a factor. */
static void fourier(const fv__sharpen *s, double *re, double sign) {
    int64_t n = s->size;
    double *im = re + n;
    for (int64_t i = 1, k = 0; i < n; i++) { /* k: i with its bits turned round */
        int64_t bit = n / 2;
        for (; k & bit; bit /= 2) k ^= bit;
        k ^= bit;
        if (i < k) {
            swap(&re[i], &re[k]);
            swap(&im[i], &im[k]);
        }
    }
    for (int64_t length = 1; length < n; length *= 2)
        for (int64_t start = 0; start < n; start += 2 * length)
            for (int64_t i = 0; i < length; i++) {
                int64_t a = start + i, b = a + length, at = i * (n / 2 / length);
                double  c = s->turn[at], d = -sign * s->turn[n / 2 + at];
                double  x = re[b] * c - im[b] * d, y = re[b] * d + im[b] * c;
                re[b] = re[a] - x;
                im[b] = im[a] - y;
                re[a] += x;
                im[a] += y;
            }
}

/* Times a real row, and back: what convolves a row with that of which it is the transform. */
static void convolve(const fv__sharpen *s, double *row, const double *by) {
    fourier(s, row, 1);
    for (int64_t i = 0; i < s->size; i++) {
        row[i] *= by[i];
        row[s->size + i] *= by[i];
    }
    fourier(s, row, -1);
}

/* The transform of a Gaussian of area 1 that is as wide as so many bins; it is symmetric, so its transform is real. */
static void transform_blur(fv__sharpen *s, double width) {
    double height = 2 * sqrt(LN2 / 3.14159265358979324) / width, sharpness = 4 * LN2 / (width * width);
    for (int64_t i = 0; i < s->size; i++) {
        double from = (double)FV_MIN(i, s->size - i);
        s->a[i] = height * fv__exp(-from * from * sharpness);
        s->a[s->size + i] = 0;
    }
    fourier(s, s->a, 1);
    memcpy(s->blur, s->a, (size_t)s->size * sizeof *s->blur);
}

void fv__sharpen_run(fv__sharpen *s, double low, double step, double width, double noise) {
    int64_t n = s->size, before = (n - s->bins) / 2;
    transform_blur(s, width / step);
    memset(s->a, 0, 2 * (size_t)n * sizeof *s->a);
    memcpy(s->a + before, s->counts, (size_t)s->bins * sizeof *s->a);
    for (int64_t i = 0; i < n; i++) s->b[i] = s->blur[i] / (s->blur[i] * s->blur[i] + noise);
    convolve(s, s->a, s->b);
    for (int64_t i = 0; i < n; i++) { /* the sharp histogram, and the same times its values */
        double sharp = FV_MAX(s->a[i] / (double)n, 0);
        s->a[i] = sharp;
        s->b[i] = sharp * (low + (double)(i - before) * step);
        s->a[n + i] = s->b[n + i] = 0;
    }
    convolve(s, s->a, s->blur);
    convolve(s, s->b, s->blur);
    double most = 0;
    for (int64_t i = 0; i < s->bins; i++) most = FV_MAX(most, s->a[before + i]);
    for (int64_t i = 0; i < s->bins; i++) { /* where only rounding is left, values stay as they are */
        double share = s->a[before + i];
        s->expected[i] = share > 1e-12 * most ? s->b[before + i] / share : low + (double)i * step;
    }
}
