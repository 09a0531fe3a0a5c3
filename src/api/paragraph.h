/* Text laid out for people: words broken at a width, names in a column. Internal to api. */
#ifndef FV_PARAGRAPH_H
#define FV_PARAGRAPH_H

#include "base/base.h"

enum { FV__WIDTH = 80 };

/* Words from column `indent` on; the cursor is there already. Ends the line. */
void fv__put_wrapped(fv_bytes *out, const char *text, int indent);
/* "  name      text", the text wrapped from column 4 + width on. */
void fv__put_entry(fv_bytes *out, const char *name, int width, const char *text);
/* "a|b" as "a, b". */
void fv__put_words(fv_bytes *out, const char *words, char separator);
/* The bytes as a text of their own, empty if there are none; the caller frees. */
char *fv__take_text(fv_bytes *bytes);

#endif
