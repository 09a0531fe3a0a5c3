/* Boundary modes. */
#include "op/border.h"

static int64_t modulo(int64_t i, int64_t n) {
    int64_t m = i % n;
    return m < 0 ? m + n : m;
}

int64_t fv__border_index(fv_border border, int64_t i, int64_t n) {
    if (i >= 0 && i < n) return i;
    switch (border) {
    case FV_BORDER_REFLECT: i = modulo(i, 2 * n); return i < n ? i : 2 * n - 1 - i;
    case FV_BORDER_MIRROR:
        if (n == 1) return 0;
        i = modulo(i, 2 * n - 2);
        return i < n ? i : 2 * n - 2 - i;
    case FV_BORDER_NEAREST: return i < 0 ? 0 : n - 1;
    case FV_BORDER_WRAP: return modulo(i, n);
    case FV_BORDER_CONSTANT: break;
    }
    return -1;
}

void fv__border_map(fv_border border, int64_t n, int64_t start, int64_t count, int64_t *map) {
    for (int64_t k = 0; k < count; k++) map[k] = fv__border_index(border, start + k, n);
}

fv_region fv__border_need(fv_border border, const fv_region *region, const int64_t *before, const int64_t *after,
                          const int64_t *shape) {
    fv_region grown = fv__region_grow(region, before, after), need = fv__region_clip(&grown, shape);
    for (int d = 0; d < need.ndim; d++) {
        int64_t low = -grown.start[d], high = grown.start[d] + grown.size[d] - shape[d]; /* voxels beyond each end */
        if (low <= 0 && high <= 0) continue;
        int64_t start = need.start[d], end = need.start[d] + need.size[d];
        switch (border) {
        case FV_BORDER_WRAP:
            start = 0;
            end = shape[d];
            break;
        case FV_BORDER_REFLECT:
        case FV_BORDER_MIRROR: /* the mirrored voxels lie next to the end, one further for mirror */
            if (low > 0) end = FV_MAX(end, low + (border == FV_BORDER_MIRROR));
            if (high > 0) start = FV_MIN(start, shape[d] - high - (border == FV_BORDER_MIRROR));
            break;
        case FV_BORDER_NEAREST:
        case FV_BORDER_CONSTANT: break;
        }
        need.start[d] = FV_MAX(start, 0);
        need.size[d] = FV_MIN(end, shape[d]) - need.start[d];
    }
    return need;
}
