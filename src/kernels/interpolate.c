/* Interpolation: the loops over a region. mapping.c tells what is read.
 *
 * Two ways, chosen by the matrix alone so that the result does not depend on chunks. Where a row of the result lies along rows
 * of the input, the neighbouring rows are blended and then interpolated along x. Everywhere else strips of voxels gather their
 * neighbours. The input is read in place if it has the computing type and adjacent voxels, else it is copied first.
 */
#include "kernels/interpolate.h"
#include "base/math.h"
#include "kernels/sampler.h"
#include "kernels/separable.h"
#include "kernels/vectors.h"
#include "op/kernels.h"
#include "op/scratch.h"

enum { STRIP = FV_POINTS_STRIP };
enum { TILE_WIDTH = 512, TILE_HEIGHT = 8 };
enum { ROWS_AHEAD = 8, PLANES_AHEAD = 4 }; /* along y in planes, along z in volumes */
enum { MIDDLE = 8 };                       /* voxels of a row that are worth a loop of their own; no group has more */
enum { BEYOND = 4 };                       /* elements before and behind a blended row */

/* Coordinates along a row of the result: of its voxel i and axis k, (sum[k] + ((first + i) + before) * slope[k]) + offset[k],
 * with the margin added. Each step is rounded, and rounding is monotonic: where slope[k] > 0, so is the coordinate. */
typedef struct ray {
    double sum[3], slope[3], offset[3], first, before, margin;
} ray;

/* Rows of the result that lie along rows of the input. */
typedef struct rows {
    int64_t  count, held;    /* voxels of the result and of the window along x */
    int      last_order;     /* along x: 0 where voxels meet voxels */
    bool     direct[3];      /* by axis: nothing is interpolated */
    int      before, behind; /* elements beyond the window, and where they come from in it; -1: the constant */
    int64_t  low[BEYOND], high[BEYOND];
    bool     some_outside;
    bool    *outside;
    int64_t *at;
    void    *fraction, *weights, *line;
} rows;

/* ---------------------------------------------------------------- along a row */

static double along(const ray *r, int k, int64_t i) {
    return ((r->sum[k] + ((r->first + (double)i) + r->before) * r->slope[k]) + r->offset[k]) + r->margin;
}

/* The first voxel of from ... to that lies on the other side of the bound than `from` does; to: none. */
static int64_t crossing(const ray *r, int k, double bound, int64_t from, int64_t to) {
    bool below = along(r, k, from) < bound;
    while (to - from > 1) {
        int64_t middle = from + (to - from) / 2;
        if ((along(r, k, middle) < bound) == below)
            from = middle;
        else
            to = middle;
    }
    return to;
}

/* Leaves those of the voxels from ... to - 1 whose coordinate k is at least low and less than high. */
static void keep_between(const ray *r, int k, double low, double high, int64_t *from, int64_t *to) {
    if (*from >= *to) return;
    double first = along(r, k, *from), last = along(r, k, *to - 1);
    if (!(fabs(first) < furthest && fabs(last) < furthest))
        *to = *from;
    else if (first < low || last < low)
        *(first < low ? from : to) = crossing(r, k, low, *from, *to);
    if (*from >= *to) return;
    first = along(r, k, *from), last = along(r, k, *to - 1);
    if (!(first < high && last < high)) *(first < high ? to : from) = crossing(r, k, high, *from, *to);
}

/* ---------------------------------------------------------------- both precisions */

#if FV_VECTOR_BYTES > 16
typedef double  wide __attribute__((vector_size(32)));
typedef int64_t wide_bits __attribute__((vector_size(32)));
#define WIDE_LANES 4
#define ASCENDING                                                                                                                \
    { 0, 1, 2, 3 }
FV_INLINE wide floor_wide(wide v) { return _mm256_floor_pd(v); }
#else
typedef double  wide __attribute__((vector_size(16)));
typedef int64_t wide_bits __attribute__((vector_size(16)));
#define WIDE_LANES 2
#define ASCENDING                                                                                                                \
    { 0, 1 }
FV_INLINE wide  floor_wide(wide v) {
     wide nearest = (v + FV__ROUND) - FV__ROUND;
     return nearest - (wide)((wide_bits)(nearest > v) & (int64_t)fv__bits(1.0));
}
#endif

#define REAL float
#define VECTOR fv_f32v_group
#define R(name) FV_PASTE(name, _f32)
#if FV_VECTOR_BYTES > 16
#define LANES 8
typedef float  fv_f32v_group __attribute__((vector_size(32)));
typedef double fv_f32v_pairs __attribute__((vector_size(32)));
#else
#define LANES 4
typedef float  fv_f32v_group __attribute__((vector_size(16)));
typedef double fv_f32v_pairs __attribute__((vector_size(16)));
#endif

/* Two adjacent floats at once. */
FV_INLINE double pair_at(const float *p) {
    double both;
    memcpy(&both, p, sizeof both);
    return both;
}

FV_INLINE void pairs_f32(const float *data, const int64_t *at, fv_f32v_group *a, fv_f32v_group *b) {
#if LANES == 8
    fv_f32v_pairs x = { pair_at(data + at[0]), pair_at(data + at[1]), pair_at(data + at[4]), pair_at(data + at[5]) };
    fv_f32v_pairs y = { pair_at(data + at[2]), pair_at(data + at[3]), pair_at(data + at[6]), pair_at(data + at[7]) };
    fv_f32v_group u = (fv_f32v_group)x, v = (fv_f32v_group)y;
    *a = __builtin_shufflevector(u, v, 0, 2, 8, 10, 4, 6, 12, 14);
    *b = __builtin_shufflevector(u, v, 1, 3, 9, 11, 5, 7, 13, 15);
#else
    fv_f32v_pairs x = { pair_at(data + at[0]), pair_at(data + at[1]) }, y = { pair_at(data + at[2]), pair_at(data + at[3]) };
    fv_f32v_group u = (fv_f32v_group)x, v = (fv_f32v_group)y;
    *a = __builtin_shufflevector(u, v, 0, 2, 4, 6);
    *b = __builtin_shufflevector(u, v, 1, 3, 5, 7);
#endif
}

FV_INLINE fv_f32v_group narrow_f32(const wide *v) {
#if LANES == 8
    return (fv_f32v_group)_mm256_set_m128(_mm256_cvtpd_ps(v[1]), _mm256_cvtpd_ps(v[0]));
#else
    return (fv_f32v_group){ (float)v[0][0], (float)v[0][1], (float)v[1][0], (float)v[1][1] };
#endif
}
#include "kernels/interpolate_real.h"
#undef REAL
#undef VECTOR
#undef LANES
#undef R

#define REAL double
#define VECTOR fv_f64v_group
#define R(name) FV_PASTE(name, _f64)
#if FV_VECTOR_BYTES > 16
#define LANES 4
typedef double fv_f64v_group __attribute__((vector_size(32)));
#else
#define LANES 2
typedef double fv_f64v_group __attribute__((vector_size(16)));
#endif
FV_INLINE void pairs_f64(const double *data, const int64_t *at, fv_f64v_group *a, fv_f64v_group *b) {
    for (int l = 0; l < LANES; l++) {
        (*a)[l] = data[at[l]];
        (*b)[l] = data[at[l] + 1];
    }
}
FV_INLINE fv_f64v_group narrow_f64(const wide *v) { return v[0]; }
#include "kernels/interpolate_real.h"

/* ---------------------------------------------------------------- order 0 */

typedef struct sixteen {
    uint64_t half[2];
} sixteen;

#define TAKE(TYPE)                                                                                                               \
    {                                                                                                                            \
        TYPE constant;                                                                                                           \
        memcpy(&constant, cval, sizeof constant);                                                                                \
        for (int64_t i = 0; i < n; i++) ((TYPE *)out)[i * step] = at[i] == NOWHERE ? constant : ((const TYPE *)s->data)[at[i]];  \
        return;                                                                                                                  \
    }
#define NOWHERE INT64_MIN

/* The nearest voxel. step: of the result; cval in its element type. */
static void nearest_strip(const sampler *s, int64_t n, double *const c[3], void *out, int64_t step, size_t size,
                          const void *cval) {
    int64_t at[STRIP];
    for (int64_t i = 0; i < n; i++) {
        bool outside = false;
        at[i] = 0;
        for (int k = 0; k < s->naxes; k++) {
            double  where = extend_coordinate(s, k, c[k][i], &outside);
            int64_t index = (int64_t)floor(where + 0.5);
            if (index < 0 || index >= s->n[k]) index = extend_index(s->mode, index, s->n[k]);
            outside = outside || index < 0;
            at[i] += (index - s->start[k]) * s->stride[k];
        }
        if (outside) at[i] = NOWHERE;
    }
    switch (size) {
    case 1: TAKE(uint8_t)
    case 2: TAKE(uint16_t)
    case 4: TAKE(uint32_t)
    case 8: TAKE(uint64_t)
    default: TAKE(sixteen)
    }
}

/* ---------------------------------------------------------------- the loops */

/* Whether rows of the result lie along rows of the input. Where x takes few voxels of many, gathering them is cheaper. */
static bool by_rows(const fv_mapping *m) {
    int last = m->naxes - 1;
    for (int k = 0; k < last; k++)
        if (m->matrix[k][last] != 0 || m->matrix[last][k] != 0) return false;
    return m->order > 0 && fabs(m->matrix[last][last]) <= 4;
}

typedef struct job {
    const fv_mapping *m;
    const fv_points  *points;
    sampler           s;
    fv_dtype          real;  /* that is computed in */
    int               parts; /* 2: real and imaginary */
    bool              in_place, rows_wanted;
    int64_t           window[3]; /* voxels of the input window */
    rows              rows;
    char             *staged, *element, *row;
    char              cval[16];
} job;

static fv_dtype real_of(fv_dtype dtype) {
    return dtype == FV_COMPLEX64 ? FV_FLOAT32 : dtype == FV_COMPLEX128 ? FV_FLOAT64 : dtype;
}

/* in: the window; region: the result's. */
static size_t lay_out(job *j, const fv_mapping *m, const fv_image_type *type, const fv_region *in, const fv_region *region,
                      bool points, void *memory) {
    fv_scratch pieces = { memory };
    *j = (job){ .m = m, .parts = fv_dtype_is_complex(type->dtype) ? 2 : 1, .real = real_of(fv__separable_type(type->dtype)) };
    start_sampler(&j->s, m, type, in);
    j->rows_wanted = !points && by_rows(m);
    int     last = m->axis[m->naxes - 1];
    int64_t voxels = 1, n = region->size[last], real = (int64_t)fv_dtype_size(j->real);
    for (int k = 0; k < m->naxes; k++) voxels *= j->window[k] = in->size[m->axis[k]];
    j->in_place = m->order == 0 || (type->dtype == j->real && last == type->ndim - 1);
    if (m->order == 0) return 0;
    j->row = fv__scratch_take(&pieces, n * real);
    if (!j->in_place) {
        j->staged = fv__scratch_take(&pieces, voxels * real);
        j->element = fv__scratch_take(&pieces, in->size[last] * (int64_t)fv_dtype_size(type->dtype));
    }
    if (j->rows_wanted) {
        j->rows.at = fv__scratch_take(&pieces, n * 8);
        j->rows.outside = fv__scratch_take(&pieces, n);
        j->rows.fraction = fv__scratch_take(&pieces, n * real);
        j->rows.weights = fv__scratch_take(&pieces, n * real * 4);
        j->rows.line = fv__scratch_take(&pieces, (in->size[last] + 2 * BEYOND) * real);
    }
    return pieces.used;
}

/* n elements of `size` bytes, `stride` elements apart, one after the other. */
#define PACK(TYPE)                                                                                                               \
    for (int64_t i = 0; i < n; i++) ((TYPE *)to)[i] = ((const TYPE *)from)[i * stride];                                          \
    return
static void pack(void *restrict to, const void *restrict from, int64_t n, int64_t stride, size_t size) {
    switch (size) {
    case 1: PACK(uint8_t);
    case 2: PACK(uint16_t);
    case 4: PACK(uint32_t);
    default: PACK(uint64_t);
    }
}

extern const fv_kernels FV_PASTE(fv_kernels_, FV_ISA);

/* The window of a channel, first voxel at `from`, as adjacent numbers of the computing type. */
static void stage(job *j, const fv_block *in, const char *from, int part) {
    fv_dtype dtype = real_of(in->dtype);
    int64_t  size = (int64_t)fv_dtype_size(dtype), real = (int64_t)fv_dtype_size(j->real), stride[3], n[3] = { 1, 1, 1 };
    int      naxes = j->m->naxes, skip = 3 - naxes;
    for (int k = 0; k < naxes; k++) {
        n[k + skip] = j->window[k];
        stride[k + skip] = in->stride[j->m->axis[k]] * j->parts;
    }
    for (int k = 0; k < skip; k++) stride[k] = 0;
    for (int64_t z = 0, row = 0; z < n[0]; z++)
        for (int64_t y = 0; y < n[1]; y++, row++) {
            const char *p = from + (z * stride[0] + y * stride[1] + part) * size;
            if (stride[2] != 1) {
                pack(j->element, p, n[2], stride[2], (size_t)size);
                p = j->element;
            }
            FV_PASTE(fv_kernels_, FV_ISA).convert(j->staged + row * n[2] * real, j->real, p, dtype, n[2]);
        }
}

/* Points the sampler at the channel. */
static void open_channel(job *j, const fv_block *in, const void *from, int part) {
    j->s.data = from;
    for (int k = 0; k < j->m->naxes; k++) j->s.stride[k] = in->stride[j->m->axis[k]];
    if (j->in_place) return;
    stage(j, in, from, part);
    j->s.data = j->staged;
    for (int64_t k = j->m->naxes - 1, step = 1; k >= 0; k--) {
        j->s.stride[k] = step;
        step *= j->window[k];
    }
}

/* What the rows of the result have in common along x. */
static void prepare_rows(job *j, const fv_region *region) {
    rows   *r = &j->rows;
    int     x = j->m->naxes - 1;
    int64_t first = INT64_MAX, end = INT64_MIN, start = region->start[j->m->axis[x]];
    r->count = region->size[j->m->axis[x]];
    r->held = j->window[x];
    for (int k = 0; k <= x; k++) r->direct[k] = fv__mapping_direct(j->m, k);
    r->last_order = r->direct[x] ? 0 : j->s.order;
    r->some_outside = false;
    for (int64_t i = 0; i < r->count; i++) {
        bool   outside = false;
        double c = ((double)(start + i) + j->m->before) * j->m->matrix[x][x] + j->m->offset[x] + (double)j->s.margin;
        c = extend_coordinate(&j->s, x, c, &outside);
        double low = floor(c);
        r->outside[i] = outside;
        r->some_outside = r->some_outside || outside;
        r->at[i] = outside ? 0 : (int64_t)low - (r->last_order == 3) - j->s.start[x];
        if (r->last_order && j->real == FV_FLOAT32) set_across_f32(r, i, outside ? 0 : c - low);
        if (r->last_order && j->real == FV_FLOAT64) set_across_f64(r, i, outside ? 0 : c - low);
        if (outside) continue;
        first = FV_MIN(first, r->at[i]);
        end = FV_MAX(end, r->at[i] + r->last_order + 1);
    }
    /* outside voxels look at what the others hold */
    for (int64_t i = 0; i < r->count && r->some_outside; i++)
        if (r->outside[i]) r->at[i] = first == INT64_MAX ? 0 : first;
    r->before = (int)FV_MAX(first == INT64_MAX ? 0 : -first, 0);
    r->behind = (int)FV_MAX(end == INT64_MIN ? 0 : end - r->held, 0);
    for (int i = 0; i < BEYOND; i++) {
        int64_t low = extend_index(j->s.mode, j->s.start[x] - 1 - i, j->s.n[x]);
        int64_t high = extend_index(j->s.mode, j->s.start[x] + r->held + i, j->s.n[x]);
        r->low[i] = low < 0 ? -1 : low - j->s.start[x];
        r->high[i] = high < 0 ? -1 : high - j->s.start[x];
    }
}

static void fill_real(void *out, fv_dtype real, int64_t n, double value) {
    for (int64_t i = 0; i < n; i++)
        if (real == FV_FLOAT32)
            ((float *)out)[i] = (float)value;
        else
            ((double *)out)[i] = value;
}

/* The row of the result that begins at position (of the spatial axes). */
static ray ray_at(const fv_mapping *m, const int64_t *position) {
    int x = m->naxes - 1;
    ray r = { .first = (double)position[x], .before = m->before, .margin = (double)m->margin };
    for (int k = 0; k < m->naxes; k++) {
        for (int j = 0; j < x; j++) r.sum[k] += ((double)position[j] + m->before) * m->matrix[k][j];
        r.slope[k] = m->matrix[k][x];
        r.offset[k] = m->offset[k];
    }
    return r;
}

static void place(const ray *r, int naxes, int64_t from, int64_t n, double *const c[3]) {
    for (int k = 0; k < naxes; k++) {
        double  sum = r->sum[k], slope = r->slope[k], offset = r->offset[k], before = r->before, margin = r->margin;
        double  first = r->first + (double)from;
        double *to = c[k];
        for (int64_t i = 0; i < n; i++) to[i] = ((sum + ((first + (double)i) + before) * slope) + offset) + margin;
    }
}

/* Axes along which nothing is interpolated, other than x, need no sampling: what is left of the sampler at this place of the
 * result. false: it lies outside. left[i]: number of its i-th axis. */
static bool narrow(const job *j, const int64_t *spatial, sampler *s, int *left) {
    *s = j->s;
    s->naxes = 0;
    for (int k = 0; k < j->m->naxes; k++) {
        left[s->naxes] = k;
        if (j->points || k == j->m->naxes - 1 || !fv__mapping_direct(j->m, k)) {
            s->n[s->naxes] = j->s.n[k];
            s->end[s->naxes] = j->s.end[k];
            s->start[s->naxes] = j->s.start[k];
            s->stride[s->naxes++] = j->s.stride[k];
            continue;
        }
        bool    outside = false;
        double  c = ((double)spatial[k] + j->m->before) * j->m->matrix[k][k] + j->m->offset[k] + (double)j->s.margin;
        int64_t index = extend_index(s->mode, (int64_t)extend_coordinate(&j->s, k, c, &outside), j->s.n[k]);
        if (outside || index < 0) return false;
        s->data = (const char *)s->data + (index - j->s.start[k]) * j->s.stride[k] * (int64_t)fv_dtype_size(j->real);
    }
    return true;
}

/* Voxels at coordinates that are known, n <= STRIP of them. */
static void sample(const job *j, const sampler *s, int64_t n, double *const c[3], char *row) {
    if (j->real == FV_FLOAT32)
        strips_f32(s, n, c, (float *)row);
    else
        strips_f64(s, n, c, (double *)row);
}

static void sample_ray(const job *j, const sampler *s, const ray *r, int64_t from, int64_t to, char *row) {
    double room[3][STRIP], *const c[3] = { room[0], room[1], room[2] };
    for (int64_t n; from < to; from += n) {
        n = FV_MIN(to - from, STRIP);
        place(r, s->naxes, from, n, c);
        sample(j, s, n, c, row + from * (int64_t)fv_dtype_size(j->real));
    }
}

/* n voxels along a ray: those that lie far outside are the constant, those in the middle of the image need not look at its
 * border. */
static void follow(const job *j, const sampler *s, const ray *r, int64_t n, char *row) {
    int64_t real = (int64_t)fv_dtype_size(j->real), from = 0, to = n, reach = s->order == 3;
    for (int k = 0; k < s->naxes && s->mode == FV_EXTEND_CONSTANT; k++) keep_between(r, k, 0, s->end[k], &from, &to);
    for (int k = 0; k < s->naxes && s->mode == FV_EXTEND_GRID_CONSTANT; k++)
        keep_between(r, k, (double)(-1 - reach), (double)(s->n[k] + reach), &from, &to);
    fill_real(row, j->real, from, s->cval);
    fill_real(row + to * real, j->real, n - to, s->cval);
    int64_t first = from, end = to;
    for (int k = 0; k < s->naxes; k++) keep_between(r, k, 0, (double)(s->n[k] - 1), &first, &end);
    if (s->order != 1 || s->margin || end - first < MIDDLE) first = end = to;
    sample_ray(j, s, r, from, first, row);
    if (j->real == FV_FLOAT32)
        middle_f32(s, r, first, end, (float *)row);
    else
        middle_f64(s, r, first, end, (double *)row);
    sample_ray(j, s, r, end, to, row);
}

/* Whether none of the coordinates is a number. */
static bool lead_nowhere(const double *coordinate, int64_t n) {
    int any = 0;
    for (int64_t i = 0; i < n; i++) any |= coordinate[i] == coordinate[i];
    return !any;
}

/* One row of a channel by strips; straight to out for order 0, else to row. */
static fv_status gather_row(job *j, const int64_t *position, int64_t n, char *out, int64_t step, fv_dtype dtype, char *row,
                            fv_error *error) {
    double room[3][STRIP], *const c[3] = { room[0], room[1], room[2] };
    int64_t spatial[3], here[FV_MAX_DIMS], size = (int64_t)fv_dtype_size(dtype), real = (int64_t)fv_dtype_size(j->real);
    int     x = j->m->naxes - 1, left[3] = { 0, 1, 2 };
    sampler s = j->s;
    for (int k = 0; k <= x; k++) spatial[k] = position[j->m->axis[k]];
    if (j->m->order && !narrow(j, spatial, &s, left)) {
        fill_real(row, j->real, n, s.cval);
        return FV_OK;
    }
    for (int k = 0; k < s.naxes && x > 0; k++) {
        double ahead = (x > 1 ? PLANES_AHEAD : ROWS_AHEAD) * j->m->matrix[left[k]][0];
        s.ahead += (int64_t)floor(ahead + 0.5) * s.stride[k];
    }
    ray r = ray_at(j->m, spatial);
    if (j->m->order && !j->points) {
        for (int k = 0; k < s.naxes; k++) {
            r.sum[k] = r.sum[left[k]];
            r.slope[k] = r.slope[left[k]];
            r.offset[k] = r.offset[left[k]];
        }
        follow(j, &s, &r, n, row);
        return FV_OK;
    }
    memcpy(here, position, sizeof here);
    for (int64_t i = 0; i < n; i += STRIP) {
        int64_t count = FV_MIN(n - i, STRIP);
        here[j->m->axis[x]] = position[j->m->axis[x]] + i;
        if (j->points)
            FV_TRY(j->points->place(j->points->context, here, count, c, error));
        else
            place(&r, x + 1, i, count, c);
        if (j->points && j->m->order && lead_nowhere(c[0], count)) {
            fill_real(row + i * real, j->real, count, s.cval);
            continue;
        }
        for (int k = 0; k <= x && j->points; k++)
            for (int64_t l = 0; l < count && j->s.margin; l++) c[k][l] += (double)j->s.margin;
        if (!j->m->order)
            nearest_strip(&s, count, c, out + i * step * size, step, (size_t)size, j->cval);
        else
            sample(j, &s, count, c, row + i * real);
    }
    return FV_OK;
}

/* One row by blending rows of the input. */
static void blend_row(job *j, const int64_t *position, int64_t n, char *row) {
    double at[3] = { 0 };
    int    x = j->m->naxes - 1;
    for (int k = 0; k < x; k++) {
        double sum = 0;
        for (int i = 0; i < x; i++) sum += ((double)position[j->m->axis[i]] + j->m->before) * j->m->matrix[k][i];
        at[k] = sum + j->m->offset[k] + (double)j->s.margin;
    }
    bool there = j->real == FV_FLOAT32 ? row_f32(&j->rows, &j->s, at, (float *)row) : row_f64(&j->rows, &j->s, at, (double *)row);
    if (!there) fill_real(row, j->real, n, j->s.cval);
}

/* One row of a channel; position is that of its first voxel in the result. */
static fv_status make_row(job *j, const int64_t *position, int64_t n, void *out, int64_t step, fv_dtype dtype, fv_error *error) {
    int64_t real = (int64_t)fv_dtype_size(j->real);
    bool    straight = j->m->order && step == 1 && j->parts == 1, empty = false;
    char   *row = straight ? out : j->row;
    for (int k = 0; k < j->m->naxes; k++) empty = empty || !j->window[k];
    if (empty && j->m->order)
        fill_real(row, j->real, n, j->s.cval);
    else if (j->rows_wanted)
        blend_row(j, position, n, row);
    else
        FV_TRY(gather_row(j, position, n, out, step, dtype, row, error));
    for (int64_t i = 0; i < n && !straight && j->m->order; i++)
        memcpy((char *)out + i * step * j->parts * real, row + i * real, (size_t)real);
    return FV_OK;
}

/* cval in the type of the result. */
static void set_constant(job *j, fv_dtype dtype) {
    double value[2] = { j->m->cval, 0 };
    if (dtype == FV_COMPLEX64) {
        float narrow[2] = { (float)value[0], 0 };
        memcpy(j->cval, narrow, sizeof narrow);
    } else if (dtype == FV_COMPLEX128)
        memcpy(j->cval, value, sizeof value);
    else
        FV_PASTE(fv_kernels_, FV_ISA).convert(j->cval, dtype, value, FV_FLOAT64, 1);
}

/* Rows of a channel whose first voxels are in plane. Gathered voxels of neighbouring rows, and of the rows of the next plane,
 * come from the same lines of memory: tiles of a few short rows keep these in the cache. */
static fv_status make_tiles(job *j, const fv_block *out, const fv_region *plane, int part, fv_error *error) {
    int       x = j->m->axis[j->m->naxes - 1], y = j->m->axis[FV_MAX(j->m->naxes - 2, 0)];
    int64_t   length = out->region.size[x], lines = plane->size[y], real = (int64_t)fv_dtype_size(j->real);
    int64_t   width = j->rows_wanted ? length : TILE_WIDTH, height = j->rows_wanted ? lines : TILE_HEIGHT;
    fv_region tile = *plane;
    fv_rows   walk;
    for (int64_t left = 0; left < length; left += width)
        for (int64_t top = 0; top < lines; top += height) {
            int64_t n = FV_MIN(width, length - left);
            tile.size[y] = FV_MIN(height, lines - top);
            tile.start[y] = plane->start[y] + top;
            tile.start[x] = out->region.start[x] + left;
            for (fv__rows_begin(&walk, &tile); fv__rows_next(&walk);) {
                char *to = (char *)fv__block_at(out, walk.position) + part * real;
                FV_TRY(make_row(j, walk.position, n, to, out->stride[x], out->dtype, error));
            }
        }
    return FV_OK;
}

static fv_status run_channels(job *j, const fv_run *r, fv_error *error) {
    const fv_block *in = r->in[0], *out = r->out;
    fv_box          box = { .naxes = j->m->naxes };
    int             x = j->m->axis[j->m->naxes - 1];
    memcpy(box.axis, j->m->axis, sizeof box.axis);
    set_constant(j, out->dtype);
    if (j->rows_wanted) prepare_rows(j, &out->region);
    fv_channels ch;
    for (fv__channels_begin(&ch, &box, r); fv__channels_next(&ch);)
        for (int part = 0; part < (j->m->order ? j->parts : 1); part++) {
            fv_region plane = out->region;
            for (int d = 0; d < plane.ndim; d++) {
                bool spatial = false;
                for (int k = 0; k < box.naxes; k++) spatial = spatial || box.axis[k] == d;
                if (!spatial) plane.start[d] = ch.position[d];
                if (!spatial || d == x) plane.size[d] = 1;
            }
            open_channel(j, in, ch.in, part);
            FV_TRY(make_tiles(j, out, &plane, part, error));
        }
    return FV_OK;
}

size_t fv__mapping_scratch(const fv_mapping *m, const fv_need *n) {
    job       j;
    fv_region in = fv__mapping_need(m, n);
    return lay_out(&j, m, &n->in[0]->image, &in, &n->region, false, NULL);
}

void fv__mapping_run(const fv_mapping *m, const fv_run *r) {
    job j;
    lay_out(&j, m, &r->need.in[0]->image, &r->in[0]->region, &r->out->region, false, r->scratch);
    run_channels(&j, r, NULL);
}

double fv__mapping_cost(const fv_mapping *m, const fv_need *n) {
    (void)n;
    double blended = m->order == 3 ? 3 : 1.5, gathered = m->order == 3 ? 20 : 3;
    return !m->order ? 4 : by_rows(m) ? blended : gathered;
}

size_t fv__points_scratch(const fv_mapping *m, const fv_image_type *type, const fv_region *in, const fv_region *region) {
    job j;
    return lay_out(&j, m, type, in, region, true, NULL);
}

fv_status fv__points_run(const fv_points *p, const fv_run *r, fv_error *error) {
    job j;
    lay_out(&j, &p->mapping, &r->need.in[0]->image, &r->in[0]->region, &r->out->region, true, r->scratch);
    j.points = p;
    return run_channels(&j, r, error);
}
