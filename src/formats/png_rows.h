/* Rows of a PNG file that is not interlaced, inflated by isa-l, which is two to three times as fast as what libpng uses. */
#ifndef FV_PNG_ROWS_H
#define FV_PNG_ROWS_H

#include "base/base.h"

typedef struct fv_png_rows fv_png_rows;

/* row_bytes: of a row as it is stored, without the filter's byte; pixel_bytes: what filters look back. The file and the path are
 * borrowed. NULL: no memory for a row. */
fv_png_rows *fv__png_rows_new(int fd, int64_t file_size, const char *path, int64_t rows, size_t row_bytes, size_t pixel_bytes);
void         fv__png_rows_free(fv_png_rows *rows);
/* The next row, as it is stored; valid until the next call. With the last one the checksum of all is looked at. */
fv_status fv__png_rows_next(fv_png_rows *rows, const uint8_t **row, fv_error *error);
int64_t   fv__png_rows_memory(size_t row_bytes);

#endif
