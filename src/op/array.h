/* Parameters of the operators `array` and `provided`, which the graph fills in for images of the calling program. */
#ifndef FV_ARRAY_H
#define FV_ARRAY_H

#include "op/op.h"
#include <fovea/pipeline.h>

typedef struct fv_array_params {
    const char    *name;
    fv_image_type  type;
    const void    *data; /* dense, borrowed for as long as the graph lives; NULL: it is read piece by piece */
    fv_hash        content;
    fv_source_read read; /* NULL: data */
    void          *context;
    int64_t        chunk[FV_MAX_DIMS]; /* of what is read */
} fv_array_params;

#endif
