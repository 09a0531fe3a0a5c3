/* ptycho_waves: the exit wave of every frame, brought nearer to what was measured.
 *
 * With s = probe * object and P the projection that gives a wave the measured amplitudes (all modes are scaled alike):
 * relaxed:  z <- beta z + (1 - 2 beta) s + beta P(2 s - z), which for beta = 1 is the difference map. One pair of transforms.
 * error:    z <- P(s) - s, along which the least squares of amplitudes decrease.
 */
#include "op/scratch.h"
#include "ops/ptychography/exit_waves.h"
#include "ops/ptychography/whole_pieces.h"

typedef struct {
    fv_wave_scan at;
    fv_choice    kind;
    double       beta;
} ptycho_waves;
enum { AMPLITUDES, OBJECT, PROBE, BEFORE };
enum { RELAXED, ERROR_WAVES };

static const fv_param params[] = {
    FV_WAVE_SCAN_PARAMS,
    FV_PARAM(ptycho_waves, kind, .def = "relaxed", .choices = "relaxed|error", .doc = "which waves: see below"),
    FV_PARAM(ptycho_waves, beta, .def = "0.75", .above = true, .max = 1, .doc = "of relaxed: how far waves are reflected"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "amplitudes", FV_KIND_IMAGE, .doc = "what ptycho_frames gives" },
    { "object", FV_KIND_IMAGE, .doc = "what ptycho_object gives" },
    { "probe", FV_KIND_IMAGE, .doc = "what ptycho_probe gives" },
    { "before", FV_KIND_IMAGE, .optional = true, .doc = "waves of the iteration before; left out: probe times object" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const ptycho_waves *p = i->params;
    fv_waves            w;
    FV_TRY(fv__waves_of(&p->at, i->in[AMPLITUDES], i->in[PROBE], &w, error));
    FV_TRY(fv__waves_fit(&w, i->in[OBJECT], error));
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
    if (n->in[BEFORE]->kind == FV_KIND_IMAGE) in[BEFORE] = fv__region_whole(&n->in[BEFORE]->image);
    in[BEFORE].start[0] = n->region.start[0];
    in[BEFORE].size[0] = n->region.size[0];
    in[BEFORE].size[1] = w.height; /* without the sums */
}

typedef struct {
    fv_waves         w;
    fv_plane_fourier fourier;
    float           *planes;    /* of all modes */
    float           *size, *by; /* of a row */
    int64_t          stride, plane;
    void            *memory, *room;
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    fv_scratch pieces = { memory };
    fv__waves_of(n->params, n->in[AMPLITUDES], n->in[PROBE], &k->w, NULL);
    k->stride = fv__plane_stride(k->w.width);
    k->plane = k->w.height * k->stride;
    k->planes = fv__scratch_take(&pieces, k->w.modes * k->plane * (int64_t)sizeof(float));
    k->room = fv__scratch_take(&pieces, fv__piece_room(n, 1));
    k->size = fv__scratch_take(&pieces, k->w.width * (int64_t)sizeof(float));
    k->by = fv__scratch_take(&pieces, k->w.width * (int64_t)sizeof(float));
    k->memory = fv__scratch_take(&pieces, FV_ISA_NAME(fv__plane_fourier_bytes)(k->w.height, k->w.width));
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

/* One frame: where its parts lie. */
typedef struct {
    const float *probe, *object, *amplitude, *before; /* before NULL: none */
    float       *wave;
    int64_t      probe_mode, probe_row, probe_part, object_row, object_part, amplitude_row, wave_row, before_row;
} frame;

/* re, im: factor * probe * object - less * before; of row y of a mode. */
static void leave(const work *k, const frame *f, int mode, int64_t y, float factor, bool less, float *restrict re) {
    int64_t      n = k->w.width;
    const float *p = f->probe + mode * f->probe_mode + y * f->probe_row, *q = p + f->probe_part;
    const float *o = f->object + y * f->object_row, *i = o + f->object_part;
    const float *a = less ? f->before + y * f->before_row + mode * 2 * n : p, *b = a + n;
    float *restrict im = re + n;
    if (less)
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            re[x] = factor * (p[x] * o[x] - q[x] * i[x]) - a[x];
            im[x] = factor * (p[x] * i[x] + q[x] * o[x]) - b[x];
        }
    else
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            re[x] = factor * (p[x] * o[x] - q[x] * i[x]);
            im[x] = factor * (p[x] * i[x] + q[x] * o[x]);
        }
}

static void spread_out(const work *k, const frame *f, float factor, bool less) {
    for (int m = 0; m < k->w.modes; m++) {
        float *plane = k->planes + m * k->plane;
        for (int64_t y = 0; y < k->w.height; y++) leave(k, f, m, y, factor, less, plane + y * k->stride);
        FV_ISA_NAME(fv__plane_fourier)(&k->fourier, plane, k->stride, false);
    }
}

/* Amplitudes of row y, all modes together. */
static void find_sizes(const work *k, int64_t y) {
    int64_t n = k->w.width;
    float *restrict size = k->size;
    memset(size, 0, (size_t)n * sizeof *size);
    for (int64_t m = 0; m < k->w.modes; m++) {
        const float *re = k->planes + m * k->plane + y * k->stride, *im = re + n;
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) size[x] += re[x] * re[x] + im[x] * im[x];
    }
#pragma GCC ivdep
    for (int64_t x = 0; x < n; x++) size[x] = sqrtf(size[x]);
}

static void scale_row(const work *k, const float *given, int64_t y) {
    int64_t n = k->w.width;
    float   whole = 1 / (float)(k->w.height * n);
    float *restrict by = k->by;
    const float *size = k->size;
#pragma GCC ivdep
    for (int64_t x = 0; x < n; x++) by[x] = given[x] >= 0 ? given[x] / (size[x] > 1e-20f ? size[x] : 1e-20f) * whole : whole;
    for (int64_t m = 0; m < k->w.modes; m++) {
        float *restrict re = k->planes + m * k->plane + y * k->stride, *restrict im = re + n;
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            re[x] *= by[x];
            im[x] *= by[x];
        }
    }
}

/* Waves in all planes are compared with the measured amplitudes, and get them if scale says so. sums: differences from them, and
 * these themselves; NULL: nobody asks. */
static void compare(const work *k, const frame *f, bool scale, double *sums) {
    int64_t n = k->w.width;
    float   left[FV_WAVE_LANES] = { 0 }, measured[FV_WAVE_LANES] = { 0 };
    for (int64_t y = 0; y < k->w.height; y++) {
        const float *a = f->amplitude + y * f->amplitude_row;
        find_sizes(k, y);
        if (scale) scale_row(k, a, y);
        if (!sums) continue;
        float *restrict away = k->by;
        const float *size = k->size;
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) away[x] = a[x] >= 0 ? fabsf(a[x] - size[x]) : 0;
        fv__lanes_add(away, n, left);
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) away[x] = a[x] >= 0 ? a[x] : 0;
        fv__lanes_add(away, n, measured);
    }
    if (!sums) return;
    sums[0] += fv__lanes_sum(left);
    sums[1] += fv__lanes_sum(measured);
}

/* z <- keep z + share s + plane * beta; without waves before there is no z. */
static void come_back(const work *k, const frame *f, int mode, int64_t y, float share, float beta) {
    int64_t      n = k->w.width;
    const float *p = f->probe + mode * f->probe_mode + y * f->probe_row, *q = p + f->probe_part;
    const float *o = f->object + y * f->object_row, *i = o + f->object_part;
    const float *v = k->planes + mode * k->plane + y * k->stride, *w = v + n;
    float *restrict re = f->wave + y * f->wave_row + mode * 2 * n, *restrict im = re + n;
    if (f->before) {
        const float *a = f->before + y * f->before_row + mode * 2 * n, *b = a + n;
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            re[x] = beta * (a[x] + v[x]) + share * (p[x] * o[x] - q[x] * i[x]);
            im[x] = beta * (b[x] + w[x]) + share * (p[x] * i[x] + q[x] * o[x]);
        }
    } else
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            re[x] = beta * v[x] + share * (p[x] * o[x] - q[x] * i[x]);
            im[x] = beta * w[x] + share * (p[x] * i[x] + q[x] * o[x]);
        }
}

static void fill_wave(const work *k, const frame *f, const ptycho_waves *p) {
    float beta = p->kind.index == RELAXED ? (float)p->beta : 1, share = f->before ? 1 - 2 * beta : 1 - beta;
    if (p->kind.index != RELAXED) share = -1;
    for (int m = 0; m < k->w.modes; m++) {
        FV_ISA_NAME(fv__plane_fourier)(&k->fourier, k->planes + m * k->plane, k->stride, true);
        for (int64_t y = 0; y < k->w.height; y++) come_back(k, f, m, y, share, beta);
    }
}

/* sampled: of relaxed waves, whether this frame is the one of its block by which the residual of s is followed. */
static void update(const work *k, const frame *f, const ptycho_waves *p, bool sampled, double sums[2]) {
    if (p->kind.index == RELAXED && sampled && f->before) {
        spread_out(k, f, 1, false);
        compare(k, f, false, sums);
    }
    if (p->kind.index == RELAXED && f->before)
        spread_out(k, f, 2, true);
    else
        spread_out(k, f, 1, false);
    compare(k, f, true, p->kind.index == RELAXED && (f->before || !sampled) ? NULL : sums);
    fill_wave(k, f, p);
}

static void add_sums(const work *k, const frame *f, int64_t y, int64_t x, float *sums) {
    for (int m = 0; m < k->w.modes; m++)
        fv__wave_sums(&k->w,
                      &(fv_wave_rows){ f->wave + m * 2 * k->w.width, f->probe + m * f->probe_mode, f->wave_row, f->probe_row,
                                       f->probe_part },
                      y, x, sums);
}

static void run_block(const work *k, const fv_run *r, int64_t index, float *rows) {
    const fv_block *object = r->in[OBJECT], *probe = r->in[PROBE], *amplitudes = r->in[AMPLITUDES], *before = r->in[BEFORE];
    const fv_waves *w = &k->w;
    int64_t         block = r->out->region.start[0] + index, size = 2 * w->width * w->modes;
    fv_wave_box     box = fv__waves_box(w, block);
    float          *sums = rows + w->height * w->row;
    double          left[2] = { 0, 0 };
    memset(sums, 0, (size_t)(w->sum_rows * w->row) * sizeof *sums);
    for (int64_t b = 0; b < FV_WAVES_BLOCK; b++) {
        if (b >= box.frames) {
            for (int64_t y = 0; y < w->height; y++) memset(rows + y * w->row + b * size, 0, (size_t)size * sizeof *rows);
            continue;
        }
        const double *at = fv__wave_frame(w, block * FV_WAVES_BLOCK + b);
        int64_t       y = (int64_t)at[FV_SCAN_Y], x = (int64_t)at[FV_SCAN_X], corner[3] = { y, 0, x };
        frame         f = { .probe = (float *)probe->data + (int64_t)at[FV_SCAN_CLASS] * w->modes * probe->stride[0],
                            .object = fv__block_at(object, corner),
                            .amplitude = (float *)amplitudes->data + index * amplitudes->stride[0] + b * w->width,
                            .before = before ? (float *)before->data + index * before->stride[0] + b * size : NULL,
                            .wave = rows + b * size,
                            .probe_mode = probe->stride[0],
                            .probe_row = probe->stride[1],
                            .probe_part = probe->stride[2],
                            .object_row = object->stride[0],
                            .object_part = object->stride[1],
                            .amplitude_row = amplitudes->stride[1],
                            .wave_row = w->row,
                            .before_row = before ? before->stride[1] : 0 };
        update(k, &f, r->need.params, b == box.frames / 2, left);
        add_sums(k, &f, y - box.y, x - box.x, sums);
    }
    fv__wave_tail(w, left, sums);
}

static fv_status run(fv_run *r, fv_error *error) {
    work k;
    (void)error;
    lay_out(&r->need, &k, r->scratch);
    FV_ISA_NAME(fv__plane_fourier_prepare)(&k.fourier, k.w.height, k.w.width, k.memory);
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
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_waves),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .doc =
        "With s = probe times object, z the waves before, and P the projection on the measured amplitudes (all modes are scaled "
        "alike): relaxed waves are beta z + (1 - 2 beta) s + beta P(2 s - z), error waves are P(s) - s. Behind the waves of a "
        "block of 16 frames follow the sums from which ptycho_object makes the object.",
    .citation = "Luke, Relaxed averaged alternating reflections for diffraction imaging, Inverse Problems 21, 2005; Thibault et "
                "al., Probe retrieval in ptychographic coherent diffractive imaging, Ultramicroscopy 109, 2009",
    .example =
        "scan = [0, 0, 0, 0, 1, 4, 0, 0, 2, 8, 3, 0]\n"
        "a = ptycho_frames(phantom(\"noise\", [3, 16, 16]) * 100, scan, [0, 0])\n"
        "write(ptycho_waves(a, ones([24, 2, 24], \"float32\"), ones([1, 16, 2, 16], \"float32\"), scan, [0, 0]), \"waves.npy\")",
    .see = "ptycho ptycho_frames ptycho_object ptycho_overlap",
};
