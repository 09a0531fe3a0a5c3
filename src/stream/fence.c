/* Partitions that go from one process to another. The file is a list of 32-bit numbers. */
#include "stream/fence.h"
#include "base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct fv_fence {
    char    *path;
    int      fd;
    int32_t *lost;
    int64_t  nlost;
};

static char *path_of(const char *folder, const char *name) { return fv__sprintf("%s/%s.fence", folder, name); }

static fv_status fail(const char *path, fv_error *error) {
    return fv_fail(error, errno == ENOSPC || errno == EDQUOT ? FV_ERROR_FULL : FV_ERROR_IO, "%s: %s", path, strerror(errno));
}

/* A process that stands still in the middle of a commit is waited for: what it does next is not known. */
static fv_status lock(int fd, const char *path, fv_error *error) {
    enum { PAUSE = 2000, PATIENCE = 5000000 }; /* microseconds */
    for (int64_t waited = 0; flock(fd, LOCK_EX | LOCK_NB); waited += PAUSE) {
        if (errno != EWOULDBLOCK && errno != EINTR) return fail(path, error);
        if (waited == PATIENCE) fv__log("fovea: another process of this stream is committing (%s); waiting for it", path);
        usleep(PAUSE);
    }
    return FV_OK;
}

fv_status fv__fence_open(const char *folder, const char *name, fv_fence **out, fv_error *error) {
    fv_fence *fence = fv__calloc(sizeof *fence);
    fence->path = path_of(folder, name);
    fence->fd = open(fence->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    fv_status status = fence->fd < 0 ? fail(fence->path, error) : FV_OK;
    if (status == FV_OK)
        *out = fence;
    else
        fv__fence_close(fence);
    return status;
}

void fv__fence_close(fv_fence *fence) {
    if (!fence) return;
    if (fence->fd >= 0) close(fence->fd);
    unlink(fence->path);
    free(fence->lost);
    free(fence->path);
    free(fence);
}

static fv_status read_lost(int fd, const char *path, int32_t **lost, int64_t *nlost, fv_error *error) {
    struct stat s;
    if (fstat(fd, &s)) return fail(path, error);
    *nlost = s.st_size / (int64_t)sizeof **lost;
    *lost = fv__realloc(*lost, (size_t)(*nlost + 1) * sizeof **lost);
    size_t size = (size_t)*nlost * sizeof **lost;
    return pread(fd, *lost, size, 0) == (ssize_t)size ? FV_OK : fail(path, error);
}

fv_status fv__fence_hold(fv_fence *fence, fv_error *error) {
    FV_TRY(lock(fence->fd, fence->path, error));
    fv_status status = read_lost(fence->fd, fence->path, &fence->lost, &fence->nlost, error);
    if (status != FV_OK) fv__fence_release(fence);
    return status;
}

bool fv__fence_lost(const fv_fence *fence, int partition) {
    for (int64_t i = 0; i < fence->nlost; i++)
        if (fence->lost[i] == partition) return true;
    return false;
}

void fv__fence_release(fv_fence *fence) { flock(fence->fd, LOCK_UN); }

fv_status fv__fence_regain(const char *folder, const char *name, int partition, fv_error *error) {
    char     *path = path_of(folder, name);
    int32_t  *lost = NULL;
    int64_t   nlost = 0, kept = 0;
    int       fd = open(path, O_RDWR | O_CLOEXEC);
    fv_status status = fd < 0 ? fail(path, error) : lock(fd, path, error);
    if (status == FV_OK) status = read_lost(fd, path, &lost, &nlost, error);
    for (int64_t i = 0; i < nlost && status == FV_OK; i++)
        if (lost[i] != partition) lost[kept++] = lost[i];
    if (status == FV_OK && kept < nlost && kept)
        status = fv__file_write_at(fd, lost, (size_t)kept * sizeof *lost, 0, path, error);
    if (status == FV_OK && kept < nlost && ftruncate(fd, (off_t)((size_t)kept * sizeof *lost))) status = fail(path, error);
    if (fd >= 0) close(fd);
    free(lost);
    free(path);
    return status;
}

fv_status fv__fence_take(const char *folder, const char *name, int partition, int *out, fv_error *error) {
    char       *path = path_of(folder, name);
    int32_t     number = partition;
    struct stat s = { 0 };
    int         fd = *out = open(path, O_RDWR | O_CLOEXEC);
    fv_status   status = fd < 0 && errno != ENOENT ? fail(path, error) : FV_OK;
    if (fd >= 0) status = lock(fd, path, error);
    if (fd >= 0 && status == FV_OK && partition >= 0)
        status =
            fstat(fd, &s) ? fail(path, error) : fv__file_write_at(fd, &number, sizeof number, s.st_size / 4 * 4, path, error);
    if (status != FV_OK && fd >= 0) {
        close(fd);
        *out = -1;
    }
    free(path);
    return status;
}

void fv__fence_remove(const char *folder, const char *name) {
    char *path = path_of(folder, name);
    unlink(path);
    free(path);
}
