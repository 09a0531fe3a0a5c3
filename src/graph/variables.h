/* The variables of a text while its graph is made: a name has one value at a time. */
#ifndef FV_VARIABLES_H
#define FV_VARIABLES_H

#include "base/hash_table.h"
#include "graph/graph.h"

typedef struct value {
    /* BAD: a mistake that was already reported. ELSEWHERE: another unit makes it. LOST: another one should have, but failed. */
    enum { BAD, LITERAL, NODE, ELSEWHERE, LOST } kind;
    fv_literal  literal;
    const char *why;  /* LOST */
    fv_node    *node; /* of a geometry: its center, if that is computed by the pipeline */
} value;

typedef struct variable {
    const char *name; /* borrowed */
    value       value;
} variable;

typedef struct fv_variables { /* begins as { 0 } */
    variable     *all;
    int           count, capacity;
    fv_hash_table table;
} fv_variables;

/* NULL: there is none. Valid until the next one is set. */
const value *fv__variables_find(const fv_variables *v, const char *name);
/* Gives a name a value, in the place of an earlier one. */
void fv__variables_set(fv_variables *v, const char *name, value of_name);
void fv__variables_clear(fv_variables *v);
void fv__variables_release(fv_variables *v);

#endif
