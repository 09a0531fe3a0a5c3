/* Tags of XML; see xml_tags.h. */
#include "formats/xml_tags.h"
#include <ctype.h>

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

bool fv_xml_next(fv_xml_tag *tag, const char *limit) {
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

bool fv_xml_is(const fv_xml_tag *tag, const char *name) {
    size_t n = (size_t)(tag->name_end - tag->name);
    return strlen(name) == n && !memcmp(tag->name, name, n);
}

bool fv_xml_attribute(const fv_xml_tag *tag, const char *name, char *value, size_t size) {
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
