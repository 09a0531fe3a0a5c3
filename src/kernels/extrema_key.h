/* The part of extrema.c that is written once and compiled for keys of 1, 2, 4 and 8 bytes: KEY, VECTOR, K(name). */

#define LANES (int64_t)(sizeof(VECTOR) / sizeof(KEY))
#define LOAD(p) ((VECTOR) * (const FV_PASTE(VECTOR, _unaligned) *)(p))

/* to = the lesser of a and b; to may be a, or lie before a and b in the same row. Rows have room for a vector behind. */
static void K(lesser)(KEY *to, const KEY *a, const KEY *b, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES)
        *(FV_PASTE(VECTOR, _unaligned) *)(to + i) = FV_PASTE(VECTOR, _min)(LOAD(a + i), LOAD(b + i));
}

/* Brings elements of the image to keys, or back; both ways are the same but for floats. */
static void K(flip)(KEY *row, int64_t n, KEY sign) {
    for (int64_t i = 0; i < n; i++) row[i] ^= sign;
}

/* ---------------------------------------------------------------- boxes */

/* The least of each window of `width` along a row of n windows, in place. */
static void K(run_row)(KEY *row, int64_t n, int64_t width) {
    int64_t have = 1;
    for (; 2 * have <= width; have *= 2) K(lesser)(row, row, row + have, n + width - 2 * have);
    if (have < width) K(lesser)(row, row, row + width - have, n);
}

/* The same across `n` windows of rows that lie `stride` apart; the results go to `to`. */
static void K(run_rows)(KEY *rows, int64_t stride, int64_t length, int64_t n, int64_t width, KEY *to, int64_t to_stride) {
    int64_t have = 1;
    for (; 2 * have <= width; have *= 2)
        for (int64_t r = 0; r < n + width - 2 * have; r++)
            K(lesser)(rows + r * stride, rows + r * stride, rows + (r + have) * stride, length);
    for (int64_t r = 0; r < n; r++) K(lesser)(to + r * to_stride, rows + r * stride, rows + (r + width - have) * stride, length);
}

static void K(box_tile)(const job *j, const char *in, const tile *t) {
    KEY *plane = j->padded, *volume = j->result;
    for (int64_t z = 0; z < t->count[Z] + j->side[Z].size - 1; z++) {
        for (int64_t y = 0; y < t->count[Y] + j->side[Y].size - 1; y++) {
            KEY *row = plane + y * j->pitch;
            load_row(j, in, t, z, y, t->count[X] + j->side[X].size - 1, row);
            K(run_row)(row, t->count[X], j->side[X].size);
        }
        K(run_rows)(plane, j->pitch, t->count[X], t->count[Y], j->side[Y].size, volume + z * j->plane, j->pitch);
    }
    for (int64_t y = 0; y < t->count[Y]; y++) {
        KEY *rows = volume + y * j->pitch;
        K(run_rows)(rows, j->plane, t->count[X], t->count[Z], j->side[Z].size, rows, j->plane);
    }
}

/* ---------------------------------------------------------------- round windows */

/* Row by row the lesser of what is there and of the rows at the offsets. */
static void K(gather)(KEY *to, const KEY *from, const int64_t *offset, int64_t count, int64_t n) {
    for (int64_t i = 0; i < n; i += 4 * LANES) {
        VECTOR a = LOAD(to + i), b = LOAD(to + i + LANES), c = LOAD(to + i + 2 * LANES), d = LOAD(to + i + 3 * LANES);
        for (int64_t k = 0; k < count; k++) {
            const KEY *row = from + offset[k] + i;
            a = FV_PASTE(VECTOR, _min)(a, LOAD(row));
            b = FV_PASTE(VECTOR, _min)(b, LOAD(row + LANES));
            c = FV_PASTE(VECTOR, _min)(c, LOAD(row + 2 * LANES));
            d = FV_PASTE(VECTOR, _min)(d, LOAD(row + 3 * LANES));
        }
        FV_PASTE(VECTOR, _unaligned) *out = (FV_PASTE(VECTOR, _unaligned) *)(to + i);
        out[0] = a;
        out[1] = b;
        out[2] = c;
        out[3] = d;
    }
}

/* Rows of the window of half-length h are the extrema over 2h + 1 neighbours, made from those of h - 1. A pattern has voxels. */
static void K(round_tile)(const job *j, const char *in, const tile *t) {
    int64_t half = j->side[X].before, rows = t->count[Y] + j->side[Y].size - 1, planes = t->count[Z] + j->side[Z].size - 1;
    int64_t length = t->count[X] + 2 * half;
    KEY    *padded = j->padded, *result = j->result, most = (KEY)j->neutral;
    for (int64_t z = 0; z < planes; z++)
        for (int64_t y = 0; y < rows; y++) load_row(j, in, t, z, y, length, padded + (z * j->rows + y) * j->pitch);
    for (int64_t i = 0; i < t->count[Z] * j->plane; i++) result[i] = most;
    for (int64_t h = 0; h <= (j->e->pattern ? 0 : half); h++) {
        for (int64_t z = 0; z < planes && h; z++)
            for (int64_t y = 0; y < rows; y++) {
                KEY *row = padded + (z * j->rows + y) * j->pitch;
                if (h == 1) K(lesser)(row, row, row + 1, length - 1);
                K(lesser)(row, row, row + (h == 1 ? 1 : 2), length - 2 * h);
            }
        for (int64_t z = 0; z < t->count[Z]; z++)
            for (int64_t y = 0; y < t->count[Y]; y++) K(gather)
        (result + z * j->plane + y * j->pitch, padded + (z * j->rows + y) * j->pitch + half - h, j->offset + j->first[h],
         j->first[h + 1] - j->first[h], t->count[X]);
    }
}

#undef LANES
#undef LOAD
