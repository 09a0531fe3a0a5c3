/* Whether a text is trusted to run programs. */
#ifndef FV_TRUST_H
#define FV_TRUST_H

#include "base/base.h"

/* A list that somebody else could have written does not count, and is told. */
bool fv__text_trusted(const void *text, size_t size);

#endif
