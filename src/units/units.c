/* The call that runs units: starts what fits, waits, keeps what is done. */
#include "base/file.h"
#include "units/unit_child.h"
#include "units/unit_log.h"
#include "units/unit_queue.h"
#include "units/unit_table.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MOST_AT_ONCE = 4096 };
static const double TELL = 0.2, ASK_OTHERS = 0.5;

typedef struct fv_units {
    const fv_units_options *options;
    fv_unit_list            list;
    fv_unit_queue           queue;
    fv_unit_log            *log;
    fv_child               *children;
    struct pollfd          *polled; /* two of each child */
    int                     nchildren, running;
    fv_units_state          state;
    double                  begun, told, asked;
    bool                    stopping;
} fv_units;

static void tell(fv_units *s, bool always) {
    double now = fv__now();
    if (!always && now < s->told + TELL) return;
    s->told = now;
    s->state.seconds = now - s->begun;
    s->state.running = s->running;
    s->state.waiting = s->state.units - s->state.done - s->state.failed - s->state.blocked - s->running;
    if (s->options->progress) s->options->progress(s->options->context, &s->state);
}

/* ---------------------------------------------------------------- starting */

static int free_place(const fv_units *s) {
    int c = 0;
    while (s->children[c].unit >= 0) c++;
    return c;
}

static fv_status start(fv_units *s, int index, fv_error *error) {
    fv_unit  *unit = &s->list.units[index];
    fv_child *child = &s->children[free_place(s)];
    *child = (fv_child){ .unit = index, .pidfd = -1, .pipe = -1 };
    snprintf(child->mark, sizeof child->mark, "FOVEA_UNIT=%d-%d", (int)getpid(), index);
    child->output = fv__unit_output(&s->list, unit);
    if (child->output) {
        child->temporary = fv__unit_temporary(child->output, unit);
        char     *folder = fv__sprintf("%.*s", (int)(fv__path_name(child->output) - child->output), child->output);
        fv_status status = *folder ? fv__path_make_folders(folder, error) : FV_OK;
        free(folder);
        if (status == FV_OK) status = fv__path_remove(child->temporary, error);
        if (status != FV_OK) return status;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    unit->result.tries++;
    unit->result.started = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    char    **words = fv__unit_words(&s->list, unit, child->temporary);
    fv_status status = fv__child_start(child, words, error);
    fv__words_free(words);
    if (status != FV_OK) return status;
    unit->stand = FV_UNIT_RUNS;
    s->running++;
    return FV_OK;
}

static void count_kept(fv_units *s) {
    int64_t fresh = fv__unit_log_read(s->log, &s->list);
    s->state.done += fresh;
    s->state.kept += fresh;
}

static fv_status start_some(fv_units *s, fv_error *error) {
    int64_t from = 0, unit;
    while (!s->stopping && s->running < s->nchildren &&
           (unit = fv__unit_queue_next(&s->queue, s->children, s->nchildren, fv__now(), &from)) >= 0) {
        bool fresh = false;
        if (!fv__unit_log_claim(s->log, unit, &fresh)) continue;
        if (fresh) count_kept(s);
        if (s->list.units[unit].stand != FV_UNIT_WAITS) continue;
        FV_TRY(start(s, (int)unit, error));
        from = 0;
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- ending */

static bool code_is_ok(const char *ok, int code) {
    for (const char *at = ok ? ok : "0"; *at;) {
        char *end;
        if (strtol(at, &end, 10) == code) return true;
        at = *end ? end + 1 : end;
    }
    return false;
}

/* Why a unit did not do its work; NULL: it did. */
static const char *judge(fv_units *s, const fv_child *child, fv_unit *unit) {
    fv_unit_result *r = &unit->result;
    char            size[24];
    *r->why = 0;
    if (child->over_time) {
        snprintf(r->why, sizeof r->why, "ran longer than its limit of %g s and was ended", unit->limit);
    } else if (child->over_memory) {
        fv_size_format(unit->memory, size);
        snprintf(r->why, sizeof r->why, "used more than its %s of memory and was ended", size);
    } else if (r->signal) {
        snprintf(r->why, sizeof r->why, "was ended by signal %d (%s)", r->signal, strsignal(r->signal));
    } else if (!code_is_ok(s->options->ok, r->code)) {
        snprintf(r->why, sizeof r->why, "ended with exit code %d", r->code);
    } else if (child->temporary && !fv__file_exists(child->temporary)) {
        snprintf(r->why, sizeof r->why, "ended well but did not make its output");
    }
    return *r->why ? r->why : NULL;
}

static fv_status keep(fv_units *s, fv_child *child, fv_unit *unit, bool well, fv_error *error) {
    if (child->left_out) fv__bytes_printf(&child->printed, "\n[%lld more bytes were left out]\n", (long long)child->left_out);
    FV_TRY(fv__unit_log_keep(s->log, unit, child->printed.data, child->printed.size, error));
    if (!well) return child->temporary ? fv__path_remove(child->temporary, error) : FV_OK;
    if (child->temporary) {
        FV_TRY(fv__paths_sync(&child->temporary, 1, error));
        FV_TRY(fv__path_replace(child->temporary, child->output, error));
    }
    return fv__unit_log_add(s->log, unit, error);
}

static void settle(fv_units *s, fv_unit *unit, bool well, bool again) {
    if (well) {
        unit->stand = FV_UNIT_DONE;
        s->state.done++;
    } else if (again) {
        double pause = s->options->pause;
        for (int i = 1; i < unit->result.tries; i++) pause *= 2;
        unit->not_before = fv__now() + pause;
        unit->stand = FV_UNIT_WAITS;
        s->queue.head = 0;
    } else {
        unit->stand = FV_UNIT_FAILED;
        s->state.failed++;
        fv__unit_queue_block(&s->queue);
        s->state.blocked = 0;
        for (int64_t u = 0; u < s->list.count; u++) s->state.blocked += s->list.units[u].stand == FV_UNIT_BLOCKED;
    }
}

static fv_status end(fv_units *s, fv_child *child, fv_error *error) {
    fv_unit    *unit = &s->list.units[child->unit];
    const char *why = judge(s, child, unit);
    bool        again = why && !s->stopping && unit->result.tries <= s->options->retries;
    s->running--;
    if (why && s->stopping) { /* ended because we asked for it */
        unit->stand = FV_UNIT_WAITS;
        fv_status status = child->temporary ? fv__path_remove(child->temporary, error) : FV_OK;
        fv__child_release(child);
        return status;
    }
    fv_status status = keep(s, child, unit, !why, error);
    settle(s, unit, !why, again);
    if (s->options->ended) {
        char       *command = fv__unit_command(&s->list, unit);
        fv_unit_end told = { unit->name, command, !why, again, why, child->printed.data, (int64_t)child->printed.size };
        s->options->ended(s->options->context, &told);
        free(command);
    }
    fv__child_release(child);
    return status;
}

/* ---------------------------------------------------------------- the loop */

static void stop_all(fv_units *s) {
    s->stopping = true;
    for (int c = 0; c < s->nchildren; c++)
        if (s->children[c].unit >= 0) fv__child_stop(&s->children[c], fv__now());
}

/* Until something happens, or something has to be looked at. */
static void wait_a_little(fv_units *s) {
    int milliseconds = s->running ? 100 : 20, n = 0;
    for (int c = 0; c < s->nchildren; c++) {
        const fv_child *child = &s->children[c];
        if (child->unit < 0) continue;
        if (child->pidfd < 0) milliseconds = 2;
        s->polled[n++] = (struct pollfd){ .fd = child->pidfd, .events = POLLIN };
        s->polled[n++] = (struct pollfd){ .fd = child->pipe, .events = POLLIN };
    }
    poll(s->polled, (nfds_t)n, milliseconds);
}

static fv_status look_at_children(fv_units *s, fv_error *error) {
    double now = fv__now();
    for (int c = 0; c < s->nchildren; c++) {
        fv_child *child = &s->children[c];
        if (child->unit < 0) continue;
        fv_unit *unit = &s->list.units[child->unit];
        fv__child_listen(child);
        if (fv__child_ended(child, &unit->result))
            FV_TRY(end(s, child, error));
        else
            fv__child_watch(child, unit, now);
    }
    return FV_OK;
}

static fv_status work(fv_units *s, fv_error *error) {
    while (s->state.done + s->state.failed + s->state.blocked < s->state.units) {
        if (s->options->stop && *s->options->stop && !s->stopping) stop_all(s);
        if (s->stopping && !s->running) return fv_fail(error, FV_ERROR_CANCELLED, "stopped; the same command goes on");
        FV_TRY(start_some(s, error));
        if (!s->running && s->options->share && fv__now() > s->asked + ASK_OTHERS) {
            s->asked = fv__now();
            count_kept(s);
        }
        wait_a_little(s);
        FV_TRY(look_at_children(s, error));
        tell(s, false);
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- the call */

static fv_status check_existing(const fv_units *s, fv_error *error) {
    fv_status status = FV_OK;
    for (int64_t u = 0; u < s->list.count && status == FV_OK && !s->options->overwrite; u++) {
        if (s->list.units[u].stand != FV_UNIT_WAITS) continue;
        char *output = fv__unit_output(&s->list, &s->list.units[u]);
        if (output && fv__file_exists(output))
            status = fv_fail(error, FV_ERROR_USAGE, "%s exists and is not what this unit made; --overwrite replaces it", output);
        free(output);
    }
    return status;
}

static fv_status prepare(fv_units *s, fv_error *error) {
    const fv_units_options *o = s->options;
    int64_t                 cpus = o->workers > 0 ? o->workers : sysconf(_SC_NPROCESSORS_ONLN);
    if (o->results) FV_TRY(fv__unit_table_check(o->results, error));
    FV_TRY(fv__unit_list_make(o, &s->list, error));
    FV_TRY(fv__unit_queue_init(&s->queue, &s->list, o->order ? o->order : "fifo", cpus, o->memory_bound, error));
    FV_TRY(fv__unit_log_open(o->store, &s->list, o->share, &s->log, error));
    s->nchildren = (int)FV_MIN(cpus, MOST_AT_ONCE);
    s->children = fv__calloc((size_t)s->nchildren * sizeof *s->children);
    s->polled = fv__calloc((size_t)s->nchildren * 2 * sizeof *s->polled);
    for (int c = 0; c < s->nchildren; c++) s->children[c] = (fv_child){ .unit = -1, .pidfd = -1, .pipe = -1 };
    s->state.units = s->list.count;
    if (!o->again) count_kept(s);
    return check_existing(s, error);
}

fv_status fv_units_list(const fv_units_options *options, char **text, fv_error *error) {
    fv_unit_list list;
    fv_bytes     out = { 0 };
    fv_status    status = fv__unit_list_make(options, &list, error);
    for (int64_t u = 0; u < list.count && status == FV_OK; u++) {
        char *command = fv__unit_command(&list, &list.units[u]);
        fv__bytes_printf(&out, "%s\n", command);
        free(command);
    }
    fv__bytes_append(&out, "", 1);
    fv__unit_list_release(&list);
    *text = (char *)out.data;
    return status;
}

fv_status fv_units_run(const fv_units_options *options, fv_units_state *state, fv_error *error) {
    fv_units s = { .options = options, .begun = fv__now() };
    int      adopts = 0;
    prctl(PR_GET_CHILD_SUBREAPER, &adopts);
    fv_status status = prepare(&s, error);
    if (status == FV_OK) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        status = work(&s, error);
        if (status != FV_OK) { /* a full disk, say: nothing may be left running */
            fv_error ignored;
            stop_all(&s);
            while (s.running) {
                wait_a_little(&s);
                look_at_children(&s, &ignored);
            }
        }
        prctl(PR_SET_CHILD_SUBREAPER, adopts);
        tell(&s, true);
        if (options->results && (status == FV_OK || status == FV_ERROR_CANCELLED)) {
            fv_status written = fv__unit_table_write(options->results, &s.list, error);
            if (status == FV_OK) status = written;
        }
    }
    *state = s.state;
    for (int c = 0; c < s.nchildren; c++) fv__child_release(&s.children[c]);
    free(s.children);
    free(s.polled);
    fv__unit_log_close(s.log);
    fv__unit_queue_release(&s.queue);
    fv__unit_list_release(&s.list);
    return status;
}
