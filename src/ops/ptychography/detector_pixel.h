/* Which pixel of a detector measures what: it may be turned, and far away or near by. */
#ifndef FV_DETECTOR_PIXEL_H
#define FV_DETECTOR_PIXEL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fv_detector {
    int64_t height, width, orientation; /* 4: rows and columns change places; then 2: rows are flipped, 1: columns are */
    bool    near;                       /* it sees places, and not frequencies */
} fv_detector;

#define FV_DETECTOR_ORIENTATION "4: rows and columns of a frame change places; then 2: rows are flipped, 1: columns are; added up"

/* The pixel of a frequency, of which 0 is in the middle of a frame; or near by of a place. */
static inline void fv__detector_pixel(const fv_detector *d, int64_t y, int64_t x, int64_t pixel[2]) {
    int64_t first = d->near ? 1 : 0, middle[2] = { d->near ? 0 : d->height / 2, d->near ? 0 : d->width / 2 };
    if (d->orientation & 2) y = (d->height - first - y) % d->height;
    if (d->orientation & 1) x = (d->width - first - x) % d->width;
    pixel[0] = ((d->orientation & 4 ? x : y) + middle[0]) % d->height;
    pixel[1] = ((d->orientation & 4 ? y : x) + middle[1]) % d->width;
}

#endif
