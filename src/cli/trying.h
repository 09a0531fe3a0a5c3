/* What commands share that try a pipeline out: Ctrl-C, and saying what goes on. */
#ifndef FV_TRYING_H
#define FV_TRYING_H

/* From now on Ctrl-C does not end the program but sets this. */
const volatile int *fv_trying_cancel(void);
/* A line on standard error. */
void fv_trying_tell(void *context, const char *what);

#endif
