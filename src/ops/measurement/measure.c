/* measure: a table with one row per label: size, place, extent and intensity.
 *
 * A task gathers the objects of its chunk in a hash table and writes them as a run sorted by label; when the table is full it
 * writes several. The merge streams all runs in order of label, so neither needs memory for all objects. Where images have axes
 * that labels lacks, and a label has a row for each of their voxels, runs hold one such row each and records begin with its
 * number.
 */
#include "base/hash_table.h"
#include "kernels/stretches.h"
#include "op/promote.h"
#include "op/sampling.h"
#include "op/scratch.h"
#include "op/sorted_runs.h"
#include "ops/measurement/delegated.h"
#include "ops/measurement/marching_cubes.h"
#include "ops/measurement/per_axis.h"
#include "ops/measurement/properties.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *properties, *per;
} measure;

static const fv_param params[] = {
    FV_PARAM(measure, properties, .def = "",
             .doc = "what to measure: names from the list of columns below, separated by blanks or commas, or \"all\" "
                    "(but percentiles); left out: those that are measured by default"),
    FV_PARAM(measure, per, .def = "", .doc = FV_DOC_PER),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "labels", FV_KIND_IMAGE, .doc = "label image; 0 is background" },
    { "intensity", FV_KIND_IMAGE, .optional = true,
      .doc = "image whose values are measured inside each object; axes are matched by name" },
    { "intensity_2", FV_KIND_IMAGE, .optional = true, .doc = "a second such image; its columns end in _2" },
    { "intensity_3", FV_KIND_IMAGE, .optional = true, .doc = "a third one; its columns end in _3" },
    { "intensity_4", FV_KIND_IMAGE, .optional = true, .doc = "a fourth one; its columns end in _4" },
    FV_INPUT_END,
};

enum { INPUTS = 5 };
#define TABLE_BYTES ((int64_t)8 << 20) /* objects gathered before a run is written */
#define VALUE_BYTES 8                  /* of an intensity, at most */
#define NUMBER_BYTES 10                /* of the number of a row, at most */
#define FIRST_SLOTS 512                /* of the table, which grows: most chunks hold few objects */

/* ---------------------------------------------------------------- inference */

/* What follows from types and parameters. */
typedef struct {
    int             per;    /* axis along which labels are taken apart, -1: none */
    fv_type         labels; /* without it */
    const fv_type  *in[FV_MAX_INPUTS];
    fv__views       views;
    fv__properties  properties;
    fv__object_plan plan;
} layout;

static fv_status lay_down(layout *l, const void *params_, const fv_type *const *in, fv_error *error) {
    const measure *p = params_;
    FV_TRY(fv__per_find(p->per, &in[0]->image, &l->per, error));
    memcpy(l->in, in, sizeof l->in);
    l->labels = fv__per_type(in[0], l->per);
    l->in[0] = &l->labels;
    FV_TRY(fv__views_init(&l->views, l->in, inputs, error));
    if (l->per >= 0) FV_TRY(fv__views_apart(&l->views, in[0]->image.axis[l->per], in[0]->image.shape[l->per], error));
    FV_TRY(fv__properties_parse(&l->properties, p->properties, &l->labels.image, &l->views, error));
    l->plan = fv__properties_plan(&l->properties, l->in, &l->views);
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *labels = &i->in[0]->image;
    fv_table_type       *table = fv__arena_alloc(i->arena, sizeof *table);
    bool                 missing = false;
    if (labels->dtype != FV_BOOL && !fv_dtype_is_integer(labels->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "labels is %s; it must be an integer image, such as label() makes",
                       fv_dtype_name(labels->dtype));
    for (int k = 1; k < INPUTS; k++) {
        bool given = i->in[k]->kind == FV_KIND_IMAGE;
        if (given && missing) return fv_fail(error, FV_ERROR_USAGE, "%s is given without the one before it", inputs[k].name);
        if (given && fv_dtype_is_complex(i->in[k]->image.dtype))
            return fv_fail(error, FV_ERROR_USAGE, "%s is %s; it must be real", inputs[k].name,
                           fv_dtype_name(i->in[k]->image.dtype));
        missing = !given;
    }
    layout l;
    FV_TRY(lay_down(&l, i->params, i->in, error));
    FV_TRY(fv__properties_table(&l.properties, l.in, &l.views, table, error));
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = table };
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    layout    l;
    fv_error  error = { 0 };
    int64_t   halo[FV_MAX_DIMS] = { 0 };
    fv_region chunk;
    lay_down(&l, n->params, n->in, &error);
    chunk = fv__per_region(&n->region, l.per);
    for (int k = 0; k < l.plan.nspatial; k++) {
        int d = l.plan.spatial[k];
        halo[d + (l.per >= 0 && d >= l.per)] = fv__windows_halo(&l.plan);
    }
    fv_region grown = fv__region_grow(&n->region, halo, halo);
    in[0] = fv__region_clip(&grown, n->in[0]->image.shape);
    fv__views_need(&l.views, l.in, &chunk, in);
    for (int k = 0; k < l.views.count && l.per >= 0; k++) {
        int axis = l.views.view[k].row[0];
        if (axis < 0) continue;
        in[l.views.view[k].input].start[axis] = n->region.start[l.per];
        in[l.views.view[k].input].size[axis] = n->region.size[l.per];
    }
}

/* ---------------------------------------------------------------- gathering a chunk */

typedef struct {
    int             per;   /* axis along which labels are taken apart, -1: none */
    fv_region       chunk; /* without it */
    fv__views       views;
    fv__object_plan plan;
    int64_t         row;             /* of those that a label has */
    int64_t         capacity, count; /* objects */
    char           *objects;
    fv_hash_table   table; /* of objects by label */
    uint64_t        slots; /* that it can have */
    int32_t        *order;
    fv_stretch     *stretches;
    uint8_t        *record; /* room for one */
    int64_t         most;   /* its size */
    void           *windows;
    char           *values; /* room for a row of each channel that does not lie as the labels do */
    fv_bytes       *partial;
} gather;

/* Labels of the surroundings have windows here, too. */
static int64_t most_objects(const fv_need *n) {
    fv_region in[FV_MAX_INPUTS] = { n->region };
    need(n, in);
    return fv__region_voxels(&in[0]);
}

static size_t lay_out(gather *g, const fv_need *n, void *scratch) {
    fv_scratch pieces = { scratch, 0 };
    layout     l;
    fv_error   error = { 0 };
    lay_down(&l, n->params, n->in, &error);
    g->per = l.per;
    g->chunk = fv__per_region(&n->region, l.per);
    g->views = l.views;
    g->plan = l.plan;
    int64_t some = TABLE_BYTES / (int64_t)g->plan.size, rows = 8 * n->region.size[n->region.ndim - 1];
    if (fv__windows_halo(&g->plan)) some = FV_MAX(some, FV_MIN(rows, 8 * some)); /* the rows that windows lie across */
    g->capacity = FV_MAX(FV_MIN(most_objects(n), some), 1);
    g->slots = (uint64_t)fv__hash_table_slots(g->capacity);
    g->most = fv__object_most_bytes(&g->plan, g->chunk.size, 0) + NUMBER_BYTES;
    g->objects = fv__scratch_take(&pieces, g->capacity * (int64_t)g->plan.size);
    g->table.slot = fv__scratch_take(&pieces, (int64_t)(g->slots * sizeof *g->table.slot));
    g->table.mask = FV_MIN(g->slots, FIRST_SLOTS) - 1;
    g->order = fv__scratch_take(&pieces, g->capacity * (int64_t)sizeof *g->order);
    g->stretches = fv__scratch_take(&pieces, n->region.size[n->region.ndim - 1] * (int64_t)sizeof *g->stretches);
    g->record = fv__scratch_take(&pieces, g->most);
    g->windows = fv__scratch_take(&pieces, (int64_t)fv__windows_scratch(&g->plan, &g->chunk));
    bool in_place = true;
    for (int c = 0; c < g->plan.nchannels; c++) in_place = in_place && fv__view_in_place(&g->views.view[c], n->in);
    g->values = fv__scratch_take(&pieces, in_place ? 0 : g->plan.nchannels * n->region.size[n->region.ndim - 1] * VALUE_BYTES);
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
    int64_t one = fv__object_most_bytes(&g.plan, g.chunk.size, 1), two = fv__object_most_bytes(&g.plan, g.chunk.size, 2);
    int64_t voxels = most_objects(n), number = g.views.rows > 1 ? fv__varint_bytes((uint64_t)g.views.rows) : 0;
    int64_t runs = voxels / g.capacity + (g.per < 0 ? 1 : n->region.size[g.per]);
    int64_t of_row = voxels * (FV_MAX(one, (two + 1) / 2) + number) + runs * (int64_t)sizeof(int64_t);
    return (size_t)(g.per < 0 ? g.views.rows * of_row : of_row);
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
    bool sorted = true; /* as label() numbers them */
    for (int64_t i = 0; i < g->count; i++) {
        g->order[i] = (int32_t)i;
        sorted = sorted && (!i || object_at(g, i - 1)->label < object_at(g, i)->label);
    }
    if (sorted) return;
    for (int64_t i = g->count / 2 - 1; i >= 0; i--) sift(g, i, g->count);
    for (int64_t i = g->count - 1; i > 0; i--) {
        int32_t swap = g->order[0];
        g->order[0] = g->order[i];
        g->order[i] = swap;
        sift(g, 0, i);
    }
}

static void empty_table(gather *g) { memset(g->table.slot, 0, (g->table.mask + 1) * sizeof *g->table.slot); }

/* Half of the slots stay free. */
static void make_room(gather *g) {
    if ((uint64_t)g->count < (g->table.mask + 1) / 2 || g->table.mask + 1 == g->slots) return;
    g->table.mask = 2 * g->table.mask + 1;
    empty_table(g);
    for (int64_t i = 0; i < g->count; i++)
        fv__hash_table_add(&g->table, false, fv__label_hash(object_at(g, i)->label), (uint32_t)i);
}

/* A run of records by label. Leaves the table empty. */
static void write_run(gather *g) {
    int64_t before = 0;
    size_t  begun = fv__sorted_run_begin(g->partial);
    sort_objects(g);
    for (int64_t i = 0; i < g->count; i++) {
        fv__object *object = object_at(g, g->order[i]);
        uint8_t    *begin = g->views.rows > 1 ? fv__varint_put(g->record, (uint64_t)g->row) : g->record;
        uint8_t    *end = fv__object_write(&g->plan, object, before, g->chunk.start, begin);
        fv__bytes_append(g->partial, g->record, (size_t)(end - g->record));
        before = object->label;
    }
    fv__sorted_run_end(g->partial, begun);
    g->count = 0;
    empty_table(g);
}

typedef struct {
    const gather *gather;
    int64_t       label;
} wanted;

static bool is_wanted(const void *context, uint32_t number) {
    const wanted *w = context;
    return object_at(w->gather, number)->label == w->label;
}

static fv__object *find(gather *g, int64_t label) {
    wanted   w = { g, label };
    uint64_t place = fv__hash_table_find(&g->table, false, fv__label_hash(label), is_wanted, &w);
    if (g->table.slot[place]) return object_at(g, g->table.slot[place] - 1);
    if (g->count == g->capacity) {
        write_run(g);
        return find(g, label);
    }
    fv__object *object = object_at(g, g->count);
    g->table.slot[place] = (uint32_t)++g->count;
    fv__object_start(&g->plan, object, label);
    make_room(g);
    return object;
}

static fv__object *find_object(void *context, int64_t label) { return find(context, label); }

/* The stretches of one row. */
static fv_status add_row(gather *g, const fv_run *r, const fv_block *labels, const int64_t *row_position, fv_error *error) {
    int         last = g->chunk.ndim - 1;
    int64_t     position[FV_MAX_DIMS], n = g->chunk.size[last];
    int64_t     count = fv__stretches(g->stretches, labels->dtype, fv__block_at(labels, row_position), n);
    const char *row[FV__CHANNELS];
    size_t      size[FV__CHANNELS];
    fv__object *object = NULL;
    for (int c = 0; c < g->plan.nchannels; c++) {
        size[c] = fv_dtype_size(r->in[g->views.view[c].input]->dtype);
        row[c] = fv__view_row(&g->views, c, r->in[g->views.view[c].input], row_position, last + 1, g->row, n,
                              g->values + c * n * VALUE_BYTES);
    }
    memcpy(position, row_position, sizeof position);
    for (int64_t i = 0; i < count; i++) {
        const fv_stretch *s = &g->stretches[i];
        const void       *values[FV__CHANNELS];
        if (labels->dtype == FV_UINT64 && s->label < 0)
            return fv_fail(error, FV_ERROR_INPUT, "labels holds %llu; labels must be below 2^63", (unsigned long long)s->label);
        if (!object || object->label != s->label) object = find(g, s->label);
        position[last] = row_position[last] + s->start;
        for (int c = 0; c < g->plan.nchannels; c++) values[c] = row[c] + (size_t)s->start * size[c];
        fv__object_add(&g->plan, object, position, s->end - s->start, values);
    }
    return FV_OK;
}

/* The labels at one index, or all of them, with one row of each image. */
static fv_status measure_row(gather *g, const fv_run *r, const fv_block *labels, fv_error *error) {
    const fv_region *chunk = &g->chunk;
    fv__windows      windows = { .plan = &g->plan, .find = find_object, .context = g };
    fv_rows          rows;
    bool             counted = fv__windows_halo(&g->plan) > 0;
    if (counted) fv__windows_begin(&windows, labels, chunk, g->windows);
    for (fv__rows_begin(&rows, chunk); fv__rows_next(&rows);) {
        FV_TRY(add_row(g, r, labels, rows.position, error));
        int64_t z = chunk->ndim == 3 ? rows.position[0] - chunk->start[0] : 0;
        if (counted) fv__windows_row(&windows, z, rows.position[chunk->ndim - 2] - chunk->start[chunk->ndim - 2]);
    }
    write_run(g);
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) {
    gather g = { .partial = r->partial };
    lay_out(&g, &r->need, r->scratch);
    write_run(&g);
    int64_t from = g.per < 0 ? 0 : r->need.region.start[g.per];
    int64_t to = g.per < 0 ? g.views.rows : from + r->need.region.size[g.per];
    for (g.row = from; g.row < to; g.row++) {
        fv_block labels = fv__per_block(r->in[0], g.per, g.row);
        FV_TRY(measure_row(&g, r, &labels, error));
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- merging */

typedef struct {
    fv_row_writer rows;
    layout        layout;
    fv__surfaces  surfaces;
    fv__object   *object;
    int64_t       row; /* of those that the label has */
} merge;

/* Where the object's own record begins. */
static const uint8_t *record_of(const merge *m, const uint8_t *record, int64_t *row) {
    unsigned __int128 number = 0;
    if (m->layout.views.rows > 1) record = fv__varint_get(record, &number);
    *row = (int64_t)number;
    return record;
}

static void key(const void *context, const uint8_t *record, fv_run_key *key) {
    const merge *m = context;
    record = record_of(m, record, &key->first);
    fv__object_read(&m->layout.plan, record, NULL, &key->second, NULL);
}

static void start(void *context, const fv_run_key *key) {
    merge *m = context;
    m->row = key->first;
    fv__object_start(&m->layout.plan, m->object, key->second);
}

static const uint8_t *add(void *context, const uint8_t *record, const fv_region *chunk) {
    merge    *m = context;
    int64_t   label = 0, row;
    fv_region one = fv__per_region(chunk, m->layout.per);
    return fv__object_read(&m->layout.plan, record_of(m, record, &row), one.start, &label, m->object);
}

static fv_status end(void *context, fv_error *error) {
    merge   *m = context;
    fv_cell *cells;
    FV_TRY(fv__row_writer_next(&m->rows, &cells, error));
    fv__properties_row(&m->layout.properties, &m->layout.plan, &m->layout.labels.image, &m->layout.views, m->row, &m->surfaces,
                       m->object, cells);
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    merge                  m = { 0 };
    const fv__object_plan *plan = &m.layout.plan;
    fv_sorted_runs         runs = { .key = key, .start = start, .add = add, .end = end };
    FV_TRY(lay_down(&m.layout, f->params, f->in, error));
    for (int64_t i = 0; i < f->npartials; i++) {
        fv_region whole = fv__lattice_chunk(f->lattice, i), chunk = fv__per_region(&whole, m.layout.per);
        runs.most = FV_MAX(runs.most, fv__object_most_bytes(plan, chunk.size, 0) + NUMBER_BYTES);
    }
    if (plan->windows) fv__crofton_init(&m.surfaces.crofton, &m.layout.labels.image);
    if (plan->mesh) fv__marching_cubes_areas(m.layout.labels.image.spacing, m.surfaces.mesh);
    m.object = fv__alloc(plan->size);
    fv__row_writer_init(&m.rows, f);
    fv_status status = fv__sorted_runs_merge(f, &runs, &m, error);
    if (status == FV_OK) status = fv__row_writer_flush(&m.rows, error);
    fv__row_writer_release(&m.rows);
    free(m.object);
    return status;
}

/* ---------------------------------------------------------------- the operator */

static double cost(const fv_need *n) {
    layout   l;
    fv_error error = { 0 };
    lay_down(&l, n->params, n->in, &error);
    fv__object_plan plan = l.plan;
    double          cost = plan.windows ? 8 : plan.border ? 6 : 1.5;
    for (int i = 0; i < plan.nchannels; i++) {
        fv__intensity kind = plan.channel[i].kind;
        cost += (kind == FV__NARROW ? 1 : kind == FV__WIDE ? 10 : 4.5) * (plan.channel[i].weighted ? 3 : 1);
    }
    return cost * (double)(l.per < 0 ? l.views.rows : 1);
}

/* Hulls and percentiles are computed by operators of their own and put beside the other columns. */
static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const measure *p = i->params;
    layout         l = { 0 };
    fv_error       why = { 0 };
    if (!fv__split_needed(p->properties)) return FV_OK;
    measure plain = { .per = p->per };
    if (lay_down(&l, &plain, i->in, &why) != FV_OK) return FV_OK; /* infer tells what is wrong */
    return fv__split(p->properties, p->per, l.in, &l.views, text, error);
}

static const fv_pass passes[] = {
    { .name = "gather", .need = need, .scratch = scratch, .bound = bound, .run = run, .finish = finish }, FV_PASS_END
};

static const fv_column_doc columns[] = {
    { "label", .doc = "number of the object in the label image" },
    { "voxels", .property = "voxels", .usual = true, .doc = "number of voxels of the object" },
    { "volume", "volume", .property = "volume", .usual = true,
      .doc = "number of voxels times the size of a voxel; in a plane, the area" },
    { "centroid_AXIS", "px", .property = "centroid", .usual = true,
      .doc = "middle of the object: the mean index of its voxels along each axis, counted from 0" },
    { "position_AXIS", "length", .property = "position",
      .doc = "the same place in the world: by the affine matrix if the image has one, otherwise origin + spacing * centroid" },
    { "bbox_min_AXIS", "px", .property = "bbox", .usual = true, .doc = "first index of the bounding box along each axis" },
    { "bbox_max_AXIS", "px", .property = "bbox", .usual = true,
      .doc = "index behind the last one of the bounding box, as in a slice" },
    { "extent", .property = "extent", .doc = "share of the bounding box that the object fills, from 0 to 1" },
    { "equivalent_diameter", "length", .property = "equivalent_diameter",
      .doc = "diameter of the ball (in a plane, of the disk) with the same volume" },
    { "inertia_tensor_eigvals_N", "area", .property = "inertia_tensor_eigvals",
      .doc = "eigenvalues of the inertia tensor, the largest first" },
    { "axis_major_length", "length", .property = "axis_lengths",
      .doc = "longest axis of the ellipsoid (ellipse) with the same second moments" },
    { "axis_middle_length", "length", .property = "axis_lengths", .doc = "its middle axis; only of volumes" },
    { "axis_minor_length", "length", .property = "axis_lengths", .doc = "its shortest axis" },
    { "eccentricity", .property = "eccentricity", .doc = "of that ellipse: 0 for a circle, near 1 for a needle; only of planes" },
    { "anisotropy", .property = "anisotropy",
      .doc = "1 - (variance along the shortest axis / variance along the longest): 0 for a ball, near 1 for a needle" },
    { "orientation", "radians", .property = "orientation",
      .doc = "in a plane: angle between the first axis (y) and the longest axis of the object, as in scikit-image. Where an "
             "object spreads equally along both axes the angle is plus or minus 45 degrees, in line with that of objects "
             "that lie nearly so; scikit-image 0.19 turns these by 90 degrees" },
    { "orientation_AXIS", .property = "orientation",
      .doc = "in a volume: unit vector along the longest axis of the object, its first component not negative" },
    { "euler_number", .property = "euler_number",
      .doc = "in a plane: number of parts minus number of holes; in a volume: parts plus enclosed cavities minus tunnels. "
             "Voxels that meet in a corner count as connected (8 neighbours in a plane, 26 in a volume)" },
    { "perimeter", "length", .property = "perimeter",
      .doc = "length of the outline, from weighted border pixels as in scikit-image; only of planes with square pixels" },
    { "perimeter_crofton", "length", .property = "perimeter_crofton",
      .doc = "length of the outline by Crofton's formula with 4 directions; only of planes, for any spacing" },
    { "surface_area", "area", .property = "surface_area",
      .doc = "area of the surface by Crofton's formula with 13 directions; only of volumes" },
    { "mesh_area", "area", .property = "mesh_area",
      .doc = "area of the triangles that marching cubes puts between the voxels of the object and all others; only of volumes. "
             "As mesh_surface_area of scikit-image with the object's mask in a frame of zeros. It is about 10 % more than "
             "surface_area for a ball, and does not become less with finer voxels" },
    { "mean", .property = "mean", .usual = true, .doc = "mean of the intensity image inside the object" },
    { "min", .property = "min", .usual = true, .doc = "smallest value of the intensity image inside the object" },
    { "max", .property = "max", .usual = true, .doc = "largest value of the intensity image inside the object" },
    { "std", .property = "std", .usual = true,
      .doc = "standard deviation of the intensity image inside the object (of the population, as in numpy)" },
    { "sum", .property = "sum", .doc = "sum of the intensity image inside the object: its integrated intensity" },
    { "weighted_centroid_AXIS", "px", .property = "weighted_centroid",
      .doc = "middle of the object, each voxel weighted with its intensity" },
    { "convex_volume", "volume", .property = "convex_volume",
      .doc = "size of the convex hull of the object; in a plane, its area (convex_area of scikit-image)" },
    { "solidity", .property = "solidity", .doc = "share of its convex hull that the object fills, from 0 to 1" },
    { "feret_max", "length", .property = "feret_max",
      .doc = "greatest diameter: the longest distance between two places of the hull (feret_diameter_max of scikit-image)" },
    { "feret_min", "length", .property = "feret_min",
      .doc = "least diameter: the narrowest gap between two parallel lines (in a volume, planes) that the hull fits through" },
    { "median", .property = "median", .doc = "median of the intensity image inside the object" },
    { "percentile_N", .property = "percentile_N",
      .doc = "the value below which N percent of the voxels of the object lie, as numpy's: percentile_5, percentile_95" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(measure) = {
    .name = "measure",
    .family = "measurement",
    .brief = "measure every object of a label image: size, position, shape and brightness",
    .also = "regionprops, regionprops3, regionprops_table, analyze_particles, connectedComponentsWithStats, region_properties",
    .version = 4,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(measure),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .cost = cost,
    .doc =
        "The result is a table with one row for each label, in increasing order. Label 0 is the background and has no "
        "row.\n"
        "The columns follow skimage.measure.regionprops, with lengths in the unit of the image's spacing. In the names of "
        "columns, AXIS stands for the name of each axis of the labels: centroid_AXIS means centroid_y and centroid_x in a "
        "plane. If the file says no spacing, a voxel is 1 wide.\n"
        "The axes of the intensity images are matched with those of the labels by name. If an image has channels (an axis "
        "c) and the labels have not, each channel gets its own columns: mean_c0, mean_c1 and so on, for a second image "
        "mean_2_c0. Any other such axis gives a row for each of its indices, and a column of its name: labels z y x "
        "measured on an image t z y x give one row for each t and label, in this order. If the labels themselves change with t, "
        "per = \"t\" measures each t by itself, shapes too; per = \"z\" does so with the planes of a volume.\n"
        "All sums are exact, so the table does not depend on how the image is divided into chunks. (The one exception is "
        "weighted_centroid of floating-point and 64-bit integer images, which sums rounded products.)",
    .citation = "Neal: Fast exact summation using small and large superaccumulators, 2015; Ohser, Nagel, Schladitz: The Euler "
                "number of discretized sets, 2002; Legland, Kieu, Devaux: Computation of Minkowski measures on 2D and 3D binary "
                "images, 2007; Benkrid, Crookes: Design and FPGA implementation of a perimeter estimator, 2000",
    .example = "image = phantom(\"cells\", [200, 200])\n"
               "cells = label(gaussian(image, 1) > 100)\n"
               "measure(cells, image)\n"
               "measure(cells, properties = \"voxels perimeter eccentricity\") |> write(\"shapes.csv\")",
    .see = "label keep neighbours profile relabel",
    .columns = columns,
};

const fv_estimator FV_ESTIMATOR(measure) = { .chain = FV_CHAIN_NEXT };
