/* art and sart of a cone, written as a pipeline: groups of projections that change the volume one after the other.
 *
 * A ray of a cone crosses many slices, so rays cannot be used one by one without the whole volume at hand. All rays of a group
 * (one projection, if nothing else is said) are used at once instead: their tasks are independent slabs of detector rows and then
 * of slices. Group k of n holds every n-th projection from number k on, and depends on parameters only, so bits do not depend on
 * chunks.
 */
#include "ops/tomography/cone_unroll.h"
#include <stdlib.h>

typedef struct ordered {
    const fv_unrolling *u;
    bool                means; /* sart: divided by voxel; art: by ray */
    int64_t             groups;
} ordered;

static void write_geometry(const ordered *o, int64_t group) {
    const fv_geometry *g = &o->u->p->geometry;
    fv__bytes_printf(o->u->text, "g%lld = cone([", (long long)group);
    for (int64_t a = group; a < g->angles.count; a += o->groups)
        fv__bytes_printf(o->u->text, "%s%.17g", a == group ? "" : ", ", g->angles.value[a]);
    fv__bytes_printf(o->u->text, "], %.17g, %.17g, %.17g, \"%s\", offset = %.17g", g->source, g->detector, g->pitch,
                     g->radians ? "rad" : "deg", g->offset);
    if (g->center.count) fv__bytes_printf(o->u->text, ", center = %.17g", g->center.value[0]);
    fv__bytes_printf(o->u->text, ")\n");
}

/* w: what each ray's rest is divided by, as a factor. Of art it is the scalar product with all rays of the group: of a ray that
 * shares no voxel with them its own square, as Kaczmarz has it, and else so much more that no relaxation below 2 diverges. */
static void write_group(const ordered *o, int64_t group) {
    long long g = group, n = o->groups;
    write_geometry(o, group);
    fv__bytes_printf(o->u->text, "m%lld = measured[%lld::%lld]\n", g, g, n);
    if (o->means)
        fv__bytes_printf(o->u->text, "w%lld = rays[%lld::%lld]\n", g, g, n);
    else
        fv__bytes_printf(o->u->text,
                         "all = xray(backproject(ones_like[%lld::%lld], g%lld%s), g%lld%s)\n"
                         "w%lld = where(all > 0.001, 1 / maximum(all, 0.001), 0)\n",
                         g, n, g, o->u->back, g, o->u->xray, g);
}

/* next: the volume after this group; left: what the groups before it have left over, each in its turn. */
static void write_step(const ordered *o, int64_t group, bool first, bool blank) {
    const fv_unrolling *u = o->u;
    long long           g = group;
    const char         *x = first ? "x" : "next";
    if (blank)
        fv__bytes_printf(u->text, "rest = m%lld\n", g);
    else
        fv__bytes_printf(u->text, "rest = m%lld - xray(%s, g%lld%s)\n", g, x, g, u->xray);
    fv__bytes_printf(u->text, "left = %s + sum(square(rest))\n", first ? "0" : "left");
    fv__bytes_printf(u->text, "next = %s%s%s + backproject(rest * w%lld, g%lld%s%s) * %.17g)%s\n", fv__inside(u),
                     u->p->nonnegative ? "maximum(0, " : "(", x, g, g, u->back, o->means ? ", mean = true" : "", u->p->relaxation,
                     fv__limit(u));
}

void fv__unroll_ordered(const fv_unrolling *u, fv_unrolled kind) {
    const fv_solver *p = u->p;
    ordered          o = { u, kind == FV_UNROLLED_SART, p->subsets ? p->subsets : p->geometry.angles.count };
    int32_t         *order = fv__alloc((size_t)o.groups * sizeof *order);
    for (int64_t i = 0; i < o.groups; i++) order[i] = (int32_t)i;
    if (o.means) fv__solver_spread(o.groups, order);
    for (int64_t i = 0; i < o.groups; i++) write_group(&o, i);
    for (int64_t k = 1; k <= p->iterations; k++) {
        for (int64_t i = 0; i < o.groups; i++) {
            write_step(&o, order[i], !i, k == 1 && !i && !u->start);
            if (i + 1 < o.groups) fv__bytes_printf(u->text, "next = checkpoint(next)\n");
        }
        fv__unroll_keep(u, k, false);
        if (k < p->iterations) fv__unroll_go(u, k);
    }
    free(order);
}
