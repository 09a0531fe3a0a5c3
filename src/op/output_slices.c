/* Outputs that are one file for each slice; see output_slices.h. */
#include "op/output_slices.h"
#include "base/file.h"
#include "op/axes.h"
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { DIGITS = 4, LONGEST_LIST = 256 << 20 };

/* ---------------------------------------------------------------- names */

bool fv__slices_along(const char *axis) {
    static const char *const known[] = { "z", "t", "c", "n", "angle", "y", "x" };
    for (int i = 0; i < FV_COUNT(known); i++)
        if (!strcmp(axis, known[i])) return true;
    return false;
}

/* The next axis in braces from p on: its first letter, with its length; NULL: there is none. Other words in braces belong to the
 * name of somebody's file. */
static const char *next_word(const char *p, size_t *length) {
    for (p = strchr(p, '{'); p; p = strchr(p + 1, '{')) {
        char word[8] = "";
        *length = strspn(p + 1, "abcdefghijklmnopqrstuvwxyz");
        if (!*length || *length >= sizeof word || p[1 + *length] != '}') continue;
        memcpy(word, p + 1, *length);
        if (fv__slices_along(word)) return p + 1;
    }
    return NULL;
}

bool fv__slices_named(const char *path) {
    size_t length;
    return next_word(path, &length) != NULL;
}

static int axis_of(const fv_image_type *type, const char *word, size_t length) {
    char name[8];
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    return fv__axis_find(type, name);
}

fv_status fv__slices_axes(const char *path, const fv_image_type *type, int axis[FV_MAX_DIMS], int *count, fv_error *error) {
    bool   named[FV_MAX_DIMS] = { false };
    size_t length;
    for (const char *word = next_word(path, &length); word; word = next_word(word, &length)) {
        int d = axis_of(type, word, length);
        if (word < fv__path_name(path))
            return fv_fail(error, FV_ERROR_USAGE, "%s: {%.*s} belongs into the name of the files, not of their folder", path,
                           (int)length, word);
        if (d < 0) return fv_fail(error, FV_ERROR_USAGE, "%s: the image has no axis %.*s", path, (int)length, word);
        if (d == type->ndim - 1)
            return fv_fail(error, FV_ERROR_USAGE,
                           "%s: {%s} is the last axis of the image, along which it cannot be cut into files; transpose puts it "
                           "first",
                           path, type->axis[d]);
        named[d] = true;
    }
    *count = 0;
    for (int d = 0; d < type->ndim; d++)
        if (named[d]) axis[(*count)++] = d;
    return FV_OK;
}

char *fv__slices_name(const char *path, const fv_image_type *type, const int64_t *position) {
    fv_bytes    out = { 0 };
    size_t      length;
    const char *p = fv__path_name(path);
    for (const char *word = next_word(p, &length); word; word = next_word(p, &length)) {
        int  d = axis_of(type, word, length);
        char last[24];
        int  digits = snprintf(last, sizeof last, "%lld", (long long)type->shape[d] - 1);
        fv__bytes_printf(&out, "%.*s%0*lld", (int)(word - 1 - p), p, FV_MAX(digits, DIGITS), (long long)position[d]);
        p = word + length + 1;
    }
    fv__bytes_printf(&out, "%s", p);
    fv__bytes_append(&out, "", 1);
    return (char *)out.data;
}

/* Whether it may be the name of a slice: digits stand where the template has words. */
static bool is_slice(const char *template, const char *name) {
    for (;;) {
        size_t      length, same;
        const char *word = next_word(template, &length);
        same = word ? (size_t)(word - 1 - template) : strlen(template);
        if (strncmp(template, name, same)) return false;
        name += same;
        if (!word) return !*name;
        size_t digits = strspn(name, "0123456789");
        if (!digits) return false;
        name += digits;
        template = word + length + 1;
    }
}

/* ---------------------------------------------------------------- lists of files */

char *fv__slices_list(const char *path) {
    const char *name = fv__path_name(path);
    char       *shown = fv__path_short_name(name);
    char       *list = fv__sprintf("%.*s.%s.fovea-slices", (int)(name - path), path, shown);
    free(shown);
    return list;
}

char *fv__slices_list_inside(const char *temporary) { return fv__sprintf("%s/.list", temporary); }

typedef struct {
    long long inode, size, seconds, nanoseconds;
} made;

static bool look_at(const char *path, made *m) {
    struct stat s;
    if (lstat(path, &s)) return false;
    *m = (made){ (long long)s.st_ino, (long long)s.st_size, (long long)s.st_mtim.tv_sec, (long long)s.st_mtim.tv_nsec };
    return true;
}

fv_status fv__slices_write_list(const char *temporary, char *const *names, int64_t count, fv_error *error) {
    fv_bytes  text = { 0 };
    char     *list = fv__slices_list_inside(temporary);
    fv_status status = FV_OK;
    for (int64_t i = 0; i < count && status == FV_OK; i++) {
        char *path = fv__path_inside(temporary, names[i]);
        made  m;
        if (!look_at(path, &m))
            status = fv_fail(error, FV_ERROR_IO, "%s has vanished while it was written", path);
        else
            fv__bytes_printf(&text, "%lld %lld %lld %lld %s\n", m.inode, m.size, m.seconds, m.nanoseconds, names[i]);
        free(path);
    }
    if (status == FV_OK) status = fv__file_write_all(list, text.data, text.size, true, error);
    fv__bytes_release(&text);
    free(list);
    return status;
}

typedef struct {
    made        m;
    const char *name;
} line;

typedef struct {
    fv_bytes text;
    line    *lines; /* in order of names */
    int64_t  count;
} listing;

static int by_name(const void *a, const void *b) { return strcmp(((const line *)a)->name, ((const line *)b)->name); }

/* Nothing is found in a list that is missing or damaged. */
static void read_list(const char *path, listing *l) {
    *l = (listing){ 0 };
    if (fv__file_read_all(path, LONGEST_LIST, &l->text, NULL) != FV_OK || !l->text.size) return;
    fv_bytes lines = { 0 };
    for (char *p = (char *)l->text.data, *end; (end = strchr(p, '\n')); p = end + 1) {
        line one;
        int  used = 0;
        *end = 0;
        if (sscanf(p, "%lld %lld %lld %lld %n", &one.m.inode, &one.m.size, &one.m.seconds, &one.m.nanoseconds, &used) != 4 ||
            !used)
            continue;
        one.name = p + used;
        if (strchr(one.name, '/') || *one.name == '.') continue;
        fv__bytes_append(&lines, &one, sizeof one);
    }
    l->lines = (line *)(void *)lines.data;
    l->count = (int64_t)(lines.size / sizeof *l->lines);
    if (l->count) qsort(l->lines, (size_t)l->count, sizeof *l->lines, by_name);
}

static void release(listing *l) {
    fv__bytes_release(&l->text);
    free(l->lines);
}

static bool same(const made *a, const made *b) {
    return a->inode == b->inode && a->size == b->size && a->seconds == b->seconds && a->nanoseconds == b->nanoseconds;
}

static const line *find(const listing *l, const char *name) {
    line wanted = { .name = name };
    return l->count ? bsearch(&wanted, l->lines, (size_t)l->count, sizeof *l->lines, by_name) : NULL;
}

static bool lists(const listing *l, const char *name, const made *m) {
    const line *found = find(l, name);
    return found && same(&found->m, m);
}

static char *folder_of(const char *path) {
    const char *name = fv__path_name(path);
    return name == path ? fv__strdup(".") : fv__sprintf("%.*s", (int)(name - path), path);
}

/* ---------------------------------------------------------------- whose files */

enum { MOST_LISTS = 8 };

/* The list of the output, and those of its temporaries. */
static int read_lists(const char *path, const char *folder, listing all[MOST_LISTS]) {
    char *own = fv__slices_list(path), *shown = fv__path_short_name(fv__path_name(path)), *start = fv__sprintf(".%s.", shown);
    DIR  *d = opendir(folder);
    struct dirent *entry;
    int            count = 1;
    read_list(own, &all[0]);
    while (d && count < MOST_LISTS && (entry = readdir(d))) {
        size_t length = strlen(entry->d_name);
        if (strncmp(entry->d_name, start, strlen(start)) || length < 6 || strcmp(entry->d_name + length - 6, ".fovea")) continue;
        char *temporary = fv__path_inside(folder, entry->d_name), *inside = fv__slices_list_inside(temporary);
        read_list(inside, &all[count++]);
        free(inside);
        free(temporary);
    }
    if (d) closedir(d);
    free(start);
    free(shown);
    free(own);
    return count;
}

static bool listed(const listing *all, int count, const char *folder, const char *name) {
    char *file = fv__path_inside(folder, name);
    made  m;
    bool  ours = !look_at(file, &m);
    for (int i = 0; i < count && !ours; i++) ours = lists(&all[i], name, &m);
    free(file);
    return ours;
}

fv_status fv__slices_check(const char *path, fv_error *error) {
    char          *folder = folder_of(path);
    DIR           *d = opendir(folder);
    struct dirent *entry;
    listing        all[MOST_LISTS];
    int            count = d ? read_lists(path, folder, all) : 0;
    fv_status      status = FV_OK;
    while (d && status == FV_OK && (entry = readdir(d)))
        if (is_slice(fv__path_name(path), entry->d_name) && !listed(all, count, folder, entry->d_name))
            status = fv_fail(error, FV_ERROR_USAGE,
                             "%s%s exists and was not made by Fovea here, or has changed since; --overwrite replaces such slices",
                             strcmp(folder, ".") ? folder : "", entry->d_name);
    if (d) closedir(d);
    for (int i = 0; i < count; i++) release(&all[i]);
    free(folder);
    return status;
}

bool fv__slices_there(const char *path) {
    char   *list = fv__slices_list(path), *folder = folder_of(path);
    listing l;
    read_list(list, &l);
    bool there = l.count > 0;
    for (int64_t i = 0; i < l.count && there; i++) {
        char *file = fv__path_inside(folder, l.lines[i].name);
        made  m;
        there = look_at(file, &m) && same(&m, &l.lines[i].m);
        free(file);
    }
    release(&l);
    free(folder);
    free(list);
    return there;
}

/* ---------------------------------------------------------------- naming */

/* A file that is not in the temporary folder any more has its name already. */
static fv_status move_file(const char *temporary, const char *folder, const line *one, fv_error *error) {
    char     *from = fv__path_inside(temporary, one->name), *to = fv__path_inside(folder, one->name);
    made      m;
    fv_status status = FV_OK;
    if (fv__file_exists(from))
        status = fv__path_replace(from, to, error);
    else if (!look_at(to, &m) || !same(&m, &one->m))
        status = fv_fail(error, FV_ERROR_IO, "%s has vanished before it got its name", to);
    free(from);
    free(to);
    return status;
}

/* Slices of an earlier result of this name, as they were made then. */
static void remove_earlier(const char *folder, const listing *earlier, const listing *now) {
    for (int64_t i = 0; i < earlier->count; i++) {
        if (find(now, earlier->lines[i].name)) continue;
        char *file = fv__path_inside(folder, earlier->lines[i].name);
        made  m;
        if (look_at(file, &m) && same(&m, &earlier->lines[i].m)) fv__path_remove(file, NULL);
        free(file);
    }
}

fv_status fv__slices_give_names(const char *temporary, const char *path, fv_error *error) {
    char     *folder = folder_of(path), *list = fv__slices_list(path), *inside = fv__slices_list_inside(temporary);
    listing   earlier, now;
    fv_status status = FV_OK;
    read_list(list, &earlier);
    read_list(inside, &now);
    for (int64_t i = 0; i < now.count && status == FV_OK; i++) status = move_file(temporary, folder, &now.lines[i], error);
    if (status == FV_OK) {
        remove_earlier(folder, &earlier, &now);
        status = fv__path_sync_folder(path, error);
    }
    if (status == FV_OK) status = fv__path_replace(inside, list, error);
    if (status == FV_OK) status = fv__path_remove(temporary, error);
    release(&earlier);
    release(&now);
    free(folder);
    free(list);
    free(inside);
    return status;
}
