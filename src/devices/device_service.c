/* The node's scheduler of devices: one thread, epoll, lines of text.
 *
 * Invariants:
 * 1. A ticket that the broker knows belongs to exactly one connection (`tickets` of it) or to one orphan.
 * 2. Nobody is waited for: sockets are non-blocking, input is bounded by LINE, output by MOST_OUTPUT. */
#include "devices/device_service.h"
#include "base/file.h"
#include "base/host.h"
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 256, MOST_OUTPUT = 1 << 20, MOST_CONNECTIONS = 4096, MOST_TICKETS = 256, OTHER_FILES = 32, LONG_RECORD = 16 << 20 };
#define SLOW 5.0 /* seconds that a line may take to arrive */

typedef struct party { /* who has tickets: a connection, or a process that a service before this one knew */
    struct party *next;
    int           fd;                    /* its socket; of an orphan a descriptor of the process */
    bool          orphan, gone, blocked; /* blocked: it does not read fast enough */
    uint32_t      user;
    int           pid;
    int64_t       start;
    uint64_t     *tickets; /* leases and requests */
    int           ntickets;
    char          line[LINE];
    size_t        length;
    double        since; /* when the line began */
    fv_bytes      out;
} party;

typedef struct service {
    const fv_device_service_options *options;
    fv_broker                       *broker;
    int                              epoll, listener, record;
    gid_t                            group;
    uint64_t                         next_ticket;
    party                           *parties;
    int                              nparties, most_parties;
    fv_bytes                         line;     /* of the record */
    size_t                           recorded; /* bytes that the record has */
} service;

/* ---------------------------------------------------------------- the record */

static const char record_head[] = "time,event,ticket,device,memory,user,pid,start\n";

static void put_event(fv_bytes *out, const char *event, uint64_t ticket, int device, int64_t memory, const party *p) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    fv__bytes_printf(out, "%lld.%06ld,%s,%llu,%d,%lld,%u,%d,%lld\n", (long long)now.tv_sec, now.tv_nsec / 1000, event,
                     (unsigned long long)ticket, device, (long long)memory, p->user, p->pid, (long long)p->start);
}

static void note(service *s, const char *event, uint64_t ticket, int device, int64_t memory, const party *p) {
    fv__bytes_clear(&s->line);
    put_event(&s->line, event, ticket, device, memory, p);
    if (write(s->record, s->line.data, s->line.size) != (ssize_t)s->line.size)
        fv__log("a line of the record of devices could not be written");
    s->recorded += s->line.size;
}

/* ---------------------------------------------------------------- parties */

static party *add_party(service *s, int fd, bool orphan) {
    party *p = fv__calloc(sizeof *p);
    p->fd = fd;
    p->orphan = orphan;
    p->next = s->parties;
    s->parties = p;
    s->nparties++;
    epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &(struct epoll_event){ .events = EPOLLIN, .data.ptr = p });
    return p;
}

static void keep_ticket(party *p, uint64_t ticket) {
    p->tickets = fv__realloc(p->tickets, (size_t)(p->ntickets + 1) * sizeof *p->tickets);
    p->tickets[p->ntickets++] = ticket;
}

static bool drop_ticket(party *p, uint64_t ticket) {
    for (int i = 0; i < p->ntickets; i++)
        if (p->tickets[i] == ticket) {
            p->tickets[i] = p->tickets[--p->ntickets];
            return true;
        }
    return false;
}

/* It is freed at the end of the round: events for it may still be in hand. */
static void lose_party(service *s, party *p) {
    if (p->gone) return;
    p->gone = true;
    for (int i = 0; i < p->ntickets; i++) {
        fv__broker_give_back(s->broker, p->tickets[i]);
        note(s, "lost", p->tickets[i], -1, 0, p);
    }
    epoll_ctl(s->epoll, EPOLL_CTL_DEL, p->fd, NULL);
    close(p->fd);
    s->nparties--;
}

static void sweep(service *s) {
    for (party **at = &s->parties; *at;) {
        party *p = *at;
        if (!p->gone) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        fv__bytes_release(&p->out);
        free(p->tickets);
        free(p);
    }
}

/* ---------------------------------------------------------------- answers */

static void flush(service *s, party *p) {
    size_t sent = 0;
    while (sent < p->out.size) {
        ssize_t put = send(p->fd, p->out.data + sent, p->out.size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0 && errno != EAGAIN) {
            lose_party(s, p);
            return;
        }
        if (put < 0) break;
        sent += (size_t)put;
    }
    memmove(p->out.data, p->out.data + sent, p->out.size - sent);
    p->out.size -= sent;
    bool blocked = p->out.size > 0;
    if (blocked != p->blocked) {
        struct epoll_event event = { .events = EPOLLIN | (blocked ? EPOLLOUT : 0), .data.ptr = p };
        epoll_ctl(s->epoll, EPOLL_CTL_MOD, p->fd, &event);
        p->blocked = blocked;
    }
    if (p->out.size > MOST_OUTPUT) lose_party(s, p); /* it does not read */
}

static void answer(service *s, party *p, const char *format, ...) {
    va_list arguments;
    if (p->gone || p->orphan) return;
    va_start(arguments, format);
    fv__bytes_vprintf(&p->out, format, arguments);
    va_end(arguments);
    fv__bytes_append(&p->out, "\n", 1);
    flush(s, p);
}

static party *party_of(service *s, uint64_t ticket) {
    for (party *p = s->parties; p; p = p->next)
        for (int i = 0; !p->gone && i < p->ntickets; i++)
            if (p->tickets[i] == ticket) return p;
    return NULL;
}

static void give_all(service *s) {
    for (fv_broker_grant g; fv__broker_grant_next(s->broker, &g);) {
        party *p = party_of(s, g.ticket);
        note(s, "granted", g.ticket, g.device, g.memory, p);
        answer(s, p, "granted %llu %d %lld %s", (unsigned long long)g.ticket, g.device, (long long)g.memory,
               fv__broker_device_at(s->broker, g.device)->name);
    }
}

/* ---------------------------------------------------------------- requests */

static void lease(service *s, party *p, const char *words) {
    char     *end;
    long long memory = strtoll(words, &end, 10);
    bool      good = end > words && memory >= 0;
    uint64_t  devices = 0;
    if (good && *end == ' ') {
        words = end + 1;
        devices = strtoull(words, &end, 16);
        good = end > words && *words != '-' && devices;
    }
    if (!good || *end) {
        answer(s, p, "refused lease needs a number of bytes");
        return;
    }
    if (p->ntickets >= MOST_TICKETS) {
        answer(s, p, "refused one connection may have %d leases", MOST_TICKETS);
        return;
    }
    uint64_t ticket = s->next_ticket++;
    fv_asked asked = fv__broker_ask_of(s->broker, ticket, p->user, memory, devices);
    if (asked == FV_ASKED_WAITS) {
        keep_ticket(p, ticket);
        return;
    }
    note(s, "refused", ticket, -1, memory, p);
    if (asked == FV_ASKED_TOO_LARGE)
        answer(s, p, "refused no device has %lld bytes", memory);
    else
        answer(s, p, "refused too many requests are waiting");
}

/* Of its own connection; or of a process that an earlier service knew, by any connection of that process. */
static void give_back(service *s, party *p, const char *words) {
    uint64_t ticket = strtoull(words, NULL, 10);
    party   *owner = party_of(s, ticket);
    if (!owner || (owner != p && !(owner->orphan && owner->pid == p->pid && owner->user == p->user))) {
        answer(s, p, "refused you have no lease %llu", (unsigned long long)ticket);
        return;
    }
    drop_ticket(owner, ticket);
    fv__broker_give_back(s->broker, ticket);
    note(s, "returned", ticket, -1, 0, p);
    if (owner->orphan && !owner->ntickets) lose_party(s, owner);
    answer(s, p, "ok");
}

static void status(service *s, party *p) {
    cJSON *whole = cJSON_CreateObject();
    cJSON_AddStringToObject(whole, "policy", fv__policy_names[fv__broker_policy(s->broker)]);
    cJSON_AddNumberToObject(whole, "waiting", fv__broker_waiting(s->broker));
    cJSON *devices = cJSON_AddArrayToObject(whole, "devices");
    for (int d = 0; d < fv__broker_devices(s->broker); d++) {
        const fv_broker_device *device = fv__broker_device_at(s->broker, d);
        cJSON                  *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name", device->name);
        cJSON_AddNumberToObject(one, "memory", (double)device->memory);
        cJSON_AddNumberToObject(one, "used", (double)device->used);
        cJSON_AddNumberToObject(one, "tasks", device->tasks);
        cJSON_AddNumberToObject(one, "served", (double)device->served);
        cJSON_AddNumberToObject(one, "speed", device->speed);
        cJSON_AddItemToArray(devices, one);
    }
    char *text = cJSON_PrintUnformatted(whole);
    answer(s, p, "%s", text ? text : "refused there is no memory left");
    cJSON_free(text);
    cJSON_Delete(whole);
}

static void obey(service *s, party *p, const char *line) {
    fv_policy policy;
    if (!strncmp(line, "lease ", 6))
        lease(s, p, line + 6);
    else if (!strncmp(line, "return ", 7))
        give_back(s, p, line + 7);
    else if (!strcmp(line, "status"))
        status(s, p);
    else if (!strncmp(line, "policy ", 7) && fv__policy_find(line + 7, &policy)) {
        fv__broker_set_policy(s->broker, policy);
        answer(s, p, "ok");
    } else if (!strncmp(line, "policy ", 7)) {
        answer(s, p, "refused the policies are random, round-robin, least-processes and best-fit");
    } else {
        answer(s, p, "refused what was said is not understood");
        lose_party(s, p);
    }
}

static void hear(service *s, party *p) {
    char    bytes[4096];
    ssize_t got = recv(p->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        lose_party(s, p);
        return;
    }
    for (ssize_t i = 0; i < got && !p->gone; i++) {
        if (!p->length) p->since = fv__now();
        if (bytes[i] == '\n') {
            p->line[p->length] = 0;
            p->length = 0;
            obey(s, p, p->line);
        } else if (bytes[i] && p->length + 1 < LINE)
            p->line[p->length++] = bytes[i];
        else {
            answer(s, p, "refused a line may have %d characters", LINE - 1);
            lose_party(s, p);
        }
    }
}

static void lose_slow(service *s) {
    for (party *p = s->parties; p; p = p->next)
        if (!p->gone && !p->orphan && p->length && fv__now() - p->since > SLOW) lose_party(s, p);
}

/* ---------------------------------------------------------------- connections */

static bool may_ask(const service *s, int fd, const struct ucred *who) {
    gid_t     groups[256];
    socklen_t size = sizeof groups;
    if (who->uid == 0 || who->uid == getuid() || who->gid == s->group) return true;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size)) return false;
    for (size_t i = 0; i < size / sizeof *groups; i++)
        if (groups[i] == s->group) return true;
    return false;
}

/* One user alone may not have so many connections that nobody else can ask. */
static const char *refusal(const service *s, int fd, struct ucred *who) {
    socklen_t size = sizeof *who;
    int       own = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, who, &size) || !may_ask(s, fd, who)) return "refused this is not for you\n";
    if (s->nparties >= s->most_parties) return "refused too many connections\n";
    for (const party *p = s->parties; p; p = p->next) own += !p->gone && p->user == who->uid;
    return own >= s->most_parties / 4 * 3 ? "refused you have too many connections\n" : NULL;
}

static void welcome(service *s) {
    int fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    struct ucred who;
    const char  *no = refusal(s, fd, &who);
    if (no) {
        send(fd, no, strlen(no), MSG_NOSIGNAL | MSG_DONTWAIT);
        close(fd);
        return;
    }
    party *p = add_party(s, fd, false);
    p->user = who.uid;
    p->pid = who.pid;
    p->start = fv__process_start(who.pid);
}

static fv_status listen_at(service *s, fv_error *error) {
    const char        *path = s->options->socket;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof address.sun_path)
        return fv_fail(error, FV_ERROR_INPUT, "%s: the name of a socket may have 107 characters", path);
    strcpy(address.sun_path, path);
    int  probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool taken = connect(probe, (struct sockaddr *)&address, sizeof address) == 0;
    close(probe);
    if (taken) return fv_fail(error, FV_ERROR_INPUT, "%s: a scheduler of devices listens there already", path);
    struct stat there;
    if (lstat(path, &there) == 0 && !S_ISSOCK(there.st_mode))
        return fv_fail(error, FV_ERROR_INPUT, "%s exists and is no socket", path);
    unlink(path);
    s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    mode_t mask = umask(0117);
    bool   bound = bind(s->listener, (struct sockaddr *)&address, sizeof address) == 0;
    int    cause = errno;
    umask(mask);
    if (!bound || listen(s->listener, 1024))
        return fv_fail(error, FV_ERROR_IO, "cannot listen at %s: %s", path, strerror(bound ? errno : cause));
    s->group = lstat(path, &there) == 0 ? there.st_gid : getgid();
    epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->listener, &(struct epoll_event){ .events = EPOLLIN, .data.ptr = NULL });
    return FV_OK;
}

/* ---------------------------------------------------------------- leases of an earlier service */

/* False: the process has ended meanwhile, or the device is none any more. */
static bool adopt(service *s, const fv_broker_grant *g, int pid, int64_t start) {
    if (g->device < 0 || g->device >= fv__broker_devices(s->broker) || fv__process_alive(pid, start) == FV_DEAD) return false;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) return false;
    party *p = add_party(s, fd, true);
    p->user = g->user;
    p->pid = pid;
    p->start = start;
    keep_ticket(p, g->ticket);
    fv__broker_hold(s->broker, g);
    return true;
}

typedef struct line {
    fv_broker_grant g;
    int             pid;
    int64_t         start;
    const char     *text;
    size_t          size;
} line;

/* The leases that were granted and neither returned nor lost, as lines. Tickets of this service come after all of them. */
static fv_bytes find_open(service *s, const fv_bytes *text) {
    fv_bytes open = { 0 };
    for (const char *at = (const char *)text->data, *end; at && *at; at = end ? end + 1 : NULL) {
        char               event[16], one[256] = "";
        unsigned long long ticket;
        long long          memory, start;
        line               l;
        end = strchr(at, '\n');
        l.text = at;
        l.size = end ? (size_t)(end - at) : strlen(at);
        memcpy(one, at, FV_MIN(l.size, sizeof one - 1)); /* sscanf looks for the end of its text, which is far */
        if (sscanf(one, "%*f,%15[a-z],%llu,%d,%lld,%u,%d,%lld", event, &ticket, &l.g.device, &memory, &l.g.user, &l.pid,
                   &start) != 7)
            continue;
        l.g.ticket = ticket;
        l.g.memory = memory;
        l.start = start;
        s->next_ticket = FV_MAX(s->next_ticket, (uint64_t)ticket + 1);
        line  *lines = (line *)(void *)open.data;
        size_t n = open.size / sizeof *lines;
        if (!strcmp(event, "granted")) fv__bytes_append(&open, &l, sizeof l);
        for (size_t i = 0; strcmp(event, "granted") && i < n; i++)
            if (lines[i].g.ticket == ticket) {
                lines[i] = lines[n - 1];
                open.size -= sizeof *lines;
                break;
            }
    }
    return open;
}

/* Takes over the leases that are still out, and gives their lines; and the lines to add for those that have been lost since. */
static void read_record(service *s, const fv_bytes *text, fv_bytes *still, fv_bytes *lost) {
    fv_bytes    open = find_open(s, text);
    const line *lines = (const line *)(const void *)open.data;
    for (size_t i = 0; i < open.size / sizeof *lines; i++) {
        party gone = { .user = lines[i].g.user, .pid = lines[i].pid, .start = lines[i].start };
        if (adopt(s, &lines[i].g, lines[i].pid, lines[i].start))
            fv__bytes_printf(still, "%.*s\n", (int)lines[i].size, lines[i].text);
        else
            put_event(lost, "lost", lines[i].g.ticket, -1, 0, &gone);
    }
    fv__bytes_release(&open);
}

/* A record that has grown long becomes NAME.old, and a new one begins with the leases that are still out. */
static fv_status renew_record(const char *path, const fv_bytes *still, fv_error *error) {
    fv_bytes text = { 0 };
    char    *old = fv__sprintf("%s.old", path);
    fv__bytes_printf(&text, "%s%s", record_head, still->size ? (const char *)still->data : "");
    unlink(old);
    fv_status status = link(path, old) ? fv_fail(error, FV_ERROR_IO, "cannot keep %s: %s", old, strerror(errno)) : FV_OK;
    if (status == FV_OK) status = fv__file_write_all(path, text.data, text.size, true, error);
    fv__bytes_release(&text);
    free(old);
    return status;
}

static int open_to_append(const char *path, fv_error *error) {
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (fd < 0) fv_fail(error, FV_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
    return fd;
}

static char *record_path(const service *s) {
    return s->options->record ? fv__strdup(s->options->record) : fv__sprintf("%s.record", s->options->socket);
}

/* The same while leases go on: without a restart it would grow until no service could read it. Where that fails, the old one is
 * used until it is twice as long. */
static void shorten_record(service *s) {
    char     *path = record_path(s);
    fv_bytes  text = { 0 }, open = { 0 }, still = { 0 };
    fv_error  error = { 0 };
    fv_status status = fv__file_read_all(path, (size_t)1 << 32, &text, &error);
    if (status == FV_OK) open = find_open(s, &text);
    const line *lines = (const line *)(const void *)open.data;
    for (size_t i = 0; i < open.size / sizeof *lines; i++) fv__bytes_printf(&still, "%.*s\n", (int)lines[i].size, lines[i].text);
    if (status == FV_OK) status = renew_record(path, &still, &error);
    int fd = status == FV_OK ? open_to_append(path, &error) : -1;
    if (fd >= 0) {
        close(s->record);
        s->record = fd;
    } else
        fv__log("the record of devices stays long: %s", error.message);
    s->recorded = 0;
    fv__bytes_release(&text);
    fv__bytes_release(&open);
    fv__bytes_release(&still);
    free(path);
}

static fv_status open_record(service *s, fv_error *error) {
    char     *path = record_path(s);
    fv_bytes  text = { 0 }, still = { 0 }, lost = { 0 };
    fv_status status = FV_OK;
    if (fv__file_exists(path)) status = fv__file_read_all(path, (size_t)1 << 32, &text, error);
    if (status == FV_OK && text.size) read_record(s, &text, &still, &lost);
    if (status == FV_OK && text.size > LONG_RECORD) {
        fv__bytes_clear(&lost); /* none of them is in the new one */
        status = renew_record(path, &still, error);
    }
    s->recorded = text.size > LONG_RECORD ? 0 : text.size;
    s->record = status == FV_OK ? open_to_append(path, error) : -1;
    if (status == FV_OK && s->record < 0) status = FV_ERROR_IO;
    const char *first = !text.size ? record_head : text.data[text.size - 1] != '\n' ? "\n" : ""; /* a full disk cuts lines */
    if (status == FV_OK && (write(s->record, first, strlen(first)) < 0 || write(s->record, lost.data, lost.size) < 0))
        status = fv_fail(error, FV_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
    fv__bytes_release(&text);
    fv__bytes_release(&still);
    fv__bytes_release(&lost);
    free(path);
    return status;
}

/* ---------------------------------------------------------------- the service */

static void serve(service *s) {
    while (!*s->options->stop) {
        struct epoll_event events[64];
        int                count = epoll_wait(s->epoll, events, 64, 200);
        for (int i = 0; i < count; i++) {
            party *p = events[i].data.ptr;
            if (!p)
                welcome(s);
            else if (p->gone)
                continue;
            else if (p->orphan)
                lose_party(s, p); /* its process has ended */
            else {
                if (events[i].events & EPOLLOUT) flush(s, p);
                if (!p->gone && events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) hear(s, p);
            }
        }
        lose_slow(s);
        give_all(s);
        sweep(s);
        if (s->recorded > LONG_RECORD) shorten_record(s);
    }
}

/* Leases stay as they are: a service that follows finds them in the record. */
static void end(service *s) {
    for (party *p = s->parties; p; p = p->next)
        if (!p->gone) {
            close(p->fd);
            p->gone = true;
        }
    sweep(s);
    if (s->listener >= 0) {
        close(s->listener);
        unlink(s->options->socket);
    }
    if (s->record >= 0) close(s->record);
    if (s->epoll >= 0) close(s->epoll);
    fv__bytes_release(&s->line);
    fv__broker_free(s->broker);
}

/* As many files as the system allows: who cannot be accepted would be reported again and again. */
static int count_connections(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files)) return MOST_CONNECTIONS / 16;
    files.rlim_cur = FV_MAX(files.rlim_cur, FV_MIN(files.rlim_max, MOST_CONNECTIONS + OTHER_FILES));
    setrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_NOFILE, &files);
    return (int)FV_MIN(FV_MAX(files.rlim_cur, OTHER_FILES + 1) - OTHER_FILES, MOST_CONNECTIONS);
}

fv_status fv__device_service_run(const fv_device_service_options *options, fv_error *error) {
    service s = { .options = options, .listener = -1, .record = -1, .next_ticket = 1, .most_parties = count_connections() };
    s.broker = fv__broker_new(options->policy, options->seed);
    fv__broker_limit(s.broker, options->most_waiting, options->most_waiting_user);
    for (int d = 0; d < options->ndevices; d++) fv__broker_add(s.broker, &options->devices[d]);
    s.epoll = epoll_create1(EPOLL_CLOEXEC);
    fv_status status = listen_at(&s, error);
    if (status != FV_OK && s.listener >= 0) {
        close(s.listener);
        s.listener = -1;
    }
    if (status == FV_OK) status = open_record(&s, error);
    if (status == FV_OK && options->ready) options->ready(options->context);
    if (status == FV_OK) serve(&s);
    end(&s);
    return status;
}
