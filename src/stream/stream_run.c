/* A running stream: takes frames, and runs them. */
#include "base/file.h"
#include "base/session.h"
#include "base/take.h"
#include "stream/stream_parts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- queues */

void fv__queue_put(fv_queue *queue, fv_errand *work) {
    work->next = NULL;
    if (!queue->first) queue->last = &queue->first;
    *queue->last = work;
    queue->last = &work->next;
    queue->count++;
}

fv_errand *fv__queue_take(fv_queue *queue) {
    fv_errand *work = queue->first;
    if (!work) return NULL;
    queue->first = work->next;
    if (!queue->first) queue->last = &queue->first;
    queue->count--;
    return work;
}

void fv__errand_free(fv_errand *work) {
    fv__frame_free(work->frame);
    fv__made_release(&work->made);
    free(work->there);
    free(work->angles);
    free(work->name);
    free(work);
}

/* The mutex is held. */
static void wake_all(fv_stream_run *run) {
    pthread_cond_broadcast(&run->changed);
    pthread_cond_broadcast(&run->ready);
    pthread_cond_broadcast(&run->done);
}

void fv__stream_fail(fv_stream_run *run, const fv_error *error) {
    pthread_mutex_lock(&run->mutex);
    if (!run->failed) run->error = *error;
    run->failed = true;
    wake_all(run);
    pthread_mutex_unlock(&run->mutex);
}

static void finish_all(fv_stream_run *run, fv_queue *works) {
    if (!works->first) return;
    pthread_mutex_lock(&run->mutex);
    for (fv_errand *work; (work = fv__queue_take(works));) fv__queue_put(&run->finished, work);
    pthread_cond_signal(&run->done);
    pthread_mutex_unlock(&run->mutex);
}

static void finish(fv_stream_run *run, fv_errand *work) {
    fv_queue alone = { 0 };
    fv__queue_put(&alone, work);
    finish_all(run, &alone);
}

/* ---------------------------------------------------------------- turns */

/* As many threads compute at once as there are workers; around every blocking call a thread lends its turn to another. */
static _Thread_local sem_t *turn; /* that this thread has, or has lent; NULL: it needs none */

static void take_turn(sem_t *turns) {
    while (sem_wait(turns)) {
    }
}

static void lend(void) {
    if (turn) sem_post(turn);
}

static void take_back(void) {
    if (turn) take_turn(turn);
}

/* ---------------------------------------------------------------- running */

static char *preview_path(const char *path) {
    const char *name = fv__path_name(path), *dot = strrchr(name, '.');
    if (!dot || dot == name) dot = name + strlen(name);
    return fv__sprintf("%.*s-preview%s", (int)(dot - path), path, dot);
}

/* A whole scan, with the sums that were begun. Frames that are not there are zeros. */
static void describe_scan(const fv_stream_run *run, const fv_errand *work, const fv_scan_part *part, fv_live_item *item,
                          fv_array *image) {
    fv_scan_file *scan = work->scan;
    fv__scan_image(part, run->options->scan, image);
    if (scan->sums_length != work->whole) {
        fv__sums_free(scan->sums);
        scan->sums = NULL;
        scan->sums_length = work->whole;
    }
    item->planes = work->fate == FV_FATE_SCAN ? work->whole : FV_MIN(work->planes, work->whole);
    item->scans = work->scans;
    item->angles = work->angles;
    item->nangles = work->angles ? FV_MIN(work->nangles, work->whole) : 0;
    if (scan->sums || work->fate != FV_FATE_SCAN) item->sums = &scan->sums; /* none is begun for a scan that is complete */
}

static char *path_of(const fv_stream_run *run, const fv_errand *work) {
    char *whole = fv__frame_path(&run->names, work->scan->name, -1);
    char *path = work->fate == FV_FATE_PREVIEW ? preview_path(whole) : fv__strdup(whole);
    free(whole);
    return path;
}

static fv_status run_scan(fv_stream_run *run, fv_item_runner *runner, fv_errand *work, fv_diagnostics *diagnostics,
                          fv_error *error) {
    fv_array     image = { 0 };
    fv_live_item item = { .image = &image };
    fv_scan_part part = { .scan = work->scan, .nthere = work->whole };
    char        *path = path_of(run, work);
    item.path = path;
    describe_scan(run, work, &part, &item, &image);
    if (work->fate == FV_FATE_PREVIEW) item.cancel = &run->hurry;
    fv_status status = work->fate == FV_FATE_SUM ? fv__item_sum(runner, &item, diagnostics, error)
                                                 : fv__item_run(runner, &item, &work->made, diagnostics, error);
    if (work->fate == FV_FATE_SUM && (status != FV_OK || !work->scan->sums)) run->unsummed = true;
    free(path);
    return status;
}

/* The text on the frames that are there, as if the scan had no others. */
static fv_status run_part(fv_stream_run *run, fv_item_runner *runner, fv_errand *work, fv_diagnostics *diagnostics,
                          fv_error *error) {
    fv_array     image = { 0 };
    char        *path = path_of(run, work);
    fv_scan_part part = { work->scan, work->there, work->frames };
    fv_live_item item = { .path = path,
                          .image = &image,
                          .cancel = &run->hurry,
                          .there = work->there,
                          .nthere = work->frames,
                          .rounds = run->options->preview_rounds };
    double      *angles = work->angles ? fv__alloc((size_t)work->frames * sizeof *angles) : NULL;
    for (int64_t i = 0; i < work->frames && angles; i++) angles[i] = work->angles[work->there[i]];
    item.angles = angles;
    item.nangles = angles ? work->frames : 0;
    fv__scan_image(&part, run->options->scan, &image);
    fv_status status = fv__item_run(runner, &item, &work->made, diagnostics, error);
    free(angles);
    free(path);
    return status;
}

/* Where sums grow, they show how far they are. Other texts are run on the frames that are there; one that makes no sense for a
 * part, since it takes the hundredth frame for example, sees the whole scan. */
static fv_status run_preview(fv_stream_run *run, fv_item_runner *runner, fv_errand *work, fv_diagnostics *diagnostics,
                             fv_error *error) {
    const fv_scan_file *scan = work->scan;
    if (work->whole && !scan->sums && !run->unsummed) {
        work->fate = FV_FATE_SUM;
        run_scan(run, runner, work, diagnostics, error);
        work->fate = FV_FATE_PREVIEW;
        fv__diagnostics_release(diagnostics);
    }
    if (work->whole && scan->sums) return run_scan(run, runner, work, diagnostics, error);
    fv_status status = run_part(run, runner, work, diagnostics, error);
    if (status != FV_ERROR_USAGE || !work->whole) return status;
    fv__diagnostics_release(diagnostics);
    return run_scan(run, runner, work, diagnostics, error);
}

/* Voxels of a message lie anywhere in it; those that are computed with, at multiples of their size. */
static fv_status run_frame(fv_item_runner *runner, fv_errand *work, fv_diagnostics *diagnostics, fv_error *error) {
    const fv_frame *frame = work->frame;
    fv_array        image = { .type = frame->type, .data = frame->data };
    fv_live_item    item = { .path = frame->path, .image = frame->data ? &image : NULL };
    void           *copy = NULL;
    if ((uintptr_t)frame->data % fv_dtype_size(frame->type.dtype)) {
        FV_TRY(FV_TAKE_BUFFER(copy, frame->bytes, error));
        image.data = memcpy(copy, frame->data, frame->bytes);
    }
    fv_status status = fv__item_run(runner, &item, &work->made, diagnostics, error);
    fv__buffer_free(copy, frame->bytes);
    return status;
}

static fv_status run_once(fv_stream_run *run, fv_item_runner *runner, fv_errand *work, fv_diagnostics *diagnostics,
                          fv_error *error) {
    if (work->fate == FV_FATE_PREVIEW) return run_preview(run, runner, work, diagnostics, error);
    if (!work->frame) return run_scan(run, runner, work, diagnostics, error);
    return run_frame(runner, work, diagnostics, error);
}

/* Nothing of it is committed. What is wrong is told when the scan itself is run. */
static void end_sum(fv_stream_run *run, fv_errand *work) {
    pthread_mutex_lock(&run->mutex);
    work->scan->summing = false;
    run->under_way--;
    run->scanning--;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->mutex);
    fv__errand_free(work);
}

static void set_hurry(fv_stream_run *run, int hurry) { __atomic_store_n(&run->hurry, hurry, __ATOMIC_RELAXED); }

/* A file that cannot be opened is at fault itself. Of all others the type is known. */
static bool is_readable(const fv_errand *work) {
    fv_reader *reader;
    if (!work->frame || work->frame->data) return true;
    if (fv__reader_acquire(work->frame->path, &(fv_read_options){ 0 }, &reader, NULL) != FV_OK) return false;
    fv__reader_release(reader);
    return true;
}

/* Nothing was done yet, and it is no fault of the frame: the text does not fit, a file is missing that it reads beside the frame,
 * or a task finds too little memory. All frames would fail. */
static bool is_at_a_loss(const fv_stream_run *run, const fv_item_runner *runner, const fv_errand *work, fv_status status) {
    if (work->frame ? run->facts.done : run->facts.scans) return false;
    bool whole = work->fate != FV_FATE_PREVIEW; /* a part may be too little to begin with */
    return status == FV_ERROR_USAGE || (whole && !fv__item_opened(runner) && is_readable(work));
}

/* A full disk, or a file that another run has, is no fault of the frame: it waits. */
static void run_work(fv_stream_run *run, fv_item_runner *runner, fv_errand *work, fv_queue *finished) {
    bool told = false;
    work->begun = fv__now();
    if (work->fate == FV_FATE_SCAN) set_hurry(run, 0);
    for (;;) {
        fv_diagnostics diagnostics = { 0 };
        fv_error       error = { 0 };
        fv_status      status = run_once(run, runner, work, &diagnostics, &error);
        if (status != FV_OK && diagnostics.count)
            fv_fail(&error, status, "line %d: %s", diagnostics.items[0].span.line, diagnostics.items[0].message);
        fv__diagnostics_release(&diagnostics);
        if (work->fate == FV_FATE_SUM) {
            end_sum(run, work);
            return;
        }
        if (status == FV_OK) break;
        bool part = work->fate == FV_FATE_PREVIEW && !work->whole; /* the whole may fit */
        bool waits = status == FV_ERROR_FULL || status == FV_ERROR_BUSY;
        if (!waits && !part && is_at_a_loss(run, runner, work, status)) {
            fv__stream_fail(run, &error); /* nothing is done with what came */
            fv__errand_free(work);
            return;
        }
        if (!waits || run->failed) {
            work->error = error;
            if (work->fate != FV_FATE_PREVIEW) work->fate = work->frame ? FV_FATE_FAILED : work->fate;
            break;
        }
        if (!told) fv__log("fovea: %s; waiting", error.message);
        told = true;
        sleep(1);
    }
    work->ended = fv__now();
    fv__queue_put(finished, work);
}

/* More threads than workers, as far as tasks of this size fit into memory. */
static void note_memory(fv_stream_run *run, int64_t memory) {
    int at_once = fv__budget_at_once(&run->text.budget, run->threads, FV_MAX(memory, 1));
    pthread_mutex_lock(&run->mutex);
    if (at_once != run->at_once) wake_all(run);
    run->at_once = FV_MAX(at_once, 1);
    pthread_mutex_unlock(&run->mutex);
}

enum { PLENTY = 32 << 20 }; /* bytes of frames that queue up */

static int64_t bytes_of(const fv_errand *work) { return work->frame ? (int64_t)work->frame->bytes : 0; }

/* The mutex is held. */
void fv__stream_queue(fv_stream_run *run, fv_errand *work) {
    run->waiting += bytes_of(work);
    fv__queue_put(&run->todo, work);
}

/* One piece of work, or several small ones: handing each over alone would cost more than doing it. */
static fv_queue take_work(fv_stream_run *run, int number) {
    enum { MOST = 32, SMALL = 1 << 16 };
    fv_queue taken = { 0 };
    pthread_mutex_lock(&run->mutex);
    while ((!run->todo.first || number >= run->at_once) && !run->stop && !run->failed) {
        bool waits = number >= run->at_once; /* until there is memory for one more */
        if (waits && run->todo.first) pthread_cond_signal(&run->ready);
        pthread_cond_wait(waits ? &run->changed : &run->ready, &run->mutex);
    }
    int64_t share = FV_MIN(run->todo.count / (2 * run->at_once), MOST);
    while (run->todo.first && !run->failed) {
        bool small = run->todo.first->frame && run->todo.first->frame->bytes <= SMALL;
        if (taken.first && (!small || taken.count >= share)) break;
        fv_errand *work = fv__queue_take(&run->todo);
        run->waiting -= bytes_of(work);
        fv__queue_put(&taken, work);
        if (!small) break;
    }
    if (run->hungry && run->waiting < PLENTY) pthread_cond_broadcast(&run->changed);
    if (run->todo.first) pthread_cond_signal(&run->ready);
    pthread_mutex_unlock(&run->mutex);
    return taken;
}

static void *run_all(void *context) {
    fv_stream_run  *run = context;
    fv_item_runner *runner = fv__item_runner_new(&run->text, run->growing ? run->text.workers : 1, run->threads);
    pthread_mutex_lock(&run->mutex);
    int number = run->nstarted++;
    pthread_mutex_unlock(&run->mutex);
    fv__io_hooks(lend, take_back);
    fv__file_past_cache(!run->to); /* what is sent is read again */
    for (;;) {
        fv_queue taken = take_work(run, number), finished = { 0 };
        if (!taken.first) break;
        for (fv_errand *work; (work = fv__queue_take(&taken));) {
            if (!run->growing) take_turn(turn = &run->turns);
            run_work(run, runner, work, &finished);
            lend();
            turn = NULL;
        }
        finish_all(run, &finished);
        note_memory(run, fv__item_memory(runner));
    }
    fv__io_hooks(NULL, NULL);
    fv__file_past_cache(false);
    fv__item_runner_free(runner);
    return NULL;
}

/* ---------------------------------------------------------------- taking */

/* The name of a period, by the time at which it begins, so that names are in the order of time. */
static char *period_name(const fv_stream_run *run, const fv_frame *frame) {
    double    period = run->options->period, sent = isnan(frame->time) ? fv__clock() : frame->time;
    double    begin = floor(sent / period) * period;
    time_t    seconds = (time_t)begin;
    struct tm utc;
    char      text[32], fine[16] = "";
    gmtime_r(&seconds, &utc);
    strftime(text, sizeof text, "%Y%m%dT%H%M%S", &utc);
    if (period != floor(period)) snprintf(fine, sizeof fine, ".%03d", (int)((begin - (double)seconds) * 1000) % 1000);
    return run->topic ? fv__sprintf("window-%d-%s%s", frame->partition, text, fine) : fv__sprintf("window-%s%s", text, fine);
}

/* Counts a frame in a window instead of its scan. A period is complete when a frame of a later one comes. */
static void put_into_window(const fv_stream_run *run, fv_frame *frame) {
    int64_t n = run->options->window, number = run->topic ? frame->offset : frame->index;
    char   *name = !n           ? period_name(run, frame)
                   : run->topic ? fv__sprintf("window-%d-%06lld", frame->partition, (long long)(number / n))
                                : fv__sprintf("window-%06lld", (long long)(number / n));
    free(frame->scan);
    free(frame->path);
    frame->scan = name;
    frame->index = n ? number % n : fv__growing_next(run->growing, name);
    frame->path = fv__frame_path(&run->names, frame->scan, frame->index);
    frame->end = false;
    frame->length = n;
    if (!n) fv__growing_end_before(run->growing, frame->partition, name);
}

typedef enum standing { STANDING_NEW, STANDING_AGAIN, STANDING_LATE } standing;

/* The mutex is held. */
static standing stand(fv_stream_run *run, const fv_frame *frame) {
    char *staged = run->growing ? fv__sprintf("%s%s", FV_MARK_STAGED, frame->scan) : NULL;
    char *over = run->growing ? fv__sprintf("%s%s", FV_MARK_OVER, frame->scan) : NULL;
    bool  again = fv__seen_has(&run->taken, frame->scan, frame->index) ||
                 fv__seen_has(&run->state.seen, staged ? staged : frame->scan, frame->index);
    bool late = over && fv__seen_has(&run->state.seen, over, 0);
    if (late && run->options->period > 0) again = false; /* it has no number in a window that is gone */
    standing result = again ? STANDING_AGAIN : late ? STANDING_LATE : STANDING_NEW;
    if (result == STANDING_NEW) {
        const fv_seen_scan *scan = fv__seen_scan(&run->taken, frame->scan);
        if (scan && scan->range[2 * scan->nranges - 1] > frame->index) run->facts.disordered++;
        fv__seen_add(&run->taken, frame->scan, frame->index);
    }
    free(staged);
    free(over);
    return result;
}

static fv_errand *new_work(fv_frame *frame, fv_fate fate) {
    fv_errand *work = fv__calloc(sizeof *work);
    char       name[256];
    fv__path_stem(frame->path, name, sizeof name);
    work->frame = frame;
    work->fate = fate;
    work->name = fv__strdup(name);
    return work;
}

static bool is_enough(const fv_stream_run *run) {
    return (run->options->cancel && *run->options->cancel) || run->failed ||
           (run->options->limit && run->facts.frames >= run->options->limit);
}

/* Into the file of its scan; what is left is to commit that. */
static fv_status grow(fv_stream_run *run, fv_errand *work, fv_error *error) {
    fv_frame *frame = work->frame;
    bool      told = false;
    fv_status status;
    while ((status = fv__growing_add(run->growing, frame, &work->scan, &frame->why, error)) == FV_ERROR_FULL && !is_enough(run)) {
        if (!told) fv__log("fovea: %s; waiting", error->message);
        told = true;
        sleep(1);
    }
    FV_TRY(status);
    work->fate = frame->why ? FV_FATE_DEAD : FV_FATE_STAGED;
    if (work->scan) work->frames = work->scan->have_count;
    if (work->scan && (frame->end || frame->length)) work->length = work->scan->length;
    finish(run, work);
    return FV_OK;
}

static fv_status accept_frame(fv_stream_run *run, fv_frame *frame, fv_error *error) {
    bool only_end = frame->end && !frame->bytes && !frame->why;
    if ((run->options->window || run->options->period > 0) && !frame->why) put_into_window(run, frame);
    pthread_mutex_lock(&run->mutex);
    run->facts.frames++;
    run->facts.bytes += (int64_t)frame->bytes;
    run->bytes += (int64_t)frame->bytes;
    run->under_way++;
    for (int i = 0; run->topic && i <= frame->more; i++) fv__flight_begin(run, frame->partition, frame->offset);
    standing found = frame->why || only_end ? STANDING_NEW : stand(run, frame);
    pthread_mutex_unlock(&run->mutex);
    fv_errand *work = new_work(frame, FV_FATE_DONE);
    if (frame->why) work->fate = FV_FATE_DEAD;
    if (found == STANDING_AGAIN) work->fate = FV_FATE_AGAIN;
    if (found == STANDING_AGAIN && !run->anew && !run->told && !strcmp(run->address, "-")) {
        fv__log("fovea: %s is %s, which was done before, and is left out: numbers that frames do not tell begin with 0 at each "
                "start. Give them a fovea-key, or `fovea clean --streams` forgets what was done",
                frame->where, work->name);
        run->told = true;
    }
    if (found == STANDING_LATE) {
        work->fate = FV_FATE_DEAD;
        frame->why = fv__sprintf("it comes too late: its scan %s is done", frame->scan);
    }
    if (work->fate == FV_FATE_DONE && run->growing) return grow(run, work, error);
    if (only_end) work->fate = FV_FATE_AGAIN; /* the end of a scan means nothing where frames are items */
    if (work->fate != FV_FATE_DONE) {
        finish(run, work);
        return FV_OK;
    }
    pthread_mutex_lock(&run->mutex);
    fv__stream_queue(run, work);
    pthread_cond_signal(&run->ready);
    pthread_mutex_unlock(&run->mutex);
    return FV_OK;
}

void fv__stream_retire(fv_stream_run *run) {
    pthread_mutex_lock(&run->mutex);
    fv_errand *retired = run->retired.first;
    run->retired = (fv_queue){ 0 };
    pthread_mutex_unlock(&run->mutex);
    while (retired) {
        fv_errand *next = retired->next;
        fv__growing_done(run->growing, retired->scan);
        fv__errand_free(retired);
        retired = next;
    }
}

static void queue_scan(fv_stream_run *run, fv_scan_file *scan, fv_fate fate) {
    fv_errand *work = fv__calloc(sizeof *work);
    work->scan = scan;
    work->fate = fate;
    work->name = fv__strdup(scan->name);
    work->frames = scan->have_count;
    work->planes = scan->planes;
    work->whole = scan->length;
    work->scans = fv__growing_count(run->growing);
    work->nangles = FV_MAX(scan->length, scan->most);
    work->angles = fv__scan_angles(scan, work->nangles);
    if (fate == FV_FATE_PREVIEW) work->there = fv__scan_there(scan);
    if (fate == FV_FATE_SCAN) set_hurry(run, 1);
    pthread_mutex_lock(&run->mutex);
    run->under_way++;
    run->scanning++;
    fv__stream_queue(run, work);
    pthread_cond_signal(&run->ready);
    pthread_mutex_unlock(&run->mutex);
}

/* Scans that were done go; complete ones are run, others shown if that is due, or summed up as far as they came. */
static void tend_scans(fv_stream_run *run, bool over) {
    bool preview;
    if (!run->growing) return;
    fv__stream_retire(run);
    for (fv_scan_file *scan; (scan = fv__growing_ready(run->growing, over, &preview));)
        queue_scan(run, scan, preview ? FV_FATE_PREVIEW : FV_FATE_SCAN);
    for (fv_scan_file *scan; !run->unsummed && (scan = fv__growing_summable(run->growing));) queue_scan(run, scan, FV_FATE_SUM);
}

static void once_a_second(fv_stream_run *run, double *last) {
    fv__stream_metrics_answer(run);
    if (fv__now() - *last < 1) return;
    *last = fv__now();
    int64_t lag = run->source->lag ? run->source->lag(run->source) : -1;
    pthread_mutex_lock(&run->mutex);
    run->facts.lag = lag;
    run->facts.waiting = run->under_way;
    run->facts.seconds = fv__now() - run->began;
    fv_stream_facts facts = run->facts;
    pthread_mutex_unlock(&run->mutex);
    fv__stream_note(run);
    if (run->options->progress) run->options->progress(run->options->context, &facts);
}

/* Whether there is room for another frame; waits a little if not. Frames that queue up beyond what keeps all threads busy would
 * only make memory cold. */
static bool has_room(fv_stream_run *run) {
    pthread_mutex_lock(&run->mutex);
    bool few = run->waiting < PLENTY || run->todo.count < 2 * run->threads;
    bool room = !run->under_way || (run->bytes < run->room && few && run->under_way < 1 << 16);
    run->hungry = !room;
    if (!room) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 20000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&run->changed, &run->mutex, &until);
    }
    run->hungry = false;
    pthread_mutex_unlock(&run->mutex);
    return room;
}

/* A source that is paused forgets what it holds and fetches it again, so it is only told of long waits. */
#define PAUSE 2 /* seconds */

static fv_status take_frames(fv_stream_run *run, fv_error *error) {
    fv_frame_source *source = run->source;
    bool             over = false, paused = false;
    double           last = 0, had_room = fv__now();
    fv_status        status = FV_OK; /* of the source: what came before it failed is done all the same */
    while (!over && !is_enough(run)) {
        fv_frame *frame = NULL;
        bool      room = has_room(run);
        if (room) had_room = fv__now();
        bool pause = !room && fv__now() - had_room > PAUSE;
        if (source->pause && paused != pause) source->pause(source, paused = pause);
        if (room || paused) status = source->next(source, room ? 0.05 : 0, &frame, &over, error);
        if (status != FV_OK) break;
        if (frame) FV_TRY(accept_frame(run, frame, error));
        tend_scans(run, false);
        once_a_second(run, &last);
    }
    if (run->failed) return FV_OK;
    /* What came is done to its end; scans that are not complete wait for the next start, unless nothing can follow. */
    for (bool whole = over && status == FV_OK; !run->failed;) {
        tend_scans(run, whole);
        fv_frame *frame = NULL;
        if (source->pause) {
            if (!paused) source->pause(source, paused = true);
            source->next(source, 0, &frame, &over, &(fv_error){ 0 });
            fv__frame_free(frame); /* it was not committed, and comes again */
        }
        pthread_mutex_lock(&run->mutex);
        bool idle = !run->under_way;
        pthread_mutex_unlock(&run->mutex);
        if (idle && (!whole || !fv__growing_count(run->growing) || !run->retired.first)) break;
        once_a_second(run, &last);
        usleep(2000);
    }
    tend_scans(run, false);
    return status;
}

/* ---------------------------------------------------------------- all of it */

static void end_threads(fv_stream_run *run, const pthread_t *threads, int count, pthread_t committer) {
    pthread_mutex_lock(&run->mutex);
    run->stop = true;
    wake_all(run);
    pthread_mutex_unlock(&run->mutex);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    pthread_mutex_lock(&run->mutex);
    run->over = true;
    wake_all(run);
    pthread_mutex_unlock(&run->mutex);
    pthread_join(committer, NULL);
}

fv_status fv__stream_run(fv_stream_run *run, fv_error *error) {
    pthread_t threads[256], committer;
    int       started = 0;
    run->threads = run->growing ? 1 : FV_MIN(4 * run->text.workers, 256);
    run->at_once = FV_MIN(run->text.workers, run->threads);
    sem_init(&run->turns, 0, (unsigned)run->text.workers);
    if (fv__thread_start(&committer, fv__stream_commit, run)) return fv_fail(error, FV_ERROR_IO, "no thread can be started");
    while (started < run->threads && !fv__thread_start(&threads[started], run_all, run)) started++;
    fv_status status = started ? take_frames(run, error) : fv_fail(error, FV_ERROR_IO, "no thread can be started");
    if (status != FV_OK) fv__stream_fail(run, error);
    end_threads(run, threads, started, committer);
    sem_destroy(&run->turns);
    fv_errand *work;
    while ((work = fv__queue_take(&run->todo))) fv__errand_free(work);
    while ((work = fv__queue_take(&run->retired))) fv__errand_free(work);
    while ((work = fv__queue_take(&run->finished))) {
        for (int i = 0; i < work->made.noutputs; i++) fv__outputs_abandon(run->text.outputs, work->made.outputs[i]);
        fv__errand_free(work);
    }
    if (run->failed) {
        *error = run->error;
        return run->error.code;
    }
    return FV_OK;
}
