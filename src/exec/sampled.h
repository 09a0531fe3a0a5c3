/* Stages whose value is estimated from a part of their tasks. */
#ifndef FV_SAMPLED_H
#define FV_SAMPLED_H

#include "exec/exec.h"

/* How the tasks of a stage are sampled; NULL: all of them are run. */
const fv_sampling *fv__stage_sampling(const fv_stage *stage);
/* Whether it is a later pass of a value that may have been estimated by the first. */
bool fv__stage_after_sample(const fv_stage *stage);

/* The seed of a node's sample. Values that are an item's own take other chunks in each item, so that what all items have in
 * common at a place does not decide about a summary of them. */
uint64_t fv__sample_seed(const fv_instance *instance, const fv_node *node);

/* What the first pass of a sampled node has come to. An estimate: it is known well enough, or its time is over. All: every
 * task is done, and the pass ends as it would without sampling. More: further tasks are needed. */
typedef enum fv_sample_end { FV_SAMPLE_MORE, FV_SAMPLE_ESTIMATE, FV_SAMPLE_ALL } fv_sample_end;
/* rows: of a table, to be released; its estimates are there also where all is done. */
fv_status fv__sample_look(fv_instance *instance, const fv_stage *stage, const fv_node *node, fv_interval *estimate,
                          fv_estimates *rows, fv_sample_end *end, fv_error *error);

/* How large the sample of a stage may have to be, as looks at it in this process have told; 0: unknown. */
int64_t fv__sample_expected(const fv_instance *instance, const fv_stage *stage);

/* Below the run's folder: sizes of samples that a time has ended. */
#define FV_SAMPLES_FOLDER "samples"
/* How many tasks the sample of a node had when its time was over, in this run or an earlier one of the same text; 0: not yet. */
int64_t fv__sample_recorded(const fv_instance *instance, const fv_stage *stage, const fv_node *node);

/* What is known of a value whose sample is not large enough yet, or that is computed exactly; false: nothing. rows: of a table,
 * to be released. It may be looked at again and again: all of these intervals hold at once as often as was asked for
 * (fv__sampling_look). */
bool fv__sample_so_far(fv_instance *instance, const fv_stage *stage, const fv_node *node, fv_interval *estimate,
                       fv_estimates *rows);

/* How many items the sample of this seed had when its time was over; 0: not yet. */
int64_t fv__items_recorded(const fv_context *context, int64_t seed);
/* Whether the items that are there are enough for all values of the run that are estimated from some of them. */
fv_status fv__items_suffice(fv_instance *instance, bool *enough, fv_error *error);

/* Whether the value is an estimate, and not that of all chunks. */
bool fv__instance_estimated(const fv_instance *instance, const fv_node *node);
/* The estimate of a sampled node whose value is known; that of one which saw all chunks has no width. */
fv_status fv__instance_estimate(fv_instance *instance, const fv_node *node, fv_interval *estimate, fv_error *error);

#endif
