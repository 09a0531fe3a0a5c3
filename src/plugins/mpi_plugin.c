/* The plug-in: Fovea's few wishes in terms of MPI. Compiled once with every flavour's mpicc; FV_MPI_FLAVOUR names it. */
#include "engines/mpi/mpi_plugin.h"
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG = 7, PIECE = 1 << 28 };   /* PIECE: most bytes of one transfer, since MPI counts in int */
enum { LOOK = 64, PATIENCE = 2000 }; /* turns of waiting: between two looks around, before it naps */

typedef struct outgoing {
    struct outgoing *next;
    MPI_Request      request;
    char             bytes[];
} outgoing;

static MPI_Comm letters, together; /* messages and collective calls do not meet */
static int      own_rank, ranks;
/* Guards what is on its way, and lets one thread at a time ask for messages and parts: Open MPI 4.1 allows several, but a run of
 * three ranks once waited for ever for a part that its sender took for sent. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static outgoing       *on_the_way;

static bool init(int *rank, int *size) {
    int level;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &letters);
    MPI_Comm_dup(MPI_COMM_WORLD, &together);
    *rank = own_rank;
    *size = ranks;
    return level >= MPI_THREAD_MULTIPLE;
}

/* ---------------------------------------------------------------- messages */

/* Mutex held, or no other thread is left. */
static void forget_sent(void) {
    for (outgoing **o = &on_the_way; *o;) {
        outgoing *entry = *o;
        int       sent;
        MPI_Test(&entry->request, &sent, MPI_STATUS_IGNORE);
        if (sent) {
            *o = entry->next;
            free(entry);
        } else
            o = &entry->next;
    }
}

static void send_bytes(int to, const void *data, size_t size) {
    outgoing *entry = malloc(sizeof *entry + size);
    if (!entry) abort();
    memcpy(entry->bytes, data, size);
    pthread_mutex_lock(&mutex);
    MPI_Isend(entry->bytes, (int)size, MPI_BYTE, to, TAG, letters, &entry->request);
    entry->next = on_the_way;
    on_the_way = entry;
    pthread_mutex_unlock(&mutex);
}

static void *receive(int *from, size_t *size) {
    MPI_Message message;
    MPI_Status  status;
    int         there, count;
    char       *bytes = NULL;
    pthread_mutex_lock(&mutex);
    forget_sent();
    MPI_Improbe(MPI_ANY_SOURCE, TAG, letters, &there, &message, &status);
    if (there) {
        MPI_Get_count(&status, MPI_BYTE, &count);
        bytes = malloc((size_t)count + 1);
        if (!bytes) abort();
        MPI_Mrecv(bytes, count, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        bytes[count] = 0; /* a text at its end is one */
        *from = status.MPI_SOURCE;
        *size = (size_t)count;
    }
    pthread_mutex_unlock(&mutex);
    return bytes;
}

/* ---------------------------------------------------------------- collective calls */

static void barrier(void) { MPI_Barrier(together); }

static void allgather(const void *mine, void *all, size_t size) {
    MPI_Allgather(mine, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, together);
}

typedef struct requests {
    MPI_Request *list;
    int          count, capacity;
} requests;

static MPI_Request *request(requests *r) {
    if (r->count == r->capacity) {
        r->capacity = r->capacity ? 2 * r->capacity : 64;
        r->list = realloc(r->list, (size_t)r->capacity * sizeof *r->list);
        if (!r->list) abort();
    }
    return &r->list[r->count++];
}

static void post(requests *r, bool sends, const char *bytes, int64_t size, int other) {
    for (int64_t at = 0; at < size; at += PIECE) {
        int count = (int)(size - at < PIECE ? size - at : PIECE);
        if (sends)
            MPI_Isend(bytes + at, count, MPI_BYTE, other, TAG, together, request(r));
        else
            MPI_Irecv((void *)(uintptr_t)(bytes + at), count, MPI_BYTE, other, TAG, together, request(r));
    }
}

static void finish(requests *r) {
    MPI_Waitall(r->count, r->list, MPI_STATUSES_IGNORE);
    free(r->list);
}

static void scatter(const void *const *vectors, const int *counts, const int64_t *borders, void *slices) {
    requests r = { 0 };
    int64_t  own = borders[own_rank + 1] - borders[own_rank];
    char    *to = slices;
    for (int rank = 0; rank < ranks; rank++)
        for (int v = 0; v < counts[rank]; v++, to += own) {
            if (rank == own_rank)
                memcpy(to, (const char *)vectors[v] + borders[own_rank], (size_t)own);
            else
                post(&r, false, to, own, rank);
        }
    for (int step = 1; step < ranks; step++) { /* everybody begins with another one */
        int rank = (own_rank + step) % ranks;
        for (int v = 0; v < counts[own_rank]; v++)
            post(&r, true, (const char *)vectors[v] + borders[rank], borders[rank + 1] - borders[rank], rank);
    }
    finish(&r);
}

static void gather(void *vector, const int64_t *borders) {
    requests r = { 0 };
    char    *bytes = vector;
    for (int step = 1; step < ranks; step++) {
        int from = (own_rank + ranks - step) % ranks, to = (own_rank + step) % ranks;
        post(&r, false, bytes + borders[from], borders[from + 1] - borders[from], from);
        post(&r, true, bytes + borders[own_rank], borders[own_rank + 1] - borders[own_rank], to);
    }
    finish(&r);
}

/* Soon everything is there, or somebody is late or dead: then the core is left to others. */
static bool arrived(requests *r, bool (*given_up)(void *context), void *context) {
    int there = 0;
    for (int turn = 1; !there; turn++) {
        pthread_mutex_lock(&mutex);
        MPI_Testall(r->count, r->list, &there, MPI_STATUSES_IGNORE);
        pthread_mutex_unlock(&mutex);
        if (there) break;
        if (turn % LOOK == 0 && given_up(context)) return false;
        if (turn < PATIENCE)
            sched_yield();
        else
            nanosleep(&(struct timespec){ 0, 20000 }, NULL);
    }
    free(r->list);
    return true;
}

static bool share(void *const *parts, const int64_t *sizes, const int *owners, int count, bool (*given_up)(void *context),
                  void *context) {
    requests r = { 0 };
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < count; i++)
        if (owners[i] >= 0 && owners[i] != own_rank) post(&r, false, parts[i], sizes[i], owners[i]);
    for (int step = 1; step < ranks; step++)
        for (int i = 0; i < count; i++)
            if (owners[i] == own_rank) post(&r, true, parts[i], sizes[i], (own_rank + step) % ranks);
    pthread_mutex_unlock(&mutex);
    return arrived(&r, given_up, context);
}

static void sum_floats(float *values, int64_t n) { MPI_Allreduce(MPI_IN_PLACE, values, (int)n, MPI_FLOAT, MPI_SUM, together); }

/* ---------------------------------------------------------------- the end */

static void abort_all(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

static void finalize(void) {
    while (on_the_way) forget_sent();
    MPI_Comm_free(&letters);
    MPI_Comm_free(&together);
    MPI_Finalize();
}

const fv_mpi_plugin *fv_mpi_plugin_get(void);
const fv_mpi_plugin *fv_mpi_plugin_get(void) {
    static const fv_mpi_plugin plugin = {
        .version = FV_MPI_VERSION,
        .flavour = FV_MPI_FLAVOUR,
        .init = init,
        .send = send_bytes,
        .receive = receive,
        .barrier = barrier,
        .allgather = allgather,
        .scatter = scatter,
        .gather = gather,
        .share = share,
        .sum_floats = sum_floats,
        .abort = abort_all,
        .finalize = finalize,
    };
    return &plugin;
}
