/* Parameters of the operator `array`, which the graph fills in for images that a program feeds from memory. */
#ifndef FV_ARRAY_H
#define FV_ARRAY_H

#include "op/op.h"

typedef struct fv_array_params {
    const char   *name;
    fv_image_type type;
    const void   *data; /* dense, borrowed for as long as the graph lives */
    fv_hash       content;
} fv_array_params;

#endif
