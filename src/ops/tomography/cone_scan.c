/* Geometry of cone beams: checks, types, and the numbers that kernels take. */
#include "ops/tomography/cone_scan.h"
#include "base/math.h"

/* Less than this part of the volume's width cannot be meant. */
#define LEAST_SEEN 0.05

static fv_status check_columns(const fv_cone *c, fv_error *error) {
    double seen = (double)c->columns * c->pitch * c->source / c->distance, width = (double)c->width;
    if (seen < LEAST_SEEN * width)
        return fv_fail(error, FV_ERROR_USAGE,
                       "pitch = %g: %lld detector columns span %.3g voxels at the axis, %.2g %% of the volume's %lld; lengths "
                       "are in voxels, and size says how many the volume has",
                       c->pitch, (long long)c->columns, seen, 100 * seen / width, (long long)c->width);
    if (width * c->distance < c->pitch * c->source)
        return fv_fail(error, FV_ERROR_USAGE,
                       "pitch = %g: the whole volume is seen by %.2g of a detector column; lengths are in voxels", c->pitch,
                       width * c->distance / (c->pitch * c->source));
    return FV_OK;
}

fv_status fv__cone_check(const fv_geometry *g, const fv_image_type *projections, const fv_image_type *volume, fv_error *error) {
    fv_scan scan;
    fv_cone c;
    FV_TRY(fv__scan_find(projections, g, &scan, error));
    fv__cone_set(g, projections, volume, &c);
    double h = (double)(c.height + 2), w = (double)(c.width + 2), radius = sqrt(h * h + w * w) / 2;
    if (radius >= g->source)
        return fv_fail(error, FV_ERROR_USAGE, "source = %g: the source would touch the volume, whose corners reach %.4g voxels",
                       g->source, radius);
    FV_TRY(check_columns(&c, error));
    if (scan.row < 0) return FV_OK;
    int64_t first, count;
    FV_ISA_NAME(fv__cone_near_rows)(&c, 0, volume->shape[0], &first, &count);
    if (first + count <= 0 || first >= scan.nrows)
        return fv_fail(error, FV_ERROR_USAGE,
                       "offset = %g: the geometry does not see the volume, which is at detector rows %lld to %lld of 0 to %lld",
                       g->offset, (long long)first, (long long)(first + count - 1), (long long)scan.nrows - 1);
    return FV_OK;
}

fv_status fv__cone_volume(const fv_geometry *g, const fv_image_type *projections, const fv_numbers *size, fv_image_type *out,
                          fv_error *error) {
    fv_scan scan;
    FV_TRY(fv__scan_find(projections, g, &scan, error));
    int     flat = scan.row < 0, n = size->count;
    int64_t shape[3] = { scan.nrows, scan.ncolumns, scan.ncolumns };
    if (n && n != 3 - flat && !(flat && n == 1))
        return fv_fail(error, FV_ERROR_USAGE, "size has %d numbers; give %s", n,
                       flat ? "rows and columns" : "slices, rows and columns");
    for (int d = flat; d < 3 && n; d++) {
        double voxels = size->value[n == 1 ? 0 : d - flat];
        if (voxels != floor(voxels)) return fv_fail(error, FV_ERROR_USAGE, "size = %g: must be a whole number", voxels);
        shape[d] = (int64_t)voxels;
    }
    fv_image_type_init(out, FV_FLOAT32, 3 - flat, shape + flat);
    for (int d = 0; d < out->ndim; d++) { /* pitch is the width of a detector pixel in voxels */
        int from = d == 0 && !flat ? scan.row : scan.column;
        out->spacing[d] = projections->spacing[from] / g->pitch;
        memcpy(out->unit[d], projections->unit[from], sizeof out->unit[d]);
    }
    return fv__cone_check(g, projections, out, error);
}

void fv__cone_set(const fv_geometry *g, const fv_image_type *projections, const fv_image_type *volume, fv_cone *cone) {
    fv_scan scan;
    int     d = volume->ndim;
    fv__scan_find(projections, g, &scan, NULL);
    *cone = (fv_cone){ .nangles = scan.nangles,
                       .columns = scan.ncolumns,
                       .height = volume->shape[d - 2],
                       .width = volume->shape[d - 1],
                       .source = g->source,
                       .distance = g->source + g->detector,
                       .pitch = g->pitch,
                       .magnify = (g->source + g->detector) / g->pitch,
                       .center = g->center.count ? g->center.value[0] : (double)(scan.ncolumns - 1) / 2,
                       .middle_row = scan.row < 0 ? 0 : (double)(scan.nrows - 1) / 2 + g->offset,
                       .middle = d < 3 ? 0 : (double)(volume->shape[0] - 1) / 2 };
}

void fv__cone_turn(const fv_geometry *g, fv_cone *cone) {
    for (int64_t a = 0; a < cone->nangles; a++) {
        double angle = g->angles.value[a] * (g->radians ? 1 : 0x1.1df46a2529d39p-6); /* pi / 180 */
        cone->cosine[a] = fv__cos(angle);
        cone->sine[a] = fv__sin(angle);
    }
}
