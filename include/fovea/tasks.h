/* A pipeline taken apart into its tasks, for a system that has a graph of its own, such as Dask.
 *
 *     fv_tasks *tasks;
 *     fv_pipeline_array(pipeline, "image", &type, NULL, &error);        // only its type: tasks get the voxels that they need
 *     fv_tasks_open(pipeline, &tasks, &error);                          // in every process: all of them find the same tasks
 *
 *     fv_tasks_needs(tasks, stage, task, &needs, &count, &error);       // where the graph is made: what has to be there before
 *
 *     fv_tasks_give(tasks, &needs[0], voxels, size, &error);            // where a task is run: everything that it needs,
 *     fv_tasks_run(tasks, stage, task, &error);                         // then the task itself,
 *     fv_tasks_made(tasks, stage, task, target, &made, &error);         // then what it made, for those that need it
 *     fv_tasks_forget(tasks);
 *
 * A stage is a number of tasks that do not depend on each other. A task makes one thing for each target of its stage: a chunk of
 * an image, or a partial, which is bytes. A stage with partials has an end, FV_TASK_END, which merges the partials of all tasks
 * into its results, also bytes. So results equal those of fv_pipeline_run bit by bit, and no process needs more than one task
 * does.
 *
 * One thread at a time uses fv_tasks; different ones may be used at once. The pipeline must live as long, and must not be
 * changed.
 */
#ifndef FOVEA_TASKS_H
#define FOVEA_TASKS_H

#include <fovea/api.h>
#include <fovea/pipeline.h>

typedef struct fv_tasks fv_tasks;

#define FV_TASK_END (-1)    /* instead of a task: the end of its stage */
#define FV_TASK_VALUES (-1) /* instead of a stage: what the numbers and tables that are wanted back need */

/* Pipelines that read a collection, write files or read a file that can only be read in order are refused. */
FV_API fv_status fv_tasks_open(fv_pipeline *pipeline, fv_tasks **tasks, fv_error *error);
FV_API void      fv_tasks_close(fv_tasks *tasks);

typedef struct fv_tasks_stage {
    int64_t tasks;
    int     targets;
    bool    ends;      /* it has an end */
    int64_t memory;    /* bytes that one task needs, at most */
    char    brief[96]; /* for people: the operators that it is made of */
} fv_tasks_stage;
FV_API int            fv_tasks_stages(const fv_tasks *tasks);
FV_API fv_tasks_stage fv_tasks_stage_facts(const fv_tasks *tasks, int stage);

/* Where the chunks of an image that is wanted back (fv_pipeline_keep) are made: by task `i` of the stage, as its target, chunk
 * `i` of a lattice in C order. False: there is no such image. */
typedef struct fv_tasks_image {
    int           stage, target;
    fv_image_type type;
    int64_t       chunk[FV_MAX_DIMS];
} fv_tasks_image;
FV_API bool fv_tasks_find(const fv_tasks *tasks, const char *name, fv_tasks_image *image);

typedef enum fv_need_kind {
    FV_NEED_ARRAY,   /* voxels of an array that the pipeline was told the type of */
    FV_NEED_CHUNK,   /* voxels of a chunk that a task made */
    FV_NEED_PARTIAL, /* what a task made, as it is */
    FV_NEED_RESULTS, /* what the end of a stage made, as it is */
} fv_need_kind;

typedef struct fv_task_need {
    fv_need_kind kind;
    int          array; /* ARRAY: in the order in which the pipeline was given them */
    int          stage, target;
    int64_t      task;   /* CHUNK, PARTIAL */
    fv_region    region; /* ARRAY, CHUNK: voxels that are needed */
    fv_region    chunk;  /* CHUNK: all voxels of the chunk */
} fv_task_need;

/* What a task needs: the caller frees *needs. Also of FV_TASK_END, and of stage FV_TASK_VALUES. */
FV_API fv_status fv_tasks_needs(fv_tasks *tasks, int stage, int64_t task, fv_task_need **needs, int64_t *count, fv_error *error);

/* Hands over what is needed: dense voxels of need->region, or bytes. An array may come in parts, each with its own region; its
 * voxels are borrowed until fv_tasks_forget. What a task made of which nobody needs anything after all has size 0. */
FV_API fv_status fv_tasks_give(fv_tasks *tasks, const fv_task_need *need, const void *data, int64_t size, fv_error *error);
FV_API fv_status fv_tasks_run(fv_tasks *tasks, int stage, int64_t task, fv_error *error);

typedef struct fv_task_made { /* borrowed until fv_tasks_forget */
    const void *data;
    int64_t     size;   /* bytes; 0: nothing, because it lies in a branch that was not chosen */
    bool        voxels; /* a chunk of an image; otherwise a partial or results */
    fv_dtype    dtype;
    fv_region   chunk;
} fv_task_made;
/* target: 0 for FV_TASK_END. */
FV_API fv_status fv_tasks_made(fv_tasks *tasks, int stage, int64_t task, int target, fv_task_made *made, fv_error *error);
/* Numbers and tables that are wanted back, once what FV_TASK_VALUES needs was given: fv_result_table has them. The caller frees.
 */
FV_API fv_status fv_tasks_values(fv_tasks *tasks, fv_result **result, fv_error *error);
/* Forgets what was given and made; results stay, because most tasks of a stage need the same ones. */
FV_API void fv_tasks_forget(fv_tasks *tasks);

#endif
