/* Who gets which device: bookkeeping without clock, files or sockets, so that its decisions can be tested one by one.
 *
 *     fv_broker *b = fv__broker_new(FV_POLICY_BEST_FIT, 1);
 *     fv__broker_add(b, &(fv_broker_device){ .name = "card", .memory = (int64_t)2 << 30, .speed = 1 });
 *     fv__broker_ask(b, ticket, user, memory);
 *     while (fv__broker_grant_next(b, &grant)) ...;
 *     fv__broker_give_back(b, ticket);
 *
 * Users are served in turn: who has the fewest devices comes first, then who was served longest ago; requests of one user in
 * their order. A request for much memory whose turn it is is passed by smaller ones only so many times; then devices that could
 * serve it are kept free until it fits.
 */
#ifndef FV_BROKER_H
#define FV_BROKER_H

#include "base/base.h"

typedef enum fv_policy {
    FV_POLICY_RANDOM,
    FV_POLICY_ROUND_ROBIN,
    FV_POLICY_LEAST_PROCESSES, /* the one with the fewest tasks, then the first */
    FV_POLICY_BEST_FIT,        /* the fastest for one more task, then the one whose memory it fills best */
    FV_POLICIES
} fv_policy;

extern const char *const fv__policy_names[FV_POLICIES];
bool                     fv__policy_find(const char *name, fv_policy *policy);

typedef struct fv_broker_device {
    char    name[64];
    int64_t memory;
    double  speed;  /* relative to others */
    int     most;   /* tasks at once; 0: as many as its memory holds; below 0: it is not given out */
    int64_t used;   /* bytes leased */
    int     tasks;  /* leases out */
    int64_t served; /* leases ever */
} fv_broker_device;

typedef struct fv_broker_grant {
    uint64_t ticket;
    uint32_t user;
    int      device;
    int64_t  memory;
} fv_broker_grant;

typedef enum fv_asked { FV_ASKED_WAITS, FV_ASKED_TOO_LARGE, FV_ASKED_QUEUE_FULL } fv_asked;

typedef struct fv_broker fv_broker;

fv_broker *fv__broker_new(fv_policy policy, uint64_t seed);
void       fv__broker_free(fv_broker *broker);
int        fv__broker_add(fv_broker *broker, const fv_broker_device *device);
void       fv__broker_set_policy(fv_broker *broker, fv_policy policy);
fv_policy  fv__broker_policy(const fv_broker *broker);
/* Most requests that wait, of all and of one user; 0: any. */
void fv__broker_limit(fv_broker *broker, int all, int user);

fv_asked fv__broker_ask(fv_broker *broker, uint64_t ticket, uint32_t user, int64_t memory);
/* The same for some of the first 64 devices only, a bit for each; 0: any. */
fv_asked fv__broker_ask_of(fv_broker *broker, uint64_t ticket, uint32_t user, int64_t memory, uint64_t devices);
/* The next device that can be given away; false: none. */
bool fv__broker_grant_next(fv_broker *broker, fv_broker_grant *grant);
/* A lease that another service gave. */
void fv__broker_hold(fv_broker *broker, const fv_broker_grant *grant);
/* A lease, or a request that waits; false: there is no such ticket. */
bool fv__broker_give_back(fv_broker *broker, uint64_t ticket);

int                     fv__broker_devices(const fv_broker *broker);
const fv_broker_device *fv__broker_device_at(const fv_broker *broker, int index);
int                     fv__broker_waiting(const fv_broker *broker);

#endif
