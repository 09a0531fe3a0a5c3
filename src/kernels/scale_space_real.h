/* The part of scale_space.c that is written once and compiled for float and for double: REAL, VECTOR, LANES, R(name). */

#define VECTORS (COLUMNS >= 2 * LANES ? 2 : 1) /* side by side in registers */
#define LOAD(p) FV_PASTE(VECTOR, _load)(p)
#define STORE(p, v) FV_PASTE(VECTOR, _store)(p, v)
#define SPLAT(x) FV_PASTE(VECTOR, _splat)(x)
#define FMA(a, b, c) FV_PASTE(VECTOR, _fma)(a, b, c)

/* ---------------------------------------------------------------- sums along a strip
 * Two neighbouring results of a line at a time: the voxels that one of them reaches on its far side are those that the other
 * has just used. Sums over odd and even distances are kept apart where there would be too few of them to fill the processor.
 * Row i of a strip is at from + i * COLUMNS; rows -radius ... n + radius are there. */

/* to = w * from */
static void R(one_sum)(const REAL *from, int64_t radius, const REAL *w, int64_t n, REAL *to) {
    for (int64_t y = 0; y < n; y += 2)
        for (int c = 0; c < COLUMNS; c += VECTORS * LANES) {
            const REAL *at = from + y * COLUMNS + c;
            VECTOR      near[VECTORS], far[VECTORS], a[2][VECTORS], b[2][VECTORS];
            for (int v = 0; v < VECTORS; v++) {
                near[v] = LOAD(at + v * LANES);
                far[v] = LOAD(at + COLUMNS + v * LANES);
                a[0][v] = near[v] * w[0], a[1][v] = far[v] * w[0];
                b[0][v] = b[1][v] = SPLAT(0);
            }
#define STEP(k, sum)                                                                                                             \
    for (int v = 0; v < VECTORS; v++) {                                                                                          \
        VECTOR low = LOAD(at - (k)*COLUMNS + v * LANES), high = LOAD(at + ((k) + 1) * COLUMNS + v * LANES);                      \
        sum[0][v] = FMA(SPLAT(w[k]), low + far[v], sum[0][v]);                                                                   \
        sum[1][v] = FMA(SPLAT(w[k]), near[v] + high, sum[1][v]);                                                                 \
        near[v] = low, far[v] = high;                                                                                            \
    }
            int64_t k = 1;
            for (; k + 1 <= radius; k += 2) {
                STEP(k, b)
                STEP(k + 1, a)
            }
            if (k <= radius) STEP(k, b)
#undef STEP
            for (int v = 0; v < VECTORS; v++) {
                STORE(to + y * COLUMNS + c + v * LANES, a[0][v] + b[0][v]);
                STORE(to + (y + 1) * COLUMNS + c + v * LANES, a[1][v] + b[1][v]);
            }
        }
}

/* to = w * from, other = x * from */
static void R(two_sums)(const REAL *from, int64_t radius, const REAL *w, const REAL *x, int64_t n, REAL *to, REAL *other) {
    for (int64_t y = 0; y < n; y += 2)
        for (int c = 0; c < COLUMNS; c += VECTORS * LANES) {
            const REAL *at = from + y * COLUMNS + c;
            VECTOR      near[VECTORS], far[VECTORS], a[2][VECTORS], b[2][VECTORS];
            for (int v = 0; v < VECTORS; v++) {
                near[v] = LOAD(at + v * LANES);
                far[v] = LOAD(at + COLUMNS + v * LANES);
                a[0][v] = near[v] * w[0], a[1][v] = far[v] * w[0];
                b[0][v] = near[v] * x[0], b[1][v] = far[v] * x[0];
            }
            for (int64_t k = 1; k <= radius; k++)
                for (int v = 0; v < VECTORS; v++) {
                    VECTOR low = LOAD(at - k * COLUMNS + v * LANES), high = LOAD(at + (k + 1) * COLUMNS + v * LANES);
                    VECTOR first = low + far[v], second = near[v] + high;
                    a[0][v] = FMA(SPLAT(w[k]), first, a[0][v]);
                    a[1][v] = FMA(SPLAT(w[k]), second, a[1][v]);
                    b[0][v] = FMA(SPLAT(x[k]), first, b[0][v]);
                    b[1][v] = FMA(SPLAT(x[k]), second, b[1][v]);
                    near[v] = low, far[v] = high;
                }
            for (int v = 0; v < VECTORS; v++)
                for (int row = 0; row < 2; row++) {
                    STORE(to + (y + row) * COLUMNS + c + v * LANES, a[row][v]);
                    STORE(other + (y + row) * COLUMNS + c + v * LANES, b[row][v]);
                }
        }
}

/* to = w * from + x * other, for one group of LANES columns, which lies apart: rows are LANES long. The rows of two strips that
 * a sum looks at would not fit the first cache otherwise. */
static void R(joint_sum)(const REAL *from, const REAL *other, int64_t radius, const REAL *w, const REAL *x, int64_t n, REAL *to) {
    for (int64_t y = 0; y < n; y += 2) {
        const REAL *f = from + y * LANES, *o = other + y * LANES;
        VECTOR      near[2] = { LOAD(f), LOAD(o) }, far[2] = { LOAD(f + LANES), LOAD(o + LANES) };
        VECTOR      a[2] = { near[0] * w[0], far[0] * w[0] }, b[2] = { near[1] * x[0], far[1] * x[0] };
        VECTOR      p[2] = { SPLAT(0), SPLAT(0) }, q[2] = { SPLAT(0), SPLAT(0) };
#define STEP(k, first, second)                                                                                                   \
    {                                                                                                                            \
        VECTOR low = LOAD(f - (k)*LANES), high = LOAD(f + ((k) + 1) * LANES);                                                    \
        first[0] = FMA(SPLAT(w[k]), low + far[0], first[0]);                                                                     \
        first[1] = FMA(SPLAT(w[k]), near[0] + high, first[1]);                                                                   \
        near[0] = low, far[0] = high;                                                                                            \
        low = LOAD(o - (k)*LANES), high = LOAD(o + ((k) + 1) * LANES);                                                           \
        second[0] = FMA(SPLAT(x[k]), low + far[1], second[0]);                                                                   \
        second[1] = FMA(SPLAT(x[k]), near[1] + high, second[1]);                                                                 \
        near[1] = low, far[1] = high;                                                                                            \
    }
        int64_t k = 1;
        for (; k + 1 <= radius; k += 2) {
            STEP(k, p, q)
            STEP(k + 1, a, b)
        }
        if (k <= radius) STEP(k, p, q)
#undef STEP
        for (int row = 0; row < 2; row++) STORE(to + (y + row) * COLUMNS, (a[row] + p[row]) + (b[row] + q[row]));
    }
}

/* The sums of one strip along axis d: strip[SMOOTH] or, unless this is the first axis, parts and strip[CURVED]. */
static void R(sum_strip)(const job *j, int d, bool first, bool last) {
    int64_t     r = j->radius[d], n = j->scale->side[d].size;
    const REAL *g = j->smooth[d], *c = j->curve[d];
    const REAL *smooth = (const REAL *)j->strip[SMOOTH] + r * COLUMNS;
    if (!j->scale->laplacian)
        R(one_sum)(smooth, r, g, n, j->sums[SMOOTH]);
    else if (first && last)
        R(one_sum)(smooth, r, c, n, j->sums[CURVED]);
    else if (first)
        R(two_sums)(smooth, r, g, c, n, j->sums[SMOOTH], j->sums[CURVED]);
    else
        for (int v = 0; v < COLUMNS / LANES; v++) {
            int64_t at = (v * (n + 2 * r + 1) + r) * LANES;
            R(joint_sum)
            ((const REAL *)j->strip[CURVED] + at, (const REAL *)j->parts + at, r, g, c, n, (REAL *)j->sums[CURVED] + v * LANES);
        }
    if (j->scale->laplacian && !first && !last) R(one_sum)(smooth, r, g, n, j->sums[SMOOTH]);
}

/* ---------------------------------------------------------------- strips in and out */

/* Rows of `columns` voxels, `step` apart, at the mapped positions of a line, and one more. */
static void R(gather)(const job *j, int d, const REAL *from, int64_t step, int64_t columns, REAL *strip) {
    int64_t n = j->scale->side[d].size + 2 * j->radius[d];
    for (int64_t i = 0; i < n; i++) {
        const REAL *row = from + j->map[i] * step;
        if (columns == COLUMNS)
            memcpy(strip + i * COLUMNS, row, COLUMNS * sizeof(REAL));
        else
            for (int64_t c = 0; c < COLUMNS; c++) strip[i * COLUMNS + c] = c < columns ? row[c] : 0;
    }
    memset(strip + n * COLUMNS, 0, COLUMNS * sizeof(REAL));
}

/* The same in groups of LANES columns, one group after the other. */
static void R(gather_groups)(const job *j, int d, const REAL *from, int64_t step, int64_t columns, REAL *strip) {
    int64_t n = j->scale->side[d].size + 2 * j->radius[d];
    for (int64_t v = 0; v < COLUMNS / LANES; v++) {
        REAL *group = strip + v * (n + 1) * LANES;
        for (int64_t i = 0; i < n; i++) {
            const REAL *row = from + j->map[i] * step + v * LANES;
            if ((v + 1) * LANES <= columns)
                STORE(group + i * LANES, LOAD(row));
            else
                for (int64_t c = 0; c < LANES; c++) group[i * LANES + c] = v * LANES + c < columns ? row[c] : 0;
        }
        STORE(group + n * LANES, SPLAT(0));
    }
}

/* Gathers what sum_strip needs. */
static void R(gather_strips)(const job *j, int d, const REAL *smooth, const REAL *curved, int64_t step, int64_t columns,
                             bool last) {
    if (!curved || !last) R(gather)(j, d, smooth, step, columns, j->strip[SMOOTH]);
    if (!curved) return;
    R(gather_groups)(j, d, smooth, step, columns, j->parts);
    R(gather_groups)(j, d, curved, step, columns, j->strip[CURVED]);
}

/* The rows of a strip become columns: to[c * pitch + i] = strip[i][c], for c < columns and i < n; more may be written where
 * `beyond` allows it. */
static void R(turn)(const REAL *strip, int64_t n, int64_t columns, bool beyond, REAL *to, int64_t pitch, REAL factor) {
    for (int64_t i = 0; i < n; i += LANES)
        for (int64_t c = 0; c < columns; c += LANES) {
            VECTOR block[LANES];
            for (int l = 0; l < LANES; l++) block[l] = LOAD(strip + (i + l) * COLUMNS + c) * factor;
            FV_PASTE(VECTOR, _transpose)(block);
            if (beyond || (i + LANES <= n && c + LANES <= columns)) {
                for (int l = 0; l < LANES; l++) STORE(to + (c + l) * pitch + i, block[l]);
                continue;
            }
            for (int64_t l = 0; l < FV_MIN(LANES, columns - c); l++)
                for (int64_t k = 0; k < FV_MIN(LANES, n - i); k++) to[(c + l) * pitch + i + k] = block[l][k];
        }
}

/* ---------------------------------------------------------------- axes */

static void R(along_z)(const job *j, const REAL *in) {
    const fv_scale_side *y = &j->scale->side[Y], *x = &j->scale->side[X], *z = &j->scale->side[Z];
    int64_t              plane = y->in_size * x->in_size;
    map_side(j, Z);
    for (int64_t p = 0; p < plane; p += COLUMNS) {
        int64_t columns = FV_MIN(COLUMNS, plane - p);
        R(gather)(j, Z, in + p, plane, columns, j->strip[SMOOTH]);
        R(sum_strip)(j, Z, true, false);
        for (int k = 0; k < (j->scale->laplacian ? 2 : 1); k++)
            for (int64_t i = 0; i < z->size; i++)
                memcpy((REAL *)j->volume[k] + i * plane + p, (REAL *)j->sums[k] + i * COLUMNS, (size_t)columns * sizeof(REAL));
    }
}

/* One plane, smooth and (unless y is the first axis) curved, into the transposed plane. */
static void R(along_y)(const job *j, const REAL *smooth, const REAL *curved) {
    const fv_scale_side *y = &j->scale->side[Y], *x = &j->scale->side[X];
    map_side(j, Y);
    for (int64_t p = 0; p < x->in_size; p += COLUMNS) {
        int64_t columns = FV_MIN(COLUMNS, x->in_size - p);
        R(gather_strips)(j, Y, smooth + p, curved ? curved + p : NULL, x->in_size, columns, false);
        R(sum_strip)(j, Y, !curved, false);
        for (int k = 0; k < (j->scale->laplacian ? 2 : 1); k++)
            R(turn)(j->sums[k], y->size, COLUMNS, true, (REAL *)j->plane[k] + p * j->pitch, j->pitch, 1);
    }
}

/* The plane as it is, for an image with one axis. */
static void R(without_y)(const job *j, const REAL *smooth) {
    const fv_scale_side *y = &j->scale->side[Y], *x = &j->scale->side[X];
    memset(j->plane[SMOOTH], 0, (size_t)(round_up(x->in_size) * j->pitch) * sizeof(REAL));
    for (int64_t i = 0; i < x->in_size; i++)
        for (int64_t k = 0; k < y->size; k++) ((REAL *)j->plane[SMOOTH])[i * j->pitch + k] = smooth[k * x->in_size + i];
}

static void R(along_x)(const job *j, bool first, REAL *out) {
    const fv_scale_side *y = &j->scale->side[Y], *x = &j->scale->side[X];
    int                  result = j->scale->laplacian ? CURVED : SMOOTH;
    map_side(j, X);
    for (int64_t p = 0; p < y->size; p += COLUMNS) {
        const REAL *curved = !first && j->scale->laplacian ? (const REAL *)j->plane[CURVED] + p : NULL;
        R(gather_strips)(j, X, (const REAL *)j->plane[SMOOTH] + p, curved, j->pitch, COLUMNS, true);
        R(sum_strip)(j, X, first, true);
        R(turn)
        (j->sums[result], x->size, FV_MIN(COLUMNS, y->size - p), false, out + p * x->size, x->size, (REAL)j->scale->factor);
    }
}

static void R(run)(const job *j, const REAL *in, REAL *out) {
    const fv_scale_side *z = &j->scale->side[Z], *y = &j->scale->side[Y], *x = &j->scale->side[X];
    int64_t              plane = y->in_size * x->in_size;
    bool                 has_z = j->scale->sigma[Z] > 0, has_y = j->scale->sigma[Y] > 0;
    for (int d = 0; d < 3; d++) {
        double sigma = j->scale->sigma[d], total = sigma > 0 ? smooth_total(sigma, j->radius[d]) : 1;
        for (int64_t i = 0; i <= j->radius[d] && sigma > 0; i++) {
            ((REAL *)j->smooth[d])[i] = (REAL)smooth_weight(sigma, total, i);
            ((REAL *)j->curve[d])[i] = (REAL)curve_weight(sigma, total, i);
        }
    }
    if (has_z) R(along_z)(j, in);
    for (int64_t i = 0; i < z->size; i++) {
        const REAL *smooth = (has_z ? (const REAL *)j->volume[SMOOTH] : in) + i * plane;
        const REAL *curved = has_z && j->scale->laplacian ? (const REAL *)j->volume[CURVED] + i * plane : NULL;
        if (has_y)
            R(along_y)(j, smooth, curved);
        else
            R(without_y)(j, smooth);
        R(along_x)(j, !has_y, out + i * y->size * x->size);
    }
}

#undef VECTORS
#undef LOAD
#undef STORE
#undef SPLAT
#undef FMA
