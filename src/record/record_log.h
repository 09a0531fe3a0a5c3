/* The log of a process as it lies in the folder of a run, and the walk over all of them.
 *
 * A task is one slot, and so are a residual, the memory of the process, and what an operator, a stage and a node has come to
 * since the last one. A fact is cut into as many as its
 * text needs; they follow each other in the log, and one that lacks a part is left out.
 */
#ifndef FV_RECORD_LOG_H
#define FV_RECORD_LOG_H

#include "base/slots.h"
#include "record/record.h"

#define FV__RECORD_MAGIC 0x31545646u /* "FVT1" */
enum {
    FV__TASK = 1,
    FV__FACT = 2,
    FV__RESIDUAL = 3,
    FV__SPENT = 4,
    FV__MEMORY = 5,
    FV__STAGE = 6,
    FV__NODE = 7,
    FV__LEASE = 8,
    FV__FACT_TEXT = 88
};

typedef struct fv__task_slot {
    uint32_t magic, kind;
    fv_hash  key;
    int64_t  item, stage, task;
    double   start, wait, read, compute, write;
    int64_t  bytes_read, bytes_written, memory;
    int32_t  worker, status;
    uint64_t check;
} fv__task_slot;
typedef struct fv__fact_slot {
    uint32_t magic, kind;
    uint64_t number; /* of the fact in its log; all its slots have it */
    uint32_t part, parts;
    uint32_t name, size;          /* length of the name; bytes of text in this slot */
    char     text[FV__FACT_TEXT]; /* name and value, one after the other */
    uint64_t check;
} fv__fact_slot;
typedef struct fv__residual_slot {
    uint32_t    magic, kind;
    fv_residual residual;
    char        unused[24];
    uint64_t    check;
} fv__residual_slot;
typedef struct fv__spent_slot {
    uint32_t magic, kind;
    fv_spent spent;
    char     unused[64];
    uint64_t check;
} fv__spent_slot;
typedef struct fv__memory_slot {
    uint32_t magic, kind;
    double   time; /* seconds since the epoch */
    int64_t  resident;
    char     unused[96];
    uint64_t check;
} fv__memory_slot;
typedef struct fv__stage_slot {
    uint32_t       magic, kind;
    fv_stage_facts facts;
    char           unused[64];
    uint64_t       check;
} fv__stage_slot;
typedef struct fv__node_slot {
    uint32_t      magic, kind;
    fv_node_spent spent;
    char          unused[88];
    uint64_t      check;
} fv__node_slot;
typedef struct fv__lease_slot {
    uint32_t       magic, kind;
    fv_lease_facts facts;
    char           unused[88];
    uint64_t       check;
} fv__lease_slot;
_Static_assert(sizeof(fv__memory_slot) == FV_SLOT && sizeof(fv__lease_slot) == FV_SLOT, "they are slots");
_Static_assert(sizeof(fv__stage_slot) == FV_SLOT && sizeof(fv__node_slot) == FV_SLOT, "they are slots");
_Static_assert(sizeof(fv__task_slot) == FV_SLOT && sizeof(fv__fact_slot) == FV_SLOT, "they are slots");
_Static_assert(sizeof(fv__residual_slot) == FV_SLOT && sizeof(fv__spent_slot) == FV_SLOT, "they are slots");

/* What is wanted of the logs. */
typedef struct fv__visitor {
    fv_status (*task)(struct fv__visitor *visitor, const char *worker, const fv__task_slot *task, fv_error *error);
    fv_status (*fact)(struct fv__visitor *visitor, const char *name, const char *value, fv_error *error);
    void (*memory)(struct fv__visitor *visitor, const char *worker, double time, int64_t resident);
    void (*stage)(struct fv__visitor *visitor, const fv_stage_facts *facts);
    void (*node)(struct fv__visitor *visitor, const fv_node_spent *spent);
    fv_bytes      *residuals; /* fv_residual, as they come; NULL: not wanted */
    fv_lease_facts leases;    /* added up */
    fv_spent      *spent;     /* FV_MOST_SPENT; NULL: not wanted */
    int            nspent;
    uint64_t       number; /* of the fact that is being put together */
    uint32_t       part;   /* that comes next */
    fv_bytes       text;
    void          *context;
} fv__visitor;

/* What a log holds from *at on, which is moved to behind the last slot that is whole: what follows may still be being written. */
fv_status fv__record_visit_log(const char *path, const char *worker, int64_t *at, fv__visitor *v, fv_error *error);
/* Names of the processes that have a log there, sorted; the caller frees the list, the names are the arena's. */
fv_status fv__record_logs(const char *folder, fv_arena *arena, char ***workers, size_t *count, fv_error *error);
/* All logs of a folder, in the order of their names. */
fv_status fv__record_visit(const char *folder, fv__visitor *v, fv_error *error);
/* Sorts by call and iteration, and drops what was said twice: those who go on after a kill say again what they find done. */
int64_t fv__residuals_once(fv_residual *all, int64_t count);

#endif
