/* Temporary files and folders of outputs: how they are called, and finding those that earlier runs left behind.
 *
 * They lie beside their output: .NAME.KEY.fovea (NAME shortened by fv__path_short_name), with -EPOCH behind the key where pieces
 * are put in place, so that what a killed run began is gone on with, and never mixed with anything else. */
#ifndef FV_TEMPORARIES_H
#define FV_TEMPORARIES_H

#include "base/base.h"

typedef struct fv_temporaries fv_temporaries;

fv_temporaries *fv__temporaries_new(void);
void            fv__temporaries_free(fv_temporaries *temporaries);

typedef enum fv_temporary_kind {
    FV_TEMPORARY_FIXED,    /* always the same for the same key */
    FV_TEMPORARY_TAKEN_UP, /* an unfinished one of the same key, or a new one */
    FV_TEMPORARY_NEW,      /* with a name that nobody else has */
    FV_TEMPORARY_ADDED,    /* the same, and those of others stay */
} fv_temporary_kind;

/* The name to write an output under (caller frees). All others of this output are removed, unless it is ADDED. The caller has
 * claimed the output. again: somebody else may have left one during this run. */
char *fv__temporaries_name(fv_temporaries *temporaries, const char *path, fv_hash key, fv_temporary_kind kind, bool again);
/* The path that claims and temporaries of an output are named after (caller frees). Usually it is that of the output. Inside a
 * folder that may be replaced meanwhile it is one beside that folder. Of a remote output it is one in .fovea/remote, from where
 * the file is sent when it is complete. */
char *fv__temporaries_stand_in(const char *path);
/* Removes the folders of parts (op/output_parts.h) that earlier results of this output left, all but the one in use. */
void fv__temporaries_outdated(fv_temporaries *temporaries, const char *path, const char *in_use);
/* The name of the output that a file of this name is a temporary of, shortened as all of them (caller frees); NULL: none. */
char *fv__temporaries_owner(const char *name);
/* Removes all temporaries of an output. */
void fv__temporaries_tidy(const char *path);

#endif
