/* The ranks that mpiexec or srun has started: joining them, and what each knows of the others. */
#ifndef FV_RANKS_H
#define FV_RANKS_H

#include "base/host.h"
#include "engines/mpi/mpi_plugin.h"
#include "record/record.h"
#include "run/budget.h"

typedef struct fv_rank { /* what every rank tells the others at the start; plain bytes */
    char     host[65];
    fv_hash  boot;
    uint64_t space;
    int      pid, cores; /* cores: that it may use */
    int64_t  start;
} fv_rank;

typedef struct fv_ranks {
    const fv_mpi_plugin *mpi;
    int                  rank, size;
    int                  local;   /* ranks on this host */
    int                  workers; /* threads a rank runs if nothing is said */
    fv_rank             *all;
    bool                 broken; /* some rank is lost: the end is not a common one */
} fv_ranks;

/* The ranks that this process has joined; NULL: none. */
fv_ranks *fv__ranks_joined(void);
/* Joins them if this process was started as one of several; else it stays alone, which is no error. */
fv_status fv__ranks_join(fv_error *error);
/* Whether a rank's process has died, as far as that can be known from here. */
bool fv__rank_dead(const fv_ranks *ranks, int rank);
/* The common end; ends the process if there can be none. */
void fv__ranks_leave(int code);

/* Rank 1 and above: does the jobs of rank 0's runs until rank 0 ends. Returns the exit status. */
int fv__follow(fv_ranks *ranks);

/* ---- messages: a kind, then what belongs to it ---- */
typedef enum fv_letter_kind {
    /* from rank 0 */
    FV_LETTER_BEGIN, /* fv_letter_begin and the run's folder */
    FV_LETTER_JOBS,  /* jobs, as run/wire.h has them */
    FV_LETTER_SYNC,  /* make parts of files durable */
    FV_LETTER_OVER,  /* no more jobs of this run; those not begun are dropped */
    FV_LETTER_BYE,   /* no more runs */
    FV_LETTER_PING,
    FV_LETTER_EXCHANGE, /* fv_letter_exchange and the ranks that made the chunks of its stage */
    /* to rank 0 */
    FV_LETTER_READY,  /* fv_letter_ready */
    FV_LETTER_DONE,   /* answers, likewise */
    FV_LETTER_SYNCED, /* fv_letter_ready: its error */
    FV_LETTER_CLOSED, /* the same */
    FV_LETTER_FAILED, /* the same: it could not take part in an exchange */
} fv_letter_kind;

typedef struct fv_letter {
    int64_t kind;
} fv_letter;

typedef struct fv_letter_begin {
    int64_t memory; /* of a node; 0: half of what is free there */
    double  patience;
    int32_t workers, poison; /* workers 0: as many as fit */
} fv_letter_begin;

typedef struct fv_letter_exchange {
    int64_t item, makers; /* makers: how many int32_t follow; 0: the stage is to be forgotten */
    int32_t stage, commit;
} fv_letter_exchange;

typedef struct fv_letter_ready {
    fv_budget budget;
    int32_t   workers;
    fv_error  error; /* code FV_OK: none */
} fv_letter_ready;

#endif
