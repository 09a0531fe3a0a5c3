/* Footprints brought to an image's axes: types, halos, scratch and cost of erode and dilate. */
#include "ops/morphology/erosion.h"

#define TILE_VOXELS (1 << 20)

static int64_t root(int64_t square) { /* floor of the square root */
    int64_t r = (int64_t)sqrt((double)square);
    while (r * r > square) r--;
    while ((r + 1) * (r + 1) <= square) r++;
    return r;
}

/* Nothing lies further away than the image is wide, so halos and lane widths are cut to that. */
static void add_axis(fv__element *e, const fv_image_type *image, int axis, int64_t half) {
    half = FV_MIN(half, image->shape[axis] - 1);
    if (half <= 0) return;
    e->axis[e->count] = axis;
    e->half[e->count++] = half;
}

static void round_element(fv__element *e, const fv_image_type *image, const int *axes, int naxes, double radius) {
    e->round = true;
    int64_t limit = (int64_t)floor(radius * radius), farthest = 0, reach = root(limit);
    for (int i = 0; i < naxes; i++) {
        int64_t last = image->shape[axes[i]] - 1;
        farthest += FV_MIN(last, reach) * FV_MIN(last, reach);
        add_axis(e, image, axes[i], reach);
    }
    e->limit = FV_MIN(limit, farthest);
}

/* Sizes that were left out are equal along all axes. */
static fv_status pattern_element(fv__element *e, const fv_footprint *f, const fv_image_type *image, const int *axes, int naxes,
                                 fv_error *error) {
    int64_t size[FV_MAX_DIMS], voxels = 1, side = (int64_t)floor(pow((double)f->values.count, 1.0 / naxes) + 0.5);
    if (f->ndim && f->ndim != naxes)
        return fv_fail(error, FV_ERROR_USAGE, "footprint = pattern with %d sizes: give %d, one per spatial axis", f->ndim, naxes);
    for (int i = 0; i < naxes; i++) voxels *= size[i] = f->ndim ? f->size[i] : side;
    if (voxels != f->values.count || (!f->ndim && side % 2 == 0))
        return fv_fail(error, FV_ERROR_USAGE,
                       "footprint = pattern of %lld values: that is no odd size along each of %d axes; give shape = [...]",
                       (long long)f->values.count, naxes);
    e->pattern = f->values.value;
    for (int k = 0; k < 3; k++) e->pattern_size[k] = k - 3 + naxes >= 0 ? size[k - 3 + naxes] : 1;
    for (int i = 0; i < naxes; i++) add_axis(e, image, axes[i], size[i] / 2);
    return FV_OK;
}

static fv_status element_of(const fv_footprint *f, const fv_image_type *image, fv__element *e, fv_error *error) {
    int spatial[FV_MAX_DIMS], plane[FV_MAX_DIMS], nplane = 0, n = fv_image_type_spatial(image, spatial);
    *e = (fv__element){ 0 };
    if (!n) return fv_fail(error, FV_ERROR_USAGE, "image has no spatial axis; axes named z, y or x are needed");
    switch (f->shape) {
    case FV_FOOTPRINT_BALL: round_element(e, image, spatial, n, f->radius); return FV_OK;
    case FV_FOOTPRINT_CROSS: round_element(e, image, spatial, n, 1); return FV_OK;
    case FV_FOOTPRINT_DISK:
        for (int i = 0; i < n; i++)
            if (n == 2 || image->axis[spatial[i]][0] != 'z') plane[nplane++] = spatial[i];
        if (nplane < 2) return fv_fail(error, FV_ERROR_USAGE, "footprint = disk(%g): image has no y and x axis", f->radius);
        round_element(e, image, plane, nplane, f->radius);
        return FV_OK;
    case FV_FOOTPRINT_BOX:
        if (f->ndim != 1 && f->ndim != n)
            return fv_fail(error, FV_ERROR_USAGE, "footprint = box of %d sizes: give one, or %d (one per spatial axis)", f->ndim,
                           n);
        for (int i = 0; i < n; i++) {
            int64_t size = f->size[f->ndim == 1 ? 0 : i];
            if (size < 1 || size % 2 == 0)
                return fv_fail(error, FV_ERROR_USAGE, "footprint = box of size %lld: must be odd", (long long)size);
            add_axis(e, image, spatial[i], size / 2);
        }
        return FV_OK;
    case FV_FOOTPRINT_PATTERN: return pattern_element(e, f, image, spatial, n, error);
    case FV_FOOTPRINT_NONE: break;
    }
    return fv_fail(error, FV_ERROR_USAGE, "footprint is missing; give box(n), ball(r), disk(r), cross() or pattern([...])");
}

static fv__element element(const fv_need *n, const fv_footprint *footprint) {
    fv__element e;
    element_of(footprint, &n->in[0]->image, &e, NULL); /* infer has checked it */
    return e;
}

fv_status fv__erosion_infer(fv_infer *i, const fv_footprint *footprint, fv_error *error) {
    const fv_image_type *image = &i->in[0]->image;
    fv__element          e;
    if (fv_dtype_is_complex(image->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s; complex numbers have no order", fv_dtype_name(image->dtype));
    return element_of(footprint, image, &e, error);
}

/* The element as a window of the kernel for extrema. */
static fv_extrema window(const fv__element *e, const fv_image_type *image, bool dilate) {
    double size[FV_MAX_DIMS];
    int    spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    for (int k = 0; k < n; k++) {
        size[k] = 1;
        for (int i = 0; i < e->count; i++)
            if (e->axis[i] == spatial[k]) size[k] = (double)(2 * e->half[i] + 1);
    }
    return (fv_extrema){ .box = fv__box_new(image, size, FV_BORDER_CONSTANT, 0),
                         .neutral = true,
                         .round = e->round,
                         .limit = e->limit,
                         .greatest = dilate,
                         .pattern = e->pattern,
                         .pattern_size = { e->pattern_size[0], e->pattern_size[1], e->pattern_size[2] } };
}

/* It is the voxel itself. */
static bool is_nothing(const fv__element *e) { return !e->count && !e->pattern; }

static bool by_distance(const fv__element *e, fv_dtype dtype) { return e->round && dtype == FV_BOOL; }

static fv_region reach_around(const fv__element *e, const fv_region *region, const int64_t *shape) {
    int64_t reach[FV_MAX_DIMS] = { 0 };
    for (int i = 0; i < e->count; i++) reach[e->axis[i]] = e->half[i];
    fv_region grown = fv__region_grow(region, reach, reach);
    return fv__region_clip(&grown, shape);
}

fv_region fv__erosion_need(const fv_need *n, const fv_footprint *footprint) {
    fv__element e = element(n, footprint);
    return reach_around(&e, &n->region, n->in[0]->image.shape);
}

/* Cuts a region into tiles whose intermediate results stay in the cache, but not so small that halos outweigh them. The last
 * axis stays whole. */
static fv_lattice tiles(const fv__element *e, const fv_region *region) {
    int64_t tile[FV_MAX_DIMS], least[FV_MAX_DIMS];
    memcpy(tile, region->size, sizeof tile);
    for (int d = 0; d < region->ndim; d++) least[d] = 1;
    for (int i = 0; i < e->count; i++) least[e->axis[i]] = FV_MAX(4 * e->half[i], 8);
    for (;;) {
        int64_t voxels = 1;
        int     widest = -1;
        for (int d = 0; d < region->ndim; d++) voxels *= tile[d];
        for (int d = 0; d < region->ndim - 1; d++)
            if (tile[d] > least[d] && (widest < 0 || tile[d] * least[widest] > tile[widest] * least[d])) widest = d;
        if (widest < 0 || voxels <= TILE_VOXELS) break;
        tile[widest] = FV_MAX((tile[widest] + 1) / 2, least[widest]);
    }
    fv_lattice lattice;
    fv__lattice_init(&lattice, region->ndim, region->size, tile);
    return lattice;
}

size_t fv__erosion_scratch(const fv_need *n, const fv_footprint *footprint) {
    fv__element e = element(n, footprint);
    if (is_nothing(&e) || fv__region_empty(&n->region)) return 0;
    if (!by_distance(&e, n->in[0]->image.dtype)) {
        fv_extrema w = window(&e, &n->in[0]->image, false);
        return fv__extrema_scratch(&w, n);
    }
    fv_lattice lattice = tiles(&e, &n->region);
    fv_region  to = fv__lattice_chunk(&lattice, 0), from = to; /* no tile is larger, and no halo */
    for (int i = 0; i < e.count; i++)
        from.size[e.axis[i]] = FV_MIN(to.size[e.axis[i]] + 2 * e.half[i], n->in[0]->image.shape[e.axis[i]]);
    return fv__erode_round(&e, &from, &to, NULL, NULL, false, NULL);
}

double fv__erosion_cost(const fv_need *n, const fv_footprint *footprint) {
    fv__element e = element(n, footprint);
    if (!by_distance(&e, n->in[0]->image.dtype)) {
        fv_extrema w = window(&e, &n->in[0]->image, false);
        return fv__extrema_cost(&w, n->in[0]->image.dtype);
    }
    double cost = 0.13 * (1 + e.count), lane = e.limit < 255 ? 1 : e.limit < 65535 ? 2 : 8;
    for (int i = 1; i < e.count; i++) cost += 0.027 * lane * (double)e.half[i];
    return cost;
}

void fv__erosion_run(const fv_run *r, const fv_footprint *footprint, bool dilate) {
    fv__element e = element(&r->need, footprint);
    if (fv__region_empty(&r->out->region)) return;
    if (is_nothing(&e)) {
        fv__block_copy(r->out, r->in[0]);
        return;
    }
    if (!by_distance(&e, r->in[0]->dtype)) {
        fv_extrema w = window(&e, &r->need.in[0]->image, dilate);
        fv__extrema_run(&w, r);
        return;
    }
    fv_lattice lattice = tiles(&e, &r->out->region);
    for (int64_t tile = 0; tile < fv__lattice_count(&lattice); tile++) {
        fv_region to = fv__lattice_chunk(&lattice, tile);
        for (int d = 0; d < to.ndim; d++) to.start[d] += r->out->region.start[d];
        fv_region from = reach_around(&e, &to, r->need.in[0]->image.shape);
        fv_block  in = fv__block_window(r->in[0], &from), out = fv__block_window(r->out, &to);
        fv__erode_round(&e, &from, &to, &in, &out, dilate, r->scratch);
    }
}
