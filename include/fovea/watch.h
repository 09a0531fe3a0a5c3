/* Watching a run from its folder: whoever works on it, on whichever machine, notices nothing.
 *
 *     fv_watch *watch;
 *     char *run, *text;
 *     bool over = false;
 *     if (fv_run_find(NULL, NULL, &run, &error) == FV_OK && fv_watch_open(run, &watch, &error) == FV_OK)
 *         for (; !over && fv_watch_look(watch, FV_FORM_TEXT, 80, &text, &over, &error) == FV_OK; sleep(1)) puts(text);
 */
#ifndef FOVEA_WATCH_H
#define FOVEA_WATCH_H

#include <fovea/api.h>
#include <fovea/describe.h>
#include <fovea/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct fv_watch fv_watch;

FV_API fv_status fv_watch_open(const char *run_folder, fv_watch **watch, fv_error *error);
/* Reads what was added since, and gives all of it: lines of at most `columns` letters, or one JSON object on one line. The caller
 * frees. over: nobody works on it any more. */
FV_API fv_status fv_watch_look(fv_watch *watch, fv_form form, int columns, char **text, bool *over, fv_error *error);
/* The path of a file that is complete, as it was last looked at: by its number in the JSON object; NULL: there is no such number.
 * The caller frees. */
FV_API char *fv_watch_output(const fv_watch *watch, int number);
/* A small picture of an image file, as a PNG; false: it is none. The caller frees *png. */
FV_API bool fv_picture(const char *path, void **png, size_t *size);
FV_API void fv_watch_close(fv_watch *watch);
/* The folder of the run that a process of this machine works on in a store; NULL: none has begun yet. The caller frees. */
FV_API char *fv_watch_find(const char *store, int pid);

#endif
