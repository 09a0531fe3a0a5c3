/* percentiles: a table of the percentiles of intensities inside labels.
 *
 * A task counts the values of each label and writes them as sorted runs by label and value, behind a record of how many there
 * are. So the merge knows the number of a label's values before the first of them, and picks those it wants as they pass: it
 * holds nothing, however many there are.
 */
#include "kernels/keys.h"
#include "kernels/stretches.h"
#include "op/record_gather.h"
#include "ops/measurement/per_axis.h"
#include "ops/measurement/views.h"
#include <stdio.h>

typedef struct {
    fv_numbers  percentiles;
    const char *per;
} percentiles;

static const fv_param params[] = {
    FV_PARAM(percentiles, percentiles, .def = "50", .min = 0, .max = 100,
             .doc = "percentiles to find, whole numbers from 0 to 100; 50 is the median"),
    FV_PARAM(percentiles, per, .def = "", .doc = FV_DOC_PER),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "labels", FV_KIND_IMAGE, .doc = "label image; 0 is background" },
    { "intensity", FV_KIND_IMAGE, .doc = "image whose values are looked at; axes are matched by name" },
    { "intensity_2", FV_KIND_IMAGE, .optional = true, .doc = "a second such image; its columns end in _2" },
    { "intensity_3", FV_KIND_IMAGE, .optional = true, .doc = "a third one; its columns end in _3" },
    { "intensity_4", FV_KIND_IMAGE, .optional = true, .doc = "a fourth one; its columns end in _4" },
    FV_INPUT_END,
};

enum { INPUTS = 5, RECORD_BYTES = 48 };

/* ---------------------------------------------------------------- what follows from types and parameters */

typedef struct {
    int            per;
    fv_type        labels; /* without that axis */
    const fv_type *in[FV_MAX_INPUTS];
    fv__views      views;
} layout;

static fv_status lay_down(layout *l, const void *params_, const fv_type *const *in, fv_error *error) {
    FV_TRY(fv__per_find(((const percentiles *)params_)->per, &in[0]->image, &l->per, error));
    memcpy(l->in, in, sizeof l->in);
    l->labels = fv__per_type(in[0], l->per);
    l->in[0] = &l->labels;
    FV_TRY(fv__views_init(&l->views, l->in, inputs, error));
    if (l->per < 0) return FV_OK;
    return fv__views_apart(&l->views, in[0]->image.axis[l->per], in[0]->image.shape[l->per], error);
}

static fv_status add_column(fv_table_type *table, const char *name, fv_column_kind kind, fv_error *error) {
    if (table->ncolumns == FV_MAX_COLUMNS)
        return fv_fail(error, FV_ERROR_USAGE, "a table can have %d columns; choose fewer percentiles or images", FV_MAX_COLUMNS);
    fv_column *column = &table->column[table->ncolumns++];
    column->kind = kind;
    snprintf(column->name, sizeof column->name, "%.39s", name);
    return FV_OK;
}

static fv_status check(const fv_infer *i, fv_error *error) {
    const fv_image_type *labels = &i->in[0]->image;
    const fv_numbers    *numbers = &((const percentiles *)i->params)->percentiles;
    if (labels->dtype != FV_BOOL && !fv_dtype_is_integer(labels->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "labels is %s; it must be an integer image, such as label() makes",
                       fv_dtype_name(labels->dtype));
    for (int k = 1; k < INPUTS; k++)
        if (i->in[k]->kind == FV_KIND_IMAGE && fv_dtype_is_complex(i->in[k]->image.dtype))
            return fv_fail(error, FV_ERROR_USAGE, "%s is %s; it must be real", inputs[k].name,
                           fv_dtype_name(i->in[k]->image.dtype));
    for (int k = 0; k < numbers->count; k++)
        if (numbers->value[k] != floor(numbers->value[k]))
            return fv_fail(error, FV_ERROR_USAGE, "percentiles: %g is no whole number", numbers->value[k]);
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_numbers *numbers = &((const percentiles *)i->params)->percentiles;
    fv_table_type    *table = fv__arena_alloc(i->arena, sizeof *table);
    layout            l;
    FV_TRY(check(i, error));
    FV_TRY(lay_down(&l, i->params, i->in, error));
    *table = (fv_table_type){ 0 };
    FV_TRY(add_column(table, "label", FV_COLUMN_INTEGER, error));
    for (int k = 0; k < l.views.naxes; k++) FV_TRY(add_column(table, l.views.axis[k], FV_COLUMN_INTEGER, error));
    for (int k = 0; k < numbers->count; k++)
        for (int v = 0; v < l.views.count; v++) {
            char name[80];
            snprintf(name, sizeof name, "percentile_%g%s", numbers->value[k], l.views.view[v].suffix);
            if (fv__table_column(table, name) >= 0)
                return fv_fail(error, FV_ERROR_USAGE, "percentiles: %g is there twice", numbers->value[k]);
            FV_TRY(add_column(table, name, FV_COLUMN_REAL, error));
        }
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = table };
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    layout    l;
    fv_error  error = { 0 };
    fv_region chunk;
    lay_down(&l, n->params, n->in, &error);
    chunk = fv__per_region(&n->region, l.per);
    fv__views_need(&l.views, l.in, &chunk, in);
    for (int k = 0; k < l.views.count && l.per >= 0; k++) {
        int axis = l.views.view[k].row[0];
        if (axis < 0) continue;
        in[l.views.view[k].input].start[axis] = n->region.start[l.per];
        in[l.views.view[k].input].size[axis] = n->region.size[l.per];
    }
}

/* ---------------------------------------------------------------- values in their order */

static int64_t ordered(fv_dtype dtype, const void *values, int64_t i) {
    switch (dtype) {
    case FV_BOOL:
    case FV_UINT8: return ((const uint8_t *)values)[i];
    case FV_INT8: return ((const int8_t *)values)[i];
    case FV_UINT16: return ((const uint16_t *)values)[i];
    case FV_INT16: return ((const int16_t *)values)[i];
    case FV_UINT32: return ((const uint32_t *)values)[i];
    case FV_INT32: return ((const int32_t *)values)[i];
    case FV_INT64: return ((const int64_t *)values)[i];
    case FV_UINT64: return fv__run_key_unsigned(((const uint64_t *)values)[i]);
    case FV_FLOAT32: return fv__run_key_unsigned(fv__key_f64(((const float *)values)[i]));
    default: return fv__run_key_unsigned(fv__key_f64(((const double *)values)[i]));
    }
}

static double value_of(fv_dtype dtype, int64_t key) {
    uint64_t natural = (uint64_t)key ^ (uint64_t)1 << 63;
    if (dtype == FV_FLOAT32 || dtype == FV_FLOAT64) return fv__key_to_f64(natural);
    return dtype == FV_UINT64 ? (double)natural : (double)key;
}

/* ---------------------------------------------------------------- records */

/* Index of the axes that labels lacks, label, twice the channel: how many values (fourth 0) and how many of them are nan (1); and
 * one more: a value, and how often it is there. Written: whether anything but the value differs from the record before, and what;
 * the value, as a difference if not; the count. */
typedef struct {
    fv_run_key key;
    int64_t    count;
} record;

enum { OTHER = 1, ONCE = 2 };

static uint8_t *write_record(const record *r, const fv_run_key *last, bool first, uint8_t *to) {
    bool other = first || r->key.first != last->first || r->key.second != last->second || r->key.third != last->third;
    *to++ = (uint8_t)((other ? OTHER : 0) | (r->count == 1 ? ONCE : 0));
    if (other) {
        to = fv__varint_put(to, (uint64_t)r->key.first);
        to = fv__varint_put(to, fv__zigzag(r->key.second));
        to = fv__varint_put(to, (uint64_t)r->key.third);
        to = fv__varint_put(to, fv__zigzag(r->key.fourth));
    } else
        to = fv__varint_put(to, (uint64_t)r->key.fourth - (uint64_t)last->fourth);
    return r->count == 1 ? to : fv__varint_put(to, (uint64_t)r->count);
}

/* key: of the record before; NULL: only the count is wanted. */
static const uint8_t *read_record(const uint8_t *from, fv_run_key *key, int64_t *count) {
    unsigned __int128 part[4] = { 0 }, times = 1;
    int               flags = *from++;
    for (int k = 0; k < (flags & OTHER ? 4 : 1); k++) from = fv__varint_get(from, &part[k]);
    if (!(flags & ONCE)) from = fv__varint_get(from, &times);
    *count = (int64_t)times;
    if (!key) return from;
    if (flags & OTHER)
        *key = (fv_run_key){ (int64_t)part[0], (int64_t)fv__zagzig(part[1]), (int64_t)part[2], (int64_t)fv__zagzig(part[3]) };
    else
        key->fourth = (int64_t)((uint64_t)key->fourth + (uint64_t)part[0]);
    return from;
}

/* ---------------------------------------------------------------- gathering a chunk */

static int  by_key(const record *a, const record *b) { return fv__run_key_compare(&a->key, &b->key); }
static void add_count(record *into, const record *from) { into->count += from->count; }

static void write_run(fv_bytes *partial, const record *all, int64_t count) {
    fv_run_key last = { 0 };
    for (int64_t i = 0; i < count; i++) {
        uint8_t bytes[RECORD_BYTES], *end = write_record(&all[i], &last, i == 0, bytes);
        fv__bytes_append(partial, bytes, (size_t)(end - bytes));
        last = all[i].key;
    }
}

FV_RECORD_GATHER(record, by_key, add_count, write_run)

typedef struct {
    layout      l;
    fv_region   chunk; /* without the axis per */
    int64_t     row;
    records     records;
    fv_stretch *stretches;
    char       *values;
} gather;

static size_t lay_out(gather *g, const fv_need *n, void *scratch) {
    fv_scratch pieces = { scratch, 0 };
    fv_error   error = { 0 };
    int64_t    length = n->region.size[n->region.ndim - 1];
    lay_down(&g->l, n->params, n->in, &error);
    g->chunk = fv__per_region(&n->region, g->l.per);
    records_lay_out(&g->records, &pieces, 3 * fv__region_voxels(&n->region));
    g->stretches = fv__scratch_take(&pieces, length * (int64_t)sizeof *g->stretches);
    g->values = fv__scratch_take(&pieces, length * 8);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    gather g;
    return lay_out(&g, n, NULL);
}

/* A voxel gives its value, and where it is alone in its label two counts. */
static size_t bound(const fv_need *n) {
    gather g;
    lay_out(&g, n, NULL);
    int64_t label = (int64_t)fv_dtype_size(n->in[0]->image.dtype) * 8 / 7 + 1, row = fv__varint_bytes((uint64_t)g.l.views.rows);
    int64_t voxels = fv__region_voxels(&n->region) * g.l.views.count * (g.l.per < 0 ? g.l.views.rows : 1);
    int64_t of_value = 1 + row + label + 1 + 10, of_count = 1 + row + label + 1 + 1;
    return records_bound(&g.records, 3 * voxels, (of_value + 2 * of_count + 2) / 3);
}

/* A full run is written at once: keeping what was put together would sort the values of earlier rows again and again. */
static void add_record(gather *g, int64_t label, int64_t third, int64_t fourth, int64_t count) {
    if (g->records.count == g->records.capacity) records_settle(&g->records, true);
    *records_next(&g->records) = (record){ { g->row, label, third, fourth }, count };
}

static fv_status add_row(gather *g, const fv_run *r, const fv_block *labels, const int64_t *position, fv_error *error) {
    int     last = g->chunk.ndim - 1;
    int64_t n = g->chunk.size[last], count = fv__stretches(g->stretches, labels->dtype, fv__block_at(labels, position), n);
    for (int c = 0; c < g->l.views.count && count; c++) {
        const fv_block *image = r->in[g->l.views.view[c].input];
        const void     *values = fv__view_row(&g->l.views, c, image, position, last + 1, g->row, n, g->values);
        bool            real = image->dtype == FV_FLOAT32 || image->dtype == FV_FLOAT64;
        for (int64_t i = 0; i < count; i++) {
            const fv_stretch *s = &g->stretches[i];
            int64_t           nans = 0;
            if (labels->dtype == FV_UINT64 && s->label < 0)
                return fv_fail(error, FV_ERROR_INPUT, "labels holds %llu; labels must be below 2^63",
                               (unsigned long long)s->label);
            for (int64_t k = s->start; k < s->end; k++) {
                int64_t key = ordered(image->dtype, values, k);
                nans += real && isnan(value_of(image->dtype, key));
                add_record(g, s->label, 2 * c + 1, key, 1);
            }
            add_record(g, s->label, 2 * c, 0, s->end - s->start);
            if (nans) add_record(g, s->label, 2 * c, 1, nans);
        }
    }
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) {
    gather g = { .records.partial = r->partial };
    lay_out(&g, &r->need, r->scratch);
    int64_t from = g.l.per < 0 ? 0 : r->need.region.start[g.l.per];
    int64_t to = g.l.per < 0 ? g.l.views.rows : from + r->need.region.size[g.l.per];
    for (g.row = from; g.row < to; g.row++) {
        fv_block labels = fv__per_block(r->in[0], g.l.per, g.row);
        fv_rows  rows;
        for (fv__rows_begin(&rows, &g.chunk); fv__rows_next(&rows);) FV_TRY(add_row(&g, r, &labels, rows.position, error));
    }
    records_settle(&g.records, true);
    return FV_OK;
}

/* ---------------------------------------------------------------- merging */

typedef struct {
    fv_row_writer     rows;
    layout            l;
    const fv_numbers *numbers;
    fv_run_key        key; /* under way */
    int64_t           count;
    bool              any;
    int64_t           row, label;
    int64_t           values, nans, passed; /* of the channel under way */
    double            low[FV_MAX_NUMBERS][FV__CHANNELS], high[FV_MAX_NUMBERS][FV__CHANNELS], part[FV_MAX_NUMBERS][FV__CHANNELS];
} merge;

static void key(const void *context, const uint8_t *from, fv_run_key *key) {
    int64_t count;
    (void)context;
    read_record(from, key, &count);
}

static void start(void *context, const fv_run_key *key) {
    merge *m = context;
    m->key = *key;
    m->count = 0;
}

static const uint8_t *add(void *context, const uint8_t *from, const fv_region *chunk) {
    int64_t        count;
    const uint8_t *end = read_record(from, NULL, &count);
    (void)chunk;
    ((merge *)context)->count += count;
    return end;
}

/* Between two values, as numpy computes it. */
static double between(double low, double high, double part) {
    return part < 0.5 ? low + (high - low) * part : high - (high - low) * (1 - part);
}

static fv_status put_label(merge *m, fv_error *error) {
    fv_cell *cells;
    int64_t  row = m->row;
    if (!m->any) return FV_OK;
    FV_TRY(fv__row_writer_next(&m->rows, &cells, error));
    cells++->integer = m->label;
    for (int k = m->l.views.naxes - 1; k >= 0; k--) {
        cells[k].integer = row % m->l.views.length[k];
        row /= m->l.views.length[k];
    }
    cells += m->l.views.naxes;
    for (int k = 0; k < m->numbers->count; k++)
        for (int c = 0; c < m->l.views.count; c++) cells++->real = between(m->low[k][c], m->high[k][c], m->part[k][c]);
    return FV_OK;
}

static void take_value(merge *m, int channel) {
    double value = value_of(m->l.in[m->l.views.view[channel].input]->image.dtype, m->key.fourth);
    for (int k = 0; k < m->numbers->count; k++) {
        double  place = m->numbers->value[k] / 100 * (double)(m->values - 1);
        int64_t at = (int64_t)floor(place), next = FV_MIN(at + 1, m->values - 1);
        m->part[k][channel] = place - (double)at;
        if (at >= m->passed && at < m->passed + m->count) m->low[k][channel] = m->nans ? NAN : value;
        if (next >= m->passed && next < m->passed + m->count) m->high[k][channel] = m->nans ? NAN : value;
    }
    m->passed += m->count;
}

static fv_status end(void *context, fv_error *error) {
    merge *m = context;
    int    channel = (int)(m->key.third / 2);
    if (!m->any || m->key.first != m->row || m->key.second != m->label) {
        FV_TRY(put_label(m, error));
        m->any = true;
        m->row = m->key.first;
        m->label = m->key.second;
    }
    if (m->key.third % 2)
        take_value(m, channel);
    else if (m->key.fourth)
        m->nans = m->count;
    else
        m->values = m->count, m->nans = m->passed = 0;
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    static const fv_sorted_runs runs = { .most = RECORD_BYTES, .key = key, .start = start, .add = add, .end = end };
    merge                       m = { .numbers = &((const percentiles *)f->params)->percentiles };
    FV_TRY(lay_down(&m.l, f->params, f->in, error));
    fv__row_writer_init(&m.rows, f);
    fv_status status = fv__sorted_runs_merge(f, &runs, &m, error);
    if (status == FV_OK) status = put_label(&m, error);
    if (status == FV_OK) status = fv__row_writer_flush(&m.rows, error);
    fv__row_writer_release(&m.rows);
    return status;
}

/* ---------------------------------------------------------------- the operator */

static double cost(const fv_need *n) {
    gather g;
    lay_out(&g, n, NULL);
    return 100. * g.l.views.count * (double)(g.l.per < 0 ? g.l.views.rows : 1);
}

static const fv_pass passes[] = {
    { .name = "gather", .need = need, .scratch = scratch, .bound = bound, .run = run, .finish = finish }, FV_PASS_END
};

static const fv_column_doc columns[] = {
    { "label", .doc = "number of the object in the label image" },
    { "<axes>", .doc = "index along each axis that only the images have, and along per" },
    { "percentile_N", .doc = "the value below which N percent of the voxels of the object lie" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(percentiles) = {
    .name = "percentiles",
    .family = "measurement",
    .brief = "median and other percentiles of the intensity inside each object",
    .also = "labeled_comprehension, ndimage.median",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(percentiles),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc =
        "What measure calls for median and percentile_N; measure(labels, image, properties = \"mean median percentile_95\") puts "
        "them beside other properties. Between two values the result lies as numpy.percentile puts it. It is exact for objects "
        "of any size. An object with nan in it has nan. Images, channels and further axes are treated as measure does.",
    .example = "image = phantom(\"cells\", [200, 200])\n"
               "percentiles(label(image > 60), image, percentiles = [5, 50, 95])",
    .see = "measure quantile percentile",
    .columns = columns,
};
