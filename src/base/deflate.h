/* Deflate of whole pieces, each in one call and without history, so that the bytes depend on data and level alone. */
#ifndef FV_DEFLATE_H
#define FV_DEFLATE_H

#include "base/base.h"

/* 1 to 3: isa-l, fast. 4 to 9: zlib at that level, slow and a little smaller. */
#define FV_DEFLATE_LEVELS 9

typedef enum fv_deflate_form {
    FV_DEFLATE_PIECE, /* part of a longer stream: ends at a byte, is not the last block */
    FV_DEFLATE_ZLIB,  /* a whole zlib stream */
    FV_DEFLATE_GZIP,  /* a whole gzip member without name and time */
} fv_deflate_form;

/* Appends to out; size below 2^31. */
void    fv__deflate(const void *data, size_t size, int level, fv_deflate_form form, fv_bytes *out);
int64_t fv__deflate_memory(int64_t size); /* bytes needed beside the data, output included, at most */

#endif
