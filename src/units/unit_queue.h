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
} fv_unit_queue;

/* order: "fifo", "backfill", "longest", "memory" or "round-robin". Refuses units that can never start. */
fv_status fv__unit_queue_init(fv_unit_queue *queue, fv_unit_list *list, const char *order, int64_t cpus, int64_t memory,
                              fv_error *error);
void      fv__unit_queue_release(fv_unit_queue *queue);

/* The next unit that has all that it needs, beside those that run; -1: none now. It may be asked for again from `from` on, if
 * somebody else has it. */
int64_t fv__unit_queue_next(fv_unit_queue *queue, const fv_running *places, int nplaces, double now, int64_t *from);
/* Marks what comes after a unit that failed. */
void fv__unit_queue_block(fv_unit_queue *queue);

#endif
