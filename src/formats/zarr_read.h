/* Boxes of a Zarr array, read from the files below its folder. */
#ifndef FV_ZARR_READ_H
#define FV_ZARR_READ_H

#include "formats/zarr_array.h"
#include "image/region.h"

/* Fills the block, whose region lies inside the array; missing chunks hold the fill value. */
fv_status fv__zarr_read(const fv_zarr_array *array, const char *folder, const fv_block *block, fv_error *error);
int64_t   fv__zarr_read_memory(const fv_zarr_array *array); /* bytes that it needs beyond the block, at most */
bool      fv__zarr_unpacks(const fv_zarr_array *array);     /* whether chunks are unpacked whole, however little is wanted */

/* Refuses a shape that nearly nothing of what lies in the array's folder stands for. */
fv_status fv__zarr_check_claim(const fv_image_type *type, const char *folder, fv_error *error);
/* Names, sizes and times of the files in a local array's folder: chunks may be written anew while the metadata stay. */
void fv__zarr_identify(const char *folder, fv_hasher *hasher);

#endif
