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
fv_status fv__lease_acquire(const char *path, fv_lease **lease, bool *taken_over, fv_error *error);
/* The same without waiting: a lease that cannot be had right now is FV_ERROR_BUSY, also while it is not known yet whether its
 * owner lives; ask again later. *dead: the token of a dead owner that was replaced, or 0. */
fv_status fv__lease_try(const char *path, fv_lease **lease, fv_hash *dead, fv_error *error);
/* Whether somebody has it who lives, or of whom that is not known. Changes nothing. */
bool fv__lease_busy(const char *path);
/* What tells this process from all others in its leases, also before it has taken one; 0: no thread could be started for them. */
fv_hash fv__lease_token(void);
/* False once somebody else has taken it over (this process was stopped for long): then nothing more may be written. */
bool fv__lease_held(fv_lease *lease);
void fv__lease_release(fv_lease *lease);

#endif
