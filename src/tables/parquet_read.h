/* A Parquet file read as a table. Internal to tables/parquet*.c. */
#ifndef FV_PARQUET_READ_H
#define FV_PARQUET_READ_H

#include "op/format.h"

/* What one statement of ours may keep in the library at a time. */
#define FV_PARQUET_MEMORY ((int64_t)512 << 20)

fv_status fv__parquet_open(const char *path, const char *table, fv_table_reader **reader, fv_error *error);
/* The same to read row groups one by one. */
fv_status fv__parquet_open_blocks(const char *path, fv_table_reader **reader, fv_error *error);
fv_status fv__parquet_seek(fv_table_reader *reader, int64_t block, fv_error *error);
void      fv__parquet_close(fv_table_reader *reader);
/* Whether the file's footer has the entry that image files of Fovea have. */
bool fv__parquet_holds_image(const char *path);

#endif
