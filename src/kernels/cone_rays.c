/* Joseph's method along the rays of a cone. */
#include "kernels/cone_rays.h"
#include "kernels/vectors.h"

void FV_ISA_NAME(fv__cone_ray_find)(const fv_cone *c, int64_t angle, int64_t column, fv_cone_ray *ray) {
    double cosine = c->cosine[angle], sine = c->sine[angle], s = ((double)column - c->center) * c->pitch;
    double mx = (double)(c->width - 1) / 2, my = (double)(c->height - 1) / 2;
    double x = mx - c->source * sine, y = my - c->source * cosine; /* the source */
    double dx = s * cosine + c->distance * sine, dy = -s * sine + c->distance * cosine;
    ray->upright = fabs(dy) >= fabs(dx);
    ray->across = dx * dx + dy * dy;
    ray->main = ray->upright ? fabs(dy) : fabs(dx);
    ray->by_share = 1 / (ray->upright ? dy : dx);
    ray->share = -(ray->upright ? y : x) * ray->by_share;
    ray->by_line = (ray->upright ? dx : dy) * ray->by_share;
    ray->place = (ray->upright ? x : y) + (ray->upright ? dx : dy) * ray->share;
}

/* Half the diagonal of a slice and of the voxels around it, which rays still blend with. */
static double reach(const fv_cone *c) {
    double h = (double)(c->height + 2), w = (double)(c->width + 2);
    return sqrt(h * h + w * w) / 2;
}

void FV_ISA_NAME(fv__cone_slices)(const fv_cone *c, int64_t first, int64_t count, int64_t *first_slice, int64_t *nslices) {
    double low = 1e300, high = -1e300;
    for (int k = 0; k < 4; k++) {
        double q = c->source + (k & 1 ? reach(c) : -reach(c)), v = (double)(k & 2 ? first + count - 1 : first) - c->middle_row;
        double z = c->middle + v * c->pitch * q / c->distance;
        low = FV_MIN(low, z);
        high = FV_MAX(high, z);
    }
    *first_slice = (int64_t)floor(low) - 1;
    *nslices = (int64_t)floor(high) + 3 - *first_slice;
}

void FV_ISA_NAME(fv__cone_near_rows)(const fv_cone *c, int64_t first, int64_t count, int64_t *first_row, int64_t *nrows) {
    double low = 1e300, high = -1e300;
    for (int k = 0; k < 4; k++) {
        double q = c->source + (k & 1 ? reach(c) : -reach(c)), z = (double)(k & 2 ? first + count : first - 1) - c->middle;
        double v = c->middle_row + z * c->distance / (q * c->pitch);
        low = FV_MIN(low, v);
        high = FV_MAX(high, v);
    }
    *first_row = (int64_t)floor(low) - 2;
    *nrows = (int64_t)floor(high) + 4 - *first_row;
}

void FV_ISA_NAME(fv__cone_columns)(const fv_cone *c, int64_t angle, int64_t y, int64_t x, int64_t height, int64_t width,
                                   int64_t *first, int64_t *count) {
    double low = 1e300, high = -1e300;
    for (int k = 0; k < 4; k++) {
        double across = (double)(k & 1 ? x + width : x - 1) - (double)(c->width - 1) / 2;
        double down = (double)(k & 2 ? y + height : y - 1) - (double)(c->height - 1) / 2;
        double s = across * c->cosine[angle] - down * c->sine[angle];
        double u = c->center + s * c->magnify / (c->source + across * c->sine[angle] + down * c->cosine[angle]);
        low = FV_MIN(low, u);
        high = FV_MAX(high, u);
    }
    *first = (int64_t)FV_MAX(floor(low), 0);
    *count = FV_MAX((int64_t)FV_MIN(ceil(high) + 1, (double)c->columns) - *first, 0);
}

/* Steps in which crossing number j looks along the line of voxels there. */
FV_INLINE void steps_at(const fv_cone *c, const fv_cone_ray *ray, int64_t j, float *base, float *slope) {
    double step = (ray->share + (double)j * ray->by_share) * c->pitch;
    *base = (float)(c->middle - step * c->middle_row);
    *slope = (float)step;
}

void FV_ISA_NAME(fv__cone_ray_gather)(const fv_cone *c, const fv_lines *lines, const fv_cone_ray *ray, const float *volume,
                                      int64_t from, int64_t until, float *to) {
    int64_t size = ray->upright ? c->width : c->height, next = ray->upright ? lines->samples : c->width * lines->samples;
    int64_t between = ray->upright ? c->width * lines->samples : lines->samples;
    fv_line pair[FV_LINES_MOST];
    int     used = 0;
    for (int64_t j = from; j < until; j++) {
        double place = ray->place + (double)j * ray->by_line, whole = floor(place);
        if (!(whole >= -1 && whole < (double)size)) continue;
        int64_t      i = (int64_t)whole, low = FV_MAX(i, 0), high = FV_MIN(i + 1, size - 1);
        float        f = (float)(place - whole);
        const float *line = volume + j * between;
        fv_line     *p = &pair[used++];
        *p = (fv_line){ line + low * next, line + high * next, i >= 0 ? 1 - f : 0, i + 1 < size ? f : 0, 0, 0 };
        steps_at(c, ray, j, &p->base, &p->slope);
        if (used < FV_LINES_MOST) continue;
        FV_ISA_NAME(fv__lines_gather)(lines, pair, used, to);
        used = 0;
    }
    FV_ISA_NAME(fv__lines_gather)(lines, pair, used, to);
}

FV_INLINE void add_line(float *restrict to, const float *restrict line, float weight, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = fmaf(weight, line[i], to[i]);
}

void FV_ISA_NAME(fv__cone_ray_spread)(const fv_cone *c, const fv_lines *lines, const fv_cone_ray *ray, const float *rays,
                                      int64_t y, int64_t x, int64_t height, int64_t width, float *line, float *tile) {
    int64_t n = lines->samples, first = ray->upright ? x : y, size = ray->upright ? width : height;
    int64_t from = ray->upright ? y : x, until = ray->upright ? y + height : x + width;
    int64_t next = ray->upright ? n : width * n, between = ray->upright ? width * n : n;
    for (int64_t j = from; j < until; j++) {
        double place = ray->place + (double)j * ray->by_line, whole = floor(place);
        if (!(whole >= (double)(first - 1) && whole < (double)(first + size))) continue;
        int64_t i = (int64_t)whole - first;
        float   f = (float)(place - whole), base, slope, *to = tile + (j - from) * between;
        steps_at(c, ray, j, &base, &slope);
        FV_ISA_NAME(fv__lines_spread)(lines, rays, base, slope, line);
        if (i >= 0) add_line(to + i * next, line, 1 - f, n);
        if (i + 1 < size) add_line(to + (i + 1) * next, line, f, n);
    }
}
