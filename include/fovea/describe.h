/* What this build can do and what a file holds: text for people, JSON for programs.
 *
 *     char *text;
 *     if (fv_describe_name("gaussian", FV_FORM_TEXT, &text, &error) == FV_OK) {
 *         puts(text);
 *         free(text);
 *     }
 *
 * Everything comes from what operators and formats say of themselves. All functions may be called from any thread.
 */
#ifndef FOVEA_DESCRIBE_H
#define FOVEA_DESCRIBE_H

#include <fovea/api.h>
#include <fovea/status.h>

typedef enum fv_form { FV_FORM_TEXT, FV_FORM_JSON } fv_form;

FV_API const char *fv_version(void); /* "0.1.0" */

/* All operators by family, image formats and table formats. JSON: { "version", "operators": [...], "formats": [...],
 * "tables": [...] }, each with everything that is known of it. The caller frees. */
FV_API char *fv_describe_all(fv_form form);

/* One operator (also by its name in another program), one format, a family of operators, or the operators that speak of a word.
 * An unknown name fails with a suggestion. The caller frees *text. */
FV_API fv_status fv_describe_name(const char *name, fv_form form, char **text, fv_error *error);

/* An image file: format, type, shape, axes, spacing, chunks, size and what else its header tells. No pixel is read. Of a table
 * file: tables, columns, what they hold, and rows. path_inside: the dataset or table in a file that holds several, or NULL. The
 * caller frees *text; after a failure it is NULL for FV_FORM_TEXT and { "file", "error" } for FV_FORM_JSON. */
FV_API fv_status fv_describe_file(const char *path, const char *path_inside, fv_form form, char **text, fv_error *error);

/* The files that a pattern of `read` means, in order of their names; a name without wildcards means itself, whether it is there
 * or not. A pattern that no file matches fails. The caller frees *paths, which is one piece of memory. */
FV_API fv_status fv_match_files(const char *pattern, char ***paths, int *count, fv_error *error);

#endif
