/* Which unit comes next. */
#ifndef FV_UNIT_QUEUE_H
#define FV_UNIT_QUEUE_H

#include "units/unit_list.h"

typedef struct fv_unit_queue {
    fv_unit_list *list;
    int          *sequence;     /* units in the order in which they are wanted */
    int64_t       head;         /* those before it do not wait any more */
    bool          strict;       /* one that must wait for room holds up those behind it */
    bool          backfill;     /* but such as end before it can start */
    int64_t       cpus, memory; /* of all; memory 0: any */
    int64_t       allowed;      /* processors of these that may be used now */
    int64_t       waiting;      /* the first unit that must wait for room, as last seen; -1: none */
    double        ends;         /* clock: what would end later is not started; 0: there is no end */
    double        longest;      /* seconds that a unit took so far, for those that do not say */
} fv_unit_queue;

/* order: "fifo", "backfill", "longest", "memory" or "round-robin". Refuses units that can never start. */
fv_status fv__unit_queue_init(fv_unit_queue *queue, fv_unit_list *list, const char *order, int64_t cpus, int64_t memory,
                              fv_error *error);
void      fv__unit_queue_release(fv_unit_queue *queue);

/* The next unit that has all that it needs, beside those that run; -1: none now. */
int64_t fv__unit_queue_next(fv_unit_queue *queue, const fv_running *places, int nplaces, double now);
/* What it gave last was started: counts for one that waits for room, since it must not wait for ever. */
void fv__unit_queue_started(fv_unit_queue *queue);
/* Processors that units which could start now would use, at most all; *least: what the first of them needs. */
int64_t fv__unit_queue_wanted(const fv_unit_queue *queue, double now, int64_t *least);
/* Marks what comes after a unit that failed. */
void fv__unit_queue_block(fv_unit_queue *queue);

#endif
