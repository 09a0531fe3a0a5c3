/* The frozen manifest of a run. */
#include "engines/manifest.h"
#include "base/file.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

enum { VERSION = 1 };

/* ---------------------------------------------------------------- freezing */

static fv_status list_items(const fv_bindings *bindings, cJSON *lists, fv_error *error) {
    (void)error;
    for (int l = 0; l < bindings->nlists; l++) {
        cJSON *list = cJSON_CreateObject(), *files = cJSON_CreateArray();
        cJSON_AddStringToObject(list, "pattern", bindings->lists[l].pattern);
        for (int64_t i = 0; i < bindings->lists[l].count; i++) {
            fv_file_id id = { 0 };
            char       text[64];
            cJSON     *file = cJSON_CreateArray();
            fv_file_identify(bindings->lists[l].paths[i], &id, NULL); /* one that vanished is reported when it is opened */
            snprintf(text, sizeof text, "%lld %lld", (long long)id.size, (long long)id.mtime_ns);
            cJSON_AddItemToArray(file, cJSON_CreateString(bindings->lists[l].paths[i]));
            cJSON_AddItemToArray(file, cJSON_CreateString(text));
            cJSON_AddItemToArray(files, file);
        }
        cJSON_AddItemToObject(list, "files", files);
        cJSON_AddItemToArray(lists, list);
    }
    return FV_OK;
}

static char *render(const fv_program *program, const fv_bindings *bindings, const fv_plan_options *plan_options) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "version", VERSION);
    cJSON_AddStringToObject(root, "file", program->file);
    cJSON_AddStringToObject(root, "text", program->text);
    cJSON *parameters = cJSON_AddArrayToObject(root, "parameters");
    for (int p = 0; p < bindings->nparameters; p++) {
        cJSON *parameter = cJSON_CreateObject(), *values = cJSON_CreateArray();
        cJSON_AddStringToObject(parameter, "name", bindings->parameters[p].name);
        for (int v = 0; v < bindings->parameters[p].count; v++) {
            fv_bytes text = { 0 };
            fv_literal_format(&bindings->parameters[p].values[v], &text);
            cJSON *value = cJSON_CreateArray();
            cJSON_AddItemToArray(value, cJSON_CreateString(bindings->parameters[p].texts[v]));
            cJSON_AddItemToArray(value, cJSON_CreateString((char *)text.data));
            cJSON_AddItemToArray(values, value);
            fv_bytes_release(&text);
        }
        cJSON_AddItemToObject(parameter, "values", values);
        cJSON_AddItemToArray(parameters, parameter);
    }
    cJSON *chunk = cJSON_AddArrayToObject(root, "chunk");
    for (int d = 0; d < plan_options->chunk_ndim; d++) cJSON_AddItemToArray(chunk, cJSON_CreateNumber((double)plan_options->chunk[d]));
    list_items(bindings, cJSON_AddArrayToObject(root, "items"), NULL);
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    return text;
}

fv_status fv_manifest_freeze(const char *folder, const fv_program *program, const fv_bindings *bindings,
                             const fv_plan_options *plan_options, char **run_folder, fv_error *error) {
    char     *text = render(program, bindings, plan_options), hex[33];
    fv_hasher hasher;
    fv_hasher_init(&hasher);
    fv_hasher_text(&hasher, text);
    for (int a = 0; a < bindings->narrays; a++) {
        fv_hash content = fv_hash_bytes(bindings->arrays[a].data, (size_t)fv_image_type_bytes(&bindings->arrays[a].type));
        fv_hasher_add(&hasher, &content, sizeof content);
    }
    fv_hash_format(fv_hasher_finish(&hasher), hex);
    hex[16] = 0;
    *run_folder = fv_sprintf("%s/runs/%s", folder, hex);
    char     *path = fv_sprintf("%s/manifest.json", *run_folder);
    fv_status status = fv_path_make_folders(*run_folder, error);
    if (status == FV_OK && !fv_file_exists(path)) status = fv_file_write_all(path, text, strlen(text), false, error);
    free(path);
    free(text);
    return status;
}

/* ---------------------------------------------------------------- loading */

static const char *text_of(const cJSON *object, const char *name) {
    const cJSON *field = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(field) ? field->valuestring : NULL;
}

static const char *element(const cJSON *array, int index) {
    const cJSON *item = cJSON_GetArrayItem(array, index);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static void load_parameters(const cJSON *root, fv_bindings *bindings) {
    const cJSON *parameters = cJSON_GetObjectItemCaseSensitive(root, "parameters"), *p, *v;
    bindings->ncombinations = 1;
    cJSON_ArrayForEach(p, parameters) {
        bindings->parameters = fv_realloc(bindings->parameters, (size_t)(bindings->nparameters + 1) * sizeof *bindings->parameters);
        fv_parameter *parameter = &bindings->parameters[bindings->nparameters++];
        const cJSON  *values = cJSON_GetObjectItemCaseSensitive(p, "values");
        size_t        count = (size_t)cJSON_GetArraySize(values);
        *parameter = (fv_parameter){ .name = fv_arena_strdup(&bindings->arena, text_of(p, "name")) };
        parameter->values = fv_calloc((count + 1) * sizeof *parameter->values);
        parameter->texts = fv_calloc((count + 1) * sizeof *parameter->texts);
        cJSON_ArrayForEach(v, values) {
            parameter->texts[parameter->count] = fv_arena_strdup(&bindings->arena, element(v, 0));
            fv_literal_parse(element(v, 1), &parameter->values[parameter->count++], &bindings->arena);
        }
        bindings->ncombinations *= FV_MAX(parameter->count, 1);
    }
}

static void load_items(const cJSON *root, fv_bindings *bindings) {
    const cJSON *lists = cJSON_GetObjectItemCaseSensitive(root, "items"), *l, *f;
    bindings->nitems = 1;
    cJSON_ArrayForEach(l, lists) {
        const cJSON *files = cJSON_GetObjectItemCaseSensitive(l, "files");
        bindings->lists = fv_realloc(bindings->lists, (size_t)(bindings->nlists + 1) * sizeof *bindings->lists);
        fv_item_list *list = &bindings->lists[bindings->nlists++];
        *list = (fv_item_list){ .pattern = fv_arena_strdup(&bindings->arena, text_of(l, "pattern")) };
        list->paths = fv_arena_alloc(&bindings->arena, ((size_t)cJSON_GetArraySize(files) + 1) * sizeof *list->paths);
        cJSON_ArrayForEach(f, files) list->paths[list->count++] = fv_arena_strdup(&bindings->arena, element(f, 0));
        bindings->nitems = list->count;
        bindings->collection = true;
    }
}

fv_status fv_manifest_load(const char *run_folder, fv_program **program, fv_bindings *bindings, fv_plan_options *plan_options,
                           fv_error *error) {
    char     *path = fv_sprintf("%s/manifest.json", run_folder);
    fv_bytes  bytes = { 0 };
    fv_status status = fv_file_read_all(path, (size_t)1 << 32, &bytes, error);
    cJSON    *root = status == FV_OK ? cJSON_Parse((char *)bytes.data) : NULL;
    *bindings = (fv_bindings){ 0 };
    *plan_options = (fv_plan_options){ 0 };
    *program = NULL;
    if (status == FV_OK && (!root || !text_of(root, "text") || !text_of(root, "file")))
        status = fv_fail(error, FV_ERROR_INPUT, "%s is damaged", path);
    if (status == FV_OK) {
        fv_diagnostics none = { 0 };
        *program = fv_program_parse(text_of(root, "file"), text_of(root, "text"), &none);
        fv_diagnostics_release(&none);
        load_parameters(root, bindings);
        load_items(root, bindings);
        const cJSON *c;
        cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(root, "chunk"))
            if (plan_options->chunk_ndim < FV_MAX_DIMS) plan_options->chunk[plan_options->chunk_ndim++] = (int64_t)cJSON_GetNumberValue(c);
        plan_options->collection = bindings->collection;
    }
    cJSON_Delete(root);
    fv_bytes_release(&bytes);
    free(path);
    return status;
}
