/* Filtered back-projection of cone beams on OpenCL devices: projections go through block by block, packed by the host while the
 * device filters and adds up the ones before. What a device cannot hold at once is made in pieces of slices and rows.
 */
#ifndef FV_CONE_DEVICE_H
#define FV_CONE_DEVICE_H

#include "kernels/cone_beam.h"
#include "kernels/fourier_device.h"
#include "op/device_kernel.h"

typedef struct fv_cone_job {
    fv_cone           cone;         /* first_row and nrows: what the whole region looks at */
    int64_t           first, count; /* slices, rounded up to bundles of 16 */
    bool              single;       /* one slice that looks at one row */
    const fv_fourier *fourier;
    /* Rows first ... of a projection, weighted, to to[columns][rows], which holds zeros; those outside the detector stay zero. */
    fv_status (*pack)(void *context, int64_t angle, int64_t first, int64_t rows, float *to, fv_error *error);
    void *context;
} fv_cone_job;

#define fv__cone_gather_least FV_ISA_NAME(fv__cone_gather_least)
#define fv__cone_gather_wanted FV_ISA_NAME(fv__cone_gather_wanted)
#define fv__cone_gather_run FV_ISA_NAME(fv__cone_gather_run)

/* region: of the volume. */
int64_t   fv__cone_gather_least(const fv_cone_job *job, const fv_region *region);
int64_t   fv__cone_gather_wanted(const fv_cone_job *job, const fv_region *region);
fv_status fv__cone_gather_run(fv_run *r, const fv_cone_job *job, fv_device *device, fv_error *error);

#endif
