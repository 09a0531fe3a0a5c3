/* Orders of units. */
#include "units/unit_queue.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A unit that waits for room may be passed so often, and so many seconds long; then room is kept for it. */
enum { MOST_PASSES = 32 };
static const double LONGEST_WAIT = 60;

typedef struct rank { /* what units are sorted by, smallest first */
    double first;
    int    unit;
} rank;

static int by_rank(const void *a, const void *b) {
    const rank *s = a, *t = b;
    return s->first != t->first ? (s->first < t->first ? -1 : 1) : s->unit - t->unit;
}

typedef struct member {
    const char *group;
    int         unit;
} member;

static int by_group(const void *a, const void *b) {
    const member *s = a, *t = b;
    int           order = strcmp(s->group ? s->group : "", t->group ? t->group : "");
    return order ? order : s->unit - t->unit;
}

/* The first unit of each group, then the second of each, and so on. */
static void rank_by_turns(const fv_unit_list *list, rank *ranks) {
    member *members = fv__calloc((size_t)FV_MAX(list->count, 1) * sizeof *members);
    int     turn = 0;
    for (int64_t u = 0; u < list->count; u++) members[u] = (member){ list->units[u].group, (int)u };
    qsort(members, (size_t)list->count, sizeof *members, by_group);
    for (int64_t i = 0; i < list->count; i++) {
        member before = i ? members[i - 1] : members[0];
        before.unit = members[i].unit;
        turn = i && !by_group(&before, &members[i]) ? turn + 1 : 0;
        ranks[members[i].unit].first = turn;
    }
    free(members);
}

static fv_status check_room(const fv_unit_queue *q, fv_error *error) {
    char size[24], bound[24];
    for (int64_t u = 0; u < q->list->count; u++) {
        const fv_unit *unit = &q->list->units[u];
        if (unit->cpus > q->cpus)
            return fv_fail(error, FV_ERROR_USAGE, "unit %s asks for %lld processors; there are %lld for all units", unit->name,
                           (long long)unit->cpus, (long long)q->cpus);
        if (!q->memory || unit->memory <= q->memory) continue;
        fv_size_format(unit->memory, size);
        fv_size_format(q->memory, bound);
        return fv_fail(error, FV_ERROR_USAGE, "unit %s asks for %s; all units together have %s", unit->name, size, bound);
    }
    return FV_OK;
}

fv_status fv__unit_queue_init(fv_unit_queue *q, fv_unit_list *list, const char *order, int64_t cpus, int64_t memory,
                              fv_error *error) {
    rank *ranks = fv__calloc((size_t)FV_MAX(list->count, 1) * sizeof *ranks);
    *q = (fv_unit_queue){ .list = list, .cpus = cpus, .memory = memory, .allowed = cpus, .waiting = -1 };
    q->sequence = fv__calloc((size_t)FV_MAX(list->count, 1) * sizeof *q->sequence);
    q->backfill = !strcmp(order, "backfill");
    q->strict = q->backfill || !strcmp(order, "fifo");
    for (int64_t u = 0; u < list->count; u++) {
        const fv_unit *unit = &list->units[u];
        double         first = !strcmp(order, "longest") ? -unit->limit : !strcmp(order, "memory") ? -(double)unit->memory : 0;
        ranks[u] = (rank){ first, (int)u };
    }
    if (!strcmp(order, "round-robin")) rank_by_turns(list, ranks);
    qsort(ranks, (size_t)list->count, sizeof *ranks, by_rank);
    for (int64_t i = 0; i < list->count; i++) q->sequence[i] = ranks[i].unit;
    free(ranks);
    return check_room(q, error);
}

void fv__unit_queue_release(fv_unit_queue *q) { free(q->sequence); }

/* ---------------------------------------------------------------- the next one */

static bool is_ready(const fv_unit_queue *q, const fv_unit *unit, double now) {
    if (unit->stand != FV_UNIT_WAITS || unit->not_before > now) return false;
    if (q->ends > 0 && now + (unit->limit > 0 ? unit->limit : q->longest) > q->ends) return false;
    for (int i = 0; i < unit->nafter; i++)
        if (q->list->units[unit->after[i]].stand != FV_UNIT_DONE) return false;
    return true;
}

typedef struct room {
    int64_t cpus, memory;
} room;

static bool fits(const fv_unit_queue *q, const fv_unit *unit, room used) {
    return used.cpus + unit->cpus <= q->allowed && (!q->memory || used.memory + unit->memory <= q->memory);
}

static room used_after(const fv_unit_queue *q, const fv_running *places, int nplaces, double time) {
    room used = { 0, 0 };
    for (int c = 0; c < nplaces; c++) {
        if (places[c].unit < 0) continue;
        const fv_unit *unit = &q->list->units[places[c].unit];
        if (unit->limit > 0 && places[c].child.started + unit->limit <= time) continue;
        used.cpus += unit->cpus;
        used.memory += unit->memory;
    }
    return used;
}

/* When the unit can start at the latest, by the limits of those that run; infinity where one of them has none. */
static double latest_start(const fv_unit_queue *q, const fv_unit *unit, const fv_running *places, int nplaces) {
    double best = INFINITY;
    for (int c = 0; c < nplaces; c++) {
        if (places[c].unit < 0 || !(q->list->units[places[c].unit].limit > 0)) continue;
        double end = places[c].child.started + q->list->units[places[c].unit].limit;
        if (end < best && fits(q, unit, used_after(q, places, nplaces, end))) best = end;
    }
    return best;
}

/* From when on nothing may pass a unit that waits for room, but what ends before it can start. */
static bool is_reserved(const fv_unit_queue *q, const fv_unit *unit, double now) {
    return q->strict || unit->passed >= MOST_PASSES || now > unit->waits + LONGEST_WAIT;
}

int64_t fv__unit_queue_next(fv_unit_queue *q, const fv_running *places, int nplaces, double now) {
    fv_unit_list *list = q->list;
    room          used = used_after(q, places, nplaces, -1);
    double        until = INFINITY; /* those that pass one which is reserved for must end by then */
    bool          passing = false;
    q->waiting = -1;
    while (q->head < list->count && list->units[q->sequence[q->head]].stand != FV_UNIT_WAITS) q->head++;
    for (int64_t i = q->head; i < list->count && used.cpus < q->allowed; i++) {
        fv_unit *unit = &list->units[q->sequence[i]];
        if (!is_ready(q, unit, now)) continue;
        if (fits(q, unit, used)) {
            if (!passing || (unit->limit > 0 && now + unit->limit <= until)) return q->sequence[i];
            continue;
        }
        if (q->waiting >= 0) continue;
        q->waiting = q->sequence[i];
        if (!(unit->waits > 0)) unit->waits = now;
        if (!is_reserved(q, unit, now)) continue;
        passing = true;
        until = latest_start(q, unit, places, nplaces);
        if ((q->strict && !q->backfill) || (isinf(until) && unit->passed >= MOST_PASSES)) return -1;
    }
    return -1;
}

void fv__unit_queue_started(fv_unit_queue *q) {
    if (q->waiting >= 0) q->list->units[q->waiting].passed++;
}

int64_t fv__unit_queue_wanted(const fv_unit_queue *q, double now, int64_t *least) {
    int64_t wanted = 0;
    *least = 0;
    for (int64_t i = q->head; i < q->list->count && wanted < q->cpus; i++) {
        const fv_unit *unit = &q->list->units[q->sequence[i]];
        if (!is_ready(q, unit, now)) continue;
        if (!*least) *least = unit->cpus;
        wanted += unit->cpus;
    }
    return FV_MIN(wanted, q->cpus);
}

void fv__unit_queue_block(fv_unit_queue *q) {
    for (bool changed = true; changed;) {
        changed = false;
        for (int64_t u = 0; u < q->list->count; u++) {
            fv_unit *unit = &q->list->units[u];
            for (int i = 0; i < unit->nafter && unit->stand == FV_UNIT_WAITS; i++) {
                const fv_unit *before = &q->list->units[unit->after[i]];
                if (before->stand != FV_UNIT_FAILED && before->stand != FV_UNIT_BLOCKED) continue;
                unit->stand = FV_UNIT_BLOCKED;
                snprintf(unit->result.why, sizeof unit->result.why, "not started: %.100s, which it comes after, failed",
                         before->name);
                changed = true;
            }
        }
    }
}
