/* What a scaling study leaves: tables as CSV, pictures as SVG and PNG. */
#ifndef FV_SCALING_SHEET_H
#define FV_SCALING_SHEET_H

#include <fovea/scale.h>

/* Writes scaling.csv, stages.csv and timeline.csv into the folder, and pictures of them as SVG; as PNG too if Fovea was built
 * with cairo, and all of it as one page, scaling.html. */
fv_status fv_scaling_save(const fv_scaling *scaling, const char *folder, const char *title, fv_error *error);

#endif
