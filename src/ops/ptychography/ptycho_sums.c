/* ptycho_sums: the sums of waves from which the object is made, for another probe than the waves were made with. */
#include "op/scratch.h"
#include "ops/ptychography/frame_states.h"
#include "ops/ptychography/whole_pieces.h"

typedef struct {
    fv_wave_scan at;
} ptycho_sums;
enum { WAVES, PROBE, STATES };

static const fv_param params[] = { FV_WAVE_SCAN_PARAMS, FV_PARAM_END };
static const fv_input inputs[] = {
    { "waves", FV_KIND_IMAGE, .doc = "what ptycho_waves gives" },
    { "probe", FV_KIND_IMAGE, .doc = "what ptycho_probe gives" },
    FV_WAVE_STATES_INPUT,
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_waves w;
    FV_TRY(fv__waves_again(i->params, i->in[WAVES], false, i->in[PROBE], &w, error));
    FV_TRY(fv__states_fit(&w, i->in[STATES], NULL, error));
    fv__waves_type(&w, true, &i->out->image);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    fv_waves w;
    fv__waves_again(n->params, n->in[WAVES], false, n->in[PROBE], &w, NULL);
    in[WAVES] = fv__region_whole(&n->in[WAVES]->image);
    in[WAVES].start[0] = n->region.start[0];
    in[WAVES].size[0] = n->region.size[0];
    in[WAVES].size[1] = w.wave_rows;
    in[PROBE] = fv__region_whole(&n->in[PROBE]->image);
    fv__states_need(&w, n, STATES, n->region.start[0], n->region.size[0], in);
}

typedef struct {
    float  *room; /* the sums of a block */
    double *scan; /* of frames that were moved */
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    fv_scratch pieces = { memory };
    k->room = fv__scratch_take(&pieces, fv__piece_room(n, 1));
    k->scan = fv__scratch_take(&pieces, fv__states_room(n->params));
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *out = r->out;
    bool            direct = fv__piece_direct(out, &r->need.out->image, 1);
    fv_waves        w;
    work            k;
    FV_TRY(fv__waves_again(r->need.params, r->need.in[WAVES], false, r->need.in[PROBE], &w, error));
    lay_out(&r->need, &k, r->scratch);
    fv__states_move(&w, r->in[STATES], k.scan);
    for (int64_t b = 0; b < out->region.size[0]; b++) {
        int64_t     block = out->region.start[0] + b;
        fv_wave_box box = fv__waves_box(&w, block);
        fv_region   piece = fv__region_whole(&r->need.out->image);
        float      *sums = direct ? (float *)out->data + b * out->stride[0] : k.room;
        piece.start[0] = block;
        piece.size[0] = 1;
        memset(sums, 0, (size_t)(w.sum_rows * w.row) * sizeof *sums);
        fv_wave_plane waves = fv__wave_plane(r, WAVES, block);
        for (int64_t f = 0; f < box.frames * w.modes; f++) {
            const double *at = fv__wave_frame(&w, block * w.block + f / w.modes);
            int64_t       plane = (int64_t)at[FV_SCAN_CLASS] * w.modes + f % w.modes;
            fv_wave_rows  rows = { waves.data + f * w.height * waves.row, waves.row, fv__wave_plane(r, PROBE, plane) };
            fv__wave_sums(&w, &rows, (int64_t)at[FV_SCAN_Y] - box.y, (int64_t)at[FV_SCAN_X] - box.x, sums);
        }
        fv__wave_tail(&w, (double[2]){ 0, 0 }, sums);
        if (!direct) fv__piece_put(out, &piece, sums);
    }
    return FV_OK;
}

static void slab(const fv_need *n, int64_t *chunk) {
    memcpy(chunk, n->out->image.shape, 3 * sizeof *chunk);
    chunk[0] = 1;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_sums) = {
    .name = "ptycho_sums",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "sums of exit waves for a new probe: a step of ptycho",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_sums),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .doc =
        "The same sums as those behind the waves that ptycho_waves gives, of the same waves and a probe that has changed since.",
    .example =
        "scan = [0, 0, 0, 0, 1, 4, 0, 0, 2, 8, 3, 0]\n"
        "a = ptycho_frames(phantom(\"noise\", [3, 16, 16]) * 100, scan, [0, 0])\n"
        "p = ones([1, 16, 2, 16], \"float32\")\n"
        "write(ptycho_sums(ptycho_waves(a, ones([24, 2, 24], \"float32\"), p, scan, [0, 0]), p * 2, scan, [0, 0]), \"sums.npy\")",
    .see = "ptycho ptycho_waves ptycho_object",
};
