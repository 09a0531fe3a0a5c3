/* Portions of a stage's tasks. */
#include "run/task_ranges.h"

fv_portions *fv__portions_new(int64_t tasks, int places, int home) {
    int          count = (int)FV_MIN((int64_t)places, tasks);
    fv_portions *portions = fv__calloc(sizeof *portions + (size_t)(count + 1) * sizeof *portions->portion);
    *portions = (fv_portions){ .places = places, .count = count, .home = home % places, .left = tasks };
    int64_t each = count ? tasks / count : 0, more = count ? tasks % count : 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t start = i * each + FV_MIN(i, more);
        portions->portion[i] = (fv_portion){ start, start + each + (i < more) };
    }
    return portions;
}

static fv_portion *fullest(fv_portions *portions) {
    fv_portion *found = &portions->portion[0];
    for (int i = 1; i < portions->count; i++)
        if (portions->portion[i].end - portions->portion[i].next > found->end - found->next) found = &portions->portion[i];
    return found;
}

bool fv__portions_take(fv_portions *portions, int place, bool help, int64_t *task) {
    int index = (place - portions->home + portions->places) % portions->places;
    if (!portions->left) return false;
    if (index < portions->count && portions->portion[index].next < portions->portion[index].end)
        *task = portions->portion[index].next++;
    else if (help)
        *task = --fullest(portions)->end; /* from the far end: what is near the front has neighbours there */
    else
        return false;
    portions->left--;
    return true;
}
