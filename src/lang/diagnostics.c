/* Collects what is wrong with a pipeline text and shows it with the line and a caret. */
#include "lang/ast.h"
#include "lang/utf8.h"
#include <stdio.h>
#include <stdlib.h>

enum {
    MOST = 200,       /* a file of noise must not give a million errors */
    MOST_OF_LINE = 5, /* one that is shown; those behind it follow from these as a rule */
    LINE_SHOWN = 160, /* characters of a long line around the caret */
    BEFORE_CARET = 60,
};

void fv__diagnose(fv_diagnostics *diagnostics, fv_span span, const char *hint, const char *format, ...) {
    if (diagnostics->count == MOST) return;
    if (diagnostics->count == diagnostics->capacity) {
        diagnostics->capacity = FV_MAX(8, 2 * diagnostics->capacity);
        diagnostics->items = fv__realloc(diagnostics->items, (size_t)diagnostics->capacity * sizeof *diagnostics->items);
    }
    fv_bytes message = { 0 };
    va_list  arguments;
    va_start(arguments, format);
    fv__bytes_vprintf(&message, format, arguments);
    va_end(arguments);
    diagnostics->items[diagnostics->count++] =
        (fv_diagnostic){ .span = span, .message = (char *)message.data, .hint = hint ? fv__strdup(hint) : NULL };
}

void fv__diagnostics_take(fv_diagnostics *diagnostics, fv_diagnostics *from) {
    for (int i = 0; i < from->count; i++)
        fv__diagnose(diagnostics, from->items[i].span, from->items[i].hint, "%s", from->items[i].message);
    diagnostics->missing |= from->missing;
    fv__diagnostics_release(from);
}

void fv__diagnostics_release(fv_diagnostics *diagnostics) {
    for (int i = 0; i < diagnostics->count; i++) {
        free(diagnostics->items[i].message);
        free(diagnostics->items[i].hint);
    }
    free(diagnostics->items);
    *diagnostics = (fv_diagnostics){ 0 };
}

static int by_place(const void *a, const void *b) {
    const fv_diagnostic *x = *(const fv_diagnostic *const *)a, *y = *(const fv_diagnostic *const *)b;
    if (x->span.line != y->span.line) return x->span.line < y->span.line ? -1 : 1;
    if (x->span.column != y->span.column) return x->span.column < y->span.column ? -1 : 1;
    int order = strcmp(x->message, y->message);
    return order ? order : (x > y) - (x < y);
}

/* The characters of a line from column `first`, at most `count`; with `blank` each becomes a space (a tab stays), to put a
 * caret under. What could upset a terminal is shown as a question mark. Returns how many there were. */
static int put_characters(const char *line, int first, int count, bool blank, fv_bytes *out) {
    int column = 1, put = 0;
    for (const char *p = line; *p && *p != '\n' && put < count; column++) {
        bool valid;
        int  length = fv__utf8_length(p, &valid);
        bool control = length == 1 && ((uint8_t)*p < 0x20 || *p == 0x7f);
        bool hidden = length == 2 && (uint8_t)p[0] == 0xc2 && (uint8_t)p[1] < 0xa0;
        if (*p == '\r' && p[1] == '\n') break;
        if (column >= first) {
            put++;
            if (*p == '\t')
                fv__bytes_append(out, "\t", 1);
            else if (blank)
                fv__bytes_append(out, " ", 1);
            else if (!valid || control || hidden)
                fv__bytes_append(out, "?", 1);
            else
                fv__bytes_append(out, p, (size_t)length);
        }
        p += length;
    }
    return put;
}

static void format_line(const fv_span *span, const char *text, fv_bytes *out) {
    const char *line = text;
    for (int i = 1; i < span->line && line; i++) {
        line = strchr(line, '\n');
        if (line) line++;
    }
    if (!line) return;
    if (span->line == 1 && !strncmp(line, "\xef\xbb\xbf", 3)) line += 3; /* a byte order mark is no column */
    bool     cut = span->column > LINE_SHOWN - BEFORE_CARET;
    int      first = cut ? span->column - BEFORE_CARET : 1;
    fv_bytes rest = { 0 };
    int      width = snprintf(NULL, 0, "%d", span->line);

    fv__bytes_printf(out, "  %d | %s", span->line, cut ? "..." : "");
    put_characters(line, first, LINE_SHOWN, false, out);
    bool more = put_characters(line, first + LINE_SHOWN, 1, false, &rest) > 0;
    fv__bytes_printf(out, "%s\n  %*s | %s", more ? "..." : "", width, "", cut ? "   " : "");
    put_characters(line, first, span->column - first, true, out);
    fv__bytes_clear(&rest);
    int shown = put_characters(line, span->column, FV_MIN(span->length, first + LINE_SHOWN - span->column), true, &rest);
    fv__bytes_printf(out, "^");
    for (int i = 1; i < shown; i++) fv__bytes_printf(out, "~");
    fv__bytes_printf(out, "\n");
    fv__bytes_release(&rest);
}

static void say_hidden(int count, fv_bytes *out) {
    if (count) fv__bytes_printf(out, "  %d more in this line\n", count);
}

void fv__diagnostics_format(const fv_diagnostics *diagnostics, const char *file, const char *text, fv_bytes *out) {
    int                   count = diagnostics->count;
    const fv_diagnostic **sorted = fv__alloc((size_t)FV_MAX(count, 1) * sizeof *sorted);
    for (int i = 0; i < count; i++) sorted[i] = &diagnostics->items[i];
    qsort(sorted, (size_t)count, sizeof *sorted, by_place);
    int shown = 0, hidden = 0; /* of a line */
    for (int i = 0; i < count; i++) {
        const fv_diagnostic *d = sorted[i], *before = i ? sorted[i - 1] : NULL;
        bool                 same_line = before && before->span.line == d->span.line;
        if (same_line && before->span.column == d->span.column && !strcmp(before->message, d->message)) continue;
        if (!same_line) {
            say_hidden(hidden, out);
            shown = hidden = 0;
        }
        if (shown++ >= MOST_OF_LINE) {
            hidden++;
            continue;
        }
        fv__bytes_printf(out, "%s:%d:%d: error: %s\n", file, d->span.line, d->span.column, d->message);
        format_line(&d->span, text, out);
        if (d->hint) fv__bytes_printf(out, "  hint: %s\n", d->hint);
    }
    say_hidden(hidden, out);
    if (count == MOST) fv__bytes_printf(out, "%s: too many errors; only the first %d are shown\n", file, MOST);
    free(sorted);
}
