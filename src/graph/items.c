/* Items of collections: which files the patterns of a text match, and which of them belong together. */
#include "graph/items.h"
#include "base/file.h"
#include "base/pattern_names.h"
#include "base/take.h"
#include "graph/pairs.h"
#include "graph/segments.h"
#include "op/format.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---------------------------------------------------------------- where the text names files */

typedef struct found { /* a collection of the text */
    const char *pattern;
    fv_span     span;
    fv_matches  matches;
    bool        listed;  /* by a list: its order is what the user wants */
    bool        grouped; /* an item is all files for which the names in the pattern stand for the same */
} found;

typedef struct finder {
    fv_bindings      *bindings;
    const fv_program *program;
    fv_diagnostics   *diagnostics;
    fv_status         status; /* of the first mistake */
    found            *all;
    int               count;
    const char      **templates; /* names of results */
    int               ntemplates;
    int              *group; /* by pattern: the first one of its collection */
} finder;

const char *fv__files_text(const fv_op *op, const void *params, fv_arena *arena) {
    fv_bytes text = { 0 };
    fv__params_format(op, params, &text);
    const char *whole = fv__arena_printf(arena, "%s(%s)", op->name, text.data ? (char *)text.data : "");
    fv__bytes_release(&text);
    return whole;
}

/* The parameters of a call that names a list of files; NULL: it is none, or has mistakes, which are reported where it is
 * evaluated. */
static void *list_called(const fv_bindings *bindings, const fv_program *program, const fv_expr *call, fv_arena *arena,
                         const fv_op **op) {
    *op = call && call->kind == FV_EXPR_CALL ? fv__op_find(call->text) : NULL;
    if (!*op || !(*op)->files) return NULL;
    int      nparams = 0;
    uint64_t given = 0;
    void    *params = fv__arena_alloc(arena, (*op)->params_size + 1);
    fv__params_default(*op, params);
    while ((*op)->params[nparams].name) nparams++;
    for (int a = 0; a < call->nargs; a++) {
        const fv_argument *argument = &call->args[a];
        const fv_param    *param = argument->name ? fv__params_find(*op, argument->name) : a < nparams ? &(*op)->params[a] : NULL;
        fv_literal         literal = { .kind = FV_LITERAL_TEXT, .text = fv__text_named(bindings, program, argument->value) };
        bool               plain = literal.text || fv__expr_literal(argument->value, &literal, arena);
        if (!param || !plain || fv__params_set(*op, param, params, &literal, arena, NULL) != FV_OK) return NULL;
        given |= (uint64_t)1 << (param - (*op)->params);
    }
    for (int p = 0; p < nparams; p++)
        if (!(*op)->params[p].def && !(given >> p & 1)) return NULL;
    return params;
}

const char *fv__collection_named(const fv_bindings *bindings, const fv_program *program, const fv_expr *value, fv_arena *arena) {
    const char  *text = fv__text_named(bindings, program, value);
    const fv_op *op;
    const void  *params = text ? NULL : list_called(bindings, program, fv__meant(program, value), arena, &op);
    return params ? fv__files_text(op, params, arena) : text;
}

static void mistake(finder *f, fv_span span, fv_status status, const char *hint, const char *format, const char *pattern) {
    char *message = fv__sprintf(format, pattern);
    fv__diagnose(f->diagnostics, span, hint, "%s", message);
    if (f->status == FV_OK) f->status = status;
    free(message);
}

/* What could have been meant by a pattern that matches nothing; NULL: no idea. */
static char *near_miss(const char *pattern, const fv_matches *none) {
    fv_matches other;
    char      *hint = NULL;
    if (none->closed) return fv__sprintf("the folder %s cannot be looked into", none->closed);
    fv__pattern_find_any_case(pattern, &other, NULL);
    if (other.count)
        hint = fv__sprintf("small and capital letters differ: %s is there%s", other.match[0].path,
                           other.count > 1 ? ", and others like it" : "");
    fv__matches_release(&other);
    char *folder = hint || !none->fixed ? NULL : fv__sprintf("%.*s", (int)none->fixed - 1, pattern);
    if (folder && *folder && *folder != '~' && !fv__file_exists(folder)) hint = fv__sprintf("there is no folder %s", folder);
    free(folder);
    return hint;
}

static bool is_known(const finder *f, const char *pattern) {
    for (int k = 0; k < f->count; k++)
        if (!strcmp(f->all[k].pattern, pattern)) return true;
    return false;
}

static void keep(finder *f, found one) {
    f->all = fv__realloc(f->all, (size_t)(f->count + 1) * sizeof *f->all);
    f->all[f->count++] = one;
}

/* Characters that the folders of all files have in common, with the slash behind them. */
static size_t common_folder(const fv_file_names *files) {
    size_t common = (size_t)(fv__path_name(files->name[0]) - files->name[0]);
    for (int64_t i = 1; i < files->count; i++) {
        while (common && strncmp(files->name[0], files->name[i], common)) common--;
        while (common && files->name[0][common - 1] != '/') common--;
    }
    return common;
}

static void add_listed(finder *f, const fv_expr *call, fv_span span) {
    const fv_op  *op;
    fv_file_names files = { 0 };
    fv_error      error = { 0 };
    void         *params = list_called(f->bindings, f->program, call, &f->bindings->arena, &op);
    const char   *text = params ? fv__files_text(op, params, &f->bindings->arena) : NULL;
    if (!text || is_known(f, text)) return;
    found     one = { .pattern = text, .span = span, .listed = true };
    fv_status status = op->files(params, &f->bindings->arena, &files, &error);
    if (status == FV_OK) status = FV_TAKE_ZEROED(one.matches.match, (size_t)files.count * sizeof *one.matches.match, &error);
    for (int64_t i = 0; i < files.count && status == FV_OK; i++) {
        one.matches.match[i].path = fv__arena_strdup(&one.matches.arena, files.name[i]);
        status = fv__memory_check(&error);
    }
    if (status != FV_OK) {
        mistake(f, span, error.code, NULL, "%s", error.message);
        fv__matches_release(&one.matches);
        return;
    }
    one.matches.count = files.count;
    one.matches.fixed = common_folder(&files);
    keep(f, one);
}

static bool is_live(const fv_bindings *bindings, const char *pattern) {
    return bindings->live.pattern && !strcmp(bindings->live.pattern, pattern);
}

/* The one item of a stream that is at hand. */
static void add_live(finder *f, const char *pattern, fv_span span) {
    found one = { .pattern = pattern, .span = span };
    one.matches.match = fv__calloc(sizeof *one.matches.match);
    one.matches.match[0].path = fv__arena_strdup(&one.matches.arena, f->bindings->live.path);
    one.matches.count = 1;
    one.matches.fixed = (size_t)(fv__path_name(f->bindings->live.path) - f->bindings->live.path);
    keep(f, one);
}

static void add_collection(finder *f, const char *pattern, fv_span span, bool grouped) {
    if (is_known(f, pattern)) return;
    if (is_live(f->bindings, pattern)) {
        add_live(f, pattern, span);
        return;
    }
    found    one = { .pattern = pattern, .span = span, .grouped = grouped };
    fv_error error = { 0 };
    if (fv__pattern_find(pattern, fv__format_is_folder, &one.matches, &error) != FV_OK) {
        mistake(f, span, error.code, NULL, "%s", error.message);
        fv__matches_release(&one.matches);
        return;
    }
    if (!one.matches.count) {
        char *hint = near_miss(pattern, &one.matches);
        mistake(f, span, FV_ERROR_INPUT, hint, "no file matches \"%s\"", pattern);
        free(hint);
        fv__matches_release(&one.matches);
        return;
    }
    if (one.matches.closed) fv__log("fovea: the folder %s cannot be looked into and is left out", one.matches.closed);
    keep(f, one);
}

/* The name that a call gives to its result, if it writes one. */
static void note_template(finder *f, const fv_expr *call) {
    const fv_op    *op = fv__op_find(call->text);
    const fv_param *param = op && op->sink ? fv__params_file(op) : NULL;
    const fv_expr  *given = param ? fv__argument_of(op, call, param) : NULL;
    const char     *name = given ? fv__text_named(f->bindings, f->program, given) : NULL;
    if (!name) return;
    f->templates = fv__realloc(f->templates, (size_t)(f->ntemplates + 1) * sizeof *f->templates);
    f->templates[f->ntemplates++] = name;
}

/* The files that a call reads, if it may read many. */
static void note_files(finder *f, const fv_expr *call) {
    const fv_op    *op = fv__op_find(call->text), *list;
    const fv_param *param = op ? fv__params_file(op) : NULL;
    f->bindings->names_files = f->bindings->names_files || param || (op && op->files);
    const fv_expr *given = param && param->many ? fv__argument_of(op, call, param) : NULL;
    if (!given) return;
    bool           joined = fv__call_joins(op, call);
    const char    *file = fv__text_named(f->bindings, f->program, given);
    const fv_expr *meant = fv__meant(f->program, given);
    bool           grouped = file && joined && fv__pattern_has_names(file);
    bool           many = file && (fv__pattern_is(file) || is_live(f->bindings, file));
    if (many && (!joined || grouped)) add_collection(f, file, given->span, grouped);
    if (file || !list_called(f->bindings, f->program, meant, &f->bindings->arena, &list)) return;
    if (!joined) {
        add_listed(f, meant, given->span);
        return;
    }
    char *call_and_parameter = fv__sprintf("%s: with %s", op->name, fv__params_joining(op)->name);
    mistake(f, given->span, FV_ERROR_USAGE, NULL, "%s, a pattern, not a list, names the slices", call_and_parameter);
    free(call_and_parameter);
}

static void scan(finder *f, const fv_expr *expr) {
    if (!expr) return;
    if (expr->kind == FV_EXPR_CALL) note_template(f, expr);
    if (expr->kind == FV_EXPR_CALL) note_files(f, expr);
    for (int a = 0; a < expr->nargs; a++) scan(f, expr->args[a].value);
}

/* ---------------------------------------------------------------- lists */

/* Lists go together line by line. */
static void pair_listed(finder *f, int one, int k) {
    const found *first = &f->all[one], *other = &f->all[k];
    char        *message = NULL;
    if (first->listed != other->listed)
        message = fv__sprintf("%s and %s cannot be paired: give both as lists, which go together line by line, or both as "
                              "patterns, which go together by name",
                              first->pattern, other->pattern);
    else if (first->matches.count != other->matches.count)
        message = fv__sprintf("%s names %lld files but %s %lld; lists go together line by line", first->pattern,
                              (long long)first->matches.count, other->pattern, (long long)other->matches.count);
    if (message) mistake(f, other->span, FV_ERROR_USAGE, NULL, "%s", message);
    free(message);
}

static int by_file(const void *a, const void *b) { return strcmp(((const fv_matched *)a)->path, ((const fv_matched *)b)->path); }

/* Results and rows of tables are named after the first list of a collection, so it names no file twice. */
static void check_repeats(finder *f, const found *one) {
    size_t      count = one->listed ? (size_t)one->matches.count : 0;
    fv_matched *sorted = fv__try_alloc((count + 1) * sizeof *sorted);
    fv_error    error = { 0 };
    if (!sorted) {
        fv__no_memory((count + 1) * sizeof *sorted, &error);
        mistake(f, one->span, error.code, NULL, "%s", error.message);
        return;
    }
    if (count) memcpy(sorted, one->matches.match, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_file);
    for (size_t i = 1; i < count; i++)
        if (!by_file(&sorted[i - 1], &sorted[i])) {
            char *message =
                fv__sprintf("%s names %s more than once; results are named after the files of the first collection in "
                            "the text, so these must differ",
                            one->pattern, sorted[i].path);
            mistake(f, one->span, FV_ERROR_USAGE, NULL, "%s", message);
            free(message);
            break;
        }
    free(sorted);
}

static void pair(finder *f, int first, int k) {
    fv_bytes why = { 0 };
    if (f->all[first].listed || f->all[k].listed) {
        pair_listed(f, first, k);
        return;
    }
    if (fv__pair(f->all[first].pattern, &f->all[first].matches, f->all[k].pattern, &f->all[k].matches, &why)) return;
    fv__diagnose(f->diagnostics, f->all[k].span, (char *)why.data,
                 "\"%s\" does not fit \"%s\": collections that are used together are paired by what their wildcards stand for",
                 f->all[k].pattern, f->all[first].pattern);
    if (f->status == FV_OK) f->status = FV_ERROR_USAGE;
    fv__bytes_release(&why);
}

static fv_status fill_list(const found *from, fv_arena *arena, fv_item_list *list, fv_error *error) {
    *list = (fv_item_list){ .pattern = fv__arena_strdup(arena, from->pattern), .root = from->matches.fixed };
    FV_TRY(FV_TAKE_IN(arena, list->paths, (size_t)from->matches.count * sizeof *list->paths, error));
    for (; list->count < from->matches.count; list->count++) {
        list->paths[list->count] = fv__arena_strdup(arena, from->matches.match[list->count].path);
        FV_TRY(fv__memory_check(error));
    }
    return FV_OK;
}

static void add_list(finder *f, const found *from) {
    fv_bindings *bindings = f->bindings;
    fv_error     error = { 0 };
    bindings->lists = fv__realloc(bindings->lists, (size_t)(bindings->nlists + 1) * sizeof *bindings->lists);
    if (fill_list(from, &bindings->arena, &bindings->lists[bindings->nlists++], &error) != FV_OK)
        mistake(f, from->span, error.code, NULL, "%s", error.message);
}

/* ---------------------------------------------------------------- results of earlier runs */

typedef struct written { /* a file that is there and that the text would write */
    dev_t   device;
    ino_t   inode;
    int64_t item; /* for this one */
    int     pattern;
} written;

static int by_inode(const void *a, const void *b) {
    const written *x = a, *y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    return (x->inode > y->inode) - (x->inode < y->inode);
}

/* What the text would write for the files of a pattern, as far as it is there. */
static void find_written(finder *f, int pattern, fv_bytes *out) {
    fv_arena     arena = { 0 };
    fv_item_list list;
    fv_error     error = { 0 };
    fv_status    status = fill_list(&f->all[pattern], &arena, &list, &error);
    int          n = f->bindings->ncombinations;
    for (int t = 0; t < f->ntemplates; t++)
        for (int64_t i = 0; i < list.count * n && status == FV_OK; i++) {
            char       *path;
            struct stat s;
            int64_t     item = i / n;
            if (fv__template_fill_for(f->bindings, &list, f->templates[t], item, (int)(i % n), NULL, &path, NULL) != FV_OK)
                continue;
            bool there = !lstat(path, &s);
            if (there) status = fv__bytes_need(out, sizeof(written), &error);
            if (there && status == FV_OK) fv__bytes_append(out, &(written){ s.st_dev, s.st_ino, item, pattern }, sizeof(written));
            free(path);
        }
    if (status != FV_OK) mistake(f, f->all[pattern].span, status, NULL, "%s", error.message);
    fv__arena_release(&arena);
}

/* The names follow from the first pattern of each collection. */
static void find_all_written(finder *f, fv_bytes *out) {
    for (int k = 0; k < f->count; k++)
        if (f->group[k] == k) find_written(f, k, out);
    if (out->size) qsort(out->data, out->size / sizeof(written), sizeof(written), by_inode);
}

/* Whether the text would write this file for another one. */
static bool would_write(const finder *f, const char *path, const fv_bytes *all) {
    struct stat    s;
    const written *start = (const void *)all->data, *end = start + all->size / sizeof *start, *one = NULL;
    if (all->size && !lstat(path, &s))
        one = bsearch(&(written){ s.st_dev, s.st_ino, 0, 0 }, start, (size_t)(end - start), sizeof *one, by_inode);
    while (one && one > start && !by_inode(one - 1, one)) one--;
    for (const written *next = one; next && next < end && !by_inode(next, one); next++)
        if (strcmp(f->all[next->pattern].matches.match[next->item].path, path)) return true;
    return false;
}

/* What Fovea has made in a run over the same collection is a result and no input, and so is what it made somehow and this text
 * would write itself. Of files that tables are put into, nobody knows who made them. */
static void leave_out_results(finder *f) {
    fv_bytes all = { 0 }, result = { 0 };
    bool     looked = false;
    for (int k = 0; k < f->count; k++) { /* first a look at all: the names that would be written follow from them */
        const found *one = &f->all[k];
        for (int64_t i = 0; i < one->matches.count; i++) {
            const char            *path = one->matches.match[i].path;
            const fv_table_format *table = fv__table_format_for(path);
            bool                   made = (table && table->in_place) || f->bindings->made(f->bindings->made_context, path, NULL);
            if (made && !looked) find_all_written(f, &all);
            looked = looked || made;
            made = made && !one->listed &&
                   (f->bindings->made(f->bindings->made_context, path, one->pattern) || would_write(f, path, &all));
            fv__bytes_append(&result, &made, 1);
        }
    }
    const uint8_t *left = result.data;
    for (int k = 0; k < f->count; k++) {
        fv_matches *matches = &f->all[k].matches;
        int64_t     count = matches->count, kept = 0;
        for (int64_t i = 0; i < count; i++)
            if (!*left++) matches->match[kept++] = matches->match[i];
        matches->count = kept;
        if (!kept)
            mistake(f, f->all[k].span, FV_ERROR_INPUT, NULL,
                    "all files that match \"%s\" are results of earlier runs, and no inputs", f->all[k].pattern);
        else if (kept < count)
            fv__log("fovea: %lld of the %lld files that match \"%s\" are results of earlier runs, and left out",
                    (long long)(count - kept), (long long)count, f->all[k].pattern);
    }
    fv__bytes_release(&all);
    fv__bytes_release(&result);
}

static int by_path(const void *a, const void *b) {
    return fv__natural_order(((const fv_matched *)a)->path, ((const fv_matched *)b)->path);
}

/* Files become groups: each is a pattern of its own, with values for its names. */
static void form_groups(found *one) {
    fv_matches *matches = &one->matches;
    int64_t     kept = 0;
    for (int64_t i = 0; i < matches->count; i++) {
        fv_matched *match = &matches->match[i];
        char       *pattern = fv__pattern_with(one->pattern, match->values, match->nvalues);
        match->path = fv__arena_strdup(&matches->arena, pattern);
        match->texts = match->values;
        match->ntexts = match->nvalues;
        free(pattern);
    }
    qsort(matches->match, (size_t)matches->count, sizeof *matches->match, by_path);
    for (int64_t i = 0; i < matches->count; i++)
        if (!kept || strcmp(matches->match[kept - 1].path, matches->match[i].path)) matches->match[kept++] = matches->match[i];
    matches->count = kept;
    matches->wildcards = kept ? matches->match[0].ntexts : 0;
}

/* Patterns that one value uses belong to one collection. */
static void group_all(finder *f) {
    const char **patterns = fv__calloc((size_t)(f->count + 1) * sizeof *patterns);
    f->group = fv__calloc((size_t)(f->count + 1) * sizeof *f->group);
    for (int k = 0; k < f->count; k++) patterns[k] = f->all[k].pattern;
    fv__group_patterns(f->bindings, f->program, patterns, f->count, f->group);
    free(patterns);
}

fv_status fv__find_items(fv_bindings *bindings, const fv_program *program, fv_diagnostics *diagnostics) {
    finder f = { .bindings = bindings, .program = program, .diagnostics = diagnostics };
    for (int s = 0; s < program->nstatements; s++) scan(&f, program->statements[s].value);
    group_all(&f);
    if (bindings->made && f.count) leave_out_results(&f);
    for (int k = 0; k < f.count; k++)
        if (f.all[k].grouped) form_groups(&f.all[k]);
    for (int k = 0; k < f.count && f.status == FV_OK; k++)
        if (f.group[k] == k)
            check_repeats(&f, &f.all[k]);
        else
            pair(&f, f.group[k], k);
    for (int k = 0; k < f.count; k++) {
        if (f.status == FV_OK) add_list(&f, &f.all[k]);
        fv__matches_release(&f.all[k].matches);
    }
    free(f.all);
    free(f.templates);
    free(f.group);
    return f.status;
}

/* ---------------------------------------------------------------- what belongs to an item */

typedef struct owned {
    char   *path;
    int64_t item; /* with its collection in the upper bits */
} owned;

static int by_owner(const void *a, const void *b) {
    const owned *x = a, *y = b;
    int          order = strcmp(x->path, y->path);
    return order ? order : (x->item > y->item) - (x->item < y->item);
}

void fv__bindings_settle(fv_bindings *bindings) {
    int64_t n = 0;
    for (int l = 0; l < bindings->nlists; l++) n += bindings->lists[l].count;
    owned *all = fv__alloc((size_t)(n + 1) * sizeof *all);
    n = 0;
    for (int l = 0; l < bindings->nlists; l++) {
        const fv_item_list *list = &bindings->lists[l];
        int64_t             first = (int64_t)list->collection << 40;
        for (int64_t i = 0; i < list->count; i++) all[n++] = (owned){ list->paths[i], first + i };
    }
    qsort(all, (size_t)n, sizeof *all, by_owner);
    bindings->nshared = 0;
    for (int64_t i = 1; i < n; i++) {
        bool again = bindings->nshared && !strcmp(bindings->shared[bindings->nshared - 1], all[i].path);
        if (again || strcmp(all[i].path, all[i - 1].path) || all[i].item == all[i - 1].item) continue;
        bindings->shared = fv__realloc(bindings->shared, (size_t)(bindings->nshared + 1) * sizeof *bindings->shared);
        bindings->shared[bindings->nshared++] = all[i].path;
    }
    free(all);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

bool fv__bindings_alone(const fv_bindings *bindings, const char *file, int64_t unit) {
    fv_unit u = fv__bindings_unit(bindings, unit);
    bool    own = false;
    for (int l = 0; l < bindings->nlists && !own; l++)
        own = bindings->lists[l].collection == u.collection && !strcmp(bindings->lists[l].paths[u.item], file);
    if (!own || !bindings->nshared) return own;
    return !bsearch(&file, bindings->shared, (size_t)bindings->nshared, sizeof *bindings->shared, by_text);
}

/* ---------------------------------------------------------------- parts, for measuring */

fv_status fv__crop_parse(const char *text, fv_crop *part, fv_error *error) {
    long long length, take;
    char      more;
    if (sscanf(text, "%7[^/]/%lld=%lld%c", part->axis, &length, &take, &more) != 3 || take < 1 || take > length)
        return fv_fail(error, FV_ERROR_USAGE, "part %s: expected axis/length=number, as z/400=50", text);
    part->length = length;
    part->take = take;
    return FV_OK;
}

int64_t fv__graph_slabs(const fv_graph *graph, fv_crop *whole) {
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

static int64_t file_size(const char *path) {
    fv_file_id id = { 0 };
    int64_t    size = 0;
    fv_matches group = { 0 };
    if (!fv__pattern_is(path)) {
        fv__file_identify(path, &id, NULL); /* one that vanished is reported when it is opened */
        return id.size;
    }
    fv__pattern_find(path, fv__format_is_folder, &group, NULL);
    for (int64_t i = 0; i < group.count; i++) size += file_size(group.match[i].path);
    fv__matches_release(&group);
    return size;
}

int64_t fv__bindings_size(const fv_bindings *bindings, int64_t unit) {
    fv_unit u = fv__bindings_unit(bindings, unit);
    int64_t size = 0;
    for (int l = 0; l < bindings->nlists; l++)
        if (bindings->lists[l].collection == u.collection) size += file_size(bindings->lists[l].paths[u.item]);
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

/* Of one collection: `count` of its items, spread evenly over their sizes, in their order. */
static sized *choose(const fv_bindings *bindings, int collection, int64_t count) {
    int64_t n = bindings->lists[collection].count;
    sized  *all = fv__calloc((size_t)(n + 1) * sizeof *all);
    for (int64_t i = 0; i < n; i++) {
        all[i].item = i;
        for (int l = 0; l < bindings->nlists; l++)
            if (bindings->lists[l].collection == collection) all[i].size += file_size(bindings->lists[l].paths[i]);
    }
    if (count >= n) return all;
    qsort(all, (size_t)n, sizeof *all, by_size);
    for (int64_t k = 0; k < count; k++) all[k] = all[(2 * k + 1) * n / (2 * count)];
    qsort(all, (size_t)count, sizeof *all, by_item);
    return all;
}

void fv__bindings_sizes(const fv_bindings *bindings, int64_t count, double *sizes) {
    for (int64_t i = 0; i < count; i++) sizes[i] = 0;
    for (int c = 0; c < bindings->nlists; c++) {
        if (bindings->lists[c].collection != c) continue;
        sized *chosen = choose(bindings, c, count);
        for (int64_t i = 0; i < FV_MIN(count, bindings->lists[c].count); i++) sizes[i] += (double)chosen[i].size;
        free(chosen);
    }
}

static void take_some(fv_bindings *bindings, int collection, int64_t count) {
    sized *chosen = choose(bindings, collection, count);
    for (int l = 0; l < bindings->nlists; l++) {
        fv_item_list *list = &bindings->lists[l];
        if (list->collection != collection) continue;
        for (int64_t k = 0; k < count; k++) list->paths[k] = list->paths[chosen[k].item];
        list->count = count;
    }
    free(chosen);
}

fv_status fv__bindings_take(fv_bindings *bindings, int64_t count, fv_error *error) {
    int64_t n = bindings->nitems;
    if (count < 1 || count > n)
        return fv_fail(error, FV_ERROR_USAGE, "--items %lld: there %s %lld item%s", (long long)count, n == 1 ? "is" : "are",
                       (long long)n, n == 1 ? "" : "s");
    for (int l = 0; l < bindings->nlists; l++)
        if (bindings->lists[l].collection == l && bindings->lists[l].count > count) take_some(bindings, l, count);
    fv__bindings_count(bindings);
    return FV_OK;
}
