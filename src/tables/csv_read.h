/* CSV and TSV, which differ in the separator alone; see csv.c for the format. */
#ifndef FV_CSV_READ_H
#define FV_CSV_READ_H

#include "op/format.h"

fv_status fv__csv_open(const char *path, const char *table, fv_table_reader **reader, fv_error *error);
fv_status fv__tsv_open(const char *path, const char *table, fv_table_reader **reader, fv_error *error);
void      fv__csv_close(fv_table_reader *reader);
fv_status fv__tsv_write(const char *path, const char *existing, const fv_table_type *type, const fv_table_options *options,
                        fv_table_source *source, fv_error *error);

#endif
