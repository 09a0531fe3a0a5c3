/* Names in patterns of files: {well} stands for any text, as * does, and tells what it is; {well=A01} for those of a value. */
#ifndef FV_PATTERN_NAMES_H
#define FV_PATTERN_NAMES_H

#include "base/base.h"

typedef struct fv_pattern_name {
    const char *open; /* its brace in the pattern */
    const char *word;
    const char *value, *value_end; /* as it is written, with backslashes; NULL: none */
    const char *end;               /* behind the closing brace */
} fv_pattern_name;

/* The name that begins at p; false: an ordinary brace, or a list {dapi,gfp}. */
bool fv__pattern_name(const char *p, const char *end, fv_pattern_name *name);
/* The next one from p on; false: there is none. */
bool fv__pattern_name_next(const char *p, fv_pattern_name *name);
bool fv__pattern_has_names(const char *pattern); /* without a value */
/* Whether texts, one for each name of a pattern in order, are the values that it has, and the same where a word comes twice. */
bool fv__pattern_values_fit(const char *pattern, char *const *values, int count);
/* The pattern of the files for which its names stand for these values. The caller frees it. */
char *fv__pattern_with(const char *pattern, char *const *values, int count);
/* The values that a pattern has: of one word (NULL: of all, with _ between them). False: it has none. */
bool fv__pattern_value(const char *pattern, const char *word, fv_bytes *out);
/* The pattern with values in the place of its names. The caller frees it. */
char *fv__pattern_filled(const char *pattern);

#endif
