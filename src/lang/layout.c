/* Which tokens make up a statement: matches brackets and joins continued lines.
 *
 * A line break ends a statement unless a bracket is open, the line ends with an operator or '=', or the next line starts
 * with '|>'. A bracket that is never closed would swallow the rest of the file and every error in it, so the statement then
 * ends where another one seems to start. Every step is linear in the number of tokens. */
#include "base/take.h"
#include "lang/lexer.h"
#include <stdlib.h>

enum { NOT_A_BRACKET = -1, UNCLOSED = -2, STRAY = -3, CROSSED = -4 };

typedef struct layout {
    const fv__token *tokens;
    int              count;
    int             *match; /* by token: its partner, or one of the above */
    fv__tokens      *joined;
    fv__ranges      *statements;
    fv_diagnostics  *diagnostics;
} layout;

static bool        opens(const fv__token *t) { return fv__token_is(t, "(") || fv__token_is(t, "["); }
static bool        closes(const fv__token *t) { return fv__token_is(t, ")") || fv__token_is(t, "]"); }
static const char *closer(const fv__token *t) { return fv__token_is(t, "(") ? ")" : "]"; }
static bool        fits(const fv__token *open, const fv__token *close) { return fv__token_is(close, closer(open)); }

/* ---------------------------------------------------------------- brackets */

/* A closing bracket that does not fit the last open one. Most often one was forgotten: then the next open one fits. */
static int close_crossed(layout *l, int *stack, int depth, int i) {
    const fv__token *open = &l->tokens[stack[depth - 1]], *close = &l->tokens[i];
    fv__diagnose(l->diagnostics, open->span, NULL, "'%s' is not closed; expected '%s' before the '%s' at line %d, column %d",
                 open->sign->text, closer(open), close->sign->text, close->span.line, close->span.column);
    l->match[stack[--depth]] = CROSSED;
    if (depth && fits(&l->tokens[stack[depth - 1]], close)) {
        l->match[stack[--depth]] = i;
        l->match[i] = stack[depth];
    } else {
        l->match[i] = CROSSED;
    }
    return depth;
}

/* The quote that is missing holds the rest of the line, brackets and all: those open on that line are not to blame. */
static int drop_line(layout *l, int *stack, int depth, int line) {
    while (depth && l->tokens[stack[depth - 1]].span.line == line) l->match[stack[--depth]] = CROSSED;
    return depth;
}

static bool match_brackets(layout *l) {
    int *stack = fv__try_alloc((size_t)(l->count + 1) * sizeof *stack), depth = 0;
    if (!stack) return false;
    for (int i = 0; i < l->count; i++) {
        const fv__token *t = &l->tokens[i];
        l->match[i] = NOT_A_BRACKET;
        if (t->unclosed) {
            depth = drop_line(l, stack, depth, t->span.line);
        } else if (opens(t)) {
            l->match[i] = UNCLOSED;
            stack[depth++] = i;
        } else if (closes(t) && !depth) {
            l->match[i] = STRAY;
            fv__diagnose(l->diagnostics, t->span, NULL, "'%s' has no opening bracket before it", t->sign->text);
        } else if (closes(t) && fits(&l->tokens[stack[depth - 1]], t)) {
            l->match[i] = stack[--depth];
            l->match[stack[depth]] = i;
        } else if (closes(t)) {
            depth = close_crossed(l, stack, depth, i);
        }
    }
    free(stack);
    return true;
}

/* ---------------------------------------------------------------- statements */

static bool starts_line(const layout *l, int i) { return i == 0 || l->tokens[i - 1].kind == FV__TOKEN_NEWLINE; }

/* Whether a statement seems to start here, no further to the right than the one at `first`. */
static bool seems_statement(const layout *l, int i, int first) {
    const fv__token *t = &l->tokens[i];
    if (t->kind != FV__TOKEN_NAME || !starts_line(l, i) || t->span.column > l->tokens[first].span.column) return false;
    return fv__token_is(t + 1, "=") || fv__token_is(t + 1, "(") || (!strcmp(t->text, "param") && t[1].kind == FV__TOKEN_NAME);
}

static bool continues(const layout *l, int newline) {
    const fv__token *before = &l->joined->items[l->joined->count - 1];
    if (before->kind == FV__TOKEN_SIGN && (before->sign->binds || strchr("|!=", before->sign->text[0]))) return true;
    int next = newline;
    while (l->tokens[next].kind == FV__TOKEN_NEWLINE) next++;
    return fv__token_is(&l->tokens[next], "|>");
}

/* The statement's brackets up to `end` that stay open; the caret goes under the last of them. */
static void report_unclosed(layout *l, int first, int end) {
    int last = -1, others = -1;
    for (int i = first; i < end; i++)
        if (l->match[i] == UNCLOSED) {
            last = i;
            others++;
        }
    const fv__token *open = &l->tokens[last];
    if (others)
        fv__diagnose(l->diagnostics, open->span, NULL, "'%s' is never closed, nor %s %d before it; expected '%s'",
                     open->sign->text, others == 1 ? "is" : "are", others, closer(open));
    else
        fv__diagnose(l->diagnostics, open->span, NULL, "'%s' is never closed; expected '%s'", open->sign->text, closer(open));
}

static void add_statement(layout *l, fv__range range, const fv__token *last) {
    fv__ranges *s = l->statements;
    fv__token   end = { .kind = FV__TOKEN_END, .start = last->end, .end = last->end };
    end.span = (fv_span){ last->span.line, last->span.column + last->span.length, 1 };
    fv__tokens_push(l->joined, &end);
    if (s->count == s->capacity) {
        int capacity = FV_MAX(16, 2 * s->capacity);
        if (FV_TAKE_MORE(s->items, (size_t)capacity * sizeof *s->items, NULL) != FV_OK) {
            l->joined->cut = true;
            return;
        }
        s->capacity = capacity;
    }
    s->items[s->count++] = range;
}

/* Takes one statement off the tokens; returns where the next may start. */
static int take_statement(layout *l, int first) {
    fv__range range = { .first = l->joined->count };
    int       i = first, depth = 0;
    bool      open = false, unclosed_text = false; /* open: a bracket that is never closed */
    for (; l->tokens[i].kind != FV__TOKEN_END && !l->joined->cut; i++) {
        const fv__token *t = &l->tokens[i];
        if (open && !depth && i > first && seems_statement(l, i, first)) break;
        if (t->kind == FV__TOKEN_NEWLINE) {
            if (!open && !depth && (unclosed_text || !continues(l, i))) break;
            continue;
        }
        if (!open && !depth && fv__token_is(t, ";")) break;
        int match = l->match[i];
        if (opens(t) && match >= 0) depth++;
        if (closes(t) && match >= 0) depth--;
        open = open || match == UNCLOSED;
        unclosed_text = unclosed_text || t->unclosed;
        range.bad = range.bad || match < NOT_A_BRACKET || t->unclosed || t->kind == FV__TOKEN_BAD;
        fv__tokens_push(l->joined, t);
    }
    if (open) report_unclosed(l, first, i);
    add_statement(l, range, &l->joined->items[l->joined->count - 1]);
    return i;
}

void fv__layout(const fv__tokens *tokens, fv__tokens *joined, fv__ranges *statements, fv_diagnostics *diagnostics) {
    layout l = {
        .tokens = tokens->items, .count = tokens->count, .joined = joined, .statements = statements, .diagnostics = diagnostics
    };
    fv__tokens_push(joined, &(fv__token){ .kind = FV__TOKEN_END }); /* so that every token has one before it */
    l.match = fv__try_alloc((size_t)tokens->count * sizeof *l.match);
    if (!l.match || !match_brackets(&l)) joined->cut = true;
    for (int i = 0; !joined->cut && l.tokens[i].kind != FV__TOKEN_END;) {
        if (l.tokens[i].kind == FV__TOKEN_NEWLINE || fv__token_is(&l.tokens[i], ";"))
            i++;
        else
            i = take_statement(&l, i);
    }
    free(l.match);
}
