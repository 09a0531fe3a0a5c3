/* Folders that become remote: many files at a time; those that describe a folder afterwards, one by one, the innermost first. */
#include "base/remote.h"
#include "base/session.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

enum { SENDERS = 8 };

typedef struct {
    char **from, **to;
    size_t count;
} file_list;

static void add_file(file_list *list, char *from_take, char *to_take) {
    if (!(list->count & (list->count - 1))) {
        size_t room = FV_MAX(2 * list->count, (size_t)1);
        list->from = fv__realloc(list->from, room * sizeof *list->from);
        list->to = fv__realloc(list->to, room * sizeof *list->to);
    }
    list->from[list->count] = from_take;
    list->to[list->count++] = to_take;
}

static void release_list(file_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->from[i]);
        free(list->to[i]);
    }
    free(list->from);
    free(list->to);
}

static bool describes(const char *name) {
    return !strcmp(name, "zarr.json") || !strcmp(name, ".zarray") || !strcmp(name, ".zgroup") || !strcmp(name, ".zattrs");
}

/* What lies in a folder; what describes it comes behind what describes those inside it. */
static fv_status gather(const char *folder, const char *path, file_list *data, file_list *describing, fv_error *error) {
    DIR *entries = opendir(folder);
    if (!entries) return fv_fail(error, FV_ERROR_IO, "cannot read %s: %s", folder, strerror(errno));
    file_list            own = { 0 };
    fv_status            status = FV_OK;
    const struct dirent *entry;
    while (status == FV_OK && (entry = readdir(entries))) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, "..")) continue;
        char *from = fv__sprintf("%s/%s", folder, name), *to = fv__path_inside(path, name);
        if (fv__path_is_folder(from)) {
            status = gather(from, to, data, describing, error);
            free(from);
            free(to);
        } else
            add_file(describes(name) ? &own : data, from, to);
    }
    closedir(entries);
    for (size_t i = 0; i < own.count; i++) add_file(describing, own.from[i], own.to[i]);
    free(own.from);
    free(own.to);
    return status;
}

typedef struct {
    const file_list *list;
    pthread_mutex_t  mutex; /* guards what follows */
    size_t           next;
    fv_error         failure; /* the first; code FV_OK: none */
} sending;

/* False: there is no other file, or something went wrong. */
static bool take_next(sending *s, size_t *index) {
    pthread_mutex_lock(&s->mutex);
    bool taken = s->next < s->list->count && s->failure.code == FV_OK;
    if (taken) *index = s->next++;
    pthread_mutex_unlock(&s->mutex);
    return taken;
}

static void *send_files(void *context) {
    sending *s = context;
    size_t   index;
    while (take_next(s, &index)) {
        fv_error  error = { 0 };
        fv_status status = fv__remote_put_file(s->list->from[index], s->list->to[index], &error);
        pthread_mutex_lock(&s->mutex);
        if (status != FV_OK && s->failure.code == FV_OK) s->failure = error;
        pthread_mutex_unlock(&s->mutex);
    }
    return NULL;
}

static fv_status send_at_once(const file_list *list, fv_error *error) {
    sending   s = { .list = list, .mutex = PTHREAD_MUTEX_INITIALIZER };
    pthread_t threads[SENDERS];
    size_t    started = 0, most = FV_MIN(list->count, (size_t)SENDERS);
    fv__io_enter();
    while (started + 1 < most && !fv__thread_start(&threads[started], send_files, &s)) started++;
    send_files(&s);
    for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
    fv__io_leave();
    if (s.failure.code != FV_OK && error) *error = s.failure;
    return s.failure.code;
}

fv_status fv__remote_upload(const char *folder, const char *path, fv_error *error) {
    file_list data = { 0 }, describing = { 0 };
    fv_status status = gather(folder, path, &data, &describing, error);
    if (status == FV_OK) status = send_at_once(&data, error);
    for (size_t i = 0; i < describing.count && status == FV_OK; i++)
        status = fv__remote_put_file(describing.from[i], describing.to[i], error);
    release_list(&data);
    release_list(&describing);
    return status;
}
