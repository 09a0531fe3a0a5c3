/* try_orientations: how well a scan fits with the detector turned and flipped in all eight ways. */
#include "op/op.h"

typedef struct {
    fv_list positions;
    int64_t iterations;
} try_orientations;
enum { FRAMES, PROBE, MASK };

static const fv_param params[] = {
    FV_PARAM(try_orientations, positions, .each = 2, .doc = "row and column of each frame, as for ptycho"),
    FV_PARAM(try_orientations, iterations, .def = "15", .min = 2, .max = 200, .doc = "iterations of each case"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "frames", FV_KIND_IMAGE, .doc = "counts, zero frequency in the middle; axes frame y x" },
    { "probe", FV_KIND_IMAGE, .optional = true, .doc = "probe to begin with, as for ptycho" },
    { "mask", FV_KIND_IMAGE, .optional = true, .doc = "pixels of the detector that measure, y x" },
    FV_INPUT_END,
};

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const try_orientations *p = i->params;
    const fv_image_type    *f = &i->in[FRAMES]->image;
    bool                    probe = i->in[PROBE]->kind == FV_KIND_IMAGE, mask = i->in[MASK]->kind == FV_KIND_IMAGE;
    if (f->ndim != 3) return fv_fail(error, FV_ERROR_USAGE, "frames must have three axes: frame, y and x");
    int cases = f->shape[1] == f->shape[2] ? 8 : 4; /* frames that are not square cannot be transposed */
    for (int turn = 0; turn < cases; turn++)
        fv__bytes_printf(
            text,
            "r = ptycho(frames%s%s, positions = positions, iterations = %lld, orientation = %d, output = \"residual\")\n"
            "rows = row(%d, second = r, names = \"orientation residual\"%s)\n",
            probe ? ", probe" : "", mask ? ", mask = mask" : "", (long long)p->iterations, turn, turn,
            turn ? ", after = rows" : "");
    fv__bytes_printf(text, "rows\n");
    return FV_OK;
}

/* It is always written in its steps. */
static fv_status infer(fv_infer *i, fv_error *error) {
    (void)i;
    return fv_fail(error, FV_ERROR_INTERNAL, "try_orientations was not written in its steps");
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)r;
    return fv_fail(error, FV_ERROR_INTERNAL, "try_orientations was not written in its steps");
}
static const fv_pass passes[] = { { .run = run }, FV_PASS_END };

static const fv_column_doc column_docs[] = {
    { "orientation", .doc = "4: rows and columns of a frame change places; then 2: rows are flipped, 1: columns are; added up" },
    { "residual", .doc = "what is left after the iterations, as ptycho tells it" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(try_orientations) = {
    .name = "try_orientations",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "find out how the detector is turned: the residual of all eight ways after a few iterations",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(try_orientations),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .columns = column_docs,
    .doc = "Frames that are turned or flipped against the positions are explained worse. The way with the least residual is the "
           "right one if it stands out; give its number to ptycho as orientation. Frames that are not square are not transposed.",
    .example = "o = complex_image(ones([96, 96]), phantom(\"cells\", [96, 96]) / 255)\n"
               "at = scan_positions(\"raster\", 60, 8)\n"
               "p = make_probe(32, radius = 9, defocus = 30, counts = 1e6)\n"
               "try_orientations(flip(diffract(o, p, at), \"y\"), p, positions = at, iterations = 20)",
    .see = "ptycho read_positions crop_frames",
};
