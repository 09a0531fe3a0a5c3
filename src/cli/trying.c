/* What commands share that try a pipeline out. */
#include "trying.h"
#include <stdio.h>

void fv_trying_tell(void *context, const char *what) {
    (void)context;
    fprintf(stderr, "fovea: %s\n", what);
}
