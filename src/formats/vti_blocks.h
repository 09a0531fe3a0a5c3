/* Compressed voxels of VTI files: a table of sizes and then blocks, each packed by itself (zlib, LZ4, xz), all but the last of
 * equally many bytes. They are read by region, block by block, and packed, with zlib, by all workers at once. */
#ifndef FV_VTI_BLOCKS_H
#define FV_VTI_BLOCKS_H

#include "op/dense.h"
#include "op/format.h"

typedef enum fv_vti_packing { FV_VTI_PLAIN, FV_VTI_ZLIB, FV_VTI_LZ4, FV_VTI_LZMA } fv_vti_packing;
const char *fv__vti_packing_name(fv_vti_packing packing);

typedef struct fv_vti_blocks {
    fv_vti_packing packing;
    int64_t        count, size, total; /* of blocks; bytes of one and of all, unpacked */
    int64_t       *place;              /* where each begins in the file, and where the last ends */
    int64_t        largest;            /* packed */
} fv_vti_blocks;

/* The table at a place in the file, the packing is set already; its numbers have 8 bytes if wide, else 4. Together the blocks
 * must hold that many bytes. */
fv_status fv__vti_blocks_open(fv_vti_blocks *blocks, int fd, const char *path, int64_t at, int64_t file_size, bool wide,
                              bool swapped, int64_t bytes, fv_error *error);
void      fv__vti_blocks_release(fv_vti_blocks *blocks);
int64_t   fv__vti_blocks_memory(const fv_vti_blocks *blocks); /* that reading needs */
/* dense: type, shape and byte order; the offset does not matter. */
fv_status fv__vti_blocks_read(const fv_vti_blocks *blocks, const fv_dense *dense, int fd, const char *path, const fv_block *block,
                              fv_error *error);

/* The writer: XML up to the underscore, table and blocks, and what comes last. Takes both texts. */
fv_status  fv__vti_blocks_layout(const fv_image_file *file, fv_file_layout *layout, fv_error *error);
fv_writer *fv__vti_blocks_new(const fv_format *format, const fv_image_file *file, const fv_file_layout *layout,
                              const char *temporary, fv_bytes *header_take, fv_bytes *trailer_take);
fv_status  fv__vti_blocks_encode(fv_writer *writer, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error);
fv_status  fv__vti_blocks_assemble(fv_writer *writer, fv_pieces *pieces, fv_error *error);
void       fv__vti_blocks_free(fv_writer *writer);

#endif
