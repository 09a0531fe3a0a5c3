/* The commit log of a stream: which frames are done, up to where each partition was read, and the rows that they gave to tables,
 * all of a batch in one record. With its record a batch is done; tables follow from the log.
 *
 * Every process has a log of its own in the folder of the stream, NAME.log, which is leased. What a dead process left is taken
 * over by the next one that starts or is given its partitions.
 *
 * Living processes share the partitions of a topic: who is given one takes it from the others (fence.h).
 *
 * Invariants
 * 1. A record is appended only when the files of its frames are durable under their names.
 * 2. A record that is torn or damaged ends the log: what comes after it was never promised to anybody.
 * 3. A batch whose results are sent as messages has two records: one before they are sent, one after. A log that ends with the
 *    first is completed by asking the broker, which has the number of the batch if it has the messages.
 * 4. Before rows go to tables, a synced record says up to which batch: after a kill the same rows go there under the same key,
 *    and a table takes them once.
 */
#ifndef FV_STREAM_LOG_H
#define FV_STREAM_LOG_H

#include "stream/fence.h"
#include "stream/item_runner.h"
#include "stream/seen.h"

typedef struct fv_position { /* of a partition: the next message */
    char   *topic;
    int     partition;
    int64_t offset;
} fv_position;

/* Marks of frames, beside done ones: they stand before the name of a scan. */
#define FV_MARK_STAGED "\001" /* a frame that waits for its scan */
#define FV_MARK_OVER "\002"   /* 0: a scan whose results are made */
#define FV_MARK_LENGTH "\003" /* a scan that has so many frames */

typedef struct fv_stream_state {
    fv_seen      seen;
    fv_position *positions;
    int          npositions;
} fv_stream_state;
void    fv__state_release(fv_stream_state *state);
int64_t fv__state_position(const fv_stream_state *state, const char *topic, int partition); /* -1: unknown */
void    fv__state_advance(fv_stream_state *state, const char *topic, int partition, int64_t offset);

typedef struct fv_log_batch { /* what becomes durable together */
    fv_bytes marks;           /* filled by fv__log_batch_mark and the like */
    int      nmarks, npositions, ntables;
    fv_bytes positions, tables;
} fv_log_batch;
void fv__log_batch_mark(fv_log_batch *batch, const char *prefix, const char *scan, int64_t index);
void fv__log_batch_position(fv_log_batch *batch, const char *topic, int partition, int64_t offset);
void fv__log_batch_table(fv_log_batch *batch, const fv_made_table *table);
void fv__log_batch_clear(fv_log_batch *batch);
void fv__log_batch_release(fv_log_batch *batch);

typedef struct fv_stream_log fv_stream_log;

/* Opens a new log in the folder of a stream. One thread at a time uses it. */
fv_status fv__stream_log_open(const char *folder, const char *name, fv_stream_log **log, fv_error *error);
/* What other processes have done: of dead ones, whose logs are taken over, and of living ones, which lose this partition (-1:
 * none) and commit nothing of it any more. */
fv_status fv__stream_log_learn(fv_stream_log *log, int partition, fv_stream_state *dead, fv_stream_state *living,
                               fv_error *error);
fv_fence *fv__stream_log_fence(const fv_stream_log *log);
void      fv__state_merge(fv_stream_state *state, const fv_stream_state *other);
/* Appends a batch and syncs it. The state has it already. sending: it does not count until fv__stream_log_sent. */
fv_status fv__stream_log_commit(fv_stream_log *log, const fv_log_batch *batch, bool sending, fv_error *error);
fv_status fv__stream_log_sent(fv_stream_log *log, fv_error *error); /* the messages of the last batch are committed */
bool      fv__stream_log_ours(const fv_stream_log *log);            /* nobody has taken it over in the meantime */
int64_t   fv__stream_log_number(const fv_stream_log *log);          /* of the last batch */
/* Whether batch `number` of the dead process `name` was sent: asked where its log does not tell. */
typedef fv_status fv_ask_sent(void *context, const char *name, int64_t number, bool *sent, fv_error *error);
void              fv__stream_log_ask(fv_stream_log *log, fv_ask_sent *ask, void *context);
/* Rows that were committed go to their tables. *rows: how many. Shortens the log where that is worth it. */
fv_status fv__stream_log_apply(fv_stream_log *log, const fv_stream_state *state, int64_t *rows, fv_error *error);
bool      fv__stream_log_pending(const fv_stream_log *log); /* there are such rows */
void      fv__stream_log_close(fv_stream_log *log);

#endif
