/* What happens when memory runs out.
 *
 * Whatever depends on the size of data (images, tables, texts) fails with FV_ERROR_MEMORY, and the program goes on. Each pipeline
 * keeps a reserve for small things, so that it can end in good order. Only if that is used up as well and a few bytes cannot be
 * had does the library give up: it calls this handler and, if that returns, abort().
 */
#ifndef FOVEA_MEMORY_H
#define FOVEA_MEMORY_H

#include <fovea/api.h>
#include <stddef.h>

/* bytes: what was asked for; 0: unknown. Called by the thread that asked, which may hold locks of the library: save what matters
 * to you, and call nothing of Fovea. */
typedef void (*fv_out_of_memory)(size_t bytes);

/* For the whole process. NULL, as at the start: a line on standard error. */
FV_API void fv_set_out_of_memory(fv_out_of_memory handler);

#endif
