/* Reconstruction of chunks; see rebuild.h. */
#include "ops/morphology/rebuild.h"
#include "kernels/keys.h"
#include "op/chunks.h"
#include "op/promote.h"
#include "op/reduce.h"
#include "op/scratch.h"

#define NONE UINT32_MAX

/* A region of an image in a shell of cells that are lower than everything. */
typedef struct {
    const fv_image_type *image;
    fv_region            region;
    int                  axis[3];                     /* of z, y, x in the image; -1: none */
    int                  other[FV_MAX_DIMS], nothers; /* axes that are not spatial */
    int64_t              groups, size[3], pad[3], stride[3], group_stride, cells, rows, room, count;
    int                  noffsets; /* neighbours in raster order; the second half lies behind a cell */
    int64_t              offset[26];
    bool                 wide;
    void                *mask, *now; /* keys */
    uint32_t            *queue, *spare, *parent, *terminal;
    uint8_t             *queued;
    uint64_t            *row;   /* keys of one row being read */
    fv__rebuild_range   *range; /* per group */
} box;

/* ---------------------------------------------------------------- geometry */

static void set_offsets(box *x, int64_t connectivity) {
    x->noffsets = 0;
    for (int code = 0; code < 27; code++) {
        int     step[3] = { code / 9 - 1, code / 3 % 3 - 1, code % 3 - 1 }, steps = 0;
        int64_t offset = 0;
        bool    exists = true;
        for (int d = 0; d < 3; d++) {
            steps += step[d] != 0;
            exists = exists && (!step[d] || x->axis[d] >= 0);
            offset += step[d] * x->stride[d];
        }
        if (exists && steps && steps <= connectivity) x->offset[x->noffsets++] = offset;
    }
}

/* tree: whether terminals will be connected. */
static size_t lay_out(box *x, const fv_image_type *image, const fv_region *region, int64_t connectivity, bool tree,
                      void *scratch) {
    int spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    *x = (box){ .image = image, .region = *region, .axis = { -1, -1, -1 }, .groups = 1 };
    for (int i = 0; i < n; i++) x->axis[3 - n + i] = spatial[i];
    for (int d = 0; d < image->ndim; d++)
        if (d != x->axis[0] && d != x->axis[1] && d != x->axis[2]) {
            x->other[x->nothers++] = d;
            x->groups *= region->size[d];
        }
    int64_t stride = 1;
    for (int d = 2; d >= 0; d--) {
        x->size[d] = x->axis[d] >= 0 ? region->size[x->axis[d]] : 1;
        x->pad[d] = x->axis[d] >= 0;
        x->stride[d] = stride;
        stride *= x->size[d] + 2 * x->pad[d];
    }
    x->group_stride = stride;
    x->cells = x->groups * stride;
    x->rows = x->groups * x->size[0] * x->size[1];
    x->wide = fv_dtype_size(image->dtype) == 8;
    set_offsets(x, connectivity);
    x->room = -x->offset[0] + 64; /* neighbours lie beyond the first and last cell */
    fv_scratch pieces = { scratch, 0 };
    int64_t    key = x->wide ? 8 : 4, all = x->cells + 2 * x->room;
    char      *mask = fv__scratch_take(&pieces, all * key), *now = fv__scratch_take(&pieces, all * key);
    x->queue = fv__scratch_take(&pieces, x->cells * 4);
    x->queued = fv__scratch_take(&pieces, x->cells);
    x->row = fv__scratch_take(&pieces, x->size[2] * 8);
    x->range = fv__scratch_take(&pieces, x->groups * (int64_t)sizeof *x->range);
    if (tree) {
        x->spare = fv__scratch_take(&pieces, x->cells * 4);
        uint32_t *parent = fv__scratch_take(&pieces, all * 4);
        x->terminal = fv__scratch_take(&pieces, x->cells * 4);
        if (scratch) x->parent = parent + x->room;
    }
    if (scratch) x->mask = mask + x->room * key, x->now = now + x->room * key;
    return pieces.used;
}

/* First cell of a row of the region; rows are counted over groups, z and y. */
static int64_t first_cell(const box *x, int64_t row) {
    int64_t y = row % x->size[1], z = row / x->size[1] % x->size[0], group = row / (x->size[1] * x->size[0]);
    return group * x->group_stride + (z + x->pad[0]) * x->stride[0] + (y + x->pad[1]) * x->stride[1] + x->pad[2];
}

static void row_position(const box *x, int64_t row, int64_t *position) {
    int64_t group = row / (x->size[1] * x->size[0]);
    for (int i = x->nothers - 1; i >= 0; i--) {
        position[x->other[i]] = x->region.start[x->other[i]] + group % x->region.size[x->other[i]];
        group /= x->region.size[x->other[i]];
    }
    if (x->axis[0] >= 0) position[x->axis[0]] = x->region.start[x->axis[0]] + row / x->size[1] % x->size[0];
    if (x->axis[1] >= 0) position[x->axis[1]] = x->region.start[x->axis[1]] + row % x->size[1];
    position[x->axis[2]] = x->region.start[x->axis[2]];
}

static int64_t cell_at(const box *x, const int64_t *position) {
    int64_t group = 0, cell;
    for (int i = 0; i < x->nothers; i++)
        group = group * x->region.size[x->other[i]] + position[x->other[i]] - x->region.start[x->other[i]];
    cell = group * x->group_stride;
    for (int d = 0; d < 3; d++)
        if (x->axis[d] >= 0) cell += (position[x->axis[d]] - x->region.start[x->axis[d]] + x->pad[d]) * x->stride[d];
    return cell;
}

fv_region fv__rebuild_region(const fv_region *own, const fv_image_type *image) {
    int       spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    fv_region grown = *own;
    for (int i = 0; i < n; i++) grown.size[spatial[i]]++;
    return fv__region_clip(&grown, image->shape);
}

/* ---------------------------------------------------------------- keys */

static uint64_t key_get(const box *x, const void *keys, int64_t cell) {
    return x->wide ? ((const uint64_t *)keys)[cell] : ((const uint32_t *)keys)[cell];
}

static void key_set(const box *x, void *keys, int64_t cell, uint64_t key) {
    if (x->wide)
        ((uint64_t *)keys)[cell] = key;
    else
        ((uint32_t *)keys)[cell] = (uint32_t)key;
}

/* The greatest key of a type; smaller types do not fill theirs. */
static uint64_t last_key(fv_dtype dtype) {
    switch (fv_dtype_size(dtype)) {
    case 1: return dtype == FV_BOOL ? 1 : UINT8_MAX;
    case 2: return UINT16_MAX;
    case 4: return UINT32_MAX;
    default: return UINT64_MAX;
    }
}

static uint64_t turn(const fv__rebuild *b, fv_dtype dtype, uint64_t key) { return b->erosion ? last_key(dtype) - key : key; }

/* The key of the value that lies h below, turned if that is upside down; false if there is none. */
static bool lower_key(const fv__rebuild *b, fv_dtype dtype, uint64_t key, uint64_t *lower) {
    if (b->kind == FV__STEPPED || !fv_dtype_is_float(dtype)) { /* turned or not, whole numbers keep their distances */
        double step = b->kind == FV__STEPPED ? 1 : ceil(b->h);
        *lower = (double)key >= step ? key - (uint64_t)step : 0;
        return (double)key >= step;
    }
    uint64_t straight = turn(b, dtype, key), below;
    if (dtype == FV_FLOAT32) {
        float x = fv__key_to_f32((uint32_t)straight);
        below = fv__key_f32((float)(b->erosion ? (double)x + b->h : (double)x - b->h));
    } else {
        double x = fv__key_to_f64(straight);
        below = fv__key_f64(b->erosion ? x + b->h : x - b->h);
    }
    below = turn(b, dtype, below);
    *lower = FV_MIN(below, key - 1); /* infinities, nan and where h is rounded away: the next lower value is far enough */
    return true;
}

/* ---------------------------------------------------------------- reading */

static void load_row(const box *x, const fv_block *in, const fv__rebuild *b, const int64_t *position, void *to, int64_t first) {
    char *keys = (char *)to + first * (x->wide ? 8 : 4);
    fv__keys_load(keys, x->wide, fv__block_at(in, position), in->dtype, in->stride[x->axis[2]], x->size[2]);
    for (int64_t i = first; b->erosion && i < first + x->size[2]; i++) key_set(x, to, i, turn(b, in->dtype, key_get(x, to, i)));
}

/* Seed and mask of the region; where the seed is above the mask it is cut down to it. */
static void load(box *x, const fv__rebuild *b, const fv_block *seed, const fv_block *mask) {
    size_t size = (size_t)(x->cells + 2 * x->room) * (x->wide ? 8 : 4);
    memset((char *)x->mask - x->room * (x->wide ? 8 : 4), 0, size);
    memset((char *)x->now - x->room * (x->wide ? 8 : 4), 0, size);
    memset(x->queued, 0, (size_t)x->cells);
    for (int64_t g = 0; g < x->groups; g++) x->range[g] = (fv__rebuild_range){ UINT64_MAX, 0 };
    for (int64_t row = 0; row < x->rows; row++) {
        int64_t            position[FV_MAX_DIMS], first = first_cell(x, row);
        fv__rebuild_range *range = &x->range[row / (x->size[0] * x->size[1])];
        row_position(x, row, position);
        load_row(x, mask, b, position, x->mask, first);
        if (b->kind == FV__SEEDED) load_row(x, seed, b, position, x->now, first);
        for (int64_t i = first; i < first + x->size[2]; i++) {
            uint64_t key = key_get(x, x->mask, i), low;
            if (b->kind == FV__SEEDED)
                low = FV_MIN(key_get(x, x->now, i), key);
            else
                lower_key(b, mask->dtype, key, &low);
            key_set(x, x->now, i, low);
            range->low = FV_MIN(range->low, key);
            range->high = FV_MAX(range->high, key);
        }
    }
}

/* ---------------------------------------------------------------- one region */

static uint32_t find(uint32_t *parent, uint32_t i) {
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

#define KEY uint32_t
#define NAME(name) name##_narrow
#include "ops/morphology/rebuild_keys.h"
#define KEY uint64_t
#define NAME(name) name##_wide
#include "ops/morphology/rebuild_keys.h"

static void rebuild(box *x) {
    if (x->wide)
        rebuild_wide(x);
    else
        rebuild_narrow(x);
}

/* Counts the cells on shared planes in order, and adds their numbers in the whole image unless numbers is NULL. */
static int64_t find_terminals(box *x, const fv_lattice *lattice, fv_bytes *numbers) {
    uint32_t count = 0;
    memset(x->terminal, 0xff, (size_t)x->cells * sizeof *x->terminal);
    for (int64_t row = 0; row < x->rows; row++) {
        int64_t position[FV_MAX_DIMS], first = first_cell(x, row);
        bool    shared = false;
        row_position(x, row, position);
        for (int k = 0; k < 2; k++)
            if (x->axis[k] >= 0) shared = shared || fv__rebuild_on_plane(lattice, x->axis[k], position[x->axis[k]]);
        for (int64_t i = 0; i < x->size[2]; i++, position[x->axis[2]]++) {
            if (!shared && !fv__rebuild_on_plane(lattice, x->axis[2], position[x->axis[2]])) continue;
            x->terminal[first + i] = count++;
            uint32_t number = (uint32_t)(numbers ? fv__rebuild_number(lattice, x->image, position) : 0);
            if (numbers) fv__bytes_append(numbers, &number, sizeof number);
        }
    }
    return count;
}

/* ---------------------------------------------------------------- the operators' parts */

static bool is_cut(const fv_need *n) {
    int spatial[FV_MAX_DIMS], count = fv_image_type_spatial(&n->in[0]->image, spatial);
    for (int k = 0; n->lattice && n->lattice->ndim && k < count; k++)
        if (fv__lattice_count_axis(n->lattice, spatial[k]) > 1) return true;
    return false;
}

fv_status fv__rebuild_infer(fv_infer *i, const fv__rebuild *b, int64_t *connectivity, fv_error *error) {
    const fv_image_type *image = &i->in[0]->image;
    const char          *name = b->kind == FV__SEEDED ? "seed" : "image";
    int                  spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    if (fv_dtype_is_complex(image->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "%s is %s; it must be real", name, fv_dtype_name(image->dtype));
    if (n < 1 || n > 3)
        return fv_fail(error, FV_ERROR_USAGE, "%s has %d spatial axes; one to three named z, y, x are needed", name, n);
    if (!*connectivity) *connectivity = n;
    if (*connectivity > n)
        return fv_fail(error, FV_ERROR_USAGE, "connectivity = %lld: at most %d, the number of spatial axes of the image",
                       (long long)*connectivity, n);
    if (b->kind != FV__SEEDED) {
        i->out->image.dtype = FV_BOOL;
        return FV_OK;
    }
    const fv_image_type *mask = &i->in[1]->image;
    FV_TRY(fv__same_shape(image, "seed", mask, "mask", error));
    if (image->dtype != mask->dtype)
        return fv_fail(error, FV_ERROR_USAGE, "seed is %s and mask is %s; they must have one type (convert(seed, \"%s\"))",
                       fv_dtype_name(image->dtype), fv_dtype_name(mask->dtype), fv_dtype_name(mask->dtype));
    return FV_OK;
}

void fv__rebuild_local_need(const fv_need *n, fv_region *in) {
    for (int i = 0; i < n->ninputs; i++) {
        in[i] = fv__rebuild_region(&n->region, &n->in[0]->image);
        if (n->lattice && n->lattice->ndim && !is_cut(n)) fv__need_nothing(&in[i]);
    }
}

size_t fv__rebuild_local_scratch(const fv_need *n, const fv__rebuild *b) {
    box       x;
    fv_region region = fv__rebuild_region(&n->region, &n->in[0]->image);
    return lay_out(&x, &n->in[0]->image, &region, b->connectivity, true, NULL);
}

size_t fv__rebuild_local_bound(const fv_need *n) {
    fv_region region = fv__rebuild_region(&n->region, &n->in[0]->image);
    int64_t   shared = 0, voxels = fv__region_voxels(&region);
    for (int d = 0; d < region.ndim; d++) shared += 2 * (voxels / FV_MAX(region.size[d], 1));
    return sizeof(fv__rebuild_head) + (size_t)shared * (8 + sizeof(fv__rebuild_edge) + 4) +
           (size_t)(voxels / FV_MAX(region.size[0], 1) + 1) * sizeof(fv__rebuild_range);
}

static fv_status check_size(const box *x, fv_error *error) {
    if (x->cells < NONE - 1) return FV_OK;
    return fv_fail(error, FV_ERROR_MEMORY, "a chunk of %lld voxels is too large to reconstruct at once; use smaller chunks",
                   (long long)x->cells);
}

static fv_status check_shared(const fv_run *r, fv_error *error) {
    int64_t shared = fv__rebuild_shared(r->need.lattice, &r->need.in[0]->image);
    if (shared < NONE) return FV_OK;
    return fv_fail(error, FV_ERROR_MEMORY, "the chunks share %lld voxels, more than can be merged; use larger chunks (--chunk)",
                   (long long)shared);
}

/* The tree with terminals by their numbers in the whole image. */
static void add_tree(box *x, const fv_bytes *numbers, fv__rebuild_head *head, fv_bytes *partial) {
    head->edges = x->wide ? connect_wide(x, partial) : connect_narrow(x, partial);
    memcpy(partial->data, head, sizeof *head);
    fv__rebuild_edge *edge = (fv__rebuild_edge *)((char *)partial->data + fv__rebuild_edges_offset(head));
    const uint32_t   *number = (const uint32_t *)numbers->data;
    for (int64_t i = 0; i < head->edges; i++) edge[i] = (fv__rebuild_edge){ edge[i].level, number[edge[i].a], number[edge[i].b] };
    fv__bytes_append(partial, numbers->data, numbers->size);
}

fv_status fv__rebuild_local(fv_run *r, const fv__rebuild *b, fv_error *error) {
    const fv_block *mask = r->in[b->kind == FV__SEEDED];
    fv_bytes        numbers = { 0 };
    box             x;
    if (!is_cut(&r->need)) return FV_OK;
    lay_out(&x, &r->need.in[0]->image, &r->in[0]->region, b->connectivity, true, r->scratch);
    FV_TRY(check_size(&x, error));
    FV_TRY(check_shared(r, error));
    load(&x, b, r->in[0], mask);
    rebuild(&x);
    fv__rebuild_head head = { .terminals = find_terminals(&x, r->need.lattice, &numbers), .groups = x.groups };
    fv__bytes_append(r->partial, &head, sizeof head);
    for (int64_t i = 0; i < x.cells; i++)
        if (x.terminal[i] != NONE) {
            uint64_t key = key_get(&x, x.now, i);
            fv__bytes_append(r->partial, &key, sizeof key);
        }
    fv__bytes_append(r->partial, x.range, (size_t)x.groups * sizeof *x.range);
    add_tree(&x, &numbers, &head, r->partial);
    fv__bytes_release(&numbers);
    return FV_OK;
}

void fv__rebuild_need(const fv_need *n, fv_region *in) {
    fv_region chunks =
        n->lattice && n->lattice->ndim ? fv__lattice_align(n->lattice, &n->region) : fv__region_whole(&n->in[0]->image);
    for (int i = 0; i < n->ninputs; i++) in[i] = fv__rebuild_region(&chunks, &n->in[0]->image);
}

size_t fv__rebuild_scratch(const fv_need *n, const fv__rebuild *b) {
    box       x;
    fv_region chunk = fv__region_whole(&n->in[0]->image);
    for (int d = 0; n->lattice && n->lattice->ndim && d < chunk.ndim; d++)
        chunk.size[d] = FV_MIN(n->lattice->chunk[d], n->lattice->shape[d]);
    chunk = fv__rebuild_region(&chunk, &n->in[0]->image);
    return lay_out(&x, &n->in[0]->image, &chunk, b->connectivity, true, NULL);
}

/* What the merge knows: the final result at the terminals, and the range of values in the whole image. */
static fv_status take_results(fv_run *r, box *x, int64_t chunk, fv_error *error) {
    const void *data;
    size_t      size;
    int64_t     count = find_terminals(x, r->need.lattice, NULL);
    FV_TRY(r->results->get(r->results, chunk, &data, &size, error));
    if (size != (size_t)count * 8 + (size_t)x->groups * sizeof *x->range)
        return fv_fail(error, FV_ERROR_INTERNAL, "the levels of chunk %lld do not fit it", (long long)chunk);
    for (int64_t i = 0; i < x->cells; i++)
        if (x->terminal[i] != NONE) key_set(x, x->now, i, ((const uint64_t *)data)[x->terminal[i]]);
    memcpy(x->range, (const char *)data + count * 8, (size_t)x->groups * sizeof *x->range);
    return FV_OK;
}

/* Whether the values span at least h: otherwise nothing stands out by h, not even the highest voxel. */
static bool spans(const fv__rebuild *b, fv_dtype dtype, const fv__rebuild_range *range) {
    uint64_t lower;
    if (range->low >= range->high) return false;
    return lower_key(b, dtype, range->high, &lower) && lower >= range->low;
}

static void put_row(const box *x, const fv__rebuild *b, const fv_region *part, const int64_t *position, const fv_run *r,
                    bool standing) {
    int64_t  first = cell_at(x, position), stride = r->out->stride[x->axis[2]];
    char    *to = fv__block_at(r->out, position);
    fv_dtype dtype = x->image->dtype;
    for (int64_t i = 0; i < part->size[x->axis[2]]; i++) {
        uint64_t now = key_get(x, x->now, first + i), lower;
        if (b->kind == FV__SEEDED)
            fv__key_store(to + i * stride * (int64_t)fv_dtype_size(dtype), dtype, turn(b, dtype, now));
        else
            to[i * stride] = standing && lower_key(b, dtype, key_get(x, x->mask, first + i), &lower) && now == lower;
    }
}

static void put(const box *x, const fv__rebuild *b, const fv_region *part, const fv_run *r) {
    int       last = part->ndim - 1;
    fv_region starts = *part; /* of rows along x, which need not be the last axis */
    fv_rows   rows;
    starts.size[x->axis[2]] = 1;
    for (fv__rows_begin(&rows, &starts); fv__rows_next(&rows);)
        for (int64_t i = 0; i < starts.size[last]; i++) {
            int64_t position[FV_MAX_DIMS];
            memcpy(position, rows.position, sizeof position);
            position[last] += i;
            int64_t group = cell_at(x, position) / x->group_stride;
            put_row(x, b, part, position, r, b->kind == FV__SEEDED || spans(b, x->image->dtype, &x->range[group]));
        }
}

fv_status fv__rebuild_run(fv_run *r, const fv__rebuild *b, fv_error *error) {
    fv_chunks chunks;
    for (fv__chunks_begin(&chunks, r->need.lattice, &r->need.region); fv__chunks_next(&chunks);) {
        fv_region own = fv__lattice_chunk(r->need.lattice, chunks.index), part = fv__region_intersect(&own, &r->need.region);
        fv_region region = fv__rebuild_region(&own, &r->need.in[0]->image);
        bool      seeded = b->kind == FV__SEEDED;
        fv_block  first = fv__block_window(r->in[0], &region), second;
        box       x;
        if (seeded) second = fv__block_window(r->in[1], &region);
        lay_out(&x, &r->need.in[0]->image, &region, b->connectivity, true, r->scratch);
        FV_TRY(check_size(&x, error));
        load(&x, b, &first, seeded ? &second : &first);
        if (is_cut(&r->need)) FV_TRY(take_results(r, &x, chunks.index, error));
        rebuild(&x);
        put(&x, b, &part, r);
    }
    return FV_OK;
}
