/* What loading a table and asking it share. */
#ifndef FV_VIEW_TABLE_PARTS_H
#define FV_VIEW_TABLE_PARTS_H

#include "view/view_table.h"
#include <pthread.h>
#include <sqlite3.h>

struct fv_view_table {
    char           *name;
    fv_table_type   type;
    int64_t         nrows;
    int             label;    /* the column of labels; -1: none */
    pthread_mutex_t mutex;    /* guards what follows */
    sqlite3        *database; /* its table is t, its columns are c0, c1, ... */
    bool            indexed[FV_MAX_COLUMNS];
};

/* -1: none. Case does not matter. */
int fv_view_table_find(const fv_view_table *table, const char *name);

#endif
