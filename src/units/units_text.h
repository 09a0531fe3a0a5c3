/* What units were asked for, as a text that another process reads. */
#ifndef FV_UNITS_TEXT_H
#define FV_UNITS_TEXT_H

#include "base/base.h"
#include <fovea/units.h>

/* As JSON; the caller frees. What belongs to one process (callbacks, allowance, session) is left out. */
char *fv__units_text(const fv_units_options *options);
/* Texts and files live in the arena. */
fv_status fv__units_read(const char *text, fv_arena *arena, fv_units_options *options, fv_error *error);

#endif
