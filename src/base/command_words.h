/* A command: a template of words with {names}, and the words of one program that is to be run.
 *
 * Words are split once, before names are replaced: a file name with blanks or quotes stays one word. {{ and }} are braces.
 */
#ifndef FV_COMMAND_WORDS_H
#define FV_COMMAND_WORDS_H

#include "base/base.h"

typedef struct fv_word_template {
    fv_arena     arena;
    int          nwords;
    const char **words; /* as they were split, with their {names} */
    bool         shell;
} fv_word_template;

/* names: those that may stand in braces, ended by NULL. */
fv_status fv__words_parse(const char *command, bool shell, const char *const *names, fv_word_template *out, fv_error *error);
/* Refuses signs of a shell that are words of their own and not in quotes: no program wants them. */
fv_status fv__words_check_signs(const char *command, fv_error *error);
void      fv__words_release(fv_word_template *out);

/* One word, or any text with {names}, with its names replaced; quoted: for a shell. The caller frees. */
char *fv__words_fill(const char *text, const char *const *names, const char *const *values, bool quoted);
/* Says which name in braces is not known. */
fv_status fv__words_check(const char *text, const char *const *names, fv_error *error);
/* The words for execve, ended by NULL; one allocation each. */
char **fv__words_make(const fv_word_template *t, const char *const *names, const char *const *values);
void   fv__words_free(char **words);

#endif
