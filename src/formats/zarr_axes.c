/* Axes of Zarr images. https://ngff.openmicroscopy.org/0.5/ */
#include "formats/zarr_axes.h"
#include "formats/zarr_array.h"
#include <math.h>
#include <stdio.h>

static const struct {
    const char *name, *kind;
} ome_axes[] = {
    { "t", "time" }, { "c", "channel" }, { "z", "space" }, { "y", "space" }, { "x", "space" },
};

static const cJSON *get(const cJSON *object, const char *name) { return cJSON_GetObjectItemCaseSensitive(object, name); }

/* ---------------------------------------------------------------- writing */

/* Place among OME's axes, or -1. */
static int ome_place(const char *name) {
    for (int i = 0; i < FV_COUNT(ome_axes); i++)
        if (!strcmp(name, ome_axes[i].name)) return i;
    return -1;
}

bool fv__zarr_is_ome(const fv_image_type *type) {
    int before = -1, n = type->ndim;
    for (int d = 0; d < n; d++) {
        int place = ome_place(type->axis[d]);
        if (place <= before) return false;
        before = place;
    }
    return n >= 2 && n <= 5 && !strcmp(type->axis[n - 2], "y") && !strcmp(type->axis[n - 1], "x");
}

static cJSON *compose_axes(const fv_image_type *type) {
    cJSON *axes = cJSON_CreateArray();
    for (int d = 0; d < type->ndim; d++) {
        cJSON *axis = cJSON_CreateObject();
        cJSON_AddStringToObject(axis, "name", type->axis[d]);
        cJSON_AddStringToObject(axis, "type", ome_axes[ome_place(type->axis[d])].kind);
        if (type->unit[d][0]) cJSON_AddStringToObject(axis, "unit", type->unit[d]);
        cJSON_AddItemToArray(axes, axis);
    }
    return axes;
}

static cJSON *transformation(const char *kind, const double *values, int n) {
    cJSON *step = cJSON_CreateObject();
    cJSON_AddStringToObject(step, "type", kind);
    cJSON_AddItemToObject(step, kind, fv__zarr_reals(values, n));
    return step;
}

static cJSON *compose_level(const fv_image_type *type, const fv_zarr_scale *scale, int number, bool mean) {
    cJSON *level = cJSON_CreateObject(), *steps = cJSON_CreateArray();
    char   path[16];
    double spacing[FV_MAX_DIMS], origin[FV_MAX_DIMS];
    snprintf(path, sizeof path, "%d", number);
    for (int d = 0; d < type->ndim; d++) {
        spacing[d] = type->spacing[d] * (double)scale->factor[d];
        origin[d] = type->origin[d] + (mean ? type->spacing[d] * (double)(scale->factor[d] - 1) / 2 : 0);
    }
    cJSON_AddItemToArray(steps, transformation("scale", spacing, type->ndim));
    cJSON_AddItemToArray(steps, transformation("translation", origin, type->ndim));
    cJSON_AddStringToObject(level, "path", path);
    cJSON_AddItemToObject(level, "coordinateTransformations", steps);
    return level;
}

static cJSON *compose_multiscale(const fv_image_type *type, int version, const fv_zarr_scale *scales, int nscales, bool mean) {
    cJSON *multiscale = cJSON_CreateObject(), *datasets = cJSON_CreateArray();
    if (version == 2) cJSON_AddStringToObject(multiscale, "version", "0.4");
    cJSON_AddItemToObject(multiscale, "axes", compose_axes(type));
    for (int i = 0; i < nscales; i++) cJSON_AddItemToArray(datasets, compose_level(type, &scales[i], i, mean));
    cJSON_AddItemToObject(multiscale, "datasets", datasets);
    if (nscales > 1) cJSON_AddStringToObject(multiscale, "type", mean ? "mean" : "nearest");
    return multiscale;
}

static cJSON *compose_private(const fv_image_type *type, bool with_axes) {
    cJSON *own = cJSON_CreateObject();
    if (type->has_affine) {
        cJSON_AddItemToObject(own, "affine", fv__zarr_reals(type->affine, 12));
        cJSON_AddItemToObject(own, "affine_code", fv__zarr_integer(type->affine_code));
    }
    if (!with_axes) return own;
    cJSON *axes = cJSON_AddArrayToObject(own, "axes");
    for (int d = 0; d < type->ndim; d++) {
        cJSON *axis = cJSON_CreateObject();
        cJSON_AddStringToObject(axis, "name", type->axis[d]);
        if (type->unit[d][0]) cJSON_AddStringToObject(axis, "unit", type->unit[d]);
        cJSON_AddItemToObject(axis, "spacing", fv__zarr_real(type->spacing[d]));
        cJSON_AddItemToObject(axis, "origin", fv__zarr_real(type->origin[d]));
        cJSON_AddItemToArray(axes, axis);
    }
    return own;
}

cJSON *fv__zarr_attributes_compose(const fv_image_type *type, int version, const fv_zarr_scale *scales, int nscales, bool mean) {
    cJSON *attributes = cJSON_CreateObject();
    bool   ome_image = fv__zarr_is_ome(type);
    if (ome_image) {
        cJSON *ome = version == 2 ? attributes : cJSON_AddObjectToObject(attributes, "ome");
        if (version == 3) cJSON_AddStringToObject(ome, "version", "0.5");
        cJSON_AddItemToArray(cJSON_AddArrayToObject(ome, "multiscales"),
                             compose_multiscale(type, version, scales, nscales, mean));
    }
    if (!ome_image || type->has_affine) cJSON_AddItemToObject(attributes, "fovea", compose_private(type, !ome_image));
    return attributes;
}

cJSON *fv__zarr_dimension_names(const fv_image_type *type) {
    cJSON *names = cJSON_CreateArray();
    for (int d = 0; d < type->ndim; d++) cJSON_AddItemToArray(names, cJSON_CreateString(type->axis[d]));
    return names;
}

/* ---------------------------------------------------------------- reading */

const cJSON *fv__zarr_multiscale(const cJSON *attributes) {
    const cJSON *list = get(get(attributes, "ome"), "multiscales");
    if (!list) list = get(attributes, "multiscales");
    const cJSON *first = cJSON_IsArray(list) ? cJSON_GetArrayItem(list, 0) : NULL;
    return cJSON_IsObject(first) ? first : NULL;
}

const char *fv__zarr_dataset(const cJSON *multiscale, int level) {
    const cJSON *datasets = get(multiscale, "datasets");
    const char  *path = cJSON_GetStringValue(get(cJSON_IsArray(datasets) ? cJSON_GetArrayItem(datasets, level) : NULL, "path"));
    if (!path || !*path || *path == '/') return NULL;
    for (const char *part = path; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
        if (!strncmp(part, "..", 2) && (part[2] == '/' || !part[2])) return NULL;
    return path;
}

static void set_text(char *to, size_t size, const cJSON *text) {
    const char *value = cJSON_GetStringValue(text);
    if (value) snprintf(to, size, "%s", value);
}

static void set_spacing(fv_image_type *type, int d, double spacing, double origin) {
    type->spacing[d] = isfinite(spacing) && spacing != 0 ? fabs(spacing) : 1;
    type->origin[d] = isfinite(origin) ? origin : 0;
}

/* The first scale and translation of a list, on top of what is there: inner ones come first. */
static void apply_transformations(const cJSON *steps, double *scale, double *translation, int n) {
    const cJSON *step;
    double       value[FV_MAX_DIMS];
    cJSON_ArrayForEach(step, steps) {
        const char *kind = cJSON_GetStringValue(get(step, "type"));
        if (kind && !strcmp(kind, "scale") && fv__zarr_get_reals(get(step, "scale"), value, n))
            for (int d = 0; d < n; d++) {
                scale[d] *= value[d];
                translation[d] *= value[d];
            }
        if (kind && !strcmp(kind, "translation") && fv__zarr_get_reals(get(step, "translation"), value, n))
            for (int d = 0; d < n; d++) translation[d] += value[d];
    }
}

static fv_status parse_multiscale(const cJSON *multiscale, const char *path, fv_image_type *type, fv_error *error) {
    const cJSON *axes = get(multiscale, "axes"), *axis;
    double       scale[FV_MAX_DIMS] = { 1, 1, 1, 1, 1, 1 }, translation[FV_MAX_DIMS] = { 0 };
    int          d = 0;
    if (axes && cJSON_GetArraySize(axes) != type->ndim)
        return fv_fail(error, FV_ERROR_INPUT, "%s: \"multiscales\" describes %d axes, the array has %d", path,
                       cJSON_GetArraySize(axes), type->ndim);
    cJSON_ArrayForEach(axis, axes) { /* version 0.3 lists names only */
        set_text(type->axis[d], sizeof type->axis[d], cJSON_IsString(axis) ? axis : get(axis, "name"));
        set_text(type->unit[d], sizeof type->unit[d], get(axis, "unit"));
        d++;
    }
    apply_transformations(get(cJSON_GetArrayItem(get(multiscale, "datasets"), 0), "coordinateTransformations"), scale,
                          translation, type->ndim);
    apply_transformations(get(multiscale, "coordinateTransformations"), scale, translation, type->ndim);
    for (d = 0; d < type->ndim; d++) set_spacing(type, d, scale[d], translation[d]);
    return FV_OK;
}

static double number_or(const cJSON *json, double otherwise) { return cJSON_IsNumber(json) ? json->valuedouble : otherwise; }

static void parse_private(const cJSON *own, fv_image_type *type) {
    const cJSON *axes = get(own, "axes"), *axis;
    int          d = 0;
    if (cJSON_IsArray(axes) && cJSON_GetArraySize(axes) == type->ndim) cJSON_ArrayForEach(axis, axes) {
            set_text(type->axis[d], sizeof type->axis[d], get(axis, "name"));
            set_text(type->unit[d], sizeof type->unit[d], get(axis, "unit"));
            set_spacing(type, d, number_or(get(axis, "spacing"), 1), number_or(get(axis, "origin"), 0));
            d++;
        }
    double code = number_or(get(own, "affine_code"), 0);
    type->has_affine = fv__zarr_get_reals(get(own, "affine"), type->affine, 12);
    if (!type->has_affine) memset(type->affine, 0, sizeof type->affine);
    type->affine_code = type->has_affine && code >= 0 && code < 100 ? (int)code : 0;
}

/* Every axis has a name of its own, whatever the file says; names too long for us are cut. */
static void repair_names(fv_image_type *type) {
    fv_image_type usual;
    bool          good = true;
    fv_image_type_init(&usual, type->dtype, type->ndim, type->shape);
    for (int d = 0; d < type->ndim; d++) {
        if (!type->axis[d][0]) good = false;
        for (int e = 0; e < d; e++)
            if (!strcmp(type->axis[d], type->axis[e])) good = false;
    }
    if (!good) memcpy(type->axis, usual.axis, sizeof type->axis);
}

fv_status fv__zarr_axes_parse(const cJSON *names, const cJSON *attributes, const cJSON *multiscale, const char *path,
                              fv_image_type *type, fv_error *error) {
    if (cJSON_IsArray(names) && cJSON_GetArraySize(names) == type->ndim)
        for (int d = 0; d < type->ndim; d++) set_text(type->axis[d], sizeof type->axis[d], cJSON_GetArrayItem(names, d));
    if (multiscale) FV_TRY(parse_multiscale(multiscale, path, type, error));
    parse_private(get(attributes, "fovea"), type);
    repair_names(type);
    return FV_OK;
}
