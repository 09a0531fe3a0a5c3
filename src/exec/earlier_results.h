/* Results of an operator's earlier pass, lent to its later ones: to their tasks and to their ends. */
#ifndef FV_EARLIER_RESULTS_H
#define FV_EARLIER_RESULTS_H

#include "exec/exec.h"

/* What is lent stays in memory until it is released. */
typedef struct fv_pins {
    fv_blob *blobs;
    int      count, capacity;
} fv_pins;
void fv__pins_release(fv_pins *pins, fv_store *store); /* it can be used again; free blobs in the end */

typedef struct fv_earlier_results {
    fv_results         base;
    const fv_instance *instance;
    const fv_node     *node;
    int                pass;
    fv_pins           *pins;
} fv_earlier_results;

/* Of the last pass before this one that has any; false: none has. */
bool fv__earlier_results_init(fv_earlier_results *results, const fv_instance *instance, const fv_node *node, int pass,
                              fv_pins *pins);

#endif
