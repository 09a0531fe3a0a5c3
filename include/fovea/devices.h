/* The scheduler that shares a node's devices among unrelated programs. Its clients use <fovea/device_lease.h>. */
#ifndef FOVEA_DEVICES_H
#define FOVEA_DEVICES_H

#include <fovea/status.h>
#include <stdint.h>

typedef struct fv_devices_options {
    const char        *socket;   /* NULL: the usual one */
    const char        *record;   /* file of all leases; NULL: the socket's name with .record */
    const char        *policy;   /* random, round-robin, least-processes, best-fit; NULL: best-fit */
    const char *const *devices;  /* "NAME:MEMORY[:SPEED]", as "a100:40G:3" */
    int                ndevices;
    int64_t            most;     /* tasks of a device at once; 0: as many as its memory holds */
    int64_t            most_waiting, most_waiting_user; /* requests; 0: any number */
    const volatile int *stop;    /* set: it ends; leases stay, for a service that follows */
    void             (*ready)(void *context, const char *socket);
    void              *context;
} fv_devices_options;

fv_status fv_devices_serve(const fv_devices_options *options, fv_error *error);

#endif
