/* What the files of a running stream share: stream_run.c (taking frames, running them), stream_commit.c (making results durable),
 * stream_facts.c (counting and telling).
 *
 * One thread takes frames, some run them, one commits. A frame goes from one to the next by a queue.
 *
 * Invariants
 * 1. `mutex` guards queues, state and facts, and is never held while a file is touched.
 * 2. The bytes of frames that are taken and not committed stay below `room`, unless there is only one.
 */
#ifndef FV_STREAM_PARTS_H
#define FV_STREAM_PARTS_H

#include "stream/growing.h"
#include "stream/messages.h"
#include <fovea/stream.h>
#include <pthread.h>
#include <semaphore.h>

typedef enum fv_fate {
    FV_FATE_DONE,
    FV_FATE_STAGED,
    FV_FATE_AGAIN,
    FV_FATE_DEAD,
    FV_FATE_FAILED,
    FV_FATE_SCAN,
    FV_FATE_PREVIEW,
    FV_FATE_SUM, /* frames of a scan are added to sums; nothing is made of it yet */
    FV_FATE_LEFT /* its partition belongs to another process by now, which does it */
} fv_fate;

typedef struct fv_errand {    /* a frame or a scan on its way */
    fv_frame         *frame;  /* NULL: a scan */
    fv_scan_file     *scan;   /* that it was put into, or that is run */
    int64_t           frames; /* of the scan that were there then */
    int64_t           planes; /* those from the first on */
    int64_t          *there;  /* PREVIEW: their numbers */
    double           *angles; /* of its planes, as far as frames tell; NULL: they tell none */
    int64_t           nangles;
    int64_t           whole;  /* frames that it will have, as was known then; 0: nothing was */
    int64_t           scans;  /* that grew then */
    int64_t           length; /* STAGED: what is known of the scan now; 0: nothing new */
    fv_fate           fate;
    double            begun, ended;  /* when it was run; 0: it was not */
    double            taken, synced; /* when its commit began, and when its files were durable under their names */
    char             *name;          /* of the item, for people */
    fv_made           made;
    fv_error          error;
    struct fv_errand *next;
} fv_errand;

typedef struct fv_queue {
    fv_errand *first, **last;
    int64_t    count;
} fv_queue;
void       fv__queue_put(fv_queue *queue, fv_errand *work);
fv_errand *fv__queue_take(fv_queue *queue);

typedef struct fv_flight { /* messages of a partition that are under way, in their order */
    int      partition;
    int64_t *offset; /* a ring: those done are -1 - offset */
    int64_t  first, count, capacity;
    int64_t  next;      /* behind the last one that came */
    int64_t  committed; /* told to the source */
} fv_flight;

typedef struct fv_table_columns { /* of a table that grows */
    char  *file, *table;
    char  *item;  /* whose rows were its first ones; NULL: it was there before */
    char **names; /* NULL: it has no rows yet */
    int    count;
} fv_table_columns;

enum { FV_LATENCIES = 512 };

typedef struct fv_stream_run {
    const fv_stream_options *options;
    fv_stream_text           text;
    char                    *folder, *name, *topic, *address, *group;
    fv_frame_names           names;
    fv_frame_source         *source;
    fv_growing              *growing;
    fv_stream_log           *log;
    fv_sender               *to, *dead; /* NULL: none */
    char                    *dead_folder;
    pthread_mutex_t          mutex;
    pthread_cond_t           changed; /* there may be room, or something rare has happened */
    pthread_cond_t           ready;   /* there is work to do */
    pthread_cond_t           done;    /* there is work to commit */
    pthread_mutex_t          logging; /* held around everything that is done with the log; taken before `mutex` */
    fv_stream_state          state;   /* as far as it is durable */
    fv_seen                  taken;   /* frames that came since the start */
    fv_queue                 todo, finished, retired;
    int64_t                  under_way; /* taken, and not committed */
    int64_t                  scanning;  /* of these, scans: run, shown or summed up */
    _Atomic bool             unsummed;  /* the text has no sums that could be begun before a scan is complete */
    int64_t                  bytes, room;
    int64_t                  waiting; /* bytes of those in todo */
    bool                     hungry;  /* who takes frames waits until these are fewer */
    fv_flight               *flights;
    int                      nflights;
    fv_table_columns        *columns; /* of tables that rows go to; only for who commits */
    int                      ncolumns;
    bool                     anew;    /* nothing was done by this stream when it began */
    bool                     told;    /* that frames of standard input have numbers of earlier ones */
    sem_t                    turns;   /* to compute; who waits for the disk lends it */
    int                      threads; /* that run frames: more than can compute, since some wait for the disk */
    int                      at_once; /* of them, for which there is memory */
    int                      nstarted;
    bool                     over, stop; /* nothing comes any more; all threads end */
    _Atomic bool             failed;
    fv_error                 error; /* that ends the stream */
    fv_stream_facts          facts;
    double                   began, latencies[FV_LATENCIES];
    int64_t                  nlatencies;
    double                   applied;
    volatile int             hurry;   /* set: a scan is complete, and previews end early */
    int                      metrics; /* socket, -1: none */
} fv_stream_run;

/* ---- stream_run.c ---- */
fv_status fv__stream_run(fv_stream_run *run, fv_error *error);
void      fv__stream_fail(fv_stream_run *run, const fv_error *error);
void      fv__stream_queue(fv_stream_run *run, fv_errand *work); /* to be done; the mutex is held */
void      fv__stream_retire(fv_stream_run *run);                 /* scans that were done go; only by who takes frames */
void      fv__errand_free(fv_errand *work);

/* ---- stream_commit.c ---- */
void *fv__stream_commit(void *run); /* a thread */

/* ---- table_columns.c ---- */
fv_status fv__columns_check(fv_stream_run *run, const fv_errand *work, fv_error *error); /* its rows fit their tables */
void      fv__columns_release(fv_stream_run *run);

/* ---- sending.c ---- */
fv_status fv__sending_open(fv_stream_run *run, fv_error *error);
bool      fv__sending_any(const fv_errand *work); /* it makes messages */
/* Of the log's last batch; logging is held. */
fv_status fv__sending_send(fv_stream_run *run, const fv_errand *works, fv_error *error);
fv_status fv__sending_was(void *run, const char *name, int64_t number, bool *sent, fv_error *error); /* for the log */

/* ---- flights.c ---- */
void fv__flight_begin(fv_stream_run *run, int partition, int64_t offset);
/* Gives where the partition stands now: all before is done. */
int64_t fv__flight_end(fv_stream_run *run, int partition, int64_t offset);
bool    fv__flight_any(const fv_stream_run *run, int partition);
void    fv__flights_release(fv_stream_run *run);

/* ---- alerts.c ---- */
void fv__alerts_tell(fv_stream_run *run, const fv_errand *work); /* what was made and is durable now */

/* ---- stream_facts.c ---- */
void      fv__stream_count(fv_stream_run *run, const fv_errand *work); /* the mutex is held */
void      fv__stream_tell(fv_stream_run *run, const fv_errand *work);  /* prints and events of what was committed */
void      fv__stream_note(fv_stream_run *run);                         /* the file for `fovea status` */
void      fv__stream_forget(fv_stream_run *run);                       /* it goes with the stream */
fv_status fv__stream_metrics_open(fv_stream_run *run, int port, fv_error *error);
void      fv__stream_metrics_answer(fv_stream_run *run); /* whoever asks; never waits */
double    fv__clock(void);                               /* seconds since 1970 */
void      fv__stream_event(fv_stream_run *run, const char *json);
char     *fv__rows_json(const fv_table_type *type, const fv_bytes *rows); /* a list of objects; the caller frees */

#endif
