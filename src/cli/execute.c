/* Running a pipeline from the command line. */
#include "execute.h"
#include "pipeline_options.h"
#include "progress.h"
#include "stopping.h"
#include "waited.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- values */

/* The shortest text that reads back as the same number, or one of six digits. What is no number has no sign. */
static void number_text(double value, bool exact, char *text, size_t size) {
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, isnan(value) ? fabs(value) : value);
        if (!exact || strtod(text, NULL) == value || isnan(value)) return;
    }
}

static void cell_text(const fv_column *column, fv_cell cell, bool exact, char *text, size_t size) {
    if (column->kind == FV_COLUMN_INTEGER)
        snprintf(text, size, "%lld", (long long)cell.integer);
    else if (column->kind == FV_COLUMN_NATURAL)
        snprintf(text, size, "%llu", (unsigned long long)cell.natural);
    else if (column->kind == FV_COLUMN_TEXT)
        snprintf(text, size, "%s", cell.text ? cell.text : "");
    else
        number_text(cell.real, exact, text, size);
}

enum { MOST_ROWS = 50 };

static void print_table(const fv_table *table) {
    int     columns = table->type.ncolumns, width[FV_MAX_COLUMNS];
    int64_t rows = table->nrows > MOST_ROWS ? MOST_ROWS : table->nrows;
    char    text[512];
    for (int c = 0; c < columns; c++) {
        width[c] = (int)strlen(table->type.column[c].name);
        for (int64_t r = 0; r < rows; r++) {
            cell_text(&table->type.column[c], table->cell[r * columns + c], false, text, sizeof text);
            if ((int)strlen(text) > width[c]) width[c] = (int)strlen(text);
        }
    }
    for (int64_t r = -1; r < rows; r++) {
        for (int c = 0; c < columns; c++) {
            bool left = table->type.column[c].kind == FV_COLUMN_TEXT;
            if (r < 0)
                snprintf(text, sizeof text, "%s", table->type.column[c].name);
            else
                cell_text(&table->type.column[c], table->cell[r * columns + c], false, text, sizeof text);
            printf("%s%*s", c ? "  " : "", c == columns - 1 && left ? 0 : left ? -width[c] : width[c], text);
        }
        printf("\n");
    }
    if (rows < table->nrows) printf("... %lld rows in all; write(..., \"table.csv\") keeps them\n", (long long)table->nrows);
}

static double number_of(const fv_table *table, int column) {
    fv_cell cell = table->cell[column];
    return table->type.column[column].kind == FV_COLUMN_REAL      ? cell.real
           : table->type.column[column].kind == FV_COLUMN_NATURAL ? (double)cell.natural
                                                                  : (double)cell.integer;
}

static int named(const fv_table *table, const char *name) {
    int c = table->type.ncolumns - 1;
    while (c > 0 && strcmp(table->type.column[c].name, name)) c--;
    return c;
}

/* 2,048 */
static void grouped(long long number, char text[32]) {
    char plain[24];
    int  length = snprintf(plain, sizeof plain, "%lld", number), used = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) text[used++] = ',';
        text[used++] = plain[i];
    }
    text[used] = 0;
}

/* A value with two digits of its uncertainty: 0.4312 ± 0.0021 */
static void print_pair(double value, double half) {
    int places = half > 0 ? 1 - (int)floor(log10(half)) : 6;
    if (places >= 0 && places <= 12)
        printf("%.*f ± %.*f", places, value, places, half);
    else
        printf("%.*g ± %.2g", half > 0 ? (int)fmin(fmax(log10(fabs(value) / half) + 2, 3), 15) : 6, value, half);
}

/* value, low, high, confidence, seen, chunks, method */
static void print_estimate(const fv_table *table, double seconds) {
    double value = number_of(table, 0), low = number_of(table, named(table, "low")),
           high = number_of(table, named(table, "high"));
    double half = fmax(high - value, value - low);
    char   seen[32], all[32], text[64];
    cell_text(&table->type.column[0], table->cell[0], true, text, sizeof text);
    grouped((long long)number_of(table, named(table, "seen")), seen);
    grouped((long long)number_of(table, named(table, "chunks")), all);
    if (!strcmp(seen, all)) {
        printf("%s (exact, %s%s chunk%s)\n", text, strcmp(all, "1") ? "all " : "", all, strcmp(all, "1") ? "s" : "");
        return;
    }
    if (isnan(half)) {
        printf("%s (no interval: %s of %s chunks are too few to tell one, %.1f s)\n", text, seen, all, seconds);
        return;
    }
    print_pair(value, half);
    printf(" (%g %%, %s of %s chunks, %.1f s)\n", 100 * number_of(table, named(table, "confidence")), seen, all, seconds);
}

static void print_values(const fv_result *result) {
    for (int i = 0; i < fv_result_printed(result); i++) {
        bool            scalar;
        char            text[512];
        const fv_table *table = fv_result_printed_table(result, i, &scalar);
        if (scalar && table->type.ncolumns > 1)
            print_estimate(table, fv_result_summary(result).seconds);
        else if (scalar) {
            cell_text(&table->type.column[0], table->cell[0], true, text, sizeof text);
            printf("%s\n", text);
        } else
            print_table(table);
    }
}

static cJSON *table_json(const fv_table *table) {
    cJSON *rows = cJSON_CreateArray();
    int    columns = table->type.ncolumns;
    for (int64_t r = 0; r < table->nrows; r++) {
        cJSON *row = cJSON_CreateObject();
        for (int c = 0; c < columns; c++) {
            const fv_column *column = &table->type.column[c];
            fv_cell          cell = table->cell[r * columns + c];
            bool             real = column->kind == FV_COLUMN_REAL;
            char             digits[32];
            if (column->kind == FV_COLUMN_TEXT && cell.text)
                cJSON_AddStringToObject(row, column->name, cell.text);
            else if (column->kind == FV_COLUMN_TEXT || (real && !isfinite(cell.real)))
                cJSON_AddNullToObject(row, column->name);
            else {
                cell_text(column, cell, true, digits, sizeof digits);
                cJSON_AddRawToObject(row, column->name, digits);
            }
        }
        cJSON_AddItemToArray(rows, row);
    }
    return rows;
}

static void print_json(const fv_result *result) {
    fv_result_facts facts = fv_result_summary(result);
    cJSON          *root = cJSON_CreateObject(), *values = cJSON_AddArrayToObject(root, "values"),
          *outputs = cJSON_AddArrayToObject(root, "outputs");
    for (int i = 0; i < fv_result_printed(result); i++) {
        bool scalar;
        cJSON_AddItemToArray(values, table_json(fv_result_printed_table(result, i, &scalar)));
    }
    for (int i = 0; i < fv_result_outputs(result); i++)
        cJSON_AddItemToArray(outputs, cJSON_CreateString(fv_result_output(result, i)));
    cJSON *missing = cJSON_AddArrayToObject(root, "not_made");
    for (int i = 0; i < fv_result_missing(result); i++)
        cJSON_AddItemToArray(missing, cJSON_CreateString(fv_result_missing_file(result, i)));
    cJSON *failures = cJSON_AddArrayToObject(root, "failures");
    for (int i = 0; i < fv_result_failures(result); i++) {
        fv_error error;
        cJSON   *failure = cJSON_CreateObject();
        cJSON_AddStringToObject(failure, "item", fv_result_failure(result, i, &error));
        cJSON_AddStringToObject(failure, "message", error.message);
        cJSON_AddItemToArray(failures, failure);
    }
    cJSON_AddNumberToObject(root, "tasks_run", (double)facts.tasks_run);
    cJSON_AddNumberToObject(root, "outputs_made", (double)facts.outputs_made);
    cJSON_AddNumberToObject(root, "outputs_current", (double)facts.outputs_current);
    cJSON_AddNumberToObject(root, "bytes_read", (double)facts.bytes_read);
    cJSON_AddNumberToObject(root, "bytes_written", (double)facts.bytes_written);
    cJSON_AddNumberToObject(root, "peak_memory", (double)facts.peak_memory);
    cJSON_AddNumberToObject(root, "seconds", facts.seconds);
    cJSON_AddNumberToObject(root, "seconds_opening", facts.seconds_opening);
    cJSON_AddNumberToObject(root, "seconds_merging", facts.seconds_merging);
    fv_stage_time stages[FV_MOST_STAGES];
    int           count = fv_result_stages(result, stages);
    cJSON        *spent = cJSON_AddObjectToObject(root, "seconds_of_workers");
    for (int i = 0; i < count; i++) cJSON_AddNumberToObject(spent, stages[i].stage, stages[i].seconds);
    char *text = cJSON_Print(root);
    printf("%s\n", text);
    free(text);
    cJSON_Delete(root);
}

/* elsewhere: others made the outputs, which are there when this process looks. */
static void print_summary(const fv_result *result, bool elsewhere) {
    fv_result_facts facts = fv_result_summary(result);
    int             made = (int)facts.outputs_made, current = (int)facts.outputs_current;
    for (int i = 0; i < fv_result_outputs(result) && fv_result_outputs(result) <= 10; i++)
        fprintf(stderr, "fovea: %s\n", fv_result_output(result, i));
    if (fv_result_outputs(result) > 10)
        fprintf(stderr, "fovea: %d files, the last one %s\n", fv_result_outputs(result),
                fv_result_output(result, fv_result_outputs(result) - 1));
    if (current && !elsewhere) fprintf(stderr, "fovea: %s up to date\n", made ? "some were" : "everything was");
    if (facts.tasks_run)
        fprintf(stderr, "fovea: %lld task%s in %.2f s", (long long)facts.tasks_run, facts.tasks_run == 1 ? "" : "s",
                facts.seconds);
    fv_stage_time stages[FV_MOST_STAGES];
    int           count = facts.tasks_run ? fv_result_stages(result, stages) : 0;
    for (int i = 0; i < count; i++)
        fprintf(stderr, "%s%s %.2f", i ? ", " : " (workers' time: ", stages[i].stage, stages[i].seconds);
    if (facts.tasks_run) fprintf(stderr, count ? " s)\n" : "\n");
}

/* ---------------------------------------------------------------- running */

static int execute(const char *command, fv_work_call call, void *context, fv_pipeline *pipeline, const fv_execute *o,
                   bool elsewhere) {
    fv_run_options run = { .engine = o->engine,
                           .workers = (int)o->workers,
                           .memory = o->memory.bytes,
                           .patience = o->patience,
                           .store = o->store,
                           .fresh = o->fresh,
                           .overwrite = o->overwrite,
                           .allow_commands = o->allow_commands,
                           .stop_on_error = o->stop_on_error,
                           .items = o->items,
                           .into = o->into,
                           .device = o->device,
                           .part = getenv("FOVEA_PART"), /* estimates start the command with it */
                           .within = o->within,
                           .within_error = o->within_error,
                           .waited = fv_waited(),
                           .cancel = fv_stopping(true),
                           .progress = o->quiet  ? NULL
                                       : o->json ? fv_progress_events
                                                 : fv_progress_show };
    const char    *poison = getenv("FOVEA_POISON"); /* for the conformance tests */
    fv_error       error = { 0 };
    fv_result     *result;
    if (poison) run.poison = atoi(poison) + 1;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    fv_progress_start();
    fv_messages(o->quiet ? 0 : o->verbose ? 2 : 1, fv_progress_clear, fv_progress_redraw);
    fv_status status = call(context, &run, &result, &error);
    fv_progress_end();
    fv_messages(o->quiet ? 0 : 1, NULL, NULL);
    int  code = FV_EXIT_WELL;
    bool partly = status == FV_ERROR_INPUT && fv_result_failures(result) > 0 && !(pipeline && *fv_pipeline_messages(pipeline));
    if (status == FV_OK || partly) {
        signal(SIGPIPE, SIG_DFL); /* the files are complete: a reader such as head, which wants no more, ends this quietly */
        if (o->json)
            print_json(result);
        else
            print_values(result);
        fflush(stdout);
        signal(SIGPIPE, SIG_IGN);
    }
    if (partly) {
        fv_complain(command, error.op[0] ? "%s: %s" : "%s%s", error.op, error.message);
        code = FV_EXIT_FAILED;
    } else if (status != FV_OK) {
        code = fv_explain(command, pipeline, status, &error);
        bool place = pipeline && *fv_pipeline_messages(pipeline); /* the text was judged, and nothing was started */
        bool started = fv_result_summary(result).started || (!place && (status == FV_ERROR_FULL || status == FV_ERROR_IO));
        if (code == FV_EXIT_REFUSED && started) code = FV_EXIT_FAILED;
    }
    if (!o->quiet && !o->json && (status == FV_OK || partly)) print_summary(result, elsewhere);
    fv_result_free(result);
    return code;
}

static fv_status run_pipeline(void *context, const fv_run_options *run, fv_result **result, fv_error *error) {
    return fv_pipeline_run(context, run, result, error);
}

int fv_execute_pipeline(const char *command, fv_pipeline *pipeline, const fv_execute *o) {
    int code = execute(command, run_pipeline, pipeline, pipeline, o, false);
    fv_pipeline_free(pipeline);
    return code;
}

int fv_execute_work(const char *command, fv_work_call call, void *context, fv_pipeline *pipeline, const fv_execute *o) {
    return execute(command, call, context, pipeline, o, true);
}
