/* expand_labels: labels grow into the background around them, without overlapping.
 *
 * Every voxel looks for the nearest label voxel within reach, the first in raster order of equally near ones. Squared distance
 * and place of that voxel are one number, so that both are found by minima along one axis after the other: of the candidates in
 * a line that an axis leaves, the one it drops could never win later.
 */
#include "op/op.h"
#include "op/scratch.h"

typedef struct {
    double distance;
} expand_labels;

#define PLACE_BITS 40
#define NOWHERE ((int64_t)1 << 62)
#define MOST 1000

static const fv_param params[] = {
    FV_PARAM(expand_labels, distance, .def = "1", .min = 0, .max = MOST, .unit = "px", .doc = "how far labels grow"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "labels", FV_KIND_IMAGE, .doc = "label image; 0 is background" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *image = &i->in[0]->image;
    int                  spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    if (!fv_dtype_is_integer(image->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "labels is %s; it must be an integer label image, such as label() makes",
                       fv_dtype_name(image->dtype));
    if (n < 1 || n > 3)
        return fv_fail(error, FV_ERROR_USAGE, "labels has %d spatial axes; one to three named z, y, x are needed", n);
    return FV_OK;
}

static int64_t reach(const fv_need *n) { return (int64_t)((const expand_labels *)n->params)->distance; }

static fv_region grown(const fv_need *n) {
    int     spatial[FV_MAX_DIMS], count = fv_image_type_spatial(&n->in[0]->image, spatial);
    int64_t far[FV_MAX_DIMS] = { 0 };
    for (int k = 0; k < count; k++) far[spatial[k]] = reach(n);
    fv_region region = fv__region_grow(&n->region, far, far);
    return fv__region_clip(&region, n->in[0]->image.shape);
}

static void need(const fv_need *n, fv_region *in) { in[0] = grown(n); }

/* ---------------------------------------------------------------- one group */

typedef struct {
    int64_t  size[3];   /* voxels of the input along z, y, x */
    int      axis[3];   /* of these in the image; -1: none */
    int64_t *from, *to; /* squared distance << PLACE_BITS | place */
    int64_t  reach;
} group;

static size_t lay_out(group *g, const fv_need *n, void *scratch) {
    const fv_image_type *image = &n->in[0]->image;
    fv_region            region = grown(n);
    fv_scratch           pieces = { scratch, 0 };
    int                  spatial[FV_MAX_DIMS], count = fv_image_type_spatial(image, spatial);
    int64_t              voxels = 1;
    for (int k = 0; k < 3; k++) {
        g->axis[k] = k >= 3 - count ? spatial[k - (3 - count)] : -1;
        g->size[k] = g->axis[k] >= 0 ? region.size[g->axis[k]] : 1;
        voxels *= g->size[k];
    }
    g->reach = reach(n);
    g->from = fv__scratch_take(&pieces, voxels * (int64_t)sizeof *g->from);
    g->to = fv__scratch_take(&pieces, voxels * (int64_t)sizeof *g->to);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    group g;
    return lay_out(&g, n, NULL);
}

static void take_nearer(int64_t *restrict to, const int64_t *restrict near, int64_t add, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = near[i] + add < to[i] ? near[i] + add : to[i];
}

/* Minima along one axis; `inside` elements lie next to each other across it. */
static void spread(group *g, int which) {
    int64_t n = g->size[which], inside = 1, outside = 1, *swap;
    for (int k = which + 1; k < 3; k++) inside *= g->size[k];
    for (int k = 0; k < which; k++) outside *= g->size[k];
    for (int64_t o = 0; o < outside; o++) {
        const int64_t *from = g->from + o * n * inside;
        int64_t       *to = g->to + o * n * inside;
        memcpy(to, from, (size_t)(n * inside) * sizeof *to);
        for (int64_t k = 1; k <= FV_MIN(g->reach, n - 1); k++) { /* a whole line of lines at once */
            take_nearer(to + k * inside, from, k * k << PLACE_BITS, (n - k) * inside);
            take_nearer(to, from + k * inside, k * k << PLACE_BITS, (n - k) * inside);
        }
    }
    swap = g->from;
    g->from = g->to;
    g->to = swap;
}

static bool is_set(const void *value, size_t size) {
    static const uint8_t zero[8];
    return memcmp(value, zero, size) != 0;
}

static int64_t stride_of(const fv_block *block, int axis) { return axis < 0 ? 0 : block->stride[axis]; }

static void load(group *g, const fv_block *in, const char *data) {
    size_t  size = fv_dtype_size(in->dtype);
    int64_t place = 0;
    for (int64_t z = 0; z < g->size[0]; z++)
        for (int64_t y = 0; y < g->size[1]; y++)
            for (int64_t x = 0; x < g->size[2]; x++, place++) {
                int64_t at = z * stride_of(in, g->axis[0]) + y * stride_of(in, g->axis[1]) + x * stride_of(in, g->axis[2]);
                g->from[place] = is_set(data + at * (int64_t)size, size) ? place : NOWHERE;
            }
}

/* Voxels of the output take the label of the place they found, if it is near enough. */
static void store(const group *g, const fv_run *r, const int64_t *base, const char *data) {
    const fv_block  *in = r->in[0], *out = r->out;
    const fv_region *region = &r->need.region;
    double           distance = ((const expand_labels *)r->need.params)->distance;
    size_t           size = fv_dtype_size(in->dtype);
    int64_t          start[3], count[3], position[FV_MAX_DIMS];
    for (int k = 0; k < 3; k++) {
        int d = g->axis[k];
        start[k] = d < 0 ? 0 : region->start[d] - in->region.start[d];
        count[k] = d < 0 ? 1 : region->size[d];
    }
    memcpy(position, base, sizeof position);
    for (int k = 0; k < 3; k++)
        if (g->axis[k] >= 0) position[g->axis[k]] = region->start[g->axis[k]];
    char *to = fv__block_at(out, position);
    for (int64_t z = 0; z < count[0]; z++)
        for (int64_t y = 0; y < count[1]; y++)
            for (int64_t x = 0; x < count[2]; x++) {
                int64_t found = g->from[((z + start[0]) * g->size[1] + y + start[1]) * g->size[2] + x + start[2]];
                int64_t place = found & (((int64_t)1 << PLACE_BITS) - 1), px = place % g->size[2],
                        py = place / g->size[2] % g->size[1], pz = place / g->size[2] / g->size[1];
                int64_t at = z * stride_of(out, g->axis[0]) + y * stride_of(out, g->axis[1]) + x * stride_of(out, g->axis[2]);
                int64_t from = pz * stride_of(in, g->axis[0]) + py * stride_of(in, g->axis[1]) + px * stride_of(in, g->axis[2]);
                if (found < NOWHERE && (double)(found >> PLACE_BITS) <= distance * distance)
                    memcpy(to + at * (int64_t)size, data + from * (int64_t)size, size);
                else
                    memset(to + at * (int64_t)size, 0, size);
            }
}

static fv_status run(fv_run *r, fv_error *error) {
    group     g;
    fv_region groups = r->in[0]->region; /* one voxel of each */
    fv_rows   rows;
    lay_out(&g, &r->need, r->scratch);
    if (g.size[0] * g.size[1] * g.size[2] >= (int64_t)1 << PLACE_BITS)
        return fv_fail(error, FV_ERROR_MEMORY, "a chunk is too large to expand at once; use smaller chunks");
    for (int k = 0; k < 3; k++)
        if (g.axis[k] >= 0) groups.size[g.axis[k]] = 1;
    for (fv__rows_begin(&rows, &groups); fv__rows_next(&rows);)
        for (int64_t i = 0; i < groups.size[groups.ndim - 1]; i++) {
            int64_t base[FV_MAX_DIMS];
            memcpy(base, rows.position, sizeof base);
            base[groups.ndim - 1] += i;
            const char *data = fv__block_at(r->in[0], base);
            load(&g, r->in[0], data);
            for (int k = 0; k < 3; k++)
                if (g.axis[k] >= 0) spread(&g, k);
            store(&g, r, base, data);
        }
    return FV_OK;
}

static double cost(const fv_need *n) { return 5 + 2 * (double)reach(n); }

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(expand_labels) = {
    .name = "expand_labels",
    .family = "segmentation",
    .brief = "grow labels into the background without letting them overlap",
    .also = "grow_labels",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(expand_labels),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "As skimage.segmentation.expand_labels: background within the distance becomes the nearest label. If two labels "
           "are equally near, the one whose nearest voxel comes first in raster order wins (scikit-image leaves this "
           "undefined). Distances are in voxels. The time grows with the distance.",
    .citation = "scikit-image: skimage.segmentation.expand_labels",
    .example = "phantom(\"cells\", [200, 200], noise = 0) > 150 |> label() |> expand_labels(5) |> write(\"grown.tif\")",
    .see = "dilate watershed distance",
};
