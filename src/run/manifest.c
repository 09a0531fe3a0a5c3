/* The frozen manifest of a run. */
#include "run/manifest.h"
#include "base/file.h"
#include "base/program.h"
#include "base/take.h"
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 1 };

/* ---------------------------------------------------------------- freezing */

static void list_items(const fv_bindings *bindings, cJSON *lists) {
    for (int l = 0; l < bindings->nlists; l++) {
        cJSON *list = cJSON_CreateObject(), *files = cJSON_CreateArray();
        cJSON_AddStringToObject(list, "pattern", bindings->lists[l].pattern);
        cJSON_AddNumberToObject(list, "root", (double)bindings->lists[l].root);
        for (int64_t i = 0; i < bindings->lists[l].count; i++) {
            fv_file_id id = { 0 };
            char       text[64];
            cJSON     *file = cJSON_CreateArray();
            fv__file_identify(bindings->lists[l].paths[i], &id, NULL); /* one that vanished is reported when it is opened */
            snprintf(text, sizeof text, "%lld %lld", (long long)id.size, (long long)id.mtime_ns);
            cJSON_AddItemToArray(file, cJSON_CreateString(bindings->lists[l].paths[i]));
            cJSON_AddItemToArray(file, cJSON_CreateString(text));
            cJSON_AddItemToArray(files, file);
        }
        cJSON_AddItemToObject(list, "files", files);
        cJSON_AddItemToArray(lists, list);
    }
}

/* An image type as the bytes of its struct in hex: read back by the same build. */
static void type_text(const fv_image_type *type, fv_bytes *out) {
    const uint8_t *bytes = (const uint8_t *)type;
    for (size_t i = 0; i < sizeof *type; i++) fv__bytes_printf(out, "%02x", bytes[i]);
}

static void list_arrays(const fv_bindings *bindings, cJSON *arrays) {
    for (int a = 0; a < bindings->narrays; a++) {
        cJSON   *array = cJSON_CreateObject();
        fv_bytes type = { 0 };
        char     hex[33];
        type_text(&bindings->arrays[a].type, &type);
        fv__hash_format(bindings->arrays[a].content, hex);
        cJSON_AddStringToObject(array, "name", bindings->arrays[a].name);
        cJSON_AddStringToObject(array, "type", (char *)type.data);
        cJSON_AddStringToObject(array, "content", hex);
        if (bindings->arrays[a].read) {
            cJSON *chunk = cJSON_AddArrayToObject(array, "chunk");
            for (int d = 0; d < bindings->arrays[a].type.ndim; d++)
                cJSON_AddItemToArray(chunk, cJSON_CreateNumber((double)bindings->arrays[a].chunk[d]));
        }
        cJSON_AddItemToArray(arrays, array);
        fv__bytes_release(&type);
    }
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
            fv__literal_format(&bindings->parameters[p].values[v], &text);
            cJSON *value = cJSON_CreateArray();
            cJSON_AddItemToArray(value, cJSON_CreateString(bindings->parameters[p].texts[v]));
            cJSON_AddItemToArray(value, cJSON_CreateString((char *)text.data));
            cJSON_AddItemToArray(values, value);
            fv__bytes_release(&text);
        }
        cJSON_AddItemToObject(parameter, "values", values);
        cJSON_AddItemToArray(parameters, parameter);
    }
    cJSON *chunk = cJSON_AddArrayToObject(root, "chunk");
    for (int d = 0; d < plan_options->chunk_ndim; d++)
        cJSON_AddItemToArray(chunk, cJSON_CreateNumber((double)plan_options->chunk[d]));
    if (bindings->part.length) {
        cJSON *part = cJSON_AddObjectToObject(root, "part");
        cJSON_AddStringToObject(part, "axis", bindings->part.axis);
        cJSON_AddNumberToObject(part, "length", (double)bindings->part.length);
        cJSON_AddNumberToObject(part, "take", (double)bindings->part.take);
    }
    if (bindings->within.confidence) {
        cJSON *within = cJSON_AddObjectToObject(root, "within");
        cJSON_AddNumberToObject(within, "time", bindings->within.time);
        cJSON_AddNumberToObject(within, "error", bindings->within.error);
    }
    if (bindings->of_items.confidence) {
        cJSON *of_items = cJSON_AddObjectToObject(root, "of_items");
        cJSON_AddNumberToObject(of_items, "confidence", bindings->of_items.confidence);
    }
    if (bindings->into) cJSON_AddStringToObject(root, "into", bindings->into);
    if (bindings->commands) cJSON_AddBoolToObject(root, "commands", true);
    if (bindings->device) {
        cJSON *device = cJSON_AddObjectToObject(root, "device");
        cJSON_AddStringToObject(device, "name", bindings->device);
        cJSON_AddStringToObject(device, "kind", bindings->on.kind);
        cJSON_AddNumberToObject(device, "memory", (double)bindings->on.memory);
        cJSON_AddBoolToObject(device, "strict", bindings->on.strict);
    }
    list_items(bindings, cJSON_AddArrayToObject(root, "items"));
    list_arrays(bindings, cJSON_AddArrayToObject(root, "arrays"));
    cJSON *keeps = cJSON_AddArrayToObject(root, "keeps");
    for (int k = 0; k < bindings->nkeeps; k++) cJSON_AddItemToArray(keeps, cJSON_CreateString(bindings->keeps[k]));
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    return text;
}

static fv_hash identity_of(const char *text) {
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, text);
    return fv__hasher_finish(&hasher);
}

/* own: only this user can have written it. Somebody else's consent to run programs is none of this user's. */
static fv_status read_manifest(const char *path, fv_bytes *bytes, bool *own, fv_error *error) {
    struct stat st;
    int         fd;
    FV_TRY(fv__file_open_read(path, &fd, error));
    fv_status status = fstat(fd, &st) ? fv_fail(error, FV_ERROR_IO, "cannot read %s", path) : FV_OK;
    size_t    size = status == FV_OK ? (size_t)st.st_size : 0;
    if (status == FV_OK) status = fv__bytes_need(bytes, size + 1, error);
    if (status == FV_OK) status = fv__file_read_at(fd, bytes->data, size, 0, path, error);
    fv__file_close(fd, path, NULL);
    if (status != FV_OK) return status;
    bytes->size = size;
    bytes->data[size] = 0;
    *own = st.st_uid == geteuid() && !(st.st_mode & 022);
    return FV_OK;
}

/* A power cut may have left less, and what another user wrote does not hold this one's consent. */
static bool holds(const char *path, const char *text, bool consent) {
    fv_bytes bytes = { 0 };
    bool     own, read = fv__file_exists(path) && read_manifest(path, &bytes, &own, NULL) == FV_OK;
    bool     same = read && !strcmp((char *)bytes.data, text) && (own || !consent);
    fv__bytes_release(&bytes);
    return same;
}

/* Never such that others can write it, whatever the user's umask is. */
static fv_status write_manifest(const char *path, const char *text, fv_error *error) {
    char     *temporary = fv__sprintf("%s.%d-%.0f", path, (int)getpid(), fv__now() * 1e9);
    fv_status status = fv__path_remove(temporary, error);
    int       fd = status == FV_OK ? open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) : -1;
    if (status == FV_OK && fd < 0) status = fv_fail(error, FV_ERROR_IO, "cannot write %s: %s", temporary, strerror(errno));
    if (fd >= 0) {
        status = fv__file_write_at(fd, text, strlen(text), 0, path, error);
        fv_status closed = fv__file_close(fd, path, status == FV_OK ? error : NULL);
        if (status == FV_OK) status = closed;
        if (status == FV_OK) status = fv__rename(temporary, path, error);
        if (status != FV_OK) unlink(temporary);
    }
    free(temporary);
    return status;
}

fv_status fv__manifest_freeze(const char *folder, const fv_program *program, fv_bindings *bindings,
                              const fv_plan_options *plan_options, char **run_folder, fv_error *error) {
    char *text = render(program, bindings, plan_options), hex[33];
    bindings->run = identity_of(text);
    fv__hash_format(bindings->run, hex);
    hex[16] = 0;
    *run_folder = fv__sprintf("%s/runs/%s", folder, hex);
    char     *path = fv__sprintf("%s/manifest.json", *run_folder);
    fv_status status = fv__path_make_folders(*run_folder, error);
    if (status == FV_OK && !holds(path, text, bindings->commands)) status = write_manifest(path, text, error);
    free(path);
    free(text);
    return status;
}

static char *array_path(const char *run_folder, const char *name) { return fv__sprintf("%s/array-%s", run_folder, name); }

/* Copies what the program provides to a file, a piece at a time. */
static fv_status spool_pieces(const fv_array *array, int fd, const char *path, fv_error *error) {
    fv_lattice lattice;
    fv_bytes   piece = { 0 };
    fv_status  status = FV_OK;
    size_t     element = fv_dtype_size(array->type.dtype);
    fv__lattice_init(&lattice, array->type.ndim, array->type.shape, array->chunk);
    for (int64_t k = 0, n = fv__lattice_count(&lattice); k < n && status == FV_OK; k++) {
        fv_region region = fv__lattice_chunk(&lattice, k);
        fv_block  block;
        fv_rows   rows;
        status = fv__bytes_need(&piece, (size_t)fv__region_voxels(&region) * element, error);
        if (status != FV_OK) break;
        fv__block_init(&block, array->type.dtype, &region, piece.data);
        status = array->read(array->context, region.start, region.size, block.stride, block.data, error);
        for (fv__rows_begin(&rows, &region); status == FV_OK && fv__rows_next(&rows);) {
            int64_t offset = 0;
            for (int d = 0; d < region.ndim; d++) offset = offset * array->type.shape[d] + rows.position[d];
            status = fv__file_write_at(fd, fv__block_at(&block, rows.position), (size_t)region.size[region.ndim - 1] * element,
                                       offset * (int64_t)element, path, error);
        }
    }
    fv__bytes_release(&piece);
    return status;
}

/* The file gets its name when it is whole. */
static fv_status spool_source(const fv_array *array, const char *path, fv_error *error) {
    char     *temporary = fv__sprintf("%s.%d", path, (int)getpid());
    int       fd;
    fv_status status = fv__file_open_write(temporary, &fd, error);
    if (status == FV_OK) {
        status = spool_pieces(array, fd, temporary, error);
        fv_status closed = fv__file_close(fd, temporary, status == FV_OK ? error : NULL);
        if (status == FV_OK) status = closed;
        if (status == FV_OK) status = fv__rename(temporary, path, error);
        if (status != FV_OK) fv__path_remove(temporary, NULL);
    }
    free(temporary);
    return status;
}

fv_status fv__manifest_spool(const char *run_folder, const fv_bindings *bindings, fv_error *error) {
    fv_status status = FV_OK;
    for (int a = 0; a < bindings->narrays && status == FV_OK; a++) {
        const fv_array *array = &bindings->arrays[a];
        char           *path = array_path(run_folder, array->name);
        int64_t         size = fv_image_type_bytes(&array->type);
        fv_file_id      id;
        if (fv__file_identify(path, &id, NULL) != FV_OK || id.size != size)
            status = array->read ? spool_source(array, path, error)
                                 : fv__file_write_all(path, array->data, (size_t)size, false, error);
        free(path);
    }
    return status;
}

/* ---------------------------------------------------------------- loading */

static bool from_hex(const char *text, void *data, size_t size) {
    for (size_t i = 0; i < size; i++) {
        unsigned byte;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1) return false;
        ((uint8_t *)data)[i] = (uint8_t)byte;
    }
    return true;
}

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
        bindings->parameters =
            fv__realloc(bindings->parameters, (size_t)(bindings->nparameters + 1) * sizeof *bindings->parameters);
        fv_parameter *parameter = &bindings->parameters[bindings->nparameters++];
        const cJSON  *values = cJSON_GetObjectItemCaseSensitive(p, "values");
        size_t        count = (size_t)cJSON_GetArraySize(values);
        *parameter = (fv_parameter){ .name = fv__arena_strdup(&bindings->arena, text_of(p, "name")) };
        parameter->values = fv__calloc((count + 1) * sizeof *parameter->values);
        parameter->texts = fv__calloc((count + 1) * sizeof *parameter->texts);
        cJSON_ArrayForEach(v, values) {
            parameter->texts[parameter->count] = fv__arena_strdup(&bindings->arena, element(v, 0));
            fv__literal_parse(element(v, 1), &parameter->values[parameter->count++], &bindings->arena);
        }
        bindings->ncombinations *= FV_MAX(parameter->count, 1);
    }
}

static void load_items(const cJSON *root, fv_bindings *bindings) {
    const cJSON *lists = cJSON_GetObjectItemCaseSensitive(root, "items"), *l, *f;
    cJSON_ArrayForEach(l, lists) {
        const cJSON *files = cJSON_GetObjectItemCaseSensitive(l, "files");
        bindings->lists = fv__realloc(bindings->lists, (size_t)(bindings->nlists + 1) * sizeof *bindings->lists);
        fv_item_list *list = &bindings->lists[bindings->nlists++];
        *list = (fv_item_list){ .pattern = fv__arena_strdup(&bindings->arena, text_of(l, "pattern")) };
        list->paths = fv__arena_alloc(&bindings->arena, ((size_t)cJSON_GetArraySize(files) + 1) * sizeof *list->paths);
        cJSON_ArrayForEach(f, files) list->paths[list->count++] = fv__arena_strdup(&bindings->arena, element(f, 0));
        list->root = (size_t)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(l, "root"));
    }
}

static void load_within(const cJSON *root, fv_bindings *bindings) {
    const cJSON *within = cJSON_GetObjectItemCaseSensitive(root, "within");
    if (!within) return;
    bindings->within = fv__sampling_within(cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(within, "time")),
                                           cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(within, "error")));
}

static void load_of_items(const cJSON *root, fv_bindings *bindings) {
    const cJSON *of_items = cJSON_GetObjectItemCaseSensitive(root, "of_items");
    if (of_items) bindings->of_items.confidence = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(of_items, "confidence"));
}

static void load_part(const cJSON *root, fv_bindings *bindings) {
    const cJSON *part = cJSON_GetObjectItemCaseSensitive(root, "part");
    if (!part || !text_of(part, "axis")) return;
    snprintf(bindings->part.axis, sizeof bindings->part.axis, "%s", text_of(part, "axis"));
    bindings->part.length = (int64_t)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(part, "length"));
    bindings->part.take = (int64_t)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(part, "take"));
}

static void load_device(const cJSON *root, fv_bindings *bindings) {
    const cJSON *device = cJSON_GetObjectItemCaseSensitive(root, "device");
    if (!device || !text_of(device, "name") || !text_of(device, "kind")) return;
    bindings->device = fv__arena_strdup(&bindings->arena, text_of(device, "name"));
    bindings->on.kind = fv__arena_strdup(&bindings->arena, text_of(device, "kind"));
    bindings->on.memory = (int64_t)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(device, "memory"));
    bindings->on.strict = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(device, "strict"));
}

/* What a worker has of an image that the program provides: the file that it was copied to. */
typedef struct spooled {
    const char   *path;
    fv_image_type type;
} spooled;

static fv_status read_spooled(void *context, const int64_t *start, const int64_t *count, const int64_t *stride, void *data,
                              fv_error *error) {
    const spooled *s = context;
    int            fd, n = s->type.ndim;
    size_t         element = fv_dtype_size(s->type.dtype);
    fv_region      region = { .ndim = n };
    fv_rows        rows;
    memcpy(region.start, start, (size_t)n * sizeof *start);
    memcpy(region.size, count, (size_t)n * sizeof *count);
    FV_TRY(fv__file_open_read(s->path, &fd, error));
    fv_status status = FV_OK;
    for (fv__rows_begin(&rows, &region); status == FV_OK && fv__rows_next(&rows);) {
        int64_t offset = 0, to = 0;
        for (int d = 0; d < n; d++) {
            offset = offset * s->type.shape[d] + rows.position[d];
            to += (rows.position[d] - start[d]) * stride[d];
        }
        status = fv__file_read_at(fd, (char *)data + to * (int64_t)element, (size_t)count[n - 1] * element,
                                  offset * (int64_t)element, s->path, error);
    }
    fv__file_close(fd, s->path, NULL);
    return status;
}

static void load_source(const cJSON *chunk, const char *run_folder, fv_array *array, fv_arena *arena) {
    spooled *s = fv__arena_alloc(arena, sizeof *s);
    char    *path = array_path(run_folder, array->name);
    *s = (spooled){ .path = fv__arena_strdup(arena, path), .type = array->type };
    for (int d = 0; d < array->type.ndim; d++) array->chunk[d] = (int64_t)cJSON_GetNumberValue(cJSON_GetArrayItem(chunk, d));
    array->read = read_spooled;
    array->context = s;
    free(path);
}

/* Arrays are read whole: a program that holds them in memory has room for them. */
static fv_status load_arrays(const cJSON *root, const char *run_folder, fv_bindings *bindings, fv_error *error) {
    const cJSON *a, *k;
    int          count = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(root, "arrays"));
    int          keeps = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(root, "keeps"));
    bindings->arrays = fv__calloc((size_t)(count + 1) * sizeof *bindings->arrays);
    bindings->keeps = fv__calloc((size_t)(keeps + 1) * sizeof *bindings->keeps);
    cJSON_ArrayForEach(k, cJSON_GetObjectItemCaseSensitive(root, "keeps")) bindings->keeps[bindings->nkeeps++] =
        fv__arena_strdup(&bindings->arena, k->valuestring);
    cJSON_ArrayForEach(a, cJSON_GetObjectItemCaseSensitive(root, "arrays")) {
        fv_array *array = &bindings->arrays[bindings->narrays++];
        uint64_t  part[2];
        array->name = fv__arena_strdup(&bindings->arena, text_of(a, "name"));
        if (!from_hex(text_of(a, "type"), &array->type, sizeof array->type) ||
            sscanf(text_of(a, "content"), "%16" SCNx64 "%16" SCNx64, &part[0], &part[1]) != 2)
            return fv_fail(error, FV_ERROR_INPUT, "the manifest of %s is damaged", run_folder);
        array->content = (fv_hash){ .high = part[0], .low = part[1] };
        const cJSON *chunk = cJSON_GetObjectItemCaseSensitive(a, "chunk");
        if (chunk) {
            load_source(chunk, run_folder, array, &bindings->arena);
            continue;
        }
        size_t    size = (size_t)fv_image_type_bytes(&array->type);
        char     *path = array_path(run_folder, array->name);
        void     *data;
        int       fd;
        fv_status status = FV_TAKE_IN(&bindings->arena, data, size, error);
        if (status == FV_OK) status = fv__file_open_read(path, &fd, error);
        if (status == FV_OK) {
            status = fv__file_read_at(fd, data, size, 0, path, error);
            fv__file_close(fd, path, NULL);
        }
        array->data = data;
        free(path);
        FV_TRY(status);
    }
    return FV_OK;
}

fv_status fv__manifest_load(const char *run_folder, fv_program **program, fv_bindings *bindings, fv_plan_options *plan_options,
                            fv_error *error) {
    char     *path = fv__sprintf("%s/manifest.json", run_folder);
    fv_bytes  bytes = { 0 };
    bool      own = false;
    fv_status status = read_manifest(path, &bytes, &own, error);
    cJSON    *root = status == FV_OK ? cJSON_Parse((char *)bytes.data) : NULL;
    *bindings = (fv_bindings){ 0 };
    *plan_options = (fv_plan_options){ 0 };
    *program = NULL;
    if (status == FV_OK && (!root || !text_of(root, "text") || !text_of(root, "file")))
        status = fv_fail(error, FV_ERROR_INPUT, "%s is damaged", path);
    if (status == FV_OK) {
        fv_diagnostics none = { 0 };
        *program = fv__program_parse(text_of(root, "file"), text_of(root, "text"), &none);
        fv__diagnostics_release(&none);
        if ((*program)->incomplete) status = fv__no_memory(strlen(text_of(root, "text")), error);
        load_parameters(root, bindings);
        load_items(root, bindings);
        const cJSON *c;
        cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(root, "chunk")) if (plan_options->chunk_ndim < FV_MAX_DIMS)
            plan_options->chunk[plan_options->chunk_ndim++] = (int64_t)cJSON_GetNumberValue(c);
        load_part(root, bindings);
        load_within(root, bindings);
        load_of_items(root, bindings);
        load_device(root, bindings);
        bindings->commands = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "commands")) && own;
        fv__programs_allow(bindings->commands);
        if (text_of(root, "into")) bindings->into = fv__arena_strdup(&bindings->arena, text_of(root, "into"));
        if (status == FV_OK) status = load_arrays(root, run_folder, bindings, error);
        if (status == FV_OK) status = fv__memory_check(error);
        bindings->run = identity_of((char *)bytes.data);
        fv__bindings_arrange(bindings, *program);
    }
    cJSON_Delete(root);
    fv__bytes_release(&bytes);
    free(path);
    return status;
}
