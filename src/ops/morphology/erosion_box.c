/* Erosion by a box: the extremum over a window along each axis in turn, at a cost that does not grow with the window.
 *
 * Along all axes but the last one the rows of a window are combined by van Herk's method (suffixes of one block with prefixes
 * of the next: three operations a voxel); along the last one by doubling shifted copies of a padded line.
 */
#include "ops/morphology/erosion.h"

/* For bool images 0 and 1 the extremum is a bitwise operation. */
static void combine_rows(uint8_t *restrict to, const uint8_t *restrict a, const uint8_t *restrict b, int64_t n, bool dilate) {
    if (dilate)
        for (int64_t i = 0; i < n; i++) to[i] = a[i] | b[i];
    else
        for (int64_t i = 0; i < n; i++) to[i] = a[i] & b[i];
}

static void combine_into(uint8_t *restrict to, const uint8_t *restrict a, int64_t n, bool dilate) {
    if (dilate)
        for (int64_t i = 0; i < n; i++) to[i] |= a[i];
    else
        for (int64_t i = 0; i < n; i++) to[i] &= a[i];
}

/* Rows of one position that follow each other along an axis; those outside the image are neutral. */
typedef struct { const uint8_t *first; int64_t stride, before, count; } column;

static void take_row(uint8_t *to, const column *c, int64_t index, int64_t n, bool dilate) {
    index -= c->before;
    if (index >= 0 && index < c->count) combine_into(to, c->first + index * c->stride, n, dilate);
}

/* `rows` output rows of n voxels from the window of width 2 half + 1; suffix holds that many rows and one more. */
static void van_herk(const column *c, uint8_t *out, int64_t out_stride, int64_t rows, int64_t n, int64_t half, uint8_t *suffix,
                     bool dilate) {
    int64_t  width = 2 * half + 1;
    uint8_t *prefix = suffix + width * n;
    for (int64_t block = 0; block < rows; block += width) {
        int64_t count = FV_MIN(width, rows - block);
        memset(suffix + (width - 1) * n, !dilate, (size_t)n);
        take_row(suffix + (width - 1) * n, c, block + width - 1, n, dilate);
        for (int64_t t = width - 2; t >= 0; t--) {
            memcpy(suffix + t * n, suffix + (t + 1) * n, (size_t)n);
            take_row(suffix + t * n, c, block + t, n, dilate);
        }
        memset(prefix, !dilate, (size_t)n);
        for (int64_t t = 0; t < count; t++) {
            if (t) take_row(prefix, c, block + width + t - 1, n, dilate);
            combine_rows(out + (block + t) * out_stride, suffix + t * n, prefix, n, dilate);
        }
    }
}

/* One axis that is not the last of the image. */
static void pass(const fv_block *in, const fv_block *out, int axis, int64_t half, uint8_t *suffix, bool dilate) {
    fv_region walk = out->region;
    walk.size[axis] = 1;
    fv_rows rows;
    for (fv_rows_begin(&rows, &walk); fv_rows_next(&rows);) {
        int64_t from[FV_MAX_DIMS];
        memcpy(from, rows.position, sizeof from);
        from[axis] = in->region.start[axis];
        column c = { fv_block_at(in, from), in->stride[axis], in->region.start[axis] - (out->region.start[axis] - half),
                     in->region.size[axis] };
        van_herk(&c, fv_block_at(out, rows.position), out->stride[axis], out->region.size[axis], out->region.size[walk.ndim - 1],
                 half, suffix, dilate);
    }
}

/* The last axis: line holds size + 2 half voxels, other as many. */
static void double_line(uint8_t *line, uint8_t *other, uint8_t *out, int64_t size, int64_t half, bool dilate) {
    int64_t width = 2 * half + 1, have = 1, length = size + 2 * half;
    for (; 2 * have <= width; have *= 2) {
        combine_rows(other, line, line + have, length - 2 * have + 1, dilate);
        uint8_t *swap = line;
        line = other;
        other = swap;
    }
    combine_rows(out, line, line + width - have, size, dilate);
}

static void last_axis(const fv_block *in, const fv_block *out, int64_t half, uint8_t *line, uint8_t *other, bool dilate) {
    int     axis = out->region.ndim - 1;
    int64_t size = out->region.size[axis], before = in->region.start[axis] - (out->region.start[axis] - half);
    fv_rows rows;
    for (fv_rows_begin(&rows, &out->region); fv_rows_next(&rows);) {
        int64_t from[FV_MAX_DIMS];
        memcpy(from, rows.position, sizeof from);
        from[axis] = in->region.start[axis];
        memset(line, !dilate, (size_t)(size + 2 * half));
        memcpy(line + before, fv_block_at(in, from), (size_t)in->region.size[axis]);
        double_line(line, other, fv_block_at(out, rows.position), size, half, dilate);
    }
}

size_t fv__erode_box(const fv__element *e, const fv_region *from, const fv_region *to, const fv_block *in, const fv_block *out,
                     bool dilate, void *scratch) {
    int       last = to->ndim - 1;
    fv_scratch pieces = { scratch, 0 };
    int64_t   widest = 0;
    uint8_t  *between[FV_MAX_DIMS];
    fv_region region = *from, regions[FV_MAX_DIMS];
    for (int i = 0; i < e->count; i++) {
        region = regions[i] = fv__cut(region, to, e->axis[i]);
        between[i] = i + 1 < e->count ? fv_scratch_take(&pieces, fv_region_voxels(&region)) : NULL;
        if (e->axis[i] != last) widest = FV_MAX(widest, 2 * e->half[i] + 2);
    }
    uint8_t *suffix = fv_scratch_take(&pieces, widest * from->size[last]);
    int64_t  line = e->axis[e->count - 1] == last ? to->size[last] + 2 * e->half[e->count - 1] : 0;
    uint8_t *first = fv_scratch_take(&pieces, line), *second = fv_scratch_take(&pieces, line);
    if (!in) return pieces.used;

    fv_block source = *in;
    for (int i = 0; i < e->count; i++) {
        fv_block target = *out;
        if (between[i]) fv_block_init(&target, FV_BOOL, &regions[i], between[i]);
        if (e->axis[i] == last)
            last_axis(&source, &target, e->half[i], first, second, dilate);
        else
            pass(&source, &target, e->axis[i], e->half[i], suffix, dilate);
        source = target;
    }
    return pieces.used;
}
