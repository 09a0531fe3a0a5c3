/* Tables: named columns of 8-byte cells, row after row. */
#ifndef FOVEA_TABLE_H
#define FOVEA_TABLE_H

#include <stdint.h>

/* A natural column holds whole numbers from 0 to 2^64 - 1: a scalar of a uint64 image. Files that are read have none. */
typedef enum fv_column_kind { FV_COLUMN_INTEGER, FV_COLUMN_REAL, FV_COLUMN_TEXT, FV_COLUMN_NATURAL } fv_column_kind;

typedef struct fv_column {
    char           name[40];
    fv_column_kind kind;
} fv_column;

#define FV_MAX_COLUMNS 256

typedef struct fv_table_type {
    int         ncolumns;
    fv_column   column[FV_MAX_COLUMNS];
    const char *metadata; /* of the file that it came from, kept by formats that can: a JSON object of texts; NULL: none */
} fv_table_type;

/* Text is borrowed from whoever made the table. A missing real is NaN. */
typedef union fv_cell {
    int64_t     integer;
    uint64_t    natural;
    double      real;
    const char *text;
} fv_cell;

typedef struct fv_table {
    fv_table_type type;
    int64_t       nrows;
    fv_cell      *cell; /* nrows * ncolumns, row-major */
} fv_table;

#endif
