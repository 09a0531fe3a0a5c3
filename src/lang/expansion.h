/* Texts that operators write for themselves: the iterations of a solver. */
#ifndef FV_EXPANSION_H
#define FV_EXPANSION_H

#include "lang/ast.h"

/* As fv__program_parse, for texts that may be longer than what people write. */
fv_program *fv__expansion_parse(const char *name, const char *text, fv_diagnostics *diagnostics);

#endif
