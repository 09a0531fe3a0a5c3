/* sirt: simultaneous iterative reconstruction. */
#include "ops/tomography/beam_device.h"
#include "ops/tomography/solver.h"

static const fv_param params[] = { FV_SOLVER_GEOMETRY,
                                   FV_SOLVER_ITERATIONS("20"),
                                   FV_SOLVER_RELAXATION("1"),
                                   FV_SOLVER_NONNEGATIVE,
                                   FV_SOLVER_STOP,
                                   FV_SOLVER_SIZE,
                                   FV_SOLVER_PART,
                                   FV_PARAM_END };
static const fv_input inputs[] = { FV_SOLVER_INPUT_TABLE };

static void iterate(fv_solving *s) {
    const fv_beam *b = &s->beam;
    fv__solver_residual(s);
    if (!fv__solver_stop(s)) return;
    for (int64_t a = 0; a < b->nangles; a++)
        for (int64_t i = 0; i < b->columns; i++) {
            float *ray = fv__beam_ray(b, s->rest, a, i), length = s->lengths[a * b->columns + i];
            float  share = length > 1e-3f ? 1 / length : 0;
            for (int l = 0; l < FV_BEAM_LANES; l++) ray[l] *= share;
        }
    for (int64_t y = 0; y < b->rows; y++) {
        float *x = fv__beam_voxel(b, s->image, y, 0);
        FV_ISA_NAME(fv__beam_gather)(b, s->rest, FV_BEAM_JOSEPH, 0, b->nangles, y, 0, b->width, s->line);
        for (int64_t i = 0; i < b->width; i++) {
            float cover = s->coverage[y * b->width + i], share = cover > 1e-3f ? 1 / cover : 0;
            for (int l = 0; l < FV_BEAM_LANES; l++)
                x[i * FV_BEAM_LANES + l] += s->step[l] * (share * s->line[i * FV_BEAM_LANES + l]);
        }
        fv__solver_limit(s, y);
    }
}

static const fv_method method = { .weights = true, .iterate = iterate };
FV_SOLVER_OP(method);
FV_SOLVER_UNROLL(FV_UNROLLED_SIRT, "sirt")

/* ---------------------------------------------------------------- on a device */

enum { ANGLES, MEASURED, REST, IMAGE, MASK, RAYS, VOXELS }; /* buffers */
enum { LANES = FV_BEAM_LANES, TILE = 16 };

/* Stopping early needs the residual of every slice, added in double precision: the CPU does that. */
static bool able(const fv_need *n) { return !(((const fv_solver *)n->params)->stop > 0); }

static int64_t bundle_bytes(const fv_need *n) {
    fv_solving s;
    fv__solver_lay_out(n, &method, &s, NULL);
    const fv_beam *b = &s.beam;
    return b->nangles * (int64_t)sizeof(fv_beam_angle) + 2 * fv__beam_sinogram_bytes(b) +
           (n->in[FV_SOLVER_MASK]->kind == FV_KIND_IMAGE ? 2 : 1) * fv__beam_image_bytes(b) + 64 +
           (b->nangles * b->columns + b->rows * b->width) * (int64_t)sizeof(float);
}

static void send_shares(fv_device *d, int buffer, const float *sums, int64_t n) {
    float *to = fv__lane_fill(d, 0, buffer, n * (int64_t)sizeof(float));
    for (int64_t i = 0; to && i < n; i++) to[i] = sums[i] > 1e-3f ? 1 / sums[i] : 0;
    fv__lane_send(d, 0, buffer);
}

/* What was measured, all of it and by rays that miss the volume: these are left over whatever the volume is. */
static void measure(fv_solving *s, const float *measured) {
    const fv_beam *b = &s->beam;
    fv__solver_square(measured, b->nangles * (b->columns + 2 * FV_BEAM_PAD), s->measure);
    memset(s->scale, 0, sizeof s->scale);
    for (int64_t a = 0; a < b->nangles; a++)
        for (int64_t i = 0; i < b->columns; i++)
            for (int l = 0; l < LANES && !(s->lengths[a * b->columns + i] > 1e-3f); l++) {
                double value = (double)fv__beam_ray(b, (float *)(uintptr_t)measured, a, i)[l];
                s->scale[l] += value * value;
            }
    for (int l = 0; l < LANES; l++) s->step[l] = 1;
}

/* The device keeps what rays lack per length. */
static void find_residual(fv_solving *s, const float *rest) {
    const fv_beam *b = &s->beam;
    memcpy(s->residual, s->scale, sizeof s->residual);
    for (int64_t a = 0; a < b->nangles; a++)
        for (int64_t i = 0; i < b->columns; i++) {
            const float *ray = fv__beam_ray(b, (float *)(uintptr_t)rest, a, i), length = s->lengths[a * b->columns + i];
            for (int l = 0; l < LANES; l++) {
                double value = (double)(ray[l] * length);
                s->residual[l] += value * value;
            }
        }
}

static fv_status send_bundle(fv_run *r, fv_solving *s, fv_device *d, int64_t first, int64_t slices, fv_error *error) {
    const fv_beam *b = &s->beam;
    fv_status      status = FV_OK;
    float         *to = fv__lane_fill(d, 0, MEASURED, fv__beam_sinogram_bytes(b));
    if (to) status = fv__scan_pack(&s->scan, r->in[FV_SOLVER_PROJECTIONS], first, slices, s->rows, to, error);
    if (to && status == FV_OK) measure(s, to);
    fv__lane_send(d, 0, MEASURED);
    if ((to = fv__lane_fill(d, 0, REST, fv__beam_sinogram_bytes(b)))) memset(to, 0, (size_t)fv__beam_sinogram_bytes(b));
    fv__lane_send(d, 0, REST);
    to = fv__lane_fill(d, 0, IMAGE, fv__beam_image_bytes(b));
    if (to) memset(to, 0, (size_t)fv__beam_image_bytes(b));
    if (to && status == FV_OK && r->in[FV_SOLVER_START])
        status = fv__bundle_pack(b, r->in[FV_SOLVER_START], first, slices, "start", s->rows, to, error);
    fv__lane_send(d, 0, IMAGE);
    to = fv__lane_fill(d, 0, MASK, r->in[FV_SOLVER_MASK] ? fv__beam_image_bytes(b) : 64);
    if (to && status == FV_OK && r->in[FV_SOLVER_MASK])
        status = fv__bundle_pack(b, r->in[FV_SOLVER_MASK], first, slices, "mask", s->rows, to, error);
    fv__lane_send(d, 0, MASK);
    return status;
}

static void iterate_device(const fv_run *r, fv_solving *s, fv_device *d, int64_t first, int64_t slices) {
    const fv_device_program *p = fv__beam_program(d);
    const fv_beam           *b = &s->beam;
    int32_t rows = (int32_t)b->rows, width = (int32_t)b->width, columns = (int32_t)b->columns, nangles = (int32_t)b->nangles;
    int32_t nonnegative = s->solver->nonnegative, masked = r->in[FV_SOLVER_MASK] != NULL;
    int32_t tile = fv__device_processor(d) ? TILE : 1;
    FV_LANE_RUN(d, 0, p, "limit", width, rows, 1, FV_VALUE(int32_t, width), FV_VALUE(int32_t, nonnegative),
                FV_VALUE(int32_t, masked), FV_BUFFER(MASK), FV_BUFFER(IMAGE));
    fv_bytes *notes = fv__solver_listener(r);
    for (s->iteration = 0; s->iteration < s->solver->iterations; s->iteration++) {
        FV_LANE_RUN(d, 0, p, "compare", (columns + tile - 1) / tile, nangles, 1, FV_BUFFER(ANGLES), FV_BUFFER(IMAGE),
                    FV_VALUE(int32_t, rows), FV_VALUE(int32_t, width), FV_VALUE(int32_t, columns), FV_BUFFER(MEASURED),
                    FV_BUFFER(RAYS), FV_BUFFER(REST));
        const float *rest = notes ? fv__lane_look(d, 0, REST, fv__beam_sinogram_bytes(b)) : NULL;
        if (rest) find_residual(s, rest);
        if (notes) fv__lane_done(d, 0, REST);
        if (rest) fv__solver_note(s, first, slices, notes);
        FV_LANE_RUN(d, 0, p, "add", (width + tile - 1) / tile, rows, 1, FV_BUFFER(ANGLES), FV_VALUE(int32_t, nangles),
                    FV_BUFFER(REST), FV_VALUE(int32_t, columns), FV_VALUE(int32_t, width),
                    FV_VALUE(float, (float)s->solver->relaxation), FV_BUFFER(VOXELS), FV_VALUE(int32_t, nonnegative),
                    FV_VALUE(int32_t, masked), FV_BUFFER(MASK), FV_BUFFER(IMAGE));
    }
}

static void receive_bundle(const fv_run *r, const fv_solving *s, fv_device *d, int64_t z, int64_t slices) {
    const fv_block *out = r->out;
    int             last = out->region.ndim - 1;
    int64_t         stride = last == 2 ? out->stride[0] : 0;
    float          *image = (float *)(uintptr_t)fv__lane_look(d, 0, IMAGE, fv__beam_image_bytes(&s->beam));
    for (int64_t y = 0; image && y < out->region.size[last - 1]; y++)
        fv__bundle_unpack(fv__beam_voxel(&s->beam, image, out->region.start[last - 1] + y, out->region.start[last]),
                          out->region.size[last], slices, (float *)out->data + z * stride + y * out->stride[last - 1], stride);
    fv__lane_done(d, 0, IMAGE);
}

static fv_status run_device(fv_run *r, fv_device *d, fv_error *error) {
    fv_solving s;
    int64_t    first, count;
    fv__solver_lay_out(&r->need, &method, &s, r->scratch);
    const fv_beam *b = &s.beam;
    FV_ISA_NAME(fv__beam_prepare)(&s.beam, &s.solver->geometry);
    for (int64_t a = 0; a < b->nangles; a++) FV_ISA_NAME(fv__beam_lengths)(b, a, s.lengths + a * b->columns);
    for (int64_t y = 0; y < b->rows; y++) FV_ISA_NAME(fv__beam_coverage)(b, 0, b->nangles, y, s.coverage + y * b->width);
    fv__lane_copy(d, 0, ANGLES, b->angle, b->nangles * (int64_t)sizeof(fv_beam_angle));
    send_shares(d, RAYS, s.lengths, b->nangles * b->columns);
    send_shares(d, VOXELS, s.coverage, b->rows * b->width);
    fv__scan_slices(&r->out->region, r->out->region.ndim < 3 ? -1 : 0, &first, &count);
    for (int64_t z = 0; z < count; z += LANES) {
        int64_t slices = FV_MIN(LANES, count - z);
        FV_TRY(send_bundle(r, &s, d, first + z, slices, error));
        iterate_device(r, &s, d, first + z, slices);
        receive_bundle(r, &s, d, z, slices);
        FV_TRY(fv__device_check(d, error));
    }
    return FV_OK;
}

static const fv_device_kernel device = {
    .tolerance = 1e-5, .able = able, .least = bundle_bytes, .wanted = bundle_bytes, .run = run_device
};

const fv_op FV_OP(sirt) = {
    .name = "sirt",
    .brief = "reconstruct by simultaneous iterations (SIRT)",
    FV_SOLVER_FIELDS,
    .device = &device,
    .doc = "In each iteration every voxel takes the mean of what all rays through it lack, each divided by its length inside "
           "the volume. It converges slowly and suppresses noise: the method for electron tomography with few, missing or "
           "noisy angles. The result is float32.",
    .citation =
        "Gilbert, Iterative methods for the three-dimensional reconstruction of an object from projections, J. Theor. Biol. "
        "36, 1972",
    .example = "g = parallel(range(-72, 72, 3))\n"
               "p = xray(phantom(\"shepp-logan\", [128, 128]), g)\n"
               "write(sirt(p, g, iterations = 30), \"slice.tif\")",
    .see = "art sart cgls mlem fbp residuals",
};
