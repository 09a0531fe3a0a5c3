/* Names of a text that can be bound. */
#include "stream/bound.h"
#include "base/file.h"
#include "graph/segments.h"
#include "op/op.h"
#include <stdlib.h>

typedef struct finder {
    const fv_program  *program;
    const fv_bindings *bindings;
    const char        *name;
    const char        *variable; /* that gets the value of the call, in the statement that is looked at; NULL: none */
    const char        *found;
    fv_bytes           known; /* for the message */
    const char        *words[64];
    int                nwords;
    fv_arena           arena;
} finder;

static void offer(finder *f, const char *word) {
    for (int i = 0; i < f->nwords; i++)
        if (!strcmp(f->words[i], word)) return;
    if (f->nwords == 64 || !*word) return;
    f->words[f->nwords++] = fv__arena_strdup(&f->arena, word);
    fv__bytes_printf(&f->known, "%s%s", f->known.size ? ", " : "", word);
}

/* "scans" of "scans/2024/x.tif": the folders before the first wildcard. */
static char *folder_of(const char *pattern) {
    size_t end = strcspn(pattern, "*?[{");
    if (!pattern[end]) end = (size_t)(fv__path_name(pattern) - pattern);
    while (end && pattern[end - 1] != '/') end--;
    return fv__sprintf("%.*s", end ? (int)end - 1 : 0, pattern);
}

static void look_at(finder *f, const fv_expr *call) {
    const fv_op    *op = fv__op_find(call->text);
    const fv_param *param = op && !op->sink ? fv__params_file(op) : NULL;
    const fv_expr  *given = param && param->many ? fv__argument_of(op, call, param) : NULL;
    const char     *file = given ? fv__text_named(f->bindings, f->program, given) : NULL;
    if (!file) return;
    char *folder = folder_of(file);
    if (f->variable) offer(f, f->variable);
    if (*folder) offer(f, folder);
    offer(f, file);
    if ((f->variable && !strcmp(f->variable, f->name)) || !strcmp(folder, f->name) || !strcmp(file, f->name)) f->found = file;
    free(folder);
}

static void look(finder *f, const fv_expr *expr) {
    if (!expr || f->found) return;
    if (expr->kind == FV_EXPR_CALL) look_at(f, expr);
    f->variable = NULL;
    for (int a = 0; a < expr->nargs && !f->found; a++) look(f, expr->args[a].value);
}

fv_status fv__bound_pattern(const fv_program *program, const char *name, char **pattern, fv_error *error) {
    fv_bindings none = { 0 };
    finder      f = { .program = program, .bindings = &none, .name = name };
    fv_status   status = FV_OK;
    for (int s = 0; s < program->nstatements && !f.found; s++) {
        f.variable = program->statements[s].kind == FV_STATEMENT_ASSIGN ? program->statements[s].name : NULL;
        look(&f, program->statements[s].value);
    }
    if (f.found)
        *pattern = fv__strdup(f.found);
    else if (!f.known.size)
        status = fv_fail(error, FV_ERROR_USAGE, "--bind %s: the text reads no file that could come from a stream", name);
    else {
        const char *near = fv_nearest_word(name, f.words, f.nwords);
        status =
            fv_fail(error, FV_ERROR_USAGE, "--bind %s: the text reads nothing by that name%s%s%s; it reads: %.*s", name,
                    near ? " (did you mean " : "", near ? near : "", near ? "?)" : "", (int)f.known.size, (char *)f.known.data);
    }
    fv__bytes_release(&f.known);
    fv__arena_release(&f.arena);
    return status;
}
