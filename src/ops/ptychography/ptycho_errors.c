/* ptycho_errors: what measured amplitudes say beyond probe times object, summed for both.
 *
 * Of each frame there is an error wave P(s) - s, with s = probe * object and P the projection on the measured amplitudes (all
 * modes are scaled alike), along which the least squares of amplitudes decrease. It goes into both sums while it is near, and is
 * not kept. The frames of a block come class by class, as in ptycho_overlap.
 */
#include "op/scratch.h"
#include "ops/ptychography/frame_states.h"
#include "ops/ptychography/measured_waves.h"
#include "ops/ptychography/probe_classes.h"
#include "ops/ptychography/probe_sums.h"
#include "ops/ptychography/whole_pieces.h"

typedef struct {
    fv_wave_scan at;
    double       near;
} ptycho_errors;
enum { AMPLITUDES, OBJECT, PROBE, STATES, BACKGROUND };

static const fv_param params[] = {
    FV_WAVE_SCAN_PARAMS,
    FV_WAVE_NEAR_PARAM(ptycho_errors),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "amplitudes", FV_KIND_IMAGE, .doc = "what ptycho_frames gives" },
    { "object", FV_KIND_IMAGE, .doc = "what ptycho_object gives" },
    { "probe", FV_KIND_IMAGE, .doc = "what ptycho_probe gives" },
    FV_WAVE_STATES_INPUT,
    FV_WAVE_BACKGROUND_INPUT,
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_waves w;
    FV_TRY(fv__waves_of(i->params, i->in[AMPLITUDES], i->in[PROBE], &w, error));
    FV_TRY(fv__waves_fit(&w, i->in[OBJECT], error));
    FV_TRY(fv__states_fit(&w, i->in[STATES], i->in[BACKGROUND], error));
    fv__waves_type(&w, true, &i->out->image);
    i->out->image.shape[1] += fv__probe_sum_rows(w.height, w.modes);
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
}

typedef struct {
    fv_waves          w;
    fv_measured_waves m;
    fv_probe_classes  c[FV_WAVES_MODES]; /* of each mode: sums of a class, and of classes whose columns are shifted alike */
    int64_t          *order;             /* frames of a block, by class */
    float            *spectra, *den;     /* of the block: of each mode, and weights */
    double           *scan;              /* of frames that were moved */
    float            *room;
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    const ptycho_errors *p = n->params;
    fv_scratch           pieces = { memory };
    fv__waves_of(n->params, n->in[AMPLITUDES], n->in[PROBE], &k->w, NULL);
    int64_t plane = k->w.height * fv__plane_stride(k->w.width) * (int64_t)sizeof(float);
    k->order = fv__scratch_take(&pieces, k->w.block * (int64_t)sizeof *k->order);
    k->spectra = fv__scratch_take(&pieces, k->w.modes * plane);
    k->den = fv__scratch_take(&pieces, plane);
    k->scan = fv__scratch_take(&pieces, fv__states_room(&p->at));
    k->room = fv__scratch_take(&pieces, fv__piece_room(n, 1));
    size_t used = pieces.used;
    for (int64_t m = 0; m < k->w.modes; m++)
        used +=
            (fv__probe_classes_lay_out(&k->c[m], k->w.height, k->w.width, &p->at.shifts, memory ? (char *)memory + used : NULL) +
             63) &
            ~(size_t)63;
    return used +
           fv__measured_lay_out(&k->m, k->w.height, k->w.width, k->w.modes, p->near, memory ? (char *)memory + used : NULL);
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

static const double *shift_of(const work *k, int64_t i) { return fv__wave_shift(&k->w, k->c[0].shifts, k->order[i]); }

/* Row y of a mode of a frame. */
typedef struct {
    const float *p, *q, *o, *i; /* parts of probe and object */
    float       *re, *im;       /* of the wave */
} frame_row;

static frame_row find_row(const work *k, const fv_run *r, int64_t frame, int64_t mode, int64_t y) {
    const double   *at = fv__wave_frame(&k->w, frame);
    const fv_block *object = r->in[OBJECT];
    fv_wave_plane   probe = fv__wave_plane(r, PROBE, (int64_t)at[FV_SCAN_CLASS] * k->w.modes + mode);
    int64_t         corner[3] = { (int64_t)at[FV_SCAN_Y] + y, 0, (int64_t)at[FV_SCAN_X] };
    const float    *p = probe.data + y * probe.row, *o = fv__block_at(object, corner);
    float          *re = k->m.planes + mode * k->m.plane + y * k->m.stride;
    return (frame_row){ p, p + probe.part, o, o + object->stride[1], re, re + k->w.width };
}

static void leave(const frame_row *f, int64_t n) {
    const float *p = f->p, *q = f->q, *o = f->o, *i = f->i;
    float *restrict re = f->re, *restrict im = f->im;
#pragma GCC ivdep
    for (int64_t x = 0; x < n; x++) {
        re[x] = p[x] * o[x] - q[x] * i[x];
        im[x] = p[x] * i[x] + q[x] * o[x];
    }
}

static void come_back(const frame_row *f, int64_t n) {
    const float *p = f->p, *q = f->q, *o = f->o, *i = f->i;
    float *restrict re = f->re, *restrict im = f->im;
#pragma GCC ivdep
    for (int64_t x = 0; x < n; x++) {
        re[x] -= p[x] * o[x] - q[x] * i[x];
        im[x] -= p[x] * i[x] + q[x] * o[x];
    }
}

/* conj(object) * wave, in place of what is there or added to it. */
static void put_row(const frame_row *f, int64_t n, bool add, float *restrict u) {
    const float *o = f->o, *i = f->i, *a = f->re, *b = f->im;
    float *restrict v = u + n;
#pragma GCC ivdep
    for (int64_t x = 0; x < n; x++) {
        u[x] = (add ? u[x] : 0) + (o[x] * a[x] + i[x] * b[x]);
        v[x] = (add ? v[x] : 0) + (o[x] * b[x] - i[x] * a[x]);
    }
}

static void add_weight(const frame_row *f, int64_t n, float *restrict den) {
    const float *o = f->o, *i = f->i;
#pragma GCC ivdep
    for (int64_t x = 0; x < n; x++) den[x] += o[x] * o[x] + i[x] * i[x];
}

/* sums: from the frame's corner on; add: whether its class has begun. */
static void add_frame(work *k, const fv_run *r, int64_t frame, bool add, double left[2], float *sums) {
    fv_measured measured = fv__measured_frame(&k->w, r, (fv_measured_inputs){ AMPLITUDES, STATES, BACKGROUND }, frame);
    int64_t     n = k->w.width, height = k->w.height;
    for (int64_t y = 0; y < k->w.modes * height; y++) {
        frame_row f = find_row(k, r, frame, y / height, y % height);
        leave(&f, n);
    }
    fv__measured_project(&k->m, &measured, left);
    for (int64_t m = 0; m < k->w.modes; m++) {
        float *plane = k->w.classes == 1 ? k->spectra + m * height * k->c[m].stride : k->c[m].plane;
        for (int64_t y = 0; y < height; y++) {
            frame_row f = find_row(k, r, frame, m, y);
            come_back(&f, n);
            fv__wave_sums_row(&k->w, f.p, f.q, f.re, f.im, sums + fv__wave_sums_at(&k->w, y, 0));
            put_row(&f, n, add, plane + y * k->c[m].stride);
            if (m == 0) add_weight(&f, n, k->den + y * n);
        }
    }
}

/* What the frames of a block say, of the probe as spectra; where all frames have one shift, as it is. */
static void add_block(work *k, const fv_run *r, int64_t block, const fv_wave_box *box, float *sums) {
    int64_t count = fv__waves_by_shift(&k->w, k->c[0].shifts, block, k->order), plane = k->w.height * k->c[0].stride;
    bool    begun = k->w.classes == 1, rows_begun = false;
    double  left[2] = { 0, 0 };
    memset(k->spectra, 0, (size_t)(k->w.modes * plane) * sizeof *k->spectra);
    memset(k->den, 0, (size_t)(k->w.height * k->w.width) * sizeof *k->den);
    for (int64_t i = 0; i < count; i++) {
        const double *at = fv__wave_frame(&k->w, k->order[i]), *shift = shift_of(k, i);
        bool          same_columns = i + 1 < count && shift[1] == shift_of(k, i + 1)[1];
        add_frame(k, r, k->order[i], begun, left,
                  sums + fv__wave_sums_at(&k->w, (int64_t)at[FV_SCAN_Y] - box->y, (int64_t)at[FV_SCAN_X] - box->x));
        begun = k->w.classes == 1 || (same_columns && shift[0] == shift_of(k, i + 1)[0]);
        if (begun) continue;
        for (int64_t m = 0; m < k->w.modes; m++) {
            fv__probe_classes_add_rows(&k->c[m], shift[0], !rows_begun);
            if (!same_columns) fv__probe_classes_add_columns(&k->c[m], shift[1], k->spectra + m * plane);
        }
        rows_begun = same_columns;
    }
    fv__wave_tail(&k->w, left, sums);
}

static void run_block(work *k, const fv_run *r, int64_t block, float *rows) {
    const fv_waves *w = &k->w;
    int64_t         n = w->width, lines = 2 * w->modes + 1;
    fv_wave_box     box = fv__waves_box(w, block);
    memset(rows, 0, (size_t)(r->need.out->image.shape[1] * w->row) * sizeof *rows);
    add_block(k, r, block, &box, rows + fv__probe_sum_rows(w->height, w->modes) * w->row);
    for (int64_t y = 0; y < w->height; y++) {
        for (int64_t m = 0; m < w->modes; m++)
            memcpy(rows + (y * lines + 2 * m) * n, k->spectra + (m * w->height + y) * k->c[m].stride,
                   (size_t)(2 * n) * sizeof *rows);
        memcpy(rows + (y * lines + 2 * w->modes) * n, k->den + y * n, (size_t)n * sizeof *rows);
    }
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
        run_block(&k, r, piece.start[0], direct ? (float *)r->out->data + b * r->out->stride[0] : k.room);
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

const fv_op FV_OP(ptycho_errors) = {
    .name = "ptycho_errors",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "sums of error waves for object and probe: a step of ptycho",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_errors),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .doc =
        "With s = probe times object and P the projection on the measured amplitudes (all modes are scaled alike), error waves "
        "are P(s) - s. For each block: the sums of conj(object) times these waves and of |object|^2, from which ptycho_probe "
        "makes a direction of the probe, as ptycho_overlap gives them; and behind them the sums from which ptycho_object makes "
        "one of the object. The waves themselves are not kept.",
    .citation = "Odstrcil, Menzel and Guizar-Sicairos, Iterative least-squares solver for generalized maximum-likelihood "
                "ptychography, Optics Express 26, 2018",
    .example = "scan = [0, 0, 0, 0, 1, 4, 0, 0, 2, 8, 3, 0]\n"
               "a = ptycho_frames(phantom(\"noise\", [3, 16, 16]) * 100, scan, [0, 0])\n"
               "write(ptycho_errors(a, ones([24, 2, 24], \"float32\"), ones([1, 16, 2, 16], \"float32\"), scan, [0, 0]), "
               "\"errors.npy\")",
    .see = "ptycho ptycho_waves ptycho_object ptycho_probe ptycho_steps",
};
