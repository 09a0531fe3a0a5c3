/* What the build found: operators and shared kernels per instruction set, formats, table formats. */
#ifndef FV_REGISTRY_H
#define FV_REGISTRY_H

#include "op/format.h"
#include "op/kernels.h"
#include "op/sampling.h"

typedef struct fv_named_estimator {
    const char         *op;
    const fv_estimator *estimator;
} fv_named_estimator;

typedef struct fv_isa {
    const char               *name;
    const fv_op *const       *ops; /* ended by NULL */
    const fv_kernels         *kernels;
    const fv_named_estimator *estimators; /* ended by a NULL name */
} fv_isa;

extern const fv_isa                 fv__isas[]; /* weakest first, ended by a NULL name */
extern const fv_format *const       fv__formats[];
extern const fv_table_format *const fv__table_formats[];

/* The set in use. */
const fv_isa *fv__isa_current(void);
/* Whether this processor runs a set of that name. */
bool fv__isa_supported(const char *name);

#endif
