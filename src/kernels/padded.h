/* Rows of an image with what lies around it, copied out as a boundary mode says. */
#ifndef FV_PADDED_H
#define FV_PADDED_H

#include "kernels/box.h"

/* n elements of 1, 2, 4 or 8 bytes that are all the same. */
static inline void fv__fill_elements(void *to, int64_t n, const void *element, size_t size) {
    if (size == 1) {
        memset(to, *(const uint8_t *)element, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i++) memcpy((char *)to + i * (int64_t)size, element, size);
}

/* Copies positions x ... x + count - 1 of row (z, y), image coordinates that may lie outside. `in` is the channel's first voxel
 * in the block. Where the constant is meant, and where no result looks, `constant` stands: an element of the image's type. */
static inline void fv__padded_row(const fv_side side[3], fv_border border, const void *in, int64_t z, int64_t y, int64_t x,
                                  int64_t count, size_t size, const void *constant, void *to) {
    const fv_side *sx = &side[FV_SIDE_X];
    int64_t        plane = fv__side_source(&side[FV_SIDE_Z], border, z), row = fv__side_source(&side[FV_SIDE_Y], border, y);
    char          *target = to;
    if (plane < 0 || row < 0) {
        fv__fill_elements(to, count, constant, size);
        return;
    }
    const char *from = (const char *)in + ((plane - side[FV_SIDE_Z].in_start) * side[FV_SIDE_Z].in_stride +
                                           (row - side[FV_SIDE_Y].in_start) * side[FV_SIDE_Y].in_stride) *
                                              (int64_t)size;
    int64_t first = FV_MAX(x, FV_MAX(0, sx->start - sx->before));
    int64_t last = FV_MIN(x + count, FV_MIN(sx->n, sx->end + sx->size - 1 - sx->before));
    if (first >= last) first = last = x + count;
    if (border == FV_BORDER_CONSTANT) {
        fv__fill_elements(target, first - x, constant, size);
        fv__fill_elements(target + (last - x) * (int64_t)size, x + count - last, constant, size);
    } else
        for (int64_t i = x; i < x + count; i++) {
            if (i == first) i = last;
            if (i >= x + count) break;
            int64_t     source = fv__side_source(sx, border, i);
            const char *element = source < 0 ? constant : from + (source - sx->in_start) * sx->in_stride * (int64_t)size;
            memcpy(target + (i - x) * (int64_t)size, element, size);
        }
    if (sx->in_stride == 1)
        memcpy(target + (first - x) * (int64_t)size, from + (first - sx->in_start) * (int64_t)size,
               (size_t)(last - first) * size);
    else
        for (int64_t k = first; k < last; k++)
            memcpy(target + (k - x) * (int64_t)size, from + (k - sx->in_start) * sx->in_stride * (int64_t)size, size);
}

/* With the mode constant, positions first ... last - 1 of such a row lie in the image, the others around it. */
static inline void fv__padded_inside(const fv_side side[3], int64_t z, int64_t y, int64_t x, int64_t count, int64_t *first,
                                     int64_t *last) {
    bool inside = z >= 0 && z < side[FV_SIDE_Z].n && y >= 0 && y < side[FV_SIDE_Y].n;
    *first = inside ? FV_MIN(FV_MAX(-x, 0), count) : count;
    *last = inside ? FV_MIN(FV_MAX(side[FV_SIDE_X].n - x, *first), count) : count;
}

#endif
