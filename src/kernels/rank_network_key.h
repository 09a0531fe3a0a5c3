/* The part of rank_network.c that is compiled for each type of key: KEY, BITS (unsigned of its size), VECTOR, SIGNED_KEY,
 * K(name). */

#define LANES ((int64_t)(sizeof(VECTOR) / sizeof(KEY)))
#define PITCH ((int64_t)(PITCH_BYTES / sizeof(KEY)))
#define LOAD(p) (*(const FV_PASTE(VECTOR, _unaligned) *)(p))
#define STORE(p, v) (*(FV_PASTE(VECTOR, _unaligned) *)(p) = (v))
#define MIN(a, b) FV_PASTE(VECTOR, _min)(a, b)
#define MAX(a, b) FV_PASTE(VECTOR, _max)(a, b)
#include "rank_networks.h"

/* ---------------------------------------------------------------- keys */

static KEY K(key)(BITS bits, fv_key key) {
    const BITS sign = (BITS)1 << (8 * sizeof(BITS) - 1);
    if (key == FV_KEY_FLIP || (key == FV_KEY_FLOAT && bits & sign)) bits ^= key == FV_KEY_FLIP ? sign : (BITS)(sign - 1);
    return (KEY)bits;
}

static void K(to_keys)(KEY *restrict to, const BITS *restrict from, int64_t stride, fv_key key, int64_t n) {
    if (key == FV_KEY_PLAIN && stride == 1)
        memcpy(to, from, (size_t)n * sizeof *to);
    else if (key == FV_KEY_PLAIN)
        for (int64_t i = 0; i < n; i++) to[i] = (KEY)from[i * stride];
    else if (key == FV_KEY_FLIP)
        for (int64_t i = 0; i < n; i++) to[i] = K(key)(from[i * stride], FV_KEY_FLIP);
    else
        for (int64_t i = 0; i < n; i++) to[i] = K(key)(from[i * stride], FV_KEY_FLOAT);
}

static void K(from_keys)(BITS *restrict to, const KEY *restrict from, int64_t stride, fv_key key, int64_t n) {
    if (key == FV_KEY_PLAIN && stride == 1)
        memcpy(to, from, (size_t)n * sizeof *to);
    else if (key == FV_KEY_PLAIN)
        for (int64_t i = 0; i < n; i++) to[i * stride] = (BITS)from[i];
    else if (key == FV_KEY_FLIP)
        for (int64_t i = 0; i < n; i++) to[i * stride] = (BITS)K(key)((BITS)from[i], FV_KEY_FLIP);
    else
        for (int64_t i = 0; i < n; i++) to[i * stride] = (BITS)K(key)((BITS)from[i], FV_KEY_FLOAT);
}

/* ---------------------------------------------------------------- networks */

static void K(find_compiled)(step *s) {
    for (int i = 0; i < FV_COUNT(K(networks)); i++)
        if (K(networks)[i].lists == s->lists && K(networks)[i].rank == s->rank &&
            !memcmp(K(networks)[i].length, s->length, (size_t)s->lists * sizeof(int)))
            s->compiled = (void (*)(void))K(networks)[i].run;
}

/* Runs a network on the first n elements of rows, rounded up to whole vectors. */
static void K(run_step)(const job *j, const step *s, const KEY *const *list, KEY *out, int64_t n) {
    if (s->compiled) {
        ((void (*)(const KEY *const *, KEY *, int64_t))s->compiled)(list, out, n);
        return;
    }
    KEY **place = (KEY **)j->place, **next = place;
    for (int i = 0; i < s->lists; i++)
        for (int row = 0; row < s->length[i]; row++) *next++ = (KEY *)list[i] + row * PITCH;
    for (int i = 0; i < 2 * MAX_BOX; i++) *next++ = (KEY *)j->temporary + i * PITCH;
    for (int i = 0; i < MAX_BOX; i++) *next++ = out + i * PITCH;
    for (int i = 0; i < s->copies; i++) memcpy(place[s->copy[2 * i + 1]], place[s->copy[2 * i]], (size_t)n * sizeof(KEY));
    for (const fv_comparator *c = s->comparator; c < s->comparator + s->count; c++) {
        const KEY *a = place[c->a], *b = place[c->b];
        KEY *low = c->low == FV_NETWORK_NONE ? NULL : place[c->low], *high = c->high == FV_NETWORK_NONE ? NULL : place[c->high];
        if (!high)
            for (int64_t x = 0; x < n; x += LANES) STORE(low + x, MIN(LOAD(a + x), LOAD(b + x)));
        else if (!low)
            for (int64_t x = 0; x < n; x += LANES) STORE(high + x, MAX(LOAD(a + x), LOAD(b + x)));
        else
            for (int64_t x = 0; x < n; x += LANES) {
                VECTOR va = LOAD(a + x), vb = LOAD(b + x);
                STORE(low + x, MIN(va, vb));
                STORE(high + x, MAX(va, vb));
            }
    }
}

/* ---------------------------------------------------------------- rows */

typedef struct K(tile) {
    const BITS *in;
    int64_t     start, end, origin, count, first, last; /* positions first ... last - 1 of a row are held by the input */
    fv_key      key;
    KEY         constant;
} K(tile);

static void K(place_tile)(const job *j, K(tile) * t, int64_t start) {
    const fv_side *x = &j->side[X];
    t->start = start;
    t->end = FV_MIN(start + j->width, x->end);
    t->origin = start - x->before;
    t->count = t->end - start + x->size - 1;
    t->first = FV_MAX(x->in_start - t->origin, 0);
    t->last = FV_MIN(x->in_end - t->origin, t->count);
    for (int64_t p = 0; p < t->count; p++) j->map[p] = fv__border_index(j->f->box.border, t->origin + p, x->n);
}

/* A row of the input as keys, with what lies beyond the ends of the image. */
static void K(load_row)(const job *j, const K(tile) * t, int64_t z, int64_t y, KEY *to) {
    const fv_side *x = &j->side[X];
    const BITS *row = t->in + (z - j->side[Z].in_start) * j->side[Z].in_stride + (y - j->side[Y].in_start) * j->side[Y].in_stride;
    const BITS *held = row + (t->origin + t->first - x->in_start) * x->in_stride;
    K(to_keys)(to + t->first, held, x->in_stride, t->key, t->last - t->first);
    if (y + AHEAD < j->side[Y].in_end && x->in_stride == 1)
        prefetch_to_read(held + AHEAD * j->side[Y].in_stride, (t->last - t->first) * (int64_t)sizeof *held);
    for (int64_t p = 0; p < t->count; p++) {
        if (p == t->first) p = t->last;
        if (p >= t->count) break;
        int64_t from = j->map[p] - t->origin;
        if (j->map[p] < 0)
            to[p] = t->constant;
        else if (from >= t->first && from < t->last)
            to[p] = to[from];
        else
            to[p] = K(key)(row[(j->map[p] - x->in_start) * x->in_stride], t->key);
    }
}

/* Row y around plane z, sorted along z, as a list of rows. */
static void K(fill_slot)(const job *j, const K(tile) * t, int64_t z, int64_t y, KEY *to) {
    const fv_side *sz = &j->side[Z];
    if (sz->size == 1) {
        K(load_row)(j, t, z, y, to);
        return;
    }
    for (int64_t i = 0; i < sz->size; i++) {
        int64_t source = fv__side_source(sz, j->f->box.border, z - sz->before + i);
        KEY    *row = (KEY *)j->source + i * PITCH;
        if (source >= 0) K(load_row)(j, t, source, y, row);
        j->pointer_z[i] = source >= 0 ? row : (KEY *)j->edge;
    }
    K(run_step)(j, &j->sort_z, (const KEY *const *)j->pointer_z, to, t->count);
}

/* The lists of rows that result row y looks at; returns the columns made of them. */
static const KEY *K(columns)(const job *j, const K(tile) * t, int64_t z, int64_t y) {
    const fv_side *sy = &j->side[Y];
    for (int64_t i = 0; i < sy->size; i++) {
        int64_t row = y - sy->before + i, source = fv__side_source(sy, j->f->box.border, row);
        if (source < 0) {
            j->pointer_y[i] = j->edge;
            continue;
        }
        int64_t slot = (j->ring_by_position ? row + sy->size * j->ring : source) % j->ring;
        KEY    *rows = (KEY *)j->rings + slot * j->side[Z].size * PITCH;
        if (j->held[slot] != source) K(fill_slot)(j, t, z, source, rows);
        j->held[slot] = source;
        j->pointer_y[i] = rows;
    }
    if (!j->merge_y.lists) return j->pointer_y[0];
    K(run_step)(j, &j->merge_y, (const KEY *const *)j->pointer_y, (KEY *)j->list[0], t->count);
    return (KEY *)j->list[0];
}

/* One row of results. */
static void K(row)(const job *j, const K(tile) * t, int64_t z, int64_t y, BITS *out) {
    const KEY *list[MAX_LEVELS + 1] = { K(columns)(j, t, z, y) };
    for (int level = 0; level < j->levels; level++) {
        const KEY *pair[2] = { list[level], list[level] + ((int64_t)1 << level) };
        K(run_step)(j, &j->merge_x[level], pair, (KEY *)j->list[level + 1], t->count - ((int64_t)2 << level) + 1);
        list[level + 1] = (KEY *)j->list[level + 1];
    }
    const KEY *part[MAX_LEVELS + 4];
    for (int i = 0; i < j->parts; i++) part[i] = list[j->part_level[i]] + j->part_shift[i];
    K(run_step)(j, &j->select, part, (KEY *)j->result, t->end - t->start);
    K(from_keys)(out, (const KEY *)j->result, j->side[X].out_stride, t->key, t->end - t->start);
    if (y + AHEAD < j->side[Y].end && j->side[X].out_stride == 1)
        prefetch_to_write(out + AHEAD * j->side[Y].out_stride, (t->end - t->start) * (int64_t)sizeof *out);
}

static void K(channel)(const job *j, const K(tile) * model, BITS *out) {
    const fv_side *sz = &j->side[Z], *sy = &j->side[Y], *sx = &j->side[X];
    for (int64_t z = sz->start; z < sz->end; z++)
        for (int64_t x = sx->start; x < sx->end; x += j->width) {
            K(tile) t = *model;
            K(place_tile)(j, &t, x);
            for (int64_t i = 0; i < j->ring; i++) j->held[i] = -1;
            for (int64_t y = sy->start; y < sy->end; y++) K(row)
            (j, &t, z, y,
             out + (z - sz->start) * sz->out_stride + (y - sy->start) * sy->out_stride + (x - sx->start) * sx->out_stride);
        }
}

static void K(region)(job *j, const fv_run *r) {
    K(tile) t = { .key = fv__key_of(j->dtype, SIGNED_KEY) };
    BITS constant;
    FV_PASTE(fv_kernels_, FV_ISA).convert(&constant, j->dtype, &j->f->box.cval, FV_FLOAT64, 1);
    t.constant = K(key)(constant, t.key);
    for (int64_t i = 0; i < j->side[Z].size * PITCH; i++) ((KEY *)j->edge)[i] = t.constant;
    step *steps[] = { &j->sort_z, &j->merge_y, &j->select };
    for (int i = 0; i < 3 + j->levels; i++) {
        step *s = i < 3 ? steps[i] : &j->merge_x[i - 3];
        K(find_compiled)(s);
        prepare_step(j, s);
    }
    fv_channels c;
    for (fv__channels_begin(&c, &j->f->box, r); fv__channels_next(&c);) {
        t.in = c.in;
        K(channel)(j, &t, c.out);
    }
}

#undef KEY
#undef BITS
#undef VECTOR
#undef SIGNED_KEY
#undef K
#undef LANES
#undef PITCH
#undef LOAD
#undef STORE
#undef MIN
#undef MAX
