/* Sums over chunks as a coarse level of the file tells them. Each voxel of the coarse level counts for the chunk in which its
 * centre lies. The level is read some planes at a time, and a small one as a whole. */
#include "exec/coarse_sums.h"
#include "base/take.h"
#include "op/format.h"
#include "op/kernels.h"
#include "op/sampling.h"
#include <stdlib.h>

enum { MOST_BYTES = 16 << 20 }; /* of planes that are read at once */

typedef struct coarse {
    const fv_stage *stage;
    fv_reader      *reader;
    int64_t        *chunk[FV_MAX_DIMS]; /* by axis and voxel of the coarse level: what its chunk adds to the number of the task */
    double         *sum, *count;        /* by task */
    double         *ranks;              /* by the first bits of a value; NULL: values are taken as they are */
    void           *planes;             /* room for those that are read at once */
    int64_t         nplanes;
    bool            whole; /* all of them are there */
} coarse;

enum { KEYS = 1 << 16 };

/* The number of the first task with a position along one axis, which is what that position adds. */
static int64_t task_along(const fv_stage *stage, int axis, int64_t position) {
    for (int d = axis + 1; d < stage->lattice.ndim; d++) position *= stage->count[d];
    return position;
}

static fv_status map_axis(coarse *c, int axis, int64_t full, fv_error *error) {
    int64_t length = c->reader->type.shape[axis], index, position = 0;
    FV_TRY(FV_TAKE(c->chunk[axis], (size_t)length * sizeof *c->chunk[axis], error));
    for (int64_t j = 0; j < length; j++) {
        int64_t at = (int64_t)(((double)j + 0.5) * (double)full / (double)length);
        for (; position + 1 < c->stage->count[axis]; position++) {
            fv_region next = fv__stage_chunk(c->stage, task_along(c->stage, axis, position + 1), &index);
            if (at < next.start[axis]) break;
        }
        c->chunk[axis][j] = task_along(c->stage, axis, position);
    }
    return FV_OK;
}

/* The first 16 bits of the value as a float32, in the order of values: sign, exponent, and 7 bits. */
static int key_of(double value) {
    float    single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return (int)((bits & 0x80000000u ? ~bits : bits | 0x80000000u) >> 16);
}

static void count_row(coarse *c, const int64_t *position, double *values) {
    (void)position;
    for (int64_t j = 0, n = c->reader->type.shape[c->reader->type.ndim - 1]; j < n; j++) c->ranks[key_of(values[j])]++;
}

/* Of each key, the part of all voxels that lies below, and half of its own. */
static void rank_counts(double *counts) {
    double all = 0, below = 0;
    for (int k = 0; k < KEYS; k++) all += counts[k];
    for (int k = 0; k < KEYS; k++) {
        double own = counts[k] / all;
        counts[k] = below + own / 2;
        below += own;
    }
}

static void add_row(coarse *c, const int64_t *position, double *values) {
    int     last = c->reader->type.ndim - 1;
    int64_t task = 0;
    for (int d = 0; d < last; d++) task += c->chunk[d][position[d]];
    for (int64_t j = 0; c->ranks && j < c->reader->type.shape[last]; j++) values[j] = c->ranks[key_of(values[j])];
    for (int64_t j = 0, n = c->reader->type.shape[last]; j < n;) {
        int64_t first = j, at = c->chunk[last][j];
        double  sum = 0;
        for (; j < n && c->chunk[last][j] == at; j++) sum += values[j];
        c->sum[task + at] += sum;
        c->count[task + at] += (double)(j - first);
    }
}

typedef void of_row(coarse *c, const int64_t *position, double *values);

static fv_status add_planes(coarse *c, of_row *add, const fv_region *planes, double *values, fv_error *error) {
    const fv_image_type *type = &c->reader->type;
    fv_block             block;
    fv_rows              rows;
    fv__block_init(&block, type->dtype, planes, c->planes);
    if (!c->whole) FV_TRY(fv__reader_read(c->reader, &block, error));
    c->whole = planes->size[0] == type->shape[0];
    for (fv__rows_begin(&rows, planes); fv__rows_next(&rows);) {
        fv__kernels_current()->convert(values, FV_FLOAT64, fv__block_at(&block, rows.position), type->dtype,
                                       type->shape[type->ndim - 1]);
        add(c, rows.position, values);
    }
    return FV_OK;
}

static fv_status add_all(coarse *c, of_row *add, fv_error *error) {
    const fv_image_type *type = &c->reader->type;
    fv_region            planes = { .ndim = type->ndim };
    fv_status            status = FV_OK;
    double              *values;
    memcpy(planes.size, type->shape, sizeof planes.size);
    FV_TRY(FV_TAKE(values, (size_t)type->shape[type->ndim - 1] * sizeof *values, error));
    for (; status == FV_OK && planes.start[0] < type->shape[0]; planes.start[0] += planes.size[0]) {
        planes.size[0] = FV_MIN(c->nplanes, type->shape[0] - planes.start[0]);
        status = add_planes(c, add, &planes, values, error);
    }
    free(values);
    return status;
}

static fv_status take_room(coarse *c, fv_error *error) {
    const fv_image_type *type = &c->reader->type;
    int64_t              plane = fv_image_type_bytes(type) / type->shape[0];
    c->nplanes = type->shape[0];
    if (c->nplanes * plane > MOST_BYTES) c->nplanes = FV_MIN(FV_MAX(c->reader->chunk[0], 1), c->nplanes);
    while (c->nplanes > 1 && c->nplanes * plane > MOST_BYTES) c->nplanes = (c->nplanes + 1) / 2;
    return FV_TAKE(c->planes, (size_t)(c->nplanes * plane), error);
}

/* In place of sums, what they differ by from those of a constant image; false: a chunk has no voxel of the coarse level. */
static bool centre(coarse *c) {
    double all = 0, voxels = 0;
    for (int64_t t = 0; t < c->stage->ntasks; t++) {
        int64_t   index;
        fv_region chunk = fv__stage_chunk(c->stage, t, &index);
        double    own = (double)fv__region_voxels(&chunk);
        if (!(c->count[t] > 0)) return false;
        c->sum[t] *= own / c->count[t];
        c->count[t] = own;
        all += c->sum[t];
        voxels += own;
    }
    for (int64_t t = 0; t < c->stage->ntasks; t++) c->sum[t] -= all / voxels * c->count[t];
    return isfinite(all);
}

static fv_status gather(coarse *c, const fv_image_type *full, double **control, fv_error *error) {
    for (int d = 0; d < full->ndim; d++) FV_TRY(map_axis(c, d, full->shape[d], error));
    FV_TRY(take_room(c, error));
    FV_TRY(FV_TAKE_ZEROED(c->sum, (size_t)(2 * c->stage->ntasks) * sizeof *c->sum, error));
    c->count = c->sum + c->stage->ntasks;
    if (c->ranks) {
        FV_TRY(add_all(c, count_row, error));
        rank_counts(c->ranks);
    }
    FV_TRY(add_all(c, add_row, error));
    if (!centre(c)) return FV_OK;
    *control = c->sum;
    c->sum = NULL;
    return FV_OK;
}

fv_status fv__coarse_level(const fv_stage *stage, const fv_node *node, fv_reader **reader, fv_error *error) {
    const int64_t       each = 64; /* voxels for a chunk */
    const fv_node      *image = node->in[0];
    const fv_estimator *source = image && image->op ? fv__op_estimator(image->op) : NULL;
    *reader = NULL;
    return source && source->coarse ? source->coarse(image->params, &image->type.image, each * stage->ntasks, reader, error)
                                    : FV_OK;
}

fv_status fv__coarse_sums(const fv_stage *stage, const fv_node *node, fv_reader *level, fv_control kind, double **control,
                          fv_error *error) {
    coarse c = { .stage = stage, .reader = level };
    *control = NULL;
    if (kind == FV_CONTROL_RANK) FV_TRY(FV_TAKE_ZEROED(c.ranks, KEYS * sizeof *c.ranks, error));
    fv_status status = gather(&c, &node->in[0]->type.image, control, error);
    free(c.ranks);
    free(c.planes);
    for (int d = 0; d < FV_MAX_DIMS; d++) free(c.chunk[d]);
    free(c.sum);
    return status;
}
