/* fovea devices: the devices of this node, shared among programs. */
#include "cli.h"
#include "devices_lease.h"
#include "devices_study.h"
#include "pipeline_options.h"
#include "stopping.h"
#include <cjson/cJSON.h>
#include <fovea/device_lease.h>
#include <fovea/devices.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    const char *socket, *record, *policy;
    fv_texts    device;
    int64_t     most, waiting, waiting_user;
    fv_size     memory;
    double      wait;
    bool        json;
    FV_STUDY_FIELDS;
} devices_options;

static const fv_option options[] = {
    FV_OPTION(devices_options, socket, .argument = "FILE", .doc = "where the scheduler listens; FOVEA_DEVICES if left out"),
    FV_OPTION(devices_options, device, .argument = "NAME:MEMORY[:SPEED]",
              .doc = "serve: a device, as a100:40G:3; may be repeated; if left out, those that OpenCL finds"),
    FV_OPTION(devices_options, policy, .choices = "random|round-robin|least-processes|best-fit",
              .doc = "serve: which device a task gets; best-fit if left out; study: this one only"),
    FV_OPTION(devices_options, most, .min = 1, .max = 1e6, .argument = "N",
              .doc = "serve: tasks of a device at once; as many as its memory holds if left out"),
    FV_OPTION(devices_options, waiting, .min = 1, .max = 1e6, .argument = "N", .doc = "serve: most requests that wait"),
    FV_OPTION(devices_options, waiting_user, .min = 1, .max = 1e6, .argument = "N", .doc = "serve: the same, of one user"),
    FV_OPTION(devices_options, record, .argument = "FILE",
              .doc = "serve: where all leases are recorded; SOCKET.record if left out"),
    FV_OPTION(devices_options, memory,
              .doc = "lease: what the command needs on the device, as 2G; study: what a device has, 2G if left out"),
    FV_OPTION(devices_options, wait, .min = -1, .max = 1e9, .def = "-1", .argument = "SECONDS",
              .doc = "lease: give up after so long; -1: never"),
    FV_STUDY_OPTIONS(devices_options),
    FV_OPTION(devices_options, json, .doc = "print JSON"),
    FV_OPTION_END,
};

static int refuse(const char *why) {
    fv_complain("devices", "%s", why);
    return FV_EXIT_REFUSED;
}

/* ---------------------------------------------------------------- serve */

static void ready(void *context, const char *socket) {
    (void)context;
    fprintf(stderr, "fovea: devices are given out at %s\n", socket);
}

static int serve(const devices_options *o) {
    fv_error           error = { 0 };
    fv_devices_options how = { .socket = o->socket,
                               .record = o->record,
                               .policy = o->policy,
                               .devices = o->device.items,
                               .ndevices = o->device.count,
                               .most = o->most,
                               .most_waiting = o->waiting,
                               .most_waiting_user = o->waiting_user,
                               .stop = fv_stopping(false),
                               .ready = ready };
    fv_status          status = fv_devices_serve(&how, &error);
    return status == FV_OK ? FV_EXIT_WELL : fv_explain("devices", NULL, status, &error);
}

/* ---------------------------------------------------------------- looking */

static void show_device(const cJSON *d) {
    double memory = cJSON_GetObjectItemCaseSensitive(d, "memory")->valuedouble;
    double used = cJSON_GetObjectItemCaseSensitive(d, "used")->valuedouble;
    char   bar[21];
    int    filled = memory > 0 ? (int)(20 * used / memory + 0.5) : 0;
    for (int i = 0; i < 20; i++) bar[i] = i < filled ? '#' : '.';
    bar[20] = 0;
    int tasks = cJSON_GetObjectItemCaseSensitive(d, "tasks")->valueint;
    printf("%-24s %s %7.1f of %.1f GiB, speed %g, %d task%s now, %.0f in all\n",
           cJSON_GetObjectItemCaseSensitive(d, "name")->valuestring, bar, used / (1 << 30), memory / (1 << 30),
           cJSON_GetObjectItemCaseSensitive(d, "speed")->valuedouble, tasks, tasks == 1 ? "" : "s",
           cJSON_GetObjectItemCaseSensitive(d, "served")->valuedouble);
}

/* Without a scheduler: what OpenCL finds here. */
static int show_found(const devices_options *o) {
    fv_error         error = { 0 };
    fv_device_facts *facts;
    int              count;
    fv_status        status = fv_devices_find(true, &facts, &count, &error);
    if (status != FV_OK) return fv_explain("devices", NULL, status, &error);
    cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "devices");
    for (int d = 0; d < count; d++) {
        const fv_device_facts *f = &facts[d];
        cJSON                 *entry = cJSON_CreateObject();
        char                   device[32];
        snprintf(device, sizeof device, "opencl:%d", d);
        cJSON_AddStringToObject(entry, "device", device);
        cJSON_AddStringToObject(entry, "name", f->name);
        cJSON_AddStringToObject(entry, "kind", f->kind);
        cJSON_AddNumberToObject(entry, "memory", (double)f->memory);
        cJSON_AddNumberToObject(entry, "speed", f->arithmetic);
        cJSON_AddNumberToObject(entry, "bandwidth", f->bandwidth);
        cJSON_AddItemToArray(list, entry);
        if (!o->json)
            printf("%-10s %-40s %6.1f GiB %8.1f G multiply-adds/s %7.1f GB/s\n", device, f->name, (double)f->memory / (1 << 30),
                   f->arithmetic, f->bandwidth);
    }
    char *text = cJSON_Print(root);
    if (o->json) puts(text);
    free(text);
    cJSON_Delete(root);
    free(facts);
    return FV_EXIT_WELL;
}

/* As Spark wants to be told, by the script that spark.executor.resource.gpu.discoveryScript names. */
static int discover(void) {
    fv_error         error = { 0 };
    fv_device_facts *facts;
    int              count;
    fv_status        status = fv_devices_find(false, &facts, &count, &error);
    if (status != FV_OK) return fv_explain("devices", NULL, status, &error);
    printf("{\"name\": \"gpu\", \"addresses\": [");
    for (int d = 0; d < count; d++) printf("%s\"%d\"", d ? ", " : "", d);
    printf("]}\n");
    free(facts);
    return FV_EXIT_WELL;
}

/* The scheduler's view if one runs. */
static int show(const devices_options *o, int *lines, bool or_found) {
    enum { ROOM = 1 << 20 };
    char *text = malloc(ROOM);
    if (!text) abort();
    bool   good = fv_device_ask(o->socket, "status", text, ROOM);
    cJSON *root = good && !o->json ? cJSON_Parse(text) : NULL;
    bool   named = o->socket || (getenv("FOVEA_DEVICES") && *getenv("FOVEA_DEVICES"));
    int    status = good ? FV_EXIT_WELL : or_found && !named ? show_found(o) : refuse(text);
    if (good && o->json) puts(text);
    if (root) {
        const cJSON *d, *devices = cJSON_GetObjectItemCaseSensitive(root, "devices");
        cJSON_ArrayForEach(d, devices) show_device(d);
        printf("policy %s, %d waiting\n", cJSON_GetObjectItemCaseSensitive(root, "policy")->valuestring,
               cJSON_GetObjectItemCaseSensitive(root, "waiting")->valueint);
        *lines = cJSON_GetArraySize(devices) + 1;
    }
    cJSON_Delete(root);
    free(text);
    return status;
}

static int watch(const devices_options *o) {
    const volatile int *stopped = fv_stopping(false);
    int                 status = FV_EXIT_WELL, lines = 0;
    for (bool first = true; !*stopped && status == FV_EXIT_WELL; first = false) {
        if (!first && isatty(STDOUT_FILENO)) printf("\033[%dA", lines);
        status = show(o, &lines, false);
        fflush(stdout);
        nanosleep(&(struct timespec){ .tv_nsec = 500000000 }, NULL);
    }
    return status;
}

static int set_policy(const devices_options *o, const char *name) {
    char line[128], answer[512];
    snprintf(line, sizeof line, "policy %s", name);
    return fv_device_ask(o->socket, line, answer, sizeof answer) ? FV_EXIT_WELL : refuse(answer);
}

/* ---------------------------------------------------------------- the command */

static int study(const devices_options *o) {
    return fv_devices_study(&(fv_study_request){ .workers = o->workers,
                                                 .tasks = o->tasks,
                                                 .devices = o->devices,
                                                 .seed = o->seed,
                                                 .seconds = o->seconds,
                                                 .output = o->output,
                                                 .memory = o->memory.bytes,
                                                 .policy = o->policy,
                                                 .json = o->json });
}

static int run(const void *options_, int nargs, char **args) {
    const devices_options *o = options_;
    const char            *what = nargs ? args[0] : "list";
    int                    lines;
    if (!strcmp(what, "lease")) return fv_devices_lease(o->socket, o->memory.bytes, o->wait, nargs - 1, args + 1);
    if (!strcmp(what, "policy") && nargs == 2) return set_policy(o, args[1]);
    if (!strcmp(what, "policy") && nargs == 1)
        return refuse("policy needs a name: random, round-robin, least-processes or best-fit");
    if (nargs > 1) return refuse("too many words; `fovea devices --help` shows which there are");
    if (!strcmp(what, "list")) return show(o, &lines, true);
    if (!strcmp(what, "serve")) return serve(o);
    if (!strcmp(what, "watch")) return watch(o);
    if (!strcmp(what, "study")) return study(o);
    if (!strcmp(what, "discover")) return discover();
    fv_complain("devices", "%s is none of list, serve, watch, policy NAME, lease -- COMMAND, study, discover", what);
    return FV_EXIT_REFUSED;
}

const fv_command fv_cmd_devices = {
    .name = "devices",
    .brief = "share the devices of this node among programs",
    .usage = "[list | serve | watch | policy NAME | lease -- COMMAND... | study | discover]",
    .least = 0,
    .most = -1,
    .doc = "Without a word, it lists the devices that OpenCL finds here, with their memory and measured speed. If a scheduler "
           "runs, it shows who is using them.\n"
           "`serve` starts the scheduler, which lends devices to any number of programs. A task says how much memory it needs, "
           "and gets a device or waits for one. If a program dies, its device is free at once. The scheduler may be restarted "
           "while devices are in use. Users are served in turn.\n"
           "`lease` runs a command with a device. The command finds the number of the device in CUDA_VISIBLE_DEVICES, "
           "ROCR_VISIBLE_DEVICES and FOVEA_DEVICE; in a Slurm job it is one of those that the job was given. Other programs use "
           "<fovea/device_lease.h>. `watch` shows who is using the devices, `policy` changes how devices are chosen.\n"
           "`study` compares the policies: worker processes borrow a few devices for many tasks. The tasks are OpenCL kernels if "
           "there are enough devices (PoCL is asked for them). It shows how long everything took, who waited and how full the "
           "devices were, in the terminal, in tables and in pictures.\n"
           "`discover` tells Spark which devices a machine has. A worker there uses those that Spark gives to its task.",
    .examples = "fovea devices serve --device card0:40G --device card1:40G\nfovea devices lease --memory 2G -- ./train\n"
                "fovea devices policy least-processes\nfovea devices watch\n"
                "fovea devices study --workers 12 --tasks 48 --devices 3 --memory 2G",
    .options = options,
    .options_size = sizeof(devices_options),
    .run = run,
};
