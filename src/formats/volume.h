/* What formats share that are a header and voxels one after another, uncompressed or as one deflated stream (NIfTI, MRC, NRRD,
 * MetaImage, raw): reading by region, or in order where it is compressed, and the writer of compressed files.
 *
 *     typedef struct { fv_reader base; fv_volume volume; } reader;
 *
 *     FV_TRY(fv__volume_open(&r->volume, path, error));       gzip around the whole file is recognised
 *     FV_TRY(fv__volume_fetch(&r->volume, 0, header, 1024, error));
 *     r->volume.dense = (fv_dense){ .offset = 1024, ... };
 *     FV_TRY(fv__volume_check(&r->volume, "MRC", error));
 *     fv_volume_describe(&r->volume, &r->base);
 */
#ifndef FV_VOLUME_H
#define FV_VOLUME_H

#include "formats/gzip.h"
#include "op/dense_writer.h"

typedef struct fv_volume {
    int      fd;
    int64_t  file_size, time; /* of the file that holds the voxels: bytes, and when it changed */
    char    *path;            /* the file that holds the voxels */
    fv_gzip *gzip;            /* NULL: not compressed */
    fv_dense dense;           /* where the voxels lie, in the file or in its contents */
} fv_volume;

fv_status fv__volume_open(fv_volume *volume, const char *path, fv_error *error);
void      fv__volume_close(fv_volume *volume); /* also after a failed opening, and of a zeroed one with fd -1 */
/* From here on the file is a deflated stream; offsets count its contents. */
void      fv__volume_inflate(fv_volume *volume, int64_t start, fv_gzip_form form);
fv_status fv__volume_fetch(fv_volume *volume, int64_t offset, void *to, size_t size, fv_error *error);
/* What dense promises must be there, or be possible in a compressed file. */
fv_status fv__volume_check(const fv_volume *volume, const char *format, fv_error *error);
/* Layout of the reader: the whole image one chunk. Its identity, which is that of the header so far, becomes that of the voxels'
 * file too where this is another one. */
void fv__volume_layout(const fv_volume *volume, fv_reader *reader);
/* Where a header of text says that the voxels are. */
typedef struct fv_voxel_place {
    const char *format, *field; /* for messages: of the format, and of what `skip` comes from */
    const char *file;           /* another one, beside the header; NULL: behind it */
    int64_t     behind;         /* end of the header */
    int64_t     skip;           /* bytes before the voxels; -1: they end with the file */
    bool        packed;         /* one stream, gzip or zlib */
} fv_voxel_place;
/* Goes there; dense has type and shape already, and is checked. header: path of the file that was open so far. */
fv_status fv__volume_enter(fv_volume *volume, const char *header, const fv_voxel_place *place, fv_error *error);
/* Lines about compression, byte order and place. */
void      fv__volume_facts(const fv_volume *volume, const fv_voxel_place *place, fv_bytes *facts);
fv_status fv__volume_read(fv_volume *volume, const fv_block *block, fv_error *error);

/* The writer of one gzip member that holds the header and the voxels, these as the type stored, which every value fits into;
 * apart: the header stands uncompressed before it. header: its bytes. */
fv_status  fv__volume_gz_layout(const fv_image_file *file, fv_dtype stored, fv_file_layout *layout, fv_error *error);
fv_writer *fv__volume_gz_new(const fv_format *format, const fv_image_file *file, const fv_file_layout *layout,
                             const char *temporary, fv_dtype stored, fv_bytes *header_take, bool apart);
/* Another header, before assemble. */
void fv__volume_gz_replace(fv_writer *writer, fv_bytes *header_take);
/* Or: the voxels are a part of that name (op/output_parts.h), and the header ends where its path belongs. */
void      fv__volume_gz_apart(fv_writer *writer, const char *part);
fv_status fv__volume_gz_encode(fv_writer *writer, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error);
fv_status fv__volume_gz_assemble(fv_writer *writer, fv_pieces *pieces, fv_error *error);
/* The pieces with that of the header before them, which is to be released. */
typedef struct fv_headed_pieces {
    fv_pieces  base;
    fv_pieces *voxels;
    fv_bytes   header;
} fv_headed_pieces;
void            fv__volume_gz_headed(const fv_writer *writer, fv_pieces *pieces, fv_headed_pieces *all);
const fv_bytes *fv__volume_gz_header(const fv_writer *writer);
const char     *fv__volume_gz_part(const fv_writer *writer); /* NULL: all in one file */
void            fv__volume_gz_free(fv_writer *writer);
void            fv__volume_free(fv_writer *writer); /* that one or a dense one */

#endif
