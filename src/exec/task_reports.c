/* What tasks told while they ran, for the record: residuals of solvers, and whose the seconds are.
 *
 * Notes are stored beside the chunks that they are about, so they are there on every engine and after every kill. Slices are
 * added in their order, whatever the chunks, so the same numbers come out everywhere.
 */
#include "exec/exec.h"
#include <math.h>
#include <stdlib.h>

typedef struct sum {                           /* of an iteration */
    double  residual, measure;                 /* of the slices that took part */
    double  stopped_residual, stopped_measure; /* of those for which it was the last */
    double  least, most;
    int64_t slices;
} sum;

typedef struct sums {
    sum    *of; /* by iteration */
    int64_t count;
} sums;

static sum *sum_at(sums *s, int64_t iteration) {
    if (iteration >= s->count) {
        int64_t count = FV_MAX(iteration + 1, 2 * s->count);
        s->of = fv__realloc(s->of, (size_t)count * sizeof *s->of);
        memset(s->of + s->count, 0, (size_t)(count - s->count) * sizeof *s->of);
        s->count = count;
    }
    return &s->of[iteration];
}

static void add_note(sums *s, const fv_note *note, bool last) {
    sum *at = sum_at(s, note->iteration);
    if (note->active) {
        double part = note->measure > 0 ? sqrt(note->residual / note->measure) : 0;
        at->residual += note->residual;
        at->measure += note->measure;
        at->least = at->slices ? FV_MIN(at->least, part) : part;
        at->most = at->slices ? FV_MAX(at->most, part) : part;
        at->slices++;
    }
    if (last) {
        at->stopped_residual += note->residual;
        at->stopped_measure += note->measure;
    }
}

/* A chunk's notes come slice by slice or iteration by iteration: the last of a slice is the one with no later of the same. */
static void add_notes(sums *s, const fv_note *notes, int64_t count) {
    int64_t least = INT64_MAX, most = -1;
    for (int64_t i = 0; i < count; i++) {
        least = FV_MIN(least, notes[i].slice);
        most = FV_MAX(most, notes[i].slice);
    }
    for (int64_t slice = least; slice <= most; slice++) {
        const fv_note *last = NULL;
        for (int64_t i = 0; i < count; i++) {
            if (notes[i].slice != slice) continue;
            if (last) add_note(s, last, false);
            last = &notes[i];
        }
        if (last) add_note(s, last, true);
    }
}

static void record_sums(const sums *s, const fv_instance *instance, const fv_node *node, fv_record *record) {
    double      residual = 0, measure = 0; /* of slices that have stopped */
    fv_residual r = { .item = instance->item, .line = node->span.line };
    strncpy(r.op, fv__node_called(node, &r.call)->name, sizeof r.op - 1);
    for (int64_t k = 0; k < s->count; k++) {
        const sum *at = &s->of[k];
        if (at->slices) {
            r.iteration = k;
            r.slices = at->slices;
            r.least = at->least;
            r.most = at->most;
            r.residual = at->measure + measure > 0 ? sqrt((at->residual + residual) / (at->measure + measure)) : 0;
            fv__record_residual(record, &r);
        }
        residual += at->stopped_residual;
        measure += at->stopped_measure;
    }
}

static fv_status record_step(const fv_instance *instance, const fv_stage *stage, const fv_node *node, fv_record *record,
                             fv_error *error) {
    fv_store *store = instance->context->store;
    sums      s = { 0 };
    fv_status status = FV_OK;
    for (int64_t task = 0; task < stage->ntasks && status == FV_OK; task++) {
        int64_t index;
        fv_blob blob;
        fv__stage_chunk(stage, task, &index);
        fv_hash key = fv__key_notes(node, &stage->lattice, index);
        if (!fv__store_has(store, key)) continue; /* none were told */
        status = fv__store_get(store, key, &blob, error);
        if (status != FV_OK) break;
        add_notes(&s, blob.data, (int64_t)(blob.size / sizeof(fv_note)));
        fv__store_unpin(store, &blob);
    }
    if (status == FV_OK) record_sums(&s, instance, node, record);
    free(s.of);
    return status;
}

const char *fv__stage_spender(const fv_stage *stage, int place) {
    if (place == FV_FACT_STEPS - 1 && place < stage->nsteps + stage->ntargets - 1) return "others";
    if (place < stage->nsteps) {
        const fv_step *step = &stage->steps[place];
        if (step->kind == FV_STEP_INNER) return NULL;
        return step->kind == FV_STEP_STORED ? "store" : fv__node_called(step->node, NULL)->name;
    }
    if (place >= stage->nsteps + stage->ntargets) return NULL;
    const fv_target *target = &stage->targets[place - stage->nsteps];
    if (target->kind == FV_TARGET_PASS) return fv__node_called(target->node, NULL)->name;
    return target->kind == FV_TARGET_SINK ? FV_STAGE_WRITE : FV_STAGE_STORE;
}

const fv_node *fv__stage_spending_node(const fv_stage *stage, int place) {
    if (place == FV_FACT_STEPS - 1 && place < stage->nsteps + stage->ntargets - 1) return NULL;
    if (place < stage->nsteps) return stage->steps[place].node;
    return place < stage->nsteps + stage->ntargets ? stage->targets[place - stage->nsteps].node : NULL;
}

fv_status fv__stage_record(const fv_instance *instance, const fv_stage *stage, fv_record *record, fv_error *error) {
    bool any = false;
    for (int k = 0; k < stage->nsteps; k++) {
        const fv_step *step = &stage->steps[k];
        if (step->kind != FV_STEP_RUN || !fv__op_notes(step->node->op, step->node->params)) continue;
        FV_TRY(record_step(instance, stage, step->node, record, error));
        any = true;
    }
    return any ? fv__record_flush(record, error) : FV_OK; /* the stages that follow may be committed by others */
}
