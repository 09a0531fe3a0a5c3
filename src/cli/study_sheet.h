/* What a study of policies leaves: its leases as CSV and JSON, pictures as SVG and PNG. */
#ifndef FV_STUDY_SHEET_H
#define FV_STUDY_SHEET_H

#include "device_study.h"
#include <cjson/cJSON.h>

/* Everything but the leases, unless they are wanted too; the caller deletes it. */
cJSON *fv_study_json(const fv_device_study *study, bool leases);
/* Writes policies.csv, leases.csv, study.json, study.svg and study.png into the folder. On failure *failed names the file and
 * errno tells why. */
bool fv_study_sheet(const fv_device_study *study, const char *folder, char failed[512]);

#endif
