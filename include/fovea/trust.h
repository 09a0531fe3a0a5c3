/* Texts of pipelines that the user trusts: these may run programs of the machine without being asked each time.
 *
 * The list is ~/.config/fovea/trusted (or below XDG_CONFIG_HOME), and /etc/fovea/trusted of the site. Its lines are as sha256sum
 * prints them, so a text that changes by a letter is not trusted any more. Nothing beside a pipeline can bring such a list.
 */
#ifndef FOVEA_TRUST_H
#define FOVEA_TRUST_H

#include <fovea/pipeline.h>

/* Puts the pipeline's text on the user's list, or takes it off. *list: name of the list; the caller frees. */
FV_API fv_status fv_pipeline_trust(const fv_pipeline *pipeline, bool trusted, char **list, fv_error *error);
/* The lines of all lists; the caller frees. */
FV_API fv_status fv_trusted_list(char **text, fv_error *error);

#endif
