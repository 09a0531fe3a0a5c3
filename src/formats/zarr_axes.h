/* Axes, spacing, units and the world matrix of an image as attributes of a Zarr group or array: OME-Zarr's multiscales where
 * the image has such axes, otherwise dimension names and the private attribute "fovea". */
#ifndef FV_ZARR_AXES_H
#define FV_ZARR_AXES_H

#include "base/base.h"
#include <cjson/cJSON.h>
#include <fovea/image.h>

/* Two to five axes out of t c z y x, in this order, with y and x: what OME-Zarr allows. */
bool fv__zarr_is_ome(const fv_image_type *type);

/* A level of a pyramid: voxels of the image below one of its own, along each axis. */
typedef struct fv_zarr_scale {
    int64_t factor[FV_MAX_DIMS];
} fv_zarr_scale;

/* Attributes for the group of an OME image whose levels are the arrays "0", "1", ..., or for the array of any other image.
 * version: 2 (OME-Zarr 0.4) or 3 (0.5). mean: voxels of a coarser level lie in the middle of those below; otherwise over the
 * first of them. */
cJSON *fv__zarr_attributes_compose(const fv_image_type *type, int version, const fv_zarr_scale *scales, int nscales, bool mean);
cJSON *fv__zarr_dimension_names(const fv_image_type *type);

/* The first multiscale image in a group's attributes, of version 0.5 or before; NULL if there is none. */
const cJSON *fv__zarr_multiscale(const cJSON *attributes);
/* Path of one of its levels, the finest first; NULL if there is none or it leads outside the group. */
const char *fv__zarr_dataset(const cJSON *multiscale, int level);

/* Fills axes, spacing, origin, units and matrix of a type whose shape is known. names: dimension names of the array, may be
 * NULL; attributes: of the node that describes the image; multiscale: may be NULL. */
fv_status fv__zarr_axes_parse(const cJSON *names, const cJSON *attributes, const cJSON *multiscale, const char *path,
                              fv_image_type *type, fv_error *error);

#endif
