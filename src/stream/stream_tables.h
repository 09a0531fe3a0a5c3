/* Tables that grow with a stream: rows of committed batches go to SQLite databases and to files of lines. */
#ifndef FV_STREAM_TABLES_H
#define FV_STREAM_TABLES_H

#include "stream/item_runner.h"

typedef struct fv_grown { /* rows for one table of one file, in order */
    char         *file, *table;
    fv_table_type type;
    int64_t       nrows;
    fv_bytes      rows;
} fv_grown;

typedef struct fv_text_end { /* of a file of lines: where the rows that it surely has end */
    char   *file;
    int64_t length;
} fv_text_end;

typedef struct fv_stream_tables {
    fv_grown    *grown;
    int          ngrown;
    int64_t      nrows;
    fv_text_end *ends;
    int          nends;
} fv_stream_tables;

/* Rows that wait: added to those of the same table. */
void fv__tables_add(fv_stream_tables *tables, const char *file, const char *table, const fv_table_type *type, int64_t nrows,
                    const void *rows, size_t size);
/* Files of lines are cut where their sure rows end, so that none is there twice. */
fv_status fv__tables_cut(const fv_stream_tables *tables, fv_error *error);
void      fv__tables_end(fv_stream_tables *tables, const char *file, int64_t length);
/* Where rows are added to a file of lines: behind its sure ones, or at its end if somebody made it shorter or removed it. */
int64_t fv__tables_end_of(const fv_stream_tables *tables, const char *file);
/* Writes all rows that wait. name, number: of the batch; the same ones again change nothing. */
fv_status fv__tables_write(fv_stream_tables *tables, const char *name, uint64_t number, fv_error *error);
void      fv__tables_clear(fv_stream_tables *tables); /* rows that wait */
void      fv__tables_release(fv_stream_tables *tables);

#endif
