/* Engine apart: workers on other machines that have no folder in common with this one. They connect to this process (`fovea task
 * --apart`), which keeps the store and writes all files. What a task needs of earlier stages is sent to the worker that asks for
 * it, and what it makes is sent back; inputs are read by the workers themselves.
 *
 * A port of this process and a key that a worker has to show are written to RUN/apart, which only its user can read: "PORT KEY".
 * Whoever places workers tells them. There may be fewer than settings->workers at any time, or more: then some wait.
 *
 * A connection that breaks is a worker that died, and its job was lost. FOVEA_LISTEN: the address to listen at, for those who
 * know by which one this machine is reached; all of them otherwise.
 */
#include "base/file.h"
#include "base/session.h"
#include "engines/apart/link.h"
#include "engines/processes/frames.h"
#include "run/wire.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define NO_WORKER 120.0    /* seconds without any, after which a run is given up */
#define LAST_SECONDS 5.0   /* that a task has to end after a request to stop */
#define GREETING_SECONDS 2 /* that a worker has to show its key */

enum { MOST_WAITING = 4096, KEEP_ALIVE_IDLE = 15, KEEP_ALIVE_EVERY = 5, KEEP_ALIVE_COUNT = 3 };

typedef struct guest {
    int  fd;
    bool greeted; /* has what it needs of the run's folder */
} guest;

typedef struct host {
    fv_scheduler          *scheduler;
    const fv_run_settings *settings;
    const char            *run_folder;
    char                  *address_file;
    int                    listener;
    char                   key[FV_LINK_KEY + 1];
    pthread_mutex_t        mutex; /* guards what follows */
    pthread_cond_t         came;
    guest                  waiting[MOST_WAITING];
    int                    nwaiting, connected;
    double                 alone; /* since when there is none */
    bool                   over;
} host;

typedef struct attendant { /* a thread that has one job at a time done */
    host     *host;
    pthread_t thread;
    int       number;
    double    asked; /* when a request to stop was seen; 0: not yet */
} attendant;

static bool cancelled(const host *h) { return h->settings->options.cancel && *h->settings->options.cancel; }

/* After a request to stop, a task may end, unless that takes long: it is then as if the worker had been killed. */
static bool given_up(void *context) {
    attendant *a = context;
    if (!cancelled(a->host)) return false;
    if (a->asked == 0) a->asked = fv__now();
    return fv__now() - a->asked > LAST_SECONDS;
}

/* ---------------------------------------------------------------- workers that come and go */

static void keep_alive(int fd) {
    const struct {
        int level, name, value;
    } options[] = { { SOL_SOCKET, SO_KEEPALIVE, 1 },
                    { IPPROTO_TCP, TCP_NODELAY, 1 },
                    { IPPROTO_TCP, TCP_KEEPIDLE, KEEP_ALIVE_IDLE },
                    { IPPROTO_TCP, TCP_KEEPINTVL, KEEP_ALIVE_EVERY },
                    { IPPROTO_TCP, TCP_KEEPCNT, KEEP_ALIVE_COUNT },
                    { IPPROTO_TCP, TCP_USER_TIMEOUT, 1000 * (KEEP_ALIVE_IDLE + KEEP_ALIVE_COUNT * KEEP_ALIVE_EVERY) } };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof options[i].value);
}

/* The differences are added up, so that the time it takes says nothing about where they are. */
static bool shows_key(const host *h, int fd) {
    struct timeval patience = { .tv_sec = GREETING_SECONDS };
    char           shown[FV_LINK_KEY];
    int            difference = 0;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (recv(fd, shown, sizeof shown, MSG_WAITALL) != (ssize_t)sizeof shown) return false;
    for (int i = 0; i < FV_LINK_KEY; i++) difference |= shown[i] ^ h->key[i];
    return !difference;
}

static void let_in(host *h, int fd) {
    bool welcome = shows_key(h, fd);
    pthread_mutex_lock(&h->mutex);
    welcome = welcome && !h->over && h->nwaiting < MOST_WAITING;
    if (welcome) {
        h->waiting[h->nwaiting++] = (guest){ .fd = fd };
        h->connected++;
        pthread_cond_signal(&h->came);
    }
    pthread_mutex_unlock(&h->mutex);
    if (!welcome) close(fd);
}

static bool is_over(host *h) {
    pthread_mutex_lock(&h->mutex);
    bool over = h->over;
    pthread_mutex_unlock(&h->mutex);
    return over;
}

static void *receive_guests(void *argument) {
    host         *h = argument;
    struct pollfd ready = { .fd = h->listener, .events = POLLIN };
    while (!is_over(h)) {
        if (poll(&ready, 1, 200) <= 0) continue;
        int fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) continue;
        keep_alive(fd);
        let_in(h, fd);
    }
    return NULL;
}

/* A worker that waits says nothing: whatever can be read tells that it is gone. */
static bool lives(const guest *g) {
    char byte;
    return recv(g->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* Mutex held. */
static void bury_the_dead(host *h) {
    int kept = 0;
    for (int i = 0; i < h->nwaiting; i++)
        if (lives(&h->waiting[i])) {
            h->waiting[kept++] = h->waiting[i];
        } else {
            close(h->waiting[i].fd);
            h->connected--;
        }
    h->nwaiting = kept;
}

typedef enum taken { TAKEN, NOBODY, GIVEN_UP } taken;

/* Waits for a worker that has nothing to do. */
static taken take_guest(host *h, attendant *a, guest *g) {
    taken found = NOBODY;
    pthread_mutex_lock(&h->mutex);
    while (found == NOBODY) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 200000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        bury_the_dead(h);
        if (h->connected) h->alone = fv__now();
        if (h->nwaiting) {
            *g = h->waiting[--h->nwaiting];
            found = TAKEN;
        } else if (cancelled(h) || h->over || given_up(a))
            found = GIVEN_UP;
        else if (fv__now() - h->alone > NO_WORKER)
            break;
        else
            pthread_cond_timedwait(&h->came, &h->mutex, &until);
    }
    pthread_mutex_unlock(&h->mutex);
    return found;
}

static void give_guest(host *h, const guest *g, bool heard) {
    pthread_mutex_lock(&h->mutex);
    bool kept = heard && !h->over && h->nwaiting < MOST_WAITING;
    if (kept)
        h->waiting[h->nwaiting++] = *g;
    else
        h->connected--;
    if (kept) pthread_cond_signal(&h->came);
    pthread_mutex_unlock(&h->mutex);
    if (!kept) close(g->fd);
}

/* ---------------------------------------------------------------- jobs */

static bool needed(const char *name) { return !strcmp(name, "manifest.json") || !strncmp(name, "array-", 6); }

static bool greet(const host *h, const fv_link *link) {
    const fv_run_options *options = &h->settings->options;
    fv_worker_hello hello = { .memory = h->settings->budget.store, .patience = options->patience, .poison = options->poison - 1 };
    DIR            *folder = opendir(h->run_folder);
    bool            well = folder;
    for (const struct dirent *entry; well && (entry = readdir(folder));) {
        if (!needed(entry->d_name)) continue;
        char *path = fv__sprintf("%s/%s", h->run_folder, entry->d_name);
        well = fv__link_send_file(link, path, entry->d_name);
        free(path);
    }
    if (folder) closedir(folder);
    return well && fv__link_send(link, (fv_link_head){ .kind = FV_LINK_HELLO, .size = sizeof hello }, &hello);
}

/* What the worker wants of the store. */
static bool answer_question(const fv_link *link, const fv_job *job, fv_hash key) {
    fv_store *store = job->instance->context->store;
    fv_blob   blob = { 0 };
    if (!fv__store_has(store, key) || fv__store_get(store, key, &blob, NULL) != FV_OK)
        return fv__link_send(link, (fv_link_head){ .kind = FV_LINK_NONE }, NULL);
    bool well = fv__link_send(link, (fv_link_head){ .kind = FV_LINK_BLOB, .size = (int64_t)blob.size }, blob.data);
    fv__store_unpin(store, &blob);
    return well;
}

/* What the worker has made. *status tells what became of it here; false: it did not come. */
static bool take_gift(const fv_link *link, const fv_job *job, const fv_link_head *head, fv_status *status, fv_error *error) {
    size_t size = (size_t)head->size;
    void  *buffer = size ? fv__buffer_new(size) : NULL;
    if (size && (!buffer || !fv__link_receive(link, buffer, size))) {
        fv__buffer_free(buffer, size);
        return false;
    }
    const fv_stage *stage = &job->instance->plan->stages[job->stage];
    fv_error        own = { 0 };
    fv_status       became =
        fv__task_receive(job->instance, stage, job->task, head->key, buffer, size, head->seconds, head->keep, &own);
    if (*status == FV_OK && became != FV_OK) *error = own;
    if (*status == FV_OK) *status = became;
    return true;
}

static bool take_answer(const fv_link *link, fv_job *job, size_t size, fv_status *status, fv_error *error) {
    fv_bytes       message = { 0 };
    fv_wire_answer answer;
    bool           heard = fv__link_receive_bytes(link, size, &message);
    const uint8_t *at = message.data;
    heard = heard && fv__wire_take_answer(&at, at + message.size, &answer);
    fv__bytes_release(&message);
    if (!heard) return false;
    job->facts = answer.facts;
    if (*status != FV_OK) return true; /* what it made could not be kept here */
    *status = (fv_status)answer.status;
    *error = answer.error;
    return true;
}

/* What the worker says of a job; false: it died before it said anything. */
static bool ask(const fv_link *link, fv_job *job, fv_status *status, fv_error *error) {
    fv_bytes message = { 0 };
    fv__wire_put_job(&message, job, true);
    bool heard = fv__link_send(link, (fv_link_head){ .kind = FV_LINK_JOB, .size = (int64_t)message.size }, message.data);
    fv__bytes_release(&message);
    for (fv_link_head head; heard;) {
        heard = fv__link_receive_head(link, &head);
        if (heard && head.kind == FV_LINK_ANSWER) return take_answer(link, job, (size_t)head.size, status, error);
        if (heard && head.kind == FV_LINK_ASK)
            heard = answer_question(link, job, head.key);
        else
            heard = heard && head.kind == FV_LINK_GIVE && take_gift(link, job, &head, status, error);
    }
    return false;
}

static bool run_elsewhere(attendant *a, fv_job *job, fv_status *status, fv_error *error) {
    host *h = a->host;
    guest g;
    taken found = take_guest(h, a, &g);
    if (found == NOBODY) {
        fv_fail(error, FV_ERROR_IO, "no worker has connected for %.0f s; what is done is kept, and the same command goes on",
                NO_WORKER);
        fv__scheduler_stop(h->scheduler, FV_ERROR_IO, error);
    }
    if (found != TAKEN) {
        *status = fv_fail(error, FV_ERROR_CANCELLED, "stopped; the same command goes on from here");
        return true;
    }
    fv_link link = { g.fd, given_up, a };
    bool    heard = (g.greeted || greet(h, &link)) && ask(&link, job, status, error);
    g.greeted = true;
    give_guest(h, &g, heard);
    return heard;
}

static void run_job(attendant *a, fv_job *job, fv_worker *worker) {
    fv_error  error = { 0 };
    fv_status status = FV_OK;
    bool      heard = true;
    if (job->kind == FV_JOB_TASK)
        heard = run_elsewhere(a, job, &status, &error);
    else
        status = fv__job_run(a->host->scheduler, job, worker, &error);
    if (!heard && cancelled(a->host)) {
        status = fv_fail(&error, FV_ERROR_CANCELLED, "stopped; the same command goes on from here");
        heard = true;
    }
    if (heard)
        fv__job_done(a->host->scheduler, job, a->number, status, &error);
    else
        fv__job_lost(a->host->scheduler, job, a->number);
}

static void *attend(void *argument) {
    attendant    *a = argument;
    fv_scheduler *scheduler = a->host->scheduler;
    fv_worker    *worker = fv__worker_new();
    for (fv_offer offer = FV_OFFER_LATER; offer != FV_OFFER_OVER;) {
        fv_job   job;
        uint64_t seen = fv__scheduler_changes(scheduler);
        offer = fv__job_next(scheduler, 0, false, &job);
        if (offer == FV_OFFER_JOB) run_job(a, &job, worker);
        if (offer == FV_OFFER_LATER) fv__scheduler_wait(scheduler, seen, 0.2);
    }
    fv__worker_free(worker);
    return NULL;
}

/* ---------------------------------------------------------------- the run */

static fv_status make_key(host *h, fv_error *error) {
    uint8_t bytes[FV_LINK_KEY / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return fv_fail(error, FV_ERROR_IO, "no key can be made: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(h->key + 2 * i, 3, "%02x", bytes[i]);
    return FV_OK;
}

/* For those who place workers. */
static fv_status tell_address(host *h, int port, fv_error *error) {
    char  text[64];
    char *temporary = fv__sprintf("%s.new", h->address_file);
    int   fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), length;
    length = snprintf(text, sizeof text, "%d %s\n", port, h->key);
    fv_status status = fd < 0 ? fv_fail(error, FV_ERROR_IO, "cannot write %s: %s", temporary, strerror(errno))
                              : fv__file_write_at(fd, text, (size_t)length, 0, temporary, error);
    if (fd >= 0) close(fd);
    if (status == FV_OK) status = fv__rename(temporary, h->address_file, error);
    free(temporary);
    return status;
}

static fv_status open_door(host *h, fv_error *error) {
    const char        *at = getenv("FOVEA_LISTEN");
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_ANY) } };
    socklen_t          size = sizeof address;
    if (at && inet_pton(AF_INET, at, &address.sin_addr) != 1)
        return fv_fail(error, FV_ERROR_USAGE, "FOVEA_LISTEN = %s: expected an address such as 10.0.0.5", at);
    FV_TRY(make_key(h, error));
    h->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (h->listener < 0 || bind(h->listener, (struct sockaddr *)&address, size) || listen(h->listener, SOMAXCONN) ||
        getsockname(h->listener, (struct sockaddr *)&address, &size))
        return fv_fail(error, FV_ERROR_IO, "no worker can connect to this machine at %s: %s", at ? at : "any address",
                       strerror(errno));
    return tell_address(h, ntohs(address.sin_port), error);
}

/* Those that wait are told that there is nothing left to do. */
static void see_off(host *h) {
    pthread_mutex_lock(&h->mutex);
    h->over = true;
    for (int i = 0; i < h->nwaiting; i++) {
        fv_link link = { .fd = h->waiting[i].fd };
        fv__link_send(&link, (fv_link_head){ .kind = FV_LINK_END }, NULL);
        close(link.fd);
    }
    h->nwaiting = 0;
    pthread_mutex_unlock(&h->mutex);
}

static void start_attendants(host *h, attendant *all, int count, int *started, fv_error *error) {
    for (*started = 0; *started < count; ++*started) {
        attendant *a = &all[*started];
        *a = (attendant){ .host = h, .number = *started };
        if (!fv__thread_start(&a->thread, attend, a)) continue;
        fv_fail(error, FV_ERROR_IO, "cannot start a thread");
        fv__scheduler_stop(h->scheduler, FV_ERROR_IO, error);
        return;
    }
}

static fv_status attend_all(host *h, fv_error *error) {
    int        count = h->settings->options.workers, started = 0;
    attendant *all = fv__calloc((size_t)count * sizeof *all);
    pthread_t  door;
    bool       opened = !fv__thread_start(&door, receive_guests, h);
    if (opened)
        start_attendants(h, all, count, &started, error);
    else
        fv_fail(error, FV_ERROR_IO, "cannot start a thread");
    for (int i = 0; i < started; i++) pthread_join(all[i].thread, NULL);
    see_off(h);
    if (opened) pthread_join(door, NULL);
    free(all);
    return opened ? fv__scheduler_status(h->scheduler, error) : FV_ERROR_IO;
}

static fv_status run(fv_scheduler *scheduler, const fv_run_settings *settings, const char *run_folder, fv_error *error) {
    host *h = fv__calloc(sizeof *h);
    *h = (host){ .scheduler = scheduler, .settings = settings, .run_folder = run_folder, .listener = -1, .alone = fv__now() };
    h->address_file = fv__sprintf("%s/apart", run_folder);
    pthread_mutex_init(&h->mutex, NULL);
    pthread_cond_init(&h->came, NULL);
    fv_status status = open_door(h, error);
    if (status == FV_OK) status = attend_all(h, error);
    if (h->listener >= 0) close(h->listener);
    unlink(h->address_file);
    pthread_mutex_destroy(&h->mutex);
    pthread_cond_destroy(&h->came);
    free(h->address_file);
    free(h);
    return status;
}

const fv_engine fv_engine_apart = { .name = "apart",
                                    .brief = "workers that connect from elsewhere and share no folder with this machine",
                                    .children = true,
                                    .run = run };
