/* Listing of Zarr hierarchies. Folders are walked in order of their names; what is no node of Zarr is passed over. */
#include "formats/zarr_contents.h"
#include "base/file.h"
#include "formats/zarr_axes.h"
#include "formats/zarr_node.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_LINES = 200, DEEPEST = 6 };

typedef struct {
    const char *root;
    fv_bytes   *lines;
    int         count, depth;
    bool        shortened;
} walk;

static void put_sizes(fv_bytes *out, const char *before, const int64_t *sizes, int n) {
    fv_bytes_printf(out, "%s", before);
    for (int d = 0; d < n; d++) fv_bytes_printf(out, "%s%lld", d ? " x " : "", (long long)sizes[d]);
}

static void put_array(walk *w, const char *below, const fv_zarr_node *node, const char *role) {
    fv_zarr_array array;
    fv_error      error = { 0 };
    fv_bytes_printf(w->lines, "%s: ", *below ? below : "/");
    if (fv_zarr_node_array(node, &array, &error) != FV_OK) {
        fv_bytes_printf(w->lines, "cannot be read: %s\n", error.message);
        return;
    }
    fv_bytes_printf(w->lines, "%s, ", fv_dtype_name(array.dtype));
    put_sizes(w->lines, "", array.shape, array.ndim);
    put_sizes(w->lines, ", chunks of ", array.chunk, array.ndim);
    if (array.sharded) put_sizes(w->lines, " in shards of ", array.file, array.ndim);
    fv_bytes_printf(w->lines, ", %s%s\n", fv_zarr_packing_name(array.codec.packing), role);
}

/* "level 2 of the image", if the group around the array says so. */
static void find_role(const fv_zarr_node *group, const char *name, char *role, size_t size) {
    const cJSON *multiscale = group ? fv_zarr_multiscale(group->attributes) : NULL, *level;
    const cJSON *ome = group ? cJSON_GetObjectItemCaseSensitive(group->attributes, "ome") : NULL;
    bool         labels = group && cJSON_GetObjectItemCaseSensitive(ome ? ome : group->attributes, "image-label");
    int          number = 0;
    role[0] = 0;
    cJSON_ArrayForEach(level, cJSON_GetObjectItemCaseSensitive(multiscale, "datasets")) {
        const char *path = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(level, "path"));
        if (path && !strcmp(path, name)) snprintf(role, size, ", level %d of %s", number, labels ? "labels" : "an image");
        number++;
    }
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strverscmp((*a)->d_name, (*b)->d_name); }
static int visible(const struct dirent *entry) { return entry->d_name[0] != '.' && strcmp(entry->d_name, "zarr.json"); }

static bool is_node(const char *folder) {
    static const char *const names[] = { "zarr.json", ".zarray", ".zgroup" };
    bool                     found = false;
    for (int i = 0; i < FV_COUNT(names) && !found; i++) {
        char *path = fv_sprintf("%s/%s", folder, names[i]);
        found = fv_file_exists(path);
        free(path);
    }
    return found;
}

/* prefix: the path of this folder as the group at hand names it. */
static void visit(walk *w, const char *below, const fv_zarr_node *group, const char *prefix) {
    char           *folder = fv_sprintf("%s%s%s", w->root, *below ? "/" : "", below);
    struct dirent **entries = NULL;
    int             n = w->depth < DEEPEST ? scandir(folder, &entries, visible, by_name) : 0;
    w->depth++;
    for (int i = 0; i < n; i++) {
        char        *name = fv_sprintf("%s%s%s", below, *below ? "/" : "", entries[i]->d_name);
        char        *path = fv_sprintf("%s/%s", w->root, name);
        char        *within = fv_sprintf("%s%s%s", prefix, *prefix ? "/" : "", entries[i]->d_name), role[64];
        fv_zarr_node node = { 0 };
        fv_hasher    hasher;
        fv_hasher_init(&hasher);
        if (w->count >= MOST_LINES)
            w->shortened = true;
        else if (is_node(path) && fv_zarr_node_load(&node, path, &hasher, NULL) == FV_OK) {
            bool image = fv_zarr_multiscale(node.attributes) != NULL;
            find_role(group, within, role, sizeof role);
            if (node.array) {
                put_array(w, name, &node, role);
                w->count++;
            } else
                visit(w, name, image ? &node : group, image ? "" : within);
        }
        fv_hasher_finish(&hasher);
        fv_zarr_node_release(&node);
        free(within);
        free(path);
        free(name);
        free(entries[i]);
    }
    w->depth--;
    free(entries);
    free(folder);
}

fv_status fv_zarr_contents(const char *path, fv_bytes *lines, fv_error *error) {
    walk         w = { .root = path, .lines = lines };
    fv_zarr_node top = { 0 };
    fv_hasher    hasher;
    fv_hasher_init(&hasher);
    fv_status status = fv_zarr_node_load(&top, path, &hasher, error);
    fv_hasher_finish(&hasher);
    if (status == FV_OK && !top.array) visit(&w, "", &top, "");
    if (w.shortened) fv_bytes_printf(lines, "...: only the first %d are listed\n", MOST_LINES);
    fv_zarr_node_release(&top);
    return status;
}
