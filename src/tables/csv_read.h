/* Reading CSV; see csv.c for the format. */
#ifndef FV_CSV_READ_H
#define FV_CSV_READ_H

#include "op/format.h"

fv_status fv__csv_open(const char *path, const char *table, fv_table_reader **reader, fv_error *error);
void      fv__csv_close(fv_table_reader *reader);

#endif
