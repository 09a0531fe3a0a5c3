/* What commands share that try a pipeline out. */
#ifndef FV_TRYING_H
#define FV_TRYING_H

/* A line on standard error. */
void fv_trying_tell(void *context, const char *what);

#endif
