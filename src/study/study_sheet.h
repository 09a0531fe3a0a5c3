/* What a study of policies leaves: its leases as CSV and JSON, pictures as SVG and PNG. */
#ifndef FV_STUDY_SHEET_H
#define FV_STUDY_SHEET_H

#include "device_study.h"

/* Writes policies.csv, leases.csv and study.json into the folder, and a picture of them as SVG; as PNG too if Fovea was built
 * with cairo, and all of it as one page, study.html. */
fv_status fv_device_study_save(const fv_device_study *study, const char *folder, fv_error *error);
/* Everything but the leases, as JSON. The caller frees. */
char *fv_device_study_json(const fv_device_study *study);

#endif
