/* track: objects of a movie that belong together, from one time to the next.
 *
 * A task adds up the voxels and places of the objects of its chunk and, where links follow overlaps, the voxels that they share
 * with objects of the next times; it writes them as sorted runs. The end links times in order, so the result depends on the sums
 * alone.
 */
#include "op/axes.h"
#include "op/record_gather.h"
#include "op/stretches.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    fv_choice by;
    double    max_distance;
    int64_t   gap;
    bool      divide;
    fv_choice rows;
} track;
enum { OVERLAP, DISTANCE };
enum { TRACKS, OBJECTS };

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

/* ---------------------------------------------------------------- what there is */

typedef struct {
    int64_t time, label, voxels, track;
    double  middle[3];
    int64_t from, children; /* the object that it follows, -1: none; how many follow it */
} object;

typedef struct {
    int64_t from, to; /* objects */
    int64_t ahead;
    double  weight; /* the best link has the greatest */
} bond;

typedef struct {
    const track *p;
    int          n;
    double       spacing[3];
    fv_bytes     objects, bonds, shared; /* shared: overlaps as records, until all objects are known */
    record       sum;
    fv_bytes     tracks;
} linking;

static object *object_at(const linking *l, int64_t i) { return (object *)l->objects.data + i; }
static int64_t objects_of(const linking *l) { return (int64_t)(l->objects.size / sizeof(object)); }

static void key(const void *context, const uint8_t *from, fv_run_key *key) {
    (void)context;
    memcpy(key, from, sizeof *key);
}

static void start(void *context, const fv_run_key *key) { ((linking *)context)->sum = (record){ .key = *key }; }

static const uint8_t *add(void *context, const uint8_t *from, const fv_region *chunk) {
    record r;
    (void)chunk;
    memcpy(&r, from, sizeof r);
    add_up(&((linking *)context)->sum, &r);
    return from + sizeof r;
}

static fv_status end(void *context, fv_error *error) {
    linking      *l = context;
    const record *r = &l->sum;
    (void)error;
    if (r->key.third) {
        fv__bytes_append(&l->shared, r, sizeof *r);
        return FV_OK;
    }
    object o = { .time = r->key.first, .label = r->key.second, .voxels = r->voxels, .from = -1 };
    for (int d = 0; d < l->n; d++) o.middle[d] = (double)r->place[d] / (double)r->voxels;
    fv__bytes_append(&l->objects, &o, sizeof o);
    return FV_OK;
}

/* Objects are in order of time and label. */
static int64_t find_object(const linking *l, int64_t time, int64_t label) {
    int64_t low = 0, high = objects_of(l);
    while (low < high) {
        int64_t       middle = (low + high) / 2;
        const object *o = object_at(l, middle);
        if (o->time < time || (o->time == time && o->label < label))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static double distance(const linking *l, const object *a, const object *b) {
    double sum = 0;
    for (int d = 0; d < l->n; d++) {
        double step = (a->middle[d] - b->middle[d]) * l->spacing[d];
        sum += step * step;
    }
    return sqrt(sum);
}

/* ---------------------------------------------------------------- links */

static int best_first(const void *a, const void *b) {
    const bond *x = a, *y = b;
    if (x->ahead != y->ahead) return x->ahead < y->ahead ? -1 : 1;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static void bonds_by_overlap(linking *l) {
    const record *shared = (const record *)l->shared.data;
    for (size_t i = 0; i < l->shared.size / sizeof *shared; i++) {
        bond b = { .from = find_object(l, shared[i].key.first, shared[i].key.second),
                   .to = find_object(l, shared[i].key.first + shared[i].key.third, shared[i].key.fourth),
                   .ahead = shared[i].key.third,
                   .weight = (double)shared[i].voxels };
        fv__bytes_append(&l->bonds, &b, sizeof b);
    }
}

static void bonds_by_distance(linking *l) {
    for (int64_t i = 0; i < objects_of(l); i++)
        for (int64_t ahead = 1; ahead <= l->p->gap + 1; ahead++) {
            const object *a = object_at(l, i);
            for (int64_t k = find_object(l, a->time + ahead, INT64_MIN); k < objects_of(l); k++) {
                const object *b = object_at(l, k);
                if (b->time != a->time + ahead) break;
                bond one = { .from = i, .to = k, .ahead = ahead, .weight = -distance(l, a, b) };
                if (-one.weight <= l->p->max_distance) fv__bytes_append(&l->bonds, &one, sizeof one);
            }
        }
}

/* Neighbouring times first, then those across gaps, between what is still loose. By overlap several may follow one, but only
 * where no time lies between. */
static void link_objects(linking *l) {
    bond   *bonds = (bond *)l->bonds.data;
    int64_t n = (int64_t)(l->bonds.size / sizeof *bonds);
    bool    several = l->p->by.index == OVERLAP && l->p->divide;
    if (n) qsort(bonds, (size_t)n, sizeof *bonds, best_first);
    for (int64_t i = 0; i < n; i++) {
        object *from = object_at(l, bonds[i].from), *to = object_at(l, bonds[i].to);
        if (to->from >= 0 || (from->children && !(several && bonds[i].ahead == 1))) continue;
        to->from = bonds[i].from;
        from->children++;
    }
}

typedef struct {
    int64_t parent, first, last, objects;
    double  path;
} one_track;

/* Tracks are numbered from 1 on, in order of time and label of their first object. */
static void number_tracks(linking *l) {
    for (int64_t i = 0; i < objects_of(l); i++) {
        object    *o = object_at(l, i), *from = o->from < 0 ? NULL : object_at(l, o->from);
        one_track *tracks = (one_track *)l->tracks.data;
        if (from && from->children == 1) {
            one_track *t = &tracks[from->track - 1];
            o->track = from->track;
            t->path += distance(l, object_at(l, t->last), o);
            t->last = i;
            t->objects++;
            continue;
        }
        one_track begun = { .parent = from ? from->track : 0, .first = i, .last = i, .objects = 1 };
        fv__bytes_append(&l->tracks, &begun, sizeof begun);
        o->track = (int64_t)(l->tracks.size / sizeof begun);
    }
}

/* ---------------------------------------------------------------- rows */

static fv_status put_tracks(const linking *l, fv_row_writer *rows, fv_error *error) {
    const one_track *t = (const one_track *)l->tracks.data;
    for (int64_t i = 0; i < (int64_t)(l->tracks.size / sizeof *t); i++) {
        const object *first = object_at(l, t[i].first), *last = object_at(l, t[i].last);
        fv_cell      *row;
        FV_TRY(fv__row_writer_next(rows, &row, error));
        row[0].integer = i + 1;
        row[1].integer = t[i].parent;
        row[2].integer = first->time;
        row[3].integer = last->time;
        row[4].integer = t[i].objects;
        row[5].real = distance(l, first, last);
        row[6].real = t[i].path;
    }
    return fv__row_writer_flush(rows, error);
}

static fv_status put_objects(const linking *l, fv_row_writer *rows, fv_error *error) {
    const one_track *t = (const one_track *)l->tracks.data;
    for (int64_t i = 0; i < objects_of(l); i++) {
        const object *o = object_at(l, i);
        fv_cell      *row;
        FV_TRY(fv__row_writer_next(rows, &row, error));
        row[0].integer = o->track;
        row[1].integer = o->time;
        row[2].integer = o->label;
        row[3].integer = t[o->track - 1].parent;
        row[4].integer = o->voxels;
        for (int d = 0; d < l->n; d++) row[5 + d].real = o->middle[d];
    }
    return fv__row_writer_flush(rows, error);
}

static fv_status finish(fv_finish *f, fv_error *error) {
    static const fv_sorted_runs runs = { .most = sizeof(record), .key = key, .start = start, .add = add, .end = end };
    linking                     l = { .p = f->params };
    int                         spatial[FV_MAX_DIMS];
    fv_row_writer               rows;
    l.n = fv_image_type_spatial(&f->in[0]->image, spatial);
    for (int d = 0; d < l.n; d++) l.spacing[d] = f->in[0]->image.spacing[spatial[d]];
    fv__row_writer_init(&rows, f);
    fv_status status = fv__sorted_runs_merge(f, &runs, &l, error);
    if (status == FV_OK) {
        if (l.p->by.index == OVERLAP)
            bonds_by_overlap(&l);
        else
            bonds_by_distance(&l);
        link_objects(&l);
        number_tracks(&l);
        status = l.p->rows.index == TRACKS ? put_tracks(&l, &rows, error) : put_objects(&l, &rows, error);
    }
    fv__row_writer_release(&rows);
    fv__bytes_release(&l.objects);
    fv__bytes_release(&l.bonds);
    fv__bytes_release(&l.shared);
    fv__bytes_release(&l.tracks);
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
