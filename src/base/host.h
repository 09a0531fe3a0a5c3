/* Which machine and process this is: what tells a dead owner of a file from a live one. */
#ifndef FV_HOST_H
#define FV_HOST_H

#include "base/base.h"

typedef struct fv_host {
    char     name[65];
    fv_hash  boot;  /* changes with every start of the machine */
    uint64_t space; /* process ids mean the same only inside one such space (containers) */
} fv_host;

/* Of this process. FOVEA_HOST=NAME makes the tests believe in another machine. */
const fv_host *fv__host_self(void);

typedef enum fv_alive { FV_DEAD, FV_ALIVE, FV_ALIVE_UNKNOWN } fv_alive;
/* Whether the process still runs that had this id and started then (clock ticks since boot); of this host and space only. */
fv_alive fv__process_alive(int pid, int64_t start);
int64_t  fv__process_start(int pid); /* 0: not known */

/* Path of the program that this process runs; "fovea" if the system does not say. The caller frees. */
char *fv__host_program(void);

/* Seconds since 1970, by the clock that machines have in common. */
double fv__epoch(void);

/* The number behind a name, in a file of the system with a line for each, as /proc/meminfo; -1: there is none. */
int64_t fv__system_number(const char *path, const char *name);

#endif
