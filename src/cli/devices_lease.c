/* fovea devices lease: any command, with a device of its own for as long as it runs. */
#include "devices_lease.h"
#include "cli.h"
#include <errno.h>
#include <fovea/devices.h>
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

static int run_with(const fv_device_grant *grant, char **command) {
    signal(SIGINT, SIG_IGN); /* the command decides */
    pid_t parent = getpid(), child = fork();
    if (child < 0) return refuse("cannot start a process");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* without us nobody would have the device leased */
        if (getppid() != parent) _exit(1);
        signal(SIGINT, SIG_DFL);
        for (int i = 0; i < grant->count; i++) putenv(grant->settings[i]);
        execvp(command[0], command);
        fv_complain("devices", "cannot run %s: %s", command[0], strerror(errno));
        _exit(127);
    }
    int state;
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

int fv_devices_lease(const char *socket, int64_t memory, double wait, int count, char **command) {
    fv_device_grant grant;
    fv_error        error = { 0 };
    if (!count) return refuse("lease needs a command, as `fovea devices lease --memory 2G -- ./train`");
    if (fv_device_grant_take(socket, memory, wait, &grant, &error) != FV_OK) return refuse(error.message);
    char **words = calloc((size_t)count + 1, sizeof *words);
    if (!words) abort();
    memcpy(words, command, (size_t)count * sizeof *words);
    int status = run_with(&grant, words);
    fv_device_grant_return(&grant);
    free(words);
    return status;
}
