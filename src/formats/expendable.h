/* A child process for work that may crash or come to no end: what a library does with a damaged file. */
#ifndef FV_EXPENDABLE_H
#define FV_EXPENDABLE_H

#include "base/base.h"
#include <sys/types.h>

/* Does the work in a child that `forks` makes, with bounds on time and memory, and waits for it. Where no process can be had, the
 * work is left undone. library: whose fault it is, for the message. */
fv_status fv__expendable_run(pid_t (*forks)(void), const char *path, const char *library, void (*work)(void *context),
                             void *context, fv_error *error);

/* In such a child, which must not use the connections of its parent: has the parent fetch bytes of a remote file (base/remote.h)
 * that both have open; false if they cannot be had. */
bool fv__expendable_inside(void);
bool fv__expendable_fetch(int fd, int64_t offset, size_t size);

#endif
