/* Pairing of files by the part of their names that the wildcards stand for. */
#include "graph/pairs.h"
#include <ctype.h>
#include <stdlib.h>

enum { SHOWN = 5, MOST_WILDCARDS = 12 };

typedef struct keyed {
    char   *key;
    int64_t index;
} keyed;

typedef struct side {
    const char       *pattern;
    const fv_matches *matches;
    keyed            *keys; /* sorted */
} side;

static int by_key(const void *a, const void *b) {
    const keyed *x = a, *y = b;
    int          order = fv__natural_order(x->key, y->key);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* The texts of some wildcards (bits of `chosen`) of every file. */
static void make_keys(side *s, unsigned chosen, fv_arena *arena) {
    s->keys = fv__arena_alloc(arena, (size_t)(s->matches->count + 1) * sizeof *s->keys);
    for (int64_t i = 0; i < s->matches->count; i++) {
        const fv_matched *match = &s->matches->match[i];
        fv_bytes          key = { 0 };
        for (int k = 0; k < s->matches->wildcards; k++)
            if (chosen >> k & 1) fv__bytes_printf(&key, "%s\n", k < match->ntexts ? match->texts[k] : "");
        s->keys[i] = (keyed){ fv__arena_strndup(arena, key.data ? (char *)key.data : "", key.size), i };
        fv__bytes_release(&key);
    }
    qsort(s->keys, (size_t)s->matches->count, sizeof *s->keys, by_key);
}

static bool repeated(const side *s, int64_t i) { return i > 0 && !strcmp(s->keys[i].key, s->keys[i - 1].key); }

/* Calls back for every file without a partner of its own; gives the number of pairs. */
static int64_t compare(const side *a, const side *b, void (*alone)(void *context, const side *s, int64_t key), void *context) {
    int64_t i = 0, k = 0, pairs = 0;
    while (i < a->matches->count || k < b->matches->count) {
        int order = i == a->matches->count ? 1 : k == b->matches->count ? -1 : fv__natural_order(a->keys[i].key, b->keys[k].key);
        if (!order) {
            pairs++;
            i++;
            k++;
        } else if (alone)
            alone(context, order < 0 ? a : b, order < 0 ? i++ : k++);
        else if (order < 0)
            i++;
        else
            k++;
    }
    return pairs;
}

static int bits(unsigned set) { return __builtin_popcount(set); }

/* ---------------------------------------------------------------- why not */

typedef struct report {
    fv_bytes    lines[2];
    int64_t     counts[2];
    const side *first;
} report;

static void report_alone(void *context, const side *s, int64_t key) {
    report *r = context;
    int     which = s != r->first;
    if (++r->counts[which] <= SHOWN)
        fv__bytes_printf(&r->lines[which], "%s%s%s", r->lines[which].size ? ", " : "", s->matches->match[s->keys[key].index].path,
                         repeated(s, key) ? " (by another of the same name)" : "");
}

/* What all texts of the only wildcard begin and end with, not cut inside a number. */
static void common_ends(const fv_matches *m, size_t *before, size_t *behind) {
    const char *first = m->match[0].ntexts ? m->match[0].texts[0] : "";
    size_t      length = strlen(first);
    *before = *behind = length;
    for (int64_t i = 1; i < m->count; i++) {
        const char *text = m->match[i].ntexts ? m->match[i].texts[0] : "";
        size_t      own = strlen(text), n = 0, e = 0;
        while (n < *before && n < own && text[n] == first[n]) n++;
        *before = n;
        while (e < *behind && e < own && text[own - 1 - e] == first[length - 1 - e]) e++;
        *behind = e;
    }
    while (*before && isdigit((unsigned char)first[*before - 1])) --*before;
    while (*behind && isdigit((unsigned char)first[length - *behind])) --*behind;
}

static bool one_star(const char *pattern) {
    const char *star = strchr(pattern, '*');
    return star && !strpbrk(star + 1, "*?[{") && !strpbrk(pattern, "?[{\\");
}

/* The pattern with the common ends of the texts written into it. */
static char *narrowed(const side *s, size_t before, size_t behind) {
    const char *text = s->matches->match[0].texts[0], *star = strchr(s->pattern, '*');
    return fv__sprintf("%.*s%.*s*%s%s", (int)(star - s->pattern), s->pattern, (int)before, text, text + strlen(text) - behind,
                       star + 1);
}

/* dapi/exp1_dapi_*.tif: patterns that would fit, where all names of a side have a word in them that those of the other have not.
 */
static void suggest(const side *a, const side *b, fv_bytes *why) {
    const side *sides[2] = { a, b };
    size_t      before[2], behind[2];
    fv_matches  cut[2];
    fv_arena    arena = { 0 };
    if (a->matches->count != b->matches->count || a->matches->count < 2 || !one_star(a->pattern) || !one_star(b->pattern)) return;
    for (int s = 0; s < 2; s++) {
        const fv_matches *m = sides[s]->matches;
        common_ends(m, &before[s], &behind[s]);
        cut[s] = (fv_matches){ .count = m->count,
                               .wildcards = 1,
                               .match = fv__arena_alloc(&arena, (size_t)m->count * sizeof *m->match) };
        for (int64_t i = 0; i < m->count; i++) {
            const char *text = m->match[i].texts[0];
            size_t      length = strlen(text), ends = FV_MIN(before[s] + behind[s], length);
            cut[s].match[i] = (fv_matched){ .texts = fv__arena_alloc(&arena, sizeof(char *)), .ntexts = 1 };
            cut[s].match[i].texts[0] = fv__arena_strndup(&arena, text + FV_MIN(before[s], length), length - ends);
        }
    }
    side x = { a->pattern, &cut[0], NULL }, y = { b->pattern, &cut[1], NULL };
    make_keys(&x, 1, &arena);
    make_keys(&y, 1, &arena);
    if (compare(&x, &y, NULL, NULL) == x.matches->count) {
        char *first = narrowed(a, before[0], behind[0]), *second = narrowed(b, before[1], behind[1]);
        fv__bytes_printf(why, "\n  to pair them by the rest of their names: \"%s\" and \"%s\"", first, second);
        free(first);
        free(second);
    }
    fv__arena_release(&arena);
}

static void explain(const side *a, const side *b, fv_bytes *why) {
    report      r = { .first = a };
    const side *sides[2] = { a, b };
    compare(a, b, report_alone, &r);
    for (int s = 0; s < 2; s++) {
        if (!r.counts[s]) continue;
        fv__bytes_printf(why, "%swithout a partner in \"%s\": %s", why->size ? "\n  " : "", sides[!s]->pattern,
                         (char *)r.lines[s].data);
        if (r.counts[s] > SHOWN) fv__bytes_printf(why, " and %lld more", (long long)(r.counts[s] - SHOWN));
        fv__bytes_release(&r.lines[s]);
    }
    suggest(a, b, why);
}

/* ---------------------------------------------------------------- pairing */

static void reorder(const side *first, side *other, fv_matches *matches) {
    fv_matched *sorted = fv__alloc((size_t)matches->count * sizeof *sorted);
    for (int64_t i = 0; i < matches->count; i++) sorted[first->keys[i].index] = matches->match[other->keys[i].index];
    free(matches->match);
    matches->match = sorted;
}

bool fv__pair(const char *pattern, const fv_matches *first, const char *other_pattern, fv_matches *other, fv_bytes *why) {
    int      n = first->wildcards, m = other->wildcards, least = FV_MIN(n, m), most = FV_MAX(n, m);
    side     a = { pattern, first, NULL }, b = { other_pattern, other, NULL };
    fv_arena arena = { 0 };
    unsigned all = least ? ~0u >> (32 - least) : 0, best = 0;
    int64_t  best_pairs = -1;
    bool     fits = false;
    if (most > MOST_WILDCARDS) least = most; /* too many to look for a part of them */
    /* Of the pattern with more wildcards, those at the end come first: the file's name tells more than its folders. */
    for (unsigned chosen = most ? ~0u >> (32 - most) : 0;; chosen--) {
        if (bits(chosen) == least) {
            make_keys(&a, n == most ? chosen : all, &arena);
            make_keys(&b, n == most ? all : chosen, &arena);
            bool unique = true;
            for (int64_t i = 1; i < first->count && unique; i++) unique = !repeated(&a, i);
            int64_t pairs = compare(&a, &b, NULL, NULL);
            fits = unique && pairs == first->count && pairs == other->count;
            if (fits) break;
            if (pairs > best_pairs) {
                best_pairs = pairs;
                best = chosen;
            }
        }
        if (!chosen || least == most) break;
    }
    if (fits)
        reorder(&a, &b, other);
    else {
        make_keys(&a, n == most ? best : all, &arena);
        make_keys(&b, n == most ? all : best, &arena);
        explain(&a, &b, why);
    }
    fv__arena_release(&arena);
    return fits;
}
