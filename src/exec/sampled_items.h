/* Samples whose units are the items of a collection: the rows that each has made of a table, which are summarised. */
#ifndef FV_SAMPLED_ITEMS_H
#define FV_SAMPLED_ITEMS_H

#include "exec/strata.h"
#include "graph/gathered.h"

typedef struct fv_sampled_items {
    const fv_gathered *from;
    fv_loaded          rows;
    int64_t           *end;  /* by part of from: behind its last row */
    int64_t           *part; /* by item of the collection: its part; -1: it is not there */
    int64_t            population;
} fv_sampled_items;

/* Of a node that summarises rows of items (fv__gathered_of of its input). */
fv_status fv__sampled_items_load(fv_sampled_items *items, const fv_gathered *from, fv_error *error);
void      fv__sampled_items_release(fv_sampled_items *items);
/* All items of the collection, whether or not they are there. */
int64_t fv__sampled_items_population(const fv_gathered *from);
/* Of those in this order, so many of the first are there. */
int64_t fv__sampled_items_there(const fv_sampled_items *items, const int64_t *order);
/* The rows of an item that is there, as cells. */
void fv__sampled_items_rows(const fv_sampled_items *items, int64_t item, const void **data, size_t *size);
/* Strata of the first items of an order: the folders in which they lie. */
bool fv__sampled_items_strata(const fv_sampled_items *items, const int64_t *order, int64_t seen, fv_strata *strata);

#endif
