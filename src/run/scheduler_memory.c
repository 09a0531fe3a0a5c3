/* What the memory of a run is given to: tasks first, then what writers keep from task to task, then decoded pieces of files. */
#include "op/kept_pieces.h"
#include "run/scheduler_parts.h"
#include "run/worker_threads.h"

/* Bytes that decoded pieces of files may take in a run, at most: what two rows of chunks of a large volume have. */
#define MOST_LENT ((int64_t)512 << 20)

/* What a stage would rather lend to decoded pieces of files than to tasks that have no core. */
static int64_t worth_lending(const fv_scheduler *s, int place, int64_t shared) {
    return FV_MIN(shared, FV_MIN(s->places[place].budget.tasks / 2, MOST_LENT));
}

/* Writers may keep memory from task to task where that leaves room for a task of every thread, or for decoded pieces of files:
 * only in a run of one item that this process does alone. */
void fv__memory_spare(fv_scheduler *s, const fv_item *item) {
    const fv_plan *plan = item->instance->plan;
    int64_t        largest = 0, shared = 0, room = s->tightest.tasks, spared = 0;
    if (s->nplaces > 1 || s->source->shared || s->context->bindings->collection) return;
    for (int k = 0; k < plan->nstages; k++) {
        largest = FV_MAX(largest, plan->stages[k].memory);
        shared = FV_MAX(shared, plan->stages[k].shared);
    }
    int workers = s->places[0].workers;
    room -= FV_MAX(largest * fv__worker_threads_threads(workers), largest * workers + worth_lending(s, 0, shared));
    for (int k = 0; k < plan->nstages; k++)
        for (int t = 0; t < plan->stages[k].ntargets; t++) {
            const fv_target *target = &plan->stages[k].targets[t];
            fv_writer       *writer = target->kind == FV_TARGET_SINK ? fv__instance_output(item->instance, target)->writer : NULL;
            if (!writer || room <= spared) continue;
            writer->spare = FV_MIN(writer->layout.spare_wanted, room - spared);
            spared += writer->spare;
        }
    pthread_mutex_lock(&s->mutex);
    s->spared = spared;
    pthread_mutex_unlock(&s->mutex);
}

bool fv__fits(fv_scheduler *s, int place, int64_t memory, int64_t shared) {
    int64_t used = s->place_memory[place], most = s->places[place].budget.tasks;
    /* Tasks beyond those that have a core each only fill the time in which others wait: pieces that are kept save more. Other
     * places keep none. */
    int64_t kept = s->nplaces == 1 && s->out >= s->places[place].workers ? worth_lending(s, place, shared) : 0;
    bool    fits = used == 0 || used + s->spared + memory + kept <= most;
    if (!fits) s->full = true;
    return fits;
}

bool fv__task_fits(fv_scheduler *s, int place, const fv_stage *stage) {
    bool programs = stage->cpus > 1 || s->place_cpus[place] > 0;
    if (programs && s->place_out[place] && s->place_out[place] + s->place_cpus[place] + stage->cpus > s->places[place].workers) {
        s->full = true;
        return false;
    }
    return fv__fits(s, place, stage->memory, stage->shared);
}

/* Memory that the tasks which are out here leave is lent to decoded pieces of files, but for an eighth, for libraries. */
static void lend(fv_scheduler *s) {
    int64_t most = s->places[0].budget.tasks - s->places[0].budget.tasks / 8;
    int64_t rest = FV_MIN(FV_MAX(most - s->place_memory[0] - s->spared, 0), MOST_LENT);
    if (rest != s->lent) fv__kept_allow(rest - s->lent);
    s->lent = rest;
}

void fv__memory_use(fv_scheduler *s, int place, int64_t bytes) {
    s->memory += bytes;
    s->place_memory[place] += bytes;
    lend(s);
}

void fv__memory_take_back(fv_scheduler *s) {
    fv__kept_allow(-s->lent);
    s->lent = 0;
}
