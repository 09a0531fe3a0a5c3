/* One `write` of one item: where it goes, what it is written with, and how far it is.
 *
 * Every process that runs tasks of an item has outputs of its own, made with the instance. Only the one that gives files their
 * names holds leases on them (run/outputs.h), and there an output outlives its instance until it has its name: who needs it uses
 * it, and the last one who leaves it frees it.
 *
 * Invariants
 * 1. The writer is there while the output is open, and never longer than the instance whose graph it borrows from.
 * 2. The state only goes forward, but for one thing: another process may have made a file that is open here; it is current then.
 */
#ifndef FV_OUTPUT_H
#define FV_OUTPUT_H

#include "base/sync.h"
#include "plan/plan.h"
#include "store/lease.h"

typedef enum fv_output_state {
    FV_OUTPUT_NEW,      /* nobody has said yet what becomes of it */
    FV_OUTPUT_CURRENT,  /* the file is there already; nothing is written to it */
    FV_OUTPUT_OPEN,     /* it is written, under its temporary name */
    FV_OUTPUT_COMPLETE, /* all is written, and it waits for its own name */
    FV_OUTPUT_NAMED,
    FV_OUTPUT_GIVEN_UP, /* what was written stays for the next try */
} fv_output_state;

typedef struct fv_output_list fv_output_list; /* those that are written in this process */

typedef struct fv_output {
    char                   *path; /* its own name */
    fv_hash                 key;
    const fv_planned_file  *file;      /* borrowed of the plan while the instance lives; NULL: a table */
    char                   *temporary; /* NULL: it was never open */
    fv_hash                 epoch;     /* pieces put into a temporary of another epoch do not count */
    fv_writer              *writer;    /* of an image that is open */
    _Atomic fv_output_state state;
    _Atomic int             users;
    fv_paths                unsynced; /* files that have to be durable before it gets its name, beside its temporary */

    /* For run/outputs.c alone, guarded by its mutex. */
    fv_lease         *lease;      /* NULL: none */
    bool              taken_over; /* from a run that has died */
    struct fv_output *next_claimed;

    /* For output.c alone, guarded by the list's mutex. */
    fv_output_list   *list; /* NULL: in none */
    struct fv_output *next_written;
} fv_output;

fv_output *fv__output_new(const char *path, fv_hash key);
fv_output *fv__output_of(const fv_planned_file *file);
fv_output *fv__output_use(fv_output *output);
void       fv__output_leave(fv_output *output); /* NULL is fine */

/* From now on it is written under this name, by the tasks of this process with a writer, if it is an image. */
fv_status fv__output_open(fv_output *output, const char *temporary, fv_hash epoch, fv_output_list *list, fv_error *error);
/* The file is there, perhaps made by another process. */
void fv__output_is_current(fv_output *output);
bool fv__output_current(const fv_output *output);
/* Whether it was completed here, whatever became of its name. */
bool fv__output_made(const fv_output *output);
/* The instance goes: no task writes any more. */
void fv__output_close(fv_output *output);

/* ---- all outputs that a process writes ---- */
fv_output_list *fv__output_list_new(void);
void            fv__output_list_free(fv_output_list *list); /* NULL is fine */
/* Makes what tasks of this process have put into files durable; what the store calls before it commits, with the list. */
fv_status fv__output_list_sync(void *list, fv_error *error);

#endif
