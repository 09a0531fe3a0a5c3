/* One program to run, and what became of it. */
#ifndef FV_UNIT_H
#define FV_UNIT_H

#include "base/child.h"
#include <fovea/devices.h>
#include <fovea/units.h>

typedef enum fv_unit_stand { FV_UNIT_WAITS, FV_UNIT_RUNS, FV_UNIT_DONE, FV_UNIT_FAILED, FV_UNIT_BLOCKED } fv_unit_stand;

typedef struct fv_unit_result {
    int     code, signal;         /* how it ended: its exit code, or the signal that killed it */
    int     tries;                /* starts so far */
    double  seconds, cpu_seconds; /* of the last try */
    int64_t memory;               /* most that one of its processes used, bytes */
    double  started;              /* seconds since the epoch */
    char    host[65];
    bool    kept; /* an earlier call or another process did it */
    char    why[160];
} fv_unit_result;

typedef struct fv_unit {
    const char    *name;
    const char    *group;        /* takes turns with others in round-robin; NULL: all are one */
    const char   **values;       /* what replaces the {names}, in their order */
    fv_hash        key;          /* what it does: program, words, input */
    int64_t        cpus, memory; /* processors of all its ranks */
    int64_t        ranks;        /* of MPI; 1: it is no such program */
    int64_t        device;       /* bytes that it uses on a device; 0: it needs none */
    double         limit;        /* seconds, 0: none */
    int            nafter, *after;
    fv_unit_stand  stand;
    double         not_before;
    int            passed; /* how often another was started while it waited for room */
    double         waits;  /* for room, since then; 0: it does not */
    fv_unit_result result;
} fv_unit;

typedef struct fv_running { /* a place where units run, one after another */
    int             unit;   /* index; -1: it is free */
    fv_child        child;
    fv_device_grant device;
    char           *output, *temporary; /* file that the unit makes, and its name until then; NULL: none is said */
} fv_running;

#endif
