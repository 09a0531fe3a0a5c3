/* hulls: a table of the convex hulls of labels: their size and their diameters.
 *
 * A task writes the first and last voxel of each label in each row, as sorted runs by label and row. The merge streams the rows
 * of one label after the other through hull.c, so an object may span any number of chunks.
 */
#include "kernels/stretches.h"
#include "op/record_gather.h"
#include "ops/measurement/hull.h"
#include "ops/measurement/per_axis.h"
#include <stdio.h>

typedef struct {
    const char *per;
} hulls;

static const fv_param params[] = {
    FV_PARAM(hulls, per, .def = "", .doc = FV_DOC_PER),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "labels", FV_KIND_IMAGE, .doc = "label image; 0 is background" }, FV_INPUT_END };

typedef struct {
    fv_run_key key; /* index of the axis that is taken apart, label, row */
    int64_t    first, last, voxels;
} record;

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *labels = &i->in[0]->image;
    fv_table_type       *table = fv__arena_alloc(i->arena, sizeof *table);
    int                  axis, spatial[FV_MAX_DIMS];
    if (labels->dtype != FV_BOOL && !fv_dtype_is_integer(labels->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "labels is %s; it must be an integer image, such as label() makes",
                       fv_dtype_name(labels->dtype));
    FV_TRY(fv__per_find(((const hulls *)i->params)->per, labels, &axis, error));
    fv_type one = fv__per_type(i->in[0], axis);
    int     n = fv_image_type_spatial(&one.image, spatial);
    if (n != one.image.ndim || n < 2 || n > 3)
        return fv_fail(error, FV_ERROR_USAGE,
                       "convex hulls need labels with two or three axes z, y, x and no others; per = \"t\" takes times apart");
    *table = (fv_table_type){ 0 };
    table->column[table->ncolumns++] = (fv_column){ "label", FV_COLUMN_INTEGER };
    if (axis >= 0) {
        fv_column *column = &table->column[table->ncolumns++];
        *column = (fv_column){ "", FV_COLUMN_INTEGER };
        snprintf(column->name, sizeof column->name, "%s", labels->axis[axis]);
    }
    table->column[table->ncolumns++] = (fv_column){ "convex_volume", FV_COLUMN_REAL };
    table->column[table->ncolumns++] = (fv_column){ "solidity", FV_COLUMN_REAL };
    table->column[table->ncolumns++] = (fv_column){ "feret_max", FV_COLUMN_REAL };
    table->column[table->ncolumns++] = (fv_column){ "feret_min", FV_COLUMN_REAL };
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = table };
    return FV_OK;
}

/* ---------------------------------------------------------------- gathering a chunk */

static int by_key(const record *a, const record *b) { return fv__run_key_compare(&a->key, &b->key); }

static void join_rows(record *into, const record *from) {
    into->first = FV_MIN(into->first, from->first);
    into->last = FV_MAX(into->last, from->last);
    into->voxels += from->voxels;
}

FV_RECORD_GATHER(record, by_key, join_rows, fv__records_append)

typedef struct {
    records     records;
    fv_stretch *stretches;
} gather;

static size_t lay_out(gather *g, const fv_need *n, void *scratch) {
    fv_scratch pieces = { scratch, 0 };
    records_lay_out(&g->records, &pieces, fv__region_voxels(&n->region));
    g->stretches = fv__scratch_take(&pieces, n->region.size[n->region.ndim - 1] * (int64_t)sizeof *g->stretches);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    gather g;
    return lay_out(&g, n, NULL);
}

static size_t bound(const fv_need *n) {
    gather g;
    lay_out(&g, n, NULL);
    return records_bound(&g.records, fv__region_voxels(&n->region), sizeof(record));
}

static void add_row(gather *g, const fv_block *labels, const fv_image_type *type, const int64_t *position, int64_t n,
                    int64_t index) {
    int     last = type->ndim - 1;
    int64_t count = fv__stretches(g->stretches, labels->dtype, fv__block_at(labels, position), n);
    int64_t place = (last == 2 ? position[0] * type->shape[1] : 0) + position[last - 1];
    for (int64_t i = 0; i < count; i++) {
        const fv_stretch *s = &g->stretches[i];
        *records_next(&g->records) = (record){ .key = { index, s->label, place },
                                               .first = position[last] + s->start,
                                               .last = position[last] + s->end - 1,
                                               .voxels = s->end - s->start };
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    int       axis = fv__per_axis(((const hulls *)r->need.params)->per, &r->need.in[0]->image);
    fv_type   one = fv__per_type(r->need.in[0], axis);
    fv_region chunk = fv__per_region(&r->need.region, axis);
    gather    g = { .records.partial = r->partial };
    int64_t   from = axis < 0 ? 0 : r->need.region.start[axis], to = axis < 0 ? 1 : from + r->need.region.size[axis];
    (void)error;
    lay_out(&g, &r->need, r->scratch);
    for (int64_t index = from; index < to; index++) {
        fv_block labels = fv__per_block(r->in[0], axis, index);
        fv_rows  rows;
        for (fv__rows_begin(&rows, &chunk); fv__rows_next(&rows);)
            add_row(&g, &labels, &one.image, rows.position, chunk.size[chunk.ndim - 1], index);
    }
    records_settle(&g.records, true);
    return FV_OK;
}

/* ---------------------------------------------------------------- merging */

typedef struct {
    fv_row_writer rows;
    fv_image_type labels; /* without the axis that is taken apart */
    bool          apart;
    fv__hull      hull;
    record        row; /* under way */
    int64_t       index, label, voxels;
    bool          any;
} merge;

static void key(const void *context, const uint8_t *from, fv_run_key *key) {
    (void)context;
    memcpy(key, from, sizeof *key);
}

static fv_status put_object(merge *m, fv_error *error) {
    fv__hull_measures measures;
    double            spacing[3] = { 1, 1, 1 }, voxel = 1;
    int               n = m->labels.ndim;
    fv_cell          *row;
    if (!m->any) return FV_OK;
    for (int d = 0; d < n; d++) {
        spacing[3 - n + d] = m->labels.spacing[d];
        voxel *= m->labels.spacing[d];
    }
    FV_TRY(fv__hull_finish(&m->hull, spacing, n == 2, &measures, error));
    FV_TRY(fv__row_writer_next(&m->rows, &row, error));
    row++->integer = m->label;
    if (m->apart) row++->integer = m->index;
    row++->real = (double)measures.voxels * voxel;
    row++->real = (double)m->voxels / (double)measures.voxels;
    row++->real = measures.feret_max;
    row->real = measures.feret_min;
    return FV_OK;
}

static void start(void *context, const fv_run_key *key) {
    merge *m = context;
    m->row = (record){ .key = *key, .first = INT64_MAX, .last = INT64_MIN };
}

static const uint8_t *add(void *context, const uint8_t *from, const fv_region *chunk) {
    merge *m = context;
    record r;
    (void)chunk;
    memcpy(&r, from, sizeof r);
    join_rows(&m->row, &r);
    return from + sizeof r;
}

/* A row is complete; with the first of another label, the one before is. */
static fv_status end(void *context, fv_error *error) {
    merge *m = context;
    if (m->labels.dtype == FV_UINT64 && m->row.key.second < 0)
        return fv_fail(error, FV_ERROR_INPUT, "labels holds %llu; labels must be below 2^63",
                       (unsigned long long)m->row.key.second);
    if (!m->any || m->row.key.first != m->index || m->row.key.second != m->label) {
        FV_TRY(put_object(m, error));
        fv__hull_start(&m->hull);
        m->any = true;
        m->index = m->row.key.first;
        m->label = m->row.key.second;
        m->voxels = 0;
    }
    int64_t length = m->labels.ndim == 3 ? m->labels.shape[1] : INT64_MAX;
    FV_TRY(fv__hull_row(&m->hull, m->row.key.third / length, m->row.key.third % length, m->row.first, m->row.last, error));
    m->voxels += m->row.voxels;
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    static const fv_sorted_runs runs = { .most = sizeof(record), .key = key, .start = start, .add = add, .end = end };
    int                         axis = fv__per_axis(((const hulls *)f->params)->per, &f->in[0]->image);
    merge                       m = { .labels = fv__per_type(f->in[0], axis).image, .apart = axis >= 0 };
    fv__row_writer_init(&m.rows, f);
    fv_status status = fv__sorted_runs_merge(f, &runs, &m, error);
    if (status == FV_OK) status = put_object(&m, error);
    if (status == FV_OK) status = fv__row_writer_flush(&m.rows, error);
    fv__row_writer_release(&m.rows);
    fv__hull_release(&m.hull);
    return status;
}

/* ---------------------------------------------------------------- the operator */

static double cost(const fv_need *n) {
    (void)n;
    return 3;
}

static const fv_pass passes[] = { { .name = "gather", .scratch = scratch, .bound = bound, .run = run, .finish = finish },
                                  FV_PASS_END };

static const fv_column_doc columns[] = {
    { "label", .doc = "number of the object in the label image" },
    { "<per>", .doc = "index along the axis per, if it is given" },
    { "convex_volume", "volume", .doc = "size of the convex object: its voxels times the size of a voxel; in a plane, its area" },
    { "solidity", .doc = "share of the convex object that the object fills, from 0 to 1" },
    { "feret_max", "length", .doc = "greatest diameter: the longest distance between two places of its surface" },
    { "feret_min", "length",
      .doc = "least diameter: the narrowest gap between two parallel lines (in a volume, planes) that the hull fits through" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(hulls) = {
    .name = "hulls",
    .family = "measurement",
    .brief = "convex hulls of objects: their size, solidity and diameters",
    .also = "convex_hull_image, convhull, feret",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(hulls),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc =
        "What measure calls for convex_volume, solidity, feret_max and feret_min; measure(labels, properties = \"voxels "
        "solidity\") "
        "puts them beside other properties. As in scikit-image, a voxel belongs to the convex object if its middle lies in the "
        "hull of the middles of the faces of all voxels, or on it; diameters are those of the hull of the convex object, made in "
        "the same way. The hull is computed in whole numbers, so it is exact for objects of any size. The least diameter of a "
        "volume is found exactly, too: parallel planes that are nearest touch it at a face and a corner or at two edges, and all "
        "such pairs are looked at.",
    .example = "cells = label(phantom(\"cells\", [200, 200]) > 60)\n"
               "hulls(cells)",
    .see = "measure label",
    .columns = columns,
};
