/* The public face of streams. */
#include "api/pipeline_parts.h"
#include "base/file.h"
#include "store/store_place.h"
#include "stream/bound.h"
#include "stream/stream_parts.h"
#include <cjson/cJSON.h>
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_FRAME ((int64_t)256 << 20)

/* ---------------------------------------------------------------- what was done before */

/* Takes over what dead processes of this stream left, and learns where living ones are, which lose the partition. */
static fv_status learn(fv_stream_run *run, int partition, fv_error *error) {
    fv_stream_state dead = { 0 }, living = { 0 };
    pthread_mutex_lock(&run->logging);
    fv_status status = fv__stream_log_learn(run->log, partition, &dead, &living, error);
    pthread_mutex_lock(&run->mutex);
    fv__state_merge(&run->state, &dead);
    fv__state_merge(&run->state, &living);
    pthread_mutex_unlock(&run->mutex);
    pthread_mutex_unlock(&run->logging);
    if (status == FV_OK && run->growing && !run->topic) status = fv__growing_restore(run->growing, &dead, -1, error);
    fv__state_release(&dead);
    fv__state_release(&living);
    return status;
}

/* What another process, dead or alive, has of scans whose frames come to us now. */
static fv_status take_scans(fv_stream_run *run, int partition, fv_error *error) {
    fv_stream_state state = { 0 };
    pthread_mutex_lock(&run->mutex);
    fv__state_merge(&state, &run->state);
    pthread_mutex_unlock(&run->mutex);
    fv_status status = fv__growing_restore(run->growing, &state, partition, error);
    fv__state_release(&state);
    return status;
}

static int64_t position(void *context, const char *topic, int partition) {
    fv_stream_run *run = context;
    fv_error       error = { 0 };
    fv_status      status = fv__fence_regain(run->folder, run->name, partition, &error);
    if (status == FV_OK) status = learn(run, partition, &error);
    if (status == FV_OK && run->growing) status = take_scans(run, partition, &error);
    if (status != FV_OK) fv__stream_fail(run, &error);
    pthread_mutex_lock(&run->mutex);
    int64_t at = fv__state_position(&run->state, topic, partition);
    pthread_mutex_unlock(&run->mutex);
    return at;
}

/* Waits until nothing of the partition is under way. */
static void leaving(void *context, int partition) {
    fv_stream_run *run = context;
    for (bool any = true; any && !run->failed;) {
        pthread_mutex_lock(&run->mutex);
        any = fv__flight_any(run, partition) || run->scanning;
        pthread_mutex_unlock(&run->mutex);
        if (any) usleep(5000);
    }
    if (!run->growing) return;
    fv__stream_retire(run);
    fv__growing_leave(run->growing, partition);
}

/* ---------------------------------------------------------------- opening */

/* The group of a stream whose address has none: the same for all processes of one folder, and of no other stream. It goes with
 * the folder, so a stream that was forgotten begins anew. */
static fv_status own_group(const fv_stream_run *run, char **group, fv_error *error) {
    char     *path = fv__path_inside(run->folder, "group"), *mine = fv__sprintf("%s.%s", path, run->name);
    char     *name = fv__sprintf("fovea-%s", run->name);
    fv_bytes  text = { 0 };
    fv_status status = fv__file_exists(path) ? FV_OK : fv__file_write_all(mine, name, strlen(name), true, error);
    (void)!link(mine, path); /* whoever is first */
    unlink(mine);
    if (status == FV_OK) status = fv__file_read_all(path, 256, &text, error);
    if (status == FV_OK) *group = fv__strdup((char *)text.data);
    fv__bytes_release(&text);
    free(name);
    free(mine);
    free(path);
    return status;
}

static fv_status open_source(fv_stream_run *run, const fv_stream_options *o, const char *pattern, fv_error *error) {
    fv_source_options source = { .address = run->address,
                                 .names = &run->names,
                                 .most = o->most,
                                 .memory = run->room / 2,
                                 .config = o->kafka_config,
                                 .group = run->group,
                                 .once = o->once,
                                 .scans = o->scan != NULL,
                                 .position = position,
                                 .leaving = leaving,
                                 .context = run };
    if (!strcmp(run->address, "-")) return fv__pipe_source(&source, STDIN_FILENO, &run->source, error);
    if (!strncmp(run->address, "watch:", 6)) return fv__watch_source(&source, run->address + 6, pattern, &run->source, error);
    return fv__kafka_source(&source, &run->source, error);
}

/* The topic that positions are kept under, without the query of the address. */
static char *topic_of(const char *address) {
    const char *slash = strncmp(address, "kafka://", 8) ? NULL : strchr(address + 8, '/');
    return slash ? fv__sprintf("%.*s", (int)strcspn(slash + 1, "?"), slash + 1) : NULL;
}

static fv_status read_bind(fv_stream_run *run, const fv_program *program, const char *bind, char **pattern, fv_error *error) {
    const char *equal = bind ? strchr(bind, '=') : NULL;
    if (!equal || equal == bind || !equal[1])
        return fv_fail(error, FV_ERROR_USAGE,
                       "--bind %s: expected NAME=ADDRESS, as scans=watch:incoming, scans=kafka://localhost:9092/topic or scans=-",
                       bind ? bind : "is missing");
    run->address = fv__strdup(equal + 1);
    if (strcmp(run->address, "-") && strncmp(run->address, "watch:", 6) && strncmp(run->address, "kafka://", 8))
        return fv_fail(error, FV_ERROR_USAGE,
                       "--bind %s: %s is no address of a stream; watch:%s, kafka://HOST:PORT/TOPIC and - (standard input) are",
                       bind, run->address, fv__path_is_folder(run->address) ? run->address : "FOLDER");
    run->topic = topic_of(run->address);
    char     *name = fv__sprintf("%.*s", (int)(equal - bind), bind);
    fv_status status = fv__bound_pattern(program, name, pattern, error);
    free(name);
    return status;
}

/* The folder of a stream: the same text, parameters and source go on with it. */
static char *folder_of(const fv_pipeline *p, const fv_stream_run *run, const char *pattern, const char *place) {
    fv_hasher hasher;
    char      text[33];
    fv__hasher_init(&hasher);
    fv__hasher_add(&hasher, p->text.data, p->text.size);
    for (int i = 0; i < p->nsets; i++) fv__hasher_text(&hasher, p->sets[i]);
    fv__hasher_text(&hasher, pattern);
    fv__hasher_text(&hasher, run->address);
    fv__hasher_text(&hasher, run->options->scan ? run->options->scan : "");
    fv__hasher_int(&hasher, run->options->window);
    if (run->options->period > 0) fv__hasher_add(&hasher, &run->options->period, sizeof run->options->period);
    fv__hash_format(fv__hasher_finish(&hasher), text);
    return fv__sprintf("%s/streams/%.16s", place, text);
}

static fv_status open_aside(fv_stream_run *run, const fv_stream_options *o, fv_error *error) {
    if (o->to) FV_TRY(fv__sending_open(run, error));
    if (!o->dead) return FV_OK;
    if (!strncmp(o->dead, "kafka://", 8)) return fv__sender_open(o->dead, o->kafka_config, NULL, &run->dead, error);
    run->dead_folder = fv__strdup(o->dead);
    return fv__path_make_folders(o->dead, error);
}

static fv_status check_options(const fv_stream_options *o, fv_error *error) {
    if ((o->count || o->silence > 0 || o->preview) && !o->scan)
        return fv_fail(error, FV_ERROR_USAGE,
                       "--count, --silence and --preview are about scans; --scan AXIS makes scans of frames");
    if ((o->window || o->period > 0) && !o->scan)
        return fv_fail(error, FV_ERROR_USAGE,
                       "--window: say with --scan along which axis the frames of a window lie, as --scan t");
    if (o->period > 0 && o->bind && strstr(o->bind, "=watch:"))
        return fv_fail(error, FV_ERROR_USAGE,
                       "--window with a time is for messages, which tell when they were sent; give files a number of frames");
    if (o->period > 0 && o->count)
        return fv_fail(error, FV_ERROR_USAGE, "--count: a window of a time has as many frames as come in it");
    return FV_OK;
}

static fv_status open_log(fv_stream_run *run, fv_error *error) {
    fv_growing_options growing = { .axis = run->options->scan,
                                   .count = run->options->window ? run->options->window : run->options->count,
                                   .silence = run->options->silence > 0 ? run->options->silence : run->options->period,
                                   .every = run->options->preview };
    FV_TRY(fv__stream_log_open(run->folder, run->name, &run->log, error));
    if (run->to) fv__stream_log_ask(run->log, fv__sending_was, run);
    if (!growing.axis) return learn(run, -1, error);
    char *scans = fv__sprintf("%s/scans", run->folder);
    growing.folder = scans;
    run->growing = fv__growing_new(&growing);
    fv_status status = fv__path_make_folders(scans, error);
    free(scans);
    return status == FV_OK ? learn(run, -1, error) : status;
}

static fv_status open_stream(fv_stream_run *run, fv_pipeline *p, fv_stream_options *o, char **pattern, fv_error *error) {
    int64_t memory = o->memory;
    FV_TRY(check_options(o, error));
    FV_TRY(read_bind(run, p->program, o->bind, pattern, error));
    fv__frame_names_init(&run->names, *pattern);
    run->text = (fv_stream_text){ .program = p->program,
                                  .sets = p->sets,
                                  .nsets = p->nsets,
                                  .plan_options = &p->plan_options,
                                  .pattern = *pattern,
                                  .budget = fv__budget_divide(memory, &(fv_sharers){ 0 }),
                                  .workers = o->workers > 0 ? o->workers : fv__default_workers() };
    /* A quarter of what tasks may use is for frames that wait, and half of that for those that the source holds. */
    run->room = FV_MAX(run->text.budget.tasks / 4, (int64_t)1 << 20);
    run->text.budget.tasks -= run->room + run->room / 2;
    if (!o->most) o->most = FV_MIN(MOST_FRAME, FV_MAX(run->room, (int64_t)8 << 20));
    FV_TRY(fv__store_check_folder(o->store, error));
    char *place = fv__store_place(o->store, true);
    run->folder = folder_of(p, run, *pattern, place);
    /* Processes in containers have the same few numbers, and begin in the same second. */
    run->name = fv__sprintf("%d-%llx", (int)getpid(), (unsigned long long)(fv__clock() * 1e9));
    fv_status status = fv__path_make_folders(run->folder, error);
    if (status == FV_OK) status = fv__outputs_open(place, o->overwrite, true, &run->text.outputs, error);
    free(place);
    FV_TRY(status);
    FV_TRY(open_aside(run, o, error));
    if (o->metrics) FV_TRY(fv__stream_metrics_open(run, o->metrics, error));
    FV_TRY(open_log(run, error));
    run->anew = !run->state.seen.nscans;
    if (run->topic) FV_TRY(own_group(run, &run->group, error));
    return open_source(run, o, *pattern, error);
}

static void close_stream(fv_stream_run *run) {
    if (run->source) run->source->close(run->source);
    if (run->log) fv__stream_forget(run);
    fv__growing_free(run->growing);
    fv__stream_log_close(run->log);
    fv__sender_close(run->to);
    fv__sender_close(run->dead);
    if (run->text.outputs) fv__outputs_free(run->text.outputs);
    fv__state_release(&run->state);
    fv__seen_release(&run->taken);
    fv__flights_release(run);
    fv__columns_release(run);
    fv__frame_names_release(&run->names);
    if (run->metrics >= 0) close(run->metrics);
    pthread_mutex_destroy(&run->mutex);
    pthread_mutex_destroy(&run->logging);
    pthread_cond_destroy(&run->changed);
    pthread_cond_destroy(&run->ready);
    pthread_cond_destroy(&run->done);
    free(run->folder);
    free(run->name);
    free(run->topic);
    free(run->group);
    free(run->address);
    free(run->dead_folder);
}

/* Frames that came and are in no result: whoever started the stream has to look at them. Those that came twice are in one. */
static fv_status tell_unused(fv_stream_facts *facts, fv_error *error) {
    int64_t aside = facts->late + facts->malformed + facts->oversized;
    facts->unused = facts->failed + aside;
    if (!facts->unused) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "%lld of %lld frames %s", (long long)facts->unused, (long long)facts->frames,
                   !aside          ? "failed"
                   : facts->failed ? "failed or were put aside"
                                   : "were put aside");
}

fv_status fv_stream(fv_pipeline *p, const fv_stream_options *given, fv_stream_facts *facts, fv_error *error) {
    fv_stream_options options = *given;
    fv_stream_run     run = { .options = &options, .began = fv__now(), .metrics = -1 };
    fv_session       *before = fv__session_enter(p->session);
    char             *pattern = NULL;
    pthread_mutex_init(&run.mutex, NULL);
    pthread_mutex_init(&run.logging, NULL);
    pthread_cond_init(&run.changed, NULL);
    pthread_cond_init(&run.ready, NULL);
    pthread_cond_init(&run.done, NULL);
    fv_status status = p->program ? fv__isa_check(error) : fv_fail(error, FV_ERROR_USAGE, "the pipeline has no text");
    if (status == FV_OK) status = open_stream(&run, p, &options, &pattern, error);
    if (status == FV_OK) {
        fv__buffer_allow(run.text.budget.buffers);
        status = fv__stream_run(&run, error);
        fv__buffer_allow(-run.text.budget.buffers);
    }
    run.facts.seconds = fv__now() - run.began;
    run.failed = run.failed || status != FV_OK;
    if (status == FV_OK) fv__growing_tell(run.growing);
    if (status == FV_OK) status = tell_unused(&run.facts, error);
    close_stream(&run);
    *facts = run.facts;
    free(pattern);
    fv__session_enter(before);
    return status;
}

/* ---------------------------------------------------------------- status */

static bool is_alive(const cJSON *status) {
    int pid = (int)cJSON_GetNumberValue(cJSON_GetObjectItem(status, "pid"));
    return !strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(status, "state")), "running") && pid > 0 && !kill(pid, 0);
}

static double number_of(const cJSON *status, const char *name) {
    const cJSON *item = cJSON_GetObjectItem(status, name);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static void put_stream(fv_bytes *out, const cJSON *s) {
    fv__bytes_printf(out, "stream %s from %s: %s\n", cJSON_GetStringValue(cJSON_GetObjectItem(s, "stream")),
                     cJSON_GetStringValue(cJSON_GetObjectItem(s, "source")),
                     cJSON_GetStringValue(cJSON_GetObjectItem(s, "state")));
    fv__bytes_printf(out, "  %.0f frame%s in %.0f s, %.1f a second; %.0f under way", number_of(s, "done"),
                     number_of(s, "done") == 1 ? "" : "s", number_of(s, "seconds"), number_of(s, "frames_per_second"),
                     number_of(s, "waiting"));
    if (number_of(s, "lag") >= 0) fv__bytes_printf(out, ", %.0f wait at the source", number_of(s, "lag"));
    fv__bytes_printf(out, "\n  from arrival until durable: %.1f ms, of one in a hundred more than %.1f ms\n",
                     1e3 * number_of(s, "latency_median"), 1e3 * number_of(s, "latency_99"));
    static const struct {
        const char *name, *one;
    } counts[] = { { "scans", "scan" }, { "rows", "row" }, { "failed" },    { "duplicate" },
                   { "late" },          { "malformed" },   { "oversized" }, { "disordered" } };
    for (int i = 0, n = 0; i < FV_COUNT(counts); i++) {
        double      count = number_of(s, counts[i].name);
        const char *what = count == 1 && counts[i].one ? counts[i].one : counts[i].name;
        if (count > 0) fv__bytes_printf(out, "%s%.0f %s", n++ ? ", " : "  ", count, what);
    }
    fv__bytes_printf(out, "\n");
}

/* The status files of one stream: a file of each of its processes. */
static void take_folder(const char *folder, cJSON *all) {
    DIR *entries = opendir(folder);
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        size_t length = strlen(entry->d_name);
        if (length < 8 || entry->d_name[0] == '.' || strcmp(entry->d_name + length - 7, ".status")) continue;
        char    *path = fv__path_inside(folder, entry->d_name);
        fv_bytes text = { 0 };
        cJSON   *status = fv__file_read_all(path, 1 << 16, &text, NULL) == FV_OK ? cJSON_Parse((char *)text.data) : NULL;
        if (status && !is_alive(status) && !strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(status, "state")), "running"))
            cJSON_SetValuestring(cJSON_GetObjectItem(status, "state"), "died");
        if (status) cJSON_AddItemToArray(all, status);
        fv__bytes_release(&text);
        free(path);
    }
    if (entries) closedir(entries);
}

char *fv_stream_status(const char *store, fv_form form) {
    char    *place = fv__store_place(store, false), *folder = fv__path_inside(place, "streams");
    cJSON   *all = cJSON_CreateArray();
    DIR     *streams = opendir(folder);
    fv_bytes out = { 0 };
    for (const struct dirent *entry; streams && (entry = readdir(streams));) {
        char *one = entry->d_name[0] == '.' ? NULL : fv__path_inside(folder, entry->d_name);
        if (one) take_folder(one, all);
        free(one);
    }
    if (streams) closedir(streams);
    const cJSON *status;
    cJSON_ArrayForEach(status, all) put_stream(&out, status);
    char *text = NULL;
    if (cJSON_GetArraySize(all) && form == FV_FORM_JSON) text = cJSON_Print(all);
    if (cJSON_GetArraySize(all) && form == FV_FORM_TEXT) text = fv__sprintf("%.*s", (int)out.size, (char *)out.data);
    fv__bytes_release(&out);
    cJSON_Delete(all);
    free(place);
    free(folder);
    return text;
}
