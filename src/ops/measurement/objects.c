/* objects: summaries of the objects of a mask, in one pass and without a label image.
 *
 * An object belongs to the chunk that holds the voxel just before the corner of its box: the one whose place along each axis is
 * by one less than that of the object's first voxel along this axis. A chunk is searched together with `reach` + 1 voxels behind
 * it, and none before it.
 *
 * 1. An object of the chunk has no voxel in the first plane along any axis (but at the image's own border). If it is at most
 *    `reach` voxels long along each axis, it lies in the box as a whole; one that touches the box's end is longer.
 * 2. A longer object has a connected part that is `reach` + 1 voxels long along one axis and no longer along the others. The
 * chunk of that part's corner holds all of it: so each longer object is met as such by some chunk.
 *
 * So what is left out, and what all chunks count together, does not depend on the chunks, and each object is counted once: chunks
 * can be taken as a sample of them. Voxels that were left out are those of all chunks without those of all objects.
 */
#include "base/take.h"
#include "kernels/components.h"
#include "op/condition.h"
#include "op/scratch.h"
#include "op/summary_estimate.h"
#include "op/table_rows.h"
#include "ops/measurement/properties.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *values, *condition, *properties;
    int64_t     connectivity, reach;
    bool        all;
} objects;

static const fv_param params[] = {
    FV_PARAM(objects, values, .def = "count()",
             .doc = "summaries, as those of group: \"count(), mean(volume), quantile(volume, 0.9) as large\"; count, sum, mean, "
                    "std, min, max, median and quantile"),
    FV_PARAM(objects, condition, .def = "", .doc = "only objects for which this holds, as \"volume > 50\""),
    FV_PARAM(objects, properties, .def = "", .doc = "columns that values and condition use, as those of measure"),
    FV_PARAM(objects, connectivity, .def = "1", .min = 1, .max = 3,
             .doc = "which voxels are connected: 1 by faces, 2 also by edges, 3 also by corners"),
    FV_PARAM(objects, reach, .def = "", .min = 1, .max = 4096, .unit = "px",
             .doc = "objects that are longer than this along an axis are left out; left out: 32 in a volume, 64 in a plane"),
    FV_PARAM(objects, all, .def = "false", .own = true, .doc = "a longer one is an error"),
    FV_PARAM_END,
};

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "bool or integer image; what is not 0 is foreground" },
    { "intensity", FV_KIND_IMAGE, .optional = true, .doc = "image whose values are measured inside each object" },
    { "intensity_2", FV_KIND_IMAGE, .optional = true, .doc = "a second such image; its columns end in _2" },
    { "intensity_3", FV_KIND_IMAGE, .optional = true, .doc = "a third one; its columns end in _3" },
    { "intensity_4", FV_KIND_IMAGE, .optional = true, .doc = "a fourth one; its columns end in _4" },
    FV_INPUT_END,
};

enum { LONGER, VALUES }; /* columns of the result: voxels that were left out, then the summaries */
#define TABLE_BYTES ((int64_t)8 << 20)
#define VALUE_BYTES 8 /* of an intensity, at most */

/* ---------------------------------------------------------------- what follows from types and parameters */

typedef struct {
    const objects  *asked;
    fv_type         labels;
    const fv_type  *in[FV_MAX_INPUTS];
    fv__views       views;
    fv__properties  properties;
    fv__object_plan plan;
    fv_table_type   table; /* of one object */
    fv__summaries   summaries;
    fv_condition    condition;
    bool            chosen;                           /* a condition was given */
    int             ncolumns, column[FV_MAX_COLUMNS]; /* those that summaries are of, in their order */
} layout;

static fv_status check_summaries(const layout *l, fv_error *error) {
    for (int v = 0; v < l->summaries.count; v++) {
        fv__summary_function function = l->summaries.value[v].function;
        if (function >= FV__COUNT_DISTINCT)
            return fv_fail(error, FV_ERROR_USAGE, "values: %s is not known here; group(measure(label(image)), \"\", ...) has it",
                           fv__summary_word(function));
        if (l->summaries.value[v].column == 0)
            return fv_fail(error, FV_ERROR_USAGE, "values: objects have no numbers here, so label cannot be summarised");
    }
    return FV_OK;
}

static fv_status lay_down(layout *l, const void *params_, const fv_type *const *in, fv_error *error) {
    const objects *p = l->asked = params_;
    memcpy(l->in, in, sizeof l->in);
    l->labels = *in[0];
    l->labels.image.dtype = FV_INT64;
    l->in[0] = &l->labels;
    l->table = (fv_table_type){ 0 };
    l->ncolumns = 0;
    FV_TRY(fv__views_init(&l->views, l->in, inputs, error));
    if (l->views.rows > 1)
        return fv_fail(error, FV_ERROR_USAGE, "intensity has an axis %s that image lacks; take one index of it, or use measure",
                       l->views.axis[0]);
    FV_TRY(fv__properties_parse(&l->properties, p->properties ? p->properties : "", &l->labels.image, &l->views, error));
    l->plan = fv__properties_plan(&l->properties, l->in, &l->views);
    if (l->plan.windows || l->plan.border || l->plan.mesh)
        return fv_fail(error, FV_ERROR_USAGE,
                       "properties = \"%s\": perimeters, surfaces and Euler numbers are measured by measure", p->properties);
    FV_TRY(fv__properties_table(&l->properties, l->in, &l->views, &l->table, error));
    FV_TRY(fv__summaries_parse(&l->summaries, p->values, &l->table, error));
    for (int v = 0; v < l->summaries.count; v++)
        if (l->summaries.value[v].column >= 0) l->column[l->ncolumns++] = l->summaries.value[v].column;
    l->chosen = p->condition && *p->condition;
    if (l->chosen) FV_TRY(fv__condition_parse(&l->condition, "condition", p->condition, &l->table, error));
    return check_summaries(l, error);
}

static fv_column_kind kind_of(const layout *l, int v) {
    fv__summary_function function = l->summaries.value[v].function;
    if (function == FV__COUNT) return FV_COLUMN_INTEGER;
    return function == FV__SUM ? l->table.column[l->summaries.value[v].column].kind : FV_COLUMN_REAL;
}

static fv_status check_image(const fv_image_type *image, objects *p, fv_error *error) {
    int spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    if (image->dtype != FV_BOOL && !fv_dtype_is_integer(image->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s; only bool and integer images are possible (image > 0 makes one)",
                       fv_dtype_name(image->dtype));
    if (n != image->ndim || n < 1)
        return fv_fail(error, FV_ERROR_USAGE,
                       "image must have spatial axes (z, y, x) only; take one channel or time, as image[0]");
    if (p->connectivity > n)
        return fv_fail(error, FV_ERROR_USAGE, "connectivity = %lld: at most %d, the number of spatial axes of the image",
                       (long long)p->connectivity, n);
    if (!p->reach) p->reach = n == 3 ? 32 : 64;
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_table_type *out = fv__arena_alloc(i->arena, sizeof *out);
    layout         l;
    FV_TRY(check_image(&i->in[0]->image, i->params, error));
    FV_TRY(lay_down(&l, i->params, i->in, error));
    *out = (fv_table_type){ .ncolumns = VALUES, .column = { [LONGER] = { "longer", FV_COLUMN_INTEGER } } };
    for (int v = 0; v < l.summaries.count; v++) {
        fv_column *column = &out->column[out->ncolumns];
        if (out->ncolumns == FV_MAX_COLUMNS || fv__table_column(out, l.summaries.value[v].name) >= 0)
            return fv_fail(error, FV_ERROR_USAGE, "values: two columns would be called %s; give one another name with as",
                           l.summaries.value[v].name);
        column->kind = kind_of(&l, v);
        snprintf(column->name, sizeof column->name, "%s", l.summaries.value[v].name);
        out->ncolumns++;
    }
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = out };
    return FV_OK;
}

/* ---------------------------------------------------------------- the objects of a chunk */

typedef struct { /* of a component of the box, in coordinates of the box */
    uint16_t low[3], high[3];
    bool     met, longer;
    int32_t  slot; /* of its object, -1: it has none */
} component;

/* A partial: the head, and for each object that begins in the chunk the cells of the columns that are summarised. */
typedef struct {
    int64_t objects;
    int64_t longer; /* voxels of the box in components that are longer than reach */
    int64_t rest;   /* voxels of the chunk, less those of its objects: of all chunks together, those that are left out */
} head;

typedef struct {
    const fv_run *run;
    layout        layout;
    fv_region     box, chunk;
    fv__runs      runs;
    component    *components;
    char         *objects;
    int64_t       capacity, first, count; /* objects: at a time, number of the first that is gathered, all */
    char         *values;
    fv_cell      *cells;
    head          head;
} search;

static fv_region box_of(const fv_need *n) {
    int64_t before[FV_MAX_DIMS] = { 0 }, behind[FV_MAX_DIMS];
    for (int d = 0; d < n->region.ndim; d++) behind[d] = ((const objects *)n->params)->reach + 1;
    fv_region grown = fv__region_grow(&n->region, before, behind);
    return fv__region_clip(&grown, n->in[0]->image.shape);
}

static void need(const fv_need *n, fv_region *in) {
    layout   l;
    fv_error error = { 0 };
    lay_down(&l, n->params, n->in, &error);
    in[0] = box_of(n);
    fv__views_need(&l.views, l.in, &in[0], in);
}

static size_t lay_out(search *s, const fv_need *n, void *scratch, void **runs) {
    fv_scratch           pieces = { scratch, 0 };
    fv_error             error = { 0 };
    const fv_image_type *image = &n->in[0]->image;
    s->box = box_of(n);
    s->chunk = n->region;
    lay_down(&s->layout, n->params, n->in, &error);
    int64_t most = fv__runs_most(image, s->box.size, s->layout.asked->connectivity);
    s->capacity = FV_MAX(FV_MIN(most, TABLE_BYTES / (int64_t)s->layout.plan.size), 1);
    *runs = fv__scratch_take(&pieces, (int64_t)fv__runs_scratch(image, s->box.size, s->layout.asked->connectivity));
    s->components = fv__scratch_take(&pieces, most * (int64_t)sizeof *s->components);
    s->objects = fv__scratch_take(&pieces, s->capacity * (int64_t)s->layout.plan.size);
    s->values = fv__scratch_take(&pieces, s->layout.plan.nchannels * s->box.size[s->box.ndim - 1] * VALUE_BYTES);
    s->cells = fv__scratch_take(&pieces, FV_MAX_COLUMNS * (int64_t)sizeof *s->cells);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    search s = { 0 };
    void  *runs;
    return lay_out(&s, n, NULL, &runs);
}

static size_t bound(const fv_need *n) {
    layout    l;
    fv_error  error = { 0 };
    fv_region box = box_of(n);
    lay_down(&l, n->params, n->in, &error);
    return sizeof(head) +
           (size_t)fv__runs_most(&n->in[0]->image, box.size, l.asked->connectivity) * (size_t)l.ncolumns * sizeof(fv_cell);
}

/* Voxels from..to of the row z, y of the box belong to a component. */
typedef void (*visit)(search *s, int32_t component, int64_t z, int64_t y, int64_t from, int64_t to);

static int64_t next_bit(const uint64_t *bits, int64_t x, int64_t n, uint64_t flip) {
    for (; x < n; x = (x | 63) + 1) {
        uint64_t word = (bits[x / 64] ^ flip) >> (x & 63);
        if (word) return FV_MIN(n, x + __builtin_ctzll(word));
    }
    return n;
}

static void each_stretch(search *s, visit see) {
    const fv__runs *r = &s->runs;
    for (int64_t z = 0; z < r->nz; z++)
        for (int64_t y = 0; y < r->ny; y++) {
            const uint64_t *bits = fv__runs_row(r, 0, z, y);
            int64_t         row = fv__runs_joined(r, 0, z, y), from = 0, to;
            for (; (from = next_bit(bits, from, r->nx, 0)) < r->nx; from = to) {
                to = next_bit(bits, from, r->nx, ~(uint64_t)0);
                see(s, fv__runs_component(r, row, from / 64, (int)(from & 63)), z, y, from, to);
            }
        }
}

/* A place of the box in the image. */
static void place(const search *s, int64_t z, int64_t y, int64_t x, int64_t *position) {
    const int64_t at[3] = { z, y, x };
    for (int k = 0; k < 3; k++)
        if (s->runs.axis[k] >= 0) position[s->runs.axis[k]] = s->box.start[s->runs.axis[k]] + at[k];
}

/* Voxels of the chunk along the axis k of the box, which begins with them. */
static int64_t chunk_size(const search *s, int k) { return s->runs.axis[k] < 0 ? 1 : s->chunk.size[s->runs.axis[k]]; }

static void extend(search *s, int32_t number, int64_t z, int64_t y, int64_t from, int64_t to) {
    component    *c = &s->components[number];
    const int64_t low[3] = { z, y, from }, high[3] = { z, y, to - 1 };
    if (!c->met) {
        *c = (component){ .met = true, .slot = -1 };
        for (int k = 0; k < 3; k++) c->low[k] = (uint16_t)low[k], c->high[k] = (uint16_t)high[k];
    }
    for (int k = 0; k < 3; k++) {
        c->low[k] = (uint16_t)FV_MIN(c->low[k], low[k]);
        c->high[k] = (uint16_t)FV_MAX(c->high[k], high[k]);
    }
    if (z < chunk_size(s, 0) && y < chunk_size(s, 1)) s->head.rest += FV_MAX(FV_MIN(to, chunk_size(s, 2)) - from, 0);
}

static bool is_own(const search *s, const component *c) {
    bool own = true;
    for (int k = 0; k < 3; k++) {
        int d = s->runs.axis[k];
        own = own && (d < 0 || c->low[k] > 0 || s->chunk.start[d] == 0) && c->low[k] <= chunk_size(s, k);
    }
    return own;
}

/* Whether there are longer ones. */
static bool number_own(search *s) {
    bool any = false;
    for (int64_t i = 0; i < s->runs.ncomponents; i++) {
        component *c = &s->components[i];
        for (int k = 0; k < 3; k++) c->longer = c->longer || c->high[k] - c->low[k] >= s->layout.asked->reach;
        if (!c->longer && is_own(s, c)) c->slot = (int32_t)s->count++;
        any = any || c->longer;
    }
    return any;
}

static void count_longer(search *s, int32_t number, int64_t z, int64_t y, int64_t from, int64_t to) {
    (void)z;
    (void)y;
    if (s->components[number].longer) s->head.longer += to - from;
}

static fv__object *object_at(const search *s, int64_t i) { return (fv__object *)(s->objects + i * (int64_t)s->layout.plan.size); }

static void gather(search *s, int32_t number, int64_t z, int64_t y, int64_t from, int64_t to) {
    const layout *l = &s->layout;
    int64_t       slot = s->components[number].slot - s->first, position[FV_MAX_DIMS] = { 0 };
    const void   *values[FV__CHANNELS];
    if (s->components[number].slot < 0 || slot < 0 || slot >= s->capacity) return;
    place(s, z, y, from, position);
    for (int c = 0; c < l->plan.nchannels; c++)
        values[c] = fv__view_row(&l->views, c, s->run->in[l->views.view[c].input], position, s->box.ndim, 0, to - from,
                                 s->values + c * s->box.size[s->box.ndim - 1] * VALUE_BYTES);
    fv__object_add(&l->plan, object_at(s, slot), position, to - from, values);
    s->head.rest -= to - from;
}

static void put_objects(search *s, int64_t count) {
    const layout *l = &s->layout;
    fv__surfaces  none = { 0 };
    for (int64_t i = 0; i < count; i++) {
        fv__properties_row(&l->properties, &l->plan, &l->labels.image, &l->views, 0, &none, object_at(s, i), s->cells);
        if (l->chosen && !fv__condition_holds(&l->condition, &l->table, s->cells)) continue;
        for (int c = 0; c < l->ncolumns; c++) fv__bytes_append(s->run->partial, &s->cells[l->column[c]], sizeof *s->cells);
        s->head.objects++;
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    search s = { .run = r };
    void  *runs;
    lay_out(&s, &r->need, r->scratch, &runs);
    FV_TRY(fv__components_check(&r->need.in[0]->image, &s.box, s.layout.asked->connectivity, error));
    for (int d = 0; d < s.box.ndim; d++)
        if (s.box.size[d] > UINT16_MAX)
            return fv_fail(error, FV_ERROR_USAGE, "a chunk is %lld voxels long with its surroundings; use smaller ones (--chunk)",
                           (long long)s.box.size[d]);
    fv__runs_init(&s.runs, &r->need.in[0]->image, r->in[0], s.layout.asked->connectivity, runs);
    fv__runs_find(&s.runs);
    fv__runs_number(&s.runs, NULL);
    memset(s.components, 0, (size_t)s.runs.ncomponents * sizeof *s.components);
    each_stretch(&s, extend);
    if (number_own(&s)) each_stretch(&s, count_longer);
    fv__bytes_append(r->partial, &s.head, sizeof s.head);
    for (; s.first < s.count; s.first += s.capacity) {
        int64_t count = FV_MIN(s.capacity, s.count - s.first);
        for (int64_t i = 0; i < count; i++) fv__object_start(&s.layout.plan, object_at(&s, i), s.first + i + 1);
        each_stretch(&s, gather);
        put_objects(&s, count);
    }
    memcpy(r->partial->data, &s.head, sizeof s.head);
    return FV_OK;
}

/* ---------------------------------------------------------------- all of them, or some */

/* Partials of all chunks (finish), or of a sample. */
typedef struct source {
    fv_finish *finish;
    fv_sample *sample;
    int64_t    count;
} source;

static fv_status get_partial(source *s, int64_t i, const void **data, double *voxels, fv_error *error) {
    size_t size;
    if (s->sample) return s->sample->partial(s->sample, i, data, &size, voxels, error);
    *voxels = 0;
    return s->finish->partial(s->finish, i, data, error);
}

/* The values of one summary, chunk by chunk; missing ones are left out. */
typedef struct {
    fv__summary_units units;
    int64_t           rows;   /* objects, whether or not they have a value */
    int64_t           longer; /* voxels that are left out, of all chunks; of some, those that they met */
} column;

static fv_status take_room(column *c, source *s, fv_error *error) {
    bool all = !s->sample || s->sample->seen == s->sample->population;
    FV_TRY(fv__summary_units_take(&c->units, s->count, error));
    for (int64_t i = 0; i < s->count; i++) {
        const void *data;
        FV_TRY(get_partial(s, i, &data, &c->units.size[i], error));
        const head *h = data;
        c->units.rows[i] = h->objects;
        c->rows += h->objects;
        c->longer += all ? h->rest : h->longer;
    }
    return FV_TAKE(c->units.value, (size_t)(c->rows + 1) * sizeof *c->units.value, error);
}

/* place: of the summary's column among those of the partials, -1: count(). tally: takes them in as well. */
static fv_status read_column(column *c, source *s, const layout *l, int v, int place, fv__summary_tally *tally, fv_error *error) {
    int64_t n = 0;
    FV_TRY(take_room(c, s, error));
    for (int64_t i = 0; i < s->count; c->units.end[i++] = n) {
        const void *data;
        double      voxels;
        if (place < 0) continue;
        FV_TRY(get_partial(s, i, &data, &voxels, error));
        fv_column_kind kind = l->table.column[l->summaries.value[v].column].kind;
        const fv_cell *cell = (const fv_cell *)((const head *)data + 1) + place;
        for (int64_t k = 0; k < c->units.rows[i]; k++, cell += l->ncolumns) {
            if (fv__cell_missing(kind, *cell)) continue;
            c->units.value[n++] = fv__cell_number(kind, *cell);
            if (tally) fv__summary_add(tally, kind, *cell);
        }
    }
    return FV_OK;
}

/* As group gives it. */
static fv_status whole_value(const layout *l, int v, column *c, int64_t n, const fv__summary_tally *tally, fv_cell *cell,
                             fv_error *error) {
    fv__summary_function function = l->summaries.value[v].function;
    int                  of = l->summaries.value[v].column;
    *cell = (fv_cell){ .integer = c->rows };
    if (of < 0) return FV_OK;
    if (!fv__summary_ordered(function))
        return fv__summary_result(tally, l->table.column[of].kind, function, kind_of(l, v), l->table.column[of].name, cell,
                                  error);
    qsort(c->units.value, (size_t)n, sizeof *c->units.value, fv__numbers_ascending);
    cell->real = fv__sorted_quantile(c->units.value, n, l->summaries.value[v].share);
    return FV_OK;
}

static fv_status refuse_longer(const layout *l, int64_t longer, fv_error *error) {
    if (!longer || !l->asked->all) return FV_OK;
    return fv_fail(
        error, FV_ERROR_INPUT,
        "there are objects of more than %lld voxels along an axis, which a sample of chunks does not hold as a whole; give "
        "their length, as approx(objects(mask, \"mean(volume)\", reach = %lld), error = 0.02), or leave approx out",
        (long long)l->asked->reach, 4 * (long long)l->asked->reach);
}

static fv_status finish(fv_finish *f, fv_error *error) {
    source    s = { .finish = f, .count = f->npartials };
    layout    l;
    fv_cell   row[FV_MAX_COLUMNS] = { 0 };
    fv_status status = FV_OK;
    FV_TRY(lay_down(&l, f->params, f->in, error));
    for (int v = 0, place = 0; v < l.summaries.count && status == FV_OK; v++) {
        column            c = { 0 };
        fv__summary_tally tally = { 0 };
        int               of = l.summaries.value[v].column < 0 ? -1 : place++;
        fv__summary_start(&tally);
        status = read_column(&c, &s, &l, v, of, &tally, error);
        if (status == FV_OK) status = refuse_longer(&l, c.longer, error);
        if (status == FV_OK)
            status = whole_value(&l, v, &c, s.count ? c.units.end[s.count - 1] : 0, &tally, &row[VALUES + v], error);
        row[LONGER].integer = c.longer;
        fv__summary_release(&tally);
        fv__summary_units_release(&c.units);
    }
    return status == FV_OK ? f->put(f, 0, row, (size_t)(VALUES + l.summaries.count) * sizeof *row, error) : status;
}

/* ---------------------------------------------------------------- from some of the chunks */

static fv_status look_at(fv_sample *s, const layout *l, int v, int place, fv_estimates *e, fv_error *error) {
    source            from = { .sample = s, .count = s->seen };
    column            c = { 0 };
    fv__summary_tally tally = { 0 };
    fv_cell           cell;
    fv_interval      *interval = &e->interval[v];
    fv__summary_start(&tally);
    fv_status status = read_column(&c, &from, l, v, place, &tally, error);
    if (status == FV_OK) status = refuse_longer(l, c.longer, error);
    if (status == FV_OK && s->seen == s->population) {
        status = whole_value(l, v, &c, c.units.end[s->seen - 1], &tally, &cell, error);
        interval->value = interval->low = interval->high = fv__cell_number(kind_of(l, v), cell);
        snprintf(interval->method, sizeof interval->method, "exact");
    } else if (status == FV_OK) {
        status = fv__estimate_summary(s, l->summaries.value[v].function, l->summaries.value[v].column,
                                      l->summaries.value[v].share, &c.units, s->voxels, interval, error);
    }
    e->plain[LONGER].integer = c.longer;
    fv__summary_release(&tally);
    fv__summary_units_release(&c.units);
    return status;
}

static fv_status estimate_rows(fv_sample *s, fv_estimates *e, fv_error *error) {
    layout l;
    FV_TRY(lay_down(&l, s->params, s->in, error));
    fv__estimates_init(e, 1, VALUES, l.summaries.count);
    for (int v = 0, place = 0; v < l.summaries.count; v++) {
        int of = l.summaries.value[v].column < 0 ? -1 : place++;
        FV_TRY(look_at(s, &l, v, of, e, error));
    }
    return FV_OK;
}

static const char *hindered(const void *params_, const fv_type *const *in) {
    layout   l;
    fv_error error = { 0 };
    if (lay_down(&l, params_, in, &error) != FV_OK) return NULL;
    const char *why = NULL;
    for (int v = 0; v < l.summaries.count && !why; v++) why = fv__summary_hindered(l.summaries.value[v].function);
    return why;
}

/* ---------------------------------------------------------------- the operator */

static double cost(const fv_need *n) {
    fv_region box = box_of(n);
    return 4 * (double)fv__region_voxels(&box) / (double)FV_MAX(fv__region_voxels(&n->region), 1);
}

static const fv_pass passes[] = {
    { .name = "search", .need = need, .scratch = scratch, .bound = bound, .run = run, .finish = finish }, FV_PASS_END
};

static const fv_column_doc columns[] = {
    { "longer", "px",
      .doc = "voxels in objects that were left out because they are longer than reach; of an estimate, in the "
             "chunks that were seen and behind them" },
    { "<summaries in values>", .doc = "one column for each: count, mean_volume and so on, or the name that as gives it" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(objects) = {
    .name = "objects",
    .family = "measurement",
    .brief = "count and summarise the objects of a mask in one pass, without labels",
    .version = 2,
    .also = "count_objects, particle count, object statistics",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(objects),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc =
        "Where longer is 0, no object was left out, and the other columns are those of group(measure(label(image)), \"\", "
        "values), "
        "bit by bit. Each object belongs to the chunk at the corner of its box, and the image is read with reach voxels behind "
        "each chunk, so objects are counted once and as a whole. This is what approx can sample: approx(objects(mask, \"count(), "
        "mean(volume)\"), error = 0.02) looks at some of the chunks and gives each summary with an interval, without bias at the "
        "borders of chunks. A small reach is faster.",
    .citation = "W. G. Cochran, Sampling Techniques, Wiley, 1977; H. J. G. Gundersen, Notes on the estimation of the numerical "
                "density of arbitrary profiles: the edge effect, J. Microscopy 111, 1977",
    .example = "objects(phantom(\"cells\", [200, 200]) > 100, \"count(), mean(volume)\")",
    .see = "label measure group approx",
    .columns = columns,
};

const fv_estimator FV_ESTIMATOR(objects) = { .rows = estimate_rows, .plain = VALUES, .hindered = hindered };
