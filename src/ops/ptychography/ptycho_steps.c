/* ptycho_steps: how far to go along a change of the object and one of the probe, so that least is left of error waves.
 *
 * To first order the waves change by A = probe * change of the object and B = object * change of the probe. The five sums of a
 * block are |A|^2, |B|^2, Re conj(A) B, Re conj(A) error, Re conj(B) error.
 */
#include "op/scratch.h"
#include "ops/ptychography/frame_states.h"

typedef struct {
    fv_wave_scan at;
} ptycho_steps;
enum { WAVES, OBJECT, PROBE, OBJECT_CHANGE, PROBE_CHANGE, STATES };
enum { SUMS = 5 };

static const fv_param params[] = { FV_WAVE_SCAN_PARAMS, FV_PARAM_END };
static const fv_input inputs[] = {
    { "waves", FV_KIND_IMAGE, .doc = "error waves of ptycho_waves" },
    { "object", FV_KIND_IMAGE, .doc = "object" },
    { "probe", FV_KIND_IMAGE, .doc = "probe" },
    { "object_change", FV_KIND_IMAGE, .doc = "in which direction the object changes" },
    { "probe_change", FV_KIND_IMAGE, .doc = "in which direction the probe changes" },
    FV_WAVE_STATES_INPUT,
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_waves w;
    FV_TRY(fv__waves_again(i->params, i->in[WAVES], false, i->in[PROBE], &w, error));
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
    fv__waves_again(n->params, n->in[WAVES], false, n->in[PROBE], &w, NULL);
    in[WAVES] = fv__region_whole(&n->in[WAVES]->image);
    in[WAVES].start[0] = n->region.start[0];
    in[WAVES].size[0] = n->region.size[0];
    in[WAVES].size[1] = w.wave_rows;
    in[OBJECT] = in[OBJECT_CHANGE] = fv__waves_window(&w, n->region.start[0], n->region.size[0]);
    in[PROBE] = in[PROBE_CHANGE] = fv__region_whole(&n->in[PROBE]->image);
    fv__states_need(&w, n, STATES, n->region.start[0], n->region.size[0], in);
}

typedef struct {
    fv_waves w;
    float   *a, *b, *product; /* rows */
    double  *scan;            /* of frames that were moved */
    float    lanes[SUMS][FV_WAVE_LANES];
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    fv_scratch pieces = { memory };
    fv__waves_again(n->params, n->in[WAVES], false, n->in[PROBE], &k->w, NULL);
    k->a = fv__scratch_take(&pieces, 2 * k->w.width * (int64_t)sizeof(float));
    k->b = fv__scratch_take(&pieces, 2 * k->w.width * (int64_t)sizeof(float));
    k->product = fv__scratch_take(&pieces, k->w.width * (int64_t)sizeof(float));
    k->scan = fv__scratch_take(&pieces, fv__states_room(n->params));
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

static void multiply(const float *p, int64_t apart, const float *o, int64_t part, int64_t n, float *restrict re) {
    const float *q = p + apart, *i = o + part;
    float *restrict im = re + n;
#pragma GCC ivdep
    for (int64_t x = 0; x < n; x++) {
        re[x] = p[x] * o[x] - q[x] * i[x];
        im[x] = p[x] * i[x] + q[x] * o[x];
    }
}

static void add_products(work *k, const float *u, const float *v, int sum) {
    int64_t n = k->w.width;
    float *restrict to = k->product;
#pragma GCC ivdep
    for (int64_t x = 0; x < n; x++) to[x] = u[x] * v[x] + u[n + x] * v[n + x];
    fv__lanes_add(to, n, k->lanes[sum]);
}

static void add_row(work *k, const fv_run *r, const double *at, const fv_wave_plane *probe, const fv_wave_plane *other, int64_t y,
                    const float *wave) {
    const fv_block *object = r->in[OBJECT], *change = r->in[OBJECT_CHANGE];
    int64_t         corner[3] = { (int64_t)at[FV_SCAN_Y] + y, 0, (int64_t)at[FV_SCAN_X] };
    multiply(probe->data + y * probe->row, probe->part, fv__block_at(change, corner), change->stride[1], k->w.width, k->a);
    multiply(other->data + y * other->row, other->part, fv__block_at(object, corner), object->stride[1], k->w.width, k->b);
    add_products(k, k->a, k->a, 0);
    add_products(k, k->b, k->b, 1);
    add_products(k, k->a, k->b, 2);
    add_products(k, k->a, wave, 3);
    add_products(k, k->b, wave, 4);
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *out = r->out;
    work            k;
    (void)error;
    lay_out(&r->need, &k, r->scratch);
    fv__states_move(&k.w, r->in[STATES], k.scan);
    for (int64_t b = 0; b < out->region.size[0]; b++) {
        int64_t       block = out->region.start[0] + b;
        fv_wave_box   box = fv__waves_box(&k.w, block);
        double       *to = (double *)out->data + b * out->stride[0], sums[SUMS] = { 0 };
        fv_wave_plane waves = fv__wave_plane(r, WAVES, block);
        for (int64_t f = 0; f < box.frames * k.w.modes; f++) {
            const double *at = fv__wave_frame(&k.w, block * k.w.block + f / k.w.modes);
            int64_t       plane = (int64_t)at[FV_SCAN_CLASS] * k.w.modes + f % k.w.modes;
            fv_wave_plane probe = fv__wave_plane(r, PROBE, plane), other = fv__wave_plane(r, PROBE_CHANGE, plane);
            memset(k.lanes, 0, sizeof k.lanes);
            for (int64_t y = 0; y < k.w.height; y++)
                add_row(&k, r, at, &probe, &other, y, waves.data + (f * k.w.height + y) * waves.row);
            for (int s = 0; s < SUMS; s++) sums[s] += fv__lanes_sum(k.lanes[s]);
        }
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
    .version = 1,
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
    .example =
        "scan = [0, 0, 0, 0, 1, 4, 0, 0, 2, 8, 3, 0]\n"
        "a = ptycho_frames(phantom(\"noise\", [3, 16, 16]) * 100, scan, [0, 0])\n"
        "p = ones([1, 16, 2, 16], \"float32\")\n"
        "o = ones([24, 2, 24], \"float32\")\n"
        "write(ptycho_steps(ptycho_waves(a, o, p, scan, [0, 0], kind = \"error\"), o, p, o, p, scan, [0, 0]), \"steps.npy\")",
    .see = "ptycho ptycho_waves",
};
