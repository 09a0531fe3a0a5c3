/* Looks through the runs of a store. */
#include "api/latest_run.h"
#include "base/base.h"
#include <dirent.h>
#include <stdlib.h>

char *fv__latest_run(const char *runs, const char *name, fv__run_time *time_of) {
    if (name && time_of(name) > 0) return fv_strdup(name);
    char  *found = NULL;
    double latest = 0;
    DIR   *dir = opendir(runs);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        char  *folder = fv_sprintf("%s/%s", runs, entry->d_name);
        bool   meant = entry->d_name[0] != '.' && (!name || !strncmp(entry->d_name, name, strlen(name)));
        double when = meant ? time_of(folder) : 0;
        if (when > latest) {
            latest = when;
            free(found);
            found = folder;
        } else
            free(folder);
    }
    if (dir) closedir(dir);
    return found;
}
