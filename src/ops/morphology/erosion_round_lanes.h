/* The steps of erosion_round.c for one type of lane: LANE, its vector LANES, and NAME() for the functions. Included once per
 * type, so it has no guard.
 */

/* Distance counters of n voxels one row further from where they came: 0 at a seed. */
static void NAME(count_row)(LANE *restrict counter, const uint8_t *restrict in, int64_t n, uint8_t flip, LANE far) {
    for (int64_t i = 0; i < n; i++) {
        LANE more = counter[i] < far ? (LANE)(counter[i] + 1) : far;
        counter[i] = (LANE)(more & (LANE) - (LANE)(in[i] ^ flip));
    }
}

static void NAME(close_row)(LANE *restrict close, const LANE *restrict counter, int64_t n, LANE far, LANE top) {
    for (int64_t i = 0; i < n; i++) {
        LANE d = close[i] < counter[i] ? close[i] : counter[i];
        LANE c = (LANE)(top - (LANE)(d * d));
        close[i] = d < far ? c : 0;
    }
}

/* Scans the first axis for a few neighbouring rows at once, up and then down again. */
static void NAME(scan_rows)(round_run *r, int64_t (*position)[FV_MAX_DIMS], int rows, const fv_block *close) {
    int            axis = r->e->axis[0];
    const uint8_t *in[16];
    LANE          *to[16], *counter = r->counters;
    int64_t        n = r->from.size[r->to.ndim - 1], count = r->from.size[axis], first = r->to.start[axis] - r->from.start[axis];
    LANE           far = (LANE)(r->e->half[0] + 1), top = (LANE)(r->e->limit + 1);
    for (int i = 0; i < rows; i++) {
        in[i] = fv__block_at(r->in, position[i]);
        position[i][axis] = r->to.start[axis];
        to[i] = fv__block_at(close, position[i]);
    }
    for (int64_t i = 0; i < rows * n; i++) counter[i] = far;
    for (int64_t j = 0; j < first + r->to.size[axis]; j++)
        for (int i = 0; i < rows; i++) {
            NAME(count_row)(counter + i * n, in[i] + j * r->in->stride[axis], n, r->flip, far);
            if (j >= first) memcpy(to[i] + (j - first) * close->stride[axis], counter + i * n, (size_t)n * sizeof(LANE));
        }
    for (int64_t i = 0; i < rows * n; i++) counter[i] = far;
    for (int64_t j = count - 1; j >= first; j--)
        for (int i = 0; i < rows; i++) {
            NAME(count_row)(counter + i * n, in[i] + j * r->in->stride[axis], n, r->flip, far);
            if (j < first + r->to.size[axis])
                NAME(close_row)(to[i] + (j - first) * close->stride[axis], counter + i * n, n, far, top);
        }
}

static void NAME(scan)(round_run *r, const fv_block *close) {
    int64_t   position[16][FV_MAX_DIMS];
    int       waiting = 0;
    fv_region walk = r->from;
    fv_rows   rows;
    walk.size[r->e->axis[0]] = 1;
    for (fv__rows_begin(&rows, &walk); fv__rows_next(&rows);) {
        memcpy(position[waiting++], rows.position, sizeof rows.position);
        if (waiting < r->rows_at_once) continue;
        NAME(scan_rows)(r, position, waiting, close);
        waiting = 0;
    }
    if (waiting) NAME(scan_rows)(r, position, waiting, close);
}

/* to[i] = max over |k| <= half of near[half + k][i] - k*k. Touches up to SLACK bytes behind n. */
static void NAME(search)(LANE *restrict to, const LANE *const *near, int64_t half, int64_t n) {
    const int64_t width = FV_VECTOR_BYTES / sizeof(LANE);
    for (int64_t i = 0; i < n; i += 4 * width) {
        LANES best[4];
        for (int v = 0; v < 4; v++) best[v] = *(const FV_PASTE(LANES, _unaligned) *)(near[half] + i + v * width);
        for (int64_t k = 1; k <= half; k++) {
            const LANE *before = near[half - k] + i, *after = near[half + k] + i;
            LANES       square = (LANE)(k * k) - (LANES){ 0 };
#pragma GCC unroll 4
            for (int v = 0; v < 4; v++) {
                LANES nearest = FV_PASTE(LANES, _max)(*(const FV_PASTE(LANES, _unaligned) *)(before + v * width),
                                                      *(const FV_PASTE(LANES, _unaligned) *)(after + v * width));
                best[v] = FV_PASTE(LANES, _max)(best[v], FV_PASTE(LANES, _less)(nearest, square));
            }
        }
        for (int v = 0; v < 4; v++) *(FV_PASTE(LANES, _unaligned) *)(to + i + v * width) = best[v];
    }
}

/* A line before the search along it: from the input itself, from the scan, or from the search along a middle axis. */
static const LANE *NAME(line)(round_run *r, const int64_t *start, const fv_block *close) {
    const fv__element *e = r->e;
    LANE              *spread = r->spread;
    int64_t            position[FV_MAX_DIMS];
    memcpy(position, start, sizeof position);
    position[e->axis[e->count - 1]] = r->from.start[e->axis[e->count - 1]];
    if (e->count == 1) {
        fv_region line = r->from;
        for (int d = 0; d < e->axis[0]; d++) line.start[d] = position[d], line.size[d] = 1;
        fv_rows rows;
        int64_t n = line.size[line.ndim - 1];
        for (fv__rows_begin(&rows, &line); fv__rows_next(&rows); spread += n) {
            const uint8_t *in = fv__block_at(r->in, rows.position);
            for (int64_t i = 0; i < n; i++) spread[i] = in[i] ^ r->flip ? 0 : (LANE)(e->limit + 1);
        }
        return r->spread;
    }
    if (e->count == 2) return fv__block_at(close, position);
    const LANE **near = (const LANE **)r->near;
    int          axis = e->axis[1];
    int64_t      half = e->half[1], middle = position[axis];
    for (int64_t k = -half; k <= half; k++) {
        position[axis] = middle + k;
        bool exists = position[axis] >= r->from.start[axis] && position[axis] < r->from.start[axis] + r->from.size[axis];
        near[half + k] = exists ? fv__block_at(close, position) : r->nothing;
    }
    NAME(search)(spread, near, half, r->in_line);
    return spread;
}

static void NAME(finish_line)(round_run *r, const int64_t *start) {
    const LANE *result = r->result;
    fv_region   line = r->to;
    fv_rows     rows;
    int64_t     n = line.size[line.ndim - 1];
    for (int d = 0; d < r->e->axis[r->e->count - 1]; d++) line.start[d] = start[d], line.size[d] = 1;
    for (fv__rows_begin(&rows, &line); fv__rows_next(&rows); result += n) {
        uint8_t *restrict out = fv__block_at(r->out, rows.position);
        for (int64_t i = 0; i < n; i++) out[i] = (uint8_t)((result[i] == 0) ^ r->flip);
    }
}

static void NAME(erode)(round_run *r) {
    int      last = r->e->axis[r->e->count - 1];
    int64_t  half = r->e->half[r->e->count - 1];
    fv_block close = { 0 };
    LANE    *padded = r->padded, *data = padded + (r->from.start[last] - r->to.start[last] + half) * r->inside;
    fv__block_init(&close, FV_BOOL, &r->scanned, r->closeness);
    close.dtype = sizeof(LANE) == 1 ? FV_UINT8 : sizeof(LANE) == 2 ? FV_UINT16 : FV_UINT32;
    memset(padded, 0, (size_t)r->padded_line * sizeof(LANE) + SLACK);
    memset(r->nothing, 0, (size_t)r->in_line * sizeof(LANE) + SLACK);
    if (r->e->count > 1) NAME(scan)(r, &close);
    fv_region lines = r->to;
    for (int d = last; d < lines.ndim; d++) lines.size[d] = 1;
    fv_rows rows;
    for (fv__rows_begin(&rows, &lines); fv__rows_next(&rows);) {
        const LANE  *line = NAME(line)(r, rows.position, &close);
        const LANE **near = (const LANE **)r->near;
        memcpy(data, line, (size_t)r->in_line * sizeof(LANE));
        for (int64_t k = 0; k <= 2 * half; k++) near[k] = padded + k * r->inside;
        NAME(search)(r->result, near, half, r->out_line);
        NAME(finish_line)(r, rows.position);
    }
}

#undef LANE
#undef LANES
#undef NAME
