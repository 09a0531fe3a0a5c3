/* Choosing chunks, for the planner alone. */
#ifndef FV_PLAN_LATTICE_H
#define FV_PLAN_LATTICE_H

#include "plan/plan.h"

/* An image this small is computed as one chunk. */
bool fv__chunk_is_whole(const fv_image_type *type, const fv_plan_options *options);
/* Number of chunks that an image is cut into if nothing else matters. */
double fv__chunks_typical(const fv_image_type *type);
/* Voxels of an input over voxels of the output, for a typical chunk of an operator on its own. */
double fv__chunk_expansion(const fv_need *need, const fv_pass *pass, int input, const fv_plan_options *options);
/* Whether a target stores a file that is decoded in whole pieces: its chunks are made of these. */
bool fv__target_in_pieces(const fv_target *target, const fv_layout *layouts);
/* Whether two files' pieces can be covered by one lattice of sensible size; NULL fits all. */
bool fv__pieces_fit(const fv_planned_file *a, const fv_planned_file *b);
/* How many times, on average, the stage's tasks decode each piece of the file that a step of it reads. */
double fv__stage_decodes(const fv_plan *plan, const fv_stage *stage, int step, const fv_layout *layout);
/* Chooses the stage's lattice, its box of tasks, and its memory and work. ntasks -1: too many to count. */
void    fv__stage_lattice(fv_plan *plan, fv_stage *stage, const fv_image_type *space, const fv_layout *layouts,
                          const fv_plan_options *options, const fv_region *wanted);
int64_t fv__plan_bytes_read(const fv_plan *plan);

#endif
