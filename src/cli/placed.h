/* Runs whose workers another system places, Spark for example. A program of the Python package, `python -m fovea.ENGINE
 * RUN_FOLDER OPTIONS`, asks it to, and ends when there is nothing left to do.
 *
 * Of that program is expected: it ends soon after its standard input does; its exit status is 0, 1 if it had begun, or 2 if
 * nothing was begun; and then the last thing it prints is a sentence that says why. */
#ifndef FV_PLACED_H
#define FV_PLACED_H

#include "execute.h"

enum { FV_MOST_PLACING = 256 };

typedef struct fv_placing {
    const char *engine;
    const char *options[FV_MOST_PLACING]; /* of the program, ended by NULL */
    int         noptions;
} fv_placing;

/* Adds an option with its value; none if the value is NULL. */
void fv_placing_add(fv_placing *placing, const char *option, const char *value);

/* Freezes, has workers placed, waits, and does what is left; prints, and frees the pipeline. The exit status. */
int fv_execute_placed(const char *command, fv_pipeline *pipeline, const fv_placing *placing, const fv_execute *options);

#endif
