/* A pipeline text as statements and expressions, each with its place in the text. */
#ifndef FV_AST_H
#define FV_AST_H

#include "base/hash_table.h"

typedef struct fv_span { /* 1-based; columns count characters, so that a caret lands right */
    int line, column, length;
} fv_span;

/* Operators are calls: + add, - subtract, * multiply, / divide, % remainder, ** power, == equal, != not_equal, < less,
 * <= less_equal, > greater, >= greater_equal, & and, | or, ! not, unary - negative. `a |> f(b)` is f(a, b). */
typedef enum fv_expr_kind {
    FV_EXPR_NUMBER,
    FV_EXPR_TEXT,
    FV_EXPR_FLAG,
    FV_EXPR_NAME,
    FV_EXPR_LIST,
    FV_EXPR_CALL,
    FV_EXPR_SLICE,
} fv_expr_kind;

typedef struct fv_expr fv_expr;

typedef struct fv_argument {
    const char *name; /* NULL: by position */
    fv_span     name_span;
    fv_expr    *value;
} fv_argument;

typedef struct fv_index { /* [i] or [start:stop:step]; parts left out are NULL */
    bool     single;
    fv_expr *start, *stop, *step; /* single: start only */
    fv_span  span;
} fv_index;

struct fv_expr {
    int          id; /* counts from 0 in its program */
    fv_expr_kind kind;
    fv_span      span;
    double       number;
    bool         integral; /* written without point or exponent */
    bool         flag;
    const char  *text;      /* TEXT: the value; NAME; CALL: the operator */
    fv_span      text_span; /* CALL: of the operator's name or sign */
    int          nargs;
    fv_argument *args; /* CALL and LIST; SLICE: args[0] is what is sliced */
    int          nindices;
    fv_index    *indices; /* SLICE */
};

typedef enum fv_statement_kind { FV_STATEMENT_ASSIGN, FV_STATEMENT_PARAM, FV_STATEMENT_BARE } fv_statement_kind;

typedef struct fv_statement {
    fv_statement_kind kind;
    const char       *name; /* ASSIGN, PARAM */
    fv_span           name_span;
    fv_expr          *value;
    const char       *text; /* BARE: the expression as it was written, in one line */
} fv_statement;

typedef struct fv_program {
    const char   *file; /* for messages: a path, or "-e" */
    const char   *text;
    int           nstatements;
    fv_statement *statements;
    int           nexprs;
    bool          incomplete; /* memory ran out while it was parsed; a diagnostic says so too */
    fv_hash_table names;      /* of the statements that give one a value: the first of each */
    fv_arena      arena;      /* owns everything above but the table's slots */
} fv_program;

/* ---- diagnostics: all errors of a text in one go ---- */
typedef struct fv_diagnostic {
    fv_span span;
    char   *message; /* what is wrong and what was expected, one sentence */
    char   *hint;    /* "did you mean gaussian?" or NULL */
} fv_diagnostic;

typedef struct fv_diagnostics {
    int            count, capacity;
    fv_diagnostic *items;
    bool           missing; /* a file that every item needs is not there */
} fv_diagnostics;

void fv__diagnose(fv_diagnostics *diagnostics, fv_span span, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* file:line:column: error: message, the line, a caret under the span, the hint; sorted by place, duplicates once. */
void fv__diagnostics_format(const fv_diagnostics *diagnostics, const char *file, const char *text, fv_bytes *out);
void fv__diagnostics_take(fv_diagnostics *diagnostics, fv_diagnostics *from); /* adds those of another, which is empty then */
void fv__diagnostics_release(fv_diagnostics *diagnostics);

/* Parses the whole text, recovering at statement ends, so that every mistake is reported; diagnostics->count tells whether it
 * is good. Never NULL. The text is copied. */
fv_program *fv__program_parse(const char *file, const char *text, fv_diagnostics *diagnostics);
void        fv__program_free(fv_program *program);
/* Takes out the statements that stand alone: nothing is written or printed any more. */
void fv__program_drop_bare(fv_program *program);
/* The first statement that gives this name a value, or -1. */
int fv__program_find(const fv_program *program, const char *name);

#endif
