/* A pipeline: from text and arrays to results.
 *
 *     fv_pipeline *p = fv_pipeline_new();
 *     fv_error error = {0};
 *     fv_pipeline_array(p, "foam", &type, pixels, &error);                        // an array of yours is a variable
 *     fv_pipeline_add(p, "cells", "bubbles = label(foam < 80)\n", &error);         // statements, one or many at a time
 *     fv_pipeline_keep(p, "bubbles", &error);                                     // wanted back
 *     fv_run_options options = { .workers = 4 };
 *     fv_result *r;
 *     if (fv_pipeline_run(p, &options, &r, &error) == FV_OK) {
 *         const int32_t *labels = fv_result_array(r, "bubbles", &type);
 *         ...
 *     }
 *     fv_result_free(r);
 *     fv_pipeline_free(p);
 *
 * A pipeline is used by one thread at a time; different pipelines may run at once and share nothing: each has its own bound of
 * memory, its own open files and caches, and with fv_pipeline_log its own messages. Nothing is computed before fv_pipeline_run.
 */
#ifndef FOVEA_PIPELINE_H
#define FOVEA_PIPELINE_H

#include <fovea/api.h>
#include <fovea/describe.h>
#include <fovea/image.h>
#include <fovea/status.h>
#include <fovea/table.h>

typedef struct fv_pipeline fv_pipeline;
typedef struct fv_result   fv_result;

FV_API fv_pipeline *fv_pipeline_new(void);
FV_API void         fv_pipeline_free(fv_pipeline *pipeline);

/* Adds statements. name: what messages call the text (a file's path, or "-e"). Mistakes of grammar are found here, those of
 * meaning by check, plan and run; both are in fv_pipeline_messages. */
FV_API fv_status fv_pipeline_add(fv_pipeline *pipeline, const char *name, const char *text, fv_error *error);
/* A whole .fov file. */
FV_API fv_status fv_pipeline_add_file(fv_pipeline *pipeline, const char *path, fv_error *error);
/* Gives a `param` another value, or several for a sweep: "radius=8,12,16". */
FV_API fv_status fv_pipeline_set(fv_pipeline *pipeline, const char *assignment, fv_error *error);
/* Makes a dense array a variable of the pipeline, in the place of an earlier one of that name: a pipeline can be run again on
 * other pixels. They are borrowed until then, or until the pipeline is freed. data NULL: only the type is known; that is enough
 * for fv_pipeline_type, and a run says so. */
FV_API fv_status fv_pipeline_array(fv_pipeline *pipeline, const char *name, const fv_image_type *type, const void *data,
                                   fv_error *error);
/* Reads part of an image that the calling program provides: `count` voxels along each axis from `start` on, to data, where the
 * next voxel along an axis is `stride` elements further on; the last axis is dense. Called by any thread of a run, by several at
 * once. */
typedef fv_status (*fv_source_read)(void *context, const int64_t *start, const int64_t *count, const int64_t *stride, void *data,
                                    fv_error *error);
/* Makes an image a variable that is read piece by piece while the pipeline runs. chunk: the pieces in which reading costs least;
 * NULL: any will do. identity: a text that changes whenever the pixels do, so that later runs know what they can use again;
 * NULL: they use nothing again. Engines with other processes get the pixels through a file below the store. */
FV_API fv_status fv_pipeline_source(fv_pipeline *pipeline, const char *name, const fv_image_type *type, const int64_t *chunk,
                                    const char *identity, fv_source_read read, void *context, fv_error *error);
/* Asks for a variable's value after the run. */
FV_API fv_status fv_pipeline_keep(fv_pipeline *pipeline, const char *name, fv_error *error);
/* Lattice of chunks: the last axes, or one number for all; 0 of them: chosen. Results do not depend on it. */
FV_API fv_status fv_pipeline_chunk(fv_pipeline *pipeline, const int64_t *chunk, int ndim, fv_error *error);

typedef enum fv_value_kind { FV_VALUE_IMAGE, FV_VALUE_SCALAR, FV_VALUE_TABLE } fv_value_kind;

typedef struct fv_value_type {
    fv_value_kind kind;
    fv_dtype      dtype; /* of an image's elements, or of a scalar */
    fv_image_type image;
    fv_table_type table;
    int64_t       items; /* there is one such value for each of so many items of a collection; 0: there is one */
} fv_value_type;

/* What a variable is, without computing it: from the text and the headers of its files. */
FV_API fv_status fv_pipeline_type(fv_pipeline *pipeline, const char *name, fv_value_type *type, fv_error *error);

/* All mistakes found by the last call, with file, line, column and caret; "" if none. Valid until the next call. */
FV_API const char *fv_pipeline_messages(const fv_pipeline *pipeline);

/* What is known of a printed value while it is computed, with an interval that holds however often one looks. */
typedef struct fv_run_estimate {
    const char *item;   /* of a collection; NULL: there is none */
    const char *name;   /* what is printed, or its operator */
    const char *column; /* of a table; NULL: it is a number */
    int64_t     row;    /* of a table */
    double      value, low, high, confidence;
    int64_t     seen, chunks;
    const char *method;
    const char *group; /* of a table with groups: which one, as "large" or "large, 3"; NULL: it has none */
    bool        items; /* seen and chunks are numbers of items: the value is made of all of them */
} fv_run_estimate;

typedef struct fv_run_state { /* what a progress callback sees */
    int64_t                items, items_done, items_failed;
    int64_t                tasks, tasks_done;
    double                 fraction; /* of all work, 0 to 1 */
    int64_t                bytes_read, bytes_written;
    int64_t                memory;
    double                 seconds;
    const char            *estimate; /* all of the estimates as a text; NULL: there are none */
    const fv_run_estimate *estimates;
    int                    nestimates;
} fv_run_state;

typedef struct fv_run_options {
    const char *engine;    /* "threads" (default) or another that fv_describe_all lists */
    int         workers;   /* 0: all cores */
    int64_t     memory;    /* bytes the whole run may use; 0: half of what is free */
    int         ranks;     /* plans: processes of the engine mpi on each machine; 0: one */
    double      patience;  /* seconds of a worker's work that a kill may cost; 0: 2.5 */
    const char *store;     /* folder for everything that a run keeps; NULL: .fovea */
    bool        fresh;     /* forget what earlier runs computed */
    bool        overwrite; /* replace files that Fovea did not make */
    bool        stop_on_error;
    bool        allow_commands; /* operators such as command may run programs of this machine */
    bool        transient; /* a run in this process that neither reads nor writes a file leaves nothing on disk, and no record;
                              ignored for all others, and where a store is given */
    int64_t     items;     /* run so many items of a collection, spread evenly over their sizes; 0: all */
    const char *into;      /* folder below which all results go instead of where the text says; NULL: none */
    const char *device;    /* "cpu" or NULL; "opencl", "opencl:N": operators that can run there; "auto": if that works */
    const char *part;      /* measuring: "z/400=50" takes the middle 50 of every source's axis z of length 400; NULL: all */
    double      within;    /* seconds in which printed statistics are estimated, and images are not written; 0: all is computed */
    double      within_error; /* the same to a part of each value: 0.01 is 1 %; 0: not asked */
    double      waited;       /* seconds before this call that count as part of within, and of approx(..., time = 5) */
    int         poison;       /* tests: 0 off, else a byte + 1 that fills memory outside declared regions */
    const char *command;      /* the fovea command, for engines that start it; NULL: this program */
    void (*progress)(void *context, const fv_run_state *state); /* at most ten times a second, from any thread */
    void         *context;
    volatile int *cancel; /* set to non-zero, even from a signal handler, to stop cleanly */
} fv_run_options;

/* FV_OK: everything is done. FV_ERROR_CANCELLED: stopped, can go on. FV_ERROR_INPUT with fv_result_failures > 0: some items
 * failed and all others are done. Other errors: see the message. *result is set in any case; free it. */
FV_API fv_status fv_pipeline_run(fv_pipeline *pipeline, const fv_run_options *options, fv_result **result, fv_error *error);

/* For a pipeline that is run again and again on other pixels, when a call should cost little more than its work: it is planned
 * the first time only, and what is brief runs in the calling thread. It reads and writes no file, and gives nothing but images.
 * arrays: pixels of all arrays, in the order in which they became variables; images: memory of yours for what is kept, in the
 * order of fv_pipeline_keep, dense and of the types that fv_pipeline_type tells; it must not overlap the arrays. cancel: as in
 * the options of a run, or NULL. FV_ERROR_CANCELLED: stopped; the images are not complete. */
FV_API fv_status fv_pipeline_apply(fv_pipeline *pipeline, const void *const *arrays, void *const *images, volatile int *cancel,
                                   fv_error *error);

/* What a run would do, as text or JSON, without reading a pixel. The caller frees. */
FV_API fv_status fv_pipeline_plan(fv_pipeline *pipeline, const fv_run_options *options, fv_form form, char **text,
                                  fv_error *error);
/* The graph in DOT: operators, or with chunks the tasks. The caller frees. */
FV_API fv_status fv_pipeline_graph(fv_pipeline *pipeline, bool chunks, char **dot, fv_error *error);

/* A result of nothing, for who could not even start. */
FV_API fv_result *fv_result_new(void);

/* ---- results: everything is borrowed from the result ---- */
FV_API const void     *fv_result_array(const fv_result *result, const char *name, fv_image_type *type); /* NULL: none */
FV_API const fv_table *fv_result_table(const fv_result *result, const char *name); /* a scalar is a table of one cell */
/* Bare scalars and tables of the text, in order. */
FV_API int             fv_result_printed(const fv_result *result);
FV_API const fv_table *fv_result_printed_table(const fv_result *result, int index, bool *is_scalar);
FV_API int             fv_result_failures(const fv_result *result);
FV_API const char     *fv_result_failure(const fv_result *result, int index, fv_error *error); /* the item */
FV_API int             fv_result_outputs(const fv_result *result);
FV_API const char     *fv_result_output(const fv_result *result, int index);
FV_API int             fv_result_missing(const fv_result *result); /* files that were not made, because something failed */
FV_API const char     *fv_result_missing_file(const fv_result *result, int index);

typedef struct fv_result_facts {
    int64_t tasks_run, outputs_made, outputs_current;
    int64_t bytes_read, bytes_written; /* voxels, before compression */
    int64_t peak_memory;               /* 0: of a transient run, which does not look */
    double  seconds;
    double  seconds_opening, seconds_merging; /* of workers: finding out what an item needs; ends of stages */
    bool    started;                          /* some work was begun; if not, an error means that nothing was touched */
} fv_result_facts;
FV_API fv_result_facts fv_result_summary(const fv_result *result);

/* Where the seconds of all workers went: "read", then what operators are for ("filter", "reconstruct", "morphology"), "store" for
 * what went through the store, "write". */
typedef struct fv_stage_time {
    const char *stage;
    double      seconds;
} fv_stage_time;
#define FV_MOST_STAGES 32
FV_API int  fv_result_stages(const fv_result *result, fv_stage_time stages[FV_MOST_STAGES]);
FV_API void fv_result_free(fv_result *result);

/* Messages about what goes on: 0 none, 1 normal, 2 more. They go to standard error, and `before` and `after` are called around
 * each, for a program that draws there. */
FV_API void fv_messages(int level, void (*before)(void), void (*after)(void));
/* The same for one pipeline, whatever others want: its messages are given to `sink`, one line at a time and without the newline,
 * from any thread of its runs but never from two at once. */
typedef void (*fv_message_sink)(void *context, const char *line);
FV_API void fv_pipeline_log(fv_pipeline *pipeline, int level, fv_message_sink sink, void *context);

/* What a worker process of an engine does: reads jobs of the run in that folder from standard input until there are none.
 * Returns the exit status. */
FV_API int fv_task_serve(const char *run_folder);
/* The same for one that shares no folder with the engine: its standard input is a socket to it. */
FV_API int fv_task_serve_apart(void);

#endif
