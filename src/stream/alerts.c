/* Rules on the rows of tables: those that they speak of are told at once. */
#include "base/file.h"
#include "op/condition.h"
#include "stream/stream_parts.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

/* "cells: mean < 10": the name of a table, and what is wrong with a row. */
static const char *condition_of(const char *rule, char name[128]) {
    const char *colon = strchr(rule, ':');
    size_t      length = colon ? (size_t)(colon - rule) : 0;
    if (!colon || !length || length >= 128) return NULL;
    snprintf(name, 128, "%.*s", (int)length, rule);
    return colon + 1 + strspn(colon + 1, " ");
}

fv_status fv__alerts_check(const fv_stream_options *options, fv_error *error) {
    char name[128];
    for (int i = 0; i < options->nalerts; i++)
        if (!condition_of(options->alerts[i], name))
            return fv_fail(error, FV_ERROR_USAGE, "--alert %s: expected TABLE: CONDITION, as \"cells: mean < 10\"",
                           options->alerts[i]);
    if (options->on_alert && !options->nalerts)
        return fv_fail(error, FV_ERROR_USAGE, "--on-alert %s: --alert says when", options->on_alert);
    return FV_OK;
}

/* A table is called by its name in the text or in its file, or by that of the file. */
static bool is_called(const fv_made_table *table, const char *name) {
    char stem[256] = "";
    if (table->file) fv__path_stem(table->file, stem, sizeof stem);
    return !strcmp(name, stem) || (table->table && !strcmp(name, table->table)) || !strcmp(name, table->name);
}

static void run_command(const char *command, const char *json) {
    FILE *pipe = popen(command, "w");
    if (pipe) fprintf(pipe, "%s\n", json);
    if (!pipe || pclose(pipe)) fv__log_failure("fovea: the command of an alert failed: %s", command);
}

static void tell(fv_stream_run *run, const fv_errand *work, const char *rule, const fv_made_table *table, const fv_cell *cells) {
    fv_made_table one = { .type = table->type };
    fv__rows_put(&one.rows, &one.type, cells, 1);
    char  *row = fv__rows_json(&one);
    cJSON *event = cJSON_CreateObject();
    cJSON_AddStringToObject(event, "event", "alert");
    cJSON_AddStringToObject(event, "item", work->name);
    cJSON_AddStringToObject(event, "rule", rule);
    cJSON_AddItemToObject(event, "rows", cJSON_Parse(row));
    char *json = cJSON_PrintUnformatted(event);
    fv__log_failure("fovea: alert: %s: %s: %s", work->name, rule, row);
    fv__stream_event(run, json);
    if (run->options->on_alert) run_command(run->options->on_alert, json);
    free(json);
    free(row);
    cJSON_Delete(event);
    fv__bytes_release(&one.rows);
}

static fv_status look_at(fv_stream_run *run, const fv_errand *work, const char *rule, const char *condition_text,
                         const fv_made_table *table, fv_error *error) {
    fv_condition   condition;
    fv_cell        cells[FV_MAX_COLUMNS];
    const uint8_t *at = table->rows.data, *end = at + table->rows.size;
    FV_TRY(fv__condition_parse(&condition, "alert", condition_text, &table->type, error));
    while (fv__rows_get(&table->type, &at, end, cells, 1)) {
        if (!fv__condition_holds(&condition, &table->type, cells)) continue;
        run->facts.alerts++;
        tell(run, work, rule, table, cells);
    }
    return FV_OK;
}

fv_status fv__alerts_look(fv_stream_run *run, const fv_errand *work, fv_error *error) {
    for (int i = 0; i < run->options->nalerts; i++) {
        char        name[128];
        const char *condition = condition_of(run->options->alerts[i], name);
        bool        found = false;
        fv_bytes    known = { 0 };
        for (int t = 0; t < work->made.ntables; t++) {
            const fv_made_table *table = &work->made.tables[t];
            fv__bytes_printf(&known, "%s%s", t ? ", " : "", table->table ? table->table : table->name);
            if (!is_called(table, name)) continue;
            found = true;
            FV_TRY(look_at(run, work, run->options->alerts[i], condition, table, error));
        }
        if (!found)
            fv_fail(error, FV_ERROR_USAGE, "--alert %s: the text makes no table of that name; it makes: %.*s",
                    run->options->alerts[i], (int)known.size, known.data ? (char *)known.data : "");
        fv__bytes_release(&known);
        if (!found) return FV_ERROR_USAGE;
    }
    return FV_OK;
}
