/* Counting what a stream does, and telling it: printed values, events, the file for `fovea status`, metrics. */
#include "base/file.h"
#include "base/number.h"
#include "stream/stream_parts.h"
#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- counting */

static bool is_too_large(const fv_frame *frame) { return strstr(frame->why, "at most") != NULL; }

void fv__stream_count(fv_stream_run *run, const fv_errand *work) {
    fv_stream_facts *facts = &run->facts;
    switch (work->fate) {
    case FV_FATE_DONE:
    case FV_FATE_STAGED: facts->done++; break;
    case FV_FATE_AGAIN: facts->duplicate++; break;
    case FV_FATE_FAILED: facts->failed++; break;
    case FV_FATE_SUM: break;
    case FV_FATE_LEFT:
        if (work->frame) facts->frames--;
        return;
    case FV_FATE_PREVIEW: facts->previews++; break;
    case FV_FATE_SCAN:
        facts->scans++;
        if (work->error.code != FV_OK) facts->failed++;
        break;
    case FV_FATE_DEAD:
        if (strstr(work->frame->why, "too late"))
            facts->late++;
        else
            (*(is_too_large(work->frame) ? &facts->oversized : &facts->malformed))++;
        break;
    }
    if (!work->frame) return;
    run->latencies[run->nlatencies++ % FV_LATENCIES] = fv__now() - work->frame->arrived;
}

static int by_number(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The mutex is held. */
static void find_latencies(fv_stream_run *run) {
    double  sorted[FV_LATENCIES];
    int64_t n = FV_MIN(run->nlatencies, FV_LATENCIES);
    if (!n) return;
    memcpy(sorted, run->latencies, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_number);
    run->facts.latency = sorted[n / 2];
    run->facts.latency_high = sorted[n * 99 / 100];
}

/* ---------------------------------------------------------------- values */

static void add_cell(cJSON *row, const fv_column *column, fv_cell cell) {
    char text[FV_NUMBER_SIZE + 1] = "";
    if (column->kind == FV_COLUMN_TEXT && cell.text) {
        cJSON_AddStringToObject(row, column->name, cell.text);
        return;
    }
    if (column->kind == FV_COLUMN_INTEGER) text[fv__integer_format(cell.integer, text)] = 0;
    if (column->kind == FV_COLUMN_NATURAL) text[fv__natural_format(cell.natural, text)] = 0;
    if (column->kind == FV_COLUMN_REAL && isfinite(cell.real)) text[fv__real_format(cell.real, text)] = 0;
    if (*text)
        cJSON_AddRawToObject(row, column->name, text);
    else
        cJSON_AddNullToObject(row, column->name);
}

static cJSON *rows_of(const fv_table_type *type, const fv_bytes *bytes) {
    cJSON         *rows = cJSON_CreateArray();
    const uint8_t *at = bytes->data, *end = at + bytes->size;
    fv_cell        cells[FV_MAX_COLUMNS];
    while (fv__rows_get(type, &at, end, cells, 1)) {
        cJSON *row = cJSON_CreateObject();
        for (int c = 0; c < type->ncolumns; c++) add_cell(row, &type->column[c], cells[c]);
        cJSON_AddItemToArray(rows, row);
    }
    return rows;
}

static char *print_json(cJSON *json) {
    char *text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    return text;
}

char *fv__rows_json(const fv_table_type *type, const fv_bytes *rows) { return print_json(rows_of(type, rows)); }

double fv__clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static cJSON *new_event(const char *what) {
    cJSON *event = cJSON_CreateObject();
    cJSON_AddStringToObject(event, "event", what);
    cJSON_AddNumberToObject(event, "time", fv__clock());
    return event;
}

void fv__stream_event(fv_stream_run *run, const char *json) {
    if (run->options->event) run->options->event(run->options->context, json);
}

static void send_event(fv_stream_run *run, cJSON *event) {
    char *text = print_json(event);
    fv__stream_event(run, text);
    free(text);
}

/* A printed row for people: its own columns behind the item's name. */
static void print_rows(fv_stream_run *run, const fv_errand *work, const fv_made_table *table) {
    cJSON       *rows = rows_of(&table->type, &table->rows);
    const cJSON *row;
    cJSON_ArrayForEach(row, rows) {
        fv_bytes line = { 0 };
        fv__bytes_printf(&line, "%s", work->name);
        if (work->fate == FV_FATE_PREVIEW)
            fv__bytes_printf(&line, " after %lld frame%s", (long long)work->frames, work->frames == 1 ? "" : "s");
        for (const cJSON *cell = row->child; cell; cell = cell->next) {
            if (!strcmp(cell->string, "item") || !strcmp(cell->string, "path")) continue;
            char *text = cJSON_IsString(cell) ? fv__strdup(cell->valuestring) : cJSON_PrintUnformatted(cell);
            fv__bytes_printf(&line, "  %s %s", cell->string, text);
            free(text);
        }
        fv__bytes_append(&line, "", 1);
        run->options->printed(run->options->context, (const char *)line.data);
        fv__bytes_release(&line);
    }
    cJSON_Delete(rows);
}

static bool is_printed(const fv_made_table *table) { return !table->file && !table->alert; } /* alerts are told */

/* Where its time went. */
static void add_parts(cJSON *event, const fv_errand *work) {
    cJSON *parts = cJSON_AddObjectToObject(event, "parts");
    if (work->frame) cJSON_AddNumberToObject(parts, "waited", work->begun - work->frame->arrived);
    cJSON_AddNumberToObject(parts, "ran", work->ended - work->begun);
    cJSON_AddNumberToObject(parts, "gathered", work->taken - work->ended);
    cJSON_AddNumberToObject(parts, "synced", work->synced - work->taken);
    cJSON_AddNumberToObject(parts, "recorded", fv__now() - work->synced);
}

static void tell_event(fv_stream_run *run, const fv_errand *work) {
    static const char *const names[] = { "frame", "frame", "duplicate", "aside", "failed", "scan", "preview" };
    cJSON                   *event = new_event(names[work->fate]);
    cJSON_AddStringToObject(event, "item", work->name);
    if (work->frame) cJSON_AddNumberToObject(event, "seconds", fv__now() - work->frame->arrived);
    if (work->begun > 0 && work->synced > 0) add_parts(event, work);
    if (work->frame && !isnan(work->frame->time)) cJSON_AddNumberToObject(event, "delay", fv__clock() - work->frame->time);
    if (work->scan) cJSON_AddNumberToObject(event, "frames", (double)work->frames);
    const char *why = work->fate == FV_FATE_DEAD ? work->frame->why : work->error.code != FV_OK ? work->error.message : NULL;
    if (why) cJSON_AddStringToObject(event, "why", why);
    if (work->made.noutputs) {
        cJSON *files = cJSON_AddArrayToObject(event, "files");
        for (int i = 0; i < work->made.noutputs; i++)
            cJSON_AddItemToArray(files, cJSON_CreateString(work->made.outputs[i]->path));
    }
    for (int i = 0; i < work->made.ntables; i++)
        if (is_printed(&work->made.tables[i]))
            cJSON_AddItemToObject(event, work->made.tables[i].name,
                                  rows_of(&work->made.tables[i].type, &work->made.tables[i].rows));
    send_event(run, event);
}

void fv__stream_tell(fv_stream_run *run, const fv_errand *work) {
    if (work->fate == FV_FATE_LEFT) return;
    if (run->options->event && work->error.code != FV_ERROR_CANCELLED) tell_event(run, work);
    if (work->fate == FV_FATE_SCAN && work->error.code != FV_OK)
        fv__log_failure("fovea: scan %s: %s", work->name, work->error.message);
    if (work->fate == FV_FATE_PREVIEW && work->error.code != FV_OK && work->error.code != FV_ERROR_CANCELLED)
        fv__log("fovea: no preview of scan %s: %s", work->name, work->error.message);
    for (int i = 0; i < work->made.ntables && run->options->printed; i++)
        if (is_printed(&work->made.tables[i])) print_rows(run, work, &work->made.tables[i]);
}

/* ---------------------------------------------------------------- status */

static cJSON *describe(fv_stream_run *run) {
    cJSON *root = cJSON_CreateObject();
    pthread_mutex_lock(&run->mutex);
    find_latencies(run);
    fv_stream_facts f = run->facts;
    pthread_mutex_unlock(&run->mutex);
    double seconds = FV_MAX(f.seconds, 1e-3);
    cJSON_AddStringToObject(root, "stream", run->name);
    cJSON_AddStringToObject(root, "state", "running");
    cJSON_AddStringToObject(root, "source", run->address);
    cJSON_AddNumberToObject(root, "pid", getpid());
    cJSON_AddNumberToObject(root, "updated", fv__clock());
    const struct {
        const char *name;
        double      value;
    } all[] = { { "seconds", f.seconds },
                { "frames", (double)f.frames },
                { "done", (double)f.done },
                { "failed", (double)f.failed },
                { "scans", (double)f.scans },
                { "previews", (double)f.previews },
                { "duplicate", (double)f.duplicate },
                { "late", (double)f.late },
                { "malformed", (double)f.malformed },
                { "oversized", (double)f.oversized },
                { "disordered", (double)f.disordered },
                { "rows", (double)f.rows },
                { "alerts", (double)f.alerts },
                { "bytes", (double)f.bytes },
                { "waiting", (double)f.waiting },
                { "lag", (double)f.lag },
                { "frames_per_second", (double)f.done / seconds },
                { "latency_median", f.latency },
                { "latency_99", f.latency_high } };
    for (int i = 0; i < FV_COUNT(all); i++) cJSON_AddNumberToObject(root, all[i].name, all[i].value);
    return root;
}

void fv__stream_forget(fv_stream_run *run) {
    char *path = fv__sprintf("%s/%s.status", run->folder, run->name);
    fv__path_remove(path, NULL);
    free(path);
}

void fv__stream_note(fv_stream_run *run) {
    char *text = print_json(describe(run)), *path = fv__sprintf("%s/%s.status", run->folder, run->name);
    fv__file_write_all(path, text, strlen(text), false, NULL); /* only for those who look */
    free(text);
    free(path);
}

/* ---------------------------------------------------------------- metrics */

fv_status fv__stream_metrics_open(fv_stream_run *run, int port, fv_error *error) {
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int                on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    run->metrics = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (run->metrics >= 0) setsockopt(run->metrics, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (run->metrics < 0 || bind(run->metrics, (struct sockaddr *)&address, sizeof address) || listen(run->metrics, 8))
        return fv_fail(error, FV_ERROR_USAGE, "--metrics %d: nobody can listen there: %s", port, strerror(errno));
    return FV_OK;
}

static void put_metrics(fv_stream_run *run, fv_bytes *out) {
    cJSON *facts = describe(run);
    for (const cJSON *fact = facts->child; fact; fact = fact->next) {
        if (!cJSON_IsNumber(fact) || !strcmp(fact->string, "pid") || !strcmp(fact->string, "updated")) continue;
        char number[FV_NUMBER_SIZE + 1];
        number[fv__real_format(fact->valuedouble, number)] = 0;
        fv__bytes_printf(out, "fovea_stream_%s %s\n", fact->string, number);
    }
    cJSON_Delete(facts);
}

void fv__stream_metrics_answer(fv_stream_run *run) {
    int who = run->metrics >= 0 ? accept4(run->metrics, NULL, NULL, SOCK_CLOEXEC) : -1;
    if (who < 0) return;
    struct timeval patience = { .tv_usec = 200000 };
    char           asked[2048];
    fv_bytes       body = { 0 }, head = { 0 };
    setsockopt(who, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(who, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (recv(who, asked, sizeof asked, 0) > 0) {
        put_metrics(run, &body);
        fv__bytes_printf(&head, "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %zu\r\n\r\n",
                         body.size);
        fv__bytes_append(&head, body.data, body.size);
        if (send(who, head.data, head.size, MSG_NOSIGNAL) < 0) fv__log_verbose("fovea: nobody waited for the metrics");
    }
    fv__bytes_release(&head);
    fv__bytes_release(&body);
    close(who);
}
