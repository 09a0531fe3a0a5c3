/* What a scaling study leaves: tables as CSV, pictures as SVG and PNG. */
#ifndef FV_SCALING_SHEET_H
#define FV_SCALING_SHEET_H

#include <fovea/scale.h>

/* Writes scaling.csv, stages.csv, timeline.csv, scaling.svg, scaling.png, timeline.svg and timeline.png into the folder, which is
 * made. title: over the pictures. On failure *failed names the file and errno tells why. */
bool fv_scaling_sheet(const fv_scaling *scaling, const char *folder, const char *title, char failed[512]);

#endif
