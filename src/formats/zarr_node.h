/* Groups and arrays of a Zarr hierarchy with their attributes, of version 3 or 2. */
#ifndef FV_ZARR_NODE_H
#define FV_ZARR_NODE_H

#include "formats/zarr_array.h"

typedef struct fv_zarr_node {
    int          version;
    bool         array;
    char        *path; /* of the metadata file */
    cJSON       *json, *own_attributes;
    const cJSON *attributes; /* NULL: none */
} fv_zarr_node;

/* Release it also after a failure. */
fv_status fv__zarr_node_load(fv_zarr_node *node, const char *folder, fv_hasher *hasher, fv_error *error);
void      fv__zarr_node_release(fv_zarr_node *node);

const cJSON *fv__zarr_node_names(const fv_zarr_node *node); /* of an array's axes; NULL: none */
fv_status    fv__zarr_node_array(const fv_zarr_node *node, fv_zarr_array *array, fv_error *error);

#endif
