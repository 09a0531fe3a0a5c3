/* Conditions on the rows of a table: from text to steps, and the steps on a row.
 *
 * Not by the parser of the language: there `and`, `or` and `not` are refused with advice, here they are how people write
 * conditions, and its messages name a line and column of the pipeline, these the character of the text. */
#include "op/condition.h"
#include "base/math.h"
#include "op/table_rows.h"
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
    POWER,
    LESS,
    LESS_EQUAL,
    GREATER,
    GREATER_EQUAL,
    EQUAL,
    NOT_EQUAL,
    NOT,
    AND,
    OR,
    OF_TEXTS = 100, /* + a comparison */
    FUNCTION = 200  /* + its place in functions */
};
typedef enum { A_NUMBER, A_TRUTH, A_TEXT } kind;

/* n number, t text, c comparison, = like the one before; the first letter is that of the result. */
static const struct {
    const char *name, *kinds;
    bool        whole; /* of whole numbers it is one */
} functions[] = { { "sqrt", "nn", false },  { "abs", "nn", true },    { "exp", "nn", false },  { "log", "nn", false },
                  { "log10", "nn", false }, { "floor", "nn", false }, { "ceil", "nn", false }, { "round", "nn", false },
                  { "min", "nnn", true },   { "max", "nnn", true },   { "if", "nc?=", true },  { "part", "tttn", false },
                  { "length", "nt", true } };
enum { SQRT, ABS, EXP, LOG, LOG10, FLOOR, CEIL, ROUND, MINIMUM, MAXIMUM, IF, PART, LENGTH };

/* ---------------------------------------------------------------- from text to steps */

typedef struct {
    const char          *name, *text, *at;
    const fv_table_type *table;
    fv_condition        *out;
    int                  depth;   /* values on the stack */
    int                  nesting; /* of brackets and signs */
    bool                 whole;   /* so far all numbers are whole and stay so */
    fv_error            *error;
} parser;

static fv_status either(parser *p, kind *k);

static fv_status wrong(parser *p, const char *what) {
    return fv_fail(p->error, FV_ERROR_USAGE, "%s = \"%s\", at character %d: %s", p->name, p->text, (int)(p->at - p->text) + 1,
                   what);
}

static fv_status emit(parser *p, int what, int column, double number) {
    fv_condition *c = p->out;
    if (what >= FUNCTION)
        p->depth -= (int)strlen(functions[what - FUNCTION].kinds) - 2;
    else
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
            if (p->table->column[i].kind == FV_COLUMN_REAL) p->whole = false;
            p->at += n;
            return emit(p, COLUMN, i, 0);
        }
    return unknown_column(p, word);
}

/* The arguments of a function, in their brackets. */
static fv_status arguments(parser *p, int f, kind *k) {
    const char *wanted = functions[f].kinds + 1;
    kind        before = A_NUMBER;
    if (p->nesting == FV_CONDITION_DEPTH) return wrong(p, "the condition is nested too deeply");
    p->nesting++;
    for (int i = 0; wanted[i]; i++) {
        kind found;
        if (i && !accept(p, ",")) return wrong(p, "a comma and another value are missing here");
        bool whole = p->whole;
        FV_TRY(either(p, &found));
        if (found != A_NUMBER) p->whole = whole; /* what is compared may be real */
        bool fits = wanted[i] == '?'   ? found != A_TRUTH
                    : wanted[i] == '=' ? found == before
                                       : found == (wanted[i] == 't'   ? A_TEXT
                                                   : wanted[i] == 'c' ? A_TRUTH
                                                                      : A_NUMBER);
        if (!fits)
            return wrong(p, wanted[i] == 't'   ? "a text belongs here"
                            : wanted[i] == 'c' ? "a comparison belongs here"
                            : wanted[i] == '=' ? "both results must be numbers, or both texts"
                                               : "a number belongs here");
        before = found;
    }
    p->nesting--;
    if (!accept(p, ")")) return wrong(p, "a ) is missing");
    if (!functions[f].whole) p->whole = false;
    *k = f == IF ? before : *functions[f].kinds == 't' ? A_TEXT : A_NUMBER;
    return emit(p, FUNCTION + f, 0, 0);
}

/* A column, or the name of a function and its arguments. */
static fv_status named(parser *p, kind *k) {
    size_t n = 0;
    while (name_character(p->at[n])) n++;
    for (int f = 0; f < FV_COUNT(functions); f++) {
        const char *after = p->at + n + strspn(p->at + n, " ");
        if (*after != '(' || strlen(functions[f].name) != n || strncmp(functions[f].name, p->at, n)) continue;
        p->at = after + 1;
        return arguments(p, f, k);
    }
    if (p->at[n + strspn(p->at + n, " ")] == '(') return wrong(p, "there is no such function; there are " FV_VALUE_FUNCTIONS);
    return column(p, k);
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
        if (number != floor(number)) p->whole = false;
        return emit(p, NUMBER, 0, number);
    }
    if (*p->at == '\'' || *p->at == '"') return quoted(p, k);
    if (isalpha((unsigned char)*p->at) || *p->at == '_') return named(p, k);
    return wrong(p, *p->at ? "a number, a text in quotes or the name of a column belongs here"
                           : "the text ends; a number or a column is missing");
}

static fv_status unary(parser *p, kind *k);

static fv_status power(parser *p, kind *k) {
    FV_TRY(primary(p, k));
    if (!accept(p, "**")) return FV_OK;
    kind other;
    FV_TRY(unary(p, &other));
    p->whole = false;
    return *k == A_NUMBER && other == A_NUMBER ? emit(p, POWER, 0, 0) : wrong(p, "** needs numbers");
}

static fv_status unary(parser *p, kind *k) {
    if (!accept(p, "-")) return power(p, k);
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
        if (o->what == DIVIDE) p->whole = false;
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

fv_status fv__value_parse(fv_condition *value, const char *name, const char *text, const char **at, const fv_table_type *table,
                          fv_column_kind *column, fv_error *error) {
    parser p = { .name = name, .text = text, .at = *at, .table = table, .out = value, .whole = true, .error = error };
    kind   k;
    value->count = value->text_size = 0;
    FV_TRY(either(&p, &k));
    blanks(&p);
    if (*p.at && *p.at != ',') return wrong(&p, "a comma belongs between two columns");
    *at = p.at;
    *column = k == A_TEXT ? FV_COLUMN_TEXT : k == A_TRUTH || p.whole ? FV_COLUMN_INTEGER : FV_COLUMN_REAL;
    return FV_OK;
}

/* ---------------------------------------------------------------- the steps on a row */

static double apply(int what, double a, double b) {
    switch (what) {
    case ADD: return a + b;
    case SUBTRACT: return a - b;
    case MULTIPLY: return a * b;
    case DIVIDE: return a / b;
    case POWER: return fv__pow(a, b);
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

/* A text need not end in NUL: it may be a part of another. */
typedef struct {
    double      number;
    const char *text;
    size_t      length;
} operand;

static double apply_to_texts(int what, const operand *a, const operand *b) {
    if (!a->text || !b->text) return what == NOT_EQUAL;
    int order = memcmp(a->text, b->text, FV_MIN(a->length, b->length));
    return apply(what, order ? order : (a->length > b->length) - (a->length < b->length), 0);
}

/* The n-th of the parts that a text has between the separators; from the end if n is negative. */
static operand part_of(const operand *whole, const operand *separator, double which) {
    const operand missing = { 0 };
    if (!whole->text || !separator->text || !separator->length || !(fabs(which) < 1e9)) return missing;
    const char *start = whole->text, *end = start + whole->length;
    int64_t     count = 1, n = (int64_t)which;
    for (const char *p = start; (p = memmem(p, (size_t)(end - p), separator->text, separator->length)); p += separator->length)
        count++;
    if (n < 0) n += count;
    if (n < 0 || n >= count) return missing;
    for (; n; n--)
        start = (const char *)memmem(start, (size_t)(end - start), separator->text, separator->length) + separator->length;
    const char *stop = memmem(start, (size_t)(end - start), separator->text, separator->length);
    return (operand){ .text = start, .length = (size_t)((stop ? stop : end) - start) };
}

static operand call(int function, const operand *a) {
    double x = a->number, y = a[1].number;
    switch (function) {
    case SQRT: return (operand){ .number = sqrt(x) };
    case ABS: return (operand){ .number = fabs(x) };
    case EXP: return (operand){ .number = fv__exp(x) };
    case LOG: return (operand){ .number = fv__ln(x) };
    case LOG10: return (operand){ .number = fv__log10(x) };
    case FLOOR: return (operand){ .number = floor(x) };
    case CEIL: return (operand){ .number = ceil(x) };
    case ROUND: return (operand){ .number = rint(x) };
    case MINIMUM: return (operand){ .number = x != x || y != y ? NAN : FV_MIN(x, y) };
    case MAXIMUM: return (operand){ .number = x != x || y != y ? NAN : FV_MAX(x, y) };
    case IF: return x != 0 ? a[1] : a[2];
    case PART: return part_of(&a[0], &a[1], a[2].number);
    default: return (operand){ .number = a->text ? (double)a->length : 0 };
    }
}

static operand column_value(const fv_table_type *table, const fv_cell *row, int c) {
    if (table->column[c].kind == FV_COLUMN_TEXT)
        return (operand){ .text = row[c].text, .length = row[c].text ? strlen(row[c].text) : 0 };
    return (operand){ .number = fv__cell_number(table->column[c].kind, row[c]) };
}

static operand evaluate(const fv_condition *condition, const fv_table_type *table, const fv_cell *row) {
    operand stack[FV_CONDITION_DEPTH + 1];
    int     top = -1;
    stack[0] = (operand){ 0 };
    for (int i = 0; i < condition->count; i++) {
        int what = condition->step[i].what, from = condition->step[i].column;
        if (what == NUMBER)
            stack[++top] = (operand){ .number = condition->step[i].number };
        else if (what == COLUMN)
            stack[++top] = column_value(table, row, from);
        else if (what == TEXT)
            stack[++top] = (operand){ .text = condition->text + from, .length = strlen(condition->text + from) };
        else if (what == NEGATIVE)
            stack[top].number = -stack[top].number;
        else if (what == NOT)
            stack[top].number = stack[top].number == 0;
        else if (what >= FUNCTION) {
            top -= (int)strlen(functions[what - FUNCTION].kinds) - 2;
            stack[top] = call(what - FUNCTION, &stack[top]);
        } else {
            top--;
            stack[top].number = what >= OF_TEXTS ? apply_to_texts(what - OF_TEXTS, &stack[top], &stack[top + 1])
                                                 : apply(what, stack[top].number, stack[top + 1].number);
        }
    }
    return stack[0];
}

bool fv__condition_holds(const fv_condition *condition, const fv_table_type *table, const fv_cell *row) {
    return evaluate(condition, table, row).number != 0;
}

fv_status fv__value_of(const fv_condition *value, const fv_table_type *table, const fv_cell *row, fv_column_kind wanted,
                       fv_bytes *room, fv_cell *cell, fv_error *error) {
    if (value->count == 1 && value->step[0].what == COLUMN && wanted == FV_COLUMN_INTEGER) { /* exactly, however large */
        *cell = row[value->step[0].column];
        return FV_OK;
    }
    operand result = evaluate(value, table, row);
    if (wanted == FV_COLUMN_TEXT) {
        fv__bytes_clear(room);
        if (result.text) fv__bytes_append(room, result.text, result.length);
        if (result.text) fv__bytes_append(room, "", 1);
        cell->text = result.text ? (const char *)room->data : NULL;
    } else if (wanted == FV_COLUMN_REAL)
        cell->real = result.number;
    else if (!(fabs(result.number) < 0x1p53))
        return fv_fail(error, FV_ERROR_INPUT,
                       "a whole number of about %.6g is too large to be computed exactly; divide it by 1 to get a real number",
                       result.number);
    else
        cell->integer = (int64_t)result.number;
    return FV_OK;
}
