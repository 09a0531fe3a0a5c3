/* Exact accumulation for one label, and its record; see object.h. */
#include "ops/measurement/object.h"
#include "ops/measurement/windows.h"

fv__object_plan fv__object_planned(const fv_image_type *labels, const fv_dtype *intensity, int nchannels,
                                   fv__object_wishes wishes) {
    fv__object_plan p = { .ndim = labels->ndim,
                          .place = wishes.place,
                          .second = wishes.second,
                          .windows = wishes.windows,
                          .border = wishes.border,
                          .mesh = wishes.mesh,
                          .nchannels = nchannels,
                          .size = sizeof(fv__object) };
    p.nspatial = fv_image_type_spatial(labels, p.spatial);
    if (p.windows) p.configurations = p.nspatial == 3 ? 256 : 16;
    p.counts_at = p.size;
    p.size += ((size_t)p.configurations * sizeof(uint32_t) + 15) & ~(size_t)15;
    p.shapes_at = p.size;
    p.size += p.mesh ? (size_t)p.configurations * sizeof(int64_t) : 0;
    for (int i = 0; i < nchannels; i++) {
        p.channel[i] = fv__channel_planned(intensity[i], labels->ndim, wishes.spread, wishes.weighted);
        p.channel_at[i] = p.size;
        p.size += p.channel[i].size;
    }
    return p;
}

void fv__object_start(const fv__object_plan *p, fv__object *o, int64_t label) {
    *o = (fv__object){ .label = label };
    for (int d = 0; d < p->ndim; d++) o->low[d] = INT64_MAX, o->high[d] = INT64_MIN;
    memset(fv__object_counts(p, o), 0, (size_t)p->configurations * sizeof(uint32_t));
    if (p->mesh) memset(fv__object_shapes(p, o), 0, (size_t)p->configurations * sizeof(int64_t));
    for (int i = 0; i < p->nchannels; i++) fv__channel_start(&p->channel[i], fv__object_channel(p, o, i));
}

/* Products of the coordinates of a row: those along the row run from a to a + n - 1, the others stay. */
static void add_second(const fv__object_plan *p, fv__object *o, const int64_t *position, int64_t n) {
    int last = p->ndim - 1, k = 0;
    for (int i = 0; i < p->nspatial; i++)
        for (int j = i; j < p->nspatial; j++, k++) {
            __int128 a = position[p->spatial[i]], b = position[p->spatial[j]], row = (__int128)n * (n - 1) / 2;
            o->second[k] += a * b * n;
            if (p->spatial[j] != last) continue;
            o->second[k] += i == j ? 2 * a * row + (__int128)(n - 1) * n * (2 * n - 1) / 6 : a * row;
        }
}

static void add_place(const fv__object_plan *p, fv__object *o, const int64_t *position, int64_t n) {
    int last = p->ndim - 1;
    for (int d = 0; d < p->ndim; d++) {
        o->sum[d] += n * position[d];
        o->low[d] = FV_MIN(o->low[d], position[d]);
        o->high[d] = FV_MAX(o->high[d], position[d]);
    }
    o->sum[last] += n * (n - 1) / 2;
    o->high[last] = FV_MAX(o->high[last], position[last] + n - 1);
    if (p->second) add_second(p, o, position, n);
}

void fv__object_add(const fv__object_plan *p, fv__object *o, const int64_t *position, int64_t n, const void *const *values) {
    o->voxels += n;
    if (p->place) add_place(p, o, position, n);
    for (int i = 0; i < p->nchannels; i++) fv__channel_add(&p->channel[i], fv__object_channel(p, o, i), position, n, values[i]);
}

/* ---------------------------------------------------------------- records */

int64_t fv__object_most_bytes(const fv__object_plan *p, const int64_t *size, int64_t voxels) {
    int64_t all = 1, bytes = 10, longest = 1;
    for (int d = 0; d < p->ndim; d++) all *= size[d], longest = FV_MAX(longest, size[d]);
    unsigned __int128 n = (unsigned __int128)(voxels ? voxels : all), length = (unsigned __int128)longest;
    bytes += fv__varint_bytes(n);
    for (int d = 0; p->place && d < p->ndim; d++)
        bytes += fv__varint_bytes((uint64_t)size[d]) +
                 (n > 1 ? fv__varint_bytes((uint64_t)size[d]) + fv__varint_bytes(n * (uint64_t)size[d]) : 2);
    if (p->second) bytes += FV__SECOND * (n > 1 ? fv__varint_bytes(n * length * length) : 1);
    int64_t counts = 0; /* windows hold voxels of the next chunks, too */
    if (p->windows) counts += fv__varint_bytes(64 * n + 64) + 2 + (voxels == 1 ? 0 : FV__PAIRS * fv__varint_bytes(8 * n));
    if (p->mesh) counts += 2 + FV_MIN(p->configurations, voxels ? 8 * voxels : INT64_MAX) * (2 + fv__varint_bytes(8 * n));
    if (p->border) counts += FV__BORDERS * fv__varint_bytes(n);
    bytes += counts;
    if (counts && voxels) bytes += 3 * (11 + counts);
    for (int i = 0; i < p->nchannels; i++) bytes += fv__channel_most_bytes(&p->channel[i], size, voxels);
    return bytes;
}

/* Sum of (a - low a)(b - low b) from the plain sums. */
static __int128 about_corner(const fv__object *o, __int128 second, int a, int b) {
    __int128 x = o->low[a], y = o->low[b];
    return second - y * o->sum[a] - x * o->sum[b] + x * y * o->voxels;
}

static uint8_t *write_shape(const fv__object_plan *p, const fv__object *o, const int64_t *origin, uint8_t *to) {
    for (int d = 0; d < p->ndim; d++) {
        to = fv__varint_put(to, (uint64_t)(o->low[d] - origin[d]));
        to = fv__varint_put(to, (uint64_t)(o->high[d] - o->low[d]));
        to = fv__varint_put(to, (uint64_t)(o->sum[d] - o->voxels * o->low[d]));
    }
    for (int i = 0, k = 0; p->second && i < p->nspatial; i++)
        for (int j = i; j < p->nspatial; j++, k++)
            to = fv__varint_put(to, (unsigned __int128)about_corner(o, o->second[k], p->spatial[i], p->spatial[j]));
    return to;
}

static uint8_t *write_shapes(const fv__object_plan *p, fv__object *o, uint8_t *to) {
    const int64_t *shapes = fv__object_shapes(p, o);
    uint64_t       met = 0;
    for (int c = 0; c < p->configurations; c++) met += shapes[c] != 0;
    to = fv__varint_put(to, met);
    for (int c = 0; c < p->configurations; c++)
        if (shapes[c]) to = fv__varint_put(fv__varint_put(to, (uint64_t)c), (uint64_t)shapes[c]);
    return to;
}

uint8_t *fv__object_write(const fv__object_plan *p, fv__object *o, int64_t label_before, const int64_t *origin, uint8_t *to) {
    to = fv__varint_put(to, (uint64_t)o->label - (uint64_t)label_before);
    to = fv__varint_put(to, (uint64_t)o->voxels);
    if (p->place && o->voxels) to = write_shape(p, o, origin, to);
    if (p->windows) {
        fv__windows_settle(p, o);
        unsigned mask = 0;
        for (int i = 0; i < FV__PAIRS; i++) mask |= (unsigned)(o->pairs[i] != 0) << i;
        to = fv__varint_put(fv__varint_put(to, fv__zigzag(o->euler)), mask);
        for (int i = 0; i < FV__PAIRS; i++)
            if (o->pairs[i]) to = fv__varint_put(to, (uint64_t)o->pairs[i]);
    }
    for (int i = 0; p->border && i < FV__BORDERS; i++) to = fv__varint_put(to, (uint64_t)o->border[i]);
    if (p->mesh) to = write_shapes(p, o, to);
    for (int i = 0; o->voxels && i < p->nchannels; i++)
        to = fv__channel_write(&p->channel[i], fv__object_channel(p, o, i), o->voxels, o->low, o->sum, origin, to);
    return to;
}

/* The part's own lowest corner and sums are kept apart in `part`: moments and channels refer to them. */
static const uint8_t *read_shape(const fv__object_plan *p, const uint8_t *from, const int64_t *origin, fv__object *part,
                                 fv__object *o) {
    unsigned __int128 value, extent, above;
    for (int d = 0; d < p->ndim; d++) {
        from = fv__varint_get(fv__varint_get(fv__varint_get(from, &value), &extent), &above);
        part->low[d] = origin[d] + (int64_t)value;
        part->sum[d] = part->voxels * part->low[d] + (int64_t)above;
        o->low[d] = FV_MIN(o->low[d], part->low[d]);
        o->high[d] = FV_MAX(o->high[d], part->low[d] + (int64_t)extent);
        o->sum[d] += part->sum[d];
    }
    for (int i = 0, k = 0; p->second && i < p->nspatial; i++)
        for (int j = i; j < p->nspatial; j++, k++) {
            from = fv__varint_get(from, &value);
            o->second[k] += (__int128)value - about_corner(part, 0, p->spatial[i], p->spatial[j]);
        }
    return from;
}

const uint8_t *fv__object_read(const fv__object_plan *p, const uint8_t *from, const int64_t *origin, int64_t *label,
                               fv__object *o) {
    unsigned __int128 value;
    fv__object        part = { 0 };
    from = fv__varint_get(from, &value);
    *label = (int64_t)((uint64_t)*label + (uint64_t)value);
    if (!o) return NULL;
    from = fv__varint_get(from, &value);
    part.voxels = (int64_t)value;
    o->voxels += part.voxels;
    if (p->place && part.voxels) from = read_shape(p, from, origin, &part, o);
    if (p->windows) {
        unsigned __int128 mask;
        from = fv__varint_get(fv__varint_get(from, &value), &mask);
        o->euler += (int64_t)fv__zagzig(value);
        for (int i = 0; i < FV__PAIRS; i++) {
            if (!(mask >> i & 1)) continue;
            from = fv__varint_get(from, &value);
            o->pairs[i] += (int64_t)value;
        }
    }
    for (int i = 0; p->border && i < FV__BORDERS; i++) {
        from = fv__varint_get(from, &value);
        o->border[i] += (int64_t)value;
    }
    if (p->mesh) {
        unsigned __int128 met, shape;
        for (from = fv__varint_get(from, &met); met; met--) {
            from = fv__varint_get(fv__varint_get(from, &shape), &value);
            fv__object_shapes(p, o)[shape] += (int64_t)value;
        }
    }
    for (int i = 0; part.voxels && i < p->nchannels; i++)
        from = fv__channel_read(&p->channel[i], from, part.voxels, part.low, part.sum, origin, fv__object_channel(p, o, i));
    return from;
}
