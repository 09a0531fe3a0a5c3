/* Label images of an OME-Zarr image: IMAGE.zarr/labels/NAME, a multiscale image of integers that is never averaged, and the list
 * of names that the group "labels" holds. https://ngff.openmicroscopy.org/0.5/#labels-md
 *
 * Invariants: 1. a name is in the list only when its image is complete; 2. names are given one after the other, by whom calls;
 * 3. the time of the image's folder does not change, by which its writer knows it again. */
#include "base/file.h"
#include "formats/zarr_node.h"
#include "formats/zarr_writer.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char place[] = "/labels/";

bool fv__zarr_is_label(const char *path) {
    size_t around = fv__format_around(path), n = sizeof place - 1;
    return around && !strncmp(path + around, place, n) && path[around + n] && !strchr(path + around + n, '/');
}

static bool has_file(const char *folder, size_t length, const char *name) {
    char *path = fv__sprintf("%.*s/%s", (int)length, folder, name);
    bool  there = fv__file_exists(path);
    free(path);
    return there;
}

/* 3, 2, or 0 if it is not there yet. */
static int version_of(const char *path, size_t length) {
    if (has_file(path, length, "zarr.json")) return 3;
    return has_file(path, length, ".zgroup") ? 2 : 0;
}

fv_status fv__zarr_check_label(const fv_zarr_design *design, const fv_image_file *file, fv_error *error) {
    const fv_image_type *type = file->type;
    const char          *path = file->path;
    size_t               around = fv__format_around(path);
    int                  version = version_of(path, around);
    if (!fv__zarr_is_label(path))
        return fv_fail(error, FV_ERROR_USAGE, "%s: inside a Zarr image only label images are written, as \"%.*s/labels/NAME\"",
                       path, (int)around, path);
    if (!fv_dtype_is_integer(type->dtype))
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s: labels are integers, and this image holds %s; label() numbers things, convert(\"uint8\") takes masks",
                       path, fv_dtype_name(type->dtype));
    if (!design->ome)
        return fv_fail(error, FV_ERROR_USAGE, "%s: a label image needs axes out of t c z y x, in this order, with y and x", path);
    if (version && version != design->level[0].array.version)
        return fv_fail(error, FV_ERROR_USAGE, "%s: the image around it is OME-Zarr %s; write its labels with version = \"%s\"",
                       path, version == 2 ? "0.4" : "0.5", version == 2 ? "0.4" : "0.5");
    return FV_OK;
}

void fv__zarr_describe_label(const fv_zarr_writer *w, cJSON *attributes) {
    bool   old = w->design.level[0].array.version == 2;
    cJSON *ome = old ? attributes : cJSON_GetObjectItemCaseSensitive(attributes, "ome");
    cJSON *label = cJSON_AddObjectToObject(ome, "image-label");
    if (old) cJSON_AddStringToObject(label, "version", "0.4");
    cJSON_AddStringToObject(cJSON_AddObjectToObject(label, "source"), "image", "../../");
}

/* ---------------------------------------------------------------- the list */

static fv_status store_json(const char *folder, const char *name, const cJSON *json, fv_error *error) {
    char     *path = fv__sprintf("%s/%s", folder, name), *text = cJSON_Print(json);
    fv_status status = fv__file_write_all(path, text, strlen(text), true, error);
    cJSON_free(text);
    free(path);
    return status;
}

/* A group without attributes, where there is none. */
static fv_status make_group(const char *folder, int version, fv_error *error) {
    if (version_of(folder, strlen(folder))) return FV_OK;
    cJSON    *group = fv__zarr_compose_group(version);
    fv_status status = store_json(folder, version == 2 ? ".zgroup" : "zarr.json", group, error);
    cJSON_Delete(group);
    return status;
}

static cJSON *object_in(cJSON *parent, const char *name) {
    cJSON *found = cJSON_GetObjectItemCaseSensitive(parent, name);
    if (cJSON_IsObject(found)) return found;
    cJSON_DeleteItemFromObjectCaseSensitive(parent, name);
    return cJSON_AddObjectToObject(parent, name);
}

/* Appends the name, unless it is there. */
static bool add_name(cJSON *owner, const char *name) {
    cJSON *list = cJSON_GetObjectItemCaseSensitive(owner, "labels"), *entry;
    if (!cJSON_IsArray(list)) {
        cJSON_DeleteItemFromObjectCaseSensitive(owner, "labels");
        list = cJSON_AddArrayToObject(owner, "labels");
    }
    cJSON_ArrayForEach(entry, list) if (cJSON_IsString(entry) && !strcmp(entry->valuestring, name)) return false;
    cJSON_AddItemToArray(list, cJSON_CreateString(name));
    return true;
}

/* What others have written beside the list stays. */
static fv_status change_list(const char *folder, int version, const char *name, fv_error *error) {
    fv_zarr_node node = { 0 };
    fv_hasher    hasher;
    fv__hasher_init(&hasher);
    fv_status status = fv__zarr_node_load(&node, folder, &hasher, error);
    fv__hasher_finish(&hasher);
    if (status == FV_OK && version == 2) {
        cJSON *attributes = node.own_attributes ? node.own_attributes : (node.own_attributes = cJSON_CreateObject());
        if (add_name(attributes, name)) status = store_json(folder, ".zattrs", attributes, error);
    } else if (status == FV_OK) {
        cJSON *ome = object_in(object_in(node.json, "attributes"), "ome");
        if (!cJSON_GetObjectItemCaseSensitive(ome, "version")) cJSON_AddStringToObject(ome, "version", "0.5");
        if (add_name(ome, name)) status = store_json(folder, "zarr.json", node.json, error);
    }
    fv__zarr_node_release(&node);
    return status;
}

static fv_status add_to_groups(const char *image, const char *folder, const char *path, fv_error *error) {
    int version = version_of(path, strlen(path));
    FV_TRY(make_group(image, version, error));
    FV_TRY(make_group(folder, version, error));
    return change_list(folder, version, strrchr(path, '/') + 1, error);
}

/* The times of a folder, to give them back when something has been put into it. */
static bool keep_times(const char *folder, struct timespec times[2]) {
    struct stat s;
    if (stat(folder, &s)) return false;
    times[0] = s.st_atim;
    times[1] = s.st_mtim;
    return true;
}

fv_status fv__zarr_list_label(const char *path, fv_error *error) {
    if (!fv__zarr_is_label(path)) return FV_OK;
    size_t          around = fv__format_around(path);
    char           *image = fv__sprintf("%.*s", (int)around, path), *folder = fv__sprintf("%s/labels", image);
    struct timespec times[2];
    bool            kept = keep_times(image, times) && version_of(image, around);
    fv_status       status = add_to_groups(image, folder, path, error);
    if (kept) utimensat(AT_FDCWD, image, times, 0);
    free(folder);
    free(image);
    return status;
}

/* An image that is written anew keeps its labels: nobody asked for their removal, and some may have been drawn by hand. */
fv_status fv__zarr_adopt_labels(const char *temporary, const char *path, fv_error *error) {
    char           *from = fv__sprintf("%s/labels", path), *to = fv__sprintf("%s/labels", temporary);
    struct timespec times[2];
    fv_status       status = FV_OK;
    if (fv__path_is_folder(from) && !fv__file_exists(to) && keep_times(temporary, times)) {
        status = fv__rename(from, to, error);
        utimensat(AT_FDCWD, temporary, times, 0);
    }
    free(from);
    free(to);
    return status;
}
