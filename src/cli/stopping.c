/* Ctrl-C sets a flag that whoever works looks at. */
#include "stopping.h"
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

static volatile int          wanted;
static volatile sig_atomic_t at_once;

static void on_signal(int number) {
    (void)number;
    if (wanted++ && at_once) _Exit(130); /* nothing that is committed is lost */
}

volatile int *fv_stopping(bool twice) {
    struct sigaction action = { .sa_handler = on_signal };
    at_once = twice;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &wanted;
}
