/* What is done, on disk: a line for each unit that ended well, and who has which units where several processes share them.
 *
 * 1. A line is written when the unit's file is complete, and just before it gets its name; it counts only if the file has it.
 *    Lines are whole or not there: one write each, and a last one that was cut is not read.
 * 2. Each process has a log of its own; all of them are read.
 */
#ifndef FV_UNIT_LOG_H
#define FV_UNIT_LOG_H

#include "units/unit_list.h"

typedef struct fv_unit_log fv_unit_log;

/* In the folder of this command below the store. FV_ERROR_BUSY: another process has the same units, and does not share. */
fv_status fv__unit_log_open(const fv_units_options *options, const fv_unit_list *list, fv_unit_log **log, fv_error *error);
void      fv__unit_log_close(fv_unit_log *log);
/* Marks units that a log says were done, but not those whose file is gone, and such as failed in this session. Calls `marked` for
 * each, which may be NULL. */
void fv__unit_log_read(fv_unit_log *log, fv_unit_list *list, void (*marked)(void *context, fv_unit *unit), void *context);
/* A unit that was done or, in a session, has failed for good. */
fv_status fv__unit_log_add(fv_unit_log *log, const fv_unit *unit, bool well, fv_error *error);
/* What a unit printed, as it was kept; the caller releases it. */
void fv__unit_log_printed(const fv_unit_log *log, const fv_unit *unit, fv_bytes *printed);
/* What the unit printed, kept in a file behind what became of it; of one that ended well and printed nothing there is none. */
fv_status fv__unit_log_keep(fv_unit_log *log, const fv_unit *unit, const char *command, bool well, const fv_bytes *printed,
                            fv_error *error);
/* Folder of what units printed. Borrowed. */
const char *fv__unit_log_folder(const fv_unit_log *log);

/* Whether this process may start the unit: alone always, else if it has or gets the batch that the unit is in. *fresh: it has
 * just got it, and others may have done some of it since the logs were read. */
bool fv__unit_log_claim(fv_unit_log *log, int64_t unit, bool *fresh);

#endif
