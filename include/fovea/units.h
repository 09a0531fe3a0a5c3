/* Any program as a unit of work: thousands of independent commands, as many at once as processors and memory allow. What is done
 * stays done: the same call again goes on where the last one ended, also after a kill.
 *
 *     const char      *files[] = { "a.png", "b.png" };
 *     fv_units_options options = { .command = "convert {} {stem}.jpg", .files = files, .nfiles = 2 };
 *     fv_units_state   state;
 *     if (fv_units_run(&options, &state, &error) == FV_OK) printf("%lld done\n", (long long)state.done);
 *
 * Starts child processes and waits for them, so one call at a time in a process, and from its main thread.
 */
#ifndef FOVEA_UNITS_H
#define FOVEA_UNITS_H

#include <fovea/allowance.h>
#include <fovea/api.h>
#include <fovea/status.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct fv_units_state {
    int64_t units, waiting, running, done, failed;
    int64_t kept;    /* of those that are done: by an earlier call */
    int64_t blocked; /* never started, because one that they come after failed */
    double  seconds; /* since the call */
} fv_units_state;

typedef struct fv_unit_end { /* of one unit, as it ends for good or is tried again */
    const char *name, *command;
    bool        well, again; /* again: it failed and is tried once more */
    const char *why;         /* a sentence; NULL: it ended well */
    const void *output;      /* what it printed, as far as it was kept */
    int64_t     output_size;
} fv_unit_end;

typedef struct fv_units_options {
    const char        *command; /* words with {names}; quotes group words as in a shell, and nothing else is special */
    bool               shell;   /* the command is a text for /bin/sh; what replaces {names} is quoted */
    const char *const *files;   /* a unit for each */
    int64_t            nfiles;
    const char        *from;   /* or for each row of this table, whose columns are the {names} */
    const char        *name;   /* column that names units; NULL: files by their names, rows by their numbers from 0 */
    const char        *after;  /* column with names of units that must be done before, blanks or commas between them */
    const char        *output; /* name of the file that a unit makes; {output} in the command is a temporary beside it */
    const char        *cpus, *memory, *time; /* of a unit, or the name of a column: "2", "1.5G", "10m"; NULL: 1 and no limits */
    const char        *ranks;                /* of MPI, or the name of a column: so many times the processors; NULL: 1 */
    const char        *device;       /* memory of a device that a unit uses, or the name of a column; NULL: it needs none */
    const char        *order;        /* fifo, backfill, longest, memory, round-robin; NULL: fifo */
    const char        *by;           /* column whose values take turns in round-robin */
    const char        *ok;           /* exit codes that mean well, commas between; NULL: 0 */
    int64_t            workers;      /* processors for all units; 0: those of the machine */
    int64_t            memory_bound; /* bytes for all units; 0: any */
    int64_t            retries;      /* times that a unit which failed is tried again */
    double             pause;        /* seconds before that, twice as long each time */
    const char        *results;      /* table file for what became of each; NULL: none */
    const char        *store;        /* folder that keeps what is done; NULL: the usual one */
    bool               overwrite;    /* replace outputs that units did not make */
    bool               again;        /* run all, also those that are done */
    bool               share;        /* several processes with the same options share the units */
    const char        *session;      /* with share: a name by which they know each other, so that what failed in one has
                                        failed for all; NULL: another one may try it once more */
    fv_allowance *allowance;         /* of processors, that somebody else divides; NULL: workers */
    double        ends;              /* seconds since the epoch: what would end later is not started; 0: no end */
    bool          tells;             /* also what becomes of units that others of the session run */
    bool (*over)(void *context);     /* not NULL: others do the work, and this call only tells what becomes of it, until
                                        all is done or this says that they do no more. Now and then */
    const volatile int *stop;        /* nonzero: end what runs and return FV_ERROR_CANCELLED; may be NULL */
    void (*ended)(void *context, const fv_unit_end *end);
    void (*progress)(void *context, const fv_units_state *state); /* now and then */
    void *context;
} fv_units_options;

/* The commands, one a line, without running any; the caller frees. */
FV_API fv_status fv_units_list(const fv_units_options *options, char **text, fv_error *error);
/* What programs have printed, each under a line with the name of the file that keeps it: commands of the latest run, or of the
 * one whose name begins so (run; NULL: the latest), and then, without a name, units. count: of all of them, also of those that
 * did not fail. The caller frees the text. */
FV_API fv_status fv_units_logs(const char *store, const char *run, bool failed, int64_t *count, char **text, fv_error *error);
typedef struct fv_units_needs { /* most that one unit asks for */
    int64_t cpus, memory;
} fv_units_needs;
/* Whether they could be run: every mistake is found here. *state: what is done already. */
FV_API fv_status fv_units_check(const fv_units_options *options, fv_units_state *state, fv_units_needs *needs, fv_error *error);
/* FV_OK also if units failed: state tells. */
FV_API fv_status fv_units_run(const fv_units_options *options, fv_units_state *state, fv_error *error);

#endif
