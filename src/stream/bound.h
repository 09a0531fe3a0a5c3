/* Which pattern of a text a stream is bound to. */
#ifndef FV_BOUND_H
#define FV_BOUND_H

#include "graph/graph.h"

/* The pattern or file that the text reads by a name: that of a variable (scans = read("scans/?.tif")), of its folder ("scans"),
 * or the pattern itself. Fails with the names that there are. The caller frees. */
fv_status fv__bound_pattern(const fv_program *program, const char *name, char **pattern, fv_error *error);

#endif
