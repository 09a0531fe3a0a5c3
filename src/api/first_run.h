/* Types that only a program knows: a first run of it on one item finds them out. */
#ifndef FV_FIRST_RUN_H
#define FV_FIRST_RUN_H

#include "api/pipeline_parts.h"

/* Calls of programs whose result is not said (a table without columns, an image with first = true) get what the program makes of
 * one item as arguments in the text, as if the user had written it. Does nothing without consent. *failed: what became of
 * a first run that failed, else NULL; the caller frees. */
fv_status fv__first_run(fv_pipeline *pipeline, const fv_run_options *options, bool consent, fv_result **failed, fv_error *error);

#endif
