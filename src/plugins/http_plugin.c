/* libmicrohttpd behind the functions of http_plugin.h. One thread reads and sends; one more watches the clock.
 *
 * Invariants
 * 1. A request lives from its first line until libmicrohttpd says that it is over; a connection that is set aside is not over.
 * 2. `calls` of the server guards the list of connections, and nothing is called while it is held but shutdown: the descriptor of
 *    a connection on the list is open.
 * 3. A stream has two users, the connection and who puts; the last one frees it.
 */
#include "view/http_plugin.h"
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

typedef struct connection {
    struct connection *next, **back;
    int                fd;
    bool               busy, used; /* a request is being answered; one was */
    time_t             since;      /* the last request ended, or the connection began */
} connection;

struct fv_http_server {
    fv_http_options    options;
    struct MHD_Daemon *daemon;
    pthread_mutex_t    calls;
    pthread_cond_t     ending;
    pthread_t          watchman;
    bool               over;
    connection        *connections;
    int                count;
};

struct fv_http_request {
    fv_http_server        *server;
    struct MHD_Connection *from;
    char                  *target;
    const char            *method;
    pthread_mutex_t        mutex;
    bool                   seen, waits;
    struct MHD_Response   *response;
    int                    status;
};

struct fv_http_stream {
    pthread_mutex_t        mutex;
    struct MHD_Connection *to; /* NULL: it is closed */
    bool                   waits, over;
    int                    users;
    char                  *pending;
    size_t                 size, room;
};

static time_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* ---------------------------------------------------------------- connections */

static void make_room(fv_http_server *s) {
    connection *oldest = NULL;
    for (connection *c = s->connections; c; c = c->next)
        if (!c->busy && (!oldest || c->since <= oldest->since)) oldest = c; /* the list begins with the newest */
    if (oldest && s->count > s->options.connections) shutdown(oldest->fd, SHUT_RDWR);
}

static void on_connection(void *context, struct MHD_Connection *from, void **slot, enum MHD_ConnectionNotificationCode code) {
    fv_http_server *s = context;
    connection     *c = *slot;
    pthread_mutex_lock(&s->calls);
    if (code == MHD_CONNECTION_NOTIFY_STARTED && (*slot = c = calloc(1, sizeof *c))) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(from, MHD_CONNECTION_INFO_CONNECTION_FD);
        *c = (connection){ .next = s->connections, .back = &s->connections, .fd = info ? info->connect_fd : -1, .since = now() };
        if (c->next) c->next->back = &c->next;
        s->connections = c;
        s->count++;
        make_room(s);
    } else if (code == MHD_CONNECTION_NOTIFY_CLOSED && c) {
        *c->back = c->next;
        if (c->next) c->next->back = c->back;
        s->count--;
        free(c);
    }
    pthread_mutex_unlock(&s->calls);
}

static void set_busy(fv_http_server *s, struct MHD_Connection *from, bool busy) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(from, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    connection                     *c = info ? info->socket_context : NULL;
    if (!c) return;
    pthread_mutex_lock(&s->calls);
    c->busy = busy;
    c->used = true;
    c->since = now();
    pthread_mutex_unlock(&s->calls);
}

/* Who sends a request byte by byte, or nothing, is not waited for. */
static void *watch(void *argument) {
    fv_http_server *s = argument;
    pthread_mutex_lock(&s->calls);
    while (!s->over) {
        time_t          t = now();
        struct timespec until;
        for (connection *c = s->connections; c; c = c->next)
            if (!c->busy && t - c->since > (c->used ? s->options.idle_seconds : s->options.header_seconds))
                shutdown(c->fd, SHUT_RDWR);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&s->ending, &s->calls, &until);
    }
    pthread_mutex_unlock(&s->calls);
    return NULL;
}

/* ---------------------------------------------------------------- requests */

static void *on_first_line(void *context, const char *target, struct MHD_Connection *from) {
    fv_http_request *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    *r = (fv_http_request){ .server = context, .from = from, .target = strdup(target) };
    pthread_mutex_init(&r->mutex, NULL);
    return r;
}

static void on_completed(void *context, struct MHD_Connection *from, void **slot, enum MHD_RequestTerminationCode code) {
    fv_http_request *r = *slot;
    (void)code;
    set_busy(context, from, false);
    if (!r) return;
    if (r->response) MHD_destroy_response(r->response);
    pthread_mutex_destroy(&r->mutex);
    free(r->target);
    free(r);
    *slot = NULL;
}

static bool has_body(struct MHD_Connection *from) {
    return MHD_lookup_connection_value(from, MHD_HEADER_KIND, "Content-Length") ||
           MHD_lookup_connection_value(from, MHD_HEADER_KIND, "Transfer-Encoding");
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *from, const char *path, const char *method,
                                  const char *version, const char *body, size_t *size, void **slot) {
    fv_http_server  *s = context;
    fv_http_request *r = *slot;
    (void)path, (void)version, (void)body;
    if (!r || !r->target) return MHD_NO;
    if (!r->seen) {
        r->seen = true;
        r->method = method;
        set_busy(s, from, true);
        if (!has_body(from)) return MHD_YES; /* called again when the request is complete */
    }
    *size = 0;
    if (!r->response) {
        s->options.serve(s->options.context, r);
        pthread_mutex_lock(&r->mutex);
        if (!r->response) {
            r->waits = true;
            MHD_suspend_connection(from);
        }
        bool later = r->waits;
        pthread_mutex_unlock(&r->mutex);
        if (later) return MHD_YES;
    }
    return MHD_queue_response(from, (unsigned)r->status, r->response);
}

static const char *method_of(const fv_http_request *r) { return r->method; }
static const char *target_of(const fv_http_request *r) { return r->target; }

typedef struct {
    const char *name, *value;
    int         count;
} found;

static enum MHD_Result look_at(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
    found *f = context;
    (void)kind;
    if (strcasecmp(name, f->name)) return MHD_YES;
    f->value = value ? value : "";
    f->count++;
    return MHD_YES;
}

static const char *header_of(const fv_http_request *r, const char *name, int *count) {
    found f = { .name = name };
    MHD_get_connection_values(r->from, MHD_HEADER_KIND, look_at, &f);
    if (count) *count = f.count;
    return f.value;
}

static enum MHD_Result look_for_odd(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~";
    (void)kind, (void)value;
    if (*name && !name[strspn(name, letters)]) return MHD_YES;
    *(bool *)context = true;
    return MHD_NO;
}

static bool is_odd(const fv_http_request *r) {
    bool odd = false;
    MHD_get_connection_values(r->from, MHD_HEADER_KIND, look_for_odd, &odd);
    return odd;
}

static bool is_gone(const fv_http_request *r) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(r->from, MHD_CONNECTION_INFO_CONNECTION_FD);
    char                            byte;
    ssize_t                         n = info ? recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) : 0;
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

static void add_headers(struct MHD_Response *response, const fv_http_header *headers) {
    for (; headers && headers->name; headers++) MHD_add_response_header(response, headers->name, headers->value);
}

static void give(fv_http_request *r, int status, struct MHD_Response *response) {
    pthread_mutex_lock(&r->mutex);
    r->status = status;
    r->response = response;
    bool                   waits = r->waits;
    struct MHD_Connection *from = r->from;
    pthread_mutex_unlock(&r->mutex);
    if (waits) MHD_resume_connection(from); /* from here on the request may be over */
}

static void answer(fv_http_request *r, const fv_http_answer *a) {
    struct MHD_Response *response = a->release ? MHD_create_response_from_buffer_with_free_callback(a->size, a->body, a->release)
                                               : MHD_create_response_from_buffer(a->size, a->body, MHD_RESPMEM_PERSISTENT);
    add_headers(response, a->headers);
    if (a->close) MHD_add_response_header(response, "Connection", "close");
    give(r, a->status, response);
}

/* ---------------------------------------------------------------- streams */

enum { BLOCK = 1 << 16, MOST_PENDING = 8 << 20 };

static void stream_unref(fv_http_stream *t) {
    pthread_mutex_lock(&t->mutex);
    bool last = --t->users == 0;
    pthread_mutex_unlock(&t->mutex);
    if (!last) return;
    pthread_mutex_destroy(&t->mutex);
    free(t->pending);
    free(t);
}

static ssize_t take_pending(void *context, uint64_t position, char *buffer, size_t most) {
    fv_http_stream *t = context;
    (void)position;
    pthread_mutex_lock(&t->mutex);
    ssize_t n = (ssize_t)(t->size < most ? t->size : most);
    if (n > 0) {
        memcpy(buffer, t->pending, (size_t)n);
        memmove(t->pending, t->pending + n, t->size - (size_t)n);
        t->size -= (size_t)n;
    } else if (t->over)
        n = MHD_CONTENT_READER_END_OF_STREAM;
    else {
        t->waits = true;
        MHD_suspend_connection(t->to);
    }
    pthread_mutex_unlock(&t->mutex);
    return n;
}

static void close_stream(void *context) {
    fv_http_stream *t = context;
    pthread_mutex_lock(&t->mutex);
    t->to = NULL;
    pthread_mutex_unlock(&t->mutex);
    stream_unref(t);
}

static void wake(fv_http_stream *t) { /* its mutex is held */
    if (!t->waits || !t->to) return;
    t->waits = false;
    MHD_resume_connection(t->to);
}

static fv_http_stream *begin_stream(fv_http_request *r, const fv_http_header *headers) {
    fv_http_stream *t = calloc(1, sizeof *t);
    if (!t) abort();
    *t = (fv_http_stream){ .to = r->from, .users = 2 };
    pthread_mutex_init(&t->mutex, NULL);
    struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, take_pending, t, close_stream);
    add_headers(response, headers);
    give(r, MHD_HTTP_OK, response);
    return t;
}

static bool put(fv_http_stream *t, const void *data, size_t size) {
    pthread_mutex_lock(&t->mutex);
    bool open = t->to && t->size + size <= MOST_PENDING;
    if (open && t->size + size > t->room) {
        t->room = 2 * (t->size + size);
        t->pending = realloc(t->pending, t->room);
        if (!t->pending) abort();
    }
    if (open) {
        memcpy(t->pending + t->size, data, size);
        t->size += size;
        wake(t);
    }
    pthread_mutex_unlock(&t->mutex);
    return open;
}

static void leave(fv_http_stream *t) {
    pthread_mutex_lock(&t->mutex);
    t->over = true;
    wake(t);
    pthread_mutex_unlock(&t->mutex);
    stream_unref(t);
}

/* ---------------------------------------------------------------- the server */

static bool parse_address(const fv_http_options *o, struct sockaddr_storage *address, bool *six) {
    struct sockaddr_in  *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    memset(address, 0, sizeof *address);
    *six = strchr(o->address, ':') != NULL;
    if (*six) {
        *v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)o->port) };
        return inet_pton(AF_INET6, o->address, &v6->sin6_addr) == 1;
    }
    *v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)o->port) };
    return inet_pton(AF_INET, o->address, &v4->sin_addr) == 1;
}

static struct MHD_Daemon *start_daemon(fv_http_server *s, const struct sockaddr_storage *address, bool six) {
    const fv_http_options *o = &s->options;
    unsigned               flags = MHD_USE_AUTO_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | (six ? (unsigned)MHD_USE_IPv6 : 0);
    return MHD_start_daemon(flags, (uint16_t)o->port, NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR, address,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)o->connections + 64, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)o->header_bytes, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)o->idle_seconds,
                            MHD_OPTION_URI_LOG_CALLBACK, on_first_line, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
}

static fv_http_server *start(const fv_http_options *options, int *port, char message[FV_HTTP_MESSAGE]) {
    struct sockaddr_storage address;
    bool                    six;
    if (!parse_address(options, &address, &six)) {
        snprintf(message, FV_HTTP_MESSAGE, "%s is no address in digits, such as 127.0.0.1 or ::1", options->address);
        return NULL;
    }
    fv_http_server *s = calloc(1, sizeof *s);
    if (!s) abort();
    s->options = *options;
    pthread_mutex_init(&s->calls, NULL);
    pthread_cond_init(&s->ending, NULL);
    errno = 0;
    s->daemon = start_daemon(s, &address, six);
    if (!s->daemon || pthread_create(&s->watchman, NULL, watch, s)) {
        snprintf(message, FV_HTTP_MESSAGE, "%s", errno ? strerror(errno) : "the address cannot be used");
        if (s->daemon) MHD_stop_daemon(s->daemon);
        free(s);
        return NULL;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    *port = info ? info->port : options->port;
    return s;
}

static void stop(fv_http_server *s) {
    pthread_mutex_lock(&s->calls);
    s->over = true;
    pthread_cond_signal(&s->ending);
    pthread_mutex_unlock(&s->calls);
    pthread_join(s->watchman, NULL);
    MHD_stop_daemon(s->daemon);
    pthread_mutex_destroy(&s->calls);
    pthread_cond_destroy(&s->ending);
    free(s);
}

const fv_http_plugin *fv_http_plugin_get(void) {
    static const fv_http_plugin plugin = { .start = start,
                                           .stop = stop,
                                           .method = method_of,
                                           .target = target_of,
                                           .header = header_of,
                                           .odd = is_odd,
                                           .gone = is_gone,
                                           .answer = answer,
                                           .stream = begin_stream,
                                           .put = put,
                                           .leave = leave };
    return &plugin;
}
