/* Ctrl-C sets a flag that whoever works looks at. Handlers belong to the process, and so do the flags. A handler does nothing but
 * count and, at the second time, _Exit: both are allowed in one. */
#include "stopping.h"
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

static volatile sig_atomic_t wanted, at_once;
_Static_assert(sizeof(sig_atomic_t) == sizeof(int), "who looks at it looks at an int");

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
