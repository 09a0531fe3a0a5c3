/* The process of a unit: started without a shell and in a group of its own, and ended with all that it started. */
#ifndef FV_UNIT_CHILD_H
#define FV_UNIT_CHILD_H

#include "units/unit.h"

typedef struct fv_child {
    int      unit; /* index; -1: this place is free */
    pid_t    pid;
    int      pidfd, pipe;        /* of the pipe, what it prints; -1: closed */
    char     mark[48];           /* in the environment of all that it starts */
    char    *output, *temporary; /* file that it makes, and its name until then; NULL: none is said */
    fv_bytes printed;
    int64_t  left_out;        /* bytes of what it printed that were not kept */
    double   started, killed; /* clock; when it was asked to end, 0: it was not */
    double   looked;          /* at its memory, last */
    bool     over_time, over_memory;
} fv_child;

/* Path of the program that a shell would run for this word; NULL: there is none. The caller frees. */
char *fv__executable_find(const char *word);

/* Starts words[0], which must be found; child->mark is set before. */
fv_status fv__child_start(fv_child *child, char **words, fv_error *error);
/* Takes what it has printed. */
void fv__child_listen(fv_child *child);
/* Asks it to end, and everything in its group; a second time, after a while, it is killed. */
void fv__child_stop(fv_child *child, double now);
/* Kills it if it was asked to end too long ago, has run longer than the limit or uses more than its memory. */
void fv__child_watch(fv_child *child, const fv_unit *unit, double now);
/* Whether it has ended; then the result is filled, nothing that it started is left, and child holds what it printed. */
bool fv__child_ended(fv_child *child, fv_unit_result *result);
void fv__child_release(fv_child *child);

#endif
