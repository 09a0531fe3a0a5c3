/* overlaps: a table of the pairs of objects of two label images that share voxels.
 *
 * A task counts the pairs of its chunk and writes them as sorted runs. They are merged twice: for the sizes of the objects of the
 * second image, which are kept, and for the rows.
 */
#include "base/hash_table.h"
#include "op/record_gather.h"
#include <stdlib.h>

typedef struct {
    bool background;
} overlaps;

static const fv_param params[] = {
    FV_PARAM(overlaps, background, .def = "false", .doc = "also list what lies on the background of the other image, label 0"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "a", FV_KIND_IMAGE, .doc = "label image; 0 is background" },
                                   { "b", FV_KIND_IMAGE, .doc = "another one of the same shape" },
                                   FV_INPUT_END };

typedef struct {
    int64_t a, b, voxels;
} pair;

static fv_status infer(fv_infer *i, fv_error *error) {
    static const fv_table_type table = { 6,
                                         { { "label_a", FV_COLUMN_INTEGER },
                                           { "label_b", FV_COLUMN_INTEGER },
                                           { "voxels", FV_COLUMN_INTEGER },
                                           { "share_a", FV_COLUMN_REAL },
                                           { "share_b", FV_COLUMN_REAL },
                                           { "iou", FV_COLUMN_REAL } } };
    const fv_image_type       *a = &i->in[0]->image, *b = &i->in[1]->image;
    for (int k = 0; k < 2; k++) {
        fv_dtype dtype = i->in[k]->image.dtype;
        if (dtype != FV_BOOL && !fv_dtype_is_integer(dtype))
            return fv_fail(error, FV_ERROR_USAGE, "%s is %s; it must be an integer image, such as label() makes", inputs[k].name,
                           fv_dtype_name(dtype));
    }
    bool same = a->ndim == b->ndim;
    for (int d = 0; d < a->ndim && same; d++) same = a->shape[d] == b->shape[d];
    if (!same) return fv_fail(error, FV_ERROR_USAGE, "a and b have different shapes; both must be labels of the same image");
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = &table };
    return FV_OK;
}

/* ---------------------------------------------------------------- gathering a chunk */

static int by_labels(const pair *x, const pair *y) {
    return x->a != y->a ? (x->a < y->a ? -1 : 1) : x->b < y->b ? -1 : x->b > y->b;
}

static void add_voxels(pair *into, const pair *from) { into->voxels += from->voxels; }

FV_RECORD_GATHER(pair, by_labels, add_voxels, fv__records_append)

static size_t lay_out(records *g, const fv_need *n, void *scratch) {
    fv_scratch pieces = { scratch, 0 };
    records_lay_out(g, &pieces, fv__region_voxels(&n->region));
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    records g;
    return lay_out(&g, n, NULL);
}

static size_t bound(const fv_need *n) {
    records g;
    lay_out(&g, n, NULL);
    return records_bound(&g, fv__region_voxels(&n->region), sizeof(pair));
}

static int64_t label_at(fv_dtype dtype, const void *labels, int64_t i) {
    switch (dtype) {
    case FV_BOOL:
    case FV_UINT8: return ((const uint8_t *)labels)[i];
    case FV_INT8: return ((const int8_t *)labels)[i];
    case FV_UINT16: return ((const uint16_t *)labels)[i];
    case FV_INT16: return ((const int16_t *)labels)[i];
    case FV_UINT32: return ((const uint32_t *)labels)[i];
    case FV_INT32: return ((const int32_t *)labels)[i];
    default: return ((const int64_t *)labels)[i];
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    records g = { .partial = r->partial };
    fv_rows rows;
    int64_t n = r->need.region.size[r->need.region.ndim - 1];
    lay_out(&g, &r->need, r->scratch);
    for (fv__rows_begin(&rows, &r->need.region); fv__rows_next(&rows);) {
        const void *one = fv__block_at(r->in[0], rows.position), *other = fv__block_at(r->in[1], rows.position);
        for (int64_t i = 0, next; i < n; i = next) {
            int64_t a = label_at(r->in[0]->dtype, one, i), b = label_at(r->in[1]->dtype, other, i);
            for (next = i + 1;
                 next < n && label_at(r->in[0]->dtype, one, next) == a && label_at(r->in[1]->dtype, other, next) == b;)
                next++;
            if (!a && !b) continue;
            if ((r->in[0]->dtype == FV_UINT64 && a < 0) || (r->in[1]->dtype == FV_UINT64 && b < 0))
                return fv_fail(error, FV_ERROR_INPUT, "labels must be below 2^63");
            *records_next(&g) = (pair){ a, b, next - i };
        }
    }
    records_settle(&g, true);
    return FV_OK;
}

/* ---------------------------------------------------------------- merging */

typedef struct {
    int64_t label, voxels;
} size_of_label;

typedef struct {
    fv_row_writer  rows;
    bool           background;
    pair           sum;   /* under way */
    size_of_label *sizes; /* of the labels of b */
    int64_t        nsizes, capacity;
    fv_hash_table  table; /* of sizes by label */
    fv_bytes       of_a;  /* pairs of one label of a */
} merge;

typedef struct {
    const size_of_label *sizes;
    int64_t              label;
} wanted;

static bool is_wanted(const void *context, uint32_t number) {
    const wanted *w = context;
    return w->sizes[number].label == w->label;
}

static size_of_label *find_size(const merge *m, int64_t label) {
    wanted  w = { m->sizes, label };
    int64_t number = fv__hash_table_number(&m->table, fv__label_hash(label), is_wanted, &w);
    return number < 0 ? NULL : &m->sizes[number];
}

static void add_size(merge *m, int64_t label, int64_t voxels) {
    size_of_label *known = find_size(m, label);
    if (known) {
        known->voxels += voxels;
        return;
    }
    if (m->nsizes == m->capacity) {
        m->capacity = FV_MAX(2 * m->capacity, 512);
        m->sizes = fv__realloc(m->sizes, (size_t)m->capacity * sizeof *m->sizes);
    }
    fv__hash_table_reserve(&m->table, 1024, m->nsizes + 1);
    fv__hash_table_add(&m->table, true, (uint32_t)fv__label_hash(label), (uint32_t)m->nsizes);
    m->sizes[m->nsizes++] = (size_of_label){ label, voxels };
}

static void key(const void *context, const uint8_t *record, fv_run_key *key) {
    pair p;
    (void)context;
    memcpy(&p, record, sizeof p);
    *key = (fv_run_key){ p.a, p.b };
}

static void start(void *context, const fv_run_key *key) { ((merge *)context)->sum = (pair){ key->first, key->second, 0 }; }

static const uint8_t *add(void *context, const uint8_t *record, const fv_region *chunk) {
    pair p;
    (void)chunk;
    memcpy(&p, record, sizeof p);
    ((merge *)context)->sum.voxels += p.voxels;
    return record + sizeof p;
}

static fv_status end_sizes(void *context, fv_error *error) {
    merge *m = context;
    (void)error;
    add_size(m, m->sum.b, m->sum.voxels);
    return FV_OK;
}

/* The rows of one label of a: its size is the sum of all of them. */
static fv_status put_rows(merge *m, fv_error *error) {
    const pair *p = (const pair *)m->of_a.data;
    int64_t     n = (int64_t)(m->of_a.size / sizeof *p), of_a = 0;
    for (int64_t i = 0; i < n; i++) of_a += p[i].voxels;
    for (int64_t i = 0; i < n; i++) {
        fv_cell *row;
        int64_t  of_b = find_size(m, p[i].b)->voxels;
        double   shared = (double)p[i].voxels;
        if (!m->background && (!p[i].a || !p[i].b)) continue;
        FV_TRY(fv__row_writer_next(&m->rows, &row, error));
        row[0].integer = p[i].a;
        row[1].integer = p[i].b;
        row[2].integer = p[i].voxels;
        row[3].real = p[i].a ? shared / (double)of_a : NAN;
        row[4].real = p[i].b ? shared / (double)of_b : NAN;
        row[5].real = p[i].a && p[i].b ? shared / (double)(of_a + of_b - p[i].voxels) : NAN;
    }
    fv__bytes_clear(&m->of_a);
    return FV_OK;
}

static fv_status end_rows(void *context, fv_error *error) {
    merge      *m = context;
    const pair *p = (const pair *)m->of_a.data;
    if (m->of_a.size && p->a != m->sum.a) FV_TRY(put_rows(m, error));
    fv__bytes_append(&m->of_a, &m->sum, sizeof m->sum);
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    fv_sorted_runs runs = { .most = sizeof(pair), .key = key, .start = start, .add = add, .end = end_sizes };
    merge          m = { .background = ((const overlaps *)f->params)->background };
    fv__row_writer_init(&m.rows, f);
    fv_status status = fv__sorted_runs_merge(f, &runs, &m, error);
    runs.end = end_rows;
    if (status == FV_OK) status = fv__sorted_runs_merge(f, &runs, &m, error);
    if (status == FV_OK) status = put_rows(&m, error);
    if (status == FV_OK) status = fv__row_writer_flush(&m.rows, error);
    fv__row_writer_release(&m.rows);
    fv__bytes_release(&m.of_a);
    free(m.sizes);
    free(m.table.slot);
    return status;
}

/* ---------------------------------------------------------------- the operator */

static double cost(const fv_need *n) {
    (void)n;
    return 4;
}

static const fv_pass passes[] = { { .name = "gather", .scratch = scratch, .bound = bound, .run = run, .finish = finish },
                                  FV_PASS_END };

static const fv_column_doc columns[] = {
    { "label_a", .doc = "object of the first image" },
    { "label_b", .doc = "object of the second image" },
    { "voxels", .doc = "number of voxels that belong to both" },
    { "share_a", .doc = "share of the first object that lies in the second, from 0 to 1; missing of the background" },
    { "share_b", .doc = "share of the second object that lies in the first, from 0 to 1; missing of the background" },
    { "iou", .doc = "intersection over union: common voxels over voxels of either; 1 for equal objects (Jaccard index)" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(overlaps) = {
    .name = "overlaps",
    .family = "measurement",
    .brief = "list the objects of two label images that overlap, and how much",
    .also = "contingency_table",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(overlaps),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "For colocalisation (spots in cells), for comparing a segmentation with another one, and for following objects. The "
           "result has one row for each pair that shares a voxel, in order of the first and then of the second label. How far an "
           "object is from those of another image tells measure(a, distance(b == 0), properties = \"min\").",
    .example = "image = phantom(\"cells\", [200, 200])\n"
               "overlaps(label(image > 60), label(gaussian(image, 2) > 90))",
    .see = "measure neighbours track distance",
    .columns = columns,
};
