/* The header of a numpy array, which stands alone in a file (NPY) or in an archive of them (NPZ). */
#ifndef FV_NPY_HEADER_H
#define FV_NPY_HEADER_H

#include "formats/volume.h"

/* The array that lies in the volume from offset to end: its type, shape, order and where its voxels begin go into volume->dense,
 * its identity into hash. That all voxels are there is for the caller to check. */
fv_status fv__npy_read_header(fv_volume *volume, int64_t offset, int64_t end, int *version, fv_hash *hash, fv_error *error);
/* Version 1.0, C order, native byte order. */
void fv__npy_make_header(const fv_image_type *type, fv_bytes *header);

#endif
