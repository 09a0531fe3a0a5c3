/* Properties that measure leaves to other operators: convex hulls to hulls, medians and percentiles to percentiles. A call that
 * asks for them becomes calls of those, joined by label, with the columns in the order that was asked for. */
#ifndef FV_DELEGATED_H
#define FV_DELEGATED_H

#include "ops/measurement/properties.h"

#define fv__split_needed FV_ISA_NAME(fv__split_needed)
#define fv__split FV_ISA_NAME(fv__split)

bool fv__split_needed(const char *properties);
/* in: types of the images, labels without the axis per. Appends the text of a pipeline. */
fv_status fv__split(const char *properties, const char *per, const fv_type *const *in, const fv__views *views, fv_bytes *text,
                    fv_error *error);

#endif
