/* Gathering what items give: tables, scalars, images kept in memory, failures. */
#ifndef FV_RESULTS_H
#define FV_RESULTS_H

#include "run/outputs.h"
#include "run/run.h"

/* Takes tables, scalars and kept images of a finished item. Thread-safe. */
fv_status fv__collect_item(fv_result *result, fv_instance *instance, fv_error *error);
/* Tables and scalars alone. */
fv_status fv__collect_values(fv_result *result, fv_instance *instance, fv_error *error);
/* A stored image as a whole, to data. */
fv_status fv__fetch_image(fv_instance *instance, const fv_node *node, void *data, fv_error *error);
void      fv__collect_failure(fv_result *result, const char *item, const fv_error *error);
void      fv__collect_output(fv_result *result, const char *path, bool made);
/* A table that the parts of one statement and file make together. */
typedef struct fv_collected {
    fv_sink_kind         kind;
    bool                 scalar; /* a single number */
    bool                 append;
    int                  statement;
    const char          *file, *table, *name; /* FILE: where it goes; table NULL: not said */
    fv_hash              key;                 /* FILE */
    const fv_table_type *type;
    fv_table_source     *rows;
} fv_collected;
typedef fv_status (*fv_collected_visit)(void *context, const fv_collected *one, fv_error *error);
/* Every one of a result, in the order of the text. Its rows are read by the visitor, once. */
fv_status fv__collect_each(fv_result *result, const fv_context *context, fv_collected_visit visit, void *of_visit,
                           fv_error *error);
/* After the last item: writes table files, makes printed tables. */
fv_status fv__collect_finish(fv_result *result, const fv_context *context, fv_outputs *outputs, fv_error *error);

#endif
