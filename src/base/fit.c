/* Lines through measured points. */
#include "base/fit.h"
#include "base/base.h"
#include <math.h>
#include <stdlib.h>

#define ALIKE 1.2 /* ratio of the largest to the smallest x below which a slope would be noise */

static void least_squares(fv_line *line, const double *x, const double *y, int count) {
    double mean_y = 0, sxy = 0, xx = 0, xy = 0, low = x[0], high = x[0];
    for (int i = 0; i < count; i++) {
        mean_y += y[i] / count;
        xx += x[i] * x[i];
        xy += x[i] * y[i];
        low = fmin(low, x[i]);
        high = fmax(high, x[i]);
    }
    for (int i = 0; i < count; i++) sxy += (x[i] - line->mean) * (y[i] - mean_y);
    bool alike = !(high > ALIKE * low);
    line->slope = alike ? 0 : sxy / line->sxx;
    line->fixed = mean_y - line->slope * line->mean;
    if (line->slope < 0) {
        line->slope = 0;
        line->fixed = mean_y;
    }
    if ((alike && xx > 0) || line->fixed < 0) {
        line->fixed = 0;
        line->slope = xy / xx;
    }
}

fv_line fv__fit_line(const double *x, const double *y, int count) {
    fv_line line = { .points = count };
    double  squares = 0;
    if (!count) return line;
    for (int i = 0; i < count; i++) line.mean += x[i] / count;
    for (int i = 0; i < count; i++) line.sxx += (x[i] - line.mean) * (x[i] - line.mean);
    least_squares(&line, x, y, count);
    for (int i = 0; i < count; i++) squares += pow(y[i] - fv__line_at(&line, x[i]), 2);
    line.spread = count > 2 ? sqrt(squares / (count - 2)) : sqrt(squares);
    return line;
}

double fv__line_at(const fv_line *line, double x) { return line->fixed + line->slope * x; }

double fv__line_error(const fv_line *line, double x) {
    if (!line->points) return 0;
    double away = line->fixed > 0 && line->slope > 0 && line->sxx > 0 ? (x - line->mean) * (x - line->mean) / line->sxx : 0;
    return line->spread * sqrt(1.0 / line->points + away);
}

fv_amdahl fv__fit_amdahl(const double *workers, const double *seconds, int count) {
    double *inverse = fv__alloc((size_t)(count + 1) * sizeof *inverse);
    double  squares = 0;
    for (int i = 0; i < count; i++) inverse[i] = 1 / workers[i];
    fv_line   line = fv__fit_line(inverse, seconds, count);
    fv_amdahl fit = { .seconds = fv__line_at(&line, 1) };
    if (fit.seconds > 0) fit.serial = line.fixed / fit.seconds;
    for (int i = 0; i < count; i++)
        if (seconds[i] > 0) squares += pow(fv__line_at(&line, inverse[i]) / seconds[i] - 1, 2);
    if (count > 2) fit.spread = sqrt(squares / (count - 2));
    free(inverse);
    return fit;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double fv__median(double *values, int count) {
    if (!count) return 0;
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
