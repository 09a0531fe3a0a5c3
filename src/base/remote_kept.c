/* Files of servers that give no ranges: each is fetched once in a session, into the local file of whoever asks first.
 *
 * Invariants: 1. the list is looked at with its mutex held, which nobody keeps while bytes come; 2. an entry that somebody waits
 * for or fills (users) is not removed; 3. the descriptor of an entry is of a complete file. The files have no names: they are
 * gone with the process, however it ends. */
#include "base/remote.h"
#include "base/session.h"
#include "base/take.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { MOST_KEPT = 8 };

typedef struct kept_file {
    struct kept_file *next;
    char             *path;
    fv_remote_facts   facts;
    int               fd, users; /* fd -1: nothing is here yet */
    pthread_mutex_t   filling;
} kept_file;

typedef struct {           /* of a session */
    kept_file      *first; /* the last used */
    pthread_mutex_t mutex;
} kept_files;

static void begin(void *part) { pthread_mutex_init(&((kept_files *)part)->mutex, NULL); }

static void trim(kept_files *all, int most);

static void end(void *part) {
    trim(part, 0);
    pthread_mutex_destroy(&((kept_files *)part)->mutex);
}

static kept_files *here(void) {
    static const fv_session_type type = { sizeof(kept_files), begin, end };
    return fv__session_part(FV_PART_FETCHED, &type);
}

static bool is_of(const kept_file *k, const char *path, const fv_remote_facts *facts) {
    return !strcmp(k->path, path) && k->facts.size == facts->size && !strcmp(k->facts.etag, facts->etag) &&
           !strcmp(k->facts.modified, facts->modified);
}

/* Takes it off the list and puts it first; NULL: it is not there. With the mutex held. */
static kept_file *find(kept_files *all, const char *path, const fv_remote_facts *facts) {
    for (kept_file **p = &all->first; *p; p = &(*p)->next)
        if (is_of(*p, path, facts)) {
            kept_file *k = *p;
            *p = k->next;
            k->next = all->first;
            all->first = k;
            return k;
        }
    return NULL;
}

/* Lets go of all but the last used that nobody fills. Readers keep theirs open. With the mutex held. */
static void trim(kept_files *all, int most) {
    int count = 0;
    for (kept_file **p = &all->first; *p;) {
        kept_file *k = *p;
        if (++count <= most || k->users) {
            p = &k->next;
            continue;
        }
        *p = k->next;
        if (k->fd >= 0) close(k->fd);
        pthread_mutex_destroy(&k->filling);
        free(k->path);
        free(k);
    }
}

/* Each descriptor has its own position. */
static int open_again(int fd) {
    char name[48];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return open(name, O_RDWR | O_CLOEXEC);
}

bool fv__remote_open_kept(const char *path, const fv_remote_facts *facts, int *fd) {
    kept_files *all = here();
    pthread_mutex_lock(&all->mutex);
    const kept_file *k = find(all, path, facts);
    *fd = k && k->fd >= 0 ? open_again(k->fd) : -1;
    pthread_mutex_unlock(&all->mutex);
    return *fd >= 0;
}

static bool has_room(int fd, int64_t size, int64_t *room) {
    struct statvfs s;
    if (fstatvfs(fd, &s)) return true; /* who writes there will see */
    *room = (int64_t)FV_MIN((uint64_t)s.f_bavail * s.f_frsize, (uint64_t)INT64_MAX);
    return size <= *room;
}

static fv_status check_room(const char *path, int64_t size, int fd, fv_error *error) {
    int64_t     room = 0;
    kept_files *all = here();
    if (has_room(fd, size, &room)) return FV_OK;
    pthread_mutex_lock(&all->mutex);
    trim(all, 0);
    pthread_mutex_unlock(&all->mutex);
    if (has_room(fd, size, &room)) return FV_OK;
    char needed[24], left[24];
    fv_size_format(size, needed);
    fv_size_format(room, left);
    return fv_fail(error, FV_ERROR_FULL,
                   "%s: its server gives no ranges, so that all of its %lld bytes (%s) must be fetched first, and %s has room "
                   "for %s; set TMPDIR to a larger folder, or ask a server that gives ranges",
                   path, (long long)size, needed, fv__file_scratch(), left);
}

static fv_status copy(int from, int to, int64_t size, const char *path, fv_error *error) {
    char     *buffer;
    fv_status status = FV_TAKE(buffer, (size_t)1 << 20, error);
    for (int64_t at = 0; at < size && status == FV_OK;) {
        size_t n = (size_t)FV_MIN(size - at, (int64_t)1 << 20);
        status = fv__file_read_at(from, buffer, n, at, path, error);
        if (status == FV_OK) status = fv__file_write_at(to, buffer, n, at, path, error);
        at += (int64_t)n;
    }
    free(buffer);
    return status;
}

/* With k->filling held. */
static fv_status fill(kept_file *k, int fd, fv_error *error) {
    FV_TRY(check_room(k->path, k->facts.size, fd, error));
    if (k->fd >= 0) return copy(k->fd, fd, k->facts.size, k->path, error); /* somebody was faster */
    FV_TRY(fv__remote_get_all(k->path, &k->facts, fd, error));
    int         own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    kept_files *all = here();
    pthread_mutex_lock(&all->mutex);
    k->fd = own;
    pthread_mutex_unlock(&all->mutex);
    return FV_OK;
}

fv_status fv__remote_keep(const char *path, const fv_remote_facts *facts, int fd, fv_error *error) {
    kept_files *all = here();
    pthread_mutex_lock(&all->mutex);
    kept_file *k = find(all, path, facts);
    if (!k) {
        k = fv__calloc(sizeof *k);
        *k = (kept_file){ .next = all->first, .path = fv__strdup(path), .facts = *facts, .fd = -1 };
        pthread_mutex_init(&k->filling, NULL);
        all->first = k;
    }
    k->users++;
    pthread_mutex_unlock(&all->mutex);
    fv__io_lock(&k->filling);
    fv_status status = fill(k, fd, error);
    pthread_mutex_unlock(&k->filling);
    pthread_mutex_lock(&all->mutex);
    k->users--;
    trim(all, MOST_KEPT);
    pthread_mutex_unlock(&all->mutex);
    return status;
}
