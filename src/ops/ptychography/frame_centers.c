/* frame_centers: where the middle of the counts of each frame is, as numbers along an axis. */
#include "ops/ptychography/frame_center.h"

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_image_type whole = i->in[FRAMES]->image;
    int           last = whole.ndim - 1;
    int64_t       shape[FV_MAX_DIMS];
    FV_TRY(fv__frame_center_check(i, error));
    memcpy(shape, whole.shape, sizeof shape);
    shape[last - 1] = NUMBERS;
    fv_image_type_init(&i->out->image, FV_FLOAT64, last, shape);
    for (int d = 0; d < last - 1; d++) memcpy(i->out->image.axis[d], whole.axis[d], sizeof whole.axis[d]);
    memcpy(i->out->image.axis[last - 1], "value", 6);
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *out = r->out;
    int             last = out->region.ndim - 1;
    int64_t         first = out->region.start[last], n = out->region.size[last];
    fv_rows         rows;
    (void)error;
    for (fv__rows_begin(&rows, &out->region); fv__rows_next(&rows);) {
        int64_t at[FV_MAX_DIMS];
        double  value[NUMBERS];
        memcpy(at, rows.position, sizeof at);
        fv__frame_center(r, at, value);
        memcpy(fv__block_at(out, rows.position), value + first, (size_t)n * sizeof *value);
    }
    return FV_OK;
}

/* Some frames at a time, however few numbers they give. */
static void slab(const fv_need *n, int64_t *chunk) {
    const fv_image_type *type = &n->out->image, *f = &n->in[FRAMES]->image;
    int64_t              pixels = f->shape[f->ndim - 2] * f->shape[f->ndim - 1];
    for (int d = 0; d < type->ndim; d++) chunk[d] = d == type->ndim - 1 ? NUMBERS : 1;
    if (type->ndim > 1) chunk[type->ndim - 2] = FV_MAX(1, FV_MIN((4 << 20) / pixels, type->shape[type->ndim - 2]));
}

static double cost(const fv_need *n) {
    const fv_image_type *f = &n->in[FRAMES]->image;
    return (double)(f->shape[f->ndim - 2] * f->shape[f->ndim - 1]) / NUMBERS;
}

static const fv_pass passes[] = { { .need = fv__frame_center_need, .scratch = fv__frame_center_scratch, .run = run },
                                  FV_PASS_END };

const fv_op FV_OP(frame_centers) = {
    .name = "frame_centers",
    .family = "ptychography",
    .stage = "prepare",
    .brief = "row, column and sum of the counts of each frame, as an image",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .doc =
        "The numbers of center_of_mass for further computation: three for each frame, as float64 along a last axis named value: "
        "the "
        "mean row and the mean column, weighted by the counts, and the sum of the counts. A frame without counts has no center: "
        "not a number.",
    .citation = "scipy.ndimage.center_of_mass",
    .example = "o = complex_image(ones([160, 160]), gaussian(phantom(\"cells\", [160, 160]) / 20, 2))\n"
               "frames = diffract(o, make_probe(32, radius = 8, counts = 1e5), scan_positions(\"raster\", 127, 16))\n"
               "write(frame_centers(frames), \"centers.npy\")",
    .see = "center_of_mass dpc integrate_slopes",
};
