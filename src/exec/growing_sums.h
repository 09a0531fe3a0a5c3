/* Sums that grow with an image whose planes come one after another: what each task of a plan has added up so far. They belong to
 * one image and one text; any thread may use them, each task one at a time.
 */
#ifndef FV_GROWING_SUMS_H
#define FV_GROWING_SUMS_H

#include "exec/exec.h"

typedef struct fv_kept_sum { /* of one task */
    int     stage;
    int64_t task;
    void   *bytes;
    size_t  size;
    int64_t until; /* planes that are in it */
} fv_kept_sum;

fv_sums *fv__sums_new(void);
void     fv__sums_free(fv_sums *sums); /* NULL is fine */

/* The step of a stage whose pass is such a sum; -1: it has none, or waits for other stages. */
int fv__stage_summing(const fv_stage *stage);
/* Bytes of the sums of all tasks of a plan; 0: it has none. */
int64_t fv__plan_sums(const fv_plan *plan);
/* The sum of a task, which begins as zeros. */
fv_status fv__sums_of(fv_sums *sums, const fv_stage *stage, int64_t task, size_t size, fv_kept_sum **sum, fv_error *error);
/* Planes that a task can add by now, behind those in its sum. */
int64_t fv__sum_until(const fv_instance *instance, const fv_stage *stage, int step, const fv_region *region, int64_t from);

#endif
