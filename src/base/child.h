/* A program that runs beside us: started without a shell and in a group of its own, and ended with all that it started.
 *
 *     fv_child child = { .limit = 60 };
 *     if (fv__child_start(&child, words, NULL, NULL, &error) == FV_OK) fv__child_wait(&child, NULL, &end);
 *     ...                            // child.printed holds what it said
 *     fv__child_release(&child);
 *
 * Any thread may do so; the thread that starts a child must live until it has ended.
 */
#ifndef FV_CHILD_H
#define FV_CHILD_H

#include "base/base.h"
#include <sys/types.h>

typedef struct fv_child {
    double   limit;     /* seconds that it may run; 0: any */
    int64_t  memory;    /* bytes that it and all that it starts may use; 0: any */
    int64_t  file_size; /* bytes that it may print into a file; 0: any */
    char   **settings;  /* further variables for its environment, "NAME=value", ended by NULL; NULL: none. Borrowed */
    pid_t    pid;
    int      pidfd, pipe, file; /* of the pipe, what it prints; of the file, where else its standard output goes; -1: none */
    char     mark[96];          /* in the environment of all that it starts */
    char    *group;             /* control group that it is in; NULL: none. Made where it has a limit */
    fv_bytes printed;
    int64_t  left_out;        /* bytes of what it printed that were not kept */
    double   started, killed; /* clock; when it was asked to end, 0: it was not */
    double   looked;          /* at its memory, last */
    bool     over_time, over_memory, over_file;
} fv_child;

typedef struct fv_child_end {
    int     code, signal;         /* how it ended: its exit code, or the signal that killed it */
    double  seconds, cpu_seconds; /* by the clock, and of processors */
    int64_t memory;               /* most that one of its processes used, bytes */
} fv_child_end;

/* Path of the program that a shell would run for this word; NULL: there is none. The caller frees. */
char *fv__executable_find(const char *word);

/* Starts words[0], which must be found. folder: where it works; NULL: here. to: file that its standard output goes to; NULL: to
 * what is kept, as its messages. */
fv_status fv__child_start(fv_child *child, char **words, const char *folder, const char *to, fv_error *error);
/* Takes what it has printed. */
void fv__child_listen(fv_child *child);
/* Asks it to end, and everything in its group; a second time, after a while, it is killed. */
void fv__child_stop(fv_child *child, double now);
/* Kills it if it was asked to end too long ago, has run longer than its limit or uses more than its memory. */
void fv__child_watch(fv_child *child, double now);
/* Whether it has ended; then *end is filled, nothing that it started is left, and child holds what it printed. */
bool fv__child_ended(fv_child *child, fv_child_end *end);
/* Until it has ended; *stop not zero asks it to end, NULL: nobody does. */
void fv__child_wait(fv_child *child, const volatile int *stop, fv_child_end *end);
void fv__child_release(fv_child *child);

/* Why it did not end as a program does that is done, as a sentence without a subject; false: it ended with an exit code. */
bool fv__child_misfortune(const fv_child *child, const fv_child_end *end, char *why, size_t size);

/* Whether a code is in a list with commas between its numbers. */
bool fv__exit_code_among(const char *list, int code);

/* While this is on, what a child has started and left behind becomes ours and is ended with it. Calls may be nested. The first
 * one also ends what children of processes that were killed have left running on this machine: nobody else does. */
void fv__children_adopt(bool on);

#endif
