/* Sources of values that other units have made: an image of one unit or of all items, a table of them; and the columns that say
 * which item a row belongs to. They are no operators of the language. */
#ifndef FV_GATHERED_H
#define FV_GATHERED_H

#include "graph/graph.h"
#include "op/table_rows.h"

typedef struct fv_gathered_part {
    const fv_export     *made; /* by a unit; NULL: it is a file as it is */
    const char          *path;
    const fv_image_type *type;
    int64_t              start; /* first voxel, where all are one line */
} fv_gathered_part;

typedef struct fv_gathered {
    const fv_handed  *handed; /* NULL: only the type is known */
    fv_hash           identity;
    int64_t           count;
    fv_gathered_part *parts;
    enum { FV_GATHERED_ONE, FV_GATHERED_STACK, FV_GATHERED_LINE } form;
    fv_type              type;
    fv_layout            layout;
    bool                 tags; /* TABLE: columns item and path come before its own */
    const fv_item_names *items;
    const fv_item_names *of; /* TABLE of a sample of items: all of them, and which of these it has, in ascending order; or NULL */
    const int64_t       *numbers;
} fv_gathered;

/* The node of it; g lives in the graph's arena. of_unit: no other unit has it. */
fv_status fv__graph_gathered(fv_graph *graph, const fv_gathered *g, bool of_unit, fv_span span, fv_node **node, fv_error *error);
/* Of a node that holds the rows of all items, or of a sample of them, as each has made them; NULL: it is another one. */
const fv_gathered *fv__gathered_of(const fv_node *node);
bool               fv__is_gathered(const fv_node *node); /* made by other units, whatever it is */
/* The rows of one part. Texts live until the next one. */
fv_status fv__gathered_rows(const fv_gathered *g, int64_t part, fv_row_visit visit, void *context, fv_error *error);
/* The table with columns item and path before its own. */
fv_status fv__graph_tag(fv_graph *graph, fv_node *table, const fv_item_names *item, fv_span span, fv_node **node,
                        fv_error *error);

/* Adds a column to a table; a name that is taken gets a number. */
fv_status fv__table_add(fv_table_type *type, const char *name, fv_column_kind kind, fv_error *error);
/* Its type: those columns before the others. */
fv_status fv__table_tagged(const fv_table_type *in, fv_table_type *out, fv_error *error);
#define FV_TAGS 2 /* columns item and path */

#endif
