/* min: least value. */
#include "op/extent.h"

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image to measure" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    return fv__infer_scalar(i, fv__scalar_type(i->in[0]->image.dtype), error);
}

static fv_status finish(fv_finish *f, fv_error *error) {
    fv_extent extent;
    FV_TRY(fv__extent_finish(f, &extent, error));
    return fv__put_scalar(f, &extent.low, error);
}

static const fv_pass passes[] = { { .run = fv__extent_run, .combine = fv__extent_combine, .finish = finish }, FV_PASS_END };

const fv_op FV_OP(min) = {
    .name = "min",
    .family = "statistics",
    .brief = "smallest value of an image",
    .version = 1,
    .also = "amin, nanmin, np.min",
    .doc = "A whole number, a real number or a bool, like the image. Nan if a value is nan.",
    .inputs = inputs,
    .result = FV_KIND_SCALAR,
    .infer = infer,
    .passes = passes,
    .example = "min(phantom(\"cells\", [200, 200]))",
    .see = "max minimum quantile project",
};
