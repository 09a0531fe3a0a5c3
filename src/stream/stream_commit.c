/* Makes results durable, all that are there at a time: files get their names, then one record of the log says what is done. */
#include "base/file.h"
#include "stream/stream_parts.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define APPLY 0.25   /* seconds between writing rows to tables */
#define GATHER 0.015 /* seconds in which a batch grows while frames queue up */

/* ---------------------------------------------------------------- a full disk */

/* A full disk, or a file that somebody else has: says so once, waits, and gives true: try again. Not while the stream ends. */
static bool wait_for_room(fv_stream_run *run, fv_status status, const fv_error *error, bool *told) {
    if ((status != FV_ERROR_FULL && status != FV_ERROR_BUSY) || run->failed) return false;
    if (!*told) fv__log("fovea: %s; waiting", error->message);
    *told = true;
    sleep(1);
    return true;
}

/* Frames whose files found no room are done again, when there is some. */
static fv_errand *do_again(fv_stream_run *run, fv_errand *works) {
    fv_queue kept = { 0 }, again = { 0 };
    fv_error error = { 0 };
    for (fv_errand *w = works, *next; w; w = next) {
        bool full = w->error.code == FV_ERROR_FULL && w->fate != FV_FATE_PREVIEW;
        next = w->next;
        if (full) error = w->error;
        fv__queue_put(full ? &again : &kept, w);
    }
    bool told = false;
    if (!again.first || !wait_for_room(run, FV_ERROR_FULL, &error, &told)) {
        for (fv_errand *w; (w = fv__queue_take(&again));) fv__queue_put(&kept, w); /* the stream ends: they have failed */
        return kept.first;
    }
    pthread_mutex_lock(&run->mutex);
    for (fv_errand *w; (w = fv__queue_take(&again));) {
        fv__made_release(&w->made);
        w->error = (fv_error){ 0 };
        fv__stream_queue(run, w);
    }
    pthread_cond_broadcast(&run->ready);
    pthread_mutex_unlock(&run->mutex);
    return kept.first;
}

/* ---------------------------------------------------------------- files */

static void give_up(fv_stream_run *run, fv_errand *work) {
    for (int i = 0; i < work->made.noutputs; i++) fv__outputs_abandon(run->text.outputs, work->made.outputs[i]);
}

/* Outputs get their names; a frame one of whose files could not has failed. */
static void name_files(fv_stream_run *run, fv_errand *batch) {
    fv_error error = { 0 };
    for (fv_errand *w = batch; w; w = w->next)
        for (int i = 0; i < w->made.noutputs; i++) {
            error = (fv_error){ 0 };
            if (fv__outputs_done(run->text.outputs, w->made.outputs[i], &error) != FV_OK) w->error = error;
        }
    error = (fv_error){ 0 };
    fv__outputs_commit(run->text.outputs, &error);
    for (fv_errand *w = batch; w; w = w->next)
        for (int i = 0; i < w->made.noutputs; i++)
            if (w->made.outputs[i]->state != FV_OUTPUT_NAMED && w->error.code == FV_OK) w->error = error;
}

/* Frames that wait for their scan: their bytes are on the disk. */
static fv_status sync_scans(const fv_errand *batch, fv_error *error) {
    const fv_scan_file *last = NULL;
    for (const fv_errand *w = batch; w; w = w->next) {
        if (w->fate != FV_FATE_STAGED || !w->scan || w->scan == last || w->scan->fd < 0) continue;
        FV_TRY(fv__file_sync(w->scan->fd, w->scan->path, error));
        if (w->scan->angles_fd >= 0) FV_TRY(fv__file_sync(w->scan->angles_fd, w->scan->angles_path, error));
        last = w->scan;
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- what is put aside */

static fv_status put_into_folder(const fv_stream_run *run, const fv_errand *work, const char *why, fv_error *error) {
    const fv_frame *frame = work->frame;
    char           *name = fv__strdup(frame->where), *file, *text;
    for (char *c = name; *c; c++)
        if (strchr("/ :", *c)) *c = '_';
    file = fv__sprintf("%s/%s", run->dead_folder, name);
    text = fv__sprintf("%s/%s.why", run->dead_folder, name);
    char     *line = fv__sprintf("%s: %s\n", frame->where, why);
    fv_status status = fv__file_write_all(text, line, strlen(line), false, error);
    if (status == FV_OK && frame->data) status = fv__file_write_all(file, frame->data, frame->bytes, false, error);
    free(name);
    free(file);
    free(text);
    free(line);
    return status;
}

static fv_status put_aside(fv_stream_run *run, const fv_errand *work, fv_error *error) {
    const fv_frame *frame = work->frame;
    const char     *why = work->fate == FV_FATE_DEAD ? frame->why : work->error.message;
    if (work->fate != FV_FATE_DEAD && work->fate != FV_FATE_FAILED) return FV_OK;
    bool named = !strncmp(why, frame->where, strlen(frame->where)); /* a file that tells its own name */
    fv__log_failure("fovea: %s%s%s", named ? "" : frame->where, named ? "" : ": ", why);
    if (run->dead_folder) return put_into_folder(run, work, why, error);
    if (!run->dead) return FV_OK;
    char      index[32];
    fv_header headers[] = { { "fovea-why", why, 0 }, { "fovea-from", frame->where, 0 }, { "fovea-index", index, 0 } };
    snprintf(index, sizeof index, "%lld", (long long)frame->index);
    return fv__message_send(run->dead, frame->scan, headers, 3, frame->data, frame->data ? frame->bytes : 0, error);
}

/* ---------------------------------------------------------------- the record */

/* What a piece of work is in the log; the mutex is held. */
static void note_marks(fv_stream_run *run, const fv_errand *work, fv_log_batch *batch) {
    const char *scan = work->frame ? work->frame->scan : work->scan->name;
    if (work->fate == FV_FATE_DONE || work->fate == FV_FATE_FAILED) {
        fv__log_batch_mark(batch, "", scan, work->frame->index);
        fv__seen_add(&run->state.seen, scan, work->frame->index);
    }
    const char *prefix = work->fate == FV_FATE_STAGED ? FV_MARK_STAGED : FV_MARK_OVER;
    if ((work->fate == FV_FATE_STAGED && work->scan && work->frame->bytes) || work->fate == FV_FATE_SCAN) {
        int64_t index = work->fate == FV_FATE_STAGED ? work->frame->index : 0;
        char   *name = fv__sprintf("%s%s", prefix, scan);
        fv__log_batch_mark(batch, prefix, scan, index);
        fv__seen_add(&run->state.seen, name, index);
        free(name);
    }
    if (work->length) {
        char *name = fv__sprintf("%s%s", FV_MARK_LENGTH, scan);
        if (!fv__seen_scan(&run->state.seen, name)) fv__log_batch_mark(batch, FV_MARK_LENGTH, scan, work->length);
        if (!fv__seen_scan(&run->state.seen, name)) fv__seen_add(&run->state.seen, name, work->length);
        free(name);
    }
}

static void note_positions(fv_stream_run *run, const fv_errand *works, fv_log_batch *batch) {
    int64_t reached[64];
    int     partitions[64], n = 0;
    for (const fv_errand *w = works; w && run->topic; w = w->next) {
        if (!w->frame) continue;
        int64_t at = fv__flight_end(run, w->frame->partition, w->frame->offset);
        int     i = 0;
        if (w->fate == FV_FATE_LEFT) continue;
        while (i < n && partitions[i] != w->frame->partition) i++;
        if (i == 64) continue; /* it is told with a later batch */
        if (i == n) partitions[n++] = w->frame->partition;
        reached[i] = at;
    }
    for (int i = 0; i < n; i++) {
        fv__log_batch_position(batch, run->topic, partitions[i], reached[i]);
        fv__state_advance(&run->state, run->topic, partitions[i], reached[i]);
    }
}

static void tell_source(fv_stream_run *run, const fv_errand *works) {
    if (!run->topic || !run->source->committed) return;
    int last = -1;
    for (const fv_errand *w = works; w; w = w->next) {
        if (!w->frame || w->fate == FV_FATE_LEFT || w->frame->partition == last) continue;
        last = w->frame->partition;
        pthread_mutex_lock(&run->mutex);
        int64_t at = fv__state_position(&run->state, run->topic, last);
        pthread_mutex_unlock(&run->mutex);
        run->source->committed(run->source, last, at);
    }
}

static fv_status append_patiently(fv_stream_run *run, const fv_log_batch *batch, bool sending, fv_error *error) {
    bool told = false;
    for (;;) {
        fv_status status = fv__stream_log_commit(run->log, batch, sending, error);
        if (!wait_for_room(run, status, error, &told)) return status;
    }
}

/* Frames of partitions that were given to another process while we stood still or were cut off: they may come again. */
static void leave_lost(fv_stream_run *run, fv_errand *works) {
    const fv_fence *fence = fv__stream_log_fence(run->log);
    pthread_mutex_lock(&run->mutex);
    for (fv_errand *w = works; w && run->topic; w = w->next) {
        int partition = w->frame ? w->frame->partition : w->scan->partition;
        if ((!w->frame && w->fate != FV_FATE_SCAN) || !fv__fence_lost(fence, partition)) continue;
        if (w->frame && (w->fate == FV_FATE_DONE || w->fate == FV_FATE_STAGED || w->fate == FV_FATE_FAILED))
            fv__seen_remove(&run->taken, w->frame->scan, w->frame->index);
        w->fate = FV_FATE_LEFT;
        w->length = 0;
        w->error = (fv_error){ 0 };
    }
    pthread_mutex_unlock(&run->mutex);
}

/* While logging and the fence are held. */
static fv_status write_batch(fv_stream_run *run, fv_errand *works, fv_log_batch *batch, fv_error *error) {
    bool sending = false;
    leave_lost(run, works);
    fv__log_batch_clear(batch);
    for (fv_errand *w = works; w; w = w->next) {
        bool done = w->error.code == FV_OK && (w->fate == FV_FATE_DONE || w->fate == FV_FATE_SCAN);
        if (done) fv__columns_check(run, w, &w->error);
        if (w->error.code != FV_OK && w->fate == FV_FATE_DONE) w->fate = FV_FATE_FAILED;
        if (w->frame) FV_TRY(put_aside(run, w, error));
        sending = sending || (run->to && fv__sending_any(w));
        bool rows = w->error.code == FV_OK && (w->fate == FV_FATE_DONE || w->fate == FV_FATE_SCAN);
        for (int i = 0; i < w->made.ntables && rows; i++)
            if (w->made.tables[i].file) fv__log_batch_table(batch, &w->made.tables[i]);
    }
    if (run->dead) FV_TRY(fv__message_flush(run->dead, error));
    FV_TRY(fv__fault_point("stream.named", error));
    pthread_mutex_lock(&run->mutex);
    for (const fv_errand *w = works; w; w = w->next) note_marks(run, w, batch);
    note_positions(run, works, batch);
    pthread_mutex_unlock(&run->mutex);
    FV_TRY(append_patiently(run, batch, sending, error));
    return sending ? fv__sending_send(run, works, error) : FV_OK;
}

/* The files of these have their names. */
static fv_status commit_batch(fv_stream_run *run, fv_errand *works, fv_log_batch *batch, fv_error *error) {
    bool      told = false;
    fv_status status;
    while (wait_for_room(run, status = sync_scans(works, error), error, &told)) {
    }
    FV_TRY(status);
    pthread_mutex_lock(&run->logging);
    status = fv__fence_hold(fv__stream_log_fence(run->log), error);
    if (status == FV_OK) {
        status = write_batch(run, works, batch, error);
        fv__fence_release(fv__stream_log_fence(run->log));
    }
    pthread_mutex_unlock(&run->logging);
    return status;
}

/* ---------------------------------------------------------------- the thread */

static void leave(fv_stream_run *run, fv_errand *works) {
    for (fv_errand *w = works; w; w = w->next) {
        bool made = w->error.code == FV_OK && (w->fate == FV_FATE_DONE || w->fate == FV_FATE_SCAN);
        fv__stream_tell(run, w);
        if (made) fv__alerts_tell(run, w);
    }
    fv_queue over = { 0 };
    pthread_mutex_lock(&run->mutex);
    for (fv_errand *w = works, *next; w; w = next) {
        next = w->next;
        fv__stream_count(run, w);
        if (w->fate == FV_FATE_PREVIEW) w->scan->previewing = false;
        if (w->frame) run->bytes -= (int64_t)w->frame->bytes;
        run->under_way--;
        if (!w->frame) run->scanning--;
        fv__queue_put(w->fate == FV_FATE_SCAN ? &run->retired : &over, w);
    }
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->mutex);
    for (fv_errand *w; (w = fv__queue_take(&over));) fv__errand_free(w);
}

/* A full disk or a database that is in use: says so once, and tries again. */
static fv_status apply(fv_stream_run *run, bool last, fv_error *error) {
    bool told = false;
    for (;;) {
        int64_t rows;
        pthread_mutex_lock(&run->logging);
        fv_status status = fv__stream_log_apply(run->log, &run->state, &rows, error);
        pthread_mutex_unlock(&run->logging);
        run->applied = fv__now();
        pthread_mutex_lock(&run->mutex);
        run->facts.rows += rows;
        pthread_mutex_unlock(&run->mutex);
        if ((last && told) || !wait_for_room(run, status, error, &told)) return status;
    }
}

static struct timespec in_seconds(double seconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(seconds * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return until;
}

/* All that is ready. Syncs take as long for many files as for one: where frames queue up, some more are waited for. */
static fv_errand *take_all(fv_stream_run *run, bool *over) {
    struct timespec until = in_seconds(0.05);
    pthread_mutex_lock(&run->mutex);
    if (!run->finished.first && !run->over) pthread_cond_timedwait(&run->done, &run->mutex, &until);
    until = in_seconds(GATHER);
    for (int late = 0; run->finished.first && run->todo.first && run->todo.first->frame && !run->over && !run->failed && !late;)
        late = pthread_cond_timedwait(&run->done, &run->mutex, &until);
    fv_errand *works = run->finished.first;
    run->finished = (fv_queue){ 0 };
    *over = run->over || run->failed;
    pthread_mutex_unlock(&run->mutex);
    return works;
}

void *fv__stream_commit(void *context) {
    fv_stream_run *run = context;
    fv_log_batch   batch = { 0 };
    fv_error       error = { 0 };
    fv_status      status = FV_OK;
    for (bool over = false;;) {
        fv_errand *works = take_all(run, &over);
        for (fv_errand *w = works; w; w = w->next) w->taken = fv__now();
        name_files(run, works);
        for (fv_errand *w = works; w; w = w->next) w->synced = fv__now();
        works = do_again(run, works);
        if (works) {
            status = commit_batch(run, works, &batch, &error);
            if (status == FV_OK) tell_source(run, works);
            for (fv_errand *w = works; w && status != FV_OK; w = w->next) give_up(run, w);
            leave(run, works);
        }
        bool due = fv__now() - run->applied > APPLY || (over && !works);
        if (status == FV_OK && due) status = apply(run, over, &error);
        if (status != FV_OK) {
            fv__stream_fail(run, &error);
            break;
        }
        if (over && !works) break;
    }
    fv__log_batch_release(&batch);
    return NULL;
}
