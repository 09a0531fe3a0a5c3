/* The devices that a run may use, leased task by task: from the node's scheduler if one runs, else inside the process by the same
 * rules (broker.h). A pool holds devices of one kind, so that all give the same bits.
 */
#ifndef FV_DEVICE_POOL_H
#define FV_DEVICE_POOL_H

#include "devices/device.h"
#include <fovea/device_lease.h>

typedef struct fv_device_pool fv_device_pool;

extern const char fv__no_job_devices[]; /* what to say where a Slurm job was given none */

/* The pool for a name: "opencl", the first device and others of its kind; "opencl:N", that one. Opened once for the process.
 * Inside `fovea devices lease` (FOVEA_DEVICE) it is the device that was leased. */
fv_status   fv__device_pool_of(const char *name, fv_device_pool **pool, fv_error *error);
const char *fv__device_pool_kind(const fv_device_pool *pool);
int64_t     fv__device_pool_memory(const fv_device_pool *pool);    /* that every device has */
bool        fv__device_pool_processor(const fv_device_pool *pool); /* the host's own processor, by another way */
bool        fv__device_pool_given(const fv_device_pool *pool);     /* leased for this process by who has started it */

typedef struct fv_device_hold {
    fv_device      *device;
    fv_device_lease lease; /* of the node's scheduler */
    uint64_t        ticket;
} fv_device_hold;

/* Waits for a device with so much memory. Any thread. */
fv_status fv__device_pool_take(fv_device_pool *pool, int64_t memory, fv_device_hold *hold, fv_error *error);
void      fv__device_pool_give(fv_device_pool *pool, fv_device_hold *hold);

#endif
