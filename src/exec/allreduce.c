/* Sums in a fixed tree.
 *
 * Node (level, index) of the tree covers blocks index * 2^level to (index + 1) * 2^level - 1. It is the sum of its two children,
 * the lower one first; a child beyond the last block does not exist, and then the other one is the node as it is.
 */
#include "exec/allreduce.h"
#include "base/session.h"
#include "base/take.h"
#include <pthread.h>
#include <stdlib.h>

enum { STRIP = 4096, WORTH_A_THREAD = 1 << 17, ALIGNED = 16 }; /* floats */
enum { MOST_NODES = 128 };                                     /* subtrees that a rank may hold */

typedef struct node {
    int64_t level, index;
} node; /* plain bytes: ranks tell each other */

/* ---------------------------------------------------------------- which sums are made of which */

typedef struct addition {
    int into, with;
} addition;

typedef struct plan {
    addition *additions; /* of terms; a sum takes the place of its first term */
    int       nadditions;
    int      *left; /* terms that are left, in order */
    int       nleft;
} plan;

static bool joins(const node *a, const node *b) { return a->level == b->level && a->index % 2 == 0 && b->index == a->index + 1; }

/* Joins neighbours as far as they are whole subtrees. The nodes are in order of their blocks; those that are left get the place
 * they have reached. all: every block is there, so that one without a neighbour may rise to the next level. */
static plan plan_sums(node *nodes, int count, bool all) {
    plan p = { .additions = fv__alloc((size_t)(count + 1) * sizeof *p.additions),
               .left = fv__alloc((size_t)(count + 1) * sizeof *p.left) };
    for (int i = 0; i <= count; i++) {
        if (i < count) p.left[p.nleft++] = i;
        while (p.nleft > 1) {
            int into = p.left[p.nleft - 2], with = p.left[p.nleft - 1];
            if (joins(&nodes[into], &nodes[with])) {
                p.additions[p.nadditions++] = (addition){ into, with };
                nodes[into] = (node){ nodes[into].level + 1, nodes[into].index / 2 };
                p.nleft--;
            } else if (i == count && all)
                nodes[with] = (node){ nodes[with].level + 1, nodes[with].index / 2 };
            else
                break;
        }
    }
    return p;
}

static void release_plan(plan *p) {
    free(p->additions);
    free(p->left);
}

/* ---------------------------------------------------------------- adding */

typedef struct adding {
    const plan         *plan;
    const float *const *terms;
    int                 nterms;
    float             **sums; /* by what is left */
    float              *scratch;
    int64_t             start, end;
} adding;

static void add(float *into, const float *a, const float *b, int64_t n) {
#pragma GCC ivdep /* into may be a, never overlap it otherwise */
    for (int64_t i = 0; i < n; i++) into[i] = a[i] + b[i];
}

/* Strip by strip, so that sums on the way stay in cache; terms are read where they lie. */
static void *add_range(void *argument) {
    const adding *a = argument;
    float        *scratch = a->scratch;
    const float **now = fv__alloc((size_t)a->nterms * sizeof *now);
    for (int64_t at = a->start; at < a->end; at += STRIP) {
        int64_t n = FV_MIN((int64_t)STRIP, a->end - at);
        for (int i = 0; i < a->nterms; i++) now[i] = a->terms[i] + at;
        for (int k = 0; k < a->plan->nadditions; k++) {
            int    into = a->plan->additions[k].into, with = a->plan->additions[k].with;
            bool   last = k == a->plan->nadditions - 1 && a->plan->nleft == 1;
            float *to = last ? a->sums[0] + at : scratch + (size_t)into * STRIP;
            add(to, now[into], now[with], n);
            now[into] = to;
        }
        for (int k = 0; k < a->plan->nleft; k++)
            if (a->sums[k] + at != now[a->plan->left[k]])
                memcpy(a->sums[k] + at, now[a->plan->left[k]], (size_t)n * sizeof(float));
    }
    free(now);
    return NULL;
}

static int threads_for(const fv_team *team, int64_t n) {
    return (int)FV_MAX(FV_MIN((int64_t)team->threads, n / WORTH_A_THREAD), 1);
}

/* scratch: take_scratch made room for it. */
static void add_all(const fv_team *team, const plan *p, const float *const *terms, int nterms, float **sums, int64_t n) {
    int        count = threads_for(team, n), started = 0;
    adding    *parts = fv__alloc((size_t)count * sizeof *parts);
    pthread_t *ids = fv__alloc((size_t)count * sizeof *ids);
    for (int i = 0; i < count; i++)
        parts[i] = (adding){
            p, terms, nterms, sums, team->scratch + (size_t)i * (size_t)nterms * STRIP, n * i / count, n * (i + 1) / count
        };
    while (started < count - 1 && !fv__thread_start(&ids[started], add_range, &parts[started])) started++;
    for (int i = started; i < count; i++) add_range(&parts[i]);
    for (int i = 0; i < started; i++) pthread_join(ids[i], NULL);
    free(parts);
    free(ids);
}

/* ---------------------------------------------------------------- one rank's own sums */

typedef struct held { /* what a rank has to offer */
    int  count;
    node nodes[MOST_NODES];
} held;

/* Room for so many values, which may be as many as an image has. */
static fv_status take_room(float **memory, size_t *size, size_t wanted, fv_error *error) {
    if (wanted <= *size) return FV_OK;
    free(*memory);
    *size = 0;
    FV_TRY(FV_TAKE(*memory, wanted * sizeof **memory, error));
    *size = wanted;
    return FV_OK;
}

static fv_status take_scratch(fv_team *team, int nterms, int64_t n, fv_error *error) {
    return take_room(&team->scratch, &team->scratch_size, (size_t)threads_for(team, n) * (size_t)nterms * STRIP, error);
}

static fv_status check(const fv_allreduce_block *blocks, int64_t count, int64_t n, fv_error *error) {
    if (n < 0 || count < 0) return fv_fail(error, FV_ERROR_USAGE, "allreduce: a negative number of values or blocks");
    for (int64_t i = 0; i < count; i++)
        if (blocks[i].index < 0 || (i && blocks[i].index <= blocks[i - 1].index))
            return fv_fail(error, FV_ERROR_USAGE, "allreduce: blocks must be given in rising order; %lld follows %lld",
                           (long long)blocks[i].index, (long long)(i ? blocks[i - 1].index : -1));
    return FV_OK;
}

/* Sums of whole subtrees; vectors gets where they lie: a block that is alone stays where it is. */
static fv_status add_own(fv_team *team, const fv_allreduce_block *blocks, int count, int64_t n, float *sum, held *h,
                         const float **vectors, fv_error *error) {
    node         *nodes = fv__alloc((size_t)(count + 1) * sizeof *nodes);
    const float **terms = fv__alloc((size_t)(count + 1) * sizeof *terms);
    for (int i = 0; i < count; i++) {
        nodes[i] = (node){ 0, blocks[i].index };
        terms[i] = blocks[i].values;
    }
    plan      p = plan_sums(nodes, count, team->size == 1);
    fv_status status = p.nleft > MOST_NODES
                           ? fv_fail(error, FV_ERROR_USAGE, "allreduce: rank %d holds %d separate runs of blocks; at most %d",
                                     team->rank, p.nleft, MOST_NODES)
                           : FV_OK;
    float    *sums[MOST_NODES], *memory = sum;
    if (status == FV_OK && p.nadditions && team->size > 1) {
        status = take_room(&team->sums, &team->sums_size, (size_t)p.nleft * (size_t)n, error);
        memory = team->sums;
    }
    if (status == FV_OK) status = take_scratch(team, count, n, error);
    for (int i = 0; status == FV_OK && i < p.nleft; i++) {
        sums[i] = memory + (size_t)i * (size_t)n;
        vectors[i] = p.nadditions ? sums[i] : terms[p.left[i]];
        h->nodes[i] = nodes[p.left[i]];
    }
    h->count = status == FV_OK ? p.nleft : -1;
    if (status == FV_OK && count && (p.nadditions || team->size == 1)) add_all(team, &p, terms, count, sums, n);
    release_plan(&p);
    free(nodes);
    free(terms);
    return status;
}

/* ---------------------------------------------------------------- all ranks' sums */

typedef struct term {
    node at;
    int  place;
} term; /* place: among the slices that came */

static int by_block(const void *a, const void *b) {
    const term *x = a, *y = b;
    int64_t     i = x->at.index << x->at.level, k = y->at.index << y->at.level;
    return (i > k) - (i < k);
}

static void add_slices(const fv_team *team, const held *all, int64_t n, float *sum) {
    int total = 0;
    for (int r = 0; r < team->size; r++) total += all[r].count;
    term         *order = fv__alloc((size_t)(total + 1) * sizeof *order);
    node         *nodes = fv__alloc((size_t)(total + 1) * sizeof *nodes);
    const float **terms = fv__alloc((size_t)(total + 1) * sizeof *terms);
    for (int r = 0, at = 0; r < team->size; r++)
        for (int i = 0; i < all[r].count; i++, at++) order[at] = (term){ all[r].nodes[i], at };
    qsort(order, (size_t)total, sizeof *order, by_block);
    for (int i = 0; i < total; i++) {
        nodes[i] = order[i].at;
        terms[i] = team->slices + (size_t)order[i].place * (size_t)n;
    }
    plan p = plan_sums(nodes, total, true);
    if (total) add_all(team, &p, terms, total, &sum, n);
    release_plan(&p);
    free(order);
    free(nodes);
    free(terms);
}

/* Room for the parts of all ranks, in every rank or in none: whoever has none tells the others before anything is sent. */
static bool all_have_room(fv_team *team, int total, int64_t own, fv_error *error) {
    int mine = take_room(&team->slices, &team->slices_size, (size_t)total * (size_t)own + 1, error) == FV_OK &&
               take_scratch(team, total, own, error) == FV_OK;
    int *all = fv__alloc((size_t)team->size * sizeof *all);
    bool good = true;
    team->exchange.allgather(&mine, all, sizeof mine);
    for (int r = 0; r < team->size; r++) good = good && all[r];
    if (mine && !good) fv_fail(error, FV_ERROR_MEMORY, "allreduce: another rank has no memory for the sum");
    free(all);
    return good;
}

static fv_status exchange(fv_team *team, const held *mine, const float *const *vectors, int64_t n, float *sum, fv_error *error) {
    held    *all = fv__alloc((size_t)team->size * sizeof *all);
    int     *counts = fv__alloc((size_t)team->size * sizeof *counts);
    int64_t *borders = fv__alloc((size_t)(team->size + 1) * sizeof *borders);
    int      total = 0;
    bool     good = true;
    team->exchange.allgather(mine, all, sizeof *mine);
    for (int r = 0; r < team->size; r++) {
        good = good && all[r].count >= 0;
        total += counts[r] = all[r].count;
    }
    for (int r = 0; r <= team->size; r++) {
        int64_t border = r == team->size ? n : n * r / team->size / ALIGNED * ALIGNED;
        borders[r] = border * (int64_t)sizeof(float);
    }
    int64_t first = borders[team->rank] / (int64_t)sizeof(float), own = borders[team->rank + 1] / (int64_t)sizeof(float) - first;
    bool    room = good && total && all_have_room(team, total, own, error);
    if (room) {
        team->exchange.scatter((const void *const *)vectors, counts, borders, team->slices);
        add_slices(team, all, own, sum + first);
        team->exchange.gather(sum, borders);
    }
    free(all);
    free(counts);
    free(borders);
    if (good && !total) memset(sum, 0, (size_t)n * sizeof *sum);
    if (good && total && !room) return FV_ERROR_MEMORY;
    return good ? FV_OK : fv_fail(error, FV_ERROR_USAGE, "allreduce: another rank could not take part");
}

fv_status fv_allreduce(fv_team *team, const fv_allreduce_block *blocks, int64_t count, int64_t n, float *sum, fv_error *error) {
    held         mine = { .count = -1 };
    const float *vectors[MOST_NODES];
    fv_status    status = check(blocks, count, n, error);
    if (status == FV_OK) status = add_own(team, blocks, (int)count, n, sum, &mine, vectors, error);
    if (team->size == 1) {
        if (status == FV_OK && !count) memset(sum, 0, (size_t)n * sizeof *sum);
        return status;
    }
    fv_status others = exchange(team, &mine, vectors, n, sum, status == FV_OK ? error : NULL);
    return status == FV_OK ? others : status;
}

static bool share(fv_team *team, const fv_allreduce_part *parts, int count, bool (*given_up)(void *context), void *context) {
    void   **data = fv__alloc((size_t)(count + 1) * sizeof *data);
    int64_t *sizes = fv__alloc((size_t)(count + 1) * sizeof *sizes);
    int     *ranks = fv__alloc((size_t)(count + 1) * sizeof *ranks);
    for (int i = 0; i < count; i++) {
        data[i] = parts[i].data;
        sizes[i] = parts[i].size;
        ranks[i] = parts[i].rank;
    }
    bool there = team->exchange.share(data, sizes, ranks, count, given_up, context);
    free(data);
    free(sizes);
    free(ranks);
    return there;
}

/* The first rank that failed tells all others why. The errors are left where they are if this is given up. */
static fv_status agree(fv_team *team, const fv_error *failed, bool (*given_up)(void *context), void *context, fv_error *error) {
    fv_error          *all = fv__calloc((size_t)team->size * sizeof *all);
    fv_allreduce_part *parts = fv__alloc((size_t)team->size * sizeof *parts);
    fv_status          status = FV_OK;
    if (failed) all[team->rank] = *failed;
    for (int r = 0; r < team->size; r++) parts[r] = (fv_allreduce_part){ &all[r], sizeof *all, r };
    bool there = share(team, parts, team->size, given_up, context);
    free(parts);
    if (!there) return fv_fail(error, FV_ERROR_CANCELLED, "stopped; the same command goes on from here");
    for (int r = 0; r < team->size && status == FV_OK; r++)
        if (all[r].code != FV_OK) status = fv_fail(error, all[r].code, "rank %d: %.400s", r, all[r].message);
    free(all);
    return status;
}

fv_status fv__allreduce_parts(fv_team *team, const fv_allreduce_part *parts, int count, const fv_error *failed,
                              bool (*given_up)(void *context), void *context, fv_error *error) {
    if (team->size == 1) return failed ? fv_fail(error, failed->code, "%s", failed->message) : FV_OK;
    FV_TRY(agree(team, failed, given_up, context, error));
    bool there = share(team, parts, count, given_up, context);
    return there ? FV_OK : fv_fail(error, FV_ERROR_CANCELLED, "stopped; the same command goes on from here");
}

int fv_team_rank(const fv_team *team) { return team->rank; }
int fv_team_size(const fv_team *team) { return team->size; }
int fv_team_threads(const fv_team *team) { return team->threads; }
