/* NIfTI headers, versions 1 and 2: to an image type and back. */
#ifndef FV_NIFTI_HEADER_H
#define FV_NIFTI_HEADER_H

#include "base/base.h"
#include <fovea/image.h>

enum { FV_NIFTI_1 = 348, FV_NIFTI_2 = 540, FV_NIFTI_EXTENDER = 4 }; /* sizes of the headers and of what follows them */

typedef struct fv_nifti_header {
    int           version;     /* 1 or 2 */
    bool          swapped;     /* the other byte order */
    bool          pair;        /* voxels lie in a .img file */
    int64_t       data_offset; /* of the first voxel in the file that holds them */
    fv_dtype      stored;      /* element type in the file; RGB is uint8 with a last axis c */
    bool          scaled;      /* value = slope * stored + inter */
    double        slope, inter;
    fv_image_type type; /* what is read; its dtype differs from stored if scaled */
    char          description[81];
} fv_nifti_header;

/* How long the header is, from its first four bytes. */
size_t    fv__nifti_size(const uint8_t start[4]);
fv_status fv__nifti_parse(const uint8_t *bytes, size_t size, const char *path, fv_nifti_header *header, fv_error *error);

/* Appends the header of a single file and its (empty) list of extensions, so that voxels follow directly. NIfTI-1, or
 * NIfTI-2 where an axis is longer than 32767. */
fv_status fv__nifti_compose(const fv_image_type *type, const char *path, fv_bytes *out, fv_error *error);

#endif
