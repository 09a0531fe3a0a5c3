/* ptycho_pie: object and probe improved frame by frame inside of blocks, which do not see each other's changes.
 *
 * With s = P O, the exit wave of a frame, and e = (s with the measured amplitudes) - s:
 *     O += step conj(P) e / ((1 - a) |P|^2 + a max |P|^2),     P += step conj(O) e / ((1 - b) |O|^2 + b max |O|^2)
 * a = b = 1 is ePIE, smaller ones rPIE. Both use what was there before the frame. All modes are scaled alike, and the object
 * takes the sum over modes. A frame that lies between pixels has the probe shifted by its spectrum, and the change shifted back.
 */
#include "op/scratch.h"
#include "ops/ptychography/frame_moves.h"
#include "ops/ptychography/frame_states.h"
#include "ops/ptychography/probe_classes.h"
#include "ops/ptychography/whole_pieces.h"

typedef struct {
    fv_wave_scan at;
    fv_list      between;
    double       object_share, probe_share, object_step, probe_step, reach, limit, near;
    bool         light;
} ptycho_pie;
enum { AMPLITUDES, OBJECT, PROBE, BEFORE, BACKGROUND };

static const fv_param params[] = {
    FV_WAVE_SCAN_PARAMS,
    FV_PARAM(ptycho_pie, between, .doc = "two numbers of each frame in order: rows and columns beyond its corner, below 1 pixel"),
    FV_PARAM(ptycho_pie, object_share, .def = "1", .min = 0, .max = 1, .doc = "a of the object: 1 is ePIE, less rPIE"),
    FV_PARAM(ptycho_pie, probe_share, .def = "1", .min = 0, .max = 1, .doc = "b of the probe"),
    FV_PARAM(ptycho_pie, object_step, .def = "1", .min = 0, .max = 2, .doc = "step of the object"),
    FV_PARAM(ptycho_pie, probe_step, .def = "1", .min = 0, .max = 2, .doc = "step of the probe; 0: it stays"),
    FV_PARAM(ptycho_pie, reach, .def = "0", .min = 0, .max = 10,
             .doc = "how far a frame may be moved at once, in pixels; 0: frames stay where they are"),
    FV_PARAM(ptycho_pie, limit, .def = "4", .min = 0, .max = 100, .doc = "how far a frame may be moved in all, in pixels"),
    FV_PARAM(ptycho_pie, light, .def = "false", .doc = "whether the light of each frame is found"),
    FV_WAVE_NEAR_PARAM(ptycho_pie),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "amplitudes", FV_KIND_IMAGE, .doc = "what ptycho_frames gives" },
    { "object", FV_KIND_IMAGE, .doc = "object: row, part, column" },
    { "probe", FV_KIND_IMAGE, .doc = "probe: mode, row, part, column" },
    { "before", FV_KIND_IMAGE, .optional = true, .doc = "the same of the iteration before: its places and its light are used" },
    FV_WAVE_BACKGROUND_INPUT,
    FV_INPUT_END,
};

static fv_status find(const fv_need *n, fv_waves *w, fv_error *error) {
    return fv__waves_of(n->params, n->in[AMPLITUDES], n->in[PROBE], w, error);
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const ptycho_pie *p = i->params;
    fv_waves          w;
    FV_TRY(fv__waves_of(&p->at, i->in[AMPLITUDES], i->in[PROBE], &w, error));
    FV_TRY(fv__waves_fit(&w, i->in[OBJECT], error));
    if (w.classes != 1) return fv_fail(error, FV_ERROR_USAGE, "frames must be of one class; between says where they lie");
    if (p->between.count != 2 * w.frames) return fv_fail(error, FV_ERROR_USAGE, "between must have two numbers for each frame");
    fv__waves_type(&w, true, &i->out->image);
    i->out->image.shape[1] += fv__pie_states_row(&w) + fv__state_rows(&w) + w.height;
    if (i->in[BEFORE]->kind == FV_KIND_IMAGE && memcmp(i->in[BEFORE]->image.shape, i->out->image.shape, 3 * sizeof(int64_t)) != 0)
        return fv_fail(error, FV_ERROR_USAGE, "before must be of the same frames");
    return fv__states_fit(&w, i->in[BEFORE], i->in[BACKGROUND], error);
}

static void need(const fv_need *n, fv_region *in) {
    fv_waves w;
    find(n, &w, NULL);
    in[AMPLITUDES] = fv__region_whole(&n->in[AMPLITUDES]->image);
    in[AMPLITUDES].start[0] = n->region.start[0];
    in[AMPLITUDES].size[0] = n->region.size[0];
    in[OBJECT] = fv__waves_window(&w, n->region.start[0], n->region.size[0]);
    in[PROBE] = fv__region_whole(&n->in[PROBE]->image);
    if (n->in[BACKGROUND]->kind == FV_KIND_IMAGE) in[BACKGROUND] = fv__region_whole(&n->in[BACKGROUND]->image);
    fv__states_need(&w, n, BEFORE, n->region.start[0], n->region.size[0], in);
}

typedef struct {
    fv_waves          w;
    fv_measured_waves m;
    fv_probe_classes  c;
    float            *object; /* of the block's box: rows of re, im */
    float            *probe;  /* not shifted; modes, rows of re and im */
    float            *lit;    /* shifted, the same */
    float            *weight; /* of a row: what the changes are divided by */
    void             *room;
    int64_t           object_row, plane;
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    fv_scratch pieces = { memory };
    find(n, &k->w, NULL);
    k->object_row = 2 * k->w.box_width;
    k->plane = k->w.height * k->w.row;
    k->object = fv__scratch_take(&pieces, k->w.box_height * k->object_row * (int64_t)sizeof(float));
    k->probe = fv__scratch_take(&pieces, k->w.modes * k->plane * (int64_t)sizeof(float));
    k->lit = fv__scratch_take(&pieces, k->w.modes * k->plane * (int64_t)sizeof(float));
    k->weight = fv__scratch_take(&pieces, k->w.width * (int64_t)sizeof(float));
    k->room = fv__scratch_take(&pieces, fv__piece_room(n, 1));
    size_t used = pieces.used;
    used += fv__measured_lay_out(&k->m, k->w.height, k->w.width, k->w.modes, ((const ptycho_pie *)n->params)->near,
                                 memory ? (char *)memory + used : NULL);
    used = (used + 63) & ~(size_t)63;
    return used + fv__probe_classes_lay_out(&k->c, k->w.height, k->w.width, &((const ptycho_pie *)n->params)->at.shifts,
                                            memory ? (char *)memory + used : NULL);
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

/* ---------------------------------------------------------------- one frame */

typedef struct {
    fv_measured measured;
    float      *object;       /* its corner */
    double      shift[2];     /* rows and columns beyond it */
    float      *state, *back; /* its numbers, and those of the background */
} frame;

static void shift_probe(work *k, const frame *f) {
    for (int64_t m = 0; m < k->w.modes; m++) {
        const float *from = k->probe + m * k->plane;
        float       *to = k->lit + m * k->plane;
        if (f->shift[0] == 0 && f->shift[1] == 0) {
            memcpy(to, from, (size_t)k->plane * sizeof *to);
            continue;
        }
        fv__probe_classes_open(&k->c, from);
        fv__probe_classes_shift(&k->c, f->shift);
        for (int64_t y = 0; y < k->w.height; y++)
            memcpy(to + y * k->w.row, k->c.plane + y * k->c.stride, (size_t)k->w.row * sizeof *to);
    }
}

/* e of all modes, into their planes. */
static void find_errors(const work *k, const frame *f, bool light, double sums[2]) {
    int64_t n = k->w.width;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t m = 0; m < k->w.modes; m++) {
            if (pass) fv__measured_transform(&k->m, m, true);
            for (int64_t y = 0; y < k->w.height; y++) {
                const float *p = k->lit + m * k->plane + y * k->w.row, *q = p + n;
                const float *o = f->object + y * k->object_row, *i = o + k->w.box_width;
                float *restrict re = k->m.planes + m * k->m.plane + y * k->m.stride, *restrict im = re + n;
                float old = pass ? 1 : 0, sign = pass ? -1 : 1;
#pragma GCC ivdep
                for (int64_t x = 0; x < n; x++) {
                    re[x] = (old != 0 ? re[x] : 0) + sign * (p[x] * o[x] - q[x] * i[x]);
                    im[x] = (old != 0 ? im[x] : 0) + sign * (p[x] * i[x] + q[x] * o[x]);
                }
            }
            if (!pass) fv__measured_transform(&k->m, m, false);
        }
        if (pass) continue;
        if (light) /* half of the way, for object and probe change before the next frame */
            f->state[FV_STATE_LIGHT] = (float)sqrt((double)f->state[FV_STATE_LIGHT] * fv__measured_light(&k->m, &f->measured));
        if (f->measured.background) fv__measured_ratios(&k->m, &f->measured, f->back);
        fv__measured_compare(&k->m, &f->measured, true, sums);
    }
}

/* |P|^2 of row y, all modes together. */
static void light_row(const work *k, int64_t y, float *restrict to) {
    int64_t n = k->w.width;
    memset(to, 0, (size_t)n * sizeof *to);
    for (int64_t m = 0; m < k->w.modes; m++) {
        const float *p = k->lit + m * k->plane + y * k->w.row, *q = p + n;
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) to[x] += p[x] * p[x] + q[x] * q[x];
    }
}

static void object_weight(const work *k, const frame *f, int64_t y, float *restrict to) {
    const float *o = f->object + y * k->object_row, *i = o + k->w.box_width;
#pragma GCC ivdep
    for (int64_t x = 0; x < k->w.width; x++) to[x] = o[x] * o[x] + i[x] * i[x];
}

/* The largest |P|^2, with what it adds to the sums of the block; and the largest |O|^2. */
static void find_most(const work *k, const frame *f, float *sums, float most[2]) {
    int64_t n = k->w.width;
    most[0] = most[1] = 0;
    for (int64_t y = 0; y < k->w.height; y++) {
        light_row(k, y, k->weight);
        most[0] = FV_MAX(most[0], fv__lanes_most(k->weight, n));
        float *restrict den = sums + fv__wave_sums_at(&k->w, y, 2 * k->w.box_width);
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) den[x] += k->weight[x];
        object_weight(k, f, y, k->weight);
        most[1] = FV_MAX(most[1], fv__lanes_most(k->weight, n));
    }
}

/* to += conj(by) * e * step / weight, of a row. */
static void add_change(const float *by, int64_t by_part, const float *e, const float *weight, float step, int64_t n,
                       float *restrict to, int64_t to_part) {
    const float *b = by + by_part, *f = e + n;
    float *restrict im = to + to_part;
#pragma GCC ivdep
    for (int64_t x = 0; x < n; x++) {
        float s = step / weight[x];
        to[x] += (by[x] * e[x] + b[x] * f[x]) * s;
        im[x] += (by[x] * f[x] - b[x] * e[x]) * s;
    }
}

static void soften(float *weight, int64_t n, float share, float most) {
#pragma GCC ivdep
    for (int64_t x = 0; x < n; x++) weight[x] = FV_MAX((1 - share) * weight[x] + share * most, 1e-30f);
}

/* The change of the probe of a mode, at the frame's shift, into c.plane; then the object's row may change. */
static void change_mode(work *k, const frame *f, const ptycho_pie *p, int64_t m, float most) {
    int64_t n = k->w.width;
    for (int64_t y = 0; y < k->w.height; y++) {
        float *to = k->c.plane + y * k->c.stride;
        object_weight(k, f, y, k->weight);
        soften(k->weight, n, (float)p->probe_share, most);
        memset(to, 0, (size_t)k->w.row * sizeof *to);
        add_change(f->object + y * k->object_row, k->w.box_width, k->m.planes + m * k->m.plane + y * k->m.stride, k->weight,
                   (float)p->probe_step, n, to, n);
    }
}

static void change_probe(work *k, const frame *f, const ptycho_pie *p, float most) {
    bool  shifted = f->shift[0] != 0 || f->shift[1] != 0;
    float whole = shifted ? 1 / (float)(k->w.height * k->w.width) : 1;
    for (int64_t m = 0; m < k->w.modes; m++) {
        const float *change = k->c.plane;
        change_mode(k, f, p, m, most);
        if (shifted) {
            memset(k->c.spectrum, 0, (size_t)(k->w.height * k->c.stride) * sizeof *k->c.spectrum);
            fv__probe_classes_add(&k->c, f->shift, k->c.spectrum);
            FV_ISA_NAME(fv__plane_fourier)(&k->c.fourier, k->c.spectrum, k->c.stride, true);
            change = k->c.spectrum;
        }
        for (int64_t y = 0; y < k->w.height; y++) {
            float *restrict to = k->probe + m * k->plane + y * k->w.row;
#pragma GCC ivdep
            for (int64_t x = 0; x < k->w.row; x++) to[x] += change[y * k->c.stride + x] * whole;
        }
    }
}

static void change_object(const work *k, const frame *f, const ptycho_pie *p, float most) {
    for (int64_t y = 0; y < k->w.height; y++) {
        light_row(k, y, k->weight);
        soften(k->weight, k->w.width, (float)p->object_share, most);
        for (int64_t m = 0; m < k->w.modes; m++)
            add_change(k->lit + m * k->plane + y * k->w.row, k->w.width, k->m.planes + m * k->m.plane + y * k->m.stride,
                       k->weight, (float)p->object_step, k->w.width, f->object + y * k->object_row, k->w.box_width);
    }
}

/* ---------------------------------------------------------------- where the frame lies */

/* By how much the frame is moved, at most as far as it may be. */
static void move_frame(const work *k, const frame *f, const ptycho_pie *p, const double *between) {
    double sums[FV_MOVE_SUMS] = { 0 }, move[2];
    if (!(p->reach > 0)) return;
    for (int64_t m = 0; m < k->w.modes; m++) {
        fv_move_planes planes = { { k->lit + m * k->plane, k->w.row, k->w.width },
                                  { k->m.planes + m * k->m.plane, k->m.stride, k->w.width },
                                  { f->object, k->object_row, k->w.box_width } };
        fv__move_add(&planes, k->w.height, k->w.width, sums);
    }
    if (!fv__move_find(sums, move)) return;
    for (int a = 0; a < 2; a++) f->state[FV_STATE_Y + a] = fv__move_place(f->shift[a], move[a], between[a], p->reach, p->limit);
}

/* ---------------------------------------------------------------- a block */

static void begin_block(const work *k, const fv_run *r, const fv_wave_box *box, float *rows) {
    const fv_block *object = r->in[OBJECT], *probe = r->in[PROBE];
    for (int64_t y = 0; y < box->height; y++)
        for (int64_t part = 0; part < 2; part++) {
            int64_t at[3] = { box->y + y, part, box->x };
            memcpy(k->object + y * k->object_row + part * k->w.box_width, fv__block_at(object, at),
                   (size_t)box->width * sizeof(float));
        }
    for (int64_t y = 0; y < k->w.modes * k->w.height; y++)
        for (int64_t part = 0; part < 2; part++) {
            int64_t at[4] = { y / k->w.height, y % k->w.height, part, 0 };
            memcpy(k->probe + y * k->w.row + part * k->w.width, fv__block_at(probe, at), (size_t)k->w.width * sizeof(float));
        }
    memset(rows, 0, (size_t)(r->need.out->image.shape[1] * k->w.row) * sizeof *rows);
}

/* What has changed: of the object times the sum of light, so that blocks can be brought together. */
static void end_block(const work *k, const fv_run *r, const fv_wave_box *box, float *rows, float *sums) {
    const fv_block *object = r->in[OBJECT], *probe = r->in[PROBE];
    for (int64_t y = 0; y < box->height; y++)
        for (int64_t part = 0; part < 2; part++) {
            int64_t      at[3] = { box->y + y, part, box->x };
            const float *now = k->object + y * k->object_row + part * k->w.box_width, *old = fv__block_at(object, at);
            const float *den = sums + fv__wave_sums_at(&k->w, y, 2 * k->w.box_width);
            float       *to = sums + fv__wave_sums_at(&k->w, y, part * k->w.box_width);
#pragma GCC ivdep
            for (int64_t x = 0; x < box->width; x++) to[x] = (now[x] - old[x]) * den[x];
        }
    for (int64_t y = 0; y < k->w.modes * k->w.height; y++)
        for (int64_t part = 0; part < 2; part++) {
            int64_t      at[4] = { y / k->w.height, y % k->w.height, part, 0 };
            const float *now = k->probe + y * k->w.row + part * k->w.width, *old = fv__block_at(probe, at);
#pragma GCC ivdep
            for (int64_t x = 0; x < k->w.width; x++) rows[y * k->w.row + part * k->w.width + x] = now[x] - old[x];
        }
}

static void run_block(work *k, const fv_run *r, int64_t index, float *rows) {
    const ptycho_pie *p = r->need.params;
    const fv_block   *before = r->in[BEFORE];
    int64_t           block = r->out->region.start[0] + index;
    fv_wave_box       box = fv__waves_box(&k->w, block);
    float            *states = rows + fv__pie_states_row(&k->w) * k->w.row, *back = states + fv__state_rows(&k->w) * k->w.row;
    float            *sums = back + k->w.height * k->w.row;
    double            left[2] = { 0, 0 };
    float             most[2];
    begin_block(k, r, &box, rows);
    for (int64_t b = 0; b < box.frames; b++) {
        int64_t       number = block * k->w.block + b;
        const double *at = fv__wave_frame(&k->w, number), *between = p->between.value + 2 * number;
        int64_t       y = (int64_t)at[FV_SCAN_Y] - box.y, x = (int64_t)at[FV_SCAN_X] - box.x;
        frame         f = { fv__measured_frame(&k->w, r, (fv_measured_inputs){ AMPLITUDES, BEFORE, BACKGROUND }, number),
                            k->object + y * k->object_row + x,
                            { between[0], between[1] },
                            states + FV_STATE_NUMBERS * b,
                            back };
        for (int a = 0; a < 2 && before; a++) f.shift[a] = (double)fv__state(&k->w, before, number, FV_STATE_Y + a);
        for (int a = 0; a < 2; a++) f.state[FV_STATE_Y + a] = (float)f.shift[a];
        f.state[FV_STATE_LIGHT] = before ? fv__state(&k->w, before, number, FV_STATE_LIGHT) : 1;
        shift_probe(k, &f);
        find_errors(k, &f, p->light, left);
        find_most(k, &f, sums + fv__wave_sums_at(&k->w, y, x), most);
        move_frame(k, &f, p, between);
        if (p->probe_step > 0) change_probe(k, &f, p, most[1]);
        change_object(k, &f, p, most[0]);
    }
    end_block(k, r, &box, rows, sums);
    fv__wave_tail(&k->w, left, sums);
}

static fv_status run(fv_run *r, fv_error *error) {
    work k;
    (void)error;
    lay_out(&r->need, &k, r->scratch);
    for (int64_t b = 0; b < r->out->region.size[0]; b++) {
        fv_region piece = fv__region_whole(&r->need.out->image);
        piece.start[0] = r->out->region.start[0] + b;
        piece.size[0] = 1;
        run_block(&k, r, b, k.room);
        fv__piece_put(r->out, &piece, k.room);
    }
    return FV_OK;
}

static void slab(const fv_need *n, int64_t *chunk) {
    memcpy(chunk, n->out->image.shape, 3 * sizeof *chunk);
    chunk[0] = 1;
}

static double cost(const fv_need *n) {
    (void)n;
    return 50;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_pie) = {
    .name = "ptycho_pie",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "object and probe improved frame by frame inside of blocks: a step of ptycho",
    .version = 3,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_pie),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .doc =
        "For each block: the change of the probe, where its frames lie, and the change of the object times the sum of light, "
        "with that sum. Frames of a block come one after the other; blocks begin with the same object and probe. With reach, "
        "each frame is moved to where the slopes of the object explain what is left of its wave; with light, the light of each "
        "frame goes half of the way to what its counts say. Behind the places follow ratios for the background, as of "
        "ptycho_refine.",
    .citation = "Maiden and Rodenburg, An improved ptychographical phase retrieval algorithm, Ultramicroscopy 109, 2009 (ePIE); "
                "Maiden, Johnson and Li, Further improvements to the ptychographical iterative engine, Optica 4, 2017 (rPIE, "
                "mPIE); places by least squares as in Odstrcil, Menzel and Guizar-Sicairos, Optics Express 26, 2018",
    .example = "scan = [0, 0, 0, 0, 1, 4, 0, 0, 2, 8, 3, 0]\n"
               "a = ptycho_frames(phantom(\"noise\", [3, 16, 16]) * 100, scan, [0, 0])\n"
               "write(ptycho_pie(a, ones([24, 2, 24], \"float32\"), ones([1, 16, 2, 16], \"float32\"), scan, [0, 0], "
               "between = [0, 0, 0, 0.5, 0, 0]), \"changes.npy\")",
    .see = "ptycho ptycho_frames ptycho_object ptycho_mean",
};
