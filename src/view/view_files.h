/* What `fovea view` shows: images, labels over them, tables beside them, and the routes by which the page asks for all that.
 *
 *     fv_view_files *files = fv_view_files_new();
 *     if (fv_view_files_image(files, "scan.nii.gz", NULL, false, &error) == FV_OK &&
 *         fv_view_files_serve(files, &options, &server, &error) == FV_OK) ...
 */
#ifndef FV_VIEW_FILES_H
#define FV_VIEW_FILES_H

#include "view_server.h"

typedef struct fv_view_files fv_view_files;

fv_view_files *fv_view_files_new(void);
void           fv_view_files_free(fv_view_files *files); /* after its server has stopped */
/* A file or a pattern of a collection. inside: the dataset in files that hold several, or NULL. labels: numbers of objects, shown
 * over the images. */
fv_status fv_view_files_image(fv_view_files *files, const char *pattern, const char *inside, bool labels, fv_error *error);
fv_status fv_view_files_table(fv_view_files *files, const char *path, fv_error *error);
/* Several files as one collection. */
fv_status fv_view_files_collection(fv_view_files *files, const char *name, char *const *paths, int count, fv_error *error);
/* The results of a run, by its folder. */
fv_status fv_view_files_run(fv_view_files *files, const char *folder, fv_error *error);
bool      fv_view_is_run(const char *path);
/* A file of any kind: the folder of a run, a pipeline (value: the one that is seen first, or NULL), a table, or else an image. */
fv_status fv_view_files_add(fv_view_files *files, const char *path, const char *inside, const char *value, fv_error *error);
/* Starts the server; routes, context and state of the options are set here. */
fv_status fv_view_files_serve(fv_view_files *files, const fv_view_server_options *options, fv_view_server **server,
                              fv_error *error);

#endif
