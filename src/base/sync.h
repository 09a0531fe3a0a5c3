/* Syncing many files later: who makes several files durable one after another gathers their paths first, and syncs them at once.
 */
#ifndef FV_SYNC_H
#define FV_SYNC_H

#include "base/base.h"

typedef struct fv_paths {
    char **path;
    size_t count;
} fv_paths;

void fv__paths_add(fv_paths *paths, const char *path); /* copies it; not again if it was added just before */
void fv__paths_release(fv_paths *paths);
/* From now on this thread's fv__paths_sync only notes what it should sync; NULL: it syncs again. */
void fv__paths_gather(fv_paths *to);
/* Of a file that is open: now, whatever became of its name, or noted as those of fv__paths_sync. */
fv_status fv__open_file_sync(int fd, const char *path, fv_error *error);

#endif
