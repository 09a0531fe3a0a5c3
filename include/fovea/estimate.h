/* What a pipeline will cost, told before it is run.
 *
 *     fv_estimate e;
 *     if (fv_pipeline_estimate(pipeline, &(fv_estimate_options){ .workers = 64 }, &e, &error) == FV_OK)
 *         printf("%.0f s on 64 workers\n", fv_estimate_seconds(&e, 64));
 *
 * A few items (of a single image: a few slabs) are really run in a store that is thrown away; how read, compute, write and merge
 * time and memory grow with size and count is fitted to what was measured.
 */
#ifndef FOVEA_ESTIMATE_H
#define FOVEA_ESTIMATE_H

#include <fovea/api.h>
#include <fovea/pipeline.h>

typedef struct fv_growth { /* seconds of one core for an item of that many bytes: fixed + per_byte * bytes */
    double fixed, per_byte;
} fv_growth;

typedef enum fv_cost { FV_COST_READ, FV_COST_COMPUTE, FV_COST_WRITE, FV_COST_MERGE, FV_COSTS } fv_cost;
FV_API const char *fv_cost_name(fv_cost cost); /* "read", "compute", "write" or "merge" */

typedef struct fv_estimate_point { /* the whole job on so many workers of one machine */
    int     workers;
    double  seconds, low, high; /* expected, and the range that holds it with about 95 % */
    int64_t memory, memory_high;
} fv_estimate_point;

typedef enum fv_job_style { FV_JOB_SERIAL, FV_JOB_THREADED, FV_JOB_DISTRIBUTED, FV_JOB_ARRAY, FV_JOB_STYLES } fv_job_style;

typedef struct fv_request { /* what to ask a scheduler for; safe: the upper end of the range, and some more */
    fv_job_style style;
    int          tasks, cpus_per_task; /* of an array: of each element */
    int          elements;             /* of an array; 1 otherwise */
    int64_t      memory;               /* bytes for each task, so on one node: tasks * memory */
    double       seconds;              /* of an array: of each element */
} fv_request;

#define FV_ESTIMATE_POINTS 16

typedef struct fv_estimate {
    int64_t           items_present, items; /* of the collection; that the estimate is for. 1 and 1 for a single image */
    int64_t           items_measured;       /* items that were run, or slabs of a single image */
    double            bytes;                /* of all input, as it lies on disk or, of a single image, in memory */
    double            seconds_measuring;    /* that the estimate itself took */
    fv_growth         growth[FV_COSTS];     /* of one item */
    double            work[FV_COSTS];       /* seconds of one core, the whole job */
    fv_cost           dominates;
    double            start, factor, serial;      /* seconds on n workers: start + factor * work * (serial + (1 - serial) / n) */
    double            error;                      /* relative standard error of the seconds */
    double            memory_base, memory_worker; /* bytes: base + n * worker */
    double            memory_error;               /* relative */
    int64_t           memory_bound;               /* what a run would keep to */
    int64_t           job_least;                  /* memory of a job of `fovea submit`, at least */
    int               cores;                      /* of this machine; beyond them the estimate extrapolates */
    double            load;         /* processes of others that wanted a core before measuring began; -1: not known */
    int64_t           most_workers; /* more than that have nothing to do */
    fv_estimate_point points[FV_ESTIMATE_POINTS]; /* workers 1, 2, 4 ... and the number asked for */
    int               npoints;
    fv_request        requests[FV_JOB_STYLES];
} fv_estimate;

typedef struct fv_estimate_options {
    int64_t     items;   /* how many the answer is for; may be more than there are; 0: those that there are */
    int         workers; /* the most that the answer is for; 0: all cores */
    int64_t     memory;  /* bound of a run; 0: half of what is free */
    double      budget;  /* seconds that measuring should take, about; 0: 20 */
    const char *store;   /* folder for what is thrown away; NULL: .fovea */
    const char *command; /* the fovea command; NULL: this program */
    void (*tell)(void *context, const char *what); /* what is going on; may be NULL */
    void               *context;
    const volatile int *cancel;
} fv_estimate_options;

FV_API fv_status fv_pipeline_estimate(fv_pipeline *pipeline, const fv_estimate_options *options, fv_estimate *estimate,
                                      fv_error *error);

/* Whether others took so much of this machine that the measured times say little. */
FV_API bool fv_estimate_disturbed(const fv_estimate *estimate);

/* ---- asking an estimate ---- */
FV_API double  fv_estimate_seconds(const fv_estimate *estimate, int64_t workers);
FV_API int64_t fv_estimate_memory(const fv_estimate *estimate, int64_t workers);
/* What to ask for when so many workers (elements of an array) are wanted. */
FV_API fv_request fv_estimate_request(const fv_estimate *estimate, fv_job_style style, int workers);
/* Options of sbatch that ask for it: "--ntasks=1 --cpus-per-task=4 --mem=600M --time=00:12:00". */
FV_API void fv_request_format(const fv_request *request, char text[160]);
/* For people or programs; the caller frees. */
FV_API char *fv_estimate_print(const fv_estimate *estimate, fv_form form);
/* An estimate as such a text at once, for languages that do not know the struct; the caller frees. */
FV_API fv_status fv_pipeline_estimate_text(fv_pipeline *pipeline, const fv_estimate_options *options, fv_form form, char **text,
                                           fv_error *error);

#endif
