/* A study of the policies by which devices are given out: for each policy a service of its own and some worker processes that
 * lease devices for a list of tasks, the same list for all.
 *
 *     fv_study_options options = { .workers = 12, .tasks = 48, .devices = 3, .memory = (int64_t)2 << 30, .seconds = 0.25 };
 *     fv_device_study *study;
 *     if (fv_device_study_run(&options, &study, &error) == FV_OK)
 *         for (int i = 0; i < study->nrows; i++) printf("%s: %.2f s\n", study->rows[i].policy, study->rows[i].makespan);
 *     fv_device_study_free(study);
 *
 * A part of the command and not of the library: it measures what the library offers. Processes are forked: the caller must have
 * neither threads nor OpenCL.
 */
#ifndef FV_DEVICE_STUDY_H
#define FV_DEVICE_STUDY_H

#include <fovea/status.h>
#include <stdbool.h>
#include <stdint.h>

enum { FV_STUDY_POLICIES = 4, FV_STUDY_DEVICES = 16, FV_STUDY_WORKERS = 256, FV_STUDY_TASKS = 10000 };

typedef struct fv_study_lease { /* of one task; times in seconds since the workers started */
    int     policy, task, worker, pid, device;
    int64_t memory;
    double  length; /* what the task takes on a device that it has for itself */
    double  asked, granted, returned;
} fv_study_lease;

typedef struct fv_study_row { /* one policy */
    const char *policy;
    double      makespan;                    /* until the last task had returned its device */
    double      wait, longest_wait;          /* for a device: mean and largest of all tasks */
    double      occupancy[FV_STUDY_DEVICES]; /* part of the makespan during which somebody had the device */
    int64_t     peak[FV_STUDY_DEVICES];      /* most bytes leased at a time */
} fv_study_row;

typedef struct fv_device_study {
    int             workers, tasks, devices;
    int64_t         memory; /* of a device */
    uint64_t        seed;
    bool            opencl;    /* tasks were kernels on OpenCL devices; false: they only took their time */
    char            work[256]; /* what the tasks were, in words */
    double          least;     /* seconds below which no policy can come: all lengths over all devices */
    fv_study_row    rows[FV_STUDY_POLICIES];
    int             nrows;
    fv_study_lease *leases; /* by policy, then by task */
    int             nleases;
} fv_device_study;

typedef struct fv_study_options {
    int         workers, tasks, devices;
    int64_t     memory;  /* of a device */
    double      seconds; /* mean length of a task */
    uint64_t    seed;
    const char *policy; /* NULL: all */
    const char *folder; /* where the services leave their records, as best-fit.record; made if missing */
    void (*tell)(void *context, const char *what);
    void               *context;
    const volatile int *cancel;
} fv_study_options;

fv_status fv_device_study_run(const fv_study_options *options, fv_device_study **study, fv_error *error);
void      fv_device_study_free(fv_device_study *study);
/* Makespan, waits, occupancy and peaks of a row from its leases. */
void fv_study_row_derive(fv_study_row *row, const fv_study_lease *leases, int count, int devices);

#endif
