/* watershed_queue: the watershed as scikit-image floods it, voxel by voxel in the order of a queue.
 *
 * Voxels wait in a binary heap, ordered by value and then by the time at which they came. Markers all come at time 0, so those of
 * equal value leave in the order that the heap's own steps give; these are the steps of scikit-image, so the order is the same.
 * The order of a queue cannot be cut into chunks: one task floods an image, or each plane or volume of one with more axes.
 *
 * The heap cannot outgrow its room. In plain floods a voxel waits once. With compactness or a line it waits once for each
 * neighbour that was flooded before it, so that of two neighbours one at most waits for the other. What is more is counted.
 */
#include "kernels/keys.h"
#include "op/kernels.h"
#include "op/scratch.h"
#include "ops/segmentation/flood.h"
#include <stdlib.h>

typedef struct {
    int64_t connectivity;
    bool    line;
    double  compactness;
    fv_list neighbours;
} watershed_queue;

static const fv_param params[] = {
    FV_PARAM(watershed_queue, connectivity, .def = "1", .min = 1, .max = 3,
             .doc = "which voxels are connected: 1 by faces, 2 also by edges, 3 also by corners"),
    FV_PARAM(watershed_queue, line, .def = "false", .doc = "leave a line of 0 between basins"),
    FV_PARAM(watershed_queue, compactness, .def = "0", .min = 0, .max = 1e300,
             .doc = "what a voxel of distance from the marker adds to the relief; the larger, the rounder the basins"),
    FV_PARAM(watershed_queue, neighbours, .def = "", .min = -1e6, .max = 1e6,
             .doc = "steps to the neighbours in the order in which they are visited, one number for each spatial axis; left out: "
                    "those of connectivity, the nearest first"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "relief that is flooded upwards from the markers" },
    { "markers", FV_KIND_IMAGE, .doc = "label image of the same shape; 0 is no marker" },
    { "mask", FV_KIND_IMAGE, .optional = true, .doc = "bool image of the same shape: where to flood; left out: everywhere" },
    FV_INPUT_END,
};

enum { IMAGE, MARKERS, MASK };
#define CLOSED UINT32_MAX /* the seed of cells that are not flooded */

typedef struct {
    uint64_t key; /* ordered as the values are */
    uint32_t age, cell;
} waiting;

typedef struct {
    int       n, axis[3];                              /* spatial axes */
    int64_t   size[3], stride[3], before[3], after[3]; /* voxels along them, cells from one to the next, cells around them */
    int64_t   cells, voxels;
    int64_t   room, count, spare; /* of the heap; spare: that is not needed */
    int64_t  *offset;             /* of each neighbour, in cells */
    int       noffsets;
    double   *value; /* per cell */
    uint32_t *seed;  /* per cell: the marker that it was flooded from, 0 before that */
    waiting  *heap;
    uint32_t *level;  /* cells that were reached at the height of the flood */
    uint32_t *source; /* by age: the marker that a flood comes from */
    uint32_t *place;  /* by marker: its cell */
    int64_t  *label;  /* and its label */
    uint32_t  seeds, age;
    double    compactness;
    bool      line;
} state;

/* ---------------------------------------------------------------- neighbours */

/* Steps to the neighbours, which a list gives or a connectivity: 26 of three numbers at most, the nearest first. */
static fv_list neighbours_of(const watershed_queue *p, int n, double room[26 * 3]) {
    int64_t count = 0;
    if (p->neighbours.count) return p->neighbours;
    for (int far = 1; far <= p->connectivity; far++)
        for (int code = 0; code < 27; code++) {
            int step[3] = { code / 9 - 1, code / 3 % 3 - 1, code % 3 - 1 }, steps = 0;
            for (int d = 0; d < 3; d++) steps += step[d] != 0;
            if (steps != far || (n < 3 && step[0]) || (n < 2 && step[1])) continue;
            for (int d = 3 - n; d < 3; d++) room[count++] = step[d];
        }
    return (fv_list){ count, room };
}

/* A step that leads out of every voxel's image is none. */
static bool reaches(const state *s, const double *step) {
    for (int d = 0; d < s->n; d++)
        if (fabs(step[d]) >= (double)s->size[d]) return false;
    return true;
}

/* Neighbours, of which those that lie opposite to another count once. */
static int64_t pairs_of(const state *s, const fv_list *steps) {
    int64_t pairs = 0;
    for (int64_t k = 0; k < steps->count; k += s->n) {
        bool opposite = false;
        for (int64_t j = 0; j < k && !opposite; j += s->n) {
            opposite = true;
            for (int d = 0; d < s->n; d++) opposite = opposite && steps->value[j + d] == -steps->value[k + d];
        }
        pairs += reaches(s, steps->value + k) && !opposite;
    }
    return pairs;
}

static void lay_out_cells(state *s, const fv_image_type *image, const watershed_queue *p, const fv_list *steps) {
    int spatial[FV_MAX_DIMS];
    *s = (state){ .n = fv_image_type_spatial(image, spatial), .compactness = p->compactness, .line = p->line, .cells = 1 };
    for (int d = 0; d < s->n; d++) {
        s->axis[d] = spatial[d];
        s->size[d] = image->shape[spatial[d]];
    }
    for (int64_t k = 0; k < steps->count; k += s->n)
        for (int d = 0; d < s->n && reaches(s, steps->value + k); d++) {
            s->before[d] = FV_MAX(s->before[d], (int64_t)-steps->value[k + d]);
            s->after[d] = FV_MAX(s->after[d], (int64_t)steps->value[k + d]);
        }
    for (int d = s->n - 1; d >= 0; d--) {
        s->stride[d] = s->cells;
        s->cells *= s->before[d] + s->size[d] + s->after[d];
    }
    int64_t voxels = 1;
    for (int d = 0; d < s->n; d++) voxels *= s->size[d];
    s->voxels = voxels;
    s->room = s->line || s->compactness > 0 ? voxels * (2 + pairs_of(s, steps)) : voxels;
}

static size_t lay_out(state *s, const fv_image_type *image, const watershed_queue *p, void *memory) {
    double     room[26 * 3];
    int        n, spatial[FV_MAX_DIMS];
    fv_scratch pieces = { memory };
    n = fv_image_type_spatial(image, spatial);
    fv_list steps = neighbours_of(p, n, room);
    lay_out_cells(s, image, p, &steps);
    bool again = s->line || s->compactness > 0;
    s->offset = fv__scratch_take(&pieces, steps.count / n * (int64_t)sizeof *s->offset);
    s->value = fv__scratch_take(&pieces, s->cells * (int64_t)sizeof *s->value);
    s->seed = fv__scratch_take(&pieces, s->cells * (int64_t)sizeof *s->seed);
    s->heap = fv__scratch_take(&pieces, s->room * (int64_t)sizeof *s->heap);
    s->level = fv__scratch_take(&pieces, again ? 0 : s->voxels * (int64_t)sizeof *s->level);
    s->source = fv__scratch_take(&pieces, again ? (s->room + 2) * (int64_t)sizeof *s->source : 0);
    s->place = fv__scratch_take(&pieces, (s->cells + 1) * (int64_t)sizeof *s->place);
    s->label = fv__scratch_take(&pieces, (s->cells + 1) * (int64_t)sizeof *s->label);
    for (int64_t k = 0; memory && k < steps.count; k += n) {
        if (!reaches(s, steps.value + k)) continue;
        int64_t offset = 0;
        for (int d = 0; d < n; d++) offset += (int64_t)steps.value[k + d] * s->stride[d];
        if (offset) s->offset[s->noffsets++] = offset;
    }
    return pieces.used;
}

/* ---------------------------------------------------------------- inference and regions */

static fv_status infer(fv_infer *i, fv_error *error) {
    const watershed_queue *p = i->params;
    double                 room[26 * 3];
    state                  s;
    FV_TRY(fv__flood_infer(i, p->connectivity, error));
    int spatial[FV_MAX_DIMS], n = fv_image_type_spatial(&i->in[IMAGE]->image, spatial);
    for (int64_t k = 0; k < p->neighbours.count; k++)
        if (p->neighbours.value[k] != floor(p->neighbours.value[k]))
            return fv_fail(error, FV_ERROR_USAGE, "neighbours has %g; steps are whole numbers", p->neighbours.value[k]);
    if (p->neighbours.count % n)
        return fv_fail(error, FV_ERROR_USAGE,
                       "neighbours has %lld numbers; there must be %d for each neighbour, one for each "
                       "spatial axis",
                       (long long)p->neighbours.count, n);
    double voxels = 1;
    for (int d = 0; d < n; d++) voxels *= (double)i->in[IMAGE]->image.shape[spatial[d]];
    if (voxels >= 1 << 30)
        return fv_fail(error, FV_ERROR_USAGE,
                       "image has %.0f voxels, too many for one queue; watershed floods images of any size", voxels);
    fv_list steps = neighbours_of(p, n, room);
    lay_out_cells(&s, &i->in[IMAGE]->image, p, &steps);
    if (s.cells >= CLOSED || s.room >= CLOSED - 2)
        return fv_fail(error, FV_ERROR_USAGE,
                       "image has %.0f voxels, too many for one queue with so many neighbours; watershed "
                       "floods images of any size",
                       voxels);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    int spatial[FV_MAX_DIMS], count = fv_image_type_spatial(&n->in[IMAGE]->image, spatial);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < count; k++) {
            in[i].start[spatial[k]] = 0;
            in[i].size[spatial[k]] = n->in[IMAGE]->image.shape[spatial[k]];
        }
}

static void slab(const fv_need *n, int64_t *chunk) {
    int spatial[FV_MAX_DIMS], count = fv_image_type_spatial(&n->out->image, spatial);
    for (int d = 0; d < n->out->image.ndim; d++) chunk[d] = 1;
    for (int k = 0; k < count; k++) chunk[spatial[k]] = n->out->image.shape[spatial[k]];
}

static size_t scratch(const fv_need *n) {
    state s;
    return lay_out(&s, &n->in[IMAGE]->image, n->params, NULL);
}

/* ---------------------------------------------------------------- the heap */

static inline bool sooner(const waiting *a, const waiting *b) {
    return (a->key < b->key) | ((a->key == b->key) & (a->age < b->age));
}

static inline void push(state *s, waiting w) {
    int64_t at = s->count++;
    for (int64_t up; at && (up = (at - 1) / 2, sooner(&w, &s->heap[up])); at = up) s->heap[at] = s->heap[up];
    s->heap[at] = w;
}

/* The last one takes the place of the first: it goes the way of the sooner ones to a leaf, and from there up to where it belongs,
 * above its equals. */
static inline waiting pop(state *s) {
    waiting *heap = s->heap, first = heap[0], last = heap[--s->count];
    int64_t  at = 0, count = s->count, down = 1;
    for (; down + 1 < count; down = 2 * at + 1) {
        down += sooner(&heap[down + 1], &heap[down]);
        heap[at] = heap[down];
        at = down;
    }
    if (down < count) {
        heap[at] = heap[down];
        at = down;
    }
    for (int64_t up; at && (up = (at - 1) / 2, !sooner(&heap[up], &last)); at = up) heap[at] = heap[up];
    heap[at] = last;
    return first;
}

/* The same for a heap whose order nobody sees: four ways from each place, which lie side by side. */
enum { WAYS = 4 };

static inline void insert(state *s, waiting w) {
    int64_t at = s->count++;
    for (int64_t up; at && (up = (at - 1) / WAYS, sooner(&w, &s->heap[up])); at = up) s->heap[at] = s->heap[up];
    s->heap[at] = w;
}

/* Puts one to a place whose ways down are in order. */
static inline void sink(state *s, int64_t at, waiting w) {
    waiting *heap = s->heap;
    for (int64_t down; (down = WAYS * at + 1) < s->count; at = down) {
        int64_t end = FV_MIN(down + WAYS, s->count);
        for (int64_t k = down + 1; k < end; k++) down = sooner(&heap[k], &heap[down]) ? k : down;
        if (!sooner(&heap[down], &w)) break;
        heap[at] = heap[down];
    }
    heap[at] = w;
}

static inline waiting pop_soonest(state *s) {
    waiting first = s->heap[0], last = s->heap[--s->count];
    if (s->count) sink(s, 0, last);
    return first;
}

/* ---------------------------------------------------------------- flooding */

static double distance(const state *s, int64_t a, int64_t b) {
    double sum = 0;
    for (int d = 0; d < s->n; d++) {
        double apart = (double)(a / s->stride[d] - b / s->stride[d]);
        sum += apart * apart;
        a %= s->stride[d];
        b %= s->stride[d];
    }
    return sqrt(sum);
}

/* Whether a neighbour of a cell was flooded from a marker of another label. */
static bool on_line(const state *s, int64_t cell, uint32_t seed) {
    for (int k = 0; k < s->noffsets; k++) {
        uint32_t near = s->seed[cell + s->offset[k]];
        if (near && near != CLOSED && s->label[near] != s->label[seed]) return true;
    }
    return false;
}

/* Neighbours lie anywhere in memory; those of the one that is likely to come next are fetched meanwhile. */
static inline void fetch_next(const state *s) {
    for (int k = 0; s->count && k < s->noffsets; k++) {
        int64_t near = s->heap[0].cell + s->offset[k];
        __builtin_prefetch(&s->seed[near]);
        __builtin_prefetch(&s->value[near]);
    }
}

/* A flood that has come over a height does not fall behind it: those that come over equal heights share what lies behind. */
static inline waiting reached(state *s, const waiting *from, int64_t cell, double value) {
    uint64_t key = fv__key_f64(value);
    return (waiting){ FV_MAX(key, from->key), s->age++, (uint32_t)cell };
}

/* A voxel belongs to the first flood that reaches it. As long as there may be markers of equal value. */
static void flood_tied(state *s, uint64_t tied) {
    while (s->count && s->heap[0].key <= tied) {
        waiting  w = pop(s);
        uint32_t seed = s->seed[w.cell];
        fetch_next(s);
        for (int k = 0; k < s->noffsets; k++) {
            int64_t near = w.cell + s->offset[k];
            if (s->seed[near]) continue;
            s->seed[near] = seed;
            push(s, reached(s, &w, near, s->value[near]));
        }
    }
}

/* The same where no two that wait are equal, so that any heap gives the same order. What is reached at the height of the flood
 * comes behind all that waits for this height, in its own order, so it needs no heap. */
static void flood(state *s) {
    int64_t first = 0, end = 0;
    waiting w = { 0 };
    for (int64_t at = (s->count - 2) / WAYS; at >= 0; at--) sink(s, at, s->heap[at]);
    while (s->count || first < end) {
        if (first == end || (s->count && s->heap[0].key == w.key))
            w = pop_soonest(s);
        else
            w.cell = s->level[first++];
        fetch_next(s);
        uint32_t seed = s->seed[w.cell];
        for (int k = 0; k < s->noffsets; k++) {
            int64_t near = w.cell + s->offset[k];
            if (s->seed[near]) continue;
            s->seed[near] = seed;
            waiting next = reached(s, &w, near, s->value[near]);
            if (next.key == w.key)
                s->level[end++] = next.cell;
            else
                insert(s, next);
        }
    }
}

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The highest value that several markers have, as a key; 0: none. There is room for their keys behind the labels, or there are so
 * many that some may be taken for equal. */
static uint64_t highest_tie(const state *s) {
    uint64_t *keys = (uint64_t *)(s->label + s->seeds + 1);
    if (2 * (int64_t)s->seeds > s->cells) return UINT64_MAX;
    for (uint32_t k = 0; k < s->seeds; k++) keys[k] = fv__key_f64(s->value[s->place[k + 1]]);
    qsort(keys, s->seeds, sizeof *keys, by_size);
    for (int64_t k = (int64_t)s->seeds - 1; k > 0; k--)
        if (keys[k] == keys[k - 1]) return keys[k];
    return 0;
}

/* A voxel may wait several times, and belongs to the flood whose turn comes first. One on the line belongs to none, but floods go
 * on from it, each time that it waited. All but the first of these come too late to change anything but the heap, and so the
 * order of markers of equal value: where there is no more room, they are left out. */
static void flood_again(state *s) {
    bool line = s->line && !(s->compactness > 0);
    while (s->count) {
        waiting  w = pop(s);
        uint32_t seed = w.age ? s->source[w.age] : s->seed[w.cell];
        bool     late = w.age && s->seed[w.cell];
        if (late && (s->seed[w.cell] != CLOSED || s->spare < s->noffsets)) continue;
        fetch_next(s);
        if (!late) s->seed[w.cell] = line && on_line(s, w.cell, seed) ? CLOSED : seed;
        for (int k = 0; k < s->noffsets; k++) {
            int64_t near = w.cell + s->offset[k];
            if (s->seed[near]) continue;
            double value = s->value[near];
            if (s->compactness > 0) value += s->compactness * distance(s, near, s->place[seed]);
            s->source[s->age] = seed;
            s->spare -= late;
            push(s, reached(s, &w, near, value));
        }
    }
}

/* ---------------------------------------------------------------- voxels and cells */

/* n elements that lie stride apart as another type. */
static void convert(void *to, fv_dtype to_type, const void *from, fv_dtype from_type, int64_t stride, int64_t n) {
    const fv_kernels *kernels = fv__kernels_current();
    size_t            one = fv_dtype_size(to_type), step = fv_dtype_size(from_type) * (size_t)stride;
    if (stride == 1)
        kernels->convert(to, to_type, from, from_type, n);
    else
        for (int64_t i = 0; i < n; i++)
            kernels->convert((char *)to + (size_t)i * one, to_type, (const char *)from + (size_t)i * step, from_type, 1);
}

/* The rows of cells that hold voxels, one after the other: where a row begins among the cells and in the image. */
static bool next_row(const state *s, int64_t row, int64_t *position, int64_t *cell) {
    *cell = s->before[s->n - 1];
    for (int d = s->n - 2; d >= 0; row /= s->size[d], d--) {
        position[s->axis[d]] = row % s->size[d];
        *cell += (row % s->size[d] + s->before[d]) * s->stride[d];
    }
    position[s->axis[s->n - 1]] = 0;
    return row == 0;
}

static void load_row(state *s, const fv_run *r, const int64_t *position, int64_t cell) {
    int             x = s->axis[s->n - 1];
    const fv_block *image = r->in[IMAGE], *markers = r->in[MARKERS], *mask = r->in[MASK];
    int64_t         n = s->size[s->n - 1];
    const uint8_t  *open = mask ? fv__block_at(mask, position) : NULL;
    const char     *marker = fv__block_at(markers, position);
    size_t          one = fv_dtype_size(markers->dtype);
    convert(s->value + cell, FV_FLOAT64, fv__block_at(image, position), image->dtype, image->stride[x], n);
    for (int64_t i = 0; i < n; i++) {
        s->seed[cell + i] = open && !open[i * mask->stride[x]] ? CLOSED : 0;
        const char *value = marker + i * markers->stride[x] * (int64_t)one;
        if (s->seed[cell + i] || !fv__marker_set(value, one)) continue;
        s->seed[cell + i] = ++s->seeds;
        s->place[s->seeds] = (uint32_t)(cell + i);
        convert(&s->label[s->seeds], FV_INT64, value, markers->dtype == FV_UINT64 ? FV_INT64 : markers->dtype, 1, 1);
    }
}

/* A marker keeps its label, on a line too. */
static void paint_row(const state *s, const fv_run *r, const int64_t *position, int64_t cell, int64_t first, int64_t n) {
    int      x = s->axis[s->n - 1];
    fv_dtype dtype = r->out->dtype == FV_UINT64 ? FV_INT64 : r->out->dtype;
    size_t   one = fv_dtype_size(dtype);
    char    *to = fv__block_at(r->out, position);
    for (int64_t i = 0; i < n; i++) {
        uint32_t seed = s->seed[cell + first + i];
        int64_t  label = seed == CLOSED ? 0 : s->label[seed];
        memcpy(to + i * r->out->stride[x] * (int64_t)one, &label, one); /* the low bytes */
    }
}

static void flood_group(state *s, const fv_run *r, const int64_t *group) {
    int64_t position[FV_MAX_DIMS], cell;
    int     x = s->axis[s->n - 1];
    memcpy(position, group, sizeof position);
    s->count = s->seeds = 0;
    s->spare = s->voxels;
    s->age = 1;
    s->label[0] = 0;
    for (int64_t i = 0; i < s->cells; i++) s->seed[i] = CLOSED;
    for (int64_t row = 0; next_row(s, row, position, &cell); row++) load_row(s, r, position, cell);
    for (uint32_t k = 1; k <= s->seeds; k++) push(s, (waiting){ fv__key_f64(s->value[s->place[k]]), 0, s->place[k] });
    if (s->line || s->compactness > 0)
        flood_again(s);
    else {
        flood_tied(s, highest_tie(s));
        flood(s);
    }
    for (uint32_t k = 1; k <= s->seeds; k++) s->seed[s->place[k]] = k;
    const fv_region *out = &r->out->region;
    for (int64_t row = 0; next_row(s, row, position, &cell); row++) {
        bool inside = true;
        for (int d = 0; d < s->n - 1; d++) {
            int64_t at = position[s->axis[d]] - out->start[s->axis[d]];
            inside = inside && at >= 0 && at < out->size[s->axis[d]];
        }
        position[x] = out->start[x];
        if (inside) paint_row(s, r, position, cell, out->start[x], out->size[x]);
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    state     s;
    fv_region groups = r->need.region; /* first voxels of what is flooded together */
    fv_rows   rows;
    int       last = groups.ndim - 1;
    (void)error;
    lay_out(&s, &r->need.in[IMAGE]->image, r->need.params, r->scratch);
    for (int d = 0; d < s.n; d++) groups.size[s.axis[d]] = 1;
    for (fv__rows_begin(&rows, &groups); fv__rows_next(&rows);)
        for (int64_t i = 0; i < groups.size[last]; i++) {
            int64_t group[FV_MAX_DIMS];
            memcpy(group, rows.position, sizeof group);
            group[last] += i;
            flood_group(&s, r, group);
        }
    return FV_OK;
}

/* ---------------------------------------------------------------- the operator */

static double cost(const fv_need *n) {
    const watershed_queue *p = n->params;
    return p->line || p->compactness > 0 ? 400 : 150;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(watershed_queue) = {
    .name = "watershed_queue",
    .family = "segmentation",
    .brief = "the watershed as scikit-image floods it, voxel for voxel",
    .also = "skimage.segmentation.watershed, compact watershed",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(watershed_queue),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .doc =
        "Voxels are flooded one by one: the lowest first, and of equal ones the one that was reached first. So plateaus are "
        "divided between markers by distance. The result equals that of skimage.segmentation.watershed of scikit-image 0.26, "
        "with compactness and line too; with compactness there is no line. It has the type of the markers, and voxels that no "
        "marker reaches are 0. Nan counts as larger than "
        "infinity.\n"
        "A queue has one order, so an image is flooded by one task that holds all of it: 44 bytes a voxel, or with compactness "
        "or line 64 and 20 more for each pair of opposite neighbours. For images that are larger than memory, and for the use "
        "of all cores on one image, take watershed. Planes or volumes along other axes, such as time, are flooded side by "
        "side.",
    .citation = "Meyer, Un algorithme optimal pour la ligne de partage des eaux, AFCET 1991; Neubert and Protzel, Compact "
                "watershed and preemptive SLIC, ICPR 2014",
    .example = "cells = gaussian(phantom(\"cells\", [200, 200]), 2)\n"
               "markers = label(h_minima(cells, 10))\n"
               "watershed_queue(cells, markers, compactness = 1) |> write(\"basins.tif\")",
    .see = "watershed distance peaks label local_minima",
};
