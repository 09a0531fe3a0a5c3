/* Targets of requests. */
#include "view/view_query.h"
#include "base/base.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

static int digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* In place; false: an escape that is none, or one of a control character. */
static bool unescape(char *text, bool plus) {
    char *to = text;
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '%') {
            int high = digit(p[1]), low = high < 0 ? -1 : digit(p[2]);
            if (low < 0) return false;
            c = (unsigned char)(high << 4 | low);
            p += 2;
        } else if (c == '+' && plus)
            c = ' ';
        if (c < 0x20 || c == 0x7f) return false;
        *to++ = (char)c;
    }
    *to = 0;
    return true;
}

static bool is_utf8(const char *text) {
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        int more = *p < 0x80 ? 0 : *p >= 0xc2 && *p < 0xe0 ? 1 : *p >= 0xe0 && *p < 0xf0 ? 2 : *p >= 0xf0 && *p < 0xf5 ? 3 : -1;
        uint32_t point = more == 1 ? *p & 0x1f : more == 2 ? *p & 0x0f : *p & 0x07;
        if (more < 0) return false;
        for (int i = 1; i <= more; i++) {
            if ((p[i] & 0xc0) != 0x80) return false;
            point = point << 6 | (p[i] & 0x3f);
        }
        if (more == 2 && (point < 0x800 || (point >= 0xd800 && point < 0xe000))) return false;
        if (more == 3 && (point < 0x10000 || point > 0x10ffff)) return false;
        p += more + 1;
    }
    return true;
}

static bool good_path(const char *path) {
    return path[0] == '/' && !strstr(path, "//") && !strstr(path, "/..") && !strchr(path, '\\') && is_utf8(path);
}

bool fv_view_query_parse(fv_view_query *q, const char *target) {
    *q = (fv_view_query){ .text = fv__strdup(target) };
    char *rest = strchr(q->text, '?');
    if (rest) *rest++ = 0;
    q->path = q->text;
    if (strchr(target, '#') || !unescape(q->path, false) || !good_path(q->path)) return false;
    for (char *part; rest && (part = strsep(&rest, "&"));) {
        char *value = strchr(part, '=');
        if (!*part) continue;
        if (value) *value++ = 0;
        if (q->count == FV_VIEW_MOST_FIELDS || !unescape(part, true) || !is_utf8(part)) return false;
        if (value && (!unescape(value, true) || !is_utf8(value))) return false;
        q->field[q->count].name = part;
        q->field[q->count++].value = value ? value : "";
    }
    return true;
}

void fv_view_query_release(fv_view_query *q) { free(q->text); }

const char *fv_view_query_next(const fv_view_query *q, const char *name, int *at) {
    while (*at < q->count) {
        int i = (*at)++;
        if (!strcmp(q->field[i].name, name)) return q->field[i].value;
    }
    return NULL;
}

const char *fv_view_query_text(const fv_view_query *q, const char *name) { return fv_view_query_next(q, name, &(int){ 0 }); }

bool fv_view_query_integer(const fv_view_query *q, const char *name, int64_t least, int64_t most, int64_t def, int64_t *value) {
    const char *text = fv_view_query_text(q, name);
    char       *end;
    *value = def;
    if (!text || !*text) return !text;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (*end || errno || text[0] == ' ' || number < least || number > most) return false;
    *value = number;
    return true;
}

bool fv_view_query_number(const fv_view_query *q, const char *name, double def, double *value) {
    const char *text = fv_view_query_text(q, name);
    char       *end;
    *value = def;
    if (!text || !*text) return !text;
    double number = strtod(text, &end);
    if (*end || !isfinite(number) || text[0] == ' ') return false;
    *value = number;
    return true;
}
