/* ptycho_overlap: sums of waves over frames, from which the probe is made.
 *
 * Blocks are cut into runs, which are tasks. Within a run the frames of each class of shifts are added first; what they say of
 * the probe is shifted back, as a spectrum, and added to that of the run.
 */
#include "base/math.h"
#include "op/scratch.h"
#include "ops/ptychography/exit_waves.h"
#include "ops/ptychography/probe_classes.h"
#include "ops/ptychography/whole_pieces.h"

typedef struct {
    fv_wave_scan at;
    fv_choice    kind;
} ptycho_overlap;
enum { WAVES, OBJECT, PROBE };
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
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_waves w;
    FV_TRY(fv__waves_again(i->params, i->in[WAVES], false, i->in[PROBE], &w, error));
    FV_TRY(fv__waves_fit(&w, i->in[OBJECT], error));
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
}

typedef struct {
    fv_waves         w;
    fv_probe_classes c;
    int64_t         *order;     /* frames of a block, by class */
    float           *num, *den; /* of a class; num: modes, rows of re and im */
    float           *spectra;   /* of the block, by mode */
    float           *all;       /* den of all classes */
    float           *room;      /* the result of a block: rows of re and im of each mode, and of den */
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    const fv_wave_scan *at = n->params;
    fv_scratch          pieces = { memory };
    fv__waves_again(at, n->in[WAVES], false, n->in[PROBE], &k->w, NULL);
    int64_t plane = k->w.height * k->w.width * (int64_t)sizeof(float);
    k->order = fv__scratch_take(&pieces, k->w.frames * (int64_t)sizeof *k->order);
    k->num = fv__scratch_take(&pieces, 2 * k->w.modes * plane);
    k->den = fv__scratch_take(&pieces, plane);
    k->all = fv__scratch_take(&pieces, plane);
    k->spectra = fv__scratch_take(&pieces, k->w.modes * k->w.height * fv__plane_stride(k->w.width) * (int64_t)sizeof(float));
    k->room = fv__scratch_take(&pieces, fv__piece_room(n, 1));
    return pieces.used +
           fv__probe_classes_lay_out(&k->c, k->w.height, k->w.width, &at->shifts, memory ? (char *)memory + pieces.used : NULL);
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

static int64_t class_of(const fv_waves *w, int64_t frame) { return (int64_t)fv__wave_frame(w, frame)[FV_SCAN_CLASS]; }

static int64_t sort_frames(const work *k, int64_t block) {
    int64_t n = 0, end = FV_MIN(k->w.frames, (block + 1) * k->w.block);
    for (int64_t class = 0; class < k->w.classes; class ++)
        for (int64_t f = block * k->w.block; f < end; f++)
            if (class_of(&k->w, f) == class) k->order[n++] = f;
    return n;
}

/* conj(object) * wave, and |object|^2. */
static void add_row(const float *o, int64_t part, const float *a, int64_t n, float *restrict re) {
    const float *i = o + part, *b = a + n;
    float *restrict im = re + n;
#pragma GCC ivdep
    for (int64_t x = 0; x < n; x++) {
        re[x] += o[x] * a[x] + i[x] * b[x];
        im[x] += o[x] * b[x] - i[x] * a[x];
    }
}

static void add_weight(const float *o, int64_t part, int64_t n, float *restrict den) {
    const float *i = o + part;
#pragma GCC ivdep
    for (int64_t x = 0; x < n; x++) den[x] += o[x] * o[x] + i[x] * i[x];
}

static void add_frame(const work *k, const fv_run *r, int64_t frame) {
    const fv_waves *w = &k->w;
    const double   *at = fv__wave_frame(w, frame);
    const fv_block *object = r->in[OBJECT];
    fv_wave_plane   waves = fv__wave_plane(r, WAVES, frame / w->block);
    int64_t         corner[3] = { (int64_t)at[FV_SCAN_Y], 0, (int64_t)at[FV_SCAN_X] }, n = w->width;
    const float    *o = fv__block_at(object, corner), *wave = waves.data + frame % w->block * w->modes * w->height * waves.row;
    for (int64_t y = 0; y < w->height; y++, o += object->stride[0]) {
        for (int64_t m = 0; m < w->modes; m++)
            add_row(o, object->stride[1], wave + (m * w->height + y) * waves.row, n, k->num + (m * w->height + y) * w->row);
        add_weight(o, object->stride[1], n, k->den + y * n);
    }
}

/* What the sums of a class say beyond its probe: num - den * probe, or all of them; shifted back. */
static void close_class(work *k, const fv_run *r, int64_t class, float old, float *den) {
    const fv_waves *w = &k->w;
    int64_t         n = w->width;
    for (int64_t m = 0; m < w->modes; m++) {
        fv_wave_plane probe = fv__wave_plane(r, PROBE, class * w->modes + m);
        float        *spectrum = k->spectra + m * w->height * k->c.stride;
        float        *to = w->classes > 1 ? k->c.plane : spectrum, kept = w->classes > 1 ? 0 : 1;
        for (int64_t y = 0; y < w->height; y++) {
            const float *num = k->num + (m * w->height + y) * w->row, *d = k->den + y * n;
            for (int part = 0; part < 2; part++) {
                const float *p = probe.data + y * probe.row + part * probe.part;
                float *restrict t = to + y * k->c.stride + part * n;
#pragma GCC ivdep
                for (int64_t x = 0; x < n; x++)
                    t[x] = (kept != 0 ? t[x] : 0) + (num[part * n + x] - (old != 0 ? old * d[x] * p[x] : 0));
            }
        }
        if (w->classes > 1) fv__probe_classes_add(&k->c, k->c.shifts->value + 2 * class, spectrum);
    }
#pragma GCC ivdep
    for (int64_t x = 0; x < w->height * n; x++) den[x] += k->den[x];
}

static void clear(const work *k) {
    memset(k->num, 0, (size_t)(2 * k->w.modes * k->w.height * k->w.width) * sizeof *k->num);
    memset(k->den, 0, (size_t)(k->w.height * k->w.width) * sizeof *k->den);
}

/* The frames of a block, by class. */
static void add_block(work *k, const fv_run *r, int64_t block, float *den) {
    int64_t count = sort_frames(k, block);
    float   old = ((const ptycho_overlap *)r->need.params)->kind.index == REPLACE;
    memset(k->spectra, 0, (size_t)(k->w.modes * k->w.height * k->c.stride) * sizeof *k->spectra);
    memset(den, 0, (size_t)(k->w.height * k->w.width) * sizeof *den);
    clear(k);
    for (int64_t i = 0; i < count; i++) {
        int64_t class = class_of(&k->w, k->order[i]);
        add_frame(k, r, k->order[i]);
        if (i + 1 < count && class_of(&k->w, k->order[i + 1]) == class) continue;
        close_class(k, r, class, old, den);
        clear(k);
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *out = r->out;
    fv_region       piece = fv__region_whole(&r->need.out->image);
    work            k;
    (void)error;
    lay_out(&r->need, &k, r->scratch);
    int64_t n = k.w.width, lines = 2 * k.w.modes + 1;
    piece.size[0] = 1;
    for (int64_t i = 0; i < out->region.size[0]; i++) {
        piece.start[0] = out->region.start[0] + i;
        add_block(&k, r, piece.start[0], k.all);
        for (int64_t y = 0; y < k.w.height; y++) {
            float *to = k.room + y * lines * n;
            for (int64_t m = 0; m < k.w.modes; m++)
                memcpy(to + 2 * m * n, k.spectra + (m * k.w.height + y) * k.c.stride, (size_t)(2 * n) * sizeof *to);
            memcpy(to + 2 * k.w.modes * n, k.all + y * n, (size_t)n * sizeof *to);
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
    .version = 2,
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
