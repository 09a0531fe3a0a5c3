/* shuffle_frames: the frames of a scan in an order by chance. */
#include "op/op.h"
#include "ops/ptychography/frame_order.h"

typedef struct {
    int64_t seed;
} shuffle_frames;

static const fv_param params[] = {
    FV_PARAM(shuffle_frames, seed, .def = "1", .min = 1, .max = 1000000, .doc = "another number gives another order"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "frames", FV_KIND_IMAGE, .doc = "frames; axes frame y x" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    if (i->in[0]->image.ndim == 3) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "frames must have three axes: frame, y and x");
}

static int64_t source(const fv_need *n, int64_t frame) {
    return fv__frame_order(frame, n->out->image.shape[0], ((const shuffle_frames *)n->params)->seed);
}

static void need(const fv_need *n, fv_region *in) {
    int64_t first = INT64_MAX, last = 0;
    for (int64_t f = n->region.start[0]; f < n->region.start[0] + n->region.size[0]; f++) {
        first = FV_MIN(first, source(n, f));
        last = FV_MAX(last, source(n, f));
    }
    in[0] = n->region;
    in[0].start[0] = first;
    in[0].size[0] = last - first + 1;
}

static fv_status run(fv_run *r, fv_error *error) {
    fv_rows rows;
    size_t  bytes = (size_t)r->out->region.size[2] * fv_dtype_size(r->out->dtype);
    (void)error;
    for (fv__rows_begin(&rows, &r->out->region); fv__rows_next(&rows);) {
        int64_t at[3] = { source(&r->need, rows.position[0]), rows.position[1], rows.position[2] };
        memcpy(fv__block_at(r->out, rows.position), fv__block_at(r->in[0], at), bytes);
    }
    return FV_OK;
}

/* Frame by frame: neighbours may come from anywhere, and all that lies between them would be read. */
static void slab(const fv_need *n, int64_t *chunk) {
    memcpy(chunk, n->out->image.shape, 3 * sizeof *chunk);
    chunk[0] = 1;
}

static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(shuffle_frames) = {
    .name = "shuffle_frames",
    .family = "ptychography",
    .stage = "prepare",
    .brief = "the frames of a scan in an order by chance",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(shuffle_frames),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .doc =
        "read_positions and scan_positions give the positions in the same order with shuffle = the seed. Slices of both, [0::2] "
        "and [1::2], are then halves by chance, whose reconstructions can be compared (frc).",
    .citation = "Black and Rogaway, Ciphers with arbitrary finite domains, CT-RSA 2002",
    .example = "o = complex_image(ones([160, 160]), phantom(\"cells\", [160, 160]) / 255)\n"
               "frames = diffract(o, make_probe(64, radius = 16, counts = 1e5), scan_positions(\"fermat\", 96, 12))\n"
               "write(log(shuffle_frames(frames, 3)[0] + 1), \"frame.tif\")",
    .see = "read_positions scan_positions frc ptycho",
};
