/* The part of correlate.c that is written once and compiled for float and for double: REAL, VECTOR, LANES, R(name). */

/* One row of n results; row k of the window's voxels starts at offset[k]. */
static void R(sum_row)(const REAL *from, const int64_t *offset, const REAL *weight, int64_t count, int64_t n, REAL *to) {
    for (int64_t i = 0; i < n; i += 4 * LANES) {
        VECTOR sum[4] = { { 0 } };
        for (int64_t k = 0; k < count; k++) {
            const REAL *row = from + offset[k] + i;
            VECTOR      w = FV_PASTE(VECTOR, _splat)(weight[k]);
#pragma GCC unroll 4
            for (int v = 0; v < 4; v++) sum[v] = FV_PASTE(VECTOR, _fma)(w, FV_PASTE(VECTOR, _load)(row + v * LANES), sum[v]);
        }
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++) FV_PASTE(VECTOR, _store)(to + i + v * LANES, sum[v]);
    }
}

/* Offsets in the padded tile and weights of the voxels that count. */
static void R(list_weights)(job *j, const double *weights) {
    for (int64_t z = 0, i = 0; z < j->side[Z].size; z++)
        for (int64_t y = 0; y < j->side[Y].size; y++)
            for (int64_t x = 0; x < j->side[X].size; x++, i++) {
                if (weights[i] == 0) continue;
                j->offset[j->count] = (z * j->rows + y) * j->pitch + x;
                ((REAL *)j->weight)[j->count++] = (REAL)weights[i];
            }
}

/* A row as real numbers, with what lies around the image. The constant keeps digits that the image's type has not. */
static void R(padded_row)(const job *j, const char *in, int64_t z, int64_t y, int64_t x, int64_t count, REAL *to) {
    fv__padded_row(j->side, j->box->border, in, z, y, x, count, fv_dtype_size(j->dtype), j->nothing, j->raw);
    FV_PASTE(fv_kernels_, FV_ISA).convert(to, sizeof(REAL) == 4 ? FV_FLOAT32 : FV_FLOAT64, j->raw, j->dtype, count);
    if (j->box->border != FV_BORDER_CONSTANT) return;
    int64_t first, last;
    fv__padded_inside(j->side, z, y, x, count, &first, &last);
    for (int64_t i = 0; i < first; i++) to[i] = (REAL)j->box->cval;
    for (int64_t i = last; i < count; i++) to[i] = (REAL)j->box->cval;
}

static void R(tile)(const job *j, const char *in, REAL *out, const int64_t *start) {
    int64_t count[3], place = 0;
    for (int d = 0; d < 3; d++) {
        count[d] = FV_MIN(j->tile[d], j->side[d].end - start[d]);
        place += (start[d] - j->side[d].start) * j->side[d].out_stride;
    }
    int64_t width = count[X] + j->side[X].size - 1;
    for (int64_t z = 0; z < count[Z] + j->side[Z].size - 1; z++)
        for (int64_t y = 0; y < count[Y] + j->side[Y].size - 1; y++) R(padded_row)
    (j, in, start[Z] - j->side[Z].before + z, start[Y] - j->side[Y].before + y, start[X] - j->side[X].before, width,
     (REAL *)j->padded + (z * j->rows + y) * j->pitch);
    for (int64_t z = 0; z < count[Z]; z++)
        for (int64_t y = 0; y < count[Y]; y++) {
            REAL *row = j->row, *to = out + place + z * j->side[Z].out_stride + y * j->side[Y].out_stride;
            R(sum_row)((const REAL *)j->padded + (z * j->rows + y) * j->pitch, j->offset, j->weight, j->count, count[X], row);
            for (int64_t x = 0; x < count[X]; x++) to[x * j->side[X].out_stride] = row[x];
        }
}
