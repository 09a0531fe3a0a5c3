/* A run on more workers than there are: the tasks of a recorded run, played through a model of an engine on many nodes.
 *
 * It is a model and says so: compute times are those that were measured, and everything about the machines is assumed.
 * Events in time order; nothing is random but by the seed, so that the same question has the same answer.
 *
 *     fv_sim_answer answer;
 *     fv__simulate(&work, &(fv_sim_machine){ .workers = 1000, .cores = 24, .disk = 1e10 }, &answer);
 *
 * The model
 * 1. A unit (an item, or the run) has stages. The tasks of a stage may start when the stages that it needs are over; after its
 *    last task its end (merging, naming files) runs on one worker.
 * 2. A free worker takes the next task of the oldest unit. Where a process hands tasks out, it does so one after another.
 * 3. A task reads, computes and writes. Reading and writing of all tasks share the bandwidth of the disk, and those of a node its
 *    network; where they want more than there is, all of them become slower alike.
 * 4. A node begins after its start-up. A slow worker (straggler) needs `slow` times as long for a task. A node that fails loses
 *    what it was doing, which others do again, and comes back after its repair, if there is one.
 */
#ifndef FV_SIMULATE_H
#define FV_SIMULATE_H

#include "base/base.h"

typedef struct fv_sim_task {
    float  read, compute, write; /* seconds when alone */
    float  bytes;                /* read and written */
    double tasks;                /* of the run that it stands for, one after another; 0: 1 */
} fv_sim_task;

typedef struct fv_sim_stage {  /* of a unit */
    int64_t first, count;      /* tasks */
    double  end;               /* seconds of its end, on one worker */
    int     needs[16], nneeds; /* stages of the same unit, as places in the unit */
} fv_sim_stage;

typedef struct fv_sim_unit {
    int64_t first, count; /* stages */
    int     part;         /* units of a part begin when those of the parts before are over */
} fv_sim_unit;

typedef struct fv_sim_work {
    fv_sim_task  *tasks;
    fv_sim_stage *stages;
    fv_sim_unit  *units;
    int64_t       ntasks, nstages, nunits;
    double        serial;   /* seconds before the first task and after the last one, on one worker */
    double        each;     /* seconds of a worker for each task of the run beside its own */
    double        scale;    /* of all seconds of tasks, so that one worker takes what it took; 0: 1 */
    int64_t       together; /* tasks of the run that one of these stands for, at most: where there are very many; 0: 1 */
    double        all;      /* tasks of the run */
    double        unsure;   /* seconds by which an answer can differ because of that, beside chance and waiting for the disk */
} fv_sim_work;
void fv__sim_work_release(fv_sim_work *work);
/* Of a task when it is alone, with what it costs beside its own seconds. */
double fv__sim_task_seconds(const fv_sim_work *work, const fv_sim_task *task);

typedef struct fv_sim_machine {
    int      workers, cores;   /* cores: workers of a node */
    double   dispatch;         /* seconds in which one process hands out a task of the run; 0: nobody has to */
    double   disk, network;    /* bytes a second: of all nodes together, of a node; 0: no bound */
    double   start;            /* seconds until a node works; the nodes take up to twice as long */
    double   stragglers, slow; /* part of the tasks that take `slow` times as long */
    double   failures;         /* hours that a node lives on average; 0: for ever */
    double   repair;           /* seconds after which a node that failed is replaced; 0: never */
    uint64_t seed;
} fv_sim_machine;

/* Where the seconds of workers went, as parts of workers * seconds. */
typedef enum fv_sim_cost {
    FV_SIM_COMPUTE,  /* of tasks, with their own reading and writing as fast as it was measured */
    FV_SIM_DISK,     /* waiting because disk or network gave less */
    FV_SIM_HANDING,  /* waiting to be handed a task */
    FV_SIM_START,    /* before nodes work */
    FV_SIM_STRAGGLE, /* longer because slow */
    FV_SIM_LOST,     /* done in vain on nodes that failed, and their time after it */
    FV_SIM_IDLE,     /* nothing to do: too few tasks, or all wait for a stage's end */
    FV_SIM_COSTS
} fv_sim_cost;

typedef struct fv_sim_answer {
    double  seconds;
    double  costs[FV_SIM_COSTS];
    double  ends; /* of the idle part: seconds in which nothing but ends of stages ran, times workers / (workers * seconds) */
    int64_t failed, redone; /* nodes, tasks */
} fv_sim_answer;

void fv__simulate(const fv_sim_work *work, const fv_sim_machine *machine, fv_sim_answer *answer);
/* What hinders most, in a sentence's end: "the disk: ...". */
const char *fv__sim_bottleneck(const fv_sim_work *work, const fv_sim_machine *machine, const fv_sim_answer *answer);

#endif
