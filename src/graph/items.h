/* For bindings.c: the collections of a text. */
#ifndef FV_ITEMS_H
#define FV_ITEMS_H

#include "graph/graph.h"

/* Lists the files of every collection, paired. Mistakes are in diagnostics; the first one's kind is given back. */
fv_status fv__find_items(fv_bindings *bindings, const fv_program *program, fv_diagnostics *diagnostics);

/* fv__template_fill for an item of a list that need not be one of the bindings'; NULL: for the whole run. */
fv_status fv__template_fill_for(const fv_bindings *bindings, const fv_item_list *list, const char *template, int64_t item,
                                int combination, const fv_image_type *axes, char **path, fv_error *error);

/* The text by which a list of files is known among the collections: files(list = "a.csv", column = "file"). */
const char *fv__files_text(const fv_op *op, const void *params, fv_arena *arena);

/* The text by which the files that an argument names are known among the collections, if it is one: a pattern or a list. NULL: it
 * names none. */
const char *fv__collection_named(const fv_bindings *bindings, const fv_program *program, const fv_expr *value, fv_arena *arena);

#endif
