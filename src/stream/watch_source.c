/* Frames from a folder that files come into. The system tells when one was closed or moved there; where it does not, as on
 * network file systems, a look every second finds it.
 *
 * Invariants
 * 1. A file that was moved into the folder counts at once. One that was closed counts when nothing was heard of it for a moment.
 *    One that was only found counts when two looks saw the same size and time.
 * 2. A name is given once.
 */
#include "base/file.h"
#include "base/file_pattern.h"
#include "stream/frame.h"
#include "stream/seen.h"
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK 1.0    /* seconds between looks */
#define SETTLE 0.05 /* after a file was closed */
#define STILL 1.0   /* seconds for which a file that was only found must not have changed */

typedef struct waiting {
    char      *name;
    double     due;  /* when it counts, or is looked at again */
    bool       told; /* the system told that it was closed or moved here */
    fv_file_id id;
} waiting;

typedef struct watch_source {
    fv_frame_source   base;
    fv_source_options options;
    char             *folder, *pattern; /* of the names */
    int               inotify;
    double            looked;
    bool              gone; /* the folder: it may come back */
    waiting          *waiting;
    int64_t           nwaiting, capacity;
    fv_seen           given;
} watch_source;

/* ---------------------------------------------------------------- candidates */

static waiting *find(watch_source *s, const char *name) {
    for (int64_t i = s->nwaiting; i > 0; i--)
        if (!strcmp(s->waiting[i - 1].name, name)) return &s->waiting[i - 1];
    return NULL;
}

static void remove_at(watch_source *s, int64_t i) {
    free(s->waiting[i].name);
    memmove(s->waiting + i, s->waiting + i + 1, (size_t)(s->nwaiting - i - 1) * sizeof *s->waiting);
    s->nwaiting--;
}

static bool identify(const watch_source *s, const char *name, fv_file_id *id) {
    char       *path = fv__path_inside(s->folder, name);
    struct stat st;
    bool        there = !stat(path, &st);
    if (there) *id = (fv_file_id){ st.st_size, (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec };
    free(path);
    return there;
}

static void note(watch_source *s, const char *name, bool told, double delay) {
    if (name[0] == '.' || !fv__pattern_fits(s->pattern, name) || fv__seen_has(&s->given, name, 0)) return;
    waiting *w = find(s, name);
    if (w && !told) return;
    if (!w) {
        if (s->nwaiting == s->capacity) {
            s->capacity = FV_MAX(64, 2 * s->capacity);
            s->waiting = fv__realloc(s->waiting, (size_t)s->capacity * sizeof *s->waiting);
        }
        w = &s->waiting[s->nwaiting++];
        *w = (waiting){ .name = fv__strdup(name) };
    }
    w->told = w->told || told;
    w->due = fv__now() + delay;
    identify(s, name, &w->id);
}

static int by_name(const void *a, const void *b) { return fv__natural_order(*(char *const *)a, *(char *const *)b); }

/* Files that are there at the start, none of which fits the text: that is more often a mistake than meant so. */
static void warn(const watch_source *s, const char *other) {
    fv__log("fovea: no file in %s fits the pattern %s of the text so far; %s does not, for example", s->folder, s->pattern,
            other);
}

static fv_status look(watch_source *s, fv_error *error) {
    char    other[256] = ""; /* of a file that does not fit */
    bool    first = !s->looked;
    DIR    *folder = opendir(s->folder);
    char  **names = NULL;
    int64_t n = 0;
    s->looked = fv__now();
    if (!folder && (first || s->options.once))
        return fv_fail(error, FV_ERROR_INPUT, "the folder %s cannot be looked into: %s", s->folder, strerror(errno));
    if (!folder && !s->gone) fv__log("fovea: the folder %s cannot be looked into: %s; waiting", s->folder, strerror(errno));
    s->gone = !folder;
    if (!folder) return FV_OK;
    /* Where this is not possible, looking is enough. It changes nothing unless the folder was made anew. */
    if (s->inotify >= 0) inotify_add_watch(s->inotify, s->folder, IN_CLOSE_WRITE | IN_MOVED_TO);
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.' || fv__seen_has(&s->given, entry->d_name, 0)) continue;
        if (!fv__pattern_fits(s->pattern, entry->d_name)) {
            snprintf(other, sizeof other, "%s", entry->d_name);
            continue;
        }
        names = fv__realloc(names, (size_t)(n + 1) * sizeof *names);
        names[n++] = fv__strdup(entry->d_name);
    }
    closedir(folder);
    if (first && !n && !s->given.nscans && *other) warn(s, other);
    if (n) qsort(names, (size_t)n, sizeof *names, by_name);
    for (int64_t i = 0; i < n; i++) {
        if (!find(s, names[i])) note(s, names[i], false, 0);
        free(names[i]);
    }
    free(names);
    return FV_OK;
}

static void listen_to(watch_source *s) {
    _Alignas(struct inotify_event) char bytes[1 << 16];
    for (ssize_t got; (got = read(s->inotify, bytes, sizeof bytes)) > 0;)
        for (char *at = bytes; at < bytes + got;) {
            const struct inotify_event *event = (const void *)at;
            if (event->mask & IN_Q_OVERFLOW) s->looked = 0;
            if (event->len) note(s, event->name, true, event->mask & IN_MOVED_TO ? 0 : SETTLE);
            at += sizeof *event + event->len;
        }
}

/* ---------------------------------------------------------------- frames */

static fv_frame *make_frame(watch_source *s, const char *name) {
    fv_frame *frame = fv__frame_new();
    char      stem[256];
    fv__path_stem(name, stem, sizeof stem);
    frame->path = fv__path_inside(s->folder, name);
    frame->where = fv__strdup(frame->path);
    frame->scan = s->options.scans ? fv__frame_split(stem, &frame->index) : fv__strdup(frame->path);
    fv_file_id id;
    if (identify(s, name, &id)) frame->bytes = (size_t)id.size;
    return frame;
}

/* Whether a file that is due is complete. */
static bool is_complete(const watch_source *s, waiting *w, double now) {
    fv_file_id      id;
    struct timespec clock;
    if (!identify(s, w->name, &id)) return false;
    clock_gettime(CLOCK_REALTIME, &clock);
    double age = (double)clock.tv_sec + 1e-9 * (double)clock.tv_nsec - 1e-9 * (double)id.mtime_ns;
    bool   same = id.size == w->id.size && id.mtime_ns == w->id.mtime_ns;
    bool   still = w->told || age > STILL || age < -STILL;
    w->id = id;
    w->due = now + (w->told ? SETTLE : 0.2);
    bool full = id.size > 0 || (s->options.once && age > STILL); /* an empty one may be filled yet */
    return same && still && full;
}

static fv_frame *take_due(watch_source *s) {
    double now = fv__now();
    for (int64_t i = 0; i < s->nwaiting; i++) {
        waiting *w = &s->waiting[i];
        if (w->due > now) continue;
        fv_file_id id;
        if (!identify(s, w->name, &id)) {
            remove_at(s, i--);
            continue;
        }
        if (!is_complete(s, w, now)) continue;
        fv_frame *frame = make_frame(s, w->name);
        fv__seen_add(&s->given, w->name, 0);
        remove_at(s, i);
        return frame;
    }
    return NULL;
}

static double next_due(const watch_source *s, double until) {
    double due = FV_MIN(until, s->looked + LOOK);
    for (int64_t i = 0; i < s->nwaiting; i++) due = FV_MIN(due, s->waiting[i].due);
    return due;
}

static fv_status next(fv_frame_source *source, double seconds, fv_frame **frame, bool *over, fv_error *error) {
    watch_source *s = (watch_source *)source;
    double        until = fv__now() + seconds;
    *frame = NULL;
    *over = false;
    for (;;) {
        if (s->inotify >= 0) listen_to(s);
        if (fv__now() - s->looked > LOOK) FV_TRY(look(s, error));
        *frame = take_due(s);
        *over = !*frame && s->options.once && !s->nwaiting;
        double left = next_due(s, until) - fv__now();
        if (*frame || *over || fv__now() >= until) return FV_OK;
        struct pollfd ready = { .fd = s->inotify, .events = POLLIN };
        poll(&ready, s->inotify >= 0, (int)(FV_MAX(left, 0) * 1000) + 1);
    }
}

static int64_t lag(fv_frame_source *source) { return ((watch_source *)source)->nwaiting; }

static void close_source(fv_frame_source *source) {
    watch_source *s = (watch_source *)source;
    if (s->inotify >= 0) close(s->inotify);
    while (s->nwaiting) remove_at(s, s->nwaiting - 1);
    fv__seen_release(&s->given);
    free(s->waiting);
    free(s->folder);
    free(s->pattern);
    free(s);
}

/* Names of files are often given, too. */
static fv_status no_folder(const char *address, fv_error *error) {
    int  n = (int)(fv__path_name(address) - address);
    bool files = fv__file_exists(address) || strpbrk(address + n, "*?[{");
    return fv_fail(error, FV_ERROR_INPUT, "there is no folder %s to watch%s%.*s%s", address, files ? "; watch:" : "",
                   files ? FV_MAX(n - 1, 1) : 0, n ? address : ".", files ? " takes those of its files that fit the text" : "");
}

fv_status fv__watch_source(const fv_source_options *options, const char *folder, const char *pattern, fv_frame_source **out,
                           fv_error *error) {
    if (!*folder) return fv_fail(error, FV_ERROR_USAGE, "watch: names no folder; expected watch:FOLDER, as watch:incoming");
    if (!fv__path_is_folder(folder)) return no_folder(folder, error);
    watch_source *s = fv__calloc(sizeof *s);
    s->base = (fv_frame_source){ .next = next, .lag = lag, .close = close_source };
    s->options = *options;
    s->folder = fv__strdup(folder);
    for (size_t n = strlen(s->folder); n > 1 && s->folder[n - 1] == '/'; n--) s->folder[n - 1] = 0;
    s->pattern = fv__strdup(fv__path_name(pattern));
    s->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    *out = &s->base;
    return look(s, error);
}
