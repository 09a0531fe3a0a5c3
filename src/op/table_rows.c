/* Rows of tables between operators; see table_rows.h. */
#include "op/table_rows.h"
#include "base/take.h"
#include <stdlib.h>

enum { ROWS = 1024, TEXTS = 1 << 20 }; /* put at a time */

/* ---------------------------------------------------------------- columns and cells */

bool fv__table_has_text(const fv_table_type *type) {
    for (int c = 0; c < type->ncolumns; c++)
        if (type->column[c].kind == FV_COLUMN_TEXT) return true;
    return false;
}

int fv__table_column(const fv_table_type *type, const char *name) {
    for (int c = 0; c < type->ncolumns; c++)
        if (!strcmp(type->column[c].name, name)) return c;
    return -1;
}

fv_status fv__table_find(const fv_table_type *type, const char *parameter, const char *name, int *column, fv_error *error) {
    const char *names[FV_MAX_COLUMNS];
    fv_bytes    list = { 0 };
    *column = fv__table_column(type, name);
    if (*column >= 0) return FV_OK;
    for (int c = 0; c < type->ncolumns; c++) {
        names[c] = type->column[c].name;
        fv__bytes_printf(&list, "%s%s", c ? ", " : "", names[c]);
    }
    const char *near = fv_nearest_word(name, names, type->ncolumns);
    fv_fail(error, FV_ERROR_USAGE, "%s: the table has no column %s%s%s%s; it has %s", parameter, name,
            near ? " (did you mean " : "", near ? near : "", near ? "?)" : "", list.data ? (char *)list.data : "none");
    fv__bytes_release(&list);
    return FV_ERROR_USAGE;
}

double fv__cell_number(fv_column_kind kind, fv_cell cell) {
    return kind == FV_COLUMN_INTEGER ? (double)cell.integer : kind == FV_COLUMN_NATURAL ? (double)cell.natural : cell.real;
}

bool fv__cell_missing(fv_column_kind kind, fv_cell cell) {
    return kind == FV_COLUMN_TEXT ? !cell.text : kind == FV_COLUMN_REAL && cell.real != cell.real;
}

int fv__cell_order(fv_column_kind kind, fv_cell a, fv_cell b) {
    if (kind == FV_COLUMN_INTEGER) return a.integer < b.integer ? -1 : a.integer > b.integer;
    if (kind == FV_COLUMN_TEXT) return a.text && b.text ? strcmp(a.text, b.text) : !a.text - !b.text;
    bool x = a.real != a.real, y = b.real != b.real;
    return x || y ? x - y : a.real < b.real ? -1 : a.real > b.real;
}

/* ---------------------------------------------------------------- reading */

static fv_status damaged(fv_error *error) { return fv_fail(error, FV_ERROR_INTERNAL, "rows of a table are damaged"); }

fv_status fv__piece_rows(const fv_table_type *type, const void *data, size_t size, fv_bytes *scratch, const fv_cell **rows,
                         int64_t *nrows, fv_error *error) {
    size_t width = (size_t)type->ncolumns * sizeof(fv_cell);
    *rows = data;
    *nrows = width ? (int64_t)(size / width) : 0;
    if (!size || !fv__table_has_text(type)) return FV_OK;
    if (size < sizeof *nrows || ((const char *)data)[size - 1]) return damaged(error);
    memcpy(nrows, data, sizeof *nrows);
    if (*nrows < 0 || (size_t)*nrows > (size - sizeof *nrows) / width) return damaged(error);
    fv__bytes_clear(scratch);
    FV_TRY(fv__bytes_need(scratch, (size_t)*nrows * width, error));
    fv_cell *cells = fv__bytes_append(scratch, (const char *)data + sizeof *nrows, (size_t)*nrows * width);
    for (int64_t r = 0; r < *nrows; r++)
        for (int c = 0; c < type->ncolumns; c++) {
            fv_cell *cell = &cells[r * type->ncolumns + c];
            if (type->column[c].kind != FV_COLUMN_TEXT) continue;
            uint64_t place = (uint64_t)cell->integer;
            if (place >= size) return damaged(error);
            cell->text = place ? (const char *)data + place : NULL;
        }
    *rows = cells;
    return FV_OK;
}

fv_status fv__table_each(fv_results *pieces, const fv_table_type *type, fv_row_visit visit, void *context, fv_error *error) {
    fv_bytes  scratch = { 0 };
    fv_status status = FV_OK;
    for (int64_t i = 0; i < pieces->count && status == FV_OK; i++) {
        const void    *data;
        size_t         size;
        const fv_cell *row;
        int64_t        nrows = 0;
        status = pieces->get(pieces, i, &data, &size, error);
        if (status == FV_OK) status = fv__piece_rows(type, data, size, &scratch, &row, &nrows, error);
        for (; nrows > 0 && status == FV_OK; nrows--, row += type->ncolumns) status = visit(context, row, error);
    }
    fv__bytes_release(&scratch);
    return status;
}

fv_status fv__loaded_add(void *table_, const fv_cell *row, fv_error *error) {
    fv_loaded *table = table_;
    int        n = table->type->ncolumns;
    if (table->nrows == table->capacity) {
        int64_t capacity = FV_MAX(2 * table->capacity, ROWS);
        FV_TRY(FV_TAKE_MORE(table->cell, (size_t)(capacity * n) * sizeof *table->cell, error));
        table->capacity = capacity;
    }
    fv_cell *to = table->cell + table->nrows++ * n;
    for (int c = 0; c < n; c++) {
        bool text = table->type->column[c].kind == FV_COLUMN_TEXT && row[c].text;
        to[c] = row[c];
        if (text) to[c].text = fv__arena_strdup(&table->texts, row[c].text);
    }
    return FV_OK;
}

fv_status fv__table_load(fv_results *pieces, const fv_table_type *type, fv_loaded *table, fv_error *error) {
    *table = (fv_loaded){ .type = type };
    return fv__table_each(pieces, type, fv__loaded_add, table, error);
}

void fv__loaded_release(fv_loaded *table) {
    free(table->cell);
    fv__arena_release(&table->texts);
}

/* ---------------------------------------------------------------- writing */

void fv__row_writer_init(fv_row_writer *writer, fv_finish *f) {
    *writer = (fv_row_writer){ .f = f, .rows = fv__alloc((size_t)(ROWS * f->out->table->ncolumns + 1) * sizeof(fv_cell)) };
}

fv_status fv__row_writer_next(fv_row_writer *writer, fv_cell **row, fv_error *error) {
    if (writer->nrows == ROWS || writer->texts.size >= TEXTS) FV_TRY(fv__row_writer_flush(writer, error));
    *row = writer->rows + writer->nrows++ * writer->f->out->table->ncolumns;
    return FV_OK;
}

/* Until the rows are put, a text is its place among the texts, from 1 on. */
void fv__row_writer_text(fv_row_writer *writer, fv_cell *cell, const char *text) {
    cell->integer = text ? (int64_t)writer->texts.size + 1 : 0;
    if (text) fv__bytes_append(&writer->texts, text, strlen(text) + 1);
}

void fv__row_writer_copy(fv_row_writer *writer, fv_column_kind kind, fv_cell *cell, fv_cell from) {
    if (kind == FV_COLUMN_TEXT)
        fv__row_writer_text(writer, cell, from.text);
    else
        *cell = from;
}

static fv_status put_with_texts(fv_row_writer *writer, size_t size, fv_error *error) {
    const fv_table_type *type = writer->f->out->table;
    int64_t              nrows = writer->nrows, texts = (int64_t)(sizeof nrows + size);
    for (int64_t r = 0; r < nrows; r++)
        for (int c = 0; c < type->ncolumns; c++) {
            fv_cell *cell = &writer->rows[r * type->ncolumns + c];
            if (type->column[c].kind == FV_COLUMN_TEXT && cell->integer) cell->integer += texts - 1;
        }
    fv__bytes_append(&writer->texts, "", 1); /* a piece ends in NUL even without any text */
    FV_TRY(writer->f->put(writer->f, writer->nput, &nrows, sizeof nrows, error));
    FV_TRY(writer->f->put(writer->f, writer->nput, writer->rows, size, error));
    FV_TRY(writer->f->put(writer->f, writer->nput, writer->texts.data, writer->texts.size, error));
    fv__bytes_clear(&writer->texts);
    writer->nput++;
    return FV_OK;
}

fv_status fv__row_writer_flush(fv_row_writer *writer, fv_error *error) {
    if (!writer->nrows) return FV_OK;
    size_t    size = (size_t)(writer->nrows * writer->f->out->table->ncolumns) * sizeof *writer->rows;
    fv_status status = fv__table_has_text(writer->f->out->table)
                           ? put_with_texts(writer, size, error)
                           : writer->f->put(writer->f, writer->nput++, writer->rows, size, error);
    writer->nrows = 0;
    return status;
}

void fv__row_writer_release(fv_row_writer *writer) {
    free(writer->rows);
    fv__bytes_release(&writer->texts);
}

fv_status fv__run_nothing(fv_run *r, fv_error *error) {
    (void)r, (void)error;
    return FV_OK;
}

fv_status fv__finish_rows(fv_finish *f, fv_error *error) {
    for (int64_t k = 0; k < f->npartials; k++) {
        const void *data;
        FV_TRY(f->partial(f, k, &data, error));
        FV_TRY(f->put(f, k, data, f->size(f, k), error));
    }
    return FV_OK;
}
