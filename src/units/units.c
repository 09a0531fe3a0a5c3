/* The call that runs units: starts what fits, waits, keeps what is done. */
#include "base/file.h"
#include "base/host.h"
#include "base/rank_words.h"
#include "units/unit_log.h"
#include "units/unit_queue.h"
#include "units/unit_table.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_AT_ONCE = 4096 };
static const double TELL = 0.2, ASK_OTHERS = 0.5, ASK_AGAIN = 1, DEVICE_WAIT = 0.05, DEVICE_AGAIN = 0.1;

typedef struct fv_units {
    const fv_units_options *options;
    fv_unit_list            list;
    fv_unit_queue           queue;
    fv_unit_log            *log;
    fv_running             *places;
    struct pollfd          *polled; /* two of each place */
    int                     nplaces, running;
    fv_units_state          state;
    double                  begun, told, asked;
    bool                    stopping;
    bool                    tells;         /* what others do */
    bool                    others_failed; /* units did, since those behind them were last marked */
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
    while (s->places[c].unit >= 0) c++;
    return c;
}

static void leave(fv_running *place) {
    fv__child_release(&place->child);
    fv_device_grant_return(&place->device);
    free(place->output);
    free(place->temporary);
    *place = (fv_running){ .unit = -1, .child = { .pidfd = -1, .pipe = -1, .file = -1 }, .device.lease.connection = -1 };
}

static fv_status start(fv_units *s, int index, fv_error *error) {
    fv_unit    *unit = &s->list.units[index];
    fv_running *place = &s->places[free_place(s)];
    leave(place);
    place->child.limit = unit->limit;
    place->child.memory = unit->memory;
    if (unit->device) {
        fv_status had = fv_device_grant_take(NULL, unit->device, DEVICE_WAIT, &place->device, error);
        if (had == FV_ERROR_BUSY) unit->not_before = fv__now() + DEVICE_AGAIN;
        if (had != FV_OK) return had == FV_ERROR_BUSY ? FV_OK : had;
        place->child.settings = place->device.settings;
    }
    place->output = fv__unit_output(&s->list, unit);
    if (place->output) {
        place->temporary = fv__unit_temporary(place->output, unit);
        char     *folder = fv__sprintf("%.*s", (int)(fv__path_name(place->output) - place->output), place->output);
        fv_status status = *folder ? fv__path_make_folders(folder, error) : FV_OK;
        free(folder);
        if (status == FV_OK) status = fv__path_remove(place->temporary, error);
        if (status != FV_OK) return status;
    }
    unit->result.tries++;
    unit->result.started = fv__epoch();
    char    **words = fv__rank_words(fv__unit_words(&s->list, unit, place->temporary), unit->ranks, error);
    fv_status status = words ? fv__child_start(&place->child, words, NULL, NULL, error) : error->code;
    if (words) fv__words_free(words);
    if (status != FV_OK) return status;
    place->unit = index;
    unit->stand = FV_UNIT_RUNS;
    s->running++;
    return FV_OK;
}

/* Marks units behind one that failed, and counts them. */
static void block_followers(fv_units *s) {
    fv__unit_queue_block(&s->queue);
    s->state.blocked = 0;
    for (int64_t u = 0; u < s->list.count; u++) s->state.blocked += s->list.units[u].stand == FV_UNIT_BLOCKED;
}

static void tell_end(const fv_units *s, const fv_unit *unit, bool again, const fv_bytes *printed) {
    bool        well = unit->stand == FV_UNIT_DONE;
    char       *command = !well || printed->size ? fv__unit_command(&s->list, unit) : fv__strdup(""); /* nobody wants to know */
    fv_unit_end told = {
        unit->name, command, well, again, well ? NULL : unit->result.why, printed->data, (int64_t)printed->size
    };
    if (s->options->ended) s->options->ended(s->options->context, &told);
    free(command);
}

/* A log says what became of a unit. */
static void take_marked(void *context, fv_unit *unit) {
    fv_units *s = context;
    bool      well = unit->stand == FV_UNIT_DONE;
    bool      tells = s->tells || (s->options->tells && !unit->result.kept); /* another rank may be quicker than our first look */
    unit->result.kept = !tells;
    s->state.done += well;
    s->state.kept += well && !tells;
    s->state.failed += !well;
    s->others_failed = s->others_failed || !well;
    if (!tells) return;
    fv_bytes printed = { 0 };
    fv__unit_log_printed(s->log, unit, &printed);
    tell_end(s, unit, false, &printed);
    fv__bytes_release(&printed);
}

static void look_at_others(fv_units *s) {
    s->asked = fv__now();
    fv__unit_log_read(s->log, &s->list, take_marked, s);
    if (s->others_failed) block_followers(s);
    s->others_failed = false;
}

/* Processors that may be used now, and what could be used. */
static void look_at_allowance(fv_units *s) {
    fv_allowance *allowance = s->options->allowance;
    int64_t       least, used = 0;
    if (!allowance) return;
    for (int c = 0; c < s->nplaces; c++) used += s->places[c].unit < 0 ? 0 : s->list.units[s->places[c].unit].cpus;
    s->queue.allowed = FV_MIN(allowance->allowed, s->queue.cpus);
    allowance->wanted = (int)FV_MIN(used + fv__unit_queue_wanted(&s->queue, fv__now(), &least), s->queue.cpus);
    allowance->least = (int)least;
    allowance->used = (int)used;
}

static fv_status start_some(fv_units *s, fv_error *error) {
    int64_t index;
    look_at_allowance(s);
    while (!s->stopping && s->running < s->nplaces &&
           (index = fv__unit_queue_next(&s->queue, s->places, s->nplaces, fv__now())) >= 0) {
        fv_unit *unit = &s->list.units[index];
        bool     fresh = false;
        if (!fv__unit_log_claim(s->log, index, &fresh)) unit->not_before = fv__now() + ASK_AGAIN;
        if (fresh) look_at_others(s);
        if (unit->stand != FV_UNIT_WAITS || unit->not_before > fv__now()) continue;
        FV_TRY(start(s, (int)index, error));
        if (unit->stand != FV_UNIT_RUNS) break; /* no device is free: those that run are looked at first */
        fv__unit_queue_started(&s->queue);
        look_at_allowance(s);
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- ending */

static void take_end(fv_unit_result *r, const fv_child_end *end) {
    r->code = end->code;
    r->signal = end->signal;
    r->seconds = end->seconds;
    r->cpu_seconds = end->cpu_seconds;
    r->memory = end->memory;
    snprintf(r->host, sizeof r->host, "%s", fv__host_self()->name);
}

/* Why a unit did not do its work; NULL: it did. */
static const char *judge(fv_units *s, const fv_running *place, const fv_child_end *end, fv_unit_result *r) {
    *r->why = 0;
    if (fv__child_misfortune(&place->child, end, r->why, sizeof r->why)) return r->why;
    if (!fv__exit_code_among(s->options->ok ? s->options->ok : "0", r->code))
        snprintf(r->why, sizeof r->why, "ended with exit code %d", r->code);
    else if (place->temporary && !fv__file_exists(place->temporary))
        snprintf(r->why, sizeof r->why, "ended well but did not make its output");
    return *r->why ? r->why : NULL;
}

static fv_status keep(fv_units *s, fv_running *place, fv_unit *unit, const char *command, bool well, fv_error *error) {
    fv_child *child = &place->child;
    if (child->left_out) fv__bytes_printf(&child->printed, "\n[%lld more bytes were left out]\n", (long long)child->left_out);
    FV_TRY(fv__unit_log_keep(s->log, unit, command, well, &child->printed, error));
    if (!well) return place->temporary ? fv__path_remove(place->temporary, error) : FV_OK;
    if (place->temporary) FV_TRY(fv__paths_sync(&place->temporary, 1, error));
    FV_TRY(fv__unit_log_add(s->log, unit, true, error)); /* first: a file with its name and without a line would be another's */
    return place->temporary ? fv__path_replace(place->temporary, place->output, error) : FV_OK;
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
        block_followers(s);
    }
}

static fv_status end(fv_units *s, fv_running *place, const fv_child_end *how, fv_error *error) {
    fv_unit *unit = &s->list.units[place->unit];
    take_end(&unit->result, how);
    const char *why = judge(s, place, how, &unit->result);
    bool        stopped = s->stopping || (s->queue.ends > 0 && fv__now() > s->queue.ends); /* or the system did, at the end */
    bool        again = why && unit->result.tries <= s->options->retries;
    s->running--;
    if (why && stopped) { /* it did not fail by itself */
        unit->stand = FV_UNIT_WAITS;
        fv_status status = place->temporary ? fv__path_remove(place->temporary, error) : FV_OK;
        leave(place);
        return status;
    }
    const fv_bytes *printed = &place->child.printed;
    char           *command = why || printed->size ? fv__unit_command(&s->list, unit) : NULL;
    fv_status       status = keep(s, place, unit, command, !why, error);
    settle(s, unit, !why, again);
    if (status == FV_OK && unit->stand == FV_UNIT_FAILED) status = fv__unit_log_add(s->log, unit, false, error);
    s->queue.longest = FV_MAX(s->queue.longest, how->seconds);
    tell_end(s, unit, again, printed);
    free(command);
    leave(place);
    return status;
}

/* ---------------------------------------------------------------- the loop */

static void stop_all(fv_units *s) {
    s->stopping = true;
    for (int c = 0; c < s->nplaces; c++)
        if (s->places[c].unit >= 0) fv__child_stop(&s->places[c].child, fv__now());
}

/* Until something happens, or something has to be looked at. */
static void wait_a_little(fv_units *s) {
    int milliseconds = s->running ? 100 : 20, n = 0;
    for (int c = 0; c < s->nplaces; c++) {
        const fv_child *child = &s->places[c].child;
        if (s->places[c].unit < 0) continue;
        if (child->pidfd < 0) milliseconds = 2;
        s->polled[n++] = (struct pollfd){ .fd = child->pidfd, .events = POLLIN };
        s->polled[n++] = (struct pollfd){ .fd = child->pipe, .events = POLLIN };
    }
    poll(s->polled, (nfds_t)n, milliseconds);
}

static fv_status look_at_children(fv_units *s, fv_error *error) {
    double       now = fv__now();
    fv_child_end how;
    for (int c = 0; c < s->nplaces; c++) {
        fv_child *child = &s->places[c].child;
        if (s->places[c].unit < 0) continue;
        fv__child_listen(child);
        if (fv__child_ended(child, &how))
            FV_TRY(end(s, &s->places[c], &how, error));
        else
            fv__child_watch(child, now);
    }
    return FV_OK;
}

static fv_status work(fv_units *s, fv_error *error) {
    while (s->state.done + s->state.failed + s->state.blocked < s->state.units) {
        if (s->options->stop && *s->options->stop && !s->stopping) stop_all(s);
        if (s->stopping && !s->running) return fv_fail(error, FV_ERROR_CANCELLED, "stopped; the same command goes on");
        bool over = s->options->over && s->options->over(s->options->context);
        FV_TRY(start_some(s, error));
        if (over || (s->running < FV_MAX(s->nplaces, 1) && s->options->share && fv__now() > s->asked + ASK_OTHERS))
            look_at_others(s);
        if (over) return FV_OK;
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
        char *temporary = output ? fv__unit_temporary(output, &s->list.units[u]) : NULL;
        if (output && fv__file_exists(output) && !fv__file_exists(temporary)) /* else it was being made when it was killed */
            status = fv_fail(error, FV_ERROR_USAGE, "%s exists and is not what this unit made; --overwrite replaces it", output);
        free(output);
        free(temporary);
    }
    return status;
}

static fv_status prepare(fv_units *s, fv_error *error) {
    const fv_units_options *o = s->options;
    int64_t                 cpus = o->workers > 0 ? o->workers : sysconf(_SC_NPROCESSORS_ONLN);
    if (o->results) FV_TRY(fv__unit_table_check(o->results, error));
    FV_TRY(fv__unit_list_make(o, &s->list, error));
    FV_TRY(fv__unit_queue_init(&s->queue, &s->list, o->order ? o->order : "fifo", cpus, o->memory_bound, error));
    FV_TRY(fv__unit_log_open(o, &s->list, &s->log, error));
    if (o->ends > 0) s->queue.ends = fv__now() + o->ends - fv__epoch();
    s->nplaces = o->over ? 0 : (int)FV_MIN(cpus, MOST_AT_ONCE);
    s->places = fv__calloc((size_t)FV_MAX(s->nplaces, 1) * sizeof *s->places);
    s->polled = fv__calloc((size_t)FV_MAX(s->nplaces, 1) * 2 * sizeof *s->polled);
    for (int c = 0; c < s->nplaces; c++)
        s->places[c] =
            (fv_running){ .unit = -1, .child = { .pidfd = -1, .pipe = -1, .file = -1 }, .device.lease.connection = -1 };
    s->state.units = s->list.count;
    if (!o->again || o->session) look_at_others(s);
    s->tells = o->over || o->tells;                       /* what was done before is not told */
    return o->session ? FV_OK : check_existing(s, error); /* others of the session may have made one just now */
}

static void release(fv_units *s) {
    for (int c = 0; c < s->nplaces; c++) leave(&s->places[c]);
    free(s->places);
    free(s->polled);
    fv__unit_log_close(s->log);
    fv__unit_queue_release(&s->queue);
    fv__unit_list_release(&s->list);
}

fv_status fv_units_check(const fv_units_options *options, fv_units_state *state, fv_units_needs *needs, fv_error *error) {
    fv_units  s = { .options = options, .begun = fv__now() };
    fv_status status = prepare(&s, error);
    *state = s.state;
    *needs = (fv_units_needs){ .cpus = 1 };
    for (int64_t u = 0; u < s.list.count; u++) {
        needs->cpus = FV_MAX(needs->cpus, s.list.units[u].cpus);
        needs->memory = FV_MAX(needs->memory, s.list.units[u].memory);
    }
    release(&s);
    return status;
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
    fv_units  s = { .options = options, .begun = fv__now() };
    fv_status status = prepare(&s, error);
    if (status == FV_OK) {
        fv__children_adopt(true);
        status = work(&s, error);
        if (status != FV_OK) { /* a full disk, say: nothing may be left running */
            fv_error ignored;
            stop_all(&s);
            while (s.running) {
                wait_a_little(&s);
                look_at_children(&s, &ignored);
            }
        }
        fv__children_adopt(false);
        tell(&s, true);
        if (options->results && (status == FV_OK || status == FV_ERROR_CANCELLED)) {
            fv_status written = fv__unit_table_write(options->results, &s.list, error);
            if (status == FV_OK) status = written;
        }
    }
    *state = s.state;
    release(&s);
    return status;
}
