/* Rows of tables on their way from one operator to the next: written some at a time, read piece by piece or loaded whole.
 *
 * A piece is a result of an operator's last pass and holds whole rows. Of a table without text it is nothing but its cells. With
 * text it is the number of rows (int64), the cells, in which a text is the offset of its bytes in the piece (0: missing), and
 * the texts, each ended by NUL.
 */
#ifndef FV_TABLE_ROWS_H
#define FV_TABLE_ROWS_H

#include "op/op.h"

bool fv__table_has_text(const fv_table_type *type);
/* Index of a column, -1 if there is none. */
int fv__table_column(const fv_table_type *type, const char *name);
/* Fails with the names that there are, and the nearest of them. parameter: what the user gave the name for. */
fv_status fv__table_find(const fv_table_type *type, const char *parameter, const char *name, int *column, fv_error *error);
double    fv__cell_number(fv_column_kind kind, fv_cell cell); /* of integers and reals */
bool      fv__cell_missing(fv_column_kind kind, fv_cell cell);

/* ---- reading ---- */
/* The rows of a piece; texts point into the piece, cells into it or into scratch. */
fv_status fv__piece_rows(const fv_table_type *type, const void *data, size_t size, fv_bytes *scratch, const fv_cell **rows,
                         int64_t *nrows, fv_error *error);

/* Every row of a table input, in order. */
typedef fv_status (*fv_row_visit)(void *context, const fv_cell *row, fv_error *error);
fv_status fv__table_each(fv_results *pieces, const fv_table_type *type, fv_row_visit visit, void *context, fv_error *error);

typedef struct fv_loaded { /* a whole table in memory */
    const fv_table_type *type;
    fv_cell             *cell;
    int64_t              nrows, capacity;
    fv_arena             texts;
} fv_loaded;
fv_status fv__table_load(fv_results *pieces, const fv_table_type *type, fv_loaded *table, fv_error *error);
fv_status fv__loaded_add(void *table, const fv_cell *row, fv_error *error); /* an fv_row_visit; type must be set */
void      fv__loaded_release(fv_loaded *table);
/* Order of two cells of a column; missing ones come last. */
int fv__cell_order(fv_column_kind kind, fv_cell a, fv_cell b);

/* ---- writing ---- */
typedef struct fv_row_writer {
    fv_finish *f;
    fv_cell   *rows;
    int64_t    nrows, nput;
    fv_bytes   texts;
} fv_row_writer;

void      fv__row_writer_init(fv_row_writer *writer, fv_finish *f);
fv_status fv__row_writer_next(fv_row_writer *writer, fv_cell **row, fv_error *error); /* every cell must be filled */
/* Fills a cell of the row from one of another table, text or not; NULL: missing. */
void      fv__row_writer_text(fv_row_writer *writer, fv_cell *cell, const char *text);
void      fv__row_writer_copy(fv_row_writer *writer, fv_column_kind kind, fv_cell *cell, fv_cell from);
fv_status fv__row_writer_flush(fv_row_writer *writer, fv_error *error); /* after the last row */
void      fv__row_writer_release(fv_row_writer *writer);

/* ---- operators whose tasks give whole rows: all of them, in order of the chunks ---- */
fv_status fv__finish_rows(fv_finish *f, fv_error *error);

/* ---- operators on tables alone: a single task that does nothing, and an end that does the work ---- */
fv_status fv__run_nothing(fv_run *r, fv_error *error);

#endif
