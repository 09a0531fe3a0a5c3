/* Distances in steps; see step_distance.h. */
#include "ops/morphology/step_distance.h"
#include "op/scratch.h"
#include "ops/morphology/edt.h"

enum { COLUMNS = 16 }; /* that are searched together, so that each cache line is read once */

size_t fv__steps_scratch(fv__steps *s, void *scratch) {
    fv_scratch pieces = { scratch, 0 };
    int64_t    longest = FV_MAX(s->ny, s->nx);
    s->steps = fv__scratch_take(&pieces, s->nz * s->ny * s->nx * (int64_t)sizeof *s->steps);
    s->lines = fv__scratch_take(&pieces, (COLUMNS + 1) * longest * (int64_t)sizeof *s->lines);
    s->vertex = fv__scratch_take(&pieces, longest * (int64_t)sizeof *s->vertex);
    s->start = fv__scratch_take(&pieces, longest * (int64_t)sizeof *s->start);
    return pieces.used;
}

/* ---------------------------------------------------------------- counting along the first axis */

static void carry_in(int32_t *restrict row, const int32_t *restrict carry, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int32_t from = !carry || carry[i] == FV__EDT_NONE ? FV__STEPS_FAR : carry[i];
        row[i] = row[i] < from ? row[i] : from;
    }
}

static void step(int32_t *restrict row, const int32_t *restrict before, int64_t n) {
    for (int64_t i = 0; i < n; i++) row[i] = row[i] < before[i] + 1 ? row[i] : before[i] + 1;
}

static void scan(fv__steps *s) {
    int64_t plane = s->ny * s->nx;
    for (int64_t i = 0; i < s->nz * plane; i++) s->steps[i] = s->steps[i] ? FV__STEPS_FAR : 0;
    carry_in(s->steps, s->above, plane);
    for (int64_t z = 1; z < s->nz; z++) step(s->steps + z * plane, s->steps + (z - 1) * plane, plane);
    carry_in(s->steps + (s->nz - 1) * plane, s->below, plane);
    for (int64_t z = s->nz - 2; z >= 0; z--) step(s->steps + z * plane, s->steps + (z + 1) * plane, plane);
}

/* ---------------------------------------------------------------- along the other axes */

static void taxicab(const fv__steps *s, int32_t *plane) {
    for (int64_t y = 1; y < s->ny; y++) step(plane + y * s->nx, plane + (y - 1) * s->nx, s->nx);
    for (int64_t y = s->ny - 2; y >= 0; y--) step(plane + y * s->nx, plane + (y + 1) * s->nx, s->nx);
    for (int64_t y = 0; y < s->ny; y++) {
        int32_t *row = plane + y * s->nx;
        for (int64_t x = 1; x < s->nx; x++) row[x] = FV_MIN(row[x], row[x - 1] + 1);
        for (int64_t x = s->nx - 2; x >= 0; x--) row[x] = FV_MIN(row[x], row[x + 1] + 1);
    }
}

/* What voxel i of a line means for x. */
static inline int32_t larger(const int32_t *line, int32_t x, int32_t i) {
    int32_t apart = x > i ? x - i : i - x;
    return apart > line[i] ? apart : line[i];
}

/* The last place at which voxel i < u is as good as u. */
static inline int32_t last_of(const int32_t *line, int32_t i, int32_t u) {
    int32_t middle = (i + u) / 2;
    return line[i] <= line[u] ? FV_MAX(i + line[u], middle) : FV_MIN(u - line[i], middle);
}

/* min over i of larger(x, i), by the voxels that are best somewhere, from left to right: vertex, and start of where they are. */
static void spread(const fv__steps *s, const int32_t *line, int32_t *to, int32_t n) {
    int32_t *vertex = s->vertex, *start = s->start, q = 0;
    vertex[0] = start[0] = 0;
    for (int32_t u = 1; u < n; u++) {
        while (q >= 0 && larger(line, start[q], vertex[q]) > larger(line, start[q], u)) q--;
        if (q < 0) {
            q = 0;
            vertex[0] = u;
            continue;
        }
        int32_t from = last_of(line, vertex[q], u) + 1;
        if (from >= n) continue;
        vertex[++q] = u;
        start[q] = from;
    }
    for (int32_t x = n - 1; x >= 0; x--) {
        to[x] = larger(line, x, vertex[q]);
        if (x == start[q]) q--;
    }
}

static void chessboard(const fv__steps *s, int32_t *plane) {
    int32_t *out = s->lines + COLUMNS * FV_MAX(s->ny, s->nx);
    for (int64_t x = 0; x < s->nx && s->ny > 1; x += COLUMNS) {
        int64_t count = FV_MIN(COLUMNS, s->nx - x);
        for (int64_t y = 0; y < s->ny; y++)
            for (int64_t k = 0; k < count; k++) s->lines[k * s->ny + y] = plane[y * s->nx + x + k];
        for (int64_t k = 0; k < count; k++) {
            spread(s, s->lines + k * s->ny, out, (int32_t)s->ny);
            memcpy(s->lines + k * s->ny, out, (size_t)s->ny * sizeof *out);
        }
        for (int64_t y = 0; y < s->ny; y++)
            for (int64_t k = 0; k < count; k++) plane[y * s->nx + x + k] = s->lines[k * s->ny + y];
    }
    for (int64_t y = 0; y < s->ny && s->nx > 1; y++) {
        memcpy(out, plane + y * s->nx, (size_t)s->nx * sizeof *out);
        spread(s, out, plane + y * s->nx, (int32_t)s->nx);
    }
}

void fv__steps_run(fv__steps *s) {
    scan(s);
    for (int64_t z = 0; z < s->nz; z++) (s->chessboard ? chessboard : taxicab)(s, s->steps + z * s->ny * s->nx);
}
