/* track: objects of a movie that belong together, from one time to the next.
 *
 * A task adds up the voxels and places of the objects of its chunk and, where links follow overlaps, the voxels that they share
 * with objects of the next times; it writes them as sorted runs. The end streams them in order of time through linking.c, so the
 * result depends on the sums alone, and only the times that a link may reach over are in memory.
 */
#include "kernels/stretches.h"
#include "op/axes.h"
#include "op/record_gather.h"
#include "op/row_sorter.h"
#include "ops/measurement/linking.h"
#include <stdio.h>

typedef struct {
    fv_choice by;
    double    max_distance;
    int64_t   gap;
    bool      divide;
    fv_choice rows;
} track;
enum { OVERLAP, DISTANCE };
enum { TRACKS, OBJECTS };
enum { TRACK_COLUMNS = 7 };

static const fv_param params[] = {
    FV_PARAM(track, by, .def = "overlap", .choices = "overlap|distance",
             .doc =
                 "overlap: an object follows the one that it shares most voxels with; distance: pairs with the nearest middles, "
                 "the nearest first"),
    FV_PARAM(track, max_distance, .def = "20", .min = 0, .above = true, .unit = "length",
             .doc = "by distance: how far an object moves at most from one time to the next"),
    FV_PARAM(track, gap, .def = "0", .min = 0, .max = 100, .doc = "for how many times in a row an object may be lost"),
    FV_PARAM(track, divide, .def = "true",
             .doc =
                 "by overlap: where several objects follow one, its track ends and theirs begin, with it as their parent; false: "
                 "the largest overlap goes on, the others begin without a parent"),
    FV_PARAM(track, rows, .def = "tracks", .choices = "tracks|objects", .doc = "one row for each track, or one for each object"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "labels", FV_KIND_IMAGE,
                                     .doc = "label image with an axis t, each time with labels of its own; 0 is background" },
                                   FV_INPUT_END };

static void name_column(fv_table_type *table, fv_column_kind kind, const char *name, const char *axis) {
    fv_column *column = &table->column[table->ncolumns++];
    column->kind = kind;
    snprintf(column->name, sizeof column->name, "%s%s", name, axis);
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *labels = &i->in[0]->image;
    fv_table_type       *table = fv__arena_alloc(i->arena, sizeof *table);
    int                  spatial[FV_MAX_DIMS], n = fv_image_type_spatial(labels, spatial), time = fv__axis_find(labels, "t");
    if (labels->dtype != FV_BOOL && !fv_dtype_is_integer(labels->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "labels is %s; it must be an integer image, such as label() makes",
                       fv_dtype_name(labels->dtype));
    if (time < 0)
        return fv_fail(error, FV_ERROR_USAGE,
                       "labels has no axis t; name_axes(labels, \"t y x\") says which axis is the time, read(..., stack = \"t\") "
                       "makes one of files");
    if (time == labels->ndim - 1 || n != labels->ndim - 1 || n < 1 || n > 3)
        return fv_fail(error, FV_ERROR_USAGE, "labels must have the axes t and one to three of z, y, x, and x last");
    *table = (fv_table_type){ 0 };
    if (((const track *)i->params)->rows.index == TRACKS) {
        static const char *const whole[] = { "track", "parent", "start", "end", "objects" };
        for (int k = 0; k < FV_COUNT(whole); k++) name_column(table, FV_COLUMN_INTEGER, whole[k], "");
        name_column(table, FV_COLUMN_REAL, "displacement", "");
        name_column(table, FV_COLUMN_REAL, "path", "");
    } else {
        static const char *const whole[] = { "track", "t", "label", "parent", "voxels" };
        for (int k = 0; k < FV_COUNT(whole); k++) name_column(table, FV_COLUMN_INTEGER, whole[k], "");
        for (int k = 0; k < n; k++) name_column(table, FV_COLUMN_REAL, "centroid_", labels->axis[spatial[k]]);
    }
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = table };
    return FV_OK;
}

/* How many times ahead overlaps are looked for. */
static int64_t ahead_of(const track *p) { return p->by.index == OVERLAP ? p->gap + 1 : 0; }

static void need(const fv_need *n, fv_region *in) {
    int     time = fv__axis_find(&n->in[0]->image, "t");
    int64_t none[FV_MAX_DIMS] = { 0 }, next[FV_MAX_DIMS] = { 0 };
    next[time] = ahead_of(n->params);
    fv_region grown = fv__region_grow(&n->region, none, next);
    in[0] = fv__region_clip(&grown, n->in[0]->image.shape);
}

/* ---------------------------------------------------------------- gathering a chunk */

typedef struct {
    fv_run_key key;      /* time, label; 0 and 0, or how many times ahead another label lies, and that */
    int64_t    voxels;   /* of it, or of both */
    int64_t    place[3]; /* sums of its coordinates */
} record;

static int by_key(const record *a, const record *b) { return fv__run_key_compare(&a->key, &b->key); }

static void add_up(record *into, const record *from) {
    into->voxels += from->voxels;
    for (int d = 0; d < 3; d++) into->place[d] += from->place[d];
}

FV_RECORD_GATHER(record, by_key, add_up, fv__records_append)

typedef struct {
    records     records;
    fv_stretch *here, *there;
} gather;

static int64_t most_records(const fv_need *n) { return (ahead_of(n->params) + 1) * fv__region_voxels(&n->region); }

static size_t lay_out(gather *g, const fv_need *n, void *scratch) {
    fv_scratch pieces = { scratch, 0 };
    int64_t    length = n->region.size[n->region.ndim - 1];
    records_lay_out(&g->records, &pieces, most_records(n));
    g->here = fv__scratch_take(&pieces, length * (int64_t)sizeof *g->here);
    g->there = fv__scratch_take(&pieces, length * (int64_t)sizeof *g->there);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    gather g;
    return lay_out(&g, n, NULL);
}

static size_t bound(const fv_need *n) {
    gather g;
    lay_out(&g, n, NULL);
    return records_bound(&g.records, most_records(n), sizeof(record));
}

/* What two rows of stretches have in common. */
static void add_common(gather *g, int64_t time, int64_t ahead, int64_t nhere, int64_t nthere) {
    for (int64_t i = 0, k = 0; i < nhere && k < nthere;) {
        const fv_stretch *a = &g->here[i], *b = &g->there[k];
        int64_t           common = FV_MIN(a->end, b->end) - FV_MAX(a->start, b->start);
        if (common > 0) *records_next(&g->records) = (record){ .key = { time, a->label, ahead, b->label }, .voxels = common };
        if (a->end < b->end)
            i++;
        else
            k++;
    }
}

static fv_status add_row(gather *g, const fv_run *r, const int64_t *position, int time, fv_error *error) {
    const fv_block      *labels = r->in[0];
    const fv_image_type *type = &r->need.in[0]->image;
    int                  last = labels->region.ndim - 1, spatial[FV_MAX_DIMS], n = fv_image_type_spatial(type, spatial);
    int64_t              length = r->need.region.size[last], t = position[time];
    int64_t              count = fv__stretches(g->here, labels->dtype, fv__block_at(labels, position), length);
    for (int64_t i = 0; i < count; i++) {
        const fv_stretch *s = &g->here[i];
        int64_t           voxels = s->end - s->start, first = position[last] + s->start;
        record            one = { .key = { t, s->label }, .voxels = voxels };
        if (labels->dtype == FV_UINT64 && s->label < 0)
            return fv_fail(error, FV_ERROR_INPUT, "labels holds %llu; labels must be below 2^63", (unsigned long long)s->label);
        for (int d = 0; d < n - 1; d++) one.place[d] = voxels * position[spatial[d]];
        one.place[n - 1] = voxels * first + voxels * (voxels - 1) / 2;
        *records_next(&g->records) = one;
    }
    int64_t end = labels->region.start[time] + labels->region.size[time];
    for (int64_t ahead = 1; ahead <= ahead_of(r->need.params) && t + ahead < end && count; ahead++) {
        int64_t other[FV_MAX_DIMS];
        memcpy(other, position, sizeof other);
        other[time] = t + ahead;
        add_common(g, t, ahead, count, fv__stretches(g->there, labels->dtype, fv__block_at(labels, other), length));
    }
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) {
    gather  g = { .records.partial = r->partial };
    int     time = fv__axis_find(&r->need.in[0]->image, "t");
    fv_rows rows;
    lay_out(&g, &r->need, r->scratch);
    for (fv__rows_begin(&rows, &r->need.region); fv__rows_next(&rows);) FV_TRY(add_row(&g, r, rows.position, time, error));
    records_settle(&g.records, true);
    return FV_OK;
}

/* ---------------------------------------------------------------- rows */

typedef struct {
    fv__linking    linking;
    record         sum;
    fv_row_writer  rows;
    fv_row_sorter *sorter; /* of tracks, which end in another order than they began */
} merge;

static void key(const void *context, const uint8_t *from, fv_run_key *key) {
    (void)context;
    memcpy(key, from, sizeof *key);
}

static void start(void *context, const fv_run_key *key) { ((merge *)context)->sum = (record){ .key = *key }; }

static const uint8_t *add(void *context, const uint8_t *from, const fv_region *chunk) {
    record r;
    (void)chunk;
    memcpy(&r, from, sizeof r);
    add_up(&((merge *)context)->sum, &r);
    return from + sizeof r;
}

static fv_status end(void *context, fv_error *error) {
    merge        *m = context;
    const record *r = &m->sum;
    double        middle[3] = { 0 };
    if (r->key.third) return fv__linking_shared(&m->linking, r->key.third, r->key.fourth, r->voxels, error);
    for (int d = 0; d < m->linking.n; d++) middle[d] = (double)r->place[d] / (double)r->voxels;
    return fv__linking_object(&m->linking, r->key.first, r->key.second, r->voxels, middle, error);
}

static fv_status put_object(void *context, const fv__tracked *o, fv_error *error) {
    merge   *m = context;
    fv_cell *row;
    FV_TRY(fv__row_writer_next(&m->rows, &row, error));
    row[0].integer = o->track;
    row[1].integer = o->time;
    row[2].integer = o->label;
    row[3].integer = o->parent;
    row[4].integer = o->voxels;
    for (int d = 0; d < m->linking.n; d++) row[5 + d].real = o->middle[d];
    return FV_OK;
}

static fv_status add_track(void *context, const fv__tracked *last, fv_error *error) {
    merge  *m = context;
    fv_cell row[TRACK_COLUMNS];
    row[0].integer = last->track;
    row[1].integer = last->parent;
    row[2].integer = last->start;
    row[3].integer = last->time;
    row[4].integer = last->objects;
    row[5].real = fv__linking_distance(&m->linking, last->first, last->middle);
    row[6].real = last->path;
    return fv__row_sorter_add_numbered(m->sorter, row, last->track, error);
}

static fv_status put_tracks(merge *m, fv_error *error) {
    for (;;) {
        const fv_cell *from;
        fv_cell       *row;
        FV_TRY(fv__row_sorter_next(m->sorter, &from, NULL, error));
        if (!from) return FV_OK;
        FV_TRY(fv__row_writer_next(&m->rows, &row, error));
        memcpy(row, from, TRACK_COLUMNS * sizeof *row);
    }
}

static fv_status finish(fv_finish *f, fv_error *error) {
    static const fv_sorted_runs runs = { .most = sizeof(record), .key = key, .start = start, .add = add, .end = end };
    const track                *p = f->params;
    merge                       m = { 0 };
    int                         spatial[FV_MAX_DIMS];
    bool                        tracks = p->rows.index == TRACKS;
    m.linking = (fv__linking){ .by_overlap = p->by.index == OVERLAP,
                               .divide = p->divide,
                               .gap = p->gap,
                               .max_distance = p->max_distance,
                               .n = fv_image_type_spatial(&f->in[0]->image, spatial),
                               .numbered = tracks ? NULL : put_object,
                               .ended = tracks ? add_track : NULL,
                               .context = &m };
    for (int d = 0; d < m.linking.n; d++) m.linking.spacing[d] = f->in[0]->image.spacing[spatial[d]];
    if (tracks) m.sorter = fv__row_sorter_new(f->out->table, NULL, NULL);
    fv__row_writer_init(&m.rows, f);
    fv_status status = fv__linking_begin(&m.linking, error);
    if (status == FV_OK) status = fv__sorted_runs_merge(f, &runs, &m, error);
    if (status == FV_OK) status = fv__linking_end(&m.linking, error);
    if (status == FV_OK && tracks) status = put_tracks(&m, error);
    if (status == FV_OK) status = fv__row_writer_flush(&m.rows, error);
    fv__row_writer_release(&m.rows);
    if (tracks) fv__row_sorter_free(m.sorter);
    fv__linking_release(&m.linking);
    return status;
}

/* ---------------------------------------------------------------- the operator */

static double cost(const fv_need *n) { return 2 + 2 * (double)ahead_of(n->params); }

static const fv_pass passes[] = {
    { .name = "gather", .need = need, .scratch = scratch, .bound = bound, .run = run, .finish = finish }, FV_PASS_END
};

static const fv_column_doc columns[] = {
    { "track", .doc = "number of the track, from 1 on, in order of the time and label of its first object" },
    { "parent", .doc = "track that divided into this one and others; 0: none" },
    { "start", .doc = "rows = tracks: time of its first object, counted from 0" },
    { "end", .doc = "rows = tracks: time of its last object" },
    { "objects", .doc = "rows = tracks: number of its objects" },
    { "displacement", "length", .doc = "rows = tracks: distance between the middles of its first and last object" },
    { "path", "length", .doc = "rows = tracks: length of the way from middle to middle" },
    { "t", .doc = "rows = objects: time of the object" },
    { "label", .doc = "rows = objects: its label at that time" },
    { "voxels", .doc = "rows = objects: its size" },
    { "centroid_AXIS", "px", .doc = "rows = objects: its middle, along each axis of space" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(track) = {
    .name = "track",
    .family = "measurement",
    .brief = "follow the objects of a movie from time to time",
    .also = "trackpy, linkage, lineage, TrackMate",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(track),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc =
        "Labels change freely from one time to the next: label each time by itself. By overlap, an object follows the one of the "
        "time before with which it shares most voxels; several may follow one (see divide), and where several would go on in "
        "one, only that with the largest overlap does. By distance, pairs of middles are linked one to one, the nearest first. "
        "gap = 2 goes on with a track that was lost for up to two times. Of equal links that with the lower labels is taken. "
        "rows = \"objects\" and join(..., on = \"t, label\") bring tracks to other measures of the same objects.",
    .example = "movie = name_axes(phantom(\"cells\", [6, 64, 64]), \"t y x\")\n"
               "track(label(movie > 80), gap = 1)",
    .see = "measure overlaps label join",
    .columns = columns,
};
