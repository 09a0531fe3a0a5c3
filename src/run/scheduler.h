/* Jobs of a run, handed out in a good order under a memory bound: what a run makes and ends. Engines see run/engine.h. */
#ifndef FV_SCHEDULER_H
#define FV_SCHEDULER_H

#include "run/engine.h"
#include "run/outputs.h"

typedef struct fv_item fv_item;

fv_scheduler *fv__scheduler_new(const fv_context *context, const fv_run_settings *settings, const fv_engine *engine,
                                fv_outputs *outputs, fv_record *record, fv_result *result);
void          fv__scheduler_free(fv_scheduler *scheduler);
/* An item that is open already, for when its turn comes; NULL: none. Before the first job. */
void fv__scheduler_begin_with(fv_scheduler *scheduler, fv_instance *first_take);
/* From a sample of each segment: how items are sampled (confidence 0: all of them are made), and whether something can be told of
 * a value that is computed exactly while items go on. */
bool fv__items_survey(const fv_bindings *bindings, fv_instance *const *samples, fv_sampling *sampling);
/* Whether items come in random order, so that something can be told of what the run makes of them. Before the first job. */
void fv__scheduler_tell_items(fv_scheduler *scheduler, bool told);
/* Makes everything durable that items which are over have made, and forgets what they needed on the way. */
void fv__scheduler_settle(fv_scheduler *scheduler);
/* After the engine has stopped: says what is known of values that were being estimated. */
void fv__scheduler_so_far(fv_scheduler *scheduler);

#endif
