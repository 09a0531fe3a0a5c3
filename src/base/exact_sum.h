/* Exact, reproducible sums. A sum is a wide fixed-point number (a superaccumulator), so it does not depend on the order, the
 * chunks or the processor, and its mean, variance and value are rounded once, at the end.
 *
 *     fv_sum_float32 sum;
 *     fv__sum_init(&sum.sum, FV_SUM_FLOAT32);
 *     fv__sum_add_floats(&sum.sum, NULL, row, n);
 *     fv__sum_merge(&sum.sum, &other.sum);
 *     double mean = fv__sum_mean(&sum.sum, count);
 *
 * A sum is plain bytes (fv__sum_size of them) without pointers: it can be copied into a partial. Different sums may be used
 * from different threads.
 */
#ifndef FV_EXACT_SUM_H
#define FV_EXACT_SUM_H

#include "base/base.h"

typedef enum fv_sum_kind {
    FV_SUM_FLOAT32,         /* float32 values */
    FV_SUM_FLOAT32_SQUARES, /* squares of float32 values */
    FV_SUM_FLOAT64,
    FV_SUM_FLOAT64_SQUARES,
    FV_SUM_INTEGER, /* integers up to 64 bits, or their squares */
} fv_sum_kind;

/* Word i counts multiples of 2^(lowest + 32 i). Words are signed and hold more than 32 bits until carries are moved on, which
 * happens when `pending` additions could have filled them. */
typedef struct fv_sum {
    int32_t words, lowest;
    int64_t pending;
    int64_t nans, positive_infinities, negative_infinities;
    int64_t word[];
} fv_sum;

#define FV_SUM_HEAD 5
typedef union fv_sum_float32 {
    fv_sum  sum;
    int64_t storage[FV_SUM_HEAD + 10];
} fv_sum_float32;
typedef union fv_sum_float32_squares {
    fv_sum  sum;
    int64_t storage[FV_SUM_HEAD + 19];
} fv_sum_float32_squares;
typedef union fv_sum_float64 {
    fv_sum  sum;
    int64_t storage[FV_SUM_HEAD + 67];
} fv_sum_float64;
typedef union fv_sum_float64_squares {
    fv_sum  sum;
    int64_t storage[FV_SUM_HEAD + 133];
} fv_sum_float64_squares;
typedef union fv_sum_integer {
    fv_sum  sum;
    int64_t storage[FV_SUM_HEAD + 7];
} fv_sum_integer;
typedef fv_sum_float64_squares fv_sum_any; /* room for each of them */

void   fv__sum_init(fv_sum *sum, fv_sum_kind kind); /* zero */
size_t fv__sum_size(fv_sum_kind kind);              /* bytes */

/* One value of the sum's kind: in FV_SUM_FLOAT32_SQUARES a square that was formed exactly as (double)x * x. Not for
 * FV_SUM_FLOAT64_SQUARES and FV_SUM_INTEGER. */
void fv__sum_add(fv_sum *sum, double value);
/* The square of a value; for the two kinds of squares. */
void fv__sum_add_square(fv_sum *squares, double value);
/* FV_SUM_INTEGER; the square of an integer is an integer like any other. */
void fv__sum_add_integer(fv_sum *sum, bool negative, unsigned __int128 magnitude);
/* Arrays, at several GB/s (base/exact_strip.h); squares or sum may be NULL. */
static inline void fv__sum_add_floats(fv_sum *sum, fv_sum *squares, const float *values, int64_t n);
static inline void fv__sum_add_doubles(fv_sum *sum, fv_sum *squares, const double *values, int64_t n);
/* Adds another sum of the same kind. */
void fv__sum_merge(fv_sum *into, const fv_sum *from);

/* The exact sum rounded to nearest. A NaN, or infinities of both signs, give NaN. */
double fv__sum_value(const fv_sum *sum);
/* The same as an unevaluated high + low, 106 bits or more. */
void fv__sum_value2(const fv_sum *sum, double *high, double *low);
/* The exact quotient rounded to nearest; NaN for no values. */
double fv__sum_mean(const fv_sum *sum, int64_t count);
/* Population variance squares/count - (sum/count)^2, computed exactly and rounded once. */
double fv__sum_variance(const fv_sum *sum, const fv_sum *squares, int64_t count);
/* An FV_SUM_INTEGER as an integer; false if that cannot hold it. */
bool fv__sum_integer_value(const fv_sum *sum, int64_t *value);
bool fv__sum_natural_value(const fv_sum *sum, uint64_t *value);

#include "base/exact_strip.h"
#endif
