/* The writer of every format that is a header and then the voxels, uncompressed, last axis contiguous (NPY, raw, NIfTI, MRC).
 * Such a format calls fv__dense_layout in its layout(), fills a header in its create() and takes the rest from here:
 *
 *     fv_bytes header = { 0 };
 *     ...
 *     *writer = fv__dense_writer_new(&fv_format_npy, file, layout, temporary, &header);
 *
 *     .begin = fv__dense_begin, .put = fv__dense_put, .sync = fv__dense_sync, .finish = fv__dense_sync,
 *     .free_writer = fv__dense_free,
 */
#ifndef FV_DENSE_WRITER_H
#define FV_DENSE_WRITER_H

#include "op/dense.h"
#include "op/format.h"

/* The type has been checked: at least one axis, bytes below 2^63. stored, swapped: as for fv__dense_writer_store. */
void fv__dense_layout(const fv_image_type *type, fv_dtype stored, bool swapped, fv_file_layout *layout);
/* Takes the header's bytes; voxels begin right behind them. */
fv_writer *fv__dense_writer_new(const fv_format *format, const fv_image_file *file, const fv_file_layout *layout,
                                const char *temporary, fv_bytes *header_take);
/* Right after that, where the file differs from the image: it holds another element type, which every value fits into, or the
 * other byte order, or something follows the voxels. trailer_take may be NULL. */
void fv__dense_writer_store(fv_writer *writer, fv_dtype stored, bool swapped, fv_bytes *trailer_take);
/* Or: the voxels are a file of their own, a part of that name (op/output_parts.h); the header, which finish then writes, ends
 * where its path belongs. */
void fv__dense_writer_apart(fv_writer *writer, const char *part);
/* Another header of the same length, before finish. */
fv_status fv__dense_header(fv_writer *writer, fv_bytes *header_take, fv_error *error);
fv_status fv__dense_begin(fv_writer *writer, fv_error *error);
fv_status fv__dense_put(fv_writer *writer, const fv_block *block, fv_error *error);
fv_status fv__dense_sync(fv_writer *writer, fv_error *error);
fv_status fv__dense_finish(fv_writer *writer, fv_error *error); /* needed only where something lies apart */
void      fv__dense_free(fv_writer *writer);
/* The block's voxels one after another as another type, in memory for that many. */
fv_block fv__block_as(const fv_block *block, fv_dtype dtype, void *memory);

#endif
