/* Tilt angles of an electron tomography series, from the text files that lie beside it. */
#ifndef FV_TILTS_H
#define FV_TILTS_H

#include "base/base.h"

enum { FV_TILTS_MOST = 100000 };

typedef struct fv_tilts {
    double *angle; /* degrees */
    int     count;
    char   *source; /* what they were taken from */
} fv_tilts;

void fv__tilts_add(fv_tilts *tilts, double angle);
void fv__tilts_release(fv_tilts *tilts);
/* From a .tlt or .rawtlt file (a number a line) or a .mdoc (lines TiltAngle = number). On failure tilts are empty. */
fv_status fv__tilts_read(const char *path, fv_tilts *tilts, fv_error *error);
/* SERIES.tlt, SERIES.rawtlt or the .mdoc of SerialEM beside the image file; none or unreadable ones leave tilts empty. */
void fv__tilts_find(const char *image_path, fv_tilts *tilts);

#endif
