/* Statistics of what is shown. */
#include "view/view_statistics.h"
#include "base/take.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1 << 20, BINS = 256, PLANES = 8 };

/* Boxes of a level that are looked at. */
typedef struct {
    int       level, count;
    fv_region part[PLANES];
    char      text[48];
} sample;

static int64_t voxels_in_space(const fv_view_source *s, const fv_view_level *l) {
    int64_t voxels = s->colour >= 0 ? l->shape[s->colour] : 1;
    for (int i = 0; i < FV_VIEW_SPACE; i++)
        if (s->space[i] >= 0) voxels *= l->shape[s->space[i]];
    return voxels;
}

static fv_region space_region(const fv_view_source *s, const fv_view_level *l, const int64_t *fixed) {
    fv_region region = { .ndim = s->type.ndim };
    for (int d = 0; d < region.ndim; d++) {
        region.start[d] = fixed[d];
        region.size[d] = 1;
    }
    if (s->colour >= 0) region.start[s->colour] = 0;
    if (s->colour >= 0) region.size[s->colour] = FV_MIN(l->shape[s->colour], 3);
    for (int i = 0; i < FV_VIEW_SPACE; i++)
        if (s->space[i] >= 0) region.size[s->space[i]] = l->shape[s->space[i]];
    return region;
}

/* Planes of the first axis in space that has several, spread evenly; of a plane alone, bands of rows. */
static void take_parts(const fv_view_source *s, const fv_view_level *l, const fv_region *whole, sample *q) {
    int axis = -1;
    for (int i = 0; i < FV_VIEW_SPACE && axis < 0; i++)
        if (s->space[i] >= 0 && l->shape[s->space[i]] > 1) axis = s->space[i];
    int64_t voxels = fv__region_voxels(whole);
    if (voxels <= 4 * MOST || axis < 0) {
        q->part[q->count++] = *whole;
        return;
    }
    int64_t length = whole->size[axis], thick = FV_MAX(MOST / PLANES / (voxels / length), 1);
    for (int k = 0; k < FV_MIN(length, (int64_t)PLANES); k++) {
        fv_region *part = &q->part[q->count++];
        *part = *whole;
        part->start[axis] = FV_MIN((2 * k + 1) * length / (2 * PLANES), length - 1);
        part->size[axis] = FV_MIN(thick, length - part->start[axis]);
    }
}

/* Of what is computed, the middle of one plane: all of it may be hours of work. */
static void choose_middle(const fv_view_source *s, const int64_t *fixed, sample *q) {
    static const int64_t most[FV_VIEW_SPACE] = { 1, 1024, 1024 };
    fv_region           *part = &q->part[q->count++];
    *part = space_region(s, &s->level[0], fixed);
    for (int i = 0; i < FV_VIEW_SPACE; i++) {
        int d = s->space[i];
        if (d < 0) continue;
        part->size[d] = FV_MIN(part->size[d], most[i]);
        part->start[d] = (s->type.shape[d] - part->size[d]) / 2;
    }
    snprintf(q->text, sizeof q->text, "the middle of the image");
}

static void choose(const fv_view_source *s, const int64_t *fixed, sample *q) {
    if (s->compute) {
        choose_middle(s, fixed, q);
        return;
    }
    while (q->level < s->nlevels - 1 && voxels_in_space(s, &s->level[q->level]) > MOST) q->level++;
    const fv_view_level *l = &s->level[q->level];
    fv_region            whole = space_region(s, l, fixed);
    take_parts(s, l, &whole, q);
    if (q->count == 1 && !q->level)
        snprintf(q->text, sizeof q->text, "all voxels");
    else
        snprintf(q->text, sizeof q->text, q->count > 1 ? "level %d, %d parts of it" : "level %d", q->level, q->count);
}

typedef struct {
    double *value; /* that are finite */
    int64_t count, nan, infinite;
    int64_t pairs, equal; /* neighbours along a row that are both not 0, and of them those that are equal */
} values;

static fv_status read_part(fv_view_source *s, int level, const fv_region *region, fv_view_part part, values *v, fv_error *error) {
    int64_t n = fv__region_voxels(region), row = region->size[region->ndim - 1];
    double  before = 0;
    void   *data = NULL;
    FV_TRY(FV_TAKE(data, (size_t)n * fv_dtype_size(s->type.dtype) + 1, error));
    fv_status status = fv_view_source_read(s, level, region, data, error);
    if (status == FV_OK) status = FV_TAKE_MORE(v->value, (size_t)(v->count + n + 1) * sizeof *v->value, error);
    for (int64_t i = 0; status == FV_OK && i < n; i++) {
        double value = fv_view_voxel(s->type.dtype, data, i, part);
        if (i % row && value != 0 && before != 0) {
            v->pairs++;
            v->equal += value == before;
        }
        before = value;
        if (isfinite(value))
            v->value[v->count++] = value;
        else if (isnan(value))
            v->nan++;
        else
            v->infinite++;
    }
    free(data);
    return status;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static cJSON *histogram(const values *v) {
    cJSON  *json = cJSON_CreateObject();
    int64_t counts[BINS] = { 0 };
    double  low = v->count ? v->value[0] : 0, high = v->count ? v->value[v->count - 1] : 0, width = high - low;
    for (int64_t i = 0; i < v->count; i++) {
        int bin = width > 0 ? (int)((v->value[i] - low) / width * BINS) : 0;
        counts[FV_MIN(FV_MAX(bin, 0), BINS - 1)]++;
    }
    cJSON *list = cJSON_CreateArray();
    for (int b = 0; b < BINS; b++) cJSON_AddItemToArray(list, cJSON_CreateNumber((double)counts[b]));
    cJSON_AddItemToObject(json, "edges", cJSON_CreateDoubleArray((double[]){ low, high }, 2));
    cJSON_AddItemToObject(json, "counts", list);
    return json;
}

static double quantile(const values *v, double part) {
    return v->count ? v->value[(int64_t)llrint(part * (double)(v->count - 1))] : 0;
}

bool fv_view_named_like_labels(const char *path) {
    static const char *const words[] = { "label", "seg", "mask", "object" };
    char                    *name = fv__path_bare_name(path);
    bool                     found = false;
    for (char *c = name; *c; c++) *c = (char)tolower((unsigned char)*c);
    for (int i = 0; i < FV_COUNT(words); i++) found = found || strstr(name, words[i]);
    free(name);
    return found;
}

/* Numbers of objects are whole, not below 0, several, and mostly equal to their neighbours. Where neither the name nor the type
 * says so, nearly all neighbours have to be equal, as of a few classes of tissue. The values are sorted. */
static bool looks_like_labels(const fv_view_source *s, const values *v) {
    int  bytes = (int)fv_dtype_size(s->type.dtype), distinct = 0;
    bool whole = fv_dtype_is_integer(s->type.dtype) && s->type.dtype != FV_BOOL && s->colour < 0;
    if (!whole || !v->count || v->value[0] < 0 || !v->pairs) return false;
    for (int64_t i = 0; i < v->count && distinct < 3; i++) distinct += v->value[i] > 0 && (!i || v->value[i] != v->value[i - 1]);
    double equal = (double)v->equal / (double)v->pairs;
    if (fv_view_named_like_labels(s->path) || bytes >= 4) return distinct >= 2 && equal > 0.5;
    return distinct >= 3 && v->value[0] == 0 && equal > 0.95;
}

fv_status fv_view_statistics(fv_view_source *s, const int64_t *fixed, fv_view_part part, cJSON **json, fv_error *error) {
    sample    q = { 0 };
    values    v = { 0 };
    fv_status status = FV_OK;
    choose(s, fixed, &q);
    for (int i = 0; i < q.count && status == FV_OK; i++) status = read_part(s, q.level, &q.part[i], part, &v, error);
    if (status == FV_OK) {
        if (v.count) qsort(v.value, (size_t)v.count, sizeof *v.value, by_value);
        *json = cJSON_CreateObject();
        cJSON_AddNumberToObject(*json, "min", quantile(&v, 0));
        cJSON_AddNumberToObject(*json, "max", quantile(&v, 1));
        cJSON_AddNumberToObject(*json, "low", quantile(&v, 0.001));
        cJSON_AddNumberToObject(*json, "high", quantile(&v, 0.999));
        cJSON_AddNumberToObject(*json, "nan", (double)v.nan);
        cJSON_AddNumberToObject(*json, "infinite", (double)v.infinite);
        cJSON_AddNumberToObject(*json, "voxels", (double)v.count);
        cJSON_AddBoolToObject(*json, "objects", looks_like_labels(s, &v));
        cJSON_AddStringToObject(*json, "from", q.text);
        cJSON_AddItemToObject(*json, "histogram", histogram(&v));
    }
    free(v.value);
    return status;
}
