/* ptycho_background: light at the detector that is not of the waves, brought nearer to what frames say.
 *
 * It is taken for one more mode, which is the same in all frames: every frame scales it, as all modes, to what was measured, and
 * the mean of its amplitudes is the new one. So it stays positive, and 0 where nothing was measured.
 */
#include "ops/ptychography/frame_states.h"

typedef struct {
    fv_wave_scan at;
} ptycho_background;
enum { BACKGROUND, FOUND, PROBE };

static const fv_param params[] = { FV_WAVE_SCAN_PARAMS, FV_PARAM_END };
static const fv_input inputs[] = {
    { "background", FV_KIND_IMAGE, .doc = "background before: float32, y x, squared amplitudes, zero frequency at the corner" },
    { "found", FV_KIND_IMAGE, .doc = "what ptycho_refine or ptycho_pie gives" },
    { "probe", FV_KIND_IMAGE, .doc = "what ptycho_probe gives" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_waves w;
    FV_TRY(fv__states_scan(i->params, i->in[PROBE], &w, error));
    return fv__states_fit(&w, i->in[FOUND], i->in[BACKGROUND], error);
}

static void need(const fv_need *n, fv_region *in) {
    fv_waves w;
    fv__states_scan(n->params, n->in[PROBE], &w, NULL);
    in[FOUND] = fv__states_region(&w, n->in[FOUND], 0, w.blocks);
    in[FOUND].start[1] += fv__state_rows(&w) + n->region.start[0];
    in[FOUND].size[1] = n->region.size[0];
    in[PROBE] = (fv_region){ .ndim = 4, .size = { 1, 1, 1, 1 } }; /* its type alone matters */
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *out = r->out, *before = r->in[BACKGROUND];
    int64_t         width = r->need.out->image.shape[1];
    (void)error;
    for (int64_t y = 0; y < out->region.size[0]; y++)
        for (int64_t x = 0; x < out->region.size[1]; x++) {
            double sum = 0, count = 0, old = (double)((float *)before->data)[y * before->stride[0] + x];
            for (int64_t b = 0; b < r->in[FOUND]->region.size[0]; b++) {
                fv_wave_plane from = fv__wave_plane(r, FOUND, b);
                const float  *at = from.data + y * from.row + out->region.start[1] + x;
                sum += (double)at[0];
                count += (double)at[width];
            }
            double by = count > 0 ? sum / count : 1;
            ((float *)out->data)[y * out->stride[0] + x] = old > 0 ? (float)(old * by * by) : 0;
        }
    return FV_OK;
}

/* In one: every iteration needs all of it. */
static void slab(const fv_need *n, int64_t *chunk) { memcpy(chunk, n->out->image.shape, 2 * sizeof *chunk); }

static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_background) = {
    .name = "ptycho_background",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "light at the detector that is not of the waves: a step of ptycho",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_background),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .doc = "The background times the square of the mean ratio of measured amplitudes to those of waves and background together. "
           "It is one more mode that adds as intensity and is the same in all frames.",
    .citation = "Thibault and Menzel, Reconstructing state mixtures from diffraction measurements, Nature 494, 2013",
    .example = "scan = [0, 0, 0, 0, 1, 4, 0, 0, 2, 8, 3, 0]\n"
               "a = ptycho_frames(phantom(\"noise\", [3, 16, 16]) * 100, scan, [0, 0])\n"
               "p = ones([1, 16, 2, 16], \"float32\")\n"
               "b = ones([16, 16], \"float32\") * 50\n"
               "o = ones([24, 2, 24], \"float32\")\n"
               "t = ptycho_refine(a, o, p, scan, [0, 0], background = b, ratios = true)\n"
               "write(ptycho_background(b, t, p, scan, [0, 0]), \"background.npy\")",
    .see = "ptycho ptycho_refine ptycho_detector",
};
