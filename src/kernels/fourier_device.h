/* Filters of rows by their spectrum (fourier.h) on OpenCL devices, where projections lie in a buffer with 16 rows innermost. */
#ifndef FV_FOURIER_DEVICE_H
#define FV_FOURIER_DEVICE_H

#include "devices/device.h"
#include "kernels/fourier.h"

/* Places are counted in bundles of 16 rows: column x of projection a, bundle g, is at a * pitch + first + g + x * step. */
typedef struct fv_fourier_rows {
    int     buffer, room; /* of the rows, and the first of three buffers that the filter may use */
    int64_t nangles, columns, bundles;
    int64_t pitch, first, step;
} fv_fourier_rows;

#define fv__fourier_device_bytes FV_ISA_NAME(fv__fourier_device_bytes)
#define fv__fourier_device_run FV_ISA_NAME(fv__fourier_device_run)

/* Bytes of the three buffers for a transform of length n. */
int64_t fv__fourier_device_bytes(int64_t n, int64_t nangles, int64_t bundles);
void    fv__fourier_device_run(const fv_fourier *f, fv_device *device, int lane, const fv_fourier_rows *rows);

#endif
