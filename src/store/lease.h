/* A lease: one live owner of a path, with a heartbeat.
 *
 * The lease file lies beside the output (.NAME.fovea-lease) and holds host, boot id, pid, start time and a counter that a
 * background thread raises every second. A second owner is refused while the first lives: on the same host that is known at
 * once, elsewhere the counter must stand still for 30 s of the observer's clock.
 */
#ifndef FV_LEASE_H
#define FV_LEASE_H

#include "base/base.h"

typedef struct fv_lease fv_lease;

/* FV_ERROR_BUSY with a sentence naming host, pid and since when, if another live run has it. *taken_over: a dead owner's
 * lease was found and replaced. */
fv_status fv_lease_acquire(const char *path, fv_lease **lease, bool *taken_over, fv_error *error);
/* False once somebody else has taken it over (this process was stopped for long): then nothing more may be written. */
bool fv_lease_held(fv_lease *lease);
void fv_lease_release(fv_lease *lease);

#endif
