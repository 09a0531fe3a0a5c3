/* Fourier transforms of lines, planes and volumes of any size, in double precision, with the same bits everywhere.
 *
 *     fv_spectrum axis[2];                                          one for each axis, in scratch
 *     bytes = fv__spectrum_bytes(height);                           (width likewise)
 *     FV_ISA_NAME(fv__spectrum_prepare)(&axis[0], height, memory);
 *     FV_ISA_NAME(fv__spectrum_image)(axis, 2, plane, false);       plane[height][width][2]: real and imaginary parts
 *
 * Lengths with no prime factor above 7 are transformed directly, and powers of two fastest (fv__spectrum_length pads to one). All
 * others go through a convolution whose length is a power of two (Bluestein, IEEE Trans. Audio 18, 1970), which takes about five
 * times as long. Two real images need one transform: a as real parts and b as imaginary ones; fv__spectrum_split then gives the
 * spectrum of each.
 * Filters of many rows, as fbp has them, take fourier.h instead: the same steps in single precision, with no spectrum in order.
 */
#ifndef FV_SPECTRUM_H
#define FV_SPECTRUM_H

#include "base/isa.h"

/* What transforms of one length need. It has memory to work in, so each thread needs its own. */
typedef struct fv_spectrum {
    int64_t  n, padded; /* of the convolution; 0: there is none */
    int64_t *place;     /* where number k is at first; NULL: at k */
    double  *turn;      /* cosine and sine of k / n turns, or k / padded */
    double  *chirp;     /* of a convolution: cosine and minus sine of k * k / 2n turns */
    double  *response;  /* of a convolution: what its spectrum is multiplied with */
    double  *rows[3];   /* bundles of lines that are worked on */
    void    *memory;    /* that all of these are in */
} fv_spectrum;

/* The power of two that is at least this. */
static inline int64_t fv__spectrum_length(int64_t least) {
    int64_t n = 1;
    while (n < least) n *= 2;
    return n;
}

/* The length that is at least this and transformed directly. */
static inline int64_t fv__spectrum_direct_length(int64_t least) {
    for (int64_t n = FV_MAX(least, 2);; n++) {
        int64_t rest = n;
        for (int64_t factor = 2; factor <= 7; factor++)
            while (rest % factor == 0) rest /= factor;
        if (rest == 1) return n;
    }
}

/* Bytes of memory for a transform of length n, and filling them. The memory is the caller's and is aligned to 64 bytes. */
int64_t FV_ISA_NAME(fv__spectrum_bytes)(int64_t n);
void    FV_ISA_NAME(fv__spectrum_prepare)(fv_spectrum *spectrum, int64_t n, void *memory);

/* `count` lines in place: number k of line i is at data[2 * (i * line + k * step)]. inverse: without the division by n. Several
 * lines at once are faster than one after another, and give the same bits. */
void FV_ISA_NAME(fv__spectrum_lines)(const fv_spectrum *spectrum, double *data, int64_t count, int64_t line, int64_t step,
                                     bool inverse);
/* An image of complex numbers in place, dense, with one spectrum for each of its axes. */
void FV_ISA_NAME(fv__spectrum_image)(const fv_spectrum *axes, int ndim, double *data, bool inverse);

/* The correlation of two real images, in one walk over their spectra: less than two thirds of a transform there and one back. */
typedef struct fv_spectrum_correlation {
    const fv_spectrum *axes; /* two or three */
    int                ndim;
    double            *data; /* image a as real parts, b as imaginary ones */
    /* Weights the product of a's spectrum and b's conjugate in place, at `count` neighbouring frequencies of the last axis from
     * `at` on: re[i], im[i]. It is asked for frequencies of the last axis up to the middle; the weight is even. */
    void (*weigh)(const void *context, const int64_t *at, int count, double *re, double *im);
    const void *context;
} fv_spectrum_correlation;

/* data becomes the correlation, without the division by the number of voxels: rows of reals, each at the place of its row of
 * complex numbers, so that voxel x of row r is data[2 * r * width + x]. */
void FV_ISA_NAME(fv__spectrum_correlate)(const fv_spectrum_correlation *correlation);

/* The spectra of a and b at one frequency, from that of a + ib there (here) and at the opposite frequency (there); a and b real.
 */
static inline void fv__spectrum_split(const double *here, const double *there, double *a, double *b) {
    a[0] = (here[0] + there[0]) / 2;
    a[1] = (here[1] - there[1]) / 2;
    b[0] = (here[1] + there[1]) / 2;
    b[1] = (there[0] - here[0]) / 2;
}

#endif
