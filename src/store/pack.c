/* Appending to a writer's pack and log. */
#include "store/pack.h"
#include "base/file.h"
#include "base/host.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    ALIGNED = 1 << 14, /* blobs from this size on start on a page, so that all their pages can be given back */
    DIRECT = 1 << 18,  /* ... are not copied together with others first */
    STAGING = 1 << 20,
};

uint64_t fv__writer_hash(const char *writer) { return fv__hash_bytes(writer, strlen(writer)).low; }

void fv__pack_init(fv_pack *pack, const char *folder, const char *writer, bool nameless) {
    *pack = (fv_pack){ .folder = folder, .writer = fv__strdup(writer), .nameless = nameless, .pack_fd = -1, .log_fd = -1 };
}

void fv__pack_release(fv_pack *pack) {
    if (pack->log_path && pack->log_end <= FV_SLOT) {
        unlink(pack->log_path);
        if (pack->pack_path) unlink(pack->pack_path);
    }
    if (pack->pack_fd >= 0) close(pack->pack_fd);
    if (pack->log_fd >= 0) close(pack->log_fd); /* and with it the lock */
    free(pack->writer);
    free(pack->pack_path);
    free(pack->log_path);
    fv__bytes_release(&pack->staging);
}

/* ---------------------------------------------------------------- making the files */

static fv_status cannot_make(const char *path, fv_error *error) {
    int       cause = errno;
    fv_status status = cause == ENOSPC || cause == EDQUOT ? FV_ERROR_FULL : FV_ERROR_IO;
    return fv_fail(error, status, "cannot create %s: %s", path, strerror(cause));
}

static int create_new(const char *path) { return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666); }

/* Makes the log under a name that neither file of which exists. It is locked before its first line is written, so that whoever
 * can read a line can also see whether its writer lives. */
static int create_log(const fv_pack *pack, char **name, char **path) {
    for (int number = 1;; number++) {
        *name = number == 1 ? fv__strdup(pack->writer) : fv__sprintf("%s-%d", pack->writer, number);
        *path = fv__sprintf("%s/%s.log", pack->folder, *name);
        char *other = fv__sprintf("%s/%s.pack", pack->folder, *name);
        bool  taken = fv__file_exists(other);
        int   fd = taken ? -1 : create_new(*path);
        free(other);
        if (fd >= 0) flock(fd, LOCK_EX);
        struct stat s;
        if (fd >= 0 && !fstat(fd, &s) && s.st_nlink > 0) return fd;
        if (fd < 0 && !taken && errno != EEXIST) return -1;
        if (fd >= 0) close(fd); /* somebody who tidies up was faster than the lock */
        free(*path);
        free(*name);
    }
}

static fv_status make_log(fv_pack *pack, fv_error *error) {
    char *name, *path;
    int   fd = create_log(pack, &name, &path);
    if (fd < 0) {
        fv_status status = cannot_make(path, error);
        free(path);
        free(name);
        return status;
    }
    free(pack->writer);
    pack->writer = name;
    pack->log_path = path;
    pack->log_fd = fd;
    pack->unnamed = true;
    return FV_OK;
}

static fv_status write_lines(fv_pack *pack, fv_line *lines, int64_t count, fv_error *error) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t time = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    for (int64_t i = 0; i < count; i++) {
        lines[i].magic = FV_LINE_MAGIC;
        lines[i].time = time = FV_MAX(time, pack->time + 1);
        fv__slot_seal(&lines[i]);
    }
    FV_TRY(fv__file_write_at(pack->log_fd, lines, (size_t)count * sizeof *lines, pack->log_end, pack->log_path, error));
    pack->time = time;
    pack->log_end += count * (int64_t)sizeof *lines;
    pack->log_unsynced = true;
    return FV_OK;
}

static fv_status need_log(fv_pack *pack, fv_error *error) {
    if (pack->log_end > 0) return FV_OK;
    if (!pack->log_path) FV_TRY(make_log(pack, error));
    const fv_host *host = fv__host_self();
    fv_line first = { .kind = FV_LINE_WRITER, .key = host->boot, .source = fv__hash_bytes(host->name, strlen(host->name)).low };
    return write_lines(pack, &first, 1, error);
}

/* Where the file system makes no nameless files, the name is taken away at once. */
static fv_status make_nameless(fv_pack *pack, fv_error *error) {
    char *path = fv__sprintf("%s/fovea-XXXXXX", pack->folder);
    int   fd = open(pack->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0) unlink(path);
    }
    if (fd < 0) {
        fv_status status = cannot_make(path, error);
        free(path);
        return status;
    }
    pack->pack_path = path;
    pack->pack_fd = fd;
    return FV_OK;
}

static fv_status need_pack(fv_pack *pack, fv_error *error) {
    if (pack->nameless) return pack->pack_path ? FV_OK : make_nameless(pack, error);
    FV_TRY(need_log(pack, error));
    if (pack->pack_path) return FV_OK;
    char *path = fv__sprintf("%s/%s.pack", pack->folder, pack->writer);
    int   fd = create_new(path);
    if (fd < 0) {
        fv_status status = cannot_make(path, error);
        free(path);
        return status;
    }
    pack->pack_path = path;
    pack->pack_fd = fd;
    pack->unnamed = true;
    return FV_OK;
}

/* ---------------------------------------------------------------- appending */

static fv_status write_staged(fv_pack *pack, int64_t end, fv_error *error) { /* so that it ends at `end` */
    fv_bytes *staging = &pack->staging;
    if (staging->size == 0) return FV_OK;
    FV_TRY(fv__file_write_at(pack->pack_fd, staging->data, staging->size, end - (int64_t)staging->size, pack->pack_path, error));
    fv__bytes_clear(staging);
    return FV_OK;
}

static fv_status write_item(fv_pack *pack, fv_pack_item *item, int64_t *end, fv_error *error) {
    int64_t alignment = item->size >= ALIGNED ? PAGE : 8;
    int64_t gap = -*end & (alignment - 1);
    item->content = fv__hash_bytes(item->data, (size_t)item->size).low;
    item->offset = *end + gap;
    if (item->size >= DIRECT) {
        FV_TRY(write_staged(pack, *end, error));
        FV_TRY(fv__file_write_at(pack->pack_fd, item->data, (size_t)item->size, item->offset, pack->pack_path, error));
    } else {
        static const char zeros[PAGE];
        fv__bytes_append(&pack->staging, zeros, (size_t)gap);
        fv__bytes_append(&pack->staging, item->data, (size_t)item->size);
    }
    *end = item->offset + item->size;
    if (pack->staging.size >= STAGING) FV_TRY(write_staged(pack, *end, error));
    return FV_OK;
}

fv_status fv__pack_write(fv_pack *pack, fv_pack_item *items, int64_t count, fv_error *error) {
    if (count == 0) return FV_OK;
    FV_TRY(fv__fault_point("pack-write", error));
    FV_TRY(need_pack(pack, error));
    int64_t end = pack->pack_end;
    fv__bytes_clear(&pack->staging);
    for (int64_t i = 0; i < count; i++) FV_TRY(write_item(pack, &items[i], &end, error));
    FV_TRY(write_staged(pack, end, error));
    pack->pack_end = end;
    return FV_OK;
}

fv_status fv__pack_log(fv_pack *pack, fv_line *lines, int64_t count, fv_error *error) {
    FV_TRY(fv__fault_point("log-write", error));
    FV_TRY(need_log(pack, error));
    return write_lines(pack, lines, count, error);
}

fv_status fv__pack_sync(fv_pack *pack, fv_error *error) {
    FV_TRY(fv__fault_point("pack-sync", error));
    return fv__file_sync(pack->pack_fd, pack->pack_path, error);
}

fv_status fv__pack_sync_log(fv_pack *pack, bool folder, fv_error *error) {
    FV_TRY(fv__fault_point("log-sync", error));
    FV_TRY(fv__file_sync(pack->log_fd, pack->log_path, error));
    return folder ? fv__path_sync_folder(pack->log_path, error) : FV_OK;
}

void fv__pack_punch(int fd, int64_t offset, int64_t size) {
    int64_t start = (offset + PAGE - 1) / PAGE * PAGE, end = (offset + size) / PAGE * PAGE;
    if (start < end) (void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, end - start);
}
