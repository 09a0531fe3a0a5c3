/* Fourier transforms of lines, planes and volumes: bundles of lines are gathered, transformed and scattered. */
#include "kernels/spectrum.h"
#include "base/math.h"
#include "kernels/vectors.h"
#include "op/scratch.h"

#define REAL double
#define VECTOR fv_f64v
#define LANES FV_F64_LANES
#define R(name) name
#include "kernels/fourier_factors.h"

enum { WIDTH = 8 }; /* lines of a bundle */
#define PI 0x1.921fb54442d18p+1

static int64_t length_of(const fv_spectrum *s) { return FV_MAX(s->n, s->padded); }

static size_t lay_out(fv_spectrum *s, int64_t n, void *memory) {
    fv_scratch pieces = { memory };
    int64_t    number = sizeof(double), length;
    *s = (fv_spectrum){ .n = n, .memory = memory, .padded = fv__is_direct(n) ? 0 : fv__spectrum_length(2 * n - 1) };
    length = FV_MAX(n, s->padded);
    s->turn = fv__scratch_take(&pieces, 2 * length * number);
    for (int k = 0; k < FV_COUNT(s->rows); k++) s->rows[k] = fv__scratch_take(&pieces, 2 * length * WIDTH * number);
    if (s->padded) {
        s->chirp = fv__scratch_take(&pieces, 2 * n * number);
        s->response = fv__scratch_take(&pieces, 2 * s->padded * number);
    } else
        s->place = fv__scratch_take(&pieces, n * (int64_t)sizeof *s->place);
    return pieces.used;
}

int64_t FV_ISA_NAME(fv__spectrum_bytes)(int64_t n) {
    fv_spectrum s;
    return (int64_t)lay_out(&s, n, NULL);
}

/* Squares are taken modulo 2n: the angle keeps its digits. */
static void prepare_convolution(fv_spectrum *s) {
    enum { STEP = 2 * LANES };
    double *rows = s->rows[0];
    memset(rows, 0, (size_t)(s->padded * STEP) * sizeof *rows);
    for (int64_t k = 0, square = 0; k < s->n; square = (square + 2 * k + 1) % (2 * s->n), k++) {
        double angle = PI * (double)square / (double)s->n, c = fv__cos(angle), sine = fv__sin(angle);
        s->chirp[2 * k] = c;
        s->chirp[2 * k + 1] = -sine;
        for (int side = 0; side < 2; side++) {
            double *to = rows + (side ? (s->padded - k) % s->padded : k) * STEP;
            to[0] = c / (double)s->padded;
            to[LANES] = sine / (double)s->padded;
        }
    }
    in_frequency(rows, s->padded, LANES, s->turn);
    for (int64_t k = 0; k < s->padded; k++) {
        s->response[2 * k] = rows[k * STEP];
        s->response[2 * k + 1] = rows[k * STEP + LANES];
    }
}

void FV_ISA_NAME(fv__spectrum_prepare)(fv_spectrum *s, int64_t n, void *memory) {
    lay_out(s, n, memory);
    int64_t length = FV_MAX(n, s->padded);
    for (int64_t k = 0; k < length; k++) {
        double angle = 2 * PI * (double)k / (double)length;
        s->turn[2 * k] = fv__cos(angle);
        s->turn[2 * k + 1] = fv__sin(angle);
    }
    if (s->padded) prepare_convolution(s);
    for (int64_t k = 0; s->place && k < n; k++) s->place[k] = fv__place_in_time(k, n);
}

/* ---------------------------------------------------------------- one bundle */

FV_INLINE void transform_direct(const fv_spectrum *s, double *rows, int width, double sign) {
    int64_t size = s->n & -s->n; /* the power of two in it comes first */
    in_time(rows, s->n, size, width, s->turn, sign);
    odd_factors(rows, s->n, size, width, s->turn, sign);
}

/* The numbers of each line times those of a table. */
static void multiply(double *rows, int64_t n, int width, const double *table) {
    for (int64_t k = 0; k < n; k++) {
        fv_f64v c = fv_f64v_splat(table[2 * k]), t = fv_f64v_splat(table[2 * k + 1]);
        for (double *p = rows + k * 2 * width, *end = p + width; p < end; p += LANES) {
            fv_f64v a = fv_f64v_load(p), b = fv_f64v_load(p + width);
            fv_f64v_store(p, a * c - b * t);
            fv_f64v_store(p + width, b * c + a * t);
        }
    }
}

/* With w = exp(-i pi / n), j k = (j j + k k - (k - j)(k - j)) / 2 makes a convolution with w^-(j j) of the transform. */
FV_INLINE void transform_convolved(const fv_spectrum *s, double *rows, int width) {
    multiply(rows, s->n, width, s->chirp);
    in_frequency(rows, s->padded, width, s->turn);
    multiply(rows, s->padded, width, s->response);
    in_time(rows, s->padded, s->padded, width, s->turn, 1);
    multiply(rows, s->n, width, s->chirp);
}

FV_INLINE void transform_width(const fv_spectrum *s, double *rows, int width, double sign) {
    if (s->padded)
        transform_convolved(s, rows, width);
    else
        transform_direct(s, rows, width, sign);
}

static void transform(const fv_spectrum *s, double *rows, int width, double sign) {
    if (width == WIDTH)
        transform_width(s, rows, WIDTH, sign);
    else
        transform_width(s, rows, LANES, sign);
}

/* ---------------------------------------------------------------- lines in and out */

typedef struct lines {
    double *data;
    int64_t n, line, step;
    int     count, width; /* up to WIDTH lines; with the empty ones that fill the vectors */
    double  side;         /* what imaginary parts are multiplied with */
} lines;

/* The convolution knows only the forward transform: the inverse is the conjugate of the forward transform of the conjugate. */
static double side_of(const fv_spectrum *s, bool inverse) { return s->padded && inverse ? -1 : 1; }

#if FV_F64_LANES == 2
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3)
#define FIRST(a, b) __builtin_shufflevector(a, b, 0, 2)
#define SECOND(a, b) __builtin_shufflevector(a, b, 1, 3)
#define BACK(a) __builtin_shufflevector(a, a, 1, 0)
#elif FV_F64_LANES == 4
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7)
#define FIRST(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define SECOND(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define BACK(a) __builtin_shufflevector(a, a, 3, 2, 1, 0)
#else
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define FIRST(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define SECOND(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define BACK(a) __builtin_shufflevector(a, a, 7, 6, 5, 4, 3, 2, 1, 0)
#endif

/* Numbers k of all lines, which lie side by side. */
FV_INLINE void gather_beside(const lines *b, int64_t k, double *to) {
    const double *from = b->data + 2 * k * b->step;
    for (int v = 0; v < b->width; v += LANES) {
        fv_f64v first = fv_f64v_load(from + 2 * v), second = fv_f64v_load(from + 2 * v + LANES);
        fv_f64v_store(to + v, EVEN(first, second));
        fv_f64v_store(to + b->width + v, ODD(first, second) * fv_f64v_splat(b->side));
    }
}

/* The same where each line lies before the one before it. */
FV_INLINE void gather_backwards(const lines *b, int64_t k, double *to) {
    const double *from = b->data + 2 * k * b->step;
    for (int v = 0; v < b->width; v += LANES) {
        const double *last = from - 2 * (v + LANES - 1);
        fv_f64v       first = fv_f64v_load(last), second = fv_f64v_load(last + LANES);
        fv_f64v       re = EVEN(first, second), im = ODD(first, second);
        fv_f64v_store(to + v, BACK(re));
        fv_f64v_store(to + b->width + v, BACK(im) * fv_f64v_splat(b->side));
    }
}

FV_INLINE void scatter_beside(const lines *b, int64_t k, const double *from) {
    double *to = b->data + 2 * k * b->step;
    for (int v = 0; v < b->width; v += LANES) {
        fv_f64v re = fv_f64v_load(from + v), im = fv_f64v_load(from + b->width + v) * fv_f64v_splat(b->side);
        fv_f64v_store(to + 2 * v, FIRST(re, im));
        fv_f64v_store(to + 2 * v + LANES, SECOND(re, im));
    }
}

/* LANES / 2 numbers of each line, which are dense: as many vectors are turned. */
FV_INLINE void gather_dense(const lines *b, int64_t k, double *rows, const int64_t *place) {
    for (int v = 0; v < b->width; v += LANES) {
        fv_f64v square[LANES];
        for (int l = 0; l < LANES; l++) square[l] = fv_f64v_load(b->data + 2 * ((v + l) * b->line + k));
        fv_f64v_transpose(square);
        for (int j = 0; j < LANES / 2; j++) {
            double *to = rows + (place ? place[k + j] : k + j) * 2 * b->width + v;
            fv_f64v_store(to, square[2 * j]);
            fv_f64v_store(to + b->width, square[2 * j + 1] * fv_f64v_splat(b->side));
        }
    }
}

FV_INLINE void scatter_dense(const lines *b, int64_t k, const double *rows) {
    for (int v = 0; v < b->width; v += LANES) {
        fv_f64v square[LANES];
        for (int j = 0; j < LANES / 2; j++) {
            const double *from = rows + (k + j) * 2 * b->width + v;
            square[2 * j] = fv_f64v_load(from);
            square[2 * j + 1] = fv_f64v_load(from + b->width) * fv_f64v_splat(b->side);
        }
        fv_f64v_transpose(square);
        for (int l = 0; l < LANES; l++) fv_f64v_store(b->data + 2 * ((v + l) * b->line + k), square[l]);
    }
}

/* place: where number k goes; NULL: to k. length: of rows, which are empty behind the numbers. */
static void gather(const lines *b, double *rows, int64_t length, const int64_t *place) {
    bool    full = b->count == b->width;
    int64_t k = 0;
    if (!full)
        memset(rows, 0, (size_t)(2 * length * b->width) * sizeof *rows);
    else
        memset(rows + 2 * b->n * b->width, 0, (size_t)(2 * (length - b->n) * b->width) * sizeof *rows);
    if (full && b->line == 1)
        for (; k < b->n; k++) gather_beside(b, k, rows + (place ? place[k] : k) * 2 * b->width);
    else if (full && b->line == -1)
        for (; k < b->n; k++) gather_backwards(b, k, rows + (place ? place[k] : k) * 2 * b->width);
    else if (full && b->step == 1)
        for (; k + LANES / 2 <= b->n; k += LANES / 2) gather_dense(b, k, rows, place);
    for (; k < b->n; k++) {
        const double *from = b->data + 2 * k * b->step;
        double       *to = rows + (place ? place[k] : k) * 2 * b->width;
        for (int l = 0; l < b->count; l++) {
            to[l] = from[2 * l * b->line];
            to[b->width + l] = from[2 * l * b->line + 1] * b->side;
        }
    }
}

static void scatter(const lines *b, const double *rows) {
    bool    full = b->count == b->width;
    int64_t k = 0;
    if (full && b->line == 1)
        for (; k < b->n; k++) scatter_beside(b, k, rows + k * 2 * b->width);
    else if (full && b->step == 1)
        for (; k + LANES / 2 <= b->n; k += LANES / 2) scatter_dense(b, k, rows);
    for (; k < b->n; k++) {
        double       *to = b->data + 2 * k * b->step;
        const double *from = rows + k * 2 * b->width;
        for (int l = 0; l < b->count; l++) {
            to[2 * l * b->line] = from[l];
            to[2 * l * b->line + 1] = from[b->width + l] * b->side;
        }
    }
}

void FV_ISA_NAME(fv__spectrum_lines)(const fv_spectrum *s, double *data, int64_t count, int64_t line, int64_t step,
                                     bool inverse) {
    for (int64_t i = 0; i < count && s->n > 1; i += WIDTH) {
        lines b = { .data = data + 2 * i * line, .n = s->n, .line = line, .step = step, .side = side_of(s, inverse) };
        b.count = (int)FV_MIN(WIDTH, count - i);
        b.width = b.count > LANES ? WIDTH : LANES;
        gather(&b, s->rows[0], length_of(s), s->place);
        transform(s, s->rows[0], b.width, inverse ? 1 : -1);
        scatter(&b, s->rows[0]);
    }
}

void FV_ISA_NAME(fv__spectrum_image)(const fv_spectrum *axes, int ndim, double *data, bool inverse) {
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < ndim - 1; d++) outer *= axes[d].n;
    FV_ISA_NAME(fv__spectrum_lines)(&axes[ndim - 1], data, outer, axes[ndim - 1].n, 1, inverse);
    for (int d = ndim - 2; d >= 0; d--) {
        inner *= axes[d + 1].n;
        outer /= axes[d].n;
        for (int64_t o = 0; o < outer; o++)
            FV_ISA_NAME(fv__spectrum_lines)(&axes[d], data + 2 * o * axes[d].n * inner, inner, 1, inner, inverse);
    }
}

/* ---------------------------------------------------------------- correlation of two real images */

/* The product of both spectra, from those of a + ib at some frequencies and at the opposite ones. */
FV_INLINE void cross(const double *here, const double *there, double *to, int width) {
    fv_f64v half = fv_f64v_splat(0.5);
    for (int v = 0; v < width; v += LANES) {
        fv_f64v x = fv_f64v_load(here + v), y = fv_f64v_load(here + width + v);
        fv_f64v u = fv_f64v_load(there + v), w = fv_f64v_load(there + width + v);
        fv_f64v a = (x + u) * half, ai = (y - w) * half, b = (y + w) * half, bi = (u - x) * half;
        fv_f64v_store(to + v, a * b + ai * bi);
        fv_f64v_store(to + width + v, ai * b - a * bi);
    }
}

/* Rows that lie empty behind the numbers of a convolution. */
static void clear_tail(const fv_spectrum *s, double *rows, int width) {
    memset(rows + 2 * s->n * width, 0, (size_t)(2 * (length_of(s) - s->n) * width) * sizeof *rows);
}

/* Neighbouring lines along axis 0: to the spectrum, product, weights, and back. at[1 ..]: where the first of them is. alone: its
 * opposite gets its numbers too. */
static void cross_lines(const fv_spectrum_correlation *c, int64_t *at, int count, bool alone) {
    const fv_spectrum *s = &c->axes[0];
    int64_t            first = 0, opposite = 0, rest = 1;
    int                width = count > LANES ? WIDTH : LANES;
    for (int d = 1; d < c->ndim; d++) {
        int64_t n = c->axes[d].n;
        first = first * n + at[d];
        opposite = opposite * n + (n - at[d]) % n;
        rest *= n;
    }
    lines here = { c->data + 2 * first, s->n, 1, rest, count, width, 1 }, there = here;
    there.data = c->data + 2 * opposite;
    there.line = -1;
    gather(&here, s->rows[0], length_of(s), s->place);
    gather(&there, s->rows[1], length_of(s), s->place);
    for (int k = 0; k < 2; k++) transform(s, s->rows[k], width, -1);
    clear_tail(s, s->rows[2], width);
    here.side = side_of(s, true);
    for (at[0] = 0; at[0] < s->n; at[0]++) {
        double *to = s->rows[2] + (s->place ? s->place[at[0]] : at[0]) * 2 * width;
        cross(s->rows[0] + at[0] * 2 * width, s->rows[1] + (s->n - at[0]) % s->n * 2 * width, to, width);
        c->weigh(c->context, at, count, to, to + width);
        for (int l = 0; l < width && s->padded; l++) to[width + l] *= here.side;
    }
    transform(s, s->rows[2], width, 1);
    scatter(&here, s->rows[2]);
    if (alone && first != opposite) {
        there.side = -here.side;
        scatter(&there, s->rows[2]);
    }
}

/* All lines along axis 0 up to the middle of each row: the others follow from them. Those that begin and halve rows are each
 * other's opposites: of two the first is computed, before it is overwritten, and the other one has the conjugate numbers. */
static void cross_all(const fv_spectrum_correlation *c) {
    int     last = c->ndim - 1;
    int64_t nx = c->axes[last].n, ny = last > 1 ? c->axes[1].n : 1, at[3] = { 0 };
    for (int64_t y = 0; y < ny; y++) {
        if (last > 1) at[1] = y;
        for (at[last] = 0; at[last] <= nx / 2 && y <= ny / 2; at[last] += FV_MAX(nx / 2, 1))
            if (2 * at[last] % nx == 0) cross_lines(c, at, 1, true);
        for (at[last] = 1; 2 * at[last] < nx; at[last] += WIDTH)
            cross_lines(c, at, (int)FV_MIN(WIDTH, (nx + 1) / 2 - at[last]), false);
    }
}

/* Two bundles of rows whose spectra are known up to their middle, as real and imaginary parts of one. */
static void join_halves(const fv_spectrum *s, const double *a, const double *b, double *rows) {
    double side = side_of(s, true);
    clear_tail(s, rows, WIDTH);
    for (int64_t k = 0; k <= s->n / 2; k++, a += 2 * WIDTH, b += 2 * WIDTH) {
        int64_t back = (s->n - k) % s->n;
        bool    real = back == k; /* frequencies that are their own opposite */
        double *to = rows + (s->place ? s->place[k] : k) * 2 * WIDTH,
               *from_end = rows + (s->place ? s->place[back] : back) * 2 * WIDTH;
        for (int l = 0; l < WIDTH; l++) {
            double ai = real ? 0 : a[WIDTH + l], bi = real ? 0 : b[WIDTH + l];
            to[l] = a[l] - bi;
            to[WIDTH + l] = (ai + b[l]) * side;
            from_end[l] = a[l] + bi;
            from_end[WIDTH + l] = (b[l] - ai) * side;
        }
    }
}

/* The real (0) or imaginary (1) parts of a bundle, as rows of reals that are `line` numbers apart. */
static void scatter_parts(const fv_spectrum *s, const double *rows, int part, double *data, int64_t line, int count) {
    double  side = part ? side_of(s, true) : 1;
    int64_t k = 0;
    rows += part * WIDTH;
    for (; count == WIDTH && k + LANES <= s->n; k += LANES)
        for (int v = 0; v < WIDTH; v += LANES) {
            fv_f64v square[LANES];
            for (int j = 0; j < LANES; j++) square[j] = fv_f64v_load(rows + (k + j) * 2 * WIDTH + v) * fv_f64v_splat(side);
            fv_f64v_transpose(square);
            for (int l = 0; l < LANES; l++) fv_f64v_store(data + (v + l) * line + k, square[l]);
        }
    for (; k < s->n; k++)
        for (int l = 0; l < count; l++) data[l * line + k] = rows[k * 2 * WIDTH + l] * side;
}

/* Rows of half spectra become rows of reals, two bundles at once. */
static void rows_back(const fv_spectrum *s, double *data, int64_t count) {
    for (int64_t i = 0; i < count; i += 2 * WIDTH) {
        lines part[2];
        for (int k = 0; k < 2; k++) {
            int64_t at = FV_MIN(i + k * WIDTH, count);
            part[k] = (lines){ data + 2 * at * s->n, s->n / 2 + 1, s->n, 1, (int)FV_MIN(WIDTH, count - at), WIDTH, 1 };
            gather(&part[k], s->rows[1 + k], part[k].n, NULL);
        }
        join_halves(s, s->rows[1], s->rows[2], s->rows[0]);
        transform(s, s->rows[0], WIDTH, 1);
        for (int k = 0; k < 2; k++) scatter_parts(s, s->rows[0], k, part[k].data, 2 * s->n, part[k].count);
    }
}

/* Along y of a volume, up to a column. */
static void lines_of_plane(const fv_spectrum_correlation *c, int64_t z, int64_t columns, bool inverse) {
    int64_t ny = c->axes[1].n, nx = c->axes[2].n;
    FV_ISA_NAME(fv__spectrum_lines)(&c->axes[1], c->data + 2 * z * ny * nx, columns, 1, nx, inverse);
}

void FV_ISA_NAME(fv__spectrum_correlate)(const fv_spectrum_correlation *c) {
    int64_t nx = c->axes[c->ndim - 1].n, outer = 1;
    for (int d = 0; d < c->ndim - 1; d++) outer *= c->axes[d].n;
    FV_ISA_NAME(fv__spectrum_lines)(&c->axes[c->ndim - 1], c->data, outer, nx, 1, false);
    if (c->ndim == 3)
        for (int64_t z = 0; z < c->axes[0].n; z++) lines_of_plane(c, z, nx, false);
    cross_all(c);
    if (c->ndim == 3)
        for (int64_t z = 0; z < c->axes[0].n; z++) lines_of_plane(c, z, nx / 2 + 1, true);
    rows_back(&c->axes[c->ndim - 1], c->data, outer);
}
