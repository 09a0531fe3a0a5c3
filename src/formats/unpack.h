/* Files that were packed one by one: gzip, bzip2, zstd, and zip archives that hold a single file. */
#ifndef FV_UNPACK_H
#define FV_UNPACK_H

#include "base/base.h"

typedef enum fv_packing { FV_PACKED_NOT, FV_PACKED_GZIP, FV_PACKED_BZIP2, FV_PACKED_ZSTD, FV_PACKED_ZIP } fv_packing;

const char *fv__packing_name(fv_packing packing);

/* No packed file of n bytes is unpacked to more: what claims to hold more is not what an instrument writes. */
int64_t fv__unpack_most(int64_t n);

/* Unpacks a file of so many bytes into another from its start. name: of the file inside, if the archive says so (the caller
 * frees), otherwise NULL. */
fv_status fv__unpack(int from, int64_t size, int to, const char *path, fv_packing *packing, char **name, int64_t *unpacked,
                     fv_error *error);

#endif
