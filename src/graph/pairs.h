/* For items.c: which files of two patterns belong together. */
#ifndef FV_PAIRS_H
#define FV_PAIRS_H

#include "base/file_pattern.h"

/* Reorders the files of `other` so that each has the place of its partner in `first`. Partners are those whose wildcards stand
 * for the same texts; where one pattern has more wildcards, those of the other are looked for among them. False: they do not fit,
 * and `why` says which files have no partner. */
bool fv__pair(const char *pattern, const fv_matches *first, const char *other_pattern, fv_matches *other, fv_bytes *why);

#endif
