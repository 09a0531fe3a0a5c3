/* Mappings between the voxels of a result and an image, and which voxels of the image a region of the result reads. */
#include "kernels/interpolate.h"
#include "kernels/sampler.h"
#include "kernels/separable.h"

fv_mapping fv__mapping_new(const fv_image_type *type, int order, int mode, double cval) {
    fv_mapping m = { .order = order, .mode = (fv_extend)mode, .cval = cval };
    int        axis[FV_MAX_DIMS];
    m.naxes = FV_MIN(fv_image_type_spatial(type, axis), 3);
    for (int k = 0; k < m.naxes; k++) {
        m.axis[k] = axis[k];
        m.matrix[k][k] = 1;
    }
    return m;
}

bool fv__mapping_direct(const fv_mapping *m, int k) {
    if (m->filtered) return false;
    for (int j = 0; j < m->naxes; j++)
        if (j != k && (m->matrix[k][j] != 0 || m->matrix[j][k] != 0)) return false;
    double first = m->before * m->matrix[k][k] + m->offset[k];
    return fabs(m->matrix[k][k]) == 1 && first == floor(first) && fabs(first) < furthest;
}

fv_dtype fv__mapping_type(int order, fv_dtype in) { return order ? fv__separable_type(in) : in; }

/* Sums in scipy's order, so that places half way between voxels are rounded alike. */
static double coordinate(const fv_mapping *m, int k, const double *index) {
    double sum = 0;
    for (int j = 0; j < m->naxes; j++) sum += (index[j] + m->before) * m->matrix[k][j];
    return sum + m->offset[k];
}

/* ---------------------------------------------------------------- what is read */

static void include(int64_t index, int64_t *first, int64_t *last) {
    if (index < 0) return;
    *first = FV_MIN(*first, index);
    *last = FV_MAX(*last, index);
}

/* Whether a multiple of the period, moved by phase, lies within the bounds. */
static bool passes(double low, double high, double phase, double period) {
    return floor((high - phase) / period) >= ceil((low - phase) / period);
}

/* Indices of axis k that coordinates between low and high read (margin counted): first > last if none. */
static void reads(const sampler *s, int k, bool direct, double low, double high, int64_t *first, int64_t *last) {
    int64_t n = s->n[k];
    double  top = (double)(n - 1), slack = 1e-12 * (fabs(low) + fabs(high) + (double)n);
    int     order = direct ? 0 : s->order;
    bool    grid = s->mode == FV_EXTEND_GRID_CONSTANT, whole = false, ignored = false;
    *first = n;
    *last = -1;
    if (!(high - low < furthest) || !(fabs(low) < furthest) || !(fabs(high) < furthest))
        whole = true;
    else if (low >= 0 && high <= top)
        ;
    else if (s->mode == FV_EXTEND_CONSTANT || grid) {
        double beyond = grid ? (order == 3 ? 2 : 1) : 0;
        if (high < -beyond || low > top + beyond) return;
        low = FV_MAX(low, -beyond);
        high = FV_MIN(high, top + beyond);
    } else if (s->mode == FV_EXTEND_NEAREST || n == 1) {
        low = FV_MIN(FV_MAX(low, 0), top);
        high = FV_MIN(FV_MAX(high, 0), top);
    } else if (s->mode == FV_EXTEND_WRAP || s->mode == FV_EXTEND_GRID_WRAP) {
        double period = s->mode == FV_EXTEND_WRAP ? top : (double)n;
        whole = passes(low - slack, high + slack, 0, period) ||
                (s->mode == FV_EXTEND_GRID_WRAP && passes(low - slack - 1, high + slack + 1, -0.5, period));
        if (!whole) {
            low = extend_coordinate(s, k, low, &ignored);
            high = extend_coordinate(s, k, high, &ignored);
            whole = high < low;
        }
    } else { /* folded at both ends */
        bool   mirror = s->mode == FV_EXTEND_MIRROR;
        double period = mirror ? 2 * top : 2 * (double)n, fold = mirror ? 0 : -0.5;
        bool   at_start = passes(low - slack, high + slack, fold, period);
        bool   at_end = passes(low - slack, high + slack, fold + period / 2, period);
        double a = extend_coordinate(s, k, low, &ignored), b = extend_coordinate(s, k, high, &ignored);
        low = at_start ? 0 : FV_MIN(a, b) - slack;
        high = at_end ? top + (order ? 0 : 0.5) : FV_MAX(a, b) + slack; /* behind the end, rounding comes before folding */
    }
    if (whole) {
        *first = 0;
        *last = n - 1;
        return;
    }
    int64_t from = (int64_t)floor(order ? low : low + 0.5) - (order == 3);
    int64_t to = (int64_t)floor(order ? high : high + 0.5) + (order == 3 ? 2 : order);
    for (int64_t i = from; i <= to && i < FV_MIN(from + 8, n); i++) include(extend_index(s->mode, i, n), first, last);
    for (int64_t i = to; i >= from && i > FV_MAX(to - 8, -8); i--) include(extend_index(s->mode, i, n), first, last);
}

static fv_region box_of(const sampler *s, const fv_mapping *m, const bool *direct, const double *low, const double *high,
                        fv_region in) {
    bool nothing = false;
    for (int k = 0; k < m->naxes; k++) {
        int64_t first, last;
        reads(s, k, direct[k], low[k] + (double)s->margin, high[k] + (double)s->margin, &first, &last);
        in.start[m->axis[k]] = first;
        in.size[m->axis[k]] = last - first + 1;
        nothing = nothing || last < first;
    }
    for (int k = 0; k < m->naxes && nothing; k++) in.start[m->axis[k]] = in.size[m->axis[k]] = 0;
    return in;
}

fv_region fv__mapping_need(const fv_mapping *m, const fv_need *n) {
    double  low[3], high[3];
    bool    direct[3];
    sampler s;
    start_sampler(&s, m, &n->in[0]->image, &n->region);
    for (int k = 0; k < m->naxes; k++) {
        low[k] = INFINITY;
        high[k] = -INFINITY;
        direct[k] = fv__mapping_direct(m, k);
        for (int corner = 0; corner < 1 << m->naxes; corner++) { /* rounding is monotonic: the extremes are at corners */
            double index[3];
            for (int j = 0; j < m->naxes; j++)
                index[j] = (double)(n->region.start[m->axis[j]] + (corner >> j & 1) * (n->region.size[m->axis[j]] - 1));
            double c = coordinate(m, k, index);
            low[k] = FV_MIN(low[k], c);
            high[k] = FV_MAX(high[k], c);
        }
    }
    return box_of(&s, m, direct, low, high, n->region);
}

void fv__points_need(const fv_mapping *m, const fv_image_type *type, const double *low, const double *high, fv_region *in) {
    sampler    s;
    const bool direct[3] = { false };
    start_sampler(&s, m, type, in);
    *in = box_of(&s, m, direct, low, high, *in);
}
