/* Estimates as requests to a scheduler, as text and as JSON. */
#include "base/base.h"
#include <cjson/cJSON.h>
#include <fovea/estimate.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const style_names[FV_JOB_STYLES] = { "serial", "threaded", "distributed", "array" };

const char *fv_cost_name(fv_cost cost) {
    static const char *const names[FV_COSTS] = { "read", "compute", "write", "merge" };
    return cost < FV_COSTS ? names[cost] : "";
}

/* ---------------------------------------------------------------- requests */

#define SAFETY 1.2 /* a job that is killed at its limit costs more than one that ends early */

static double range_of(const fv_estimate *e) { return 1 + 2 * e->error; }

static int64_t safe_memory(const fv_estimate *e, int64_t workers) {
    double  bytes = (double)fv_estimate_memory(e, workers) * (1 + 2 * e->memory_error) * SAFETY;
    int64_t step = (int64_t)64 << 20;
    return ((int64_t)bytes + step - 1) / step * step;
}

/* At least a minute, whole minutes; beyond two hours, quarters of an hour. */
static double safe_seconds(const fv_estimate *e, double seconds) {
    double safe = seconds * range_of(e) * SAFETY, step = safe > 7200 ? 900 : 60;
    return ceil(FV_MAX(safe, 60) / step) * step;
}

fv_request fv_estimate_request(const fv_estimate *e, fv_job_style style, int workers) {
    int        n = FV_MAX(workers, 1);
    fv_request r = { .style = style, .tasks = 1, .cpus_per_task = 1, .elements = 1, .memory = safe_memory(e, 1) };
    double     seconds = fv_estimate_seconds(e, n);
    if (style == FV_JOB_SERIAL) seconds = fv_estimate_seconds(e, 1);
    if (style == FV_JOB_DISTRIBUTED) r.tasks = n;
    if (style == FV_JOB_ARRAY) {
        r.elements = n;
        r.memory = FV_MAX(r.memory, (e->job_least + (1 << 20) - 1) >> 20 << 20);
    }
    if (style == FV_JOB_THREADED) {
        r.cpus_per_task = n;
        r.memory = safe_memory(e, n);
    }
    r.seconds = safe_seconds(e, seconds);
    return r;
}

static void time_text(double seconds, char text[24]) {
    int64_t s = (int64_t)ceil(seconds), days = s / 86400;
    if (days)
        snprintf(text, 24, "%d-%02d:%02d:%02d", (int)days, (int)(s / 3600 % 24), (int)(s / 60 % 60), (int)(s % 60));
    else
        snprintf(text, 24, "%02d:%02d:%02d", (int)(s / 3600), (int)(s / 60 % 60), (int)(s % 60));
}

void fv_request_format(const fv_request *r, char text[160]) {
    char      time[24];
    long long mebibytes = (long long)(r->memory >> 20);
    time_text(r->seconds, time);
    if (r->style == FV_JOB_ARRAY)
        snprintf(text, 160, "--array=0-%d --cpus-per-task=%d --mem=%lldM --time=%s", r->elements - 1, r->cpus_per_task, mebibytes,
                 time);
    else if (r->style == FV_JOB_DISTRIBUTED)
        snprintf(text, 160, "--ntasks=%d --cpus-per-task=%d --mem-per-cpu=%lldM --time=%s", r->tasks, r->cpus_per_task, mebibytes,
                 time);
    else
        snprintf(text, 160, "--ntasks=1 --cpus-per-task=%d --mem=%lldM --time=%s", r->cpus_per_task, mebibytes, time);
}

/* ---------------------------------------------------------------- text */

/* "0.8 s", "45 s", "12 min", "3.4 h", "2.1 days". */
static void duration_text(double seconds, char text[24]) {
    if (seconds < 9.95)
        snprintf(text, 24, "%.1f s", seconds);
    else if (seconds < 120)
        snprintf(text, 24, "%.0f s", seconds);
    else if (seconds < 7200)
        snprintf(text, 24, "%.1f min", seconds / 60);
    else if (seconds < 172800)
        snprintf(text, 24, "%.1f h", seconds / 3600);
    else
        snprintf(text, 24, "%.1f days", seconds / 86400);
}

static void print_work(const fv_estimate *e, fv_bytes *out) {
    double all = 0;
    for (int c = 0; c < FV_COSTS; c++) all += e->work[c];
    for (int c = 0; c < FV_COSTS; c++) {
        char whole[24], growth[64];
        duration_text(e->work[c], whole);
        snprintf(growth, sizeof growth, "%.3g ms + %.3g ms per MiB", e->growth[c].fixed * 1e3,
                 e->growth[c].per_byte * 1e3 * 0x1p20);
        fv__bytes_printf(out, "  %-8s %10s of one core, %3.0f %%   each item %s%s\n", fv_cost_name((fv_cost)c), whole,
                         all > 0 ? 100 * e->work[c] / all : 0, growth, c == (int)e->dominates ? "   <- dominates" : "");
    }
}

bool fv_estimate_disturbed(const fv_estimate *e) { return e->load > 0.5 * e->cores; }

static void print_text(const fv_estimate *e, fv_bytes *out) {
    char size[24], took[24], low[24], high[24], expected[24], memory[24], most[24], request[160];
    fv_size_format((int64_t)e->bytes, size);
    duration_text(e->seconds_measuring, took);
    fv__bytes_printf(out, "%lld item%s, %s of input", (long long)e->items, e->items == 1 ? "" : "s", size);
    if (e->items_present > 1)
        fv__bytes_printf(out, "; measured on up to %lld of %lld", (long long)e->items_measured, (long long)e->items_present);
    fv__bytes_printf(out, " in %s\n\nwork\n", took);
    print_work(e, out);
    fv__bytes_printf(out, "\nworkers       time    between         memory  at most\n");
    for (int i = 0; i < e->npoints; i++) {
        const fv_estimate_point *p = &e->points[i];
        duration_text(p->seconds, expected);
        duration_text(p->low, low);
        duration_text(p->high, high);
        fv_size_format(p->memory, memory);
        fv_size_format(p->memory_high, most);
        fv__bytes_printf(out, "%7d %10s    %s and %-*s %10s  %s%s\n", p->workers, expected, low, (int)(11 - strlen(low)), high,
                         memory, most, p->workers > e->cores ? "  (more than the cores here)" : "");
    }
    fv__bytes_printf(out, "start %.2f s, serial part %.1f %%\n", e->start, 100 * e->serial);
    if (fv_estimate_disturbed(e))
        fv__bytes_printf(out,
                         "this machine was busy with other work (load %.1f on %d core%s): the times are too long and uncertain\n",
                         e->load, e->cores, e->cores == 1 ? "" : "s");
    fv__bytes_printf(out, "\nfor Slurm\n");
    for (int i = 0; i < FV_JOB_STYLES; i++) {
        fv_request_format(&e->requests[i], request);
        fv__bytes_printf(out, "  %-12s %s\n", style_names[i], request);
    }
}

/* ---------------------------------------------------------------- JSON */

static cJSON *point_json(const fv_estimate_point *p) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "workers", p->workers);
    cJSON_AddNumberToObject(object, "seconds", p->seconds);
    cJSON_AddNumberToObject(object, "seconds_low", p->low);
    cJSON_AddNumberToObject(object, "seconds_high", p->high);
    cJSON_AddNumberToObject(object, "memory", (double)p->memory);
    cJSON_AddNumberToObject(object, "memory_high", (double)p->memory_high);
    return object;
}

static cJSON *request_json(const fv_request *r) {
    cJSON *object = cJSON_CreateObject();
    char   text[160];
    fv_request_format(r, text);
    cJSON_AddStringToObject(object, "style", style_names[r->style]);
    cJSON_AddNumberToObject(object, "tasks", r->tasks);
    cJSON_AddNumberToObject(object, "cpus_per_task", r->cpus_per_task);
    cJSON_AddNumberToObject(object, "elements", r->elements);
    cJSON_AddNumberToObject(object, "memory", (double)r->memory);
    cJSON_AddNumberToObject(object, "seconds", r->seconds);
    cJSON_AddStringToObject(object, "sbatch", text);
    return object;
}

static char *print_json(const fv_estimate *e) {
    cJSON *root = cJSON_CreateObject(), *work = cJSON_AddArrayToObject(root, "work");
    for (int c = 0; c < FV_COSTS; c++) {
        cJSON *cost = cJSON_CreateObject();
        cJSON_AddStringToObject(cost, "name", fv_cost_name((fv_cost)c));
        cJSON_AddNumberToObject(cost, "seconds", e->work[c]);
        cJSON_AddNumberToObject(cost, "item_seconds", e->growth[c].fixed);
        cJSON_AddNumberToObject(cost, "byte_seconds", e->growth[c].per_byte);
        cJSON_AddItemToArray(work, cost);
    }
    cJSON_AddStringToObject(root, "dominates", fv_cost_name(e->dominates));
    cJSON_AddNumberToObject(root, "items", (double)e->items);
    cJSON_AddNumberToObject(root, "items_present", (double)e->items_present);
    cJSON_AddNumberToObject(root, "items_measured", (double)e->items_measured);
    cJSON_AddNumberToObject(root, "bytes", e->bytes);
    cJSON_AddNumberToObject(root, "seconds_measuring", e->seconds_measuring);
    if (e->load >= 0) cJSON_AddNumberToObject(root, "load", e->load);
    cJSON_AddBoolToObject(root, "disturbed", fv_estimate_disturbed(e));
    cJSON_AddNumberToObject(root, "start", e->start);
    cJSON_AddNumberToObject(root, "factor", e->factor);
    cJSON_AddNumberToObject(root, "serial_fraction", e->serial);
    cJSON_AddNumberToObject(root, "relative_error", e->error);
    cJSON_AddNumberToObject(root, "memory_base", e->memory_base);
    cJSON_AddNumberToObject(root, "memory_worker", e->memory_worker);
    cJSON_AddNumberToObject(root, "most_workers", (double)e->most_workers);
    cJSON *points = cJSON_AddArrayToObject(root, "predictions"), *requests = cJSON_AddArrayToObject(root, "requests");
    for (int i = 0; i < e->npoints; i++) cJSON_AddItemToArray(points, point_json(&e->points[i]));
    for (int i = 0; i < FV_JOB_STYLES; i++) cJSON_AddItemToArray(requests, request_json(&e->requests[i]));
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    return text;
}

char *fv_estimate_print(const fv_estimate *e, fv_form form) {
    fv_bytes out = { 0 };
    if (form == FV_FORM_JSON) {
        char *text = print_json(e);
        fv__bytes_printf(&out, "%s\n", text);
        free(text);
    } else
        print_text(e, &out);
    fv__bytes_append(&out, "", 1);
    return (char *)out.data;
}

fv_status fv_pipeline_estimate_text(fv_pipeline *pipeline, const fv_estimate_options *options, fv_form form, char **text,
                                    fv_error *error) {
    fv_estimate e;
    *text = NULL;
    FV_TRY(fv_pipeline_estimate(pipeline, options, &e, error));
    *text = fv_estimate_print(&e, form);
    return FV_OK;
}
