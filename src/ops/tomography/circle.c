/* circle: only the cylinder that every projection has seen. */
#include "op/op.h"

typedef struct {
    double radius, value;
} circle;

static const fv_param params[] = {
    FV_PARAM(circle, radius, .def = "1", .above = true, .max = 2,
             .doc = "radius of the circle, as a part of half the "
                    "shorter side"),
    FV_PARAM(circle, value, .def = "0", .doc = "value outside the circle"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "volume", FV_KIND_IMAGE, .doc = "float volume z y x, or one slice y x" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *in = &i->in[0]->image;
    int                  spatial[FV_MAX_DIMS];
    if (in->ndim < 2 || in->ndim > 3 || fv_image_type_spatial(in, spatial) != in->ndim || in->dtype != FV_FLOAT32)
        return fv_fail(error, FV_ERROR_USAGE, "volume must be float32 with the axes z y x or y x");
    return FV_OK;
}

/* Doubled coordinates about the middle are whole numbers. */
static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const circle  *p = r->need.params;
    const int64_t *shape = r->need.out->image.shape;
    int            last = r->out->region.ndim - 1;
    int64_t        height = shape[last - 1], width = shape[last], n = r->out->region.size[last];
    double         limit = p->radius * (double)FV_MIN(height, width);
    fv_rows        rows;
    for (fv__rows_begin(&rows, &r->out->region); fv__rows_next(&rows);) {
        float  *to = fv__block_at(r->out, rows.position), *from = fv__block_at(r->in[0], rows.position);
        int64_t y = 2 * rows.position[last - 1] - (height - 1);
        for (int64_t k = 0; k < n; k++) {
            int64_t x = 2 * (rows.position[last] + k) - (width - 1);
            to[k] = (double)(x * x + y * y) <= limit * limit ? from[k] : (float)p->value;
        }
    }
    return FV_OK;
}

static const fv_pass passes[] = { { .run = run }, FV_PASS_END };

const fv_op FV_OP(circle) = {
    .name = "circle",
    .family = "tomography",
    .also = "circ_mask",
    .stage = "filter",
    .brief = "clear what lies outside the circle that every projection sees",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(circle),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .doc = "A voxel is kept if its distance from the middle of its slice is at most radius times half the shorter side, as "
           "in tomopy.circ_mask.",
    .example = "circle(phantom(\"noise\", [200, 200])) |> write(\"round.tif\")",
    .see = "fbp fdk clip",
};
