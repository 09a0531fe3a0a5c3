/* ptycho_waves: the exit wave of every frame, brought nearer to what was measured.
 *
 * With s = probe * object and P the projection that gives a wave the measured amplitudes (all modes are scaled alike):
 * relaxed:  z <- beta z + (1 - 2 beta) s + beta P(2 s - z), which for beta = 1 is the difference map. One pair of transforms.
 * error:    z <- P(s) - s, along which the least squares of amplitudes decrease.
 */
#include "op/scratch.h"
#include "ops/ptychography/frame_states.h"
#include "ops/ptychography/measured_waves.h"
#include "ops/ptychography/whole_pieces.h"

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
 * is no z; to `keep` times z and `share` times s it is then added `keep` times. Half of that is done on the way out: z and s are
 * near then, and neither is needed again. */
typedef struct {
    float keep, share;
} mixing;

/* Row y of a mode. */
static void leave(const work *k, const frame *f, int mode, int64_t y, mixing mix) {
    int64_t      n = k->w.width;
    const float *p = probe_row(f, mode, y), *q = p + f->probe[mode].part;
    const float *o = f->object + y * f->object_row, *i = o + f->object_part;
    float *restrict re = k->m.planes + mode * k->m.plane + y * k->m.stride, *restrict im = re + n;
    float *restrict u = wave_row(k, f, mode, y), *restrict v = u + n;
    if (f->before) {
        const float *a = before_row(k, f, mode, y), *b = a + n;
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            float s = p[x] * o[x] - q[x] * i[x], t = p[x] * i[x] + q[x] * o[x];
            re[x] = 2 * s - a[x];
            im[x] = 2 * t - b[x];
            u[x] = mix.keep * a[x] + mix.share * s;
            v[x] = mix.keep * b[x] + mix.share * t;
        }
    } else
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            float s = p[x] * o[x] - q[x] * i[x], t = p[x] * i[x] + q[x] * o[x];
            re[x] = s;
            im[x] = t;
            u[x] = mix.share * s;
            v[x] = mix.share * t;
        }
}

static void spread_out(const work *k, const frame *f, mixing mix) {
    for (int m = 0; m < k->w.modes; m++) {
        for (int64_t y = 0; y < k->w.height; y++) leave(k, f, m, y, mix);
        fv__measured_transform(&k->m, m, false);
    }
}

static void come_back(const work *k, const frame *f, int mode, int64_t y, mixing mix) {
    int64_t      n = k->w.width;
    const float *from = k->m.planes + mode * k->m.plane + y * k->m.stride;
    float *restrict wave = wave_row(k, f, mode, y);
#pragma GCC ivdep
    for (int64_t x = 0; x < 2 * n; x++) wave[x] += mix.keep * from[x];
}

/* Its rows go into the sums while they are near. */
static void fill_wave(const work *k, const frame *f, mixing mix, float *sums) {
    for (int m = 0; m < k->w.modes; m++) {
        fv__measured_transform(&k->m, m, true);
        for (int64_t y = 0; y < k->w.height; y++) {
            const float *at = probe_row(f, m, y), *wave = wave_row(k, f, m, y);
            come_back(k, f, m, y, mix);
            fv__wave_sums_row(&k->w, at, at + f->probe[m].part, wave, wave + k->w.width, sums + y * k->w.box_width);
        }
    }
}

/* sampled: of relaxed waves, whether this frame is one of those by which the residual of s is followed. */
static void update(const work *k, const frame *f, const ptycho_waves *p, bool sampled, double left[2], float *sums) {
    bool   relaxed = p->kind.index == RELAXED;
    float  beta = (float)p->beta;
    mixing mix = !relaxed ? (mixing){ 1, -1 } : (mixing){ beta, f->before ? 1 - 2 * beta : 1 - beta };
    if (relaxed && sampled && f->before) {
        frame alone = *f;
        alone.before = NULL;
        spread_out(k, &alone, mix);
        fv__measured_compare(&k->m, &f->measured, false, left);
    }
    spread_out(k, f, mix);
    fv__measured_compare(&k->m, &f->measured, true, relaxed && (f->before || !sampled) ? NULL : left);
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
        int64_t       corner = ((int64_t)at[FV_SCAN_Y] - box.y) * w->box_width + (int64_t)at[FV_SCAN_X] - box.x;
        update(k, &f, r->need.params, b % SAMPLED == FV_MIN(SAMPLED, box.frames) / 2, left, sums + corner);
    }
    memset(rows + box.frames * size, 0, (size_t)((w->block - box.frames) * size) * sizeof *rows);
    fv__wave_tail(w, left, sums);
}

static fv_status run(fv_run *r, fv_error *error) {
    work k;
    (void)error;
    lay_out(&r->need, &k, r->scratch);
    fv__states_move(&k.w, r->in[STATES], k.scan);
    bool direct = fv__piece_direct(r->out, &r->need.out->image, 1);
    for (int64_t b = 0; b < r->out->region.size[0]; b++) {
        fv_region piece = fv__region_whole(&r->need.out->image);
        piece.start[0] = r->out->region.start[0] + b;
        piece.size[0] = 1;
        run_block(&k, r, b, direct ? (float *)r->out->data + b * r->out->stride[0] : k.room);
        if (!direct) fv__piece_put(r->out, &piece, k.room);
    }
    return FV_OK;
}

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
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_waves),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
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
