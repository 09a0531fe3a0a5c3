/* Outputs: writers while tasks run, and the list of those whose pieces have to be made durable. */
#include "exec/output.h"
#include "base/file.h"
#include <pthread.h>
#include <stdlib.h>

struct fv_output_list {
    fv_output      *first;
    pthread_mutex_t mutex; /* held while files are synced */
};

fv_output *fv__output_new(const char *path, fv_hash key) {
    fv_output *output = fv__calloc(sizeof *output);
    output->path = fv__strdup(path);
    output->key = key;
    output->users = 1;
    return output;
}

fv_output *fv__output_of(const fv_planned_file *file) {
    fv_output *output = fv__output_new(file->sink->file, file->sink->key);
    output->file = file;
    return output;
}

fv_output *fv__output_use(fv_output *output) {
    output->users++;
    return output;
}

void fv__output_leave(fv_output *output) {
    if (!output || --output->users > 0) return;
    fv__output_close(output);
    fv__paths_release(&output->unsynced);
    free(output->path);
    free(output->temporary);
    free(output);
}

/* ---------------------------------------------------------------- writing */

static void add(fv_output_list *list, fv_output *output) {
    fv__io_lock(&list->mutex);
    output->list = list;
    output->next_written = list->first;
    list->first = output;
    pthread_mutex_unlock(&list->mutex);
}

static void drop(fv_output *output) {
    fv_output_list *list = output->list;
    if (!list) return;
    fv__io_lock(&list->mutex);
    for (fv_output **o = &list->first; *o; o = &(*o)->next_written)
        if (*o == output) {
            *o = output->next_written;
            break;
        }
    output->list = NULL;
    pthread_mutex_unlock(&list->mutex);
}

static void free_writer(fv_output *output) {
    drop(output);
    if (output->writer) output->writer->format->free_writer(output->writer);
    output->writer = NULL;
}

fv_status fv__output_open(fv_output *output, const char *temporary, fv_hash epoch, fv_output_list *list, fv_error *error) {
    const fv_planned_file *file = output->file;
    if (file && output->writer && !strcmp(output->temporary, temporary)) return FV_OK;
    free_writer(output);
    free(output->temporary);
    output->temporary = fv__strdup(temporary);
    output->epoch = epoch;
    if (file) {
        fv_image_file image = { output->path, &file->sink->value->type.image, &file->sink->write };
        FV_TRY(file->format->create(&image, &file->layout, temporary, &output->writer, error));
        if (file->layout.parallel && file->format->sync) add(list, output);
    }
    output->state = FV_OUTPUT_OPEN;
    return FV_OK;
}

void fv__output_is_current(fv_output *output) { output->state = FV_OUTPUT_CURRENT; }

bool fv__output_current(const fv_output *output) { return output->state == FV_OUTPUT_CURRENT; }

bool fv__output_made(const fv_output *output) { return output->state >= FV_OUTPUT_COMPLETE; }

void fv__output_close(fv_output *output) {
    free_writer(output);
    output->file = NULL;
}

/* ---------------------------------------------------------------- all of them */

fv_output_list *fv__output_list_new(void) {
    fv_output_list *list = fv__calloc(sizeof *list);
    pthread_mutex_init(&list->mutex, NULL);
    return list;
}

void fv__output_list_free(fv_output_list *list) {
    if (!list) return;
    pthread_mutex_destroy(&list->mutex);
    free(list);
}

fv_status fv__output_list_sync(void *context, fv_error *error) {
    fv_output_list *list = context;
    fv_status       status = FV_OK;
    fv__io_lock(&list->mutex);
    for (const fv_output *o = list->first; o && status == FV_OK; o = o->next_written)
        status = o->writer->format->sync(o->writer, error);
    pthread_mutex_unlock(&list->mutex);
    return status;
}
