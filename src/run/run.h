/* A run: all items of a pipeline, from the frozen manifest to finished outputs.
 *
 * The scheduler hands out jobs (open an item, run a task, end a stage) and takes their results; an engine is a set of workers
 * that ask for jobs until there are none. Everything durable is in the store, so any process may run any job.
 *
 * Invariants
 * 1. A task is handed out only when every stage it needs is complete.
 * 2. The planned memory of the jobs that are out never exceeds the budget, unless a single job is out.
 * 3. An output gets its final name only after everything that recognises it as ours is durable.
 */
#ifndef FV_RUN_H
#define FV_RUN_H

#include "exec/exec.h"
#include "run/budget.h"
#include "store/lease.h"
#include <fovea/allowance.h>
#include <fovea/pipeline.h>

struct fv_share;

typedef enum fv_order {
    FV_ORDER_MEMORY,  /* as it comes; what does not fit into memory is passed by what does */
    FV_ORDER_FIFO,    /* as it comes, and nothing passes anything */
    FV_ORDER_LONGEST, /* the longest first, by the plan's work or the size of files */
} fv_order;

/* A run as it was asked for, and what follows from that. */
typedef struct fv_run_settings {
    fv_run_options options;       /* engine, workers and patience are filled in; ranks: those of engine mpi on this host */
    int            ranks_workers; /* threads of a rank that were asked for */
    fv_budget      budget;        /* how the memory is divided */
    fv_order       order;         /* what to take first */
    fv_allowance  *allowance;     /* of processors, where somebody divides them; NULL: the workers' */
    double         began;         /* fv__now, before anything was prepared */
} fv_run_settings;

/* ---- what a run gives back ---- */
typedef struct fv_kept { /* an image asked for by name */
    const char   *name;
    fv_image_type type;
    void         *data;
} fv_kept;

typedef struct fv_failure {
    char    *item;
    fv_error error;
} fv_failure;

struct fv_result {          /* opaque in <fovea/pipeline.h> */
    fv_table       *tables; /* one per statement that prints or keeps a table or scalar */
    char          **table_names;
    bool           *table_is_scalar;
    bool           *table_printed; /* a bare statement */
    int             ntables;
    fv_kept        *kept;
    int             nkept;
    fv_failure     *failures;
    int             nfailures;
    char          **outputs; /* files made or found up to date */
    int             noutputs;
    const char    **missing; /* files that should have been made and were not; they and the list are the arena's */
    int             nmissing;
    fv_result_facts facts;
    fv_spent        spent[FV_MOST_SPENT]; /* seconds of workers: in operators */
    int             nspent;
    fv_arena        arena;
    struct fv_part *parts; /* tables and scalars of items, until they are put together */
    int             nparts;
};

/* Runs everything. FV_OK: all well. FV_ERROR_INPUT with failures listed: some items failed and the others are done.
 * diagnostics: mistakes of the text. */
fv_status fv__run_all(const fv_program *program, fv_bindings *bindings, const fv_plan_options *plan_options,
                      const fv_run_options *options, fv_result **result, fv_diagnostics *diagnostics, fv_error *error);

/* Checks all that fv__run_all checks and freezes the run in a folder (caller frees its name), for processes that share it. */
fv_status fv__run_freeze(const fv_program *program, fv_bindings *bindings, const fv_plan_options *plan_options,
                         const fv_run_options *options, char **run_folder, fv_diagnostics *diagnostics, fv_error *error);
/* A share of a run that is frozen in a folder. alone: all of it, as fv__run_all does. */
fv_status fv__run_share(const struct fv_share *share, bool alone, fv_order order, const fv_run_options *options,
                        fv_result **result, fv_error *error);

/* What all units will need, judged by one of each segment. */
typedef struct fv_outlook {
    int64_t memory; /* of the largest task of these */
    int64_t most;   /* the same of all, if larger files need more in proportion */
    int64_t tasks;  /* of a unit's largest stage */
    double  work;   /* nanoseconds, all units */
} fv_outlook;
fv_status fv__run_outlook(const fv_context *context, fv_outlook *outlook, fv_diagnostics *diagnostics, fv_error *error);
/* Opens the first unit of a segment that can be read, for checks and plans. One of the first segment may become an item. */
fv_status fv__run_sample(const fv_context *context, int segment, fv_instance **instance, fv_diagnostics *diagnostics,
                         fv_error *error);

/* Defaults. */
int fv__default_workers(void);

#endif
