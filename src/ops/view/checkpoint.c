/* checkpoint: an image that is computed once and kept in the store, where a killed run finds it again. */
#include "op/op.h"

typedef struct {
    int64_t iteration;
} checkpoint;
enum { IMAGE, RESIDUAL, MEASURE };

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "any image" },
    { "residual", FV_KIND_SCALAR, .optional = true,
      .doc = "squared norm of what an iteration leaves unexplained, for the record; negative: none" },
    { "measure", FV_KIND_SCALAR, .optional = true, .doc = "squared norm of what was measured" },
    FV_INPUT_END,
};
static const fv_param params[] = {
    FV_PARAM(checkpoint, iteration, .def = "0", .min = 0, .max = 1e6, .doc = "number of that iteration, from 1"),
    FV_PARAM_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    (void)i, (void)error;
    return FV_OK;
}

static bool notes(const void *given) { return ((const checkpoint *)given)->iteration > 0; }

/* The first chunk tells of the whole image. */
static void note(const fv_run *r) {
    fv_note note = { .iteration = ((const checkpoint *)r->need.params)->iteration, .active = 1 };
    if (!r->notes || !r->scalar[RESIDUAL] || !r->scalar[MEASURE]) return;
    for (int d = 0; d < r->out->region.ndim; d++)
        if (r->out->region.start[d]) return;
    note.residual = fv__scalar_number(r->scalar[RESIDUAL]);
    note.measure = fv__scalar_number(r->scalar[MEASURE]);
    if (note.residual >= 0) fv__bytes_append(r->notes, &note, sizeof note);
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    fv__block_copy(r->out, r->in[IMAGE]);
    note(r);
    return FV_OK;
}

/* Slabs of about a million voxels. */
static void slab(const fv_need *n, int64_t *chunk) {
    int64_t layer = 1;
    memcpy(chunk, n->out->image.shape, sizeof(int64_t) * FV_MAX_DIMS);
    for (int d = 1; d < n->out->image.ndim; d++) layer *= FV_MAX(chunk[d], 1);
    chunk[0] = FV_MIN(FV_MAX((1 << 20) / FV_MAX(layer, 1), 1), FV_MAX(chunk[0], 1));
}

static const fv_pass passes[] = { { .run = run }, FV_PASS_END };
static double        cost(const fv_need *n) { return 0.1 * (double)fv_dtype_size(n->out->image.dtype); }

const fv_op FV_OP(checkpoint) = {
    .name = "checkpoint",
    .family = "view",
    .brief = "compute an image once and keep it in the store",
    .also = "persist, cache",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(checkpoint),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .notes = notes,
    .cost = cost,
    .doc = "The image itself. Fovea normally decides by cost what to store and what to compute again; checkpoint decides it "
           "by hand, for instance at the end of each step of an iteration, from which a killed run then continues. An "
           "iteration may also pass on its residual, which `fovea report` shows.",
    .example = "checkpoint(gaussian(phantom(\"cells\", [200, 200]), 2)) |> median(3) |> write(\"a.tif\")",
    .see = "residuals choose",
};
