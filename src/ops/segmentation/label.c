/* label: numbers the connected components of an image. */
#include "op/chunks.h"
#include "op/sampling.h"
#include "ops/segmentation/label_merge.h"

typedef struct {
    int64_t connectivity;
} label;

static const fv_param params[] = {
    FV_PARAM(label, connectivity, .def = "1", .min = 1, .max = 3,
             .doc = "which voxels are connected: 1 by faces, 2 also by edges, 3 also by corners"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "bool or integer image; what is not 0 is foreground" },
                                   FV_INPUT_END };

static int64_t connectivity(const fv_need *n) { return ((const label *)n->params)->connectivity; }

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *image = &i->in[0]->image;
    int                  spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    int64_t              given = ((const label *)i->params)->connectivity;
    if (image->dtype != FV_BOOL && !fv_dtype_is_integer(image->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s; only bool and integer images are possible (image > 0 makes one)",
                       fv_dtype_name(image->dtype));
    if (n < 1 || n > 3)
        return fv_fail(error, FV_ERROR_USAGE, "image has %d spatial axes; one to three named z, y, x are needed", n);
    if (given > n)
        return fv_fail(error, FV_ERROR_USAGE, "connectivity = %lld: at most %d, the number of spatial axes of the image",
                       (long long)given, n);
    int64_t voxels = fv_image_type_voxels(image);
    i->out->image.dtype = voxels >= 0 && voxels <= INT32_MAX ? FV_INT32 : FV_INT64;
    return FV_OK;
}

/* ---------------------------------------------------------------- pass "local": components of a chunk */

static void local_need(const fv_need *n, fv_region *in) { in[0] = fv__components_need(&n->region, &n->in[0]->image); }

static size_t local_scratch(const fv_need *n) {
    fv_region region = fv__components_need(&n->region, &n->in[0]->image);
    return fv__runs_scratch(&n->in[0]->image, region.size, connectivity(n));
}

static size_t local_bound(const fv_need *n) { return fv__components_bound(n, connectivity(n)); }

/* Of an image in one chunk nothing has to be joined: the numbers of its components are their labels. */
static bool is_whole(const fv_region *region, const fv_image_type *image) {
    for (int d = 0; d < image->ndim; d++)
        if (region->size[d] != image->shape[d]) return false;
    return true;
}

static fv_status local_run(fv_run *r, fv_error *error) {
    fv__components_head head = { 0 };
    fv__runs            runs;
    fv__bytes_append(r->partial, &head, sizeof head);
    if (is_whole(&r->need.region, &r->need.in[0]->image)) return FV_OK;
    FV_TRY(fv__components_check(&r->need.in[0]->image, &r->in[0]->region, connectivity(&r->need), error));
    fv__runs_init(&runs, &r->need.in[0]->image, r->in[0], connectivity(&r->need), r->scratch);
    fv__runs_find(&runs);
    fv__runs_number(&runs, r->partial);
    int64_t *entry = (int64_t *)(r->partial->data + sizeof head);
    for (int64_t i = 0; i < runs.ncomponents; i++) entry[i] *= 2;
    fv__components_close(&runs, &r->need.region, r->partial);
    return FV_OK;
}

/* ---------------------------------------------------------------- pass "renumber": labels of a region */

static void renumber_need(const fv_need *n, fv_region *in) {
    fv_region aligned = n->lattice ? fv__lattice_align(n->lattice, &n->region) : n->region;
    in[0] = fv__components_need(&aligned, &n->in[0]->image);
}

static fv_region largest_chunk(const fv_need *n) {
    fv_region chunk = n->region;
    for (int d = 0; n->lattice && d < chunk.ndim; d++) {
        chunk.start[d] = 0;
        chunk.size[d] = FV_MIN(n->lattice->chunk[d], n->lattice->shape[d]);
    }
    return fv__components_need(&chunk, &n->in[0]->image);
}

/* Labels of a chunk's components lie behind what the runs need. */
static size_t labels_offset(const fv_need *n, const fv_region *chunk) {
    return (fv__runs_scratch(&n->in[0]->image, chunk->size, connectivity(n)) + 63) & ~(size_t)63;
}

static size_t renumber_scratch(const fv_need *n) {
    fv_region chunk = largest_chunk(n);
    return labels_offset(n, &chunk) +
           (size_t)fv__runs_most(&n->in[0]->image, chunk.size, connectivity(n)) * fv_dtype_size(n->out->image.dtype);
}

enum { STEP = 16 };

/* Writes positions from..to of a row; out is where position `from` lies. Objects are written in whole steps, and what was too
 * much is cleared again: most stretches are short, and a step of fixed length costs less than guessing theirs. */
#define PAINT(name, type)                                                                                                        \
    static void name(const fv__runs *r, const type *labels, int64_t row, const uint64_t *bits, int64_t from, int64_t to,         \
                     type *restrict out, int64_t stride) {                                                                       \
        for (int64_t i = 0; i < to - from; i++) out[i * stride] = 0;                                                             \
        for (int64_t w = from / 64; w * 64 < to; w++) {                                                                          \
            uint64_t word = bits[w];                                                                                             \
            if (w == from / 64) word &= ~(uint64_t)0 << (from & 63);                                                             \
            if (to - w * 64 < 64) word &= ((uint64_t)1 << (to & 63)) - 1;                                                        \
            for (; word; word &= word + (word & -word)) { /* without its first stretch of ones */                                \
                int      start = __builtin_ctzll(word);                                                                          \
                uint64_t after = ~(word >> start);                                                                               \
                int64_t  i = w * 64 + start - from, end = i + (after ? __builtin_ctzll(after) : 64);                             \
                type     value = labels[fv__runs_component(r, row, w, start)];                                                   \
                if (stride == 1 && end + STEP <= to - from) {                                                                    \
                    for (; i < end; i += STEP)                                                                                   \
                        for (int k = 0; k < STEP; k++) out[i + k] = value;                                                       \
                    for (int k = 0; k < STEP; k++) out[end + k] = 0;                                                             \
                } else                                                                                                           \
                    for (; i < end; i++) out[i * stride] = value;                                                                \
            }                                                                                                                    \
        }                                                                                                                        \
    }
PAINT(paint32, int32_t)
PAINT(paint64, int64_t)

static void paint_row(const fv__runs *r, const int64_t *position, int64_t size, const fv_block *out, const void *labels) {
    int64_t at[3] = { 0 }, group = 0, stride = out->stride[r->axis[2]];
    for (int which = 0; which < 3; which++)
        if (r->axis[which] >= 0) at[which] = position[r->axis[which]] - r->in->region.start[r->axis[which]];
    for (int k = 0; k < r->nothers; k++)
        group = group * r->in->region.size[r->other[k]] + position[r->other[k]] - r->in->region.start[r->other[k]];
    int64_t         row = fv__runs_joined(r, group, at[0], at[1]);
    const uint64_t *bits = fv__runs_row(r, group, at[0], at[1]);
    void           *to = fv__block_at(out, position);
    if (out->dtype == FV_INT32)
        paint32(r, labels, row, bits, at[2], at[2] + size, to, stride);
    else
        paint64(r, labels, row, bits, at[2], at[2] + size, to, stride);
}

static void paint(const fv__runs *r, const fv_region *part, const fv_block *out, const void *labels) {
    int       last = part->ndim - 1;
    fv_region starts = *part; /* of the rows; they need not lie along the last axis */
    fv_rows   rows;
    starts.size[r->axis[2]] = 1;
    for (fv__rows_begin(&rows, &starts); fv__rows_next(&rows);)
        for (int64_t i = 0; i < starts.size[last]; i++) {
            int64_t position[FV_MAX_DIMS];
            memcpy(position, rows.position, sizeof position);
            position[last] += i;
            paint_row(r, position, part->size[r->axis[2]], out, labels);
        }
}

/* Labels of the components of a chunk that is the whole image. */
static void count_labels(void *labels, int64_t count, fv_dtype dtype) {
    int32_t *narrow = labels;
    int64_t *wide = labels;
    for (int64_t i = 0; i < count && dtype == FV_INT32; i++) narrow[i] = (int32_t)(i + 1);
    for (int64_t i = 0; i < count && dtype == FV_INT64; i++) wide[i] = i + 1;
}

static fv_status renumber_chunk(fv_run *r, int64_t chunk, fv_error *error) {
    const fv_need *n = &r->need;
    fv_region      own = fv__lattice_chunk(n->lattice, chunk), region = fv__components_need(&own, &n->in[0]->image);
    fv_region      part = fv__region_intersect(&own, &n->region);
    fv_block       in = fv__block_window(r->in[0], &region);
    void          *labels = (char *)r->scratch + labels_offset(n, &region);
    fv__runs       runs;
    FV_TRY(fv__components_check(&n->in[0]->image, &region, connectivity(n), error));
    fv__runs_init(&runs, &n->in[0]->image, &in, connectivity(n), r->scratch);
    fv__runs_find(&runs);
    fv__runs_number(&runs, NULL);
    if (is_whole(&own, &n->in[0]->image))
        count_labels(labels, runs.ncomponents, r->out->dtype);
    else
        FV_TRY(fv__label_table(r->results, n->lattice, chunk, labels, runs.ncomponents, fv_dtype_size(r->out->dtype), error));
    paint(&runs, &part, r->out, labels);
    return FV_OK;
}

static fv_status renumber_run(fv_run *r, fv_error *error) {
    fv_chunks chunks;
    for (fv__chunks_begin(&chunks, r->need.lattice, &r->need.region); fv__chunks_next(&chunks);)
        FV_TRY(renumber_chunk(r, chunks.index, error));
    return FV_OK;
}

/* ---------------------------------------------------------------- the operator */

static double cost(const fv_need *n) { return connectivity(n) == 2 ? 3 : 2; }

static const fv_pass passes[] = {
    { .name = "local",
      .need = local_need,
      .scratch = local_scratch,
      .bound = local_bound,
      .run = local_run,
      .finish = fv__label_finish },
    { .name = "renumber", .need = renumber_need, .scratch = renumber_scratch, .run = renumber_run },
    FV_PASS_END,
};

const fv_op FV_OP(label) = {
    .name = "label",
    .family = "segmentation",
    .brief = "give each connected object its own number",
    .also = "bwlabel, bwlabeln, bwconncomp, connected_components, connectedComponents, measure.label, ndimage.label, cc3d",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(label),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "0 is the background, and objects are numbered from 1 in the order in which a scan through the image, row by row, "
           "meets them. So the largest label is the number of objects. Labels equal those of scipy.ndimage.label with "
           "generate_binary_structure(ndim, connectivity), however the image is divided into chunks.\n"
           "The result is int32, or int64 for images of 2^31 voxels and more. Objects extend along the spatial axes only: "
           "voxels of different channels or time points are never connected, and all labels of the image differ.",
    .citation = "He, Ren, Gao, Zhao, Yao, Chao: The connected-component labeling problem, Pattern Recognition 70, 2017",
    .example = "phantom(\"cells\", [200, 200], noise = 0) > 100 |> label(connectivity = 2) |> write(\"labels.tif\")",
    .see = "measure watershed relabel keep remove_small",
};

const fv_estimator FV_ESTIMATOR(label) = { .chain = FV_CHAIN_FIRST };
