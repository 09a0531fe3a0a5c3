/* From text to tokens, and from tokens to statements. Internal to lang. */
#ifndef FV_LEXER_H
#define FV_LEXER_H

#include "lang/ast.h"

/* A sign of the language. Which operator it calls is said by that operator. */
typedef struct fv__sign {
    const char *text;
    int         binds; /* how tightly, between two values: loosest is 1; 0: it does not stand between values */
} fv__sign;
enum { FV__BINDS_COMPARISON = 3, FV__BINDS_POWER = 9 };

typedef enum fv__token_kind {
    FV__TOKEN_END, /* of the text; after fv__layout: of a statement */
    FV__TOKEN_NEWLINE,
    FV__TOKEN_NAME,
    FV__TOKEN_NUMBER,
    FV__TOKEN_TEXT,
    FV__TOKEN_SIGN,
    FV__TOKEN_BAD, /* already reported */
} fv__token_kind;

typedef struct fv__token {
    fv__token_kind  kind;
    fv_span         span;
    int             start, end; /* characters from the start of the text */
    const fv__sign *sign;
    const char     *text; /* NAME; TEXT: the value */
    double          number;
    bool            integral;
    bool            unclosed; /* TEXT: the quote is missing, and the rest of the line is in it; already reported */
} fv__token;

typedef struct fv__tokens {
    int        count, capacity;
    fv__token *items;
    bool       cut; /* memory ran out: there would be more */
} fv__tokens;

/* Tokens of one statement, line breaks inside it taken out, END at last. */
typedef struct fv__range {
    int  first;
    bool bad; /* already reported: not worth parsing */
} fv__range;

typedef struct fv__ranges {
    int        count, capacity;
    fv__range *items;
} fv__ranges;

void fv__tokens_push(fv__tokens *tokens, const fv__token *token);
/* Texts go into the arena; tokens->items is the caller's to free. */
void fv__lex(const char *text, fv_arena *arena, fv__tokens *tokens, fv_diagnostics *diagnostics);
/* Matches brackets, joins continued lines, and cuts the tokens into statements; both results are the caller's to free. */
void fv__layout(const fv__tokens *tokens, fv__tokens *joined, fv__ranges *statements, fv_diagnostics *diagnostics);
bool fv__token_is(const fv__token *token, const char *sign);

#endif
