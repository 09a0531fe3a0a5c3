/* Rows of files whose values are text and whose columns have no types: what each column holds is found by looking at all
 * values, and then they are converted batch by batch.
 */
#ifndef FV_TYPED_ROWS_H
#define FV_TYPED_ROWS_H

#include "op/format.h"

/* What a column can still be. All values are looked at, so nothing is guessed from the first rows. */
typedef struct fv_typing {
    bool present, missing, not_integer, not_real;
} fv_typing;

/* text NULL: missing. numeric false: a value that is text even if it looks like a number. */
void           fv__typing_look(fv_typing *typing, const char *text, bool numeric);
fv_column_kind fv__typing_kind(const fv_typing *typing);

/* A batch of rows under way: cells whose texts lie in `text`, by offset until the batch is complete. */
typedef struct fv_batch {
    fv_bytes cells, text;
    int64_t  nrows;
} fv_batch;

enum { FV_BATCH_ROWS = 1024, FV_BATCH_TEXT = 1 << 20 };

void fv__batch_clear(fv_batch *batch);
/* Appends one value; after the last of a row call fv__batch_end_row. */
void fv__batch_add(fv_batch *batch, fv_column_kind kind, const char *text);
void fv__batch_end_row(fv_batch *batch);
bool fv__batch_full(const fv_batch *batch);
/* Turns offsets into pointers. */
const fv_cell *fv__batch_finish(fv_batch *batch, const fv_table_type *type);
void           fv__batch_release(fv_batch *batch);

/* Adds a column; an empty name becomes "column_N", one that is there already gets a number behind it. */
fv_status fv__table_add_column(fv_table_type *type, const char *name, const char *path, fv_error *error);

/* Appends a character. */
void fv__put_utf8(fv_bytes *out, uint32_t character);

#endif
