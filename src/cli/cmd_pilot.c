/* fovea pilot: processors held for a while, which runs and programs from several terminals share. */
#include "cluster_options.h"
#include "pipeline_options.h"
#include "stopping.h"
#include <fovea/pilot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *time, *store;
    const char *profile, *partition, *account, *qos, *constraint, *reservation, *gres;
    int64_t     nodes, cpus;
    fv_size     memory;
    bool        local, json;
} pilot_options;

static const fv_option options[] = {
    FV_OPTION(pilot_options, time, .argument = "TIME",
              .doc = "start: how long it lives, such as 2h or 30m; on this machine until it is stopped if left out"),
    FV_OPTION(pilot_options, nodes, .min = 1, .max = 1e6, .argument = "N", .doc = "start: nodes; 1 if left out"),
    FV_OPTION(pilot_options, cpus, .min = 1, .max = 4096, .argument = "N", .doc = "start: processors of a node; all if left out"),
    FV_OPTION(pilot_options, memory, .doc = "start: memory of a node, such as 64G; all if left out"),
    FV_OPTION(pilot_options, local, .doc = "start: on this machine, also where there is Slurm"),
    FV_OPTION(pilot_options, profile, .argument = "NAME", .doc = "start: profile of the cluster"),
    FV_OPTION(pilot_options, partition, .argument = "NAME", .doc = "start: partition to run in"),
    FV_OPTION(pilot_options, account, .argument = "NAME", .doc = "start: account to charge"),
    FV_OPTION(pilot_options, qos, .argument = "NAME", .doc = "start: quality of service"),
    FV_OPTION(pilot_options, constraint, .argument = "TEXT", .doc = "start: features that nodes must have"),
    FV_OPTION(pilot_options, reservation, .argument = "NAME", .doc = "start: reservation to use"),
    FV_OPTION(pilot_options, gres, .argument = "TEXT", .doc = "start: generic resources of a node, such as gpu:2"),
    FV_OPTION(pilot_options, store, .argument = "FOLDER", .doc = "where its state is kept; .fovea if left out"),
    FV_OPTION(pilot_options, json, .doc = "status: print JSON, with what is over as well"),
    FV_OPTION_END,
};

static int refuse(const char *why) {
    fv_complain("pilot", "%s", why);
    return FV_EXIT_REFUSED;
}

static int start(const pilot_options *o, const char *name) {
    fv_error         error = { 0 };
    char            *text;
    fv_pilot_options how = { .name = name,
                             .store = o->store,
                             .local = o->local,
                             .cluster = { .profile = o->profile,
                                          .partition = o->partition,
                                          .account = o->account,
                                          .qos = o->qos,
                                          .constraint = o->constraint,
                                          .reservation = o->reservation,
                                          .gres = o->gres,
                                          .nodes = o->nodes,
                                          .cpus = o->cpus,
                                          .memory = o->memory.bytes,
                                          .pilot = true } };
    if (o->time && (!fv_time_parse(o->time, &how.seconds) || how.seconds < 10))
        return refuse("--time: expected a time of at least 10s, such as 30m or 2h");
    fv_status status = fv_pilot_start(&how, &text, &error);
    if (status == FV_OK) fputs(text, stdout);
    free(text);
    return status == FV_OK ? FV_EXIT_WELL : fv_explain("pilot", NULL, status, &error);
}

static int show(const char *folder, bool json) {
    fv_error  error = { 0 };
    char     *text = NULL;
    fv_status status = fv_pilot_status(folder, json ? FV_FORM_JSON : FV_FORM_TEXT, &text, &error);
    if (status == FV_OK) printf(json ? "%s\n" : "%s", text);
    free(text);
    return status == FV_OK ? FV_EXIT_WELL : fv_explain("pilot", NULL, status, &error);
}

/* An agent, as start and Slurm's script call it: the folder, when the time is over (seconds since 1970; 0: never), and its
 * number, which srun knows if it is left out. Status 99 lets Slurm queue the job again: something is left to do. */
static int serve(int nargs, char **args) {
    fv_error    error = { 0 };
    const char *rank = nargs > 2 ? args[2] : getenv("SLURM_PROCID");
    bool        left;
    if (nargs < 2) return refuse("serve needs the folder of a pilot and when it ends");
    fv_status status = fv_pilot_serve(args[0], rank ? atoi(rank) : 0, atof(args[1]), fv_stopping(false), &left, &error);
    if (status != FV_OK) return fv_explain("pilot", NULL, status, &error);
    return left ? FV_EXIT_AGAIN : FV_EXIT_WELL;
}

static int run(const void *options_, int nargs, char **args) {
    const pilot_options *o = options_;
    const char          *verb = args[0], *name = nargs > 1 ? args[1] : "pilot";
    fv_error             error = { 0 };
    char                *folder;
    if (!strcmp(verb, "serve")) return serve(nargs - 1, args + 1);
    if (nargs > 2) return refuse("one pilot at a time, please");
    if (!strcmp(verb, "start")) return start(o, name);
    if (strcmp(verb, "status") && strcmp(verb, "stop")) {
        fv_complain("pilot", "expected start, status or stop, and not %s", verb);
        return FV_EXIT_REFUSED;
    }
    fv_status status = fv_pilot_find(o->store, name, &folder, &error);
    if (status != FV_OK) return fv_explain("pilot", NULL, status, &error);
    int code = FV_EXIT_WELL;
    if (!strcmp(verb, "status"))
        code = show(folder, o->json);
    else if ((status = fv_pilot_stop(folder, &error)) != FV_OK)
        code = fv_explain("pilot", NULL, status, &error);
    free(folder);
    return code;
}

const fv_command fv_cmd_pilot = {
    .name = "pilot",
    .brief = "hold processors for a while, for runs and programs from several terminals",
    .usage = "start|status|stop [NAME]",
    .least = 1,
    .most = 4, /* of serve */
    .doc = "A pilot is one job of Slurm, or processes on this machine, to which `fovea run --pilot NAME` and `fovea each --pilot "
           "NAME` bring work. Those who share it get equal parts. It is called pilot if no name is given; from another folder it "
           "is named by its path, which start prints.\n"
           "Nothing is begun that cannot end in the time left. What is left stays in the queue of the pilot: on Slurm the job is "
           "queued again by itself, elsewhere start goes on with it. Stop ends the pilot; what was done stays done.",
    .examples = "fovea pilot start --nodes 4 --time 2h\nfovea run foam.fov --pilot pilot\n"
                "fovea each 'bet {} {output}' scans/*.nii.gz --output 'brains/{name}' --pilot pilot\nfovea pilot status\nfovea "
                "pilot stop",
    .options = options,
    .options_size = sizeof(pilot_options),
    .run = run,
};
