/* Sums of voxels times any weights, tile by tile. */
#include "kernels/correlate.h"
#include "kernels/padded.h"
#include "kernels/vectors.h"
#include "op/kernels.h"
#include "op/scratch.h"

enum { Z = FV_SIDE_Z, Y = FV_SIDE_Y, X = FV_SIDE_X };
enum { TILE_BYTES = 512 << 10, SLACK = 64 };

typedef struct job {
    const fv_box *box;
    fv_side       side[3];
    fv_dtype      dtype;
    int64_t       tile[3], rows, pitch; /* results of a tile; rows of a padded plane; elements of a row */
    uint64_t      nothing[1];           /* an element 0 */
    int64_t       count;                /* weights that are not 0 */
    int64_t      *offset;
    void         *weight, *raw, *padded, *row;
} job;

/* Sides of a tile, not below twice the box: beyond that, what neighbouring tiles look at both would outweigh the tiles. */
static void set_tile(job *j, int64_t real) {
    for (int d = 0; d < 3; d++) j->tile[d] = j->side[d].end - j->side[d].start;
    for (;;) {
        int64_t voxels = 1;
        int     longest = -1;
        for (int d = 0; d < 3; d++) {
            voxels *= j->tile[d] + j->side[d].size - 1;
            if (j->tile[d] > FV_MAX(2 * j->side[d].size, d == X ? 256 : 16) && (longest < 0 || j->tile[d] > j->tile[longest]))
                longest = d;
        }
        if (voxels * real <= TILE_BYTES || longest < 0) return;
        j->tile[longest] = (j->tile[longest] + 1) / 2;
    }
}

static size_t lay_out(job *j, const fv_box *box, const fv_need *need, void *memory) {
    int64_t real = (int64_t)fv_dtype_size(need->out->image.dtype);
    *j = (job){ .box = box, .dtype = need->in[0]->image.dtype };
    fv__box_sides(box, need, j->side);
    set_tile(j, real);
    j->rows = j->tile[Y] + j->side[Y].size - 1;
    j->pitch = j->tile[X] + j->side[X].size - 1 + SLACK;
    int64_t    voxels = j->side[Z].size * j->side[Y].size * j->side[X].size;
    fv_scratch pieces = { memory, 0 };
    j->offset = fv__scratch_take(&pieces, voxels * 8);
    j->weight = fv__scratch_take(&pieces, voxels * real);
    j->raw = fv__scratch_take(&pieces, j->pitch * (int64_t)fv_dtype_size(j->dtype));
    j->row = fv__scratch_take(&pieces, (j->tile[X] + SLACK) * real);
    j->padded = fv__scratch_take(&pieces, ((j->tile[Z] + j->side[Z].size - 1) * j->rows * j->pitch + SLACK) * real);
    return pieces.used;
}

size_t fv__correlate_scratch(const fv_box *box, const fv_need *need) {
    job j;
    return fv__region_empty(&need->region) ? 0 : lay_out(&j, box, need, NULL);
}

extern const fv_kernels FV_PASTE(fv_kernels_, FV_ISA);

#define REAL float
#define VECTOR fv_f32v
#define LANES FV_F32_LANES
#define R(name) FV_PASTE(name, _f32)
#include "kernels/correlate_real.h"
#undef REAL
#undef VECTOR
#undef LANES
#undef R
#define REAL double
#define VECTOR fv_f64v
#define LANES FV_F64_LANES
#define R(name) FV_PASTE(name, _f64)
#include "kernels/correlate_real.h"

void fv__correlate_run(const fv_box *box, const double *weights, const fv_run *r) {
    job     j;
    int64_t start[3];
    bool    single = r->out->dtype == FV_FLOAT32;
    if (fv__region_empty(&r->need.region)) return;
    lay_out(&j, box, &r->need, r->scratch);
    fv__box_strides(box, r, 1, j.side);
    single ? list_weights_f32(&j, weights) : list_weights_f64(&j, weights);
    fv_channels c;
    for (fv__channels_begin(&c, box, r); fv__channels_next(&c);)
        for (start[Z] = j.side[Z].start; start[Z] < j.side[Z].end; start[Z] += j.tile[Z])
            for (start[Y] = j.side[Y].start; start[Y] < j.side[Y].end; start[Y] += j.tile[Y])
                for (start[X] = j.side[X].start; start[X] < j.side[X].end; start[X] += j.tile[X])
                    single ? tile_f32(&j, c.in, c.out, start) : tile_f64(&j, c.in, c.out, start);
}
