/* Looks through the runs of a store. */
#include "api/latest_run.h"
#include "base/base.h"
#include <dirent.h>
#include <stdlib.h>

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static fv_status ambiguous(const char *name, char **names, int count, fv_error *error) {
    enum { SHOWN = 8, LETTERS = 12 };
    fv_bytes list = { 0 };
    qsort(names, (size_t)count, sizeof *names, by_name);
    for (int i = 0; i < FV_MIN(count, SHOWN); i++) fv__bytes_printf(&list, "%s%.*s", i ? ", " : "", LETTERS, names[i]);
    fv_fail(error, FV_ERROR_USAGE, "%d runs begin with %s: %s%s; give more letters", count, name, (char *)list.data,
            count > SHOWN ? ", ..." : "");
    fv__bytes_release(&list);
    return FV_ERROR_USAGE;
}

fv_status fv__find_run(const char *runs, const char *name, fv__run_time *time_of, char **found, fv_error *error) {
    double   latest = 0;
    fv_bytes all = { 0 };
    bool     exact = false;
    *found = NULL;
    if (name && time_of(name) > 0) {
        *found = fv__strdup(name);
        return FV_OK;
    }
    DIR *dir = opendir(runs);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        char  *folder = fv__sprintf("%s/%s", runs, entry->d_name);
        bool   meant = entry->d_name[0] != '.' && (!name || !strncmp(entry->d_name, name, strlen(name)));
        double when = meant ? time_of(folder) : 0;
        if (when > 0) {
            char *copy = fv__strdup(entry->d_name);
            fv__bytes_append(&all, &copy, sizeof copy);
            exact = exact || (name && !strcmp(copy, name));
        }
        if (when > latest) {
            latest = when;
            free(*found);
            *found = folder;
        } else
            free(folder);
    }
    if (dir) closedir(dir);
    char    **names = (char **)(void *)all.data;
    int       count = (int)(all.size / sizeof *names);
    fv_status status = name && !exact && count > 1 ? ambiguous(name, names, count, error) : FV_OK;
    for (int i = 0; i < count; i++) free(names[i]);
    fv__bytes_release(&all);
    if (status != FV_OK) free(*found);
    if (status != FV_OK) *found = NULL;
    return status;
}
