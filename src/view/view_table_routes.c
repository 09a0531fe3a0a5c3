/* Routes that ask tables, and the one that finds an object. */
#include "base/take.h"
#include "view/view_parts.h"
#include <stdlib.h>

enum { MOST_SEARCHED = 64 << 20, SLAB = 1 << 22 };

typedef fv_status question(fv_view_table *table, const fv_view_query *query, fv_bytes *out, fv_error *error);

static void ask(fv_view_files *f, const fv_view_query *q, question *put, fv_view_answer *a) {
    int64_t  id;
    fv_bytes out = { 0 };
    fv_error error = { 0 };
    if (!fv_view_query_integer(q, "table", 0, f->ntables - 1, 0, &id) || !f->ntables) {
        fv_view_answer_refuse(a, 404, "there is no such table");
        return;
    }
    if (put(f->tables[id], q, &out, &error) == FV_OK) {
        a->body = out.data;
        a->size = out.size;
        a->type = "application/json; charset=utf-8";
    } else {
        fv_view_answer_error(a, &error);
        fv__bytes_release(&out);
    }
}

void fv_view_route_rows(void *context, const fv_view_query *q, fv_view_answer *a) { ask(context, q, fv_view_table_rows, a); }
void fv_view_route_row(void *context, const fv_view_query *q, fv_view_answer *a) { ask(context, q, fv_view_table_row, a); }
void fv_view_route_column(void *context, const fv_view_query *q, fv_view_answer *a) { ask(context, q, fv_view_table_column, a); }
void fv_view_route_scatter(void *context, const fv_view_query *q, fv_view_answer *a) {
    ask(context, q, fv_view_table_scatter, a);
}
void fv_view_route_values(void *context, const fv_view_query *q, fv_view_answer *a) { ask(context, q, fv_view_table_values, a); }

/* ---------------------------------------------------------------- objects */

typedef struct {
    int64_t first[FV_VIEW_SPACE], low[FV_VIEW_SPACE], high[FV_VIEW_SPACE]; /* high: behind the last */
    bool    found;
} object;

static void meet(object *o, const fv_view_source *s, const int64_t *position) {
    for (int i = 0; i < FV_VIEW_SPACE; i++) {
        int64_t at = s->space[i] < 0 ? 0 : position[s->space[i]];
        if (!o->found) o->first[i] = o->low[i] = at;
        if (!o->found) o->high[i] = at + 1;
        o->low[i] = FV_MIN(o->low[i], at);
        o->high[i] = FV_MAX(o->high[i], at + 1);
    }
    o->found = true;
}

static void search_slab(const fv_view_source *s, const fv_region *slab, const void *data, int64_t label, object *o) {
    int     last = slab->ndim - 1;
    int64_t at = 0;
    fv_rows rows;
    for (fv__rows_begin(&rows, slab); fv__rows_next(&rows);)
        for (int64_t i = 0; i < slab->size[last]; i++, at++) {
            if (fv_view_voxel(s->type.dtype, data, at, FV_VIEW_AMPLITUDE) != (double)label) continue;
            int64_t position[FV_MAX_DIMS];
            memcpy(position, rows.position, sizeof position);
            position[last] += i;
            meet(o, s, position);
        }
}

/* In the finest level that is not too large to be looked through; positions are those of the finest level there is. */
static fv_status search(const fv_view_asked *asked, int64_t label, object *o, fv_error *error) {
    fv_view_source *s = asked->source;
    int             k = 0;
    fv_region       whole = { .ndim = s->type.ndim };
    for (;; k++) {
        for (int d = 0; d < whole.ndim; d++) {
            bool space = d == s->space[0] || d == s->space[1] || d == s->space[2];
            whole.start[d] = space ? 0 : asked->fixed[d];
            whole.size[d] = space ? s->level[k].shape[d] : 1;
        }
        if (fv__region_voxels(&whole) <= MOST_SEARCHED || k == s->nlevels - 1) break;
    }
    int first = 0;
    while (first < whole.ndim - 1 && whole.size[first] == 1) first++;
    int64_t step = FV_MAX(SLAB / FV_MAX(fv__region_voxels(&whole) / FV_MAX(whole.size[first], 1), 1), 1);
    void   *data = NULL;
    FV_TRY(FV_TAKE(data,
                   (size_t)(fv__region_voxels(&whole) / FV_MAX(whole.size[first], 1) * step + 1) * fv_dtype_size(s->type.dtype),
                   error));
    fv_status status = FV_OK;
    for (int64_t at = 0; at < whole.size[first] && status == FV_OK; at += step) {
        fv_region slab = whole;
        slab.start[first] += at;
        slab.size[first] = FV_MIN(step, whole.size[first] - at);
        status = fv_view_source_read(s, k, &slab, data, error);
        if (status == FV_OK) search_slab(s, &slab, data, label, o);
    }
    free(data);
    for (int i = 0; i < FV_VIEW_SPACE; i++) {
        int64_t factor = s->space[i] < 0 ? 1 : s->level[k].factor[s->space[i]];
        o->first[i] = o->first[i] * factor + factor / 2;
        o->low[i] *= factor;
        o->high[i] *= factor;
    }
    return status;
}

static cJSON *object_json(const object *o) {
    cJSON *json = cJSON_CreateObject(), *box = cJSON_CreateArray(), *first = cJSON_CreateArray();
    for (int i = 0; i < FV_VIEW_SPACE; i++) {
        cJSON_AddItemToArray(first, cJSON_CreateNumber((double)o->first[i]));
        cJSON_AddItemToArray(box, cJSON_CreateDoubleArray((double[]){ (double)o->low[i], (double)o->high[i] }, 2));
    }
    cJSON_AddItemToObject(json, "first", first);
    cJSON_AddItemToObject(json, "box", box);
    return json;
}

/* The first voxel of an object in its box, as a table tells that; the middle of the box if it is not met there. */
static void first_in_box(const fv_view_asked *asked, int64_t label, object *o) {
    fv_view_source *s = asked->source;
    fv_region       box = { .ndim = s->type.ndim };
    object          met = { 0 };
    void           *data = NULL;
    for (int d = 0; d < box.ndim; d++) {
        box.start[d] = asked->fixed[d];
        box.size[d] = 1;
    }
    for (int i = 0; i < FV_VIEW_SPACE; i++) {
        o->first[i] = (o->low[i] + o->high[i]) / 2;
        if (s->space[i] < 0) continue;
        box.start[s->space[i]] = FV_MIN(FV_MAX(o->low[i], 0), s->type.shape[s->space[i]] - 1);
        box.size[s->space[i]] = FV_MIN(FV_MAX(o->high[i], 1), s->type.shape[s->space[i]]) - box.start[s->space[i]];
    }
    int64_t n = fv__region_empty(&box) ? 0 : fv__region_voxels(&box);
    if (n < 1 || n > SLAB || FV_TAKE(data, (size_t)n * fv_dtype_size(s->type.dtype), NULL) != FV_OK) return;
    if (fv_view_source_read(s, 0, &box, data, NULL) == FV_OK) search_slab(s, &box, data, label, &met);
    if (met.found) memcpy(o->first, met.first, sizeof o->first);
    free(data);
}

void fv_view_route_object(void *context, const fv_view_query *q, fv_view_answer *a) {
    fv_view_files *f = context;
    fv_view_asked  asked;
    object         o = { 0 };
    fv_error       error = { 0 };
    int64_t        label;
    if (!fv_view_ask_integer(q, "label", INT64_MIN, INT64_MAX, 0, &label, a) || !fv_view_ask(f, q, &asked, a)) return;
    for (int i = 0; i < f->ntables && !o.found; i++) o.found = fv_view_table_box(f->tables[i], label, o.low, o.high);
    if (o.found)
        first_in_box(&asked, label, &o);
    else if (search(&asked, label, &o, &error) != FV_OK)
        fv_view_answer_error(a, &error);
    if (o.found)
        fv_view_answer_json(a, object_json(&o));
    else if (!a->body)
        fv_view_answer_refuse(a, 404, "there is no object of label %lld", (long long)label);
    fv_view_source_unref(asked.source);
}
