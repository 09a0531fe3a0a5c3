/* What became of each unit, as a table. */
#ifndef FV_UNIT_TABLE_H
#define FV_UNIT_TABLE_H

#include "units/unit_list.h"

/* Whether a table can be written there. */
fv_status fv__unit_table_check(const char *path, fv_error *error);
fv_status fv__unit_table_write(const char *path, const fv_unit_list *list, fv_error *error);

#endif
