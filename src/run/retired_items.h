/* What items of a collection that are over have left in the store, until it can go: an item leaves nothing behind but its
 * results, so that storage does not grow with the number of items. Thread-safe; no lock of the caller may be held.
 *
 * Invariant: nothing is forgotten before every file of the item has its name and every result is committed, since until then a
 * kill makes it necessary again.
 */
#ifndef FV_RETIRED_ITEMS_H
#define FV_RETIRED_ITEMS_H

#include "run/outputs.h"

typedef struct fv_retired_items fv_retired_items;

fv_retired_items *fv__retired_items_new(fv_store *store);
void              fv__retired_items_free(fv_retired_items *retired);
/* Notes what an item leaves; the instance may be closed afterwards. needed: by stage. */
void fv__retired_items_add(fv_retired_items *retired, const fv_instance *instance, const bool *needed);
/* Commits the store and forgets whatever can go. */
void fv__retired_items_settle(fv_retired_items *retired);

#endif
