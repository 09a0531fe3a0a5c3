/* How a run would go on more workers than there are: `fovea scale --simulate`. All of it is simulated, but for what is said to be
 * measured. */
#ifndef FV_SIMULATION_H
#define FV_SIMULATION_H

#include <fovea/pipeline.h>

typedef struct fv_simulate_options {
    const int  *workers;
    int         nworkers;
    const char *run;           /* folder of a recorded run; NULL: the pipeline is run on one and on two workers */
    const char *engine;        /* whose costs are assumed; NULL: slurm */
    int64_t     times;         /* the work that is simulated, as a multiple of what was recorded; 0: 1 */
    int64_t     volumes;       /* so many of them, which do not wait for each other; 0: 1 */
    int64_t     most;          /* tasks that are played; of more, each stands for several; 0: 4,000,000 */
    int         repeats;       /* of trial runs; the fastest counts */
    int         cores;         /* workers of a node; 0: as many as this machine has cores */
    double      disk, network; /* bytes a second, of all nodes and of one; 0: 20 GB/s and 1.25 GB/s */
    double      stragglers;    /* part of the tasks that take three times as long; below 0: 0.001 */
    double      failures;      /* hours that a node lives; 0: 20,000 */
    int64_t     memory;
    const char *store;
    void (*tell)(void *context, const char *what);
    const volatile int *cancel;
} fv_simulate_options;

typedef struct fv_simulated {
    int         workers, nodes;
    double      seconds, speedup, efficiency;
    double      unsure; /* the part of the seconds by which they can be wrong because tasks were played together */
    double      compute, disk, handing, start, straggle, lost, idle; /* parts of the workers' time */
    int64_t     failed, redone;                                      /* nodes, tasks */
    bool        asked;                                               /* for; others are for the curve */
    const char *bottleneck;
} fv_simulated;

typedef struct fv_simulation {
    fv_simulated *rows; /* by workers */
    int           nrows;
    int64_t       tasks;     /* that are played */
    int64_t       together;  /* tasks of the run that one of them stands for, at most */
    double        all_tasks; /* of the run */
    double        one;       /* seconds on one worker, as simulated */
    double        measured;  /* seconds of what was recorded, on `recorded` workers */
    int           recorded;
    double        measured_two, predicted_two; /* the check; 0: there was none */
    int           worth;                       /* the most workers that are still half busy */
    int           fastest;                     /* the fewest with which it takes at most 5 % longer than at best */
    /* What was assumed. */
    const char *engine;
    int         cores;
    double      dispatch, start, disk, network, stragglers, slow, failures;
} fv_simulation;

fv_status fv_simulate(fv_pipeline *pipeline, const fv_simulate_options *options, fv_simulation **simulation, fv_error *error);
void      fv_simulation_free(fv_simulation *simulation);
/* How many workers are worth it; what was assumed; how many tasks were played, and how exact that is. */
enum { FV_SIMULATION_SENTENCE = 400 };
const char *fv_simulation_sentence(const fv_simulation *simulation, char text[FV_SIMULATION_SENTENCE]);
const char *fv_simulation_assumed(const fv_simulation *simulation, char text[FV_SIMULATION_SENTENCE]);
const char *fv_simulation_played(const fv_simulation *simulation, char text[FV_SIMULATION_SENTENCE]);
/* Writes simulated.csv, simulated.svg and simulated.html into the folder. */
fv_status fv_simulation_save(const fv_simulation *simulation, const char *folder, const char *title, fv_error *error);

#endif
