/* What every page of ours looks like, and the little that its script does: zooming into drawings. Without it the page is
 * complete. No element of it may ask for anything from elsewhere; the content policy in its head forbids it too. */
#ifndef FV_PAGE_FRAME_H
#define FV_PAGE_FRAME_H

#include "base/base.h"

void fv__page_begin(fv_bytes *out, const char *title);
void fv__page_end(fv_bytes *out);

#endif
