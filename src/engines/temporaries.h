/* Temporary files and folders of outputs: how they are called, and finding those that earlier runs left behind.
 *
 * They lie beside their output: .NAME.KEY.fovea, with -EPOCH behind the key where pieces are put in place, so that what a killed
 * run began is gone on with, and never mixed with anything else. */
#ifndef FV_TEMPORARIES_H
#define FV_TEMPORARIES_H

#include "base/base.h"

typedef struct fv_temporaries fv_temporaries;

fv_temporaries *fv_temporaries_new(void);
void            fv_temporaries_free(fv_temporaries *temporaries);

/* The name to write an output under (caller frees). parallel: an unfinished one of the same key is taken up. All others of this
 * output are removed. The caller has claimed the output. again: somebody else may have left one during this run. */
char *fv_temporaries_name(fv_temporaries *temporaries, const char *path, fv_hash key, bool parallel, bool again);

#endif
