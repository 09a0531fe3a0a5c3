/* The progress line: a bar on a terminal, plain lines now and then elsewhere, or lines of JSON. */
#ifndef FV_PROGRESS_H
#define FV_PROGRESS_H

#include <fovea/pipeline.h>

void fv_progress_start(void);
/* Callback for fv_run_options. */
void fv_progress_show(void *context, const fv_run_state *state);
/* The same for programs: a line of JSON on standard error now and then, and whenever an estimate has changed. On a terminal, the
 * bar. */
void fv_progress_events(void *context, const fv_run_state *state);
/* Around messages, so that they do not run into the line. */
void fv_progress_clear(void);
void fv_progress_redraw(void);
void fv_progress_end(void);

#endif
