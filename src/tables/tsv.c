/* TSV: as CSV, with tabs between the values. */
#include "tables/csv_read.h"

const fv_table_format fv_table_tsv = {
    .name = "tsv",
    .extensions = "tsv tab",
    .brief = "text, one row on each line, values separated by tabs",
    .write = fv__tsv_write,
    .open = fv__tsv_open,
    .close = fv__csv_close,
};
