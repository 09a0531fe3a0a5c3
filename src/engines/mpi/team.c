/* Teams: the ranks of a launch, or this process alone, for sums over all of them. */
#include "engines/mpi/ranks.h"
#include "exec/allreduce.h"
#include "run/run.h"
#include <stdlib.h>

fv_status fv_team_join(int threads, fv_team **out, fv_error *error) {
    *out = NULL;
    FV_TRY(fv__ranks_join(error));
    const fv_ranks *ranks = fv__ranks_joined();
    fv_team        *team = fv__calloc(sizeof *team);
    *team = (fv_team){ .rank = ranks ? ranks->rank : 0, .size = ranks ? ranks->size : 1 };
    team->threads = threads > 0 ? threads : ranks ? ranks->workers : fv__default_workers();
    if (ranks)
        team->exchange = (fv_exchange){ ranks->mpi->allgather, ranks->mpi->scatter, ranks->mpi->gather, ranks->mpi->share };
    *out = team;
    return FV_OK;
}

void fv_team_leave(fv_team *team) {
    if (!team) return;
    free(team->sums);
    free(team->slices);
    free(team->scratch);
    free(team);
    fv__ranks_leave(0);
}
