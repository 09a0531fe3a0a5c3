/* Output files of a run: who may write them, under which temporary name, and when they get their own.
 *
 * Invariants
 * 1. A file that Fovea did not make is never replaced unless overwriting was asked for.
 * 2. Before an output gets its name, the line of the ledger that recognises it is durable.
 * 3. A temporary file's name holds the key of what goes into it; pieces are found again after a kill, and never mixed.
 */
#ifndef FV_OUTPUTS_H
#define FV_OUTPUTS_H

#include "exec/exec.h"
#include "store/lease.h"

typedef struct fv_outputs fv_outputs;

/* fresh: nothing counts as current. */
fv_status fv__outputs_open(const char *folder, bool overwrite, bool fresh, fv_outputs **outputs, fv_error *error);
void      fv__outputs_free(fv_outputs *outputs); /* releases what is left */

/* What is written from now on is the result of a run over these collections. */
void fv__outputs_note_patterns(fv_outputs *outputs, const fv_bindings *bindings);
/* Under what the ledger knows this very file again; pattern: as the result of a run over that collection, NULL: of any run.
 * False: there is no such file. */
bool fv__outputs_recognise(const char *path, const char *pattern, fv_hash *file);

/* One and the same text for every way to write a path (caller frees): the folder as the system knows it, and the name. */
char *fv__outputs_place(const char *path);
/* The folder of a file that is about to be written. */
fv_status fv__outputs_make_parent(const char *path, fv_error *error);
/* Fails if the file system takes no name of that length. */
fv_status fv__outputs_check_name(const char *path, fv_error *error);
/* The same, and fails if the file exists and is not ours; one that may be overwritten is fine, but no folder of other files. */
fv_status fv__outputs_check(fv_outputs *outputs, const char *path, fv_error *error);
bool      fv__outputs_overwrite(const fv_outputs *outputs);
/* Whether the file is there and was made from exactly this, and whether that makes this run's work on it needless (--fresh:
 * never). */
bool fv__outputs_made(fv_outputs *outputs, const fv_output *output);
bool fv__outputs_current(fv_outputs *outputs, const fv_output *output);
typedef enum fv_output_way {
    FV_OUTPUT_ALONE, /* by the only process of a run */
    FV_OUTPUT_OWN,   /* by one of several: what another left is never taken up, since it may wake up again */
    FV_OUTPUT_JOINT, /* by several at once: somebody else's claim is no hindrance */
} fv_output_way;
/* Claims the file of a table that is begun only later, or not at all: FV_ERROR_BUSY while another run has it. */
fv_status fv__outputs_claim(fv_outputs *outputs, const char *path, fv_error *error);
/* The output of a table, the one that was claimed if there is one. The caller leaves it. */
fv_output *fv__outputs_table(fv_outputs *outputs, const char *path, fv_hash key);
/* Claims the output and opens it under a temporary name. Of images that tasks put in place, an unfinished one of the same key is
 * taken up. list: of the process. */
fv_status fv__outputs_begin(fv_outputs *outputs, fv_output *output, fv_output_way way, fv_output_list *list, fv_error *error);
/* From now on, before anything is begun: what another process has taken over while this one stood still is left to it without a
 * complaint. */
void fv__outputs_yield(fv_outputs *outputs);
/* Removes the claim of a worker that died between naming the output and giving its claim back. */
void fv__outputs_disclaim(const char *path);
/* All is written. It is made durable and gets its name soon, in a batch; at the latest at fv__outputs_commit. One that
 * cannot get its name does not hinder the others; the first such failure is what fv__outputs_commit gives back, once. Only a full
 * disk is told at once. */
fv_status fv__outputs_done(fv_outputs *outputs, fv_output *output, fv_error *error);
fv_status fv__outputs_commit(fv_outputs *outputs, fv_error *error);
/* Renames a complete and durable temporary to the output's own name, on this machine. */
fv_status fv__output_give_name(const fv_output *output, fv_error *error);
/* The item failed: gives the claim back. What was written stays for the next try. */
void fv__outputs_abandon(fv_outputs *outputs, fv_output *output);

/* Says on the log why an existing output is made again, and notes what made the new one. */
void fv__outputs_explain(fv_outputs *outputs, const fv_sink *sink, const fv_graph *graph);

#endif
