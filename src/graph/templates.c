/* File names made of the item and the parameters. */
#include "base/file.h"
#include "base/file_pattern.h"
#include "base/pattern_names.h"
#include "graph/items.h"
#include "op/axes.h"
#include "op/output_slices.h"
#include <stdio.h>
#include <stdlib.h>

bool fv__template_has(const char *template, const char *word) {
    size_t length = strlen(word);
    for (const char *p = strchr(template, '{'); p; p = strchr(p + 1, '{'))
        if (!strncmp(p + 1, word, length) && p[1 + length] == '}') return true;
    return false;
}

static const char *const of_items[] = { "stem", "name", "folder", "path", "index" };

static bool is_of_items(const char *word) {
    for (int i = 0; i < FV_COUNT(of_items); i++)
        if (!strcmp(word, of_items[i])) return true;
    return false;
}

/* Whether it has all names that the pattern of a list gives to parts of its files. */
static bool has_all_names(const char *template, const char *pattern) {
    fv_pattern_name name;
    bool            all = false;
    for (const char *p = pattern; fv__pattern_name_next(p, &name); p = name.end) {
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(name.word, "=}"), name.word);
        all = fv__template_has(template, word);
        if (!all) break;
    }
    return all;
}

bool fv__template_tells_items(const char *template, const fv_item_list *list) {
    for (int i = 0; i < FV_COUNT(of_items); i++)
        if (fv__template_has(template, of_items[i])) return true;
    return has_all_names(template, list->pattern);
}

/* An item that is a group of files has a pattern in the place of a file. */
static bool is_group(const fv_item_list *list, int64_t item) {
    return fv__pattern_has_names(list->pattern) && !fv__pattern_has_names(list->paths[item]) && fv__pattern_is(list->paths[item]);
}

/* What a name in the pattern of the list stands for. */
static bool fill_name(const fv_item_list *list, const char *word, int64_t item, fv_bytes *out) {
    return is_group(list, item) ? fv__pattern_value(list->paths[item], word, out)
                                : fv__pattern_value_of(list->pattern, list->paths[item], word, out);
}

/* What an item's words stand for. */
static void fill_of_item(const fv_item_list *list, const char *word, int64_t item, fv_bytes *out) {
    bool        group = is_group(list, item);
    char       *filled = group ? fv__pattern_filled(list->paths[item]) : NULL;
    const char *path = filled ? filled : list->paths[item], *name = fv__path_name(path);
    char        stem[256];
    if (group && (!strcmp(word, "stem") || !strcmp(word, "name")))
        fv__pattern_value(list->paths[item], NULL, out);
    else if (!strcmp(word, "stem")) {
        fv__path_stem(path, stem, sizeof stem);
        fv__bytes_printf(out, "%s", stem);
    } else if (!strcmp(word, "name")) {
        char *bare = fv__path_bare_name(path);
        fv__bytes_printf(out, "%s", bare);
        free(bare);
    } else if (!strcmp(word, "index"))
        fv__bytes_printf(out, "%lld", (long long)item);
    else {
        const char *end = name, *start = path + FV_MIN(list->root, (size_t)(name - path));
        while (end > path && end[-1] == '/') end--;
        if (!strcmp(word, "folder"))
            for (start = end; start > path && start[-1] != '/';) start--;
        if (end > start) fv__bytes_printf(out, "%.*s", (int)(end - start), start);
    }
    free(filled);
}

static bool fill_word(const fv_bindings *bindings, const fv_item_list *list, const char *word, int64_t item, int combination,
                      fv_bytes *out) {
    if (list && is_of_items(word)) {
        fill_of_item(list, word, item, out);
        return true;
    }
    if (list && fill_name(list, word, item, out)) return true;
    for (int p = 0; p < bindings->nparameters; p++)
        if (!strcmp(word, bindings->parameters[p].name)) {
            fv__bytes_printf(out, "%s", bindings->parameters[p].texts[fv__bindings_choice(bindings, combination, p)]);
            return true;
        }
    return false;
}

/* Whether what was filled in from there on holds {z} or another axis of the image. */
static bool means_slices(const fv_bytes *out, size_t start, const fv_image_type *axes) {
    for (int d = 0; axes && d < axes->ndim; d++) {
        char brace[12];
        snprintf(brace, sizeof brace, "{%s}", axes->axis[d]);
        if (out->size > start && memmem(out->data + start, out->size - start, brace, strlen(brace))) return true;
    }
    return false;
}

/* The same name below another folder, whatever its own folder is. */
static char *below(const char *folder, const char *path) {
    fv_bytes out = { 0 };
    fv__bytes_printf(&out, "%s", folder);
    for (const char *p = path; *p;) {
        size_t length = strcspn(p, "/");
        bool   up = length == 2 && !strncmp(p, "..", 2), none = !length || (length == 1 && *p == '.');
        if (!none) fv__bytes_printf(&out, "/%.*s", (int)length, up ? "up" : p);
        p += length + (p[length] == '/');
    }
    fv__bytes_append(&out, "", 1);
    return (char *)out.data;
}

fv_status fv__template_fill(const fv_bindings *bindings, const char *template, int64_t unit, int combination,
                            const fv_image_type *axes, char **path, fv_error *error) {
    fv_unit u = fv__bindings_unit(bindings, unit);
    return fv__template_fill_for(bindings, u.collection == FV_RUN ? NULL : &bindings->lists[u.collection], template, u.item,
                                 combination, axes, path, error);
}

fv_status fv__template_fill_for(const fv_bindings *bindings, const fv_item_list *list, const char *template, int64_t item,
                                int combination, const fv_image_type *axes, char **path, fv_error *error) {
    fv_bytes out = { 0 };
    char     word[64];
    for (const char *p = template; *p; p++) {
        size_t length = *p == '{' ? strcspn(p + 1, "}") : 0;
        if (*p != '{' || !p[1 + length] || length >= sizeof word) {
            fv__bytes_append(&out, p, 1);
            continue;
        }
        snprintf(word, sizeof word, "%.*s", (int)length, p + 1);
        size_t before = out.size;
        bool   filled = fill_word(bindings, list, word, item, combination, &out);
        if (filled && means_slices(&out, before, axes)) {
            fv__bytes_release(&out);
            return fv_fail(error, FV_ERROR_USAGE,
                           "file = \"%s\": what {%s} stands for holds the name of an axis in braces, which would mean a file for "
                           "each slice; give the file that is read another name",
                           template, word);
        }
        if (!filled && axes && fv__slices_along(word) && fv__axis_find(axes, word) >= 0) {
            fv__bytes_printf(&out, "{%s}", word);
            filled = true;
        }
        if (!filled) {
            fv__bytes_release(&out);
            if (is_of_items(word) && bindings->nlists)
                return fv_fail(error, FV_ERROR_USAGE,
                               "file = \"%s\": {%s} names an item, but this value is one for the whole run; leave it out",
                               template, word);
            if (is_of_items(word))
                return fv_fail(error, FV_ERROR_USAGE, "file = \"%s\": {%s} needs a collection, such as read(\"scans/*.tif\")%s",
                               template, word, axes && fv__axis_find(axes, "z") >= 0 ? "; {z} writes a file for each slice" : "");
            return fv_fail(error, FV_ERROR_USAGE,
                           "file = \"%s\": {%s} is neither stem, name, folder, path, index, a param of the pipeline nor an axis "
                           "of the image",
                           template, word);
        }
        p += length + 1;
        bool nothing = out.size ? out.data[out.size - 1] == '/' : true;
        if (!strcmp(word, "path") && nothing && p[1] == '/') p++; /* a file that lies in no folder: "out/{path}/a" is out/a */
    }
    fv__bytes_append(&out, "", 1);
    *path = bindings->into ? below(bindings->into, (char *)out.data) : (char *)out.data;
    if (bindings->into) fv__bytes_release(&out);
    return FV_OK;
}
