/* What is asked of a cluster for a run: from the site's profile, the user's profile and the command line, the later over the
 * earlier.
 *
 * A profile is a file of `param` lines, NAME.fov in /etc/fovea/profiles (FOVEA_SITE replaces /etc/fovea) and in
 * ~/.config/fovea/profiles:
 *
 *     # genoa.fov: the large nodes
 *     param partition = "genoa"
 *     param account   = "imaging"
 *     param cpus      = 4
 *     param modules   = "gcc/12 openmpi"
 *     param memory    = "8G"
 */
#ifndef FV_CLUSTER_PROFILE_H
#define FV_CLUSTER_PROFILE_H

#include "base/base.h"

typedef struct fv_profile {
    /* handed to Slurm as they are; NULL: not said */
    const char *partition, *account, *qos, *constraint, *reservation, *time, *gres, *mail_user;
    /* lines of the job scripts */
    const char *modules, *environment, *setup;
    const char *mpi;       /* kind of `srun --mpi=` for pilots with MPI; NULL: workers that claim */
    const char *order;     /* fifo, longest or memory */
    int64_t     cpus;      /* of one worker */
    int64_t     memory;    /* bytes of one worker; 0: what the plan needs */
    int64_t     nodes;     /* of a pilot */
    int64_t     array;     /* most elements of an array */
    int64_t     at_once;   /* most that run at the same time; 0: all */
    int64_t     level;     /* tries before this one */
    int64_t     overwrite; /* 1: files that Fovea did not make are replaced */
    double      work;      /* seconds of one core that the run takes; 0: as the plan guesses */
    double      minimum;   /* seconds that a job should last at least */
    fv_arena    arena;     /* owns the texts of profiles */
} fv_profile;

/* Folders of the site's settings and of the user's own; the caller frees each. */
void fv__settings_folders(char *folders[2]);

fv_profile fv__profile_default(void);
void       fv__profile_release(fv_profile *profile);
/* Reads a profile; name NULL: "default", which need not be there. */
fv_status fv__profile_load(fv_profile *profile, const char *name, fv_error *error);
/* It as the text of a profile. */
void fv__profile_format(const fv_profile *profile, fv_bytes *out);
/* Reads the text of one. */
fv_status fv__profile_read(fv_profile *profile, const char *file, const char *text, fv_error *error);

#endif
