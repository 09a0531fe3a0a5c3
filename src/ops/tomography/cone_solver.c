/* Iterative reconstruction written as a pipeline: every iterate is an image of its own in the store.
 *
 * A cone's slices see each other, so a task cannot solve a slab alone as it does for parallel beams. Each iteration projects
 * slabs of detector rows and back-projects slabs of slices, on any engine; sums over all of them are exact, so nothing depends on
 * the number of workers, and a killed run goes on with the iteration it was in.
 */
#include "ops/tomography/cone_unroll.h"
#include <stdio.h>

enum { MOST = 1000, MOST_STEPS = 3000 }; /* iterations of a cone; groups of projections in all of them */

static void format_shape(const fv_image_type *type, char to[96]) {
    for (int d = 0, n = 0; d < type->ndim; d++)
        n += snprintf(to + n, 96 - (size_t)n, "%s%lld", d ? ", " : "", (long long)type->shape[d]);
}

/* rays: 1 by the length of each; share: 1 by what all rays of a voxel weigh. */
static void write_weights(const fv_unrolling *u, fv_unrolled kind, const fv_image_type *projections, const char *image) {
    char detector[96];
    format_shape(projections, detector);
    if (kind == FV_UNROLLED_CGLS) return;
    fv__bytes_printf(u->text, "ones_like = name_axes(ones([%s], \"float32\"), \"%s\")\n", detector,
                     projections->ndim < 3 ? "angle x" : "angle z x");
    if (kind == FV_UNROLLED_SIRT || kind == FV_UNROLLED_SART)
        fv__bytes_printf(u->text,
                         "lengths = xray(ones([%s], \"float32\"), geometry%s)\n"
                         "rays = where(lengths > 0.001, 1 / maximum(lengths, 0.001), 0)\n",
                         image, u->xray);
    if (kind == FV_UNROLLED_SIRT || kind == FV_UNROLLED_MLEM)
        fv__bytes_printf(u->text,
                         "covered = backproject(ones_like, geometry%s)\n"
                         "share = where(covered > 0.001, 1 / maximum(covered, 0.001), 0)\n",
                         u->back);
}

void fv__unroll_go(const fv_unrolling *u, int64_t k) {
    if (!(u->p->stop > 0)) return;
    if (k == 1)
        fv__bytes_printf(u->text, "go = left > %.17g * norm\n", u->p->stop * u->p->stop);
    else
        fv__bytes_printf(u->text, "go = choose(go, left > %.17g * norm, 0)\n", u->p->stop * u->p->stop);
}

void fv__unroll_keep(const fv_unrolling *u, int64_t k, bool before) {
    const char *text = u->p->stop > 0 && (before || k > 1) ? "x = checkpoint(choose(go, next, x), choose(go, left, -1)"
                                                           : "x = checkpoint(next, left";
    fv__bytes_printf(u->text, "%s, norm, iteration = %lld)\n", text, (long long)k);
    if (!u->table) return;
    fv__bytes_printf(u->text, "rows = row(0, second = %lld, third = where(norm > 0, sqrt(%s / maximum(norm, 1e-300)), 0)",
                     (long long)k, u->p->stop > 0 && (before || k > 1) ? "choose(go, left, -1)" : "left");
    fv__bytes_printf(u->text, "%s, names = \"slice iteration residual\")\n", k > 1 ? ", after = rows" : "");
}

static void write_sirt(const fv_unrolling *u) {
    for (int64_t k = 1; k <= u->p->iterations; k++) {
        if (k == 1 && !u->start)
            fv__bytes_printf(u->text, "rest = measured\n");
        else
            fv__bytes_printf(u->text, "rest = checkpoint(measured - xray(x, geometry%s))\n", u->xray);
        fv__bytes_printf(u->text, "left = sum(square(rest))\n");
        fv__unroll_go(u, k);
        fv__bytes_printf(u->text, "next = %s%sx + backproject(rest * rays, geometry%s) * share * %.17g)%s\n", fv__inside(u),
                         u->p->nonnegative ? "maximum(0, " : "(", u->back, u->p->relaxation, fv__limit(u));
        fv__unroll_keep(u, k, true);
    }
}

static void write_mlem(const fv_unrolling *u) {
    for (int64_t k = 1; k <= u->p->iterations; k++) {
        fv__bytes_printf(u->text, "seen = xray(x, geometry%s)\nleft = sum(square(measured - seen))\n", u->xray);
        fv__unroll_go(u, k);
        fv__bytes_printf(u->text,
                         "ratio = where((seen > 1e-12) & (measured > 0), measured / maximum(seen, 1e-12), 0)\n"
                         "next = %sx * (backproject(ratio, geometry%s) * share)%s\n",
                         fv__inside(u), u->back, fv__limit(u));
        fv__unroll_keep(u, k, true);
    }
}

static void write_gradient(const fv_unrolling *u) {
    fv__bytes_printf(u->text, "gradient = %sbackproject(rest, geometry%s)%s\nslope = sum(square(gradient))\n", fv__inside(u),
                     u->back, fv__limit(u));
}

static void write_cgls(const fv_unrolling *u) {
    if (u->start)
        fv__bytes_printf(u->text, "rest = checkpoint(measured - xray(x, geometry%s))\n", u->xray);
    else
        fv__bytes_printf(u->text, "rest = measured\n");
    write_gradient(u);
    fv__bytes_printf(u->text, "way = gradient\n");
    for (int64_t k = 1; k <= u->p->iterations; k++) {
        fv__bytes_printf(u->text, "left = sum(square(rest))\n");
        fv__unroll_go(u, k);
        fv__bytes_printf(u->text,
                         "seen = xray(way, geometry%s)\nsquares = sum(square(seen))\n"
                         "length = where(squares > 0, slope / maximum(squares, 1e-300), 0)\nnext = x + way * length\n",
                         u->xray);
        fv__unroll_keep(u, k, true);
        if (k == u->p->iterations) break;
        fv__bytes_printf(u->text, "rest = checkpoint(rest - seen * length)\nbefore = slope\n");
        write_gradient(u);
        fv__bytes_printf(u->text, "turn = where(before > 0, slope / maximum(before, 1e-300), 0)\n"
                                  "way = checkpoint(gradient + way * turn)\n");
    }
    if (u->p->nonnegative) fv__bytes_printf(u->text, "maximum(0, x)\n");
}

static bool is_ordered(fv_unrolled kind) { return kind == FV_UNROLLED_ART || kind == FV_UNROLLED_SART; }

static fv_status check_length(const fv_solver *p, fv_unrolled kind, fv_error *error) {
    int64_t groups = p->subsets ? p->subsets : p->geometry.angles.count;
    if (p->iterations > MOST)
        return fv_fail(error, FV_ERROR_USAGE,
                       "iterations = %lld: at most %d of a cone in one call; the result can be start of another",
                       (long long)p->iterations, (int)MOST);
    if (p->window.index != FV_SOLVER_NO_WINDOW)
        return fv_fail(error, FV_ERROR_USAGE, "window = hamming: only parallel beams have it; leave it out, or use mask");
    if (groups > p->geometry.angles.count)
        return fv_fail(error, FV_ERROR_USAGE, "subsets = %lld: there are only %lld projections", (long long)groups,
                       (long long)p->geometry.angles.count);
    if (is_ordered(kind) && p->iterations * groups > MOST_STEPS)
        return fv_fail(error, FV_ERROR_USAGE,
                       "%lld iterations of %lld groups of projections: at most %d steps in one call; give subsets = %lld or "
                       "fewer, or use the result as start of another call",
                       (long long)p->iterations, (long long)groups, (int)MOST_STEPS, (long long)(MOST_STEPS / p->iterations));
    return FV_OK;
}

fv_status fv__cone_unroll(fv_infer *i, fv_unrolled kind, bool table, fv_bytes *text, fv_error *error) {
    const fv_solver     *p = i->params;
    const fv_image_type *projections = &i->in[FV_SOLVER_PROJECTIONS]->image;
    fv_scan              scan;
    FV_TRY(fv__cone_volume(&p->geometry, projections, &p->size, &i->out->image, error));
    FV_TRY(fv__solver_shapes(i, error));
    FV_TRY(fv__scan_find(projections, &p->geometry, &scan, error));
    if (scan.angle)
        return fv_fail(error, FV_ERROR_USAGE, "projections of a cone must have the axes angle z x here, not z angle x");
    FV_TRY(check_length(p, kind, error));
    const fv_image_type *volume = &i->out->image;
    int                  flat = volume->ndim < 3;
    char                 image[96];
    fv_unrolling         u = { .p = p,
                               .text = text,
                               .start = i->in[FV_SOLVER_START]->kind == FV_KIND_IMAGE,
                               .mask = i->in[FV_SOLVER_MASK]->kind == FV_KIND_IMAGE,
                               .table = table };
    snprintf(u.xray, sizeof u.xray, ", columns = %lld, rows = %lld", (long long)scan.ncolumns,
             flat ? 0LL : (long long)scan.nrows);
    snprintf(u.back, sizeof u.back, flat ? ", size = [%lld, %lld]" : ", size = [%lld, %lld, %lld]", (long long)volume->shape[0],
             (long long)volume->shape[1], (long long)volume->shape[2]);
    fv__bytes_printf(text, "measured = %sname_axes(convert(projections, \"float32\"), \"%s\"))\n",
                     is_ordered(kind) ? "checkpoint(" : "(", flat ? "angle x" : "angle z x");
    format_shape(volume, image);
    write_weights(&u, kind, projections, image);
    fv__bytes_printf(text, "norm = sum(square(measured))\n");
    if (u.start)
        fv__bytes_printf(text, "x = checkpoint(%sconvert(start, \"float32\")%s)\n", fv__inside(&u), fv__limit(&u));
    else if (kind == FV_UNROLLED_MLEM)
        fv__bytes_printf(text, "x = %scovered * 0 + 1%s\n", fv__inside(&u), fv__limit(&u));
    else if (p->stop > 0)
        fv__bytes_printf(text, "x = zeros([%s], \"float32\")\n", image);
    else
        fv__bytes_printf(text, "x = 0\n");
    if (kind == FV_UNROLLED_SIRT)
        write_sirt(&u);
    else if (kind == FV_UNROLLED_MLEM)
        write_mlem(&u);
    else if (kind == FV_UNROLLED_CGLS)
        write_cgls(&u);
    else
        fv__unroll_ordered(&u, kind);
    if (table) fv__bytes_printf(text, "filter(rows, \"residual >= 0\")\n"); /* not those that were not made */
    return FV_OK;
}
