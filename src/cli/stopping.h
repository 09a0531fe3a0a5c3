/* Ctrl-C, for all commands. */
#ifndef FV_STOPPING_H
#define FV_STOPPING_H

#include <stdbool.h>

/* From now on Ctrl-C and SIGTERM do not end the program but set this. twice: the second one ends it at once. */
volatile int *fv_stopping(bool twice);

#endif
