/* Pilots: processors that are held for a while, on this machine or in one job of Slurm, and that runs and programs from several
 * terminals share.
 *
 *     fv_pilot_options options = { .name = "mine", .seconds = 7200, .cluster = { .nodes = 4 } };
 *     fv_pilot_start(&options, &text, &error);
 *     fv_pilot_find(NULL, "mine", &folder, &error);
 *     fv_pilot_add_run(folder, run_folder, 0, &job, &error);      // of fv_pipeline_freeze
 *     while (fv_pilot_look(folder, job, &state, &error) == FV_OK && state.stand <= FV_PILOT_RUNS) ...
 *     fv_pilot_stop(folder, &error);
 *
 * A pilot is a folder in the store with an SQLite file, pilot.db, in which its agents (one on each node) and those who want work
 * done find each other.
 */
#ifndef FOVEA_PILOT_H
#define FOVEA_PILOT_H

#include <fovea/cluster.h>
#include <fovea/units.h>

typedef struct fv_pilot_options {
    const char        *name;    /* of letters, digits, - and _ */
    const char        *store;   /* NULL: the usual one */
    double             seconds; /* how long it lives; 0: until it is stopped, on this machine only */
    bool               local;   /* on this machine, also where there is Slurm */
    bool               once;    /* it ends when its first work is done */
    bool               array;   /* on Slurm: an array of jobs instead of the nodes of one */
    fv_cluster_options cluster; /* nodes, cpus and memory of each, and what Slurm is asked for */
} fv_pilot_options;

/* Starts it, or hands it to Slurm. *text: what was done, for the user; the caller frees. */
FV_API fv_status fv_pilot_start(const fv_pilot_options *options, char **text, fv_error *error);
/* The folder of a pilot in a store, or of the one whose folder is given; the caller frees. */
FV_API fv_status fv_pilot_find(const char *store, const char *name, char **folder, fv_error *error);
/* Its nodes and what they do, as text or JSON; the caller frees. */
FV_API fv_status fv_pilot_status(const char *folder, fv_form form, char **text, fv_error *error);
/* Ends it; what is left stays in its queue. Returns when its agents are gone, or after a minute. */
FV_API fv_status fv_pilot_stop(const char *folder, fv_error *error);
/* Removes all that is known of one that has ended. */
FV_API fv_status fv_pilot_forget(const char *folder, fv_error *error);

/* What an agent does, on each node: ends with the pilot. node: from 0; ends: seconds since the epoch, 0: no end. *left: something
 * was not done yet when its time was over. The process must have no other threads. */
FV_API fv_status fv_pilot_serve(const char *folder, int node, double ends, volatile int *stop, bool *left, fv_error *error);

/* ---- work for a pilot; the same work is in its queue once ---- */
/* A frozen run. options: memory of each worker (0: a quarter of the node's), and consent. */
FV_API fv_status fv_pilot_add_run(const char *folder, const char *run_folder, const fv_run_options *options, int64_t *job,
                                  fv_error *error);
/* Programs. session: by which fv_units_run can follow them. */
FV_API fv_status fv_pilot_add_units(const char *folder, const fv_units_options *options, int64_t *job, char session[33],
                                    fv_error *error);

typedef enum fv_pilot_stand {
    FV_PILOT_WAITS,
    FV_PILOT_RUNS,
    FV_PILOT_DONE,
    FV_PILOT_FAILED,
    FV_PILOT_CANCELLED,
    FV_PILOT_LEFT /* the pilot is over, and the work waits for the next one of this name */
} fv_pilot_stand;
typedef struct fv_pilot_state {
    fv_pilot_stand stand;
    char           why[256];
} fv_pilot_state;
FV_API fv_status fv_pilot_look(const char *folder, int64_t job, fv_pilot_state *state, fv_error *error);
/* Takes it back. What was done stays done. */
FV_API fv_status fv_pilot_cancel(const char *folder, int64_t job, fv_error *error);

#endif
