/* Reading tables of SQLite databases; see sqlite.c for the format. */
#ifndef FV_SQLITE_READ_H
#define FV_SQLITE_READ_H

#include "op/format.h"

fv_status fv__sqlite_open(const char *path, const char *table, fv_table_reader **reader, fv_error *error);
fv_status fv__sqlite_tables(const char *path, fv_bytes *names, fv_error *error);
void      fv__sqlite_settle(const char *path); /* of what a writer left that did not come to its end */
void      fv__sqlite_close(fv_table_reader *reader);

#endif
