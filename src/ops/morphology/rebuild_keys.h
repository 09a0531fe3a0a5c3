/* The steps of rebuild.c for one width of keys: KEY, and NAME() for the functions. Included once per width: it has no guard. */

static inline KEY NAME(least)(KEY a, KEY b) { return a < b ? a : b; }
static inline KEY NAME(most)(KEY a, KEY b) { return a > b ? a : b; }

/* One row against the scan's direction: its cells take what their earlier (or later) neighbours have. */
static void NAME(scan_row)(box *x, int64_t first, int64_t n, bool back) {
    KEY       *now = (KEY *)x->now + first;
    const KEY *mask = (const KEY *)x->mask + first;
    int        from = back ? x->noffsets / 2 : 0, to = back ? x->noffsets : x->noffsets / 2;
    for (int k = from; k < to; k++) { /* all but the neighbour in the row itself do not wait for one another */
        const KEY *near = now + x->offset[k];
        if (x->offset[k] == (back ? 1 : -1)) continue;
        for (int64_t i = 0; i < n; i++) now[i] = NAME(most)(now[i], near[i]);
    }
    if (back) {
        KEY before = now[n];
        for (int64_t i = n - 1; i >= 0; i--) now[i] = before = NAME(least)(NAME(most)(now[i], before), mask[i]);
    } else {
        KEY before = now[-1];
        for (int64_t i = 0; i < n; i++) now[i] = before = NAME(least)(NAME(most)(now[i], before), mask[i]);
    }
}

/* queued[i]: whether a cell of a row could still raise a later neighbour. */
static void NAME(find_open)(box *x, int64_t first, int64_t n) {
    const KEY *now = (const KEY *)x->now + first, *mask = (const KEY *)x->mask + first;
    uint8_t   *open = x->queued + first;
    memset(open, 0, (size_t)n);
    for (int k = x->noffsets / 2; k < x->noffsets; k++) {
        const KEY *near = now + x->offset[k], *near_mask = mask + x->offset[k];
        for (int64_t i = 0; i < n; i++) open[i] |= (uint8_t)((near[i] < now[i]) & (near[i] < near_mask[i]));
    }
}

static void NAME(rebuild)(box *x) {
    KEY    *now = x->now;
    KEY    *mask = x->mask;
    int64_t head = 0, waiting = 0;
    for (int64_t row = 0; row < x->rows; row++) NAME(scan_row)(x, first_cell(x, row), x->size[2], false);
    for (int64_t row = x->rows - 1; row >= 0; row--) {
        int64_t first = first_cell(x, row);
        NAME(scan_row)(x, first, x->size[2], true);
        NAME(find_open)(x, first, x->size[2]);
        for (int64_t i = x->size[2] - 1; i >= 0; i--)
            if (x->queued[first + i]) x->queue[waiting++] = (uint32_t)(first + i);
    }
    while (waiting) { /* a cell waits once at most, so the ring never overflows */
        uint32_t cell = x->queue[head];
        head = head + 1 == x->cells ? 0 : head + 1;
        waiting--;
        x->queued[cell] = 0;
        for (int k = 0; k < x->noffsets; k++) {
            int64_t near = cell + x->offset[k];
            if (now[near] >= now[cell] || now[near] >= mask[near]) continue;
            now[near] = NAME(least)(now[cell], mask[near]);
            if (x->queued[near]) continue;
            x->queued[near] = 1;
            int64_t tail = head + waiting++;
            x->queue[tail < x->cells ? tail : tail - x->cells] = (uint32_t)near;
        }
    }
}

/* The cells that may still rise, from the highest mask value to the lowest, in x->queue. */
static void NAME(sort)(box *x) {
    enum { BITS = 11 };
    const KEY *mask = x->mask, *now = x->now;
    uint32_t  *from = x->queue, *to = x->spare;
    int64_t    n = 0;
    for (int64_t row = 0; row < x->rows; row++) {
        int64_t first = first_cell(x, row);
        for (int64_t i = first; i < first + x->size[2]; i++) {
            from[n] = (uint32_t)i;
            n += now[i] < mask[i];
        }
    }
    for (int shift = 0; shift < (int)sizeof(KEY) * 8; shift += BITS) {
        int64_t start[1 << BITS] = { 0 }, sum = 0;
        for (int64_t i = 0; i < n; i++) start[~(mask[from[i]] >> shift) & ((1 << BITS) - 1)]++;
        if (n && start[~(mask[from[0]] >> shift) & ((1 << BITS) - 1)] == n) continue; /* one digit for all */
        for (int d = 0; d < 1 << BITS; d++) {
            int64_t count = start[d];
            start[d] = sum;
            sum += count;
        }
        for (int64_t i = 0; i < n; i++) to[start[~(mask[from[i]] >> shift) & ((1 << BITS) - 1)]++] = from[i];
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    x->queue = from;
    x->spare = to;
    x->count = n;
}

/* Floods the mask from the top; where two parts that hold terminals meet, an edge of the tree is made. A cell that has reached
 * its mask lets nothing more through: what comes along it from elsewhere is not above what it has given its neighbours already.
 * So the tree is that of the other cells. */
static int64_t NAME(connect)(box *x, fv_bytes *edges) {
    const KEY *mask = x->mask;
    int64_t    made = 0;
    NAME(sort)(x);
    for (int64_t i = -x->room; i < x->cells + x->room; i++) x->parent[i] = NONE;
    for (int64_t i = 0; i < x->count; i++) {
        uint32_t cell = x->queue[i];
        x->parent[cell] = cell;
        x->spare[cell] = x->terminal[cell]; /* the part's terminal */
        for (int k = 0; k < x->noffsets; k++) {
            uint32_t near = (uint32_t)(cell + x->offset[k]);
            if (x->parent[near] == NONE) continue;
            uint32_t a = find(x->parent, cell), b = find(x->parent, near);
            if (a == b) continue;
            if (x->spare[a] != NONE && x->spare[b] != NONE) {
                fv__rebuild_edge edge = { mask[cell], x->spare[a], x->spare[b] };
                fv__bytes_append(edges, &edge, sizeof edge);
                made++;
            }
            x->parent[a] = b;
            if (x->spare[b] == NONE) x->spare[b] = x->spare[a];
        }
    }
    return made;
}

#undef KEY
#undef NAME
