/* Which batches of items lie on this machine: where a file system spreads its files over machines that also compute (HDFS),
 * reading what lies here spares the network. A hint, and nothing else: whoever asks first does a batch, near or far.
 */
#ifndef FV_NEAR_BATCHES_H
#define FV_NEAR_BATCHES_H

#include "run/claims.h"

typedef struct fv_near_batches fv_near_batches;

/* NULL: it cannot be known of any item. The bindings are borrowed. */
fv_near_batches *fv__near_batches_new(const fv_bindings *bindings);
void             fv__near_batches_free(fv_near_batches *near);
/* Whether the first file of a batch lies here. Asks the file system once for each batch; one thread at a time. */
bool fv__near_batches_has(fv_near_batches *near, int64_t batch);

#endif
