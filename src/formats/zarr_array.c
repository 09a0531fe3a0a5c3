/* Metadata of Zarr arrays. https://zarr-specs.readthedocs.io/en/latest/v3/core/ */
#include "formats/zarr_array.h"
#include "base/file.h"
#include "base/number.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGEST_JSON = 4 << 20, MOST_IN_SHARD = 1 << 22 };

/* ---------------------------------------------------------------- JSON */

fv_status fv__zarr_load(const char *path, fv_hasher *hasher, cJSON **json, fv_error *error) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* cJSON notes the place of an error in a variable of the process */
    fv_bytes               text = { 0 };
    fv_status              status = fv__file_read_all(path, LARGEST_JSON, &text, error);
    *json = NULL;
    if (status == FV_OK) {
        fv__hasher_add(hasher, text.data, text.size);
        pthread_mutex_lock(&mutex);
        *json = cJSON_ParseWithLength((char *)text.data, text.size);
        pthread_mutex_unlock(&mutex);
        if (!cJSON_IsObject(*json)) {
            cJSON_Delete(*json);
            *json = NULL;
            status = fv_fail(error, FV_ERROR_INPUT, "%s is not a JSON object", path);
        }
    }
    fv__bytes_release(&text);
    return status;
}

cJSON *fv__zarr_integer(int64_t value) {
    char text[FV_NUMBER_SIZE];
    fv__integer_format(value, text);
    return cJSON_CreateRaw(text);
}

cJSON *fv__zarr_real(double value) {
    char text[FV_NUMBER_SIZE];
    fv__real_format(isfinite(value) ? value : 0, text);
    return cJSON_CreateRaw(text);
}

cJSON *fv__zarr_integers(const int64_t *values, int n) {
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < n; i++) cJSON_AddItemToArray(list, fv__zarr_integer(values[i]));
    return list;
}

cJSON *fv__zarr_reals(const double *values, int n) {
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < n; i++) cJSON_AddItemToArray(list, fv__zarr_real(values[i]));
    return list;
}

bool fv__zarr_get_reals(const cJSON *list, double *values, int n) {
    const cJSON *item;
    int          i = 0;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != n) return false;
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble)) return false;
        values[i++] = item->valuedouble;
    }
    return true;
}

static const cJSON *get(const cJSON *object, const char *name) { return cJSON_GetObjectItemCaseSensitive(object, name); }

/* A codec, grid or encoding is {"name": ..., "configuration": {...}} or only its name. */
static const char *name_of(const cJSON *item) {
    const char *text = cJSON_GetStringValue(cJSON_IsString(item) ? item : get(item, "name"));
    return text ? text : "";
}

/* ---------------------------------------------------------------- sizes */

static fv_status get_sizes(const cJSON *list, const char *name, const char *path, int64_t *sizes, int *n, fv_error *error) {
    int count = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
    if (count < 1 || count > FV_MAX_DIMS || (*n && count != *n))
        return fv_fail(error, FV_ERROR_INPUT, "%s: \"%s\" must be a list of %d%s numbers; it has %d", path, name, *n ? *n : 1,
                       *n ? "" : " to 6", count);
    const cJSON *item;
    *n = 0;
    cJSON_ArrayForEach(item, list) {
        double value = cJSON_IsNumber(item) ? item->valuedouble : 0;
        if (!(value >= 1 && value <= 0x1p53) || value != floor(value))
            return fv_fail(error, FV_ERROR_INPUT, "%s: entry %d of \"%s\" must be a whole number of at least 1", path, *n, name);
        sizes[(*n)++] = (int64_t)value;
    }
    return FV_OK;
}

int64_t fv__zarr_chunk_bytes(const fv_zarr_array *array) {
    int64_t bytes = (int64_t)fv_dtype_size(array->dtype);
    for (int d = 0; d < array->ndim; d++)
        if (!fv__mul(bytes, array->chunk[d], &bytes)) return -1;
    return bytes;
}

static fv_status check_sizes(const fv_zarr_array *array, const char *path, fv_error *error) {
    fv_image_type type;
    int64_t       bytes = fv__zarr_chunk_bytes(array);
    fv_image_type_init(&type, array->dtype, array->ndim, array->shape);
    if (fv_image_type_bytes(&type) < 0) return fv_fail(error, FV_ERROR_INPUT, "%s: \"shape\" overflows", path);
    if (bytes < 0 || bytes > FV_ZARR_LARGEST_CHUNK)
        return fv_fail(error, FV_ERROR_INPUT, "%s: a chunk has more than %lld bytes, the most that is read", path,
                       (long long)FV_ZARR_LARGEST_CHUNK);
    for (int d = 0; d < array->ndim; d++)
        if (array->file[d] % array->chunk[d])
            return fv_fail(error, FV_ERROR_INPUT, "%s: a shard of %lld along axis %d is no whole number of chunks of %lld", path,
                           (long long)array->file[d], d, (long long)array->chunk[d]);
    if (fv__zarr_shard_chunks(array) < 0)
        return fv_fail(error, FV_ERROR_INPUT, "%s: a shard has more than %d chunks, the most that is read", path, MOST_IN_SHARD);
    return FV_OK;
}

int64_t fv__zarr_shard_chunks(const fv_zarr_array *array) {
    int64_t count = 1;
    for (int d = 0; d < array->ndim; d++)
        if (!fv__mul(count, array->file[d] / array->chunk[d], &count) || count > MOST_IN_SHARD) return -1;
    return count;
}

bool fv__zarr_next(int ndim, const int64_t *grid, const fv_region *region, fv_region *box) {
    bool first = box->ndim == 0;
    box->ndim = ndim;
    for (int d = ndim - 1; d >= 0; d--) {
        box->size[d] = grid[d];
        if (!first) {
            box->start[d] += grid[d];
            if (box->start[d] < region->start[d] + region->size[d]) return true;
        }
        box->start[d] = region->start[d] / grid[d] * grid[d];
    }
    return first;
}

/* ---------------------------------------------------------------- the fill value */

static bool special_real(const char *text, double *value) {
    if (!strcmp(text, "NaN"))
        *value = NAN;
    else if (!strcmp(text, "Infinity"))
        *value = INFINITY;
    else if (!strcmp(text, "-Infinity"))
        *value = -INFINITY;
    else
        return false;
    return true;
}

static bool fill_real(const cJSON *json, bool wide, uint8_t *fill) {
    double value = cJSON_IsNumber(json) ? json->valuedouble : 0;
    if (cJSON_IsString(json) && !strncmp(json->valuestring, "0x", 2)) { /* the bits */
        uint64_t bits = strtoull(json->valuestring, NULL, 16);
        uint32_t low = (uint32_t)bits;
        memcpy(fill, wide ? (void *)&bits : (void *)&low, wide ? 8 : 4);
        return true;
    }
    if (!cJSON_IsNumber(json) && !(cJSON_IsString(json) && special_real(json->valuestring, &value))) return false;
    float narrow = (float)value;
    memcpy(fill, wide ? (void *)&value : (void *)&narrow, wide ? 8 : 4);
    return true;
}

/* JSON's numbers come as doubles: beyond 2^53 only the ends of the range are certain. */
static bool fill_integer(const cJSON *json, fv_dtype dtype, uint8_t *fill) {
    if (!cJSON_IsNumber(json)) return false;
    double   value = json->valuedouble, bits = 8 * (double)fv_dtype_size(dtype);
    bool     has_sign = fv_dtype_is_signed(dtype);
    double   least = has_sign ? -ldexp(1, (int)bits - 1) : 0, above = ldexp(1, (int)bits - has_sign);
    uint64_t result;
    if (value != floor(value) || value < least || value > above || (bits < 64 && value == above)) return false;
    if (value == above)
        result = has_sign ? INT64_MAX : UINT64_MAX;
    else if (fabs(value) > 0x1p53 && value != least)
        return false;
    else
        result = value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
    for (size_t i = 0; i < fv_dtype_size(dtype); i++) {
        size_t place = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? i : fv_dtype_size(dtype) - 1 - i;
        fill[place] = (uint8_t)(result >> 8 * i);
    }
    return true;
}

static fv_status get_fill(const cJSON *json, const char *path, fv_zarr_array *array, fv_error *error) {
    bool   good = false;
    size_t half = fv_dtype_size(array->dtype) / 2;
    memset(array->fill, 0, sizeof array->fill);
    if (!json || cJSON_IsNull(json)) return FV_OK;
    if (array->dtype == FV_BOOL) {
        good = cJSON_IsBool(json) || cJSON_IsNumber(json);
        array->fill[0] = cJSON_IsTrue(json) || (cJSON_IsNumber(json) && json->valuedouble != 0);
    } else if (fv_dtype_is_complex(array->dtype)) {
        good = cJSON_IsArray(json) && cJSON_GetArraySize(json) == 2 &&
               fill_real(cJSON_GetArrayItem(json, 0), half == 8, array->fill) &&
               fill_real(cJSON_GetArrayItem(json, 1), half == 8, array->fill + half);
        if (cJSON_IsNumber(json)) good = fill_real(json, half == 8, array->fill);
    } else if (fv_dtype_is_float(array->dtype))
        good = fill_real(json, array->dtype == FV_FLOAT64, array->fill);
    else
        good = fill_integer(json, array->dtype, array->fill);
    return good ? FV_OK : fv_fail(error, FV_ERROR_INPUT, "%s: \"fill_value\" is no exact %s", path, fv_dtype_name(array->dtype));
}

/* ---------------------------------------------------------------- version 3 */

static fv_status get_grid(const cJSON *json, const char *path, fv_zarr_array *array, fv_error *error) {
    const cJSON *grid = get(json, "chunk_grid"), *keys = get(json, "chunk_key_encoding");
    if (strcmp(name_of(grid), "regular"))
        return fv_fail(error, FV_ERROR_INPUT, "%s: the chunk grid \"%s\" is not known; only \"regular\" is", path, name_of(grid));
    FV_TRY(get_sizes(get(get(grid, "configuration"), "chunk_shape"), "chunk_shape", path, array->chunk, &array->ndim, error));
    array->prefixed = strcmp(name_of(keys), "v2");
    if (array->prefixed && strcmp(name_of(keys), "default"))
        return fv_fail(error, FV_ERROR_INPUT, "%s: the chunk key encoding \"%s\" is not known; \"default\" and \"v2\" are", path,
                       name_of(keys));
    const char *separator = cJSON_GetStringValue(get(get(keys, "configuration"), "separator"));
    if (!separator) separator = array->prefixed ? "/" : ".";
    if (strcmp(separator, "/") && strcmp(separator, "."))
        return fv_fail(error, FV_ERROR_INPUT, "%s: the separator of chunk keys must be \"/\" or \".\"", path);
    array->separator = separator[0];
    return FV_OK;
}

/* A permutation of the axes, or false. */
static bool get_order(const cJSON *list, fv_zarr_array *array) {
    unsigned seen = 0;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != array->ndim) return false;
    for (int d = 0; d < array->ndim; d++) {
        const cJSON *item = cJSON_GetArrayItem(list, d);
        double       axis = cJSON_IsNumber(item) ? item->valuedouble : -1;
        if (!(axis >= 0 && axis < array->ndim) || axis != floor(axis) || seen & 1u << (int)axis) return false;
        seen |= 1u << (int)axis;
        array->order[d] = (int)axis;
        if (axis != d) array->turned = true;
    }
    return true;
}

static bool get_endian(const cJSON *settings, bool *big) {
    const char *endian = cJSON_GetStringValue(get(settings, "endian"));
    *big = endian && !strcmp(endian, "big");
    return !endian || *big || !strcmp(endian, "little");
}

static bool get_packing(const char *name, fv_zarr_codec *codec) {
    static const struct {
        const char     *name;
        fv_zarr_packing packing;
    } packings[] = {
        { "zstd", FV_ZARR_ZSTD }, { "blosc", FV_ZARR_BLOSC },         { "gzip", FV_ZARR_GZIP },
        { "zlib", FV_ZARR_ZLIB }, { "numcodecs.zlib", FV_ZARR_ZLIB }, { "numcodecs.zstd", FV_ZARR_ZSTD },
    };
    for (int i = 0; i < FV_COUNT(packings); i++)
        if (!strcmp(name, packings[i].name)) {
            codec->packing = packings[i].packing;
            return true;
        }
    return false;
}

/* In this order: transpose, bytes, at most one compressor, crc32c. */
static fv_status get_codecs(const cJSON *codecs, const char *path, fv_zarr_array *array, fv_error *error) {
    enum { ARRAY, TURNED, BYTES, PACKED, SUMMED } step = ARRAY;
    const cJSON *codec;
    cJSON_ArrayForEach(codec, codecs) {
        const char  *name = name_of(codec);
        const cJSON *settings = get(codec, "configuration");
        int          now = SUMMED + 1;
        if (!strcmp(name, "transpose") && step == ARRAY && get_order(get(settings, "order"), array)) now = TURNED;
        if (!strcmp(name, "bytes") && step < BYTES && get_endian(settings, &array->big_endian)) now = BYTES;
        if (step == BYTES && get_packing(name, &array->codec)) now = PACKED;
        if (!strcmp(name, "crc32c") && (step == BYTES || step == PACKED)) {
            array->codec.crc32c = true;
            now = SUMMED;
        }
        if (now > SUMMED)
            return fv_fail(
                error, FV_ERROR_INPUT,
                "%s: the codec \"%.40s\" at this place is not known; transpose, bytes, then zstd, blosc, gzip or zlib, "
                "then crc32c are read, within shards or not",
                path, name);
        step = now;
    }
    return step < BYTES ? fv_fail(error, FV_ERROR_INPUT, "%s: \"codecs\" must have a codec \"bytes\"", path) : FV_OK;
}

/* A file of many chunks with an index: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed/ */
static fv_status get_shard(const cJSON *settings, const char *path, fv_zarr_array *array, fv_error *error) {
    const cJSON *index = get(settings, "index_codecs");
    const char  *place = cJSON_GetStringValue(get(settings, "index_location"));
    const char  *second = name_of(cJSON_GetArrayItem(index, 1));
    int          count = cJSON_GetArraySize(index);
    bool         big;
    FV_TRY(get_sizes(get(settings, "chunk_shape"), "chunk_shape", path, array->chunk, &array->ndim, error));
    if (count < 1 || count > 2 || strcmp(name_of(cJSON_GetArrayItem(index, 0)), "bytes") ||
        (count == 2 && strcmp(second, "crc32c")) || !get_endian(get(cJSON_GetArrayItem(index, 0), "configuration"), &big) || big)
        return fv_fail(error, FV_ERROR_INPUT, "%s: \"index_codecs\" must be \"bytes\", little endian, and perhaps \"crc32c\"",
                       path);
    if (place && strcmp(place, "start") && strcmp(place, "end"))
        return fv_fail(error, FV_ERROR_INPUT, "%s: \"index_location\" must be \"start\" or \"end\"", path);
    array->sharded = true;
    array->index_first = place && !strcmp(place, "start");
    array->index_summed = count == 2;
    return get_codecs(get(settings, "codecs"), path, array, error);
}

static fv_status get_layout(const cJSON *codecs, const char *path, fv_zarr_array *array, fv_error *error) {
    const cJSON *first = cJSON_GetArrayItem(codecs, 0);
    memcpy(array->file, array->chunk, sizeof array->file);
    for (int d = 0; d < FV_MAX_DIMS; d++) array->order[d] = d;
    if (!strcmp(name_of(first), "sharding_indexed") && cJSON_GetArraySize(codecs) == 1)
        return get_shard(get(first, "configuration"), path, array, error);
    return get_codecs(codecs, path, array, error);
}

fv_status fv__zarr_array_parse(const cJSON *json, const char *path, fv_zarr_array *array, fv_error *error) {
    const char *type = cJSON_GetStringValue(get(json, "data_type"));
    *array = (fv_zarr_array){ .version = 3 };
    if (!type || !fv_dtype_parse(type, &array->dtype))
        return fv_fail(error, FV_ERROR_INPUT, "%s: the data type \"%.40s\" cannot be read", path, type ? type : "(none)");
    FV_TRY(get_sizes(get(json, "shape"), "shape", path, array->shape, &array->ndim, error));
    FV_TRY(get_grid(json, path, array, error));
    FV_TRY(get_layout(get(json, "codecs"), path, array, error));
    if (cJSON_GetArraySize(get(json, "storage_transformers")) > 0)
        return fv_fail(error, FV_ERROR_INPUT, "%s: storage transformers are not known", path);
    FV_TRY(get_fill(get(json, "fill_value"), path, array, error));
    return check_sizes(array, path, error);
}

/* ---------------------------------------------------------------- version 2 */

static const struct {
    const char *code;
    fv_dtype    dtype;
} v2_types[] = {
    { "b1", FV_BOOL },    { "u1", FV_UINT8 },     { "i1", FV_INT8 },        { "u2", FV_UINT16 }, { "i2", FV_INT16 },
    { "u4", FV_UINT32 },  { "i4", FV_INT32 },     { "u8", FV_UINT64 },      { "i8", FV_INT64 },  { "f4", FV_FLOAT32 },
    { "f8", FV_FLOAT64 }, { "c8", FV_COMPLEX64 }, { "c16", FV_COMPLEX128 },
};

static bool parse_v2_type(const char *text, fv_zarr_array *array) {
    if (!text || !*text || !strchr("<>|", text[0])) return false;
    array->big_endian = text[0] == '>';
    for (int i = 0; i < FV_COUNT(v2_types); i++)
        if (!strcmp(text + 1, v2_types[i].code)) {
            array->dtype = v2_types[i].dtype;
            return true;
        }
    return false;
}

static fv_status get_compressor(const cJSON *json, const char *path, fv_zarr_array *array, fv_error *error) {
    const cJSON *compressor = get(json, "compressor");
    if (cJSON_GetArraySize(get(json, "filters")) > 0) return fv_fail(error, FV_ERROR_INPUT, "%s: filters are not known", path);
    if (!compressor || cJSON_IsNull(compressor)) return FV_OK;
    const char *name = cJSON_GetStringValue(get(compressor, "id"));
    if (name && get_packing(name, &array->codec)) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "%s: the compressor \"%.40s\" is not known; zstd, blosc, gzip and zlib are", path,
                   name ? name : "");
}

fv_status fv__zarr_array_parse_v2(const cJSON *json, const char *path, fv_zarr_array *array, fv_error *error) {
    *array = (fv_zarr_array){ .version = 2, .separator = '.' };
    const char *type = cJSON_GetStringValue(get(json, "dtype")), *order = cJSON_GetStringValue(get(json, "order"));
    const char *separator = cJSON_GetStringValue(get(json, "dimension_separator"));
    if (!parse_v2_type(type, array))
        return fv_fail(error, FV_ERROR_INPUT, "%s: the data type \"%.40s\" cannot be read", path, type ? type : "(structured)");
    FV_TRY(get_sizes(get(json, "shape"), "shape", path, array->shape, &array->ndim, error));
    FV_TRY(get_sizes(get(json, "chunks"), "chunks", path, array->chunk, &array->ndim, error));
    memcpy(array->file, array->chunk, sizeof array->file);
    if (order && strcmp(order, "C") && strcmp(order, "F"))
        return fv_fail(error, FV_ERROR_INPUT, "%s: \"order\" must be \"C\" or \"F\"", path);
    array->turned = order && order[0] == 'F' && array->ndim > 1;
    for (int d = 0; d < array->ndim; d++) array->order[d] = array->turned ? array->ndim - 1 - d : d;
    if (separator && !strcmp(separator, "/")) array->separator = '/';
    FV_TRY(get_compressor(json, path, array, error));
    FV_TRY(get_fill(get(json, "fill_value"), path, array, error));
    return check_sizes(array, path, error);
}

/* ---------------------------------------------------------------- writing */

static cJSON *named(const char *name, cJSON *configuration) {
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "name", name);
    if (configuration) cJSON_AddItemToObject(item, "configuration", configuration);
    return item;
}

static cJSON *bytes_codec(size_t element) {
    cJSON *settings = element > 1 ? cJSON_CreateObject() : NULL;
    if (settings) cJSON_AddStringToObject(settings, "endian", "little");
    return named("bytes", settings);
}

/* What the compressor is told: in version 3 its configuration, in version 2 with its id in front. */
static cJSON *compose_settings(const fv_zarr_codec *codec, int version) {
    cJSON *settings = cJSON_CreateObject();
    bool   shuffled = codec->element > 1;
    if (version == 2) cJSON_AddStringToObject(settings, "id", fv__zarr_packing_name(codec->packing));
    if (codec->packing != FV_ZARR_BLOSC) {
        cJSON_AddItemToObject(settings, "level", fv__zarr_integer(codec->level));
        if (codec->packing == FV_ZARR_ZSTD && version == 3) cJSON_AddTrueToObject(settings, "checksum");
        return settings;
    }
    cJSON_AddStringToObject(settings, "cname", codec->inner);
    cJSON_AddItemToObject(settings, "clevel", fv__zarr_integer(codec->level));
    if (version == 2)
        cJSON_AddItemToObject(settings, "shuffle", fv__zarr_integer(shuffled));
    else {
        cJSON_AddStringToObject(settings, "shuffle", shuffled ? "shuffle" : "noshuffle");
        cJSON_AddItemToObject(settings, "typesize", fv__zarr_integer(codec->element));
    }
    cJSON_AddItemToObject(settings, "blocksize", fv__zarr_integer(0));
    return settings;
}

static cJSON *compose_codecs(const fv_zarr_array *array) {
    const fv_zarr_codec *codec = &array->codec;
    cJSON               *codecs = cJSON_CreateArray();
    cJSON_AddItemToArray(codecs, bytes_codec(fv_dtype_size(array->dtype)));
    if (codec->packing != FV_ZARR_NONE)
        cJSON_AddItemToArray(codecs, named(fv__zarr_packing_name(codec->packing), compose_settings(codec, 3)));
    if (!array->sharded) return codecs;
    cJSON *settings = cJSON_CreateObject(), *index = cJSON_CreateArray(), *shard = cJSON_CreateArray();
    cJSON_AddItemToObject(settings, "chunk_shape", fv__zarr_integers(array->chunk, array->ndim));
    cJSON_AddItemToObject(settings, "codecs", codecs);
    cJSON_AddItemToArray(index, bytes_codec(8));
    cJSON_AddItemToArray(index, named("crc32c", NULL));
    cJSON_AddItemToObject(settings, "index_codecs", index);
    cJSON_AddStringToObject(settings, "index_location", "end");
    cJSON_AddItemToArray(shard, named("sharding_indexed", settings));
    return shard;
}

static cJSON *compose_fill(fv_dtype dtype) {
    if (dtype == FV_BOOL) return cJSON_CreateFalse();
    if (fv_dtype_is_complex(dtype)) return fv__zarr_reals((double[]){ 0, 0 }, 2);
    return fv__zarr_integer(0);
}

static cJSON *compose_v2(const fv_zarr_array *array) {
    cJSON *json = cJSON_CreateObject();
    char   type[8];
    for (int i = 0; i < FV_COUNT(v2_types); i++)
        if (v2_types[i].dtype == array->dtype)
            snprintf(type, sizeof type, "%c%s", fv_dtype_size(array->dtype) > 1 ? '<' : '|', v2_types[i].code);
    cJSON_AddItemToObject(json, "zarr_format", fv__zarr_integer(2));
    cJSON_AddItemToObject(json, "shape", fv__zarr_integers(array->shape, array->ndim));
    cJSON_AddItemToObject(json, "chunks", fv__zarr_integers(array->chunk, array->ndim));
    cJSON_AddStringToObject(json, "dtype", type);
    cJSON_AddItemToObject(json, "fill_value", compose_fill(array->dtype));
    cJSON_AddStringToObject(json, "order", "C");
    cJSON_AddNullToObject(json, "filters");
    cJSON_AddStringToObject(json, "dimension_separator", array->separator == '/' ? "/" : ".");
    cJSON_AddItemToObject(json, "compressor",
                          array->codec.packing == FV_ZARR_NONE ? cJSON_CreateNull() : compose_settings(&array->codec, 2));
    return json;
}

static cJSON *compose_v3(const fv_zarr_array *array) {
    cJSON *json = cJSON_CreateObject(), *grid = cJSON_CreateObject(), *keys = cJSON_CreateObject();
    cJSON_AddItemToObject(json, "zarr_format", fv__zarr_integer(3));
    cJSON_AddStringToObject(json, "node_type", "array");
    cJSON_AddItemToObject(json, "shape", fv__zarr_integers(array->shape, array->ndim));
    cJSON_AddStringToObject(json, "data_type", fv_dtype_name(array->dtype));
    cJSON_AddItemToObject(grid, "chunk_shape", fv__zarr_integers(array->file, array->ndim));
    cJSON_AddItemToObject(json, "chunk_grid", named("regular", grid));
    cJSON_AddStringToObject(keys, "separator", array->separator == '/' ? "/" : ".");
    cJSON_AddItemToObject(json, "chunk_key_encoding", named("default", keys));
    cJSON_AddItemToObject(json, "fill_value", compose_fill(array->dtype));
    cJSON_AddItemToObject(json, "codecs", compose_codecs(array));
    return json;
}

cJSON *fv__zarr_array_compose(const fv_zarr_array *array) { return array->version == 2 ? compose_v2(array) : compose_v3(array); }

/* ---------------------------------------------------------------- file names */

char *fv__zarr_file_path(const fv_zarr_array *array, const char *folder, const int64_t *start) {
    char   key[FV_MAX_DIMS * 24 + 4] = "";
    size_t used = 0;
    if (array->prefixed) key[used++] = 'c';
    for (int d = 0; d < array->ndim; d++)
        used += (size_t)snprintf(key + used, sizeof key - used, "%.*s%lld", used > 0, &array->separator,
                                 (long long)(start[d] / array->file[d]));
    return fv__path_inside(folder, key);
}
