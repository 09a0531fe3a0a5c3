/* The scheduler that shares a node's devices among unrelated programs. Its clients use <fovea/device_lease.h>. */
#ifndef FOVEA_DEVICES_H
#define FOVEA_DEVICES_H

#include <fovea/api.h>
#include <fovea/device_lease.h>
#include <fovea/status.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct fv_device_facts { /* an OpenCL device of this node */
    char    name[64];
    char    kind[320];  /* platform, device, versions: devices of one kind give the same bits */
    int64_t memory;     /* bytes */
    double  arithmetic; /* measured: billions of fused multiplications a second */
    double  bandwidth;  /* measured: billions of bytes read and written a second, inside the device */
} fv_device_facts;

/* The devices of this node in OpenCL's order; measure: with their speeds, which takes a moment. The caller frees *facts. None is
 * an error that says what is missing. */
FV_API fv_status fv_devices_find(bool measure, fv_device_facts **facts, int *count, fv_error *error);

typedef struct fv_devices_options {
    const char         *socket;  /* NULL: the usual one */
    const char         *record;  /* file of all leases; NULL: the socket's name with .record */
    const char         *policy;  /* random, round-robin, least-processes, best-fit; NULL: best-fit */
    uint64_t            seed;    /* of the policy random; 0: the usual one */
    const char *const  *devices; /* "NAME:MEMORY[:SPEED]", as "a100:40G:3"; none: those that OpenCL finds */
    int                 ndevices;
    int64_t             most;                            /* tasks of a device at once; 0: as many as its memory holds */
    int64_t             most_waiting, most_waiting_user; /* requests; 0: any number */
    const volatile int *stop;                            /* set: it ends; leases stay, for a service that follows */
    void (*ready)(void *context, const char *socket);
    void *context;
} fv_devices_options;

FV_API fv_status fv_devices_serve(const fv_devices_options *options, fv_error *error);

/* A lease for a program that is started: with the variables of its environment by which the usual runtimes see this device and no
 * other. Under Slurm only devices of the job are given. */
typedef struct fv_device_grant {
    fv_device_lease lease;
    int             count;
    char            variables[7][160]; /* "CUDA_VISIBLE_DEVICES=1" */
    char           *settings[8];       /* the same, ended by NULL */
} fv_device_grant;

/* As fv_device_lease_take. FV_ERROR_BUSY: none became free in time. It must not be moved in memory. */
FV_API fv_status fv_device_grant_take(const char *socket, int64_t memory, double seconds, fv_device_grant *grant,
                                      fv_error *error);
/* Also of one that was not had. */
FV_API void fv_device_grant_return(fv_device_grant *grant);

#endif
