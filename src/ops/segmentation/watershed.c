/* watershed: gives every voxel the label of the marker whose flood reaches it first.
 *
 * Pass "local" finds what each chunk can know by itself and which edges may still matter, its merge grows the forest over all
 * chunks, and pass "flood" finds the chunk's regions again and labels them. An image in one chunk needs the last pass only.
 */
#include "op/chunks.h"
#include "op/reduce.h"
#include "ops/segmentation/watershed_merge.h"
#include <stdlib.h>

typedef struct {
    int64_t connectivity;
    bool    line;
} watershed;

static const fv_param params[] = {
    FV_PARAM(watershed, connectivity, .def = "1", .min = 1, .max = 3,
             .doc = "which voxels are connected: 1 by faces, 2 also by edges, 3 also by corners"),
    FV_PARAM(watershed, line, .def = "false", .doc = "leave a line of 0 between basins"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "relief that is flooded upwards from the markers" },
    { "markers", FV_KIND_IMAGE, .doc = "label image of the same shape; 0 is no marker" },
    { "mask", FV_KIND_IMAGE, .optional = true, .doc = "bool image of the same shape: where to flood; left out: everywhere" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    return fv__flood_infer(i, ((const watershed *)i->params)->connectivity, error);
}

/* ---------------------------------------------------------------- regions */

static int64_t connectivity(const fv_need *n) { return ((const watershed *)n->params)->connectivity; }

/* Whether floods may cross from chunk to chunk. */
static bool is_cut(const fv_need *n) { return n->lattice && n->lattice->ndim && fv__flood_is_cut(n->lattice, &n->in[0]->image); }

static fv_region with_halo(const fv_region *own, const fv_image_type *image) {
    int     spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    int64_t one[FV_MAX_DIMS] = { 0 };
    for (int k = 0; k < n; k++) one[spatial[k]] = 1;
    fv_region grown = fv__region_grow(own, one, one);
    return fv__region_clip(&grown, image->shape);
}

static fv_region chunks_of(const fv_need *n) {
    return n->lattice && n->lattice->ndim ? fv__lattice_align(n->lattice, &n->region) : fv__region_whole(&n->in[0]->image);
}

static void local_need(const fv_need *n, fv_region *in) {
    for (int i = 0; i < 3; i++) {
        in[i] = with_halo(&n->region, &n->in[0]->image);
        if (n->lattice && n->lattice->ndim && !is_cut(n)) fv__need_nothing(&in[i]);
    }
}

static void flood_need(const fv_need *n, fv_region *in) {
    fv_region chunks = chunks_of(n);
    for (int i = 0; i < 3; i++) in[i] = with_halo(&chunks, &n->in[0]->image);
}

static fv_status check_size(const fv__flood *f, fv_error *error) {
    if (f->cells < FV__MOST_CELLS) return FV_OK;
    return fv_fail(error, FV_ERROR_MEMORY, "a chunk of %lld voxels is too large to flood at once; use smaller chunks",
                   (long long)f->cells);
}

static fv_status flood_chunk(const fv_run *r, const fv_region *own, fv__flood *f, fv_error *error) {
    fv_region region = with_halo(own, &r->need.in[0]->image);
    fv_block  image = fv__block_window(r->in[0], &region), markers = fv__block_window(r->in[1], &region), mask;
    if (r->in[2]) mask = fv__block_window(r->in[2], &region);
    fv__flood_init(f, &r->need.in[0]->image, own, connectivity(&r->need), r->scratch);
    FV_TRY(check_size(f, error));
    fv__flood_load(f, &image, &markers, r->in[2] ? &mask : NULL);
    fv__flood_join(f);
    return FV_OK;
}

/* ---------------------------------------------------------------- pass "local" */

static size_t local_scratch(const fv_need *n) {
    fv__flood f;
    return fv__flood_init(&f, &n->in[0]->image, &n->region, connectivity(n), NULL);
}

static size_t local_bound(const fv_need *n) {
    fv__flood f;
    fv__flood_init(&f, &n->in[0]->image, &n->region, connectivity(n), NULL);
    int64_t shell = f.cells - fv__region_voxels(&n->region); /* an open region, an edge, a voxel of a face: three may be marked */
    return sizeof(fv__flood_head) + (size_t)(shell * ((int64_t)sizeof(fv__flood_edge) + 8 + 3 * 8));
}

static int64_t label_value(const void *value, fv_dtype dtype) {
    bool is_signed = fv_dtype_is_signed(dtype);
    switch (fv_dtype_size(dtype)) {
    case 1: return is_signed ? *(const int8_t *)value : *(const uint8_t *)value;
    case 2: return is_signed ? *(const int16_t *)value : *(const uint16_t *)value;
    case 4: return is_signed ? *(const int32_t *)value : (int64_t) * (const uint32_t *)value;
    default: return *(const int64_t *)value;
    }
}

static int64_t marker_of(const fv__flood *f, const fv_block *markers, int64_t region) {
    int64_t position[FV_MAX_DIMS];
    fv__flood_position(f, f->seat[region], position);
    return label_value(fv__block_at(markers, position), markers->dtype);
}

/* Cell of an own voxel. */
static int64_t cell_at(const fv__flood *f, const int64_t *position) {
    int64_t group = 0, cell;
    for (int i = 0; i < f->nothers; i++)
        group = group * f->own.size[f->other[i]] + position[f->other[i]] - f->own.start[f->other[i]];
    cell = group * f->group_stride;
    for (int d = 0; d < 3; d++)
        if (f->axis[d] >= 0) cell += (position[f->axis[d]] - f->own.start[f->axis[d]] + f->pad[d]) * f->stride[d];
    return cell;
}

static void add_face(const fv__flood *f, const fv_region *face, fv_bytes *partial) {
    fv_rows rows;
    int     last = face->ndim - 1;
    for (fv__rows_begin(&rows, face); fv__rows_next(&rows);)
        for (int64_t i = 0; i < face->size[last]; i++) {
            int64_t position[FV_MAX_DIMS];
            memcpy(position, rows.position, sizeof position);
            position[last] += i;
            uint32_t node = f->node[cell_at(f, position)];
            node = node == FV__NO_NODE || node < f->closed ? FV__NO_NODE : node - (uint32_t)f->closed;
            fv__bytes_append(partial, &node, sizeof node);
        }
}

/* New numbers, from 0 on, for the marked regions that are met; *node counts open and marked regions. */
typedef struct {
    uint32_t *number, *met, count, open;
} renumbering;

static void renumber(renumbering *n, char *data) {
    uint32_t node;
    memcpy(&node, data, sizeof node);
    if (node == FV__NO_NODE || node < n->open) return;
    uint32_t *number = &n->number[node - n->open];
    if (*number == FV__NO_NODE) {
        n->met[n->count] = node - n->open;
        *number = n->count++;
    }
    node = n->open + *number;
    memcpy(data, &node, sizeof node);
}

/* Only marked regions that an edge or a face names matter to other chunks; there is one for each marker voxel. */
static void add_markers(fv__flood *f, const fv_block *markers, fv__flood_head *head, fv_bytes *partial) {
    renumbering n = { f->choice, f->active, 0, (uint32_t)f->open };
    char       *edges = (char *)partial->data + sizeof *head, *end = (char *)partial->data + partial->size;
    char       *faces = edges + head->edges * (int64_t)sizeof(fv__flood_edge) + f->open * 4;
    for (int64_t i = 0; i < f->marked; i++) n.number[i] = FV__NO_NODE;
    for (int64_t i = 0; i < head->edges; i++) {
        renumber(&n, edges + i * (int64_t)sizeof(fv__flood_edge) + offsetof(fv__flood_edge, a));
        renumber(&n, edges + i * (int64_t)sizeof(fv__flood_edge) + offsetof(fv__flood_edge, b));
    }
    for (; faces < end; faces += sizeof(uint32_t)) renumber(&n, faces);
    for (uint32_t i = 0; i < n.count; i++) {
        int64_t label = marker_of(f, markers, f->closed + f->open + n.met[i]);
        fv__bytes_append(partial, &label, sizeof label);
    }
    head->marked = n.count;
    memcpy(partial->data, head, sizeof *head);
}

static int by_order(const void *a, const void *b) { return fv__flood_less(a, b) ? -1 : fv__flood_less(b, a); }

static fv_status local_run(fv_run *r, fv_error *error) {
    const fv_region *own = &r->need.region;
    fv__flood        f;
    if (!is_cut(&r->need)) return FV_OK;
    FV_TRY(flood_chunk(r, own, &f, error));
    fv__flood_head head = { .open = f.open };
    fv__bytes_append(r->partial, &head, sizeof head);
    fv__flood_keep(&f, r->partial);
    head.edges = (int64_t)((r->partial->size - sizeof head) / sizeof(fv__flood_edge));
    qsort(r->partial->data + sizeof head, (size_t)head.edges, sizeof(fv__flood_edge), by_order);
    fv__bytes_append(r->partial, f.seat + f.closed, (size_t)f.open * sizeof *f.seat);
    for (int k = 0; k < 3; k++)
        for (int far = 0; far < 2; far++) {
            if (f.axis[k] < 0 || !fv__flood_goes_on(f.image, own, f.axis[k], far)) continue;
            fv_region face = fv__flood_face(own, f.axis[k], far);
            add_face(&f, &face, r->partial);
        }
    add_markers(&f, r->in[1], &head, r->partial);
    return FV_OK;
}

/* ---------------------------------------------------------------- pass "flood" */

static fv_region largest_chunk(const fv_need *n) {
    fv_region chunk = fv__region_whole(&n->in[0]->image);
    for (int d = 0; n->lattice && n->lattice->ndim && d < chunk.ndim; d++)
        chunk.size[d] = FV_MIN(n->lattice->chunk[d], n->lattice->shape[d]);
    return chunk;
}

static size_t flood_scratch(const fv_need *n) {
    fv__flood f;
    fv_region chunk = largest_chunk(n);
    return fv__flood_init(&f, &n->in[0]->image, &chunk, connectivity(n), NULL);
}

/* Labels of all regions, in memory that joining no longer needs (8 bytes fit where edges were). */
static fv_status find_labels(const fv_run *r, const fv__flood *f, int64_t chunk, int64_t *labels, fv_error *error) {
    const void *data = NULL;
    size_t      size = 0;
    if (f->open) FV_TRY(r->results->get(r->results, chunk, &data, &size, error));
    if (size != (size_t)f->open * sizeof *labels)
        return fv_fail(error, FV_ERROR_INTERNAL, "the labels of chunk %lld do not fit its regions", (long long)chunk);
    if (size) memcpy(labels + f->closed, data, size);
    for (int64_t i = f->closed + f->open; i < f->closed + f->open + f->marked; i++) labels[i] = marker_of(f, r->in[1], i);
    for (int64_t i = 0; i < f->closed; i++) labels[i] = f->up[i] < f->closed ? 0 : labels[f->up[i]];
    return FV_OK;
}

static uint64_t key_at(const fv__flood *f, int64_t cell) {
    return f->wide ? ((const uint64_t *)f->key)[cell] : ((const uint32_t *)f->key)[cell];
}

static int64_t label_at(const fv__flood *f, const int64_t *labels, int64_t cell) {
    return f->node[cell] == FV__NO_NODE ? 0 : labels[f->node[cell]];
}

static bool is_marker(const fv__flood *f, const fv_block *markers, int64_t cell) {
    int64_t position[FV_MAX_DIMS];
    fv__flood_position(f, cell, position);
    return fv__marker_set(fv__block_at(markers, position), fv_dtype_size(markers->dtype));
}

/* Of two neighbours with different labels the higher one is on the line, or the later one of equals, but never a marker. */
static bool on_line(const fv__flood *f, const fv_block *markers, const int64_t *labels, int64_t cell) {
    int64_t own = label_at(f, labels, cell);
    for (int k = 0; k < f->noffsets; k++) {
        int64_t near = cell + f->offset[k], other = label_at(f, labels, near);
        if (!other || other == own) continue;
        uint64_t a = key_at(f, cell), b = key_at(f, near);
        bool     higher = a != b ? a > b : cell > near;
        if ((higher || is_marker(f, markers, near)) && !is_marker(f, markers, cell)) return true;
    }
    return false;
}

/* labels[-1] is 0, for FV__NO_NODE. */
#define PAINT(type)                                                                                                              \
    for (int64_t i = 0; i < n; i++) ((type *)to)[i * stride] = (type)labels[(int64_t)(uint32_t)(node[i] + 1) - 1];               \
    break;
static void paint_cells(const uint32_t *node, const int64_t *labels, void *to, size_t size, int64_t stride, int64_t n) {
    switch (size) {
    case 1: PAINT(uint8_t)
    case 2: PAINT(uint16_t)
    case 4: PAINT(uint32_t)
    default: PAINT(uint64_t)
    }
}

static void paint_row(const uint32_t *node, const int64_t *labels, char *to, size_t size, int64_t stride, int64_t n) {
    for (int64_t from = 0; from < n; from += 64) {
        int64_t  count = FV_MIN(64, n - from);
        uint32_t all = FV__NO_NODE;
        for (int64_t i = 0; i < count; i++) all &= node[from + i];
        if (all == FV__NO_NODE && stride == 1)
            memset(to + from * (int64_t)size, 0, (size_t)count * size);
        else
            paint_cells(node + from, labels, to + from * stride * (int64_t)size, size, stride, count);
    }
}

static void paint(const fv_run *r, const fv__flood *f, const fv_region *part, const int64_t *labels) {
    int       axis = f->axis[2], last = part->ndim - 1;
    bool      line = ((const watershed *)r->need.params)->line;
    size_t    size = fv_dtype_size(r->out->dtype);
    fv_region starts = *part; /* of rows along x, which need not be the last axis */
    fv_rows   rows;
    starts.size[axis] = 1;
    for (fv__rows_begin(&rows, &starts); fv__rows_next(&rows);)
        for (int64_t i = 0; i < starts.size[last]; i++) {
            int64_t position[FV_MAX_DIMS], n = part->size[axis], stride = r->out->stride[axis];
            memcpy(position, rows.position, sizeof position);
            position[last] += i;
            int64_t cell = cell_at(f, position);
            char   *to = fv__block_at(r->out, position);
            paint_row(f->node + cell, labels, to, size, stride, n);
            for (int64_t x = 0; line && x < n; x++)
                if (label_at(f, labels, cell + x) && on_line(f, r->in[1], labels, cell + x))
                    memset(to + x * stride * (int64_t)size, 0, size);
        }
}

static fv_status flood_run(fv_run *r, fv_error *error) {
    fv_chunks chunks;
    for (fv__chunks_begin(&chunks, r->need.lattice, &r->need.region); fv__chunks_next(&chunks);) {
        fv_region own = fv__lattice_chunk(r->need.lattice, chunks.index);
        fv_region part = fv__region_intersect(&own, &r->need.region);
        fv__flood f;
        FV_TRY(flood_chunk(r, &own, &f, error));
        int64_t *labels = (int64_t *)f.best + 1;
        labels[-1] = 0;
        FV_TRY(find_labels(r, &f, chunks.index, labels, error));
        paint(r, &f, &part, labels);
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- the operator */

static double cost(const fv_need *n) { return 10 + 2 * (double)connectivity(n); }

static const fv_pass passes[] = {
    { .name = "local",
      .need = local_need,
      .scratch = local_scratch,
      .bound = local_bound,
      .run = local_run,
      .finish = fv__watershed_finish },
    { .name = "flood", .need = flood_need, .scratch = flood_scratch, .run = flood_run },
    FV_PASS_END,
};

const fv_op FV_OP(watershed) = {
    .name = "watershed",
    .family = "segmentation",
    .brief = "separate objects: flood a relief from markers until the floods meet",
    .also = "watershed_ift, marker_watershed",
    .version = 3,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(watershed),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "Every voxel gets the label of the marker whose flood reaches it first. To separate objects that touch, flood the "
           "negative distance to the background from one marker for each object.\n"
           "The arguments are those of skimage.segmentation.watershed, but markers must be given; label(local_minima(image)) "
           "makes those that scikit-image takes otherwise. The result has the type of the markers. Voxels that no marker "
           "reaches are 0. With line, of two neighbours in different basins the higher one (of equal ones the later one) "
           "becomes 0, but never a marker. Nan counts as larger than infinity.\n"
           "The result is the minimum spanning forest of the graph of neighbours, with the markers as its roots. Edges are "
           "ordered by the higher of their two values, then by the lower one, then by position; no two are equal, so the "
           "result is unique and does not depend on chunks. scikit-image floods with a queue. Therefore lines between basins "
           "may differ by one voxel, and plateaus are divided differently: by distance there, by position here. Elsewhere "
           "the basins are the same. watershed_queue gives its result, of images that fit into memory.",
    .citation = "Cousty, Bertrand, Najman, Couprie: Watershed cuts: minimum spanning forests and the drop of water principle, "
                "IEEE PAMI 31, 2009",
    .example = "mask = phantom(\"cells\", [200, 200], noise = 0) > 100\n"
               "inside = distance(mask)\n"
               "markers = label(peaks(gaussian(inside, 1), min_distance = 5))\n"
               "write(watershed(0 - inside, markers, mask), \"cells.tif\")",
    .see = "watershed_queue distance peaks label local_minima boundaries",
};
