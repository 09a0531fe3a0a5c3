/* Rehearsals of what the HDF5 library does with a file, in a child process with bounds on time and memory. */
#include "formats/expendable.h"
#include "formats/hdf5_parts.h"

fv_status fv__hdf5_rehearse(const fv_hdf5_plugin *h5, const char *path, void (*work)(void *context), void *context,
                            fv_error *error) {
    return fv__expendable_run(h5->fork, path, "HDF5", work, context, error);
}
