/* The part of a scan that is there while it grows: a text is for the whole scan, and has an angle or a position for each of its
 * planes. Those of planes that have not come are left out. */
#ifndef FV_LIVE_PART_H
#define FV_LIVE_PART_H

#include "graph/graph.h"

/* Parameters of a call whose first input is this image. FV_ERROR_CANCELLED: there is not enough yet for it to make sense. */
fv_status fv__part_fit(const fv_live *live, const fv_op *op, const fv_image_type *first, void *params, fv_arena *arena,
                       fv_error *error);

/* What a list operator gives for the item of a stream: the angles that its frames tell. */
fv_status fv__live_angles(const fv_live *live, fv_arena *arena, fv_list *out, fv_error *error);

#endif
