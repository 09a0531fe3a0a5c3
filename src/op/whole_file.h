/* Whole images in files of any format, for operators that hand them to somebody else and take others back. */
#ifndef FV_WHOLE_FILE_H
#define FV_WHOLE_FILE_H

#include "op/format.h"

/* Whether an image of this type can be written under a name with this ending. */
fv_status fv__whole_file_check(const char *ending, const fv_image_type *type, fv_error *error);
/* The block is the whole image. The file is not made durable. */
fv_status fv__whole_file_write(const char *path, const fv_image_type *type, const fv_block *block, fv_error *error);
/* Reads all voxels of a file into memory for an image of this type, one after another. The file must have this element type and,
 * but for axes of one voxel, this shape (uint8 for bool); the message says what it has instead. */
fv_status fv__whole_file_read(const char *path, const fv_image_type *type, void *voxels, fv_error *error);

#endif
