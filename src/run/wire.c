/* Jobs and answers as bytes. */
#include "run/wire.h"
#include "base/file.h"
#include <stdlib.h>

typedef struct wire_output {
    fv_hash epoch;
    int64_t length; /* of the temporary's path, which follows; 0: the file is current */
} wire_output;

static void put_outputs(fv_bytes *to, const fv_instance *instance) {
    for (int k = 0; k < instance->plan->nfiles; k++) {
        const char *path = fv__output_told(instance->outputs[k]);
        wire_output output = { .epoch = instance->outputs[k]->epoch, .length = (int64_t)strlen(path) };
        fv__bytes_append(to, &output, sizeof output);
        fv__bytes_append(to, path, (size_t)output.length);
    }
}

void fv__wire_put_job(fv_bytes *to, const fv_job *job, bool outputs) {
    fv_bytes files = { 0 };
    if (outputs) put_outputs(&files, job->instance);
    fv_wire_job line = { .ticket = job->ticket,
                         .item = job->instance->item,
                         .task = job->task,
                         .kind = (int32_t)job->kind,
                         .stage = job->stage,
                         .held = job->held,
                         .outputs = (int32_t)files.size };
    fv__bytes_append(to, &line, sizeof line);
    if (files.size) fv__bytes_append(to, files.data, files.size);
    fv__bytes_release(&files);
}

static bool take(const uint8_t **at, const uint8_t *end, void *to, size_t size) {
    if ((size_t)(end - *at) < size) return false;
    memcpy(to, *at, size);
    *at += size;
    return true;
}

bool fv__wire_take_job(const uint8_t **at, const uint8_t *end, fv_wire_job *job, const uint8_t **outputs) {
    if (!take(at, end, job, sizeof *job) || job->outputs < 0 || end - *at < job->outputs) return false;
    *outputs = *at;
    *at += job->outputs;
    return true;
}

static char *temporary_here(const char *path, int length, const char *scratch) {
    char *there = fv__sprintf("%.*s", length, path), *here;
    if (!length || !scratch) return there;
    here = fv__sprintf("%s/%s", scratch, fv__path_name(there));
    free(there);
    return here;
}

fv_status fv__wire_follow(fv_instance *instance, const uint8_t *at, size_t size, const char *scratch, fv_error *error) {
    const uint8_t *end = at + size;
    wire_output    output;
    fv_status      status = FV_OK;
    for (int k = 0; k < instance->plan->nfiles && status == FV_OK && take(&at, end, &output, sizeof output); k++) {
        if (end - at < output.length) return fv_fail(error, FV_ERROR_INTERNAL, "a job came damaged");
        char *path = temporary_here((const char *)at, (int)output.length, scratch);
        status = fv__instance_follow(instance, k, path, output.epoch, error);
        at += output.length;
        free(path);
    }
    return status;
}

void fv__wire_put_answer(fv_bytes *to, const fv_job *job, int worker, fv_status status, const fv_error *error) {
    fv_wire_answer answer = { .ticket = job->ticket, .status = (int32_t)status, .worker = worker, .facts = job->facts };
    fv__bytes_append(to, &answer, offsetof(fv_wire_answer, error));
    if (status != FV_OK) fv__bytes_append(to, error, sizeof *error);
}

bool fv__wire_take_answer(const uint8_t **at, const uint8_t *end, fv_wire_answer *answer) {
    *answer = (fv_wire_answer){ 0 };
    if (!take(at, end, answer, offsetof(fv_wire_answer, error))) return false;
    return answer->status == FV_OK || take(at, end, &answer->error, sizeof answer->error);
}
