/* kmeans_table: classes of rows of a table that are alike in some columns. What kmeans is for tables.
 *
 * The rows are gone through three times: to count them, to take those from which the classes are found (all, or an even sample of
 * many), and to give each its class.
 */
#include "base/exact_sum.h"
#include "op/table_rows.h"
#include "ops/intensity/lloyd.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *columns;
    int64_t     classes;
    bool        scale;
    int64_t     seed;
} kmeans_table;

enum { MOST_CLASSES = 64, MOST_COLUMNS = 32, SAMPLE = 1 << 16 };

static const fv_param params[] = {
    FV_PARAM(kmeans_table, columns, .doc = "columns of numbers in which rows of a class are alike, such as \"volume, mean\""),
    FV_PARAM(kmeans_table, classes, .def = "2", .min = 2, .max = MOST_CLASSES, .doc = "number of classes"),
    FV_PARAM(kmeans_table, scale, .def = "false",
             .doc = "divide each column by its standard deviation first, so that columns of different units count alike"),
    FV_PARAM(kmeans_table, seed, .def = "0", .min = 0, .max = 9e15,
             .doc = "of the random numbers that choose where the search begins"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "table", FV_KIND_TABLE, .doc = "table whose rows are put into classes" }, FV_INPUT_END };

typedef struct {
    int count;
    int column[MOST_COLUMNS];
} chosen;

static fv_status choose(const kmeans_table *p, const fv_table_type *type, chosen *c, fv_error *error) {
    c->count = 0;
    for (const char *at = p->columns; *at;) {
        char   name[64];
        size_t length = strcspn(at, ", ");
        if (length && c->count == MOST_COLUMNS)
            return fv_fail(error, FV_ERROR_USAGE, "columns: at most %d are possible", MOST_COLUMNS);
        if (length) {
            snprintf(name, sizeof name, "%.*s", (int)length, at);
            FV_TRY(fv__table_find(type, "columns", name, &c->column[c->count], error));
            if (type->column[c->column[c->count++]].kind == FV_COLUMN_TEXT)
                return fv_fail(error, FV_ERROR_USAGE, "columns: %s is text, which has no mean", name);
        }
        at += length;
        at += strspn(at, ", ");
    }
    return c->count ? FV_OK : fv_fail(error, FV_ERROR_USAGE, "columns is empty; name a column of numbers");
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_table_type *in = i->in[0]->table;
    fv_table_type       *out = fv__arena_alloc(i->arena, sizeof *out);
    chosen               c;
    FV_TRY(choose(i->params, in, &c, error));
    if (fv__table_column(in, "class") >= 0)
        return fv_fail(error, FV_ERROR_USAGE, "the table has a column class already; give it another name with select");
    if (in->ncolumns == FV_MAX_COLUMNS)
        return fv_fail(error, FV_ERROR_USAGE, "the table has %d columns, and there is no room for another", FV_MAX_COLUMNS);
    *out = *in;
    out->column[out->ncolumns++] = (fv_column){ "class", FV_COLUMN_INTEGER };
    i->out->table = out;
    return FV_OK;
}

typedef struct {
    const fv_table_type   *type;
    chosen                 chosen;
    int64_t                rows, sampled; /* without those that lack a value */
    fv_sum_float64         sum[MOST_COLUMNS];
    fv_sum_float64_squares squares[MOST_COLUMNS];
    double                 unit[MOST_COLUMNS]; /* by which a column is divided */
    double                *point;
    int64_t                number; /* of the row in the second pass */
    double                 centre[MOST_CLASSES * MOST_COLUMNS];
    int                    classes;
    fv_row_writer          writer;
} work;

/* False: a value is missing. */
static bool numbers_of(const work *w, const fv_cell *row, double *number) {
    bool whole = true;
    for (int k = 0; k < w->chosen.count; k++) {
        int c = w->chosen.column[k];
        number[k] = fv__cell_number(w->type->column[c].kind, row[c]) / w->unit[k];
        whole = whole && isfinite(number[k]);
    }
    return whole;
}

static fv_status count_row(void *context, const fv_cell *row, fv_error *error) {
    work  *w = context;
    double number[MOST_COLUMNS];
    (void)error;
    if (!numbers_of(w, row, number)) return FV_OK;
    w->rows++;
    for (int k = 0; k < w->chosen.count; k++) {
        fv__sum_add(&w->sum[k].sum, number[k]);
        fv__sum_add_square(&w->squares[k].sum, number[k]);
    }
    return FV_OK;
}

static fv_status sample_row(void *context, const fv_cell *row, fv_error *error) {
    work   *w = context;
    double  number[MOST_COLUMNS];
    int64_t most = FV_MIN(w->rows, SAMPLE);
    (void)error;
    if (!numbers_of(w, row, number)) return FV_OK;
    int64_t at = (int64_t)((__int128)w->number * most / w->rows), next = (int64_t)((__int128)(w->number + 1) * most / w->rows);
    w->number++;
    if (next > at) memcpy(w->point + w->sampled++ * w->chosen.count, number, (size_t)w->chosen.count * sizeof *number);
    return FV_OK;
}

static int64_t class_of(const work *w, const double *number) {
    double best = INFINITY;
    int64_t class = 0;
    for (int k = 0; k < w->classes; k++) {
        double distance = 0;
        for (int d = 0; d < w->chosen.count; d++) {
            double apart = number[d] - w->centre[k * w->chosen.count + d];
            distance += apart * apart;
        }
        if (distance < best) best = distance, class = k;
    }
    return class;
}

static fv_status put_row(void *context, const fv_cell *from, fv_error *error) {
    work    *w = context;
    double   number[MOST_COLUMNS];
    fv_cell *row;
    FV_TRY(fv__row_writer_next(&w->writer, &row, error));
    for (int c = 0; c < w->type->ncolumns; c++) fv__row_writer_copy(&w->writer, w->type->column[c].kind, &row[c], from[c]);
    row[w->type->ncolumns].integer = numbers_of(w, from, number) ? class_of(w, number) : -1;
    return FV_OK;
}

static fv_status find_classes(work *w, const kmeans_table *p, fv_results *rows, fv_error *error) {
    FV_TRY(fv__table_each(rows, w->type, count_row, w, error));
    for (int k = 0; k < w->chosen.count && p->scale && w->rows; k++) {
        double deviation = sqrt(fv__sum_variance(&w->sum[k].sum, &w->squares[k].sum, w->rows));
        if (deviation > 0 && isfinite(deviation)) w->unit[k] = deviation;
    }
    w->point = fv__alloc((size_t)(FV_MIN(w->rows, SAMPLE) + 1) * (size_t)w->chosen.count * sizeof *w->point);
    FV_TRY(fv__table_each(rows, w->type, sample_row, w, error));
    fv__lloyd job = { .point = w->point,
                      .count = w->sampled,
                      .dimensions = w->chosen.count,
                      .classes = (int)p->classes,
                      .seed = (uint64_t)p->seed };
    int64_t   found = 0;
    if (w->sampled) FV_TRY(fv__lloyd_find(&job, w->centre, &found, error));
    w->classes = job.classes;
    if (found == p->classes) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT,
                   "the table has only %lld different row%s with all these values; %lld classes need as many", (long long)found,
                   found == 1 ? "" : "s", (long long)p->classes);
}

static fv_status finish(fv_finish *f, fv_error *error) {
    work *w = fv__calloc(sizeof *w);
    w->type = f->in[0]->table;
    for (int k = 0; k < MOST_COLUMNS; k++) {
        w->unit[k] = 1;
        fv__sum_init(&w->sum[k].sum, FV_SUM_FLOAT64);
        fv__sum_init(&w->squares[k].sum, FV_SUM_FLOAT64_SQUARES);
    }
    fv__row_writer_init(&w->writer, f);
    fv_status status = choose(f->params, w->type, &w->chosen, error);
    if (status == FV_OK) status = find_classes(w, f->params, f->table[0], error);
    if (status == FV_OK) status = fv__table_each(f->table[0], w->type, put_row, w, error);
    if (status == FV_OK) status = fv__row_writer_flush(&w->writer, error);
    fv__row_writer_release(&w->writer);
    free(w->point);
    free(w);
    return status;
}

static const fv_pass passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<columns of table>", .doc = "unchanged" },
    { "class", .doc = "class of the row, from 0 on, by rising sum of the class's means; -1 where a value is missing" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(kmeans_table) = {
    .name = "kmeans_table",
    .family = "intensity",
    .brief = "put the rows of a table into classes by k-means",
    .also = "MiniBatchKMeans, cluster_rows",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(kmeans_table),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .citation = "S. P. Lloyd, Least squares quantization in PCM, IEEE Trans. Inf. Theory 1982; D. Arthur and S. Vassilvitskii, "
                "k-means++: the advantages of careful seeding, SODA 2007",
    .doc =
        "kmeans(t, \"volume, mean\", classes = 3) is a shorter name. Lloyd's method from the best of three starts that k-means++ "
        "chooses; the same seed gives the same classes. Of more than 65536 rows the classes are found from an even sample. "
        "Tables of a collection are put into classes together. The table may be larger than memory.",
    .example = "cells = measure(label(phantom(\"cells\", [200, 200]) > 60), phantom(\"cells\", [200, 200]))\n"
               "kmeans(cells, \"voxels, mean\", classes = 2, scale = true)",
    .see = "kmeans with group",
    .columns = columns,
};
