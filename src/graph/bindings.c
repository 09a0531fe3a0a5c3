/* Items of collections, parameters of sweeps, and the file names made from them. */
#include "graph/graph.h"
#include "base/file.h"
#include "base/remote.h"
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- parameters */

int fv_bindings_choice(const fv_bindings *bindings, int combination, int parameter) {
    for (int p = bindings->nparameters - 1; p > parameter; p--) combination /= bindings->parameters[p].count;
    return combination % bindings->parameters[parameter].count;
}

static bool add_value(fv_bindings *bindings, fv_parameter *parameter, const char *text, size_t length) {
    int n = parameter->count++;
    parameter->values = fv_realloc(parameter->values, (size_t)parameter->count * sizeof *parameter->values);
    parameter->texts = fv_realloc(parameter->texts, (size_t)parameter->count * sizeof *parameter->texts);
    parameter->texts[n] = fv_arena_strndup(&bindings->arena, text, length);
    return fv_literal_parse(parameter->texts[n], &parameter->values[n], &bindings->arena);
}

fv_status fv_bindings_set(fv_bindings *bindings, const char *assignment, fv_error *error) {
    const char *equal = strchr(assignment, '=');
    if (!equal || equal == assignment || !equal[1])
        return fv_fail(error, FV_ERROR_USAGE, "--set %s: expected name=value or name=value,value,...", assignment);
    bindings->parameters = fv_realloc(bindings->parameters, (size_t)(bindings->nparameters + 1) * sizeof *bindings->parameters);
    fv_parameter *parameter = &bindings->parameters[bindings->nparameters++];
    *parameter = (fv_parameter){ .name = fv_arena_strndup(&bindings->arena, assignment, (size_t)(equal - assignment)) };
    for (int p = 0; p + 1 < bindings->nparameters; p++)
        if (!strcmp(bindings->parameters[p].name, parameter->name))
            return fv_fail(error, FV_ERROR_USAGE, "--set %s is given twice", parameter->name);
    int depth = 0;
    for (const char *start = equal + 1, *p = start;; p++) {
        depth += *p == '[' ? 1 : *p == ']' ? -1 : 0;
        if (*p && (*p != ',' || depth > 0)) continue;
        if (p == start) return fv_fail(error, FV_ERROR_USAGE, "--set %s: an empty value", assignment);
        if (!add_value(bindings, parameter, start, (size_t)(p - start)))
            return fv_fail(error, FV_ERROR_USAGE, "--set %s: a list is written [1, 2.5, 3], with at most %d numbers", assignment,
                           FV_MAX_NUMBERS);
        if (!*p) break;
        start = p + 1;
    }
    int64_t combinations = 1;
    for (int p = 0; p < bindings->nparameters; p++) combinations *= bindings->parameters[p].count;
    if (combinations > 10000)
        return fv_fail(error, FV_ERROR_USAGE, "--set: %lld combinations are more than the 10000 possible",
                       (long long)combinations);
    bindings->ncombinations = (int)combinations;
    return FV_OK;
}

static void check_parameters(const fv_bindings *bindings, const fv_program *program, fv_diagnostics *diagnostics) {
    const char *known[64];
    int         count = 0;
    for (int s = 0; s < program->nstatements && count < 64; s++)
        if (program->statements[s].kind == FV_STATEMENT_PARAM) known[count++] = program->statements[s].name;
    for (int p = 0; p < bindings->nparameters; p++) {
        bool found = false;
        for (int k = 0; k < count; k++) found = found || !strcmp(known[k], bindings->parameters[p].name);
        if (found) continue;
        const char *near = fv_nearest_word(bindings->parameters[p].name, known, count);
        char       *hint = near ? fv_sprintf("did you mean %s?", near) : NULL;
        fv_diagnose(diagnostics, (fv_span){ 1, 1, 1 }, hint, "--set %s: the pipeline has no `param %s = ...` line",
                    bindings->parameters[p].name, bindings->parameters[p].name);
        free(hint);
    }
}

/* Parameters of the text that nobody set take the value written there. */
static void add_defaults(fv_bindings *bindings, const fv_program *program, fv_diagnostics *diagnostics) {
    for (int s = 0; s < program->nstatements; s++) {
        const fv_statement *statement = &program->statements[s];
        bool                known = statement->kind != FV_STATEMENT_PARAM;
        for (int p = 0; p < bindings->nparameters; p++) known = known || !strcmp(bindings->parameters[p].name, statement->name);
        if (known) continue;
        fv_literal literal;
        if (!fv_expr_literal(statement->value, &literal, &bindings->arena)) {
            fv_diagnose(diagnostics, statement->value->span, NULL,
                        "param %s needs a plain value: a number, a text, true, false or a list of numbers", statement->name);
            continue;
        }
        fv_bytes text = { 0 };
        if (literal.kind == FV_LITERAL_TEXT) fv_bytes_printf(&text, "%s", literal.text);
        else fv_literal_format(&literal, &text);
        bindings->parameters =
            fv_realloc(bindings->parameters, (size_t)(bindings->nparameters + 1) * sizeof *bindings->parameters);
        fv_parameter *parameter = &bindings->parameters[bindings->nparameters++];
        *parameter = (fv_parameter){ .name = fv_arena_strdup(&bindings->arena, statement->name) };
        add_value(bindings, parameter, (char *)text.data, text.size);
        parameter->values[0] = literal;
        fv_bytes_release(&text);
    }
}

/* ---------------------------------------------------------------- items */

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Addresses are none: a ? begins their query. */
static bool is_pattern(const char *path) { return strpbrk(path, "*?[") && !fv_is_remote(path) && !fv_file_exists(path); }

static fv_status add_list(fv_bindings *bindings, const char *pattern, fv_span span, fv_diagnostics *diagnostics) {
    for (int l = 0; l < bindings->nlists; l++)
        if (!strcmp(bindings->lists[l].pattern, pattern)) return FV_OK;
    glob_t found = { 0 };
    int    result = glob(pattern, GLOB_NOSORT | GLOB_BRACE | GLOB_TILDE, NULL, &found);
    if (result || !found.gl_pathc) {
        fv_diagnose(diagnostics, span, NULL, "no file matches \"%s\"", pattern);
        globfree(&found);
        return FV_ERROR_INPUT;
    }
    fv_item_list list = { .pattern = fv_arena_strdup(&bindings->arena, pattern), .count = (int64_t)found.gl_pathc };
    list.paths = fv_arena_alloc(&bindings->arena, found.gl_pathc * sizeof *list.paths);
    for (size_t i = 0; i < found.gl_pathc; i++) list.paths[i] = fv_arena_strdup(&bindings->arena, found.gl_pathv[i]);
    globfree(&found);
    qsort(list.paths, (size_t)list.count, sizeof *list.paths, by_name);
    bindings->lists = fv_realloc(bindings->lists, (size_t)(bindings->nlists + 1) * sizeof *bindings->lists);
    bindings->lists[bindings->nlists++] = list;
    if (bindings->nlists > 1 && list.count != bindings->lists[0].count) {
        fv_diagnose(diagnostics, span, NULL,
                    "\"%s\" matches %lld files but \"%s\" matches %lld; collections that are used together are paired by order "
                    "and need the same number",
                    pattern, (long long)list.count, bindings->lists[0].pattern, (long long)bindings->lists[0].count);
        return FV_ERROR_USAGE;
    }
    bindings->collection = true;
    bindings->nitems = list.count;
    return FV_OK;
}

/* The file that an argument of read names: a text, or a parameter with one value. NULL: something else. */
static const char *file_named(const fv_bindings *bindings, const fv_expr *value) {
    if (value->kind == FV_EXPR_TEXT) return value->text;
    for (int p = 0; p < bindings->nparameters && value->kind == FV_EXPR_NAME; p++) {
        const fv_parameter *parameter = &bindings->parameters[p];
        if (!strcmp(parameter->name, value->text) && parameter->count == 1 && parameter->values[0].kind == FV_LITERAL_TEXT)
            return parameter->values[0].text;
    }
    return NULL;
}

/* With stack the files that match are slices of one image, and no items. */
static bool is_stacked(const fv_expr *call) {
    for (int a = 0; a < call->nargs; a++)
        if (call->args[a].name && !strcmp(call->args[a].name, "stack")) return true;
    return false;
}

static fv_status scan(fv_bindings *bindings, const fv_expr *expr, fv_diagnostics *diagnostics) {
    if (!expr) return FV_OK;
    fv_status status = FV_OK;
    if (expr->kind == FV_EXPR_CALL && !strcmp(expr->text, "read") && !is_stacked(expr))
        for (int a = 0; a < expr->nargs; a++) {
            const fv_argument *argument = &expr->args[a];
            bool        is_file = argument->name ? !strcmp(argument->name, "file") : a == 0;
            const char *file = is_file ? file_named(bindings, argument->value) : NULL;
            if (file && is_pattern(file)) {
                fv_status added = add_list(bindings, file, argument->value->span, diagnostics);
                if (status == FV_OK) status = added;
            }
        }
    for (int a = 0; a < expr->nargs; a++) {
        fv_status inner = scan(bindings, expr->args[a].value, diagnostics);
        if (status == FV_OK) status = inner;
    }
    return status;
}

fv_status fv_bindings_resolve(fv_bindings *bindings, const fv_program *program, fv_diagnostics *diagnostics, fv_error *error) {
    if (!bindings->ncombinations) bindings->ncombinations = 1;
    check_parameters(bindings, program, diagnostics);
    add_defaults(bindings, program, diagnostics);
    fv_status status = diagnostics->count ? FV_ERROR_USAGE : FV_OK;
    if (!bindings->nlists) { /* a manifest brings its own */
        bindings->nitems = 1;
        for (int s = 0; s < program->nstatements; s++) {
            fv_status found = scan(bindings, program->statements[s].value, diagnostics);
            if (status == FV_OK) status = found;
        }
    }
    return status == FV_OK ? FV_OK : fv_fail(error, status, "the pipeline has mistakes");
}

const char *fv_bindings_item(const fv_bindings *bindings, int64_t item) {
    return bindings->nlists ? bindings->lists[0].paths[item] : "";
}

fv_status fv_crop_parse(const char *text, fv_crop *part, fv_error *error) {
    long long length, take;
    char      more;
    if (sscanf(text, "%7[^/]/%lld=%lld%c", part->axis, &length, &take, &more) != 3 || take < 1 || take > length)
        return fv_fail(error, FV_ERROR_USAGE, "part %s: expected axis/length=number, as z/400=50", text);
    part->length = length;
    part->take = take;
    return FV_OK;
}

int64_t fv_graph_slabs(const fv_graph *graph, fv_crop *whole) {
    int64_t largest = 0;
    *whole = (fv_crop){ 0 };
    for (int i = 0; i < graph->nnodes; i++) {
        const fv_node       *node = graph->nodes[i];
        const fv_image_type *type = &node->type.image;
        if (!node->op || node->ninputs || node->type.kind != FV_KIND_IMAGE || fv_image_type_bytes(type) <= largest) continue;
        largest = fv_image_type_bytes(type);
        whole->length = whole->take = type->shape[0];
        snprintf(whole->axis, sizeof whole->axis, "%s", type->axis[0]);
    }
    return largest;
}

int64_t fv_bindings_size(const fv_bindings *bindings, int64_t item) {
    int64_t size = 0;
    for (int l = 0; l < bindings->nlists; l++) {
        fv_file_id id = { 0 };
        fv_file_identify(bindings->lists[l].paths[item], &id, NULL); /* one that vanished is reported when it is opened */
        size += id.size;
    }
    return size;
}

typedef struct sized {
    int64_t item, size;
} sized;

static int by_size(const void *a, const void *b) {
    const sized *x = a, *y = b;
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}
static int by_item(const void *a, const void *b) {
    const sized *x = a, *y = b;
    return x->item < y->item ? -1 : x->item > y->item;
}

fv_status fv_bindings_take(fv_bindings *bindings, int64_t count, fv_error *error) {
    int64_t n = bindings->nitems;
    if (count < 1 || count > n)
        return fv_fail(error, FV_ERROR_USAGE, "--items %lld: there %s %lld item%s", (long long)count, n == 1 ? "is" : "are",
                       (long long)n, n == 1 ? "" : "s");
    if (count == n) return FV_OK;
    sized *all = fv_alloc((size_t)n * sizeof *all);
    for (int64_t i = 0; i < n; i++) all[i] = (sized){ i, fv_bindings_size(bindings, i) };
    qsort(all, (size_t)n, sizeof *all, by_size);
    for (int64_t k = 0; k < count; k++) all[k] = all[(2 * k + 1) * n / (2 * count)];
    qsort(all, (size_t)count, sizeof *all, by_item); /* lists stay sorted by name */
    for (int l = 0; l < bindings->nlists; l++) {
        for (int64_t k = 0; k < count; k++) bindings->lists[l].paths[k] = bindings->lists[l].paths[all[k].item];
        bindings->lists[l].count = count;
    }
    bindings->nitems = count;
    free(all);
    return FV_OK;
}

void fv_bindings_release(fv_bindings *bindings) {
    for (int p = 0; p < bindings->nparameters; p++) {
        free(bindings->parameters[p].values);
        free(bindings->parameters[p].texts);
    }
    free(bindings->parameters);
    free(bindings->lists);
    free(bindings->arrays);
    free(bindings->keeps);
    fv_arena_release(&bindings->arena);
    *bindings = (fv_bindings){ 0 };
}

/* ---------------------------------------------------------------- templates */

bool fv_template_has(const char *template, const char *word) {
    size_t length = strlen(word);
    for (const char *p = strchr(template, '{'); p; p = strchr(p + 1, '{'))
        if (!strncmp(p + 1, word, length) && p[1 + length] == '}') return true;
    return false;
}

static bool fill_word(const fv_bindings *bindings, const char *word, int64_t item, int combination, fv_bytes *out) {
    const char *path = fv_bindings_item(bindings, item);
    char        stem[256];
    if (bindings->collection && !strcmp(word, "stem")) {
        fv_path_stem(path, stem, sizeof stem);
        fv_bytes_printf(out, "%s", stem);
    } else if (bindings->collection && !strcmp(word, "name")) {
        char *name = fv_path_bare_name(path);
        fv_bytes_printf(out, "%s", name);
        free(name);
    } else if (bindings->collection && !strcmp(word, "index"))
        fv_bytes_printf(out, "%lld", (long long)item);
    else {
        for (int p = 0; p < bindings->nparameters; p++)
            if (!strcmp(word, bindings->parameters[p].name)) {
                fv_bytes_printf(out, "%s", bindings->parameters[p].texts[fv_bindings_choice(bindings, combination, p)]);
                return true;
            }
        return false;
    }
    return true;
}

/* The same name below another folder, whatever its own folder is. */
static char *below(const char *folder, const char *path) {
    fv_bytes out = { 0 };
    fv_bytes_printf(&out, "%s", folder);
    for (const char *p = path; *p;) {
        size_t length = strcspn(p, "/");
        bool   up = length == 2 && !strncmp(p, "..", 2), none = !length || (length == 1 && *p == '.');
        if (!none) fv_bytes_printf(&out, "/%.*s", (int)length, up ? "up" : p);
        p += length + (p[length] == '/');
    }
    fv_bytes_append(&out, "", 1);
    return (char *)out.data;
}

fv_status fv_template_fill(const fv_bindings *bindings, const char *template, int64_t item, int combination, char **path,
                           fv_error *error) {
    fv_bytes out = { 0 };
    char     word[64];
    for (const char *p = template; *p; p++) {
        size_t length = *p == '{' ? strcspn(p + 1, "}") : 0;
        if (*p != '{' || !p[1 + length] || length >= sizeof word) {
            fv_bytes_append(&out, p, 1);
            continue;
        }
        snprintf(word, sizeof word, "%.*s", (int)length, p + 1);
        if (!fill_word(bindings, word, item, combination, &out)) {
            fv_bytes_release(&out);
            bool of_item = !strcmp(word, "stem") || !strcmp(word, "name") || !strcmp(word, "index");
            if (of_item && !bindings->collection)
                return fv_fail(error, FV_ERROR_USAGE, "file = \"%s\": {%s} needs a collection, such as read(\"scans/*.tif\")",
                               template, word);
            return fv_fail(error, FV_ERROR_USAGE, "file = \"%s\": {%s} is neither stem, name, index nor a param of the pipeline",
                           template, word);
        }
        p += length + 1;
    }
    fv_bytes_append(&out, "", 1);
    *path = bindings->into ? below(bindings->into, (char *)out.data) : (char *)out.data;
    if (bindings->into) fv_bytes_release(&out);
    return FV_OK;
}
