/* ptycho_steps: how far to go along a change of the object and one of the probe, so that least is left of error waves.
 *
 * To first order the waves change by A = probe * change of the object and B = object * change of the probe. The five sums of a
 * block are |A|^2, |B|^2, Re conj(A) B, Re conj(A) error, Re conj(B) error. No wave is needed for them: the first and the fourth
 * follow from the sums for the object, the fifth from those for the probe; and in the other two, products of probes are the same
 * for all frames of a class, and products of objects the same for all frames.
 */
#include "op/scratch.h"
#include "ops/ptychography/frame_states.h"
#include "ops/ptychography/probe_sums.h"

typedef struct {
    fv_wave_scan at;
} ptycho_steps;
enum { ERRORS, OBJECT, PROBE, OBJECT_CHANGE, PROBE_CHANGE, STATES };
enum { SUMS = 5 };

static const fv_param params[] = { FV_WAVE_SCAN_PARAMS, FV_PARAM_END };
static const fv_input inputs[] = {
    { "errors", FV_KIND_IMAGE, .doc = "what ptycho_errors gives" },
    { "object", FV_KIND_IMAGE, .doc = "object" },
    { "probe", FV_KIND_IMAGE, .doc = "probe" },
    { "object_change", FV_KIND_IMAGE, .doc = "in which direction the object changes" },
    { "probe_change", FV_KIND_IMAGE, .doc = "in which direction the probe changes" },
    FV_WAVE_STATES_INPUT,
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_waves w;
    FV_TRY(fv__waves_again(i->params, i->in[ERRORS], true, i->in[PROBE], &w, error));
    if (i->in[ERRORS]->image.shape[1] != fv__probe_sum_rows(w.height, w.modes) + w.sum_rows)
        return fv_fail(error, FV_ERROR_USAGE, "errors is not what ptycho_errors gives for this scan and probe");
    FV_TRY(fv__waves_fit(&w, i->in[OBJECT], error));
    FV_TRY(fv__waves_fit(&w, i->in[OBJECT_CHANGE], error));
    FV_TRY(fv__states_fit(&w, i->in[STATES], NULL, error));
    if (i->in[PROBE_CHANGE]->image.ndim != 4 ||
        memcmp(i->in[PROBE_CHANGE]->image.shape, i->in[PROBE]->image.shape, 4 * sizeof(int64_t)) != 0)
        return fv_fail(error, FV_ERROR_USAGE, "probe_change must have the shape of probe");
    fv_image_type_init(&i->out->image, FV_FLOAT64, 2, (int64_t[]){ w.blocks, SUMS });
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    fv_waves w;
    fv__waves_again(n->params, n->in[ERRORS], true, n->in[PROBE], &w, NULL);
    in[ERRORS] = fv__region_whole(&n->in[ERRORS]->image);
    in[ERRORS].start[0] = n->region.start[0];
    in[ERRORS].size[0] = n->region.size[0];
    in[OBJECT] = in[OBJECT_CHANGE] = fv__waves_window(&w, n->region.start[0], n->region.size[0]);
    in[PROBE] = in[PROBE_CHANGE] = fv__region_whole(&n->in[PROBE]->image);
    fv__states_need(&w, n, STATES, n->region.start[0], n->region.size[0], in);
}

typedef struct {
    fv_waves         w;
    fv_plane_fourier fourier;
    float           *plane;   /* of the probe: rows of re, im, a stride apart */
    float           *objects; /* rows of the box: re and im of conj(change of the object) * object, and |object|^2 */
    float           *probes;  /* rows of a class, the same: conj(probe) * change of it, and |change|^2, of all modes */
    float           *line;    /* sums of a row of the box, where they are brought together */
    float           *product;
    double          *scan; /* of frames that were moved */
    int64_t          stride;
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    fv_scratch pieces = { memory };
    fv__waves_again(n->params, n->in[ERRORS], true, n->in[PROBE], &k->w, NULL);
    k->stride = fv__plane_stride(k->w.width);
    k->plane = fv__scratch_take(&pieces, k->w.height * k->stride * (int64_t)sizeof(float));
    k->objects = fv__scratch_take(&pieces, 3 * k->w.box_height * k->w.box_width * (int64_t)sizeof(float));
    k->probes = fv__scratch_take(&pieces, 3 * k->w.height * k->w.width * (int64_t)sizeof(float));
    k->line = fv__scratch_take(&pieces, 3 * k->w.box_width * (int64_t)sizeof(float));
    k->product = fv__scratch_take(&pieces, k->w.box_width * (int64_t)sizeof(float));
    k->scan = fv__scratch_take(&pieces, fv__states_room(n->params));
    void *memory_of = fv__scratch_take(&pieces, FV_ISA_NAME(fv__plane_fourier_bytes)(k->w.height, k->w.width));
    if (memory) FV_ISA_NAME(fv__plane_fourier_prepare)(&k->fourier, k->w.height, k->w.width, memory_of);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

static double add_up(const float *numbers, int64_t n) {
    float lanes[FV_WAVE_LANES] = { 0 };
    fv__lanes_add(numbers, n, lanes);
    return fv__lanes_sum(lanes);
}

/* The sums of a block for row y of its box. Rows of the image follow each other, as a rule. */
static const float *find_line(const work *k, const fv_run *r, int64_t block, int64_t y) {
    fv_wave_plane from = fv__wave_plane(r, ERRORS, block);
    int64_t       at = fv__probe_sum_rows(k->w.height, k->w.modes) * k->w.row + fv__wave_sums_at(&k->w, y, 0);
    int64_t       end = at + 3 * k->w.box_width;
    if (from.row == k->w.row) return from.data + at;
    for (float *to = k->line; at < end;) {
        int64_t n = FV_MIN(end - at, k->w.row - at % k->w.row);
        memcpy(to, from.data + at / k->w.row * from.row + at % k->w.row, (size_t)n * sizeof *to);
        at += n;
        to += n;
    }
    return k->line;
}

/* |A|^2 and Re conj(A) error; and the products of objects. */
static void add_objects(work *k, const fv_run *r, int64_t block, const fv_wave_box *box, double sums[SUMS]) {
    int64_t n = box->width;
    for (int64_t y = 0; y < box->height; y++) {
        int64_t      corner[3] = { box->y + y, 0, box->x };
        const float *o = fv__block_at(r->in[OBJECT], corner), *i = o + r->in[OBJECT]->stride[1];
        const float *d = fv__block_at(r->in[OBJECT_CHANGE], corner), *e = d + r->in[OBJECT_CHANGE]->stride[1];
        const float *re = find_line(k, r, block, y), *im = re + k->w.box_width, *den = im + k->w.box_width;
        float *restrict to = k->objects + fv__wave_sums_at(&k->w, y, 0), *restrict product = k->product;
        int64_t part = k->w.box_width;
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            to[x] = d[x] * o[x] + e[x] * i[x];
            to[part + x] = d[x] * i[x] - e[x] * o[x];
            to[2 * part + x] = o[x] * o[x] + i[x] * i[x];
        }
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) product[x] = (d[x] * d[x] + e[x] * e[x]) * den[x];
        sums[0] += add_up(product, n);
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) product[x] = d[x] * re[x] + e[x] * im[x];
        sums[3] += add_up(product, n);
    }
}

/* Re conj(B) error: the sums for the probe are spectra, unless nothing was shifted. */
static double along_probe(work *k, const fv_run *r, int64_t index) {
    int64_t n = k->w.width;
    float   whole = k->w.classes > 1 ? 1 / (float)(k->w.height * n) : 1;
    double  sum = 0;
    for (int64_t m = 0; m < k->w.modes; m++) {
        fv_wave_plane change = fv__wave_plane(r, PROBE_CHANGE, m);
        for (int64_t y = 0; y < k->w.height; y++)
            for (int64_t part = 0; part < 2; part++)
                memcpy(k->plane + y * k->stride + part * n, fv__probe_sum_line(r->in[ERRORS], index, k->w.modes, y, 2 * m + part),
                       (size_t)n * sizeof *k->plane);
        if (k->w.classes > 1) FV_ISA_NAME(fv__plane_fourier)(&k->fourier, k->plane, k->stride, true);
        for (int64_t y = 0; y < k->w.height; y++) {
            const float *c = change.data + y * change.row, *s = c + change.part, *re = k->plane + y * k->stride, *im = re + n;
            float *restrict product = k->product;
#pragma GCC ivdep
            for (int64_t x = 0; x < n; x++) product[x] = (c[x] * re[x] + s[x] * im[x]) * whole;
            sum += add_up(product, n);
        }
    }
    return sum;
}

/* The products of a class of probes. */
static void fill_probes(work *k, const fv_run *r, int64_t class) {
    int64_t n = k->w.width;
    memset(k->probes, 0, (size_t)(3 * k->w.height * n) * sizeof *k->probes);
    for (int64_t m = 0; m < k->w.modes; m++) {
        fv_wave_plane probe = fv__wave_plane(r, PROBE, class * k->w.modes + m);
        fv_wave_plane change = fv__wave_plane(r, PROBE_CHANGE, class * k->w.modes + m);
        for (int64_t y = 0; y < k->w.height; y++) {
            const float *p = probe.data + y * probe.row, *q = p + probe.part;
            const float *c = change.data + y * change.row, *s = c + change.part;
            float *restrict re = k->probes + 3 * y * n, *restrict im = re + n, *restrict square = im + n;
#pragma GCC ivdep
            for (int64_t x = 0; x < n; x++) {
                re[x] += p[x] * c[x] + q[x] * s[x];
                im[x] += p[x] * s[x] - q[x] * c[x];
                square[x] += c[x] * c[x] + s[x] * s[x];
            }
        }
    }
}

/* |B|^2 and Re conj(A) B of a frame; objects: from its corner on. */
static void add_frame(const work *k, const float *objects, double sums[SUMS]) {
    float   lanes[2][FV_WAVE_LANES] = { { 0 } };
    int64_t n = k->w.width, part = k->w.box_width;
    for (int64_t y = 0; y < k->w.height; y++) {
        const float *a = objects + fv__wave_sums_at(&k->w, y, 0), *b = a + part, *weight = b + part;
        const float *re = k->probes + 3 * y * n, *im = re + n, *square = im + n;
        float *restrict product = k->product;
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) product[x] = square[x] * weight[x];
        fv__lanes_add(product, n, lanes[0]);
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) product[x] = a[x] * re[x] - b[x] * im[x];
        fv__lanes_add(product, n, lanes[1]);
    }
    sums[1] += fv__lanes_sum(lanes[0]);
    sums[2] += fv__lanes_sum(lanes[1]);
}

static void add_block(work *k, const fv_run *r, int64_t block, double sums[SUMS]) {
    fv_wave_box box = fv__waves_box(&k->w, block);
    int64_t     filled = -1;
    add_objects(k, r, block, &box, sums);
    sums[4] = along_probe(k, r, block - r->in[ERRORS]->region.start[0]);
    for (int64_t f = 0; f < box.frames; f++) {
        const double *at = fv__wave_frame(&k->w, block * k->w.block + f);
        int64_t class = (int64_t)at[FV_SCAN_CLASS];
        if (class != filled) fill_probes(k, r, class);
        filled = class;
        add_frame(k, k->objects + fv__wave_sums_at(&k->w, (int64_t)at[FV_SCAN_Y] - box.y, (int64_t)at[FV_SCAN_X] - box.x), sums);
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *out = r->out;
    work            k;
    (void)error;
    lay_out(&r->need, &k, r->scratch);
    fv__states_move(&k.w, r->in[STATES], k.scan);
    for (int64_t b = 0; b < out->region.size[0]; b++) {
        double *to = (double *)out->data + b * out->stride[0], sums[SUMS] = { 0 };
        add_block(&k, r, out->region.start[0] + b, sums);
        memcpy(to, sums + out->region.start[1], (size_t)out->region.size[1] * sizeof *sums);
    }
    return FV_OK;
}

static void slab(const fv_need *n, int64_t *chunk) {
    chunk[0] = 1;
    chunk[1] = n->out->image.shape[1];
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_steps) = {
    .name = "ptycho_steps",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "how far to change object and probe: a step of ptycho",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_steps),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .doc =
        "Five sums for each block of frames, as float64: with A = probe times change of the object and B = object times "
        "change "
        "of the probe, |A|^2, |B|^2, Re conj(A) B, Re conj(A) error, Re conj(B) error. The least squares of what is left of the "
        "error waves follow from two linear equations.",
    .citation = "Odstrcil, Menzel and Guizar-Sicairos, Iterative least-squares solver for generalized maximum-likelihood "
                "ptychography, Optics Express 26, 2018",
    .example = "scan = [0, 0, 0, 0, 1, 4, 0, 0, 2, 8, 3, 0]\n"
               "a = ptycho_frames(phantom(\"noise\", [3, 16, 16]) * 100, scan, [0, 0])\n"
               "p = ones([1, 16, 2, 16], \"float32\")\n"
               "o = ones([24, 2, 24], \"float32\")\n"
               "write(ptycho_steps(ptycho_errors(a, o, p, scan, [0, 0]), o, p, o, p, scan, [0, 0]), \"steps.npy\")",
    .see = "ptycho ptycho_errors",
};
