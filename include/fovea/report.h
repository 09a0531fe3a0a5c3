/* What the record of a run says about it: what its operators took, and how well each iteration of its solvers explained the
 * measured values.
 *
 *     char *run, *text;
 *     if (fv_run_find(NULL, NULL, &run, &error) == FV_OK && fv_run_report(run, FV_FORM_TEXT, &text, &error) == FV_OK) puts(text);
 */
#ifndef FOVEA_REPORT_H
#define FOVEA_REPORT_H

#include <fovea/api.h>
#include <fovea/describe.h>
#include <fovea/status.h>
#include <stdbool.h>

/* The folder of a run in a store (NULL: .fovea), named by its folder or the begin of its name; NULL: the one that ran last. The
 * caller frees. */
FV_API fv_status fv_run_find(const char *store, const char *name, char **run_folder, fv_error *error);
/* For people or programs; the caller frees. Also of a run that goes on or was killed. */
FV_API fv_status fv_run_report(const char *run_folder, fv_form form, char **text, fv_error *error);
/* The same and much more as one HTML page that needs nothing else: verdict, pictures, pipeline, inputs, graph, timeline, memory,
 * methods. hash: reads all inputs for their hashes, however large they are. */
FV_API fv_status fv_run_report_page(const char *run_folder, bool hash, const char *path, fv_error *error);

#endif
