/* What queries and estimates of tables share. */
#ifndef FV_SQL_PARTS_H
#define FV_SQL_PARTS_H

#include "base/base.h"
#include <fovea/sql.h>
#include <sqlite3.h>

/* A file of which blocks of rows are read alone; its table holds the one that was read last. */
typedef struct fv_sql_blocks {
    char                         *name;
    const struct fv_table_format *format;
    struct fv_table_reader       *reader;
    sqlite3_stmt                 *insert;
} fv_sql_blocks;

/* A table of a file whose rows are read as they are asked for. */
typedef struct fv_sql_file {
    const struct fv_table_format *format;
    char                         *path, *table; /* table NULL: the only one of the file, or its first */
    char                         *name, *columns;
    int64_t                       nrows;
    struct fv_table_reader       *reader; /* for the first time; NULL: it was used */
} fv_sql_file;
extern const sqlite3_module fv__sql_rows;

struct fv_sql {
    fv_sql_file  **files;
    int            nfiles;
    bool           asked; /* a query went through them */
    fv_sql_blocks *blocks;
    int            nblocks;
    sqlite3       *handle;
    sqlite3_stmt  *statement;
    bool           guarded; /* the statement is the user's: it may only read */
    fv_bytes       text;    /* of the value last asked for as text */
    fv_bytes       only;    /* stems that are views, each with the name of the only table that it is */
};

/* Text of SQLite's; path: what an error is about. */
fv_status fv__sql_execute(fv_sql *sql, const char *path, char *text_take, fv_error *error);

/* The rows of all files are copied into the database, which is what a query needs that goes through them more than once. */
fv_status fv__sql_copy_files(fv_sql *sql, fv_error *error);

/* The table holds the rows of this block, and no others. */
fv_status fv__sql_load_block(fv_sql *sql, const fv_sql_blocks *blocks, int64_t block, fv_error *error);

#endif
