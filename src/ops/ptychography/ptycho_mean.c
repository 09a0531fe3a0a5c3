/* ptycho_mean: the probe with the mean of what the blocks of ptycho_pie have changed. */
#include "ops/ptychography/exit_waves.h"

enum { PROBE, CHANGES };

static const fv_input inputs[] = {
    { "probe", FV_KIND_IMAGE, .doc = "probe before: mode, row, part, column" },
    { "changes", FV_KIND_IMAGE, .doc = "what ptycho_pie gives" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *p = &i->in[PROBE]->image, *c = &i->in[CHANGES]->image;
    if (p->ndim != 4 || p->dtype != FV_FLOAT32 || p->shape[2] != 2 || c->ndim != 3 || c->dtype != FV_FLOAT32 ||
        c->shape[2] != 2 * p->shape[3] || c->shape[1] < p->shape[0] * p->shape[1])
        return fv_fail(error, FV_ERROR_USAGE, "changes is not what ptycho_pie gives for this probe");
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    in[CHANGES] = fv__region_whole(&n->in[CHANGES]->image);
    in[CHANGES].size[1] = n->in[PROBE]->image.shape[0] * n->in[PROBE]->image.shape[1];
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *out = r->out, *probe = r->in[PROBE];
    int64_t         height = r->need.in[PROBE]->image.shape[1], width = r->need.in[PROBE]->image.shape[3];
    int64_t         blocks = r->in[CHANGES]->region.size[0];
    fv_rows         rows;
    (void)error;
    for (fv__rows_begin(&rows, &out->region); fv__rows_next(&rows);) {
        const int64_t *at = rows.position;
        const float   *p = fv__block_at(probe, at);
        float *restrict to = fv__block_at(out, at);
        int64_t n = out->region.size[3];
        memset(to, 0, (size_t)n * sizeof *to);
        for (int64_t b = 0; b < blocks; b++) {
            fv_wave_plane from = fv__wave_plane(r, CHANGES, b);
            const float  *change = from.data + (at[0] * height + at[1]) * from.row + at[2] * width + at[3];
#pragma GCC ivdep
            for (int64_t x = 0; x < n; x++) to[x] += change[x];
        }
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) to[x] = p[x] + to[x] / (float)blocks;
    }
    return FV_OK;
}

static void slab(const fv_need *n, int64_t *chunk) { memcpy(chunk, n->out->image.shape, 4 * sizeof *chunk); }

static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_mean) = {
    .name = "ptycho_mean",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "the probe with the mean of the changes of all blocks: a step of ptycho",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .doc = "Blocks are added in their order.",
    .example = "scan = [0, 0, 0, 0, 1, 4, 0, 0, 2, 8, 3, 0]\n"
               "a = ptycho_frames(phantom(\"noise\", [3, 16, 16]) * 100, scan, [0, 0])\n"
               "p = ones([1, 16, 2, 16], \"float32\")\n"
               "t = ptycho_pie(a, ones([24, 2, 24], \"float32\"), p, scan, [0, 0], between = [0, 0, 0, 0, 0, 0])\n"
               "write(ptycho_mean(p, t), \"probe.npy\")",
    .see = "ptycho ptycho_pie",
};
