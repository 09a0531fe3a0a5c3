/* The event loop of the model. */
#include "story/simulate.h"
#include <math.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- heaps */

typedef struct entry { /* the smallest key first, of equal ones the first that came */
    double  key;
    int64_t order, what, epoch;
} entry;

typedef struct heap {
    entry  *all;
    int64_t count, room;
} heap;

static bool before(const entry *a, const entry *b) { return a->key < b->key || (a->key == b->key && a->order < b->order); }

static void push(heap *h, entry e) {
    if (h->count == h->room) {
        h->room = FV_MAX(2 * h->room, 256);
        h->all = fv__realloc(h->all, (size_t)h->room * sizeof *h->all);
    }
    int64_t i = h->count++;
    for (; i > 0 && before(&e, &h->all[(i - 1) / 2]); i = (i - 1) / 2) h->all[i] = h->all[(i - 1) / 2];
    h->all[i] = e;
}

static entry pop(heap *h) {
    entry   top = h->all[0], last = h->all[--h->count];
    int64_t i = 0;
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child + 1 < h->count && before(&h->all[child + 1], &h->all[child])) child++;
        if (child >= h->count || !before(&h->all[child], &last)) break;
        h->all[i] = h->all[child];
        i = child;
    }
    h->all[i] = last;
    return top;
}

/* ---------------------------------------------------------------- state */

typedef enum phase { FREE, HANDED, READING, COMPUTING, WRITING, GONE } phase;

typedef struct worker {
    phase   phase;
    int64_t task, stage;  /* task -1: the end of the stage */
    int64_t epoch;        /* raised when what it does is void */
    double  began;        /* when it was handed out; of one that is gone, when it failed */
    double  since, rate;  /* of the flow it has: when it began, bytes a second */
    double  useful, slow; /* seconds of the task: as measured, more because it is slow */
} worker;

typedef struct stage_state {
    int64_t next, left; /* tasks to hand out; not over yet */
    int     waits;      /* stages that it needs and are not over */
    bool    over;
} stage_state;

typedef struct simulation {
    const fv_sim_work    *work;
    const fv_sim_machine *machine;
    fv_sim_answer        *answer;
    worker               *workers;
    stage_state          *stages;
    int64_t              *unit_of; /* by stage */
    int64_t              *left;    /* by unit: stages that are not over */
    heap                  events;  /* what: worker, -1 a failure of a node, -2 - n the begin of node n, then returns; key: time */
    heap                  flows;   /* what: worker; key: the clock of flows at which it is over */
    heap                  ready;   /* what: stage with tasks or an end to hand out; key: unit */
    heap                  lost;    /* what: task of a stage to do again; key: stage */
    int64_t              *free;    /* stack of workers */
    int64_t               nfree, order, running, ends_running, part_left;
    int                   part, nodes, gone;  /* gone: nodes that failed and are not back */
    double                now, clock, wanted; /* clock: runs slower where flows want more than there is; wanted: bytes a second */
    double                server;             /* the process that hands out is busy until then */
    double                ends_since;
    uint64_t              random;
} simulation;

static double uniform(simulation *s) { /* above 0, below 1: splitmix64 */
    uint64_t z = (s->random += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return ((double)((z ^ z >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

static double capacity(const simulation *s) {
    const fv_sim_machine *m = s->machine;
    double                disk = m->disk > 0 ? m->disk : INFINITY, network = m->network > 0 ? m->network * s->nodes : INFINITY;
    return fmin(disk, network);
}

/* How much slower flows are than they were measured. */
static double slowness(const simulation *s) { return fmax(1, s->wanted / capacity(s)); }

static void advance(simulation *s, double time) {
    s->clock += (time - s->now) / slowness(s);
    s->now = time;
}

static void at(simulation *s, double time, int64_t what, int64_t epoch) {
    push(&s->events, (entry){ time, s->order++, what, epoch });
}

/* ---------------------------------------------------------------- stages */

static void stage_ready(simulation *s, int64_t stage) { push(&s->ready, (entry){ (double)s->unit_of[stage], stage, stage, 0 }); }

static void stage_over(simulation *s, int64_t stage);

static void begin_stage(simulation *s, int64_t stage) {
    if (s->work->stages[stage].count > 0)
        stage_ready(s, stage);
    else
        stage_over(s, stage);
}

static void begin_units(simulation *s) {
    for (;;) {
        bool any = false;
        for (int64_t u = 0; u < s->work->nunits; u++) any = any || s->work->units[u].part >= s->part;
        if (!any) return;
        s->part_left = 0;
        for (int64_t u = 0; u < s->work->nunits; u++) s->part_left += s->work->units[u].part == s->part && s->left[u] > 0;
        int part = s->part;
        for (int64_t u = 0; u < s->work->nunits; u++) {
            const fv_sim_unit *unit = &s->work->units[u];
            for (int64_t k = unit->first; unit->part == part && k < unit->first + unit->count; k++)
                if (!s->stages[k].waits && !s->stages[k].over) begin_stage(s, k);
        }
        if (s->part_left > 0) return;
        s->part = part + 1;
    }
}

static void stage_over(simulation *s, int64_t stage) {
    int64_t            u = s->unit_of[stage];
    const fv_sim_unit *unit = &s->work->units[u];
    s->stages[stage].over = true;
    s->left[u]--;
    for (int64_t k = unit->first; k < unit->first + unit->count; k++)
        for (int i = 0; i < s->work->stages[k].nneeds; i++)
            if (unit->first + s->work->stages[k].needs[i] == stage && --s->stages[k].waits == 0) begin_stage(s, k);
    if (!s->left[u]) s->part_left--;
}

/* ---------------------------------------------------------------- what workers do */

static void count_end(simulation *s, int change) {
    bool alone = s->ends_running > 0 && s->running == s->ends_running;
    if (alone) s->answer->ends += s->now - s->ends_since;
    s->ends_running += change;
    s->ends_since = s->now;
}

static void begin_flow(simulation *s, int64_t w, double seconds, double bytes) {
    worker *me = &s->workers[w];
    me->since = s->now;
    me->rate = seconds > 0 ? bytes / seconds : 0;
    s->wanted += me->rate;
    push(&s->flows, (entry){ s->clock + seconds, s->order++, w, me->epoch });
}

static void leave_flow(simulation *s, worker *me, double seconds) {
    s->wanted = fmax(s->wanted - me->rate, 0);
    s->answer->costs[FV_SIM_DISK] += fmax(s->now - me->since - seconds, 0);
}

static double scale_of(const fv_sim_work *work) { return work->scale > 0 ? work->scale : 1; }

static double scaled(const simulation *s, double seconds) { return seconds * scale_of(s->work); }

static double tasks_of(const fv_sim_task *t) { return t->tasks > 0 ? (double)t->tasks : 1; }

double fv__sim_task_seconds(const fv_sim_work *work, const fv_sim_task *t) {
    return scale_of(work) * ((double)t->read + (double)t->compute + (double)t->write) + tasks_of(t) * work->each;
}

/* The part of the tasks for which one stands that are slow: of many, by the normal distribution. */
static double slow_part(simulation *s, double tasks) {
    double chance = s->machine->stragglers, count = 0;
    if (chance <= 0) return 0;
    if (tasks <= 64)
        for (int i = 0; i < (int)tasks; i++) count += uniform(s) < chance;
    else {
        double normal = sqrt(-2 * log(uniform(s))) * cos(2 * 3.14159265358979323846 * uniform(s));
        count = fmin(fmax(tasks * chance + normal * sqrt(tasks * chance * (1 - chance)), 0), tasks);
    }
    return count / tasks;
}

static void free_worker(simulation *s, int64_t w) {
    s->workers[w].phase = FREE;
    s->free[s->nfree++] = w;
}

static void finish(simulation *s, int64_t w) {
    worker      *me = &s->workers[w];
    stage_state *stage = &s->stages[me->stage];
    bool         end = me->task < 0;
    count_end(s, end ? -1 : 0);
    s->running--;
    count_end(s, 0);
    s->answer->costs[FV_SIM_COMPUTE] += me->useful;
    s->answer->costs[FV_SIM_STRAGGLE] += me->slow;
    free_worker(s, w);
    if (end)
        stage_over(s, me->stage);
    else if (--stage->left == 0) {
        if (s->work->stages[me->stage].end > 0)
            stage_ready(s, me->stage);
        else
            stage_over(s, me->stage);
    }
    if (!s->part_left) {
        s->part++;
        begin_units(s);
    }
}

/* The next phase of what a worker does. */
static void go_on(simulation *s, int64_t w) {
    worker            *me = &s->workers[w];
    const fv_sim_task *t = me->task >= 0 ? &s->work->tasks[me->task] : NULL;
    double             io = t ? (double)(t->read + t->write) : 0;
    if (me->phase == HANDED && t && t->read > 0) {
        me->phase = READING;
        begin_flow(s, w, scaled(s, (double)t->read), io > 0 ? (double)t->bytes * (double)t->read / io : 0);
    } else if (me->phase == HANDED || me->phase == READING) {
        if (me->phase == READING) leave_flow(s, me, scaled(s, (double)t->read));
        me->phase = COMPUTING;
        double seconds = t ? scaled(s, (double)t->compute) + tasks_of(t) * s->work->each : s->work->stages[me->stage].end;
        me->useful = seconds + (t ? scaled(s, io) : 0);
        me->slow = t ? seconds * slow_part(s, tasks_of(t)) * (s->machine->slow - 1) : 0;
        at(s, s->now + seconds + me->slow, w, me->epoch);
    } else if (me->phase == COMPUTING && t && t->write > 0) {
        me->phase = WRITING;
        begin_flow(s, w, scaled(s, (double)t->write), (double)t->bytes * (double)t->write / io);
    } else {
        if (me->phase == WRITING) leave_flow(s, me, scaled(s, (double)t->write));
        finish(s, w);
    }
}

static bool next_job(simulation *s, int64_t *stage, int64_t *task) {
    if (s->lost.count) {
        entry e = pop(&s->lost);
        *stage = (int64_t)e.key;
        *task = e.what;
        return true;
    }
    if (!s->ready.count) return false;
    *stage = s->ready.all[0].what;
    stage_state *state = &s->stages[*stage];
    if (state->next == s->work->stages[*stage].count) { /* its end */
        pop(&s->ready);
        *task = -1;
        return true;
    }
    *task = s->work->stages[*stage].first + state->next++;
    if (state->next == s->work->stages[*stage].count) pop(&s->ready);
    return true;
}

static void hand_out(simulation *s) {
    int64_t stage, task;
    while (s->nfree && next_job(s, &stage, &task)) {
        int64_t w = s->free[--s->nfree];
        worker *me = &s->workers[w];
        double  begins = s->now;
        double  handed = task >= 0 ? tasks_of(&s->work->tasks[task]) : 1;
        if (s->machine->dispatch > 0) begins = s->server = fmax(s->server, s->now) + handed * s->machine->dispatch;
        s->answer->costs[FV_SIM_HANDING] += begins - s->now;
        *me = (worker){ .phase = HANDED, .task = task, .stage = stage, .epoch = me->epoch, .began = begins };
        count_end(s, 0);
        s->running++;
        count_end(s, task < 0);
        at(s, begins, w, me->epoch);
    }
}

/* ---------------------------------------------------------------- nodes */

static void node_begins(simulation *s, int node) {
    for (int w = node * s->machine->cores; w < FV_MIN((node + 1) * s->machine->cores, s->machine->workers); w++) {
        s->answer->costs[FV_SIM_START] += s->now;
        if (s->workers[w].phase == FREE) s->free[s->nfree++] = w;
    }
}

static void plan_failure(simulation *s) {
    if (s->machine->failures > 0 && s->nodes > 1) at(s, s->now - log(uniform(s)) * s->machine->failures * 3600 / s->nodes, -1, 0);
}

static void take_off(simulation *s, int64_t w) {
    for (int64_t i = 0; i < s->nfree; i++)
        if (s->free[i] == w) {
            s->free[i] = s->free[--s->nfree];
            return;
        }
}

static void node_fails(simulation *s) {
    int node = (int)(uniform(s) * s->nodes), first = node * s->machine->cores;
    if (s->workers[first].phase == GONE || s->nodes - s->gone < 2) return;
    s->answer->failed++;
    s->gone++;
    if (s->machine->repair > 0) at(s, s->now + s->machine->repair, -2 - s->nodes - node, 0);
    for (int w = first; w < FV_MIN(first + s->machine->cores, s->machine->workers); w++) {
        worker *me = &s->workers[w];
        if (me->phase == FREE) take_off(s, w);
        if (me->phase == READING || me->phase == WRITING) s->wanted = fmax(s->wanted - me->rate, 0);
        if (me->phase != FREE) {
            count_end(s, me->task < 0 ? -1 : 0);
            s->running--;
            count_end(s, 0);
            push(&s->lost, (entry){ (double)me->stage, s->order++, me->task, 0 });
            s->answer->redone++;
            s->answer->costs[FV_SIM_LOST] += fmax(s->now - me->began, 0);
        }
        me->phase = GONE;
        me->began = s->now;
        me->epoch++;
    }
}

static void node_returns(simulation *s, int node) {
    s->gone--;
    for (int w = node * s->machine->cores; w < FV_MIN((node + 1) * s->machine->cores, s->machine->workers); w++) {
        s->answer->costs[FV_SIM_LOST] += s->now - s->workers[w].began;
        free_worker(s, w);
    }
}

/* ---------------------------------------------------------------- all of it */

static void set_up(simulation *s) {
    const fv_sim_work *work = s->work;
    s->nodes = (s->machine->workers + s->machine->cores - 1) / s->machine->cores;
    s->workers = fv__calloc((size_t)s->machine->workers * sizeof *s->workers);
    s->free = fv__calloc((size_t)s->machine->workers * sizeof *s->free);
    s->stages = fv__calloc((size_t)(work->nstages + 1) * sizeof *s->stages);
    s->unit_of = fv__calloc((size_t)(work->nstages + 1) * sizeof *s->unit_of);
    s->left = fv__calloc((size_t)(work->nunits + 1) * sizeof *s->left);
    for (int64_t u = 0; u < work->nunits; u++) {
        s->left[u] = work->units[u].count;
        for (int64_t k = work->units[u].first; k < work->units[u].first + work->units[u].count; k++) s->unit_of[k] = u;
    }
    for (int64_t k = 0; k < work->nstages; k++)
        s->stages[k] = (stage_state){ .left = work->stages[k].count, .waits = work->stages[k].nneeds };
    for (int n = 0; n < s->nodes; n++) at(s, n ? s->machine->start * (1 + uniform(s)) : s->machine->start, -2 - n, 0);
    plan_failure(s);
    begin_units(s);
}

static bool work_left(const simulation *s) {
    return s->running > 0 || s->ready.count > 0 || s->lost.count > 0 || s->part_left > 0;
}

static void step(simulation *s) {
    double flow = s->flows.count ? s->now + (s->flows.all[0].key - s->clock) * slowness(s) : INFINITY;
    double event = s->events.count ? s->events.all[0].key : INFINITY;
    bool   from_flow = flow <= event;
    entry  e = pop(from_flow ? &s->flows : &s->events);
    if (e.what >= 0 && s->workers[e.what].epoch != e.epoch) { /* of a worker that is gone */
        if (!from_flow) advance(s, event);
        return;
    }
    advance(s, fmax(from_flow ? flow : event, s->now));
    if (e.what >= 0)
        go_on(s, e.what);
    else if (e.what == -1) {
        node_fails(s);
        plan_failure(s);
    } else if (-2 - e.what < s->nodes)
        node_begins(s, (int)(-2 - e.what));
    else
        node_returns(s, (int)(-2 - e.what) - s->nodes);
    hand_out(s);
}

void fv__simulate(const fv_sim_work *work, const fv_sim_machine *machine, fv_sim_answer *answer) {
    fv_sim_machine m = *machine;
    m.workers = FV_MAX(m.workers, 1);
    m.cores = FV_MIN(FV_MAX(m.cores, 1), m.workers);
    *answer = (fv_sim_answer){ 0 };
    simulation s = { .work = work, .machine = &m, .answer = answer, .random = m.seed };
    set_up(&s);
    while (work_left(&s) && (s.events.count || s.flows.count)) step(&s);
    double seconds = s.now + work->serial, all = seconds * m.workers, told = 0;
    for (int64_t w = 0; w < m.workers; w++)
        if (s.workers[w].phase == GONE) answer->costs[FV_SIM_LOST] += s.now - s.workers[w].began;
    answer->seconds = seconds;
    answer->ends = seconds > 0 ? (answer->ends + work->serial) / seconds : 0;
    answer->costs[FV_SIM_COMPUTE] += work->serial;
    answer->costs[FV_SIM_START] = fmin(answer->costs[FV_SIM_START], s.now * m.workers);
    for (int c = 0; c < FV_SIM_IDLE; c++) {
        answer->costs[c] = all > 0 ? answer->costs[c] / all : 0;
        told += answer->costs[c];
    }
    answer->costs[FV_SIM_IDLE] = fmax(1 - told, 0);
    free(s.workers);
    free(s.free);
    free(s.stages);
    free(s.unit_of);
    free(s.left);
    free(s.events.all);
    free(s.flows.all);
    free(s.ready.all);
    free(s.lost.all);
}

const char *fv__sim_bottleneck(const fv_sim_work *work, const fv_sim_machine *machine, const fv_sim_answer *a) {
    static const char *const words[FV_SIM_COSTS] = {
        "nothing but the work itself",
        "the disk or the network, which give less than the tasks could take",
        "the process that hands out the tasks one after another",
        "the time that nodes take to start",
        "slow workers",
        "nodes that fail",
        "too few tasks for so many workers",
    };
    int most = FV_SIM_DISK;
    for (int c = FV_SIM_DISK; c < FV_SIM_COSTS; c++)
        if (a->costs[c] > a->costs[most]) most = c;
    if (a->costs[most] < 0.1) return words[FV_SIM_COMPUTE];
    if (most == FV_SIM_IDLE && a->ends > 0.5 * a->costs[FV_SIM_IDLE])
        return "what only one worker can do: ends of stages, start and end of the run";
    if (most == FV_SIM_IDLE && work->ntasks > 8 * (int64_t)machine->workers)
        return "stages that wait for the slowest task of the one before";
    return words[most];
}

void fv__sim_work_release(fv_sim_work *work) {
    free(work->tasks);
    free(work->stages);
    free(work->units);
    *work = (fv_sim_work){ 0 };
}
