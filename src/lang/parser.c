/* From tokens to statements and expressions. A statement with a mistake is reported once and left out; the next one is
 * parsed as if nothing had happened.
 *
 *     statement  = "param" name "=" literal | name "=" expression | expression
 *     expression = binary { "|>" name [ "(" arguments ")" ] { "[" indices "]" } }
 *     binary     = unary { operator unary }          by how tightly the operators bind; comparisons do not chain
 *     unary      = ("-" | "+" | "!") unary | postfix [ "**" unary ]
 *     postfix    = primary { "[" indices "]" }
 *     primary    = number | text | "true" | "false" | name [ "(" arguments ")" ] | "[" list "]" | "(" expression ")"
 */
#include "base/take.h"
#include "lang/expansion.h"
#include "lang/lexer.h"
#include "op/op.h"
#include "op/params.h"
#include <stdio.h>
#include <stdlib.h>

enum {
    DEEPEST = 500,          /* height of an expression's tree, so that nobody who walks it runs out of stack */
    MOST_NAMED = 64,        /* values by name in a call */
    CHECKED = 256,          /* parts of expressions between two looks at whether memory has run out */
    LONGEST_TEXT = 1 << 20, /* bytes of a pipeline; noise of this length takes seconds and not gigabytes */
    LONGEST_OWN = 1 << 26,  /* bytes of what an operator writes; it is no noise */
};

/* What the parser knows of an expression beyond what it hands out. */
typedef struct node {
    fv_expr expr;
    int     height;
    int     start, end; /* characters from the start of the text */
} node;

typedef struct parser {
    const fv__token *token; /* the next one; a statement's last one is END and is never passed */
    fv_program      *program;
    fv_diagnostics  *diagnostics;
    int              depth;
    bool             separate; /* the statement cannot be taken for the rest of a line before it */
} parser;

typedef struct arguments {
    int          count, capacity;
    fv_argument *items;
    int          height;
} arguments;

static node *parse_expression(parser *p);

/* ---------------------------------------------------------------- errors */

static void describe(const fv__token *token, char text[64]) {
    switch (token->kind) {
    case FV__TOKEN_NAME: snprintf(text, 64, "'%.40s'%s", token->text, strlen(token->text) > 40 ? "..." : ""); break;
    case FV__TOKEN_NUMBER: snprintf(text, 64, "a number"); break;
    case FV__TOKEN_TEXT: snprintf(text, 64, "a text"); break;
    case FV__TOKEN_SIGN: snprintf(text, 64, "'%s'", token->sign->text); break;
    default: snprintf(text, 64, "the end of the line"); break;
    }
}

/* Words that other languages have signs' meanings for. */
static const struct {
    const char *word, *hint;
    bool        before; /* what it is about follows it */
} foreign_words[] = {
    { "and", "write & for and", false },
    { "or", "write | for or", false },
    { "not", "write ! for not", true },
    { "is", "write == for is", false },
    { "for", "there are no loops: an operator works on whole images, read(\"*.tif\") on many; --set sigma=1,2 tries two values",
      true },
    { "in", "there are no loops; an operator works on the whole image", false },
    { "if", "there is no if: where(condition, this, that) chooses for each voxel", true },
    { "import", "nothing has to be imported: fovea ops lists the operators", true },
    { "def", "there are no functions of your own: give the steps names, one a line", true },
};

/* Advice for what is often meant by a token that does not belong here. `before` is the token in front of it. */
static const char *advice(const fv__token *token, const fv__token *before) {
    for (int i = 0; i < FV_COUNT(foreign_words); i++) {
        bool here = token->kind == FV__TOKEN_NAME && !strcmp(token->text, foreign_words[i].word);
        bool left = before->kind == FV__TOKEN_NAME && !strcmp(before->text, foreign_words[i].word);
        if (here || (left && foreign_words[i].before)) return foreign_words[i].hint;
    }
    bool sign = before->kind == FV__TOKEN_SIGN && before->span.line == token->span.line;
    if (sign && fv__token_is(token, "=") && before->span.column + before->span.length == token->span.column)
        return "values do not change: give the new one a name, as in b = a + 1";
    if (!fv__token_is(token, "=") || (before->kind == FV__TOKEN_NAME && !strcmp(before->text, "param"))) return NULL;
    if (before->kind == FV__TOKEN_NAME && before[-1].kind == FV__TOKEN_SIGN && before[-1].span.line < before->span.line)
        return "the line before ends with an operator, so this one belongs to it";
    return "write == to compare";
}

/* Reports the next token and gives up the statement. */
static void *unexpected(parser *p, const char *expected) {
    char found[64];
    describe(p->token, found);
    fv__diagnose(p->diagnostics, p->token->span, advice(p->token, p->token - 1), "expected %s, found %s", expected, found);
    return NULL;
}

/* `a[0:10] = 0` is meant to change a, all else to compare. */
static void *misplaced_equals(parser *p) {
    bool part = fv__token_is(p->token - 1, "]");
    fv__diagnose(p->diagnostics, p->token->span,
                 part ? "values do not change: where(mask, this, that) makes a new image of two" : "write == to compare",
                 "only a plain name can stand before '='");
    return NULL;
}

static void *too_deep(parser *p, const fv_span *span) {
    fv__diagnose(p->diagnostics, *span, "give parts of it names", "the expression is too deep; expected at most %d levels",
                 DEEPEST);
    return NULL;
}

/* ---------------------------------------------------------------- building */

static bool at(const parser *p, const char *sign) { return fv__token_is(p->token, sign); }

static bool take(parser *p, const char *sign) {
    if (!at(p, sign)) return false;
    p->token++;
    return true;
}

static node *new_node(parser *p, fv_expr_kind kind, const fv__token *token) {
    node *n = fv__arena_alloc(&p->program->arena, sizeof *n);
    if (p->program->nexprs % CHECKED == 0 && fv__memory_check(NULL) != FV_OK) {
        p->program->incomplete = true;
        while (p->token->kind != FV__TOKEN_END) p->token++; /* the rest would want still more */
    }
    n->expr.id = p->program->nexprs++;
    n->expr.kind = kind;
    n->expr.span = token->span;
    n->start = token->start;
    n->end = token->end;
    n->height = 1;
    return n;
}

static void cover(node *n, const fv_span *from, int start, int end) {
    n->expr.span = (fv_span){ from->line, from->column, end - start };
    n->start = start;
    n->end = end;
}

static void push(parser *p, arguments *a, fv_argument argument, int height) {
    if (a->count == a->capacity) {
        a->capacity = FV_MAX(4, 2 * a->capacity);
        fv_argument *items = fv__arena_alloc(&p->program->arena, (size_t)a->capacity * sizeof *items);
        if (a->count) memcpy(items, a->items, (size_t)a->count * sizeof *items);
        a->items = items;
    }
    a->items[a->count++] = argument;
    a->height = FV_MAX(a->height, height);
}

static void push_node(parser *p, arguments *a, node *value) { push(p, a, (fv_argument){ .value = &value->expr }, value->height); }

/* Gives a node its children; NULL if the tree gets too high. */
static node *adopt(parser *p, node *n, const arguments *a) {
    n->expr.nargs = a->count;
    n->expr.args = a->items;
    n->height = FV_MAX(n->height, a->height + 1);
    return n->height > DEEPEST ? too_deep(p, &n->expr.text_span) : n;
}

/* An operator's sign as a call; left is NULL for a unary one. */
static node *new_sign_call(parser *p, const fv__token *sign, node *left, node *right) {
    const fv_op *op = fv__op_of_sign(sign->sign->text, left ? 2 : 1);
    node        *n = new_node(p, FV_EXPR_CALL, sign);
    arguments    a = { 0 };
    n->expr.text = op ? op->name : sign->sign->text; /* the sign itself in a program that was built without operators */
    n->expr.text_span = sign->span;
    if (left) push_node(p, &a, left);
    push_node(p, &a, right);
    cover(n, left ? &left->expr.span : &sign->span, left ? left->start : sign->start, right->end);
    return adopt(p, n, &a);
}

/* ---------------------------------------------------------------- calls, lists, slices */

static bool check_argument(parser *p, const arguments *a, const fv__token *name) {
    bool by_name = a->count && a->items[a->count - 1].name;
    if (!name && by_name) {
        fv__diagnose(p->diagnostics, p->token->span, "values by position come first",
                     "a value by position follows one by name; expected name = value");
        return false;
    }
    int named = 0;
    for (int i = a->count - 1; name && i >= 0 && a->items[i].name; i--, named++)
        if (!strcmp(a->items[i].name, name->text)) {
            fv__diagnose(p->diagnostics, name->span, NULL, "'%s' is given twice in one call", name->text);
            return false;
        }
    if (named < MOST_NAMED) return true;
    fv__diagnose(p->diagnostics, name->span, NULL, "the call has too many values by name; expected at most %d", MOST_NAMED);
    return false;
}

static const char *as_written(const parser *p, const fv__token *first);

/* The parameter that holds arguments as they are written; NULL: the operator has none. */
static const fv_param *param_written(const fv_op *op) {
    for (const fv_param *param = op ? op->params : NULL; param && param->name; param++)
        if (param->many && !param->file) return param;
    return NULL;
}

static void push_written(parser *p, arguments *a, const fv_param *param, const fv__token *first, const char *text) {
    node *value = new_node(p, FV_EXPR_TEXT, first);
    value->expr.text = text;
    push(p, a, (fv_argument){ .name = param->name, .name_span = first->span, .value = &value->expr }, value->height);
}

/* Whether a value is meant as it is written, though it has no quotes: what is computed, after the inputs. */
static bool is_written(const fv_op *op, const fv_param *written, const arguments *a, const fv__token *name, const node *value) {
    if (!written || value->expr.kind != FV_EXPR_CALL) return false;
    return name ? !strcmp(name->text, written->name) : a->count == fv__inputs_count(op) && written == op->params;
}

/* After "(": the arguments of a call of an operator (NULL: nobody knows it) and ")". Returns false after a mistake. */
static bool parse_arguments(parser *p, const fv_op *op, arguments *a) {
    const fv_param  *written = param_written(op);
    const fv__token *first = NULL;
    const char      *text = NULL;
    while (!at(p, ")")) {
        const fv__token *name = p->token->kind == FV__TOKEN_NAME && fv__token_is(p->token + 1, "=") ? p->token : NULL;
        if (!check_argument(p, a, name)) return false;
        if (name) p->token += 2;
        const fv__token *start = p->token;
        node            *value = parse_expression(p);
        if (!value) return false;
        fv_argument argument = { .value = &value->expr };
        if (name) {
            argument.name = name->text;
            argument.name_span = name->span;
        }
        if (name && written && fv__inputs_find(op, name->text) < 0 && !fv__params_find(op, name->text)) {
            text = fv__arena_printf(&p->program->arena, "%s%s%s = %s", text ? text : "", text ? ", " : "", name->text,
                                    as_written(p, start));
            if (!first) first = name;
        } else if (is_written(op, written, a, name, value))
            push_written(p, a, written, start, as_written(p, start));
        else
            push(p, a, argument, value->height);
        if (at(p, "=")) return misplaced_equals(p);
        if (!take(p, ",") && !at(p, ")")) return unexpected(p, "',' or ')' after the argument");
    }
    p->token++;
    if (text) push_written(p, a, written, first, text);
    return true;
}

/* At a name: the call, or without brackets the bare name. `first` becomes the first argument if not NULL. */
static node *parse_call(parser *p, node *first) {
    const fv__token *name = p->token++;
    arguments        a = { 0 };
    if (first) push_node(p, &a, first);
    if (!first && !at(p, "(")) {
        node *n = new_node(p, FV_EXPR_NAME, name);
        n->expr.text = name->text;
        return n;
    }
    node *n = new_node(p, FV_EXPR_CALL, name);
    n->expr.text = name->text;
    n->expr.text_span = name->span;
    if (take(p, "(") && !parse_arguments(p, fv__op_find(name->text), &a)) return NULL;
    if (at(p, "(")) {
        fv__diagnose(p->diagnostics, p->token->span, "the result of a call is a value and cannot be called",
                     "expected an operator or the end of the line, found '('");
        return NULL;
    }
    cover(n, first ? &first->expr.span : &name->span, first ? first->start : name->start, p->token[-1].end);
    return adopt(p, n, &a);
}

static node *parse_list(parser *p) {
    node     *n = new_node(p, FV_EXPR_LIST, p->token);
    arguments a = { 0 };
    n->expr.text_span = n->expr.span;
    p->token++;
    while (!at(p, "]")) {
        node *value = parse_expression(p);
        if (!value) return NULL;
        push_node(p, &a, value);
        if (!take(p, ",") && !at(p, "]")) return unexpected(p, "',' or ']' after the entry of the list");
    }
    p->token++;
    cover(n, &n->expr.span, n->start, p->token[-1].end);
    return adopt(p, n, &a);
}

/* One part of start:stop:step, or NULL in *part if it is left out. */
static bool parse_part(parser *p, fv_expr **part, int *height) {
    if (at(p, ":") || at(p, ",") || at(p, "]")) return true;
    node *n = parse_expression(p);
    if (!n) return false;
    *part = &n->expr;
    *height = FV_MAX(*height, n->height);
    return true;
}

static bool parse_index(parser *p, fv_index *index, int *height) {
    const fv__token *first = p->token;
    *index = (fv_index){ .single = true };
    if (!parse_part(p, &index->start, height)) return false;
    for (int colons = 0; colons < 2 && take(p, ":"); colons++) {
        index->single = false;
        if (!parse_part(p, colons ? &index->step : &index->stop, height)) return false;
    }
    if (index->single && !index->start) return unexpected(p, "an index such as 5, 0:100, : or ::2");
    index->span = (fv_span){ first->span.line, first->span.column, p->token[-1].end - first->start };
    if (at(p, ",") || at(p, "]")) return true;
    return unexpected(p, index->step || !index->single ? "',' or ']' after the index" : "':', ',' or ']' after the index");
}

/* At "[": a slice of what. */
static node *parse_slice(parser *p, node *what) {
    node     *n = new_node(p, FV_EXPR_SLICE, p->token);
    arguments a = { 0 };
    int       capacity = 0;
    n->expr.text_span = p->token->span;
    push_node(p, &a, what);
    p->token++;
    do {
        if (n->expr.nindices == capacity) {
            capacity = FV_MAX(4, 2 * capacity);
            fv_index *indices = fv__arena_alloc(&p->program->arena, (size_t)capacity * sizeof *indices);
            if (n->expr.nindices) memcpy(indices, n->expr.indices, (size_t)n->expr.nindices * sizeof *indices);
            n->expr.indices = indices;
        }
        if (!parse_index(p, &n->expr.indices[n->expr.nindices++], &a.height)) return NULL;
        take(p, ",");
    } while (!at(p, "]"));
    p->token++;
    cover(n, &what->expr.span, what->start, p->token[-1].end);
    return adopt(p, n, &a);
}

static node *parse_slices(parser *p, node *what) {
    while (what && at(p, "[")) what = parse_slice(p, what);
    return what;
}

/* ---------------------------------------------------------------- expressions */

static node *parse_word(parser *p) {
    const fv__token *t = p->token;
    bool             yes = !strcmp(t->text, "true"), no = !strcmp(t->text, "false");
    if (!strcmp(t->text, "True") || !strcmp(t->text, "False")) {
        fv__diagnose(p->diagnostics, t->span, NULL, "'%s' means nothing here; expected %s", t->text,
                     *t->text == 'T' ? "true" : "false");
        return NULL;
    }
    if (!strcmp(t->text, "param")) return unexpected(p, "a value");
    if (!yes && !no) return parse_call(p, NULL);
    node *n = new_node(p, FV_EXPR_FLAG, t);
    n->expr.flag = yes;
    p->token++;
    return n;
}

static node *parse_group(parser *p) {
    const fv__token *open = p->token++;
    node            *n = parse_expression(p);
    if (!n) return NULL;
    if (at(p, ",")) {
        fv__diagnose(p->diagnostics, p->token->span, "a list is written [1, 2, 3]", "expected an operator or ')', found ','");
        return NULL;
    }
    if (!at(p, ")")) return unexpected(p, "an operator or ')'");
    p->token++;
    cover(n, &open->span, open->start, p->token[-1].end);
    return n;
}

static node *parse_primary(parser *p) {
    const fv__token *t = p->token;
    node            *n;
    char             expected[104], before[64];
    switch (t->kind) {
    case FV__TOKEN_NUMBER:
        n = new_node(p, FV_EXPR_NUMBER, t);
        n->expr.number = t->number;
        n->expr.integral = t->integral;
        p->token++;
        return n;
    case FV__TOKEN_TEXT:
        n = new_node(p, FV_EXPR_TEXT, t);
        n->expr.text = t->text;
        p->token++;
        return n;
    case FV__TOKEN_NAME: return parse_word(p);
    default: break;
    }
    if (at(p, "(")) return parse_group(p);
    if (at(p, "[")) return parse_list(p);
    describe(t - 1, before);
    snprintf(expected, sizeof expected, "a value after %s%s", before, fv__token_is(t - 1, "%") ? " (1 % is written 0.01)" : "");
    return unexpected(p, expected);
}

static node *parse_unary(parser *p);

static node *parse_power(parser *p) {
    node            *base = parse_slices(p, parse_primary(p));
    const fv__token *sign = p->token;
    if (!base || !take(p, "**")) return base;
    node *exponent = parse_unary(p);
    return exponent ? new_sign_call(p, sign, base, exponent) : NULL;
}

/* Every way to recurse leads through here, so that the depth is counted here. */
static node *parse_unary(parser *p) {
    const fv__token *sign = p->token;
    if (p->depth == DEEPEST) return too_deep(p, &sign->span);
    p->depth++;
    node *n;
    if (take(p, "-")) {
        n = parse_unary(p);
        if (n && n->expr.kind == FV_EXPR_NUMBER) { /* -3 is a number, so that it can stand where only those can */
            n->expr.number = -n->expr.number;
            cover(n, &sign->span, sign->start, n->end);
        } else if (n) {
            n = new_sign_call(p, sign, NULL, n);
        }
    } else if (take(p, "!")) {
        n = parse_unary(p);
        if (n) n = new_sign_call(p, sign, NULL, n);
    } else if (take(p, "+")) {
        n = parse_unary(p);
    } else {
        n = parse_power(p);
    }
    p->depth--;
    return n;
}

static int binds(const fv__token *token) { return token->kind == FV__TOKEN_SIGN ? token->sign->binds : 0; }

/* Operators that bind at least as tightly as `least`, from left to right. */
static node *parse_binary(parser *p, int least) {
    node *left = parse_unary(p);
    while (left && binds(p->token) >= least) {
        const fv__token *sign = p->token++;
        int              tight = binds(sign);
        node            *right = parse_binary(p, tight + 1);
        if (!right) return NULL;
        left = new_sign_call(p, sign, left, right);
        if (left && tight == FV__BINDS_COMPARISON && binds(p->token) == FV__BINDS_COMPARISON) {
            fv__diagnose(p->diagnostics, p->token->span, "write a < b & b < c",
                         "comparisons cannot be chained; expected '&' between two of them");
            return NULL;
        }
    }
    return left;
}

/* After "|>". */
static node *parse_target(parser *p, node *value) {
    if (p->token->kind != FV__TOKEN_NAME || !strcmp(p->token->text, "true") || !strcmp(p->token->text, "false"))
        return unexpected(p, "the name of an operator after '|>'");
    node *n = parse_slices(p, parse_call(p, value));
    if (n && binds(p->token)) {
        char text[120];
        snprintf(text, sizeof text, "'|>' binds loosest; put brackets around what comes before '%s'", p->token->sign->text);
        fv__diagnose(p->diagnostics, p->token->span, text, "expected one call after '|>', found '%s' behind it",
                     p->token->sign->text);
        return NULL;
    }
    return n;
}

static node *parse_expression(parser *p) {
    node *n = parse_binary(p, 1);
    while (n && take(p, "|>")) n = parse_target(p, n);
    return n;
}

/* ---------------------------------------------------------------- statements */

static bool is_literal(const fv_expr *expr, bool inside) {
    if (expr->kind == FV_EXPR_NUMBER || expr->kind == FV_EXPR_TEXT || expr->kind == FV_EXPR_FLAG) return true;
    if (expr->kind != FV_EXPR_LIST || inside) return false;
    for (int i = 0; i < expr->nargs; i++)
        if (!is_literal(expr->args[i].value, true)) return false;
    return true;
}

static bool at_name(const parser *p) {
    if (p->token->kind != FV__TOKEN_NAME) return false;
    const char *text = p->token->text;
    return strcmp(text, "true") && strcmp(text, "false") && strcmp(text, "param");
}

static node *finish(parser *p, node *value) {
    if (!value || p->token->kind == FV__TOKEN_END) return value;
    return unexpected(p, "an operator or the end of the line");
}

static bool parse_definition(parser *p, fv_statement *statement) {
    bool param = statement->kind == FV_STATEMENT_PARAM;
    if (!at_name(p)) return unexpected(p, param ? "a name after 'param'" : "a name before '='");
    statement->name = p->token->text;
    statement->name_span = p->token->span;
    p->token++;
    if (!take(p, "=")) return unexpected(p, "'=' after the name");
    node *value = finish(p, parse_expression(p));
    if (!value) return false;
    statement->value = &value->expr;
    if (!param || is_literal(statement->value, false)) return true;
    fv__diagnose(p->diagnostics, value->expr.span, "drop the word 'param' to give a name to a computed value",
                 "a parameter must be a plain value; expected a number, a text, true, false or a list of these");
    return false;
}

/* Tokens counted in characters, the text in bytes. */
static const char *skip_characters(const char *text, int count) {
    for (; count > 0 && *text; count--) do
            text++;
        while (((unsigned char)*text & 0xc0) == 0x80);
    return text;
}

/* From a token up to the current one, with a blank for whatever blanks, line ends and comments were between two of them. */
static const char *as_written(const parser *p, const fv__token *first) {
    fv_bytes    out = { 0 };
    const char *from = skip_characters(p->program->text, first->start);
    for (const fv__token *t = first; t < p->token; t++) {
        const char *end = skip_characters(from, t->end - t->start);
        fv__bytes_append(&out, from, (size_t)(end - from));
        if (t + 1 < p->token && t[1].start > t->end) fv__bytes_append(&out, " ", 1);
        if (t + 1 < p->token) from = skip_characters(end, t[1].start - t->end);
    }
    const char *text = fv__arena_strndup(&p->program->arena, out.size ? (char *)out.data : "", out.size);
    fv__bytes_release(&out);
    return text;
}

/* A line that begins with a sign may be meant to go on from the one before; where there is none, -3 is a value. */
static bool parse_bare(parser *p, fv_statement *statement) {
    const fv__token *first = p->token;
    bool             minus = at(p, "-");
    if ((binds(first) || at(p, "|>")) && !(minus && p->separate)) {
        const char *hint = at(p, "|>") ? NULL
                           : minus
                               ? "if it goes on from the line before, end that line with -; a value of its own stands in brackets"
                               : "end the line before with it, or put all in brackets";
        fv__diagnose(p->diagnostics, first->span, hint, "a statement cannot start with '%s'; expected name = value or a call",
                     first->sign->text);
        return false;
    }
    if (first->kind == FV__TOKEN_SIGN && !at(p, "(") && !at(p, "[") && !at(p, "!") && !minus)
        return unexpected(p, "name = value or a call");
    node *value = parse_expression(p);
    if (value && at(p, "=")) return misplaced_equals(p);
    value = finish(p, value);
    if (!value) return false;
    statement->value = &value->expr;
    statement->text = as_written(p, first);
    return true;
}

static bool parse_statement(parser *p, fv_statement *statement) {
    bool word = p->token->kind == FV__TOKEN_NAME;
    if (word && !strcmp(p->token->text, "param")) {
        statement->kind = FV_STATEMENT_PARAM;
        p->token++;
        return parse_definition(p, statement);
    }
    statement->kind = word && fv__token_is(p->token + 1, "=") ? FV_STATEMENT_ASSIGN : FV_STATEMENT_BARE;
    return statement->kind == FV_STATEMENT_ASSIGN ? parse_definition(p, statement) : parse_bare(p, statement);
}

typedef struct wanted {
    const fv_program *program;
    const char       *name;
} wanted;

static bool is_wanted(const void *context, uint32_t number) {
    const wanted *w = context;
    return !strcmp(w->program->statements[number].name, w->name);
}

static uint64_t hash_of(const char *name) { return fv__hash_bytes(name, strlen(name)).low; }

int fv__program_find(const fv_program *program, const char *name) {
    return (int)fv__hash_table_number(&program->names, hash_of(name), is_wanted, &(wanted){ program, name });
}

static void note_name(fv_program *program, int statement) {
    const fv_statement *s = &program->statements[statement];
    if (s->kind != FV_STATEMENT_ASSIGN || fv__program_find(program, s->name) >= 0) return;
    fv__hash_table_reserve(&program->names, 16, statement + 1);
    fv__hash_table_add(&program->names, true, (uint32_t)hash_of(s->name), (uint32_t)statement);
}

void fv__program_drop_bare(fv_program *program) {
    int kept = 0;
    for (int i = 0; i < program->nstatements; i++)
        if (program->statements[i].kind != FV_STATEMENT_BARE) program->statements[kept++] = program->statements[i];
    program->nstatements = kept;
    free(program->names.slot);
    program->names = (fv_hash_table){ 0 };
    for (int i = 0; i < kept; i++) note_name(program, i);
}

static fv_program *parse(const char *file, const char *text, size_t longest, fv_diagnostics *diagnostics) {
    fv_program *program = fv__calloc(sizeof *program);
    size_t      length = strlen(text);
    program->file = fv__arena_strdup(&program->arena, file);
    program->text = fv__arena_strndup(&program->arena, text, length <= longest ? length : 0);
    if (length > longest) {
        fv__diagnose(diagnostics, (fv_span){ 1, 1, 1 }, NULL, "the text is %zu bytes long; expected a pipeline of at most %zu",
                     length, longest);
        return program;
    }
    fv__tokens tokens = { 0 }, joined = { 0 };
    fv__ranges ranges = { 0 };
    fv__lex(program->text, &program->arena, &tokens, diagnostics);
    if (!tokens.cut) fv__layout(&tokens, &joined, &ranges, diagnostics);
    program->incomplete = tokens.cut || joined.cut;
    program->statements = fv__arena_alloc(&program->arena, (size_t)ranges.count * sizeof *program->statements);
    for (int i = 0; i < ranges.count && !program->incomplete; i++) {
        const fv__token *first = &joined.items[ranges.items[i].first];
        parser           p = { .token = first,
                               .separate = i == 0 || first[-1].span.line == first->span.line,
                               .program = program,
                               .diagnostics = diagnostics };
        fv_statement     statement = { 0 };
        if (!ranges.items[i].bad && parse_statement(&p, &statement)) program->statements[program->nstatements++] = statement;
    }
    for (int i = 0; i < program->nstatements; i++) note_name(program, i);
    if (program->incomplete) {
        fv__diagnostics_release(diagnostics); /* mistakes of a text that was not read to its end are none */
        fv__diagnose(diagnostics, (fv_span){ 1, 1, 1 }, NULL, "out of memory while a text of %zu bytes was read", length);
    }
    free(tokens.items);
    free(joined.items);
    free(ranges.items);
    return program;
}

fv_program *fv__program_parse(const char *file, const char *text, fv_diagnostics *diagnostics) {
    return parse(file, text, LONGEST_TEXT, diagnostics);
}

fv_program *fv__expansion_parse(const char *name, const char *text, fv_diagnostics *diagnostics) {
    return parse(name, text, LONGEST_OWN, diagnostics);
}

void fv__program_free(fv_program *program) {
    if (!program) return;
    free(program->names.slot);
    fv__arena_release(&program->arena);
    free(program);
}
