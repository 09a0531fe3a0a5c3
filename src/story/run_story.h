/* The story of a run, read from its folder alone: what its processes have told so far. Nothing of a living run is touched, and
 * reading goes on where it stopped, so that a run can be followed.
 *
 *     fv_story *story;
 *     FV_TRY(fv__story_open(folder, &story, error));
 *     do fv__story_update(story, error); while (...);
 *     fv__story_close(story);
 *
 * Invariants
 * 1. Times of tasks are kept in a fixed number of bins for each worker, which become wider as the run goes on: memory does not
 *    grow with the number of tasks.
 * 2. A process has one log. Logs whose times overlap are an attempt; attempts of which the earlier one did not end well are
 *    told as one story, the last one. What came before it is another story, and is left out.
 */
#ifndef FV_RUN_STORY_H
#define FV_RUN_STORY_H

#include "record/record_log.h"
#include "story/run_graph.h"

enum { FV_STORY_BINS = 256, FV_STORY_SLOWEST = 20, FV_STORY_SECONDS = 16 };
enum { FV_SPAN_WAIT, FV_SPAN_READ, FV_SPAN_COMPUTE, FV_SPAN_WRITE, FV_SPANS };

typedef struct fv_story_fact {
    char *name, *value;
} fv_story_fact;

typedef struct fv_story_lane { /* seconds of a worker in each bin; NULL until it has done something */
    float *spans[FV_SPANS];
} fv_story_lane;

typedef struct fv_story_stage {
    int64_t part, stage, done, failed;
    double  spans[FV_SPANS];
    double  longest;
} fv_story_stage;

typedef enum fv_story_end { FV_END_NONE, FV_END_WELL, FV_END_FAILED, FV_END_STOPPED, FV_END_PART } fv_story_end;

typedef struct fv_story_log { /* of a process */
    struct fv_story *story;
    char            *name;
    int64_t          at; /* read so far */
    fv__visitor      visitor;
    fv_story_fact   *facts;
    int              nfacts, room;
    double           begin, last; /* seconds since the epoch: when it began; of the last thing it told */
    fv_story_end     ended;       /* NONE: it goes on, or was killed */
    bool             alive;
    double           width; /* of a bin, seconds; the first begins at `begin` */
    fv_story_lane   *lanes;
    int              nlanes;
    double           planned[FV_STORY_BINS];  /* bytes times seconds */
    int64_t          resident[FV_STORY_BINS]; /* the most; 0: not known */
    int64_t          now;                     /* resident, last told */
    int64_t          tasks, failed, bytes_read, bytes_written;
    double           spans[FV_SPANS];
    fv_bytes         stages;         /* fv_story_stage */
    fv_bytes         planned_stages; /* fv_stage_facts */
    fv_bytes         nodes;          /* fv_node_spent */
    fv_spent         spent[FV_MOST_SPENT];
    fv_bytes         residuals;
    fv_task_facts    slowest[FV_STORY_SLOWEST]; /* the slowest first */
    int              nslowest;
    struct {
        int64_t second, tasks, read, written;
    } recent[FV_STORY_SECONDS]; /* by second */
    bool told;                  /* belongs to the story */
    int  attempt;               /* of those that are told */
    int  place;                 /* among the logs of its attempt */
} fv_story_log;

typedef struct fv_story_attempt {
    double from, to, offset; /* offset: seconds of the attempts before it */
    int    logs;
} fv_story_attempt;

typedef struct fv_story {
    char             *folder;
    fv_run_graph     *graph;
    fv_story_log    **logs; /* by their begin */
    int               nlogs;
    fv_story_attempt *attempts;
    int               nattempts, left_out; /* earlier attempts that are another story */
    double            seconds;             /* of all attempts */
} fv_story;

fv_status fv__story_open(const char *run_folder, fv_story **story, fv_error *error);
fv_status fv__story_update(fv_story *story, fv_error *error);
void      fv__story_close(fv_story *story);

/* What was told last under that name in this story; NULL: nothing. */
const char *fv__story_fact(const fv_story *story, const char *name);
const char *fv__log_fact(const fv_story_log *log, const char *name);
/* The last log of the story; NULL: there is none. */
const fv_story_log *fv__story_last(const fv_story *story);

typedef enum fv_story_state {
    FV_STORY_WAITING, /* nothing has begun, or of those who share the run nobody is there right now */
    FV_STORY_RUNNING,
    FV_STORY_DONE,
    FV_STORY_FAILED,
    FV_STORY_STOPPED,
    FV_STORY_KILLED,
} fv_story_state;
fv_story_state fv__story_state(const fv_story *story);
const char    *fv__story_state_name(fv_story_state state);

/* Sums over the logs of the story. */
typedef struct fv_story_sums {
    int64_t tasks, failed, total, found, spared; /* total: to do, as far as is known; found and spared: not to do */
    int64_t bytes_read, bytes_written;
    double  spans[FV_SPANS];
    int64_t items, opened;
} fv_story_sums;
fv_story_sums  fv__story_sums(const fv_story *story);
fv_story_stage fv__story_stage(const fv_story *story, int part, int stage);
fv_stage_facts fv__story_planned(const fv_story *story, int part, int stage);
/* Tasks of a stage of all items, as far as is known: those of items that are not open are taken to be like the first one's. */
int64_t fv__story_stage_total(const fv_story *story, int part, int stage);
double  fv__story_node(const fv_story *story, int part, int node); /* seconds */
int     fv__story_spent(const fv_story *story, fv_spent list[FV_MOST_SPENT]);
/* Each iteration once; the caller frees. */
fv_residual *fv__story_residuals(const fv_story *story, int64_t *count);

/* Files that are complete, each once, as they were told. The caller frees with fv__story_outputs_free. */
typedef struct fv_story_file {
    char       *path; /* where it is */
    const char *name; /* as the run calls it; the story's */
} fv_story_file;
fv_story_file *fv__story_outputs(const fv_story *story, int *count);
void           fv__story_outputs_free(fv_story_file *files, int count);
/* Whether what a record names may be opened or asked for. Never an address: a record can come from anybody, and whoever looks
 * at it must not be made to ask other machines. */
bool fv__story_may_open(const char *path);
/* Devices that tasks of all attempts were lent. */
fv_lease_facts fv__story_leases(const fv_story *story);

/* The workers of all attempts side by side, `columns` of equal time; workers are put together where there would be more than
 * `most` rows. Values are fractions of the time. The caller frees rows with fv__timeline_release. */
typedef struct fv_timeline {
    int     rows, columns, together; /* workers in a row */
    double  seconds;
    char  **names;
    float  *spans[FV_SPANS];    /* rows * columns */
    double *planned, *resident; /* by column, bytes */
} fv_timeline;
void fv__timeline_make(const fv_story *story, int columns, int most, fv_timeline *timeline);
void fv__timeline_release(fv_timeline *timeline);

#endif
