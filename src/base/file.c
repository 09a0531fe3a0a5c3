/* Files with clear errors, atomic replacement, the I/O gate and fault points. */
#include "base/file.h"
#include "base/remote.h"
#include "base/take.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---------------------------------------------------------------- the I/O gate */

static _Thread_local void (*gate_enter)(void), (*gate_leave)(void);
static _Thread_local int gone; /* through the gate, and not come back yet */

void fv__io_hooks(void (*enter)(void), void (*leave)(void)) {
    gate_enter = enter;
    gate_leave = leave;
}
void fv__io_enter(void) {
    if (!gone++ && gate_enter) gate_enter();
}
void fv__io_leave(void) {
    if (!--gone && gate_leave) gate_leave();
}
void fv__io_lock(pthread_mutex_t *mutex) {
    if (!pthread_mutex_trylock(mutex)) return;
    fv__io_enter();
    pthread_mutex_lock(mutex);
    fv__io_leave();
}

/* ---------------------------------------------------------------- errors */

static fv_status failed_with(int cause, fv_error *error, const char *what, const char *path) {
    fv_status status = FV_ERROR_IO;
    if (cause == ENOSPC || cause == EDQUOT || cause == EFBIG) status = FV_ERROR_FULL;
    if (cause == ENOENT || cause == ENOTDIR || cause == EISDIR) status = FV_ERROR_INPUT;
    return fv_fail(error, status, "cannot %s %s: %s", what, path, strerror(cause));
}

static fv_status failed(fv_error *error, const char *what, const char *path) { return failed_with(errno, error, what, path); }

/* Pipes and devices have no size and no places to read at; some never end, others never begin. */
static fv_status check_kind(const char *path, mode_t mode, fv_error *error) {
    if (S_ISREG(mode) || S_ISDIR(mode)) return FV_OK;
    const char *kind = S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
    return fv_fail(error, FV_ERROR_INPUT, "cannot read %s: it is %s; put what comes from it into a file first", path, kind);
}

/* ---------------------------------------------------------------- identity */

fv_status fv__file_identify(const char *path, fv_file_id *id, fv_error *error) {
    struct stat s;
    if (fv__is_remote(path)) return fv__remote_identify(path, id, error);
    if (stat(path, &s)) {
        if (errno == ENOENT && !lstat(path, &s))
            return fv_fail(error, FV_ERROR_INPUT, "cannot find %s: it is a link to something that is not there", path);
        return failed_with(errno, error, "find", path);
    }
    FV_TRY(check_kind(path, s.st_mode, error));
    id->size = s.st_size;
    id->mtime_ns = (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec;
    return FV_OK;
}

bool fv__file_exists(const char *path) {
    struct stat s;
    return fv__is_remote(path) ? fv__remote_exists(path) : !lstat(path, &s);
}

bool fv__path_is_folder(const char *path) {
    struct stat s;
    return !stat(path, &s) && S_ISDIR(s.st_mode);
}

/* ---------------------------------------------------------------- reading and writing */

fv_status fv__file_open_read(const char *path, int *fd, fv_error *error) {
    if (fv__is_remote(path)) return fv__remote_open(path, fd, error);
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* of a pipe that nobody writes to, too */
    if (*fd < 0) return failed(error, "open", path);
    struct stat s;
    fv_status   status = fstat(*fd, &s) ? FV_OK : check_kind(path, s.st_mode, error);
    if (status == FV_OK && S_ISDIR(s.st_mode)) status = fv_fail(error, FV_ERROR_INPUT, "cannot read %s: it is a folder", path);
    if (status != FV_OK) close(*fd);
    return status;
}

fv_status fv__file_open_write(const char *path, int *fd, fv_error *error) {
    *fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return *fd < 0 ? failed(error, "create", path) : FV_OK;
}

fv_status fv__file_open_update(const char *path, int *fd, fv_error *error) {
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    return *fd < 0 ? failed(error, "create", path) : FV_OK;
}

const char *fv__file_scratch(void) {
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

fv_status fv__file_open_nameless(int64_t size, int *fd, fv_error *error) {
    const char *folder = fv__file_scratch();
    *fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (*fd < 0) { /* some file systems have no nameless files */
        char *name = fv__sprintf("%s/fovea-XXXXXX", folder);
        *fd = mkostemp(name, O_CLOEXEC);
        if (*fd >= 0) unlink(name);
        free(name);
    }
    if (*fd >= 0 && !ftruncate(*fd, size)) return FV_OK;
    fv_status status = failed(error, "make a temporary file in", folder);
    if (*fd >= 0) close(*fd);
    *fd = -1;
    return status;
}

fv_status fv__file_name_nameless(int fd, char **name, fv_error *error) {
    static int number; /* of the process: no two of its files have one name */
    char      *place = fv__sprintf("/proc/self/fd/%d", fd);
    *name = fv__sprintf("%s/fovea-%d-%d", fv__file_scratch(), (int)getpid(), __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED));
    bool      linked = !linkat(AT_FDCWD, place, AT_FDCWD, *name, AT_SYMLINK_FOLLOW);
    fv_status status = linked ? FV_OK : failed(error, "name a temporary file in", fv__file_scratch());
    free(place);
    if (linked) return FV_OK;
    free(*name);
    *name = NULL;
    return status;
}

fv_status fv__file_resize(int fd, int64_t size, const char *path, fv_error *error) {
    return ftruncate(fd, size) ? failed(error, "resize", path) : FV_OK;
}

/* Reads what is there without waiting, if the file system can tell; the number of bytes. */
static size_t read_at_hand(int fd, void *data, size_t size, int64_t offset) {
    struct iovec place = { data, size };
    ssize_t      got = preadv2(fd, &place, 1, offset, RWF_NOWAIT);
    return got > 0 ? (size_t)got : 0;
}

/* Bytes in the page cache are read at once; only who must wait for the disk passes the gate, since others are woken there. */
fv_status fv__file_read_at(int fd, void *data, size_t size, int64_t offset, const char *path, fv_error *error) {
    if (!size) return FV_OK;
    FV_TRY(fv__remote_fetch(fd, offset, size, error));
    size_t  at_hand = read_at_hand(fd, data, size, offset);
    char   *to = (char *)data + at_hand;
    ssize_t got = 1;
    size -= at_hand;
    offset += (int64_t)at_hand;
    if (!size) return FV_OK;
    fv__io_enter();
    while (size > 0 && (got = pread(fd, to, FV_MIN(size, (size_t)1 << 30), offset)) != 0) {
        if (got < 0) {
            if (errno == EINTR) continue;
            break;
        }
        to += got;
        size -= (size_t)got;
        offset += got;
    }
    int cause = got < 0 ? errno : 0;
    fv__io_leave();
    if (cause) return failed_with(cause, error, "read", path);
    if (size > 0)
        return fv_fail(error, FV_ERROR_INPUT, "%s ends early: %zu bytes missing at offset %lld", path, size, (long long)offset);
    return FV_OK;
}

/* Bytes go to the page cache in less time than others need to take over, and their tasks would take memory of their own. Who had
 * to wait for the disk the last time passes the gate. */
static _Thread_local struct {
    bool   waited, gone;
    double start;
} flow;
enum { FAST = 200 << 20, PATIENCE = 20 }; /* bytes a second; milliseconds beyond that */

static void begin_flow(void) {
    flow.gone = flow.waited;
    if (flow.gone) fv__io_enter();
    flow.start = fv__now();
}

static void end_flow(size_t size) {
    flow.waited = fv__now() - flow.start > 1e-3 * PATIENCE + (double)size / FAST;
    if (flow.gone) fv__io_leave();
}

static _Thread_local bool past_cache;

void fv__file_past_cache(bool on) { past_cache = on; }

/* Whole blocks go straight to the disk, if this thread wants it and the system can; gives how many bytes did. */
static size_t write_past_cache(int fd, const char *from, size_t size, int64_t offset) {
    enum { BLOCK = 4096, LEAST = 1 << 20 };
    size_t blocks = size / BLOCK * BLOCK, done = 0;
    if (!past_cache || size < LEAST || offset % BLOCK || (uintptr_t)from % BLOCK) return 0;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_DIRECT)) return 0;
    fv__io_enter();
    for (ssize_t put = 1; put > 0 && done < blocks;) {
        put = pwrite(fd, from + done, FV_MIN(blocks - done, (size_t)1 << 30), offset + (int64_t)done);
        if (put > 0) done += (size_t)put;
    }
    fv__io_leave();
    fcntl(fd, F_SETFL, flags);
    return done;
}

/* What goes to the page cache after a part went past it, as after none, meets and tells whatever is wrong. */
fv_status fv__file_write_at(int fd, const void *data, size_t size, int64_t offset, const char *path, fv_error *error) {
    FV_TRY(fv__fault_point("write", error));
    size_t      done = write_past_cache(fd, data, size, offset);
    const char *from = (const char *)data + done;
    size_t      all = size -= done;
    fv_status   status = FV_OK;
    offset += (int64_t)done;
    begin_flow();
    while (size > 0) {
        ssize_t put = pwrite(fd, from, FV_MIN(size, (size_t)1 << 30), offset);
        if (put < 0) {
            if (errno == EINTR) continue;
            status = failed(error, "write", path);
            break;
        }
        from += put;
        size -= (size_t)put;
        offset += put;
    }
    end_flow(all);
    return status;
}

fv_status fv__file_sync(int fd, const char *path, fv_error *error) {
    fv__io_enter();
    int cause = fdatasync(fd) ? errno : 0;
    fv__io_leave();
    return cause ? failed_with(cause, error, "sync", path) : FV_OK;
}

void fv__file_start_sync_part(int fd, int64_t offset, int64_t size) {
    begin_flow();
    (void)!sync_file_range(fd, offset, size, SYNC_FILE_RANGE_WRITE);
    end_flow(0);
}

void fv__file_start_sync(int fd) { fv__file_start_sync_part(fd, 0, 0); }

fv_status fv__file_close(int fd, const char *path, fv_error *error) { return close(fd) ? failed(error, "close", path) : FV_OK; }

fv_status fv__file_read_all(const char *path, size_t limit, fv_bytes *bytes, fv_error *error) {
    int fd;
    FV_TRY(fv__file_open_read(path, &fd, error));
    struct stat s;
    if (fstat(fd, &s)) {
        fv_status status = failed(error, "read", path);
        close(fd);
        return status;
    }
    if (s.st_size < 0 || (uint64_t)s.st_size > limit) {
        close(fd);
        return fv_fail(error, FV_ERROR_INPUT, "%s has %lld bytes, more than the %zu that are sensible here", path,
                       (long long)s.st_size, limit);
    }
    fv__bytes_clear(bytes);
    fv_status status = fv__bytes_need(bytes, (size_t)s.st_size + 1, error);
    if (status == FV_OK) status = fv__file_read_at(fd, bytes->data, (size_t)s.st_size, 0, path, error);
    close(fd);
    if (status == FV_OK) {
        bytes->size = (size_t)s.st_size;
        bytes->data[bytes->size] = 0;
    }
    return status;
}

/* A name beside a file that nobody else has a use for; a long name is shortened. */
static char *hidden_path(const char *path, const char *ending) {
    const char *name = fv__path_name(path);
    char       *shown = fv__path_short_name(name), *hidden = fv__sprintf("%.*s%s%s", (int)(name - path), path, shown, ending);
    free(shown);
    return hidden;
}

fv_status fv__file_write_all(const char *path, const void *data, size_t size, bool durable, fv_error *error) {
    static int number; /* of the process: two threads may write the same file, and the last one wins, whole */
    char      *start = hidden_path(path, ".tmp");
    char      *temporary = fv__sprintf("%s%d-%d", start, (int)getpid(), __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED));
    int        fd;
    free(start);
    fv_status status = fv__file_open_write(temporary, &fd, error);
    if (status == FV_OK) {
        status = fv__file_write_at(fd, data, size, 0, path, error);
        if (status == FV_OK && durable) status = fv__file_sync(fd, path, error);
        fv_status closed = fv__file_close(fd, path, status == FV_OK ? error : NULL);
        if (status == FV_OK) status = closed;
        if (status == FV_OK) status = fv__rename(temporary, path, error);
        if (status == FV_OK && durable) status = fv__path_sync_folder(path, error);
        if (status != FV_OK) unlink(temporary);
    }
    free(temporary);
    return status;
}

fv_status fv__rename(const char *from, const char *to, fv_error *error) {
    FV_TRY(fv__fault_point("rename", error));
    return rename(from, to) ? failed(error, "rename to", to) : FV_OK;
}

/* A folder cannot be renamed over another, so the two change places first; where the system has no exchange, the old one
 * moves aside (it is found and finished by the next run after a crash in between). */
static fv_status swap_by_renames(const char *temporary, const char *path, fv_error *error) {
    char     *old = hidden_path(path, ".fovea-old");
    fv_status status = fv__path_remove(old, error);
    if (status == FV_OK) status = fv__rename(path, old, error);
    if (status == FV_OK) {
        status = fv__rename(temporary, path, error);
        if (status != FV_OK)
            (void)!rename(old, path);
        else
            status = fv__path_remove(old, error);
    }
    free(old);
    return status;
}

static fv_status replace_folder(const char *temporary, const char *path, fv_error *error) {
    if (!syscall(SYS_renameat2, AT_FDCWD, temporary, AT_FDCWD, path, RENAME_EXCHANGE)) {
        /* Removing takes time: killed meanwhile, the old contents must not lie there under the name of the new. */
        char     *old = hidden_path(path, ".fovea-old");
        fv_status status = fv__path_remove(old, error);
        if (status == FV_OK) status = fv__rename(temporary, old, error);
        if (status == FV_OK) status = fv__path_remove(old, error);
        free(old);
        return status;
    }
    bool unknown = errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP;
    return unknown ? swap_by_renames(temporary, path, error) : failed(error, "rename to", path);
}

fv_status fv__path_replace(const char *temporary, const char *path, fv_error *error) {
    FV_TRY(fv__fault_point("replace", error));
    if (fv__file_exists(path) && (fv__path_is_folder(path) || fv__path_is_folder(temporary)))
        FV_TRY(replace_folder(temporary, path, error));
    else
        FV_TRY(fv__rename(temporary, path, error));
    return fv__fault_point("replaced", error);
}

fv_status fv__path_remove(const char *path, fv_error *error) {
    struct stat s;
    if (lstat(path, &s)) return errno == ENOENT ? FV_OK : failed(error, "remove", path);
    if (!S_ISDIR(s.st_mode)) return unlink(path) && errno != ENOENT ? failed(error, "remove", path) : FV_OK;
    DIR *folder = opendir(path);
    if (!folder) return failed(error, "remove", path);
    fv_status      status = FV_OK;
    struct dirent *entry;
    while (status == FV_OK && (entry = readdir(folder))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char *child = fv__sprintf("%s/%s", path, entry->d_name);
        status = fv__path_remove(child, error);
        free(child);
    }
    closedir(folder);
    if (status == FV_OK && rmdir(path) && errno != ENOENT) return failed(error, "remove", path);
    return status;
}

fv_status fv__path_make_folders(const char *path, fv_error *error) {
    char *copy = fv__strdup(*path ? path : ".");
    for (char *slash = copy + 1;; slash++) {
        if (*slash && *slash != '/') continue;
        char end = *slash;
        *slash = 0;
        if (mkdir(copy, 0777) && errno != EEXIST) {
            fv_status status = failed(error, "make folder", copy);
            if (!fv__path_is_folder(copy)) { /* some systems refuse before they look whether it is there */
                free(copy);
                return status;
            }
        }
        *slash = end;
        if (!end) break;
    }
    bool made = fv__path_is_folder(copy);
    free(copy);
    return made ? FV_OK : fv_fail(error, FV_ERROR_IO, "cannot make folder %s: a file has that name", path);
}

fv_status fv__path_sync_folder(const char *path, fv_error *error) {
    char  *copy = fv__strdup(path);
    size_t length = strlen(copy);
    while (length > 1 && copy[length - 1] == '/') copy[--length] = 0;
    char       *slash = strrchr(copy, '/');
    const char *folder = slash == copy ? "/" : slash ? copy : ".";
    if (slash && slash != copy) *slash = 0;
    int       fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fv_status status = FV_OK;
    if (fd < 0 || (fsync(fd) && errno != EINVAL)) status = failed(error, "sync folder", folder);
    if (fd >= 0) close(fd);
    free(copy);
    return status;
}

/* ---------------------------------------------------------------- names */

/* A key of s3 may hold both of these letters. */
static size_t before_query(const char *path) {
    return strncmp(path, "http://", 7) && strncmp(path, "https://", 8) ? strlen(path) : strcspn(path, "?#");
}

size_t fv__path_length(const char *path) {
    size_t length = before_query(path);
    while (length > 1 && path[length - 1] == '/') length--;
    return length;
}

const char *fv__path_name(const char *path) {
    const char *slash = memrchr(path, '/', before_query(path));
    return slash ? slash + 1 : path;
}

char *fv__path_short_name(const char *name) {
    enum { LONG = 100, START = 64 }; /* of the 255, or on some file systems 143, bytes that a name may have */
    char hex[33];
    int  start = START;
    if (strlen(name) <= LONG) return fv__strdup(name);
    while (((uint8_t)name[start] & 0xc0) == 0x80) start--;
    fv__hash_format(fv__hash_bytes(name, strlen(name)), hex);
    return fv__sprintf("%.*s~%.16s", start, name, hex);
}

char *fv__path_inside(const char *folder, const char *name) {
    return fv__sprintf("%.*s/%s%s", (int)fv__path_length(folder), folder, name, folder + before_query(folder));
}

char *fv__path_beside(const char *path, const char *name) {
    int folder = (int)(fv__path_name(path) - path);
    if (*name == '/') return fv__strdup(name);
    if (!folder && fv__is_remote(name)) return fv__sprintf("./%s", name); /* no file makes its reader ask another machine */
    return fv__sprintf("%.*s%s%s", folder, path, name, path + before_query(path));
}

char *fv__path_bare_name(const char *path) {
    size_t length = fv__path_length(path), start = length;
    while (start > 0 && path[start - 1] != '/') start--;
    return fv__sprintf("%.*s", (int)(length - start), path + start);
}

void fv__path_stem(const char *path, char *stem, size_t size) {
    char *name = fv__path_bare_name(path);
    snprintf(stem, size, "%s", name);
    free(name);
    char *dot = strrchr(stem, '.');
    if (!dot || dot == stem) return;
    bool packed = !strcasecmp(dot, ".gz") || !strcasecmp(dot, ".bz2") || !strcasecmp(dot, ".zst");
    *dot = 0;
    if (!packed && strcasecmp(dot + 1, "zarr") && strcasecmp(dot + 1, "tif") && strcasecmp(dot + 1, "tiff")) return;
    dot = strrchr(stem, '.');
    if (dot && dot != stem && (packed || !strcasecmp(dot, ".ome"))) *dot = 0;
}

bool fv__path_has_extension(const char *path, const char *extension) {
    size_t n = fv__path_length(path), m = strlen(extension);
    return n > m + 1 && path[n - m - 1] == '.' && !strncasecmp(path + n - m, extension, m);
}

/* ---------------------------------------------------------------- fault points */

static const char    *fault_plan; /* of the process, as its environment, which tests set */
static pthread_once_t fault_once = PTHREAD_ONCE_INIT;
static void           read_fault_plan(void) { fault_plan = getenv("FOVEA_FAULT"); }

/* Uses so many MiB for a while. */
static fv_status eat(int64_t size) {
    void *food = fv__try_alloc((size_t)size << 20);
    if (food) memset(food, 1, (size_t)size << 20);
    sleep(4);
    free(food);
    return FV_OK;
}

fv_status fv__fault_point(const char *name, fv_error *error) {
    static int64_t passed; /* of the process, as the plan */
    pthread_once(&fault_once, read_fault_plan);
    if (!fault_plan) return FV_OK;
    size_t length = strlen(name);
    if (strncmp(fault_plan, name, length) || fault_plan[length] != ':') return FV_OK;
    char     *rest;
    long long target = strtoll(fault_plan + length + 1, &rest, 10);
    if (__atomic_add_fetch(&passed, 1, __ATOMIC_RELAXED) != target) return FV_OK;
    if (!strcmp(rest, ":error"))
        return fv_fail(error, FV_ERROR_FULL, "cannot write: No space left on device (injected at %s)", name);
    if (!strncmp(rest, ":eat", 4)) return eat(atoll(rest + 4));
    if (!strcmp(rest, ":stop")) {
        raise(SIGSTOP);
        return FV_OK;
    }
    _exit(137);
}
