/* The record of a run: facts about every task, appended as checksummed lines by each worker, built into SQLite afterwards. */
#ifndef FV_RECORD_H
#define FV_RECORD_H

#include "base/base.h"

typedef struct fv_record fv_record;

enum { FV_FACT_STEPS = 24 };

typedef struct fv_task_facts {
    fv_hash key;
    int64_t item, stage, task;
    int     worker;
    double  start;                      /* seconds since the epoch */
    double  wait, read, compute, write; /* seconds */
    int64_t bytes_read, bytes_written;
    int64_t memory;               /* planned peak, bytes */
    int     status;               /* fv_status */
    int     leases;               /* of devices */
    float   leased, queued;       /* seconds that it held devices, and that it waited for them */
    float   spent[FV_FACT_STEPS]; /* seconds of each step of the stage, then of each target; the last one: of all further */
} fv_task_facts;

/* Seconds of all workers in one operator, all tasks together; fetching from the store is "store", making files "write". */
typedef struct fv_spent {
    char   op[40];
    double seconds;
} fv_spent;
enum { FV_MOST_SPENT = 256 }; /* operators of a run that are told apart */
/* Adds to the operator's entry, or a new one; *count says how many there are. */
void fv__spent_add(fv_spent *list, int *count, const char *op, double seconds);

/* What became of the tasks of a stage, as items were opened. Stages are numbered in each part of the run: that of each segment of
 * its text. The tasks of a stage that was looked at are tasks, found or spared. */
typedef struct fv_stage_facts {
    int64_t part, stage;
    int64_t items;  /* that were opened */
    int64_t tasks;  /* to do */
    int64_t found;  /* not to do: what they make was there from an earlier run */
    int64_t spared; /* not to do: nothing that is still to be made needs them */
} fv_stage_facts;

/* Seconds of all workers in one node of the graph of a part. */
typedef struct fv_node_spent {
    int64_t part, node;
    double  seconds;
} fv_node_spent;

/* Devices that tasks were lent: how often, for how many seconds of all workers, and for how many they waited. */
typedef struct fv_lease_facts {
    int64_t leases;
    double  leased, queued;
} fv_lease_facts;

/* How well a solver explains what was measured, before (of cgls, after) an iteration: norms of what is left over of what was
 * measured, of all slices together and of the best and the worst one. */
typedef struct fv_residual {
    fv_hash call; /* of the solver: its parameters and inputs */
    char    op[16];
    int64_t line;                    /* of the text, where it is called */
    int64_t item, iteration, slices; /* slices: that still took part */
    double  residual, least, most;
} fv_residual;

/* Opens this process's log in the run folder (made if missing). worker names the file: no two live processes may share it. */
fv_status fv__record_open(const char *folder, const char *worker, fv_record **record, fv_error *error);
/* Thread-safe, buffered; a killed process loses at most what was not flushed. record NULL: nobody keeps one. */
void fv__record_task(fv_record *record, const fv_task_facts *facts);
/* A named fact of the run: "text", "command", "host", "workers", "memory", "error item.png", ... */
void fv__record_fact(fv_record *record, const char *name, const char *value);
void fv__record_spent(fv_record *record, const char *op, double seconds);
/* A file that is complete. Of very many only the first ones are named, so that the log stays small. */
void fv__record_output(fv_record *record, const char *path);
enum { FV_MOST_OUTPUTS = 200 };
/* Added up until they are written. */
void      fv__record_node(fv_record *record, int64_t part, int64_t node, double seconds);
void      fv__record_stage(fv_record *record, const fv_stage_facts *facts);
void      fv__record_residual(fv_record *record, const fv_residual *residual);
fv_status fv__record_flush(fv_record *record, fv_error *error); /* also tells of earlier writes that failed */
void      fv__record_close(fv_record *record);

/* Builds FOLDER/record.db from all logs there; replaces an older one atomically. Tables: run(name, value), equal lines once;
 * task(key, item, stage, task, process, worker, start, wait, read, compute, write, bytes_read, bytes_written, memory, status),
 * where key is 32 hexadecimal digits, process the name of the log and status a word: "ok", "input", ...; residual(item, line,
 * operator, call, iteration, residual, least, most, slices), one for each iteration of each call; spent(operator, seconds);
 * memory(process, time, resident), what the process took, a few times a second; stage(part, stage, items, tasks, found, spared);
 * node(part, node, seconds). What FOLDER/graph.json says of parts, stages and nodes is the value of "graph" in run. */
fv_status fv__record_build(const char *folder, fv_error *error);
/* Calls visit for every task line of all logs in the folder; process is the name of the log. */
fv_status fv__record_each(const char *folder, void (*visit)(void *context, const char *process, const fv_task_facts *facts),
                          void *context, fv_error *error);
/* All residuals of the logs, each iteration once, in order of item, line, call and iteration; the caller frees *residuals. */
fv_status fv__record_residuals(const char *folder, fv_residual **residuals, int64_t *count, fv_error *error);
/* What was spent in each operator, by all processes together, in order of their first use. */
fv_status fv__record_spent_all(const char *folder, fv_spent list[FV_MOST_SPENT], int *count, fv_error *error);
/* Number of task lines in all logs, and of keys that appear with status ok more than once. */
fv_status fv__record_count(const char *folder, int64_t *tasks, int64_t *repeated, fv_error *error);

#endif
