/* Interpolation of order 1 and 3 in float or double; included by interpolate.c with REAL, VECTOR, LANES and R. */

/* Weights of the two or four neighbours at fraction t. */
FV_INLINE void R(weigh)(int order, REAL t, REAL w[4]) {
    REAL u = 1 - t;
    if (order == 1) {
        w[0] = u;
        w[1] = t;
        return;
    }
    const REAL sixth = (REAL)1 / 6;
    w[0] = u * u * u * sixth;
    w[1] = (t * t * (t - 2) * 3 + 4) * sixth;
    w[2] = (u * u * (u - 2) * 3 + 4) * sixth;
    w[3] = t * t * t * sixth;
}

/* ---------------------------------------------------------------- one group of LANES voxels anywhere */

FV_INLINE VECTOR R(line)(const REAL *data, const int64_t *at, VECTOR t) {
    VECTOR a, b;
    R(pairs)(data, at, &a, &b);
    return a * (1 - t) + b * t;
}

FV_INLINE VECTOR R(plane)(const REAL *data, const int64_t *at, int64_t row, VECTOR ty, VECTOR tx) {
    return R(line)(data, at, tx) * (1 - ty) + R(line)(data + row, at, tx) * ty;
}

FV_INLINE VECTOR R(cube)(const REAL *data, const int64_t *at, const int64_t *stride, const VECTOR *t, int naxes) {
    if (naxes == 1) return R(line)(data, at, t[0]);
    if (naxes == 2) return R(plane)(data, at, stride[0], t[0], t[1]);
    return R(plane)(data, at, stride[1], t[1], t[2]) * (1 - t[0]) + R(plane)(data + stride[0], at, stride[1], t[1], t[2]) * t[0];
}

/* t: fractions by axis, of all LANES voxels. */
FV_INLINE void R(linear)(const REAL *data, const int64_t *at, const int64_t *stride, const REAL *t, int naxes, REAL *out) {
    VECTOR f[3], v;
    for (int k = 0; k < naxes; k++) memcpy(&f[k], t + k * STRIP, sizeof f[k]);
    v = R(cube)(data, at, stride, f, naxes);
    memcpy(out, &v, sizeof v);
}

typedef REAL R(four) __attribute__((vector_size(4 * sizeof(REAL))));
typedef REAL R(four_anywhere) __attribute__((vector_size(4 * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));

FV_INLINE void R(cubic_rows)(const REAL *data, int64_t row, const REAL w[4], R(four) * sum) {
    *sum = *(const R(four_anywhere) *)data * w[0];
    for (int i = 1; i < 4; i++) *sum += *(const R(four_anywhere) *)(data + i * row) * w[i];
}

/* The four weights of LANES voxels. */
FV_INLINE void R(weigh_group)(const REAL *t_, REAL w[4][LANES]) {
    const REAL sixth = (REAL)1 / 6;
    VECTOR     t, u, v[4];
    memcpy(&t, t_, sizeof t);
    u = 1 - t;
    v[0] = u * u * u * sixth;
    v[1] = (t * t * (t - 2) * 3 + 4) * sixth;
    v[2] = (u * u * (u - 2) * 3 + 4) * sixth;
    v[3] = t * t * t * sixth;
    memcpy(w, v, sizeof v);
}

FV_INLINE void R(cubic)(const REAL *data, const int64_t *at, const int64_t *stride, const REAL *t, int naxes, REAL *out) {
    REAL w[3][4][LANES];
    for (int k = 0; k < naxes; k++) R(weigh_group)(t + k * STRIP, w[k]);
    for (int l = 0; l < LANES; l++) {
        const REAL *p = data + at[l];
        REAL        y[4];
        R(four) sum, plane;
        for (int i = 0; i < 4 && naxes > 1; i++) y[i] = w[naxes - 2][i][l];
        if (naxes == 1)
            sum = *(const R(four_anywhere) *)p;
        else if (naxes == 2)
            R(cubic_rows)(p, stride[0], y, &sum);
        else {
            R(cubic_rows)(p, stride[1], y, &plane);
            sum = plane * w[0][0][l];
            for (int i = 1; i < 4; i++) {
                R(cubic_rows)(p + i * stride[0], stride[1], y, &plane);
                sum += plane * w[0][i][l];
            }
        }
        sum *= (R(four)){ w[naxes - 1][0][l], w[naxes - 1][1][l], w[naxes - 1][2][l], w[naxes - 1][3][l] };
        out[l] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}

/* order and naxes are constants where this is inlined. */
FV_INLINE void R(group)(int order, int naxes, const REAL *data, const int64_t *at, const int64_t *stride, const REAL *t,
                        REAL *out) {
    if (order == 1)
        R(linear)(data, at, stride, t, naxes, out);
    else
        R(cubic)(data, at, stride, t, naxes, out);
}

/* A group that touches the border: the neighbours of each voxel are put together as the boundary mode says, and the same
 * arithmetic runs on them, so that a voxel does not notice in which way it was done. */
FV_INLINE void R(border_group)(const sampler *s, int order, int naxes, double *const c[3], int64_t first, REAL *out) {
    REAL    patch[LANES][64], t[3 * STRIP];
    int64_t at[LANES], stride[3], index[3][4];
    bool    outside[LANES];
    int     taps = order + 1;
    for (int k = naxes - 1, step = 1; k >= 0; k--, step *= taps) stride[k] = step;
    for (int l = 0; l < LANES; l++) {
        at[l] = l * 64;
        outside[l] = false;
        for (int k = 0; k < naxes; k++) {
            double where = extend_coordinate(s, k, c[k][first + l], &outside[l]), low = floor(where);
            t[k * STRIP + l] = (REAL)(where - low);
            for (int i = 0; i < taps; i++)
                index[k][i] = outside[l] ? -1 : extend_index(s->mode, (int64_t)low + i - (order == 3), s->n[k]);
        }
        for (int i = 0; i < (naxes == 1 ? taps : naxes == 2 ? taps * taps : taps * taps * taps); i++) {
            int64_t offset = 0;
            bool    held = !outside[l];
            for (int k = naxes - 1, rest = i; k >= 0; k--, rest /= taps) {
                held = held && index[k][rest % taps] >= 0;
                offset += (index[k][rest % taps] - s->start[k]) * s->stride[k];
            }
            patch[l][i] = held ? ((const REAL *)s->data)[offset] : (REAL)s->cval;
        }
    }
    R(group)(order, naxes, patch[0], at, stride, t, out);
    for (int l = 0; l < LANES; l++)
        if (outside[l]) out[l] = (REAL)s->cval;
}

/* n <= STRIP voxels at coordinates c; each c has room for STRIP. */
FV_INLINE void R(strip)(const sampler *s, int order, int naxes, int64_t n, double *const c[3], REAL *out) {
    REAL    t[3 * STRIP], result[LANES] = { 0 };
    int64_t at[STRIP], inside[STRIP], whole = (n + LANES - 1) / LANES * LANES;
    double  offset[STRIP] = { 0 };
    for (int64_t i = 0; i < whole; i++) inside[i] = -1;
    for (int k = 0; k < naxes; k++) {
        double before = order == 3, low = before, high = (double)(s->n[k] - 1) - before, stride = (double)s->stride[k];
        double start = (double)s->start[k] + before;
        for (int64_t i = n; i < whole; i++) c[k][i] = c[k][n - 1];
        for (int64_t i = 0; i < whole; i++) {
            double where = c[k][i], nearest = (where + FV__ROUND) - FV__ROUND, down = nearest - (nearest > where ? 1.0 : 0.0);
            t[k * STRIP + i] = (REAL)(where - down);
            offset[i] += (down - start) * stride;
            inside[i] &= (where >= low) & (where < high) ? -1 : 0;
        }
    }
    for (int64_t i = 0; i < whole; i++) at[i] = (int64_t)(fv__bits(offset[i] + FV__ROUND) - fv__bits(FV__ROUND));
    for (int64_t i = 0; i < whole; i += LANES) {
        REAL   *to = i + LANES <= n ? out + i : result;
        int64_t all = -1;
        for (int l = 0; l < LANES; l++) all &= inside[i + l];
        if (all) {
            __builtin_prefetch((const char *)((uintptr_t)s->data + (uintptr_t)(at[i] + s->ahead) * sizeof(REAL)));
            R(group)(order, naxes, s->data, at + i, s->stride, t + i, to);
        } else
            R(border_group)(s, order, naxes, c, i, to);
        if (to == result) memcpy(out + i, result, (size_t)(n - i) * sizeof *out);
    }
}

static void R(strips)(const sampler *s, int64_t n, double *const c[3], REAL *out) {
    switch (s->order * 4 + s->naxes) {
    case 5: R(strip)(s, 1, 1, n, c, out); return;
    case 6: R(strip)(s, 1, 2, n, c, out); return;
    case 7: R(strip)(s, 1, 3, n, c, out); return;
    case 13: R(strip)(s, 3, 1, n, c, out); return;
    case 14: R(strip)(s, 3, 2, n, c, out); return;
    default: R(strip)(s, 3, 3, n, c, out); return;
    }
}

/* Voxels from ... to - 1 of a ray, at least LANES or none, all of whose neighbours are held, by order 1. */
FV_INLINE void R(along)(const sampler *s, const ray *r, int naxes, int64_t from, int64_t to, REAL *out) {
    enum { PARTS = LANES / WIDE_LANES };
    const wide      lane = ASCENDING, none = lane * 0;
    const wide_bits zero = (wide_bits)(none + FV__ROUND);
    const REAL     *data = s->data;
    int64_t         held = 0, stride[3] = { s->stride[0], s->stride[1], s->stride[2] }, ahead = s->ahead;
    wide            first = lane + r->first, before = none + r->before, sum[3], slope[3], plus[3], step[3];
    for (int k = 0; k < naxes; k++) {
        sum[k] = none + r->sum[k];
        slope[k] = none + r->slope[k];
        plus[k] = none + r->offset[k];
        step[k] = none + (double)stride[k];
        held += s->start[k] * stride[k];
    }
    const wide window = none + (FV__ROUND - (double)held);
    for (int64_t i = from; i < to; i += LANES) {
        if (i + LANES > to) i = to - LANES; /* some of them once more */
        wide      fraction[3][PARTS];
        wide_bits at[PARTS];
        VECTOR    t[3], v;
#pragma GCC unroll 2
        for (int p = 0; p < PARTS; p++) {
            wide x = (first + (double)(i + p * WIDE_LANES)) + before, offset = window;
#pragma GCC unroll 3
            for (int k = 0; k < naxes; k++) {
                wide where = (sum[k] + x * slope[k]) + plus[k], down = floor_wide(where);
                fraction[k][p] = where - down;
                offset += k < naxes - 1 ? down * step[k] : down; /* whole numbers, exactly */
            }
            at[p] = (wide_bits)offset - zero;
        }
#pragma GCC unroll 3
        for (int k = 0; k < naxes; k++) t[k] = R(narrow)(fraction[k]);
        const int64_t *index = (const int64_t *)at;
        __builtin_prefetch((const char *)((uintptr_t)data + (uintptr_t)(index[0] + ahead) * sizeof(REAL)));
        v = R(cube)(data, index, stride, t, naxes);
        memcpy(out + i, &v, sizeof v);
    }
}

static void R(middle)(const sampler *s, const ray *r, int64_t from, int64_t to, REAL *out) {
    switch (s->naxes) {
    case 1: R(along)(s, r, 1, from, to, out); return;
    case 2: R(along)(s, r, 2, from, to, out); return;
    default: R(along)(s, r, 3, from, to, out); return;
    }
}

/* ---------------------------------------------------------------- whole rows */

/* row = the sum of count rows, each times its weight; a row that is NULL is the constant. */
static void R(blend)(REAL *restrict to, const REAL *const *row, const REAL *w, int count, int64_t n, REAL constant) {
    for (int r = 0; r < count; r++) {
        const REAL *restrict a = row[r];
        REAL f = w[r], add = constant * f;
        if (!a && !r)
            for (int64_t i = 0; i < n; i++) to[i] = add;
        else if (!a)
            for (int64_t i = 0; i < n; i++) to[i] += add;
        else if (!r && count > 1 && row[1]) { /* two at once: half the traffic */
            const REAL *restrict b = row[++r];
            REAL g = w[r];
            for (int64_t i = 0; i < n; i++) to[i] = a[i] * f + b[i] * g;
        } else if (!r)
            for (int64_t i = 0; i < n; i++) to[i] = a[i] * f;
        else
            for (int64_t i = 0; i < n; i++) to[i] += a[i] * f;
    }
}

/* Along x from one row: index of the first neighbour in it, and fractions. */
static void R(across)(const rows *j, const REAL *line, int64_t n, REAL *out) {
    const REAL *t = j->fraction;
    int64_t     i = 0;
    if (j->last_order == 0) {
        for (; i < n; i++) out[i] = line[j->at[i]];
        return;
    }
    if (j->last_order == 1) {
        for (; i + LANES <= n; i += LANES) {
            VECTOR f, v;
            memcpy(&f, t + i, sizeof f);
            v = R(line)(line, j->at + i, f);
            memcpy(out + i, &v, sizeof v);
        }
        for (; i < n; i++) out[i] = line[j->at[i]] * (1 - t[i]) + line[j->at[i] + 1] * t[i];
        return;
    }
    const REAL *w = j->weights;
    for (; i < n; i++) {
        R(four) sum = *(const R(four_anywhere) *)(line + j->at[i]) * *(const R(four_anywhere) *)(w + 4 * i);
        out[i] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}

static void R(set_across)(rows *j, int64_t i, double t) {
    ((REAL *)j->fraction)[i] = (REAL)t;
    if (j->last_order == 3) R(weigh)(3, (REAL)t, (REAL *)j->weights + 4 * i);
}

/* One row of the result, from the rows of the window at the coordinates of the other axes. false: all of it is outside. */
static bool R(row)(const rows *j, const sampler *s, const double *c, REAL *out) {
    int64_t     index[2][4], n = j->count, held = j->held;
    REAL        w[2][4] = { { 1 }, { 1 } }, weight[16];
    const REAL *row[16];
    bool        outside = false;
    int         taps[2] = { 1, 1 }, count = 0;
    index[0][0] = index[1][0] = 0;
    for (int k = 0; k < s->naxes - 1; k++) {
        double where = extend_coordinate(s, k, c[k], &outside), low = floor(where);
        int    order = j->direct[k] ? 0 : s->order;
        if (outside) return false;
        taps[k] = order + 1;
        if (order) R(weigh)(order, (REAL)(where - low), w[k]);
        if (order == 1 && where == low) taps[k] = 1;
        for (int i = 0; i < taps[k]; i++) index[k][i] = extend_index(s->mode, (int64_t)low + i - (order == 3), s->n[k]);
    }
    for (int a = 0; a < taps[0]; a++)
        for (int b = 0; b < taps[1]; b++, count++) {
            int64_t offset = 0;
            if (s->naxes > 1) offset += (index[0][a] - s->start[0]) * s->stride[0];
            if (s->naxes > 2) offset += (index[1][b] - s->start[1]) * s->stride[1];
            bool held_row = (s->naxes < 2 || index[0][a] >= 0) && (s->naxes < 3 || index[1][b] >= 0);
            row[count] = held_row ? (const REAL *)s->data + offset : NULL;
            weight[count] = w[0][a] * w[1][b];
        }
    REAL *line = (REAL *)j->line + BEYOND;
    if (count == 1 && row[0] && !j->before && !j->behind)
        R(across)(j, row[0], n, out);
    else {
        R(blend)(line, row, weight, count, held, (REAL)s->cval);
        for (int i = 0; i < j->before; i++) line[-1 - i] = j->low[i] < 0 ? (REAL)s->cval : line[j->low[i]];
        for (int i = 0; i < j->behind; i++) line[held + i] = j->high[i] < 0 ? (REAL)s->cval : line[j->high[i]];
        R(across)(j, line, n, out);
    }
    for (int64_t i = 0; i < n && j->some_outside; i++)
        if (j->outside[i]) out[i] = (REAL)s->cval;
    return true;
}
