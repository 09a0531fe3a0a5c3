/* Exact accumulation of one intensity in one label, and its record; see channel.h. */
#include "ops/measurement/channel.h"

static const fv_sum_kind sum_kinds[] = {
    [FV__WIDE] = FV_SUM_INTEGER, [FV__FLOAT32] = FV_SUM_FLOAT32, [FV__FLOAT64] = FV_SUM_FLOAT64
};
static const fv_sum_kind square_kinds[] = {
    [FV__WIDE] = FV_SUM_INTEGER, [FV__FLOAT32] = FV_SUM_FLOAT32_SQUARES, [FV__FLOAT64] = FV_SUM_FLOAT64_SQUARES
};

enum { STRIP = 256 }; /* values of a strip of the exact sums */

static fv__intensity kind_of(fv_dtype dtype) {
    switch (dtype) {
    case FV_FLOAT32: return FV__FLOAT32;
    case FV_FLOAT64: return FV__FLOAT64;
    case FV_INT64:
    case FV_UINT64: return FV__WIDE;
    default: return FV__NARROW;
    }
}

fv__channel_plan fv__channel_planned(fv_dtype dtype, int ndim, bool spread, bool weighted) {
    fv__channel_plan p = {
        .ndim = ndim, .dtype = dtype, .kind = kind_of(dtype), .spread = spread, .weighted = weighted, .size = sizeof(fv__channel)
    };
    if (p.kind < FV__WIDE) return p;
    p.values = STRIP;
    p.value_bytes = p.kind == FV__FLOAT32 ? 4 : 8;
    p.values_at = p.size;
    p.places_at = p.values_at + (size_t)p.values * p.value_bytes;
    p.sum_at = p.places_at + (weighted ? (size_t)(p.values * p.ndim) * sizeof(int64_t) : 0);
    p.squares_at = p.sum_at + fv__sum_size(sum_kinds[p.kind]);
    p.products_at = p.squares_at + fv__sum_size(square_kinds[p.kind]);
    p.size = p.products_at + (weighted ? (size_t)p.ndim * fv__sum_size(FV_SUM_FLOAT64) : 0);
    p.size = (p.size + 15) & ~(size_t)15;
    return p;
}

static char    *values_of(const fv__channel_plan *p, fv__channel *c) { return (char *)c + p->values_at; }
static int64_t *places_of(const fv__channel_plan *p, fv__channel *c, int d) {
    return (int64_t *)((char *)c + p->places_at) + d * p->values;
}
static fv_sum *sum_of(const fv__channel_plan *p, fv__channel *c) { return (fv_sum *)((char *)c + p->sum_at); }
static fv_sum *squares_of(const fv__channel_plan *p, fv__channel *c) { return (fv_sum *)((char *)c + p->squares_at); }
static fv_sum *product_of(const fv__channel_plan *p, fv__channel *c, int d) {
    return (fv_sum *)((char *)c + p->products_at + (size_t)d * fv__sum_size(FV_SUM_FLOAT64));
}

void fv__channel_start(const fv__channel_plan *p, fv__channel *c) {
    *c = (fv__channel){ .least = INT64_MAX, .most = INT64_MIN, .lowest = INFINITY, .highest = -INFINITY };
    if (p->kind < FV__WIDE) return;
    fv__sum_init(sum_of(p, c), sum_kinds[p->kind]);
    fv__sum_init(squares_of(p, c), square_kinds[p->kind]);
    for (int d = 0; p->weighted && d < p->ndim; d++) fv__sum_init(product_of(p, c, d), FV_SUM_FLOAT64);
}

/* ---------------------------------------------------------------- narrow integers */

#define ADD_NARROW(name, type, unsigned_wide)                                                                                    \
    static void name(fv__channel *c, const type *restrict values, int64_t n) {                                                   \
        int64_t       total = 0;                                                                                                 \
        unsigned_wide squares = 0;                                                                                               \
        type          least = values[0], most = values[0];                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                                                        \
            type v = values[i];                                                                                                  \
            total += v;                                                                                                          \
            squares += (uint64_t)(int64_t)v * (uint64_t)(int64_t)v;                                                              \
            least = v < least ? v : least;                                                                                       \
            most = v > most ? v : most;                                                                                          \
        }                                                                                                                        \
        c->total += total;                                                                                                       \
        c->squares += squares;                                                                                                   \
        c->least = FV_MIN(c->least, (int64_t)least);                                                                             \
        c->most = FV_MAX(c->most, (int64_t)most);                                                                                \
    }                                                                                                                            \
    /* The sum alone: in steps, because most rows of an object are short. */                                                     \
    static void name##_sum(fv__channel *c, const type *restrict values, int64_t n) {                                             \
        int64_t total = 0, i = 0;                                                                                                \
        for (; i + 4 <= n; i += 4) total += ((int64_t)values[i] + values[i + 1]) + ((int64_t)values[i + 2] + values[i + 3]);     \
        for (; i < n; i++) total += values[i];                                                                                   \
        c->total += total;                                                                                                       \
    }                                                                                                                            \
    /* Sum of value times place in the row. */                                                                                   \
    static __int128 name##_ramp(const type *restrict values, int64_t n) {                                                        \
        __int128 all = 0;                                                                                                        \
        for (int64_t start = 0; start < n; start += 4096) {                                                                      \
            int64_t ramp = 0, sum = 0, end = FV_MIN(n, start + 4096);                                                            \
            for (int64_t i = start; i < end; i++) sum += values[i], ramp += values[i] * (i - start);                             \
            all += (__int128)sum * start + ramp;                                                                                 \
        }                                                                                                                        \
        return all;                                                                                                              \
    }
ADD_NARROW(add_uint8, uint8_t, uint64_t)
ADD_NARROW(add_int8, int8_t, uint64_t)
ADD_NARROW(add_uint16, uint16_t, uint64_t)
ADD_NARROW(add_int16, int16_t, uint64_t)
ADD_NARROW(add_uint32, uint32_t, unsigned __int128)
ADD_NARROW(add_int32, int32_t, unsigned __int128)

#define NARROW(TYPE, NAME)                                                                                                       \
    {                                                                                                                            \
        if (p->spread)                                                                                                           \
            NAME(c, values, n);                                                                                                  \
        else                                                                                                                     \
            NAME##_sum(c, values, n);                                                                                            \
        return p->weighted ? NAME##_ramp((const TYPE *)values, n) : 0;                                                           \
    }

/* Returns the sum of value times place in the row, where it is wanted. */
static __int128 add_narrow(const fv__channel_plan *p, fv__channel *c, const void *values, int64_t n) {
    switch (p->dtype) {
    case FV_INT8: NARROW(int8_t, add_int8)
    case FV_UINT16: NARROW(uint16_t, add_uint16)
    case FV_INT16: NARROW(int16_t, add_int16)
    case FV_UINT32: NARROW(uint32_t, add_uint32)
    case FV_INT32: NARROW(int32_t, add_int32)
    default: NARROW(uint8_t, add_uint8)
    }
}

/* ---------------------------------------------------------------- through exact sums */

static void add_wide(fv__channel *c, fv_sum *sum, fv_sum *squares, fv_dtype dtype, const int64_t *values, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        bool     negative = dtype == FV_INT64 && values[i] < 0;
        uint64_t magnitude = negative ? 0 - (uint64_t)values[i] : (uint64_t)values[i];
        int64_t  ordered = dtype == FV_UINT64 ? values[i] ^ INT64_MIN : values[i];
        fv__sum_add_integer(sum, negative, magnitude);
        fv__sum_add_integer(squares, false, (unsigned __int128)magnitude * magnitude);
        c->least = FV_MIN(c->least, ordered);
        c->most = FV_MAX(c->most, ordered);
    }
}

/* NaNs are not compared here: the sums count them. Negative zero becomes zero, so that the order does not show. */
#define RANGE(name, type)                                                                                                        \
    static void name(fv__channel *c, const type *values, int64_t n) {                                                            \
        type lowest = INFINITY, highest = -INFINITY;                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                                                        \
            type v = values[i] + (type)0;                                                                                        \
            lowest = v < lowest ? v : lowest;                                                                                    \
            highest = v > highest ? v : highest;                                                                                 \
        }                                                                                                                        \
        c->lowest = FV_MIN(c->lowest, (double)lowest);                                                                           \
        c->highest = FV_MAX(c->highest, (double)highest);                                                                        \
    }
RANGE(range_float, float)
RANGE(range_double, double)

static double value_at(const fv__channel_plan *p, const void *values, int64_t i) {
    switch (p->dtype) {
    case FV_FLOAT32: return ((const float *)values)[i];
    case FV_FLOAT64: return ((const double *)values)[i];
    case FV_UINT64: return (double)((const uint64_t *)values)[i];
    default: return (double)((const int64_t *)values)[i];
    }
}

static void settle(const fv__channel_plan *p, fv__channel *c) {
    const void *values = p->kind >= FV__WIDE ? values_of(p, c) : NULL;
    int64_t     n = c->waiting;
    c->waiting = 0;
    if (!n) return;
    if (p->kind == FV__WIDE)
        add_wide(c, sum_of(p, c), squares_of(p, c), p->dtype, values, n);
    else if (p->kind == FV__FLOAT32) {
        range_float(c, values, n);
        fv__sum_add_floats(sum_of(p, c), squares_of(p, c), values, n);
    } else {
        range_double(c, values, n);
        fv__sum_add_doubles(sum_of(p, c), squares_of(p, c), values, n);
    }
    for (int d = 0; p->weighted && d < p->ndim; d++) {
        double products[STRIP];
        for (int64_t i = 0; i < n; i++) products[i] = value_at(p, values, i) * (double)places_of(p, c, d)[i];
        fv__sum_add_doubles(product_of(p, c, d), NULL, products, n);
    }
}

/* Values wait until a strip of the exact sums is full. */
static void wait(const fv__channel_plan *p, fv__channel *c, const int64_t *position, const char *values, int64_t n) {
    for (int64_t done = 0, some; done < n; done += some) {
        some = FV_MIN(n - done, p->values - c->waiting);
        memcpy(values_of(p, c) + (size_t)c->waiting * p->value_bytes, values + (size_t)done * p->value_bytes,
               (size_t)some * p->value_bytes);
        for (int d = 0; p->weighted && d < p->ndim; d++)
            for (int64_t i = 0; i < some; i++)
                places_of(p, c, d)[c->waiting + i] = position[d] + (d == p->ndim - 1 ? done + i : 0);
        c->waiting += some;
        if (c->waiting == p->values) settle(p, c);
    }
}

void fv__channel_add(const fv__channel_plan *p, fv__channel *c, const int64_t *position, int64_t n, const void *values) {
    if (p->kind != FV__NARROW) {
        wait(p, c, position, values, n);
        return;
    }
    __int128 before = c->total, ramp = add_narrow(p, c, values, n);
    for (int d = 0; p->weighted && d < p->ndim; d++)
        c->product[d] += (c->total - before) * position[d] + (d == p->ndim - 1 ? ramp : 0);
}

/* ---------------------------------------------------------------- records */

static size_t sums_bytes(const fv__channel_plan *p) { return 16 + p->size - p->sum_at; }
static size_t listed_bytes(const fv__channel_plan *p) {
    return p->value_bytes + (p->weighted ? (size_t)p->ndim * sizeof(int32_t) : 0);
}

int64_t fv__channel_most_bytes(const fv__channel_plan *p, const int64_t *size, int64_t voxels) {
    int64_t n = 1;
    for (int d = 0; d < p->ndim && !voxels; d++) n *= size[d];
    if (voxels) n = voxels;
    if (p->kind >= FV__WIDE) return 1 + (voxels ? voxels * (int64_t)listed_bytes(p) : (int64_t)sums_bytes(p));
    if (!p->spread) return fv__varint_bytes((unsigned __int128)(uint64_t)n << 33);
    if (n == 1) return 5 + 3 + (p->weighted ? p->ndim : 0);
    int64_t bytes = 5 + 5 + fv__varint_bytes((unsigned __int128)(uint64_t)n << 32) +
                    fv__varint_bytes(((unsigned __int128)(uint64_t)n << 64) - 1);
    for (int d = 0; p->weighted && d < p->ndim; d++)
        bytes += fv__varint_bytes(((unsigned __int128)(uint64_t)n << 32) * (uint64_t)size[d]);
    return bytes;
}

/* Sum of (value - least) * (coordinate - low) from the plain sums, and back. */
static __int128 above(__int128 product, __int128 total, int64_t sum, int64_t voxels, int64_t least, int64_t low) {
    return product - (__int128)least * sum - (__int128)low * total + (__int128)least * low * voxels;
}

static uint8_t *write_narrow(const fv__channel_plan *p, const fv__channel *c, int64_t voxels, const int64_t *low,
                             const int64_t *sum, uint8_t *to) {
    if (!p->spread) return fv__varint_put(to, fv__zigzag(c->total));
    to = fv__varint_put(to, fv__zigzag(c->least));
    to = fv__varint_put(to, (uint64_t)(c->most - c->least));
    to = fv__varint_put(to, (unsigned __int128)(c->total - (__int128)voxels * c->least));
    to = fv__varint_put(to, voxels == 1 ? 0 : c->squares); /* one voxel's square follows from its value */
    for (int d = 0; p->weighted && d < p->ndim; d++)
        to = fv__varint_put(to, (unsigned __int128)above(c->product[d], c->total, sum[d], voxels, c->least, low[d]));
    return to;
}

static const uint8_t *read_narrow(const fv__channel_plan *p, const uint8_t *from, int64_t voxels, const int64_t *low,
                                  const int64_t *sum, fv__channel *c) {
    unsigned __int128 value, range, excess, squares;
    if (!p->spread) {
        from = fv__varint_get(from, &value);
        c->total += fv__zagzig(value);
        return from;
    }
    from = fv__varint_get(fv__varint_get(fv__varint_get(fv__varint_get(from, &value), &range), &excess), &squares);
    int64_t  least = (int64_t)fv__zagzig(value);
    __int128 total = (__int128)voxels * least + (__int128)excess;
    c->least = FV_MIN(c->least, least);
    c->most = FV_MAX(c->most, least + (int64_t)range);
    c->total += total;
    c->squares += voxels == 1 ? (uint64_t)least * (uint64_t)least : squares;
    for (int d = 0; p->weighted && d < p->ndim; d++) {
        from = fv__varint_get(from, &excess);
        c->product[d] += (__int128)excess - above(0, total, sum[d], voxels, least, low[d]);
    }
    return from;
}

static uint8_t *write_list(const fv__channel_plan *p, fv__channel *c, const int64_t *origin, uint8_t *to) {
    size_t bytes = (size_t)c->waiting * p->value_bytes;
    memcpy(to, values_of(p, c), bytes);
    to += bytes;
    for (int d = 0; p->weighted && d < p->ndim; d++)
        for (int64_t i = 0; i < c->waiting; i++, to += sizeof(int32_t)) {
            int32_t place = (int32_t)(places_of(p, c, d)[i] - origin[d]);
            memcpy(to, &place, sizeof place);
        }
    return to;
}

static const uint8_t *read_list(const fv__channel_plan *p, const uint8_t *from, int64_t voxels, const int64_t *origin,
                                fv__channel *c) {
    const uint8_t *places = from + (size_t)voxels * p->value_bytes;
    for (int64_t i = 0; i < voxels; i++) {
        int64_t position[FV_MAX_DIMS];
        for (int d = 0; p->weighted && d < p->ndim; d++) {
            int32_t place;
            memcpy(&place, places + (size_t)(d * voxels + i) * sizeof place, sizeof place);
            position[d] = origin[d] + place;
        }
        wait(p, c, position, (const char *)from + (size_t)i * p->value_bytes, 1);
    }
    return from + (size_t)voxels * listed_bytes(p);
}

uint8_t *fv__channel_write(const fv__channel_plan *p, fv__channel *c, int64_t voxels, const int64_t *low, const int64_t *sum,
                           const int64_t *origin, uint8_t *to) {
    if (p->kind == FV__NARROW) return write_narrow(p, c, voxels, low, sum, to);
    bool listed = c->waiting == voxels && (size_t)voxels * listed_bytes(p) < sums_bytes(p);
    *to++ = !listed;
    if (listed) return write_list(p, c, origin, to);
    settle(p, c);
    bool integral = p->kind == FV__WIDE;
    memcpy(to, integral ? (void *)&c->least : (void *)&c->lowest, 8);
    memcpy(to + 8, integral ? (void *)&c->most : (void *)&c->highest, 8);
    memcpy(to + 16, sum_of(p, c), p->size - p->sum_at);
    return to + sums_bytes(p);
}

static void merge_sum(fv_sum *into, const uint8_t *from, fv_sum_kind kind) {
    fv_sum_any sum;
    memcpy(&sum, from, fv__sum_size(kind));
    fv__sum_merge(into, &sum.sum);
}

const uint8_t *fv__channel_read(const fv__channel_plan *p, const uint8_t *from, int64_t voxels, const int64_t *low,
                                const int64_t *sum, const int64_t *origin, fv__channel *c) {
    if (p->kind == FV__NARROW) return read_narrow(p, from, voxels, low, sum, c);
    if (!*from++) return read_list(p, from, voxels, origin, c);
    int64_t range[2];
    double  real[2];
    memcpy(range, from, sizeof range);
    memcpy(real, from, sizeof real);
    if (p->kind == FV__WIDE) {
        c->least = FV_MIN(c->least, range[0]);
        c->most = FV_MAX(c->most, range[1]);
    } else {
        c->lowest = FV_MIN(c->lowest, real[0]);
        c->highest = FV_MAX(c->highest, real[1]);
    }
    const uint8_t *sums = from + 16;
    merge_sum(sum_of(p, c), sums, sum_kinds[p->kind]);
    merge_sum(squares_of(p, c), sums + (p->squares_at - p->sum_at), square_kinds[p->kind]);
    for (int d = 0; p->weighted && d < p->ndim; d++)
        merge_sum(product_of(p, c, d), sums + (p->products_at - p->sum_at) + (size_t)d * fv__sum_size(FV_SUM_FLOAT64),
                  FV_SUM_FLOAT64);
    return from + sums_bytes(p);
}

/* ---------------------------------------------------------------- results */

static double unordered(const fv__channel_plan *p, int64_t value) {
    return p->dtype == FV_UINT64 ? (double)(uint64_t)(value ^ INT64_MIN) : (double)value;
}

void fv__channel_moments(const fv__channel_plan *p, fv__channel *c, int64_t voxels, fv_cell cells[5]) {
    fv_sum_integer total, squares;
    fv_sum        *sum = &total.sum, *square = &squares.sum;
    settle(p, c);
    if (p->kind == FV__NARROW) {
        fv__sum_init(sum, FV_SUM_INTEGER);
        fv__sum_init(square, FV_SUM_INTEGER);
        fv__sum_add_integer(sum, c->total < 0, (unsigned __int128)(c->total < 0 ? -c->total : c->total));
        fv__sum_add_integer(square, false, c->squares);
    } else {
        sum = sum_of(p, c);
        square = squares_of(p, c);
    }
    cells[0].real = fv__sum_mean(sum, voxels);
    if (p->spread) cells[3].real = sqrt(fv__sum_variance(sum, square, voxels));
    cells[4].real = fv__sum_value(sum);
    if (fv__channel_integral(p)) {
        cells[1].integer = c->least;
        cells[2].integer = c->most;
    } else if (p->kind == FV__WIDE) {
        cells[1].real = unordered(p, c->least);
        cells[2].real = unordered(p, c->most);
    } else {
        cells[1].real = sum->nans ? NAN : c->lowest;
        cells[2].real = sum->nans ? NAN : c->highest;
    }
}

void fv__channel_weighted(const fv__channel_plan *p, fv__channel *c, double *centroid) {
    settle(p, c);
    double total = p->kind == FV__NARROW ? (double)c->total : fv__sum_value(sum_of(p, c));
    for (int d = 0; d < p->ndim; d++) {
        double product = p->kind == FV__NARROW ? (double)c->product[d] : fv__sum_value(product_of(p, c, d));
        centroid[d] = total == 0 ? NAN : product / total;
    }
}
