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

typedef struct fv_progress {
    int64_t items, items_done, items_failed;
    int64_t tasks, tasks_done; /* of the items opened so far */
    double  fraction;          /* of all work, 0 to 1 */
    int64_t bytes_read, bytes_written;
    int64_t memory; /* planned for the jobs that are out, and the store */
    double  seconds;
} fv_progress;

typedef enum fv_order {
    FV_ORDER_MEMORY,  /* as it comes; what does not fit into memory is passed by what does */
    FV_ORDER_FIFO,    /* as it comes, and nothing passes anything */
    FV_ORDER_LONGEST, /* the longest first, by the plan's work or the size of files */
} fv_order;

typedef struct fv_run_settings {
    const char            *engine;  /* NULL: mpi in a rank of several, else threads */
    int                    workers; /* 0: all cores */
    int64_t                memory;  /* of the host; 0: half of what is free */
    fv_budget              budget;  /* how that is divided; the run fills it in */
    const char            *folder;  /* NULL: .fovea */
    bool                   fresh, overwrite, stop_on_error;
    double                 patience; /* seconds of a worker's work that a kill may cost; 0: 2.5 */
    int                    poison;   /* -1: off */
    fv_order               order;    /* what to take first */
    const struct fv_share *share;    /* what to do of a run that others work on too; NULL: all of it, alone */
    /* Of engine mpi: ranks on this host, which share its memory; threads of a rank that were asked for. */
    int         ranks, ranks_workers;
    const char *program;                                          /* path of the fovea command, for engines that start it */
    void (*progress)(void *context, const fv_progress *progress); /* at most ten times a second */
    void         *context;
    volatile int *cancel; /* set to non-zero to stop */
} fv_run_settings;

/* ---- what a run gives back ---- */
typedef struct fv_kept { /* an image asked for by name */
    const char   *name;
    int64_t       item;
    int           combination;
    fv_image_type type;
    void         *data;
} fv_kept;

typedef struct fv_failure {
    char    *item;
    fv_error error;
} fv_failure;

typedef struct fv_run_result {
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
    int64_t         tasks_run, tasks_total;
    int64_t         outputs_made, outputs_current;
    int64_t         bytes_read, bytes_written;
    int64_t         peak_memory; /* of this process, bytes */
    double          seconds;
    double          opening, merging;     /* seconds of workers: opening items, ending stages */
    fv_spent        spent[FV_MOST_SPENT]; /* seconds of workers: in operators */
    int             nspent;
    bool            started; /* some work was begun */
    fv_arena        arena;
    struct fv_part *parts; /* tables and scalars of items, until they are put together */
    int             nparts;
} fv_run_result;

void fv__run_result_free(fv_run_result *result);

/* Runs everything. FV_OK: all well. FV_ERROR_INPUT with failures listed: some items failed and the others are done.
 * diagnostics: mistakes of the text. */
fv_status fv__run_all(const fv_program *program, fv_bindings *bindings, const fv_plan_options *plan_options,
                      const fv_run_settings *settings, fv_run_result **result, fv_diagnostics *diagnostics, fv_error *error);

/* Checks all that fv__run_all checks and freezes the run in a folder (caller frees its name), for processes that share it. */
fv_status fv__run_freeze(const fv_program *program, fv_bindings *bindings, const fv_plan_options *plan_options,
                         const fv_run_settings *settings, char **run_folder, fv_diagnostics *diagnostics, fv_error *error);
/* A share of a run that is frozen in a folder. alone: all of it, as fv__run_all does. */
fv_status fv__run_share(const struct fv_share *share, bool alone, const fv_run_settings *settings, fv_run_result **result,
                        fv_error *error);

/* What all units will need, judged by one of each segment. */
typedef struct fv_outlook {
    int64_t memory; /* of the largest task of these */
    int64_t most;   /* the same of all, if larger files need more in proportion */
    int64_t tasks;  /* of a unit's largest stage */
    double  work;   /* nanoseconds, all units */
} fv_outlook;
fv_status fv__run_outlook(const fv_context *context, fv_outlook *outlook, fv_diagnostics *diagnostics, fv_error *error);
/* Opens the first unit of a segment that can be read, for checks and plans. */
fv_status fv__run_sample(const fv_context *context, int segment, fv_instance **instance, fv_diagnostics *diagnostics,
                         fv_error *error);

/* Defaults. */
int fv__default_workers(void);

#endif
