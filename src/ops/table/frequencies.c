/* frequencies: how often each value of a column is there.
 *
 * Values are counted in a table of bounded size; when it is full, its counts go to a sorter, where those of one value meet again.
 */
#include "base/hash_table.h"
#include "base/take.h"
#include "op/row_sorter.h"
#include <stdlib.h>

typedef struct {
    const char *column;
} frequencies;

static const fv_param params[] = {
    FV_PARAM(frequencies, column, .doc = "column whose values are counted, such as \"word\" or \"class\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "table", FV_KIND_TABLE, .doc = "table whose rows are counted" }, FV_INPUT_END };

enum { VALUES = 1 << 16, TEXTS = 4 << 20 }; /* that are counted at a time */

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_table_type *in = i->in[0]->table;
    fv_table_type       *out = fv__arena_alloc(i->arena, sizeof *out);
    int                  column;
    FV_TRY(fv__table_find(in, "column", ((frequencies *)i->params)->column, &column, error));
    *out = (fv_table_type){ .ncolumns = 2, .column = { in->column[column], { "count", FV_COLUMN_INTEGER } } };
    if (!strcmp(in->column[column].name, "count"))
        return fv_fail(error, FV_ERROR_USAGE,
                       "column = \"count\": the result has a column count of its own; give this one another name with select");
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = out };
    return FV_OK;
}

typedef struct {
    fv_column_kind kind;
    int            column, nvalues;
    fv_cell       *value;
    int64_t       *count;
    fv_arena       texts;
    size_t         text_bytes;
    fv_hash_table  table;
    fv_row_sorter *by_value; /* value and count */
    fv_cell        sought;
} counting;

static bool same(const void *context, uint32_t number) {
    const counting *c = context;
    if (c->kind == FV_COLUMN_TEXT) return !strcmp(c->value[number].text, c->sought.text);
    return !fv__cell_order(c->kind, c->value[number], c->sought);
}

static uint64_t hash_of(fv_column_kind kind, fv_cell *cell) {
    if (kind == FV_COLUMN_REAL && cell->real == 0) cell->real = 0; /* -0 is 0 */
    return kind == FV_COLUMN_TEXT ? fv__hash_bytes(cell->text, strlen(cell->text)).low : fv__hash_bytes(cell, sizeof *cell).low;
}

/* Hands the counts to the sorter and begins anew. */
static fv_status hand_on(counting *c, fv_error *error) {
    for (int i = 0; i < c->nvalues; i++) {
        fv_cell row[2] = { c->value[i], { .integer = c->count[i] } };
        FV_TRY(fv__row_sorter_add(c->by_value, row, error));
    }
    memset(c->table.slot, 0, (size_t)(c->table.mask + 1) * 2 * sizeof *c->table.slot);
    fv__arena_release(&c->texts);
    c->texts = (fv_arena){ 0 };
    c->nvalues = 0;
    c->text_bytes = 0;
    return FV_OK;
}

static fv_status count_row(void *context, const fv_cell *row, fv_error *error) {
    counting *c = context;
    c->sought = row[c->column];
    if (fv__cell_missing(c->kind, c->sought)) return FV_OK;
    uint64_t  hash = hash_of(c->kind, &c->sought), place = fv__hash_table_find(&c->table, true, hash, same, c);
    uint32_t *slot = fv__hash_table_at(&c->table, true, place);
    if (slot[0]) {
        c->count[slot[0] - 1]++;
        return FV_OK;
    }
    if (c->nvalues == VALUES || c->text_bytes >= TEXTS) FV_TRY(hand_on(c, error));
    if (c->kind == FV_COLUMN_TEXT) {
        c->text_bytes += strlen(c->sought.text) + 1;
        c->sought.text = fv__arena_strdup(&c->texts, c->sought.text);
    }
    c->value[c->nvalues] = c->sought;
    c->count[c->nvalues] = 1;
    fv__hash_table_add(&c->table, true, hash, (uint32_t)c->nvalues++);
    return FV_OK;
}

/* Adds up the counts of each value, which come one after another, and gives the sums to the second sorter. */
static fv_status add_up(const counting *c, fv_row_sorter *by_count, fv_error *error) {
    fv_bytes  text = { 0 };
    fv_cell   sum[2];
    bool      any = false;
    fv_status status = FV_OK;
    while (status == FV_OK) {
        const fv_cell *row;
        status = fv__row_sorter_next(c->by_value, &row, NULL, error);
        if (status != FV_OK) break;
        if (row && any && !fv__cell_order(c->kind, sum[0], row[0])) {
            sum[1].integer += row[1].integer;
            continue;
        }
        if (any) status = fv__row_sorter_add(by_count, sum, error);
        if (!row) break;
        any = true;
        memcpy(sum, row, sizeof sum);
        if (c->kind != FV_COLUMN_TEXT) continue;
        fv__bytes_clear(&text);
        sum[0].text = fv__bytes_append(&text, row[0].text, strlen(row[0].text) + 1);
    }
    fv__bytes_release(&text);
    return status;
}

static fv_status put_rows(fv_finish *f, fv_row_sorter *by_count, fv_error *error) {
    fv_row_writer writer;
    fv_status     status = FV_OK;
    fv__row_writer_init(&writer, f);
    while (status == FV_OK) {
        const fv_cell *from;
        fv_cell       *row;
        status = fv__row_sorter_next(by_count, &from, NULL, error);
        if (status != FV_OK || !from) break;
        status = fv__row_writer_next(&writer, &row, error);
        if (status != FV_OK) break;
        fv__row_writer_copy(&writer, f->out->table->column[0].kind, &row[0], from[0]);
        row[1] = from[1];
    }
    if (status == FV_OK) status = fv__row_writer_flush(&writer, error);
    fv__row_writer_release(&writer);
    return status;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    const fv_table_type *in = f->in[0]->table, *out = f->out->table;
    fv_row_keys          value = { .type = out, .count = 1 }, count = { .type = out, .count = 2 };
    counting             c = { 0 };
    FV_TRY(fv__table_find(in, "column", ((const frequencies *)f->params)->column, &c.column, error));
    count.key[0].column = 1;
    count.key[0].descending = true;
    c.kind = in->column[c.column].kind;
    c.by_value = fv__row_sorter_new(out, fv__row_keys_order, &value);
    c.value = fv__alloc(VALUES * sizeof *c.value);
    c.count = fv__alloc(VALUES * sizeof *c.count);
    int64_t slots = fv__hash_table_slots(VALUES);
    c.table = (fv_hash_table){ fv__calloc((size_t)slots * 2 * sizeof *c.table.slot), (uint64_t)slots - 1 };
    fv_row_sorter *by_count = fv__row_sorter_new(out, fv__row_keys_order, &count);
    fv_status      status = fv__table_each(f->table[0], in, count_row, &c, error);
    if (status == FV_OK) status = hand_on(&c, error);
    if (status == FV_OK) status = add_up(&c, by_count, error);
    if (status == FV_OK) status = put_rows(f, by_count, error);
    fv__row_sorter_free(by_count);
    fv__row_sorter_free(c.by_value);
    fv__arena_release(&c.texts);
    free(c.value);
    free(c.count);
    free(c.table.slot);
    return status;
}

static const fv_pass passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<column>", .doc = "each value that the column has" },
    { "count", .doc = "number of rows that have it" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(frequencies) = {
    .name = "frequencies",
    .family = "table",
    .brief = "how often each value of a column is there, the most frequent first",
    .also = "value_counts, tabulate, bincount",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(frequencies),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .doc = "Values that are equally frequent come in their own order. Missing values are not counted. Tables of a collection are "
           "counted together. The table, and the number of different values, may be larger than memory.",
    .example =
        "cells = measure(label(phantom(\"cells\", [200, 200]) > 60)) |> with(\"size = if(voxels > 300, 'large', 'small')\")\n"
        "frequencies(cells, \"size\")",
    .see = "words top group distinct column_histogram",
    .columns = columns,
};
