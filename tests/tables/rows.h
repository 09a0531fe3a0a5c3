/* Made-up rows for the tests of table formats. */
#ifndef FV_TEST_ROWS_H
#define FV_TEST_ROWS_H

#include "op/format.h"
#include "support/test.h"

/* Rows of an array in batches. */
typedef struct rows_source {
    fv_table_source base;
    const fv_cell  *cells;
    int             ncolumns;
    int64_t         nrows, batch, at;
} rows_source;

static inline fv_status rows_next(fv_table_source *source, const fv_cell **cells, int64_t *nrows, fv_error *error) {
    (void)error;
    rows_source *s = (rows_source *)source;
    *nrows = FV_MIN(s->batch, s->nrows - s->at);
    *cells = s->cells + s->at * s->ncolumns;
    s->at += *nrows;
    return FV_OK;
}

static inline rows_source rows_of(const fv_cell *cells, int ncolumns, int64_t nrows, int64_t batch) {
    return (rows_source){ .base.next = rows_next, .cells = cells, .ncolumns = ncolumns, .nrows = nrows, .batch = batch };
}

/* n rows of: integer first + i, real (first + i) / 7. */
static inline fv_cell *rows_pattern(int64_t first, int64_t n) {
    fv_cell *cells = fv__alloc((size_t)FV_MAX(n, 1) * 2 * sizeof *cells);
    for (int64_t i = 0; i < n; i++) {
        cells[i * 2].integer = first + i;
        cells[i * 2 + 1].real = (double)(first + i) / 7;
    }
    return cells;
}

static const fv_table_type pattern_type = { 2, { { "label", FV_COLUMN_INTEGER }, { "size", FV_COLUMN_REAL } } };

#endif
