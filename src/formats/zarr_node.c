/* Nodes of Zarr hierarchies. */
#include "formats/zarr_node.h"
#include "base/file.h"
#include <stdlib.h>

void fv__zarr_node_release(fv_zarr_node *n) {
    cJSON_Delete(n->json);
    cJSON_Delete(n->own_attributes);
    free(n->path);
    *n = (fv_zarr_node){ 0 };
}

static bool find_file(fv_zarr_node *n, const char *folder, const char *name) {
    free(n->path);
    n->path = fv__path_inside(folder, name);
    return fv__file_exists(n->path);
}

static fv_status load_v2_attributes(fv_zarr_node *n, const char *folder, fv_hasher *hasher, fv_error *error) {
    char     *path = fv__path_inside(folder, ".zattrs");
    fv_status status = fv__file_exists(path) ? fv__zarr_load(path, hasher, &n->own_attributes, error) : FV_OK;
    free(path);
    n->attributes = n->own_attributes;
    return status;
}

fv_status fv__zarr_node_load(fv_zarr_node *n, const char *folder, fv_hasher *hasher, fv_error *error) {
    *n = (fv_zarr_node){ .version = 3 };
    if (find_file(n, folder, "zarr.json")) {
        FV_TRY(fv__zarr_load(n->path, hasher, &n->json, error));
        const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(n->json, "node_type"));
        n->array = kind && !strcmp(kind, "array");
        n->attributes = cJSON_GetObjectItemCaseSensitive(n->json, "attributes");
        return FV_OK;
    }
    n->version = 2;
    n->array = find_file(n, folder, ".zarray");
    if (!n->array && !find_file(n, folder, ".zgroup"))
        return fv_fail(error, FV_ERROR_INPUT, "%s is not Zarr: it holds neither zarr.json nor .zarray nor .zgroup", folder);
    FV_TRY(fv__zarr_load(n->path, hasher, &n->json, error));
    return load_v2_attributes(n, folder, hasher, error);
}

const cJSON *fv__zarr_node_names(const fv_zarr_node *n) {
    return n->version == 3 ? cJSON_GetObjectItemCaseSensitive(n->json, "dimension_names")
                           : cJSON_GetObjectItemCaseSensitive(n->attributes, "_ARRAY_DIMENSIONS");
}

fv_status fv__zarr_node_array(const fv_zarr_node *n, fv_zarr_array *array, fv_error *error) {
    if (!n->array) return fv_fail(error, FV_ERROR_INPUT, "%s describes a group where an array was expected", n->path);
    return (n->version == 3 ? fv__zarr_array_parse : fv__zarr_array_parse_v2)(n->json, n->path, array, error);
}
