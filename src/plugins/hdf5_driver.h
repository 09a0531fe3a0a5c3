/* The HDF5 library's own seam for files that are not local: a driver that reads from a source. */
#ifndef FV_HDF5_DRIVER_H
#define FV_HDF5_DRIVER_H

#include "formats/hdf5_plugin.h"
#include <hdf5.h>

hid_t fv_hdf5_driver(void); /* to be set with a fv_hdf5_source as its information */
/* From true on voxels are not read, but their place is noted; false ends that and gives it, or HADDR_UNDEF. Inside the lock. */
haddr_t fv_hdf5_driver_note(bool on);

#endif
