/* Rows that the text calls alerts (operator alert) are told at once. */
#include "stream/stream_parts.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

static void run_command(const char *command, const char *json) {
    FILE *pipe = popen(command, "w");
    if (pipe) fprintf(pipe, "%s\n", json);
    if (!pipe || pclose(pipe)) fv__log_failure("fovea: the command of an alert failed: %s", command);
}

static void tell(fv_stream_run *run, const fv_errand *work, const fv_made_table *table, const fv_cell *cells) {
    fv_bytes row = { 0 };
    fv__rows_put(&row, &table->type, cells, 1);
    char  *text = fv__rows_json(&table->type, &row);
    cJSON *event = cJSON_CreateObject();
    cJSON_AddStringToObject(event, "event", "alert");
    cJSON_AddStringToObject(event, "item", work->name);
    cJSON_AddStringToObject(event, "rule", table->alert);
    cJSON_AddItemToObject(event, "rows", cJSON_Parse(text));
    char *json = cJSON_PrintUnformatted(event);
    fv__log_failure("fovea: alert: %s: %s: %s", work->name, table->alert, text);
    fv__stream_event(run, json);
    if (run->options->on_alert) run_command(run->options->on_alert, json);
    free(json);
    free(text);
    cJSON_Delete(event);
    fv__bytes_release(&row);
}

void fv__alerts_tell(fv_stream_run *run, const fv_errand *work) {
    for (int t = 0; t < work->made.ntables; t++) {
        const fv_made_table *table = &work->made.tables[t];
        const uint8_t       *at = table->rows.data, *end = at + table->rows.size;
        fv_cell              cells[FV_MAX_COLUMNS];
        while (table->alert && fv__rows_get(&table->type, &at, end, cells, 1)) {
            pthread_mutex_lock(&run->mutex);
            run->facts.alerts++;
            pthread_mutex_unlock(&run->mutex);
            tell(run, work, table, cells);
        }
    }
}
