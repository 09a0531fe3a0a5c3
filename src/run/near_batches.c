/* Where the files of batches lie. */
#include "run/near_batches.h"
#include "base/host.h"
#include "base/remote.h"
#include <stdlib.h>

typedef enum distance { UNKNOWN, NEAR, FAR } distance;

struct fv_near_batches {
    const fv_bindings *bindings;
    uint8_t           *distance; /* by batch */
    bool               silent;   /* the file system does not say where files are */
};

/* The first file of a unit; NULL: it reads none. */
static const char *file_of(const fv_bindings *bindings, int64_t unit) {
    fv_unit u = fv__bindings_unit(bindings, unit);
    for (int l = 0; l < bindings->nlists; l++)
        if (bindings->lists[l].collection == u.collection) return bindings->lists[l].paths[u.item];
    return NULL;
}

fv_near_batches *fv__near_batches_new(const fv_bindings *bindings) {
    fv_lot      last = fv__lot_of(bindings, bindings->nsegments - 1);
    const char *file = bindings->nunits ? file_of(bindings, 0) : NULL;
    if (!file || !fv__remote_has_places(file)) return NULL;
    fv_near_batches *near = fv__calloc(sizeof *near);
    *near = (fv_near_batches){ .bindings = bindings, .distance = fv__calloc((size_t)(last.batch + last.batches) + 1) };
    return near;
}

void fv__near_batches_free(fv_near_batches *near) {
    if (near) free(near->distance);
    free(near);
}

bool fv__near_batches_has(fv_near_batches *near, int64_t batch) {
    int64_t first, end;
    if (near->distance[batch] == UNKNOWN && !near->silent && fv__lot_units(near->bindings, batch, &first, &end)) {
        const char *file = file_of(near->bindings, first);
        bool        here = false;
        near->silent = file && fv__remote_is_on(file, fv__host_self()->name, &here, NULL) != FV_OK;
        near->distance[batch] = here ? NEAR : FAR;
    }
    return near->distance[batch] == NEAR;
}
