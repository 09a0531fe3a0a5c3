/* The part of separable.c that is written once and compiled for float and for double: REAL, VECTOR, LANES, R(name). */

#define BLOCK (LANES > GROUP ? LANES : GROUP)

/* ---------------------------------------------------------------- sums of one block
 * Element i along the axis is the vector at pointer[i] + column, or at base + i * step where pointer is NULL. */

#define AT(i) (*(const FV_PASTE(VECTOR, _unaligned) *)(pointer ? pointer[i] + column : base + (i)*step))

/* sum[j] = weight[0] * element[j] + weight[1] * element[j + 1] + ..., each term fused into the sum in this order. */
FV_INLINE void R(weigh)(const REAL *const *pointer, int64_t column, const REAL *base, int64_t step, const REAL *weight,
                        int64_t taps, VECTOR *sum, const int count) {
    if (taps >= count) {
#pragma GCC unroll 16
        for (int i = 0; i < count; i++) {
            VECTOR v = AT(i);
#pragma GCC unroll 16
            for (int j = 0; j < i; j++) sum[j] = FV_PASTE(VECTOR, _fma)(FV_PASTE(VECTOR, _splat)(weight[i - j]), v, sum[j]);
            sum[i] = v * weight[0];
        }
        for (int64_t i = count; i < taps; i++) {
            VECTOR      v = AT(i);
            const REAL *w = weight + i;
#pragma GCC unroll 16
            for (int j = 0; j < count; j++) sum[j] = FV_PASTE(VECTOR, _fma)(FV_PASTE(VECTOR, _splat)(w[-j]), v, sum[j]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < count - 1; i++) {
            VECTOR v = AT(taps + i);
#pragma GCC unroll 16
            for (int j = i + 1; j < count; j++)
                sum[j] = FV_PASTE(VECTOR, _fma)(FV_PASTE(VECTOR, _splat)(weight[taps + i - j]), v, sum[j]);
        }
        return;
    }
#pragma GCC unroll 16
    for (int j = 0; j < count; j++) sum[j] = AT(j) * weight[0];
    for (int64_t k = 1; k < taps; k++)
#pragma GCC unroll 16
        for (int j = 0; j < count; j++) sum[j] = FV_PASTE(VECTOR, _fma)(FV_PASTE(VECTOR, _splat)(weight[k]), AT(j + k), sum[j]);
}

/* sum[j] = element[j] + ... + element[j + taps - 1]. Windows longer than a group share the elements that all windows of the
 * group hold; what a window has before and after these is added to it. */
FV_INLINE void R(add)(const REAL *const *pointer, int64_t column, const REAL *base, int64_t step, int64_t taps, VECTOR *sum,
                      const int count) {
    if (taps <= GROUP) {
#pragma GCC unroll 16
        for (int j = 0; j < count; j++) sum[j] = AT(j);
        for (int64_t k = 1; k < taps; k++)
#pragma GCC unroll 16
            for (int j = 0; j < count; j++) sum[j] += AT(j + k);
        return;
    }
#pragma GCC unroll 2
    for (int g = 0; g < count; g += GROUP) {
        VECTOR shared = AT(g + GROUP - 1);
        for (int64_t i = g + GROUP; i < g + taps; i++) shared += AT(i);
        VECTOR before = AT(g + GROUP - 2), after = AT(g + taps);
        sum[g + GROUP - 1] = shared;
        sum[g + GROUP - 2] = before + shared;
#pragma GCC unroll 16
        for (int j = GROUP - 3; j >= 0; j--) {
            before = AT(g + j) + before;
            sum[g + j] = before + shared;
        }
        sum[g + 1] += after;
#pragma GCC unroll 16
        for (int j = 2; j < GROUP; j++) {
            after += AT(g + taps + j - 1);
            sum[g + j] += after;
        }
    }
}
#undef AT

/* Rows of one block summed along z, for columns first ... last - 1: plane k of the result is `planes` apart. */
static void R(sum_planes)(const job *j, const REAL *const *pointer, int64_t columns, REAL *to, int64_t plane) {
    const int64_t taps = j->side[Z].size;
    const REAL   *weight = j->weights[Z];
    for (int64_t c = 0; c < columns; c += LANES) {
        int64_t column = columns >= LANES ? FV_MIN(c, columns - LANES) : c;
        VECTOR  sum[BLOCK];
        if (j->s->weights)
            R(weigh)(pointer, column, NULL, 0, weight, taps, sum, BLOCK);
        else
            R(add)(pointer, column, NULL, 0, taps, sum, BLOCK);
#pragma GCC unroll 16
        for (int k = 0; k < BLOCK; k++) FV_PASTE(VECTOR, _store)(to + k * plane + column, sum[k]);
    }
}

/* Rows summed along y into the strip, where a column's BLOCK values are adjacent. */
static void R(sum_rows)(const job *j, const REAL *const *pointer, int64_t columns, REAL *strip) {
    const int64_t taps = j->side[Y].size;
    const REAL   *weight = j->weights[Y];
    for (int64_t c = 0; c < columns; c += LANES) {
        int64_t column = columns >= LANES ? FV_MIN(c, columns - LANES) : c;
        VECTOR  sum[BLOCK];
        if (j->s->weights)
            R(weigh)(pointer, column, NULL, 0, weight, taps, sum, BLOCK);
        else
            R(add)(pointer, column, NULL, 0, taps, sum, BLOCK);
#pragma GCC unroll 16
        for (int b = 0; b < BLOCK; b += LANES) {
            FV_PASTE(VECTOR, _transpose)(sum + b);
#pragma GCC unroll 16
            for (int l = 0; l < LANES; l++) FV_PASTE(VECTOR, _store)(strip + (column + l) * BLOCK + b, sum[b + l]);
        }
    }
}

/* Stores the part of a vector that lies in the columns [first, last); column is that of its first element. */
FV_INLINE void R(put)(REAL *row, int64_t stride, int64_t column, int64_t first, int64_t last, VECTOR v) {
    if (stride == 1 && column >= first && column + LANES <= last) {
        FV_PASTE(VECTOR, _store)(row + (column - first), v);
        return;
    }
    REAL    part[LANES];
    int64_t from = FV_MAX(first - column, 0), count = FV_MIN(last - column, LANES) - from;
    if (count <= 0) return;
    FV_PASTE(VECTOR, _store)(part, v);
    row += (column + from - first) * stride;
    if (stride == 1)
        memcpy(row, part + from, (size_t)count * sizeof *row);
    else
        for (int64_t l = 0; l < count; l++) row[l * stride] = part[from + l];
}

/* The strip summed along x. Rows first_row ... last_row - 1 of it are wanted, and columns first ... last - 1 of the tile;
 * `to` is the place of the first of them. */
static void R(sum_columns)(const job *j, const REAL *strip, REAL *to, int first_row, int last_row, int64_t first, int64_t last) {
    const fv_side *x = &j->side[X], *y = &j->side[Y];
    const REAL    *weight = j->weights[X];
    const VECTOR   count = FV_PASTE(VECTOR, _splat)((REAL)(j->side[Z].size * y->size * x->size));
    const bool     whole = first_row == 0 && last_row == BLOCK && x->out_stride == 1;
    for (int64_t c = first / GROUP * GROUP; c < last; c += BLOCK)
        for (int b = 0; b < BLOCK; b += LANES) {
            VECTOR      sum[BLOCK];
            const REAL *base = strip + c * BLOCK + b;
            if (j->s->weights)
                R(weigh)(NULL, 0, base, BLOCK, weight, x->size, sum, BLOCK);
            else {
                R(add)(NULL, 0, base, BLOCK, x->size, sum, BLOCK);
#pragma GCC unroll 16
                for (int k = 0; k < BLOCK; k++) sum[k] /= count;
            }
#pragma GCC unroll 16
            for (int k = 0; k < BLOCK; k += LANES) FV_PASTE(VECTOR, _transpose)(sum + k);
            if (whole && c >= first && c + BLOCK <= last) {
#pragma GCC unroll 16
                for (int k = 0; k < BLOCK; k++)
                    FV_PASTE(VECTOR, _store)(to + (b + k % LANES) * y->out_stride + c - first + k / LANES * LANES, sum[k]);
                continue;
            }
            for (int k = 0; k < BLOCK; k++) {
                int row = b + k % LANES;
                if (row >= first_row && row < last_row)
                    R(put)(to + (row - first_row) * y->out_stride, x->out_stride, c + k / LANES * LANES, first, last, sum[k]);
            }
        }
}

/* ---------------------------------------------------------------- rows and tiles */

/* Weights, and rows of the constant as each direction's sum sees it: after the sums made before. */
static void R(prepare)(job *j) {
    double factor = 1;
    for (int d = 0; d < 3; d++) {
        int64_t taps = j->side[d].size;
        int     k = d - 3 + j->s->box.naxes;
        for (int64_t i = 0; i < j->pitch; i++) ((REAL *)j->edge[d])[i] = (REAL)(j->s->box.cval * factor);
        if (!j->s->weights) {
            factor *= (double)taps;
            continue;
        }
        j->exact[0] = 1;
        if (k >= 0) j->s->weights(j->s->params, k, j->exact);
        double sum = 0;
        for (int64_t i = 0; i < taps; i++) ((REAL *)j->weights[d])[i] = (REAL)j->exact[i], sum += j->exact[i];
        if (j->s->padded) factor *= sum;
    }
}

/* One tile: columns [start, end) of the results. Positions count from `origin`, the first column that a result looks at, to
 * `count`, behind the last one, or behind the one that is mirrored to the first where that is further (a box of even size
 * around a single column). Positions first ... last - 1 are summed from rows, the others follow from these by the boundary
 * mode. Where the image wraps, rows are copied whole, so that all positions are summed. */
typedef struct R(tile) {
    const char *in;
    REAL       *out;
    bool        in_place, wraps;
    int64_t     start, end, origin, count, first, last;
} R(tile);

static void R(place_tile)(const job *j, R(tile) * t, int64_t start) {
    const fv_side *x = &j->side[X];
    t->start = start;
    t->end = FV_MIN(start + j->width, x->end);
    t->origin = start - x->before;
    t->count = t->end - start + x->size - 1;
    if (j->s->box.border == FV_BORDER_MIRROR) t->count = FV_MAX(t->count, FV_MIN(x->n - t->origin, 1 - 2 * t->origin));
    t->wraps = j->s->box.border == FV_BORDER_WRAP && (t->origin < 0 || t->origin + t->count > x->n);
    t->first = t->wraps ? 0 : FV_MAX(x->in_start - t->origin, 0);
    t->last = t->wraps ? t->count : FV_MIN(x->in_end - t->origin, t->count);
    t->in_place = j->in_place && !t->wraps && t->last - t->first >= LANES;
    for (int64_t p = 0; p < t->count; p++) j->map[p] = fv__border_index(j->s->box.border, t->origin + p, x->n);
    /* The last block looks behind them, in vain; what lies there from before may be numbers that are slow to compute with. */
    memset((REAL *)j->strip + t->count * BLOCK, 0, (size_t)FV_MAX(j->span + 2 * BLOCK - t->count, 0) * BLOCK * sizeof(REAL));
}

/* A row of the input from position t->first on: where it is, or copied to `copy`. */
static const REAL *R(source_row)(const job *j, const R(tile) * t, int64_t z, int64_t y, REAL *copy) {
    const fv_side *x = &j->side[X];
    int64_t        offset = (z - j->side[Z].in_start) * j->side[Z].in_stride + (y - j->side[Y].in_start) * j->side[Y].in_stride;
    int64_t        size = (int64_t)fv_dtype_size(j->dtype);
    const char    *row = t->in + offset * size;
    if (t->in_place) return (const REAL *)row + t->origin + t->first - x->in_start;
    for (int64_t p = t->first, run; p < t->last; p += run) { /* runs of neighbours; more than one only where the image wraps */
        int64_t column = j->map[p];
        bool    held = column >= x->in_start && column < x->in_end; /* if not, no result looks at it */
        run = held ? FV_MIN(t->last - p, x->in_end - column) : 1;
        if (held) R(gather)(copy + p - t->first, row + (column - x->in_start) * x->in_stride * size, j->dtype, x->in_stride, run);
    }
    return copy;
}

/* Puts row y of the block of planes at z into slot `slot` of the ring. */
static void R(fill_slot)(const job *j, const R(tile) * t, int64_t z, int64_t y, int64_t slot) {
    REAL *to = (REAL *)j->rows + slot * j->pitch;
    if (j->planes == 1) {
        R(source_row)(j, t, z, y, to);
        return;
    }
    for (int64_t i = 0; i < j->side[Z].size + BLOCK - 1; i++) {
        int64_t source = fv__side_source(&j->side[Z], j->s->box.border, z - j->side[Z].before + i);
        j->pointer_z[i] = source < 0 ? j->edge[Z] : R(source_row)(j, t, source, y, (REAL *)j->staged + i * j->pitch);
    }
    R(sum_planes)(j, (const REAL *const *)j->pointer_z, t->last - t->first, to, j->ring * j->pitch);
}

/* Finds or makes the rows that the block of results from row y on looks at: pointers to the first plane's. */
static void R(find_rows)(const job *j, const R(tile) * t, int64_t z, int64_t y) {
    const fv_side *sy = &j->side[Y];
    bool           ringed = j->planes > 1 || !t->in_place;
    for (int64_t i = 0; i < sy->size + BLOCK - 1; i++) {
        int64_t row = y - sy->before + i, source = fv__side_source(sy, j->s->box.border, row);
        j->slot[i] = -1;
        if (source < 0)
            j->pointer_y[i] = j->edge[Y];
        else if (!ringed)
            j->pointer_y[i] = R(source_row)(j, t, z, source, NULL);
        else {
            int64_t slot = (j->ring_by_position ? row + (sy->before + j->ring) * j->ring : source) % j->ring;
            if (j->held[slot] != source) R(fill_slot)(j, t, z, source, slot);
            j->held[slot] = source;
            j->slot[i] = slot;
            j->pointer_y[i] = (REAL *)j->rows + slot * j->pitch;
        }
    }
}

/* Positions outside the rows: copies of the mirrored, nearest ones, or the constant. */
static void R(extend_strip)(const job *j, const R(tile) * t, REAL *strip) {
    bool constant = j->s->box.border == FV_BORDER_CONSTANT;
    for (int64_t p = 0; p < t->count; p++) {
        if (p == t->first) p = t->last;
        if (p >= t->count) break;
        int64_t from = j->map[p] - t->origin;
        if (constant && j->map[p] < 0)
            memcpy(strip + p * BLOCK, j->edge[X], BLOCK * sizeof(REAL));
        else if (from >= t->first && from < t->last)
            memcpy(strip + p * BLOCK, strip + from * BLOCK, BLOCK * sizeof(REAL));
    }
}

/* The results of a block of planes from z on and a block of rows from y on, in one tile. */
static void R(block)(const job *j, const R(tile) * t, int64_t z, int64_t y) {
    const fv_side *sz = &j->side[Z], *sy = &j->side[Y], *sx = &j->side[X];
    int64_t        first_row = FV_MAX(sy->start - y, 0), last_row = FV_MIN(sy->end - y, BLOCK);
    int64_t        first = FV_MAX(sx->start - t->start, 0), last = t->end - t->start;
    R(find_rows)(j, t, z, y);
    for (int64_t k = 0; k < j->planes && z + k < sz->end; k++) {
        if (z + k >= sz->start) {
            REAL *to = t->out + (z + k - sz->start) * sz->out_stride + (y + first_row - sy->start) * sy->out_stride +
                       (t->start + first - sx->start) * sx->out_stride;
            R(sum_rows)(j, (const REAL *const *)j->pointer_y, t->last - t->first, (REAL *)j->strip + t->first * BLOCK);
            R(extend_strip)(j, t, j->strip);
            R(sum_columns)(j, j->strip, to, (int)first_row, (int)last_row, first, last);
        }
        for (int64_t i = 0; i < sy->size + BLOCK - 1; i++)
            if (j->slot[i] >= 0) j->pointer_y[i] = (const REAL *)j->pointer_y[i] + j->ring * j->pitch;
    }
}

/* One channel of the region; in and out point at its first voxels. */
static void R(channel)(const job *j, const char *in, REAL *out) {
    for (int64_t z = j->anchor[Z]; z < j->side[Z].end; z += j->planes)
        for (int64_t x = j->anchor[X]; x < j->side[X].end; x += j->width) {
            R(tile) t = { .in = in, .out = out };
            R(place_tile)(j, &t, x);
            for (int64_t i = 0; i < j->ring; i++) j->held[i] = -1;
            for (int64_t y = j->anchor[Y]; y < j->side[Y].end; y += BLOCK) R(block)(j, &t, z, y);
        }
}

#undef BLOCK
