/* What people who come from other programs look for: their names for our operators, and sentences for what is written otherwise
 * here, or is not there. */
#ifndef FV_FAMILIAR_H
#define FV_FAMILIAR_H

#include "op/op.h"

/* The operator that other programs call so (fv_op.also), in any case and with or without the module in front; NULL: none. */
const fv_op *fv__op_known_as(const char *word);

/* A sentence that helps whoever has written this word where an operator belongs; the caller frees. NULL: nothing is known. An
 * operator that exists always comes before what is said here. */
char *fv__familiar_hint(const char *word);

/* How that is done with a table which an operator does with an image; NULL: nothing of that kind. */
const char *fv__table_hint(const fv_op *op);

/* What is meant by an argument that an operator does not take, by name (NULL: one without); NULL: nobody knows. */
const char *fv__argument_hint(const fv_op *op, const char *name);

#endif
