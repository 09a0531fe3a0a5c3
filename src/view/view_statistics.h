/* How the values of an image are spread, judged by a part of it: for the contrast that it is shown with first. */
#ifndef FV_VIEW_STATISTICS_H
#define FV_VIEW_STATISTICS_H

#include "view/view_plane.h"
#include "view/view_voxels.h"
#include <cjson/cJSON.h>

/* From the finest level that has few voxels, or from some of its planes. fixed: index along axes that are not in space. */
fv_status fv_view_statistics(fv_view_source *source, const int64_t *fixed, fv_view_part part, cJSON **json, fv_error *error);
/* Whether the name of a file says that it holds numbers of objects. */
bool fv_view_named_like_labels(const char *path);

#endif
