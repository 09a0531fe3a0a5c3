/* Numbers and their nouns in messages; see agreement.h. The format is rewritten where the number before a noun is 1. */
#include "base/agreement.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define S(noun)                                                                                                                  \
    { noun "s", noun }
static const char *const words[][2] = {
    /* what messages count */
    S("angle"),
    S("argument"),
    S("byte"),
    S("channel"),
    S("character"),
    S("chunk"),
    S("colour"),
    S("column"),
    S("combination"),
    S("device"),
    S("file"),
    S("group"),
    S("image"),
    S("item"),
    S("iteration"),
    S("label"),
    S("number"),
    S("operator"),
    S("piece"),
    S("projection"),
    S("rank"),
    S("region"),
    S("row"),
    S("run"),
    S("sample"),
    S("size"),
    S("slice"),
    S("step"),
    S("task"),
    S("value"),
    S("voxel"),
    S("worker"),
    { "axes", "axis" },
    { "spatial axes", "spatial axis" },
    { "indices", "index" },
    { "separate runs", "separate run" },
};
#undef S
static const char *const verbs[][2] = { { " are ", " is " }, { " have ", " has " }, { " were ", " was " } };

enum { LONGEST = 1024 };

typedef struct {
    const char *from; /* the rest of the format */
    char        to[LONGEST];
    size_t      used;
    bool        changed;
} rewriting;

static void put(rewriting *r, const char *text, size_t length) {
    if (r->used + length < LONGEST) memcpy(r->to + r->used, text, length);
    r->used += length;
}

static bool replace(rewriting *r, const char *many, const char *one) {
    size_t length = strlen(many);
    if (strncmp(r->from, many, length)) return false;
    put(r, one, strlen(one));
    r->from += length;
    return r->changed = true;
}

/* Behind a number that is 1. */
static void put_one(rewriting *r) {
    if (*r->from != ' ') return;
    const char *noun = r->from + 1;
    size_t      length = strcspn(noun, " ;:,.()%\n");
    if (!strncmp(noun, "spatial ", 8) || !strncmp(noun, "separate ", 9)) length += 1 + strcspn(noun + length + 1, " ;:,.()%\n");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i][0]) != length || strncmp(noun, words[i][0], length)) continue;
        put(r, r->from++, 1);
        replace(r, words[i][0], words[i][1]);
        for (size_t v = 0; v < sizeof verbs / sizeof *verbs; v++)
            if (replace(r, verbs[v][0], verbs[v][1])) break;
        return;
    }
}

/* Copies a conversion and passes over its argument; false: a kind that messages do not use. *one: the argument is the number 1.
 */
static bool convert(rewriting *r, va_list *arguments, bool *one) {
    const char *start = r->from++;
    int         longs = 0;
    bool        size = false;
    *one = false;
    for (; strchr("-+ #0123456789.*", *r->from) && *r->from; r->from++)
        if (*r->from == '*') (void)va_arg(*arguments, int);
    for (; *r->from == 'l'; r->from++) longs++;
    if (*r->from == 'z') size = r->from++;
    char kind = *r->from ? *r->from++ : 0;
    put(r, start, (size_t)(r->from - start));
    if (kind == '%') return true;
    if (kind == 'd' || kind == 'u')
        *one = size         ? va_arg(*arguments, size_t) == 1
               : longs == 2 ? va_arg(*arguments, long long) == 1
               : longs == 1 ? va_arg(*arguments, long) == 1
                            : va_arg(*arguments, int) == 1;
    else if (kind == 'x' && !longs && !size)
        (void)va_arg(*arguments, unsigned);
    else if (kind == 'c')
        (void)va_arg(*arguments, int);
    else if (kind == 's' || kind == 'p')
        (void)va_arg(*arguments, void *);
    else if (kind == 'g' || kind == 'f' || kind == 'e')
        (void)va_arg(*arguments, double);
    else
        return false;
    return true;
}

static bool rewrite(rewriting *r, va_list *arguments) {
    while (*r->from) {
        bool   one;
        size_t plain = strcspn(r->from, "%");
        put(r, r->from, plain);
        r->from += plain;
        if (!*r->from) break;
        if (!convert(r, arguments, &one)) return false;
        if (one) put_one(r);
    }
    if (r->used < LONGEST) r->to[r->used] = 0;
    return r->changed && r->used < LONGEST;
}

int fv__vsnprintf(char *text, size_t size, const char *format, va_list arguments) {
    rewriting r = { .from = format };
    va_list   looked_at;
    va_copy(looked_at, arguments);
    bool other = rewrite(&r, &looked_at);
    va_end(looked_at);
    return vsnprintf(text, size, other ? r.to : format, arguments);
}
