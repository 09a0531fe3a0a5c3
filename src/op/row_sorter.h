/* Rows of a table in another order, however many there are: what does not fit into a few megabytes goes to a nameless file in
 * sorted runs, which are merged when the rows are taken out again. Rows that are equal in their order come out as they came in.
 *
 *     fv_row_sorter *sorter = fv__row_sorter_new(type, order, context);
 *     fv__row_sorter_add(sorter, row, error);            for each row
 *     fv__row_sorter_next(sorter, &row, &number, error); until row is NULL
 *     fv__row_sorter_free(sorter);
 */
#ifndef FV_ROW_SORTER_H
#define FV_ROW_SORTER_H

#include "op/table_rows.h"

typedef struct fv_row_sorter fv_row_sorter;
typedef int (*fv_row_order)(const void *context, const fv_cell *a, const fv_cell *b);

/* order NULL: by number. type and context must live as long as the sorter. */
fv_row_sorter *fv__row_sorter_new(const fv_table_type *type, fv_row_order order, const void *context);
fv_status      fv__row_sorter_add(fv_row_sorter *sorter, const fv_cell *row, fv_error *error); /* numbered from 0 on */
fv_status      fv__row_sorter_add_numbered(fv_row_sorter *sorter, const fv_cell *row, int64_t number, fv_error *error);
/* After the last row was added. Cells and texts stay valid until the next call; NULL behind the last. number may be NULL. */
fv_status fv__row_sorter_next(fv_row_sorter *sorter, const fv_cell **row, int64_t *number, fv_error *error);
void      fv__row_sorter_free(fv_row_sorter *sorter);
/* Every row of a table input. */
fv_status fv__row_sorter_fill(fv_row_sorter *sorter, fv_results *pieces, fv_error *error);

/* An order by columns, the most important first. Missing values come last in either direction. */
typedef struct fv_row_keys {
    const fv_table_type *type;
    int                  count;
    struct {
        int  column;
        bool descending;
    } key[FV_MAX_COLUMNS];
} fv_row_keys;
/* From names apart by commas, "type, -volume"; - puts the largest first, where `signs` allows it. Empty or NULL: no keys. */
fv_status fv__row_keys_parse(fv_row_keys *keys, const char *parameter, const char *text, bool signs, const fv_table_type *type,
                             fv_error *error);
int       fv__row_keys_order(const void *keys, const fv_cell *a, const fv_cell *b);

#endif
