/* Several processes that mpiexec or srun has started, the ranks, and sums over all of them.
 *
 *     int main(void) {
 *         int status;
 *         if (!fv_ranks_lead(NULL, &status)) return status;   // rank 1 and above work for rank 0 and return when it ends
 *         ...                                                 // rank 0, or a process that was started alone: run pipelines
 *         return fv_ranks_end(0);
 *     }
 *
 * A program of its own in which all ranks do the same, an iterative solver, joins a team instead:
 *
 *     fv_team *team;
 *     if (fv_team_join(0, &team, &error) != FV_OK) ...
 *     fv_allreduce(team, blocks, count, n, sum, &error);
 *     fv_team_leave(team);
 */
#ifndef FOVEA_RANKS_H
#define FOVEA_RANKS_H

#include <fovea/api.h>
#include <fovea/status.h>
#include <stdbool.h>
#include <stdint.h>

/* Call first in main, before there are threads: the process forks, and the launcher's process only guards the one that works.
 * engine: the one the program will use; anything but NULL and "mpi" leaves the process alone. False: this was one of the ranks
 * that only work for rank 0, or they could not be joined; return *status from main. */
FV_API bool fv_ranks_lead(const char *engine, int *status);
/* Whether this process, after fv_ranks_lead, is one of several. */
FV_API bool fv_ranks_several(void);
/* Lets the other ranks go. Returns status. */
FV_API int fv_ranks_end(int status);

/* ---- sums over ranks and threads ---- */
typedef struct fv_team fv_team;

/* All ranks call it; a process that was started alone is a team of one. threads 0: as many as the rank's share of cores. */
FV_API fv_status fv_team_join(int threads, fv_team **team, fv_error *error);
FV_API void      fv_team_leave(fv_team *team);
FV_API int       fv_team_rank(const fv_team *team);
FV_API int       fv_team_size(const fv_team *team);
FV_API int       fv_team_threads(const fv_team *team);

/* A block is a part of the problem that is the same whatever the number of ranks and threads: a chunk, an angle, a slab. */
typedef struct fv_allreduce_block {
    int64_t      index;  /* 0 to blocks - 1; every block is held by exactly one rank */
    const float *values; /* n of them */
} fv_allreduce_block;

/* The sum of all blocks, element by element, in every rank. Blocks are added in pairs, pairs of pairs and so on by their index,
 * so the bits of the sum depend on the blocks alone. All ranks call it, each with the blocks that it holds, in rising order. */
FV_API fv_status fv_allreduce(fv_team *team, const fv_allreduce_block *blocks, int64_t count, int64_t n, float *sum,
                              fv_error *error);

#endif
