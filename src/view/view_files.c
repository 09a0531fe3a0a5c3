/* What is shown, and the way from a request to it. */
#include "view/view_files.h"
#include "view/view_parts.h"
#include "view/view_statistics.h"
#include <dirent.h>
#include <fovea/describe.h>
#include <stdlib.h>

enum { CACHE = 144 << 20 };

fv_view_files *fv_view_files_new(void) {
    fv_view_files *f = fv__calloc(sizeof *f);
    f->cache = fv_view_cache_new(CACHE);
    return f;
}

void fv_view_files_free(fv_view_files *f) {
    if (!f) return;
    for (int i = 0; i < f->nimages; i++) fv_view_image_free(f->images[i]);
    for (int i = 0; i < f->ntables; i++) fv_view_table_free(f->tables[i]);
    fv_view_cache_free(f->cache);
    free(f);
}

static fv_status check_room(const fv_view_files *f, fv_error *error) {
    if (f->nimages == FV_VIEW_MOST_IMAGES)
        return fv_fail(error, FV_ERROR_USAGE, "at most %d images can be shown at once; a pattern in quotes is one of them",
                       FV_VIEW_MOST_IMAGES);
    return FV_OK;
}

fv_status fv_view_files_image(fv_view_files *f, const char *pattern, const char *inside, bool labels, fv_error *error) {
    FV_TRY(check_room(f, error));
    FV_TRY(fv_view_image_open(pattern, inside, labels, &f->images[f->nimages], error));
    f->nimages++;
    return FV_OK;
}

fv_status fv_view_files_collection(fv_view_files *f, const char *name, char *const *paths, int count, fv_error *error) {
    FV_TRY(check_room(f, error));
    FV_TRY(fv_view_image_list(name, paths, count, NULL, false, &f->images[f->nimages], error));
    f->nimages++;
    return FV_OK;
}

fv_status fv_view_files_table(fv_view_files *f, const char *path, fv_error *error) {
    if (f->ntables == FV_VIEW_MOST_TABLES)
        return fv_fail(error, FV_ERROR_USAGE, "at most %d tables can be shown at once", FV_VIEW_MOST_TABLES);
    FV_TRY(fv_view_table_open(path, &f->tables[f->ntables], error));
    f->ntables++;
    return FV_OK;
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

/* All images of a folder that is none itself, as a collection; *count 0: there are none. */
static fv_status add_folder(fv_view_files *f, const char *path, int *count, fv_error *error) {
    struct dirent  **entries = NULL;
    const fv_format *format;
    int              found = scandir(path, &entries, NULL, by_name);
    char           **paths = fv__calloc((size_t)FV_MAX(found, 1) * sizeof *paths);
    *count = 0;
    for (int i = 0; i < found; i++) {
        bool  hidden = entries[i]->d_name[0] == '.';
        char *name = fv__sprintf("%s/%s", path, entries[i]->d_name);
        if (!hidden && !fv_view_is_table(name) && fv__format_for_reading(name, &format, NULL) == FV_OK)
            paths[(*count)++] = name;
        else
            free(name);
        free(entries[i]);
    }
    free(entries);
    fv_status status = *count ? fv_view_files_collection(f, path, paths, *count, error) : FV_OK;
    for (int i = 0; i < *count; i++) free(paths[i]);
    free(paths);
    return status;
}

fv_status fv_view_files_add(fv_view_files *f, const char *path, const char *inside, const char *value, fv_error *error) {
    if (fv__path_has_extension(path, "fov")) {
        FV_TRY(check_room(f, error));
        FV_TRY(fv_view_image_live(path, value, f->cache, &f->images[f->nimages], error));
        f->nimages++;
        return FV_OK;
    }
    if (fv_view_is_run(path)) return fv_view_files_run(f, path, error);
    const fv_format *format;
    int              count;
    if (fv__path_is_folder(path) && fv__format_for_reading(path, &format, NULL) != FV_OK) {
        FV_TRY(add_folder(f, path, &count, error));
        if (count) return FV_OK;
    }
    return fv_view_is_table(path) ? fv_view_files_table(f, path, error) : fv_view_files_image(f, path, inside, false, error);
}

/* ---------------------------------------------------------------- requests */

bool fv_view_ask_integer(const fv_view_query *q, const char *name, int64_t least, int64_t most, int64_t def, int64_t *value,
                         fv_view_answer *a) {
    if (fv_view_query_integer(q, name, least, most, def, value)) return true;
    fv_view_answer_refuse(a, 400, "%s = %.40s: must be a whole number from %lld to %lld", name, fv_view_query_text(q, name),
                          (long long)least, (long long)most);
    return false;
}

static bool ask_fixed(const fv_view_query *q, fv_view_asked *asked, fv_view_answer *a) {
    const fv_view_source *s = asked->source;
    for (int d = 0; d < s->type.ndim; d++) {
        bool space = d == s->space[0] || d == s->space[1] || d == s->space[2] || d == s->colour;
        if (!space && !fv_view_ask_integer(q, s->axis[d], 0, s->type.shape[d] - 1, 0, &asked->fixed[d], a)) return false;
    }
    return true;
}

/* Which part of complex voxels; amplitude if nothing is said. */
static bool ask_part(const fv_view_query *q, fv_view_part *part, fv_view_answer *a) {
    static const char *const names[] = { [FV_VIEW_AMPLITUDE] = "amplitude", [FV_VIEW_PHASE] = "phase" };
    const char              *given = fv_view_query_text(q, "part");
    *part = FV_VIEW_AMPLITUDE;
    if (!given) return true;
    for (int i = 0; i < FV_COUNT(names); i++)
        if (!strcmp(given, names[i])) {
            *part = (fv_view_part)i;
            return true;
        }
    fv_view_answer_refuse(a, 400, "part = %.40s: can be amplitude or phase", given);
    return false;
}

bool fv_view_ask(fv_view_files *f, const fv_view_query *q, fv_view_asked *asked, fv_view_answer *a) {
    fv_error error = { 0 };
    int64_t  id, level;
    *asked = (fv_view_asked){ 0 };
    if (!ask_part(q, &asked->part, a)) return false;
    if (!f->nimages || !fv_view_query_integer(q, "image", 0, f->nimages - 1, 0, &id)) {
        fv_view_answer_refuse(a, 404, "there is no such image");
        return false;
    }
    asked->image = f->images[id];
    if (fv_view_image_asked(asked->image, q, &asked->source, &error) != FV_OK) {
        fv_view_answer_error(a, &error);
        return false;
    }
    if (fv_view_ask_integer(q, "level", 0, asked->source->nlevels - 1, 0, &level, a) && ask_fixed(q, asked, a)) {
        asked->level = (int)level;
        return true;
    }
    fv_view_source_unref(asked->source);
    return false;
}

/* ---------------------------------------------------------------- the session */

static void add_images(fv_view_files *f, cJSON *list) {
    for (int i = 0; i < f->nimages; i++) {
        fv_view_source *source;
        fv_error        error = { 0 };
        fv_status       status = fv_view_image_asked(f->images[i], &(fv_view_query){ 0 }, &source, &error);
        if (status == FV_OK) {
            cJSON_AddItemToArray(list, fv_view_image_json(f->images[i], i, source));
            fv_view_source_unref(source);
        } else {
            cJSON *json = cJSON_CreateObject();
            cJSON_AddNumberToObject(json, "id", i);
            cJSON_AddStringToObject(json, "name", f->images[i]->name);
            cJSON_AddStringToObject(json, "error", error.message);
            cJSON_AddItemToArray(list, json);
        }
    }
}

/* A table without --labels describes the objects of an image whose name or type says that it holds them. */
static void find_labels(fv_view_files *f) {
    fv_view_image *found = NULL;
    for (int i = 0; i < f->nimages; i++) {
        fv_view_image        *image = f->images[i];
        const fv_view_source *s = image->npaths == 1 ? image->sources[0] : NULL;
        bool                  whole = s && fv_dtype_is_integer(s->type.dtype) && s->type.dtype != FV_BOOL && s->colour < 0;
        if (image->labels) return;
        if (whole && !found && (fv_dtype_size(s->type.dtype) >= 4 || fv_view_named_like_labels(s->path))) found = image;
    }
    if (f->ntables && found) found->labels = true;
}

/* Tables describe the first labels, whichever they are. */
static void add_tables(const fv_view_files *f, cJSON *list) {
    int labels = -1;
    for (int i = f->nimages - 1; i >= 0; i--)
        if (f->images[i]->labels) labels = i;
    for (int i = 0; i < f->ntables; i++) cJSON_AddItemToArray(list, fv_view_table_json(f->tables[i], i, labels));
}

static void route_session(void *context, const fv_view_query *query, fv_view_answer *a) {
    fv_view_files *f = context;
    cJSON         *json = cJSON_CreateObject();
    (void)query;
    cJSON_AddStringToObject(json, "version", fv_version());
    cJSON_AddStringToObject(json, "title", f->nimages ? f->images[0]->name : "Fovea");
    cJSON_AddStringToObject(json, "mode", "view");
    if (fv_view_server_zarr(f->server)) cJSON_AddStringToObject(json, "zarr", fv_view_server_zarr(f->server));
    add_images(f, cJSON_AddArrayToObject(json, "images"));
    add_tables(f, cJSON_AddArrayToObject(json, "tables"));
    fv_view_answer_json(a, json);
}

/* One image as in the session, for an item of a collection or a value of a pipeline. */
static void route_image(void *context, const fv_view_query *query, fv_view_answer *a) {
    fv_view_files *f = context;
    fv_view_asked  asked;
    int64_t        id;
    if (!fv_view_ask(f, query, &asked, a)) return;
    fv_view_query_integer(query, "image", 0, f->nimages - 1, 0, &id);
    fv_view_answer_json(a, fv_view_image_json(asked.image, (int)id, asked.source));
    fv_view_source_unref(asked.source);
}

fv_status fv_view_files_serve(fv_view_files *f, const fv_view_server_options *given, fv_view_server **server, fv_error *error) {
    static const fv_view_route routes[] = {
        { "/api/session", route_session },
        { "/api/image", route_image },
        { "/api/plane", fv_view_route_plane },
        { "/api/volume", fv_view_route_volume },
        { "/api/statistics", fv_view_route_statistics },
        { "/api/value", fv_view_route_value },
        { "/api/rows", fv_view_route_rows },
        { "/api/row", fv_view_route_row },
        { "/api/column", fv_view_route_column },
        { "/api/scatter", fv_view_route_scatter },
        { "/api/labels-values", fv_view_route_values },
        { "/api/object", fv_view_route_object },
        { "/zarr/", fv_view_route_zarr },
        { 0 },
    };
    fv_view_server_options options = *given;
    find_labels(f);
    options.routes = routes;
    options.context = f;
    FV_TRY(fv_view_server_start(&options, &f->server, error));
    *server = f->server;
    return FV_OK;
}
