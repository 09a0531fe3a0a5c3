/* What a simulation plays, made of the tasks of a record.
 *
 *     fv_sim_record record = { .tasks = tasks, .count = count, .graph = graph, .seconds = 12, .workers = 1 };
 *     FV_TRY(fv__sim_work_make(&record, (fv_sim_size){ .times = 600 }, &work, error));
 *     fv__sim_work_release(&work);
 */
#ifndef FV_SIMULATED_WORK_H
#define FV_SIMULATED_WORK_H

#include "record/record.h"
#include "story/run_graph.h"
#include "story/simulate.h"

typedef struct fv_sim_record {
    fv_task_facts      *tasks; /* in any order, and perhaps twice; are put in order */
    int64_t             count;
    const fv_run_graph *graph;            /* NULL: no stage needs another */
    double              seconds, merging; /* of the whole run; of it, in ends of stages */
    int                 workers;
} fv_sim_record;

/* times: as if there were so many times as many items, or for a single image as many times as many chunks. volumes: and so many
 * of them that do not wait for each other. 0: 1. most: tasks that are played; where there are more, each stands for several of
 * its stage that follow each other on one worker. 0: 4,000,000.
 */
typedef struct fv_sim_size {
    int64_t times, volumes, most;
} fv_sim_size;
fv_status fv__sim_work_make(fv_sim_record *record, fv_sim_size size, fv_sim_work *work, fv_error *error);

#endif
