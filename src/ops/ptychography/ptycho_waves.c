/* ptycho_waves: the exit wave of every frame, brought nearer to what was measured.
 *
 * With s = probe * object and P the projection that gives a wave the measured amplitudes (all modes are scaled alike):
 * relaxed:  z <- beta z + (1 - 2 beta) s + beta P(2 s - z), which for beta = 1 is the difference map. One pair of transforms.
 * error:    z <- P(s) - s, along which the least squares of amplitudes decrease.
 */
#include "op/device_kernel.h"
#include "op/scratch.h"
#include "ops/ptychography/frame_states.h"
#include "ops/ptychography/measured_waves.h"
#include "ops/ptychography/whole_pieces.h"
#include "waves_cl.h"

typedef struct {
    fv_wave_scan at;
    fv_choice    kind;
    double       beta, near;
} ptycho_waves;
enum { AMPLITUDES, OBJECT, PROBE, BEFORE, STATES, BACKGROUND };
enum { RELAXED, ERROR_WAVES };
enum { SAMPLED = 16 }; /* of so many frames one tells the residual of relaxed waves */

static const fv_param params[] = {
    FV_WAVE_SCAN_PARAMS,
    FV_PARAM(ptycho_waves, kind, .def = "relaxed", .choices = "relaxed|error", .doc = "which waves: see below"),
    FV_PARAM(ptycho_waves, beta, .def = "0.75", .above = true, .max = 1, .doc = "of relaxed: how far waves are reflected"),
    FV_WAVE_NEAR_PARAM(ptycho_waves),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "amplitudes", FV_KIND_IMAGE, .doc = "what ptycho_frames gives" },
    { "object", FV_KIND_IMAGE, .doc = "what ptycho_object gives" },
    { "probe", FV_KIND_IMAGE, .doc = "what ptycho_probe gives" },
    { "before", FV_KIND_IMAGE, .optional = true, .doc = "waves of the iteration before; left out: probe times object" },
    FV_WAVE_STATES_INPUT,
    FV_WAVE_BACKGROUND_INPUT,
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const ptycho_waves *p = i->params;
    fv_waves            w;
    FV_TRY(fv__waves_of(&p->at, i->in[AMPLITUDES], i->in[PROBE], &w, error));
    FV_TRY(fv__waves_fit(&w, i->in[OBJECT], error));
    FV_TRY(fv__states_fit(&w, i->in[STATES], i->in[BACKGROUND], error));
    fv__waves_type(&w, false, &i->out->image);
    if (i->in[BEFORE]->kind == FV_KIND_IMAGE && memcmp(i->in[BEFORE]->image.shape, i->out->image.shape, 3 * sizeof(int64_t)) != 0)
        return fv_fail(error, FV_ERROR_USAGE, "before must be waves of the same frames");
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    fv_waves w;
    fv__waves_of(n->params, n->in[AMPLITUDES], n->in[PROBE], &w, NULL);
    in[AMPLITUDES] = fv__region_whole(&n->in[AMPLITUDES]->image);
    in[AMPLITUDES].start[0] = n->region.start[0];
    in[AMPLITUDES].size[0] = n->region.size[0];
    in[OBJECT] = fv__waves_window(&w, n->region.start[0], n->region.size[0]);
    in[PROBE] = fv__region_whole(&n->in[PROBE]->image);
    fv__states_need(&w, n, STATES, n->region.start[0], n->region.size[0], in);
    if (n->in[BACKGROUND]->kind == FV_KIND_IMAGE) in[BACKGROUND] = fv__region_whole(&n->in[BACKGROUND]->image);
    if (n->in[BEFORE]->kind == FV_KIND_IMAGE) in[BEFORE] = fv__region_whole(&n->in[BEFORE]->image);
    in[BEFORE].start[0] = n->region.start[0];
    in[BEFORE].size[0] = n->region.size[0];
    in[BEFORE].size[1] = w.wave_rows; /* without the sums */
}

typedef struct {
    fv_waves          w;
    fv_measured_waves m;
    void             *room;
    double           *scan; /* of frames that were moved */
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    fv_scratch pieces = { memory };
    fv__waves_of(n->params, n->in[AMPLITUDES], n->in[PROBE], &k->w, NULL);
    k->room = fv__scratch_take(&pieces, fv__piece_room(n, 1));
    k->scan = fv__scratch_take(&pieces, fv__states_room(n->params));
    return pieces.used + fv__measured_lay_out(&k->m, k->w.height, k->w.width, k->w.modes, ((const ptycho_waves *)n->params)->near,
                                              memory ? (char *)memory + pieces.used : NULL);
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

/* One frame: where its parts lie. */
typedef struct {
    fv_wave_plane probe[FV_WAVES_MODES];
    fv_measured   measured;
    const float  *object, *before; /* before NULL: none */
    float        *wave;
    int64_t       object_row, object_part, wave_row, before_row;
} frame;

/* Where row y of a mode is. */
static const float *probe_row(const frame *f, int mode, int64_t y) { return f->probe[mode].data + y * f->probe[mode].row; }
static const float *before_row(const work *k, const frame *f, int mode, int64_t y) {
    return f->before + (mode * k->w.height + y) * f->before_row;
}
static float *wave_row(const work *k, const frame *f, int mode, int64_t y) {
    return f->wave + (mode * k->w.height + y) * f->wave_row;
}

/* How a wave is made of s = probe * object, z before and their projection: what is projected is twice s less z, or s where there
 * is no z; to `keep` times z and `share` times s it is then added `keep` times. */
typedef struct {
    float keep, share;
} mixing;

/* Row y of a mode, to be projected. */
static void leave(const work *k, const frame *f, int mode, int64_t y) {
    int64_t      n = k->w.width;
    const float *p = probe_row(f, mode, y), *q = p + f->probe[mode].part;
    const float *o = f->object + y * f->object_row, *i = o + f->object_part;
    float *restrict re = k->m.planes + mode * k->m.plane + y * k->m.stride, *restrict im = re + n;
    if (f->before) {
        const float *a = before_row(k, f, mode, y), *b = a + n;
        fv__wave_fetch(a, f->before_row, k->w.row);
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            re[x] = 2 * (p[x] * o[x] - q[x] * i[x]) - a[x];
            im[x] = 2 * (p[x] * i[x] + q[x] * o[x]) - b[x];
        }
    } else
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            re[x] = p[x] * o[x] - q[x] * i[x];
            im[x] = p[x] * i[x] + q[x] * o[x];
        }
}

static void spread_out(const work *k, const frame *f) {
    for (int m = 0; m < k->w.modes; m++)
        for (int64_t y = 0; y < k->w.height; y++) leave(k, f, m, y);
}

/* Row y of a mode, which was projected. z and s are near still: to find s again costs less than to keep it. */
static void come_back(const work *k, const frame *f, int mode, int64_t y, mixing mix) {
    int64_t      n = k->w.width;
    const float *p = probe_row(f, mode, y), *q = p + f->probe[mode].part;
    const float *o = f->object + y * f->object_row, *i = o + f->object_part;
    const float *re = k->m.planes + mode * k->m.plane + y * k->m.stride, *im = re + n;
    float *restrict u = wave_row(k, f, mode, y), *restrict v = u + n;
    if (f->before) {
        const float *a = before_row(k, f, mode, y), *b = a + n;
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            float s = p[x] * o[x] - q[x] * i[x], t = p[x] * i[x] + q[x] * o[x];
            u[x] = mix.keep * a[x] + mix.share * s + mix.keep * re[x];
            v[x] = mix.keep * b[x] + mix.share * t + mix.keep * im[x];
        }
    } else
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            float s = p[x] * o[x] - q[x] * i[x], t = p[x] * i[x] + q[x] * o[x];
            u[x] = mix.share * s + mix.keep * re[x];
            v[x] = mix.share * t + mix.keep * im[x];
        }
}

/* Its rows go into the sums while they are near. */
static void fill_wave(const work *k, const frame *f, mixing mix, float *sums) {
    for (int m = 0; m < k->w.modes; m++)
        for (int64_t y = 0; y < k->w.height; y++) {
            const float *at = probe_row(f, m, y), *wave = wave_row(k, f, m, y);
            come_back(k, f, m, y, mix);
            fv__wave_sums_row(&k->w, at, at + f->probe[m].part, wave, wave + k->w.width, sums + fv__wave_sums_at(&k->w, y, 0));
        }
}

/* What s leaves over. */
static void compare_alone(const work *k, const frame *f, double left[2]) {
    frame alone = *f;
    alone.before = NULL;
    spread_out(k, &alone);
    for (int m = 0; m < k->w.modes; m++) fv__measured_transform(&k->m, m, false);
    fv__measured_compare(&k->m, &f->measured, false, left);
}

/* sampled: of relaxed waves, whether this frame is one of those by which the residual of s is followed. */
static void update(const work *k, const frame *f, const ptycho_waves *p, bool sampled, double left[2], float *sums) {
    bool   relaxed = p->kind.index == RELAXED;
    float  beta = (float)p->beta;
    mixing mix = !relaxed ? (mixing){ 1, -1 } : (mixing){ beta, f->before ? 1 - 2 * beta : 1 - beta };
    if (relaxed && sampled && f->before) compare_alone(k, f, left);
    spread_out(k, f);
    fv__measured_project(&k->m, &f->measured, relaxed && (f->before || !sampled) ? NULL : left);
    fill_wave(k, f, mix, sums);
}

static frame find_frame(const work *k, const fv_run *r, int64_t index, int64_t b, float *rows) {
    const fv_block *object = r->in[OBJECT], *before = r->in[BEFORE];
    const fv_waves *w = &k->w;
    int64_t         number = (r->out->region.start[0] + index) * w->block + b;
    const double   *at = fv__wave_frame(w, number);
    int64_t         corner[3] = { (int64_t)at[FV_SCAN_Y], 0, (int64_t)at[FV_SCAN_X] }, lines = b * w->height;
    frame           f = { .object = fv__block_at(object, corner),
                          .measured = fv__measured_frame(w, r, (fv_measured_inputs){ AMPLITUDES, STATES, BACKGROUND }, number),
                          .before = before && !fv__state_fresh(w, r->in[STATES], number)
                                        ? (float *)before->data + index * before->stride[0] + lines * w->modes * before->stride[1]
                                        : NULL,
                          .wave = rows + lines * w->modes * w->row,
                          .object_row = object->stride[0],
                          .object_part = object->stride[1],
                          .wave_row = w->row,
                          .before_row = before ? before->stride[1] : 0 };
    for (int m = 0; m < w->modes; m++) f.probe[m] = fv__wave_plane(r, PROBE, (int64_t)at[FV_SCAN_CLASS] * w->modes + m);
    return f;
}

static void run_block(const work *k, const fv_run *r, int64_t index, float *rows) {
    const fv_waves *w = &k->w;
    int64_t         block = r->out->region.start[0] + index, size = w->modes * w->height * w->row;
    fv_wave_box     box = fv__waves_box(w, block);
    float          *sums = rows + w->wave_rows * w->row;
    double          left[2] = { 0, 0 };
    memset(sums, 0, (size_t)(w->sum_rows * w->row) * sizeof *sums);
    for (int64_t b = 0; b < box.frames; b++) {
        const double *at = fv__wave_frame(w, block * w->block + b);
        frame         f = find_frame(k, r, index, b, rows);
        int64_t       corner = fv__wave_sums_at(w, (int64_t)at[FV_SCAN_Y] - box.y, (int64_t)at[FV_SCAN_X] - box.x);
        update(k, &f, r->need.params, b % SAMPLED == FV_MIN(SAMPLED, box.frames) / 2, left, sums + corner);
    }
    memset(rows + box.frames * size, 0, (size_t)((w->block - box.frames) * size) * sizeof *rows);
    fv__wave_tail(w, left, sums);
}

/* ---------------------------------------------------------------- on a device */

/* Buffers. The plane behind the amplitudes is the background; waves are those of before until they are made. */
enum { D_PROBE, D_OBJECT, D_AMPLITUDES, D_PLACES, D_TURNS, D_WAVES, D_WORK, D_TURNED, D_ROOM, D_SUMS };
typedef struct {
    int32_t y, x, shift, before;
    float   by;
} device_place;
typedef struct {
    const work   *k;
    const fv_run *r;
    fv_device    *d;
    int64_t       index, first, count; /* block; frames of it that are worked on at once */
    fv_wave_box   box;
} batch;

/* Pixels of a row that one work-item does. */
enum { TILE = 4096 };
static int64_t tiles(const fv_device *d, int64_t n) { return fv__device_processor(d) ? (n + TILE - 1) / TILE : n; }
static const fv_device_program *program_of(const fv_device *d) {
    static const fv_device_program on_processor = { waves, "-DTILE=4096" }, on_card = { waves, "-DTILE=1" };
    return fv__device_processor(d) ? &on_processor : &on_card;
}

static int64_t floats(int64_t n) { return n * (int64_t)sizeof(float); }
static int64_t plane_of(const fv_waves *w) { return w->height * w->row; }

/* Vectors of 16 in which columns are transformed: of the longer way. */
static int64_t room_bytes(const fv_waves *w) {
    int64_t there = (w->width + 15) / 16 * w->height, back = (w->height + 15) / 16 * w->width;
    return w->modes * 4 * FV_MAX(there, back) * floats(16);
}
static int64_t fixed_bytes(const fv_waves *w) {
    return floats(w->classes * w->modes * plane_of(w) + 5 * w->box_height * w->box_width + plane_of(w) +
                  2 * (w->height + w->width));
}
static int64_t frame_bytes(const fv_waves *w) {
    return floats(3 * w->modes * plane_of(w) + w->height * w->width) + (int64_t)sizeof(device_place) + room_bytes(w);
}

static bool able(const fv_need *n) {
    fv_waves w;
    fv__waves_of(n->params, n->in[AMPLITUDES], n->in[PROBE], &w, NULL);
    return ((const ptycho_waves *)n->params)->near == 0 && w.block * w.modes * plane_of(&w) < INT32_MAX;
}
static int64_t least(const fv_need *n) {
    fv_waves w;
    fv__waves_of(n->params, n->in[AMPLITUDES], n->in[PROBE], &w, NULL);
    return fixed_bytes(&w) + frame_bytes(&w);
}
static int64_t wanted(const fv_need *n) {
    fv_waves w;
    fv__waves_of(n->params, n->in[AMPLITUDES], n->in[PROBE], &w, NULL);
    return fixed_bytes(&w) + w.block * frame_bytes(&w);
}

static void copy_rows(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows, int64_t n) {
    for (int64_t y = 0; y < rows; y++) memcpy(to + y * to_row, from + y * from_row, (size_t)n * sizeof *to);
}

/* What belongs to the task, and what to the block: probes, tables, window of the object, empty sums. */
static void send_probes(const work *k, const fv_run *r, fv_device *d) {
    const fv_waves *w = &k->w;
    float          *probe = fv__lane_fill(d, 0, D_PROBE, floats(w->classes * w->modes * plane_of(w)));
    for (int64_t p = 0; probe && p < w->classes * w->modes; p++) {
        fv_wave_plane from = fv__wave_plane(r, PROBE, p);
        for (int part = 0; part < 2; part++)
            copy_rows(probe + p * plane_of(w) + part * w->width, w->row, from.data + part * from.part, from.row, w->height,
                      w->width);
    }
    fv__lane_send(d, 0, D_PROBE);
    float *turns = fv__lane_fill(d, 0, D_TURNS, floats(2 * (w->height + w->width)));
    for (int a = 0; turns && a < 2; a++)
        memcpy(turns + 2 * a * w->height, k->m.fourier.axis[a].turn, (size_t)floats(2 * k->m.fourier.axis[a].n));
    fv__lane_send(d, 0, D_TURNS);
}

static void send_window(const batch *b) {
    const fv_block *object = b->r->in[OBJECT];
    int64_t         corner[3] = { b->box.y, 0, b->box.x }, n = b->box.width;
    const float    *from = fv__block_at(object, corner);
    float          *to = fv__lane_fill(b->d, 0, D_OBJECT, floats(2 * b->box.height * n)), *sums;
    for (int part = 0; to && part < 2; part++)
        copy_rows(to + part * n, 2 * n, from + part * object->stride[1], object->stride[0], b->box.height, n);
    fv__lane_send(b->d, 0, D_OBJECT);
    int64_t bytes = floats(3 * b->k->w.box_height * b->k->w.box_width);
    sums = fv__lane_fill(b->d, 0, D_SUMS, bytes);
    if (sums) memset(sums, 0, (size_t)bytes);
    fv__lane_send(b->d, 0, D_SUMS);
}

static void send_frames(const batch *b, float *rows) {
    const fv_waves *w = &b->k->w;
    int64_t         pixels = w->height * w->width, mine = w->modes * plane_of(w);
    float          *amplitudes = fv__lane_fill(b->d, 0, D_AMPLITUDES, floats((b->count + 1) * pixels));
    float          *exits = fv__lane_fill(b->d, 0, D_WAVES, floats(b->count * mine));
    device_place   *places = fv__lane_fill(b->d, 0, D_PLACES, b->count * (int64_t)sizeof *places);
    for (int64_t i = 0; amplitudes && exits && places && i < b->count; i++) {
        int64_t       number = (b->r->out->region.start[0] + b->index) * w->block + b->first + i;
        const double *at = fv__wave_frame(w, number);
        frame         f = find_frame(b->k, b->r, b->index, b->first + i, rows);
        places[i] = (device_place){ (int32_t)((int64_t)at[FV_SCAN_Y] - b->box.y), (int32_t)((int64_t)at[FV_SCAN_X] - b->box.x),
                                    (int32_t)at[FV_SCAN_CLASS], f.before != NULL, f.measured.by };
        copy_rows(amplitudes + i * pixels, w->width, f.measured.amplitude, f.measured.row, w->height, w->width);
        if (f.before)
            copy_rows(exits + i * mine, w->row, f.before, f.before_row, w->modes * w->height, w->row);
        else
            memset(exits + i * mine, 0, (size_t)floats(mine));
        if (i) continue;
        float *background = amplitudes + b->count * pixels;
        if (f.measured.background)
            copy_rows(background, w->width, f.measured.background, f.measured.background_row, w->height, w->width);
        else
            memset(background, 0, (size_t)floats(pixels));
    }
    fv__lane_send(b->d, 0, D_AMPLITUDES);
    fv__lane_send(b->d, 0, D_WAVES);
    fv__lane_send(b->d, 0, D_PLACES);
}

#define INT(value) FV_VALUE(int32_t, (int32_t)(value))
#define SIZES(w) INT((w)->height), INT((w)->width), INT((w)->modes)

/* The planes of so many frames to the detector or back: columns become rows, twice. */
static void transform(const batch *b, int64_t frames, float sign) {
    const fv_waves *w = &b->k->w;
    for (int a = 0; a < 2; a++) {
        int64_t n = a ? w->width : w->height, across = a ? w->height : w->width;
        FV_LANE_RUN(b->d, 0, program_of(b->d), "columns", (across + 15) / 16, frames * w->modes, 1,
                    FV_BUFFER(a ? D_TURNED : D_WORK), FV_BUFFER(a ? D_WORK : D_TURNED), INT(n), INT(across),
                    FV_VALUE(float, sign), FV_BUFFER(D_TURNS), INT(a ? w->height : 0), FV_BUFFER(D_ROOM));
    }
}

/* Frames first, first + step, ... of the batch; alone: as if there were no waves before. */
static void leave_batch(const batch *b, int64_t first, int64_t step, int64_t frames, mixing with, float without, bool alone) {
    const fv_waves *w = &b->k->w;
    FV_LANE_RUN(b->d, 0, program_of(b->d), "leave", tiles(b->d, w->width), w->height, frames * w->modes, SIZES(w), INT(first),
                INT(step), FV_BUFFER(D_PLACES), FV_BUFFER(D_PROBE), FV_BUFFER(D_OBJECT), INT(b->box.width), FV_BUFFER(D_WAVES),
                FV_BUFFER(D_WORK), FV_VALUE(float, with.keep), FV_VALUE(float, with.share), FV_VALUE(float, without), INT(alone));
    transform(b, frames, -1);
}

/* What these frames leave over. The turned planes are not needed now. */
static void differ_batch(const batch *b, int64_t first, int64_t step, int64_t frames, double left[2]) {
    const fv_waves *w = &b->k->w;
    FV_LANE_RUN(b->d, 0, program_of(b->d), "differ", w->height, frames, 1, SIZES(w), INT(first), INT(step), INT(b->count),
                FV_BUFFER(D_PLACES), FV_BUFFER(D_AMPLITUDES), FV_BUFFER(D_WORK), FV_BUFFER(D_TURNED));
    const float *sums = fv__lane_look(b->d, 0, D_TURNED, floats(2 * frames * w->height));
    for (int64_t i = 0; sums && i < 2 * frames * w->height; i++) left[i % 2] += (double)sums[i];
    fv__lane_done(b->d, 0, D_TURNED);
}

static void project_batch(const batch *b, float keep) {
    const fv_waves *w = &b->k->w;
    FV_LANE_RUN(b->d, 0, program_of(b->d), "project", tiles(b->d, w->width), w->height, b->count, SIZES(w), INT(b->count),
                FV_BUFFER(D_PLACES), FV_BUFFER(D_AMPLITUDES), FV_BUFFER(D_WORK));
    transform(b, b->count, 1);
    FV_LANE_RUN(b->d, 0, program_of(b->d), "come_back", tiles(b->d, w->row), b->count * w->modes * w->height, 1, INT(w->row),
                FV_BUFFER(D_WORK), FV_BUFFER(D_WAVES), FV_VALUE(float, keep));
    FV_LANE_RUN(b->d, 0, program_of(b->d), "gather", tiles(b->d, w->box_width), w->box_height, 1, SIZES(w), INT(b->count),
                FV_BUFFER(D_PLACES), FV_BUFFER(D_PROBE), FV_BUFFER(D_WAVES), INT(w->box_width), FV_BUFFER(D_SUMS));
}

/* As update does with each frame: the residual of relaxed waves is that of some frames without what was before. */
static void run_batch(const batch *b, float *rows, double left[2]) {
    const fv_waves     *w = &b->k->w;
    const ptycho_waves *p = b->r->need.params;
    bool                relaxed = p->kind.index == RELAXED;
    float               beta = (float)p->beta;
    mixing              with = relaxed ? (mixing){ beta, 1 - 2 * beta } : (mixing){ 1, -1 };
    int64_t             mine = w->modes * plane_of(w), sampled = FV_MIN(SAMPLED, b->box.frames) / 2 - b->first;
    while (sampled < 0) sampled += SAMPLED;
    send_frames(b, rows);
    fv__lane_room(b->d, 0, D_WORK, floats(b->count * mine));
    fv__lane_room(b->d, 0, D_TURNED, floats(b->count * mine));
    fv__lane_room(b->d, 0, D_ROOM, b->count * room_bytes(w));
    if (relaxed && sampled < b->count) {
        int64_t frames = (b->count - sampled + SAMPLED - 1) / SAMPLED;
        leave_batch(b, sampled, SAMPLED, frames, with, 1, true);
        differ_batch(b, sampled, SAMPLED, frames, left);
    }
    leave_batch(b, 0, 1, b->count, with, relaxed ? 1 - beta : -1, false);
    if (!relaxed) differ_batch(b, 0, 1, b->count, left);
    project_batch(b, with.keep);
    const float *exits = fv__lane_look(b->d, 0, D_WAVES, floats(b->count * mine));
    if (exits) memcpy(rows + b->first * mine, exits, (size_t)floats(b->count * mine));
    fv__lane_done(b->d, 0, D_WAVES);
}

static fv_status run_block_device(const work *k, const fv_run *r, fv_device *d, int64_t index, float *rows, fv_error *error) {
    const fv_waves *w = &k->w;
    int64_t         mine = w->modes * plane_of(w), plane = w->box_height * w->box_width;
    int64_t         many = FV_MAX(1, (fv__device_memory(d) - fixed_bytes(w)) / frame_bytes(w));
    batch           b = { k, r, d, index, .box = fv__waves_box(w, r->out->region.start[0] + index) };
    float          *to = rows + w->wave_rows * w->row;
    double          left[2] = { 0, 0 };
    send_window(&b);
    for (; b.first < b.box.frames; b.first += many) {
        b.count = FV_MIN(many, b.box.frames - b.first);
        run_batch(&b, rows, left);
    }
    memset(rows + b.box.frames * mine, 0, (size_t)floats((w->block - b.box.frames) * mine));
    memset(to, 0, (size_t)floats(w->sum_rows * w->row));
    const float *sums = fv__lane_look(d, 0, D_SUMS, floats(3 * plane));
    if (sums) memcpy(to, sums, (size_t)floats(3 * plane));
    fv__lane_done(d, 0, D_SUMS);
    fv__wave_tail(w, left, to);
    return fv__device_check(d, error);
}

/* ---------------------------------------------------------------- blocks */

/* d NULL: on the CPU. */
static fv_status run_on(fv_run *r, fv_device *d, fv_error *error) {
    work k;
    lay_out(&r->need, &k, r->scratch);
    fv__states_move(&k.w, r->in[STATES], k.scan);
    bool direct = fv__piece_direct(r->out, &r->need.out->image, 1);
    if (d) send_probes(&k, r, d);
    for (int64_t b = 0; b < r->out->region.size[0]; b++) {
        fv_region piece = fv__region_whole(&r->need.out->image);
        float    *rows = direct ? (float *)r->out->data + b * r->out->stride[0] : k.room;
        piece.start[0] = r->out->region.start[0] + b;
        piece.size[0] = 1;
        if (d)
            FV_TRY(run_block_device(&k, r, d, b, rows, error));
        else
            run_block(&k, r, b, rows);
        if (!direct) fv__piece_put(r->out, &piece, k.room);
    }
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) { return run_on(r, NULL, error); }
static fv_status run_device(fv_run *r, fv_device *d, fv_error *error) { return run_on(r, d, error); }

static const fv_device_kernel device = { .tolerance = 1e-5, .able = able, .least = least, .wanted = wanted, .run = run_device };

static void slab(const fv_need *n, int64_t *chunk) {
    memcpy(chunk, n->out->image.shape, 3 * sizeof *chunk);
    chunk[0] = 1;
}

static double cost(const fv_need *n) {
    (void)n;
    return 4;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_waves) = {
    .name = "ptycho_waves",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "exit waves brought nearer to the measured amplitudes: a step of ptycho",
    .version = 3,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_waves),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .device = &device,
    .slab = slab,
    .spends = 1u << BEFORE,
    .cost = cost,
    .doc =
        "With s = probe times object, z the waves before, and P the projection on the measured amplitudes (all modes are scaled "
        "alike): relaxed waves are beta z + (1 - 2 beta) s + beta P(2 s - z), error waves are P(s) - s. Behind the waves of a "
        "block follow the sums from which ptycho_object makes the object. A background is taken for one more mode, and a frame's "
        "measured amplitudes are divided by that of its light.",
    .citation = "Luke, Relaxed averaged alternating reflections for diffraction imaging, Inverse Problems 21, 2005; Thibault et "
                "al., Probe retrieval in ptychographic coherent diffractive imaging, Ultramicroscopy 109, 2009",
    .example =
        "scan = [0, 0, 0, 0, 1, 4, 0, 0, 2, 8, 3, 0]\n"
        "a = ptycho_frames(phantom(\"noise\", [3, 16, 16]) * 100, scan, [0, 0])\n"
        "write(ptycho_waves(a, ones([24, 2, 24], \"float32\"), ones([1, 16, 2, 16], \"float32\"), scan, [0, 0]), \"waves.npy\")",
    .see = "ptycho ptycho_frames ptycho_object ptycho_overlap",
};
