/* Clocks and messages. */
#include "base/base.h"
#include <pthread.h>
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

static _Atomic int level = FV_LOG_NORMAL; /* an fv_log_level; workers look at it without the mutex */
static void (*hook_before)(void), (*hook_after)(void);
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void fv__log_set(fv_log_level new_level) { level = (int)new_level; }
void fv__log_hook(void (*before)(void), void (*after)(void)) {
    pthread_mutex_lock(&mutex);
    hook_before = before;
    hook_after = after;
    pthread_mutex_unlock(&mutex);
}

static void say(const char *format, va_list arguments) {
    pthread_mutex_lock(&mutex);
    if (hook_before) hook_before();
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    if (hook_after) hook_after();
    pthread_mutex_unlock(&mutex);
}

void fv__log(const char *format, ...) {
    if (level < FV_LOG_NORMAL) return;
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void fv__log_failure(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void fv__log_verbose(const char *format, ...) {
    if (level < FV_LOG_VERBOSE) return;
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}
