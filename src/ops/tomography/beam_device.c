/* Parallel beams on OpenCL devices. */
#include "ops/tomography/beam_device.h"
#include "beam_cl.h"

enum { LANES = FV_BEAM_LANES, TILE = 16 };
enum { ANGLES, SINOGRAM, IMAGE = SINOGRAM, OUT, FILTER }; /* buffers of a lane */

const fv_device_program *fv__beam_program(const fv_device *device) {
    static const fv_device_program on_processor = { beam, "-DTILE=16" }, on_card = { beam, "-DTILE=1" };
    return fv_device_processor(device) ? &on_processor : &on_card;
}

static int64_t tiles(const fv_device *device, int64_t n) { return fv_device_processor(device) ? (n + TILE - 1) / TILE : n; }

static int64_t angle_bytes(const fv_beam *b) { return b->nangles * (int64_t)sizeof(fv_beam_angle); }
static int64_t line_bytes(int64_t n) { return n * LANES * (int64_t)sizeof(float); }

/* A run cut along its output: bundles of slices, and of each so many rows (or angles) at a time. */
typedef struct cut {
    fv_run            *run;
    const fv_beam_job *job;
    int64_t            first, count; /* slices */
    int64_t            lines, step;  /* rows or angles of a bundle, and of a piece */
} cut;

typedef struct piece {
    int64_t z, slices, line, lines;
} piece;

static cut make_cut(fv_run *r, const fv_beam_job *job, int row, int64_t lines, int64_t memory, int64_t fixed, int64_t of_line) {
    cut c = { .run = r, .job = job, .lines = lines };
    fv__scan_slices(&r->out->region, row, &c.first, &c.count);
    c.step = FV_MIN(FV_MAX((memory / FV_LANES - fixed) / of_line, 1), lines);
    return c;
}

static int64_t pieces(const cut *c) { return (c->count + LANES - 1) / LANES * ((c->lines + c->step - 1) / c->step); }

static piece piece_at(const cut *c, int64_t index) {
    int64_t parts = (c->lines + c->step - 1) / c->step;
    piece   p = { .z = index / parts * LANES, .line = index % parts * c->step };
    p.slices = FV_MIN(LANES, c->count - p.z);
    p.lines = FV_MIN(c->step, c->lines - p.line);
    return p;
}

/* ---------------------------------------------------------------- projection */

static int64_t project_fixed(const fv_beam *b) { return angle_bytes(b) + fv_beam_image_bytes(b); }
int64_t        fv__beam_project_least(const fv_beam *b) { return FV_LANES * (project_fixed(b) + line_bytes(b->columns)); }
int64_t fv__beam_project_wanted(const fv_beam *b) { return FV_LANES * (project_fixed(b) + b->nangles * line_bytes(b->columns)); }

static fv_status send_image(void *context, fv_device *d, int lane, int64_t index, fv_error *error) {
    const cut      *c = context;
    const fv_beam  *b = &c->job->beam;
    const fv_block *out = c->run->out;
    piece           p = piece_at(c, index);
    int             last = out->region.ndim - 1;
    int64_t         n = out->region.size[last];
    fv_lane_copy(d, lane, ANGLES, b->angle, angle_bytes(b));
    float *image = fv_lane_fill(d, lane, IMAGE, fv_beam_image_bytes(b));
    if (image) FV_TRY(fv__bundle_pack(b, c->run->in[0], c->first + p.z, p.slices, "volume", c->job->rows, image, error));
    fv_lane_send(d, lane, IMAGE);
    fv_lane_room(d, lane, OUT, p.lines * line_bytes(n));
    FV_LANE_RUN(d, lane, fv__beam_program(d), "project", tiles(d, n), p.lines, 1, FV_BUFFER(ANGLES),
                FV_VALUE(int32_t, (int32_t)(out->region.start[0] + p.line)), FV_BUFFER(IMAGE),
                FV_VALUE(int32_t, (int32_t)b->rows), FV_VALUE(int32_t, (int32_t)b->width),
                FV_VALUE(int32_t, (int32_t)out->region.start[last]), FV_VALUE(int32_t, (int32_t)n), FV_BUFFER(OUT));
    return FV_OK;
}

static fv_status receive_projections(void *context, fv_device *d, int lane, int64_t index, fv_error *error) {
    (void)error;
    const cut      *c = context;
    const fv_block *out = c->run->out;
    piece           p = piece_at(c, index);
    int             last = out->region.ndim - 1;
    int64_t         n = out->region.size[last], stride = last == 2 ? out->stride[1] : 0;
    const float    *from = fv_lane_look(d, lane, OUT, p.lines * line_bytes(n));
    for (int64_t a = 0; from && a < p.lines; a++)
        fv__bundle_unpack(from + a * n * LANES, n, p.slices, (float *)out->data + (p.line + a) * out->stride[0] + p.z * stride,
                          stride);
    fv_lane_done(d, lane, OUT);
    return FV_OK;
}

fv_status fv__beam_project_run(fv_run *r, const fv_beam_job *job, fv_device *d, fv_error *error) {
    int last = r->out->region.ndim - 1;
    cut c = make_cut(r, job, last == 2 ? 1 : -1, r->out->region.size[0], fv_device_memory(d), project_fixed(&job->beam),
                     line_bytes(r->out->region.size[last]));
    return fv_device_pieces(d, pieces(&c), send_image, receive_projections, &c, error);
}

/* ---------------------------------------------------------------- back-projection */

static int64_t gather_fixed(const fv_beam *b, int64_t length) {
    return angle_bytes(b) + fv_beam_sinogram_bytes(b) + (length ? fv_fourier_device_bytes(length, b->nangles, 1) : 0);
}

int64_t fv__beam_gather_least(const fv_beam *b, int64_t length) {
    return FV_LANES * (gather_fixed(b, length) + line_bytes(b->width));
}
int64_t fv__beam_gather_wanted(const fv_beam *b, int64_t length) {
    return FV_LANES * (gather_fixed(b, length) + b->rows * line_bytes(b->width));
}

static void run_filter(const fv_beam_job *job, fv_device *d, int lane) {
    const fv_beam  *b = &job->beam;
    fv_fourier_rows rows = { .buffer = SINOGRAM, .room = FILTER, .nangles = b->nangles, .columns = b->columns, .bundles = 1,
                             .pitch = b->columns + 2 * FV_BEAM_PAD, .first = FV_BEAM_PAD, .step = 1 };
    fv_fourier_device_run(job->fourier, d, lane, &rows);
}

static fv_status send_sinogram(void *context, fv_device *d, int lane, int64_t index, fv_error *error) {
    const cut       *c = context;
    const fv_beam   *b = &c->job->beam;
    const fv_region *out = &c->run->out->region;
    piece            p = piece_at(c, index);
    int              last = out->ndim - 1;
    fv_lane_copy(d, lane, ANGLES, b->angle, angle_bytes(b));
    float *sinogram = fv_lane_fill(d, lane, SINOGRAM, fv_beam_sinogram_bytes(b));
    if (sinogram) FV_TRY(fv__scan_pack(&c->job->scan, c->run->in[0], c->first + p.z, p.slices, c->job->rows, sinogram, error));
    fv_lane_send(d, lane, SINOGRAM);
    if (c->job->fourier) run_filter(c->job, d, lane);
    fv_lane_room(d, lane, OUT, p.lines * line_bytes(out->size[last]));
    FV_LANE_RUN(d, lane, fv__beam_program(d), "gather", tiles(d, out->size[last]), p.lines, 1, FV_BUFFER(ANGLES),
                FV_VALUE(int32_t, (int32_t)b->nangles), FV_BUFFER(SINOGRAM), FV_VALUE(int32_t, (int32_t)b->columns),
                FV_VALUE(int32_t, c->job->weights == FV_BEAM_JOSEPH), FV_VALUE(int32_t, (int32_t)(out->start[last - 1] + p.line)),
                FV_VALUE(int32_t, (int32_t)out->start[last]), FV_VALUE(int32_t, (int32_t)out->size[last]), FV_BUFFER(OUT));
    return FV_OK;
}

static fv_status receive_volume(void *context, fv_device *d, int lane, int64_t index, fv_error *error) {
    (void)error;
    const cut      *c = context;
    const fv_block *out = c->run->out;
    piece           p = piece_at(c, index);
    int             last = out->region.ndim - 1;
    int64_t         n = out->region.size[last], stride = last == 2 ? out->stride[0] : 0;
    const float    *from = fv_lane_look(d, lane, OUT, p.lines * line_bytes(n));
    for (int64_t y = 0; from && y < p.lines; y++)
        fv__bundle_unpack(from + y * n * LANES, n, p.slices,
                          (float *)out->data + p.z * stride + (p.line + y) * out->stride[last - 1], stride);
    fv_lane_done(d, lane, OUT);
    return FV_OK;
}

fv_status fv__beam_gather_run(fv_run *r, const fv_beam_job *job, fv_device *d, fv_error *error) {
    int last = r->out->region.ndim - 1;
    cut c = make_cut(r, job, last == 2 ? 0 : -1, r->out->region.size[last - 1], fv_device_memory(d),
                     gather_fixed(&job->beam, job->fourier ? job->fourier->n : 0), line_bytes(r->out->region.size[last]));
    return fv_device_pieces(d, pieces(&c), send_sinogram, receive_volume, &c, error);
}
