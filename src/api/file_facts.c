/* Facts of files; see facts.h. */
#include "api/file_facts.h"
#include "api/paragraph.h"
#include <stdlib.h>

enum { MOST_FACT = 300 };

/* Takes one "name: value" line off the facts; false at the end. Both are the caller's buffers. */
static bool next_fact(const char **p, fv_bytes *name, fv_bytes *value) {
    while (**p == '\n') (*p)++;
    if (!**p) return false;
    const char *end = strchrnul(*p, '\n'), *colon = memchr(*p, ':', (size_t)(end - *p));
    const char *start = colon ? colon + 1 : *p;
    while (start < end && *start == ' ') start++;
    fv__bytes_clear(name);
    fv__bytes_clear(value);
    fv__bytes_printf(name, "%.*s", colon ? (int)(colon - *p) : 0, *p);
    fv__bytes_printf(value, "%.*s", (int)(end - start), start);
    *p = end;
    return true;
}

static char *lines_text(const fv_bytes *lines) {
    return fv__sprintf("%.*s", (int)lines->size, lines->data ? (char *)lines->data : "");
}

int fv__facts_width(const fv_bytes *facts, int most) {
    char    *lines = lines_text(facts);
    int      width = 8;
    fv_bytes name = { 0 }, value = { 0 };
    for (const char *p = lines; next_fact(&p, &name, &value);) width = FV_MAX(width, FV_MIN((int)name.size, most));
    fv__bytes_release(&name);
    fv__bytes_release(&value);
    free(lines);
    return width;
}

void fv__put_facts(const fv_bytes *facts, int width, fv_bytes *out) {
    char    *lines = lines_text(facts);
    fv_bytes name = { 0 }, value = { 0 };
    for (const char *p = lines; next_fact(&p, &name, &value);) {
        if (value.size > MOST_FACT) { /* whole descriptions in XML are for programs */
            value.size = MOST_FACT;
            while (value.size && (value.data[value.size] & 0xc0) == 0x80) value.size--;
            fv__bytes_printf(&value, "...");
        }
        fv__put_entry(out, (char *)name.data, width, (char *)value.data);
    }
    fv__bytes_release(&name);
    fv__bytes_release(&value);
    free(lines);
}

cJSON *fv__facts_json(const fv_bytes *facts) {
    char    *lines = lines_text(facts);
    cJSON   *json = cJSON_CreateObject();
    fv_bytes name = { 0 }, value = { 0 };
    for (const char *p = lines; next_fact(&p, &name, &value);)
        cJSON_AddStringToObject(json, (char *)name.data, (char *)value.data);
    fv__bytes_release(&name);
    fv__bytes_release(&value);
    free(lines);
    return json;
}
