/* A value that is written while its solver still goes round: one sink for each step.
 *
 * A step is the same expression, built once more with a solver that ends earlier. Equal calls are one node, so all steps share
 * the rounds before them, and nothing is computed for them but what lies between the solver and the file. */
#include "base/remote.h"
#include "graph/build.h"
#include "graph/segments.h"
#include "op/format.h"
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { MOST_STEPS = 1000 };

static const fv_expr *interval_of(const fv_expr *call) {
    const fv_op *op = call->kind == FV_EXPR_CALL ? fv__op_find(call->text) : NULL;
    return op && op->sink ? fv__argument_of(op, call, fv__params_find(op, "every")) : NULL;
}

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void fv__steps_find(builder *b) {
    b->every = 0;
    for (int s = 0; s < b->program->nstatements; s++) {
        const fv_statement *statement = &b->program->statements[s];
        const fv_expr      *given = statement->kind == FV_STATEMENT_BARE ? interval_of(statement->value) : NULL;
        const fv_expr      *meant = given ? fv__meant(b->program, given) : NULL;
        const value        *bound = given && given->kind == FV_EXPR_NAME ? fv__variables_find(&b->variables, given->text) : NULL;
        fv_literal          literal = { 0 };
        if (bound && bound->kind == LITERAL)
            literal = bound->literal;
        else if (meant && meant->kind == FV_EXPR_NUMBER)
            fv__expr_literal(meant, &literal, &b->graph->arena);
        if (literal.kind == FV_LITERAL_NUMBER && literal.number >= 1 && literal.number < 1e9)
            b->every = common_divisor((int64_t)literal.number, b->every);
    }
}

bool fv__step_name(builder *b, const fv_expr *name, value *v) {
    const value *known = fv__variables_find(&b->steps->names, name->text);
    int          s = known ? -1 : fv__program_find(b->program, name->text);
    if (known) *v = *known;
    if (known || s < 0 || b->program->statements[s].kind != FV_STATEMENT_ASSIGN) return known != NULL;
    *v = fv__evaluate(b, b->program->statements[s].value);
    fv__variables_set(&b->steps->names, name->text, *v);
    return true;
}

/* The value of the text after so many rounds; all: how many there are. */
static value value_after(builder *b, const fv_expr *expr, int64_t rounds, int64_t *all) {
    fv_steps steps = { .rounds = rounds };
    b->steps = &steps;
    value v = fv__evaluate(b, expr);
    b->steps = NULL;
    fv__variables_release(&steps.names);
    *all = steps.all;
    return v;
}

/* The characters of a name before its extension. */
static size_t stem_of(const char *name, const fv_format *format) {
    size_t length = strlen(name), end = 0;
    for (const char *p = format->extensions; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (n > end && length > n && name[length - n - 1] == '.' && !strncasecmp(name + length - n, p, n)) end = n;
        p += n;
    }
    return length - end - (end > 0);
}

static char *list_name(builder *b, const fv_sink *sink, int stem) {
    char *pattern = fv__sprintf("%.*s.pvd", stem, sink->file_template), *path = NULL, *name = NULL;
    if (fv__template_fill(b->bindings, pattern, b->number, b->combination, &sink->value->type.image, &path, NULL) == FV_OK)
        name = fv__arena_strdup(&b->graph->arena, path);
    free(path);
    free(pattern);
    return name;
}

void fv__name_step(builder *b, fv_sink *sink, int64_t step, int64_t steps) {
    const fv_format *format;
    const char      *name = sink->file_template;
    sink->step = step;
    if (fv__format_for_writing(name, &format, NULL) != FV_OK) return; /* told when the sink is checked */
    int stem = (int)stem_of(name, format), digits = snprintf(NULL, 0, "%lld", (long long)steps);
    if (format->takes && strstr(format->takes, "every") && !fv__is_remote(name)) sink->series = list_name(b, sink, stem);
    char *file = fv__sprintf("%.*s-%0*lld%s", stem, name, FV_MAX(digits, 4), (long long)step, name + stem);
    sink->file_template = fv__arena_strdup(&b->graph->arena, file);
    free(file);
}

/* The argument that is written. */
static const fv_expr *value_of(const fv_op *op, const fv_expr *call) {
    int a = 0;
    while (call->args[a].name && strcmp(call->args[a].name, op->inputs[0].name)) a++;
    return call->args[a].value;
}

void fv__add_step_sinks(builder *b, fv_node *write, int statement, const fv_expr *call) {
    const fv_expr  *expr = value_of(write->op, call);
    const fv_param *param = fv__params_find(write->op, "every");
    int64_t         every = *(const int64_t *)(const void *)((const char *)write->params + param->offset), all;
    value_after(b, expr, INT64_MAX, &all);
    if (!all || write->in[0]->type.kind != FV_KIND_IMAGE) {
        fv__mistake(b, write->span, FV_ERROR_USAGE, "leave every out",
                    "write: every = %lld: only images that an iterative solver "
                    "makes in this run, as sirt and ptycho do, have steps to write",
                    (long long)every);
        return;
    }
    if ((all - 1) / every >= MOST_STEPS) {
        fv__mistake(b, write->span, FV_ERROR_USAGE, NULL,
                    "write: every = %lld would make %lld files of %lld iterations; at most %d", (long long)every,
                    (long long)((all - 1) / every + 1), (long long)all, (int)MOST_STEPS);
        return;
    }
    for (int64_t step = every, other; step < all && b->worst == FV_OK; step += every) {
        value v = value_after(b, expr, step, &other);
        if (v.kind == NODE) fv__add_file_sink(b, write, v.node, statement, step, all);
    }
    if (b->worst == FV_OK) fv__add_file_sink(b, write, write->in[0], statement, all, all);
}
