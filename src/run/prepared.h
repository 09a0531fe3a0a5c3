/* A run in memory that is made ready once and done again and again, on other pixels of the same types: for calls that take less
 * time than it takes to plan them, and to find out what the machine can do. */
#ifndef FV_PREPARED_H
#define FV_PREPARED_H

#include "run/run.h"

typedef struct fv_prepared fv_prepared;

/* Whether a run is worth keeping ready: nothing but arrays goes in, nothing but images comes out, and all of it is so little work
 * that a thread of its own would not pay. *prepared is NULL if not. bindings: resolved; taken over if *prepared is not NULL. */
fv_status fv__prepared_new(const fv_program *program, fv_bindings *bindings, const fv_plan_options *options,
                           fv_prepared **prepared, fv_diagnostics *diagnostics, fv_error *error);
void      fv__prepared_free(fv_prepared *prepared);
/* Runs it in this thread: arrays and images are in the order of those of the bindings. */
fv_status fv__prepared_run(fv_prepared *prepared, const void *const *arrays, void *const *images, const volatile int *cancel,
                           fv_error *error);

#endif
