/* Tables of transforms: each task gives records that begin with the number of their row, and the table has them in its order. */
#ifndef FV_NUMBERED_ROWS_H
#define FV_NUMBERED_ROWS_H

#include "base/isa.h"
#include "op/table_rows.h"

#define fv__numbered_rows FV_ISA_NAME(fv__numbered_rows)

/* Makes rows of count records in order. */
typedef fv_status fv_numbered_put(fv_finish *f, const void *records, int64_t count, fv_row_writer *rows, fv_error *error);
/* The end of such a pass. size: bytes of a record, which begins with an int64_t. */
fv_status fv__numbered_rows(fv_finish *f, size_t size, fv_numbered_put *put, fv_error *error);

#endif
