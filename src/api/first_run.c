/* A first run: the text without what it writes and prints, and with the call of the program as its only result. What that tells
 * is put into the text, so that everybody who plans the run, here and elsewhere, reads the same. */
#include "api/first_run.h"
#include "base/message.h"
#include "op/registry.h"
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64 }; /* calls of one text */

/* ---------------------------------------------------------------- which call */

static bool takes(const fv_op *op, const char *name) {
    for (const fv_param *p = op->params; p->name; p++)
        if (!strcmp(p->name, name)) return true;
    for (const fv_input *in = op->inputs; in->name; in++)
        if (!strcmp(in->name, name)) return true;
    return false;
}

static fv_expr *argument(const fv_expr *call, const char *name) {
    for (int a = 0; a < call->nargs; a++)
        if (call->args[a].name && !strcmp(call->args[a].name, name)) return call->args[a].value;
    return NULL;
}

/* Whether only the program knows what it makes. */
static bool is_open(const fv_expr *call) {
    const fv_op *op = fv__op_find(call->text);
    if (!op || !op->program) return false;
    if (op->result == FV_KIND_TABLE) {
        const fv_expr *output = argument(call, "output");
        bool           lines = output && output->kind == FV_EXPR_TEXT && !strcmp(output->text, "txt");
        return !argument(call, "columns") && !lines;
    }
    const fv_expr *first = argument(call, "first");
    return first && first->kind == FV_EXPR_FLAG && first->flag && !argument(call, "dtype") && !argument(call, "shape");
}

/* The first such call, behind those that it uses itself; NULL: none. */
static fv_expr *find_open(fv_expr *e) {
    fv_expr *found = NULL;
    if (!e) return NULL;
    for (int a = 0; a < e->nargs && !found; a++) found = find_open(e->args[a].value);
    for (int i = 0; i < e->nindices && !found; i++) {
        found = find_open(e->indices[i].start);
        if (!found) found = find_open(e->indices[i].stop);
    }
    return found || e->kind != FV_EXPR_CALL || !is_open(e) ? found : e;
}

static fv_expr *find_call(const fv_program *program, int *statement) {
    fv_expr *found = NULL;
    for (int i = 0; i < program->nstatements && !found; i++) {
        found = find_open(program->statements[i].value);
        *statement = i;
    }
    return found;
}

/* ---------------------------------------------------------------- the run */

/* The operator of tables that tells what a file holds. */
static const fv_op *teller(void) {
    for (const fv_op *const *op = fv__isa_current()->ops; *op; op++)
        if ((*op)->program && (*op)->result == FV_KIND_TABLE) return *op;
    return NULL;
}

/* Makes the call the only result of the program, as a table of what the file holds. */
static void ask(fv_program *program) {
    int          statement = 0;
    fv_expr     *call = find_call(program, &statement);
    const fv_op *op = teller();
    int          kept = 0;
    fv_argument *args = fv__arena_alloc(&program->arena, (size_t)(call->nargs + 2) * sizeof *args);
    fv_expr     *all = fv__arena_alloc(&program->arena, sizeof *all);
    *all = (fv_expr){ .id = program->nexprs++, .kind = FV_EXPR_TEXT, .span = call->span, .text = "*" };
    /* the files that it gets are as those that it makes, if nothing is said */
    bool     image = fv__op_find(call->text)->result == FV_KIND_IMAGE;
    fv_expr *format = image && !argument(call, "format") ? argument(call, "output") : NULL;
    /* what belongs to the image alone is left out; other names may be words of the command */
    for (int a = 0; a < call->nargs; a++) {
        const char  *name = call->args[a].name;
        const fv_op *own = fv__op_find(call->text);
        if (!name || !takes(own, name) || takes(op, name)) args[kept++] = call->args[a];
    }
    args[kept++] = (fv_argument){ .name = "columns", .name_span = call->span, .value = all };
    if (format) args[kept++] = (fv_argument){ .name = "format", .name_span = call->span, .value = format };
    call->text = op->name;
    call->args = args;
    call->nargs = kept;
    for (int i = statement; i < program->nstatements; i++) /* what comes later may not be known yet */
        if (program->statements[i].kind == FV_STATEMENT_ASSIGN) program->statements[i].kind = FV_STATEMENT_BARE;
    fv__program_drop_bare(program);
    fv_statement *list = fv__arena_alloc(&program->arena, (size_t)(program->nstatements + 1) * sizeof *list);
    memcpy(list, program->statements, (size_t)program->nstatements * sizeof *list);
    list[program->nstatements++] = (fv_statement){ .kind = FV_STATEMENT_BARE, .value = call, .text = "first run" };
    program->statements = list;
}

/* What the program makes of one item: names and kinds. */
static fv_status run_first(fv_pipeline *p, const fv_run_options *options, fv_result **result, fv_error *error) {
    fv_diagnostics none = { 0 };
    fv_run_options once = { .store = options->store,
                            .memory = options->memory,
                            .workers = options->workers,
                            .cancel = options->cancel,
                            .engine = "threads",
                            .allow_commands = true,
                            .items = p->bindings.narrays ? 0 : 1 };
    fv_pipeline   *trial = fv_pipeline_new();
    char          *text = fv__sprintf("%s\n# first run", (char *)p->text.data);
    fv_status      status = FV_OK;
    trial->name = fv__strdup(p->name);
    fv__bytes_append(&trial->text, text, strlen(text) + 1);
    trial->text.size--;
    trial->program = fv__program_parse(p->name, text, &none);
    trial->bindings = p->bindings; /* lent */
    trial->plan_options = p->plan_options;
    for (int i = 0; i < p->nsets && status == FV_OK; i++) status = fv_pipeline_set(trial, p->sets[i], error);
    trial->first_run = true;
    ask(trial->program);
    if (status == FV_OK) status = fv_pipeline_run(trial, &once, result, error);
    trial->bindings = (fv_bindings){ 0 };
    if (status != FV_OK) { /* mistakes of the text, with their places */
        fv_bytes before = p->messages;
        p->messages = trial->messages;
        trial->messages = before;
    }
    fv_pipeline_free(trial);
    fv__diagnostics_release(&none);
    free(text);
    return status;
}

/* ---------------------------------------------------------------- the text */

static int column_named(const fv_table *table, const char *name) {
    for (int c = 0; c < table->type.ncolumns; c++)
        if (!strcmp(table->type.column[c].name, name)) return c;
    return -1;
}

/* Whether a name that a program printed is one word of a text, and nothing else in it. */
static bool is_plain(const char *name) {
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < 32 || strchr("\"\\,:{}", *c)) return false;
    return *name != 0;
}

/* Arguments that say what the rows tell: name by name for a table, and as they are for an image. */
static fv_status put_arguments(const fv_table *table, bool image, fv_bytes *out, fv_error *error) {
    int name = column_named(table, "name"), kind = column_named(table, "kind"), n = table->type.ncolumns, written = 0;
    fv__bytes_printf(out, image ? "" : ", columns = \"");
    for (int64_t row = 0; row < table->nrows && name >= 0 && kind >= 0; row++) {
        const char *first = table->cell[row * n + name].text, *second = table->cell[row * n + kind].text;
        if (image && row < 2) /* several values of a parameter tell it several times */
            fv__bytes_printf(out, ", %s = %s", first, second);
        else if (!image && row && !strcmp(first, table->cell[name].text))
            break;
        else if (!image && !is_plain(first))
            return fv_fail(error, FV_ERROR_INPUT, "a column is named \"%s\", which no first run can find; say columns", first);
        else if (!image)
            fv__bytes_printf(out, "%s%s:%s", written++ ? ", " : "", first, second);
    }
    fv__bytes_printf(out, image ? "" : "\"");
    return FV_OK;
}

/* Behind the text or comment that begins there; the same place: none does. */
static const char *skip_text(const char *at) {
    if (*at == '#') return at + strcspn(at, "\n");
    if (*at != '"' && *at != '\'') return at;
    char quote = *at;
    for (at++; *at && *at != quote; at++) at += *at == '\\' && at[1];
    return *at ? at + 1 : at;
}

/* Place of the bracket that closes the call whose name begins there; NULL: none. comma: what is before it is one. */
static const char *closing(const char *at, bool *comma) {
    int depth = 0;
    for (*comma = false; at && *at;) {
        const char *next = skip_text(at);
        if (next == at) {
            depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
            if (depth <= 0 && (*at == ')' || *at == ']')) return depth ? NULL : at;
            next = at + 1;
        }
        if (*at != '#' && !strchr(" \t\r\n", *at)) *comma = *at == ',';
        at = next;
    }
    return NULL;
}

static const char *place_of(const char *text, fv_span span) {
    for (int line = 1; line < span.line && text; line++) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    for (int column = 1; column < span.column && text && *text; column++) do
            text++;
        while (((unsigned char)*text & 0xc0) == 0x80);
    return text;
}

static fv_status complete(fv_pipeline *p, const fv_expr *call, const fv_table *table, fv_error *error) {
    bool        image = fv__op_find(call->text)->result == FV_KIND_IMAGE;
    fv_bytes    told = { 0 };
    bool        comma;
    const char *text = (char *)p->text.data, *end = closing(place_of(text, call->text_span), &comma);
    fv_status   status = end ? FV_OK : fv_fail(error, FV_ERROR_INTERNAL, "the call of %s is not found in the text", call->text);
    if (status == FV_OK) status = put_arguments(table, image, &told, error);
    if (status == FV_OK) {
        fv__log_verbose("%s: a first run says%.*s", call->text, (int)told.size - 1, (char *)told.data + 1);
        char *all = fv__sprintf("%.*s%.*s%s", (int)(end - text), text, (int)told.size - comma, (char *)told.data + comma, end);
        fv__bytes_clear(&p->text);
        status = fv_pipeline_add(p, p->name, all, error);
        free(all);
    }
    fv__bytes_release(&told);
    return status;
}

fv_status fv__first_run(fv_pipeline *p, const fv_run_options *options, bool consent, fv_result **failed, fv_error *error) {
    fv_expr *call;
    int      statement;
    *failed = NULL;
    for (int i = 0; consent && !p->first_run && i < MOST && p->program && (call = find_call(p->program, &statement)); i++) {
        fv_result *result = NULL;
        bool       scalar;
        fv_span    place = call->text_span;
        fv_status  status = run_first(p, options, &result, error);
        if (status == FV_OK && !(result && fv_result_printed(result) && fv_result_printed_table(result, 0, &scalar)->nrows))
            status = fv_fail(error, FV_ERROR_INPUT, "the first run of %s told nothing about its result", call->text);
        if (status == FV_OK) status = complete(p, call, fv_result_printed_table(result, 0, &scalar), error);
        if (status != FV_OK) *failed = result;
        if (status != FV_OK) return status;
        fv_result_free(result);
        const fv_expr *next = find_call(p->program, &statement);
        if (next && next->text_span.line == place.line && next->text_span.column == place.column)
            return fv_fail(error, FV_ERROR_INTERNAL, "what the first run of %s told does not complete it", next->text);
    }
    return FV_OK;
}
