/* Images of a view. */
#include "view/view_images.h"
#include "view/view_live.h"
#include <fovea/describe.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- opening */

static fv_view_image *new_image(const char *name, bool labels, int npaths) {
    fv_view_image *image = fv__calloc(sizeof *image);
    image->name = fv__path_bare_name(name);
    image->labels = labels;
    image->npaths = npaths;
    image->paths = fv__calloc((size_t)(npaths + 1) * sizeof *image->paths);
    image->sources = fv__calloc((size_t)(npaths + 1) * sizeof *image->sources);
    pthread_mutex_init(&image->mutex, NULL);
    return image;
}

fv_status fv_view_image_open(const char *pattern, const char *inside, bool labels, fv_view_image **image, fv_error *error) {
    char **paths = NULL;
    int    count = 0;
    *image = NULL;
    FV_TRY(fv_match_files(pattern, &paths, &count, error));
    fv_status status = fv_view_image_list(count == 1 ? paths[0] : pattern, paths, count, inside, labels, image, error);
    free(paths);
    return status;
}

fv_status fv_view_image_list(const char *name, char *const *paths, int count, const char *inside, bool labels,
                             fv_view_image **image, fv_error *error) {
    fv_view_source *source;
    *image = new_image(name, labels, count);
    for (int i = 0; i < count; i++) (*image)->paths[i] = fv__strdup(paths[i]);
    if (inside) (*image)->inside = fv__strdup(inside);
    fv_status status = fv_view_image_source(*image, 0, &source, error);
    if (status == FV_OK) {
        fv_view_source_unref(source);
        return FV_OK;
    }
    fv_view_image_free(*image);
    *image = NULL;
    return status;
}

fv_status fv_view_image_live(const char *path, const char *value, fv_view_cache *cache, fv_view_image **image, fv_error *error) {
    fv_view_live *live;
    *image = NULL;
    FV_TRY(fv_view_live_open(path, value, cache, &live, error));
    *image = new_image(path, false, 0);
    (*image)->live = live;
    return FV_OK;
}

void fv_view_image_free(fv_view_image *image) {
    if (!image) return;
    for (int i = 0; i < image->npaths; i++) {
        fv_view_source_unref(image->sources[i]);
        free(image->paths[i]);
    }
    fv_view_live_free(image->live);
    pthread_mutex_destroy(&image->mutex);
    free(image->sources);
    free(image->paths);
    free(image->inside);
    free(image->name);
    free(image);
}

/* The mutex is held. A file that is being replaced may be gone for a moment: what was opened stays until the new one opens. */
static fv_status refresh(fv_view_image *image, int64_t item, fv_error *error) {
    fv_view_source *old = image->sources[item], *fresh;
    bool            current = false;
    if (old) FV_TRY(fv_view_source_current(old, &current, error));
    if (current) return FV_OK;
    FV_TRY(fv_view_source_open(image->paths[item], image->inside, image->labels, &fresh, error));
    image->sources[item] = fresh;
    fv_view_source_unref(old);
    return FV_OK;
}

fv_status fv_view_image_source(fv_view_image *image, int64_t item, fv_view_source **source, fv_error *error) {
    pthread_mutex_lock(&image->mutex);
    fv_status status = refresh(image, item, error);
    *source = status == FV_OK ? fv_view_source_ref(image->sources[item]) : NULL;
    pthread_mutex_unlock(&image->mutex);
    return status;
}

fv_status fv_view_image_asked(fv_view_image *image, const fv_view_query *query, fv_view_source **source, fv_error *error) {
    int64_t item;
    if (image->live) return fv_view_live_source(image->live, query, source, error);
    if (!fv_view_query_integer(query, "item", 0, image->npaths - 1, 0, &item))
        return fv_fail(error, FV_ERROR_USAGE, "item: %s has items 0 to %d", image->name, image->npaths - 1);
    return fv_view_image_source(image, item, source, error);
}

/* ---------------------------------------------------------------- what the page is told */

static cJSON *integers(const int64_t *values, int count) {
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < count; i++) cJSON_AddItemToArray(list, cJSON_CreateNumber((double)values[i]));
    return list;
}

/* The letter of the direction in which an axis of the image points in the body, from the world matrix; 0: none is clear. */
static char direction(const fv_view_source *s, int place) {
    static const char letters[3][2] = { { 'L', 'R' }, { 'P', 'A' }, { 'I', 'S' } };
    const double     *affine = s->type.affine;
    int               column = 2 - place, best = 0; /* the matrix takes x y z */
    for (int row = 1; row < 3; row++)
        if (fabs(affine[4 * row + column]) > fabs(affine[4 * best + column])) best = row;
    double value = affine[4 * best + column];
    return value == 0 || !isfinite(value) ? 0 : letters[best][value > 0];
}

static cJSON *orientation_json(const fv_view_source *s) {
    cJSON *list = cJSON_CreateArray();
    if (!s->type.has_affine) {
        cJSON_Delete(list);
        return cJSON_CreateNull();
    }
    for (int d = 0; d < s->type.ndim; d++) {
        char letter[2] = "";
        for (int i = 0; i < FV_VIEW_SPACE; i++)
            if (s->space[i] == d) letter[0] = direction(s, i);
        cJSON_AddItemToArray(list, letter[0] ? cJSON_CreateString(letter) : cJSON_CreateNull());
    }
    return list;
}

static const char *short_unit(const char *unit) {
    static const char *const known[][2] = { { "micrometer", "µm" }, { "millimeter", "mm" }, { "nanometer", "nm" },
                                            { "meter", "m" },       { "angstrom", "Å" },    { "centimeter", "cm" } };
    for (int i = 0; i < FV_COUNT(known); i++)
        if (!strcmp(unit, known[i][0])) return known[i][1];
    return unit;
}

const char *fv_view_unit(const fv_view_source *s) {
    int d = s->space[2];
    return d >= 0 && *s->type.unit[d] ? short_unit(s->type.unit[d]) : NULL;
}

static cJSON *channels_json(const fv_image_type *type) {
    cJSON *list = cJSON_CreateArray();
    for (int k = 0; k < type->nchannels; k++) {
        const fv_channel *channel = &type->channel[k];
        cJSON            *one = cJSON_CreateObject();
        char              colour[8];
        snprintf(colour, sizeof colour, "#%06x", (unsigned)channel->color & 0xffffff);
        cJSON_AddStringToObject(one, "name", channel->name);
        cJSON_AddItemToObject(one, "colour", channel->has_color ? cJSON_CreateString(colour) : cJSON_CreateNull());
        cJSON_AddItemToObject(one, "range",
                              channel->low < channel->high ? cJSON_CreateDoubleArray((double[]){ channel->low, channel->high }, 2)
                                                           : cJSON_CreateNull());
        cJSON_AddItemToArray(list, one);
    }
    return list;
}

static cJSON *levels_json(const fv_view_source *s) {
    cJSON *list = cJSON_CreateArray();
    for (int k = 0; k < s->nlevels; k++) {
        cJSON *level = cJSON_CreateObject();
        cJSON_AddItemToObject(level, "shape", integers(s->level[k].shape, s->type.ndim));
        cJSON_AddItemToObject(level, "factors", integers(s->level[k].factor, s->type.ndim));
        cJSON_AddItemToArray(list, level);
    }
    return list;
}

static bool has_spacing(const fv_view_source *s) {
    bool known = fv_view_unit(s) != NULL;
    for (int d = 0; d < s->type.ndim; d++) known = known || s->type.spacing[d] != 1;
    return known;
}

static void add_axes(cJSON *json, const fv_view_source *s) {
    cJSON *axes = cJSON_CreateArray(), *names = cJSON_CreateArray();
    for (int d = 0; d < s->type.ndim; d++) {
        cJSON_AddItemToArray(axes, cJSON_CreateString(s->axis[d]));
        cJSON_AddItemToArray(names, cJSON_CreateString(s->type.axis[d]));
    }
    cJSON_AddItemToObject(json, "axes", axes);
    cJSON_AddItemToObject(json, "axis_names", names);
}

cJSON *fv_view_image_json(const fv_view_image *image, int id, const fv_view_source *s) {
    const fv_image_type *type = &s->type;
    cJSON               *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "id", id);
    cJSON_AddNumberToObject(json, "serial", (double)s->serial);
    cJSON_AddStringToObject(json, "name", image->name);
    cJSON_AddStringToObject(json, "role", image->labels ? "labels" : "image");
    add_axes(json, s);
    cJSON_AddItemToObject(json, "shape", integers(type->shape, type->ndim));
    cJSON_AddStringToObject(json, "dtype", fv_dtype_name(type->dtype));
    cJSON_AddBoolToObject(json, "complex", fv_dtype_is_complex(type->dtype));
    cJSON_AddBoolToObject(json, "rgb", s->colour >= 0);
    cJSON_AddItemToObject(json, "spacing",
                          has_spacing(s) ? cJSON_CreateDoubleArray(type->spacing, type->ndim) : cJSON_CreateNull());
    cJSON_AddItemToObject(json, "origin", cJSON_CreateDoubleArray(type->origin, type->ndim));
    cJSON_AddItemToObject(json, "unit", fv_view_unit(s) ? cJSON_CreateString(fv_view_unit(s)) : cJSON_CreateNull());
    cJSON_AddItemToObject(json, "orientation", orientation_json(s));
    cJSON_AddItemToObject(json, "channels", channels_json(type));
    cJSON_AddItemToObject(json, "levels", levels_json(s));
    if (image->npaths > 1) {
        cJSON *list = cJSON_AddArrayToObject(json, "collection");
        for (int i = 0; i < image->npaths; i++) cJSON_AddItemToArray(list, cJSON_CreateString(fv__path_name(image->paths[i])));
    }
    if (image->live) fv_view_live_json(image->live, json);
    return json;
}
