/* The metadata files of a Zarr image that has been written: of version 3 zarr.json, of version 2 .zgroup, .zarray and .zattrs. */
#include "formats/zarr_axes.h"
#include "formats/zarr_channels.h"
#include "formats/zarr_writer.h"
#include <stdlib.h>

void fv__zarr_add_path(fv_zarr_paths *list, char *path_take) {
    if (list->count == list->capacity) {
        list->capacity = FV_MAX(2 * list->capacity, (size_t)64);
        list->path = fv__realloc(list->path, list->capacity * sizeof *list->path);
    }
    list->path[list->count++] = path_take;
}

void fv__zarr_release_paths(fv_zarr_paths *list) {
    for (size_t i = 0; i < list->count; i++) free(list->path[i]);
    free(list->path);
}

static fv_status write_json(const fv_zarr_writer *w, const char *folder, const char *name, cJSON *json_take, fv_zarr_paths *files,
                            fv_error *error) {
    char    *path = fv__sprintf("%s/%s", folder, name), *text = cJSON_Print(json_take);
    fv_bytes file = { 0 };
    fv__bytes_printf(&file, "%s\n", text);
    fv_status status = fv__zarr_write_file(w, path, file.data, file.size, true, error);
    fv__bytes_release(&file);
    cJSON_free(text);
    cJSON_Delete(json_take);
    fv__zarr_add_path(files, path);
    return status;
}

cJSON *fv__zarr_compose_group(int version) {
    cJSON *group = cJSON_CreateObject();
    cJSON_AddItemToObject(group, "zarr_format", fv__zarr_integer(version));
    if (version == 3) cJSON_AddStringToObject(group, "node_type", "group");
    return group;
}

/* A group or an array, whose attributes version 2 has in a file of their own. */
static fv_status write_node(const fv_zarr_writer *w, const char *folder, const char *name_v2, cJSON *node_take,
                            cJSON *attributes_take, fv_zarr_paths *files, fv_error *error) {
    bool old = w->design.level[0].array.version == 2;
    if (!old && attributes_take) cJSON_AddItemToObject(node_take, "attributes", attributes_take);
    fv_status status = write_json(w, folder, old ? name_v2 : "zarr.json", node_take, files, error);
    if (!old || !attributes_take) return status;
    if (status == FV_OK) return write_json(w, folder, ".zattrs", attributes_take, files, error);
    cJSON_Delete(attributes_take);
    return status;
}

static fv_status write_array(const fv_zarr_writer *w, int level, cJSON *attributes_take, fv_zarr_paths *files, fv_error *error) {
    char  *folder = fv__zarr_level_folder(w, level);
    cJSON *array = fv__zarr_array_compose(&w->design.level[level].array), *names = fv__zarr_dimension_names(&w->base.type);
    if (w->design.level[level].array.version == 3)
        cJSON_AddItemToObject(array, "dimension_names", names);
    else if (attributes_take)
        cJSON_AddItemToObject(attributes_take, "_ARRAY_DIMENSIONS", names);
    else
        cJSON_Delete(names);
    fv_status status = write_node(w, folder, ".zarray", array, attributes_take, files, error);
    fv__zarr_add_path(files, folder);
    return status;
}

fv_status fv__zarr_write_metadata(const fv_zarr_writer *w, fv_zarr_paths *files, fv_error *error) {
    int           version = w->design.level[0].array.version;
    fv_zarr_scale scales[FV_ZARR_MOST_LEVELS];
    for (int i = 0; i < w->design.nlevels; i++) memcpy(scales[i].factor, w->design.level[i].factor, sizeof scales[i].factor);
    cJSON *attributes = fv__zarr_attributes_compose(&w->base.type, version, scales, w->design.nlevels, w->design.mean);
    if (w->design.label) fv__zarr_describe_label(w, attributes);
    if (!w->design.ome) return write_array(w, 0, attributes, files, error);
    cJSON    *ome = version == 2 ? attributes : cJSON_GetObjectItemCaseSensitive(attributes, "ome");
    fv_status status = FV_OK;
    for (int i = 0; i < w->design.nlevels && status == FV_OK; i++) status = write_array(w, i, NULL, files, error);
    if (status == FV_OK) status = fv__zarr_channels_compose(w, ome, error);
    if (status == FV_OK)
        status = write_node(w, w->base.path, ".zgroup", fv__zarr_compose_group(version), attributes, files, error);
    else
        cJSON_Delete(attributes);
    fv__zarr_add_path(files, fv__strdup(w->base.path));
    return status;
}
