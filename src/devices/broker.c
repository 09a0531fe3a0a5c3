/* Who gets which device.
 *
 * Invariants:
 * 1. used and tasks of a device are the sums over the leases on it; neither exceeds its limits, unless leases of an earlier
 *    service were taken over.
 * 2. Requests are in the order in which they came. */
#include "devices/broker.h"
#include <stdlib.h>

enum { PATIENCE = 16 }; /* times that a request is passed before devices are kept for it */

const char *const fv__policy_names[FV_POLICIES] = { "random", "round-robin", "least-processes", "best-fit" };

typedef struct request {
    uint64_t ticket;
    uint32_t user;
    int64_t  memory;
    uint64_t devices;
    int      passed;
} request;
typedef struct user {
    uint32_t id;
    int      leases, waiting;
    uint64_t last;
} user; /* last: when served, in grants */

struct fv_broker {
    fv_policy         policy;
    uint64_t          seed, grants;
    int               last; /* device given last */
    int               most_waiting, most_waiting_user;
    fv_broker_device *devices;
    int               ndevices;
    request          *requests;
    int               nrequests, request_room;
    fv_broker_grant  *leases;
    int               nleases, lease_room;
    user             *users;
    int               nusers, user_room;
};

bool fv__policy_find(const char *name, fv_policy *policy) {
    for (int i = 0; i < FV_POLICIES; i++)
        if (!strcmp(name, fv__policy_names[i])) {
            *policy = (fv_policy)i;
            return true;
        }
    return false;
}

fv_broker *fv__broker_new(fv_policy policy, uint64_t seed) {
    fv_broker *b = fv__calloc(sizeof *b);
    b->policy = policy;
    b->seed = seed;
    b->last = -1;
    return b;
}

void fv__broker_free(fv_broker *b) {
    if (!b) return;
    free(b->devices);
    free(b->requests);
    free(b->leases);
    free(b->users);
    free(b);
}

int fv__broker_add(fv_broker *b, const fv_broker_device *device) {
    b->devices = fv__realloc(b->devices, (size_t)(b->ndevices + 1) * sizeof *b->devices);
    b->devices[b->ndevices] = *device;
    return b->ndevices++;
}

void                    fv__broker_set_policy(fv_broker *b, fv_policy policy) { b->policy = policy; }
fv_policy               fv__broker_policy(const fv_broker *b) { return b->policy; }
int                     fv__broker_devices(const fv_broker *b) { return b->ndevices; }
int                     fv__broker_waiting(const fv_broker *b) { return b->nrequests; }
const fv_broker_device *fv__broker_device_at(const fv_broker *b, int index) { return &b->devices[index]; }

void fv__broker_limit(fv_broker *b, int all, int one) {
    b->most_waiting = all;
    b->most_waiting_user = one;
}

/* Room for one more at the end of a list. */
#define ONE_MORE(list, count, room)                                                                                              \
    do {                                                                                                                         \
        if ((count) == (room)) {                                                                                                 \
            (room) = FV_MAX(2 * (room), 16);                                                                                     \
            (list) = fv__realloc((list), (size_t)(room) * sizeof *(list));                                                       \
        }                                                                                                                        \
    } while (0)

static user *find_user(fv_broker *b, uint32_t id) {
    for (int i = 0; i < b->nusers; i++)
        if (b->users[i].id == id) return &b->users[i];
    ONE_MORE(b->users, b->nusers, b->user_room);
    b->users[b->nusers] = (user){ .id = id };
    return &b->users[b->nusers++];
}

static bool among(uint64_t devices, int index) { return !devices || (index < 64 && devices >> index & 1); }

static bool could_serve(const fv_broker_device *d, int index, int64_t memory, uint64_t devices) {
    return among(devices, index) && d->most >= 0 && d->memory >= memory;
}

fv_asked fv__broker_ask(fv_broker *b, uint64_t ticket, uint32_t id, int64_t memory) {
    return fv__broker_ask_of(b, ticket, id, memory, 0);
}

fv_asked fv__broker_ask_of(fv_broker *b, uint64_t ticket, uint32_t id, int64_t memory, uint64_t devices) {
    bool  possible = false;
    user *u = find_user(b, id);
    for (int d = 0; d < b->ndevices; d++) possible = possible || could_serve(&b->devices[d], d, memory, devices);
    if (!possible) return FV_ASKED_TOO_LARGE;
    if (b->most_waiting && b->nrequests >= b->most_waiting) return FV_ASKED_QUEUE_FULL;
    if (b->most_waiting_user && u->waiting >= b->most_waiting_user) return FV_ASKED_QUEUE_FULL;
    ONE_MORE(b->requests, b->nrequests, b->request_room);
    b->requests[b->nrequests++] = (request){ .ticket = ticket, .user = id, .memory = memory, .devices = devices };
    u->waiting++;
    return FV_ASKED_WAITS;
}

/* ---------------------------------------------------------------- choosing a device */

static bool fits(const fv_broker_device *d, int64_t memory) {
    return d->memory - d->used >= memory && (!d->most || d->tasks < d->most);
}

static uint64_t next_random(fv_broker *b) { /* splitmix64 (Steele, Lea, Flood, 2014) */
    uint64_t x = b->seed += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static bool better_fit(const fv_broker_device *a, const fv_broker_device *b) {
    double fast = a->speed / (a->tasks + 1), other = b->speed / (b->tasks + 1);
    if (fast != other) return fast > other;
    return a->memory - a->used < b->memory - b->used;
}

/* Among the devices that may be used: -1 if none has room. */
static int choose(fv_broker *b, const request *r, const bool *usable) {
    int      best = -1;
    uint64_t seen = 0;
    for (int k = 0; k < b->ndevices; k++) {
        int                     d = b->policy == FV_POLICY_ROUND_ROBIN ? (b->last + 1 + k) % b->ndevices : k;
        const fv_broker_device *device = &b->devices[d];
        if (!usable[d] || !among(r->devices, d) || !fits(device, r->memory)) continue;
        seen++;
        bool take = best < 0;
        if (b->policy == FV_POLICY_RANDOM) take = next_random(b) % seen == 0;
        if (b->policy == FV_POLICY_LEAST_PROCESSES && best >= 0) take = device->tasks < b->devices[best].tasks;
        if (b->policy == FV_POLICY_BEST_FIT && best >= 0) take = better_fit(device, &b->devices[best]);
        if (take) best = d;
    }
    return best;
}

/* ---------------------------------------------------------------- choosing a request */

/* Whether a user comes before another: fewer leases, then served longer ago. */
static bool comes_before(const user *a, const user *b) {
    if (a->leases != b->leases) return a->leases < b->leases;
    return a->last < b->last;
}

static int oldest_of(const fv_broker *b, uint32_t id) {
    for (int i = 0; i < b->nrequests; i++)
        if (b->requests[i].user == id) return i;
    return -1;
}

/* Devices that nobody but a request that was passed too often may use. */
static int find_impatient(const fv_broker *b) {
    for (int i = 0; i < b->nrequests; i++)
        if (b->requests[i].passed >= PATIENCE) return i;
    return -1;
}

static void remove_request(fv_broker *b, int index) {
    find_user(b, b->requests[index].user)->waiting--;
    memmove(&b->requests[index], &b->requests[index + 1], (size_t)(b->nrequests - index - 1) * sizeof *b->requests);
    b->nrequests--;
}

void fv__broker_hold(fv_broker *b, const fv_broker_grant *grant) {
    ONE_MORE(b->leases, b->nleases, b->lease_room);
    b->leases[b->nleases++] = *grant;
    fv_broker_device *d = &b->devices[grant->device];
    d->used += grant->memory;
    d->tasks++;
    d->served++;
    user *u = find_user(b, grant->user);
    u->leases++;
    u->last = ++b->grants;
    b->last = grant->device;
}

static void give(fv_broker *b, int index, int device, fv_broker_grant *grant) {
    const request *r = &b->requests[index];
    *grant = (fv_broker_grant){ .ticket = r->ticket, .user = r->user, .device = device, .memory = r->memory };
    remove_request(b, index);
    fv__broker_hold(b, grant);
}

/* It was the turn of these users, and what they want did not fit. Who waits for his turn is not passed, else much waiting would
 * come before turns. */
static void count_passed(fv_broker *b, const bool *tried, uint32_t served) {
    for (int i = 0; i < b->nusers; i++)
        if (tried[i] && b->users[i].id != served) b->requests[oldest_of(b, b->users[i].id)].passed++;
}

bool fv__broker_grant_next(fv_broker *b, fv_broker_grant *grant) {
    int   impatient = find_impatient(b), device = -1, order = 0;
    bool *usable = fv__calloc((size_t)b->ndevices + 1), *tried = fv__calloc((size_t)b->nusers + 1);
    for (int d = 0; d < b->ndevices; d++) usable[d] = true;
    if (impatient >= 0) {
        device = choose(b, &b->requests[impatient], usable);
        order = impatient;
        for (int d = 0; d < b->ndevices; d++)
            usable[d] = b->devices[d].memory < b->requests[impatient].memory || !among(b->requests[impatient].devices, d);
    }
    for (int turn = 0; device < 0 && turn < b->nusers; turn++) {
        int next = -1;
        for (int i = 0; i < b->nusers; i++)
            if (!tried[i] && b->users[i].waiting && (next < 0 || comes_before(&b->users[i], &b->users[next]))) next = i;
        if (next < 0) break;
        tried[next] = true;
        order = oldest_of(b, b->users[next].id);
        device = choose(b, &b->requests[order], usable);
    }
    if (device >= 0) {
        count_passed(b, tried, b->requests[order].user);
        give(b, order, device, grant);
    }
    free(usable);
    free(tried);
    return device >= 0;
}

bool fv__broker_give_back(fv_broker *b, uint64_t ticket) {
    for (int i = 0; i < b->nrequests; i++)
        if (b->requests[i].ticket == ticket) {
            remove_request(b, i);
            return true;
        }
    for (int i = 0; i < b->nleases; i++) {
        if (b->leases[i].ticket != ticket) continue;
        fv_broker_device *d = &b->devices[b->leases[i].device];
        d->used -= b->leases[i].memory;
        d->tasks--;
        find_user(b, b->leases[i].user)->leases--;
        b->leases[i] = b->leases[--b->nleases];
        return true;
    }
    return false;
}
