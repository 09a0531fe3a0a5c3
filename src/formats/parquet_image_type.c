/* The type of an image in the metadata of a Parquet file. */
#include "formats/parquet_image.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

fv_status fv__slices_of(const fv_image_type *type, const char *path, fv_slices *slices, fv_error *error) {
    int plane = type->ndim > 2 && !strcmp(type->axis[type->ndim - 1], "c") ? 3 : 2;
    if (type->ndim < 2) return fv_fail(error, FV_ERROR_USAGE, "%s: an image needs two axes or more to be rows of slices", path);
    *slices = (fv_slices){ .leading = type->ndim - plane, .count = 1, .bytes = (int64_t)fv_dtype_size(type->dtype) };
    for (int d = 0; d < type->ndim; d++)
        if (!fv__mul(d < slices->leading ? slices->count : slices->bytes, type->shape[d],
                     d < slices->leading ? &slices->count : &slices->bytes))
            return fv_fail(error, FV_ERROR_INPUT, "%s: the image is larger than 2^63 bytes", path);
    if (slices->bytes > FV_PARQUET_MOST_SLICE)
        return fv_fail(error, FV_ERROR_USAGE, "%s: a slice of %lld bytes is too large for a row of a Parquet file; at most 1 GB",
                       path, (long long)slices->bytes);
    return FV_OK;
}

/* ---------------------------------------------------------------- writing */

static void add_texts(cJSON *json, const char *name, const char *texts, size_t step, int count) {
    cJSON *list = cJSON_AddArrayToObject(json, name);
    for (int i = 0; i < count; i++) cJSON_AddItemToArray(list, cJSON_CreateString(texts + (size_t)i * step));
}

char *fv__parquet_image_text(const fv_image_type *type, const double *angles) {
    cJSON *json = cJSON_CreateObject(), *shape = cJSON_AddArrayToObject(json, "shape");
    for (int d = 0; d < type->ndim; d++) cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)type->shape[d]));
    cJSON_AddStringToObject(json, "dtype", fv_dtype_name(type->dtype));
    add_texts(json, "axes", type->axis[0], sizeof type->axis[0], type->ndim);
    cJSON_AddItemToObject(json, "spacing", cJSON_CreateDoubleArray(type->spacing, type->ndim));
    cJSON_AddItemToObject(json, "origin", cJSON_CreateDoubleArray(type->origin, type->ndim));
    add_texts(json, "units", type->unit[0], sizeof type->unit[0], type->ndim);
    if (angles) cJSON_AddItemToObject(json, "angles", cJSON_CreateDoubleArray(angles, (int)type->shape[0]));
    if (type->has_affine) {
        cJSON_AddItemToObject(json, "affine", cJSON_CreateDoubleArray(type->affine, FV_COUNT(type->affine)));
        cJSON_AddNumberToObject(json, "affine_code", type->affine_code);
    }
    char *text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    return text;
}

/* ---------------------------------------------------------------- reading */

static fv_status wrong(const char *path, const char *field, fv_error *error) {
    return fv_fail(error, FV_ERROR_INPUT, "%s: %s of " FV_PARQUET_IMAGE " in its metadata is missing or wrong", path, field);
}

/* A list of finite numbers; false: it is none, or of another length. */
static bool take_numbers(const cJSON *json, const char *name, double *values, int count) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, name);
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != count) return false;
    int i = 0;
    for (const cJSON *item = list->child; item; item = item->next) {
        if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble)) return false;
        values[i++] = item->valuedouble;
    }
    return true;
}

static bool take_texts(const cJSON *json, const char *name, char *texts, size_t step, int count) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, name);
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != count) return false;
    int i = 0;
    for (const cJSON *item = list->child; item; item = item->next, i++) {
        if (!cJSON_IsString(item) || strlen(item->valuestring) >= step) return false;
        snprintf(texts + (size_t)i * step, step, "%s", item->valuestring);
    }
    return true;
}

static fv_status parse(const cJSON *json, const char *path, fv_image_type *type, fv_error *error) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "shape");
    const char  *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "dtype"));
    int          ndim = cJSON_GetArraySize(list);
    double       numbers[FV_MAX_DIMS];
    int64_t      shape[FV_MAX_DIMS];
    fv_dtype     dtype;
    if (ndim < 2 || ndim > FV_MAX_DIMS || !take_numbers(json, "shape", numbers, ndim)) return wrong(path, "shape", error);
    for (int d = 0; d < ndim; d++) {
        if (numbers[d] < 1 || numbers[d] > 1e15 || numbers[d] != floor(numbers[d])) return wrong(path, "shape", error);
        shape[d] = (int64_t)numbers[d];
    }
    if (!name || !fv_dtype_parse(name, &dtype)) return wrong(path, "dtype", error);
    fv_image_type_init(type, dtype, ndim, shape);
    if (fv_image_type_bytes(type) < 0) return wrong(path, "shape", error);
    if (!take_texts(json, "axes", type->axis[0], sizeof type->axis[0], ndim)) return wrong(path, "axes", error);
    if (!take_numbers(json, "spacing", type->spacing, ndim)) return wrong(path, "spacing", error);
    if (!take_numbers(json, "origin", type->origin, ndim)) return wrong(path, "origin", error);
    if (!take_texts(json, "units", type->unit[0], sizeof type->unit[0], ndim)) return wrong(path, "units", error);
    type->has_affine = take_numbers(json, "affine", type->affine, FV_COUNT(type->affine));
    double code = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(json, "affine_code"));
    type->affine_code = code >= 0 && code < 100 ? (int)code : 0;
    return FV_OK;
}

static double *parse_angles(const cJSON *json, const fv_image_type *type) {
    int count = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "angles"));
    if (count < 1 || count != type->shape[0]) return NULL;
    double *angles = fv__alloc((size_t)count * sizeof *angles);
    if (take_numbers(json, "angles", angles, count)) return angles;
    free(angles);
    return NULL;
}

fv_status fv__parquet_image_parse(const char *text, const char *path, fv_image_type *type, double **angles, fv_error *error) {
    cJSON    *json = cJSON_Parse(text);
    fv_status status = cJSON_IsObject(json) ? parse(json, path, type, error) : wrong(path, "the text", error);
    if (status == FV_OK) *angles = parse_angles(json, type);
    cJSON_Delete(json);
    return status;
}
