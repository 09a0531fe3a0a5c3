/* Listing of Zarr hierarchies. Folders are walked in order of their names; what is no node of Zarr is passed over. A server does
 * not list its folders: what lies in those is told by consolidated metadata, or by the names that OME-Zarr has for it. */
#include "formats/zarr_contents.h"
#include "base/remote.h"
#include "formats/zarr_axes.h"
#include "formats/zarr_node.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_LINES = 200, MOST_NAMES = 10000, DEEPEST = 6 };

typedef struct {
    const char *root;
    fv_bytes   *lines;
    cJSON      *consolidated; /* metadata by path, of a remote hierarchy; NULL: none */
    int         count, depth;
    bool        shortened;
} walk;

static void put_sizes(fv_bytes *out, const char *before, const int64_t *sizes, int n) {
    fv__bytes_printf(out, "%s", before);
    for (int d = 0; d < n; d++) fv__bytes_printf(out, "%s%lld", d ? " x " : "", (long long)sizes[d]);
}

static void put_array(walk *w, const char *below, const fv_zarr_node *node, const char *role) {
    fv_zarr_array array;
    fv_error      error = { 0 };
    fv__bytes_printf(w->lines, "%s: ", *below ? below : "/");
    if (fv__zarr_node_array(node, &array, &error) != FV_OK) {
        fv__bytes_printf(w->lines, "cannot be read: %s\n", error.message);
        return;
    }
    fv__bytes_printf(w->lines, "%s, ", fv_dtype_name(array.dtype));
    put_sizes(w->lines, "", array.shape, array.ndim);
    put_sizes(w->lines, ", chunks of ", array.chunk, array.ndim);
    if (array.sharded) put_sizes(w->lines, " in shards of ", array.file, array.ndim);
    fv__bytes_printf(w->lines, ", %s%s\n", fv__zarr_packing_name(array.codec.packing), role);
}

/* "level 2 of the image", if the group around the array says so. */
static void find_role(const fv_zarr_node *group, const char *name, char *role, size_t size) {
    const cJSON *multiscale = group ? fv__zarr_multiscale(group->attributes) : NULL, *level;
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

/* ---------------------------------------------------------------- what lies in a folder */

static int visible(const struct dirent *entry) { return entry->d_name[0] != '.' && strcmp(entry->d_name, "zarr.json"); }
static int by_name(const void *a, const void *b) { return strverscmp(*(char *const *)a, *(char *const *)b); }

typedef struct {
    char **names;
    int    count;
} list;

/* The first part of a path, once. */
static void add_name(list *l, const char *path) {
    size_t length = strcspn(path, "/");
    if (!length || *path == '.' || l->count >= MOST_NAMES || !strncmp(path, "zarr.json", length)) return;
    for (int i = 0; i < l->count; i++)
        if (strlen(l->names[i]) == length && !strncmp(l->names[i], path, length)) return;
    if (!(l->count & (l->count - 1))) l->names = fv__realloc(l->names, (size_t)FV_MAX(2 * l->count, 1) * sizeof *l->names);
    l->names[l->count++] = fv__sprintf("%.*s", (int)length, path);
}

static void list_folder(list *l, const char *folder) {
    struct dirent **entries = NULL;
    int             n = scandir(folder, &entries, visible, NULL);
    for (int i = 0; i < n; i++) {
        add_name(l, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

/* Levels of an image, label images, the images of a collection, and the groups that these lie in. */
static void list_known(list *l, const fv_zarr_node *group) {
    const cJSON *ome = cJSON_GetObjectItemCaseSensitive(group->attributes, "ome"), *facts = ome ? ome : group->attributes, *item;
    const cJSON *multiscale = fv__zarr_multiscale(group->attributes);
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(multiscale, "datasets")) {
        const char *path = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "path"));
        if (path) add_name(l, path);
    }
    static const char *const lists[] = { "labels", "series" };
    for (int i = 0; i < FV_COUNT(lists); i++)
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(facts, lists[i])) if (cJSON_IsString(item))
            add_name(l, item->valuestring);
    bool collection = cJSON_GetObjectItemCaseSensitive(facts, "bioformats2raw.layout") != NULL;
    if (multiscale) add_name(l, "labels");
    if (collection) add_name(l, "OME");
    if (collection) add_name(l, "0");
}

static list names_in(const walk *w, const char *below, const fv_zarr_node *group) {
    list         l = { 0 };
    size_t       length = strlen(below);
    const cJSON *item;
    char        *folder = *below ? fv__path_inside(w->root, below) : fv__strdup(w->root);
    if (!fv__is_remote(w->root))
        list_folder(&l, folder);
    else if (!w->consolidated)
        list_known(&l, group);
    else
        cJSON_ArrayForEach(item, w->consolidated) {
            bool inside = !length || (!strncmp(item->string, below, length) && item->string[length] == '/');
            if (inside) add_name(&l, item->string + length + (length > 0));
        }
    free(folder);
    if (l.count) qsort(l.names, (size_t)l.count, sizeof *l.names, by_name);
    return l;
}

/* Of version 3 in the top zarr.json, of version 2 in a file of its own. */
static cJSON *find_consolidated(const char *root, const fv_zarr_node *top) {
    const cJSON *whole = cJSON_GetObjectItemCaseSensitive(top->json, "consolidated_metadata");
    cJSON       *file = NULL, *metadata = NULL;
    char        *path = fv__path_inside(root, ".zmetadata");
    fv_hasher    hasher;
    fv__hasher_init(&hasher);
    if (top->version == 2 && fv__file_exists(path) && fv__zarr_load(path, &hasher, &file, NULL) == FV_OK) whole = file;
    fv__hasher_finish(&hasher);
    if (whole) metadata = cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(whole, "metadata"), true);
    cJSON_Delete(file);
    free(path);
    return metadata;
}

/* ---------------------------------------------------------------- walking */

static bool is_node(const char *folder) {
    static const char *const names[] = { "zarr.json", ".zarray", ".zgroup" };
    bool                     found = false;
    for (int i = 0; i < FV_COUNT(names) && !found; i++) {
        char *path = fv__path_inside(folder, names[i]);
        found = fv__file_exists(path);
        free(path);
    }
    return found;
}

static void visit(walk *w, const char *below, const fv_zarr_node *here, const fv_zarr_node *image, const char *prefix);

/* within: its path as the image at hand names it. */
static void visit_name(walk *w, const char *name, const fv_zarr_node *image, const char *within) {
    char        *path = fv__path_inside(w->root, name), role[64];
    fv_zarr_node node = { 0 };
    fv_hasher    hasher;
    fv__hasher_init(&hasher);
    if (w->count >= MOST_LINES)
        w->shortened = true;
    else if (is_node(path) && fv__zarr_node_load(&node, path, &hasher, NULL) == FV_OK) {
        bool another = fv__zarr_multiscale(node.attributes) != NULL;
        find_role(image, within, role, sizeof role);
        if (node.array) {
            put_array(w, name, &node, role);
            w->count++;
        } else
            visit(w, name, &node, another ? &node : image, another ? "" : within);
    }
    fv__hasher_finish(&hasher);
    fv__zarr_node_release(&node);
    free(path);
}

/* here: the group itself; image: the one around it whose levels its arrays may be, which names it prefix. */
static void visit(walk *w, const char *below, const fv_zarr_node *here, const fv_zarr_node *image, const char *prefix) {
    list l = w->depth < DEEPEST ? names_in(w, below, here) : (list){ 0 };
    w->depth++;
    for (int i = 0; i < l.count; i++) {
        char *name = fv__sprintf("%s%s%s", below, *below ? "/" : "", l.names[i]);
        char *within = fv__sprintf("%s%s%s", prefix, *prefix ? "/" : "", l.names[i]);
        visit_name(w, name, image, within);
        free(within);
        free(name);
        free(l.names[i]);
    }
    free(l.names);
    w->depth--;
}

fv_status fv__zarr_contents(const char *path, fv_bytes *lines, fv_error *error) {
    walk         w = { .root = path, .lines = lines };
    fv_zarr_node top = { 0 };
    fv_hasher    hasher;
    fv__hasher_init(&hasher);
    fv_status status = fv__zarr_node_load(&top, path, &hasher, error);
    fv__hasher_finish(&hasher);
    if (status == FV_OK && fv__is_remote(path)) w.consolidated = find_consolidated(path, &top);
    if (status == FV_OK && !top.array) visit(&w, "", &top, &top, "");
    if (w.shortened) fv__bytes_printf(lines, "...: only the first %d are listed\n", MOST_LINES);
    cJSON_Delete(w.consolidated);
    fv__zarr_node_release(&top);
    return status;
}
