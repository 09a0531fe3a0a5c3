/* What the record of a run says. */
#include "api/latest_run.h"
#include "api/paragraph.h"
#include "api/stage_times.h"
#include "base/file.h"
#include "store/store_place.h"
#include "story/report_page.h"
#include <cjson/cJSON.h>
#include <dirent.h>
#include <fovea/report.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---------------------------------------------------------------- which run */

/* When a log of a run was last written; 0: it has none. */
static double last_written(const char *folder) {
    DIR   *dir = opendir(folder);
    double latest = 0;
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        struct stat s;
        if (strncmp(entry->d_name, "task-", 5)) continue;
        char *path = fv__sprintf("%s/%s", folder, entry->d_name);
        if (!stat(path, &s)) latest = FV_MAX(latest, (double)s.st_mtim.tv_sec + 1e-9 * (double)s.st_mtim.tv_nsec);
        free(path);
    }
    if (dir) closedir(dir);
    return latest;
}

fv_status fv_run_find(const char *store, const char *name, char **run_folder, fv_error *error) {
    char *folder = fv__store_place(store, false), *runs = fv__sprintf("%s/runs", folder);
    free(folder);
    fv_status status = fv__find_run(runs, name, last_written, run_folder, error);
    if (status == FV_OK && !*run_folder)
        status = name ? fv_fail(error, FV_ERROR_USAGE, "no run in %s begins with %s", runs, name)
                      : fv_fail(error, FV_ERROR_USAGE, "there is no run in %s; `fovea run FILE` makes one", runs);
    free(runs);
    return status;
}

/* ---------------------------------------------------------------- time */

static void put_times(fv_bytes *out, const fv_spent *spent, int nspent) {
    fv_stage_time stages[FV_MOST_STAGES];
    int           count = fv__stage_times(spent, nspent, stages);
    double        all = 0;
    for (int i = 0; i < count; i++) all += stages[i].seconds;
    if (count) fv__bytes_printf(out, "stage         operator                  seconds   share\n");
    for (int i = 0; i < count; i++)
        for (int k = 0; k < nspent; k++) {
            if (strcmp(fv__stage_of(spent[k].op), stages[i].stage)) continue;
            double share = all > 0 ? 100 * spent[k].seconds / all : 0;
            fv__bytes_printf(out, "%-12s  %-22s  %9.3f  %4.1f %%\n", stages[i].stage, spent[k].op, spent[k].seconds, share);
        }
}

static cJSON *times_json(const fv_spent *spent, int nspent) {
    cJSON *rows = cJSON_CreateArray();
    for (int k = 0; k < nspent; k++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "stage", fv__stage_of(spent[k].op));
        cJSON_AddStringToObject(row, "operator", spent[k].op);
        cJSON_AddNumberToObject(row, "seconds", spent[k].seconds);
        cJSON_AddItemToArray(rows, row);
    }
    return rows;
}

/* ---------------------------------------------------------------- residuals */

static bool same_call(const fv_residual *a, const fv_residual *b) {
    return a->item == b->item && !memcmp(&a->call, &b->call, sizeof a->call);
}

static void put_residuals(fv_bytes *out, const fv_residual *all, int64_t count) {
    bool items = count && all[count - 1].item; /* those of a collection are told apart */
    for (int64_t i = 0; i < count; i++) {
        const fv_residual *r = &all[i];
        if (!i || !same_call(&all[i - 1], r)) {
            fv__bytes_printf(out, "%s%s, line %lld", out->size ? "\n" : "", r->op, (long long)r->line);
            if (items) fv__bytes_printf(out, ", item %lld", (long long)r->item);
            fv__bytes_printf(out, "\n  iteration   residual  best slice  worst slice  slices\n");
        }
        fv__bytes_printf(out, "  %9lld  %9.6f  %10.6f  %11.6f  %6lld\n", (long long)r->iteration, r->residual, r->least, r->most,
                         (long long)r->slices);
    }
}

static cJSON *residuals_json(const fv_residual *all, int64_t count) {
    cJSON *calls = cJSON_CreateArray(), *rows = NULL;
    for (int64_t i = 0; i < count; i++) {
        const fv_residual *r = &all[i];
        if (!i || !same_call(&all[i - 1], r)) {
            cJSON *call = cJSON_CreateObject();
            cJSON_AddStringToObject(call, "operator", r->op);
            cJSON_AddNumberToObject(call, "line", (double)r->line);
            cJSON_AddNumberToObject(call, "item", (double)r->item);
            rows = cJSON_AddArrayToObject(call, "iterations");
            cJSON_AddItemToArray(calls, call);
        }
        cJSON *row = cJSON_CreateObject();
        cJSON_AddNumberToObject(row, "iteration", (double)r->iteration);
        cJSON_AddNumberToObject(row, "residual", r->residual);
        cJSON_AddNumberToObject(row, "best", r->least);
        cJSON_AddNumberToObject(row, "worst", r->most);
        cJSON_AddNumberToObject(row, "slices", (double)r->slices);
        cJSON_AddItemToArray(rows, row);
    }
    return calls;
}

/* ---------------------------------------------------------------- all of it */

typedef struct facts {
    fv_spent     spent[FV_MOST_SPENT];
    int          nspent;
    fv_residual *residuals;
    int64_t      nresiduals;
} facts;

static char *print_json(const char *run_folder, const facts *f) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "run", run_folder);
    cJSON_AddItemToObject(json, "seconds", times_json(f->spent, f->nspent));
    cJSON_AddItemToObject(json, "residuals", residuals_json(f->residuals, f->nresiduals));
    char *text = cJSON_Print(json), *result = fv__sprintf("%s\n", text);
    free(text);
    cJSON_Delete(json);
    return result;
}

static char *print_text(const facts *f) {
    fv_bytes out = { 0 };
    put_times(&out, f->spent, f->nspent);
    put_residuals(&out, f->residuals, f->nresiduals);
    return fv__take_text(&out);
}

fv_status fv_run_report(const char *run_folder, fv_form form, char **text, fv_error *error) {
    facts f = { .residuals = NULL };
    *text = NULL;
    fv_status status = fv__record_spent_all(run_folder, f.spent, &f.nspent, error);
    if (status == FV_OK) status = fv__record_residuals(run_folder, &f.residuals, &f.nresiduals, error);
    if (status == FV_OK) *text = form == FV_FORM_JSON ? print_json(run_folder, &f) : print_text(&f);
    free(f.residuals);
    return status;
}

fv_status fv_run_report_page(const char *run_folder, bool hash, const char *path, fv_error *error) {
    fv_story *story;
    fv_bytes  page = { 0 };
    FV_TRY(fv__story_open(run_folder, &story, error));
    fv__report_page(story, &(fv_page_options){ .hash = hash }, &page);
    fv_status status = fv__file_write_all(path, page.data, page.size, false, error);
    fv__bytes_release(&page);
    fv__story_close(story);
    return status;
}
