/* Fourier transforms of planes in single precision, in cache, with the same bits everywhere: for waves that are transformed again
 * and again (ptychography). spectrum.h has the same in double precision and for any length.
 *
 *     fv_plane_fourier f;                                                  bytes = fv__plane_fourier_bytes(height, width)
 *     FV_ISA_NAME(fv__plane_fourier_prepare)(&f, height, width, memory);
 *     FV_ISA_NAME(fv__plane_fourier)(&f, plane, stride, false);
 *
 * Row y of a plane is at plane + y * stride: the real parts of its numbers, and then the imaginary ones. Both sides must be
 * lengths without a prime factor above 7 (fv__plane_fourier_able). Neither direction divides by the number of pixels.
 */
#ifndef FV_PLANE_FOURIER_H
#define FV_PLANE_FOURIER_H

#include "base/isa.h"

typedef struct fv_plane_axis {
    int64_t  n;
    float   *turn;  /* cosine and sine of k / n turns */
    int64_t *place; /* where number k is at first */
} fv_plane_axis;

enum { FV_PLANE_LINES = 16 }; /* that are transformed at once */

/* It has memory to work in, so each thread needs its own. */
typedef struct fv_plane_fourier {
    fv_plane_axis axis[2]; /* height, width */
    float        *bundle;  /* lines that are worked on */
    float        *turned;  /* the plane between its two axes */
} fv_plane_fourier;

/* A stride for rows of n numbers. Rows that are a power of two apart would fall on each other in a cache. */
static inline int64_t fv__plane_stride(int64_t n) { return (2 * n + 15) / 16 * 16 + 16; }

bool    FV_ISA_NAME(fv__plane_fourier_able)(int64_t n);
int64_t FV_ISA_NAME(fv__plane_fourier_bytes)(int64_t height, int64_t width);
void    FV_ISA_NAME(fv__plane_fourier_prepare)(fv_plane_fourier *f, int64_t height, int64_t width, void *memory);
void    FV_ISA_NAME(fv__plane_fourier)(const fv_plane_fourier *f, float *plane, int64_t stride, bool inverse);
/* Half of it: axis 0 transforms the columns of [height][width] and leaves [width][height], axis 1 the columns of that and leaves
 * [height][width]. One after the other are the whole. */
void FV_ISA_NAME(fv__plane_fourier_half)(const fv_plane_fourier *f, int axis, const float *from, int64_t from_stride, float *to,
                                         int64_t to_stride, bool inverse);

/* There and back with something to do between, on a strip of the spectrum while it is near: first half 0 into `turned`; then for
 * every 16 rows of the spectrum, from row `first` on, a strip of it and the way back; at last the columns.
 * Of a strip, number k of the rows is at k * 2 * 16: 16 real parts, then as many imaginary ones. by: a factor of each number;
 * that of number k of row l is at k * 16 + l. */
void FV_ISA_NAME(fv__plane_fourier_strip)(const fv_plane_fourier *f, const float *turned, int64_t first, float *strip);
void FV_ISA_NAME(fv__plane_fourier_strip_back)(const fv_plane_fourier *f, const float *strip, const float *by, int64_t first,
                                               float *plane, int64_t stride);
void FV_ISA_NAME(fv__plane_fourier_columns_back)(const fv_plane_fourier *f, float *plane, int64_t stride);

#endif
