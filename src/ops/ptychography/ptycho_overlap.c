/* ptycho_overlap: sums of waves over frames, from which the probe is made.
 *
 * The frames of each class of shifts are added first; what they say of the probe is shifted back by rows and added to what other
 * classes with the same shift of columns say, and all of that is shifted back by columns.
 */
#include "base/math.h"
#include "op/scratch.h"
#include "ops/ptychography/frame_states.h"
#include "ops/ptychography/probe_classes.h"
#include "ops/ptychography/whole_pieces.h"

typedef struct {
    fv_wave_scan at;
    fv_choice    kind;
} ptycho_overlap;
enum { WAVES, OBJECT, PROBE, STATES };
enum { REPLACE, DIRECTION };

static const fv_param params[] = {
    FV_WAVE_SCAN_PARAMS,
    FV_PARAM(ptycho_overlap, kind, .def = "replace", .choices = "replace|direction",
             .doc = "replace: what the sums say beyond the probe; direction: the sums, of error waves"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "waves", FV_KIND_IMAGE, .doc = "what ptycho_waves gives" },
    { "object", FV_KIND_IMAGE, .doc = "what ptycho_object gives" },
    { "probe", FV_KIND_IMAGE, .doc = "what ptycho_probe gives" },
    FV_WAVE_STATES_INPUT,
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_waves w;
    FV_TRY(fv__waves_again(i->params, i->in[WAVES], false, i->in[PROBE], &w, error));
    FV_TRY(fv__waves_fit(&w, i->in[OBJECT], error));
    FV_TRY(fv__states_fit(&w, i->in[STATES], NULL, error));
    int64_t shape[] = { w.blocks, w.height, 2 * w.modes + 1, w.width };
    fv_image_type_init(&i->out->image, FV_FLOAT32, 4, shape);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    fv_waves w;
    fv__waves_again(n->params, n->in[WAVES], false, n->in[PROBE], &w, NULL);
    in[WAVES] = fv__region_whole(&n->in[WAVES]->image);
    in[WAVES].start[0] = n->region.start[0];
    in[WAVES].size[0] = n->region.size[0];
    in[WAVES].size[1] = w.wave_rows;
    in[OBJECT] = fv__waves_window(&w, in[WAVES].start[0], in[WAVES].size[0]);
    in[PROBE] = fv__region_whole(&n->in[PROBE]->image);
    fv__states_need(&w, n, STATES, n->region.start[0], n->region.size[0], in);
}

typedef struct {
    fv_waves         w;
    fv_probe_classes c;
    int64_t         *order;   /* frames of a block, by class */
    float           *spectra; /* of the block, by mode */
    float           *den;     /* of all classes */
    double          *scan;    /* of frames that were moved */
    float           *room;    /* the result of a block: rows of re and im of each mode, and of den */
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    const fv_wave_scan *at = n->params;
    fv_scratch          pieces = { memory };
    fv__waves_again(at, n->in[WAVES], false, n->in[PROBE], &k->w, NULL);
    int64_t plane = k->w.height * k->w.width * (int64_t)sizeof(float);
    k->order = fv__scratch_take(&pieces, k->w.frames * (int64_t)sizeof *k->order);
    k->den = fv__scratch_take(&pieces, plane);
    k->spectra = fv__scratch_take(&pieces, k->w.modes * k->w.height * fv__plane_stride(k->w.width) * (int64_t)sizeof(float));
    k->scan = fv__scratch_take(&pieces, fv__states_room(at));
    k->room = fv__scratch_take(&pieces, fv__piece_room(n, 1));
    return pieces.used +
           fv__probe_classes_lay_out(&k->c, k->w.height, k->w.width, &at->shifts, memory ? (char *)memory + pieces.used : NULL);
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

static int64_t class_of(const fv_waves *w, int64_t frame) { return (int64_t)fv__wave_frame(w, frame)[FV_SCAN_CLASS]; }

static const double *shift_of(const work *k, int64_t i) { return fv__wave_shift(&k->w, k->c.shifts, k->order[i]); }

/* A row of a frame. probe NULL: its waves are all there is to say. */
typedef struct {
    const float *object, *wave, *probe;
    int64_t      object_part, probe_part;
} frame_row;

/* conj(object) * (wave - probe * object), in place of what is there or added to it. */
static void put_row(const frame_row *f, int64_t n, bool add, float *restrict re) {
    const float *o = f->object, *i = o + f->object_part, *a = f->wave, *b = a + n;
    const float *p = f->probe, *q = p ? p + f->probe_part : NULL;
    float *restrict im = re + n;
    if (p)
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            float u = a[x] - (p[x] * o[x] - q[x] * i[x]), v = b[x] - (p[x] * i[x] + q[x] * o[x]);
            re[x] = (add ? re[x] : 0) + (o[x] * u + i[x] * v);
            im[x] = (add ? im[x] : 0) + (o[x] * v - i[x] * u);
        }
    else
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            re[x] = (add ? re[x] : 0) + (o[x] * a[x] + i[x] * b[x]);
            im[x] = (add ? im[x] : 0) + (o[x] * b[x] - i[x] * a[x]);
        }
}

static void add_weight(const float *o, int64_t part, int64_t n, float *restrict den) {
    const float *i = o + part;
#pragma GCC ivdep
    for (int64_t x = 0; x < n; x++) den[x] += o[x] * o[x] + i[x] * i[x];
}

/* A mode of a frame, in place of what is in `to` or added to it; with the first mode the weights. */
static void put_frame(const work *k, const fv_run *r, int64_t frame, int64_t mode, bool add, float *to) {
    const fv_waves *w = &k->w;
    const double   *at = fv__wave_frame(w, frame);
    const fv_block *object = r->in[OBJECT];
    bool            old = ((const ptycho_overlap *)r->need.params)->kind.index == REPLACE;
    fv_wave_plane   waves = fv__wave_plane(r, WAVES, frame / w->block);
    fv_wave_plane   probe = fv__wave_plane(r, PROBE, class_of(w, frame) * w->modes + mode);
    int64_t         corner[3] = { (int64_t)at[FV_SCAN_Y], 0, (int64_t)at[FV_SCAN_X] };
    const float    *o = fv__block_at(object, corner);
    const float    *wave = waves.data + (frame % w->block * w->modes + mode) * w->height * waves.row;
    for (int64_t y = 0; y < w->height; y++, o += object->stride[0], wave += waves.row) {
        frame_row row = { o, wave, old ? probe.data + y * probe.row : NULL, object->stride[1], probe.part };
        fv__wave_fetch(wave, waves.row, w->row);
        put_row(&row, w->width, add, to + y * k->c.stride);
        if (mode == 0) add_weight(o, object->stride[1], w->width, k->den + y * w->width);
    }
}

/* The frames of a block, by class, as a spectrum; without shifts as they are. */
static void add_mode(work *k, const fv_run *r, int64_t count, int64_t mode) {
    float *spectrum = k->spectra + mode * k->w.height * k->c.stride;
    memset(spectrum, 0, (size_t)(k->w.height * k->c.stride) * sizeof *spectrum);
    bool begun = false, rows_begun = false;
    for (int64_t i = 0; i < count; i++) {
        bool more = i + 1 < count, same_columns = more && shift_of(k, i)[1] == shift_of(k, i + 1)[1];
        put_frame(k, r, k->order[i], mode, k->w.classes == 1 || begun, k->w.classes == 1 ? spectrum : k->c.plane);
        begun = same_columns && shift_of(k, i)[0] == shift_of(k, i + 1)[0];
        if (k->w.classes == 1 || begun) continue;
        fv__probe_classes_add_rows(&k->c, shift_of(k, i)[0], !rows_begun);
        rows_begun = same_columns;
        if (!same_columns) fv__probe_classes_add_columns(&k->c, shift_of(k, i)[1], spectrum);
    }
}

static void add_block(work *k, const fv_run *r, int64_t block) {
    int64_t count = fv__waves_by_shift(&k->w, k->c.shifts, block, k->order);
    memset(k->den, 0, (size_t)(k->w.height * k->w.width) * sizeof *k->den);
    for (int64_t m = 0; m < k->w.modes; m++) add_mode(k, r, count, m);
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *out = r->out;
    fv_region       piece = fv__region_whole(&r->need.out->image);
    work            k;
    (void)error;
    lay_out(&r->need, &k, r->scratch);
    fv__states_move(&k.w, r->in[STATES], k.scan);
    int64_t n = k.w.width, lines = 2 * k.w.modes + 1;
    piece.size[0] = 1;
    for (int64_t i = 0; i < out->region.size[0]; i++) {
        piece.start[0] = out->region.start[0] + i;
        add_block(&k, r, piece.start[0]);
        for (int64_t y = 0; y < k.w.height; y++) {
            float *to = k.room + y * lines * n;
            for (int64_t m = 0; m < k.w.modes; m++)
                memcpy(to + 2 * m * n, k.spectra + (m * k.w.height + y) * k.c.stride, (size_t)(2 * n) * sizeof *to);
            memcpy(to + 2 * k.w.modes * n, k.den + y * n, (size_t)n * sizeof *to);
        }
        fv__piece_put(out, &piece, k.room);
    }
    return FV_OK;
}

static void slab(const fv_need *n, int64_t *chunk) {
    memcpy(chunk, n->out->image.shape, 4 * sizeof *chunk);
    chunk[0] = 1;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_overlap) = {
    .name = "ptycho_overlap",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "sums of exit waves for the probe: a step of ptycho",
    .version = 3,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_overlap),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .doc =
        "For each block, whose frames are taken by class of sub-pixel shifts: the sum of conj(object) times wave of each mode, "
        "less |object|^2 times the probe, shifted back as a spectrum (where all frames have one shift: as it is); and the sum "
        "of |object|^2. ptycho_probe makes the probe of them.",
    .example = "scan = [0, 0, 0, 0, 1, 4, 0, 0, 2, 8, 3, 0]\n"
               "a = ptycho_frames(phantom(\"noise\", [3, 16, 16]) * 100, scan, [0, 0])\n"
               "p = ones([1, 16, 2, 16], \"float32\")\n"
               "o = ones([24, 2, 24], \"float32\")\n"
               "write(ptycho_overlap(ptycho_waves(a, o, p, scan, [0, 0]), o, p, scan, [0, 0]), \"overlap.npy\")",
    .see = "ptycho ptycho_waves ptycho_probe",
};
