/* Objects linked into tracks; see linking.h. */
#include "ops/measurement/linking.h"
#include "base/take.h"
#include <math.h>
#include <stdlib.h>

typedef struct {
    int64_t from; /* place of the object in its time */
    int64_t ahead, label, voxels;
} overlap;

/* Objects of a time, and what they share with those of later times. */
typedef struct fv__moment {
    int64_t  time;
    fv_bytes objects, overlaps;
} moment;

typedef struct {
    int64_t from, to; /* places in both times */
    double  weight;   /* the best link has the greatest */
} bond;

static int64_t reach(const fv__linking *l) { return l->gap + 1; } /* times that a link leads over, at most */

static moment *moment_of(const fv__linking *l, int64_t time) { return &l->moments[time % (reach(l) + 1)]; }

static fv__tracked *object_at(const moment *m, int64_t i) { return (fv__tracked *)m->objects.data + i; }
static int64_t      objects_of(const moment *m) { return (int64_t)(m->objects.size / sizeof(fv__tracked)); }

double fv__linking_distance(const fv__linking *l, const double a[3], const double b[3]) {
    double sum = 0;
    for (int d = 0; d < l->n; d++) {
        double step = (a[d] - b[d]) * l->spacing[d];
        sum += step * step;
    }
    return sqrt(sum);
}

fv_status fv__linking_begin(fv__linking *l, fv_error *error) {
    FV_TRY(FV_TAKE_ZEROED(l->moments, (size_t)(reach(l) + 1) * sizeof *l->moments, error));
    for (int64_t k = 0; k <= reach(l); k++) l->moments[k].time = -1;
    return FV_OK;
}

void fv__linking_release(fv__linking *l) {
    for (int64_t k = 0; l->moments && k <= reach(l); k++) {
        fv__bytes_release(&l->moments[k].objects);
        fv__bytes_release(&l->moments[k].overlaps);
    }
    free(l->moments);
    fv__bytes_release(&l->bonds);
}

/* ---------------------------------------------------------------- links between two times */

static int best_first(const void *a, const void *b) {
    const bond *x = a, *y = b;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static int64_t find_object(const moment *m, int64_t label) {
    int64_t low = 0, high = objects_of(m);
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (object_at(m, middle)->label < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool several(const fv__linking *l, int64_t ahead) { return l->by_overlap && l->divide && ahead == 1; }

/* Whether both ends are still free. */
static bool loose(const fv__linking *l, const fv__tracked *from, const fv__tracked *to, int64_t ahead) {
    return to->from < 0 && (!from->children || several(l, ahead));
}

static void bond_overlaps(fv__linking *l, const moment *from, const moment *to, int64_t ahead) {
    const overlap *o = (const overlap *)from->overlaps.data;
    for (size_t i = 0; i < from->overlaps.size / sizeof *o; i++) {
        if (o[i].ahead != ahead) continue;
        bond b = { o[i].from, find_object(to, o[i].label), (double)o[i].voxels };
        if (loose(l, object_at(from, b.from), object_at(to, b.to), ahead)) fv__bytes_append(&l->bonds, &b, sizeof b);
    }
}

static fv_status bond_neighbours(fv__linking *l, const moment *from, const moment *to, int64_t ahead, fv_error *error) {
    for (int64_t i = 0; i < objects_of(from); i++) {
        for (int64_t k = 0; k < objects_of(to); k++) {
            const fv__tracked *a = object_at(from, i), *b = object_at(to, k);
            if (!loose(l, a, b, ahead)) continue;
            bond one = { i, k, -fv__linking_distance(l, a->middle, b->middle) };
            if (-one.weight <= l->max_distance) fv__bytes_append(&l->bonds, &one, sizeof one);
        }
        FV_TRY(fv__memory_check(error));
    }
    return FV_OK;
}

static fv_status link_times(fv__linking *l, const moment *from, const moment *to, int64_t ahead, fv_error *error) {
    fv__bytes_clear(&l->bonds);
    if (l->by_overlap)
        bond_overlaps(l, from, to, ahead);
    else
        FV_TRY(bond_neighbours(l, from, to, ahead, error));
    FV_TRY(fv__memory_check(error));
    bond   *bonds = (bond *)l->bonds.data;
    int64_t n = (int64_t)(l->bonds.size / sizeof *bonds);
    if (n) qsort(bonds, (size_t)n, sizeof *bonds, best_first);
    for (int64_t i = 0; i < n; i++) {
        fv__tracked *a = object_at(from, bonds[i].from), *b = object_at(to, bonds[i].to);
        if (!loose(l, a, b, ahead)) continue;
        b->from_time = from->time;
        b->from = bonds[i].from;
        a->children++;
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- times */

/* Goes on with the track of the object before, or begins one. */
static void number(fv__linking *l, fv__tracked *o) {
    const fv__tracked *from = o->from < 0 ? NULL : object_at(moment_of(l, o->from_time), o->from);
    if (from && from->children == 1) {
        o->track = from->track;
        o->parent = from->parent;
        o->start = from->start;
        o->objects = from->objects + 1;
        o->path = from->path + fv__linking_distance(l, from->middle, o->middle);
        memcpy(o->first, from->first, sizeof o->first);
        return;
    }
    o->track = ++l->tracks;
    o->parent = from ? from->track : 0;
    o->start = o->time;
    o->objects = 1;
    memcpy(o->first, o->middle, sizeof o->first);
}

/* All objects of the latest time are there. */
static fv_status close_time(fv__linking *l, fv_error *error) {
    moment *to = moment_of(l, l->time);
    for (int64_t ahead = 1; ahead <= reach(l) && ahead <= l->time; ahead++) {
        moment *from = moment_of(l, l->time - ahead);
        if (from->time == l->time - ahead) FV_TRY(link_times(l, from, to, ahead, error));
    }
    for (int64_t i = 0; i < objects_of(to); i++) {
        number(l, object_at(to, i));
        if (l->numbered) FV_TRY(l->numbered(l->context, object_at(to, i), error));
    }
    return FV_OK;
}

/* No link leads on from this time any more: tracks end that nothing has gone on with. */
static fv_status retire(fv__linking *l, moment *m, fv_error *error) {
    for (int64_t i = 0; i < objects_of(m) && l->ended; i++)
        if (object_at(m, i)->children != 1) FV_TRY(l->ended(l->context, object_at(m, i), error));
    fv__bytes_clear(&m->objects);
    fv__bytes_clear(&m->overlaps);
    m->time = -1;
    return FV_OK;
}

static fv_status open_time(fv__linking *l, int64_t time, fv_error *error) {
    if (l->any) FV_TRY(close_time(l, error));
    for (int64_t k = 0; k <= reach(l); k++)
        if (l->moments[k].time >= 0 && l->moments[k].time + reach(l) < time) FV_TRY(retire(l, &l->moments[k], error));
    moment_of(l, time)->time = time;
    l->time = time;
    l->any = true;
    return FV_OK;
}

fv_status fv__linking_object(fv__linking *l, int64_t time, int64_t label, int64_t voxels, const double middle[3],
                             fv_error *error) {
    fv__tracked o = { .time = time, .label = label, .voxels = voxels, .from = -1 };
    if (!l->any || time != l->time) FV_TRY(open_time(l, time, error));
    memcpy(o.middle, middle, sizeof o.middle);
    fv__bytes_append(&moment_of(l, time)->objects, &o, sizeof o);
    return fv__memory_check(error);
}

fv_status fv__linking_shared(fv__linking *l, int64_t ahead, int64_t label, int64_t voxels, fv_error *error) {
    moment *m = moment_of(l, l->time);
    overlap o = { objects_of(m) - 1, ahead, label, voxels };
    fv__bytes_append(&m->overlaps, &o, sizeof o);
    return fv__memory_check(error);
}

fv_status fv__linking_end(fv__linking *l, fv_error *error) {
    if (l->any) FV_TRY(close_time(l, error));
    for (int64_t k = 0; k <= reach(l); k++) FV_TRY(retire(l, &l->moments[k], error));
    return FV_OK;
}
