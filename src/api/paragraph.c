/* Text laid out for people. */
#include "api/paragraph.h"
#include <stdio.h>

static int columns(const char *text, int bytes) { /* characters of UTF-8 */
    int n = 0;
    for (int i = 0; i < bytes; i++) n += ((uint8_t)text[i] & 0xc0) != 0x80;
    return n;
}

static void put_word(fv_bytes *out, const char *word, int length) {
    char *place = fv_bytes_append(out, word, (size_t)length);
    for (int i = 0; i < length; i++)
        if ((uint8_t)place[i] < 0x20 || place[i] == 0x7f) place[i] = '?';
}

void fv__put_wrapped(fv_bytes *out, const char *text, int indent) {
    int column = indent;
    for (const char *p = text + strspn(text, " \n"); *p;) {
        int length = (int)strcspn(p, " \n"), wide = columns(p, length);
        if (column > indent && column + 1 + wide > FV__WIDTH) {
            fv_bytes_printf(out, "\n%*s", indent, "");
            column = indent;
        }
        if (column > indent) {
            fv_bytes_append(out, " ", 1);
            column++;
        }
        put_word(out, p, length);
        column += wide;
        p += length;
        p += strspn(p, " \n");
    }
    fv_bytes_printf(out, "\n");
}

void fv__put_entry(fv_bytes *out, const char *name, int width, const char *text) {
    int pad = FV_MAX(width - columns(name, (int)strlen(name)), 0);
    fv_bytes_printf(out, "  ");
    put_word(out, name, (int)strlen(name));
    fv_bytes_printf(out, "%*s  ", pad, "");
    fv__put_wrapped(out, text, width + 4);
}

void fv__put_words(fv_bytes *out, const char *words, char separator) {
    for (const char *c = words; *c; c++) fv_bytes_printf(out, *c == separator ? ", " : "%c", *c);
}

char *fv__take_text(fv_bytes *bytes) {
    fv_bytes_append(bytes, "", 1);
    return (char *)bytes->data;
}
