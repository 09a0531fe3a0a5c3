/* What a table file holds. Internal to api. */
#ifndef FV_DESCRIBE_TABLE_H
#define FV_DESCRIBE_TABLE_H

#include "op/format.h"
#include <cjson/cJSON.h>

/* Every table of the file, or the one asked for: columns, what they hold, rows. */
fv_status fv__table_file_text(const fv_table_format *format, const char *path, const char *table, fv_bytes *out, fv_error *error);
fv_status fv__table_file_json(const fv_table_format *format, const char *path, const char *table, cJSON **json, fv_error *error);

#endif
