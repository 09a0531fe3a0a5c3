/* Fair shares of processors. */
#include "cluster/pilot_shares.h"

/* Of those who want more, the one with the least, and of equals the one that has had the least so far; -1: nobody does. */
static int next_in_turn(const fv_share_of *shares, int count, int left_out) {
    int best = -1;
    for (int i = 0; i < count; i++) {
        const fv_share_of *s = &shares[i];
        if (i == left_out || s->target >= s->allowance->wanted) continue;
        const fv_share_of *b = best < 0 ? NULL : &shares[best];
        if (!b || s->target < b->target || (s->target == b->target && s->served < b->served)) best = i;
    }
    return best;
}

static void fill(fv_share_of *shares, int count, int cpus, int left_out) {
    for (int i = 0; i < count; i++)
        if (i != left_out) shares[i].target = 0;
    for (int who; cpus > 0 && (who = next_in_turn(shares, count, left_out)) >= 0; cpus--) shares[who].target++;
}

/* Who has had the least and cannot begin with his share; -1: nobody. */
static int find_cramped(const fv_share_of *shares, int count) {
    int poorest = -1;
    for (int i = 0; i < count; i++)
        if (shares[i].allowance->wanted > shares[i].allowance->used && (poorest < 0 || shares[i].served < shares[poorest].served))
            poorest = i;
    if (poorest < 0) return -1;
    return shares[poorest].target < shares[poorest].allowance->least ? poorest : -1;
}

void fv__shares_divide(fv_share_of *shares, int count, int cpus) {
    fill(shares, count, cpus, -1);
    int cramped = find_cramped(shares, count);
    if (cramped >= 0) {
        shares[cramped].target = FV_MIN(shares[cramped].allowance->least, cpus);
        fill(shares, count, cpus - shares[cramped].target, cramped);
    }
    int room = cpus;
    for (int i = 0; i < count; i++) { /* first those who get less: what they have begun still counts */
        fv_allowance *a = shares[i].allowance;
        if (shares[i].target < a->allowed) a->allowed = shares[i].target;
        room -= FV_MAX(a->allowed, a->used);
    }
    for (int i = 0; i < count; i++) {
        fv_allowance *a = shares[i].allowance;
        int           has = FV_MAX(a->allowed, a->used), more = FV_MIN(shares[i].target - has, room);
        if (more <= 0) continue;
        a->allowed = has + more;
        room -= more;
    }
}
