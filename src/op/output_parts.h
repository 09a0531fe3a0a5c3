/* Outputs that are more than one file: a header under the output's own name, and beside it a folder of parts that the header
 * points into (NRRD's .nhdr, MetaImage's .mhd, PVTI).
 *
 * While such an output is written, all of it lies in its temporary folder, whose name tells what the folder of parts will be
 * called: .NAME.KEY-EPOCH.fovea becomes NAME.KEY. Naming has two steps: the folder gets that name, and then the header inside it
 * the output's. Who reads between the two finds the earlier header with its earlier parts, which have another key, or the same
 * contents; the earlier parts are removed afterwards. */
#ifndef FV_OUTPUT_PARTS_H
#define FV_OUTPUT_PARTS_H

#include "base/base.h"

/* What the folder of parts will be called, for a header to name (caller frees). */
char *fv__parts_folder(const char *temporary);
/* The same of an output that has its name: where its parts lie (caller frees). */
char *fv__parts_place(const char *path, fv_hash key);
/* Where the header lies in the temporary folder (caller frees). */
char *fv__parts_header(const char *temporary);
/* Makes the temporary folder; one that is there is fine. */
fv_status fv__parts_begin(const char *temporary, fv_error *error);
/* Writes the header, durably. */
fv_status fv__parts_write_header(const char *temporary, const void *text, size_t size, fv_error *error);
/* The same of a text that ends where the path of the only part belongs. */
fv_status fv__parts_point_to(const char *temporary, const fv_bytes *front, const char *part, fv_error *error);
/* Whether a header of text can point to what lies beside a file of that name. */
fv_status fv__parts_check(const char *path, fv_error *error);
/* Both steps of naming. All parts are durable. */
fv_status fv__parts_name(const char *temporary, const char *path, fv_error *error);

#endif
