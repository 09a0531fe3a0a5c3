/* try_defocus: how well a scan fits with a probe that is guessed at several distances from its focus. */
#include "op/op.h"

typedef struct {
    fv_list positions, defocus;
    int64_t iterations;
} try_defocus;
enum { FRAMES, MASK };

static const fv_param params[] = {
    FV_PARAM(try_defocus, positions, .each = 2, .doc = "row and column of each frame, as for ptycho"),
    FV_PARAM(try_defocus, defocus, .def = "", .unit = "px^2",
             .doc =
                 "what to try, as guess_probe takes it; left out: 0, and both signs of an eighth of a frame's side, each half as "
                 "much again as the one before, up to four times the side"),
    FV_PARAM(try_defocus, iterations, .def = "6", .min = 1, .max = 200, .doc = "iterations of each case"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "frames", FV_KIND_IMAGE, .doc = "counts, zero frequency in the middle; axes frame y x" },
    { "mask", FV_KIND_IMAGE, .optional = true, .doc = "pixels of the detector that measure, y x" },
    FV_INPUT_END,
};

static void write_case(const fv_infer *i, double defocus, bool first, fv_bytes *text) {
    const try_defocus *p = i->params;
    fv__bytes_printf(text,
                     "r = ptycho(frames, guess_probe(mean, defocus = %.9g)%s, positions = positions, method = \"rpie\", "
                     "iterations = %lld, output = \"residual\")\n"
                     "rows = row(%.6f, second = r, names = \"defocus residual\"%s)\n",
                     defocus, i->in[MASK]->kind == FV_KIND_IMAGE ? ", mask = mask" : "", (long long)p->iterations, defocus,
                     first ? "" : ", after = rows");
}

/* rpie finds the probe from starts that are off by a third, in a few iterations, and keeps no waves. */
static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const try_defocus   *p = i->params;
    const fv_image_type *f = &i->in[FRAMES]->image;
    if (f->ndim != 3) return fv_fail(error, FV_ERROR_USAGE, "frames must have three axes: frame, y and x");
    fv__bytes_printf(text, "mean = project(frames, \"%s\", \"mean\")\n", f->axis[0]);
    for (int64_t k = 0; k < p->defocus.count; k++) write_case(i, p->defocus.value[k], k == 0, text);
    if (!p->defocus.count) {
        double side = (double)FV_MIN(f->shape[1], f->shape[2]);
        write_case(i, 0, true, text);
        for (double far = side / 8; far <= 4 * side; far *= 1.5)
            for (int sign = 1; sign >= -1; sign -= 2) write_case(i, sign * far, false, text);
    }
    fv__bytes_printf(text, "rows\n");
    return FV_OK;
}

/* It is always written in its steps. */
static fv_status infer(fv_infer *i, fv_error *error) {
    (void)i;
    return fv_fail(error, FV_ERROR_INTERNAL, "try_defocus was not written in its steps");
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)r;
    return fv_fail(error, FV_ERROR_INTERNAL, "try_defocus was not written in its steps");
}
static const fv_pass passes[] = { { .run = run }, FV_PASS_END };

static const fv_column_doc column_docs[] = {
    { "defocus", .unit = "px^2", .doc = "as guess_probe takes it" },
    { "residual", .doc = "what is left after the iterations, as ptycho tells it" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(try_defocus) = {
    .name = "try_defocus",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "find out how far the object was from the focus: residuals of guessed probes after a few iterations",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(try_defocus),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .columns = column_docs,
    .doc =
        "A guessed probe that is wrong by a factor of two in its defocus, or has the wrong sign, leads to no object at all. Each "
        "case begins with guess_probe at one defocus and goes through a few iterations of rpie, which finds the probe from "
        "starts that are off by about a third. The case with the least residual stands out: "
        "guess_probe(project(frames, \"frame\", \"mean\"), defocus = ...) then is a probe for ptycho to begin with.",
    .example = "o = complex_image(ones([96, 96]), phantom(\"cells\", [96, 96]) / 255)\n"
               "at = scan_positions(\"raster\", 60, 8)\n"
               "p = guess_probe(amplitude(make_probe(32, radius = 9)), defocus = 30)\n"
               "try_defocus(diffract(o, p, at), positions = at, defocus = [-30, 0, 30])",
    .see = "guess_probe ptycho try_orientations",
};
