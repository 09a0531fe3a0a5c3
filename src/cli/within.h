/* --within TIME and --within-error PART. */
#ifndef FV_WITHIN_H
#define FV_WITHIN_H

#include <stdbool.h>

/* Either may be NULL; false: complained. What was not given is 0. */
bool fv_within(const char *command, const char *within, const char *within_error, double *seconds, double *part);

#endif
