/* All units of a call: made of files or of the rows of a table. */
#ifndef FV_UNIT_LIST_H
#define FV_UNIT_LIST_H

#include "base/command_words.h"
#include "units/unit.h"

typedef struct fv_unit_list {
    fv_arena         arena;
    fv_word_template command;
    const char     **names; /* that may stand in braces, ended by NULL; the first is that of the file or of the first column */
    const char     **names_and_output; /* and {output} behind them */
    int              nnames;
    const char      *output; /* template of the file that a unit makes; NULL: none is said */
    fv_unit         *units;
    int64_t          count;
} fv_unit_list;

/* Every mistake is found here, before anything is started. */
fv_status fv__unit_list_make(const fv_units_options *options, fv_unit_list *list, fv_error *error);
void      fv__unit_list_release(fv_unit_list *list);

/* The file that a unit makes; NULL: none is said. The caller frees. */
char *fv__unit_output(const fv_unit_list *list, const fv_unit *unit);
/* Where it is made before it gets its name: beside it and with its ending, which programs judge a format by. The caller frees. */
char *fv__unit_temporary(const char *output, const fv_unit *unit);
/* The words to run; temporary is {output}, or NULL. */
char **fv__unit_words(const fv_unit_list *list, const fv_unit *unit, const char *temporary);
/* The same as one text for people, each word quoted where it must be. The caller frees. */
char *fv__unit_command(const fv_unit_list *list, const fv_unit *unit);

#endif
