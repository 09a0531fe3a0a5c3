/* Pools of devices. */
#include "devices/device_pool.h"
#include "base/file.h"
#include "devices/broker.h"
#include <pthread.h>
#include <stdlib.h>

enum { MOST = 64, AT_ONCE = 2 }; /* tasks of a device: one computes while the other's data travel */

struct fv_device_pool {
    fv_device_pool  *next;
    char            *name;
    char             kind[320];
    int64_t          memory;
    int              count;   /* devices of the node */
    uint64_t         members; /* bit by index: those of the pool */
    bool             processor;
    int              given;       /* leased by who has started us; -1: none */
    bool             service;     /* the node's scheduler gives the devices out */
    fv_broker       *broker;      /* otherwise */
    int              index[MOST]; /* of the broker's devices */
    uint64_t         tickets;
    fv_broker_grant *grants; /* not yet picked up */
    int              ngrants;
    pthread_mutex_t  mutex;
    pthread_cond_t   freed;
};

/* Of the process: devices and their memory are shared by all its pipelines, which would otherwise take more than there is. */
static fv_device_pool *pools;
static pthread_mutex_t pools_mutex = PTHREAD_MUTEX_INITIALIZER;

/* ---------------------------------------------------------------- opening */

const char fv__no_job_devices[] = "this Slurm job was given no device; ask for one when it is submitted, as --gres=gpu:1";

static bool among(uint64_t devices, int index) { return !devices || devices >> index & 1; }

/* job: the devices that a Slurm job was given; 0: any. */
static fv_status find_first(const char *name, int count, uint64_t job, int *first, bool *all, int *given, fv_error *error) {
    const char *leased = getenv("FOVEA_DEVICE");
    char       *end;
    *given = -1;
    *all = !strcmp(name, "opencl");
    for (*first = 0; !among(job, *first);) ++*first;
    if (!*all) {
        long number = strncmp(name, "opencl:", 7) ? -1 : strtol(name + 7, &end, 10);
        if (number < 0 || end == name + 7 || *end)
            return fv_fail(error, FV_ERROR_USAGE, "device %s: must be auto, cpu, opencl or opencl:N", name);
        if (number >= count || number >= MOST)
            return fv_fail(error, FV_ERROR_USAGE,
                           "device %s: there are %d devices, opencl:0 to opencl:%d; `fovea devices` lists them", name, count,
                           count - 1);
        if (!among(job, (int)number))
            return fv_fail(error, FV_ERROR_USAGE, "device %s: this Slurm job was given others (--gres)", name);
        *first = (int)number;
    } else if (leased && *leased) {
        *given = count == 1 ? 0 : atoi(leased); /* the others may have been hidden from us */
        if (*given < 0 || *given >= FV_MIN(count, MOST))
            return fv_fail(error, FV_ERROR_USAGE, "FOVEA_DEVICE=%s: there are %d devices, counted from 0", leased, count);
        *first = *given;
        *all = false;
    }
    return FV_OK;
}

/* One buffer may take all that a task has. FOVEA_DEVICE_MEMORY makes a device smaller than it is. */
static int64_t usable_memory(const fv_device_about *about) {
    const char *less = getenv("FOVEA_DEVICE_MEMORY");
    int64_t     memory = FV_MIN(about->memory, about->largest), given;
    return less && fv_size_parse(less, &given) && given > 0 ? FV_MIN(memory, given) : memory;
}

static fv_status fill(fv_device_pool *p, int first, bool all, uint64_t job, fv_error *error) {
    fv_device_about wanted, about;
    FV_TRY(fv__device_about_of(first, &wanted, error));
    memcpy(p->kind, wanted.kind, sizeof p->kind);
    p->memory = INT64_MAX;
    p->processor = wanted.processor;
    p->broker = fv__broker_new(FV_POLICY_BEST_FIT, 1);
    for (int d = 0; d < FV_MIN(p->count, MOST); d++) {
        if (d != first && (!all || !among(job, d))) continue;
        FV_TRY(fv__device_about_of(d, &about, error));
        if (strcmp(about.kind, wanted.kind)) continue;
        fv_broker_device device = { .memory = usable_memory(&about), .speed = 1, .most = AT_ONCE };
        memcpy(device.name, about.name, sizeof device.name);
        p->index[fv__broker_add(p->broker, &device)] = d;
        p->members |= (uint64_t)1 << d;
        p->memory = FV_MIN(p->memory, device.memory);
    }
    return FV_OK;
}

static fv_status open_pool(const char *name, fv_device_pool **out, fv_error *error) {
    fv_device_pool *p = fv__calloc(sizeof *p);
    int             first;
    bool            all;
    uint64_t        job = 0;
    char            answer[64];
    fv_status       status = fv__device_count(&p->count, error);
    bool            leased = getenv("FOVEA_DEVICE") && *getenv("FOVEA_DEVICE"); /* by somebody who has looked */
    if (status == FV_OK && !leased && !fv_device_job(p->count, &job))
        status = fv_fail(error, FV_ERROR_DEVICE, "%s", fv__no_job_devices);
    if (status == FV_OK) status = find_first(name, p->count, job, &first, &all, &p->given, error);
    if (status == FV_OK) status = fill(p, first, all, job, error);
    if (status != FV_OK) {
        fv__broker_free(p->broker);
        free(p);
        return status;
    }
    p->service = p->given < 0 && fv_device_ask(NULL, "status", answer, sizeof answer);
    p->name = fv__strdup(name);
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->freed, NULL);
    *out = p;
    return FV_OK;
}

fv_status fv__device_pool_of(const char *name, fv_device_pool **pool, fv_error *error) {
    fv_status status = FV_OK;
    pthread_mutex_lock(&pools_mutex);
    for (*pool = pools; *pool && strcmp((*pool)->name, name);) *pool = (*pool)->next;
    if (!*pool) {
        status = open_pool(name, pool, error);
        if (status == FV_OK) {
            (*pool)->next = pools;
            pools = *pool;
        }
    }
    pthread_mutex_unlock(&pools_mutex);
    return status;
}

const char *fv__device_pool_kind(const fv_device_pool *p) { return p->kind; }
int64_t     fv__device_pool_memory(const fv_device_pool *p) { return p->memory; }
bool        fv__device_pool_processor(const fv_device_pool *p) { return p->processor; }
bool        fv__device_pool_given(const fv_device_pool *p) { return p->given >= 0; }

/* ---------------------------------------------------------------- leasing */

/* Whether the ticket's turn has come: all that can be given is given first, to whomever. */
static bool granted(fv_device_pool *p, uint64_t ticket, fv_broker_grant *grant) {
    for (fv_broker_grant g; fv__broker_grant_next(p->broker, &g);) {
        p->grants = fv__realloc(p->grants, (size_t)(p->ngrants + 1) * sizeof *p->grants);
        p->grants[p->ngrants++] = g;
        pthread_cond_broadcast(&p->freed);
    }
    for (int i = 0; i < p->ngrants; i++)
        if (p->grants[i].ticket == ticket) {
            *grant = p->grants[i];
            p->grants[i] = p->grants[--p->ngrants];
            return true;
        }
    return false;
}

static fv_status take_here(fv_device_pool *p, int64_t memory, fv_device_hold *hold, int *index, fv_error *error) {
    fv_broker_grant grant = { 0 };
    pthread_mutex_lock(&p->mutex);
    hold->ticket = ++p->tickets;
    bool possible = fv__broker_ask(p->broker, hold->ticket, 0, memory) == FV_ASKED_WAITS;
    while (possible && !granted(p, hold->ticket, &grant)) pthread_cond_wait(&p->freed, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
    *index = p->index[grant.device];
    return possible ? FV_OK : fv_fail(error, FV_ERROR_DEVICE, "no device has %lld MB", (long long)(memory >> 20));
}

fv_status fv__device_pool_take(fv_device_pool *p, int64_t memory, fv_device_hold *hold, fv_error *error) {
    int       index = 0;
    fv_status status = FV_OK;
    *hold = (fv_device_hold){ .lease.connection = -1 };
    fv__io_enter();
    if (!p->service)
        status = take_here(p, memory, hold, &index, error);
    else if (fv_device_lease_of(NULL, memory, -1, p->members, &hold->lease))
        index = hold->lease.index;
    else
        status = fv_fail(error, FV_ERROR_DEVICE, "%s", hold->lease.message);
    fv__io_leave();
    if (status == FV_OK && index >= p->count)
        status = fv_fail(error, FV_ERROR_DEVICE, "the scheduler gave device %d, but OpenCL finds %d here", index, p->count);
    if (status == FV_OK) status = fv__device_borrow(index, memory, &hold->device, error);
    if (status != FV_OK) fv__device_pool_give(p, hold);
    return status;
}

void fv__device_pool_give(fv_device_pool *p, fv_device_hold *hold) {
    if (hold->device) fv__device_give_back(hold->device, p->service); /* what others may lease must be free */
    if (p->service)
        fv_device_lease_return(&hold->lease);
    else {
        pthread_mutex_lock(&p->mutex);
        fv__broker_give_back(p->broker, hold->ticket);
        pthread_cond_broadcast(&p->freed);
        pthread_mutex_unlock(&p->mutex);
    }
    *hold = (fv_device_hold){ .lease.connection = -1 };
}
