/* Joining and leaving the ranks of a launch. */
#include "engines/mpi/ranks.h"
#include "engines/mpi/guardian.h"
#include "engines/mpi/launch.h"
#include "run/run.h"
#include <fovea/ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static fv_ranks joined; /* of the process, which is one rank of MPI; mpi NULL: of none */

fv_ranks *fv__ranks_joined(void) { return joined.mpi ? &joined : NULL; }

static bool same_machine(const fv_rank *a, const fv_rank *b) {
    return fv__hash_equal(a->boot, b->boot) && !strcmp(a->host, b->host);
}

/* A rank that its launcher has bound to some cores uses these; otherwise all cores are divided. */
static int share_of_cores(const fv_ranks *ranks) {
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    int  own = ranks->all[ranks->rank].cores;
    return own < all ? own : FV_MAX(own / ranks->local, 1);
}

static void introduce(fv_ranks *ranks) {
    const fv_host *host = fv__host_self();
    fv_rank        self = { .boot = host->boot,
                            .space = host->space,
                            .pid = getpid(),
                            .cores = fv__default_workers(),
                            .start = fv__process_start(getpid()) };
    snprintf(self.host, sizeof self.host, "%s", host->name);
    ranks->all = fv__calloc((size_t)ranks->size * sizeof *ranks->all);
    ranks->mpi->allgather(&self, ranks->all, sizeof self);
    ranks->local = 0;
    for (int i = 0; i < ranks->size; i++) ranks->local += same_machine(&ranks->all[i], &self);
    ranks->workers = share_of_cores(ranks);
}

fv_status fv__ranks_join(fv_error *error) {
    fv_launch            launch;
    const fv_mpi_plugin *plugin;
    if (joined.mpi || !fv__launch_find(&launch)) return FV_OK;
    if (!launch.flavour) return fv__launch_lonely(&launch, NULL, 1, error);
    FV_TRY(fv__launch_load(&launch, &plugin, error));
    if (!plugin->init(&joined.rank, &joined.size))
        return fv_fail(error, FV_ERROR_USAGE, "this MPI library was built without threads (MPI_THREAD_MULTIPLE)");
    if (launch.size > 0 && joined.size != launch.size) return fv__launch_lonely(&launch, plugin, joined.size, error);
    joined.mpi = plugin;
    introduce(&joined);
    return FV_OK;
}

bool fv__rank_dead(const fv_ranks *ranks, int rank) {
    const fv_rank *self = &ranks->all[ranks->rank], *other = &ranks->all[rank];
    return same_machine(self, other) && self->space == other->space && fv__process_alive(other->pid, other->start) == FV_DEAD;
}

void fv__ranks_leave(int code) {
    if (!joined.mpi) return;
    if (joined.broken) {
        fflush(NULL);
        joined.mpi->abort(code ? code : 1);
        _exit(code ? code : 1);
    }
    joined.mpi->finalize();
    joined.mpi = NULL;
    free(joined.all);
}

bool fv_ranks_lead(const char *engine, int *status) {
    fv_launch launch;
    fv_error  error = { 0 };
    *status = 0;
    if ((engine && strcmp(engine, "mpi")) || !fv__launch_find(&launch)) return true;
    if (launch.flavour) fv__guardian_start(launch.rank);
    if (fv__ranks_join(&error) != FV_OK) {
        if (launch.rank == 0)
            fprintf(stderr, "fovea: %s\n", error.message);
        else
            usleep(500000); /* a launcher ends all ranks when the first one fails: let it be the one that speaks */
        *status = 2;
        return false;
    }
    if (joined.rank == 0) return true;
    *status = fv__follow(&joined);
    fv__ranks_leave(*status);
    return false;
}

bool fv_ranks_several(void) { return joined.mpi != NULL; }

int fv_ranks_end(int status) {
    if (joined.mpi && joined.rank == 0 && !joined.broken)
        for (int i = 1; i < joined.size; i++) joined.mpi->send(i, &(fv_letter){ FV_LETTER_BYE }, sizeof(fv_letter));
    fv__ranks_leave(status);
    return status;
}
