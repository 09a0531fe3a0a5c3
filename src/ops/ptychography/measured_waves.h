/* Transforms of a frame's waves beside what was measured. */
#ifndef FV_MEASURED_WAVES_H
#define FV_MEASURED_WAVES_H

#include "kernels/plane_fourier.h"
#include "op/op.h"

/* All modes of a frame, each a plane whose rows of re and im are a stride apart. */
typedef struct fv_measured_waves {
    fv_plane_fourier fourier;
    float           *planes;    /* modes, `plane` floats apart */
    float           *size, *by; /* of a row */
    int64_t          height, width, modes, stride, plane;
    void            *memory;
} fv_measured_waves;

/* Measured amplitudes, rows `row` apart; negative where there are none. */
typedef struct fv_measured {
    const float *amplitude;
    int64_t      row;
} fv_measured;

#define fv__measured_lay_out FV_ISA_NAME(fv__measured_lay_out)
#define fv__measured_compare FV_ISA_NAME(fv__measured_compare)

size_t fv__measured_lay_out(fv_measured_waves *k, int64_t height, int64_t width, int64_t modes, void *memory);
/* Waves that are transformed already are compared with what was measured, and get these amplitudes (divided by the number of
 * pixels, which the way back does not) if scale says so; all modes are scaled alike. sums: adds the differences of amplitudes,
 * and what was measured; NULL: nobody asks. */
void fv__measured_compare(const fv_measured_waves *k, const fv_measured *m, bool scale, double *sums);

static inline void fv__measured_transform(const fv_measured_waves *k, int64_t mode, bool inverse) {
    FV_ISA_NAME(fv__plane_fourier)(&k->fourier, k->planes + mode * k->plane, k->stride, inverse);
}

#endif
