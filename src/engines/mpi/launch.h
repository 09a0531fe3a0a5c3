/* How this process was started: alone, or as one of several ranks by mpiexec or srun. Found from the environment, before any MPI
 * library is loaded.
 */
#ifndef FV_LAUNCH_H
#define FV_LAUNCH_H

#include "base/base.h"
#include "engines/mpi/mpi_plugin.h"

typedef struct fv_launch {
    const char *flavour; /* of the launcher: "mpich" or "openmpi"; NULL: tasks of srun that do not know each other */
    bool        slurm;   /* by srun */
    int         rank, size;
} fv_launch;

/* False: alone. */
bool fv__launch_find(fv_launch *launch);
/* Loads the plug-in of the flavour; the error says what is missing and how to get it. FOVEA_MPI=FLAVOUR decides otherwise. */
fv_status fv__launch_load(const fv_launch *launch, const fv_mpi_plugin **plugin, fv_error *error);
/* What to do when the tasks of a launch do not know each other. plugin NULL: it was found out before one was loaded. */
fv_status fv__launch_lonely(const fv_launch *launch, const fv_mpi_plugin *plugin, int size, fv_error *error);

#endif
