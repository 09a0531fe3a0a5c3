/* A job and its answer as bytes: what all engines send whose workers are other processes, whatever carries it. Both ends are the
 * same program on the same kind of machine, so numbers go as they are.
 */
#ifndef FV_WIRE_H
#define FV_WIRE_H

#include "run/engine.h"

typedef struct fv_wire_job {
    int64_t ticket, item, task;
    int32_t kind, stage;
    int32_t held;    /* what it stores will be exchanged */
    int32_t outputs; /* bytes that follow, about the files of its item; 0: as told before */
} fv_wire_job;

typedef struct fv_wire_answer {
    int64_t       ticket;
    int32_t       status, worker;
    fv_task_facts facts;
    fv_error      error; /* sent only if the status is not FV_OK */
} fv_wire_answer;

/* outputs: whether the worker has to be told about the files of the job's item. */
void fv__wire_put_job(fv_bytes *to, const fv_job *job, bool outputs);
/* Moves `at` behind it; *outputs is borrowed from there. False: nothing is left, or it is damaged. */
bool fv__wire_take_job(const uint8_t **at, const uint8_t *end, fv_wire_job *job, const uint8_t **outputs);
/* Brings the outputs of an item to what a job told of them. scratch: a folder for their temporaries where the true ones are not
 * seen; NULL: they are. */
fv_status fv__wire_follow(fv_instance *instance, const uint8_t *outputs, size_t size, const char *scratch, fv_error *error);

void fv__wire_put_answer(fv_bytes *to, const fv_job *job, int worker, fv_status status, const fv_error *error);
bool fv__wire_take_answer(const uint8_t **at, const uint8_t *end, fv_wire_answer *answer);

#endif
