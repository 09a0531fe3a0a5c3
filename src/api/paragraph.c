/* Text laid out for people. */
#include "api/paragraph.h"
#include <stdlib.h>

void fv__put_wrapped(fv_bytes *out, const char *text, int indent) {
    char *wrapped = fv_text_wrap(text, indent, FV__WIDTH);
    fv__bytes_printf(out, "%s\n", wrapped);
    free(wrapped);
}

void fv__put_entry(fv_bytes *out, const char *name, int width, const char *text) {
    fv__bytes_printf(out, "  %-*s  ", width, name);
    fv__put_wrapped(out, text, width + 4);
}

void fv__put_words(fv_bytes *out, const char *words, char separator) {
    for (const char *c = words; *c; c++) fv__bytes_printf(out, *c == separator ? ", " : "%c", *c);
}

char *fv__take_text(fv_bytes *bytes) {
    fv__bytes_append(bytes, "", 1);
    return (char *)bytes->data;
}
