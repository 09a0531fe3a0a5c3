/* Back-projection along the rays of a cone. */
#include "kernels/cone_beam.h"
#include "kernels/vectors.h"

void FV_ISA_NAME(fv__cone_rows)(const fv_cone *c, int64_t first, int64_t count, int64_t *first_row, int64_t *nrows) {
    double radius = sqrt((double)(c->height * c->height + c->width * c->width)) / 2;
    double low = 1e300, high = -1e300;
    for (int k = 0; k < 4; k++) {
        double q = c->source + (k & 1 ? radius : -radius), z = (double)(k & 2 ? first + count - 1 : first) - c->middle;
        double v = c->middle_row + z * c->distance / (q * c->pitch);
        low = FV_MIN(low, v);
        high = FV_MAX(high, v);
    }
    *first_row = (int64_t)floor(low) - 1;
    *nrows = (int64_t)floor(high) + 3 - *first_row;
}

/* Where a column of voxels is seen at each angle of a block. */
typedef struct sight {
    double column[FV_LINES_MOST], scale[FV_LINES_MOST], weight[FV_LINES_MOST];
} sight;

FV_INLINE void see(const fv_cone *c, const double *cosine, const double *sine, int n, double across, double down, sight *to) {
    for (int k = 0; k < n; k++) {
        double s = across * cosine[k] - down * sine[k], depth = across * sine[k] + down * cosine[k];
        double inverse = 1 / (c->source + depth), scale = inverse * c->magnify;
        to->scale[k] = scale;
        to->column[k] = c->center + s * scale;
        to->weight[k] = c->source * inverse * (c->source * inverse);
    }
}

void FV_ISA_NAME(fv__cone_gather)(const fv_cone *c, const fv_lines *lines, const float *filtered, int64_t from, int64_t until,
                                  int64_t y, int64_t x, float *line) {
    double across = (double)x - (double)(c->width - 1) / 2, down = (double)y - (double)(c->height - 1) / 2;
    for (int64_t a = from; a < until; a += FV_LINES_MOST) {
        int     n = (int)FV_MIN(FV_LINES_MOST, until - a), used = 0;
        sight   seen;
        fv_line pair[FV_LINES_MOST];
        if (n == FV_LINES_MOST)
            see(c, c->cosine + a, c->sine + a, FV_LINES_MOST, across, down, &seen);
        else
            see(c, c->cosine + a, c->sine + a, n, across, down, &seen);
        for (int k = 0; k < n; k++) {
            double whole = floor(seen.column[k]), scale = seen.scale[k];
            float  f = (float)(seen.column[k] - whole), weight = (float)seen.weight[k];
            if (!(whole >= 0 && whole + 1 < (double)c->columns)) continue;
            const float *low = filtered + ((a + k) * c->columns + (int64_t)whole) * c->nrows;
            pair[used++] =
                (fv_line){ low,         low + c->nrows, weight * (1 - f), weight * f, (float)(c->middle_row - c->middle * scale),
                           (float)scale };
        }
        FV_ISA_NAME(fv__lines_gather)(lines, pair, used, line);
    }
}
