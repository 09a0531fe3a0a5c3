/* Runs the text of a pipeline on one item after another: planned once for all frames of a type, run in the calling thread.
 *
 * What an item makes is handed over as it is: files that are complete under their temporary names, and rows of tables. Whoever
 * takes it makes it durable.
 */
#ifndef FV_ITEM_RUNNER_H
#define FV_ITEM_RUNNER_H

#include "exec/growing_sums.h"
#include "run/outputs.h"
#include "run/run.h"
#include "stream/frame.h"

typedef struct fv_stream_text { /* what all runners of a stream share */
    const fv_program      *program;
    char *const           *sets;
    int                    nsets;
    const fv_plan_options *plan_options;
    const char            *pattern; /* of the text, that frames stand for */
    fv_outputs            *outputs;
    fv_budget              budget;
    int                    workers;
} fv_stream_text;

typedef struct fv_live_item { /* of a stream: a frame, or a whole scan */
    const char         *path;
    const fv_array     *image;  /* NULL: it is in the file */
    const volatile int *cancel; /* set: it is not wanted any more; NULL: it always is */
    fv_sums           **sums;   /* of a scan that grows: what was summed up of it so far, made here; NULL: it does not grow */
    int64_t             planes; /* of it that are there, from the first on */
    int64_t             scans;  /* that grow, and share the memory for sums */
    const int64_t      *there;  /* of a part of a scan: numbers of its planes; NULL: it has all */
    int64_t             nthere;
    int64_t             rounds; /* solvers end after so many at most; 0: when the text says */
    const double       *angles; /* of its planes; NaN: a frame does not tell; NULL: none does */
    int64_t             nangles;
} fv_live_item;

typedef struct fv_made_table { /* rows that one item adds to a table */
    char         *file;        /* NULL: they are printed */
    char         *table, *name;
    char         *alert; /* the rule by which its rows are alerts; NULL: they are none */
    bool          scalar;
    fv_table_type type;
    int64_t       nrows;
    fv_bytes      rows; /* fv__rows_put */
} fv_made_table;

typedef struct fv_made {
    fv_output    **outputs;
    int            noutputs;
    fv_made_table *tables;
    int            ntables;
    fv_paths       unsynced; /* files that are complete and not durable; the first output has them, if there is one */
} fv_made;
void fv__made_release(fv_made *made); /* outputs that were not handed on are given up by the caller before */

typedef struct fv_item_runner fv_item_runner;

/* threads: that a single item may use; runners: as many share the memory. Mistakes of the text are in diagnostics, when the first
 * item is run. */
fv_item_runner *fv__item_runner_new(const fv_stream_text *text, int threads, int runners);
void            fv__item_runner_free(fv_item_runner *runner);
fv_status       fv__item_run(fv_item_runner *runner, const fv_live_item *item, fv_made *made, fv_diagnostics *diagnostics,
                             fv_error *error);
/* Adds what has come of a scan to sums that can be begun before it is complete. *sums NULL then: the text has none, or they would
 * be too large. */
fv_status fv__item_sum(fv_item_runner *runner, const fv_live_item *item, fv_diagnostics *diagnostics, fv_error *error);
/* Whether the last item came as far as its tasks: the text, and the files that it reads beside the item, were all right. */
bool fv__item_opened(const fv_item_runner *runner);
/* Bytes that a task of the last item needed. */
int64_t fv__item_memory(const fv_item_runner *runner);

/* ---- rows as bytes ---- */
void fv__rows_put(fv_bytes *out, const fv_table_type *type, const fv_cell *cells, int64_t nrows);
/* Reads rows that were put so; cells point into the bytes. At most `most` of them at a time, NULL-safe at the end. */
int64_t fv__rows_get(const fv_table_type *type, const uint8_t **at, const uint8_t *end, fv_cell *cells, int64_t most);

#endif
