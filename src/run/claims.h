/* Claims: how several processes do one run together without a master.
 *
 * Decided: the workers (`fovea work RUN_FOLDER`) of a job array, of a pilot job or started by hand are equals. Each reads the
 * frozen manifest, plans for itself, and takes work by leases in the run's folder (RUN/claims): of a collection, batches of whole
 * items, which one process does from header to named outputs; of a single item, batches of tasks of a stage, and the ends of
 * stages. Results meet in the store. One process at the end (`--finish`) goes through everything, does what is missing, and
 * gathers tables.
 *
 * 1. A claim is a hint that saves work. Only what is committed under a task's key counts, so two who do the same do no harm.
 * 2. A claim is given back only after what was done under it is committed; who finds it free finds its results too.
 * 3. What a dead worker had claimed is taken over. What it was doing when it died gets a strike: it is then done alone in a
 *    process, by a worker whose level is at least its strikes (a later try with more memory). Three strikes and it has failed.
 * 4. The size of batches follows from the manifest alone, so all workers mean the same batch by the same number.
 */
#ifndef FV_CLAIMS_H
#define FV_CLAIMS_H

#include "graph/graph.h"
#include "store/lease.h"
#include "store/store.h"
#include <pthread.h>

/* What one process does of a run. */
typedef struct fv_share {
    const char          *run_folder;
    int                  stage;  /* last one whose tasks are taken; -1: all */
    bool                 end;    /* takes the end of that stage too; those of earlier ones are always taken */
    bool                 wait;   /* until others have done what they claim; otherwise leaves when there is nothing to take */
    bool                 finish; /* checks all, gathers tables, builds the record */
    int                  place, places; /* where to begin, so that equals meet rarely: place of places */
    int                  level;         /* number of earlier tries: strikes that work may have */
    struct fv_allowance *allowance;     /* of processors; NULL: not divided */
} fv_share;

enum { FV_STRIKES = 3 };

typedef struct fv_claims fv_claims;
typedef struct fv_claim  fv_claim;

fv_status fv__claims_open(const fv_share *share, fv_store *store, fv_claims **claims, fv_error *error);
void      fv__claims_close(fv_claims *claims); /* gives everything back: flush the store before */

/* Notes that the run was brought to its end, or that this is not so any more; whether it was. */
void fv__claims_finished(const char *run_folder, bool finished);
bool fv__claims_are_finished(const char *run_folder);

int64_t fv__claims_batch(int64_t count); /* work of so many pieces is claimed in batches of this size */
/* The units of a segment and the batches in which they are claimed; no batch holds units of two segments. */
typedef struct fv_lot {
    int64_t first, count; /* units */
    int64_t batch, batches, size;
} fv_lot;
fv_lot fv__lot_of(const fv_bindings *bindings, int segment);
/* The units of a batch; false: there is no such. */
bool    fv__lot_units(const fv_bindings *bindings, int64_t batch, int64_t *first, int64_t *end);
int64_t fv__claims_first(const fv_claims *claims, int64_t nbatches); /* where this process begins */

/* All that follows is safe with threads. */

/* Touches files. NULL: others have it. stage -1: items; batch -1: the end of the stage. The claim has one user. */
fv_claim *fv__claims_take(fv_claims *claims, int stage, int64_t batch);
void      fv__claim_use(fv_claims *claims, fv_claim *claim);
/* After the last user it is given back with the next fv__claims_settle. */
void fv__claim_leave(fv_claims *claims, fv_claim *claim);
/* Something in it was left undone on purpose: no worker may think that it is over. */
void fv__claim_left(fv_claims *claims, fv_claim *claim);
/* Touches a file. False once another process took it over: then nothing more may be named. */
bool fv__claim_held(const fv_claim *claim);
/* Touches a file. Whether a batch of items is over. */
bool fv__claims_over(const fv_claims *claims, int64_t batch);
/* Whether claims wait to be given back. */
bool fv__claims_unsettled(fv_claims *claims);
/* Strikes, as they were when a claim was taken last, of a task, of a stage's end (task -1), or of an item of a collection (stage
 * -1). */
int fv__claims_strikes(fv_claims *claims, int64_t item, int stage, int64_t task);
/* Touches files. An error that names who died on it. */
void fv__claims_blame(fv_claims *claims, int64_t item, int stage, int64_t task, fv_error *error);

/* Touches files. Takes those that wait; commits the store; gives them back. */
fv_status fv__claims_settle(fv_claims *claims, fv_error *error);
/* Says what this process is doing, in case it dies. *slot is for fv__claims_did. */
void fv__claims_do(fv_claims *claims, int64_t item, int stage, int64_t task, int *slot);
void fv__claims_did(fv_claims *claims, int slot);
/* Reads that from the file of a worker (NAME.now): 1 something, 0 nothing in this slot, -1 no more slots. */
int fv__claims_doing(const fv_bytes *file, int slot, long long *item, long long *stage, long long *task);

#endif
