/* What the files share that write iterative reconstruction of cones as a pipeline. */
#ifndef FV_CONE_UNROLL_H
#define FV_CONE_UNROLL_H

#include "ops/tomography/cone_scan.h"
#include "ops/tomography/solver.h"

typedef struct fv_unrolling {
    const fv_solver *p;
    fv_bytes        *text;
    bool             start, mask, table; /* table: of residuals, not the volume */
    char             xray[96], back[96]; /* parameters behind the geometry */
} fv_unrolling;

/* Before and behind an expression that is to be kept inside the mask. */
static inline const char *fv__inside(const fv_unrolling *u) { return u->mask ? "where(mask != 0, " : "("; }
static inline const char *fv__limit(const fv_unrolling *u) { return u->mask ? ", 0)" : ")"; }

#define fv__unroll_ordered FV_ISA_NAME(fv__unroll_ordered)
#define fv__unroll_go FV_ISA_NAME(fv__unroll_go)
#define fv__unroll_keep FV_ISA_NAME(fv__unroll_keep)

/* Names in the text: x the volume, left the squared norm of what it leaves over, norm that of the measured values, and with
 * `stop` go, whether to go on. Iterations are counted from 1. What is behind a go that is 0 is never computed. */

/* left is known: sets go. */
void fv__unroll_go(const fv_unrolling *u, int64_t k);
/* The volume `next` becomes x, and the iteration goes to the record and, if wanted, to the table `rows`.
 * before: the go of this iteration is known before it. */
void fv__unroll_keep(const fv_unrolling *u, int64_t k, bool before);

/* art and sart: group by group of projections. */
void fv__unroll_ordered(const fv_unrolling *u, fv_unrolled kind);

#endif
