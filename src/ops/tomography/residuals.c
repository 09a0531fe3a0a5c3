/* residuals: how well each iteration of a reconstruction explains the projections, as a table. */
#include "op/params.h"
#include "op/table_rows.h"
#include "ops/tomography/solver.h"
#include <stdlib.h>

typedef struct {
    fv_solver solver; /* first: parameters of the method itself */
    fv_choice method;
} residuals;

static const char *const methods[] = { "sirt", "art", "sart", "cgls", "mlem" };
static const fv_unrolled kinds[] = { FV_UNROLLED_SIRT, FV_UNROLLED_ART, FV_UNROLLED_SART, FV_UNROLLED_CGLS, FV_UNROLLED_MLEM };

static const fv_param params[] = {
    FV_SOLVER_GEOMETRY,
    FV_PARAM(residuals, method, .def = "sirt", .choices = "sirt|art|sart|cgls|mlem",
             .doc = "which operator's iterations to "
                    "run"),
    FV_SOLVER_ITERATIONS("20"),
    FV_PARAM(fv_solver, relaxation, .def = "0", .min = 0, .max = 2, .doc = "factor on each step; 0: the method's default"),
    FV_SOLVER_NONNEGATIVE,
    FV_SOLVER_STOP,
    FV_SOLVER_SIZE,
    FV_SOLVER_SUBSETS,
    FV_SOLVER_WINDOW,
    FV_PARAM_END,
};
static const fv_input inputs[] = { FV_SOLVER_INPUT_TABLE };

static const fv_table_type columns = {
    3, { { "slice", FV_COLUMN_INTEGER }, { "iteration", FV_COLUMN_INTEGER }, { "residual", FV_COLUMN_REAL } }
};

static const fv_op *method_of(const residuals *p) { return fv__op_find(methods[p->method.index]); }

/* The type of the volume that the method would give; it never exists. */
static fv_status volume_type(residuals *p, const fv_type *const *in, fv_type *volume, fv_error *error) {
    fv_infer i = { .params = &p->solver, .params_size = sizeof p->solver, .ninputs = FV_SOLVER_INPUTS, .out = volume };
    for (int k = 0; k < FV_SOLVER_INPUTS; k++) i.in[k] = in[k];
    *volume = *in[0];
    return method_of(p)->infer(&i, error);
}

/* What the method takes where the parameter here says nothing, or has no meaning for it. */
static fv_status fill_in(residuals *p, fv_error *error) {
    const fv_param *relaxation = fv__params_find(method_of(p), "relaxation");
    if (p->solver.relaxation <= 0 && relaxation) p->solver.relaxation = atof(relaxation->def);
    if (p->solver.subsets && !fv__params_find(method_of(p), "subsets"))
        return fv_fail(error, FV_ERROR_USAGE, "subsets = %lld: only art and sart have them", (long long)p->solver.subsets);
    if (p->solver.window.index && !fv__params_find(method_of(p), "window"))
        return fv_fail(error, FV_ERROR_USAGE, "window = hamming: only sart has it");
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    residuals *p = i->params;
    fv_type    volume;
    FV_TRY(fill_in(p, error));
    FV_TRY(volume_type(p, i->in, &volume, error));
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = &columns };
    return FV_OK;
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    residuals *p = i->params;
    if (p->solver.geometry.beam != FV_GEOMETRY_CONE) return FV_OK;
    FV_TRY(fill_in(p, error));
    return fv__cone_unroll(i, kinds[p->method.index], true, text, error);
}

/* A chunk of projections that holds their corner stands for its slices; the others have nothing to do. */
static bool slices_of(const fv_need *n, fv_scan *scan, int64_t *first, int64_t *count) {
    fv__scan_find(&n->in[0]->image, &((const residuals *)n->params)->solver.geometry, scan, NULL);
    fv__scan_slices(&n->region, scan->row, first, count);
    return !n->region.start[scan->angle] && !n->region.start[scan->column];
}

/* The same work as the method's own pass would see it: these slices, and nothing of them to be given out. */
static fv_need inner_need(const fv_need *n, fv_type *volume, int64_t first, int64_t count) {
    residuals p = *(const residuals *)n->params;
    fv_need   inner = *n;
    volume_type(&p, n->in, volume, NULL);
    inner.out = volume;
    inner.region = fv__region_whole(&volume->image);
    if (inner.region.ndim == 3) {
        inner.region.start[0] = first;
        inner.region.size[0] = count;
    }
    return inner;
}

static void need(const fv_need *n, fv_region *in) {
    fv_scan scan;
    fv_type volume;
    int64_t first, count;
    bool    mine = slices_of(n, &scan, &first, &count);
    fv_need inner = inner_need(n, &volume, first, count);
    method_of(n->params)->passes[0].need(&inner, in);
    for (int k = 0; k < FV_SOLVER_INPUTS && !mine; k++)
        for (int d = 0; d < in[k].ndim; d++) in[k].size[d] = FV_MIN(in[k].size[d], 1);
}

static size_t scratch(const fv_need *n) {
    fv_scan scan;
    fv_type volume;
    int64_t first, count;
    if (!slices_of(n, &scan, &first, &count)) return 64;
    fv_need inner = inner_need(n, &volume, first, count);
    return method_of(n->params)->passes[0].scratch(&inner);
}

static size_t bound(const fv_need *n) {
    fv_scan scan;
    int64_t first, count;
    slices_of(n, &scan, &first, &count);
    return (size_t)(count * ((const residuals *)n->params)->solver.iterations) * sizeof(fv_note);
}

static fv_status run(fv_run *r, fv_error *error) {
    fv_scan  scan;
    fv_type  volume;
    fv_block nothing = { .dtype = FV_FLOAT32 };
    fv_run   inner = *r;
    int64_t  first, count;
    if (!slices_of(&r->need, &scan, &first, &count)) return FV_OK;
    inner.need = inner_need(&r->need, &volume, first, count);
    nothing.region = inner.need.region;
    nothing.region.size[nothing.region.ndim - 1] = nothing.region.size[nothing.region.ndim - 2] = 0;
    inner.out = &nothing;
    inner.notes = r->partial;
    return method_of(r->need.params)->passes[0].run(&inner, error);
}

static int in_order(const void *a, const void *b) {
    const fv_note *x = a, *y = b;
    if (x->slice != y->slice) return x->slice < y->slice ? -1 : 1;
    return (x->iteration > y->iteration) - (x->iteration < y->iteration);
}

static fv_status finish(fv_finish *f, fv_error *error) {
    fv_row_writer writer;
    fv_status     status = FV_OK;
    fv__row_writer_init(&writer, f);
    for (int64_t k = 0; k < f->npartials && status == FV_OK; k++) { /* chunks that stand for slices come in order of these */
        const void *data;
        int64_t     count = (int64_t)(f->size(f, k) / sizeof(fv_note));
        status = f->partial(f, k, &data, error);
        fv_note *steps = fv__alloc((size_t)FV_MAX(count, 1) * sizeof *steps);
        if (status == FV_OK && count) memcpy(steps, data, (size_t)count * sizeof *steps);
        if (status == FV_OK) qsort(steps, (size_t)count, sizeof *steps, in_order);
        for (int64_t i = 0; i < count && status == FV_OK; i++) {
            fv_cell *row;
            status = fv__row_writer_next(&writer, &row, error);
            if (status != FV_OK) break;
            row[0].integer = steps[i].slice;
            row[1].integer = steps[i].iteration;
            row[2].real = steps[i].measure > 0 ? sqrt(steps[i].residual / steps[i].measure) : 0;
        }
        free(steps);
    }
    if (status == FV_OK) status = fv__row_writer_flush(&writer, error);
    fv__row_writer_release(&writer);
    return status;
}

static const fv_pass passes[] = {
    { .name = "iterations", .need = need, .scratch = scratch, .bound = bound, .run = run, .finish = finish }, FV_PASS_END
};

static const fv_column_doc column_docs[] = {
    { "slice", .doc = "number of the slice, from 0" },
    { "iteration", .doc = "number of the iteration, from 1" },
    { "residual",
      .doc = "what the projections of the image before this iteration leave unexplained, as a part of the measured "
             "projections (ratio of norms). art and sart change the image from ray to ray: there it is what each ray left "
             "when it was used" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(residuals) = {
    .name = "residuals",
    .family = "tomography",
    .stage = "reconstruct",
    .brief = "list how well each iteration of a reconstruction explains the projections",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(residuals),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .doc = "Runs the iterations that sirt, art, sart, cgls or mlem with the same parameters would make, and gives a row for "
           "each slice and iteration instead of a volume. Use it to see whether 20 or 200 iterations are worth it: "
           "group(residuals(p, g), \"iteration\", \"mean(residual)\").\n"
           "Every run also records the residuals of the reconstructions in it; `fovea report` shows them, all slices "
           "together. The slices of a cone beam are solved together, as slice 0.",
    .example = "g = parallel(range(0, 170, 10))\n"
               "residuals(xray(phantom(\"shepp-logan\", [64, 64]), g), g, \"cgls\", iterations = 6)",
    .see = "sirt art sart cgls mlem group",
    .columns = column_docs,
};
