/* A run that was frozen in a folder, opened to see what it consists of. */
#ifndef FV_FROZEN_RUN_H
#define FV_FROZEN_RUN_H

#include "run/run.h"

typedef struct fv_frozen_run {
    fv_program  *program;
    fv_bindings  bindings;
    fv_context   context;
    fv_instance *sample; /* a unit of the first segment */
    fv_outlook   outlook;
} fv_frozen_run;

fv_status fv__frozen_run_open(const char *run_folder, fv_frozen_run *run, fv_error *error);
void      fv__frozen_run_close(fv_frozen_run *run); /* also after a failed opening */

#endif
