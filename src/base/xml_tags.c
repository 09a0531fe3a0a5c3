/* Tags of XML; see xml_tags.h. */
#include "base/xml_tags.h"
#include "base/file.h"
#include <ctype.h>
#include <stdlib.h>

enum { WINDOW = 1 << 16 };

/* Behind the bracket that closes what begins here; brackets in quotes do not count. NULL: none before the limit. */
static const char *tag_end(const char *at, const char *limit) {
    char quote = 0;
    for (; at < limit; at++)
        if (quote)
            quote = *at == quote ? 0 : quote;
        else if (*at == '"' || *at == '\'')
            quote = *at;
        else if (*at == '>')
            return at + 1;
    return NULL;
}

bool fv__xml_next(fv_xml_tag *tag, const char *limit) {
    for (const char *at = tag->end; at && at < limit;) {
        at = memchr(at, '<', (size_t)(limit - at));
        if (!at) return false;
        if (limit - at > 3 && !memcmp(at, "<!--", 4)) {
            const char *end = memmem(at, (size_t)(limit - at), "-->", 3);
            at = end ? end + 3 : NULL;
            continue;
        }
        const char *end = tag_end(at, limit);
        if (!end) return false;
        bool declaration = at[1] == '?' || at[1] == '!';
        if (!declaration) {
            tag->name = tag->name_end = at + 1;
            while (tag->name_end < end && (isalnum((unsigned char)*tag->name_end) || strchr("/_:-.", *tag->name_end)) &&
                   !(*tag->name_end == '/' && tag->name_end != tag->name))
                tag->name_end++;
            tag->end = end;
            return true;
        }
        at = end;
    }
    return false;
}

bool fv__xml_is(const fv_xml_tag *tag, const char *name) {
    size_t n = (size_t)(tag->name_end - tag->name);
    return strlen(name) == n && !memcmp(tag->name, name, n);
}

bool fv__xml_attribute(const fv_xml_tag *tag, const char *name, char *value, size_t size) {
    const char *at = tag->name_end;
    while (at < tag->end) {
        while (at < tag->end && (isspace((unsigned char)*at) || *at == '/')) at++;
        const char *word = at;
        while (at < tag->end && !isspace((unsigned char)*at) && *at != '=' && *at != '>') at++;
        size_t length = (size_t)(at - word);
        while (at < tag->end && isspace((unsigned char)*at)) at++;
        if (at >= tag->end || *at != '=') return false;
        for (at++; at < tag->end && isspace((unsigned char)*at);) at++;
        if (at >= tag->end || (*at != '"' && *at != '\'')) return false;
        const char *start = at + 1, *close = memchr(start, *at, (size_t)(tag->end - start));
        if (!close) return false;
        size_t n = (size_t)(close - start);
        if (length == strlen(name) && !memcmp(word, name, length)) {
            if (n >= size) return false;
            memcpy(value, start, n);
            value[n] = 0;
            return true;
        }
        at = close + 1;
    }
    return false;
}

/* ---------------------------------------------------------------- tags of a file */

void fv__xml_file_init(fv_xml_file *file, int fd, const char *path, int64_t size) {
    *file = (fv_xml_file){ .fd = fd, .path = path, .size = size, .text = fv__alloc(WINDOW) };
    file->tag.end = file->text;
}

void fv__xml_file_release(fv_xml_file *file) { free(file->text); }

/* Moves the window to where the next tag may begin. */
static fv_status move_on(fv_xml_file *file, fv_error *error) {
    const char *limit = file->text + file->held, *kept = memchr(file->tag.end, '<', (size_t)(limit - file->tag.end));
    if (!kept) kept = limit;
    if (kept == file->text && file->held == WINDOW)
        return fv_fail(error, FV_ERROR_INPUT, "%s: its XML has a tag of more than %d bytes", file->path, WINDOW);
    size_t left = (size_t)(limit - kept), more;
    memmove(file->text, kept, left);
    file->start += kept - file->text;
    more = (size_t)FV_MIN((int64_t)(WINDOW - left), file->size - file->start - (int64_t)left);
    file->held = left + more;
    file->tag.end = file->text;
    return fv__file_read_at(file->fd, file->text + left, more, file->start + (int64_t)left, file->path, error);
}

fv_status fv__xml_file_next(fv_xml_file *file, bool *found, fv_error *error) {
    for (;;) {
        *found = fv__xml_next(&file->tag, file->text + file->held);
        if (*found || file->start + (int64_t)file->held >= file->size) return FV_OK;
        FV_TRY(move_on(file, error));
    }
}

int64_t fv__xml_file_offset(const fv_xml_file *file) { return file->start + (file->tag.end - file->text); }

/* ---------------------------------------------------------------- names of characters */

static const struct {
    char        character;
    const char *name;
} named[] = { { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&quot;" }, { '\'', "&apos;" } };

char *fv__xml_escaped(const char *text) {
    fv_bytes out = { 0 };
    for (; *text; text++) {
        const char *name = NULL;
        for (int i = 0; i < FV_COUNT(named); i++)
            if (named[i].character == *text) name = named[i].name;
        fv__bytes_append(&out, name ? name : text, name ? strlen(name) : 1);
    }
    fv__bytes_append(&out, "", 1);
    return (char *)out.data;
}

void fv__xml_unescape(char *text) {
    char *to = text;
    for (const char *from = text; *from; to++) {
        size_t length = 1;
        *to = *from;
        for (int i = 0; i < FV_COUNT(named); i++)
            if (!strncmp(from, named[i].name, strlen(named[i].name))) {
                *to = named[i].character;
                length = strlen(named[i].name);
            }
        from += length;
    }
    *to = 0;
}
