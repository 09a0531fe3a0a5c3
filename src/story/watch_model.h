/* A run while it goes on, for those who watch: what there is to say of it, as JSON for the page and as text for a terminal. */
#ifndef FV_WATCH_MODEL_H
#define FV_WATCH_MODEL_H

#include "story/run_story.h"

typedef struct fv_outcome {       /* how far it is */
    double  fraction;             /* of the work, 0 to 1; -1: not known */
    double  left;                 /* seconds; -1: not known */
    double  tasks, read, written; /* per second, lately */
    int64_t resident, planned, bound;
} fv_outcome;

fv_outcome fv__watch_outcome(const fv_story *story);
/* One object on one line; the caller frees. docs/watch.md lists its fields. */
char *fv__watch_json(const fv_story *story);
/* Lines of at most `columns` letters; the caller frees. */
char *fv__watch_text(const fv_story *story, int columns);

#endif
