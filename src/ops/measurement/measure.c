/* measure: a table with one row per label: size, place, extent and intensity.
 *
 * A task gathers the objects of its chunk in a hash table and writes them as a run sorted by label; when the table is full it
 * writes several. The merge streams all runs in order of label, so neither needs memory for all objects.
 */
#include "ops/measurement/object.h"
#include "op/scratch.h"
#include "op/sorted_runs.h"
#include "op/stretches.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct { char none; } measure;

static const fv_param params[] = { FV_PARAM_END };
static const fv_input inputs[] = {
    { "labels", FV_KIND_IMAGE, .doc = "label image; 0 is background" },
    { "intensity", FV_KIND_IMAGE, .optional = true, .doc = "image of the same shape whose values are measured in each label" },
    FV_INPUT_END,
};

#define TABLE_BYTES ((int64_t)8 << 20) /* objects gathered before a run is written */

/* ---------------------------------------------------------------- inference */

static fv_column *add_column(fv_table_type *table, fv_column_kind kind, const char *name, const char *axis) {
    fv_column *column = &table->column[table->ncolumns++];
    column->kind = kind;
    snprintf(column->name, sizeof column->name, "%s%s", name, axis);
    return column;
}

static fv_status check_intensity(const fv_image_type *labels, const fv_image_type *intensity, fv_error *error) {
    bool same = labels->ndim == intensity->ndim;
    for (int d = 0; same && d < labels->ndim; d++) same = labels->shape[d] == intensity->shape[d];
    if (!same) return fv_fail(error, FV_ERROR_USAGE, "intensity has another shape than labels");
    if (fv_dtype_is_complex(intensity->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "intensity is %s; it must be real", fv_dtype_name(intensity->dtype));
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *labels = &i->in[0]->image;
    if (labels->dtype != FV_BOOL && !fv_dtype_is_integer(labels->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "labels is %s; it must be an integer image, such as label() makes",
                       fv_dtype_name(labels->dtype));
    if (i->in[1]->kind == FV_KIND_IMAGE) FV_TRY(check_intensity(labels, &i->in[1]->image, error));
    fv__object_plan plan = fv__object_planned(labels, i->in[1]);
    fv_table_type  *table = fv_arena_alloc(i->arena, sizeof *table);
    add_column(table, FV_COLUMN_INTEGER, "label", "");
    add_column(table, FV_COLUMN_INTEGER, "voxels", "");
    add_column(table, FV_COLUMN_REAL, "volume", "");
    for (int d = 0; d < labels->ndim; d++) add_column(table, FV_COLUMN_REAL, "centroid_", labels->axis[d]);
    for (int d = 0; d < labels->ndim; d++) add_column(table, FV_COLUMN_INTEGER, "bbox_min_", labels->axis[d]);
    for (int d = 0; d < labels->ndim; d++) add_column(table, FV_COLUMN_INTEGER, "bbox_max_", labels->axis[d]);
    if (plan.kind != FV__NO_INTENSITY) {
        fv_column_kind kind = fv__object_integral(&plan) ? FV_COLUMN_INTEGER : FV_COLUMN_REAL;
        add_column(table, FV_COLUMN_REAL, "mean", "");
        add_column(table, kind, "min", "");
        add_column(table, kind, "max", "");
        add_column(table, FV_COLUMN_REAL, "std", "");
    }
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = table };
    return FV_OK;
}

/* ---------------------------------------------------------------- gathering a chunk */

typedef struct {
    fv__object_plan plan;
    int64_t         capacity, count, slots; /* objects, and places of the hash table (a power of two) */
    char           *objects;
    int32_t        *slot;  /* object of a place, -1: free */
    int32_t        *order;
    fv_stretch     *stretches;
    uint8_t        *record; /* room for one */
    int64_t         most;   /* its size */
    fv_bytes       *partial;
} gather;

static size_t lay_out(gather *g, const fv_need *n, void *scratch) {
    fv_scratch pieces = { scratch, 0 };
    g->plan = fv__object_planned(&n->in[0]->image, n->in[1]);
    g->capacity = FV_MAX(FV_MIN(fv_region_voxels(&n->region), TABLE_BYTES / (int64_t)g->plan.size), 1);
    for (g->slots = 16; g->slots < 2 * g->capacity;) g->slots *= 2;
    g->most = fv__object_most_bytes(&g->plan, n->region.size, 0);
    g->objects = fv_scratch_take(&pieces, g->capacity * (int64_t)g->plan.size);
    g->slot = fv_scratch_take(&pieces, g->slots * (int64_t)sizeof *g->slot);
    g->order = fv_scratch_take(&pieces, g->capacity * (int64_t)sizeof *g->order);
    g->stretches = fv_scratch_take(&pieces, n->region.size[n->region.ndim - 1] * (int64_t)sizeof *g->stretches);
    g->record = fv_scratch_take(&pieces, g->most);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    gather g;
    return lay_out(&g, n, NULL);
}

/* Objects have at least one voxel each; those of one or two cost most a voxel. */
static size_t bound(const fv_need *n) {
    gather g;
    lay_out(&g, n, NULL);
    int64_t one = fv__object_most_bytes(&g.plan, n->region.size, 1), two = fv__object_most_bytes(&g.plan, n->region.size, 2);
    int64_t voxels = fv_region_voxels(&n->region);
    return (size_t)(voxels * FV_MAX(one, (two + 1) / 2) + (voxels / g.capacity + 1) * (int64_t)sizeof(int64_t));
}

static fv__object *object_at(const gather *g, int64_t index) {
    return (fv__object *)(g->objects + index * (int64_t)g->plan.size);
}

static void sift(gather *g, int64_t root, int64_t count) {
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && object_at(g, g->order[child + 1])->label > object_at(g, g->order[child])->label) child++;
        if (object_at(g, g->order[root])->label >= object_at(g, g->order[child])->label) return;
        int32_t swap = g->order[root];
        g->order[root] = g->order[child];
        g->order[child] = swap;
    }
}

static void sort_objects(gather *g) {
    for (int64_t i = 0; i < g->count; i++) g->order[i] = (int32_t)i;
    for (int64_t i = g->count / 2 - 1; i >= 0; i--) sift(g, i, g->count);
    for (int64_t i = g->count - 1; i > 0; i--) {
        int32_t swap = g->order[0];
        g->order[0] = g->order[i];
        g->order[i] = swap;
        sift(g, 0, i);
    }
}

/* A run of records by label. Leaves the table empty. */
static void write_run(gather *g) {
    int64_t before = 0;
    size_t  begun = fv_sorted_run_begin(g->partial);
    sort_objects(g);
    for (int64_t i = 0; i < g->count; i++) {
        fv__object *object = object_at(g, g->order[i]);
        fv_bytes_append(g->partial, g->record, (size_t)(fv__object_write(&g->plan, object, before, g->record) - g->record));
        before = object->label;
    }
    fv_sorted_run_end(g->partial, begun);
    memset(g->slot, 0xff, (size_t)g->slots * sizeof *g->slot);
    g->count = 0;
}

static fv__object *find(gather *g, int64_t label) {
    uint64_t mask = (uint64_t)g->slots - 1, place = ((uint64_t)label * 0x9e3779b97f4a7c15u >> 32) & mask;
    for (; g->slot[place] >= 0; place = (place + 1) & mask)
        if (object_at(g, g->slot[place])->label == label) return object_at(g, g->slot[place]);
    if (g->count == g->capacity) {
        write_run(g);
        return find(g, label);
    }
    g->slot[place] = (int32_t)g->count;
    fv__object *object = object_at(g, g->count++);
    fv__object_start(&g->plan, object, label);
    return object;
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block  *labels = r->in[0], *intensity = r->in[1];
    const fv_region *region = &labels->region;
    int              last = region->ndim - 1;
    size_t           size = intensity ? fv_dtype_size(intensity->dtype) : 0;
    gather           g = { .partial = r->partial };
    fv_rows          rows;
    lay_out(&g, &r->need, r->scratch);
    write_run(&g);
    for (fv_rows_begin(&rows, region); fv_rows_next(&rows);) {
        int64_t count = fv_stretches(g.stretches, labels->dtype, fv_block_at(labels, rows.position), region->size[last]),
                position[FV_MAX_DIMS];
        const char *values = count && intensity ? fv_block_at(intensity, rows.position) : NULL;
        fv__object *object = NULL;
        for (int d = 0; d < region->ndim; d++) position[d] = rows.position[d] - region->start[d];
        for (int64_t i = 0; i < count; i++) {
            const fv_stretch *s = &g.stretches[i];
            if (labels->dtype == FV_UINT64 && s->label < 0)
                return fv_fail(error, FV_ERROR_INPUT, "labels holds %llu; labels must be below 2^63",
                               (unsigned long long)s->label);
            if (!object || object->label != s->label) object = find(&g, s->label);
            position[last] = s->start;
            fv__object_add(&g.plan, object, position, s->end - s->start, values ? values + (size_t)s->start * size : NULL);
        }
    }
    write_run(&g);
    return FV_OK;
}

/* ---------------------------------------------------------------- merging */

typedef struct {
    fv_row_writer   rows;
    fv__object_plan plan;
    fv__object     *object;
} merge;

static void key(const void *context, const uint8_t *record, fv_run_key *key) {
    fv__object_read(&((const merge *)context)->plan, record, NULL, &key->first, NULL);
}

static void start(void *context, const fv_run_key *key) {
    merge *m = context;
    fv__object_start(&m->plan, m->object, key->first);
}

static const uint8_t *add(void *context, const uint8_t *record, const fv_region *chunk) {
    merge  *m = context;
    int64_t label = 0;
    return fv__object_read(&m->plan, record, chunk->start, &label, m->object);
}

static fv_status end(void *context, fv_error *error) {
    merge               *m = context;
    const fv__object    *o = m->object;
    const fv_image_type *image = &m->rows.f->in[0]->image;
    int                  n = image->ndim, spatial[FV_MAX_DIMS], nspatial = fv_image_type_spatial(image, spatial);
    fv_cell             *row;
    double               voxel = 1;
    FV_TRY(fv_row_writer_next(&m->rows, &row, error));
    for (int i = 0; i < nspatial; i++) voxel *= image->spacing[spatial[i]];
    row[0].integer = o->label;
    row[1].integer = o->voxels;
    row[2].real = (double)o->voxels * voxel;
    for (int d = 0; d < n; d++) {
        row[3 + d].real = (double)o->sum[d] / (double)o->voxels;
        row[3 + n + d].integer = o->low[d];
        row[3 + 2 * n + d].integer = o->high[d] + 1;
    }
    if (m->plan.kind != FV__NO_INTENSITY) fv__object_moments(&m->plan, m->object, row + 3 + 3 * n);
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    merge          m = { .plan = fv__object_planned(&f->in[0]->image, f->in[1]) };
    fv_sorted_runs runs = { .key = key, .start = start, .add = add, .end = end };
    for (int64_t i = 0; i < f->npartials; i++) {
        fv_region chunk = fv_lattice_chunk(f->lattice, i);
        runs.most = FV_MAX(runs.most, fv__object_most_bytes(&m.plan, chunk.size, 0));
    }
    m.object = fv_alloc(m.plan.size);
    fv_row_writer_init(&m.rows, f);
    fv_status status = fv_sorted_runs_merge(f, &runs, &m, error);
    if (status == FV_OK) status = fv_row_writer_flush(&m.rows, error);
    fv_row_writer_release(&m.rows);
    free(m.object);
    return status;
}

/* ---------------------------------------------------------------- the operator */

static double cost(const fv_need *n) {
    fv__intensity kind = fv__object_planned(&n->in[0]->image, n->in[1]).kind;
    return kind == FV__NO_INTENSITY ? 1.5 : kind == FV__NARROW ? 2.5 : kind == FV__WIDE ? 12 : 6;
}

static const fv_pass passes[] = { { .name = "gather", .scratch = scratch, .bound = bound, .run = run, .finish = finish },
                                  FV_PASS_END };

const fv_op FV_OP(measure) = {
    .name = "measure",
    .family = "measurement",
    .brief = "a table of size, place, extent and intensity of every label",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(measure),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc =
        "One row per label that occurs, in order; 0 is background. Columns: label, voxels, volume (voxels times the spacing of "
        "the spatial axes), centroid_z, centroid_y, centroid_x in voxels (one per axis of the image, by its name), "
        "bbox_min_... and bbox_max_... (the end excluded, as in skimage.measure.regionprops), and with an intensity image its "
        "mean, min, max and std (of the population, as numpy). All sums are exact, so the table does not depend on chunks.",
    .citation = "Neal: Fast exact summation using small and large superaccumulators, 2015",
    .example = "image = phantom(\"cells\", [200, 200])\nmeasure(label(image > 100), image) |> write(\"cells.csv\")",
};
