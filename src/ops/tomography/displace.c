/* Moving projections sideways. */
#include "ops/tomography/displace.h"
#include "op/axes.h"
#include "op/kernels.h"

fv_status fv__shift_axes(const fv_image_type *type, fv_scan *scan, fv_error *error) {
    int         angle = fv__axis_find(type, "angle");
    fv_geometry any = { .beam = FV_GEOMETRY_PARALLEL, .angles.count = angle < 0 ? 0 : type->shape[angle] };
    return fv__scan_find(type, &any, scan, error);
}

static void grow(fv_region *region, int axis, int64_t most, int64_t length) {
    int64_t end = FV_MIN(region->start[axis] + region->size[axis] + most, length);
    region->start[axis] = FV_MAX(region->start[axis] - most, 0);
    region->size[axis] = end - region->start[axis];
}

void fv__shift_need(const fv_scan *scan, const fv_image_type *type, int64_t most, fv_region *region) {
    if (scan->row >= 0) grow(region, scan->row, most, type->shape[scan->row]);
    grow(region, scan->column, most, scan->ncolumns);
}

/* A row of the input into row[ncolumns of the block]; z outside the block counts as its border. */
static const float *load(const fv_scan *scan, const fv_block *in, int64_t a, int64_t z, float *row) {
    int64_t offset = (a - in->region.start[scan->angle]) * in->stride[scan->angle];
    if (scan->row >= 0) {
        int64_t first = in->region.start[scan->row], last = first + in->region.size[scan->row] - 1;
        offset += (FV_MIN(FV_MAX(z, first), last) - first) * in->stride[scan->row];
    }
    fv__kernels_current()->convert(row, FV_FLOAT32, (const char *)in->data + offset * (int64_t)fv_dtype_size(in->dtype),
                                   in->dtype, in->region.size[scan->column]);
    return row;
}

/* Adds weight times the row, seen dx columns further, to out. */
static void add_row(const fv_scan *scan, const fv_block *in, const float *row, double dx, float weight, int64_t start, int64_t n,
                    float *out) {
    int64_t whole = (int64_t)floor(dx), first = in->region.start[scan->column], last = in->region.size[scan->column] - 1;
    float   part = (float)(dx - (double)whole);
    for (int64_t i = 0; i < n; i++) {
        int64_t x = start + i + whole - first, low = FV_MIN(FV_MAX(x, 0), last), high = FV_MIN(FV_MAX(x + 1, 0), last);
        out[i] += weight * (row[low] + part * (row[high] - row[low]));
    }
}

void fv__shift_plane(const fv_scan *scan, const fv_block *in, const fv_block *out, int64_t a, double dz, double dx, float *row) {
    int64_t first, count, n = out->region.size[scan->column], whole = (int64_t)floor(dz);
    float   part = scan->row < 0 ? 0 : (float)(dz - (double)whole);
    fv__scan_slices(&out->region, scan->row, &first, &count);
    for (int64_t z = 0; z < count; z++) {
        float *to = (float *)out->data + (a - out->region.start[scan->angle]) * out->stride[scan->angle] +
                    (scan->row < 0 ? 0 : z * out->stride[scan->row]);
        memset(to, 0, (size_t)n * sizeof *to);
        add_row(scan, in, load(scan, in, a, first + z + whole, row), dx, 1 - part, out->region.start[scan->column], n, to);
        if (part > 0)
            add_row(scan, in, load(scan, in, a, first + z + whole + 1, row), dx, part, out->region.start[scan->column], n, to);
    }
}
