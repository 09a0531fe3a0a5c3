/* What units of a run hand to those of later segments, through the store. */
#ifndef FV_EXPORTS_H
#define FV_EXPORTS_H

#include "exec/exec.h"

typedef struct fv_exports {
    fv_handed          base;
    const fv_bindings *bindings;
    fv_store          *store;
} fv_exports;

void fv__exports_init(fv_exports *exports, const fv_bindings *bindings, fv_store *store);
/* A unit is done: says where its exports are. */
fv_status fv__exports_put(fv_instance *instance, fv_error *error);

#endif
