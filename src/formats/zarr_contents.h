/* What lies in a Zarr hierarchy, for people. */
#ifndef FV_ZARR_CONTENTS_H
#define FV_ZARR_CONTENTS_H

#include "base/base.h"

/* "name: what it is\n" for every array below a folder, levels and label images by what they are; to a bounded depth and number.
 */
fv_status fv__zarr_contents(const char *path, fv_bytes *lines, fv_error *error);

#endif
