/* The table of units. */
#include "units/unit_table.h"
#include "base/file.h"
#include "op/format.h"
#include <math.h>
#include <stdlib.h>

static const fv_table_type type = {
    .ncolumns = 12,
    .column = { { "unit", FV_COLUMN_TEXT },
                { "state", FV_COLUMN_TEXT },
                { "code", FV_COLUMN_INTEGER },
                { "signal", FV_COLUMN_INTEGER },
                { "tries", FV_COLUMN_INTEGER },
                { "seconds", FV_COLUMN_REAL },
                { "cpu_seconds", FV_COLUMN_REAL },
                { "memory", FV_COLUMN_INTEGER },
                { "started", FV_COLUMN_REAL },
                { "host", FV_COLUMN_TEXT },
                { "why", FV_COLUMN_TEXT },
                { "command", FV_COLUMN_TEXT } },
};

typedef struct rows {
    fv_table_source     source;
    const fv_unit_list *list;
    int64_t             next;
    fv_cell             cells[12];
    char               *command;
} rows;

static const char *state_of(const fv_unit *unit) {
    switch (unit->stand) {
    case FV_UNIT_DONE: return unit->result.kept ? "kept" : "done";
    case FV_UNIT_FAILED: return "failed";
    case FV_UNIT_BLOCKED: return "blocked";
    default: return "waiting";
    }
}

static fv_status next(fv_table_source *source, const fv_cell **cells, int64_t *nrows, fv_error *error) {
    rows *r = (rows *)source;
    (void)error;
    free(r->command);
    r->command = NULL;
    *nrows = r->next < r->list->count;
    if (!*nrows) return FV_OK;
    const fv_unit        *unit = &r->list->units[r->next++];
    const fv_unit_result *result = &unit->result;
    r->command = fv__unit_command(r->list, unit);
    r->cells[0].text = unit->name;
    r->cells[1].text = state_of(unit);
    r->cells[2].integer = result->code;
    r->cells[3].integer = result->signal;
    r->cells[4].integer = result->tries;
    r->cells[5].real = result->tries ? result->seconds : NAN;
    r->cells[6].real = result->tries ? result->cpu_seconds : NAN;
    r->cells[7].integer = result->memory;
    r->cells[8].real = result->tries ? result->started : NAN;
    r->cells[9].text = result->host;
    r->cells[10].text = result->why;
    r->cells[11].text = r->command;
    *cells = r->cells;
    return FV_OK;
}

fv_status fv__unit_table_check(const char *path, fv_error *error) {
    const fv_table_format *format = fv__table_format_for(path);
    if (!format) return fv_fail(error, FV_ERROR_USAGE, "%s: results are a table; expected a name such as units.csv", path);
    return format->check ? format->check(path, &type, error) : FV_OK;
}

fv_status fv__unit_table_write(const char *path, const fv_unit_list *list, fv_error *error) {
    const fv_table_format *format = fv__table_format_for(path);
    rows                   r = { .source = { next }, .list = list };
    fv_table_options       options = { 0 };
    const char            *name = fv__path_name(path);
    char                  *temporary = fv__sprintf(format->in_place ? "%.*s%s" : "%.*s.%s.fovea", (int)(name - path), path, name);
    fv_status              status = format->write(temporary, path, &type, &options, &r.source, error);
    if (status == FV_OK && !format->in_place) status = fv__path_replace(temporary, path, error);
    free(r.command);
    free(temporary);
    return status;
}
