/* Values of a pipeline that are shown while they are thought about: of the value that is looked at, only the region that is seen
 * is computed, with parameters that the page may change. Nothing is written. Files are read through the pieces that are kept for
 * planes, so that another value of a parameter reads nothing again.
 */
#ifndef FV_VIEW_LIVE_H
#define FV_VIEW_LIVE_H

#include "view/view_cache.h"
#include "view/view_query.h"
#include "view/view_source.h"
#include <cjson/cJSON.h>

typedef struct fv_view_live fv_view_live;

/* value: the one that is shown first; NULL: the last image of the text. */
fv_status fv_view_live_open(const char *path, const char *value, fv_view_cache *cache, fv_view_live **live, fv_error *error);
void      fv_view_live_free(fv_view_live *live);
/* The value and the parameters that a request asks for (value=NAME, p.NAME=NUMBER), as a source. */
fv_status fv_view_live_source(fv_view_live *live, const fv_view_query *query, fv_view_source **source, fv_error *error);
/* Adds "values" and "parameters". */
void fv_view_live_json(fv_view_live *live, cJSON *json);

#endif
