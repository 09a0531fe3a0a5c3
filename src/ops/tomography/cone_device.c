/* Filtered back-projection of cone beams on OpenCL devices.
 *
 * Blocks of angles take turns on the two lanes, and each lane adds up its own; the host adds the two sums. Blocks have the same
 * angles whatever the device's memory, so the result does not depend on how a region is cut. */
#include "ops/tomography/cone_device.h"
#include "cone_gather_cl.h"

enum { BUNDLE = 16, TILE = 16, DEEPEST = 64, GROUP = 32 }; /* slices: of a bundle, of a piece, of a work-item on a processor */
enum { BLOCK = 32 };                                       /* angles; even, because the filter takes pairs */
enum { VIEW, COSINE, SINE, PROJECTIONS, OUT, FILTER };     /* buffers of a lane */

typedef struct view {
    double source, magnify, center, middle_row, middle, across, down, rise;
} view;

typedef struct cut {
    const fv_cone_job *job;
    const fv_block    *out;
    int64_t            depth, height;        /* slices and rows of a piece */
    int64_t            slabs, bands, blocks; /* in all */
} cut;

typedef struct piece {
    int64_t block, y, height, z, depth; /* y, z: of the region */
    int64_t first_row, rows;
} piece;

static int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
static int64_t parts(int64_t n, int64_t of) { return (n + of - 1) / of; }

/* Detector rows that slices z ... of the region look at, in whole bundles. */
static void rows_of(const fv_cone_job *job, int64_t z, int64_t depth, int64_t *first, int64_t *rows) {
    *first = job->cone.first_row;
    *rows = BUNDLE;
    if (job->single) return;
    FV_ISA_NAME(fv__cone_rows)(&job->cone, job->first + z, FV_MIN(depth, job->count - z), first, rows);
    *rows = FV_MIN(up(*rows, BUNDLE), job->cone.nrows);
    *first = FV_MIN(*first, job->cone.first_row + job->cone.nrows - *rows);
}

static int64_t most_rows(const fv_cone_job *job, int64_t depth) {
    int64_t most = 0, first, rows;
    for (int64_t z = 0; z < job->count; z += depth) {
        rows_of(job, z, depth, &first, &rows);
        most = FV_MAX(most, rows);
    }
    return most;
}

static int64_t turn_bytes(const fv_cone *c) { return up(c->nangles, BUNDLE) * (int64_t)sizeof(double); }
/* A vector more than there is: the kernel loads whole ones. */
static int64_t block_bytes(const fv_cone *c, int64_t rows) { return (BLOCK * c->columns * rows + 16) * (int64_t)sizeof(float); }
static int64_t line_bytes(int64_t depth, int64_t width) { return depth * width * (int64_t)sizeof(float); }

static int64_t fixed_bytes(const fv_cone_job *job, int64_t depth) {
    int64_t rows = most_rows(job, depth);
    return (int64_t)sizeof(view) + 2 * turn_bytes(&job->cone) + block_bytes(&job->cone, rows) +
           fv__fourier_device_bytes(job->fourier->n, BLOCK, rows / BUNDLE);
}

static int64_t height_of(const fv_region *region) { return region->size[region->ndim - 2]; }
static int64_t width_of(const fv_region *region) { return region->size[region->ndim - 1]; }

static int64_t bytes(const fv_cone_job *job, const fv_region *region, int64_t depth, int64_t height) {
    return FV_LANES * (fixed_bytes(job, depth) + height * line_bytes(depth, width_of(region)));
}

int64_t fv__cone_gather_least(const fv_cone_job *job, const fv_region *region) { return bytes(job, region, BUNDLE, 1); }
int64_t fv__cone_gather_wanted(const fv_cone_job *job, const fv_region *region) {
    return bytes(job, region, FV_MIN(DEEPEST, job->count), height_of(region));
}

/* ---------------------------------------------------------------- pieces */

/* Fewer slices before fewer rows: all rows look at nearly the same projections. */
static cut make_cut(const fv_cone_job *job, const fv_block *out, int64_t memory) {
    int64_t depth = FV_MIN(DEEPEST, job->count), height = height_of(&out->region);
    while (depth > BUNDLE && bytes(job, &out->region, depth, height) > memory) depth -= BUNDLE;
    int64_t room = (memory / FV_LANES - fixed_bytes(job, depth)) / line_bytes(depth, width_of(&out->region));
    height = FV_MIN(FV_MAX(room, 1), height);
    return (cut){ .job = job,
                  .out = out,
                  .depth = depth,
                  .height = height,
                  .slabs = parts(job->count, depth),
                  .bands = parts(height_of(&out->region), height),
                  .blocks = parts(job->cone.nangles, BLOCK) };
}

static piece piece_at(const cut *c, int64_t index) {
    piece p = { .block = index % c->blocks,
                .y = index / c->blocks % c->bands * c->height,
                .z = index / c->blocks / c->bands * c->depth };
    p.height = FV_MIN(c->height, height_of(&c->out->region) - p.y);
    p.depth = FV_MIN(c->depth, c->job->count - p.z);
    rows_of(c->job, p.z, c->depth, &p.first_row, &p.rows);
    return p;
}

static void send_view(const cut *c, fv_device *d, int lane, const piece *p) {
    const fv_cone *cone = &c->job->cone;
    const int64_t *start = c->out->region.start + c->out->region.ndim - 2;
    view           v = { .source = cone->source,
                         .magnify = cone->magnify,
                         .center = cone->center,
                         .middle_row = cone->middle_row,
                         .middle = cone->middle,
                         .across = (double)start[1] - (double)(cone->width - 1) / 2,
                         .down = (double)(start[0] + p->y) - (double)(cone->height - 1) / 2,
                         .rise = !c->job->single };
    double        *to[2];
    fv__lane_copy(d, lane, VIEW, &v, (int64_t)sizeof v);
    for (int b = 0; b < 2; b++) {
        to[b] = fv__lane_fill(d, lane, COSINE + b, turn_bytes(cone));
        for (int64_t a = 0; to[b] && a < up(cone->nangles, BUNDLE); a++) /* the device looks at whole bundles of angles */
            to[b][a] = a < cone->nangles ? (b ? cone->sine : cone->cosine)[a] : !b;
        fv__lane_send(d, lane, COSINE + b);
    }
}

static fv_status send_projections(const cut *c, fv_device *d, int lane, const piece *p, int64_t nangles, fv_error *error) {
    const fv_cone_job *job = c->job;
    int64_t            one = job->cone.columns * p->rows;
    float             *to = fv__lane_fill(d, lane, PROJECTIONS, block_bytes(&job->cone, p->rows));
    fv_status          status = FV_OK;
    if (to) memset(to, 0, (size_t)block_bytes(&job->cone, p->rows));
    for (int64_t a = 0; to && a < nangles && status == FV_OK; a++)
        status = job->pack(job->context, p->block * BLOCK + a, p->first_row, p->rows, to + a * one, error);
    fv__lane_send(d, lane, PROJECTIONS);
    fv_fourier_rows rows = { .buffer = PROJECTIONS,
                             .room = FILTER,
                             .nangles = nangles,
                             .columns = job->cone.columns,
                             .bundles = p->rows / BUNDLE,
                             .pitch = one / BUNDLE,
                             .step = p->rows / BUNDLE };
    fv__fourier_device_run(job->fourier, d, lane, &rows);
    return status;
}

static fv_status send(void *context, fv_device *d, int lane, int64_t index, fv_error *error) {
    static const fv_device_program on_processor = { cone_gather, "-DTILE=16" }, on_card = { cone_gather, "-DTILE=1" };
    const cut                     *c = context;
    piece                          p = piece_at(c, index);
    bool                           processor = fv__device_processor(d), fresh = p.block < FV_LANES;
    int64_t                        width = width_of(&c->out->region), nangles = c->job->cone.nangles - p.block * BLOCK;
    nangles = FV_MIN(nangles, BLOCK);
    if (fresh) {
        send_view(c, d, lane, &p);
        fv__lane_room(d, lane, OUT, p.height * line_bytes(p.depth, width));
    }
    FV_TRY(send_projections(c, d, lane, &p, nangles, error));
    FV_LANE_RUN(d, lane, processor ? &on_processor : &on_card, "gather", processor ? parts(width, TILE) : p.depth,
                processor ? parts(p.height, TILE) : width, processor ? parts(p.depth, GROUP) : p.height, FV_BUFFER(VIEW),
                FV_BUFFER(COSINE), FV_BUFFER(SINE), FV_VALUE(int32_t, (int32_t)(p.block * BLOCK)),
                FV_VALUE(int32_t, (int32_t)nangles), FV_BUFFER(PROJECTIONS), FV_VALUE(int32_t, (int32_t)c->job->cone.columns),
                FV_VALUE(int32_t, (int32_t)p.rows), FV_VALUE(int32_t, (int32_t)p.first_row),
                FV_VALUE(int32_t, (int32_t)(c->job->first + p.z)), FV_VALUE(int32_t, fresh), FV_VALUE(int32_t, (int32_t)p.depth),
                FV_VALUE(int32_t, (int32_t)p.height), FV_VALUE(int32_t, (int32_t)width), FV_BUFFER(OUT));
    return FV_OK;
}

/* from[n][16] to a line of each slice, or added to it. */
static void put(const float *from, int64_t n, int64_t slices, bool add, float *at, int64_t stride) {
    for (int64_t l = 0; l < slices; l++)
        for (int64_t i = 0; i < n; i++) at[l * stride + i] = from[i * BUNDLE + l] + (add ? at[l * stride + i] : 0);
}

/* The last block of each lane brings the lane's sum. */
static fv_status receive(void *context, fv_device *d, int lane, int64_t index, fv_error *error) {
    (void)error;
    const cut       *c = context;
    const fv_region *region = &c->out->region;
    piece            p = piece_at(c, index);
    int              last = region->ndim - 1;
    int64_t          n = width_of(region), stride = last == 2 ? c->out->stride[0] : 0, slices = last == 2 ? region->size[0] : 1;
    if (p.block < c->blocks - FV_LANES) return FV_OK;
    const float *from = fv__lane_look(d, lane, OUT, p.height * line_bytes(p.depth, n));
    for (int64_t z = 0; from && z < p.depth && p.z + z < slices; z += BUNDLE)
        for (int64_t y = 0; y < p.height; y++)
            put(from + (z / BUNDLE * p.height + y) * n * BUNDLE, n, FV_MIN(BUNDLE, slices - p.z - z),
                p.block > 0 && p.block == c->blocks - 1,
                (float *)c->out->data + (p.z + z) * stride + (p.y + y) * c->out->stride[last - 1], stride);
    fv__lane_done(d, lane, OUT);
    return FV_OK;
}

fv_status fv__cone_gather_run(fv_run *r, const fv_cone_job *job, fv_device *d, fv_error *error) {
    cut c = make_cut(job, r->out, fv__device_memory(d));
    return fv__device_pieces(d, c.slabs * c.bands * c.blocks, send, receive, &c, error);
}
