/* Separable filters on OpenCL devices. */
#include "kernels/terms_device.h"
#include "kernels/padded.h"
#include "op/kernels.h"
#include "smooth_cl.h"

enum { Z = FV_SIDE_Z, Y = FV_SIDE_Y, X = FV_SIDE_X };
enum { IN, MIDDLE, OUT, WEIGHTS_Z, WEIGHTS_Y, WEIGHTS_X }; /* buffers of a lane */
enum { SPAN = 1024, MOST_TAPS = 513, VECTOR = 16, BATCH = 16 }; /* planes that are summed along z before y and x */

typedef struct job {
    const fv_terms *terms;
    fv_run         *run;
    fv_box          box;
    fv_side         side[3];
    int             cut;          /* side along which pieces are cut */
    int64_t         step;         /* results of a piece along it */
    int64_t         pitch, width; /* floats of a row with its borders, and of a row of results */
    const void     *in;           /* of a channel */
    void           *out;
} job;

static int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

static void set_up(job *j, const fv_terms *t, const fv_need *n) {
    double size[3] = { 1, 1, 1 };
    int    axis[FV_MAX_DIMS], naxes = fv_image_type_spatial(&n->in[0]->image, axis);
    for (int k = 0; k < naxes && k < 3; k++) size[k] = (double)t->size(t->params, 0, k);
    *j = (job){ .terms = t, .box = fv_box_new(&n->in[0]->image, size, t->border, t->cval) };
    fv_box_sides(&j->box, n, j->side);
    j->cut = naxes > 2 ? Z : Y;
    j->width = up(j->side[X].end - j->side[X].start, VECTOR);
    j->pitch = up(j->width + j->side[X].size - 1, VECTOR) + VECTOR;
}

static int64_t results(const job *j, int side) { return j->side[side].end - j->side[side].start; }

/* Bytes of a piece of so many results along the side that is cut. */
static int64_t piece_bytes(const job *j, int64_t count) {
    int64_t nz = j->cut == Z ? count : results(j, Z), ny = j->cut == Y ? count : results(j, Y);
    int64_t rows = ny + j->side[Y].size - 1;
    int64_t in = ((nz + j->side[Z].size - 1) * rows + 1) * j->pitch + VECTOR,
            middle = j->side[Z].size > 1 ? FV_MIN(nz, BATCH) * rows * j->pitch : 0;
    return (in + middle + VECTOR + nz * ny * j->width + 3 * MOST_TAPS) * (int64_t)sizeof(float);
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

bool fv_terms_device_able(const fv_terms *t, const fv_need *n) {
    job j;
    if (t->count > 1 || fv_separable_type(n->in[0]->image.dtype) != FV_FLOAT32) return false;
    set_up(&j, t, n);
    for (int s = 0; s < 3; s++)
        if (j.side[s].size > MOST_TAPS) return false;
    return t->border != FV_BORDER_CONSTANT || keeps_constant(&j);
}

int64_t fv_terms_device_least(const fv_terms *t, const fv_need *n) {
    job j;
    set_up(&j, t, n);
    return FV_LANES * piece_bytes(&j, 1);
}

int64_t fv_terms_device_wanted(const fv_terms *t, const fv_need *n) {
    job j;
    set_up(&j, t, n);
    return FV_MAX(piece_bytes(&j, results(&j, j.cut)), FV_LANES * piece_bytes(&j, 1));
}

/* ---------------------------------------------------------------- a piece */

static void send_weights(const job *j, fv_device *d, int lane) {
    double weight[MOST_TAPS];
    for (int k = 0; k < j->box.naxes; k++) {
        int    side = k + 3 - j->box.naxes;
        float *to = fv_lane_fill(d, lane, WEIGHTS_Z + side, MOST_TAPS * (int64_t)sizeof(float));
        j->terms->weights(j->terms->params, 0, k, weight);
        for (int64_t i = 0; to && i < j->side[side].size; i++) to[i] = (float)weight[i];
        fv_lane_send(d, lane, WEIGHTS_Z + side);
    }
    for (int side = Z; side < 3 - j->box.naxes; side++) {
        float *to = fv_lane_fill(d, lane, WEIGHTS_Z + side, MOST_TAPS * (int64_t)sizeof(float));
        if (to) to[0] = 1;
        fv_lane_send(d, lane, WEIGHTS_Z + side);
    }
}

/* The rows that results of a piece look at, as floats. A row of another type stands for a moment where the next one will be. */
static void pack(const job *j, const fv_side side[3], float *to) {
    const fv_kernels *kernels = fv_kernels_current();
    fv_dtype          dtype = j->run->in[0]->dtype;
    const uint8_t     nothing[16] = { 0 };
    const float       constant = (float)j->box.cval;
    int64_t           count = side[X].end - side[X].start + side[X].size - 1, x = side[X].start - side[X].before, first, last;
    for (int64_t z = side[Z].start - side[Z].before; z < side[Z].end - side[Z].before + side[Z].size - 1; z++)
        for (int64_t y = side[Y].start - side[Y].before; y < side[Y].end - side[Y].before + side[Y].size - 1;
             y++, to += j->pitch) {
            float *place = dtype == FV_FLOAT32 ? to : to + j->pitch;
            fv_padded_row(side, j->box.border, j->in, z, y, x, count, fv_dtype_size(dtype), nothing, place);
            if (dtype != FV_FLOAT32) kernels->convert(to, FV_FLOAT32, place, dtype, count);
            if (j->box.border == FV_BORDER_CONSTANT) {
                fv_padded_inside(side, z, y, x, count, &first, &last);
                fv_fill_elements(to, first, &constant, sizeof constant);
                fv_fill_elements(to + last, count - last, &constant, sizeof constant);
            }
            memset(to + count, 0, (size_t)(j->pitch - count) * sizeof *to);
        }
}

/* Planes first ... of a piece. On a processor a work-item makes many vectors of a plane. */
static void run_planes(const job *j, fv_device *d, int lane, const fv_side side[3], int64_t first, int64_t planes) {
    static const fv_device_program program = { smooth, NULL };
    int64_t ny = side[Y].end - side[Y].start, tz = side[Z].size, ty = side[Y].size, plane = (ny + ty - 1) * j->pitch;
    int64_t vectors = fv_device_processor(d) ? 256 : 1, width = (SPAN - side[X].size - VECTOR) / VECTOR * VECTOR;
    if (tz > 1)
        FV_LANE_RUN(d, lane, &program, "along_z", (plane / VECTOR + vectors - 1) / vectors, (planes + 3) / 4, 1, FV_BUFFER(IN),
                    FV_VALUE(int32_t, (int32_t)first), FV_VALUE(int64_t, plane), FV_VALUE(int32_t, (int32_t)vectors),
                    FV_VALUE(int32_t, (int32_t)planes), FV_BUFFER(WEIGHTS_Z), FV_VALUE(int32_t, (int32_t)tz), FV_BUFFER(MIDDLE));
    FV_LANE_RUN(d, lane, &program, "along_yx", (j->width + width - 1) / width, (ny + 3) / 4, planes,
                FV_BUFFER(tz > 1 ? MIDDLE : IN), FV_VALUE(int32_t, (int32_t)j->pitch), FV_VALUE(int32_t, (int32_t)ny),
                FV_BUFFER(WEIGHTS_Y), FV_VALUE(int32_t, (int32_t)ty), FV_BUFFER(WEIGHTS_X),
                FV_VALUE(int32_t, (int32_t)side[X].size), FV_VALUE(int32_t, (int32_t)width), FV_VALUE(int32_t, (int32_t)first),
                FV_BUFFER(OUT), FV_VALUE(int32_t, (int32_t)j->width));
}

static fv_status send(void *context, fv_device *d, int lane, int64_t index, fv_error *error) {
    (void)error;
    const job *j = context;
    fv_side    side[3];
    fv_sides_cut(j->side, j->cut, j->step, index, side);
    int64_t nz = side[Z].end - side[Z].start, ny = side[Y].end - side[Y].start, tz = side[Z].size;
    int64_t plane = (ny + side[Y].size - 1) * j->pitch, size = (int64_t)sizeof(float), batch = tz > 1 ? FV_MIN(nz, BATCH) : nz;
    float  *in = fv_lane_fill(d, lane, IN, ((nz + tz - 1) * plane + j->pitch + VECTOR) * size);
    if (in) pack(j, side, in);
    fv_lane_send(d, lane, IN);
    send_weights(j, d, lane);
    fv_lane_room(d, lane, OUT, nz * ny * j->width * size);
    if (tz > 1) fv_lane_room(d, lane, MIDDLE, (batch * plane + VECTOR) * size);
    for (int64_t z = 0; z < nz; z += batch) run_planes(j, d, lane, side, z, FV_MIN(batch, nz - z));
    return FV_OK;
}

static fv_status receive(void *context, fv_device *d, int lane, int64_t index, fv_error *error) {
    (void)error;
    const job *j = context;
    fv_side    side[3];
    fv_sides_cut(j->side, j->cut, j->step, index, side);
    int64_t     nz = side[Z].end - side[Z].start, ny = side[Y].end - side[Y].start;
    const void *from = fv_lane_look(d, lane, OUT, nz * ny * j->width * (int64_t)sizeof(float));
    if (from) fv_sides_put(j->side, side, j->out, from, j->width, (int64_t)sizeof(float));
    fv_lane_done(d, lane, OUT);
    return FV_OK;
}

fv_status fv_terms_device_run(const fv_terms *t, fv_run *r, fv_device *d, fv_error *error) {
    job         j;
    fv_channels c;
    set_up(&j, t, &r->need);
    j.run = r;
    fv_box_strides(&j.box, r, 1, j.side);
    int64_t all = results(&j, j.cut);
    j.step = all;
    while (j.step > 1 && piece_bytes(&j, j.step) * (j.step < all ? FV_LANES : 1) > fv_device_memory(d)) j.step = (j.step + 1) / 2;
    for (fv_channels_begin(&c, &j.box, r); fv_channels_next(&c);) {
        j.in = c.in;
        j.out = c.out;
        FV_TRY(fv_device_pieces(d, (all + j.step - 1) / j.step, send, receive, &j, error));
    }
    return FV_OK;
}
