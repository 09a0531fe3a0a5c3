/* Words and sizes as people read and write them. */
#include "base/base.h"
#include <stdio.h>
#include <stdlib.h>

static int distance(const char *a, const char *b) {
    enum { LONGEST = 63 };
    int n = (int)strlen(a), m = (int)strlen(b), row[LONGEST + 1];
    if (n > LONGEST || m > LONGEST) return LONGEST;
    for (int j = 0; j <= m; j++) row[j] = j;
    for (int i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int cost = FV_MIN(FV_MIN(row[j], row[j - 1]) + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = row[j];
            row[j] = cost;
        }
    }
    return row[m];
}

const char *fv_nearest_word(const char *word, const char *const *candidates, int count) {
    const char *best = NULL;
    int         length = (int)strlen(word), least = FV_MIN(length / 3 + 2, length); /* another letter is not near to a letter */
    for (int i = 0; i < count; i++) {
        int d = distance(word, candidates[i]);
        if (d < least) {
            least = d;
            best = candidates[i];
        }
    }
    return best;
}

void fv_text_cut(const char *text, char *to, int size) {
    int length = (int)strlen(text);
    if (length < size) {
        memcpy(to, text, (size_t)length + 1);
        return;
    }
    for (length = size - 4; length > 0 && ((uint8_t)text[length] & 0xc0) == 0x80;) length--;
    memcpy(to, text, (size_t)length);
    memcpy(to + length, "...", 4);
}

static const char units[] = "KMGTPE";

void fv_size_format(int64_t bytes, char text[24]) {
    double size = (double)bytes;
    int    unit = -1;
    for (; size >= 1023.95 && unit + 1 < (int)strlen(units); unit++) size /= 1024; /* 1023.95 would round to 1024.0 */
    if (unit < 0 && bytes < 1024)
        snprintf(text, 24, "%lld B", (long long)bytes);
    else
        snprintf(text, 24, "%.1f %ciB", size, units[FV_MAX(unit, 0)]);
}

bool fv_size_parse(const char *text, int64_t *bytes) {
    char  *end;
    double size = strtod(text, &end);
    if (end == text || !(text[0] >= '0' && text[0] <= '9')) return false;
    while (*end == ' ') end++;
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL; /* either case */
    if (unit) {
        for (int i = 0; i <= unit - units; i++) size *= 1024;
        end++;
        if (*end == 'i') end++;
    }
    if (*end == 'B' || *end == 'b') end++;
    if (*end || !(size < 0x1p62)) return false;
    *bytes = (int64_t)size;
    return true;
}

bool fv_time_parse(const char *text, double *seconds) {
    static const char letters[] = "smhdw";
    static const int  sizes[] = { 1, 60, 3600, 86400, 604800 };
    char             *end;
    double            value = strtod(text, &end);
    const char       *unit = *end ? strchr(letters, *end) : NULL;
    if (end == text || !unit || end[1] || !(value >= 0)) return false;
    *seconds = value * sizes[unit - letters];
    return true;
}

static int columns(const char *text, int bytes) { /* characters of UTF-8 */
    int n = 0;
    for (int i = 0; i < bytes; i++) n += ((uint8_t)text[i] & 0xc0) != 0x80;
    return n;
}

char *fv_text_wrap(const char *text, int indent, int width) {
    fv_bytes out = { 0 };
    int      column = indent;
    for (const char *p = text + strspn(text, " "); *p;) {
        int  length = (int)strcspn(p, " \n"), wide = columns(p, length);
        bool full = column > indent && column + 1 + wide > width;
        if (*p == '\n' || full) {
            fv__bytes_printf(&out, p[*p == '\n'] == '\n' ? "\n" : "\n%*s", indent, ""); /* no blanks on an empty line */
            column = indent;
            p += *p == '\n';
        } else {
            if (column > indent) fv__bytes_append(&out, " ", 1);
            column += wide + (column > indent);
            char *word = fv__bytes_append(&out, p, (size_t)length);
            for (int i = 0; i < length; i++)
                if ((uint8_t)word[i] < 0x20 || word[i] == 0x7f) word[i] = '?';
            p += length;
        }
        p += strspn(p, " ");
    }
    fv__bytes_append(&out, "", 1);
    return (char *)out.data;
}
