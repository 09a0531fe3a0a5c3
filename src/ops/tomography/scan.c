/* Axes and bundles of projections and volumes. */
#include "ops/tomography/scan.h"
#include "base/math.h"
#include "op/axes.h"
#include "op/kernels.h"
#include <float.h>

enum { LONGEST = 8192 }; /* a bundle of such slices can be indexed with 32 bits */

/* Degrees that are called radians are whole numbers; radians that are called degrees end at a half or a whole turn and are no
 * thousandths. */
static fv_status check_unit(const fv_list *angles, bool radians, fv_error *error) {
    const double turn = 0x1.921fb54442d18p+2;
    double       low = angles->value[0], high = low;
    bool         whole = true, thousandths = true;
    int64_t      n = angles->count;
    for (int64_t i = 0; i < n; i++) {
        low = FV_MIN(low, angles->value[i]);
        high = FV_MAX(high, angles->value[i]);
        whole = whole && angles->value[i] == floor(angles->value[i]);
        thousandths = thousandths && fabs(1e3 * angles->value[i] - rint(1e3 * angles->value[i])) < 1e-6;
    }
    if (n > 3 && radians && whole && high - low > turn)
        return fv_fail(error, FV_ERROR_USAGE, "unit = \"rad\": the angles are whole numbers from %g to %g, which are degrees",
                       low, high);
    for (int k = 0; k < 4 && n > 8 && !radians && !thousandths; k++) { /* with its last angle or without it */
        double span = (high - low) * (k & 1 ? (double)n / (double)(n - 1) : 1), whole_or_half = k & 2 ? turn : turn / 2;
        if (fabs(span - whole_or_half) > 0.005 * whole_or_half) continue;
        return fv_fail(error, FV_ERROR_USAGE,
                       "the angles span %.6g degrees, which would be %s turn in radians; say unit = \"rad\"", high - low,
                       k & 2 ? "a whole" : "half a");
    }
    return FV_OK;
}

fv_status fv__angles_check(const fv_list *angles, bool radians, fv_error *error) {
    if (angles->count < 1) return fv_fail(error, FV_ERROR_USAGE, "angles is empty; give one angle per projection");
    for (int64_t i = 0; i < angles->count; i++)
        if (!(fabs(angles->value[i]) <= 1e5))
            return fv_fail(error, FV_ERROR_USAGE, "angle %lld is %g: must be finite and of sensible size", (long long)i,
                           angles->value[i]);
    return check_unit(angles, radians, error);
}

/* The first of these names that an axis has; -1: none. */
static int find_any(const fv_image_type *type, const char *const names[3]) {
    for (int k = 0; k < 3; k++) {
        int axis = fv__axis_find(type, names[k]);
        if (axis >= 0) return axis;
    }
    return -1;
}

/* Tilt series of electron microscopes are angle y x, DataExchange's scans angle v u: the axis of rotation lies along y and v. */
static fv_status find_axes(const fv_image_type *type, fv_scan *scan, fv_error *error) {
    static const char *const rows[] = { "z", "v", "y" }, *const columns[] = { "x", "u", "x" };
    *scan = (fv_scan){ .angle = fv__axis_find(type, "angle"), .row = find_any(type, rows), .column = find_any(type, columns) };
    if (scan->angle >= 0 && scan->column == type->ndim - 1 && type->ndim == (scan->row < 0 ? 2 : 3)) return FV_OK;
    fv_bytes axes = { 0 };
    for (int d = 0; d < type->ndim; d++) fv__bytes_printf(&axes, "%s%s", d ? " " : "", type->axis[d]);
    fv_fail(error, FV_ERROR_USAGE,
            "projections have the axes \"%s\"; needed are \"angle z x\", \"z angle x\" or \"angle x\": name them with "
            "read(file, axes = \"angle z x\") or name_axes(image, \"angle z x\")",
            (char *)axes.data);
    fv__bytes_release(&axes);
    return FV_ERROR_USAGE;
}

/* ---------------------------------------------------------------- half acquisition */

static bool whole_turn(const fv_geometry *g) {
    const double turn = g->radians ? 0x1.921fb54442d18p+2 : 360;
    double       low = INFINITY, high = -INFINITY;
    int64_t      n = g->angles.count;
    for (int64_t i = 0; i < n; i++) {
        low = FV_MIN(low, g->angles.value[i]);
        high = FV_MAX(high, g->angles.value[i]);
    }
    return n > 2 && (high - low) * (double)n / (double)(n - 1) > turn * (1 - 1e-3);
}

/* An axis more than a tenth of the detector's width from its middle is meant to be there. The field then reaches as far on the
 * shorter side as on the longer one. */
static void find_field(const fv_geometry *g, fv_scan *scan) {
    double n = (double)scan->ncolumns, mean = 0;
    for (int64_t i = 0; i < g->center.count; i++) mean += g->center.value[i] / (double)g->center.count;
    double off = g->center.count ? mean - (n - 1) / 2 : 0;
    scan->half = g->beam == FV_GEOMETRY_PARALLEL && fabs(off) > n / 10 && whole_turn(g);
    scan->field = scan->ncolumns + (scan->half ? (int64_t)ceil(2 * fabs(off)) : 0);
    scan->before = off < 0 ? scan->field - scan->ncolumns : 0;
}

void fv__scan_weigh(const fv_scan *scan, const fv_geometry *g, float *weights) {
    double center = g->center.value[0], side = scan->before ? 1 : -1;
    double both = FV_MIN(center, (double)(scan->ncolumns - 1) - center);
    for (int64_t x = 0; x < scan->ncolumns; x++) {
        double place = side * ((double)x - center);
        weights[x] = place >= both ? 2 : place <= -both ? 0 : (float)(fv__sin(0x1.921fb54442d18p+0 * place / both) + 1);
    }
}

/* ---------------------------------------------------------------- projections and volumes */

fv_status fv__scan_find(const fv_image_type *type, const fv_geometry *g, fv_scan *scan, fv_error *error) {
    FV_TRY(find_axes(type, scan, error));
    scan->nangles = type->shape[scan->angle];
    scan->nrows = scan->row < 0 ? 1 : type->shape[scan->row];
    scan->ncolumns = type->shape[scan->column];
    if (fv_dtype_is_complex(type->dtype)) return fv_fail(error, FV_ERROR_USAGE, "projections must be real, not complex");
    if (g->angles.count != scan->nangles)
        return fv_fail(error, FV_ERROR_USAGE, "%lld angles for %lld projections; there must be one angle for each",
                       (long long)g->angles.count, (long long)scan->nangles);
    for (int64_t i = 0; i < g->center.count; i++)
        if (!(g->center.value[i] >= 0 && g->center.value[i] <= (double)(scan->ncolumns - 1)))
            return fv_fail(error, FV_ERROR_USAGE, "center = %g: must lie on the detector, between 0 and %lld", g->center.value[i],
                           (long long)scan->ncolumns - 1);
    if (scan->ncolumns > LONGEST)
        return fv_fail(error, FV_ERROR_USAGE, "%lld detector columns; at most %d are possible", (long long)scan->ncolumns,
                       (int)LONGEST);
    find_field(g, scan);
    return FV_OK;
}

fv_status fv__scan_volume(const fv_image_type *projections, const fv_scan *scan, fv_numbers *size, fv_image_type *out,
                          fv_error *error) {
    int64_t shape[3] = { scan->nrows, scan->field, scan->field };
    if (size->count > 2) return fv_fail(error, FV_ERROR_USAGE, "size has %d numbers; give one, or rows and columns", size->count);
    for (int d = 0; d < 2 && size->count; d++) {
        double n = size->value[size->count > 1 ? d : 0];
        if (n != floor(n) || n > LONGEST)
            return fv_fail(error, FV_ERROR_USAGE, "size = %g: must be a whole number up to %d", n, (int)LONGEST);
        shape[d + 1] = (int64_t)n;
    }
    if (FV_MAX(shape[1], shape[2]) > LONGEST)
        return fv_fail(error, FV_ERROR_USAGE,
                       "slices of %lld voxels, as wide as what this half acquisition sees; at most %d: give size",
                       (long long)shape[2], (int)LONGEST);
    int flat = scan->row < 0;
    fv_image_type_init(out, FV_FLOAT32, 3 - flat, shape + flat);
    for (int d = 0; d < out->ndim; d++) {
        int from = d == 0 && !flat ? scan->row : scan->column;
        out->spacing[d] = projections->spacing[from];
        memcpy(out->unit[d], projections->unit[from], sizeof out->unit[d]);
        if (from == scan->row) out->origin[d] = projections->origin[from];
    }
    return FV_OK;
}

fv_region fv__scan_need(const fv_scan *scan, const fv_image_type *projections, const fv_region *volume) {
    fv_region in = fv__region_whole(projections);
    if (scan->row >= 0) {
        in.start[scan->row] = volume->start[0];
        in.size[scan->row] = volume->size[0];
    }
    return in;
}

void fv__scan_slices(const fv_region *region, int row, int64_t *first, int64_t *count) {
    *first = row < 0 ? 0 : region->start[row];
    *count = row < 0 ? 1 : region->size[row];
}

/* ---------------------------------------------------------------- bundles */

/* rows[16][n] to to[n][16]. */
static void interleave(const float *rows, int64_t n, float *to) {
    for (int64_t i = 0; i < n; i++)
        for (int l = 0; l < FV_BEAM_LANES; l++) to[i * FV_BEAM_LANES + l] = rows[l * n + i];
}

int64_t fv__first_bad(const float *row, int64_t n) {
    int bad = 0;
    for (int64_t i = 0; i < n; i++) bad |= !(fabsf(row[i]) <= FLT_MAX);
    for (int64_t i = 0; bad && i < n; i++)
        if (!(fabsf(row[i]) <= FLT_MAX)) return i;
    return -1;
}

static const void *row_at(const fv_block *block, int64_t offset) {
    return (const char *)block->data + offset * (int64_t)fv_dtype_size(block->dtype);
}

fv_status fv__scan_pack(const fv_scan *scan, const fv_block *in, int64_t first, int64_t count, float *rows, float *sinogram,
                        fv_error *error) {
    const fv_kernels *kernels = fv__kernels_current();
    int64_t           n = scan->ncolumns, before = scan->weights ? scan->before : 0;
    int64_t           pitch = ((scan->weights ? scan->field : n) + 2 * FV_BEAM_PAD) * FV_BEAM_LANES;
    int64_t           row0 = scan->row < 0 ? 0 : in->region.start[scan->row];
    memset(sinogram, 0, (size_t)(scan->nangles * pitch) * sizeof *sinogram);
    memset(rows, 0, (size_t)(n * FV_BEAM_LANES) * sizeof *rows);
    for (int64_t a = 0; a < scan->nangles; a++) {
        for (int64_t l = 0; l < count; l++) {
            int64_t offset = a * in->stride[scan->angle] + (scan->row < 0 ? 0 : (first + l - row0) * in->stride[scan->row]);
            kernels->convert(rows + l * n, FV_FLOAT32, row_at(in, offset), in->dtype, n);
            int64_t bad = fv__first_bad(rows + l * n, n);
            if (bad >= 0)
                return fv_fail(error, FV_ERROR_INPUT,
                               "projection %lld, row %lld, column %lld is not a finite number; clean the projections first, "
                               "as with where(isfinite(p), p, 0)",
                               (long long)(in->region.start[scan->angle] + a), (long long)(first + l), (long long)bad);
            for (int64_t x = 0; x < n && scan->weights; x++) rows[l * n + x] *= scan->weights[x];
        }
        interleave(rows, n, sinogram + a * pitch + (FV_BEAM_PAD + before) * FV_BEAM_LANES);
    }
    return FV_OK;
}

fv_status fv__bundle_pack(const fv_beam *b, const fv_block *in, int64_t first, int64_t count, const char *what, float *rows,
                          float *image, fv_error *error) {
    const fv_kernels *kernels = fv__kernels_current();
    int               flat = in->region.ndim < 3;
    int64_t           n = b->width, z0 = flat ? 0 : in->region.start[0];
    memset(image, 0, (size_t)fv__beam_image_bytes(b));
    memset(rows, 0, (size_t)(n * FV_BEAM_LANES) * sizeof *rows);
    for (int64_t y = 0; y < b->rows; y++) {
        for (int64_t l = 0; l < count; l++) {
            int64_t offset = (flat ? 0 : (first + l - z0) * in->stride[0]) + y * in->stride[1 - flat];
            kernels->convert(rows + l * n, FV_FLOAT32, row_at(in, offset), in->dtype, n);
            int64_t bad = fv__first_bad(rows + l * n, n);
            if (bad >= 0)
                return fv_fail(error, FV_ERROR_INPUT, "%s: slice %lld, row %lld, column %lld is not a finite number", what,
                               (long long)(first + l), (long long)y, (long long)bad);
        }
        interleave(rows, n, fv__beam_voxel(b, image, y, 0));
    }
    return FV_OK;
}

void fv__bundle_unpack(const float *from, int64_t n, int64_t slices, float *at, int64_t stride) {
    for (int64_t l = 0; l < slices; l++)
        for (int64_t i = 0; i < n; i++) at[l * stride + i] = from[i * FV_BEAM_LANES + l];
}
