/* Transforms of a frame's waves beside what was measured. */
#ifndef FV_MEASURED_WAVES_H
#define FV_MEASURED_WAVES_H

#include "kernels/plane_fourier.h"
#include "op/op.h"

/* All modes of a frame, each a plane whose rows of re and im are a stride apart. */
typedef struct fv_measured_waves {
    fv_plane_fourier fourier;
    float           *planes;            /* modes, `plane` floats apart */
    float           *turned, *strips;   /* of each mode: columns that are transformed, and a strip of its spectrum */
    float           *size, *by, *given; /* of a row, or of a strip */
    float           *travel;            /* the way to a detector near by; NULL: it is far away */
    int64_t          height, width, modes, stride, plane;
    void            *memory;
} fv_measured_waves;

/* Measured amplitudes, rows `row` apart; negative where there are none. They count as if multiplied by `by`, for light that is
 * not always as bright. background: squared amplitudes of light that is not of the waves; NULL: none. */
typedef struct fv_measured {
    const float *amplitude;
    int64_t      row;
    float        by;
    const float *background;
    int64_t      background_row;
} fv_measured;

#define fv__measured_lay_out FV_ISA_NAME(fv__measured_lay_out)
#define fv__measured_project FV_ISA_NAME(fv__measured_project)
#define fv__measured_compare FV_ISA_NAME(fv__measured_compare)
#define fv__measured_light FV_ISA_NAME(fv__measured_light)
#define fv__measured_ratios FV_ISA_NAME(fv__measured_ratios)
#define fv__measured_travel FV_ISA_NAME(fv__measured_travel)

/* near: of a detector near by, wavelength times distance, by the area of a pixel; 0: it is far away. */
size_t fv__measured_lay_out(fv_measured_waves *k, int64_t height, int64_t width, int64_t modes, double near, void *memory);
/* Waves go to the detector, get the measured amplitudes there, all modes scaled alike, and come back. sums: as of compare. */
void fv__measured_project(const fv_measured_waves *k, const fv_measured *m, double *sums);
/* Waves that are transformed already are compared with what was measured, and get these amplitudes (divided by the number of
 * pixels, which the way back does not) if scale says so; all modes are scaled alike. sums: adds the differences of amplitudes,
 * and what was measured; NULL: nobody asks. */
void fv__measured_compare(const fv_measured_waves *k, const fv_measured *m, bool scale, double *sums);
/* Of waves that are transformed already: the factor of their amplitudes with which they have as many counts as were measured
 * (without `by`), from a twentieth to 20. */
double fv__measured_light(const fv_measured_waves *k, const fv_measured *m);
/* Adds measured amplitudes by those of the waves to the first `width` numbers of each row, and how many there are to the next. */
void fv__measured_ratios(const fv_measured_waves *k, const fv_measured *m, float *to);
/* To a detector near by, and back. */
void fv__measured_travel(const fv_measured_waves *k, float *plane, bool back);

static inline void fv__measured_transform(const fv_measured_waves *k, int64_t mode, bool inverse) {
    float *plane = k->planes + mode * k->plane;
    if (k->travel)
        fv__measured_travel(k, plane, inverse);
    else
        FV_ISA_NAME(fv__plane_fourier)(&k->fourier, plane, k->stride, inverse);
}

#endif
