/* Groups of point-wise steps that are computed together, strip by strip. */
#include "plan/fusing.h"
#include <stdlib.h>

static bool is_image(const fv_node *node) { return node && node->type.kind == FV_KIND_IMAGE; }

typedef struct fused {
    int operators, scalars, images;
} fused; /* what a fused group holds */

static fused fused_of(const fv_node *node) {
    fused g = { .operators = 1 };
    for (int i = 0; i < node->ninputs; i++)
        if (node->in[i]) *(is_image(node->in[i]) ? &g.images : &g.scalars) += 1;
    return g;
}

/* Adds a step to the group that reads it, unless the group would hold too much. */
static bool grow(fused *g, const fv_node *node) {
    fused own = fused_of(node);
    fused sum = { g->operators + 1, g->scalars + own.scalars, g->images - 1 + own.images };
    if (sum.operators > FV_POINTS_MOST || sum.scalars > FV_POINTS_SCALARS || sum.images > FV_POINTS_IMAGES) return false;
    *g = sum;
    return true;
}

/* A repeated image is made once and not anew for each time that it is read. */
static bool same_voxels(const fv_node *node, const fv_node *reader) {
    for (int i = 0; i < reader->ninputs; i++)
        if (reader->in[i] == node && !fv__point_matching(reader, i).same) return false;
    return true;
}

void fv__stage_fuse(fv_stage *stage) {
    int *readers = fv__calloc((size_t)(stage->nsteps + 1) * sizeof *readers),
        *reader = fv__calloc((size_t)(stage->nsteps + 1) * sizeof *reader);
    fused *groups = fv__calloc((size_t)(stage->nsteps + 1) * sizeof *groups); /* by the step that ends it */
    for (int s = 0; s < stage->nsteps; s++) {
        const fv_node *node = stage->steps[s].node;
        if (stage->steps[s].kind == FV_STEP_STORED) continue;
        for (int i = 0; i < node->ninputs; i++) {
            int from = node->in[i] && is_image(node->in[i]) ? fv__stage_step(stage, node->in[i]) : -1;
            if (from < 0) continue;
            readers[from]++;
            reader[from] = s;
            stage->steps[from].last_use = FV_MAX(stage->steps[from].last_use, s);
        }
    }
    for (int t = 0; t < stage->ntargets; t++) {
        const fv_target *target = &stage->targets[t];
        const fv_node   *node = target->node;
        for (int i = -1; i < (target->kind == FV_TARGET_PASS ? node->ninputs : 0); i++) {
            if (target->kind == FV_TARGET_PASS && (i < 0 || !is_image(node->in[i]))) continue;
            int from = fv__stage_step(stage, target->kind == FV_TARGET_PASS ? node->in[i] : node);
            readers[from] += 2;
            stage->steps[from].last_use = stage->nsteps;
        }
    }
    for (int s = stage->nsteps - 1; s >= 0; s--) { /* an inner step lives as long as its group's end */
        fv_step *step = &stage->steps[s];
        bool     inner = step->kind == FV_STEP_POINT && readers[s] == 1 &&
                     (stage->steps[reader[s]].kind == FV_STEP_POINT || stage->steps[reader[s]].kind == FV_STEP_INNER) &&
                     same_voxels(step->node, stage->steps[reader[s]].node);
        int end = reader[s];
        while (inner && stage->steps[end].kind == FV_STEP_INNER) end = stage->steps[end].last_use;
        groups[s] = fused_of(step->node);
        if (!inner || !grow(&groups[end], step->node)) continue;
        step->kind = FV_STEP_INNER;
        step->last_use = end;
    }
    for (int s = 0; s < stage->nsteps; s++) { /* what a group reads lives until the group's end runs */
        const fv_node *node = stage->steps[s].node;
        if (stage->steps[s].kind != FV_STEP_INNER) continue;
        for (int i = 0; i < node->ninputs; i++) {
            int from = node->in[i] && is_image(node->in[i]) ? fv__stage_step(stage, node->in[i]) : -1;
            if (from >= 0) stage->steps[from].last_use = FV_MAX(stage->steps[from].last_use, stage->steps[s].last_use);
        }
    }
    free(readers);
    free(reader);
    free(groups);
}
