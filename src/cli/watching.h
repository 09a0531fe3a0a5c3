/* A run in the browser while it goes on. */
#ifndef FV_WATCHING_H
#define FV_WATCHING_H

#include <fovea/watch.h>
#include <stdbool.h>

/* Prints a link and serves it until Ctrl-C; with_run: until the run is over. The exit status. */
int fv_watching_serve(const char *command, fv_watch *watch, int port, bool with_run);
/* Starts a process that serves the page of this process's run, and gives its number; 0: it cannot be started, and the user was
 * told. The link goes to standard error. */
int fv_watching_start(const char *command, const char *store);
/* Waits for it; it ends by itself soon after the run. */
void fv_watching_end(int process);

#endif
