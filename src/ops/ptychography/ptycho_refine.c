/* ptycho_refine: what frames say of themselves beside object and probe: where they lie, how bright they are, what is background.
 *
 * With s = light * probe * object, S its squared amplitudes at the detector, all modes and the background together, and a the
 * measured amplitudes:
 * light:  the root of sum a^2 / sum S, the most likely one for counts with Poisson noise.
 * place:  e = (s with the measured amplitudes) - s is nearly P (dy O_y + dx O_x): the least squares of it.
 * ratios: sums of a / (light sqrt(S)) by pixel, from which ptycho_background makes the background.
 */
#include "op/scratch.h"
#include "ops/ptychography/frame_moves.h"
#include "ops/ptychography/frame_states.h"
#include "ops/ptychography/whole_pieces.h"

typedef struct {
    fv_wave_scan at;
    double       reach, limit, near;
    bool         light, ratios;
} ptycho_refine;
enum { AMPLITUDES, OBJECT, PROBE, STATES, BACKGROUND };

static const fv_param params[] = {
    FV_WAVE_SCAN_PARAMS,
    FV_PARAM(ptycho_refine, reach, .def = "0", .min = 0, .max = 10, .unit = "px",
             .doc = "how far a frame may be moved at once; 0: frames stay where they are"),
    FV_PARAM(ptycho_refine, limit, .def = "4", .min = 0, .max = 64, .unit = "px", .doc = "how far a frame may be moved in all"),
    FV_PARAM(ptycho_refine, light, .def = "false", .doc = "whether the light of each frame is found"),
    FV_PARAM(ptycho_refine, ratios, .def = "false", .doc = "whether sums for the background are made"),
    FV_WAVE_NEAR_PARAM(ptycho_refine),
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
    const ptycho_refine *p = i->params;
    fv_waves             w;
    FV_TRY(fv__waves_of(&p->at, i->in[AMPLITUDES], i->in[PROBE], &w, error));
    FV_TRY(fv__waves_fit(&w, i->in[OBJECT], error));
    FV_TRY(fv__states_fit(&w, i->in[STATES], i->in[BACKGROUND], error));
    if (p->reach > 0 && !p->at.margin)
        return fv_fail(error, FV_ERROR_USAGE, "reach = %g: frames cannot be moved without a margin", p->reach);
    fv__waves_type(&w, true, &i->out->image);
    i->out->image.shape[1] = fv__state_rows(&w) + w.height;
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
    float            *room; /* what a block gives */
    double           *scan; /* of frames that were moved */
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    const ptycho_refine *p = n->params;
    fv_scratch           pieces = { memory };
    fv__waves_of(&p->at, n->in[AMPLITUDES], n->in[PROBE], &k->w, NULL);
    k->room = fv__scratch_take(&pieces, fv__piece_room(n, 1));
    k->scan = fv__scratch_take(&pieces, fv__states_room(&p->at));
    return pieces.used + fv__measured_lay_out(&k->m, k->w.height, k->w.width, k->w.modes, p->near,
                                              memory ? (char *)memory + pieces.used : NULL);
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

/* ---------------------------------------------------------------- one frame */

typedef struct {
    fv_wave_plane probe[FV_WAVES_MODES], object;
    fv_measured   measured;
    const double *at, *told; /* its numbers in the scan; where it was said to lie beyond its corner */
    float        *state;
} frame;

/* plane = sign * probe * object, or added to what is there. */
static void put_wave(const work *k, const frame *f, int64_t mode, bool less) {
    int64_t n = k->w.width;
    for (int64_t y = 0; y < k->w.height; y++) {
        const float *p = f->probe[mode].data + y * f->probe[mode].row, *q = p + f->probe[mode].part;
        const float *o = f->object.data + y * f->object.row, *i = o + f->object.part;
        float *restrict re = k->m.planes + mode * k->m.plane + y * k->m.stride, *restrict im = re + n;
        if (less)
#pragma GCC ivdep
            for (int64_t x = 0; x < n; x++) {
                re[x] -= p[x] * o[x] - q[x] * i[x];
                im[x] -= p[x] * i[x] + q[x] * o[x];
            }
        else
#pragma GCC ivdep
            for (int64_t x = 0; x < n; x++) {
                re[x] = p[x] * o[x] - q[x] * i[x];
                im[x] = p[x] * i[x] + q[x] * o[x];
            }
    }
}

/* From waves at the detector: where the frame fits better. Its corner may change then. Moves add up, though waves are made at the
 * nearest place of the grid: most are smaller than its steps. */
static void move_frame(const work *k, const frame *f, const ptycho_refine *p, const double used[2]) {
    double sums[FV_MOVE_SUMS] = { 0 }, move[2], then[FV_SCAN_NUMBERS], place[2];
    fv__measured_compare(&k->m, &f->measured, true, NULL);
    for (int64_t m = 0; m < k->w.modes; m++) {
        fv__measured_transform(&k->m, m, true);
        put_wave(k, f, m, true);
        fv_wave_plane  error = { k->m.planes + m * k->m.plane, k->m.stride, k->w.width };
        fv_move_planes planes = { f->probe[m], error, f->object };
        fv__move_add(&planes, k->w.height, k->w.width, sums);
    }
    if (!fv__move_find(sums, move)) return;
    for (int a = 0; a < 2; a++) {
        float *at = &f->state[FV_STATE_Y + a];
        *at = fv__move_place((double)*at, move[a], f->told[a], p->reach, FV_MIN(p->limit, (double)p->at.margin));
        place[a] = (double)*at;
    }
    memcpy(then, f->at, sizeof then);
    fv__state_corner(&k->w, place, then);
    for (int a = 0; a < 2; a++)
        if (then[FV_SCAN_Y + a] != f->at[FV_SCAN_Y + a] + floor(used[a])) f->state[FV_STATE_FRESH] = 1;
}

static void refine_frame(const work *k, const frame *f, const ptycho_refine *p, const double used[2], float *ratios) {
    if (!(p->reach > 0) && !p->light && !p->ratios) return;
    for (int64_t m = 0; m < k->w.modes; m++) {
        put_wave(k, f, m, false);
        fv__measured_transform(&k->m, m, false);
    }
    if (p->light) f->state[FV_STATE_LIGHT] = (float)fv__measured_light(&k->m, &f->measured);
    if (p->ratios) fv__measured_ratios(&k->m, &f->measured, ratios);
    if (p->reach > 0) move_frame(k, f, p, used);
}

/* ---------------------------------------------------------------- a block */

/* used: where the waves of the frame lie beyond its corner, to the part of a pixel that classes have. */
static frame find_frame(const work *k, const fv_run *r, int64_t number, float *state, double used[2]) {
    const fv_waves *w = &k->w;
    const fv_list  *shifts = &((const ptycho_refine *)r->need.params)->at.shifts;
    const fv_block *object = r->in[OBJECT];
    const double   *now = fv__wave_frame(w, number), *given = w->given + FV_SCAN_NUMBERS * number;
    int64_t         corner[3] = { (int64_t)now[FV_SCAN_Y], 0, (int64_t)now[FV_SCAN_X] };
    frame           f = { .object = { fv__block_at(object, corner), object->stride[0], object->stride[1] },
                          .measured = fv__measured_frame(w, r, (fv_measured_inputs){ AMPLITUDES, STATES, BACKGROUND }, number),
                          .at = given,
                          .told = shifts->value + 2 * (int64_t)given[FV_SCAN_CLASS],
                          .state = state };
    for (int64_t m = 0; m < w->modes; m++) f.probe[m] = fv__wave_plane(r, PROBE, (int64_t)now[FV_SCAN_CLASS] * w->modes + m);
    for (int a = 0; a < 2; a++) {
        used[a] = now[FV_SCAN_Y + a] - given[FV_SCAN_Y + a] + shifts->value[2 * (int64_t)now[FV_SCAN_CLASS] + a];
        state[FV_STATE_Y + a] = r->in[STATES] ? fv__state(w, r->in[STATES], number, FV_STATE_Y + a) : (float)f.told[a];
    }
    state[FV_STATE_LIGHT] = r->in[STATES] ? fv__state(w, r->in[STATES], number, FV_STATE_LIGHT) : 1;
    return f;
}

static void run_block(const work *k, const fv_run *r, int64_t block, float *rows) {
    int64_t end = FV_MIN((block + 1) * k->w.block, k->w.frames);
    float  *ratios = rows + fv__state_rows(&k->w) * k->w.row;
    memset(rows, 0, (size_t)(r->need.out->image.shape[1] * k->w.row) * sizeof *rows);
    for (int64_t number = block * k->w.block; number < end; number++) {
        double used[2];
        frame  f = find_frame(k, r, number, rows + FV_STATE_NUMBERS * (number % k->w.block), used);
        refine_frame(k, &f, r->need.params, used, ratios);
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    work k;
    (void)error;
    lay_out(&r->need, &k, r->scratch);
    fv__states_move(&k.w, r->in[STATES], k.scan);
    for (int64_t b = 0; b < r->out->region.size[0]; b++) {
        fv_region piece = fv__region_whole(&r->need.out->image);
        piece.start[0] = r->out->region.start[0] + b;
        piece.size[0] = 1;
        run_block(&k, r, piece.start[0], k.room);
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

const fv_op FV_OP(ptycho_refine) = {
    .name = "ptycho_refine",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "where frames lie and how bright they are: a step of ptycho",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_refine),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .doc = "Four numbers of each frame of a block: rows and columns beyond its corner in the scan, amplitude of its light, and 1 "
           "if its corner has changed. Below them, for each pixel of the detector, the sum over frames of measured amplitudes by "
           "those of probe times object and background, and how many were measured. A frame is moved to where the slopes of the "
           "object explain what is left of its wave.",
    .citation =
        "places by least squares as in Odstrcil, Menzel and Guizar-Sicairos, Iterative least-squares solver for generalized "
        "maximum-likelihood ptychography, Optics Express 26, 2018",
    .example = "scan = [0, 5, 5, 0, 1, 9, 5, 0, 2, 13, 8, 0]\n"
               "a = ptycho_frames(phantom(\"noise\", [3, 16, 16]) * 100, scan, [0, 0])\n"
               "o = split_complex(phantom(\"cells\", [40, 40]) / 99)\n"
               "p = ones([1, 16, 2, 16], \"float32\")\n"
               "write(ptycho_refine(a, o, p, scan, [0, 0], margin = 5, reach = 1, light = true), \"states.npy\")",
    .see = "ptycho ptycho_waves ptycho_positions ptycho_background",
};
