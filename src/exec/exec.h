/* Running the tasks of a plan: one task, the end of a pass, the end of a file. Engines decide where and when.
 *
 * An instance is one item's graph and plan with its values. Every process that runs tasks of an item has its own instance; they
 * meet in the store, under keys that follow from the identity of nodes and from lattices.
 */
#ifndef FV_EXEC_H
#define FV_EXEC_H

#include "exec/output.h"
#include "image/chunk_walk.h"
#include "record/record.h"
#include "store/store.h"
#include <pthread.h>

typedef struct fv_context { /* shared by all instances of a process */
    const fv_program   *program;
    const fv_bindings  *bindings;
    fv_plan_options     plan_options;
    fv_store           *store;
    fv_output_list     *written;    /* by tasks of this process; NULL: none are run */
    const volatile int *cancel;     /* not NULL and not zero: long tasks end early */
    const char         *run_folder; /* NULL: the run has none */
    int                 poison;     /* tests: byte to fill everything outside declared regions with; -1: off */
} fv_context;

typedef struct fv_sums fv_sums; /* exec/growing_sums.h */

/* What looks at the sample of a node have found: it is looked at again only when it is larger. */
typedef struct fv_looked {
    int64_t size;     /* that was not good enough */
    int64_t expected; /* size that may be, as it seemed then; 0: unknown */
    bool    control;  /* what a coarse level tells was worth reading */
} fv_looked;

typedef struct fv_instance {
    const fv_context  *context;
    int64_t            item;   /* unit */
    struct fv_exports *handed; /* by other units; NULL: a sample */
    fv_graph          *graph;
    fv_arena           arena; /* holds the plan */
    const fv_plan     *plan;
    fv_output        **outputs; /* by index of the plan's files */
    fv_scalar         *scalars; /* by node id */
    uint8_t           *scalar_known;
    fv_looked         *looked; /* by node id */
    bool              *alone;  /* by node id: no other unit has this node or uses it */
    void             **direct; /* by node id: whole images that tasks fill themselves; NULL: all go through the store */
    pthread_mutex_t    mutex;  /* guards the scalars */
    fv_sums           *sums;   /* of passes that are begun before all of the image is there; NULL: it is there */
    int64_t            planes; /* with sums: those of the image that are there, from the first on */
} fv_instance;

/* Builds graph and plan of a unit. Mistakes of the text are in diagnostics, and the first of them in error. The units of earlier
 * segments must be done. */
fv_status fv__instance_open(const fv_context *context, int64_t item, fv_instance **instance, fv_diagnostics *diagnostics,
                            fv_error *error);
/* The same for a unit of the run while items of the first segment go on: tables are of those that are done. */
fv_status fv__instance_open_early(const fv_context *context, int64_t item, fv_instance **instance, fv_diagnostics *diagnostics,
                                  fv_error *error);
/* The same for types and plans alone, before anything was made. */
fv_status fv__instance_sample(const fv_context *context, int64_t item, fv_instance **instance, fv_diagnostics *diagnostics,
                              fv_error *error);
void      fv__instance_close(fv_instance *instance);
/* The output that a target of kind FV_TARGET_SINK goes to. */
fv_output *fv__instance_output(const fv_instance *instance, const fv_target *target);
/* ---- direct.c: images that are wanted back, of a run in one process that keeps nothing ---- */
/* Whether an image is of this kind: it is wanted back, and no stage reads it again. */
bool fv__direct_takes(const fv_instance *instance, const fv_sink *sink);
/* Memory of the caller's for it, whether it is of this kind or not; NULL: there is none. */
void *fv__direct_room(const fv_instance *instance, const fv_sink *sink);
/* Makes room for those; they are in the store as mere facts then. Before the first task. */
fv_status fv__direct_begin(fv_instance *instance, fv_error *error);
/* Where a region belongs; false: it belongs into the store. */
bool fv__direct_block(const fv_instance *instance, const fv_node *node, const fv_region *region, fv_block *block);
/* Puts a chunk there, if it was not made there; false as above. */
bool fv__direct_put(const fv_instance *instance, const fv_node *node, const fv_region *chunk, const fv_block *block);
/* The whole image, which the caller frees; NULL: it is in the store. */
void *fv__direct_take(fv_instance *instance, const fv_node *node);
void  fv__direct_end(fv_instance *instance);
/* Memory for an image, to be freed with free; NULL: there is not enough. */
void *fv__image_memory(const fv_image_type *type);

/* What another process says of an output: its temporary name, or "" if it is current. */
fv_status fv__instance_follow(fv_instance *instance, int output, const char *temporary, fv_hash epoch, fv_error *error);
/* What it is told in turn. */
const char *fv__output_told(const fv_output *output);

/* ---- keys ---- */
fv_hash fv__key_chunk(const fv_node *node, const fv_lattice *lattice, int64_t chunk);
fv_hash fv__key_partial(const fv_node *node, int pass, const fv_lattice *lattice, int64_t chunk);
fv_hash fv__key_result(const fv_node *node, int pass, const fv_lattice *lattice, int64_t index); /* index -1: which there are */
fv_hash fv__key_notes(const fv_node *node, const fv_lattice *lattice, int64_t chunk);   /* of operators that tell residuals */
fv_hash fv__key_piece(const fv_sink *sink, int64_t piece);                              /* encoded */
fv_hash fv__key_put(const fv_output *output, const fv_lattice *lattice, int64_t chunk); /* put in its place */

/* Walks the pieces of a file that lie in a chunk. */
void fv__pieces_begin(fv_chunk_walk *walk, const fv_planned_file *file, const fv_region *chunk);

/* Name of a task in the record: the key of the first thing it makes. */
fv_hash fv__task_key(const fv_instance *instance, const fv_stage *stage, int64_t task);
/* Whether everything a task makes is in the store already, as far as this process knows. Never waits. */
bool fv__task_done(const fv_instance *instance, const fv_stage *stage, int64_t task);

/* ---- running ---- */
/* An operator wants to run a program, and the user has not said that it may. */
fv_status                fv__program_refused(const fv_op *op, fv_error *error);
typedef struct fv_worker fv_worker; /* memory that one thread reuses from task to task */
fv_worker               *fv__worker_new(void);
void                     fv__worker_free(fv_worker *worker);
/* Whether chunks that it makes from now on are for fv__stage_exchange: other processes get them there, not from the store. */
void fv__worker_hold(fv_worker *worker, bool joint);

/* Runs one task and puts what it makes into the store. facts gets times and bytes. */
fv_status fv__task_run(fv_instance *instance, const fv_stage *stage, int64_t task, fv_worker *worker, fv_task_facts *facts,
                       fv_error *error);
/* Adds what has come to the sum of a task, in a stage that has one (fv__stage_summing), and makes nothing else. */
fv_status fv__task_sum(fv_instance *instance, const fv_stage *stage, int64_t task, fv_worker *worker, fv_error *error);
/* What a task in a process that does not see this one's files has put into its store (fv_store_home): stored here, or written
 * into the file that it belongs to. Takes the buffer over. */
fv_status fv__task_receive(fv_instance *instance, const fv_stage *stage, int64_t task, fv_hash key, void *buffer, size_t size,
                           double seconds, bool keep, fv_error *error);
/* What place `place` of the facts' spent is about: an operator of the text, "store" or "write"; NULL: nothing. */
const char *fv__stage_spender(const fv_stage *stage, int place);
/* The node whose value it makes, fetches or stores there; NULL: several. */
const fv_node *fv__stage_spending_node(const fv_stage *stage, int place);
/* All tasks of the stage are done: ends its passes, so that their results can be used, and puts its files together under their
 * temporary names. */
fv_status fv__stage_end(fv_instance *instance, const fv_stage *stage, fv_error *error);
/* All tasks of the stage are done: the residuals that its solvers noted, summed up over all slices, go to the record. */
fv_status fv__stage_record(const fv_instance *instance, const fv_stage *stage, fv_record *record, fv_error *error);
/* Bytes that ending a stage whose tasks are all done will need, roughly. */
int64_t fv__stage_end_memory(const fv_instance *instance, const fv_stage *stage);
/* What lies under index -1 of a pass's results: their number, then a bit for each that is not empty. Put last, so that with it
 * the pass is finished. */
typedef struct fv_results_list {
    int64_t count;
    uint8_t there[];
} fv_results_list;
static inline size_t fv__results_list_size(int64_t count) { return sizeof(fv_results_list) + (size_t)((count + 7) / 8); }

/* True if the results of every pass of the stage are in the store. A pass of which some are lost is forgotten altogether, and
 * has to be done again. */
bool fv__stage_finished(const fv_instance *instance, const fv_stage *stage);
/* Memory of what a stage stored, of its partials and its encoded pieces is no longer needed by this item. */
void fv__stage_forget(const fv_instance *instance, const fv_stage *stage);
/* The chunk of an image that a task alone needed. */
void fv__task_forget(const fv_instance *instance, const fv_stage *stage, int64_t task, const fv_node *spent);
/* Whether the tasks of a stage that are not done find what they need of the image that it uses up. */
bool fv__stage_can_go_on(const fv_instance *instance, const fv_stage *stage, const fv_node *spent);
/* Adds the keys of all that, and the keys (fv_hash) of the results that must be committed before it may go for good. */
void fv__stage_leaves(const fv_instance *instance, const fv_stage *stage, fv_bytes *keys, fv_bytes *results);

/* ---- ranks that have no memory in common ---- */
struct fv_team;
/* Bytes of what the stage stores if it belongs to a solve whose iterates are best exchanged in memory; 0: it does not. */
int64_t fv__stage_joint(const fv_stage *stage);
/* All tasks of such a stage are done: every rank gets the chunks that the others made. makers: by task the rank that made it, -1
 * if it was in the store before. All ranks call it; given_up as for fv__allreduce_parts. */
fv_status fv__stage_exchange(const fv_instance *instance, const fv_stage *stage, const int32_t *makers, struct fv_team *team,
                             bool (*given_up)(void *context), void *context, fv_error *error);

/* ---- values ---- */
fv_status fv__instance_scalar(fv_instance *instance, const fv_node *node, fv_scalar *value, fv_error *error);
/* Which input of a lazy operator its condition tells to take. */
fv_status fv__instance_chosen(fv_instance *instance, const fv_node *node, int *input, fv_error *error);
/* Whether a stage is not needed after all: what it is for lies in branches that were not chosen. The stages it needs must be
 * complete. Its tasks are not run then, and its end has nothing to do. */
fv_status fv__stage_closed(fv_instance *instance, const fv_stage *stage, bool *closed, fv_error *error);
/* Rows of a table, piece by piece. */
fv_status fv__instance_table(fv_instance *instance, const fv_node *node, int64_t *pieces, fv_error *error);
fv_hash   fv__instance_table_piece(const fv_instance *instance, const fv_node *node, int64_t piece);
/* A region of a stored node, into a dense block. */
fv_status fv__instance_fetch(fv_instance *instance, const fv_node *node, const fv_block *block, fv_error *error);
fv_status fv__store_fetch(fv_store *store, const fv_node *node, const fv_lattice *lattice, const fv_block *block,
                          fv_error *error);

#endif
