/* Many files made durable together. A flush costs a turn of the device's cache whatever its size, and turns that wait at the
 * same moment are joined: eight threads need a thirtieth of the time of one. */
#include "base/sync.h"
#include "base/file.h"
#include "base/session.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 16 };

typedef struct {
    char *const    *paths;
    size_t          count, next, from, until; /* those between the last two may be missing */
    pthread_mutex_t mutex;                    /* guards next and what failed */
    const char     *failed;
    int             cause;
} batch;

/* ---------------------------------------------------------------- later */

static _Thread_local fv_paths *gathered; /* NULL: this thread syncs at once */

/* A folder is named by each of its files, which follow one another. */
static bool is_near_end(const fv_paths *paths, const char *path) {
    enum { NEAR = 16 };
    for (size_t i = paths->count; i > 0 && i + NEAR > paths->count; i--)
        if (!strcmp(paths->path[i - 1], path)) return true;
    return false;
}

void fv__paths_add(fv_paths *paths, const char *path) {
    if (is_near_end(paths, path)) return;
    if (!(paths->count & (paths->count - 1))) /* a power of two: it is full */
        paths->path = fv__realloc(paths->path, FV_MAX(2 * paths->count, 1) * sizeof *paths->path);
    paths->path[paths->count++] = fv__strdup(path);
}

void fv__paths_release(fv_paths *paths) {
    for (size_t i = 0; i < paths->count; i++) free(paths->path[i]);
    free(paths->path);
    *paths = (fv_paths){ 0 };
}

void fv__paths_gather(fv_paths *to) { gathered = to; }

/* What may be missing is missing for good by now, or never will be. */
static fv_status gather(char *const *paths, size_t count, size_t from, size_t until) {
    for (size_t i = 0; i < count; i++)
        if (i < from || i >= until || fv__file_exists(paths[i])) fv__paths_add(gathered, paths[i]);
    return FV_OK;
}

/* ---------------------------------------------------------------- now */

static bool sync_path(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool good = !fdatasync(fd) || errno == EINVAL; /* some systems cannot sync folders and need not */
    int  cause = errno;
    close(fd);
    errno = cause;
    return good;
}

static void *work(void *argument) {
    batch *b = argument;
    for (;;) {
        pthread_mutex_lock(&b->mutex);
        size_t      index = b->next;
        const char *path = index < b->count && !b->failed ? b->paths[b->next++] : NULL;
        pthread_mutex_unlock(&b->mutex);
        if (!path) return NULL;
        if (sync_path(path)) continue;
        int cause = errno;
        if (cause == ENOENT && index >= b->from && index < b->until) continue;
        pthread_mutex_lock(&b->mutex);
        b->failed = path;
        b->cause = cause;
        pthread_mutex_unlock(&b->mutex);
    }
}

fv_status fv__paths_sync_some(char *const *paths, size_t count, size_t from, size_t until, fv_error *error) {
    batch     b = { .paths = paths, .count = count, .from = from, .until = until, .mutex = PTHREAD_MUTEX_INITIALIZER };
    pthread_t threads[THREADS];
    size_t    started = 0;
    if (gathered) return gather(paths, count, from, until);
    fv__io_enter();
    while (started + 1 < FV_MIN(count, (size_t)THREADS) && !fv__thread_start(&threads[started], work, &b)) started++;
    work(&b);
    for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
    fv__io_leave();
    if (!b.failed) return FV_OK;
    return fv_fail(error, b.cause == ENOSPC || b.cause == EDQUOT ? FV_ERROR_FULL : FV_ERROR_IO, "cannot sync %s: %s", b.failed,
                   strerror(b.cause));
}

fv_status fv__paths_sync(char *const *paths, size_t count, fv_error *error) {
    return fv__paths_sync_some(paths, count, 0, 0, error);
}

fv_status fv__open_file_sync(int fd, const char *path, fv_error *error) {
    if (!gathered) return fv__file_sync(fd, path, error);
    fv__paths_add(gathered, path);
    return FV_OK;
}
