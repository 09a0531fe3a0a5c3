/* A lease for a program that is started: the device, and the variables by which the usual runtimes see it and no other. */
#include "base/base.h"
#include <cjson/cJSON.h>
#include <fovea/devices.h>
#include <stdio.h>
#include <stdlib.h>

/* Item number `place` of a list with these ends; NULL: it is not so long. */
static const char *item_of(const char *list, int place, const char *ends, int *length) {
    for (int i = 0; list && i < place; i++) {
        list += strcspn(list, ends);
        list = *list ? list + 1 : NULL;
    }
    *length = list ? (int)strcspn(list, ends) : 0;
    return *length ? list : NULL;
}

static void set(fv_device_grant *grant, const char *name, const char *value, int length) {
    char *text = grant->variables[grant->count];
    snprintf(text, sizeof grant->variables[0], "%s=%.*s", name, length, value);
    grant->settings[grant->count++] = text;
}

static void set_number(fv_device_grant *grant, const char *name, int64_t number) {
    char text[24];
    set(grant, name, text, snprintf(text, sizeof text, "%lld", (long long)number));
}

/* The number of a device. Where the variable lists those that a job was given ("2,5"), one of these. */
static void name_device(fv_device_grant *grant, const char *variable, int place) {
    int         length;
    const char *item = item_of(getenv(variable), place, ",", &length);
    if (item)
        set(grant, variable, item, length);
    else
        set_number(grant, variable, grant->lease.index);
}

/* HIP and AMD's OpenCL count what ROCR_VISIBLE_DEVICES has left; PoCL is told to make one. */
static void name_devices(fv_device_grant *grant, int place) {
    int         length;
    const char *kind = item_of(getenv("POCL_DEVICES"), grant->lease.index, " ", &length);
    name_device(grant, "CUDA_VISIBLE_DEVICES", place);
    name_device(grant, "ROCR_VISIBLE_DEVICES", place);
    set_number(grant, "HIP_VISIBLE_DEVICES", 0);
    set_number(grant, "GPU_DEVICE_ORDINAL", 0);
    if (kind) set(grant, "POCL_DEVICES", kind, length);
    set_number(grant, "FOVEA_DEVICE", grant->lease.index);
    if (grant->lease.memory > 0 && !getenv("FOVEA_DEVICE_MEMORY")) set_number(grant, "FOVEA_DEVICE_MEMORY", grant->lease.memory);
}

/* Devices of the scheduler that a Slurm job may use; false: none. */
static bool find_ours(const char *socket, uint64_t *devices) {
    enum { ROOM = 1 << 20 };
    *devices = 0;
    if (!getenv("SLURM_JOB_ID")) return true; /* all of them */
    char  *text = fv__calloc(ROOM);
    cJSON *root = fv_device_ask(socket, "status", text, ROOM) ? cJSON_Parse(text) : NULL;
    bool   good = !root || fv_device_job(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(root, "devices")), devices);
    cJSON_Delete(root);
    free(text);
    return good;
}

fv_status fv_device_grant_take(const char *socket, int64_t memory, double seconds, fv_device_grant *grant, fv_error *error) {
    uint64_t devices;
    memset(grant, 0, sizeof *grant);
    grant->lease.connection = -1;
    if (!find_ours(socket, &devices))
        return fv_fail(error, FV_ERROR_USAGE, "this Slurm job was given no device; ask for one, as --gres=gpu:1");
    if (!fv_device_lease_of(socket, memory, seconds, devices, &grant->lease))
        return fv_fail(error, grant->lease.late ? FV_ERROR_BUSY : FV_ERROR_USAGE, "%s", grant->lease.message);
    name_devices(grant, fv_device_job_place(devices, grant->lease.index));
    return FV_OK;
}

void fv_device_grant_return(fv_device_grant *grant) {
    if (grant->lease.connection >= 0) fv_device_lease_return(&grant->lease);
}
