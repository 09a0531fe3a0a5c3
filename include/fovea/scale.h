/* Scaling studies: the same pipeline on different numbers of workers, nothing shared and nothing found in a cache.
 *
 *     int workers[] = { 1, 2, 4 };
 *     fv_scale_options options = { .workers = workers, .nworkers = 3, .strong = true, .repeats = 3 };
 *     fv_scaling *s;
 *     if (fv_pipeline_scale(pipeline, &options, &s, &error) == FV_OK)
 *         for (int i = 0; i < s->nrows; i++) printf("%d workers: %.2f s\n", s->rows[i].workers, s->rows[i].seconds);
 *     fv_scaling_free(s);
 *
 * Strong: the same work for all; efficiency is T1 / (N * TN). Weak: N times the work for N workers; efficiency is T1 / TN.
 */
#ifndef FOVEA_SCALE_H
#define FOVEA_SCALE_H

#include <fovea/api.h>
#include <fovea/estimate.h>

typedef struct fv_scale_row { /* the repeat with the median time, unless said otherwise */
    bool    weak;
    int     workers;
    double  size;                 /* of the work: items, or slices of a single image */
    int64_t tasks;                /* that were executed */
    double  seconds, least, most; /* median and range of all repeats */
    double  speedup, efficiency;  /* weak speed-up: N * T1 / TN */
    double  work[FV_COSTS];       /* seconds of workers */
    double *stages;               /* seconds of workers by stage */
    int64_t memory;               /* peak of the process that was started */
} fv_scale_row;

typedef struct fv_scale_task { /* of the timelines */
    int    row, worker, stage;
    double start, seconds; /* since the first task of the run */
} fv_scale_task;

typedef struct fv_scaling {
    fv_scale_row  *rows; /* strong ones first, by workers */
    int            nrows, nstages, repeats;
    double         noise;                  /* largest (most - least) / median of all rows; unknown (nan) with one repeat */
    double         serial, serial_seconds; /* Amdahl's fraction from the strong rows, and the seconds on one worker it gives */
    bool           fitted;                 /* there were strong rows of two numbers of workers at least */
    fv_scale_task *tasks;
    int64_t        ntasks;
} fv_scaling;

typedef struct fv_scale_options {
    const int  *workers; /* one is added if it is not among them: it is what all are compared with */
    int         nworkers;
    bool        strong, weak;
    int         repeats;  /* 0: 3 */
    int64_t     items;    /* of a collection; 0: all */
    const char *engine;   /* NULL: threads. mpi: every run is started by the launcher */
    const char *launcher; /* NULL: mpiexec; followed by -n N */
    int64_t     memory;
    const char *store, *command;
    void (*tell)(void *context, const char *what);
    void               *context;
    const volatile int *cancel;
} fv_scale_options;

FV_API fv_status fv_pipeline_scale(fv_pipeline *pipeline, const fv_scale_options *options, fv_scaling **scaling, fv_error *error);
FV_API void      fv_scaling_free(fv_scaling *scaling);
/* Speed-up and efficiency of all rows, and Amdahl's fraction, from their seconds. */
FV_API void fv_scaling_derive(fv_scaling *scaling);

#endif
