/* Patterns of file names. Braces are written out first; then folders are walked, part by part of the path. Written
 * out here, because glob() knows neither ** nor which text a wildcard stands for. */
#include "base/file_pattern.h"
#include "base/file.h"
#include "base/pattern_names.h"
#include "base/remote.h"
#include "base/take.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <wctype.h>

/* Where braces were written out, the text between these two is what they stand for. */
enum { OPEN = 1, CLOSE = 2, MOST_TEXTS = 32 };

/* ---------------------------------------------------------------- order */

/* Numbers by value, leading zeros aside; moves behind both. */
static int compare_numbers(const char **a, const char **b) {
    while (**a == '0') ++*a;
    while (**b == '0') ++*b;
    size_t n = strspn(*a, "0123456789"), m = strspn(*b, "0123456789");
    int    order = n != m ? (n < m ? -1 : 1) : strncmp(*a, *b, n);
    *a += n;
    *b += m;
    return order;
}

int fv__natural_order(const char *a, const char *b) {
    const char *p = a, *q = b;
    while (*p && *q) {
        if (isdigit((unsigned char)*p) && isdigit((unsigned char)*q)) {
            int order = compare_numbers(&p, &q);
            if (order) return order;
        } else if (*p != *q) {
            if (*p == '/' || *q == '/') return *p == '/' ? -1 : 1;
            return (unsigned char)*p < (unsigned char)*q ? -1 : 1;
        } else {
            p++;
            q++;
        }
    }
    if (*p || *q) return *p ? 1 : -1;
    return strcmp(a, b);
}

/* ---------------------------------------------------------------- one name */

typedef struct text {
    const char *start, *end;
} text;

typedef struct captures { /* what the wildcards of one name stand for */
    text found[MOST_TEXTS];
    int  count;
    text value[MOST_TEXTS]; /* of names */
    int  nvalues;
    bool open;   /* the last one may go on */
    int  inside; /* braces: everything is one text */
} captures;

static uint32_t character(const char *p, const char **next) {
    const unsigned char *s = (const unsigned char *)p;
    int                  more = *s >= 0xf0 ? 3 : *s >= 0xe0 ? 2 : *s >= 0xc0 ? 1 : 0;
    uint32_t             code = more ? *s & (0x3fu >> more) : *s;
    for (int i = 1; i <= more; i++) {
        if ((s[i] & 0xc0) != 0x80) { /* no UTF-8: a byte is a character */
            *next = p + 1;
            return *s;
        }
        code = code << 6 | (s[i] & 0x3f);
    }
    *next = p + 1 + more;
    return code;
}

static uint32_t folded(uint32_t code, bool fold) { return fold && code < 128 ? (uint32_t)tolower((int)code) : code; }

static uint32_t other_case(uint32_t code) {
    if (code >= 128) return code;
    return (uint32_t)(isupper((int)code) ? tolower((int)code) : toupper((int)code));
}

/* The end of a class "[...]" that begins at p; NULL: it is an ordinary bracket. */
static const char *class_end(const char *p) {
    const char *q = p + 1 + (p[1] == '!' || p[1] == '^');
    if (*q == ']') q++;
    for (; *q && *q != '/'; q++) {
        if (*q == '[' && q[1] == ':') {
            const char *end = strstr(q + 2, ":]");
            if (end) q = end + 1;
        } else if (*q == ']')
            return q + 1;
    }
    return NULL;
}

static bool in_class(const char *p, const char *end, uint32_t code) {
    bool negated = p[1] == '!' || p[1] == '^', found = false;
    for (p += 1 + negated; p < end - 1;) {
        if (*p == '[' && p[1] == ':') {
            const char *close = strstr(p + 2, ":]");
            char        name[16] = "";
            if (close && close < end && close - p - 2 < (long)sizeof name) {
                memcpy(name, p + 2, (size_t)(close - p - 2));
                found = found || iswctype((wint_t)code, wctype(name));
                p = close + 2;
                continue;
            }
        }
        uint32_t low = character(p, &p), high = low;
        if (*p == '-' && p + 1 < end - 1) high = character(p + 1, &p);
        found = found || (code >= low && code <= high);
    }
    return found != negated;
}

static void note(captures *c, const char *start, const char *end) {
    if (c->open)
        c->found[c->count - 1].end = end;
    else if (c->count < MOST_TEXTS)
        c->found[c->count++] = (text){ start, end };
    c->open = c->count > 0;
}

/* Whether a name (up to `stop`) matches one part of a pattern (up to `end`). */
static bool matches(const char *p, const char *end, const char *s, const char *stop, bool fold, captures *c) {
    while (p < end) {
        captures saved = *c;
        if (*p == OPEN || *p == CLOSE) {
            if (*p == OPEN) note(c, s, s);
            c->inside += *p++ == OPEN ? 1 : -1;
            continue;
        }
        fv_pattern_name name;
        bool            named = fv__pattern_name(p, end, &name);
        if (*p == '*' || named) {
            while (p < end && *p == '*') p++;
            if (named) p = name.end;
            for (const char *t = s;; character(t, &t)) {
                *c = saved;
                note(c, s, t);
                if (named && c->nvalues < MOST_TEXTS) c->value[c->nvalues++] = (text){ s, t };
                if (matches(p, end, t, stop, fold, c)) return true;
                if (t >= stop) return false;
            }
        }
        if (s >= stop) return false;
        const char *after = *p == '[' ? class_end(p) : NULL, *next;
        uint32_t    code = character(s, &next);
        if (*p == '?' || (after && after <= end)) {
            if (after && !in_class(p, after, code) && !(fold && in_class(p, after, other_case(code)))) return false;
            note(c, s, next);
            p = after ? after : p + 1;
        } else {
            if (*p == '\\' && p + 1 < end) p++;
            if (folded(character(p, &p), fold) != folded(code, fold)) return false;
            if (c->inside)
                note(c, s, next);
            else
                c->open = false;
        }
        s = next;
    }
    return s == stop;
}

/* ---------------------------------------------------------------- braces */

/* The matching } of a { with a comma at its level; NULL: it is an ordinary brace. */
static const char *brace_end(const char *p, bool *slash) {
    int  depth = 0;
    bool comma = false;
    *slash = false;
    for (; *p; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (*p == '{')
            depth++;
        else if (*p == ',' && depth == 1)
            comma = true;
        else if (*p == '/')
            *slash = true;
        else if (*p == '}' && !--depth)
            return comma ? p : NULL;
    }
    return NULL;
}

static const char *first_brace(const char *pattern, const char **end, bool *slash) {
    for (const char *p = pattern; *p; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (*p == '{' && (*end = brace_end(p, slash)))
            return p;
    }
    return NULL;
}

/* Calls back with every pattern that is meant, as its braces allow. */
static void write_out(const char *pattern, void (*each)(void *context, const char *plain), void *context) {
    const char *close, *open;
    bool        slash;
    open = first_brace(pattern, &close, &slash);
    if (!open) {
        each(context, pattern);
        return;
    }
    const char *start = open + 1;
    int         depth = 0;
    for (const char *p = start; p <= close; p++) {
        if (*p == '\\' && p < close)
            p++;
        else if (*p == '{')
            depth++;
        else if (*p == '}' && p < close)
            depth--;
        else if (p == close || (*p == ',' && !depth)) {
            char *one = fv__sprintf("%.*s%s%.*s%s%s", (int)(open - pattern), pattern, slash ? "" : "\1", (int)(p - start), start,
                                    slash ? "" : "\2", close + 1);
            write_out(one, each, context);
            free(one);
            start = p + 1;
        }
    }
}

/* ---------------------------------------------------------------- walking */

typedef struct walk {
    fv_matches *out;
    int64_t     capacity;
    bool (*whole)(const char *folder);
    bool        fold;
    const char *pattern;
    char       *texts[MOST_TEXTS], *values[MOST_TEXTS];
    int         ntexts, nvalues;
    fv_status   status; /* other than FV_OK: no more is looked for */
    fv_error   *error;
} walk;

static bool has_wildcard(const char *p, const char *end) {
    fv_pattern_name name;
    for (; p < end; p++) {
        if (*p == '\\' && p + 1 < end)
            p++;
        else if (*p == '*' || *p == '?' || *p == OPEN || fv__pattern_name(p, end, &name) ||
                 (*p == '[' && class_end(p) && class_end(p) <= end))
            return true;
    }
    return false;
}

/* A part of a pattern without wildcards, as the name that it is. */
static char *plain_name(const char *p, const char *end) {
    char *name = fv__alloc((size_t)(end - p) + 1), *to = name;
    for (; p < end; p++) {
        if (*p == '\\' && p + 1 < end) p++;
        if (*p != OPEN && *p != CLOSE) *to++ = *p;
    }
    *to = 0;
    return name;
}

static char **copied(fv_arena *arena, char *const *texts, int count) {
    char **copy = fv__arena_alloc(arena, (size_t)(count + 1) * sizeof *copy);
    for (int i = 0; i < count; i++) copy[i] = fv__arena_strdup(arena, texts[i]);
    return copy;
}

static void add_match(walk *w, const char *path) {
    fv_matches *out = w->out;
    if (!fv__pattern_values_fit(w->pattern, w->values, w->nvalues)) return;
    if (w->status == FV_OK) w->status = fv__memory_check(w->error);
    if (w->status == FV_OK && out->count == w->capacity) {
        int64_t capacity = FV_MAX(64, 2 * w->capacity);
        w->status = FV_TAKE_MORE(out->match, (size_t)capacity * sizeof *out->match, w->error);
        if (w->status == FV_OK) w->capacity = capacity;
    }
    if (w->status != FV_OK) return;
    fv_matched *match = &out->match[out->count++];
    match->path = fv__arena_strdup(&out->arena, path);
    match->ntexts = w->ntexts;
    match->texts = copied(&out->arena, w->texts, w->ntexts);
    match->nvalues = w->nvalues;
    match->values = copied(&out->arena, w->values, w->nvalues);
    out->wildcards = FV_MAX(out->wildcards, w->ntexts);
}

static void walk_on(walk *w, const char *folder, const char *rest);

/* rest: what follows a part of the pattern, from its slash on. */
static void step(walk *w, const char *path, const char *rest) {
    if (!*rest) {
        add_match(w, path);
        return;
    }
    while (*rest == '/') rest++;
    if (!fv__remote_lists(path) && !fv__path_is_folder(path)) return;
    char *folder = fv__sprintf("%s/", path);
    if (*rest)
        walk_on(w, folder, rest);
    else
        add_match(w, folder); /* "plates/" asks for folders */
    free(folder);
}

typedef struct names { /* in a folder */
    DIR   *opened;
    char **remote; /* those of folders end in a slash */
    size_t count, next;
} names;

static names look_into(walk *w, const char *folder) {
    names n = { 0 };
    if (fv__remote_lists(folder)) {
        if (w->status == FV_OK) w->status = fv__remote_list(folder, &n.remote, &n.count, w->error);
        return n;
    }
    n.opened = opendir(*folder ? folder : ".");
    if (!n.opened && errno != ENOENT && errno != ENOTDIR && !w->out->closed)
        w->out->closed = fv__arena_strdup(&w->out->arena, folder);
    return n;
}

/* The next name and whether it may be a folder; NULL: there is none. */
static char *next_name(const walk *w, names *n, bool *folder) {
    const struct dirent *entry = n->opened && w->status == FV_OK ? readdir(n->opened) : NULL;
    *folder = true;
    if (entry) return fv__strdup(entry->d_name);
    if (n->next >= n->count || w->status != FV_OK) return NULL;
    char  *name = fv__strdup(n->remote[n->next++]);
    size_t length = strlen(name);
    *folder = name[length - 1] == '/';
    if (*folder) name[length - 1] = 0;
    return name;
}

static void release_names(names *n) {
    if (n->opened) closedir(n->opened);
    for (size_t i = 0; i < n->count; i++) free(n->remote[i]);
    free(n->remote);
}

static char *written(const text *t) { return fv__sprintf("%.*s", (int)(t->end - t->start), t->start); }

static void walk_names(walk *w, const char *folder, const char *part, const char *end) {
    names inside = look_into(w, folder);
    int   before = w->ntexts, values = w->nvalues;
    bool  deeper;
    for (char *name; (name = next_name(w, &inside, &deeper)); free(name)) {
        captures c = { 0 };
        if ((*name == '.' && *part != '.') || !strcmp(name, ".") || !strcmp(name, "..") || (*end && !deeper)) continue;
        if (!matches(part, end, name, name + strlen(name), w->fold, &c)) continue;
        for (int i = 0; i < c.count && w->ntexts < MOST_TEXTS; i++) w->texts[w->ntexts++] = written(&c.found[i]);
        for (int i = 0; i < c.nvalues && w->nvalues < MOST_TEXTS; i++) w->values[w->nvalues++] = written(&c.value[i]);
        char *path = fv__sprintf("%s%s", folder, name);
        step(w, path, end);
        free(path);
        while (w->ntexts > before) free(w->texts[--w->ntexts]);
        while (w->nvalues > values) free(w->values[--w->nvalues]);
    }
    release_names(&inside);
}

static bool is_folder(const char *path) {
    struct stat s;
    return fv__remote_lists(path) || (!lstat(path, &s) && S_ISDIR(s.st_mode));
}

/* ** stands for `below`, and for every folder in it. Links to folders are not followed: they may lead back. */
static void walk_depth(walk *w, const char *folder, char *below, const char *rest) {
    int at = w->ntexts;
    if (at == MOST_TEXTS) return;
    w->texts[w->ntexts++] = below;
    walk_on(w, folder, rest);
    w->ntexts = at;
    names inside = look_into(w, folder);
    bool  kind;
    for (char *name; (name = next_name(w, &inside, &kind)); free(name)) {
        char *path = fv__sprintf("%s%s", folder, name);
        if (kind && *name != '.' && is_folder(path) && !(w->whole && w->whole(path))) {
            char *inner = fv__sprintf("%s/", path), *deeper = fv__sprintf("%s%s%s", below, *below ? "/" : "", name);
            walk_depth(w, inner, deeper, rest);
            free(inner);
            free(deeper);
        }
        free(path);
    }
    release_names(&inside);
}

/* folder: "" or with its slash. */
static void walk_on(walk *w, const char *folder, const char *rest) {
    const char *end = rest + strcspn(rest, "/");
    if (end - rest == 2 && !strncmp(rest, "**", 2) && *end) {
        walk_depth(w, folder, "", end + strspn(end, "/"));
        return;
    }
    char *name = plain_name(rest, end), *path = fv__sprintf("%s%s", folder, name);
    bool  dots = !strcmp(name, ".") || !strcmp(name, "..");
    bool  literal = !has_wildcard(rest, end), remote = fv__remote_lists(folder);
    bool  there = remote && *end ? literal : fv__file_exists(path); /* a folder there is what names begin with */
    bool  braced = memchr(rest, OPEN, (size_t)(end - rest)) != NULL;
    if (there && !braced && (!w->fold || dots))
        step(w, path, end);
    else if (!literal || (w->fold && !dots))
        walk_names(w, folder, rest, end);
    free(path);
    free(name);
}

/* "s3://BUCKET/" or "hdfs://HOST/" in front of a pattern, as the number of its characters; 0: there is none. */
static size_t bucket_part(const char *pattern) {
    if (!fv__remote_lists(pattern)) return 0;
    size_t start = (size_t)(strstr(pattern, "://") - pattern) + strlen("://"), length = start + strcspn(pattern + start, "/");
    return length + (pattern[length] == '/');
}

static void walk_pattern(void *context, const char *pattern) {
    size_t slashes = strspn(pattern, "/"), root = bucket_part(pattern);
    char  *folder = root ? fv__sprintf("%.*s", (int)root, pattern) : fv__strdup(slashes ? "/" : "");
    ((walk *)context)->pattern = pattern;
    walk_on(context, folder, pattern + FV_MAX(slashes, root));
    free(folder);
}

static size_t fixed_part(const char *pattern) {
    size_t      root = bucket_part(pattern), fixed = root ? root : *pattern == '/';
    const char *close, *brace, *end;
    bool        slash;
    brace = first_brace(pattern, &close, &slash);
    for (const char *p = pattern + FV_MAX(root, strspn(pattern, "/"));; p = end + strspn(end, "/")) {
        end = p + strcspn(p, "/");
        if (!*end || (brace && brace < end) || has_wildcard(p, end)) return fixed;
        char *name = plain_name(p, end);
        fixed += strlen(name) + 1;
        free(name);
    }
}

static int by_path(const void *a, const void *b) {
    return fv__natural_order(((const fv_matched *)a)->path, ((const fv_matched *)b)->path);
}

static fv_status find(const char *pattern, bool (*whole)(const char *), bool fold, fv_matches *matches, fv_error *error) {
    walk  w = { .out = matches, .whole = whole, .fold = fold, .error = error };
    bool  at_home = *pattern == '~' && (pattern[1] == '/' || !pattern[1]) && getenv("HOME");
    char *full = at_home ? fv__sprintf("%s%s", getenv("HOME"), pattern + 1) : fv__strdup(pattern);
    *matches = (fv_matches){ .fixed = fixed_part(full) };
    write_out(full, walk_pattern, &w);
    free(full);
    if (matches->count) qsort(matches->match, (size_t)matches->count, sizeof *matches->match, by_path);
    int64_t kept = 0;
    for (int64_t i = 0; i < matches->count; i++)
        if (!kept || strcmp(matches->match[kept - 1].path, matches->match[i].path)) matches->match[kept++] = matches->match[i];
    matches->count = kept;
    return w.status;
}

fv_status fv__pattern_find(const char *pattern, bool (*whole)(const char *folder), fv_matches *matches, fv_error *error) {
    return find(pattern, whole, false, matches, error);
}

fv_status fv__pattern_find_any_case(const char *pattern, fv_matches *matches, fv_error *error) {
    return find(pattern, NULL, true, matches, error);
}

void fv__matches_release(fv_matches *matches) {
    free(matches->match);
    fv__arena_release(&matches->arena);
    *matches = (fv_matches){ 0 };
}

/* ---------------------------------------------------------------- without looking at files */

bool fv__pattern_is(const char *path) {
    const char *close;
    bool        slash, braces = first_brace(path, &close, &slash) != NULL;
    if (!*path || (fv__is_remote(path) && !fv__remote_lists(path)) || strpbrk(path, "\1\2"))
        return false; /* a ? begins the query of an address */
    return (braces || has_wildcard(path, path + strlen(path))) && !fv__file_exists(path);
}

static const char *skip_here(const char *path) {
    while (path[0] == '.' && path[1] == '/') path += 1 + strspn(path + 1, "/");
    return path;
}

typedef struct fitting {
    const char *pattern, *path;
    char       *values[MOST_TEXTS];
    int         nvalues;
    bool        fits;
    const char *word; /* whose value is wanted; NULL: none */
    char       *value;
} fitting;

static void keep_value(fitting *f) {
    fv_pattern_name name;
    size_t          length = strlen(f->word);
    const char     *p = f->pattern;
    for (int i = 0; i < f->nvalues && fv__pattern_name_next(p, &name); p = name.end, i++)
        if (!f->value && !strncmp(name.word, f->word, length) && strchr("=}", name.word[length]))
            f->value = fv__strdup(f->values[i]);
}

static bool fits(fitting *f, const char *pattern, const char *path);

/* A part of the path after another; its names count if all that follows fits. */
static bool part_fits(fitting *f, const char *pattern, const char *path) {
    const char *end = pattern + strcspn(pattern, "/"), *stop = path + strcspn(path, "/");
    captures    c = { 0 };
    int         before = f->nvalues;
    if (*path == '.' && *pattern != '.') return false;
    if (!matches(pattern, end, path, stop, false, &c) || !*end != !*stop) return false;
    for (int i = 0; i < c.nvalues && f->nvalues < MOST_TEXTS; i++) f->values[f->nvalues++] = written(&c.value[i]);
    bool good = *end ? fits(f, end + strspn(end, "/"), stop + strspn(stop, "/"))
                     : fv__pattern_values_fit(f->pattern, f->values, f->nvalues);
    if (good && !*end && f->word) keep_value(f);
    while (f->nvalues > before) free(f->values[--f->nvalues]);
    return good;
}

static bool fits(fitting *f, const char *pattern, const char *path) {
    const char *end = pattern + strcspn(pattern, "/"), *stop = path + strcspn(path, "/");
    if (end - pattern != 2 || strncmp(pattern, "**", 2) || !*end) return part_fits(f, pattern, path);
    pattern = end + strspn(end, "/");
    if (fits(f, pattern, path)) return true;
    for (; *stop; stop = path + strcspn(path, "/")) {
        if (*path == '.') return false;
        path = stop + strspn(stop, "/");
        if (fits(f, pattern, path)) return true;
    }
    return false;
}

static void fit_one(void *context, const char *pattern) {
    fitting *f = context;
    f->pattern = pattern;
    f->fits = f->fits || fits(f, skip_here(pattern), skip_here(f->path));
}

bool fv__pattern_fits(const char *pattern, const char *path) {
    fitting f = { .path = path };
    write_out(pattern, fit_one, &f);
    return f.fits;
}

bool fv__pattern_value_of(const char *pattern, const char *path, const char *word, fv_bytes *out) {
    fitting f = { .path = path, .word = word };
    write_out(pattern, fit_one, &f);
    bool known = f.fits && f.value;
    if (known) fv__bytes_append(out, f.value, strlen(f.value));
    free(f.value);
    return known;
}
