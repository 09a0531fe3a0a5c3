/* What one pipeline has for itself, so that several run in one process without seeing each other: where its messages go, its pool
 * of buffers with their bound, its open readers, its decoded pieces.
 *
 *     fv_session *before = fv__session_enter(pipeline->session);   // of this thread, from here on
 *     ...
 *     fv__session_enter(before);
 *
 * A thread is in one session at a time; threads started with fv__thread_start begin in that of who starts them. Outside of all
 * others a thread is in the session of the process, which lives as long as that.
 *
 * Invariants
 * 1. A part is made when it is first asked for, and lives until its session ends. It guards itself: all threads of a session
 * share it.
 * 2. What was taken from a session's pool goes back while a thread of that session returns it.
 * 3. A session is made with its reserve; that of the process has none until its first check of memory.
 */
#ifndef FV_SESSION_H
#define FV_SESSION_H

#include "base/base.h"
#include <pthread.h>

typedef struct fv_session fv_session;

fv_session *fv__session_new(void);
void        fv__session_free(fv_session *session); /* nobody may be in it */
/* NULL: that of the process. Returns where the thread was before, in the same sense. */
fv_session *fv__session_enter(fv_session *session);
/* As pthread_create: 0 if it could be started. */
int fv__thread_start(pthread_t *thread, void *(*work)(void *), void *argument);

/* Released in this order: readers give back buffers, for example. */
typedef enum fv_session_part {
    FV_PART_READERS,    /* files that are open */
    FV_PART_KEPT,       /* decoded pieces */
    FV_PART_FILE_LISTS, /* of read_stack */
    FV_PART_ZSTD,       /* contexts */
    FV_PART_REMOTE,     /* what servers have said */
    FV_PART_FETCHED,    /* files of servers that give no ranges */
    FV_PART_PROGRAMS,   /* of the machine, and whether they may run */
    FV_PART_BUFFERS,
    FV_PART_MESSAGES,
    FV_PARTS
} fv_session_part;

typedef struct fv_session_type {
    size_t size;
    void (*begin)(void *part); /* of zeroed bytes */
    void (*end)(void *part);   /* what it holds is given back */
} fv_session_type;

/* The part of this thread's session. Always with the same type. */
void *fv__session_part(fv_session_part part, const fv_session_type *type);

/* Memory that a session keeps for the time when there is no more (base/take.h), and how much was missing then; 0: nothing. */
typedef struct fv_reserve {
    _Atomic(void *) pages;
    _Atomic size_t  missing;
} fv_reserve;
fv_reserve *fv__session_reserve(void);

#endif
