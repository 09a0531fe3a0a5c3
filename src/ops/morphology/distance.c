/* distance: from every foreground voxel to the nearest background voxel.
 *
 * Pass "columns" notes, for each column of a chunk along the first spatial axis, how far its first and last zero lie from the
 * chunk's ends; its merge carries these from chunk to chunk. Pass "planes" then knows the nearest zero of every column exactly
 * and searches whole planes. An image that is not cut along the first spatial axis needs no columns.
 */
#include "base/take.h"
#include "op/reduce.h"
#include "op/scratch.h"
#include "ops/morphology/edt.h"
#include "ops/morphology/step_distance.h"
#include <stdlib.h>

enum { EUCLIDEAN, TAXICAB, CHESSBOARD };

typedef struct {
    fv_numbers sampling;
    bool       physical, squared;
    fv_choice  metric;
} distance;

static const fv_param params[] = {
    FV_PARAM(distance, sampling, .def = "", .min = 0, .above = true,
             .doc = "spacing of the voxels, one number or one per spatial axis; left out: 1"),
    FV_PARAM(distance, physical, .def = "false", .doc = "measure in the image's own spacing"),
    FV_PARAM(distance, squared, .def = "false", .doc = "give the exact square of the distance, as float64"),
    FV_PARAM(distance, metric, .def = "euclidean", .choices = "euclidean|taxicab|chessboard",
             .doc =
                 "euclidean: as the crow flies; taxicab: steps along the axes; chessboard: steps to any neighbour, also across "
                 "edges and corners. Steps are whole numbers (int32), -1 where there is no background at all"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "what is not 0 is foreground" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *image = &i->in[0]->image;
    distance            *p = i->params;
    int                  spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    if (fv_dtype_is_complex(image->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s; it must be real or bool", fv_dtype_name(image->dtype));
    if (n < 1 || n > 3)
        return fv_fail(error, FV_ERROR_USAGE, "image has %d spatial axes; one to three named z, y, x are needed", n);
    if (p->physical && p->sampling.count)
        return fv_fail(error, FV_ERROR_USAGE, "sampling and physical = true are both given; only one of them says the spacing");
    if (p->metric.index != EUCLIDEAN && (p->physical || p->sampling.count || p->squared))
        return fv_fail(error, FV_ERROR_USAGE,
                       "metric = \"%s\" counts steps: sampling, physical and squared are for euclidean distances",
                       p->metric.index == TAXICAB ? "taxicab" : "chessboard");
    if (p->physical) {
        p->sampling.count = n;
        for (int k = 0; k < n; k++) p->sampling.value[k] = fabs(image->spacing[spatial[k]]);
    }
    if (!p->sampling.count) p->sampling = (fv_numbers){ .count = 1, .value = { 1 } };
    FV_TRY(fv__numbers_spread(&p->sampling, n, "sampling", error));
    for (int k = 0; k < n; k++)
        if (!isfinite(p->sampling.value[k]) || p->sampling.value[k] <= 0)
            return fv_fail(error, FV_ERROR_USAGE, "sampling = %g: a finite number above 0 is needed", p->sampling.value[k]);
    i->out->image.dtype = p->metric.index != EUCLIDEAN ? FV_INT32 : p->squared ? FV_FLOAT64 : FV_FLOAT32;
    return FV_OK;
}

/* ---------------------------------------------------------------- weights */

/* Whole numbers in the ratio of the squared spacings: exact where a small unit makes all of them whole (every spacing of a few
 * digits), else as many bits as leave room for the largest distance in 53. */
static fv__edt_weights find_weights(const distance *p, const fv_image_type *image, const int *spatial, int n) {
    fv__edt_weights w = { { 1, 1, 1 }, 0 };
    double          ratio[3], least = INFINITY, extent = 0, scale = 0;
    for (int k = 0; k < n; k++) least = FV_MIN(least, p->sampling.value[k] * p->sampling.value[k]);
    for (int k = 0; k < n; k++) {
        double length = (double)image->shape[spatial[k]];
        ratio[k] = p->sampling.value[k] * p->sampling.value[k] / least;
        extent += 4 * ratio[k] * length * length;
    }
    for (double m = 1; m <= 65536 && m * extent < 0x1p53 && !scale; m++) {
        bool whole = true;
        for (int k = 0; k < n && whole; k++) whole = fabs(ratio[k] * m - nearbyint(ratio[k] * m)) <= 1e-13 * ratio[k] * m;
        if (whole) scale = m;
    }
    if (!scale)
        for (scale = 1; scale * 2 * extent < 0x1p53 && scale < 0x1p40;) scale *= 2;
    for (int k = 0; k < n; k++) w.axis[n == 3 ? k : k == 0 ? 0 : 2] = nearbyint(ratio[k] * scale);
    w.unit = least / scale;
    return w;
}

/* ---------------------------------------------------------------- pass "columns" */

static int scanned_axis(const fv_image_type *image) {
    int spatial[FV_MAX_DIMS];
    fv_image_type_spatial(image, spatial);
    return spatial[0];
}

static bool has_lattice(const fv_need *n) { return n->lattice && n->lattice->ndim; } /* it may still have to be chosen */

static bool is_cut(const fv_need *n) {
    return has_lattice(n) && fv__lattice_count_axis(n->lattice, scanned_axis(&n->in[0]->image)) > 1;
}

static fv_region flat(fv_region region, int axis) {
    region.start[axis] = 0;
    region.size[axis] = 1;
    return region;
}

static void columns_need(const fv_need *n, fv_region *in) {
    if (!is_cut(n)) fv__need_nothing(&in[0]);
}

static size_t columns_bound(const fv_need *n) {
    fv_region columns = flat(n->region, scanned_axis(&n->in[0]->image));
    return (size_t)fv__region_voxels(&columns) * 2 * sizeof(int32_t);
}

/* 1 where a voxel is foreground. */
#define FLAGS(type)                                                                                                              \
    for (int64_t i = 0; i < n; i++) to[i] = ((const type *)from)[i * stride] != 0;                                               \
    break;
static void flags(uint8_t *restrict to, const void *from, fv_dtype dtype, int64_t stride, int64_t n) {
    switch (dtype) {
    case FV_BOOL:
    case FV_UINT8:
    case FV_INT8:
        if (stride == 1) {
            for (int64_t i = 0; i < n; i++) to[i] = ((const uint8_t *)from)[i] != 0;
            return;
        }
        FLAGS(uint8_t)
    case FV_UINT16:
    case FV_INT16: FLAGS(uint16_t)
    case FV_UINT32:
    case FV_INT32: FLAGS(uint32_t)
    case FV_FLOAT32: FLAGS(float)
    case FV_FLOAT64: FLAGS(double)
    default: FLAGS(uint64_t)
    }
}

static size_t columns_scratch(const fv_need *n) { return (size_t)n->region.size[n->region.ndim - 1]; }

/* Per column: planes before the first zero, and behind the last; the thickness of the chunk if there is none. */
static fv_status columns_run(fv_run *r, fv_error *error) {
    (void)error;
    const fv_region *region = &r->need.region;
    int              axis = scanned_axis(&r->need.in[0]->image), last = region->ndim - 1;
    if (!is_cut(&r->need)) return FV_OK;
    fv_region columns = flat(*region, axis);
    int64_t   count = fv__region_voxels(&columns), n = columns.size[last], thick = region->size[axis];
    int32_t  *first = fv__bytes_append(r->partial, NULL, (size_t)count * 2 * sizeof *first), *behind = first + count;
    uint8_t  *row = r->scratch;
    fv_rows   rows;
    for (fv__rows_begin(&rows, &columns); fv__rows_next(&rows); first += n, behind += n) {
        int64_t position[FV_MAX_DIMS];
        memcpy(position, rows.position, sizeof position);
        for (int64_t i = 0; i < n; i++) first[i] = behind[i] = (int32_t)thick;
        for (int64_t z = 0; z < thick; z++) {
            position[axis] = region->start[axis] + z;
            flags(row, fv__block_at(r->in[0], position), r->in[0]->dtype, 1, n);
            for (int64_t i = 0; i < n; i++) {
                first[i] = row[i] || first[i] < z ? first[i] : (int32_t)z;
                behind[i] = row[i] ? behind[i] : (int32_t)(thick - 1 - z);
            }
        }
    }
    return FV_OK;
}

/* Carries the nearest zero over the chunks in one direction: what lies before a chunk, in steps from its first plane. Results
 * 0..chunks-1 come from above, the next ones, in reverse order of chunks, from below. */
static fv_status carry(fv_finish *f, bool down, int32_t *carried, fv_error *error) {
    const fv_lattice *lattice = f->lattice;
    int               axis = scanned_axis(&f->in[0]->image), last = lattice->ndim - 1;
    fv_region         all = flat(fv__region_whole(&f->in[0]->image), axis);
    fv_block          carries;
    int64_t           chunks = fv__lattice_count(lattice);
    fv__block_init(&carries, FV_INT32, &all, carried);
    for (int64_t i = 0, n = fv__region_voxels(&all); i < n; i++) carried[i] = FV__EDT_NONE;
    for (int64_t k = 0; k < chunks; k++) {
        int64_t     chunk = down ? k : chunks - 1 - k;
        fv_region   region = fv__lattice_chunk(lattice, chunk), columns = flat(region, axis);
        int64_t     count = fv__region_voxels(&columns), n = columns.size[last], thick = region.size[axis];
        const void *data;
        FV_TRY(f->partial(f, chunk, &data, error));
        const int32_t *zero = (const int32_t *)data + (down ? count : 0); /* seen from where the next chunk lies */
        fv_rows        rows;
        for (fv__rows_begin(&rows, &columns); fv__rows_next(&rows); zero += n) {
            int32_t *now = fv__block_at(&carries, rows.position);
            FV_TRY(f->put(f, down ? chunk : chunks + k, now, (size_t)n * sizeof *now, error));
            for (int64_t i = 0; i < n; i++) {
                int32_t past = now[i] == FV__EDT_NONE ? now[i] : (int32_t)(now[i] + thick);
                now[i] = zero[i] < thick ? zero[i] + 1 : past;
            }
        }
    }
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    int axis = scanned_axis(&f->in[0]->image);
    if (fv__lattice_count_axis(f->lattice, axis) < 2) return FV_OK;
    fv_region all = flat(fv__region_whole(&f->in[0]->image), axis);
    int32_t  *carried;
    FV_TRY(FV_TAKE(carried, (size_t)fv__region_voxels(&all) * sizeof *carried, error));
    fv_status status = carry(f, true, carried, error);
    if (status == FV_OK) status = carry(f, false, carried, error);
    free(carried);
    return status;
}

/* ---------------------------------------------------------------- pass "planes" */

/* Whole chunks along the scanned axis, because that is where carries are known, and whole planes. */
static fv_region planes_region(const fv_need *n) {
    const fv_image_type *image = &n->in[0]->image;
    int                  spatial[FV_MAX_DIMS], count = fv_image_type_spatial(image, spatial);
    fv_region            region = n->region;
    if (has_lattice(n)) {
        fv_region whole = fv__lattice_align(n->lattice, &n->region);
        region.start[spatial[0]] = whole.start[spatial[0]];
        region.size[spatial[0]] = whole.size[spatial[0]];
    }
    for (int k = 1; k < count; k++) {
        region.start[spatial[k]] = 0;
        region.size[spatial[k]] = image->shape[spatial[k]];
    }
    return region;
}

static void planes_need(const fv_need *n, fv_region *in) { in[0] = planes_region(n); }

typedef struct {
    fv__edt   edt;
    fv__steps steps;
    int       axis[3]; /* of z, y, x in the image; -1: none */
    fv_region region;  /* of the input */
    fv_block  above, below;
    bool      cut;
    int       metric;
    fv_run   *r;
    int64_t   base[FV_MAX_DIMS]; /* a voxel of the group being done */
} planes;

/* The carries of one group are copied into planes of their own where the group does not lie dense. */
static size_t lay_out(planes *p, const fv_need *n, void *scratch) {
    const fv_image_type *image = &n->in[0]->image;
    int                  spatial[FV_MAX_DIMS], count = fv_image_type_spatial(image, spatial);
    fv__edt             *e = &p->edt;
    fv_scratch           pieces = { scratch, 0 };
    p->region = planes_region(n);
    p->axis[0] = spatial[0];
    p->axis[1] = count == 3 ? spatial[1] : -1;
    p->axis[2] = count > 1 ? spatial[count - 1] : -1;
    e->nz = p->region.size[p->axis[0]];
    e->ny = p->axis[1] >= 0 ? p->region.size[p->axis[1]] : 1;
    e->nx = p->axis[2] >= 0 ? p->region.size[p->axis[2]] : 1;
    p->cut = is_cut(n);
    fv_region flat_region = flat(p->region, p->axis[0]);
    int64_t   columns = p->cut ? fv__region_voxels(&flat_region) : 0, plane = p->cut ? e->ny * e->nx : 0;
    void     *above = fv__scratch_take(&pieces, columns * 4), *below = fv__scratch_take(&pieces, columns * 4);
    e->above = fv__scratch_take(&pieces, plane * 4);
    e->below = fv__scratch_take(&pieces, plane * 4);
    if (!p->cut) e->above = e->below = NULL;
    p->steps = (fv__steps){ .nz = e->nz, .ny = e->ny, .nx = e->nx, .above = e->above, .below = e->below };
    p->metric = ((const distance *)n->params)->metric.index;
    p->steps.chessboard = p->metric == CHESSBOARD;
    fv__block_init(&p->above, FV_INT32, &flat_region, above);
    fv__block_init(&p->below, FV_INT32, &flat_region, below);
    void *rest = scratch ? (char *)scratch + pieces.used : NULL;
    return pieces.used + (p->metric == EUCLIDEAN ? fv__edt_scratch(e, rest) : fv__steps_scratch(&p->steps, rest));
}

static size_t planes_scratch(const fv_need *n) {
    planes p;
    return lay_out(&p, n, NULL);
}

/* What the merge left for the chunks around plane z of the lattice. */
static fv_status fetch_carries(planes *p, const fv_block *to, int64_t z, bool from_above, fv_error *error) {
    const fv_lattice *lattice = p->r->need.lattice;
    int64_t           chunks = fv__lattice_count(lattice);
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        fv_region   own = fv__lattice_chunk(lattice, chunk), columns = flat(own, p->axis[0]);
        fv_region   part = fv__region_intersect(&columns, &to->region);
        const void *data;
        size_t      size;
        if (z < own.start[p->axis[0]] || z >= own.start[p->axis[0]] + own.size[p->axis[0]] || fv__region_empty(&part)) continue;
        FV_TRY(p->r->results->get(p->r->results, from_above ? chunk : 2 * chunks - 1 - chunk, &data, &size, error));
        if (size != (size_t)fv__region_voxels(&columns) * 4)
            return fv_fail(error, FV_ERROR_INTERNAL, "the carries of chunk %lld do not fit it", (long long)chunk);
        fv_block from, window = fv__block_window(to, &part);
        fv__block_init(&from, FV_INT32, &columns, (void *)(uintptr_t)data);
        fv__block_copy(&window, &from);
    }
    return FV_OK;
}

static int64_t stride_of(const fv_block *block, int axis) { return axis < 0 ? 0 : block->stride[axis]; }

static void copy_carries(planes *p, const fv_block *from, const int32_t *to) {
    const int32_t *data = fv__block_at(from, p->base);
    int32_t       *carry_of = (int32_t *)(uintptr_t)to; /* scratch that the searches only read */
    for (int64_t y = 0; y < p->edt.ny; y++)
        for (int64_t x = 0; x < p->edt.nx; x++)
            *carry_of++ = data[y * stride_of(from, p->axis[1]) + x * stride_of(from, p->axis[2])];
}

/* 1 where a voxel is foreground, as the counts of steps want it. */
static void wide_flags(int32_t *to, const void *from, fv_dtype dtype, int64_t stride, int64_t n) {
    uint8_t flag[256];
    for (int64_t i = 0; i < n; i += (int64_t)sizeof flag) {
        int64_t count = FV_MIN(n - i, (int64_t)sizeof flag);
        flags(flag, (const char *)from + i * stride * (int64_t)fv_dtype_size(dtype), dtype, stride, count);
        for (int64_t k = 0; k < count; k++) to[i + k] = flag[k];
    }
}

/* Zeros and others of a group, and its carries. */
static void load_group(planes *p) {
    fv__edt        *e = &p->edt;
    const fv_block *in = p->r->in[0];
    size_t          size = fv_dtype_size(in->dtype);
    const char     *data = fv__block_at(in, p->base);
    int64_t         stride = p->axis[2] < 0 ? 1 : in->stride[p->axis[2]];
    for (int64_t z = 0; z < e->nz; z++)
        for (int64_t y = 0; y < e->ny; y++) {
            const char *from = data + (z * in->stride[p->axis[0]] + y * stride_of(in, p->axis[1])) * (int64_t)size;
            int64_t     to = (z * e->ny + y) * e->nx;
            if (p->metric == EUCLIDEAN)
                flags(e->steps + to, from, in->dtype, stride, e->nx);
            else
                wide_flags(p->steps.steps + to, from, in->dtype, stride, e->nx);
        }
    if (!p->cut) return;
    p->base[p->axis[0]] = 0;
    copy_carries(p, &p->above, e->above);
    copy_carries(p, &p->below, e->below);
    p->base[p->axis[0]] = p->region.start[p->axis[0]];
}

/* Where a row of results begins. */
static void *row_of_results(const planes *p, int64_t z, int64_t y) {
    int64_t at[FV_MAX_DIMS];
    memcpy(at, p->base, sizeof at);
    at[p->axis[0]] = p->region.start[p->axis[0]] + z;
    if (p->axis[1] >= 0) at[p->axis[1]] = y;
    if (p->axis[2] >= 0) at[p->axis[2]] = p->edt.x0;
    return fv__block_at(p->r->out, at);
}

static void put_steps(const planes *p) {
    const fv__edt *e = &p->edt;
    int64_t        stride = p->axis[2] < 0 ? 1 : p->r->out->stride[p->axis[2]];
    for (int64_t z = e->z0; z < e->z1; z++)
        for (int64_t y = e->y0; y < e->y1; y++) {
            int32_t       *to = row_of_results(p, z, y);
            const int32_t *from = p->steps.steps + (z * e->ny + y) * e->nx;
            for (int64_t x = e->x0; x < e->x1; x++) to[(x - e->x0) * stride] = from[x] >= FV__STEPS_FAR ? -1 : from[x];
        }
}

/* Writes a row of results. */
static void put(void *context, int64_t z, int64_t y, const uint16_t *near, const double *far) {
    planes         *p = context;
    const fv__edt  *e = &p->edt;
    const fv_block *out = p->r->out;
    int64_t         n = e->x1 - e->x0, stride = p->axis[2] < 0 ? 1 : out->stride[p->axis[2]];
    double          unit = e->weights.unit;
    void           *to = row_of_results(p, z, y);
    if (e->squared)
        for (int64_t i = 0; i < n; i++) ((double *)to)[i * stride] = (near ? near[i] : far[i]) * unit;
    else if (near && unit == 1 && stride == 1) /* whole numbers below 2^24: the float root is the root, rounded once */
        for (int64_t i = 0; i < n; i++) ((float *)to)[i] = sqrtf((float)near[i]);
    else if (near && stride == 1)
        for (int64_t i = 0; i < n; i++) ((float *)to)[i] = (float)sqrt((double)near[i] * unit);
    else
        for (int64_t i = 0; i < n; i++) ((float *)to)[i * stride] = (float)sqrt((near ? (double)near[i] : far[i]) * unit);
}

/* The part of an axis that is asked for, from the start of the input. */
static void set_range(const planes *p, int which, int64_t *from, int64_t *to) {
    const fv_region *region = &p->r->need.region;
    int              axis = p->axis[which];
    *from = axis < 0 ? 0 : region->start[axis] - p->region.start[axis];
    *to = axis < 0 ? 1 : *from + region->size[axis];
}

static fv_status planes_run(fv_run *r, fv_error *error) {
    const distance      *params_of = r->need.params;
    const fv_image_type *image = &r->need.in[0]->image;
    int                  spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    planes               p = { .r = r };
    fv__edt             *e = &p.edt;
    fv_rows              rows;
    lay_out(&p, &r->need, r->scratch);
    e->weights = find_weights(params_of, image, spatial, n);
    e->squared = params_of->squared;
    set_range(&p, 0, &e->z0, &e->z1);
    set_range(&p, 1, &e->y0, &e->y1);
    set_range(&p, 2, &e->x0, &e->x1);
    if (p.cut) {
        int64_t first = p.region.start[p.axis[0]];
        FV_TRY(fetch_carries(&p, &p.above, first, true, error));
        FV_TRY(fetch_carries(&p, &p.below, first + e->nz - 1, false, error));
    }
    fv_region groups = p.region; /* one voxel of each */
    for (int k = 0; k < n; k++) groups.size[spatial[k]] = 1;
    int64_t across = groups.size[groups.ndim - 1];
    for (fv__rows_begin(&rows, &groups); fv__rows_next(&rows);)
        for (int64_t i = 0; i < across; i++) {
            memcpy(p.base, rows.position, sizeof p.base);
            p.base[groups.ndim - 1] += i;
            e->far_made = false;
            load_group(&p);
            if (p.metric == EUCLIDEAN) {
                fv__edt_scan(e);
                for (int64_t z = e->z0; z < e->z1; z++) fv__edt_plane(e, z, put, &p);
            } else {
                fv__steps_run(&p.steps);
                put_steps(&p);
            }
        }
    return FV_OK;
}

/* ---------------------------------------------------------------- the operator */

static double cost(const fv_need *n) {
    (void)n;
    return 4;
}

static const fv_pass passes[] = {
    { .name = "columns",
      .need = columns_need,
      .scratch = columns_scratch,
      .bound = columns_bound,
      .run = columns_run,
      .finish = finish },
    { .name = "planes", .need = planes_need, .scratch = planes_scratch, .run = planes_run },
    FV_PASS_END,
};

const fv_op FV_OP(distance) = {
    .name = "distance",
    .family = "morphology",
    .brief = "distance of each foreground voxel to the nearest background voxel",
    .also = "edt, bwdist, distance_transform_edt, distance_transform_cdt, distance_transform, distanceTransform, distance_map, "
            "chamfer distance, city block, manhattan",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(distance),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "Exact Euclidean distance, as scipy.ndimage.distance_transform_edt, but float32: the exact value rounded once "
           "(scipy gives float64). Distances are in voxels, unless sampling or physical says otherwise.\n"
           "Background is what is 0; nan is foreground. What lies outside the image is no background. In an image without "
           "any background all distances are infinite (scipy leaves that undefined). Axes other than z, y and x are "
           "independent.\n"
           "If the spacings are in no simple ratio, squared distances are rounded to 1 part in 2^26 or better, for images up "
           "to 4000 voxels wide.\n"
           "metric = \"taxicab\" and \"chessboard\" count steps, as scipy.ndimage.distance_transform_cdt.",
    .citation = "Meijster, Roerdink, Hesselink: A general algorithm for computing distance transforms in linear time, 2000",
    .example = "phantom(\"cells\", [200, 200], noise = 0) > 100 |> distance() |> write(\"distance.tif\")",
    .see = "watershed peaks erode expand_labels",
};
