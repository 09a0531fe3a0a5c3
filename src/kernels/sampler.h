/* What every sample of an image between its voxels needs: where the window lies, and the boundary modes. For the files of
 * kernels/interpolate.h alone. */
#ifndef FV_SAMPLER_H
#define FV_SAMPLER_H

#include "kernels/interpolate.h"

typedef struct sampler {
    fv_extend   mode;
    int         order, naxes;
    double      cval;
    int64_t     n[3];                /* voxels of the input, with what was put around it */
    double      end[3];              /* the least coordinate beyond the last of them */
    int64_t     margin;              /* that, on each side */
    int64_t     start[3], stride[3]; /* of the window that data holds */
    const void *data;
    int64_t     ahead; /* elements to what a row some rows later looks at, which is fetched in time */
} sampler;

/* ---------------------------------------------------------------- boundary modes */

/* Where an index beyond the ends comes from; -1: the constant. */
static inline int64_t extend_index(fv_extend mode, int64_t i, int64_t n) {
    static const fv_border like[] = {
        [FV_EXTEND_REFLECT] = FV_BORDER_REFLECT,     [FV_EXTEND_MIRROR] = FV_BORDER_MIRROR,
        [FV_EXTEND_NEAREST] = FV_BORDER_NEAREST,     [FV_EXTEND_WRAP] = FV_BORDER_MIRROR,
        [FV_EXTEND_CONSTANT] = FV_BORDER_MIRROR,     [FV_EXTEND_GRID_WRAP] = FV_BORDER_WRAP,
        [FV_EXTEND_GRID_MIRROR] = FV_BORDER_REFLECT, [FV_EXTEND_GRID_CONSTANT] = FV_BORDER_CONSTANT
    };
    return i >= 0 && i < n ? i : fv__border_index(like[mode], i, n);
}

/* Beyond this, folding by the length of the image has no meaning in doubles. */
static const double furthest = 0x1p45;

/* A coordinate of axis k brought into the image, with scipy's arithmetic; sets *outside where the constant is the answer. */
static inline double extend_coordinate(const sampler *s, int k, double c, bool *outside) {
    double n = (double)s->n[k], last = n - 1, reach = s->order == 3, twice = 2 * last;
    if (c >= 0 && c <= last) return c;
    if (!(fabs(c) < furthest)) {
        if (c != c || s->mode == FV_EXTEND_CONSTANT || s->mode == FV_EXTEND_GRID_CONSTANT) *outside = true;
        return c > 0 ? last : 0;
    }
    switch (s->mode) {
    case FV_EXTEND_NEAREST: return c < 0 ? 0 : last;
    case FV_EXTEND_CONSTANT: *outside = true; return 0;
    case FV_EXTEND_GRID_CONSTANT:
        if (s->order == 0 ? c < -0.5 || c >= n - 0.5 : c < -1 - reach || c >= n + reach) *outside = true;
        return *outside ? 0 : c;
    default: break;
    }
    if (n <= 1) return 0;
    switch (s->mode) {
    case FV_EXTEND_MIRROR:
        if (c < 0) {
            c = twice * (double)(int64_t)(-c / twice) + c;
            return c <= 1 - n ? c + twice : -c;
        }
        c -= twice * (double)(int64_t)(c / twice);
        return c >= n ? twice - c : c;
    case FV_EXTEND_REFLECT:
    case FV_EXTEND_GRID_MIRROR:
        twice = 2 * n;
        if (c < 0) {
            if (c < -twice) c = twice * (double)(int64_t)(-c / twice) + c;
            return c < -n ? c + twice : (c > -1e-15 ? 1e-15 : -c) - 1;
        }
        c -= twice * (double)(int64_t)(c / twice);
        return c >= n ? twice - c - 1 : c;
    case FV_EXTEND_WRAP:
        if (c < 0) return c + last * ((double)(int64_t)(-c / last) + 1);
        return c - last * (double)(int64_t)(c / last);
    default: /* grid-wrap */
        if (c < 0) return c + n * ((double)(int64_t)((-1 - c) / n) + 1);
        return c - n * (double)(int64_t)(c / n);
    }
}

static inline void start_sampler(sampler *s, const fv_mapping *m, const fv_image_type *type, const fv_region *in) {
    *s = (sampler){ .mode = m->mode, .order = m->order, .naxes = m->naxes, .cval = m->cval, .margin = m->margin };
    for (int k = 0; k < m->naxes; k++) {
        s->n[k] = type->shape[m->axis[k]];
        s->end[k] = nextafter((double)(s->n[k] - 1), INFINITY);
        s->start[k] = in->start[m->axis[k]];
    }
}

#endif
