/* Parallel beams on OpenCL devices: bundles of 16 slices packed by the host, projected and back-projected there. What a device
 * cannot hold at once goes through in pieces of rows or angles.
 */
#ifndef FV_BEAM_DEVICE_H
#define FV_BEAM_DEVICE_H

#include "kernels/fourier_device.h"
#include "op/device_kernel.h"
#include "ops/tomography/scan.h"

typedef struct fv_beam_job {
    fv_scan           scan;
    fv_beam           beam;
    float            *rows;    /* host room for 16 rows */
    fv_beam_weights   weights; /* of back-projection */
    const fv_fourier *fourier; /* filter before it; NULL: none */
} fv_beam_job;

#define fv__beam_project_least FV_ISA_NAME(fv__beam_project_least)
#define fv__beam_project_wanted FV_ISA_NAME(fv__beam_project_wanted)
#define fv__beam_project_run FV_ISA_NAME(fv__beam_project_run)
#define fv__beam_gather_least FV_ISA_NAME(fv__beam_gather_least)
#define fv__beam_gather_wanted FV_ISA_NAME(fv__beam_gather_wanted)
#define fv__beam_gather_run FV_ISA_NAME(fv__beam_gather_run)
#define fv__beam_program FV_ISA_NAME(fv__beam_program)

/* Forward: r->in[0] is the volume, r->out the projections. filtered: as if job->fourier were there. */
int64_t   fv__beam_project_least(const fv_beam *b);
int64_t   fv__beam_project_wanted(const fv_beam *b);
fv_status fv__beam_project_run(fv_run *r, const fv_beam_job *job, fv_device *device, fv_error *error);
/* Back: r->in[0] are the projections, r->out the volume. length: of the filter's transform, 0 without. */
int64_t   fv__beam_gather_least(const fv_beam *b, int64_t length);
int64_t   fv__beam_gather_wanted(const fv_beam *b, int64_t length);
fv_status fv__beam_gather_run(fv_run *r, const fv_beam_job *job, fv_device *device, fv_error *error);

/* The kernels, compiled for a processor or a card. */
const fv_device_program *fv__beam_program(const fv_device *device);

#endif
