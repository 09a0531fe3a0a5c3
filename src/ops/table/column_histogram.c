/* column_histogram: how many values of a column fall in each of equal bins. */
#include "kernels/bins.h"
#include "op/table_rows.h"
#include <stdlib.h>

typedef struct {
    const char *column;
    int64_t     bins;
    fv_numbers  range;
} column_histogram;

static const fv_param params[] = {
    FV_PARAM(column_histogram, column, .doc = "column of numbers, such as \"volume\""),
    FV_PARAM(column_histogram, bins, .def = "10", .min = 1, .max = 1 << 20, .doc = "number of bins"),
    FV_PARAM(column_histogram, range, .def = "",
             .doc = "[low, high]: values outside are left out; not given: the smallest and largest value of the column"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "table", FV_KIND_TABLE, .doc = "table to take the column from" }, FV_INPUT_END };

static fv_status find(const column_histogram *p, const fv_table_type *type, int *column, fv_error *error) {
    FV_TRY(fv__table_find(type, "column", p->column, column, error));
    if (type->column[*column].kind != FV_COLUMN_TEXT) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "column: %s is text; group(table, \"%s\") counts its values", p->column, p->column);
}

static fv_status infer(fv_infer *i, fv_error *error) {
    static const fv_table_type type = {
        3, { { "low", FV_COLUMN_REAL }, { "high", FV_COLUMN_REAL }, { "count", FV_COLUMN_INTEGER } }
    };
    const column_histogram *p = i->params;
    int                     column;
    FV_TRY(find(p, i->in[0]->table, &column, error));
    if (p->range.count != 0 && p->range.count != 2)
        return fv_fail(error, FV_ERROR_USAGE, "range has %d numbers; give two, [low, high]", p->range.count);
    double low = p->range.value[0], high = p->range.value[1];
    if (p->range.count && !(low <= high && isfinite(low) && isfinite(high)))
        return fv_fail(error, FV_ERROR_USAGE, "range = [%g, %g]: low must not be above high, and both must be finite", low, high);
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = &type };
    return FV_OK;
}

typedef struct {
    int            column;
    fv_column_kind kind;
    double         low, high; /* of the values; low > high: there are none */
    fv_bins        bins;
    double        *edges;
    int64_t       *counts;
} counting;

static fv_status find_range(void *context, const fv_cell *row, fv_error *error) {
    counting *c = context;
    double    value = fv__cell_number(c->kind, row[c->column]);
    if (value != value) return FV_OK;
    if (!isfinite(value))
        return fv_fail(error, FV_ERROR_INPUT, "the column holds infinite values; give a range, as range = [0, 1]");
    c->low = FV_MIN(c->low, value);
    c->high = FV_MAX(c->high, value);
    return FV_OK;
}

static fv_status count_value(void *context, const fv_cell *row, fv_error *error) {
    counting *c = context;
    int64_t   bin = fv_bin_of_double(&c->bins, c->edges, fv__cell_number(c->kind, row[c->column]));
    (void)error;
    if (bin >= 0) c->counts[bin]++;
    return FV_OK;
}

static fv_status put_rows(fv_finish *f, const counting *c, fv_error *error) {
    fv_row_writer writer;
    fv_status     status = FV_OK;
    fv__row_writer_init(&writer, f);
    for (int64_t i = 0; i < c->bins.count && status == FV_OK; i++) {
        fv_cell *row;
        status = fv__row_writer_next(&writer, &row, error);
        if (status != FV_OK) break;
        row[0].real = c->edges[i];
        row[1].real = c->edges[i + 1];
        row[2].integer = c->counts[i];
    }
    if (status == FV_OK) status = fv__row_writer_flush(&writer, error);
    fv__row_writer_release(&writer);
    return status;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    const column_histogram *p = f->params;
    const fv_table_type    *type = f->in[0]->table;
    counting                c = { .low = INFINITY, .high = -INFINITY };
    FV_TRY(find(p, type, &c.column, error));
    c.kind = type->column[c.column].kind;
    bool own = !p->range.count;
    if (own) FV_TRY(fv__table_each(f->table[0], type, find_range, &c, error));
    if (!own) c.low = p->range.value[0], c.high = p->range.value[1];
    if (c.low > c.high) c.low = 0, c.high = 1, own = false;
    if (c.low == c.high) c.low -= 0.5, c.high += 0.5, own = false;
    fv__bins_init(&c.bins, FV_FLOAT64, c.low, c.high, own, p->bins);
    c.edges = fv__alloc((size_t)(p->bins + 1) * sizeof *c.edges);
    c.counts = fv__calloc((size_t)p->bins * sizeof *c.counts);
    fv__bins_edges(&c.bins, c.edges);
    fv_status status = fv__table_each(f->table[0], type, count_value, &c, error);
    if (status == FV_OK) status = put_rows(f, &c, error);
    free(c.edges);
    free(c.counts);
    return status;
}

static const fv_pass passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "low", .doc = "lower edge of the bin" },
    { "high", .doc = "upper edge; it belongs to the next bin, except in the last" },
    { "count", .doc = "number of values in the bin" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(column_histogram) = {
    .name = "column_histogram",
    .family = "table",
    .brief = "count how many values of a column fall into each of equally wide bins",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(column_histogram),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .doc = "As numpy.histogram, and as histogram does for the values of an image. Missing values are left out.",
    .example = "cells = label(phantom(\"cells\", [200, 200]) > 60)\n"
               "column_histogram(measure(cells), \"voxels\", bins = 5)",
    .see = "histogram group",
    .columns = columns,
};
