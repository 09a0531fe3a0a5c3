/* Of what each value of a text is: of one item of a collection, or of the whole run.
 *
 *     c    = read("a?.tif")                  of an item
 *     flat = project(c, "item", "mean")      of the run, from all items: the run's values come after those of the items
 *     c / flat                               of an item again, after the run's
 *
 * A value of items has an even depth, one of the run that depends on items an odd one; what the run has without any item has
 * depth 0. Values of equal depth and collection are made together, in the units of a segment, and segments one after another.
 */
#ifndef FV_SEGMENTS_H
#define FV_SEGMENTS_H

#include "graph/graph.h"

/* Which of the patterns belong together because a value uses them both: group[k] is the first of those that pattern k belongs
 * to. */
void fv__group_patterns(const fv_bindings *bindings, const fv_program *program, const char *const *patterns, int count,
                        int *group);

/* The text that an argument is: written there, or by a name that stands for one. NULL: something else. */
const char *fv__text_named(const fv_bindings *bindings, const fv_program *program, const fv_expr *value);
/* The argument that gives a parameter; NULL: it is left out. */
const fv_expr *fv__argument_of(const fv_op *op, const fv_expr *call, const fv_param *param);
/* Whether the files that a call reads are parts of one image, and no items. */
bool fv__call_joins(const fv_op *op, const fv_expr *call);
/* The expression that gives a value its first name; the expression itself if it is no name. NULL: no name of the text. */
const fv_expr *fv__meant(const fv_program *program, const fv_expr *expr);

#endif
