/* The parts of the TIFF format: pages of a file as libtiff sees them, decoded pieces, axes told in the description, writing. */
#ifndef FV_TIFF_PARTS_H
#define FV_TIFF_PARTS_H

#include "op/format.h"
#include <tiffio.h>

extern const fv_format fv_format_tiff, fv_format_ome_tiff;

/* ---------------------------------------------------------------- handles
 * One libtiff object on a shared descriptor. Used by one thread at a time; what libtiff complains about is kept here. */
typedef struct fv_tiff_handle {
    struct fv_tiff_handle *next; /* in the reader's list of idle ones */
    TIFF                  *tif;
    int                    fd; /* borrowed */
    const char            *path;
    int64_t                position, size;
    uint64_t               ifd;          /* offset of the directory in use */
    char                   message[256]; /* first complaint since the last fv__tiff_forget */
} fv_tiff_handle;

fv_status fv__tiff_open(int fd, const char *path, int64_t size, fv_tiff_handle **handle, fv_error *error); /* at the first page */
void      fv__tiff_close(fv_tiff_handle *handle);
void      fv__tiff_forget(fv_tiff_handle *handle);
fv_status fv__tiff_fail(const fv_tiff_handle *handle, const char *what, fv_error *error); /* "PATH: what: libtiff's complaint" */

/* ---------------------------------------------------------------- one page */

typedef enum fv_tiff_mode {
    FV_TIFF_SAMPLES, /* the samples as they are stored */
    FV_TIFF_PALETTE, /* indices, looked up: RGB uint8 */
    FV_TIFF_RGBA,    /* colours that only libtiff's RGBA interface knows: RGB uint8 */
} fv_tiff_mode;

typedef struct fv_tiff_page {
    fv_tiff_mode mode;
    fv_dtype     dtype;
    int64_t      width, height, channels; /* of the image read */
    int          bits, samples, format, photometric, compression, planar, orientation;
    bool         half, subsidiary; /* float16; a thumbnail or mask */
    bool         tiled;
    int64_t      piece_width, piece_height; /* a tile, or a strip */
    int64_t      row_bytes, piece_bytes;    /* of a decoded piece (one plane of it if planar is separate) */
} fv_tiff_page;

/* Describes the current page. Sizes are checked against what the file can hold by fv__tiff_page_check. */
fv_status fv__tiff_page_describe(fv_tiff_handle *handle, fv_tiff_page *page, fv_error *error);
fv_status fv__tiff_page_check(const fv_tiff_handle *handle, const fv_tiff_page *page, fv_error *error);
bool      fv__tiff_page_same_kind(const fv_tiff_page *a, const fv_tiff_page *b); /* can be planes of one stack */
int64_t   fv__tiff_page_bytes(const fv_tiff_page *page); /* of all its samples as stored, without compression; -1 on overflow */
/* Offset of the pixels if they lie in the file as they are, one after another; -1 if not. */
int64_t     fv__tiff_page_flat(fv_tiff_handle *handle, const fv_tiff_page *page);
const char *fv__tiff_compression_name(int compression, char text[32]);

/* ---------------------------------------------------------------- decoding */

/* Where a part of one page goes: voxel (y, x, c) of the page is at data + ((y - start[0]) step[0] + ...) elements. */
typedef struct fv_tiff_target {
    char   *data;
    int64_t start[3], size[3], step[3]; /* y, x, c */
} fv_tiff_target;

fv_status fv__tiff_decode(fv_tiff_handle *handle, const fv_tiff_page *page, const fv_tiff_target *target, fv_error *error);
int64_t   fv__tiff_decode_memory(const fv_tiff_page *page);

/* The same piece by piece, not for FV_TIFF_RGBA. A piece is named by y, x and, where planes are kept apart, c of its first pixel.
 * Which a target meets: count[d] of them along each axis, from first[d] on. */
void fv__tiff_pieces(const fv_tiff_page *page, const fv_tiff_target *target, int64_t first[3], int64_t count[3]);
typedef struct fv_tiff_decoder fv_tiff_decoder; /* scratch, for pages that are cut alike */
fv_status fv__tiff_decoder_new(const fv_tiff_page *page, const char *path, fv_tiff_decoder **decoder, fv_error *error);
void      fv__tiff_decoder_free(fv_tiff_decoder *decoder);
void      fv__tiff_decoder_turn(fv_tiff_decoder *decoder, const fv_tiff_handle *handle, const fv_tiff_page *page); /* to a page */
void     *fv__tiff_decoder_pixels(const fv_tiff_decoder *decoder); /* room for a piece */
size_t    fv__tiff_piece_size(const fv_tiff_page *page);           /* bytes that a piece has as pixels */
fv_status fv__tiff_decode_piece(fv_tiff_decoder *decoder, fv_tiff_handle *handle, const fv_tiff_page *page, const int64_t at[3],
                                void *data, fv_error *error);
void      fv__tiff_place_piece(const fv_tiff_page *page, const int64_t at[3], const void *data, const fv_tiff_target *target);

/* ---------------------------------------------------------------- axes
 * What ImageJ, OME and tifffile write into the description says which axes the pages are and how large a voxel is. */

/* type comes as y x or y x c; the axes of the pages are put in front, spacing and units filled. resolution: pixels per unit
 * along x and y, 0 where unknown; unit: libtiff's RESUNIT_*. */
void fv__tiff_axes_read(const char *description, const double resolution[2], int unit, int64_t pages, fv_image_type *type);
/* Where OME's description says that the stage was at the first plane: z, y and x in pixels of the type; false: it does not say y
 * and x. */
bool fv__tiff_ome_stage(const char *description, const fv_image_type *type, double stage[3]);
/* ImageJ keeps stacks beyond 4 GB under a single directory: how many images it says there are, 1 if it says nothing. */
int64_t fv__tiff_imagej_images(const char *description);
/* Description (empty if there is nothing to tell) and resolution of an image to be written. hyperstack: in ImageJ's words,
 * whatever the order of the axes. */
void fv__tiff_axes_write(const fv_image_type *type, int channels_inside, bool hyperstack, fv_bytes *description,
                         double resolution[2], int *unit);
/* Whether the leading axes are among t z c, before y and x. */
bool fv__tiff_hyperstack_axes(const fv_image_type *type, int leading);

/* ---------------------------------------------------------------- channels */

enum { FV_TIFF_IMAGEJ_SIZES = 50838, FV_TIFF_IMAGEJ_METADATA = 50839 }; /* tags */

/* What OME's or ImageJ's metadata of the current page say of the channels of a type whose axes are known. */
void fv__tiff_channels_read(TIFF *tif, const char *description, fv_image_type *type);
void fv__tiff_ome_channels(const fv_image_type *type, int64_t channels, int64_t samples, fv_bytes *out);
/* The values of ImageJ's tags 50838 (32-bit sizes) and 50839 (bytes), for pages whose channels run fastest; false: there is
 * nothing to say. */
bool fv__tiff_imagej_metadata(const fv_image_type *type, int64_t pages, fv_bytes *sizes, fv_bytes *data);

/* ---------------------------------------------------------------- writing */

/* OME's XML: leading axes are pages, samples the colours of a pixel. */
void fv__tiff_ome_write(const fv_image_type *type, int leading, int64_t samples, fv_bytes *description);

fv_status fv__tiff_layout(const fv_image_file *file, fv_file_layout *layout, fv_error *error);
fv_status fv__tiff_create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **writer,
                          fv_error *error);
/* The same for OME-TIFF, which may have coarser levels. */
fv_status fv__tiff_ome_layout(const fv_image_file *file, fv_file_layout *layout, fv_error *error);
fv_status fv__tiff_ome_create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **writer,
                              fv_error *error);
fv_status fv__tiff_encode(fv_writer *writer, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error);
fv_status fv__tiff_assemble(fv_writer *writer, fv_pieces *pieces, fv_error *error);
fv_status fv__tiff_begin(fv_writer *writer, fv_error *error);
fv_status fv__tiff_put(fv_writer *writer, const fv_block *block, fv_error *error);
fv_status fv__tiff_sync(fv_writer *writer, fv_error *error);
void      fv__tiff_free_writer(fv_writer *writer);
void      fv__tiff_lzw(const uint8_t *data, size_t size, fv_bytes *out); /* appends */
/* A file longer than this becomes a BigTIFF: 2^32 - 1, less in a test. */
extern int64_t fv__tiff_classic_limit;

#endif
