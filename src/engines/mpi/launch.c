/* Launchers and the plug-ins that understand them. */
#include "engines/mpi/launch.h"
#include "base/plugin.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool number(const char *name, int *value) {
    const char *text = getenv(name);
    char       *end;
    long        n = text ? strtol(text, &end, 10) : -1;
    if (!text || end == text || *end || n < 0 || n > INT32_MAX) return false;
    *value = (int)n;
    return true;
}

bool fv__launch_find(fv_launch *l) {
    *l = (fv_launch){ .size = 1 };
    int tasks = 0, task = 0;
    l->slurm = number("SLURM_STEP_NUM_TASKS", &tasks) && number("SLURM_PROCID", &task); /* both: started by srun */
    if (number("OMPI_COMM_WORLD_RANK", &l->rank) && number("OMPI_COMM_WORLD_SIZE", &l->size)) {
        l->flavour = "openmpi";
        l->slurm = false;
    } else if (number("PMI_RANK", &l->rank) && number("PMI_SIZE", &l->size)) {
        l->flavour = "mpich";
        l->slurm = l->slurm && tasks == l->size && task == l->rank;
    } else if (number("PMIX_RANK", &l->rank)) {
        l->flavour = "openmpi";
        l->size = l->slurm ? tasks : 0; /* 0: the environment does not tell */
    } else if (l->slurm && tasks > 1) {
        l->rank = task;
        l->size = tasks;
    } else
        return false;
    return true;
}

/* ---------------------------------------------------------------- plug-ins */

static const char *packages(const char *flavour) {
    return strcmp(flavour, "openmpi") ? "mpich libmpich-dev" : "openmpi-bin libopenmpi-dev";
}

fv_status fv__launch_load(const fv_launch *launch, const fv_mpi_plugin **plugin, fv_error *error) {
    const char *given = getenv("FOVEA_MPI"), *flavour = given && *given ? given : launch->flavour;
    char       *name = fv__sprintf("mpi-%s", flavour), *path = fv__plugin_find(name);
    free(name);
    if (!path)
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s has started this, but fovea-mpi-%s.so, which understands it, is not there; on Debian: apt-get install "
                       "%s, then build again",
                       launch->slurm                ? "srun"
                       : strcmp(flavour, "openmpi") ? "MPICH's mpiexec"
                                                    : "Open MPI's mpiexec",
                       flavour, packages(flavour));
    void                   *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* Open MPI's own plug-ins look for its symbols */
    fv_mpi_plugin_function *get = NULL;
    if (library) *(void **)(&get) = dlsym(library, FV_MPI_SYMBOL);
    *plugin = get ? get() : NULL;
    fv_status status = FV_OK;
    if (!get)
        status = fv_fail(error, FV_ERROR_USAGE, "cannot load %s: %s; on Debian: apt-get install %s", path, dlerror(),
                         packages(flavour));
    else if ((*plugin)->version != FV_MPI_VERSION)
        status = fv_fail(error, FV_ERROR_USAGE, "%s belongs to another version of Fovea; build or install it again", path);
    free(path);
    return status;
}

fv_status fv__launch_lonely(const fv_launch *launch, const fv_mpi_plugin *plugin, int size, fv_error *error) {
    if (!plugin)
        return fv_fail(error, FV_ERROR_USAGE,
                       "srun has started %d tasks that do not know each other; use srun --mpi=pmi2 (MPICH) or srun --mpi=pmix "
                       "(Open MPI)",
                       launch->size);
    bool open = !strcmp(plugin->flavour, "openmpi");
    return fv_fail(error, FV_ERROR_USAGE, "%d ranks were started, but %s sees %d: each would think that it is alone; use %s",
                   launch->size, open ? "Open MPI" : "MPICH", size,
                   launch->slurm ? (open ? "srun --mpi=pmix" : "srun --mpi=pmi2")
                                 : (open ? "Open MPI's own mpiexec (mpiexec.openmpi)" : "MPICH's own mpiexec (mpiexec.mpich)"));
}
