/* ptycho_overlap: sums of waves over all frames, from which the probe is made; strips of rows are tasks, frames come in order. */
#include "ops/ptychography/exit_waves.h"
#include "ops/ptychography/whole_pieces.h"

typedef struct {
    fv_wave_scan at;
} ptycho_overlap;
enum { WAVES, OBJECT, PROBE };

static const fv_param params[] = { FV_WAVE_SCAN_PARAMS, FV_PARAM_END };
static const fv_input inputs[] = {
    { "waves", FV_KIND_IMAGE, .doc = "what ptycho_waves gives" },
    { "object", FV_KIND_IMAGE, .doc = "what ptycho_object gives" },
    { "probe", FV_KIND_IMAGE, .doc = "what ptycho_probe gives" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_waves w;
    FV_TRY(fv__waves_again(i->params, i->in[WAVES], i->in[PROBE], &w, error));
    FV_TRY(fv__waves_fit(&w, i->in[OBJECT], error));
    int64_t shape[] = { w.height, w.classes * (2 * w.modes + 1), w.width };
    fv_image_type_init(&i->out->image, FV_FLOAT32, 3, shape);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    fv_waves w;
    fv__waves_again(n->params, n->in[WAVES], n->in[PROBE], &w, NULL);
    in[WAVES] = fv__region_whole(&n->in[WAVES]->image);
    in[WAVES].start[1] = n->region.start[0];
    in[WAVES].size[1] = n->region.size[0];
    in[OBJECT] = fv__waves_window(&w, 0, w.blocks);
    in[OBJECT].start[0] += n->region.start[0];
    in[OBJECT].size[0] -= w.height - n->region.size[0];
    in[PROBE] = (fv_region){ .ndim = 4, .size = { 1, 1, 1, 1 } }; /* its type alone matters */
}

/* One row of one frame: conj(object) * wave of each mode, and |object|^2. */
static void add_row(const fv_waves *w, const float *wave, const float *o, int64_t part, float *restrict to) {
    int64_t      n = w->width;
    const float *i = o + part;
    for (int64_t m = 0; m < w->modes; m++) {
        const float *a = wave + 2 * m * n, *b = a + n;
        float *restrict re = to + 2 * m * n, *restrict im = re + n;
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            re[x] += o[x] * a[x] + i[x] * b[x];
            im[x] += o[x] * b[x] - i[x] * a[x];
        }
    }
    float *restrict den = to + 2 * w->modes * n;
#pragma GCC ivdep
    for (int64_t x = 0; x < n; x++) den[x] += o[x] * o[x] + i[x] * i[x];
}

/* Rows of the result, made whole: in place or in scratch. */
static size_t scratch(const fv_need *n) { return (size_t)(fv__piece_room(n, 1) * n->region.size[0]); }

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *out = r->out, *waves = r->in[WAVES], *object = r->in[OBJECT];
    bool            direct = fv__piece_direct(out, &r->need.out->image, 1);
    int64_t         row = r->need.out->image.shape[1] * r->need.out->image.shape[2];
    float          *rows = direct ? out->data : r->scratch;
    fv_region       piece = fv__region_whole(&r->need.out->image);
    fv_waves        w;
    FV_TRY(fv__waves_again(r->need.params, r->need.in[WAVES], r->need.in[PROBE], &w, error));
    memset(rows, 0, (size_t)(out->region.size[0] * row) * sizeof *rows);
    for (int64_t f = 0; f < w.frames; f++) {
        const double *at = fv__wave_frame(&w, f);
        int64_t class = (int64_t)at[FV_SCAN_CLASS];
        for (int64_t y = 0; y < out->region.size[0]; y++) {
            int64_t corner[3] = { (int64_t)at[FV_SCAN_Y] + out->region.start[0] + y, 0, (int64_t)at[FV_SCAN_X] };
            add_row(&w,
                    (float *)waves->data + f / FV_WAVES_BLOCK * waves->stride[0] + y * waves->stride[1] +
                        f % FV_WAVES_BLOCK * w.modes * 2 * w.width,
                    fv__block_at(object, corner), object->stride[1], rows + y * row + class * (2 * w.modes + 1) * w.width);
        }
    }
    piece.start[0] = out->region.start[0];
    piece.size[0] = out->region.size[0];
    if (!direct) fv__piece_put(out, &piece, rows);
    return FV_OK;
}

static void slab(const fv_need *n, int64_t *chunk) {
    memcpy(chunk, n->out->image.shape, 3 * sizeof *chunk);
    chunk[0] = FV_MAX(1, chunk[0] / 16);
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_overlap) = {
    .name = "ptycho_overlap",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "sums of exit waves for the probe: a step of ptycho",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_overlap),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .doc =
        "For each class of sub-pixel shifts the sums over its frames, in their order: conj(object) times wave of each mode, and "
        "|object|^2. ptycho_probe makes the probe of them.",
    .example = "scan = [0, 0, 0, 0, 1, 4, 0, 0, 2, 8, 3, 0]\n"
               "a = ptycho_frames(phantom(\"noise\", [3, 16, 16]) * 100, scan, [0, 0])\n"
               "p = ones([1, 16, 2, 16], \"float32\")\n"
               "o = ones([24, 2, 24], \"float32\")\n"
               "write(ptycho_overlap(ptycho_waves(a, o, p, scan, [0, 0]), o, p, scan, [0, 0]), \"overlap.npy\")",
    .see = "ptycho ptycho_waves ptycho_probe",
};
