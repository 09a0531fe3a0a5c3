/* How wide words are in Helvetica, and in Arial and Liberation Sans, which have its metrics. */
#include "draw/drawing.h"
#include <stdlib.h>

/* Thousandths of the letters' height, from blank to tilde: Adobe's font metrics of Helvetica. */
static const short widths[] = {
    278, 278, 355, 556, 556, 889, 667, 191, 333,  333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667,  667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556,
    556, 222, 222, 500, 222, 833, 556, 556, 556,  556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
};
enum { OTHER = 600, SMALL = 333, WIDE = 1000 }; /* other letters, raised digits, those of Asian scripts */

/* Of the letter at text, and how many bytes it takes. */
static int width_of(const char *text, int *bytes) {
    unsigned char c = (unsigned char)*text;
    *bytes = 1;
    if (c >= ' ' && c <= '~') return widths[c - ' '];
    if (c < 0x80) return 0;
    while (((unsigned char)text[*bytes] & 0xc0) == 0x80) ++*bytes;
    if (!strncmp(text, "²", 2) || !strncmp(text, "³", 2) || !strncmp(text, "¹", 2)) return SMALL;
    return c >= 0xe3 && c < 0xee ? WIDE : *bytes == 4 ? WIDE : OTHER;
}

double fv__text_width(const char *text, double size) {
    double sum = 0;
    bool   raised = false;
    int    bytes;
    for (; *text; text += bytes) {
        raised = raised != (*text == FV_TEXT_RAISE);
        sum += width_of(text, &bytes) * (raised ? FV_TEXT_RAISED : 1);
    }
    return sum * size / 1000;
}

char *fv__text_fit(const char *text, double size, double room) {
    if (fv__text_width(text, size) <= room) return fv__strdup(text);
    double sum = WIDE;
    int    length = 0, bytes;
    while (text[length] && (sum += width_of(text + length, &bytes)) * size / 1000 <= room) length += bytes;
    while (length && text[length - 1] == ' ') length--;
    return fv__sprintf("%.*s…", length, text);
}
