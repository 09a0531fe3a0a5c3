/* The inside of a scheduler, shared by the files that make it up: scheduler.c (handing out and taking back), scheduler_open.c
 * (opening an item), scheduler_memory.c (who gets the memory), scheduler_order.c (what comes first), and the sources of its work:
 * whole_source.c (all of a run), claims_source.c (what this process claims of one). All is guarded by the mutex unless it says
 * otherwise.
 */
#ifndef FV_SCHEDULER_PARTS_H
#define FV_SCHEDULER_PARTS_H

#include "op/sampling.h"
#include "run/retired_items.h"
#include "run/scheduler.h"
#include "run/task_ranges.h"

typedef struct fv_stage_state {
    bool            needed, complete, ending;
    bool            open, closed; /* once known: it is needed, or no branch that was chosen needs it */
    int64_t         limit;        /* tasks to hand out */
    int64_t         out, done;
    int64_t         found;      /* of those done: before they were handed out */
    fv_task_ranges *ranges;     /* those not yet handed out; NULL: all */
    int             readers;    /* needed stages that have not yet used it */
    int64_t         end_memory; /* that merging its partials needs; 0: not known yet */
    int32_t        *makers;     /* by task: its place, for an exchange; NULL: what it stores goes through the store */
    fv_bytes        lost;       /* fv_lost_task: to be handed out again before all others */
    int             end_lost;   /* so often was its end */

    struct fv_sampled *sampled; /* of a stage that may end before all tasks are handed out; NULL: it is none */
    struct fv_watched *watched; /* of one with a value of which something can be told meanwhile; NULL: there is none */
} fv_stage_state;

typedef struct fv_lost_task {
    int64_t task;
    int     times;
    void   *of_source; /* as it was in the job */
    bool    alone;
} fv_lost_task;

/* Where the jobs of a run come from. A source keeps what it knows in source_state of the scheduler, and in of_source of each item
 * and job. It decides under the mutex, and touches files only in the functions that say so. */
typedef struct fv_task_source {
    fv_output_way way;    /* in which its items begin their files */
    bool          shared; /* other processes work on the same run */
    bool          joint;  /* and on the same item: what a stage has made is not let go of, they may still look for it */
    /* Fills in the next item to open; false: none now. */
    bool (*item)(fv_scheduler *scheduler, fv_item *next);
    bool (*items_over)(const fv_scheduler *scheduler); /* none will come any more */
    /* A job of a stage that may start; help: also what other places would rather do. False: none now. */
    bool (*job)(fv_scheduler *scheduler, fv_item *item, int stage, int place, bool help, fv_job *job);
    void (*skip)(fv_scheduler *scheduler, fv_item *item, int stage); /* it turned out not to be needed */
    bool (*over)(const fv_item *item);                               /* nothing is left of it that this process will do */
    /* What follows is NULL in a source that shares with nobody. */
    /* Releases the mutex, finds out on disk what `item` or `job` have to know before they can go on, and takes it again. False,
     * and nothing is done: they know it all, or another thread is looking. */
    bool (*look)(fv_scheduler *scheduler);
    void (*leave)(fv_scheduler *scheduler, void *of_source);    /* a job is over */
    void (*leave_item)(fv_scheduler *scheduler, fv_item *item); /* it is closed */
    bool (*unsettled)(const fv_scheduler *scheduler);           /* something waits to be given back */
    /* Without the mutex: */
    bool (*taken_over)(const fv_job *job); /* by another process: it names nothing any more, and cannot fail */
    fv_status (*run)(fv_scheduler *scheduler, fv_job *job, fv_worker *worker, fv_error *error);
    void (*settle)(fv_scheduler *scheduler); /* names finished outputs, commits, and gives back */
    /* Keeps temporaries of an item from being begun and named at once. NULL: nobody else does. Release the lease. */
    fv_status (*lock)(const fv_scheduler *scheduler, fv_lease **lease, fv_error *error);
    /* FV_OK if every stage of an item is complete; otherwise what hinders it. NULL: it is, if no job failed. */
    fv_status (*whole)(fv_scheduler *scheduler, const fv_item *item, fv_error *error);
    void (*release)(void *state); /* at the end of the run */
} fv_task_source;

extern const fv_task_source fv__whole_source; /* all of the run; there are others in claims_source.c */

struct fv_item {
    fv_item        *next;
    int64_t         number;
    fv_instance    *instance;
    fv_stage_state *stages;
    int             out;        /* jobs */
    int             home;       /* place that takes its first tasks */
    uint64_t        written_by; /* places that ran tasks with sinks, as bits; of more than 64, several share one */
    bool            ready, failed, closing;
    bool            more; /* its items are too few for what it estimates: it is closed, and opened again when there are more */
    fv_error        error;
    int64_t         tasks, tasks_done;
    double          work;
    int            *order; /* of its stages; NULL: as they come */
    bool            alone; /* no other item is opened beside it */
    void           *of_source;
};

/* What is known so far of a value that is being computed, with an interval that holds however often one looks. */
typedef struct fv_shown_estimate {
    int64_t     item, row;
    int         node;
    char        name[64], column[40]; /* column: of a table, or "" */
    char        group[40];            /* of a table: its group, or "" */
    bool        of_items;
    fv_interval interval;
} fv_shown_estimate;

struct fv_scheduler {
    const fv_context      *context;
    const fv_run_settings *settings;
    const fv_engine       *engine;
    const fv_task_source  *source;
    bool                   gathers; /* tables and names of outputs: not where another process does at the run's end */
    fv_outputs            *outputs;
    fv_record             *record;
    fv_result             *result;
    pthread_mutex_t        mutex;
    pthread_cond_t         changed;
    uint64_t               changes;
    fv_item               *items; /* open, oldest first */
    fv_instance           *first; /* an item that was open before the run began; NULL: none, or its turn has come */
    fv_retired_items      *retired;
    int                    nopen, most_open;
    int                    segment;           /* that is reached */
    int64_t                next_item, memory; /* of tasks */
    fv_budget              tightest;          /* of the place with the least for tasks */
    int64_t                spared;            /* bytes of it that writers may keep from task to task */
    fv_place              *places;
    int64_t               *place_memory; /* of the jobs that are out, by place */
    int64_t               *place_cpus;   /* processors of theirs beyond one each */
    int                   *place_out;    /* how many are out */
    int                    nplaces;
    int64_t                lent;           /* bytes of this place, to decoded pieces of files */
    int64_t                most_exchanged; /* bytes of an image; 0: none is exchanged */
    void                  *engine_context;
    bool                   stopping;
    bool                   said_order; /* that sampling saves no reading */
    fv_status              status;
    fv_error               error;
    fv_run_state           progress;
    char                   so_far[256]; /* its estimate */
    fv_shown_estimate      shown[16];
    fv_run_estimate        told_estimates[16];
    int                    nshown;
    double                 started, told;
    int                    out;            /* jobs */
    fv_item               *lone;           /* open, and alone */
    int64_t               *order;          /* of items; NULL: as they come */
    int64_t                items_limit;    /* of a sample of items: to be handed out before it is looked at */
    int64_t                items_given;    /* handed out when it was looked at */
    double                 items_deadline; /* 0: none */
    bool                   items_told;     /* something is told of what the run makes of them while they go on */
    bool                   items_looking;  /* a thread finds out what */
    int64_t                items_due;
    double                 items_spent;  /* seconds, on looking */
    void                  *source_state; /* NULL: it has none */
    bool                   full;         /* something did not fit into memory since the last job was handed out */
    bool                   alone, quiet; /* a job that must be alone is out; one waits until nothing is out */
};

/* ---- scheduler_open.c ---- */
bool      fv__stage_complete(const fv_instance *instance, const fv_stage *stage);
fv_status fv__item_open(fv_scheduler *scheduler, fv_item *item, fv_error *error); /* without the mutex */

/* ---- scheduler.c ---- */
fv_status fv__job_perform(fv_scheduler *scheduler, fv_job *job, fv_worker *worker, fv_error *error); /* without the mutex */
void      fv__scheduler_tell(fv_scheduler *scheduler);                                               /* the progress, once more */
/* Whether the stage, whose needs are complete, turns out not to be needed. */
bool fv__item_stage_closed(fv_item *item, int stage);

/* ---- scheduler_memory.c ---- */
/* Whether a job may go out that needs so much memory, and leave so much to the pieces that its like share. */
bool fv__fits(fv_scheduler *scheduler, int place, int64_t memory, int64_t shared);
/* The same for a task of a stage, which may run programs on several processors. */
bool fv__task_fits(fv_scheduler *scheduler, int place, const fv_stage *stage);
void fv__memory_use(fv_scheduler *scheduler, int place, int64_t bytes); /* below 0: they are given back */
void fv__memory_take_back(fv_scheduler *scheduler);                     /* what was lent, at the end of the run */
/* Without the mutex: gives the writers of an item what they may keep. */
void fv__memory_spare(fv_scheduler *scheduler, const fv_item *item);

/* ---- scheduler_order.c ---- */
/* The order in which to look for work in the stages of an item (owned by the item); NULL: as they come. */
int *fv__stage_order(const fv_scheduler *scheduler, const fv_item *item);
/* Numbers first .. first + count - 1, those with the largest weight first, into the same places of `order`. */
void fv__order_by_weight(const double *weights, int64_t first, int64_t count, int64_t *order);

/* ---- scheduler_sampled.c: stages of which a part of the tasks may be enough ---- */
void fv__sampled_begin(fv_scheduler *scheduler, fv_item *item, int stage);
bool fv__sampled_take(fv_scheduler *scheduler, fv_item *item, int stage, int64_t *task); /* false: none, at least now */
void fv__sampled_back(struct fv_sampled *sampled, int64_t task);                         /* one that was taken is done already */
/* Without the mutex, when a task is done: whether the stage is complete with it. */
bool fv__sampled_done(fv_scheduler *scheduler, const fv_job *job);
/* Without the mutex, when a task has failed: whether it may not be needed, so that it counts as never run. It comes again if it
 * is. last: the stage is complete without it. */
bool fv__sampled_spared(fv_scheduler *scheduler, const fv_job *job, bool *last);
bool fv__sampled_at_end(const fv_stage_state *state); /* it is time to look at those that are back */
/* Without the mutex, after a look, which is an end of the stage: whether the stage is complete. If not, more tasks are handed
 * out, or some are out that nobody waits for but the stage. */
bool fv__sampled_ended(fv_scheduler *scheduler, fv_item *item, int stage);
void fv__sampled_free(struct fv_sampled *sampled);

/* ---- scheduler_items.c: items in random order ---- */
int64_t *fv__items_order(fv_scheduler *scheduler); /* of units, before the first is handed out; NULL: none is asked for */
int64_t  fv__items_next(fv_scheduler *scheduler);  /* place in the order of the unit that is handed out next */
/* Without the mutex: whether what an open unit of the run estimates is known well enough (more). */
fv_status fv__items_look(fv_scheduler *scheduler, fv_item *item, fv_error *error);
void      fv__items_more(fv_scheduler *scheduler);
bool      fv__items_going(const fv_scheduler *scheduler); /* in random order, and the unit of the run has not been reached */

/* ---- scheduler_watched.c: what is known while tasks go on ---- */
void fv__watched_begin(const fv_scheduler *scheduler, fv_item *item, int stage);
/* The next task of a stage that is not sampled: of its ranges, or at random. */
bool fv__watched_take(const fv_scheduler *scheduler, fv_item *item, int stage, int place, bool help, int64_t *task);
/* Without the mutex, when a task of a watched stage is back: now and then brings the estimates up to date. */
void fv__watched_done(fv_scheduler *scheduler, const fv_job *job);
void fv__watched_over(fv_scheduler *scheduler, const fv_item *item, int stage); /* a stage; -1: all of the item */
/* Without the mutex, when an item is over: now and then brings estimates up to date of what the run makes of all. */
void fv__watched_items(fv_scheduler *scheduler);
void fv__watched_tell(fv_scheduler *scheduler); /* puts the estimates into the progress */
void fv__watched_free(struct fv_watched *watched);

/* ---- whole_source.c ---- */
bool fv__stage_next(fv_scheduler *scheduler, fv_item *item, int stage, int place, bool help, fv_job *job);
void fv__stage_skip(fv_scheduler *scheduler, fv_item *item, int stage);
bool fv__stages_over(const fv_item *item);

#endif
