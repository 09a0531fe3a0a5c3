/* Squared Euclidean distances; see edt.h. */
#include "ops/morphology/edt.h"
#include "kernels/vectors.h"
#include "op/scratch.h"

#define REACH 255       /* steps along any axis that 16 bits can hold */
#define SLACK 64        /* elements that vectors may touch behind a row */
#define DIRECT 64       /* steps after which the envelope is cheaper */
#define NEAR_WEIGHT 100 /* with larger weights 16 bits hold too few steps to be worth trying */
#define NEAR_LANES ((int64_t)(FV_VECTOR_BYTES / 2))
#define WIDE_LANES ((int64_t)FV_F64_LANES)

size_t fv__edt_scratch(fv__edt *e, void *scratch) {
    fv_scratch pieces = { scratch, 0 };
    int64_t    plane = e->ny * e->nx, longest = FV_MAX(e->ny, e->nx);
    e->steps = fv__scratch_take(&pieces, e->nz * plane + SLACK);
    e->far = fv__scratch_take(&pieces, e->nz * plane * (int64_t)sizeof *e->far);
    e->plane = fv__scratch_take(&pieces, (plane + SLACK * 2) * (int64_t)sizeof *e->plane);
    e->nothing = fv__scratch_take(&pieces, (e->nx + SLACK * 2) * (int64_t)sizeof *e->nothing);
    e->line = fv__scratch_take(&pieces, (e->nx + 2 * REACH + SLACK * 4) * (int64_t)sizeof *e->line);
    e->result = fv__scratch_take(&pieces, (e->nx + SLACK * 2) * (int64_t)sizeof *e->result);
    e->squares = fv__scratch_take(&pieces, 3 * (REACH + 2) * (int64_t)sizeof *e->squares);
    e->rows = fv__scratch_take(&pieces, (e->ny + 2 * REACH) * (int64_t)sizeof *e->rows);
    e->wide = fv__scratch_take(&pieces, (plane + SLACK) * (int64_t)sizeof *e->wide);
    e->wide_spread = fv__scratch_take(&pieces, (plane + SLACK) * (int64_t)sizeof *e->wide_spread);
    e->wide_line = fv__scratch_take(&pieces, (e->nx + 2 * DIRECT + SLACK * 3) * (int64_t)sizeof *e->wide_line);
    e->wide_result = fv__scratch_take(&pieces, (longest + SLACK) * (int64_t)sizeof *e->wide_result);
    e->wide_nothing = fv__scratch_take(&pieces, (e->nx + SLACK) * (int64_t)sizeof *e->wide_nothing);
    e->wide_rows = fv__scratch_take(&pieces, (e->ny + 2 * DIRECT) * (int64_t)sizeof *e->wide_rows);
    e->parabola = fv__scratch_take(&pieces, (longest + SLACK) * (int64_t)sizeof *e->parabola);
    e->vertex = fv__scratch_take(&pieces, longest * (int64_t)sizeof *e->vertex);
    e->start = fv__scratch_take(&pieces, (longest + 1) * (int64_t)sizeof *e->start);
    e->far_made = false;
    return pieces.used;
}

/* ---------------------------------------------------------------- counting along the first axis */

static inline uint8_t more_u8(uint8_t n) { return n == UINT8_MAX ? n : (uint8_t)(n + 1); }
static inline int32_t more_i32(int32_t n) { return n == FV__EDT_NONE ? n : n + 1; }

/* One row of columns on the way up, where now says which voxels are zero, and on the way down. */
#define COUNT(name, type, more)                                                                                                  \
    static void name##_up(type *restrict now, const type *restrict before, int64_t n) {                                          \
        for (int64_t i = 0; i < n; i++) {                                                                                        \
            type one = more(before[i]);                                                                                          \
            now[i] = now[i] ? one : 0;                                                                                           \
        }                                                                                                                        \
    }                                                                                                                            \
    static void name##_down(type *restrict now, const type *restrict after, int64_t n) {                                         \
        for (int64_t i = 0; i < n; i++) {                                                                                        \
            type one = more(after[i]);                                                                                           \
            now[i] = now[i] < one ? now[i] : one;                                                                                \
        }                                                                                                                        \
    }
COUNT(count_u8, uint8_t, more_u8)
COUNT(count_i32, int32_t, more_i32)

/* A row of a carry, one step nearer to its zero than the first plane is. */
static void carry_u8(uint8_t *restrict to, const int32_t *restrict carry, int64_t n) {
    if (!carry)
        memset(to, UINT8_MAX, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++) to[i] = (uint8_t)(carry[i] > UINT8_MAX ? UINT8_MAX : carry[i] - 1);
}

static void carry_i32(int32_t *restrict to, const int32_t *restrict carry, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = !carry || carry[i] == FV__EDT_NONE ? FV__EDT_NONE : carry[i] - 1;
}

static inline uint16_t square_u16(double weight, int64_t k) {
    double square = weight * (double)(k * k);
    return square > UINT16_MAX ? UINT16_MAX : (uint16_t)square;
}

static void set_squares(uint16_t *squares, double weight) { /* w k^2 */
    for (int64_t k = 0; k <= REACH + 1; k++) squares[k] = square_u16(weight, k);
    squares[REACH] = squares[REACH + 1] = UINT16_MAX; /* these are not searched */
}

static void prepare_near(fv__edt *e) {
    for (int d = 0; d < 3; d++) set_squares(e->squares + d * (REACH + 2), e->weights.axis[d]);
    memset(e->nothing, 0, (size_t)(e->nx + SLACK * 2) * sizeof *e->nothing);
    memset(e->line, 0, (size_t)(e->nx + 2 * REACH + SLACK * 4) * sizeof *e->line);
    for (int64_t y = -REACH; y < e->ny + REACH; y++) e->rows[y + REACH] = y >= 0 && y < e->ny ? e->plane + y * e->nx : e->nothing;
}

void fv__edt_scan(fv__edt *e) {
    int64_t  plane = e->ny * e->nx, nx = e->nx;
    uint8_t *edge = (uint8_t *)e->line; /* unused until planes are searched */
    for (int64_t y = 0; y < e->ny; y++) {
        uint8_t *row = e->steps + y * nx;
        carry_u8(edge, e->above ? e->above + y * nx : NULL, nx);
        for (int64_t z = 0; z < e->nz; z++) count_u8_up(row + z * plane, z ? row + (z - 1) * plane : edge, nx);
        carry_u8(edge, e->below ? e->below + y * nx : NULL, nx);
        for (int64_t z = e->nz - 1; z >= 0; z--) count_u8_down(row + z * plane, z < e->nz - 1 ? row + (z + 1) * plane : edge, nx);
    }
    prepare_near(e);
}

/* The same without the limit of 255; the zeros are those of steps. */
static void scan_far(fv__edt *e) {
    int64_t  plane = e->ny * e->nx, nx = e->nx;
    int32_t *edge = (int32_t *)e->wide_line;
    for (int64_t y = 0; y < e->ny; y++) {
        int32_t *row = e->far + y * nx;
        carry_i32(edge, e->above ? e->above + y * nx : NULL, nx);
        for (int64_t z = 0; z < e->nz; z++) {
            for (int64_t x = 0; x < nx; x++) row[z * plane + x] = e->steps[z * plane + y * nx + x];
            count_i32_up(row + z * plane, z ? row + (z - 1) * plane : edge, nx);
        }
        carry_i32(edge, e->below ? e->below + y * nx : NULL, nx);
        for (int64_t z = e->nz - 1; z >= 0; z--)
            count_i32_down(row + z * plane, z < e->nz - 1 ? row + (z + 1) * plane : edge, nx);
    }
    e->far_made = true;
}

/* ---------------------------------------------------------------- near: saturating lanes */

static inline bool any_u16(fv_u16v v) {
#if defined(FV_ISA_avx2)
    return !_mm256_testz_si256((__m256i)v, (__m256i)v);
#else
    fv_i64v w = (fv_i64v)v;
    int64_t sum = 0;
    for (int i = 0; i < FV_VECTOR_BYTES / 8; i++) sum |= w[i];
    return sum != 0;
#endif
}

/* to[i] = max over k of near[k][i] - w k^2, for k from -most to most as long as that can make a difference; `near` points at
 * pointers to rows, `step` elements apart if that is not 0. squares[k] is w k^2. */
static void search_near(uint16_t *restrict to, const uint16_t *const *near, int64_t step, const uint16_t *squares, int64_t most,
                        int64_t n) {
    for (int64_t i = 0; i < n; i += 4 * NEAR_LANES) {
        fv_u16v best[4], open;
        for (int v = 0; v < 4; v++) best[v] = *(const fv_u16v_unaligned *)(near[0] + i + v * NEAR_LANES);
        for (int64_t k = 1; k <= most; k += 2) {
            fv_u16v square = squares[k] - (fv_u16v){ 0 }, next = squares[k + 1] - (fv_u16v){ 0 };
            open = (fv_u16v){ 0 };
            for (int v = 0; v < 4; v++) open |= fv_u16v_less(~best[v], square);
            if (!any_u16(open)) break;
            const uint16_t *a = (step ? near[0] - k * step : near[-k]) + i, *b = (step ? near[0] + k * step : near[k]) + i;
            const uint16_t *c = (step ? a - step : near[-k - 1] + i), *d = (step ? b + step : near[k + 1] + i);
#pragma GCC unroll 4
            for (int v = 0; v < 4; v++) {
                fv_u16v one = fv_u16v_max(*(const fv_u16v_unaligned *)(a + v * NEAR_LANES),
                                          *(const fv_u16v_unaligned *)(b + v * NEAR_LANES));
                fv_u16v two = fv_u16v_max(*(const fv_u16v_unaligned *)(c + v * NEAR_LANES),
                                          *(const fv_u16v_unaligned *)(d + v * NEAR_LANES));
                best[v] = fv_u16v_max(best[v], fv_u16v_max(fv_u16v_less(one, square), fv_u16v_less(two, next)));
            }
        }
        for (int v = 0; v < 4; v++) *(fv_u16v_unaligned *)(to + i + v * NEAR_LANES) = best[v];
    }
}

/* Closeness of a plane from the steps along z. */
static void close_plane(fv__edt *e, int64_t z, const uint16_t *squares) {
    int64_t        n = e->ny * e->nx;
    const uint8_t *steps = e->steps + z * n;
    if (e->weights.axis[0] == 1)
        for (int64_t i = 0; i < n; i++) {
            uint16_t s = steps[i];
            e->plane[i] = s == UINT8_MAX ? 0 : (uint16_t)(UINT16_MAX - s * s);
        }
    else
        for (int64_t i = 0; i < n; i++) e->plane[i] = (uint16_t)(UINT16_MAX - squares[steps[i]]);
    memset(e->plane + n, 0, SLACK * 2 * sizeof *e->plane);
}

/* Squared distances below this are right: 16 bits hold them, and no axis was left unsearched. */
static double near_limit(const fv__edt *e) {
    double limit = UINT16_MAX;
    for (int d = 0; d < 3; d++) limit = FV_MIN(limit, e->weights.axis[d] * REACH * REACH);
    return limit;
}

/* False, and some rows put in vain, where 16 bits are too few. */
static bool plane_near(fv__edt *e, int64_t z, fv__edt_put *put, void *context) {
    uint16_t(*squares)[REACH + 2] = (uint16_t(*)[REACH + 2]) e->squares, limit = (uint16_t)(UINT16_MAX - near_limit(e));
    int64_t   nx = e->nx, most_y = FV_MIN(REACH - 1, e->ny - 1), most_x = FV_MIN(REACH - 1, nx - 1);
    uint16_t *line = e->line + REACH + SLACK;
    close_plane(e, z, squares[0]);
    for (int64_t y = e->y0; y < e->y1; y++) {
        const uint16_t *result = e->plane + y * nx;
        uint16_t        least = UINT16_MAX;
        if (e->ny > 1) {
            search_near(line, e->rows + y + REACH, 0, squares[1], most_y, nx);
            memset(line + nx, 0, (size_t)(REACH + SLACK * 2) * sizeof *line); /* vectors went further */
            result = line;
        } else if (nx > 1) {
            memcpy(line, result, (size_t)nx * sizeof *line);
            result = line;
        }
        if (nx > 1) {
            search_near(e->result, &result, 1, squares[2], most_x, nx);
            result = e->result;
        }
        for (int64_t x = e->x0; x < e->x1; x++) least = FV_MIN(least, result[x]);
        if (least <= limit) return false;
        uint16_t *distance = e->result;
        for (int64_t x = e->x0; x < e->x1; x++) distance[x] = (uint16_t)(UINT16_MAX - result[x]);
        put(context, z, y, distance + e->x0, NULL);
    }
    return true;
}

/* ---------------------------------------------------------------- far: whole numbers in doubles */

static inline fv_f64v min_f64v(fv_f64v a, fv_f64v b) {
#if defined(FV_ISA_avx512)
    return _mm512_min_pd(a, b);
#elif defined(FV_ISA_avx2)
    return _mm256_min_pd(a, b);
#elif defined(__SSE2__)
    return _mm_min_pd(a, b);
#else
    for (int i = 0; i < FV_F64_LANES; i++) a[i] = a[i] < b[i] ? a[i] : b[i];
    return a;
#endif
}

/* As search_near; false if more than DIRECT steps would be needed. */
static bool search_far(double *restrict to, const double *const *near, int64_t step, double weight, int64_t most, int64_t n) {
    for (int64_t i = 0; i < n; i += 4 * WIDE_LANES) {
        fv_f64v best[4];
        for (int v = 0; v < 4; v++) best[v] = fv_f64v_load(near[0] + i + v * WIDE_LANES);
        for (int64_t k = 1; k <= most; k++) {
            double  square = weight * (double)(k * k);
            fv_f64v add = fv_f64v_splat(square);
            fv_i64v open =
                (fv_i64v)(best[0] > add) | (fv_i64v)(best[1] > add) | (fv_i64v)(best[2] > add) | (fv_i64v)(best[3] > add);
            int64_t any = 0;
            for (int l = 0; l < FV_F64_LANES; l++) any |= open[l];
            if (!any) break;
            if (k == DIRECT) return false;
            const double *a = (step ? near[0] - k * step : near[-k]) + i, *b = (step ? near[0] + k * step : near[k]) + i;
#pragma GCC unroll 4
            for (int v = 0; v < 4; v++) {
                fv_f64v one = min_f64v(fv_f64v_load(a + v * WIDE_LANES), fv_f64v_load(b + v * WIDE_LANES));
                best[v] = min_f64v(best[v], one + add);
            }
        }
        for (int v = 0; v < 4; v++) fv_f64v_store(to + i + v * WIDE_LANES, best[v]);
    }
    return true;
}

/* Least x at which the parabola of vertex b > a is not above that of a. Everything is a whole number below 2^53, so only the
 * quotient is rounded, and that is mended. */
static int64_t first_not_above(const double *g, double weight, int64_t a, int64_t b) {
    double numerator = weight * ((double)b * (double)b - (double)a * (double)a) + (g[b] - g[a]);
    double denominator = 2 * weight * (double)(b - a), x = ceil(numerator / denominator);
    if ((x - 1) * denominator >= numerator) x--;
    if (x * denominator < numerator) x++;
    return x > 1e15 ? INT64_MAX : x < -1e15 ? INT64_MIN : (int64_t)x;
}

/* to[x] = min over i of g[i] + w (x - i)^2. */
static void envelope(fv__edt *e, double *g, double weight, int64_t n, double *restrict to) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t from = 0;
        if (isinf(g[i])) continue;
        while (count && (from = first_not_above(g, weight, e->vertex[count - 1], i)) <= e->start[count - 1]) count--;
        if (!count) from = 0;
        if (from >= n) continue;
        e->vertex[count] = i;
        e->start[count++] = from;
    }
    for (int64_t x = 0, at = 0; x < n; x++) {
        while (at + 1 < count && e->start[at + 1] <= x) at++;
        double off = count ? (double)(x - e->vertex[at]) : 0;
        to[x] = count ? weight * off * off + g[e->vertex[at]] : INFINITY;
    }
}

static void envelopes_along_y(fv__edt *e) {
    for (int64_t x = 0; x < e->nx; x++) {
        for (int64_t y = 0; y < e->ny; y++) e->parabola[y] = e->wide[y * e->nx + x];
        envelope(e, e->parabola, e->weights.axis[1], e->ny, e->wide_result);
        for (int64_t y = 0; y < e->ny; y++) e->wide[y * e->nx + x] = e->wide_result[y];
    }
}

/* The plane after the search along y, from row y0 on. */
static const double *spread_along_y(fv__edt *e) {
    int64_t nx = e->nx;
    for (int64_t i = 0; i < nx + SLACK; i++) e->wide_nothing[i] = INFINITY;
    for (int64_t y = -DIRECT; y < e->ny + DIRECT; y++)
        e->wide_rows[y + DIRECT] = y >= 0 && y < e->ny ? e->wide + y * nx : e->wide_nothing;
    for (int64_t y = e->y0; y < e->y1; y++) {
        double *to = e->wide_spread + (y - e->y0) * nx; /* rows come in order, so what vectors write behind one is overwritten */
        if (search_far(to, e->wide_rows + y + DIRECT, 0, e->weights.axis[1], e->ny - 1, nx)) continue;
        envelopes_along_y(e);
        return e->wide + e->y0 * nx;
    }
    return e->wide_spread;
}

static void plane_far(fv__edt *e, int64_t z, fv__edt_put *put, void *context) {
    int64_t       n = e->ny * e->nx, nx = e->nx;
    double       *line = e->wide_line + DIRECT + SLACK;
    const double *spread = e->wide + e->y0 * nx;
    if (!e->far_made) scan_far(e);
    for (int64_t i = 0; i < n; i++) {
        int32_t step = e->far[z * n + i];
        e->wide[i] = step == FV__EDT_NONE ? INFINITY : e->weights.axis[0] * (double)step * (double)step;
    }
    for (int64_t i = 0; i < SLACK; i++) e->wide[n + i] = INFINITY;
    if (e->ny > 1) spread = spread_along_y(e);
    for (int64_t i = 0; i < nx + 2 * DIRECT + SLACK * 3; i++) e->wide_line[i] = INFINITY;
    for (int64_t y = e->y0; y < e->y1; y++) {
        const double *from = line;
        memcpy(line, spread + (y - e->y0) * nx, (size_t)nx * sizeof *line);
        if (!search_far(e->wide_result, &from, 1, e->weights.axis[2], nx - 1, nx))
            envelope(e, line, e->weights.axis[2], nx, e->wide_result);
        put(context, z, y, NULL, e->wide_result + e->x0);
    }
}

void fv__edt_plane(fv__edt *e, int64_t z, fv__edt_put *put, void *context) {
    double least = FV_MIN(e->weights.axis[0], FV_MIN(e->weights.axis[1], e->weights.axis[2]));
    if (least > NEAR_WEIGHT || !plane_near(e, z, put, context)) plane_far(e, z, put, context);
}
