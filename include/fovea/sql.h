/* SQL on table files: SQLite databases, CSV, JSON lines, several at once.
 *
 *     fv_sql *sql = fv_sql_new();
 *     if (fv_sql_add(sql, "animals.csv", &error) == FV_OK && fv_sql_add(sql, "cells.db", &error) == FV_OK &&
 *         fv_sql_query(sql, "SELECT avg(volume) FROM cells WHERE type = 'cancer'", &error) == FV_OK)
 *         while (fv_sql_next(sql, &row, &error) == FV_OK && row)
 *             puts(fv_sql_text(sql, 0));
 *     fv_sql_free(sql);
 *
 * A file is a table under its own stem. A database's tables have their own names too, and STEM.TABLE where two files have one
 * of the same name. Files are never changed: only statements that read are allowed. One thread at a time.
 */
#ifndef FOVEA_SQL_H
#define FOVEA_SQL_H

#include <fovea/api.h>
#include <fovea/status.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct fv_sql fv_sql;

typedef enum fv_sql_kind { FV_SQL_MISSING, FV_SQL_INTEGER, FV_SQL_REAL, FV_SQL_TEXT } fv_sql_kind;

FV_API fv_sql   *fv_sql_new(void);
FV_API void      fv_sql_free(fv_sql *sql);
FV_API fv_status fv_sql_add(fv_sql *sql, const char *path, fv_error *error);
/* The same for fv_sql_estimate and nothing else: of a Parquet file with at least 32 row groups, only those are read that are
 * taken into the sample. */
FV_API fv_status fv_sql_add_sampled(fv_sql *sql, const char *path, fv_error *error);
/* One statement; its rows then come by fv_sql_next. */
FV_API fv_status fv_sql_query(fv_sql *sql, const char *text, fv_error *error);
/* The same from a random part of the rows: SELECT of count, sum, avg and total, and of the columns of GROUP BY, from one table,
 * with WHERE, ORDER BY and LIMIT. Behind each of them come columns NAME_low and NAME_high, at the end confidence, seen, blocks
 * and method. Blocks of neighbouring rows are what is sampled. */
typedef struct fv_sql_within {
    double   time, error; /* seconds, or half the width of each interval as a part of its value; the other one is 0 */
    double   confidence;
    bool     joint; /* all intervals hold at once */
    uint64_t seed;
} fv_sql_within;
FV_API fv_status   fv_sql_estimate(fv_sql *sql, const char *text, const fv_sql_within *within, fv_error *error);
FV_API int         fv_sql_columns(const fv_sql *sql);
FV_API const char *fv_sql_column(const fv_sql *sql, int column); /* its name */
/* Steps to the next row; row: false after the last. */
FV_API fv_status fv_sql_next(fv_sql *sql, bool *row, fv_error *error);
/* Values of the row, valid until the next step. Bytes that are no text are shown as hexadecimal digits. */
FV_API fv_sql_kind fv_sql_value(const fv_sql *sql, int column);
FV_API int64_t     fv_sql_integer(const fv_sql *sql, int column);
FV_API double      fv_sql_real(const fv_sql *sql, int column);
FV_API const char *fv_sql_text(fv_sql *sql, int column); /* of numbers the shortest that reads back the same; "" if missing */

#endif
