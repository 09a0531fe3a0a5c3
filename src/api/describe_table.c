/* What a table file holds: its tables, their columns and rows. */
#include "api/describe_table.h"
#include "api/file_facts.h"
#include "api/paragraph.h"
#include <stdlib.h>

static const char *const kinds[] = {
    [FV_COLUMN_INTEGER] = "integer", [FV_COLUMN_REAL] = "real", [FV_COLUMN_TEXT] = "text", [FV_COLUMN_NATURAL] = "integer"
};

/* reader NULL: it cannot be read, and why. */
typedef fv_status (*visitor)(void *context, const char *name, const fv_table_reader *reader, const char *why);

static fv_status visit_one(const fv_table_format *format, const char *path, const char *table, visitor visit, void *context,
                           fv_error *error) {
    fv_table_reader *reader;
    char             stem[256];
    FV_TRY(format->open(path, table, &reader, error));
    fv__path_stem(path, stem, sizeof stem);
    fv_status status = visit(context, table ? table : stem, reader, NULL);
    format->close(reader);
    return status;
}

static fv_status visit_all(const fv_table_format *format, const char *path, const char *table, visitor visit, void *context,
                           fv_error *error) {
    fv_bytes  names = { 0 };
    fv_status status = FV_OK;
    if (!format->tables || (table && *table)) return visit_one(format, path, table, visit, context, error);
    FV_TRY(format->tables(path, &names, error));
    for (size_t at = 0, next; at < names.size && status == FV_OK; at = next) {
        const char *name = (char *)names.data + at;
        fv_error    why = { 0 };
        next = at + strlen(name) + 1;
        status = visit_one(format, path, name, visit, context, &why);
        bool several = names.size > strlen((char *)names.data) + 1;
        if (status == FV_ERROR_INPUT && several)
            status = visit(context, name, NULL, why.message); /* the others may be good */
        else if (status != FV_OK && error)
            *error = why;
    }
    fv__bytes_release(&names);
    return status;
}

static fv_status add_text(void *context, const char *name, const fv_table_reader *reader, const char *why) {
    fv_bytes columns = { 0 };
    if (!reader) {
        char *refused = fv__sprintf("%s cannot be read: %s", name, why);
        fv__put_entry(context, "table", fv__facts_width(&columns, 24), refused);
        free(refused);
        return FV_OK;
    }
    for (int c = 0; c < reader->type.ncolumns; c++)
        fv__bytes_printf(&columns, "%s%s (%s)", c ? ", " : "", reader->type.column[c].name, kinds[reader->type.column[c].kind]);
    char *rows = fv__sprintf("%s, %lld row%s", name, (long long)reader->nrows, reader->nrows == 1 ? "" : "s");
    int   width = fv__facts_width(&reader->facts, 24);
    fv__put_entry(context, "table", width, rows);
    fv__put_entry(context, "columns", width, columns.data ? (char *)columns.data : "none");
    fv__put_facts(&reader->facts, width, context);
    free(rows);
    fv__bytes_release(&columns);
    return FV_OK;
}

fv_status fv__table_file_text(const fv_table_format *format, const char *path, const char *table, fv_bytes *out,
                              fv_error *error) {
    char      *title = fv__sprintf("%s: %s", format->name, format->brief), size[24];
    fv_file_id id;
    fv_status  status = fv__file_identify(path, &id, error);
    if (status == FV_OK) {
        fv__bytes_printf(out, "%s\n", path);
        fv__put_entry(out, "format", 8, title);
        fv_size_format(id.size, size);
        fv__put_entry(out, "size", 8, size);
        status = visit_all(format, path, table, add_text, out, error);
    }
    free(title);
    return status;
}

static fv_status add_json(void *context, const char *name, const fv_table_reader *reader, const char *why) {
    cJSON *table = cJSON_CreateObject(), *columns = reader ? cJSON_CreateArray() : NULL;
    if (!reader) {
        cJSON_AddStringToObject(table, "name", name);
        cJSON_AddStringToObject(table, "error", why);
        cJSON_AddItemToArray(context, table);
        return FV_OK;
    }
    for (int c = 0; c < reader->type.ncolumns; c++) {
        cJSON *column = cJSON_CreateObject();
        cJSON_AddStringToObject(column, "name", reader->type.column[c].name);
        cJSON_AddStringToObject(column, "kind", kinds[reader->type.column[c].kind]);
        cJSON_AddItemToArray(columns, column);
    }
    cJSON_AddStringToObject(table, "name", name);
    cJSON_AddNumberToObject(table, "rows", (double)reader->nrows);
    cJSON_AddItemToObject(table, "columns", columns);
    if (reader->facts.size) cJSON_AddItemToObject(table, "facts", fv__facts_json(&reader->facts));
    cJSON_AddItemToArray(context, table);
    return FV_OK;
}

fv_status fv__table_file_json(const fv_table_format *format, const char *path, const char *table, cJSON **json, fv_error *error) {
    cJSON    *tables = cJSON_CreateArray();
    fv_status status = visit_all(format, path, table, add_json, tables, error);
    if (status != FV_OK) {
        cJSON_Delete(tables);
        return status;
    }
    *json = cJSON_CreateObject();
    cJSON_AddStringToObject(*json, "file", path);
    cJSON_AddStringToObject(*json, "format", format->name);
    cJSON_AddItemToObject(*json, "tables", tables);
    return FV_OK;
}
