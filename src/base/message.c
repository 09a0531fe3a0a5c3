/* Clocks and messages. */
#include "base/message.h"
#include "base/session.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
double fv__now(void) { return seconds(CLOCK_MONOTONIC); }
double fv__thread_cpu(void) { return seconds(CLOCK_THREAD_CPUTIME_ID); }

typedef struct { /* of a session */
    pthread_mutex_t mutex;
    _Atomic int     level; /* an fv_log_level; workers look at it without the mutex */
    atomic_bool     own;   /* has a sink; if not, messages go where those of the process go */
    void (*before)(void);
    void (*after)(void);
    fv_message_sink sink; /* NULL: standard error */
    void           *context;
} messages;

static void begin(void *part) {
    messages *m = part;
    pthread_mutex_init(&m->mutex, NULL);
    m->level = FV_LOG_NORMAL;
}

static messages *part_here(void) {
    static const fv_session_type type = { sizeof(messages), begin, NULL };
    return fv__session_part(FV_PART_MESSAGES, &type);
}

static messages *here(void) {
    messages *m = part_here();
    if (m->own) return m;
    fv_session *before = fv__session_enter(NULL);
    m = part_here();
    fv__session_enter(before);
    return m;
}

void fv__log_set(fv_log_level level) { here()->level = (int)level; }
void fv__log_hook(void (*before)(void), void (*after)(void)) {
    messages *m = here();
    pthread_mutex_lock(&m->mutex);
    m->before = before;
    m->after = after;
    pthread_mutex_unlock(&m->mutex);
}

void fv__log_sink(fv_log_level level, fv_message_sink sink, void *context) {
    messages *m = part_here();
    pthread_mutex_lock(&m->mutex);
    m->level = (int)level;
    m->sink = sink;
    m->context = context;
    m->own = true;
    pthread_mutex_unlock(&m->mutex);
}

static void say(messages *m, const char *format, va_list arguments) {
    fv_bytes line = { 0 };
    if (m->sink) fv__bytes_vprintf(&line, format, arguments);
    pthread_mutex_lock(&m->mutex);
    if (m->before) m->before();
    if (m->sink)
        m->sink(m->context, (char *)line.data);
    else {
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
    }
    if (m->after) m->after();
    pthread_mutex_unlock(&m->mutex);
    fv__bytes_release(&line);
}

void fv__log(const char *format, ...) {
    messages *m = here();
    if (m->level < FV_LOG_NORMAL) return;
    va_list arguments;
    va_start(arguments, format);
    say(m, format, arguments);
    va_end(arguments);
}

void fv__log_failure(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(here(), format, arguments);
    va_end(arguments);
}

void fv__log_verbose(const char *format, ...) {
    messages *m = here();
    if (m->level < FV_LOG_VERBOSE) return;
    va_list arguments;
    va_start(arguments, format);
    say(m, format, arguments);
    va_end(arguments);
}
