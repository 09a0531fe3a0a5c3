/* The progress line. */
#include "progress.h"
#include <cjson/cJSON.h>
#include <fovea/text.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR = 24, QUIET_SECONDS = 10 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool            terminal, shown;
static char            line[256];
static double          last;
static int64_t         last_seen; /* chunks of all estimates */

void fv_progress_start(void) {
    terminal = isatty(2);
    shown = false;
    line[0] = 0;
    last = 0;
    last_seen = 0;
}

static void clock_text(double seconds, char *text, size_t size) {
    long s = (long)(seconds + 0.5);
    if (s < 60)
        snprintf(text, size, "%lds", s);
    else if (s < 3600)
        snprintf(text, size, "%ldm%02lds", s / 60, s % 60);
    else
        snprintf(text, size, "%ldh%02ldm", s / 3600, s / 60 % 60);
}

static void describe(const fv_run_state *s, char *text, size_t size) {
    char   memory[24], rate[24], left[24] = "?", items[64] = "";
    double done = s->fraction > 1 ? 1 : s->fraction;
    fv_size_format(s->memory, memory);
    fv_size_format((int64_t)((double)(s->bytes_read + s->bytes_written) / (s->seconds > 0 ? s->seconds : 1)), rate);
    if (done > 0) clock_text(s->seconds * (1 - done) / done, left, sizeof left);
    if (s->items > 1) snprintf(items, sizeof items, "%lld/%lld items, ", (long long)s->items_done, (long long)s->items);
    if (s->estimate) /* a line has room for it or for the rates */
        snprintf(text, size, "%3.0f%%  %s%lld/%lld tasks, %s", done * 100, items, (long long)s->tasks_done, (long long)s->tasks,
                 s->estimate);
    else
        snprintf(text, size, "%3.0f%%  %s%lld/%lld tasks, %s/s, %s, %s left", done * 100, items, (long long)s->tasks_done,
                 (long long)s->tasks, rate, memory, left);
}

static void draw(void) {
    struct winsize w;
    int            columns = ioctl(2, TIOCGWINSZ, &w) || !w.ws_col ? 80 : w.ws_col;
    fprintf(stderr, "\r%.*s\033[K", columns - 1, line);
    fflush(stderr);
    shown = true;
}

void fv_progress_show(void *context, const fv_run_state *s) {
    (void)context;
    char text[192], bar[BAR + 1];
    pthread_mutex_lock(&mutex);
    describe(s, text, sizeof text);
    if (terminal) {
        int filled = (int)((s->fraction > 1 ? 1 : s->fraction) * BAR);
        for (int i = 0; i < BAR; i++) bar[i] = i < filled ? '#' : '.';
        bar[BAR] = 0;
        snprintf(line, sizeof line, "[%s] %s", bar, text);
        if (s->seconds > 0.3) draw(); /* short runs stay silent */
    } else if (s->seconds - last >= QUIET_SECONDS) {
        last = s->seconds;
        fprintf(stderr, "fovea: %s\n", text + strspn(text, " "));
    }
    pthread_mutex_unlock(&mutex);
}

static void add_estimate(cJSON *list, const fv_run_estimate *e) {
    cJSON *one = cJSON_CreateObject();
    if (e->item) cJSON_AddStringToObject(one, "item", e->item);
    cJSON_AddStringToObject(one, "name", e->name);
    if (e->column) cJSON_AddStringToObject(one, "column", e->column);
    if (e->column) cJSON_AddNumberToObject(one, "row", (double)e->row);
    if (e->group) cJSON_AddStringToObject(one, "group", e->group);
    cJSON_AddNumberToObject(one, "value", e->value);
    cJSON_AddNumberToObject(one, "low", e->low);
    cJSON_AddNumberToObject(one, "high", e->high);
    cJSON_AddNumberToObject(one, "confidence", e->confidence);
    cJSON_AddNumberToObject(one, "seen", (double)e->seen);
    cJSON_AddNumberToObject(one, e->items ? "items" : "chunks", (double)e->chunks);
    cJSON_AddStringToObject(one, "method", e->method);
    cJSON_AddItemToArray(list, one);
}

static void print_event(const fv_run_state *s) {
    cJSON *event = cJSON_CreateObject();
    cJSON_AddStringToObject(event, "event", "progress");
    cJSON_AddNumberToObject(event, "seconds", s->seconds);
    cJSON_AddNumberToObject(event, "fraction", s->fraction > 1 ? 1 : s->fraction);
    cJSON_AddNumberToObject(event, "tasks", (double)s->tasks);
    cJSON_AddNumberToObject(event, "tasks_done", (double)s->tasks_done);
    cJSON_AddNumberToObject(event, "items", (double)s->items);
    cJSON_AddNumberToObject(event, "items_done", (double)s->items_done);
    cJSON *estimates = cJSON_AddArrayToObject(event, "estimates");
    for (int k = 0; k < s->nestimates; k++) add_estimate(estimates, &s->estimates[k]);
    char *text = cJSON_PrintUnformatted(event);
    fprintf(stderr, "%s\n", text);
    fflush(stderr);
    free(text);
    cJSON_Delete(event);
}

void fv_progress_events(void *context, const fv_run_state *s) {
    if (terminal) {
        fv_progress_show(context, s);
        return;
    }
    int64_t seen = 0;
    for (int k = 0; k < s->nestimates; k++) seen += s->estimates[k].seen;
    pthread_mutex_lock(&mutex);
    if (seen != last_seen || s->seconds - last >= QUIET_SECONDS) {
        last = s->seconds;
        last_seen = seen;
        print_event(s);
    }
    pthread_mutex_unlock(&mutex);
}

void fv_progress_clear(void) {
    pthread_mutex_lock(&mutex);
    if (shown) fprintf(stderr, "\r\033[K");
    pthread_mutex_unlock(&mutex);
}

void fv_progress_redraw(void) {
    pthread_mutex_lock(&mutex);
    if (shown) draw();
    pthread_mutex_unlock(&mutex);
}

void fv_progress_end(void) {
    fv_progress_clear();
    shown = false;
}
