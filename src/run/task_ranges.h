/* Who takes which tasks of a stage: every place has a run of neighbours of its own, and helps the slowest when it is through.
 *
 * All stages of an item are cut alike, so a place meets the chunks again that it made in the stage before. Not thread-safe: the
 * scheduler's mutex guards it.
 */
#ifndef FV_TASK_RANGES_H
#define FV_TASK_RANGES_H

#include "base/base.h"

typedef struct fv_portion {
    int64_t next, end;
} fv_portion;

typedef struct fv_portions {
    int        places, count; /* count: portions, one per place or fewer */
    int        home;          /* place of the first portion */
    int64_t    left;          /* tasks not yet taken */
    fv_portion portion[];
} fv_portions;

fv_portions *fv__portions_new(int64_t tasks, int places, int home);
/* The next task of a place; with help, of another's portion. False if there is none. */
bool fv__portions_take(fv_portions *portions, int place, bool help, int64_t *task);

#endif
