/* Parallel beams on OpenCL devices. */
#include "ops/tomography/beam_device.h"
#include "beam_cl.h"

enum { LANES = FV_BEAM_LANES, TILE = 16 };
enum { ANGLES, SINOGRAM, IMAGE = SINOGRAM, OUT, FILTER }; /* buffers of a lane */

const fv_device_program *fv__beam_program(const fv_device *device) {
    static const fv_device_program on_processor = { beam, "-DTILE=16" }, on_card = { beam, "-DTILE=1" };
    return fv__device_processor(device) ? &on_processor : &on_card;
}

static int64_t tiles(const fv_device *device, int64_t n) { return fv__device_processor(device) ? (n + TILE - 1) / TILE : n; }

static int64_t angle_bytes(const fv_beam *b) { return b->nangles * (int64_t)sizeof(fv_beam_angle); }
static int64_t line_bytes(int64_t n) { return n * LANES * (int64_t)sizeof(float); }

/* A run cut along its output: bundles of slices, and of each so many lines (rows or angles) at a time. */
typedef struct cut cut;
typedef struct piece {
    int64_t z, slices, line, lines;
} piece;
struct cut {
    fv_run            *run;
    const fv_beam_job *job;
    int64_t            first, count;      /* slices */
    int64_t            lines, step;       /* of a bundle, and of a piece */
    int64_t            start, n;          /* of a line */
    int64_t            by_line, by_slice; /* strides of the output */
    /* Packs what the piece is made from, and runs the kernels. */
    fv_status (*make)(const cut *c, fv_device *d, int lane, const piece *p, fv_error *error);
};

/* line: axis of the output's lines. */
static cut make_cut(fv_run *r, const fv_beam_job *job, int line, int64_t memory, int64_t fixed) {
    const fv_block *out = r->out;
    int             last = out->region.ndim - 1, slice = last < 2 ? -1 : 1 - line;
    cut             c = { .run = r,
                          .job = job,
                          .lines = out->region.size[line],
                          .start = out->region.start[last],
                          .n = out->region.size[last],
                          .by_line = out->stride[line],
                          .by_slice = slice < 0 ? 0 : out->stride[slice] };
    fv__scan_slices(&out->region, slice, &c.first, &c.count);
    c.step = FV_MIN(FV_MAX((memory / FV_LANES - fixed) / line_bytes(c.n), 1), c.lines);
    return c;
}

static piece piece_at(const cut *c, int64_t index) {
    int64_t parts = (c->lines + c->step - 1) / c->step;
    piece   p = { .z = index / parts * LANES, .line = index % parts * c->step };
    p.slices = FV_MIN(LANES, c->count - p.z);
    p.lines = FV_MIN(c->step, c->lines - p.line);
    return p;
}

static fv_status send(void *context, fv_device *d, int lane, int64_t index, fv_error *error) {
    const cut *c = context;
    piece      p = piece_at(c, index);
    fv__lane_copy(d, lane, ANGLES, c->job->beam.angle, angle_bytes(&c->job->beam));
    fv__lane_room(d, lane, OUT, p.lines * line_bytes(c->n));
    return c->make(c, d, lane, &p, error);
}

static fv_status receive(void *context, fv_device *d, int lane, int64_t index, fv_error *error) {
    (void)error;
    const cut   *c = context;
    piece        p = piece_at(c, index);
    const float *from = fv__lane_look(d, lane, OUT, p.lines * line_bytes(c->n));
    for (int64_t i = 0; from && i < p.lines; i++)
        fv__bundle_unpack(from + i * c->n * LANES, c->n, p.slices,
                          (float *)c->run->out->data + (p.line + i) * c->by_line + p.z * c->by_slice, c->by_slice);
    fv__lane_done(d, lane, OUT);
    return FV_OK;
}

static fv_status run_cut(cut *c, fv_device *d, fv_error *error) {
    int64_t pieces = (c->count + LANES - 1) / LANES * ((c->lines + c->step - 1) / c->step);
    return fv__device_pieces(d, pieces, send, receive, c, error);
}

/* ---------------------------------------------------------------- projection */

static int64_t project_fixed(const fv_beam *b) { return angle_bytes(b) + fv__beam_image_bytes(b); }
int64_t        fv__beam_project_least(const fv_beam *b) { return FV_LANES * (project_fixed(b) + line_bytes(b->columns)); }
int64_t fv__beam_project_wanted(const fv_beam *b) { return FV_LANES * (project_fixed(b) + b->nangles * line_bytes(b->columns)); }

static fv_status project(const cut *c, fv_device *d, int lane, const piece *p, fv_error *error) {
    const fv_beam *b = &c->job->beam;
    float         *image = fv__lane_fill(d, lane, IMAGE, fv__beam_image_bytes(b));
    if (image) FV_TRY(fv__bundle_pack(b, c->run->in[0], c->first + p->z, p->slices, "volume", c->job->rows, image, error));
    fv__lane_send(d, lane, IMAGE);
    FV_LANE_RUN(d, lane, fv__beam_program(d), "project", tiles(d, c->n), p->lines, 1, FV_BUFFER(ANGLES),
                FV_VALUE(int32_t, (int32_t)(c->run->out->region.start[0] + p->line)), FV_BUFFER(IMAGE),
                FV_VALUE(int32_t, (int32_t)b->rows), FV_VALUE(int32_t, (int32_t)b->width), FV_VALUE(int32_t, (int32_t)c->start),
                FV_VALUE(int32_t, (int32_t)c->n), FV_BUFFER(OUT));
    return FV_OK;
}

fv_status fv__beam_project_run(fv_run *r, const fv_beam_job *job, fv_device *d, fv_error *error) {
    cut c = make_cut(r, job, 0, fv__device_memory(d), project_fixed(&job->beam));
    c.make = project;
    return run_cut(&c, d, error);
}

/* ---------------------------------------------------------------- back-projection */

static int64_t gather_fixed(const fv_beam *b, int64_t length) {
    return angle_bytes(b) + fv__beam_sinogram_bytes(b) + (length ? fv__fourier_device_bytes(length, b->nangles, 1) : 0);
}

int64_t fv__beam_gather_least(const fv_beam *b, int64_t length) {
    return FV_LANES * (gather_fixed(b, length) + line_bytes(b->width));
}
int64_t fv__beam_gather_wanted(const fv_beam *b, int64_t length) {
    return FV_LANES * (gather_fixed(b, length) + b->rows * line_bytes(b->width));
}

static void run_filter(const fv_beam_job *job, fv_device *d, int lane) {
    const fv_beam  *b = &job->beam;
    fv_fourier_rows rows = { .buffer = SINOGRAM,
                             .room = FILTER,
                             .nangles = b->nangles,
                             .columns = b->columns,
                             .bundles = 1,
                             .pitch = b->columns + 2 * FV_BEAM_PAD,
                             .first = FV_BEAM_PAD,
                             .step = 1 };
    fv__fourier_device_run(job->fourier, d, lane, &rows);
}

static fv_status gather(const cut *c, fv_device *d, int lane, const piece *p, fv_error *error) {
    const fv_beam   *b = &c->job->beam;
    const fv_region *out = &c->run->out->region;
    float           *sinogram = fv__lane_fill(d, lane, SINOGRAM, fv__beam_sinogram_bytes(b));
    if (sinogram) FV_TRY(fv__scan_pack(&c->job->scan, c->run->in[0], c->first + p->z, p->slices, c->job->rows, sinogram, error));
    fv__lane_send(d, lane, SINOGRAM);
    if (c->job->fourier) run_filter(c->job, d, lane);
    FV_LANE_RUN(d, lane, fv__beam_program(d), "gather", tiles(d, c->n), p->lines, 1, FV_BUFFER(ANGLES),
                FV_VALUE(int32_t, (int32_t)b->nangles), FV_BUFFER(SINOGRAM), FV_VALUE(int32_t, (int32_t)b->columns),
                FV_VALUE(int32_t, c->job->weights == FV_BEAM_JOSEPH),
                FV_VALUE(int32_t, (int32_t)(out->start[out->ndim - 2] + p->line)), FV_VALUE(int32_t, (int32_t)c->start),
                FV_VALUE(int32_t, (int32_t)c->n), FV_BUFFER(OUT));
    return FV_OK;
}

fv_status fv__beam_gather_run(fv_run *r, const fv_beam_job *job, fv_device *d, fv_error *error) {
    cut c = make_cut(r, job, r->out->region.ndim - 2, fv__device_memory(d),
                     gather_fixed(&job->beam, job->fourier ? job->fourier->n : 0));
    c.make = gather;
    return run_cut(&c, d, error);
}
