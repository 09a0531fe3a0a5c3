/* One intensity image in one label while measure counts: range, moments and, where wanted, sums of value times coordinate.
 *
 * All of it is exact, so channels of one label merge in any order to the same bits. Integers up to 32 bits are summed as such;
 * others go through exact sums, a strip at a time. Sums of value times coordinate add up the rounded float64 products there.
 *
 * Record. Narrow integers: varints of minimum, range, sum above the minimum, squares, and per axis the sum of (value above the
 * minimum) times (coordinate above the lowest one); without spread, a varint of the sum alone. Others: a byte, and either the
 * values themselves with their coordinates (0) or minimum, maximum and all sums (1).
 */
#ifndef FV_CHANNEL_H
#define FV_CHANNEL_H

#include "base/exact_sum.h"
#include "op/op.h"

typedef enum fv__intensity { FV__NARROW = 1, FV__WIDE, FV__FLOAT32, FV__FLOAT64 } fv__intensity;

typedef struct fv__channel {
    int64_t           least, most;          /* integers; unsigned 64-bit values with the top bit turned */
    double            lowest, highest;      /* floating point */
    unsigned __int128 squares;              /* narrow */
    __int128          total;                /* narrow */
    __int128          product[FV_MAX_DIMS]; /* narrow: sums of value times coordinate */
    int64_t           waiting;              /* values not yet in the sums */
} fv__channel;

/* Layout of channels of a given image. */
typedef struct fv__channel_plan {
    int           ndim;
    fv_dtype      dtype;
    fv__intensity kind;
    bool          spread;      /* range and squares; narrow ones are not looked at without it */
    bool          weighted;    /* sums of value times coordinate; only with spread */
    int64_t       values;      /* most that can wait */
    size_t        value_bytes; /* of one waiting value */
    size_t        values_at, places_at, sum_at, squares_at, products_at, size;
} fv__channel_plan;

#define fv__channel_planned FV_ISA_NAME(fv__channel_planned)
#define fv__channel_start FV_ISA_NAME(fv__channel_start)
#define fv__channel_add FV_ISA_NAME(fv__channel_add)
#define fv__channel_most_bytes FV_ISA_NAME(fv__channel_most_bytes)
#define fv__channel_write FV_ISA_NAME(fv__channel_write)
#define fv__channel_read FV_ISA_NAME(fv__channel_read)
#define fv__channel_moments FV_ISA_NAME(fv__channel_moments)
#define fv__channel_weighted FV_ISA_NAME(fv__channel_weighted)

fv__channel_plan fv__channel_planned(fv_dtype dtype, int ndim, bool spread, bool weighted); /* ndim: axes of the labels */
void             fv__channel_start(const fv__channel_plan *plan, fv__channel *channel);
/* n values in a row along the last axis; position: of the first, in the image. */
void fv__channel_add(const fv__channel_plan *plan, fv__channel *channel, const int64_t *position, int64_t n, const void *values);

/* Records. voxels, low: of the label, in the image; origin: of the chunk. Most bytes: of a label with 1, 2 or (0) any number of
 * voxels in a box of this size. */
int64_t        fv__channel_most_bytes(const fv__channel_plan *plan, const int64_t *size, int64_t voxels);
uint8_t       *fv__channel_write(const fv__channel_plan *plan, fv__channel *channel, int64_t voxels, const int64_t *low,
                                 const int64_t *sum, const int64_t *origin, uint8_t *to);
const uint8_t *fv__channel_read(const fv__channel_plan *plan, const uint8_t *from, int64_t voxels, const int64_t *low,
                                const int64_t *sum, const int64_t *origin, fv__channel *channel);

/* Mean, minimum, maximum, standard deviation and sum as cells; without spread, only the first and the last are right. */
void fv__channel_moments(const fv__channel_plan *plan, fv__channel *channel, int64_t voxels, fv_cell cells[5]);
/* Centroid weighted by the values, one number per axis; nan where they sum to 0. */
void fv__channel_weighted(const fv__channel_plan *plan, fv__channel *channel, double *centroid);

/* Minimum and maximum of this kind of intensity are integers. */
static inline bool fv__channel_integral(const fv__channel_plan *plan) {
    return plan->kind == FV__NARROW || plan->dtype == FV_INT64;
}

/* ---- varints: seven bits a byte, least first ---- */
static inline uint8_t *fv__varint_put(uint8_t *to, unsigned __int128 value) {
    for (; value >= 128; value >>= 7) *to++ = (uint8_t)(value | 128);
    *to++ = (uint8_t)value;
    return to;
}

static inline const uint8_t *fv__varint_get(const uint8_t *from, unsigned __int128 *value) {
    int shift = 0;
    for (*value = 0; *from & 128; shift += 7) *value |= (unsigned __int128)(*from++ & 127) << shift;
    *value |= (unsigned __int128)*from++ << shift;
    return from;
}

static inline int fv__varint_bytes(unsigned __int128 value) {
    uint8_t bytes[20];
    return (int)(fv__varint_put(bytes, value) - bytes);
}

static inline unsigned __int128 fv__zigzag(__int128 value) {
    return value < 0 ? (unsigned __int128)~value * 2 + 1 : (unsigned __int128)value * 2;
}
static inline __int128 fv__zagzig(unsigned __int128 value) {
    return value & 1 ? ~(__int128)(value >> 1) : (__int128)(value >> 1);
}

#endif
