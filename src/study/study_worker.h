/* The worker processes of a study of policies (device_study.h) and what they share with each other.
 *
 * Devices of a study keep to a pace: a device's time is given out in slices, one task at a time. So devices that are really one
 * processor (PoCL) hold each other up no more than cards of their own would, and tasks that share a device do.
 */
#ifndef FV_STUDY_WORKER_H
#define FV_STUDY_WORKER_H

#include "base/base.h"
#include "device_study.h"
#include <stdatomic.h>

#define FV_STUDY_SLICE 0.01 /* seconds */

typedef struct fv_study_task {
    int64_t memory;
    double  length;
} fv_study_task;

typedef struct fv_study_board { /* memory of all processes of one policy */
    char           socket[108];
    bool           opencl;
    int            devices, tasks;
    double         start; /* fv__now */
    atomic_int     ready; /* workers that can start */
    atomic_int     next;  /* task to do */
    atomic_int     failed;
    char           message[512]; /* of the first that failed */
    _Atomic double busy_until[FV_STUDY_DEVICES];
    fv_study_task  list[FV_STUDY_TASKS];
    fv_study_lease leases[FV_STUDY_TASKS];
} fv_study_board;

/* In a process of its own: gets ready, waits until `go` is closed, does tasks until none is left. The exit status. */
int fv__study_work(fv_study_board *board, int worker, int go);

#endif
