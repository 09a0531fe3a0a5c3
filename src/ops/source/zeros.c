/* zeros: an image of zeros. */
#include "op/op.h"

typedef struct { fv_numbers shape; fv_dtype_choice dtype; } zeros;

static const fv_param params[] = {
    FV_PARAM(zeros, shape, .min = 1, .max = 1e15, .doc = "size of each axis, slowest first"),
    FV_PARAM(zeros, dtype, .def = "uint8", .doc = "element type"),
    FV_PARAM_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const zeros *p = i->params;
    int64_t shape[FV_MAX_DIMS];
    if (p->shape.count > FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_USAGE, "shape has %d axes; at most %d are possible", p->shape.count, FV_MAX_DIMS);
    for (int d = 0; d < p->shape.count; d++) shape[d] = (int64_t)p->shape.value[d];
    i->out->kind = FV_KIND_IMAGE;
    fv_image_type_init(&i->out->image, (fv_dtype)p->dtype.dtype, p->shape.count, shape);
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const fv_block *out = r->out;
    int             last = out->region.ndim - 1;
    fv_rows         rows;
    for (fv_rows_begin(&rows, &out->region); fv_rows_next(&rows);)
        memset(fv_block_at(out, rows.position), 0, (size_t)out->region.size[last] * fv_dtype_size(out->dtype));
    return FV_OK;
}

static const fv_pass passes[] = { { .run = run }, FV_PASS_END };

const fv_op FV_OP(zeros) = {
    .name = "zeros", .family = "source", .brief = "an image of zeros", .version = 1, .params = params, .params_size = sizeof(zeros),
    .result = FV_KIND_IMAGE, .infer = infer, .passes = passes, .example = "zeros([64, 64]) |> write(\"black.png\")",
};
