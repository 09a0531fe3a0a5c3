/* What those who share a pilot know of each other: pilot.db, an SQLite file in the pilot's folder.
 *
 * Agents (one on each node of the allocation) write what they have and do, clients what is to be done. Each opens the file for a
 * moment and closes it again, so it may be on a disk that machines share.
 */
#ifndef FV_PILOT_BOOK_H
#define FV_PILOT_BOOK_H

#include "base/base.h"

typedef struct fv_book fv_book;

/* create: makes the folder and the file, if they are not there; else a missing one is FV_ERROR_INPUT. One that others than this
 * user may write is refused. */
fv_status fv__book_open(const char *folder, bool create, fv_book **book, fv_error *error);
void      fv__book_close(fv_book *book);

/* Named facts of the pilot; "" if there is none. The caller frees. */
char     *fv__book_fact(fv_book *book, const char *name);
fv_status fv__book_set_fact(fv_book *book, const char *name, const char *value, fv_error *error);

typedef struct fv_book_agent {
    int     node;
    char    host[65];
    int     pid, cpus;
    int64_t memory;
    double  ends, seen; /* seconds since the epoch; ends 0: no end */
} fv_book_agent;

/* Enters it, or changes what was written of it. */
fv_status fv__book_agent(fv_book *book, const fv_book_agent *agent, fv_error *error);
fv_status fv__book_agent_leaves(fv_book *book, int node, fv_error *error);
/* Those that were seen since then; the caller frees *agents. */
fv_status fv__book_agents(fv_book *book, double since, fv_book_agent **agents, int *count, fv_error *error);

/* waits: nobody works on it, or some do; done: all of it; failed: nobody could; cancelled: who asked for it wants it no more */
typedef enum fv_book_state { FV_BOOK_WAITS, FV_BOOK_RUNS, FV_BOOK_DONE, FV_BOOK_FAILED, FV_BOOK_CANCELLED } fv_book_state;

typedef struct fv_book_job {
    int64_t       id;
    bool          units;  /* programs of fovea each; else a run that was frozen */
    const char   *key;    /* the same for the same work */
    const char   *folder; /* in which it was typed */
    const char   *what;   /* folder of the run, or the options of units */
    const char   *title, *user;
    int64_t       memory;    /* of one node */
    bool          overwrite; /* of a run: replaces files that Fovea did not make */
    double        added;
    fv_book_state state;
    const char   *why;    /* it failed */
    int           agents; /* that work on it */
    int           used;   /* processors, of all of them */
    double        served; /* seconds of processors that it has had */
} fv_book_job;

/* Adds it, or finds it if the same one is not over yet. */
fv_status fv__book_add(fv_book *book, const fv_book_job *job, int64_t *id, fv_error *error);
/* All that are not over, or all, without what they are; texts live in the arena, the caller frees *jobs. */
fv_status fv__book_jobs(fv_book *book, bool all, fv_arena *arena, fv_book_job **jobs, int *count, fv_error *error);
/* One of them; FV_ERROR_INPUT: there is none of this number. */
fv_status fv__book_job(fv_book *book, int64_t id, fv_arena *arena, fv_book_job *job, fv_error *error);
/* Changes the state of one that is not over. */
fv_status fv__book_settle(fv_book *book, int64_t id, fv_book_state state, const char *why, fv_error *error);
/* What one agent does for it. works false: nothing any more. */
fv_status fv__book_part(fv_book *book, int64_t job, int node, bool works, int used, double served, fv_error *error);

const char *fv__book_state_name(fv_book_state state);

#endif
