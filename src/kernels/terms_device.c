/* Separable filters on OpenCL devices. */
#include "kernels/terms_device.h"
#include "op/kernels.h"
#include "smooth_cl.h"

enum { Z = FV_SIDE_Z, Y = FV_SIDE_Y, X = FV_SIDE_X };
enum { IN, MIDDLE, OUT, WEIGHTS, MAPS, VIEW }; /* buffers of a lane */
enum { SPAN = 1024, MOST_TAPS = 513, VECTOR = 16 };
enum { BATCH = 16, BATCH_BYTES = 1 << 20 }; /* planes, or bytes of rows of a single one, that are summed along z before y and x */

typedef struct view { /* the same in smooth.cl */
    int64_t plane, row, out_plane, out_row;
    int32_t y_map, x_map, start, end, pitch, columns, taps[3], width;
    float   outside;
} view;

typedef struct job {
    const fv_terms *terms;
    fv_run         *run;
    fv_box          box;
    fv_side         side[3];
    int             cut;         /* side along which pieces are cut */
    int64_t         step, batch; /* results along it: of a piece, and of those that are between the sums at a time */
    int64_t         pitch;       /* floats of a row with its borders */
    bool            direct;      /* the device sees the blocks themselves */
    const void     *in;          /* of a channel */
    void           *out;
} job;

static int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
static int64_t results(const fv_side *side) { return side->end - side->start; }
static int64_t looked_at(const fv_side *side) { return results(side) + side->size - 1; }
static int64_t held(const fv_side *side) { return side->in_end - side->in_start; }

static void set_up(job *j, const fv_terms *t, const fv_need *n) {
    double size[3] = { 1, 1, 1 };
    int    axis[FV_MAX_DIMS], naxes = fv_image_type_spatial(&n->in[0]->image, axis);
    for (int k = 0; k < naxes && k < 3; k++) size[k] = (double)t->size(t->params, 0, k);
    *j = (job){ .terms = t, .box = fv__box_new(&n->in[0]->image, size, t->border, t->cval) };
    fv__box_sides(&j->box, n, j->side);
    j->cut = naxes > 2 ? Z : Y;
    j->pitch = up(looked_at(&j->side[X]), VECTOR) + VECTOR;
    j->batch = j->cut == Z ? BATCH : FV_MAX(BATCH_BYTES / (j->pitch * (int64_t)sizeof(float)), 2 * j->side[Y].size);
}

/* Voxels of a piece's input, of what is between the sums, and of its output. */
static int64_t in_voxels(const fv_side side[3]) { return looked_at(&side[Z]) * looked_at(&side[Y]) * held(&side[X]); }
static int64_t out_voxels(const fv_side side[3]) { return results(&side[Z]) * results(&side[Y]) * results(&side[X]); }
static int64_t middle_voxels(const job *j, const fv_side side[3]) {
    int64_t planes = j->cut == Z ? FV_MIN(results(&side[Z]), j->batch) : 1;
    int64_t rows = (j->cut == Z ? results(&side[Y]) : FV_MIN(results(&side[Y]), j->batch)) + side[Y].size - 1;
    return planes * rows * j->pitch + VECTOR;
}
/* Results along x for which a work-item has room. */
static int64_t width_of(const fv_side side[3]) { return (SPAN - side[X].size - VECTOR) / VECTOR * VECTOR; }
static int64_t map_bytes(const fv_side side[3]) {
    return (looked_at(&side[Z]) + looked_at(&side[Y]) + looked_at(&side[X])) * (int64_t)sizeof(int32_t);
}

/* Bytes of a piece of so many results along the side that is cut. */
static int64_t piece_bytes(const job *j, int64_t count) {
    fv_side side[3];
    fv__sides_cut(j->side, j->cut, count, 0, side);
    return (in_voxels(side) + middle_voxels(j, side) + out_voxels(side) + 3 * MOST_TAPS) * (int64_t)sizeof(float) +
           map_bytes(side) + (int64_t)sizeof(view);
}

/* A constant outside is seen anew by the sums along each axis. Borders that are laid around once are the same if sums leave the
 * constant as it is: it is zero, or weights add up to 1. */
static bool keeps_constant(const job *j) {
    double weight[MOST_TAPS];
    for (int k = 0; k < j->box.naxes && j->box.cval != 0; k++) {
        double sum = 0;
        j->terms->weights(j->terms->params, 0, k, weight);
        for (int64_t i = 0; i < j->box.size[k]; i++) sum += weight[i];
        if (!(fabs(sum - 1) < 1e-9)) return false;
    }
    return true;
}

bool fv__terms_device_able(const fv_terms *t, const fv_need *n) {
    job j;
    if (t->count > 1 || fv__separable_type(n->in[0]->image.dtype) != FV_FLOAT32) return false;
    set_up(&j, t, n);
    for (int s = 0; s < 3; s++)
        if (j.side[s].size > MOST_TAPS) return false;
    return t->border != FV_BORDER_CONSTANT || keeps_constant(&j);
}

int64_t fv__terms_device_least(const fv_terms *t, const fv_need *n) {
    job j;
    set_up(&j, t, n);
    return FV_LANES * piece_bytes(&j, 1);
}

int64_t fv__terms_device_wanted(const fv_terms *t, const fv_need *n) {
    job j;
    set_up(&j, t, n);
    return FV_MAX(piece_bytes(&j, results(&j.side[j.cut])), FV_LANES * piece_bytes(&j, 1));
}

/* ---------------------------------------------------------------- a piece */

static void send_weights(const job *j, fv_device *d, int lane) {
    double weight[MOST_TAPS];
    float *to = fv__lane_fill(d, lane, WEIGHTS, 3 * MOST_TAPS * (int64_t)sizeof(float));
    for (int side = Z; to && side <= X; side++) {
        int k = side - 3 + j->box.naxes;
        weight[0] = 1; /* of an axis that is not there */
        if (k >= 0) j->terms->weights(j->terms->params, 0, k, weight);
        for (int64_t i = 0; i < j->side[side].size; i++) to[side * MOST_TAPS + i] = (float)weight[i];
    }
    fv__lane_send(d, lane, WEIGHTS);
}

/* Which plane, row or column of the input each position is; -1: the constant. Planes and rows that are copied lie as they are
 * looked at. */
static void send_maps(const job *j, fv_device *d, int lane, const fv_side side[3]) {
    int32_t *to = fv__lane_fill(d, lane, MAPS, map_bytes(side));
    for (int s = Z; to && s <= X; s++)
        for (int64_t i = 0; i < looked_at(&side[s]); i++) {
            int64_t source = fv__side_source(&side[s], j->box.border, side[s].start - side[s].before + i);
            *to++ = (int32_t)(source < 0 ? -1 : j->direct || s == X ? source - side[s].in_start : i);
        }
    fv__lane_send(d, lane, MAPS);
}

static void send_view(const job *j, fv_device *d, int lane, const fv_side side[3]) {
    int64_t first = side[X].start - side[X].before, rows = looked_at(&side[Y]);
    view    v = { .plane = j->direct ? side[Z].in_stride : rows * held(&side[X]),
                  .row = j->direct ? side[Y].in_stride : held(&side[X]),
                  .out_plane = j->direct ? side[Z].out_stride : results(&side[Y]) * results(&side[X]),
                  .out_row = j->direct ? side[Y].out_stride : results(&side[X]),
                  .y_map = (int32_t)looked_at(&side[Z]),
                  .x_map = (int32_t)(looked_at(&side[Z]) + rows),
                  .start = (int32_t)(FV_MAX(first, 0) - first),
                  .end = (int32_t)(FV_MIN(first + looked_at(&side[X]), side[X].n) - first),
                  .pitch = (int32_t)j->pitch,
                  .columns = (int32_t)looked_at(&side[X]),
                  .width = (int32_t)width_of(side),
                  .outside = (float)j->box.cval };
    for (int s = Z; s <= X; s++) v.taps[s] = (int32_t)side[s].size;
    fv__lane_copy(d, lane, VIEW, &v, (int64_t)sizeof v);
}

/* The rows that results of a piece look at, as floats. */
static void pack(const job *j, const fv_side side[3], float *to) {
    const fv_kernels *kernels = fv__kernels_current();
    fv_dtype          dtype = j->run->in[0]->dtype;
    int64_t           n = held(&side[X]), size = (int64_t)fv_dtype_size(dtype);
    for (int64_t z = 0; z < looked_at(&side[Z]); z++)
        for (int64_t y = 0; y < looked_at(&side[Y]); y++, to += n) {
            int64_t plane = fv__side_source(&side[Z], j->box.border, side[Z].start - side[Z].before + z);
            int64_t row = fv__side_source(&side[Y], j->box.border, side[Y].start - side[Y].before + y);
            if (plane < 0 || row < 0) continue;
            const char *from =
                (const char *)j->in +
                ((plane - side[Z].in_start) * side[Z].in_stride + (row - side[Y].in_start) * side[Y].in_stride) * size;
            if (side[X].in_stride == 1)
                kernels->convert(to, FV_FLOAT32, from, dtype, n);
            else
                for (int64_t x = 0; x < n; x++)
                    kernels->convert(to + x, FV_FLOAT32, from + x * side[X].in_stride * size, dtype, 1);
        }
}

static int64_t extent(int64_t z, int64_t z_stride, int64_t y, int64_t y_stride, int64_t x) {
    return ((z - 1) * z_stride + (y - 1) * y_stride + x) * (int64_t)sizeof(float);
}

static int64_t out_bytes(const job *j, const fv_side side[3]) {
    return j->direct ? extent(results(&side[Z]), side[Z].out_stride, results(&side[Y]), side[Y].out_stride, results(&side[X]))
                     : out_voxels(side) * (int64_t)sizeof(float);
}

static float *out_place(const job *j, const fv_side side[3]) {
    return (float *)j->out + (side[Z].start - j->side[Z].start) * side[Z].out_stride +
           (side[Y].start - j->side[Y].start) * side[Y].out_stride;
}

static void send_voxels(const job *j, fv_device *d, int lane, const fv_side side[3]) {
    if (j->direct) {
        fv__lane_lend(d, lane, IN, (void *)(uintptr_t)j->in,
                      extent(held(&side[Z]), side[Z].in_stride, held(&side[Y]), side[Y].in_stride, held(&side[X])));
        fv__lane_lend(d, lane, OUT, out_place(j, side), out_bytes(j, side));
        return;
    }
    float *in = fv__lane_fill(d, lane, IN, in_voxels(side) * (int64_t)sizeof(float));
    if (in) pack(j, side, in);
    fv__lane_send(d, lane, IN);
    fv__lane_room(d, lane, OUT, out_bytes(j, side));
}

/* Some planes or rows of a piece. On a processor a work-item makes long rows. */
static void run_batch(const job *j, fv_device *d, int lane, const fv_side side[3], int64_t first, int64_t count) {
    static const fv_device_program program = { smooth, NULL };
    int64_t planes = j->cut == Z ? count : 1, rows = j->cut == Z ? results(&side[Y]) : count, columns = results(&side[X]);
    int64_t first_z = j->cut == Z ? first : 0, first_y = first - first_z, all = rows + side[Y].size - 1;
    int64_t span = fv__device_processor(d) ? looked_at(&side[X]) : VECTOR, width = width_of(side);
    int64_t at = j->direct ? first_z * side[Z].out_stride + first_y * side[Y].out_stride
                           : (first_z * results(&side[Y]) + first_y) * columns;
    FV_LANE_RUN(d, lane, &program, "along_z", (looked_at(&side[X]) + span - 1) / span, all, (planes + 3) / 4, FV_BUFFER(IN),
                FV_BUFFER(VIEW), FV_BUFFER(MAPS), FV_VALUE(int32_t, (int32_t)first_z), FV_VALUE(int32_t, (int32_t)first_y),
                FV_VALUE(int32_t, (int32_t)planes), FV_VALUE(int32_t, (int32_t)all), FV_VALUE(int32_t, (int32_t)span),
                FV_BUFFER(WEIGHTS), FV_BUFFER(MIDDLE));
    FV_LANE_RUN(d, lane, &program, "along_yx", (columns + width - 1) / width, (rows + 3) / 4, planes, FV_BUFFER(MIDDLE),
                FV_BUFFER(VIEW), FV_VALUE(int32_t, (int32_t)rows), FV_BUFFER(WEIGHTS), FV_VALUE(int64_t, at), FV_BUFFER(OUT));
}

static fv_status send(void *context, fv_device *d, int lane, int64_t index, fv_error *error) {
    (void)error;
    const job *j = context;
    fv_side    side[3];
    fv__sides_cut(j->side, j->cut, j->step, index, side);
    send_weights(j, d, lane);
    send_maps(j, d, lane, side);
    send_view(j, d, lane, side);
    fv__lane_room(d, lane, MIDDLE, middle_voxels(j, side) * (int64_t)sizeof(float));
    send_voxels(j, d, lane, side);
    int64_t count = results(&side[j->cut]);
    for (int64_t i = 0; i < count; i += j->batch) run_batch(j, d, lane, side, i, FV_MIN(j->batch, count - i));
    return FV_OK;
}

static fv_status receive(void *context, fv_device *d, int lane, int64_t index, fv_error *error) {
    (void)error;
    const job *j = context;
    fv_side    side[3];
    fv__sides_cut(j->side, j->cut, j->step, index, side);
    const void *from = fv__lane_look(d, lane, OUT, out_bytes(j, side));
    if (from && !j->direct) fv__sides_put(j->side, side, j->out, from, results(&side[X]), (int64_t)sizeof(float));
    fv__lane_done(d, lane, OUT);
    return FV_OK;
}

fv_status fv__terms_device_run(const fv_terms *t, fv_run *r, fv_device *d, fv_error *error) {
    job         j;
    fv_channels c;
    set_up(&j, t, &r->need);
    j.run = r;
    fv__box_strides(&j.box, r, 1, j.side);
    j.direct = fv__device_processor(d) && r->in[0]->dtype == FV_FLOAT32 && j.side[X].in_stride == 1 && j.side[X].out_stride == 1;
    int64_t all = results(&j.side[j.cut]);
    j.step = all;
    while (j.step > 1 && piece_bytes(&j, j.step) * (j.step < all ? FV_LANES : 1) > fv__device_memory(d))
        j.step = (j.step + 1) / 2;
    for (fv__channels_begin(&c, &j.box, r); fv__channels_next(&c);) {
        j.in = c.in;
        j.out = c.out;
        FV_TRY(fv__device_pieces(d, (all + j.step - 1) / j.step, send, receive, &j, error));
    }
    return FV_OK;
}
