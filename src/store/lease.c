/* Leases: exclusive files with a heartbeat.
 *
 * All leases of a process on one file system are hard links to one small file (a beat), so that one write a second keeps any
 * number of them alive and taking one is a single link(), which fails if the name is there. Where links are not possible each
 * lease is a file of its own.
 *
 * 1. A lease is held while its name leads to the file that we made.
 * 2. Only the holder of the lock (flock) on a file may take a name away that leads to it, and only after checking under the
 *    lock that the name still does. So of several who find a dead owner's lease one wins, and an owner who comes back from a
 *    long sleep never removes the lease of its successor.
 */
#include "store/lease.h"
#include "base/file.h"
#include "base/host.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum { COUNTER_AT = 12, COUNTER_DIGITS = 20 }; /* "fovea-lease 00000000000000000042" */

typedef struct beat {
    struct beat *next;
    int          fd;
    dev_t        device;
    ino_t        inode;
    int          leases;
    bool         remote; /* other machines see a write only after a sync */
} beat;

struct fv_lease {
    char *file;
    beat *beat;
};

typedef struct owner { /* as read from a lease */
    bool               valid;
    dev_t              device;
    ino_t              inode;
    unsigned long long counter, token[2], boot[2], space;
    char               host[65], since[32];
    int                pid;
    long long          start;
} owner;

typedef struct sighting { /* of an owner elsewhere */
    unsigned long long token[2], counter;
    double             since; /* when we first saw this counter */
} sighting;

/* Of the process: a lease says which process holds it, and one thread tells for all of them that it lives. */
static pthread_mutex_t    mutex = PTHREAD_MUTEX_INITIALIZER;
static beat              *beats;
static unsigned long long counter;
static fv_hash            token;    /* of this process */
static pid_t              identity; /* process that the above belongs to: a fork starts anew */
static char               since[32];
static fv_bytes           sightings;
static int                serial; /* of temporary names */

static double lease_seconds(void) {
    const char *text = getenv("FOVEA_LEASE_SECONDS");
    double      seconds = text ? strtod(text, NULL) : 0;
    return seconds > 0 ? seconds : 30;
}

static void nap(double seconds) {
    struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
    while (nanosleep(&t, &t) && errno == EINTR) {
    }
}

/* ---------------------------------------------------------------- heartbeat */

static void write_counter(int fd) {
    char text[COUNTER_DIGITS + 1];
    snprintf(text, sizeof text, "%020llu", counter);
    (void)!pwrite(fd, text, COUNTER_DIGITS, COUNTER_AT);
}

static void *keep_beating(void *context) {
    (void)context;
    for (double pause = lease_seconds() / 30;;) {
        nap(pause);
        fv_bytes remote = { 0 };
        pthread_mutex_lock(&mutex);
        counter++;
        for (beat *b = beats; b; b = b->next) {
            write_counter(b->fd);
            int copy = b->remote ? fcntl(b->fd, F_DUPFD_CLOEXEC, 0) : -1; /* a sync may take long: not under the mutex */
            if (copy >= 0) fv__bytes_append(&remote, &copy, sizeof copy);
        }
        pthread_mutex_unlock(&mutex);
        const int *fds = (const int *)(const void *)remote.data;
        for (size_t i = 0; i < remote.size / sizeof *fds; i++) {
            fdatasync(fds[i]);
            close(fds[i]);
        }
        fv__bytes_release(&remote);
    }
    return NULL;
}

static void lock_before_fork(void) { pthread_mutex_lock(&mutex); }
static void unlock_after_fork(void) { pthread_mutex_unlock(&mutex); }

/* Mutex held. */
static fv_status become_owner(fv_error *error) {
    if (identity == getpid()) return FV_OK;
    struct timespec now;
    struct tm       utc;
    fv_hasher       hasher;
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now.tv_sec, &utc));
    fv__hasher_init(&hasher);
    fv__hasher_int(&hasher, (int64_t)fv__host_self()->boot.low);
    fv__hasher_int(&hasher, fv__process_start(getpid()));
    fv__hasher_int(&hasher, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
    fv__hasher_int(&hasher, getpid());
    token = fv__hasher_finish(&hasher);
    beats = NULL; /* those of a parent stay its own */
    if (!identity) pthread_atfork(lock_before_fork, unlock_after_fork, unlock_after_fork);

    pthread_t thread;
    sigset_t  all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the main program */
    int result = pthread_create(&thread, NULL, keep_beating, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result) return fv_fail(error, FV_ERROR_IO, "cannot start the heartbeat thread: %s", strerror(result));
    pthread_detach(thread);
    identity = getpid();
    return FV_OK;
}

/* ---------------------------------------------------------------- making files */

static bool is_remote(int fd) {
    static const unsigned long local[] = { 0xEF53 /* ext */,
                                           0x58465342 /* xfs */,
                                           0x9123683E /* btrfs */,
                                           0x01021994 /* tmpfs */,
                                           0x794C7630 /* overlay */,
                                           0x2FC12FC1 /* zfs */,
                                           0xF2F52010 /* f2fs */ };
    struct statfs              s;
    if (fstatfs(fd, &s)) return true;
    for (int i = 0; i < FV_COUNT(local); i++)
        if ((unsigned long)s.f_type == local[i]) return false;
    return true;
}

static int write_owner(int fd) {
    const fv_host *host = fv__host_self();
    char           text[512], own[33], boot[33];
    fv__hash_format(token, own);
    fv__hash_format(host->boot, boot);
    int n = snprintf(
        text, sizeof text, "fovea-lease %020llu\ntoken %s\nhost %s\nboot %s\nspace %llu\npid %d\nstart %lld\nsince %s\n", counter,
        own, host->name, boot, (unsigned long long)host->space, (int)getpid(), (long long)fv__process_start(getpid()), since);
    if (pwrite(fd, text, (size_t)n, 0) != n) return errno ? errno : ENOSPC;
    return is_remote(fd) && fdatasync(fd) ? errno : 0;
}

static beat *beat_new(int fd) {
    struct stat s;
    beat       *b = fv__calloc(sizeof *b);
    if (!fstat(fd, &s)) {
        b->device = s.st_dev;
        b->inode = s.st_ino;
    }
    b->fd = fd;
    b->remote = is_remote(fd);
    b->next = beats;
    return beats = b;
}

static void beat_leave(beat *b) {
    if (--b->leases > 0) return;
    for (beat **p = &beats; *p; p = &(*p)->next)
        if (*p == b) {
            *p = b->next;
            close(b->fd);
            free(b);
            return;
        }
}

static int link_open(int fd, const char *name) {
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) ? errno : 0;
}

/* Without a name until it is complete: a kill leaves nothing. -1 where the file system has no such files. */
static int create_nameless(const char *name) {
    char *folder = fv__sprintf("%.*s", (int)(fv__path_name(name) - name), name);
    int   fd = open(*folder ? folder : ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0644);
    free(folder);
    if (fd >= 0 && write_owner(fd)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int create_filled(const char *name, int *fd) {
    *fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (*fd < 0) return errno;
    int cause = write_owner(*fd);
    if (cause) {
        unlink(name);
        close(*fd);
    }
    return cause;
}

/* A new beat under the name; complete when it appears, unless links are not possible. */
static int make_first(const char *name, beat **result) {
    int fd = create_nameless(name), cause = fd < 0 ? ENOENT : link_open(fd, name);
    if (cause == 0) {
        *result = beat_new(fd);
        return 0;
    }
    if (fd >= 0) close(fd);
    if (cause == EEXIST) return cause;
    char *temporary = fv__sprintf("%s.%016llx-%d", name, (unsigned long long)token.low, serial++);
    cause = create_filled(temporary, &fd);
    if (cause) {
        free(temporary);
        return cause;
    }
    if (link(temporary, name)) cause = errno;
    unlink(temporary);
    free(temporary);
    if (cause == EPERM || cause == EOPNOTSUPP || cause == ENOSYS || cause == EMLINK) {
        close(fd);
        cause = create_filled(name, &fd);
        if (cause) return cause;
    } else if (cause) {
        close(fd);
        return cause;
    }
    *result = beat_new(fd);
    return 0;
}

/* Makes the name lead to a file of ours, if it does not exist; errno otherwise. */
static int make_name(const char *name, beat **result) {
    int cause = -1;
    for (beat *b = beats; b && cause != 0 && cause != EEXIST; b = b->next) {
        cause = link_open(b->fd, name);
        *result = b;
    }
    if (cause != 0 && cause != EEXIST) cause = make_first(name, result);
    if (cause == 0) (*result)->leases++;
    return cause;
}

/* ---------------------------------------------------------------- who has it */

static bool parse(const char *text, owner *o) {
    return sscanf(text,
                  "fovea-lease %20llu token %16llx%16llx host %64s boot %16llx%16llx space %llu pid %d start %lld since %31s",
                  &o->counter, &o->token[0], &o->token[1], o->host, &o->boot[0], &o->boot[1], &o->space, &o->pid, &o->start,
                  o->since) == 10;
}

/* False: there is no such file (any more). */
static bool read_owner(int fd, owner *o) {
    struct stat s;
    char        text[512];
    *o = (owner){ 0 };
    if (fd < 0 || fstat(fd, &s)) return false;
    ssize_t size = pread(fd, text, sizeof text - 1, 0);
    text[FV_MAX(size, 0)] = 0;
    o->device = s.st_dev;
    o->inode = s.st_ino;
    o->valid = parse(text, o);
    if (o->valid) return true;
    *o = (owner){ .device = s.st_dev, .inode = s.st_ino, .token = { s.st_dev, s.st_ino } };
    o->counter = (unsigned long long)s.st_mtim.tv_nsec; /* not filled yet, or damaged: it is watched like an owner elsewhere */
    return true;
}

static bool is_here(const owner *o) {
    const fv_host *host = fv__host_self();
    return o->valid && o->boot[0] == host->boot.high && o->boot[1] == host->boot.low && o->space == host->space;
}

/* Whether the owner's counter moves, by our own clock. What was seen is remembered, so that many leases of one dead owner cost
 * the time to wait only once. */
static fv_alive watch(const owner *o) {
    sighting *seen = (sighting *)(void *)sightings.data, *known = NULL;
    for (size_t i = 0; i < sightings.size / sizeof *seen; i++)
        if (seen[i].token[0] == o->token[0] && seen[i].token[1] == o->token[1]) known = &seen[i];
    if (!known) {
        sighting first = { { o->token[0], o->token[1] }, o->counter, fv__now() };
        fv__bytes_append(&sightings, &first, sizeof first);
        return FV_ALIVE_UNKNOWN;
    }
    if (known->counter != o->counter) {
        known->counter = o->counter;
        known->since = fv__now();
        return FV_ALIVE;
    }
    return fv__now() - known->since > lease_seconds() ? FV_DEAD : FV_ALIVE_UNKNOWN;
}

static fv_alive judge(const owner *o) {
    fv_alive alive = is_here(o) ? fv__process_alive(o->pid, o->start) : FV_ALIVE_UNKNOWN;
    return alive == FV_ALIVE_UNKNOWN ? watch(o) : alive;
}

static fv_status refuse(const char *path, const owner *o, fv_error *error) {
    if (!o->valid) return fv_fail(error, FV_ERROR_BUSY, "%s is being taken by another run", path);
    return fv_fail(error, FV_ERROR_BUSY, "%s is being written by another run: process %d on %s, since %s", path, o->pid, o->host,
                   o->since);
}

/* ---------------------------------------------------------------- taking */

static bool leads_to(const char *file, dev_t device, ino_t inode) {
    /* Opened, not just looked up: network file systems ask the server again then. */
    struct stat s;
    int         fd = open(file, O_RDONLY | O_CLOEXEC);
    bool        same = fd >= 0 && !fstat(fd, &s) && s.st_dev == device && s.st_ino == inode;
    if (fd >= 0) close(fd);
    return same;
}

/* The lock on a lease's file, for at most two seconds; where there are no locks at all the checks that follow must do. */
static bool lock_file(int fd) {
    for (int i = 0; i < 200; i++) {
        if (!flock(fd, LOCK_EX | LOCK_NB)) return true;
        if (errno != EWOULDBLOCK && errno != EINTR) return true;
        nap(0.01);
    }
    return false;
}

/* Puts our own file in the place of a dead owner's; 0, or why not (EAGAIN: look again). */
static int take_over(const char *file, const owner *dead, beat **result) {
    int   fd = open(file, O_RDWR | O_CLOEXEC), cause = EAGAIN;
    owner now;
    if (fd < 0 && errno == EACCES) fd = open(file, O_RDONLY | O_CLOEXEC); /* another user's */
    if (fd < 0) return errno == ENOENT ? EAGAIN : errno;
    bool same = lock_file(fd) && read_owner(fd, &now) && now.inode == dead->inode && now.device == dead->device;
    same = same && now.counter == dead->counter && now.token[0] == dead->token[0] && now.token[1] == dead->token[1];
    if (same && leads_to(file, dead->device, dead->inode)) {
        char *temporary = fv__sprintf("%s.next", file); /* ours alone, by the lock; if it is there, somebody was killed here */
        unlink(temporary);
        cause = make_name(temporary, result);
        if (cause == 0 && rename(temporary, file)) {
            cause = errno;
            unlink(temporary);
            beat_leave(*result);
        }
        free(temporary);
    }
    close(fd);
    return cause;
}

/* One attempt: 0 taken, EBUSY a live owner, EAGAIN unknown yet, otherwise what the system said. Mutex held. */
static int attempt(const char *file, beat **result, bool *taken_over, owner *found) {
    int cause = make_name(file, result);
    if (cause != EEXIST) return cause;
    int  fd = open(file, O_RDONLY | O_CLOEXEC);
    bool there = read_owner(fd, found);
    if (fd >= 0) close(fd);
    if (!there) return EAGAIN;
    fv_alive alive = judge(found);
    if (alive == FV_ALIVE) return EBUSY;
    if (alive == FV_ALIVE_UNKNOWN) return EAGAIN;
    cause = take_over(file, found, result);
    if (cause == 0) *taken_over = true;
    return cause;
}

/* FOLDER/.NAME.fovea-lease */
static char *lease_file(const char *path) {
    char  *copy = fv__strdup(path);
    size_t length = strlen(copy);
    while (length > 1 && copy[length - 1] == '/') copy[--length] = 0;
    const char *name = fv__path_name(copy);
    int         folder = (int)(name - copy);
    char       *shown = fv__path_short_name(name), *file = fv__sprintf("%.*s.%s.fovea-lease", folder, copy, shown);
    free(shown);
    free(copy);
    return file;
}

static fv_status refuse_for(int cause, const char *path, const char *file, const owner *found, fv_error *error) {
    if (cause == EBUSY || cause == EAGAIN) return refuse(path, found, error);
    struct stat s;
    char       *folder = fv__sprintf("%.*s.", (int)(fv__path_name(file) - file), file);
    bool        there = !stat(folder, &s);
    folder[FV_MAX((int)strlen(folder) - 2, 1)] = 0; /* "scans/." is scans, "." itself */
    if (!there && (cause == ENOENT || cause == ENOTDIR))
        fv_fail(error, FV_ERROR_INPUT, "cannot write %s: its folder does not exist", path);
    else
        fv_fail(error, cause == ENOSPC || cause == EDQUOT ? FV_ERROR_FULL : FV_ERROR_IO,
                "cannot write %s: no file can be made in %s: %s", path, strcmp(folder, ".") ? folder : "the current folder",
                strerror(cause));
    free(folder);
    return error ? error->code : FV_ERROR_IO;
}

static fv_status acquire(const char *path, const char *file, beat **result, bool *taken_over, fv_error *error) {
    double start = fv__now(), patience = 2 * lease_seconds() + 10;
    owner  found = { 0 };
    for (int tries = 0;; tries++) {
        pthread_mutex_lock(&mutex);
        fv_status status = become_owner(error);
        int       cause = status == FV_OK ? attempt(file, result, taken_over, &found) : 0;
        pthread_mutex_unlock(&mutex);
        if (status != FV_OK || cause == 0) return status;
        if (cause != EAGAIN || fv__now() - start > patience) return refuse_for(cause, path, file, &found, error);
        if (tries == 20 && found.valid)
            fv__log("%s: waiting for a sign of life of process %d on %s, at most %.0f s", path, found.pid, found.host,
                    lease_seconds());
        if (tries > 3) nap(FV_MIN(lease_seconds() / 60, 0.25));
    }
}

fv_status fv__lease_acquire(const char *path, fv_lease **lease, bool *taken_over, fv_error *error) {
    beat *b = NULL;
    char *file = lease_file(path);
    bool  replaced = false;
    *lease = NULL;
    fv_status status = acquire(path, file, &b, &replaced, error);
    if (taken_over) *taken_over = replaced;
    if (status != FV_OK) {
        free(file);
        return status;
    }
    *lease = fv__alloc(sizeof **lease);
    **lease = (fv_lease){ file, b };
    return FV_OK;
}

fv_status fv__lease_try(const char *path, fv_lease **lease, fv_hash *dead, fv_error *error) {
    beat *b = NULL;
    char *file = lease_file(path);
    bool  replaced = false;
    owner found = { 0 };
    *lease = NULL;
    *dead = (fv_hash){ 0, 0 };
    pthread_mutex_lock(&mutex);
    fv_status status = become_owner(error);
    int       cause = status == FV_OK ? attempt(file, &b, &replaced, &found) : 0;
    pthread_mutex_unlock(&mutex);
    if (status == FV_OK && cause != 0) status = refuse_for(cause, path, file, &found, error);
    if (status != FV_OK) {
        free(file);
        return status;
    }
    if (replaced) *dead = (fv_hash){ .high = found.token[0], .low = found.token[1] };
    *lease = fv__alloc(sizeof **lease);
    **lease = (fv_lease){ file, b };
    return FV_OK;
}

bool fv__lease_busy(const char *path) {
    char *file = lease_file(path);
    owner found = { 0 };
    int   fd = open(file, O_RDONLY | O_CLOEXEC);
    pthread_mutex_lock(&mutex);
    bool busy = read_owner(fd, &found) && judge(&found) != FV_DEAD;
    pthread_mutex_unlock(&mutex);
    if (fd >= 0) close(fd);
    free(file);
    return busy;
}

fv_hash fv__lease_token(void) {
    pthread_mutex_lock(&mutex);
    fv_hash own = become_owner(NULL) == FV_OK ? token : (fv_hash){ 0, 0 };
    pthread_mutex_unlock(&mutex);
    return own;
}

bool fv__lease_held(fv_lease *lease) { return leads_to(lease->file, lease->beat->device, lease->beat->inode); }

void fv__lease_release(fv_lease *lease) {
    if (!lease) return;
    beat *b = lease->beat;
    pthread_mutex_lock(&mutex);
    bool locked = identity == getpid() && lock_file(b->fd); /* a fork does not give away what its parent holds */
    if (locked && leads_to(lease->file, b->device, b->inode)) unlink(lease->file);
    if (locked) flock(b->fd, LOCK_UN);
    beat_leave(b);
    pthread_mutex_unlock(&mutex);
    free(lease->file);
    free(lease);
}
