/* Sessions and the threads in them. */
#include "base/session.h"
#include "base/take.h"
#include <stdatomic.h>
#include <stdlib.h>

struct fv_session {
    pthread_mutex_t        making; /* held while a part is made */
    _Atomic(void *)        part[FV_PARTS];
    const fv_session_type *type[FV_PARTS];
    fv_reserve             reserve;
};

static fv_session                process = { .making = PTHREAD_MUTEX_INITIALIZER };
static _Thread_local fv_session *here; /* NULL: that of the process */

fv_session *fv__session_new(void) {
    fv_session *session = fv__calloc(sizeof *session);
    pthread_mutex_init(&session->making, NULL);
    fv_session *before = fv__session_enter(session);
    fv__memory_check(NULL); /* if it cannot be had now, the first check of the session says so */
    fv__session_enter(before);
    return session;
}

fv_reserve *fv__session_reserve(void) { return &(here ? here : &process)->reserve; }

fv_session *fv__session_enter(fv_session *session) {
    fv_session *before = here;
    here = session;
    return before;
}

void fv__session_free(fv_session *session) {
    if (!session) return;
    fv_session *before = fv__session_enter(session);
    for (int i = 0; i < FV_PARTS; i++) {
        void *part = atomic_load(&session->part[i]);
        if (part && session->type[i]->end) session->type[i]->end(part);
    }
    for (int i = 0; i < FV_PARTS; i++) free(atomic_load(&session->part[i]));
    fv__memory_lend(0);
    fv__session_enter(before);
    pthread_mutex_destroy(&session->making);
    free(session);
}

void *fv__session_part(fv_session_part which, const fv_session_type *type) {
    fv_session *session = here ? here : &process;
    void       *part = atomic_load_explicit(&session->part[which], memory_order_acquire);
    if (part) return part;
    pthread_mutex_lock(&session->making);
    part = atomic_load(&session->part[which]);
    if (!part) {
        part = fv__calloc(type->size);
        if (type->begin) type->begin(part);
        session->type[which] = type;
        atomic_store_explicit(&session->part[which], part, memory_order_release);
    }
    pthread_mutex_unlock(&session->making);
    return part;
}

/* ---------------------------------------------------------------- threads */

typedef struct start {
    fv_session *session;
    void *(*work)(void *);
    void *argument;
} start;

static void *begin(void *argument) {
    start s = *(start *)argument;
    free(argument);
    fv__session_enter(s.session);
    return s.work(s.argument);
}

int fv__thread_start(pthread_t *thread, void *(*work)(void *), void *argument) {
    start *s = fv__alloc(sizeof *s);
    *s = (start){ here, work, argument };
    int failed = pthread_create(thread, NULL, begin, s);
    if (failed) free(s);
    return failed;
}
