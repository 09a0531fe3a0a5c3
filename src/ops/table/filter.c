/* filter: the rows of a table that satisfy a condition. */
#include "op/sampling.h"
#include "ops/table/selected_rows.h"

typedef struct {
    const char *condition;
} filter;

static const fv_param params[] = {
    FV_PARAM(filter, condition, .many = true,
             .doc = "condition on a row, such as \"type == 'cancer' & volume > 0.5\": columns, numbers, texts in quotes, + - "
                    "* /, comparisons, ! & | (or the words not, and, or) and brackets"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "table", FV_KIND_TABLE, .doc = "table to take rows from" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_condition condition;
    return fv__condition_parse(&condition, "condition", ((filter *)i->params)->condition, i->in[0]->table, error);
}

static fv_status finish(fv_finish *f, fv_error *error) {
    return fv__selected_rows(f, ((const filter *)f->params)->condition, error);
}

static const fv_pass passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<columns of table>", .doc = "unchanged" },
    FV_COLUMN_DOC_END,
};

/* The images of a collection: another operator. */
static const char *becomes(const void *params_) { return params_ ? NULL : "filter_items"; }

const fv_op FV_OP(filter) = {
    .name = "filter",
    .role = FV_OP_SELECT,
    .family = "table",
    .brief = "keep the rows of a table that satisfy a condition",
    .also = "query",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(filter),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .rows = true,
    .becomes = becomes,
    .doc = "filter(t, volume > 10) may be written without quotes; names in it are columns, never variables. Rows keep their "
           "order. Numbers are computed in float64, texts "
           "are compared byte by byte. A comparison with a "
           "missing value is false; only != is true. keep does the same for the labels of an image, and "
           "filter(c, \"mean > 10\") for the images of a collection: it keeps some of the items.",
    .example = "cells = label(phantom(\"cells\", [200, 200]) > 60)\n"
               "filter(measure(cells), \"voxels > 400\")",
    .see = "filter_items keep sort group join alert",
    .columns = columns,
};

const fv_estimator FV_ESTIMATOR(filter) = { .chain = FV_CHAIN_NEXT };
