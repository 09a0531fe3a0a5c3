/* Fourier transforms of lines, planes and volumes: bundles of lines are gathered, transformed and scattered. */
#include "kernels/spectrum.h"
#include "base/math.h"
#include "kernels/vectors.h"
#include "op/scratch.h"

#define REAL double
#define VECTOR fv_f64v
#define LANES FV_F64_LANES
#define R(name) name
#include "kernels/fourier_real.h"

enum { WIDTH = 8, MOST_FACTOR = 7 }; /* lines of a bundle; the largest factor of a direct transform */
#define PI 0x1.921fb54442d18p+1

/* The factor of the next step, smallest first: 2, 3, 5 or 7; 0: there is none. */
static int64_t next_factor(int64_t rest) {
    for (int64_t factor = 2; factor <= MOST_FACTOR; factor++)
        if (rest % factor == 0) return factor;
    return 0;
}

static bool is_direct(int64_t n) {
    for (int64_t factor; n > 1; n /= factor)
        if (!(factor = next_factor(n))) return false;
    return true;
}

static size_t lay_out(fv_spectrum *s, int64_t n, void *memory) {
    fv_scratch pieces = { memory };
    int64_t    number = sizeof(double), length;
    *s = (fv_spectrum){ .n = n, .memory = memory, .padded = is_direct(n) ? 0 : fv__spectrum_length(2 * n - 1) };
    length = FV_MAX(n, s->padded);
    s->turn = fv__scratch_take(&pieces, 2 * length * number);
    s->rows = fv__scratch_take(&pieces, 2 * length * WIDTH * number);
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

/* The last step joins as many blocks as its factor says: number k is in block k % factor, at k / factor; and so on inside it. */
static int64_t find_place(int64_t k, int64_t n) {
    int64_t factors[64] = { 0 }, count = 0, place = 0, size = n;
    for (int64_t rest = n; rest > 1; rest /= factors[count++]) factors[count] = next_factor(rest);
    while (count--) {
        size /= factors[count];
        place += k % factors[count] * size;
        k /= factors[count];
    }
    return place;
}

/* Squares are taken modulo 2n: the angle keeps its digits. */
static void prepare_convolution(fv_spectrum *s) {
    enum { STEP = 2 * LANES };
    memset(s->rows, 0, (size_t)(s->padded * STEP) * sizeof *s->rows);
    for (int64_t k = 0, square = 0; k < s->n; square = (square + 2 * k + 1) % (2 * s->n), k++) {
        double angle = PI * (double)square / (double)s->n, c = fv__cos(angle), sine = fv__sin(angle);
        s->chirp[2 * k] = c;
        s->chirp[2 * k + 1] = -sine;
        for (int side = 0; side < 2; side++) {
            double *to = s->rows + (side ? (s->padded - k) % s->padded : k) * STEP;
            to[0] = c / (double)s->padded;
            to[LANES] = sine / (double)s->padded;
        }
    }
    in_frequency(s->rows, s->padded, LANES, s->turn);
    for (int64_t k = 0; k < s->padded; k++) {
        s->response[2 * k] = s->rows[k * STEP];
        s->response[2 * k + 1] = s->rows[k * STEP + LANES];
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
    for (int64_t k = 0; s->place && k < n; k++) s->place[k] = find_place(k, n);
}

/* ---------------------------------------------------------------- one bundle */

/* The transform of `factor` numbers, an odd factor: numbers j and factor - j have the same cosines and opposite sines. */
FV_INLINE void join_numbers(int factor, const fv_f64v in[][2], fv_f64v out[][2], const double *turn, int64_t every, double sign) {
    int     half = factor / 2;
    fv_f64v plus[MOST_FACTOR / 2][2], minus[MOST_FACTOR / 2][2];
    for (int part = 0; part < 2; part++) {
        out[0][part] = in[0][part];
        for (int j = 0; j < half; j++) {
            plus[j][part] = in[j + 1][part] + in[factor - 1 - j][part];
            minus[j][part] = in[j + 1][part] - in[factor - 1 - j][part];
            out[0][part] += plus[j][part];
        }
    }
    for (int q = 1; q <= half; q++) {
        fv_f64v even[2] = { in[0][0], in[0][1] }, odd[2] = { { 0 } };
        for (int j = 0; j < half; j++) {
            const double *t = turn + 2 * ((j + 1) * q % factor) * every;
            for (int part = 0; part < 2; part++) {
                even[part] += plus[j][part] * fv_f64v_splat(t[0]);
                odd[part] += minus[j][part] * fv_f64v_splat(t[1] * sign);
            }
        }
        out[q][0] = even[0] - odd[1];
        out[q][1] = even[1] + odd[0];
        out[factor - q][0] = even[0] + odd[1];
        out[factor - q][1] = even[1] - odd[0];
    }
}

/* One step in time that joins `factor` blocks of `size` numbers. */
static void join_blocks(const fv_spectrum *s, int factor, int64_t size, int width, double sign) {
    int64_t every = s->n / (factor * size);
    for (int64_t start = 0; start < s->n; start += factor * size)
        for (int64_t k = 0; k < size; k++)
            for (int v = 0; v < width; v += LANES) {
                double *p = s->rows + (start + k) * 2 * width + v;
                fv_f64v in[MOST_FACTOR][2], out[MOST_FACTOR][2];
                for (int j = 0; j < factor; j++) {
                    fv_f64v a = fv_f64v_load(p + j * size * 2 * width), b = fv_f64v_load(p + j * size * 2 * width + width);
                    fv_f64v c = fv_f64v_splat(s->turn[2 * j * k * every]),
                            t = fv_f64v_splat(s->turn[2 * j * k * every + 1] * sign);
                    in[j][0] = a * c - b * t;
                    in[j][1] = b * c + a * t;
                }
                join_numbers(factor, in, out, s->turn, s->n / factor, sign);
                for (int j = 0; j < factor; j++) {
                    fv_f64v_store(p + j * size * 2 * width, out[j][0]);
                    fv_f64v_store(p + j * size * 2 * width + width, out[j][1]);
                }
            }
}

FV_INLINE void transform_direct(const fv_spectrum *s, int width, double sign) {
    for (int64_t size = 1, factor; size < s->n; size *= factor) {
        factor = next_factor(s->n / size);
        if (factor == 2)
            pairs_in_time(s->rows, s->n, size, width, s->turn, sign);
        else
            join_blocks(s, (int)factor, size, width, sign);
    }
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

/* With w = exp(-i pi / n), j k = (j j + k k - (k - j)(k - j)) / 2 makes a convolution with w^-(j j) of the transform. The numbers
 * were multiplied with w^(j j) as they were gathered, and are again as they are scattered. */
FV_INLINE void transform_convolved(const fv_spectrum *s, int width) {
    in_frequency(s->rows, s->padded, width, s->turn);
    multiply(s->rows, s->padded, width, s->response);
    in_time(s->rows, s->padded, width, s->turn, 1);
}

FV_INLINE void transform(const fv_spectrum *s, int width, double sign) {
    if (s->padded)
        transform_convolved(s, width);
    else
        transform_direct(s, width, sign);
}

/* ---------------------------------------------------------------- lines in and out */

typedef struct lines {
    double *data;
    int64_t line, step;
    int     count, width; /* up to WIDTH lines; with the empty ones that fill the vectors */
    double  sign;
} lines;

/* The convolution knows only the forward transform: the inverse is the conjugate of the forward transform of the conjugate. */
static void gather(const fv_spectrum *s, const lines *b) {
    double side = s->padded && b->sign > 0 ? -1 : 1;
    if (s->padded || b->count < b->width) memset(s->rows, 0, (size_t)(2 * FV_MAX(s->n, s->padded) * b->width) * sizeof *s->rows);
    for (int64_t k = 0; k < s->n; k++) {
        const double *from = b->data + 2 * k * b->step;
        double       *to = s->rows + (s->place ? s->place[k] : k) * 2 * b->width;
        for (int l = 0; l < b->count; l++) {
            to[l] = from[2 * l * b->line];
            to[b->width + l] = from[2 * l * b->line + 1] * side;
        }
    }
}

static void scatter(const fv_spectrum *s, const lines *b) {
    double side = s->padded && b->sign > 0 ? -1 : 1;
    for (int64_t k = 0; k < s->n; k++) {
        double       *to = b->data + 2 * k * b->step;
        const double *from = s->rows + k * 2 * b->width;
        for (int l = 0; l < b->count; l++) {
            to[2 * l * b->line] = from[l];
            to[2 * l * b->line + 1] = from[b->width + l] * side;
        }
    }
}

void FV_ISA_NAME(fv__spectrum_lines)(const fv_spectrum *s, double *data, int64_t count, int64_t line, int64_t step,
                                     bool inverse) {
    for (int64_t i = 0; i < count && s->n > 1; i += WIDTH) {
        lines b = { .data = data + 2 * i * line, .line = line, .step = step, .sign = inverse ? 1 : -1 };
        b.count = (int)FV_MIN(WIDTH, count - i);
        b.width = b.count > LANES ? WIDTH : LANES;
        gather(s, &b);
        if (s->padded) multiply(s->rows, s->n, b.width, s->chirp);
        if (b.width == WIDTH)
            transform(s, WIDTH, b.sign);
        else
            transform(s, LANES, b.sign);
        if (s->padded) multiply(s->rows, s->n, b.width, s->chirp);
        scatter(s, &b);
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
