/* Loadable parts: libraries that not everybody has, each behind a small file fovea-NAME.so that is loaded when it is needed. */
#ifndef FV_PLUGIN_H
#define FV_PLUGIN_H

#include "base/base.h"

/* Where the file lies: in $FOVEA_PLUGINS if that is set, otherwise beside the command or one above it (a build), or where an
 * installation has it. NULL: nowhere. The caller frees. */
char *fv__plugin_find(const char *name);
/* Likewise a library that came with the build or the installation, in a folder `libraries` of a build. */
char *fv__library_find(const char *file);

/* Loads a plug-in that nobody needs to find twice and gives what its function `symbol` returns. needed_for: what cannot be done
 * without it; packages: what to install on Debian. */
fv_status fv__plugin_load(const char *name, const char *symbol, const char *needed_for, const char *packages, const void **result,
                          fv_error *error);

#endif
