/* Exact accumulation for one label, and its record; see object.h. */
#include "ops/measurement/object.h"

static const fv_sum_kind sum_kinds[] = {
    [FV__WIDE] = FV_SUM_INTEGER, [FV__FLOAT32] = FV_SUM_FLOAT32, [FV__FLOAT64] = FV_SUM_FLOAT64
};
static const fv_sum_kind square_kinds[] = {
    [FV__WIDE] = FV_SUM_INTEGER, [FV__FLOAT32] = FV_SUM_FLOAT32_SQUARES, [FV__FLOAT64] = FV_SUM_FLOAT64_SQUARES
};

static fv__intensity kind_of(const fv_type *intensity) {
    if (intensity->kind != FV_KIND_IMAGE) return FV__NO_INTENSITY;
    switch (intensity->image.dtype) {
    case FV_FLOAT32: return FV__FLOAT32;
    case FV_FLOAT64: return FV__FLOAT64;
    case FV_INT64:
    case FV_UINT64: return FV__WIDE;
    default: return FV__NARROW;
    }
}

fv__object_plan fv__object_planned(const fv_image_type *labels, const fv_type *intensity) {
    fv__object_plan p = {
        .ndim = labels->ndim, .dtype = intensity->image.dtype, .kind = kind_of(intensity), .size = sizeof(fv__object)
    };
    if (p.kind < FV__WIDE) return p;
    p.values = 256; /* a strip of the exact sums */
    p.value_bytes = p.kind == FV__FLOAT32 ? 4 : 8;
    p.values_at = p.size;
    p.sum_at = p.values_at + (size_t)p.values * p.value_bytes;
    p.squares_at = p.sum_at + fv_sum_size(sum_kinds[p.kind]);
    p.size = (p.squares_at + fv_sum_size(square_kinds[p.kind]) + 15) & ~(size_t)15;
    return p;
}

static char   *values_of(const fv__object_plan *p, fv__object *o) { return (char *)o + p->values_at; }
static fv_sum *sum_of(const fv__object_plan *p, fv__object *o) { return (fv_sum *)((char *)o + p->sum_at); }
static fv_sum *squares_of(const fv__object_plan *p, fv__object *o) { return (fv_sum *)((char *)o + p->squares_at); }

void fv__object_start(const fv__object_plan *p, fv__object *o, int64_t label) {
    *o = (fv__object){ .label = label, .least = INT64_MAX, .most = INT64_MIN, .lowest = INFINITY, .highest = -INFINITY };
    for (int d = 0; d < p->ndim; d++) o->low[d] = INT64_MAX, o->high[d] = INT64_MIN;
    if (p->kind < FV__WIDE) return;
    fv_sum_init(sum_of(p, o), sum_kinds[p->kind]);
    fv_sum_init(squares_of(p, o), square_kinds[p->kind]);
}

/* ---------------------------------------------------------------- intensities */

#define ADD_NARROW(name, type, wide, unsigned_wide)                                          \
    static void name(fv__object *o, const type *restrict values, int64_t n) {                \
        wide          total = 0;                                                             \
        unsigned_wide squares = 0;                                                           \
        type          least = values[0], most = values[0];                                   \
        for (int64_t i = 0; i < n; i++) {                                                    \
            type v = values[i];                                                              \
            total += v;                                                                      \
            squares += (uint64_t)(int64_t)v * (uint64_t)(int64_t)v;                          \
            least = v < least ? v : least;                                                   \
            most = v > most ? v : most;                                                      \
        }                                                                                    \
        o->total += total;                                                                   \
        o->squares += squares;                                                               \
        o->least = FV_MIN(o->least, (int64_t)least);                                         \
        o->most = FV_MAX(o->most, (int64_t)most);                                            \
    }
ADD_NARROW(add_uint8, uint8_t, int64_t, uint64_t)
ADD_NARROW(add_int8, int8_t, int64_t, uint64_t)
ADD_NARROW(add_uint16, uint16_t, int64_t, uint64_t)
ADD_NARROW(add_int16, int16_t, int64_t, uint64_t)
ADD_NARROW(add_uint32, uint32_t, int64_t, unsigned __int128)
ADD_NARROW(add_int32, int32_t, int64_t, unsigned __int128)

static void add_wide(fv__object *o, fv_sum *sum, fv_sum *squares, fv_dtype dtype, const int64_t *values, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        bool     negative = dtype == FV_INT64 && values[i] < 0;
        uint64_t magnitude = negative ? 0 - (uint64_t)values[i] : (uint64_t)values[i];
        int64_t  ordered = dtype == FV_UINT64 ? values[i] ^ INT64_MIN : values[i];
        fv_sum_add_integer(sum, negative, magnitude);
        fv_sum_add_integer(squares, false, (unsigned __int128)magnitude * magnitude);
        o->least = FV_MIN(o->least, ordered);
        o->most = FV_MAX(o->most, ordered);
    }
}

/* NaNs are not compared here: the sums count them. Negative zero becomes zero, so that the order does not show. */
#define RANGE(name, type)                                             \
    static void name(fv__object *o, const type *values, int64_t n) {  \
        type lowest = INFINITY, highest = -INFINITY;                  \
        for (int64_t i = 0; i < n; i++) {                             \
            type v = values[i] + (type)0;                             \
            lowest = v < lowest ? v : lowest;                         \
            highest = v > highest ? v : highest;                      \
        }                                                             \
        o->lowest = FV_MIN(o->lowest, (double)lowest);                \
        o->highest = FV_MAX(o->highest, (double)highest);             \
    }
RANGE(range_float, float)
RANGE(range_double, double)

static void add_to_sums(const fv__object_plan *p, fv__object *o, const void *values, int64_t n) {
    fv_sum *sum = sum_of(p, o), *squares = squares_of(p, o);
    switch (p->kind) {
    case FV__WIDE: add_wide(o, sum, squares, p->dtype, values, n); break;
    case FV__FLOAT32:
        range_float(o, values, n);
        fv_sum_add_floats(sum, squares, values, n);
        break;
    case FV__FLOAT64:
        range_double(o, values, n);
        fv_sum_add_doubles(sum, squares, values, n);
        break;
    default: break;
    }
}

void fv__object_settle(const fv__object_plan *p, fv__object *o) {
    if (o->waiting) add_to_sums(p, o, values_of(p, o), o->waiting);
    o->waiting = 0;
}

/* Values wait until a strip of the exact sums is full. */
static void wait(const fv__object_plan *p, fv__object *o, const char *values, int64_t n) {
    while (n) {
        int64_t some = FV_MIN(n, p->values - o->waiting);
        memcpy(values_of(p, o) + (size_t)o->waiting * p->value_bytes, values, (size_t)some * p->value_bytes);
        o->waiting += some;
        values += (size_t)some * p->value_bytes;
        n -= some;
        if (o->waiting == p->values) fv__object_settle(p, o);
    }
}

static void add_values(const fv__object_plan *p, fv__object *o, const void *values, int64_t n) {
    switch (p->dtype) {
    case FV_BOOL:
    case FV_UINT8: add_uint8(o, values, n); break;
    case FV_INT8: add_int8(o, values, n); break;
    case FV_UINT16: add_uint16(o, values, n); break;
    case FV_INT16: add_int16(o, values, n); break;
    case FV_UINT32: add_uint32(o, values, n); break;
    case FV_INT32: add_int32(o, values, n); break;
    default: wait(p, o, values, n); break;
    }
}

void fv__object_add(const fv__object_plan *p, fv__object *o, const int64_t *position, int64_t n, const void *values) {
    int last = p->ndim - 1;
    o->voxels += n;
    for (int d = 0; d < p->ndim; d++) {
        o->sum[d] += n * position[d];
        o->low[d] = FV_MIN(o->low[d], position[d]);
        o->high[d] = FV_MAX(o->high[d], position[d]);
    }
    o->sum[last] += n * (n - 1) / 2;
    o->high[last] = FV_MAX(o->high[last], position[last] + n - 1);
    if (values) add_values(p, o, values, n);
}

/* ---------------------------------------------------------------- records */

static uint8_t *put(uint8_t *to, unsigned __int128 value) {
    for (; value >= 128; value >>= 7) *to++ = (uint8_t)(value | 128);
    *to++ = (uint8_t)value;
    return to;
}

static const uint8_t *get(const uint8_t *from, unsigned __int128 *value) {
    int shift = 0;
    for (*value = 0; *from & 128; shift += 7) *value |= (unsigned __int128)(*from++ & 127) << shift;
    *value |= (unsigned __int128)*from++ << shift;
    return from;
}

static int put_bytes(unsigned __int128 value) {
    uint8_t bytes[20];
    return (int)(put(bytes, value) - bytes);
}

static size_t sums_bytes(const fv__object_plan *p) { return 16 + p->size - p->sum_at; }

int64_t fv__object_most_bytes(const fv__object_plan *p, const int64_t *size, int64_t voxels) {
    int64_t all = 1, bytes = 10;
    for (int d = 0; d < p->ndim; d++) all *= size[d];
    int64_t n = voxels ? voxels : all;
    bytes += put_bytes((uint64_t)n);
    for (int d = 0; d < p->ndim; d++)
        bytes += put_bytes((uint64_t)size[d]) +
                 (n > 1 ? put_bytes((uint64_t)size[d]) + put_bytes((unsigned __int128)(uint64_t)n * (uint64_t)size[d]) : 2);
    if (p->kind == FV__NO_INTENSITY) return bytes;
    if (p->kind >= FV__WIDE) return bytes + 1 + (voxels ? voxels * (int64_t)p->value_bytes : (int64_t)sums_bytes(p));
    if (n == 1) return bytes + 5 + 3;
    return bytes + 5 + 5 + put_bytes((unsigned __int128)(uint64_t)n << 32) +
           put_bytes(((unsigned __int128)(uint64_t)n << 64) - 1);
}

static uint8_t *write_narrow(const fv__object *o, uint8_t *to) {
    to = put(to, (uint64_t)(o->least < 0 ? ~o->least * 2 + 1 : o->least * 2));
    to = put(to, (uint64_t)(o->most - o->least));
    to = put(to, (unsigned __int128)(o->total - (__int128)o->voxels * o->least));
    return put(to, o->voxels == 1 ? 0 : o->squares); /* one voxel's square follows from its value */
}

static uint8_t *write_sums(const fv__object_plan *p, fv__object *o, uint8_t *to) {
    if (o->waiting == o->voxels && (size_t)o->waiting * p->value_bytes < sums_bytes(p)) {
        size_t bytes = (size_t)o->waiting * p->value_bytes;
        *to++ = 0;
        memcpy(to, values_of(p, o), bytes);
        return to + bytes;
    }
    fv__object_settle(p, o);
    *to++ = 1;
    bool integral = p->kind == FV__WIDE;
    memcpy(to, integral ? (void *)&o->least : (void *)&o->lowest, 8);
    memcpy(to + 8, integral ? (void *)&o->most : (void *)&o->highest, 8);
    memcpy(to + 16, sum_of(p, o), p->size - p->sum_at);
    return to + sums_bytes(p);
}

uint8_t *fv__object_write(const fv__object_plan *p, fv__object *o, int64_t label_before, uint8_t *to) {
    to = put(to, (uint64_t)o->label - (uint64_t)label_before);
    to = put(to, (uint64_t)o->voxels);
    for (int d = 0; d < p->ndim; d++) {
        to = put(to, (uint64_t)o->low[d]);
        to = put(to, (uint64_t)(o->high[d] - o->low[d]));
        to = put(to, (uint64_t)(o->sum[d] - o->voxels * o->low[d]));
    }
    if (p->kind == FV__NO_INTENSITY) return to;
    return p->kind == FV__NARROW ? write_narrow(o, to) : write_sums(p, o, to);
}

static const uint8_t *read_narrow(const uint8_t *from, int64_t voxels, fv__object *o) {
    unsigned __int128 least, range, above, squares;
    from = get(get(get(get(from, &least), &range), &above), &squares);
    int64_t low = (uint64_t)least & 1 ? ~(int64_t)(least >> 1) : (int64_t)(least >> 1);
    o->least = FV_MIN(o->least, low);
    o->most = FV_MAX(o->most, low + (int64_t)range);
    o->total += (__int128)voxels * low + (__int128)above;
    o->squares += voxels == 1 ? (uint64_t)low * (uint64_t)low : squares;
    return from;
}

static const uint8_t *read_sums(const fv__object_plan *p, const uint8_t *from, int64_t voxels, fv__object *o) {
    if (!*from++) {
        wait(p, o, (const char *)from, voxels);
        return from + (size_t)voxels * p->value_bytes;
    }
    fv_sum_any sum;
    int64_t    range[2];
    double     real[2];
    memcpy(range, from, sizeof range);
    memcpy(real, from, sizeof real);
    if (p->kind == FV__WIDE) {
        o->least = FV_MIN(o->least, range[0]);
        o->most = FV_MAX(o->most, range[1]);
    } else {
        o->lowest = FV_MIN(o->lowest, real[0]);
        o->highest = FV_MAX(o->highest, real[1]);
    }
    memcpy(&sum, from + 16, fv_sum_size(sum_kinds[p->kind]));
    fv_sum_merge(sum_of(p, o), &sum.sum);
    memcpy(&sum, from + 16 + (p->squares_at - p->sum_at), fv_sum_size(square_kinds[p->kind]));
    fv_sum_merge(squares_of(p, o), &sum.sum);
    return from + sums_bytes(p);
}

const uint8_t *fv__object_read(const fv__object_plan *p, const uint8_t *from, const int64_t *origin, int64_t *label,
                               fv__object *o) {
    unsigned __int128 value, extent, above;
    from = get(from, &value);
    *label = (int64_t)((uint64_t)*label + (uint64_t)value);
    if (!o) return NULL;
    from = get(from, &value);
    int64_t voxels = (int64_t)value;
    o->voxels += voxels;
    for (int d = 0; d < p->ndim; d++) {
        from = get(get(get(from, &value), &extent), &above);
        int64_t low = origin[d] + (int64_t)value;
        o->low[d] = FV_MIN(o->low[d], low);
        o->high[d] = FV_MAX(o->high[d], low + (int64_t)extent);
        o->sum[d] += voxels * low + (int64_t)above;
    }
    if (p->kind == FV__NO_INTENSITY) return from;
    return p->kind == FV__NARROW ? read_narrow(from, voxels, o) : read_sums(p, from, voxels, o);
}

/* ---------------------------------------------------------------- results */

static double unordered(const fv__object_plan *p, int64_t value) {
    return p->dtype == FV_UINT64 ? (double)(uint64_t)(value ^ INT64_MIN) : (double)value;
}

void fv__object_moments(const fv__object_plan *p, fv__object *o, fv_cell cells[4]) {
    fv_sum_integer total, squares;
    fv_sum        *sum = &total.sum, *square = &squares.sum;
    if (p->kind == FV__NARROW) {
        bool negative = o->total < 0;
        fv_sum_init(sum, FV_SUM_INTEGER);
        fv_sum_init(square, FV_SUM_INTEGER);
        fv_sum_add_integer(sum, negative, (unsigned __int128)(negative ? -o->total : o->total));
        fv_sum_add_integer(square, false, o->squares);
    } else {
        fv__object_settle(p, o);
        sum = sum_of(p, o);
        square = squares_of(p, o);
    }
    cells[0].real = fv_sum_mean(sum, o->voxels);
    cells[3].real = sqrt(fv_sum_variance(sum, square, o->voxels));
    if (fv__object_integral(p)) {
        cells[1].integer = o->least;
        cells[2].integer = o->most;
    } else if (p->kind == FV__WIDE) {
        cells[1].real = unordered(p, o->least);
        cells[2].real = unordered(p, o->most);
    } else {
        cells[1].real = sum->nans ? NAN : o->lowest;
        cells[2].real = sum->nans ? NAN : o->highest;
    }
}
