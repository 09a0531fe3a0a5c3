/* What a run has written is never its own input: results of earlier runs are known again, and a run that would write over what it
 * reads is refused. */
#ifndef FV_OWN_INPUTS_H
#define FV_OWN_INPUTS_H

#include "exec/exec.h"

/* Fails if one of the files that the run will write is one that it reads, or would be one of the slices that it reads. */
fv_status fv__check_own_inputs(const fv_context *context, const fv_graph *graph, char *const *outputs, int64_t noutputs,
                               fv_error *error);

/* What runs whose stores are these folders (borrowed) have written: for fv_bindings.made. */
typedef struct fv_made fv_made;
fv_made               *fv__made_open(const char *const *folders, int nfolders);
bool                   fv__made_find(void *made, const char *path, const char *pattern);
void                   fv__made_close(fv_made *made);

#endif
