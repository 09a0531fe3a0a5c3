/* The folder in which runs keep what they need to go on, and their records. */
#ifndef FV_STORE_PLACE_H
#define FV_STORE_PLACE_H

#include "base/base.h"

/* What was asked for; of an address the folder of the user's cache that belongs to it (store/mirror.h). Otherwise .fovea in the
 * current folder; where that cannot be written, a folder of the user's cache that belongs to the current folder. writing: a run
 * will write there; otherwise a .fovea that is there is good enough. The caller frees. */
char *fv__store_place(const char *given, bool writing);
/* Refuses an address, for those who keep more than results there. */
fv_status fv__store_check_folder(const char *given, fv_error *error);
/* The folder for files that are gone with this process. Borrowed. */
const char *fv__temporary_place(void);

#endif
