/* Names, colours and ranges of channels as OME-Zarr keeps them: "omero" beside "multiscales". */
#ifndef FV_ZARR_CHANNELS_H
#define FV_ZARR_CHANNELS_H

#include "formats/zarr_writer.h"

/* Adds them to the object that holds "multiscales"; nothing where nothing is known of the channels. A range that nobody has said
 * is measured in the coarsest level, whose array is complete. */
fv_status fv__zarr_channels_compose(const fv_zarr_writer *w, cJSON *ome, fv_error *error);
/* attributes: of the group of an image; the axes of the type are known. */
void fv__zarr_channels_parse(const cJSON *attributes, fv_image_type *type);

#endif
