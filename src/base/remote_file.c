/* Remote files as descriptors.
 *
 * Invariants: 1. a descriptor belongs to a remote file while it is of the local file that was noted with it: whoever closes it
 * tells nobody, and the next file may get both its number and its inode, so that the time of its making is looked at too; 2. a
 * block is marked only when its bytes are in the local file; two threads may fetch the same one, with the same bytes. */
#include "base/remote.h"
#include "base/take.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 1 << 16, MOST_BLOCKS = 64, SLOTS = 256 };
static const int64_t MOST_BYTES = (int64_t)1 << 46; /* of a file: no more is believed */

typedef struct {
    uint64_t inode;
    int64_t  size, born, born_ns;
    uint32_t major, minor; /* device */
} local_file;

typedef struct remote_file {
    struct remote_file *next;
    int                 fd;
    local_file          local;
    char               *path;
    fv_remote_facts     facts;
    uint8_t            *there; /* one bit for each block */
} remote_file;

/* Of the process, as its descriptors are. */
static remote_file    *slots[SLOTS]; /* by descriptor */
static int             count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void free_file(remote_file *file) {
    free(file->path);
    free(file->there);
    free(file);
}

static local_file identify(int fd) {
    struct statx s = { 0 };
    if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_SIZE | STATX_BTIME, &s)) return (local_file){ 0 };
    return (local_file){ .inode = s.stx_ino,
                         .size = (int64_t)s.stx_size,
                         .born = s.stx_btime.tv_sec,
                         .born_ns = s.stx_btime.tv_nsec,
                         .major = s.stx_dev_major,
                         .minor = s.stx_dev_minor };
}

static bool is_same(local_file a, local_file b) {
    return a.inode == b.inode && a.size == b.size && a.born == b.born && a.born_ns == b.born_ns && a.major == b.major &&
           a.minor == b.minor;
}

/* A local file as long as the remote one, of which nothing is there. */
static fv_status make_room(const char *path, int64_t size, int *fd, uint8_t **there, fv_error *error) {
    fv_error reason = { 0 };
    char     text[24];
    fv_size_format(size, text);
    if (size > MOST_BYTES)
        return fv_fail(error, FV_ERROR_INPUT,
                       "%s: the server claims %lld bytes (%s), more than any file has here; check the "
                       "address, and the server's Content-Length",
                       path, (long long)size, text);
    *there = calloc((size_t)(size / BLOCK / 8 + 1), 1); /* untouched pages of it take no memory */
    if (!*there)
        return fv_fail(error, FV_ERROR_MEMORY, "%s: no memory to read a file of %lld bytes (%s)", path, (long long)size, text);
    if (fv__file_open_nameless(size, fd, &reason) == FV_OK) return FV_OK;
    free(*there);
    return fv_fail(error, reason.code, "%s has %lld bytes (%s): %s; set TMPDIR to a folder that can hold such a file", path,
                   (long long)size, text, reason.message);
}

fv_status fv__remote_open(const char *path, int *fd, fv_error *error) {
    fv_remote_facts facts;
    bool            there;
    FV_TRY(fv__remote_look(path, &facts, &there, error));
    if (!there) return fv_fail(error, FV_ERROR_INPUT, "there is no %.*s: the server says 404", (int)strcspn(path, "?"), path);
    if (fv__remote_open_kept(path, &facts, fd)) return FV_OK;
    uint8_t *blocks = NULL;
    FV_TRY(make_room(path, facts.size, fd, &blocks, error));
    remote_file *file = fv__calloc(sizeof *file);
    *file = (remote_file){ .fd = *fd, .local = identify(*fd), .path = fv__strdup(path), .facts = facts, .there = blocks };
    pthread_mutex_lock(&mutex);
    remote_file **slot = &slots[*fd % SLOTS];
    for (remote_file **p = slot; *p;) { /* of the same number, closed meanwhile */
        remote_file *old = *p;
        if (old->fd != *fd) {
            p = &old->next;
            continue;
        }
        *p = old->next;
        free_file(old);
    }
    file->next = *slot;
    *slot = file;
    __atomic_store_n(&count, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&mutex);
    return FV_OK;
}

static remote_file *find(int fd) {
    pthread_mutex_lock(&mutex);
    remote_file *file = slots[fd % SLOTS];
    while (file && file->fd != fd) file = file->next;
    if (file && !is_same(file->local, identify(fd))) file = NULL;
    pthread_mutex_unlock(&mutex);
    return file;
}

static bool is_there(const remote_file *file, int64_t block) {
    return __atomic_load_n(&file->there[block / 8], __ATOMIC_ACQUIRE) >> block % 8 & 1;
}

static void mark(remote_file *file, int64_t first, int64_t n) {
    for (int64_t i = first; i < first + n; i++) __atomic_fetch_or(&file->there[i / 8], (uint8_t)(1 << i % 8), __ATOMIC_RELEASE);
}

static fv_status fetch_all(remote_file *file, fv_error *error) {
    FV_TRY(fv__remote_keep(file->path, &file->facts, file->fd, error));
    mark(file, 0, file->facts.size / BLOCK + 1);
    return FV_OK;
}

static fv_status fetch_blocks(remote_file *file, int64_t first, int64_t n, fv_error *error) {
    int64_t   offset = first * BLOCK, size = FV_MIN(n * BLOCK, file->facts.size - offset);
    char     *data = NULL;
    bool      in_parts = true;
    fv_status status = FV_TAKE(data, (size_t)size, error);
    if (status == FV_OK) status = fv__remote_get(file->path, &file->facts, offset, (size_t)size, data, &in_parts, error);
    if (status == FV_OK && in_parts) status = fv__file_write_at(file->fd, data, (size_t)size, offset, file->path, error);
    free(data);
    if (status == FV_OK && !in_parts) return fetch_all(file, error);
    if (status == FV_OK) mark(file, first, n);
    return status;
}

fv_status fv__remote_fetch(int fd, int64_t offset, size_t size, fv_error *error) {
    remote_file *file = __atomic_load_n(&count, __ATOMIC_ACQUIRE) && fd >= 0 ? find(fd) : NULL;
    if (!file || offset < 0 || offset >= file->facts.size || !size) return FV_OK;
    int64_t end = FV_MIN((int64_t)size, file->facts.size - offset) + offset, last = (end - 1) / BLOCK;
    for (int64_t block = offset / BLOCK; block <= last;) {
        int64_t n = 0;
        while (n < MOST_BLOCKS && block + n <= last && !is_there(file, block + n)) n++;
        if (n) FV_TRY(fetch_blocks(file, block, n, error));
        block += n ? n : 1;
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- whole files */

static const int64_t MOST_COPIED = (int64_t)2 << 30;

fv_status fv__remote_copy(const char *path, char **name, int *fd, fv_error *error) {
    fv_file_id id;
    FV_TRY(fv__file_identify(path, &id, error));
    if (id.size > MOST_COPIED)
        return fv_fail(error, FV_ERROR_INPUT,
                       "%.*s has %lld bytes; at most %lld are fetched for a format that is not read by "
                       "range; download it first",
                       (int)strcspn(path, "?"), path, (long long)id.size, (long long)MOST_COPIED);
    FV_TRY(fv__remote_open(path, fd, error));
    fv_status status = fv__remote_fetch(*fd, 0, (size_t)id.size, error);
    if (status == FV_OK) *name = fv__sprintf("/proc/self/fd/%d", *fd); /* nothing is left behind, however the process ends */
    if (status != FV_OK) {
        close(*fd);
        *fd = -1;
    }
    return status;
}

fv_status fv__remote_refuse(const char *path, const char *format, fv_error *error) {
    return fv_fail(error, FV_ERROR_INPUT, "%.*s: %s files are not read from a server; download it first", (int)strcspn(path, "?"),
                   path, format);
}
