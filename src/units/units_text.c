/* Options of units as JSON. */
#include "units/units_text.h"
#include <cjson/cJSON.h>
#include <stddef.h>

typedef enum kind { TEXT, WHOLE, REAL, FLAG } kind;

typedef struct field {
    const char *name;
    kind        kind;
    size_t      offset;
} field;

#define FIELD(name, kind)                                                                                                        \
    { #name, kind, offsetof(fv_units_options, name) }

static const field fields[] = {
    FIELD(command, TEXT),       FIELD(shell, FLAG),    FIELD(from, TEXT),   FIELD(name, TEXT),  FIELD(after, TEXT),
    FIELD(output, TEXT),        FIELD(cpus, TEXT),     FIELD(memory, TEXT), FIELD(time, TEXT),  FIELD(ranks, TEXT),
    FIELD(device, TEXT),        FIELD(order, TEXT),    FIELD(by, TEXT),     FIELD(ok, TEXT),    FIELD(workers, WHOLE),
    FIELD(memory_bound, WHOLE), FIELD(retries, WHOLE), FIELD(pause, REAL),  FIELD(store, TEXT), FIELD(overwrite, FLAG),
    FIELD(again, FLAG),
};

char *fv__units_text(const fv_units_options *o) {
    cJSON *root = cJSON_CreateObject(), *files = cJSON_AddArrayToObject(root, "files");
    for (int64_t i = 0; i < o->nfiles; i++) cJSON_AddItemToArray(files, cJSON_CreateString(o->files[i]));
    for (int i = 0; i < FV_COUNT(fields); i++) {
        const void *place = (const char *)o + fields[i].offset;
        const char *text = fields[i].kind == TEXT ? *(const char *const *)place : NULL;
        if (text) cJSON_AddStringToObject(root, fields[i].name, text);
        if (fields[i].kind == WHOLE) cJSON_AddNumberToObject(root, fields[i].name, (double)*(const int64_t *)place);
        if (fields[i].kind == REAL) cJSON_AddNumberToObject(root, fields[i].name, *(const double *)place);
        if (fields[i].kind == FLAG) cJSON_AddBoolToObject(root, fields[i].name, *(const bool *)place);
    }
    char *text = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    return text;
}

static void read_field(const field *f, const cJSON *value, fv_arena *arena, fv_units_options *options) {
    void *place = (char *)options + f->offset;
    if (f->kind == TEXT && cJSON_IsString(value)) *(const char **)place = fv__arena_strdup(arena, value->valuestring);
    if (f->kind == WHOLE && cJSON_IsNumber(value)) *(int64_t *)place = (int64_t)value->valuedouble;
    if (f->kind == REAL && cJSON_IsNumber(value)) *(double *)place = value->valuedouble;
    if (f->kind == FLAG) *(bool *)place = cJSON_IsTrue(value);
}

fv_status fv__units_read(const char *text, fv_arena *arena, fv_units_options *options, fv_error *error) {
    cJSON *root = cJSON_Parse(text);
    *options = (fv_units_options){ 0 };
    if (!root) return fv_fail(error, FV_ERROR_INPUT, "what units were asked for cannot be read");
    const cJSON *files = cJSON_GetObjectItemCaseSensitive(root, "files"), *file;
    const char **list = fv__arena_alloc(arena, ((size_t)cJSON_GetArraySize(files) + 1) * sizeof *list);
    cJSON_ArrayForEach(file, files) {
        if (cJSON_IsString(file)) list[options->nfiles++] = fv__arena_strdup(arena, file->valuestring);
    }
    options->files = list;
    for (int i = 0; i < FV_COUNT(fields); i++)
        read_field(&fields[i], cJSON_GetObjectItemCaseSensitive(root, fields[i].name), arena, options);
    cJSON_Delete(root);
    return FV_OK;
}
