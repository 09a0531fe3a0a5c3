/* What commands share that try a pipeline out. */
#include "trying.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile int cancelled;

static void on_signal(int number) {
    (void)number;
    cancelled = 1;
}

const volatile int *fv_trying_cancel(void) {
    struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &cancelled;
}

void fv_trying_tell(void *context, const char *what) {
    (void)context;
    fprintf(stderr, "fovea: %s\n", what);
}
