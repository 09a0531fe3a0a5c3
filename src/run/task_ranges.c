/* Ranges of a stage's tasks. */
#include "run/task_ranges.h"

fv_task_ranges *fv__task_ranges_new(int64_t tasks, int places, int home) {
    int             count = (int)FV_MIN((int64_t)places, tasks);
    fv_task_ranges *ranges = fv__calloc(sizeof *ranges + (size_t)(count + 1) * sizeof *ranges->range);
    *ranges = (fv_task_ranges){ .places = places, .count = count, .home = home % places, .left = tasks };
    int64_t each = count ? tasks / count : 0, more = count ? tasks % count : 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t start = i * each + FV_MIN(i, more);
        ranges->range[i] = (fv_task_range){ start, start + each + (i < more) };
    }
    return ranges;
}

static fv_task_range *fullest(fv_task_ranges *ranges) {
    fv_task_range *found = &ranges->range[0];
    for (int i = 1; i < ranges->count; i++)
        if (ranges->range[i].end - ranges->range[i].next > found->end - found->next) found = &ranges->range[i];
    return found;
}

bool fv__task_ranges_take(fv_task_ranges *ranges, int place, bool help, int64_t *task) {
    int index = (place - ranges->home + ranges->places) % ranges->places;
    if (!ranges->left) return false;
    if (index < ranges->count && ranges->range[index].next < ranges->range[index].end)
        *task = ranges->range[index].next++;
    else if (help)
        *task = --fullest(ranges)->end; /* from the far end: what is near the front has neighbours there */
    else
        return false;
    ranges->left--;
    return true;
}
