/* Facts that readers tell of a file, "name: value" lines, laid out for people and for programs. Internal to api. */
#ifndef FV_FACTS_H
#define FV_FACTS_H

#include "base/base.h"
#include <cjson/cJSON.h>

int    fv__facts_width(const fv_bytes *facts, int most); /* of the longest name, 8 at least */
void   fv__put_facts(const fv_bytes *facts, int width, fv_bytes *out);
cJSON *fv__facts_json(const fv_bytes *facts);

#endif
