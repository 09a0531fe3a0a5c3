/* Pipelines that are shown. Each request makes a pipeline of its own: the text without what it writes and prints, each file that
 * it reads by name as an image that this program provides, and one more line that cuts the region out of the value.
 *
 * Invariants
 * 1. Text, inputs and values belong together: they are made anew, all of them, when the file changes.
 * 2. A source keeps the state that it was made from until it is freed.
 */
#include "view/view_live.h"
#include "api/pipeline_parts.h"
#include "base/file_pattern.h"
#include "op/params.h"
#include "view/view_plane.h"
#include "view/view_server.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_INPUTS = 32, MOST_SHOWN = 8 };
static const int64_t most_computed = (int64_t)1 << 28; /* voxels of a request */
static const char    seen[] = "fovea_seen";

typedef struct state {
    atomic_int      users;
    char           *name;
    fv_bytes        text;
    fv_view_cache  *cache;
    int             ninputs;
    fv_view_source *inputs[MOST_INPUTS];
    char          **values;
    int             nvalues;
    cJSON          *parameters;
    fv_file_id      id;
} state;

struct fv_view_live {
    char           *path, *first;
    fv_view_cache  *cache;
    pthread_mutex_t mutex; /* guards what follows */
    state          *now;
    struct {
        char           *key; /* value and parameters */
        fv_view_source *source;
    } shown[MOST_SHOWN]; /* the newest first */
};

/* ---------------------------------------------------------------- state */

static void unref(state *s) {
    if (!s || atomic_fetch_sub(&s->users, 1) > 1) return;
    for (int i = 0; i < s->ninputs; i++) fv_view_source_unref(s->inputs[i]);
    for (int i = 0; i < s->nvalues; i++) free(s->values[i]);
    free(s->values);
    cJSON_Delete(s->parameters);
    fv__bytes_release(&s->text);
    free(s->name);
    free(s);
}

static fv_status read_input(void *context, const int64_t *start, const int64_t *count, const int64_t *stride, void *data,
                            fv_error *error);

typedef struct {
    fv_view_source *source;
    fv_view_cache  *cache;
} input;

/* A read of one file by its name, with nothing else: an image that the kept pieces can provide. */
static const char *plain_file(const fv_expr *e) {
    const fv_op    *op = e->kind == FV_EXPR_CALL ? fv__op_find(e->text) : NULL;
    const fv_param *file = op && !op->inputs && op->result == FV_KIND_IMAGE ? fv__params_file(op) : NULL;
    bool            plain = file && file->many && e->nargs == 1 && e->args[0].value->kind == FV_EXPR_TEXT;
    return plain && !fv__pattern_is(e->args[0].value->text) ? e->args[0].value->text : NULL;
}

static int find_input(state *s, const char *path) {
    fv_view_source *source;
    for (int i = 0; i < s->ninputs; i++)
        if (!strcmp(s->inputs[i]->path, path)) return i;
    if (s->ninputs == MOST_INPUTS || fv_view_source_open(path, NULL, false, &source, NULL) != FV_OK) return -1;
    s->inputs[s->ninputs] = source;
    return s->ninputs++;
}

/* Calls that read a plain file become names of images; what cannot be opened stays, and the pipeline says why. */
static void replace_files(state *s, fv_program *program, fv_expr *e) {
    const char *path = e ? plain_file(e) : NULL;
    int         number = path ? find_input(s, path) : -1;
    if (!e) return;
    if (number >= 0) {
        e->kind = FV_EXPR_NAME;
        e->text = fv__arena_printf(&program->arena, "fovea_input_%d", number);
        e->nargs = 0;
        return;
    }
    for (int i = 0; i < e->nargs; i++) replace_files(s, program, e->args[i].value);
    for (int i = 0; e->kind == FV_EXPR_SLICE && i < e->nindices; i++) {
        replace_files(s, program, e->indices[i].start);
        replace_files(s, program, e->indices[i].stop);
        replace_files(s, program, e->indices[i].step);
    }
}

static fv_status provide(const state *s, fv_pipeline *p, input *inputs, fv_error *error) {
    for (int i = 0; i < s->ninputs; i++) {
        const fv_view_source *source = s->inputs[i];
        char                  name[32];
        snprintf(name, sizeof name, "fovea_input_%d", i);
        inputs[i] = (input){ s->inputs[i], s->cache };
        FV_TRY(fv_pipeline_source(p, name, &source->type, source->level[0].chunk, NULL, read_input, &inputs[i], error));
    }
    return FV_OK;
}

/* The pipeline with one more line, which may be none. inputs: room for MOST_INPUTS, as long as it is used. */
static fv_status make(state *s, const char *line, char *const *sets, int nsets, input *inputs, fv_pipeline **out,
                      fv_error *error) {
    fv_pipeline *p = *out = fv_pipeline_new();
    fv_pipeline_log(p, 0, NULL, NULL);
    FV_TRY(fv_pipeline_add(p, s->name, (char *)s->text.data, error));
    if (line) FV_TRY(fv_pipeline_add(p, s->name, line, error));
    fv__program_drop_bare(p->program);
    for (int i = 0; i < p->program->nstatements; i++) replace_files(s, p->program, p->program->statements[i].value);
    for (int i = 0; i < nsets; i++) FV_TRY(fv_pipeline_set(p, sets[i], error));
    return provide(s, p, inputs, error);
}

/* In the thread of a task: what the pieces need is not the pipeline's. */
static fv_status read_input(void *context, const int64_t *start, const int64_t *count, const int64_t *stride, void *data,
                            fv_error *error) {
    const input *in = context;
    fv_block     block = { .dtype = in->source->type.dtype, .region.ndim = in->source->type.ndim, .data = data };
    for (int d = 0; d < block.region.ndim; d++) {
        block.region.start[d] = start[d];
        block.region.size[d] = count[d];
        block.stride[d] = stride[d];
    }
    fv_session *before = fv__session_enter(NULL);
    fv_status   status = fv_view_box_read(in->source, &block, in->cache, error);
    fv__session_enter(before);
    return status;
}

/* ---------------------------------------------------------------- what the page may choose */

/* A slider, around the value that the text gives. */
static cJSON *parameter_json(const fv_statement *statement) {
    double value = statement->value->number, size = fabs(value) > 0 ? fabs(value) : 1;
    bool   whole = statement->value->integral;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", statement->name);
    cJSON_AddNumberToObject(json, "value", value);
    cJSON_AddNumberToObject(json, "min", value < 0 ? -4 * size : 0);
    cJSON_AddNumberToObject(json, "max", whole && size < 3 ? 10 : 4 * size);
    cJSON_AddNumberToObject(json, "step", whole && size >= 10 ? 1 : pow(10, floor(log10(size)) - 1));
    return json;
}

static void list_parameters(state *s, const fv_program *program) {
    s->parameters = cJSON_CreateArray();
    for (int i = 0; i < program->nstatements; i++) {
        const fv_statement *statement = &program->statements[i];
        if (statement->kind == FV_STATEMENT_PARAM && statement->value->kind == FV_EXPR_NUMBER)
            cJSON_AddItemToArray(s->parameters, parameter_json(statement));
    }
}

static fv_status list_values(state *s, fv_pipeline *p, fv_error *error) {
    fv_value_type *type = fv__calloc(sizeof *type);
    fv_status      status = FV_OK;
    s->values = fv__calloc((size_t)(p->program->nstatements + 1) * sizeof *s->values);
    for (int i = 0; i < p->program->nstatements && status == FV_OK; i++) {
        const fv_statement *statement = &p->program->statements[i];
        if (statement->kind != FV_STATEMENT_ASSIGN) continue;
        status = fv_pipeline_type(p, statement->name, type, error);
        if (status == FV_OK && type->kind == FV_VALUE_IMAGE && !type->items)
            s->values[s->nvalues++] = fv__strdup(statement->name);
    }
    free(type);
    if (status == FV_OK && !s->nvalues)
        return fv_fail(error, FV_ERROR_USAGE, "%s gives no single image a name; one of a collection cannot be shown", s->name);
    return status;
}

static fv_status load(fv_view_live *live, state **out, fv_error *error) {
    state       *s = *out = fv__calloc(sizeof *s);
    input        inputs[MOST_INPUTS];
    fv_pipeline *p = NULL;
    s->users = 1;
    s->name = fv__strdup(live->path);
    s->cache = live->cache;
    fv_status status = fv__file_identify(live->path, &s->id, error);
    if (status == FV_OK) status = fv__file_read_all(live->path, (size_t)1 << 20, &s->text, error);
    if (status == FV_OK) status = make(s, NULL, NULL, 0, inputs, &p, error);
    if (status == FV_OK) list_parameters(s, p->program);
    if (status == FV_OK) status = list_values(s, p, error);
    if (status != FV_OK && p && *fv_pipeline_messages(p)) status = fv_fail(error, status, "%s", fv_pipeline_messages(p));
    fv_pipeline_free(p);
    if (status == FV_OK) return FV_OK;
    unref(s);
    *out = NULL;
    return status;
}

static bool has_value(const state *s, const char *name) {
    for (int i = 0; i < s->nvalues; i++)
        if (!strcmp(s->values[i], name)) return true;
    return false;
}

static fv_status no_value(const state *s, const char *name, fv_error *error) {
    const char *near = fv_nearest_word(name, (const char *const *)s->values, s->nvalues);
    return fv_fail(error, FV_ERROR_USAGE, "%s has no image called %.40s%s%s%s", s->name, name, near ? "; did you mean " : "",
                   near ? near : "", near ? "?" : "");
}

fv_status fv_view_live_open(const char *path, const char *value, fv_view_cache *cache, fv_view_live **out, fv_error *error) {
    fv_view_live *live = *out = fv__calloc(sizeof *live);
    live->path = fv__strdup(path);
    live->first = value ? fv__strdup(value) : NULL;
    live->cache = cache;
    pthread_mutex_init(&live->mutex, NULL);
    fv_status status = load(live, &live->now, error);
    if (status == FV_OK && value && !has_value(live->now, value)) status = no_value(live->now, value, error);
    if (status == FV_OK) return FV_OK;
    fv_view_live_free(live);
    *out = NULL;
    return status;
}

static void forget_shown(fv_view_live *live) {
    for (int i = 0; i < MOST_SHOWN; i++) {
        free(live->shown[i].key);
        fv_view_source_unref(live->shown[i].source);
        live->shown[i].key = NULL;
        live->shown[i].source = NULL;
    }
}

void fv_view_live_free(fv_view_live *live) {
    if (!live) return;
    forget_shown(live);
    unref(live->now);
    pthread_mutex_destroy(&live->mutex);
    free(live->path);
    free(live->first);
    free(live);
}

/* ---------------------------------------------------------------- computing */

typedef struct {
    state *state;
    char  *value;
    char **sets;
    int    nsets;
} wanted;

static void free_wanted(void *context) {
    wanted *w = context;
    for (int i = 0; i < w->nsets; i++) free(w->sets[i]);
    free(w->sets);
    free(w->value);
    unref(w->state);
    free(w);
}

static void put_cut(fv_bytes *line, const char *value, const fv_region *region) {
    fv__bytes_printf(line, "\n%s = %s[", seen, value);
    for (int d = 0; d < region->ndim; d++)
        fv__bytes_printf(line, "%s%lld:%lld", d ? ", " : "", (long long)region->start[d],
                         (long long)(region->start[d] + region->size[d]));
    fv__bytes_printf(line, "]\n");
}

static fv_status compute(void *context, const fv_region *region, void *data, fv_error *error) {
    wanted      *w = context;
    input        inputs[MOST_INPUTS];
    const void  *arrays[MOST_INPUTS] = { 0 };
    fv_pipeline *p = NULL;
    fv_bytes     line = { 0 };
    if (fv__region_voxels(region) > most_computed)
        return fv_fail(error, FV_ERROR_USAGE,
                       "%lld voxels of %s are too many to compute while somebody waits; write it to a file",
                       (long long)fv__region_voxels(region), w->value);
    put_cut(&line, w->value, region);
    fv_status status = make(w->state, (char *)line.data, w->sets, w->nsets, inputs, &p, error);
    if (status == FV_OK) status = fv_pipeline_keep(p, seen, error);
    if (status == FV_OK) status = fv_pipeline_apply(p, arrays, &data, fv_view_server_cancel(), error);
    fv_pipeline_free(p);
    fv__bytes_release(&line);
    return status;
}

/* ---------------------------------------------------------------- requests */

/* Only parameters that the text has, and numbers: what is sent never becomes a part of the text. */
static fv_status take_sets(const state *s, const fv_view_query *q, wanted *w, fv_error *error) {
    w->sets = fv__calloc((size_t)(q->count + 1) * sizeof *w->sets);
    for (int i = 0; i < q->count; i++) {
        const char  *name = q->field[i].name + 2;
        const cJSON *known;
        char        *end;
        bool         found = false;
        if (strncmp(q->field[i].name, "p.", 2)) continue;
        cJSON_ArrayForEach(known, s->parameters) found =
            found || !strcmp(cJSON_GetObjectItemCaseSensitive(known, "name")->valuestring, name);
        double number = strtod(q->field[i].value, &end);
        if (!found || *end || end == q->field[i].value || !isfinite(number))
            return fv_fail(error, FV_ERROR_USAGE, "%.40s = %.40s: the pipeline has no such parameter, or this is no number",
                           q->field[i].name, q->field[i].value);
        w->sets[w->nsets++] = fv__sprintf("%s=%.17g", name, number);
    }
    return FV_OK;
}

static char *key_of(const wanted *w) {
    fv_bytes key = { 0 };
    fv__bytes_printf(&key, "%s", w->value);
    for (int i = 0; i < w->nsets; i++) fv__bytes_printf(&key, "&%s", w->sets[i]);
    return (char *)key.data;
}

static fv_status find_type(wanted *w, fv_view_source **source, fv_error *error) {
    input          inputs[MOST_INPUTS];
    fv_pipeline   *p = NULL;
    fv_value_type *type = fv__calloc(sizeof *type);
    fv_status      status = make(w->state, NULL, w->sets, w->nsets, inputs, &p, error);
    if (status == FV_OK) status = fv_pipeline_type(p, w->value, type, error);
    if (status == FV_OK) *source = fv_view_source_new(w->state->name, &type->image, false);
    fv_pipeline_free(p);
    free(type);
    return status;
}

/* The mutex is held. */
static fv_status refresh(fv_view_live *live, fv_error *error) {
    fv_file_id id;
    bool       current = true;
    state     *fresh;
    FV_TRY(fv__file_identify(live->path, &id, error));
    current = id.size == live->now->id.size && id.mtime_ns == live->now->id.mtime_ns;
    for (int i = 0; i < live->now->ninputs && current; i++) FV_TRY(fv_view_source_current(live->now->inputs[i], &current, error));
    if (current) return FV_OK;
    FV_TRY(load(live, &fresh, error));
    forget_shown(live);
    unref(live->now);
    live->now = fresh;
    return FV_OK;
}

static void remember(fv_view_live *live, char *key_take, fv_view_source *source) {
    free(live->shown[MOST_SHOWN - 1].key);
    fv_view_source_unref(live->shown[MOST_SHOWN - 1].source);
    memmove(&live->shown[1], &live->shown[0], (MOST_SHOWN - 1) * sizeof live->shown[0]);
    live->shown[0].key = key_take;
    live->shown[0].source = fv_view_source_ref(source);
}

static fv_status find_source(fv_view_live *live, const fv_view_query *q, fv_view_source **source, fv_error *error) {
    const char *value = fv_view_query_text(q, "value"), *last = live->now->values[live->now->nvalues - 1];
    wanted     *w = fv__calloc(sizeof *w);
    if (!value || !*value) value = live->first && has_value(live->now, live->first) ? live->first : last;
    atomic_fetch_add(&live->now->users, 1);
    w->state = live->now;
    w->value = fv__strdup(value);
    fv_status status = has_value(live->now, value) ? take_sets(live->now, q, w, error) : no_value(live->now, value, error);
    char     *key = key_of(w);
    *source = NULL;
    for (int i = 0; i < MOST_SHOWN && status == FV_OK && !*source; i++)
        if (live->shown[i].key && !strcmp(live->shown[i].key, key)) *source = fv_view_source_ref(live->shown[i].source);
    bool known = *source != NULL;
    if (status == FV_OK && !known) status = find_type(w, source, error);
    if (status != FV_OK || known) {
        free_wanted(w);
        free(key);
        return status;
    }
    (*source)->compute = compute;
    (*source)->context = w;
    (*source)->release = free_wanted;
    remember(live, key, *source);
    return FV_OK;
}

fv_status fv_view_live_source(fv_view_live *live, const fv_view_query *q, fv_view_source **source, fv_error *error) {
    pthread_mutex_lock(&live->mutex);
    fv_status status = refresh(live, error);
    if (status == FV_OK) status = find_source(live, q, source, error);
    pthread_mutex_unlock(&live->mutex);
    return status;
}

void fv_view_live_json(fv_view_live *live, cJSON *json) {
    pthread_mutex_lock(&live->mutex);
    const state *s = live->now;
    cJSON_AddItemToObject(json, "values", cJSON_CreateStringArray((const char *const *)s->values, s->nvalues));
    cJSON_AddStringToObject(json, "value", live->first && has_value(s, live->first) ? live->first : s->values[s->nvalues - 1]);
    cJSON_AddItemToObject(json, "parameters", cJSON_Duplicate(s->parameters, true));
    pthread_mutex_unlock(&live->mutex);
}
