/* The server of a view: from a request to the route that answers it.
 *
 * Invariants
 * 1. Nothing is looked at but headers until fv_view_access_check has let a request pass.
 * 2. Each request is answered once: here, or by the job that it became.
 * 3. `running` has the requests that a route answers just now; the watcher asks for them alone, while they are not answered.
 * 4. Streams of events are on the list while somebody may put to them; only the thread of events takes them off.
 */
#include "view/view_server.h"
#include "base/base.h"
#include "base/plugin.h"
#include "base/session.h"
#include "view/http_plugin.h"
#include "view/view_access.h"
#include "view/view_page.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 128, HEADER_BYTES = 16 << 10, HEADER_SECONDS = 10, IDLE_SECONDS = 30, MOST_STREAMS = 16 };

struct fv_view_server {
    fv_view_server_options options;
    fv_view_access         access;
    const fv_http_plugin  *http;
    fv_http_server        *server;
    fv_view_pool          *pool;
    char                  *link, *zarr;
    pthread_t              teller; /* of events */
    bool                   tells, over;
    pthread_mutex_t        mutex; /* guards what follows */
    pthread_cond_t         turn;
    fv_http_stream        *streams[MOST_STREAMS];
    int                    nstreams;
    bool                   fresh;   /* somebody new listens */
    pthread_t              watcher; /* of requests that are being answered */
    bool                   watches;
    pthread_cond_t         begun;
    struct routed         *running;
};

/* ---------------------------------------------------------------- answers */

void fv_view_answer_json(fv_view_answer *a, cJSON *json) {
    free(a->body);
    a->body = cJSON_PrintUnformatted(json);
    a->size = a->body ? strlen(a->body) : 0;
    a->type = "application/json; charset=utf-8";
    cJSON_Delete(json);
}

void fv_view_answer_refuse(fv_view_answer *a, int status, const char *format, ...) {
    char    text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "error", text);
    a->status = status;
    a->unchanging = false;
    a->shape[0] = 0;
    fv_view_answer_json(a, json);
}

void fv_view_answer_error(fv_view_answer *a, const fv_error *error) {
    int status = error->code == FV_ERROR_USAGE ? 400 : error->code == FV_ERROR_INPUT || error->code == FV_ERROR_IO ? 404 : 500;
    fv_view_answer_refuse(a, status, "%s", error->message);
}

enum { MOST_HEADERS = 16 };
typedef struct {
    fv_http_header list[MOST_HEADERS];
    int            count;
} headers;

static void add(headers *h, const char *name, const char *value) {
    if (h->count < MOST_HEADERS - 1) h->list[h->count++] = (fv_http_header){ name, value };
}

/* What every answer has: nothing is run or loaded that this server did not send, and nobody learns of the address. */
static void add_usual(headers *h) {
    add(h, "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    add(h, "X-Content-Type-Options", "nosniff");
    add(h, "Referrer-Policy", "no-referrer");
    add(h, "Cross-Origin-Opener-Policy", "same-origin");
}

static void send_answer(fv_view_server *s, fv_http_request *request, fv_view_answer *a, bool guest) {
    headers h = { 0 };
    add_usual(&h);
    if (a->type) add(&h, "Content-Type", a->type);
    add(&h, "Cache-Control", a->unchanging ? "private, max-age=3600" : "no-store");
    if (a->shape[0]) add(&h, "X-Fovea-Shape", a->shape);
    if (a->shape[0]) add(&h, "X-Fovea-Dtype", a->dtype);
    if (guest) {
        add(&h, "Access-Control-Allow-Origin", s->options.origin);
        add(&h, "Vary", "Origin");
        add(&h, "Cross-Origin-Resource-Policy", "cross-origin");
    } else
        add(&h, "Cross-Origin-Resource-Policy", "same-origin");
    fv_http_answer answer = { .status = a->status ? a->status : 200, .headers = h.list, .body = a->body, .size = a->size };
    answer.release = a->body ? free : NULL;
    if (!a->body) answer.body = "";
    s->http->answer(request, &answer);
}

static void refuse(fv_view_server *s, fv_http_request *request, int status, const char *why) {
    headers        h = { 0 };
    fv_view_answer a = { 0 };
    fv_view_answer_refuse(&a, status, "%s", why);
    add_usual(&h);
    add(&h, "Content-Type", a.type);
    add(&h, "Cache-Control", "no-store");
    if (status == 405) add(&h, "Allow", "GET, HEAD");
    s->http->answer(request, &(fv_http_answer){ status, h.list, a.body, a.size, free, .close = true });
}

/* ---------------------------------------------------------------- the page */

static void welcome(fv_view_server *s, fv_http_request *request) {
    headers h = { 0 };
    char    cookie[128];
    snprintf(cookie, sizeof cookie, "%s=%s; HttpOnly; SameSite=Strict; Path=/", s->access.cookie, s->access.token);
    add_usual(&h);
    add(&h, "Set-Cookie", cookie);
    add(&h, "Location", "/");
    add(&h, "Cache-Control", "no-store");
    s->http->answer(request, &(fv_http_answer){ 303, h.list, "", 0 });
}

static bool send_page(fv_view_server *s, fv_http_request *request, const char *path) {
    const fv_view_file *file = fv_view_page_find(path);
    headers             h = { 0 };
    if (!file) return false;
    add_usual(&h);
    add(&h, "Content-Type", file->type);
    add(&h, "Cache-Control", "no-store");
    const char    *accepts = s->http->header(request, "Accept-Encoding", NULL);
    fv_http_answer answer = { 200, h.list, (void *)file->data, file->size };
    size_t         size;
    void          *packed = accepts && strstr(accepts, "gzip") ? fv_view_page_pack(file, &size) : NULL;
    if (packed) {
        add(&h, "Content-Encoding", "gzip");
        answer = (fv_http_answer){ 200, h.list, packed, size, free };
    }
    s->http->answer(request, &answer);
    return true;
}

/* ---------------------------------------------------------------- routes */

typedef struct routed {
    fv_view_job          base;
    struct routed       *next; /* of those that run */
    volatile int         cancel;
    fv_view_server      *server;
    fv_http_request     *request;
    fv_view_query        query;
    const fv_view_route *route;
    bool                 guest;
} routed;

static _Thread_local volatile int *cancel_here;

volatile int *fv_view_server_cancel(void) { return cancel_here; }

/* Asks now and then whether somebody still waits for what is being computed. */
static void *watch_running(void *argument) {
    fv_view_server *s = argument;
    pthread_mutex_lock(&s->mutex);
    while (!s->over) {
        for (routed *job = s->running; job; job = job->next)
            if (s->http->gone(job->request)) job->cancel = 1;
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000000;
        until.tv_sec += until.tv_nsec / 1000000000 + (s->running ? 0 : 3600);
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&s->begun, &s->mutex, &until);
    }
    for (routed *job = s->running; job; job = job->next) job->cancel = 1;
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static void begin_running(routed *job) {
    fv_view_server *s = job->server;
    pthread_mutex_lock(&s->mutex);
    job->next = s->running;
    job->cancel = s->over;
    s->running = job;
    if (!job->next) pthread_cond_signal(&s->begun);
    pthread_mutex_unlock(&s->mutex);
    cancel_here = &job->cancel;
}

static void end_running(routed *job) {
    fv_view_server *s = job->server;
    cancel_here = NULL;
    pthread_mutex_lock(&s->mutex);
    routed **place = &s->running;
    while (*place != job) place = &(*place)->next;
    *place = job->next;
    pthread_mutex_unlock(&s->mutex);
}

static bool is_gone(const fv_view_answer *a) {
    const routed *job = a->request;
    return job->server->http->gone(job->request);
}

static void run_route(fv_view_job *base, bool drop) {
    routed         *job = (routed *)base;
    fv_view_server *s = job->server;
    fv_view_answer  a = { .gone = is_gone, .request = job };
    if (drop)
        fv_view_answer_refuse(&a, 503, "too many requests wait; this one was dropped for newer ones");
    else if (s->http->gone(job->request))
        fv_view_answer_refuse(&a, 503, "nobody waits for this any more");
    else {
        begin_running(job);
        job->route->answer(s->options.context, &job->query, &a);
        end_running(job);
    }
    send_answer(s, job->request, &a, job->guest);
    fv_view_query_release(&job->query);
    free(job);
}

static const fv_view_route *find_route(const fv_view_server *s, const char *path) {
    for (const fv_view_route *r = s->options.routes; r && r->path; r++) {
        size_t n = strlen(r->path);
        if (r->path[n - 1] == '/' ? !strncmp(r->path, path, n) : !strcmp(r->path, path)) return r;
    }
    return NULL;
}

/* ---------------------------------------------------------------- events */

static bool begin_events(fv_view_server *s, fv_http_request *request) {
    headers h = { 0 };
    add_usual(&h);
    add(&h, "Content-Type", "text/event-stream");
    add(&h, "Cache-Control", "no-store");
    pthread_mutex_lock(&s->mutex);
    bool room = s->nstreams < MOST_STREAMS && !s->over;
    if (room) {
        s->streams[s->nstreams++] = s->http->stream(request, h.list);
        s->fresh = true;
        pthread_cond_signal(&s->turn);
    }
    pthread_mutex_unlock(&s->mutex);
    return room;
}

/* To all who listen; who does not is left. A comment is sent now and then, since only sending shows that somebody has gone. */
static void tell(fv_view_server *s, const char *state) {
    fv_bytes text = { 0 };
    if (state)
        fv__bytes_printf(&text, "event: state\ndata: %s\n\n", state);
    else
        fv__bytes_printf(&text, ":\n\n");
    for (int i = 0; i < s->nstreams;) {
        if (s->http->put(s->streams[i], text.data, text.size))
            i++;
        else {
            s->http->leave(s->streams[i]);
            s->streams[i] = s->streams[--s->nstreams];
        }
    }
    fv__bytes_release(&text);
}

static void wait_turn(fv_view_server *s, bool someone) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 250000000;
    until.tv_sec += until.tv_nsec / 1000000000 + (someone ? 0 : 3600);
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&s->turn, &s->mutex, &until);
}

static void *tell_events(void *argument) {
    fv_view_server *s = argument;
    char           *last = NULL;
    int             quiet = 0;
    pthread_mutex_lock(&s->mutex);
    while (!s->over) {
        bool fresh = s->fresh;
        s->fresh = false;
        if (s->nstreams) {
            pthread_mutex_unlock(&s->mutex);
            char *state = s->options.state(s->options.context);
            pthread_mutex_lock(&s->mutex);
            bool news = state && (fresh || !last || strcmp(state, last));
            if (news || ++quiet > 20) {
                tell(s, news ? state : NULL);
                quiet = 0;
            }
            free(last);
            last = state;
        }
        if (!s->over && !s->fresh) wait_turn(s, s->nstreams > 0);
    }
    while (s->nstreams) s->http->leave(s->streams[--s->nstreams]);
    pthread_mutex_unlock(&s->mutex);
    free(last);
    return NULL;
}

/* ---------------------------------------------------------------- requests */

/* Of "/zarr/TOKEN/0/...", which others than the page ask for: the token is taken out of the path. */
static char *take_key(fv_view_query *q) {
    static const char start[] = "/zarr/";
    if (strncmp(q->path, start, sizeof start - 1)) return NULL;
    const char *key = q->path + sizeof start - 1, *end = strchr(key, '/');
    if (!end || end - key != FV_VIEW_TOKEN - 1) return NULL;
    char *copy = fv__sprintf("%.*s", (int)(end - key), key);
    memmove(q->path + sizeof start - 1, end + 1, strlen(end + 1) + 1);
    return copy;
}

static int check(fv_view_server *s, fv_http_request *request, const fv_view_query *q, const char *key, const char **why) {
    const fv_http_plugin *http = s->http;
    bool                  first = !strcmp(q->path, "/");
    fv_view_caller        c = { .method = http->method(request),
                                .length = http->header(request, "Content-Length", NULL),
                                .encoding = http->header(request, "Transfer-Encoding", NULL),
                                .site = http->header(request, "Sec-Fetch-Site", NULL),
                                .odd = http->odd(request),
                                .zarr = key != NULL,
                                .token = key     ? key
                                         : first ? fv_view_query_text(q, "token")
                                                 : NULL };
    c.host = http->header(request, "Host", &c.hosts);
    c.origin = http->header(request, "Origin", &c.origins);
    c.cookie = http->header(request, "Cookie", &c.cookies);
    return fv_view_access_check(&s->access, &c, why);
}

/* Not to a pool that has ended. */
static void give(fv_view_server *s, routed *job) {
    pthread_mutex_lock(&s->mutex);
    bool over = s->over;
    if (!over) fv_view_pool_give(s->pool, &job->base);
    pthread_mutex_unlock(&s->mutex);
    if (over) run_route(&job->base, true);
}

static void route(fv_view_server *s, fv_http_request *request, fv_view_query *q, bool guest) {
    const fv_view_route *r = find_route(s, q->path);
    if (s->options.state && !strcmp(q->path, "/api/events")) {
        if (!begin_events(s, request)) refuse(s, request, 503, "too many pages listen");
    } else if (r) {
        routed *job = fv__calloc(sizeof *job);
        *job = (routed){ .base.run = run_route, .server = s, .request = request, .query = *q, .route = r, .guest = guest };
        *q = (fv_view_query){ 0 };
        give(s, job);
    } else if (!send_page(s, request, q->path))
        refuse(s, request, 404, "there is nothing of this name");
}

static void serve(void *context, fv_http_request *request) {
    fv_view_server *s = context;
    fv_view_query   q;
    const char     *why;
    pthread_mutex_lock(&s->mutex);
    pthread_mutex_unlock(&s->mutex); /* the port is known from here on */
    bool        good = fv_view_query_parse(&q, s->http->target(request));
    char       *key = good ? take_key(&q) : NULL;
    int         status = good ? check(s, request, &q, key, &why) : 400;
    const char *origin = s->http->header(request, "Origin", NULL);
    if (!good)
        refuse(s, request, 400, "the address is not well formed");
    else if (status)
        refuse(s, request, status, why);
    else if (!strcmp(q.path, "/") && fv_view_is_token(s->access.token, fv_view_query_text(&q, "token")))
        welcome(s, request);
    else
        route(s, request, &q, key && origin && s->options.origin && !strcmp(origin, s->options.origin));
    free(key);
    fv_view_query_release(&q);
}

/* ---------------------------------------------------------------- life */

static fv_status start_http(fv_view_server *s, fv_error *error) {
    const void     *plugin;
    char            message[FV_HTTP_MESSAGE] = "";
    fv_http_options o = { .address = s->access.address,
                          .port = s->options.port,
                          .connections = CONNECTIONS,
                          .header_bytes = HEADER_BYTES,
                          .header_seconds = HEADER_SECONDS,
                          .idle_seconds = IDLE_SECONDS,
                          .serve = serve,
                          .context = s };
    FV_TRY(fv__plugin_load("http", FV_HTTP_SYMBOL, "showing something in a browser", "libmicrohttpd-dev", &plugin, error));
    if (!fv_view_access_init(&s->access))
        return fv_fail(error, FV_ERROR_IO, "the system gives no random numbers for the key of the link");
    s->http = plugin;
    pthread_mutex_lock(&s->mutex); /* requests wait for the port, which they are compared with */
    s->server = s->http->start(&o, &s->access.port, message);
    snprintf(s->access.cookie, sizeof s->access.cookie, "fovea-%d", s->access.port);
    pthread_mutex_unlock(&s->mutex);
    if (s->server) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "cannot listen on %s, port %d: %s", o.address, o.port, message);
}

fv_status fv_view_server_start(const fv_view_server_options *options, fv_view_server **server, fv_error *error) {
    fv_view_server *s = fv__calloc(sizeof *s);
    *server = s;
    s->options = *options;
    s->access.address = options->listen ? options->listen : "127.0.0.1";
    s->access.origin = options->origin;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->turn, NULL);
    pthread_cond_init(&s->begun, NULL);
    s->pool = fv_view_pool_new((int)FV_MIN(FV_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1) + 2, 10)); /* some wait for files */
    fv_status status = start_http(s, error);
    if (status != FV_OK) {
        fv_view_server_stop(s);
        *server = NULL;
        return status;
    }
    bool six = strchr(s->access.address, ':') != NULL;
    s->link = fv__sprintf("http://%s%s%s:%d/?token=%s", six ? "[" : "", s->access.address, six ? "]" : "", s->access.port,
                          s->access.token);
    if (options->origin) s->zarr = fv__sprintf("/zarr/%s/", s->access.key);
    s->tells = options->state && !fv__thread_start(&s->teller, tell_events, s);
    s->watches = !fv__thread_start(&s->watcher, watch_running, s);
    return FV_OK;
}

int           fv_view_server_port(const fv_view_server *s) { return s->access.port; }
const char   *fv_view_server_link(const fv_view_server *s) { return s->link; }
const char   *fv_view_server_zarr(const fv_view_server *s) { return s->zarr; }
fv_view_pool *fv_view_server_pool(const fv_view_server *s) { return s->pool; }

void fv_view_server_wait(fv_view_server *s, volatile int *stop) {
    (void)s;
    while (!*stop) usleep(50000); /* a signal ends it too */
}

void fv_view_server_stop(fv_view_server *s) {
    pthread_mutex_lock(&s->mutex);
    s->over = true;
    pthread_cond_signal(&s->turn);
    pthread_cond_signal(&s->begun);
    pthread_mutex_unlock(&s->mutex);
    if (s->tells) pthread_join(s->teller, NULL);
    if (s->watches) pthread_join(s->watcher, NULL);
    fv_view_pool_free(s->pool);
    if (s->server) s->http->stop(s->server);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->turn);
    pthread_cond_destroy(&s->begun);
    free(s->link);
    free(s->zarr);
    free(s);
}
