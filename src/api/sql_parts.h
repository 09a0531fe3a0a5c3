/* What queries and estimates of tables share. */
#ifndef FV_SQL_PARTS_H
#define FV_SQL_PARTS_H

#include "base/base.h"
#include <fovea/sql.h>
#include <sqlite3.h>

struct fv_sql {
    sqlite3      *handle;
    sqlite3_stmt *statement;
    bool          guarded; /* the statement is the user's: it may only read */
    fv_bytes      text;    /* of the value last asked for as text */
    fv_bytes      only;    /* stems that are views, each with the name of the only table that it is */
};

/* Text of SQLite's; path: what an error is about. */
fv_status fv__sql_execute(fv_sql *sql, const char *path, char *text_take, fv_error *error);

#endif
