/* Units of the columns of a table, from what its operator says about them and the spacing of the image that it measures. */
#ifndef FV_COLUMN_UNITS_H
#define FV_COLUMN_UNITS_H

#include "op/op.h"

/* The table's metadata hold the unit of a column as people write it, "µm³", under this and its name. Parquet keeps them. */
#define FV_UNIT_PREFIX "unit."

/* Tells the units of the columns of a table that op has inferred. The type is copied into the arena where it changes. */
void fv__column_units(const fv_op *op, const fv_type *const *in, int ninputs, fv_type *out, fv_arena *arena);

#endif
