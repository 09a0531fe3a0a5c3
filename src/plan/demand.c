/* Adding up what stages need. */
#include "plan/demand.h"

static int64_t image_bytes(const fv_image_type *type) {
    fv_region whole = fv__region_whole(type);
    return fv__region_voxels(&whole) * (int64_t)fv_dtype_size(type->dtype);
}

/* What the tasks of a stage hand to the store. */
static int64_t kept_bytes(const fv_plan *plan, const fv_stage *stage, const fv_target *target) {
    if (target->kind == FV_TARGET_STORE) return image_bytes(&target->node->type.image);
    if (target->kind == FV_TARGET_SINK) return target->file->layout.parallel ? 0 : image_bytes(&target->node->type.image);
    const fv_pass *pass = &target->node->op->passes[target->pass];
    int64_t        index;
    if (!stage->ntasks) return 0;
    fv_region chunk = fv__stage_chunk(stage, 0, &index);
    fv_need   need = fv__node_need(plan, target->node, target->pass, &chunk);
    return (pass->bound ? (int64_t)pass->bound(&need) : 4096) * stage->ntasks;
}

fv_demand fv__plan_demand(const fv_plan *plan, int64_t items, int64_t running) {
    fv_demand d = { .task = plan->memory };
    for (int s = 0; s < plan->nstages; s++) {
        const fv_stage *stage = &plan->stages[s];
        d.tasks += stage->serial ? 1 : stage->ntasks;
        d.shared = FV_MAX(d.shared, stage->shared);
        for (int t = 0; t < stage->ntargets; t++) d.kept += kept_bytes(plan, stage, &stage->targets[t]);
    }
    d.tasks = FV_MIN(d.tasks, INT64_MAX / FV_MAX(items, 1)) * FV_MAX(items, 1);
    d.kept *= FV_MIN(FV_MAX(items, 1), running);
    return d;
}
