/* A device of this node, leased from the node's scheduler (`fovea devices serve`). Plain C without other libraries, for programs
 * that have nothing else to do with Fovea: link with -lfovea-devices.
 *
 *     fv_device_lease lease;
 *     if (fv_device_lease_take(NULL, (int64_t)2 << 30, -1, &lease)) {
 *         ... use device lease.index ...
 *         fv_device_lease_return(&lease);
 *     } else
 *         fprintf(stderr, "%s\n", lease.message);
 *
 * A process that dies gives its leases back by dying. Not for several threads on one lease.
 */
#ifndef FOVEA_DEVICE_LEASE_H
#define FOVEA_DEVICE_LEASE_H

#include <fovea/api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fv_device_lease {
    int      index;        /* of the device, from 0, in the scheduler's order */
    int64_t  memory;       /* bytes that may be used */
    char     name[64];     /* of the device */
    char     message[256]; /* why there is none */
    uint64_t ticket;
    int      connection;
    char     socket[108];
    bool     late; /* there is none because none became free in time */
} fv_device_lease;

/* Where the scheduler listens: FOVEA_DEVICES, else the node's (/run/fovea/devices.sock) if there is one, else the user's own. */
FV_API void fv_device_socket(char path[108]);

/* Waits for a device with so much memory, at most so many seconds (below 0: for ever). False: lease->message says why. A socket
 * of NULL is the usual one. */
FV_API bool fv_device_lease_take(const char *socket, int64_t memory, double seconds, fv_device_lease *lease);
/* The same of some devices only: a bit for each of the first 64; 0: any. */
FV_API bool fv_device_lease_of(const char *socket, int64_t memory, double seconds, uint64_t devices, fv_device_lease *lease);
/* Also after the scheduler was restarted. */
FV_API void fv_device_lease_return(fv_device_lease *lease);

/* Under Slurm: which of the devices that are visible here the job was given (--gres), for fv_device_lease_of; 0 where that is no
 * question. False: the job was given none. */
FV_API bool fv_device_job(int visible, uint64_t *devices);
/* Where a device stands among them: its number in CUDA_VISIBLE_DEVICES and the like, which list the job's own. */
FV_API int fv_device_job_place(uint64_t devices, int index);

/* Sends one line, as "status" or "policy best-fit", and reads the line that answers it. False: answer says why. */
FV_API bool fv_device_ask(const char *socket, const char *line, char *answer, size_t size);

#ifdef __cplusplus
}
#endif

#endif
