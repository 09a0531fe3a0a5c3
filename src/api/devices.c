/* The service of devices, from words that a user writes. */
#include "devices/device_pool.h"
#include "devices/device_service.h"
#include <fovea/device_lease.h>
#include <fovea/devices.h>
#include <stdio.h>
#include <stdlib.h>

/* NAME:MEMORY[:SPEED]; the name may hold colons. */
static fv_status read_device(const char *text, int64_t most, fv_broker_device *device, fv_error *error) {
    char  *copy = fv__strdup(text), *end;
    char  *last = strrchr(copy, ':'), *before = NULL;
    double speed = last ? strtod(last + 1, &end) : 0;
    *device = (fv_broker_device){ .speed = 1, .most = (int)most };
    if (last && end > last + 1 && !*end && speed > 0) { /* perhaps a speed: then the memory stands before it */
        *last = 0;
        before = strrchr(copy, ':');
        if (before && fv_size_parse(before + 1, &device->memory))
            device->speed = speed;
        else
            *last = ':';
    }
    char *memory = device->memory ? before : last;
    bool  good = memory && memory > copy && (device->memory || fv_size_parse(memory + 1, &device->memory)) && device->memory > 0;
    if (good) {
        *memory = 0;
        good = strlen(copy) < sizeof device->name;
        if (good) memcpy(device->name, copy, strlen(copy) + 1);
    }
    free(copy);
    return good ? FV_OK
                : fv_fail(error, FV_ERROR_INPUT, "device %s: expected NAME:MEMORY or NAME:MEMORY:SPEED, as a100:40G:3", text);
}

fv_status fv_devices_find(bool measure, fv_device_facts **facts, int *count, fv_error *error) {
    *facts = NULL;
    FV_TRY(fv__device_count(count, error));
    *facts = fv__calloc((size_t)*count * sizeof **facts);
    fv_status status = FV_OK;
    for (int d = 0; d < *count && status == FV_OK; d++) {
        fv_device_facts *f = &(*facts)[d];
        fv_device_about  about;
        status = fv__device_about_of(d, &about, error);
        if (status != FV_OK) break;
        memcpy(f->name, about.name, sizeof f->name);
        memcpy(f->kind, about.kind, sizeof f->kind);
        f->memory = about.memory;
        if (measure) status = fv__device_measure(d, &f->arithmetic, &f->bandwidth, error);
    }
    if (status == FV_OK) return FV_OK;
    free(*facts);
    *facts = NULL;
    return status;
}

/* Those that the user named, or else those that OpenCL finds. */
static fv_status list_devices(const fv_devices_options *o, fv_broker_device **devices, int *count, fv_error *error) {
    fv_status        status = FV_OK;
    fv_device_facts *found = NULL;
    *count = o->ndevices;
    if (o->ndevices < 1) {
        status = fv_devices_find(true, &found, count, error);
        if (status != FV_OK) {
            char *why = fv__strdup(error ? error->message : "");
            *count = 0;
            fv_fail(error, status, "there is no device to give out; name them, as --device a100:40G. %s", why);
            free(why);
        }
    }
    uint64_t job = 0; /* under Slurm: those that it was given */
    if (found && !fv_device_job(*count, &job)) status = fv_fail(error, FV_ERROR_INPUT, "%s", fv__no_job_devices);
    *devices = fv__calloc((size_t)(*count + 1) * sizeof **devices);
    for (int d = 0; d < *count && status == FV_OK; d++) {
        fv_broker_device *device = &(*devices)[d];
        if (!found) {
            status = read_device(o->devices[d], o->most, device, error);
            continue;
        }
        bool ours = !job || (d < 64 && job >> d & 1);
        *device = (fv_broker_device){ .memory = found[d].memory, .speed = found[d].arithmetic, .most = ours ? (int)o->most : -1 };
        snprintf(device->name, sizeof device->name, "%s%.*s", ours ? "" : "(not of this job) ", ours ? 63 : 45, found[d].name);
    }
    free(found);
    return status;
}

typedef struct call {
    const fv_devices_options *options;
    const char               *socket;
} call;

static void ready(void *context) {
    const call *c = context;
    if (c->options->ready) c->options->ready(c->options->context, c->socket);
}

fv_status fv_devices_serve(const fv_devices_options *o, fv_error *error) {
    char                      usual[108];
    fv_device_service_options s = { .socket = o->socket,
                                    .record = o->record,
                                    .policy = FV_POLICY_BEST_FIT,
                                    .seed = o->seed ? o->seed : 1,
                                    .most_waiting = (int)o->most_waiting,
                                    .most_waiting_user = (int)o->most_waiting_user,
                                    .stop = o->stop,
                                    .ready = ready };
    if (o->policy && !fv__policy_find(o->policy, &s.policy))
        return fv_fail(error, FV_ERROR_INPUT, "policy %s: must be random, round-robin, least-processes or best-fit", o->policy);
    fv_device_socket(usual);
    if (!s.socket) s.socket = usual;
    call c = { o, s.socket };
    s.context = &c;
    fv_broker_device *devices;
    fv_status         status = list_devices(o, &devices, &s.ndevices, error);
    s.devices = devices;
    if (status == FV_OK) status = fv__device_service_run(&s, error);
    free(devices);
    return status;
}
