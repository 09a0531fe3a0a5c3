/* Who takes which tasks of a stage: every place has a run of neighbours of its own, and helps the slowest when it is through.
 *
 * All stages of an item are cut alike, so a place meets the chunks again that it made in the stage before. Not thread-safe: the
 * scheduler's mutex guards it.
 */
#ifndef FV_TASK_RANGES_H
#define FV_TASK_RANGES_H

#include "base/base.h"

typedef struct fv_task_range {
    int64_t next, end;
} fv_task_range;

typedef struct fv_task_ranges {
    int           places, count; /* count: ranges, one per place or fewer */
    int           home;          /* place of the first range */
    int64_t       left;          /* tasks not yet taken */
    fv_task_range range[];
} fv_task_ranges;

fv_task_ranges *fv__task_ranges_new(int64_t tasks, int places, int home);
/* The next task of a place; with help, of another's range. False if there is none. */
bool fv__task_ranges_take(fv_task_ranges *ranges, int place, bool help, int64_t *task);

#endif
