/* neighbours: a table of the labels that touch each other, with the area of their contact.
 *
 * A task looks at its chunk and the next voxel along each spatial axis, so every face between two voxels is seen once. It
 * gathers pairs in a hash table and writes them as a sorted run; when the table is full it writes several.
 */
#include "base/hash_table.h"
#include "op/scratch.h"
#include "op/sorted_runs.h"

typedef struct {
    bool background;
} neighbours;

static const fv_param params[] = {
    FV_PARAM(neighbours, background, .def = "false", .doc = "also list the contact of each label with the background, label 0"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "labels", FV_KIND_IMAGE, .doc = "label image; 0 is background" }, FV_INPUT_END };

#define MOST_PAIRS ((int64_t)1 << 16) /* gathered before a run is written */

typedef struct {
    fv_run_key key;
    int64_t    faces[3];
} pair; /* key: the lesser and the greater label; faces across each axis */

static fv_status infer(fv_infer *i, fv_error *error) {
    static const fv_table_type table = { 4,
                                         { { "label_a", FV_COLUMN_INTEGER },
                                           { "label_b", FV_COLUMN_INTEGER },
                                           { "faces", FV_COLUMN_INTEGER },
                                           { "area", FV_COLUMN_REAL } } };
    const fv_image_type       *labels = &i->in[0]->image;
    int                        spatial[FV_MAX_DIMS], n = fv_image_type_spatial(labels, spatial);
    if (labels->dtype != FV_BOOL && !fv_dtype_is_integer(labels->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "labels is %s; it must be an integer image, such as label() makes",
                       fv_dtype_name(labels->dtype));
    if (n < 1 || n > 3)
        return fv_fail(error, FV_ERROR_USAGE, "labels has %d spatial axes; one to three named z, y, x are needed", n);
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = &table };
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    int     spatial[FV_MAX_DIMS], count = fv_image_type_spatial(&n->in[0]->image, spatial);
    int64_t none[FV_MAX_DIMS] = { 0 }, next[FV_MAX_DIMS] = { 0 };
    for (int i = 0; i < count; i++) next[spatial[i]] = 1;
    fv_region grown = fv__region_grow(&n->region, none, next);
    in[0] = fv__region_clip(&grown, n->in[0]->image.shape);
}

/* ---------------------------------------------------------------- gathering a chunk */

typedef struct {
    int64_t       capacity, count;
    pair         *pairs;
    fv_hash_table table; /* of pairs */
    fv_bytes     *partial;
} gather;

static size_t lay_out(gather *g, const fv_need *n, void *scratch) {
    fv_scratch pieces = { scratch, 0 };
    g->capacity = FV_MAX(FV_MIN(3 * fv__region_voxels(&n->region), MOST_PAIRS), 1);
    int64_t slots = fv__hash_table_slots(g->capacity);
    g->pairs = fv__scratch_take(&pieces, g->capacity * (int64_t)sizeof *g->pairs);
    g->table.slot = fv__scratch_take(&pieces, slots * (int64_t)sizeof *g->table.slot);
    g->table.mask = (uint64_t)slots - 1;
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    gather g;
    return lay_out(&g, n, NULL);
}

static size_t bound(const fv_need *n) {
    gather  g;
    int64_t faces = 3 * fv__region_voxels(&n->region);
    lay_out(&g, n, NULL);
    return (size_t)(faces * (int64_t)sizeof(pair) + (faces / g.capacity + 1) * (int64_t)sizeof(int64_t));
}

static int by_key(const void *a, const void *b) {
    const fv_run_key *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->second < y->second ? -1 : x->second > y->second;
}

/* In place: kernels do not allocate. */
static void sift(pair *p, int64_t root, int64_t count) {
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && by_key(&p[child + 1], &p[child]) > 0) child++;
        if (by_key(&p[root], &p[child]) >= 0) return;
        pair swap = p[root];
        p[root] = p[child];
        p[child] = swap;
    }
}

/* Leaves the table empty. */
static void write_run(gather *g) {
    for (int64_t i = g->count / 2 - 1; i >= 0; i--) sift(g->pairs, i, g->count);
    for (int64_t i = g->count - 1; i > 0; i--) {
        pair swap = g->pairs[0];
        g->pairs[0] = g->pairs[i];
        g->pairs[i] = swap;
        sift(g->pairs, 0, i);
    }
    size_t begun = fv__sorted_run_begin(g->partial);
    fv__bytes_append(g->partial, g->pairs, (size_t)g->count * sizeof *g->pairs);
    fv__sorted_run_end(g->partial, begun);
    memset(g->table.slot, 0, (g->table.mask + 1) * sizeof *g->table.slot);
    g->count = 0;
}

typedef struct {
    const pair *pairs;
    int64_t     a, b;
} wanted;

static bool is_wanted(const void *context, uint32_t number) {
    const wanted     *w = context;
    const fv_run_key *key = &w->pairs[number].key;
    return key->first == w->a && key->second == w->b;
}

static pair *find(gather *g, int64_t a, int64_t b) {
    wanted   w = { g->pairs, a, b };
    uint64_t place = fv__hash_table_find(&g->table, false, fv__labels_hash(a, b), is_wanted, &w);
    if (g->table.slot[place]) return &g->pairs[g->table.slot[place] - 1];
    if (g->count == g->capacity) {
        write_run(g);
        return find(g, a, b);
    }
    g->pairs[g->count] = (pair){ .key = { a, b } };
    g->table.slot[place] = (uint32_t)++g->count;
    return &g->pairs[g->count - 1];
}

/* ---------------------------------------------------------------- rows of faces */

typedef struct {
    gather *g;
    bool    background;
    int     axis;
    pair   *latest;
    int64_t a, b;
} counting;

static void count_face(counting *c, int64_t a, int64_t b) {
    if (!c->background && (!a || !b)) return;
    if (!c->latest || a != c->a || b != c->b) {
        c->latest = find(c->g, FV_MIN(a, b), FV_MAX(a, b));
        c->a = a, c->b = b;
    }
    c->latest->faces[c->axis]++;
}

/* Most voxels are like their neighbour, so a row is looked through for a difference in strips first. */
#define FACES(name, type)                                                                                                        \
    static void name(counting *c, const void *one, const void *other, int64_t n) {                                               \
        const type *a = one, *b = other;                                                                                         \
        for (int64_t i = 0; i < n;) {                                                                                            \
            int64_t end = FV_MIN(n, i + 64);                                                                                     \
            type    differ = 0;                                                                                                  \
            for (int64_t k = i; k < end; k++) differ |= (type)(a[k] ^ b[k]);                                                     \
            if (!differ) i = end;                                                                                                \
            for (; i < end; i++)                                                                                                 \
                if (a[i] != b[i]) count_face(c, (int64_t)a[i], (int64_t)b[i]);                                                   \
        }                                                                                                                        \
    }
FACES(faces_uint8, uint8_t)
FACES(faces_int8, int8_t)
FACES(faces_uint16, uint16_t)
FACES(faces_int16, int16_t)
FACES(faces_uint32, uint32_t)
FACES(faces_int32, int32_t)
FACES(faces_int64, int64_t)

static void count_faces(counting *c, fv_dtype dtype, const void *one, const void *other, int64_t n) {
    switch (dtype) {
    case FV_BOOL:
    case FV_UINT8: faces_uint8(c, one, other, n); break;
    case FV_INT8: faces_int8(c, one, other, n); break;
    case FV_UINT16: faces_uint16(c, one, other, n); break;
    case FV_INT16: faces_int16(c, one, other, n); break;
    case FV_UINT32: faces_uint32(c, one, other, n); break;
    case FV_INT32: faces_int32(c, one, other, n); break;
    default: faces_int64(c, one, other, n); break;
    }
}

/* Faces across one axis whose voxel of lower coordinate lies in the chunk. */
static void count_axis(fv_run *r, gather *g, int axis, int which) {
    const fv_block *in = r->in[0];
    fv_region       region = r->need.region;
    counting        c = { .g = g, .background = ((const neighbours *)r->need.params)->background, .axis = which };
    int64_t         end = in->region.start[axis] + in->region.size[axis] - 1, step = in->stride[axis];
    region.size[axis] = FV_MIN(region.size[axis], end - region.start[axis]);
    fv_rows rows;
    if (fv__region_empty(&region)) return;
    for (fv__rows_begin(&rows, &region); fv__rows_next(&rows);) {
        const char *one = fv__block_at(in, rows.position), *other = one + step * (int64_t)fv_dtype_size(in->dtype);
        count_faces(&c, in->dtype, one, other, region.size[region.ndim - 1]);
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    int    spatial[FV_MAX_DIMS], n = fv_image_type_spatial(&r->need.in[0]->image, spatial);
    gather g = { .partial = r->partial };
    lay_out(&g, &r->need, r->scratch);
    memset(g.table.slot, 0, (g.table.mask + 1) * sizeof *g.table.slot);
    for (int i = 0; i < n; i++) count_axis(r, &g, spatial[i], i);
    write_run(&g);
    return FV_OK;
}

/* ---------------------------------------------------------------- merging */

typedef struct {
    fv_row_writer rows;
    double        area[3];
    pair          sum;
} merge;

static void key(const void *context, const uint8_t *record, fv_run_key *key) {
    (void)context;
    memcpy(key, record, sizeof *key);
}

static void start(void *context, const fv_run_key *key) { ((merge *)context)->sum = (pair){ .key = *key }; }

static const uint8_t *add(void *context, const uint8_t *record, const fv_region *chunk) {
    merge *m = context;
    pair   p;
    (void)chunk;
    memcpy(&p, record, sizeof p);
    for (int i = 0; i < 3; i++) m->sum.faces[i] += p.faces[i];
    return record + sizeof p;
}

static fv_status end(void *context, fv_error *error) {
    merge         *m = context;
    const int64_t *faces = m->sum.faces;
    fv_cell       *row;
    if (m->rows.f->in[0]->image.dtype == FV_UINT64 && m->sum.key.first < 0)
        return fv_fail(error, FV_ERROR_INPUT, "labels holds %llu; labels must be below 2^63",
                       (unsigned long long)m->sum.key.first);
    FV_TRY(fv__row_writer_next(&m->rows, &row, error));
    row[0].integer = m->sum.key.first;
    row[1].integer = m->sum.key.second;
    row[2].integer = faces[0] + faces[1] + faces[2];
    row[3].real = (double)faces[0] * m->area[0] + (double)faces[1] * m->area[1] + (double)faces[2] * m->area[2];
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    static const fv_sorted_runs runs = { .most = sizeof(pair), .key = key, .start = start, .add = add, .end = end };
    const fv_image_type        *image = &f->in[0]->image;
    merge                       m = { .area = { 1, 1, 1 } };
    int                         spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) m.area[i] *= k == i ? 1 : image->spacing[spatial[k]];
    fv__row_writer_init(&m.rows, f);
    fv_status status = fv__sorted_runs_merge(f, &runs, &m, error);
    if (status == FV_OK) status = fv__row_writer_flush(&m.rows, error);
    fv__row_writer_release(&m.rows);
    return status;
}

/* ---------------------------------------------------------------- the operator */

static double cost(const fv_need *n) {
    (void)n;
    return 2;
}

static const fv_pass passes[] = {
    { .name = "gather", .need = need, .scratch = scratch, .bound = bound, .run = run, .finish = finish }, FV_PASS_END
};

static const fv_column_doc columns[] = {
    { "label_a", .doc = "the smaller label of the pair" },
    { "label_b", .doc = "the larger label of the pair" },
    { "faces", .doc = "number of faces between a voxel of one and a voxel of the other" },
    { "area", "area", .doc = "area of the contact: faces times their size; in a plane, its length" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(neighbours) = {
    .name = "neighbours",
    .family = "measurement",
    .brief = "list the pairs of objects that touch, with the area of their contact",
    .also = "rag, neighbors, region_adjacency",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(neighbours),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "The result is a table with one row for each pair of labels that share a face of a voxel (in a plane: an edge of "
           "a pixel). Voxels that meet only in an edge or a corner do not touch. Labels that are separated by a line of "
           "background, as watershed makes with line = true, do not touch either.",
    .example = "mask = phantom(\"cells\", [200, 200], noise = 0) > 100\n"
               "inside = distance(mask)\n"
               "cells = watershed(0 - inside, label(peaks(inside, min_distance = 7)), mask)\n"
               "neighbours(cells)",
    .see = "measure watershed group boundaries",
    .columns = columns,
};
