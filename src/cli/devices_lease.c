/* fovea devices lease: any command, with a device of its own for as long as it runs. */
#include "devices_lease.h"
#include "cli.h"
#include <cjson/cJSON.h>
#include <errno.h>
#include <fovea/device_lease.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int refuse(const char *why) {
    fv_complain("devices", "%s", why);
    return FV_EXIT_REFUSED;
}

/* Item number `place` of a list with these ends; NULL: it is not so long. */
static const char *item_of(const char *list, int place, const char *ends, int *length) {
    for (int i = 0; list && i < place; i++) {
        list += strcspn(list, ends);
        list = *list ? list + 1 : NULL;
    }
    *length = list ? (int)strcspn(list, ends) : 0;
    return *length ? list : NULL;
}

/* Sets a variable to the number of a device. Where it lists those that a job was given ("2,5"), to one of these. */
static void name_device(const char *variable, int index, int place) {
    int         length;
    char        number[64];
    const char *item = item_of(getenv(variable), place, ",", &length);
    if (item)
        snprintf(number, sizeof number, "%.*s", length, item);
    else
        snprintf(number, sizeof number, "%d", index);
    setenv(variable, number, 1);
}

/* What the usual runtimes look at. HIP and AMD's OpenCL count what ROCR_VISIBLE_DEVICES has left; PoCL is told to make one. */
static void name_devices(const fv_device_lease *lease, int place) {
    char        text[64];
    int         length;
    const char *kind = item_of(getenv("POCL_DEVICES"), lease->index, " ", &length);
    name_device("CUDA_VISIBLE_DEVICES", lease->index, place);
    name_device("ROCR_VISIBLE_DEVICES", lease->index, place);
    setenv("HIP_VISIBLE_DEVICES", "0", 1);
    setenv("GPU_DEVICE_ORDINAL", "0", 1);
    if (kind) {
        snprintf(text, sizeof text, "%.*s", length, kind);
        setenv("POCL_DEVICES", text, 1);
    }
    snprintf(text, sizeof text, "%d", lease->index);
    setenv("FOVEA_DEVICE", text, 1);
    snprintf(text, sizeof text, "%lld", (long long)lease->memory);
    if (lease->memory > 0) setenv("FOVEA_DEVICE_MEMORY", text, 0);
}

static int run_with(const fv_device_lease *lease, int place, char **command) {
    signal(SIGINT, SIG_IGN); /* the command decides */
    pid_t parent = getpid(), child = fork();
    if (child < 0) return refuse("cannot start a process");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* without us nobody would have the device leased */
        if (getppid() != parent) _exit(1);
        signal(SIGINT, SIG_DFL);
        name_devices(lease, place);
        execvp(command[0], command);
        fv_complain("devices", "cannot run %s: %s", command[0], strerror(errno));
        _exit(127);
    }
    int state;
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

/* Devices of the scheduler that a Slurm job may use; false: none. */
static bool find_ours(const char *socket, uint64_t *devices) {
    enum { ROOM = 1 << 20 };
    char *text = malloc(ROOM);
    if (!text) abort();
    *devices = 0;
    cJSON *root = fv_device_ask(socket, "status", text, ROOM) ? cJSON_Parse(text) : NULL;
    bool   good = !root || fv_device_job(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(root, "devices")), devices);
    cJSON_Delete(root);
    free(text);
    return good;
}

int fv_devices_lease(const char *socket, int64_t memory, double wait, int count, char **command) {
    fv_device_lease lease;
    uint64_t        devices;
    if (!count) return refuse("lease needs a command, as `fovea devices lease --memory 2G -- ./train`");
    if (!find_ours(socket, &devices)) return refuse("this Slurm job was given no device; ask for one, as --gres=gpu:1");
    if (!fv_device_lease_of(socket, memory, wait, devices, &lease)) return refuse(lease.message);
    char **words = calloc((size_t)count + 1, sizeof *words);
    if (!words) abort();
    memcpy(words, command, (size_t)count * sizeof *words);
    int status = run_with(&lease, fv_device_job_place(devices, lease.index), words);
    fv_device_lease_return(&lease);
    free(words);
    return status;
}
