/* A table that is shown: its rows in SQLite, sorted, filtered and counted there. Columns are indexed when they are first sorted
 * by, so that a million rows stay quick. One thread at a time: it guards itself. */
#ifndef FV_VIEW_TABLE_H
#define FV_VIEW_TABLE_H

#include "op/format.h"
#include "view/view_query.h"
#include <cjson/cJSON.h>

typedef struct fv_view_table fv_view_table;

bool      fv_view_is_table(const char *path); /* and not an image */
fv_status fv_view_table_open(const char *path, fv_view_table **table, fv_error *error);
void      fv_view_table_free(fv_view_table *table);
/* labels: the image that its rows describe; -1: none. */
cJSON *fv_view_table_json(const fv_view_table *table, int id, int labels);
bool   fv_view_table_has_labels(const fv_view_table *table);

/* Each answers a request with a JSON text, appended to out. */
fv_status fv_view_table_rows(fv_view_table *table, const fv_view_query *query, fv_bytes *out, fv_error *error);
fv_status fv_view_table_row(fv_view_table *table, const fv_view_query *query, fv_bytes *out, fv_error *error);
fv_status fv_view_table_column(fv_view_table *table, const fv_view_query *query, fv_bytes *out, fv_error *error);
fv_status fv_view_table_scatter(fv_view_table *table, const fv_view_query *query, fv_bytes *out, fv_error *error);
fv_status fv_view_table_values(fv_view_table *table, const fv_view_query *query, fv_bytes *out, fv_error *error);
/* The box of an object, from columns bbox_min_AXIS and bbox_max_AXIS; false: the table does not tell. */
bool fv_view_table_box(fv_view_table *table, int64_t label, int64_t low[3], int64_t high[3]);

#endif
