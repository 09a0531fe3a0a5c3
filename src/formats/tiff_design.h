/* How a TIFF file is to be written: what follows from the type of the image and the options alone. */
#ifndef FV_TIFF_DESIGN_H
#define FV_TIFF_DESIGN_H

#include "formats/tiff_parts.h"

enum { FV_TIFF_DEFLATE, FV_TIFF_ZSTD, FV_TIFF_LZW, FV_TIFF_NONE }; /* as in the format's list of compressions */

typedef struct fv_tiff_design {
    int     compression, level;
    bool    tiled, predict, hyperstack;
    int     leading; /* axes that are pages */
    int64_t width, height, samples;
    int64_t piece_width, piece_height, pieces_a_page, pages;
    int     levels; /* of a pyramid, the image itself counted */
} fv_tiff_design;

/* pyramid: it may have coarser levels. design comes with zeros. */
fv_status fv__tiff_design(const fv_image_file *file, bool pyramid, fv_tiff_design *design, fv_error *error);
/* Pages of a hyperstack run t z c, c fastest, whatever the order of the axes: which page of the image is number `page` of the
 * file. */
int64_t fv__tiff_page_in_file(const fv_image_type *type, const fv_tiff_design *design, int64_t page);

#endif
