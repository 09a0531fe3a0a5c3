/* Items of a collection in random order: where all that the run makes of them is estimated, some may be enough, and where it is
 * computed exactly, something can be told of it meanwhile.
 *
 * Items of a sample are handed out up to the next size at which it is looked at, or until the time is over. Then the unit of the
 * run is opened, which finds what these items have made. If that is not enough, it is closed again, and more items are handed
 * out: what is known of the first ones is in the store. */
#include "exec/sampled.h"
#include "graph/approximate.h"
#include "graph/gathered.h"
#include "run/scheduler_parts.h"
#include <stdlib.h>

/* ---------------------------------------------------------------- what the run makes of items */

typedef struct survey {
    bool       *seen;  /* by node */
    bool        whole; /* something needs all items */
    bool        told;  /* something can be told from some of them */
    fv_sampling sampling;
} survey;

static void take_sampling(survey *s, const fv_sampling *sampling) {
    double time = FV_MAX(s->sampling.time, sampling->time);
    if (!s->sampling.confidence) s->sampling = *sampling;
    s->sampling.time = time;
    s->sampling.whole = s->sampling.whole || sampling->whole;
}

static void look_at(survey *s, const fv_node *node, const fv_node *user) {
    const fv_gathered *items = fv__gathered_of(node);
    bool               sampled = user && user->sampling;
    if (items && sampled) take_sampling(s, user->sampling);
    s->told = s->told || (items && user && !sampled && fv__can_approximate(user));
    s->whole = s->whole || (fv__is_gathered(node) && !(items && sampled));
    if (s->seen[node->id]) return;
    s->seen[node->id] = true;
    for (int i = 0; i < node->ninputs; i++)
        if (node->in[i]) look_at(s, node->in[i], node);
}

bool fv__items_survey(const fv_bindings *bindings, fv_instance *const *samples, fv_sampling *sampling) {
    survey s = { 0 };
    *sampling = (fv_sampling){ 0 };
    bool plain = bindings->nsegments == 2 && !bindings->nchoosers && samples[0] && samples[1] &&
                 bindings->segments[0].collection != FV_RUN && bindings->segments[1].collection == FV_RUN;
    if (!plain) return false;
    for (int k = 0; k < samples[0]->graph->nsinks; k++) s.whole = s.whole || samples[0]->graph->sinks[k].kind != FV_SINK_EXPORT;
    s.seen = fv__calloc((size_t)samples[1]->graph->nnodes + 1);
    for (int k = 0; k < samples[1]->graph->nsinks; k++) look_at(&s, samples[1]->graph->sinks[k].value, NULL);
    free(s.seen);
    if (!s.whole) *sampling = s.sampling;
    return s.told;
}

/* ---------------------------------------------------------------- handing out */

static bool is_sample(const fv_scheduler *s) { return s->context->bindings->of_items.confidence > 0 && !s->source->shared; }

static const fv_segment *segment_of(const fv_scheduler *s) { return &s->context->bindings->segments[0]; }

int64_t *fv__items_order(fv_scheduler *s) {
    const fv_bindings *bindings = s->context->bindings;
    const fv_sampling *sampling = &bindings->of_items;
    int64_t            count = segment_of(s)->count;
    if (!is_sample(s) && !s->items_told) return NULL;
    int64_t *units = fv__alloc((size_t)(bindings->nunits + 1) * sizeof *units), *order;
    for (int64_t unit = 0; unit < bindings->nunits; unit++) units[unit] = unit;
    order = fv__sampling_order((uint64_t)sampling->seed, count);
    memcpy(units, order, (size_t)count * sizeof *order);
    free(order);
    if (!is_sample(s)) return units;
    int64_t recorded = sampling->time ? fv__items_recorded(s->context, sampling->seed) : 0;
    s->items_limit = recorded ? recorded : sampling->time ? count : fv__sampling_next(0, count);
    if (sampling->time && !recorded) s->items_deadline = s->settings->began + sampling->time;
    return units;
}

/* One that would be over too late is not begun; the first one always is. */
static bool in_time(const fv_scheduler *s) {
    double now = fv__now(), workers = 0;
    if (!s->items_deadline || !s->next_item) return true;
    for (int p = 0; p < s->nplaces; p++) workers += s->places[p].workers;
    double done = (double)s->progress.items_done, reserve = 0.02;
    double each = done > 0 ? (now - s->started) * FV_MIN(workers, done) / done : 0;
    return now + 1.25 * each * ceil((double)(s->nopen + 1) / FV_MAX(workers, 1)) + reserve <= s->items_deadline;
}

int64_t fv__items_next(fv_scheduler *s) {
    bool inside = is_sample(s) && s->next_item < segment_of(s)->count;
    if (!inside) return s->next_item;
    if (!in_time(s)) s->items_limit = FV_MAX(s->next_item, 1);
    return s->next_item < s->items_limit ? s->next_item : segment_of(s)->count; /* the unit of the run: to look at them */
}

bool fv__items_going(const fv_scheduler *s) {
    return (is_sample(s) || s->items_told) && !s->source->shared && !s->segment && s->next_item > 0;
}

/* ---------------------------------------------------------------- looking */

fv_status fv__items_look(fv_scheduler *s, fv_item *item, fv_error *error) {
    bool enough = true;
    if (s->context->bindings->of_items.confidence > 0 && item->number >= segment_of(s)->count)
        FV_TRY(fv__items_suffice(item->instance, &enough, error));
    if (!enough && (!is_sample(s) || s->items_given >= segment_of(s)->count))
        return fv_fail(error, FV_ERROR_INPUT, "%s", "what is estimated from some items was not made, because items failed");
    item->more = !enough;
    if (enough && is_sample(s) && item->number >= segment_of(s)->count) {
        pthread_mutex_lock(&s->mutex);
        s->progress.items -= segment_of(s)->count - s->items_given; /* that are not needed */
        pthread_mutex_unlock(&s->mutex);
    }
    return FV_OK;
}

/* Mutex held: the unit of the run is closed again, and comes back when more items are there. */
void fv__items_more(fv_scheduler *s) {
    s->next_item = s->items_given;
    s->items_limit = fv__sampling_next(s->items_given, segment_of(s)->count);
    s->items_deadline = 0;
    s->segment = 0;
}
