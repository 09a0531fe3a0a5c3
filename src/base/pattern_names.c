/* Names in patterns of files. */
#include "base/pattern_names.h"
#include <ctype.h>
#include <stdlib.h>

bool fv__pattern_name(const char *p, const char *end, fv_pattern_name *name) {
    if (p >= end || *p != '{' || !(isalpha((unsigned char)p[1]) || p[1] == '_')) return false;
    *name = (fv_pattern_name){ .open = p, .word = p + 1 };
    for (p++; p < end && (isalnum((unsigned char)*p) || *p == '_');) p++;
    if (p < end && *p == '=') {
        name->value = ++p;
        for (; p < end && *p != '}' && *p != ',' && *p != '/'; p++)
            if (*p == '\\' && p + 1 < end) p++;
        name->value_end = p;
    }
    name->end = p + 1;
    return p < end && *p == '}';
}

bool fv__pattern_name_next(const char *p, fv_pattern_name *name) {
    const char *end = p + strlen(p);
    for (; *p; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (fv__pattern_name(p, end, name))
            return true;
    }
    return false;
}

bool fv__pattern_has_names(const char *pattern) {
    fv_pattern_name name;
    for (const char *p = pattern; fv__pattern_name_next(p, &name); p = name.end)
        if (!name.value) return true;
    return false;
}

static size_t word_length(const fv_pattern_name *name) {
    return (size_t)((name->value ? name->value - 1 : name->end - 1) - name->word);
}

static bool same_word(const fv_pattern_name *a, const fv_pattern_name *b) {
    return word_length(a) == word_length(b) && !memcmp(a->word, b->word, word_length(a));
}

static void put_value(const fv_pattern_name *name, fv_bytes *out) {
    for (const char *p = name->value; p < name->value_end; p++) {
        if (*p == '\\' && p + 1 < name->value_end) p++;
        fv__bytes_append(out, p, 1);
    }
}

static bool is_value(const fv_pattern_name *name, const char *text) {
    fv_bytes value = { 0 };
    put_value(name, &value);
    bool same = strlen(text) == value.size && (!value.size || !memcmp(text, value.data, value.size));
    fv__bytes_release(&value);
    return same;
}

bool fv__pattern_values_fit(const char *pattern, char *const *values, int count) {
    fv_pattern_name name, other;
    int             i = 0, k;
    for (const char *p = pattern; i < count && fv__pattern_name_next(p, &name); p = name.end, i++) {
        if (name.value && !is_value(&name, values[i])) return false;
        k = 0;
        for (const char *q = pattern; k < i && fv__pattern_name_next(q, &other); q = other.end, k++)
            if (same_word(&name, &other) && strcmp(values[i], values[k])) return false;
    }
    return true;
}

char *fv__pattern_with(const char *pattern, char *const *values, int count) {
    fv_pattern_name name;
    fv_bytes        out = { 0 };
    const char     *p = pattern;
    for (int i = 0; i < count && fv__pattern_name_next(p, &name); p = name.end, i++) {
        fv__bytes_append(&out, p, (size_t)(name.word + word_length(&name) - p));
        fv__bytes_append(&out, "=", 1);
        for (const char *v = values[i]; *v; v++) {
            if (strchr("\\{},*?[]", *v)) fv__bytes_append(&out, "\\", 1);
            fv__bytes_append(&out, v, 1);
        }
        fv__bytes_append(&out, "}", 1);
    }
    fv__bytes_append(&out, p, strlen(p) + 1);
    return (char *)out.data;
}

bool fv__pattern_value(const char *pattern, const char *word, fv_bytes *out) {
    fv_pattern_name name, other;
    bool            found = false;
    for (const char *p = pattern; fv__pattern_name_next(p, &name); p = name.end) {
        bool wanted = name.value && (!word || (word_length(&name) == strlen(word) && !strncmp(name.word, word, strlen(word))));
        for (const char *q = pattern; wanted && q < name.open && fv__pattern_name_next(q, &other) && other.open < name.open;
             q = other.end)
            wanted = !same_word(&name, &other); /* once is enough */
        if (!wanted) continue;
        if (found) fv__bytes_append(out, "_", 1);
        put_value(&name, out);
        found = true;
    }
    return found;
}

char *fv__pattern_filled(const char *pattern) {
    fv_pattern_name name;
    fv_bytes        out = { 0 };
    const char     *p = pattern;
    for (; fv__pattern_name_next(p, &name); p = name.end) {
        fv__bytes_append(&out, p, (size_t)(name.open - p));
        if (name.value)
            put_value(&name, &out);
        else
            fv__bytes_append(&out, name.open, (size_t)(name.end - name.open));
    }
    fv__bytes_append(&out, p, strlen(p) + 1);
    return (char *)out.data;
}
