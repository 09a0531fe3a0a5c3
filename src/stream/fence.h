/* Whose a partition is, among the living processes of one stream. A process that was stopped or cut off for longer than the
 * broker waits goes on with frames that were given to another one: whoever gets a partition takes it from all others, in a file
 * of each, NAME.fence, that is locked for that. What a process commits while it holds its own lock is either read by the one that
 * takes a partition, or was of a partition that nobody has taken.
 *
 * Who commits holds its own lock and waits for nobody; who takes waits for one lock at a time. One thread at a time uses a fence.
 */
#ifndef FV_FENCE_H
#define FV_FENCE_H

#include "base/base.h"

typedef struct fv_fence fv_fence;

fv_status fv__fence_open(const char *folder, const char *name, fv_fence **fence, fv_error *error);
void      fv__fence_close(fv_fence *fence); /* its file goes; NULL is fine */
fv_status fv__fence_hold(fv_fence *fence, fv_error *error);
bool      fv__fence_lost(const fv_fence *fence, int partition); /* to another process; while it is held */
void      fv__fence_release(fv_fence *fence);
/* The partition was given to us again. Any thread. */
fv_status fv__fence_regain(const char *folder, const char *name, int partition, fv_error *error);
/* Takes a partition (-1: none) from another process, and holds its lock until *fd is closed; -1: it has no fence any more. */
fv_status fv__fence_take(const char *folder, const char *name, int partition, int *fd, fv_error *error);
void      fv__fence_remove(const char *folder, const char *name); /* of a dead process */

#endif
