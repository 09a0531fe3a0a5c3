/* Voxels of VTI files that are written as text: numbers, or bytes as base64. */
#ifndef FV_VTI_TEXT_H
#define FV_VTI_TEXT_H

#include "formats/vti_xml.h"

/* Decodes the text of the array into a nameless file, which then holds what an appended raw array would: the number of bytes and
 * the voxels, or the table of blocks and these; numbers become voxels alone, in this machine's byte order. values: as many as
 * there should be. */
fv_status fv__vti_decode(const fv_vti_facts *facts, int fd, const char *path, int64_t file_size, int64_t values, int *decoded,
                         int64_t *size, fv_error *error);

#endif
