/* Lists of a text for the part of a scan that is there. */
#include "graph/live_part.h"
#include <math.h>

/* Planes that a list is for, if it is for more than those that are there; 0: it stays as it is. */
static int64_t planes_of(const fv_live *live, const fv_list *list, int each) {
    int64_t planes = list->count / each;
    bool    fits = list->count % each == 0 && planes != live->nthere && planes > live->there[live->nthere - 1];
    return fits ? planes : 0;
}

static void choose(const fv_live *live, fv_list *list, int each, fv_arena *arena) {
    if (!planes_of(live, list, each)) return;
    double *chosen = fv__arena_alloc(arena, (size_t)(live->nthere * each) * sizeof *chosen);
    for (int64_t i = 0; i < live->nthere; i++)
        for (int k = 0; k < each; k++) chosen[i * each + k] = list->value[live->there[i] * each + k];
    *list = (fv_list){ live->nthere * each, chosen };
}

static bool has_planes(const fv_image_type *type, int64_t count) {
    for (int d = 0; d < type->ndim; d++)
        if (type->shape[d] == count) return true;
    return false;
}

fv_status fv__part_fit(const fv_live *live, const fv_op *op, const fv_image_type *first, void *params, fv_arena *arena,
                       fv_error *error) {
    for (const fv_param *p = op->params; p && p->name; p++) {
        void        *field = (char *)params + p->offset;
        fv_geometry *geometry = p->kind == FV_PARAM_GEOMETRY ? field : NULL;
        fv_list     *list = geometry ? &geometry->angles : field;
        if (!p->each || !has_planes(first, live->nthere)) continue;
        int64_t planes = planes_of(live, list, p->each);
        if ((double)live->nthere < op->part * (double)planes)
            return fv_fail(error, FV_ERROR_CANCELLED, "%lld of %lld frames are too few to begin with", (long long)live->nthere,
                           (long long)planes);
        choose(live, list, p->each, arena);
        if (geometry && geometry->center.count > 1) choose(live, &geometry->center, 1, arena);
    }
    return FV_OK;
}

fv_status fv__live_angles(const fv_live *live, fv_arena *arena, fv_list *out, fv_error *error) {
    *live->asked = true;
    if (!live->nangles)
        return fv_fail(error, FV_ERROR_USAGE,
                       "the frames tell no angles; send them with a header fovea-angle, in degrees, and make scans of them with "
                       "--scan angle, or write the angles into the text");
    double *value = fv__arena_alloc(arena, (size_t)live->nangles * sizeof *value);
    for (int64_t i = 0; i < live->nangles; i++) {
        if (isnan(live->angles[i]))
            return fv_fail(error, FV_ERROR_INPUT, "frame %lld of the scan tells no angle (header fovea-angle), and others do",
                           (long long)(live->there ? live->there[i] : i));
        value[i] = live->angles[i];
    }
    *out = (fv_list){ live->nangles, value };
    return FV_OK;
}
