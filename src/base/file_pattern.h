/* Patterns of file names: what they match, in which order, and which text each wildcard stands for.
 *
 * In a name, * stands for any text, ? for one character, [a-z] for one of these and {dapi,gfp} for one of those; {well} for any
 * text, which it gives a name, and {well=A01} for those that {well} would match by this value; a folder **
 * stands for folders of any depth, also for none. A backslash takes the meaning from the character behind it. Names that begin
 * with a dot are matched only where the pattern has that dot. A part of a path that exists by exactly that name is taken as it
 * is.
 */
#ifndef FV_FILE_PATTERN_H
#define FV_FILE_PATTERN_H

#include "base/base.h"

typedef struct fv_matched {
    char  *path;
    char **texts; /* what the wildcards stand for; neighbouring ones count as one */
    int    ntexts;
    char **values; /* what the names stand for, in their order */
    int    nvalues;
} fv_matched;

typedef struct fv_matches {
    fv_matched *match; /* in natural order, none twice */
    int64_t     count;
    int         wildcards; /* the most texts of any */
    size_t      fixed;     /* characters that all paths begin with: the folders before the first wildcard, with their slash */
    char       *closed;    /* a folder that could not be looked into; NULL: none */
    fv_arena    arena;     /* owns everything above but match itself */
} fv_matches;

/* Whether a name means several files. One that exists by exactly that name does not. */
bool fv__pattern_is(const char *path);
/* whole: whether a folder is one thing that ** does not look into; NULL: none is. Finding nothing is no failure. To be released
 * in any case. */
fv_status fv__pattern_find(const char *pattern, bool (*whole)(const char *folder), fv_matches *matches, fv_error *error);
/* The same, where small and capital letters count as the same: for hints. */
fv_status fv__pattern_find_any_case(const char *pattern, fv_matches *matches, fv_error *error);
void      fv__matches_release(fv_matches *matches);
/* Whether a path that need not exist matches. */
bool fv__pattern_fits(const char *pattern, const char *path);
/* The text that a name of a pattern stands for in a path that matches; false: there is no such name, or no match. */
bool fv__pattern_value_of(const char *pattern, const char *path, const char *word, fv_bytes *out);
/* Order of names in which numbers count by their value: a2 before a10, and what is in a folder before its longer neighbours. */
int fv__natural_order(const char *a, const char *b);

#endif
