/* Stages whose value is estimated from a part of their tasks: when that part is large enough, and what it tells. */
#include "exec/sampled.h"
#include "base/file.h"
#include "base/take.h"
#include "exec/coarse_sums.h"
#include "exec/sampled_items.h"
#include "exec/strata.h"
#include "op/format.h"
#include <stdio.h>
#include <stdlib.h>

const fv_sampling *fv__stage_sampling(const fv_stage *stage) {
    const fv_target *target = &stage->targets[0];
    return target->kind == FV_TARGET_PASS && target->pass == 0 && !stage->serial ? target->node->sampling : NULL;
}

bool fv__stage_after_sample(const fv_stage *stage) {
    const fv_target *target = &stage->targets[0];
    return target->kind == FV_TARGET_PASS && target->pass > 0 && target->node->sampling;
}

/* ---------------------------------------------------------------- partials in the order of the sample */

typedef struct sample {
    fv_sample        base;
    fv_instance     *instance;
    const fv_stage  *stage;
    const fv_node   *node;
    int64_t         *order;
    fv_blob          held;
    fv_sampled_items items; /* in place of chunks, where from is set */
    fv_estimates    *rows;  /* of a table; NULL: the value is a number */
    double          *control;
    bool             controlled; /* at this size or a smaller one it was worth reading */
    fv_strata        strata;
} sample;

/* The rows of items that a value is made of; NULL: it is made of an image, and its units are chunks. */
static const fv_gathered *items_of(const fv_node *node) {
    return node->ninputs && node->in[0] ? fv__gathered_of(node->in[0]) : NULL;
}

static int64_t population_of(const fv_stage *stage, const fv_node *node) {
    return items_of(node) ? fv__sampled_items_population(items_of(node)) : stage->ntasks;
}

static fv_hash partial_key(const sample *s, int64_t i, double *voxels) {
    int64_t   index;
    fv_region chunk = fv__stage_chunk(s->stage, s->order[i], &index);
    if (voxels) *voxels = (double)fv__region_voxels(&chunk);
    return fv__key_partial(s->node, 0, &s->stage->lattice, index);
}

static void release(sample *s) {
    if (s->held.entry) fv__store_unpin(s->instance->context->store, &s->held);
    s->held.entry = NULL;
}

static fv_status get_partial(fv_sample *base, int64_t i, const void **data, size_t *size, double *voxels, fv_error *error) {
    sample *s = (sample *)base;
    release(s);
    FV_TRY(fv__store_get(s->instance->context->store, partial_key(s, i, voxels), &s->held, error));
    *data = s->held.data;
    *size = s->held.size;
    return FV_OK;
}

static fv_status get_item(fv_sample *base, int64_t i, const void **data, size_t *size, double *one, fv_error *error) {
    (void)error;
    fv__sampled_items_rows(&((sample *)base)->items, ((sample *)base)->order[i], data, size);
    *one = 1;
    return FV_OK;
}

/* So many of the first ones are there. */
static int64_t count_there(const sample *s) {
    int64_t n = 0;
    if (s->items.from) return fv__sampled_items_there(&s->items, s->order);
    while (n < s->stage->ntasks && fv__store_has(s->instance->context->store, partial_key(s, n, NULL))) n++;
    return n;
}

/* ---------------------------------------------------------------- samples that a time has ended
 * How large such a sample is does not follow from the data. It is written beside the run's manifest before anything is computed
 * from it: whoever goes on after a kill, or runs the same text again without the store, takes the same sample. */

static char *items_path(const fv_context *context, int64_t seed) {
    return fv__sprintf("%s/" FV_SAMPLES_FOLDER "/items-%lld", context->run_folder, (long long)seed);
}

static char *sample_path(const fv_instance *instance, const fv_stage *stage, const fv_node *node) {
    char name[33];
    if (!instance->context->run_folder) return NULL;
    if (items_of(node)) return items_path(instance->context, node->sampling->seed); /* its key follows from the items there are */
    fv__hash_format(fv__key_result(node, 0, &stage->lattice, 0), name);
    return fv__sprintf("%s/" FV_SAMPLES_FOLDER "/%s", instance->context->run_folder, name);
}

static int64_t read_recorded(char *path_take) {
    char     *path = path_take;
    fv_bytes  text = { 0 };
    long long seen = 0;
    if (path && fv__file_read_all(path, 256, &text, NULL) == FV_OK && sscanf((char *)text.data, "%lld ", &seen) != 1) seen = 0;
    fv__bytes_release(&text);
    free(path);
    return FV_MAX(seen, 0);
}

int64_t fv__sample_recorded(const fv_instance *instance, const fv_stage *stage, const fv_node *node) {
    int64_t seen = read_recorded(node->sampling->time ? sample_path(instance, stage, node) : NULL);
    return seen <= population_of(stage, node) ? seen : 0;
}

int64_t fv__items_recorded(const fv_context *context, int64_t seed) {
    return read_recorded(context->run_folder ? items_path(context, seed) : NULL);
}

static fv_status record_sample(const sample *s, int64_t seen, fv_error *error) {
    char *path = sample_path(s->instance, s->stage, s->node);
    if (!path) return FV_OK;
    char     *folder = fv__path_inside(s->instance->context->run_folder, FV_SAMPLES_FOLDER), line[128];
    int       size = snprintf(line, sizeof line, "%lld %s of %lld, %s\n", (long long)seen, s->items.from ? "items" : "chunks",
                              (long long)s->base.population, fv__node_label(s->node));
    fv_status status = fv__path_make_folders(folder, error);
    if (status == FV_OK) status = fv__file_write_all(path, line, (size_t)FV_MIN(size, (int)sizeof line - 1), true, error);
    free(folder);
    free(path);
    return status;
}

/* ---------------------------------------------------------------- looking at them */

/* Of an exact value that is watched: any error is good enough for it. */
static const fv_sampling *sampling_of(const fv_node *node) {
    static const fv_sampling watched = { .confidence = 0.95 };
    return node->sampling ? node->sampling : &watched;
}

/* Whether it is made of a file that no other item has. */
static bool is_own(const fv_instance *instance, const fv_node *node) {
    const fv_param *file = node->op && node->op->identity ? fv__params_file(node->op) : NULL;
    const char     *name = file ? *(char *const *)((const char *)node->params + file->offset) : NULL;
    bool            own = name && fv__bindings_alone(instance->context->bindings, name, instance->item);
    for (int i = 0; i < node->ninputs && !own; i++) own = node->in[i] && is_own(instance, node->in[i]);
    return own;
}

uint64_t fv__sample_seed(const fv_instance *instance, const fv_node *node) {
    const fv_bindings *bindings = instance->context->bindings;
    uint64_t           seed = (uint64_t)sampling_of(node)->seed;
    if (fv__bindings_unit(bindings, instance->item).collection == FV_RUN || !is_own(instance, node)) return seed;
    const char *path = fv__bindings_item(bindings, instance->item);
    return seed + fv__hash_bytes(path, strlen(path)).low;
}

static void tell_seen(const sample *s, fv_interval *e) {
    e->seen = s->base.seen;
    e->population = s->base.population;
    e->confidence = sampling_of(s->node)->confidence;
}

/* The rows of a table, and of their estimates one that is worst: the first that is not good enough. */
static fv_status estimate_rows(sample *s, fv_interval *e, fv_error *error) {
    const fv_estimator *estimator = fv__op_estimator(s->node->op);
    const double        confidence = s->base.confidence;
    fv__estimates_release(s->rows);
    fv_status status = estimator->rows(&s->base, s->rows, error);
    int64_t   count = s->rows->nrows * s->rows->nvalues;
    if (status == FV_OK && sampling_of(s->node)->joint && count > 1) {
        s->base.confidence = 1 - (1 - confidence) / (double)count;
        fv__estimates_release(s->rows);
        status = estimator->rows(&s->base, s->rows, error);
        s->base.confidence = confidence;
    }
    bool good = true;
    for (int64_t k = 0; k < count && status == FV_OK; k++) {
        tell_seen(s, &s->rows->interval[k]);
        if (!k || (good && !fv__sampling_reached(sampling_of(s->node), &s->rows->interval[k]))) *e = s->rows->interval[k];
        good = good && fv__sampling_reached(sampling_of(s->node), &s->rows->interval[k]);
    }
    return status;
}

/* Voxels of a coarse level that are worth reading: those of an error at most as many as the chunks that the sample would need
 * beyond those it has, those of a time so few that it is kept. */
static double worth_reading(const sample *s, const fv_interval *e) {
    const fv_sampling *sampling = s->node->sampling;
    double             most = FV_MIN(s->base.voxels / 8, (double)(32 << 20)), seen = (double)s->base.seen;
    double             half = (e->high - e->low) / 2, wanted = fv__sampling_wanted(sampling, e->value);
    if (sampling->time) return FV_MIN(most, sampling->time * (1 << 20));
    return FV_MIN(most, (half * half / (wanted * wanted) - 1) * seen * s->base.voxels / (double)s->base.population);
}

/* What the coarse level says is the same at each look, so it is read once. It is kept with the number of its voxels, so that for
 * whom it is not worth reading does not use it because others have read it. */
static fv_status read_control(const sample *s, double most, double *by_task, fv_error *error) {
    fv_store  *store = s->instance->context->store;
    size_t     size = (size_t)s->stage->ntasks * sizeof *by_task;
    double     voxels;
    fv_control kind = fv__op_estimator(s->node->op)->control;
    fv_hash    key = fv__key_result(s->node->in[0], 0, &s->stage->lattice, -1 - (int64_t)kind);
    fv_reader *level;
    double    *sums = NULL;
    if (fv__store_has(store, key) && fv__store_read(store, key, size, &voxels, sizeof voxels, NULL) == FV_OK)
        return voxels <= most ? fv__store_read(store, key, 0, by_task, size, error) : FV_ERROR_INPUT;
    double start = fv__now();
    FV_TRY(fv__coarse_level(s->stage, s->node, &level, error));
    voxels = level ? (double)fv_image_type_voxels(&level->type) : INFINITY;
    fv_status status = voxels <= most ? FV_OK : FV_ERROR_INPUT;
    if (status == FV_OK) status = fv__coarse_sums(s->stage, s->node, level, kind, &sums, error);
    if (level) fv__reader_release(level);
    if (status != FV_OK || !sums) return FV_ERROR_INPUT;
    memcpy(by_task, sums, size);
    free(sums);
    void *kept;
    FV_TRY(FV_TAKE_BUFFER(kept, size + sizeof voxels, error));
    memcpy(kept, by_task, size);
    memcpy((char *)kept + size, &voxels, sizeof voxels);
    return fv__store_put(store, key, kept, size + sizeof voxels, fv__now() - start, false, error);
}

/* In the order of the sample. Where the level cannot be read, or is larger than what it is worth, there is none. */
static void load_control(sample *s, double most) {
    int64_t n = s->stage->ntasks;
    double *by_task;
    if (!fv__op_estimator(s->node->op)->control || !(most >= 1)) return;
    if (FV_TAKE(by_task, (size_t)n * sizeof *by_task, NULL) != FV_OK) return;
    bool known = read_control(s, most, by_task, NULL) == FV_OK;
    if (known && FV_TAKE(s->control, (size_t)n * sizeof *s->control, NULL) == FV_OK)
        for (int64_t i = 0; i < n; i++) s->control[i] = by_task[s->order[i]];
    free(by_task);
}

/* The control is looked for only where the sample alone is not good enough. */
static fv_status estimate_number(sample *s, fv_interval *e, fv_error *error) {
    const fv_estimator *estimator = fv__op_estimator(s->node->op);
    s->base.control = NULL;
    FV_TRY(estimator->estimate(&s->base, e, error));
    if (!s->node->sampling || isnan(e->low) || fv__sampling_reached(s->node->sampling, e)) return FV_OK;
    if (!s->control) load_control(s, s->controlled ? INFINITY : worth_reading(s, e));
    s->base.control = s->control;
    s->controlled = s->controlled || s->control;
    return s->control ? estimator->estimate(&s->base, e, error) : FV_OK;
}

/* Where chunks lie; a sample whose chunks make up no parts is taken as it is. */
static void find_strata(sample *s) {
    bool some = s->items.from ? fv__sampled_items_strata(&s->items, s->order, s->base.seen, &s->strata)
                              : fv__strata_find(&s->strata, s->stage, &s->node->in_type[0]->image, s->order, s->base.seen);
    s->base.stratum = some ? s->strata.stratum : NULL;
    s->base.of_stratum = s->strata.chunks;
    s->base.strata = s->strata.count;
}

static fv_status estimate(sample *s, int64_t seen, fv_interval *e, fv_error *error) {
    s->base.seen = seen;
    find_strata(s);
    memset(e, 0, sizeof *e); /* it is stored as it is */
    fv_status status = s->rows ? estimate_rows(s, e, error) : estimate_number(s, e, error);
    release(s);
    if (status != FV_OK && error && !error->op[0]) strncpy(error->op, s->node->op->name, sizeof error->op - 1);
    tell_seen(s, e);
    return status;
}

/* The width of an interval shrinks with the square root of the size. */
static int64_t expected_size(const sample *s, const fv_interval *e) {
    double half = FV_MAX(e->high - e->value, e->value - e->low), wanted = fv__sampling_wanted(s->node->sampling, e->value);
    double size = half * half / (wanted * wanted) * (double)s->base.seen;
    return isfinite(size) ? (int64_t)FV_MIN(ceil(size), (double)s->base.population) : 0;
}

int64_t fv__sample_expected(const fv_instance *instance, const fv_stage *stage) {
    int64_t most = 0;
    for (int t = 0; t < stage->ntargets; t++)
        if (stage->targets[t].kind == FV_TARGET_PASS) most = FV_MAX(most, instance->looked[stage->targets[t].node->id].expected);
    return most;
}

/* The first size at which the sample is good enough, so that it does not matter how many more are there. */
static fv_status look_by_error(sample *s, int64_t there, fv_interval *e, fv_sample_end *end, fv_error *error) {
    fv_looked *looked = &s->instance->looked[s->node->id];
    s->controlled = looked->control;
    for (int64_t n = fv__sampling_next(looked->size, s->base.population); n < s->base.population;
         n = fv__sampling_next(n, s->base.population)) {
        if (n > there) {
            *end = FV_SAMPLE_MORE;
            return FV_OK;
        }
        FV_TRY(estimate(s, n, e, error));
        *end = FV_SAMPLE_ESTIMATE;
        looked->expected = 0;
        if (fv__sampling_reached(s->node->sampling, e)) return FV_OK;
        *looked = (fv_looked){ .size = n, .expected = expected_size(s, e), .control = s->controlled };
    }
    *end = there < s->base.population ? FV_SAMPLE_MORE : FV_SAMPLE_ALL;
    return FV_OK;
}

static fv_status begin_sample(sample *s, fv_instance *instance, const fv_stage *stage, const fv_node *node, fv_estimates *rows,
                              fv_error *error) {
    const fv_sampling *sampling = sampling_of(node);
    const fv_gathered *items = items_of(node);
    int64_t            population = population_of(stage, node);
    *s = (sample){ .base = { .op = node->op,
                             .params = node->params,
                             .out = &node->type,
                             .population = population,
                             .voxels = items ? (double)population : (double)fv_image_type_voxels(&node->in_type[0]->image),
                             .confidence = sampling->confidence,
                             .chosen = sampling->error > 0 || sampling->absolute > 0 ? sampling : NULL,
                             .seed = fv__sample_seed(instance, node),
                             .partial = items ? get_item : get_partial },
                   .instance = instance,
                   .stage = stage,
                   .node = node,
                   .rows = node->type.kind == FV_KIND_TABLE ? rows : NULL };
    memcpy(s->base.in, node->in_type, sizeof s->base.in);
    if (items) FV_TRY(fv__sampled_items_load(&s->items, items, error));
    s->order = fv__sampling_order(s->base.seed, population);
    return FV_OK;
}

static void release_sample(sample *s) {
    fv__strata_release(&s->strata);
    if (s->items.from) fv__sampled_items_release(&s->items);
    free(s->control);
    free(s->order);
}

static fv_status look_by_time(sample *s, int64_t there, fv_interval *e, fv_sample_end *end, fv_error *error) {
    *end = there < s->base.population ? FV_SAMPLE_ESTIMATE : FV_SAMPLE_ALL;
    if (*end == FV_SAMPLE_ALL) return FV_OK;
    return there ? estimate(s, there, e, error) : fv_fail(error, FV_ERROR_INTERNAL, "no chunk of the sample is there");
}

/* The sample that is recorded, or all that is there, which is recorded then. */
static fv_status end_of_time(sample *s, int64_t there, fv_interval *e, fv_sample_end *end, fv_error *error) {
    int64_t recorded = fv__sample_recorded(s->instance, s->stage, s->node);
    if (recorded > there) {
        *end = FV_SAMPLE_MORE;
        return FV_OK;
    }
    if (!recorded && there) FV_TRY(record_sample(s, there, error));
    return look_by_time(s, recorded ? recorded : there, e, end, error);
}

fv_status fv__sample_look(fv_instance *instance, const fv_stage *stage, const fv_node *node, fv_interval *e, fv_estimates *rows,
                          fv_sample_end *end, fv_error *error) {
    sample s;
    FV_TRY(begin_sample(&s, instance, stage, node, rows, error));
    fv_status status = (node->sampling->time ? end_of_time : look_by_error)(&s, count_there(&s), e, end, error);
    if (status == FV_OK && *end == FV_SAMPLE_ALL && s.rows) status = estimate(&s, s.base.population, e, error);
    release_sample(&s);
    return status;
}

/* An interval that is shown is one of many, which shall all hold: one that rests on too little is not. */
static void hide_unsound(const sample *s, fv_interval *e) {
    const int64_t least = fv__sampling_next(0, s->base.population);
    if (s->base.seen < least || !fv__sampling_sound(e)) e->low = e->high = NAN;
    for (int64_t k = 0; s->rows && k < s->rows->nrows * s->rows->nvalues; k++) {
        fv_interval *of = &s->rows->interval[k];
        if (s->base.seen < least || !fv__sampling_sound(of)) of->low = of->high = NAN;
    }
}

bool fv__sample_so_far(fv_instance *instance, const fv_stage *stage, const fv_node *node, fv_interval *e, fv_estimates *rows) {
    sample        s;
    fv_sample_end end;
    if (begin_sample(&s, instance, stage, node, rows, NULL) != FV_OK) return false;
    int64_t there = count_there(&s);
    s.base.confidence = fv__sampling_look(s.base.confidence, there, s.base.population);
    bool some = look_by_time(&s, there, e, &end, NULL) == FV_OK && end == FV_SAMPLE_ESTIMATE;
    if (some) hide_unsound(&s, e);
    release_sample(&s);
    return some;
}

/* ---------------------------------------------------------------- what came out */

static const fv_stage *first_stage(const fv_instance *instance, const fv_node *node) {
    return &instance->plan->stages[instance->plan->pass_stage[node->id][0]];
}

static fv_hash estimate_key(const fv_instance *instance, const fv_node *node) {
    return fv__key_result(node, 0, &first_stage(instance, node)->lattice, node->type.kind == FV_KIND_TABLE ? -1 : 1);
}

bool fv__instance_estimated(const fv_instance *instance, const fv_node *node) {
    return node->sampling && fv__store_has(instance->context->store, estimate_key(instance, node));
}

fv_status fv__instance_estimate(fv_instance *instance, const fv_node *node, fv_interval *e, fv_error *error) {
    if (fv__instance_estimated(instance, node))
        return fv__store_read(instance->context->store, estimate_key(instance, node), 0, e, sizeof *e, error);
    fv_scalar scalar;
    FV_TRY(fv__instance_scalar(instance, node, &scalar, error));
    memset(e, 0, sizeof *e);
    e->value = e->low = e->high = fv__scalar_number(&scalar);
    e->confidence = node->sampling->confidence;
    e->seen = e->population = first_stage(instance, node)->ntasks;
    snprintf(e->method, sizeof e->method, "exact");
    return FV_OK;
}

/* ---------------------------------------------------------------- items */

fv_status fv__items_suffice(fv_instance *instance, bool *enough, fv_error *error) {
    *enough = true;
    for (int id = 0; id < instance->graph->nnodes && *enough; id++) {
        const fv_node *node = instance->graph->nodes[id];
        int            stage = node->op ? instance->plan->pass_stage[id][0] : -1;
        if (!node->sampling || stage < 0 || !items_of(node)) continue;
        fv_estimates  rows = { 0 };
        fv_interval   e;
        fv_sample_end end;
        fv_status     status = fv__sample_look(instance, &instance->plan->stages[stage], node, &e, &rows, &end, error);
        fv__estimates_release(&rows);
        if (status != FV_OK) return status;
        *enough = end != FV_SAMPLE_MORE;
    }
    return FV_OK;
}
