/* Conditions on the rows of a table: from text to steps, and the steps on a row. */
#include "op/condition.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    NUMBER,
    COLUMN,
    TEXT,
    NEGATIVE,
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    LESS,
    LESS_EQUAL,
    GREATER,
    GREATER_EQUAL,
    EQUAL,
    NOT_EQUAL,
    NOT,
    AND,
    OR,
    OF_TEXTS = 100
}; /* OF_TEXTS + a comparison */
typedef enum { A_NUMBER, A_TRUTH, A_TEXT } kind;

/* ---------------------------------------------------------------- from text to steps */

typedef struct {
    const char          *name, *text, *at;
    const fv_table_type *table;
    fv_condition        *out;
    int                  depth;   /* values on the stack */
    int                  nesting; /* of brackets and signs */
    fv_error            *error;
} parser;

static fv_status either(parser *p, kind *k);

static fv_status wrong(parser *p, const char *what) {
    return fv_fail(p->error, FV_ERROR_USAGE, "%s = \"%s\", at character %d: %s", p->name, p->text, (int)(p->at - p->text) + 1,
                   what);
}

static fv_status emit(parser *p, int what, int column, double number) {
    fv_condition *c = p->out;
    p->depth += what <= TEXT ? 1 : what == NEGATIVE || what == NOT ? 0 : -1;
    if (c->count == FV_CONDITION_STEPS || p->depth > FV_CONDITION_DEPTH) return wrong(p, "the condition is too long");
    c->step[c->count].what = what;
    c->step[c->count].column = column;
    c->step[c->count++].number = number;
    return FV_OK;
}

static void blanks(parser *p) {
    while (isspace((unsigned char)*p->at)) p->at++;
}

static bool name_character(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* A sign, or a word that stands alone. */
static bool accept(parser *p, const char *sign) {
    size_t n = strlen(sign);
    blanks(p);
    if (strncmp(p->at, sign, n) || (isalpha((unsigned char)*sign) && name_character(p->at[n]))) return false;
    p->at += n;
    return true;
}

static fv_status unknown_column(parser *p, const char *word) {
    const char *names[FV_MAX_COLUMNS];
    fv_bytes    list = { 0 };
    for (int i = 0; i < p->table->ncolumns; i++) {
        names[i] = p->table->column[i].name;
        fv__bytes_printf(&list, "%s%s", i ? ", " : "", names[i]);
    }
    fv__bytes_append(&list, "", 1);
    const char *near = fv_nearest_word(word, names, p->table->ncolumns);
    fv_status   status =
        fv_fail(p->error, FV_ERROR_USAGE, "%s = \"%s\": the table has no column %s%s%s%s; it has %s", p->name, p->text, word,
                near ? " (did you mean " : "", near ? near : "", near ? "?)" : "", (char *)list.data);
    fv__bytes_release(&list);
    return status;
}

static fv_status column(parser *p, kind *k) {
    char word[40];
    int  n = 0;
    while (name_character(p->at[n])) n++;
    snprintf(word, sizeof word, "%.*s", n, p->at);
    for (int i = 0; i < p->table->ncolumns; i++)
        if (!strcmp(p->table->column[i].name, word)) {
            *k = p->table->column[i].kind == FV_COLUMN_TEXT ? A_TEXT : A_NUMBER;
            p->at += n;
            return emit(p, COLUMN, i, 0);
        }
    return unknown_column(p, word);
}

/* 'text' or "text"; the quote inside is written twice. */
static fv_status quoted(parser *p, kind *k) {
    fv_condition *c = p->out;
    char          quote = *p->at++;
    int           start = c->text_size;
    for (; *p->at != quote || p->at[1] == quote; p->at++) {
        if (!*p->at) return wrong(p, "the closing quote is missing");
        if (*p->at == quote) p->at++;
        if (c->text_size >= FV_CONDITION_TEXT - 1) return wrong(p, "the texts of the condition are too long");
        c->text[c->text_size++] = *p->at;
    }
    p->at++;
    c->text[c->text_size++] = 0;
    *k = A_TEXT;
    return c->text_size < FV_CONDITION_TEXT ? emit(p, TEXT, start, 0) : wrong(p, "the texts of the condition are too long");
}

static fv_status primary(parser *p, kind *k) {
    blanks(p);
    *k = A_NUMBER;
    if (accept(p, "(")) {
        FV_TRY(either(p, k));
        return accept(p, ")") ? FV_OK : wrong(p, "a ) is missing");
    }
    if (isdigit((unsigned char)*p->at) || (*p->at == '.' && isdigit((unsigned char)p->at[1]))) {
        char  *end;
        double number = strtod(p->at, &end);
        p->at = end;
        if (name_character(*p->at)) return wrong(p, "this is neither a number nor a column");
        return emit(p, NUMBER, 0, number);
    }
    if (*p->at == '\'' || *p->at == '"') return quoted(p, k);
    if (isalpha((unsigned char)*p->at) || *p->at == '_') return column(p, k);
    return wrong(p, *p->at ? "a number, a text in quotes or the name of a column belongs here"
                           : "the text ends; a number or a column is missing");
}

static fv_status unary(parser *p, kind *k) {
    if (!accept(p, "-")) return primary(p, k);
    if (p->nesting == FV_CONDITION_DEPTH) return wrong(p, "the condition is nested too deeply");
    p->nesting++;
    FV_TRY(unary(p, k));
    p->nesting--;
    return *k == A_NUMBER ? emit(p, NEGATIVE, 0, 0) : wrong(p, "- needs a number");
}

typedef struct {
    const char *sign;
    int         what;
} operation;

/* left (sign right)*, where both sides are of one kind and so is the result. */
static fv_status chain(parser *p, kind *k, fv_status (*side)(parser *, kind *), const operation *signs, kind wanted) {
    FV_TRY(side(p, k));
    for (;;) {
        const operation *o = signs;
        while (o->sign && !accept(p, o->sign)) o++;
        if (!o->sign) return FV_OK;
        kind        other;
        const char *rule = wanted == A_NUMBER ? "numbers belong here, not comparisons or texts" : "& and | join comparisons";
        if (*k != wanted) return wrong(p, rule);
        FV_TRY(side(p, &other));
        if (other != wanted) return wrong(p, rule);
        FV_TRY(emit(p, o->what, 0, 0));
    }
}

static fv_status product(parser *p, kind *k) {
    static const operation signs[] = { { "*", MULTIPLY }, { "/", DIVIDE }, { NULL, 0 } };
    return chain(p, k, unary, signs, A_NUMBER);
}

static fv_status sum(parser *p, kind *k) {
    static const operation signs[] = { { "+", ADD }, { "-", SUBTRACT }, { NULL, 0 } };
    return chain(p, k, product, signs, A_NUMBER);
}

static const operation comparisons[] = { { "<=", LESS_EQUAL }, { ">=", GREATER_EQUAL }, { "==", EQUAL }, { "!=", NOT_EQUAL },
                                         { "<", LESS },        { ">", GREATER },        { NULL, 0 } };

static fv_status comparison(parser *p, kind *k) {
    FV_TRY(sum(p, k));
    const operation *o = comparisons;
    while (o->sign && !accept(p, o->sign)) o++;
    if (!o->sign) return accept(p, "=") ? wrong(p, "equality is written ==") : FV_OK;
    kind other;
    FV_TRY(sum(p, &other));
    if (*k != other || *k == A_TRUTH) return wrong(p, "only a number with a number and a text with a text can be compared");
    FV_TRY(emit(p, *k == A_TEXT ? OF_TEXTS + o->what : o->what, 0, 0));
    *k = A_TRUTH;
    for (o = comparisons; o->sign; o++)
        if (accept(p, o->sign)) return wrong(p, "comparisons cannot be chained; write a < b & b < c");
    return FV_OK;
}

static fv_status negation(parser *p, kind *k) {
    blanks(p);
    if (!(p->at[0] == '!' && p->at[1] != '=' && accept(p, "!")) && !accept(p, "not")) return comparison(p, k);
    if (p->nesting == FV_CONDITION_DEPTH) return wrong(p, "the condition is nested too deeply");
    p->nesting++;
    FV_TRY(negation(p, k));
    p->nesting--;
    return *k == A_TRUTH ? emit(p, NOT, 0, 0) : wrong(p, "! needs a comparison");
}

static fv_status both(parser *p, kind *k) {
    static const operation signs[] = { { "&", AND }, { "and", AND }, { NULL, 0 } };
    return chain(p, k, negation, signs, A_TRUTH);
}

static fv_status either(parser *p, kind *k) {
    static const operation signs[] = { { "|", OR }, { "or", OR }, { NULL, 0 } };
    if (p->nesting == FV_CONDITION_DEPTH) return wrong(p, "the condition is nested too deeply");
    p->nesting++;
    FV_TRY(chain(p, k, both, signs, A_TRUTH));
    p->nesting--;
    return FV_OK;
}

fv_status fv__condition_parse(fv_condition *condition, const char *name, const char *text, const fv_table_type *table,
                              fv_error *error) {
    parser p = { .name = name, .text = text, .at = text, .table = table, .out = condition, .error = error };
    kind   k;
    condition->count = condition->text_size = 0;
    FV_TRY(either(&p, &k));
    blanks(&p);
    if (*p.at) return wrong(&p, "this does not belong to a condition");
    return k == A_TRUTH ? FV_OK : wrong(&p, "a comparison is needed, such as volume > 100");
}

/* ---------------------------------------------------------------- the steps on a row */

static double apply(int what, double a, double b) {
    switch (what) {
    case ADD: return a + b;
    case SUBTRACT: return a - b;
    case MULTIPLY: return a * b;
    case DIVIDE: return a / b;
    case LESS: return a < b;
    case LESS_EQUAL: return a <= b;
    case GREATER: return a > b;
    case GREATER_EQUAL: return a >= b;
    case EQUAL: return a == b;
    case NOT_EQUAL: return a != b;
    case AND: return a != 0 && b != 0;
    default: return a != 0 || b != 0;
    }
}

static double apply_to_texts(int what, const char *a, const char *b) {
    if (!a || !b) return what == NOT_EQUAL;
    return apply(what, strcmp(a, b), 0);
}

typedef union {
    double      number;
    const char *text;
} operand;

static operand column_value(const fv_table_type *table, const fv_cell *row, int c) {
    if (table->column[c].kind == FV_COLUMN_TEXT) return (operand){ .text = row[c].text };
    return (operand){ .number = table->column[c].kind == FV_COLUMN_INTEGER ? (double)row[c].integer : row[c].real };
}

bool fv__condition_holds(const fv_condition *condition, const fv_table_type *table, const fv_cell *row) {
    operand stack[FV_CONDITION_DEPTH + 1];
    int     top = -1;
    for (int i = 0; i < condition->count; i++) {
        int what = condition->step[i].what, from = condition->step[i].column;
        if (what == NUMBER)
            stack[++top].number = condition->step[i].number;
        else if (what == COLUMN)
            stack[++top] = column_value(table, row, from);
        else if (what == TEXT)
            stack[++top].text = condition->text + from;
        else if (what == NEGATIVE)
            stack[top].number = -stack[top].number;
        else if (what == NOT)
            stack[top].number = stack[top].number == 0;
        else {
            top--;
            stack[top].number = what >= OF_TEXTS ? apply_to_texts(what - OF_TEXTS, stack[top].text, stack[top + 1].text)
                                                 : apply(what, stack[top].number, stack[top + 1].number);
        }
    }
    return stack[0].number != 0;
}
