/* Mean and variance of boxes, tile by tile: rows are merged along x into a plane, that along y into a volume, that along z. */
#include "kernels/local_moments.h"
#include "kernels/padded.h"
#include "op/kernels.h"
#include "op/scratch.h"

enum { Z = FV_SIDE_Z, Y = FV_SIDE_Y, X = FV_SIDE_X };
enum { TILE_VOXELS = 1 << 16, STRIP = 64 };

typedef struct pair {
    double *mean, *variance;
} pair;

typedef struct job {
    const fv_local_moments *m;
    fv_side                 side[3];
    fv_dtype                dtype;
    int64_t                 tile[3];
    uint64_t                nothing[1]; /* an element 0 */
    void                   *raw;        /* a row as the image has it */
    double                 *line;
    pair                    plane, volume, row;
} job;

/* Sides of a tile, not below twice the box: beyond that, what neighbouring tiles look at both would outweigh the tiles. */
static void set_tile(job *j) {
    for (int d = 0; d < 3; d++) j->tile[d] = j->side[d].end - j->side[d].start;
    for (;;) {
        int64_t voxels = 1;
        int     longest = -1;
        for (int d = 0; d < 3; d++) {
            voxels *= j->tile[d] + (d < X ? j->side[d].size - 1 : 0);
            if (j->tile[d] > FV_MAX(2 * j->side[d].size, STRIP) && (longest < 0 || j->tile[d] > j->tile[longest])) longest = d;
        }
        if (voxels <= TILE_VOXELS || longest < 0) return;
        j->tile[longest] = (j->tile[longest] + 1) / 2;
    }
}

static pair take_pair(fv_scratch *pieces, int64_t n) {
    pair p;
    p.mean = fv__scratch_take(pieces, n * 8);
    p.variance = fv__scratch_take(pieces, n * 8);
    return p;
}

static size_t lay_out(job *j, const fv_local_moments *m, const fv_need *need, void *memory) {
    *j = (job){ .m = m, .dtype = need->in[0]->image.dtype };
    fv__box_sides(&m->box, need, j->side);
    set_tile(j);
    fv_scratch pieces = { memory, 0 };
    int64_t    width = j->tile[X] + j->side[X].size - 1;
    j->raw = fv__scratch_take(&pieces, width * (int64_t)fv_dtype_size(j->dtype));
    j->line = fv__scratch_take(&pieces, width * 8);
    j->plane = take_pair(&pieces, (j->tile[Y] + j->side[Y].size - 1) * j->tile[X]);
    j->volume = take_pair(&pieces, (j->tile[Z] + j->side[Z].size - 1) * j->tile[Y] * j->tile[X]);
    j->row = take_pair(&pieces, j->tile[X]);
    return pieces.used;
}

size_t fv__local_moments_scratch(const fv_local_moments *m, const fv_need *need) {
    job j;
    return fv__region_empty(&need->region) ? 0 : lay_out(&j, m, need, NULL);
}

double fv__local_moments_cost(const fv_local_moments *m) {
    double taps = 0;
    for (int k = 0; k < m->box.naxes; k++) taps += (double)m->box.size[k];
    return 1 + 0.5 * taps;
}

/* Merges `width` neighbours that lie `step` apart, for n results. variance NULL: single voxels. */
static void merge(const double *mean, const double *variance, int64_t step, int64_t width, int64_t n, pair to) {
    for (int64_t start = 0; start < n; start += STRIP) {
        int64_t       count = FV_MIN(STRIP, n - start);
        const double *m = mean + start, *v = variance ? variance + start : NULL;
        double        sum[STRIP] = { 0 }, middle[STRIP];
        for (int64_t t = 1; t < width; t++)
            for (int64_t i = 0; i < count; i++) sum[i] += m[t * step + i] - m[i];
        for (int64_t i = 0; i < count; i++) middle[i] = m[i] + sum[i] / (double)width, sum[i] = 0;
        for (int64_t t = 0; t < width; t++) {
            for (int64_t i = 0; i < count; i++) {
                double off = m[t * step + i] - middle[i];
                sum[i] += off * off;
            }
            for (int64_t i = 0; i < count && v; i++) sum[i] += v[t * step + i];
        }
        for (int64_t i = 0; i < count; i++) to.mean[start + i] = middle[i], to.variance[start + i] = sum[i] / (double)width;
    }
}

static pair at(pair p, int64_t offset) { return (pair){ p.mean + offset, p.variance + offset }; }

extern const fv_kernels FV_PASTE(fv_kernels_, FV_ISA);

/* A row as real numbers into the line, with what lies around the image. The constant keeps digits that the image's type has
 * not. */
static void padded_row(const job *j, const char *in, int64_t z, int64_t y, int64_t x, int64_t count) {
    fv__padded_row(j->side, j->m->box.border, in, z, y, x, count, fv_dtype_size(j->dtype), j->nothing, j->raw);
    FV_PASTE(fv_kernels_, FV_ISA).convert(j->line, FV_FLOAT64, j->raw, j->dtype, count);
    if (j->m->box.border != FV_BORDER_CONSTANT) return;
    int64_t first, last;
    fv__padded_inside(j->side, z, y, x, count, &first, &last);
    for (int64_t i = 0; i < first; i++) j->line[i] = j->m->box.cval;
    for (int64_t i = last; i < count; i++) j->line[i] = j->m->box.cval;
}

/* Fills the volume with the merged planes that the tile at `start` looks at. */
static void fill_volume(const job *j, const char *in, const int64_t *start, const int64_t *count) {
    int64_t width = count[X] + j->side[X].size - 1;
    for (int64_t z = 0; z < count[Z] + j->side[Z].size - 1; z++) {
        for (int64_t y = 0; y < count[Y] + j->side[Y].size - 1; y++) {
            padded_row(j, in, start[Z] - j->side[Z].before + z, start[Y] - j->side[Y].before + y, start[X] - j->side[X].before,
                       width);
            merge(j->line, NULL, 1, j->side[X].size, count[X], at(j->plane, y * j->tile[X]));
        }
        for (int64_t y = 0; y < count[Y]; y++) {
            pair row = at(j->plane, y * j->tile[X]);
            merge(row.mean, row.variance, j->tile[X], j->side[Y].size, count[X],
                  at(j->volume, (z * j->tile[Y] + y) * j->tile[X]));
        }
    }
}

static void store(double *row, int64_t n, char *to, fv_dtype dtype, int64_t stride) {
    if (dtype == FV_FLOAT32)
        for (int64_t i = 0; i < n; i++) ((float *)to)[i * stride] = (float)row[i];
    else
        for (int64_t i = 0; i < n; i++) ((double *)to)[i * stride] = row[i];
}

static void tile_of(const job *j, const char *in, char *out, fv_dtype out_type, const int64_t *start) {
    int64_t count[3], place = 0, size = (int64_t)fv_dtype_size(out_type);
    for (int d = 0; d < 3; d++) {
        count[d] = FV_MIN(j->tile[d], j->side[d].end - start[d]);
        place += (start[d] - j->side[d].start) * j->side[d].out_stride;
    }
    fill_volume(j, in, start, count);
    for (int64_t z = 0; z < count[Z]; z++)
        for (int64_t y = 0; y < count[Y]; y++) {
            pair column = at(j->volume, (z * j->tile[Y] + y) * j->tile[X]);
            merge(column.mean, column.variance, j->tile[Y] * j->tile[X], j->side[Z].size, count[X], j->row);
            j->m->emit(j->m->params, count[X], j->row.mean, j->row.variance, j->row.variance);
            store(j->row.variance, count[X], out + (place + z * j->side[Z].out_stride + y * j->side[Y].out_stride) * size,
                  out_type, j->side[X].out_stride);
        }
}

void fv__local_moments_run(const fv_local_moments *m, const fv_run *r) {
    job     j;
    int64_t start[3];
    if (fv__region_empty(&r->need.region)) return;
    lay_out(&j, m, &r->need, r->scratch);
    fv__box_strides(&m->box, r, 1, j.side);
    fv_channels c;
    for (fv__channels_begin(&c, &m->box, r); fv__channels_next(&c);)
        for (start[Z] = j.side[Z].start; start[Z] < j.side[Z].end; start[Z] += j.tile[Z])
            for (start[Y] = j.side[Y].start; start[Y] < j.side[Y].end; start[Y] += j.tile[Y])
                for (start[X] = j.side[X].start; start[X] < j.side[X].end; start[X] += j.tile[X])
                    tile_of(&j, c.in, c.out, r->out->dtype, start);
}
