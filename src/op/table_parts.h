/* A folder of table files that are one table, as Spark and Dask write it: part-00000.parquet, part-00001.parquet, _SUCCESS. */
#ifndef FV_TABLE_PARTS_H
#define FV_TABLE_PARTS_H

#include "op/format.h"

/* Reads the parts in order of name. Columns are put together by name; of files that are empty or hidden (a name that begins with
 * a dot or an underscore) nothing is taken. Not in the list of formats: a folder has no extension of its own. */
extern const fv_table_format fv_table_of_parts;

/* True if the path is a folder in which all that is not hidden are table files. */
bool fv__table_is_parts(const char *path);

/* Feeds the hasher what tells whether a table file, or any part of a folder of them, has changed. */
fv_status fv__table_identify(const char *path, fv_hasher *hasher, fv_error *error);

#endif
