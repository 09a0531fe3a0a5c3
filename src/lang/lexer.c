/* From pipeline text to tokens. A mistake is reported and lexing goes on, so that one pass finds them all. */
#include "lang/lexer.h"
#include "base/take.h"
#include "lang/utf8.h"
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct lexer {
    const char     *p;            /* where we are */
    int             line, column; /* 1-based */
    int             characters;   /* from the start of the text */
    fv_arena       *arena;
    fv__tokens     *tokens;
    fv_diagnostics *diagnostics;
} lexer;

/* Longer ones before their beginnings. */
static const fv__sign signs[] = {
    { "|>", 0 },
    { "**", FV__BINDS_POWER },
    { "==", FV__BINDS_COMPARISON },
    { "!=", FV__BINDS_COMPARISON },
    { "<=", FV__BINDS_COMPARISON },
    { ">=", FV__BINDS_COMPARISON },
    { "<", FV__BINDS_COMPARISON },
    { ">", FV__BINDS_COMPARISON },
    { "|", 1 },
    { "&", 2 },
    { "+", 4 },
    { "-", 4 },
    { "*", 5 },
    { "/", 5 },
    { "%", 5 },
    { "!", 0 },
    { "=", 0 },
    { "(", 0 },
    { ")", 0 },
    { "[", 0 },
    { "]", 0 },
    { ",", 0 },
    { ":", 0 },
    { ";", 0 },
};

/* What people bring from elsewhere. With `means`, lexing goes on as if that had been written. */
static const struct {
    const char *text, *means, *hint;
} foreign[] = {
    { "&&", "&", "write & for and" },
    { "||", "|", "write | for or" },
    { "//", "/", "write / to divide, and # to begin a comment" },
    { "->", "|>", "write |> to pass a value on" },
    { "^", "**", "write ** for a power" },
    { "~", "!", "write ! for not" },
    { "...", NULL, "write : for a whole axis" },
    { ".", NULL, "write image |> gaussian(2) where others write image.gaussian(2), and sqrt(image) for np.sqrt(image)" },
    { "\\", NULL, "a line goes on by itself inside brackets, after an operator, or when the next one starts with |>" },
    { "{", NULL, "a list is written [1, 2, 3]" },
    { "}", NULL, "a list is written [1, 2, 3]" },
    { "\xc2\xa0", NULL, "this is a no-break space; use a plain one" },
    { "\xe2\x88\x92", "-", "this is a typographic minus; use a plain -" },
    { "\xe2\x80\x93", "-", "this is a dash; use a plain -" },
    { "\xc3\x97", "*", "write * to multiply" },
    { "\xe2\x89\xa4", "<=", "write <=" },
    { "\xe2\x89\xa5", ">=", "write >=" },
    { "\xe2\x89\xa0", "!=", "write !=" },
    { "\xe2\x80\x9c", NULL, "use plain quotes, \"like this\"" },
    { "\xe2\x80\x9d", NULL, "use plain quotes, \"like this\"" },
    { "\xe2\x80\x98", NULL, "use plain quotes, \"like this\"" },
    { "\xe2\x80\x99", NULL, "use plain quotes, \"like this\"" },
};

/* Character classes of C's own would change with the locale. */
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_word(char c) { return is_letter(c) || is_digit(c); }
static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }
static int  hex_value(char c) { return is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10; }

static bool starts(const char *p, const char *with) {
    while (*with && *p == *with) p++, with++;
    return !*with;
}

static const fv__sign *find_sign(const char *p) {
    for (int i = 0; i < FV_COUNT(signs); i++)
        if (starts(p, signs[i].text)) return &signs[i];
    return NULL;
}

static int find_foreign(const char *p) {
    for (int i = 0; i < FV_COUNT(foreign); i++)
        if (starts(p, foreign[i].text)) return i;
    return -1;
}

bool fv__token_is(const fv__token *token, const char *sign) {
    return token->kind == FV__TOKEN_SIGN && !strcmp(token->sign->text, sign);
}

void fv__tokens_push(fv__tokens *tokens, const fv__token *token) {
    if (tokens->count == tokens->capacity) {
        int capacity = FV_MAX(64, 2 * tokens->capacity);
        if (FV_TAKE_MORE(tokens->items, (size_t)capacity * sizeof *tokens->items, NULL) != FV_OK) {
            tokens->cut = true;
            return;
        }
        tokens->capacity = capacity;
    }
    tokens->items[tokens->count++] = *token;
}

/* ---------------------------------------------------------------- moving */

static void skip(lexer *l, int bytes) { /* within a line */
    for (const char *end = l->p + bytes; l->p < end;) {
        bool valid;
        l->p += fv__utf8_length(l->p, &valid);
        l->column++;
        l->characters++;
    }
}

static fv__token begin(const lexer *l, fv__token_kind kind) {
    return (fv__token){ .kind = kind, .span = { l->line, l->column, 0 }, .start = l->characters };
}

static void end(lexer *l, fv__token *token) {
    token->end = l->characters;
    token->span.length = token->end - token->start;
    fv__tokens_push(l->tokens, token);
}

/* ---------------------------------------------------------------- numbers */

static locale_t c_locale; /* of the process: made once, and never changed */
static void     make_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

/* A comma as decimal point in the user's locale must not change a pipeline. */
static double decimal(const char *digits) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_locale);
    return c_locale ? strtod_l(digits, NULL, c_locale) : strtod(digits, NULL);
}

/* Bytes of the digits at p; an underscore may stand between two of them. */
static int digits_at(const char *p, bool (*is)(char)) {
    int n = 0;
    while (is(p[n]) || (p[n] == '_' && n && is(p[n - 1]) && is(p[n + 1]))) n++;
    return n;
}

/* Bytes of the number that starts at p. */
static int number_at(const char *p, bool *integral, bool *hexadecimal) {
    *hexadecimal = p[0] == '0' && (p[1] == 'x' || p[1] == 'X') && is_hex(p[2]);
    *integral = true;
    if (*hexadecimal) return 2 + digits_at(p + 2, is_hex);
    int n = digits_at(p, is_digit);
    if (p[n] == '.') {
        *integral = false;
        n++;
        n += digits_at(p + n, is_digit);
    }
    if (p[n] == 'e' || p[n] == 'E') {
        int sign = p[n + 1] == '+' || p[n + 1] == '-', exponent = digits_at(p + n + 1 + sign, is_digit);
        if (exponent) {
            *integral = false;
            n += 1 + sign + exponent;
        }
    }
    return n;
}

static double number_value(lexer *l, int length, bool hexadecimal) {
    char *digits = fv__arena_alloc(l->arena, (size_t)length + 1);
    int   n = 0;
    for (int i = 0; i < length; i++)
        if (l->p[i] != '_') digits[n++] = l->p[i];
    if (!hexadecimal) return decimal(digits);
    double value = 0;
    for (int i = 2; i < n; i++) value = 16 * value + hex_value(digits[i]);
    return value;
}

static void lex_number(lexer *l) {
    bool      hexadecimal;
    fv__token token = begin(l, FV__TOKEN_NUMBER);
    int       length = number_at(l->p, &token.integral, &hexadecimal), all = length;
    while (is_word(l->p[all]) || (l->p[all] == '.' && all == length && is_word(l->p[all + 1])) ||
           (all > length && l->p[all] == '.'))
        all++;
    const char *text = l->p;
    token.number = number_value(l, length, hexadecimal);
    skip(l, all);
    end(l, &token);
    int shown = FV_MIN(all, 40);
    if (all > length)
        fv__diagnose(l->diagnostics, token.span,
                     memchr(text, '.', (size_t)all)
                         ? NULL
                         : "numbers have no unit (5s is written 5), and a name cannot start with a digit",
                     "'%.*s' is not a number; expected one such as 12, 2.5, 1e-3, 1_000 or 0x1f", shown, text);
    else if (isinf(token.number))
        fv__diagnose(l->diagnostics, token.span, NULL, "the number is too large; the largest is about 1.8e308");
    else if (token.integral && token.number >= 0x1p53)
        fv__diagnose(l->diagnostics, token.span, "write it with a point or an exponent if the nearest number that fits will do",
                     "whole numbers in a text are exact up to 9007199254740991 (2^53 - 1), and this one is larger");
}

/* ---------------------------------------------------------------- texts */

static void put_utf8(fv_bytes *out, unsigned code) {
    uint8_t bytes[3] = { (uint8_t)code, 0, 0 };
    int     n = 1;
    if (code >= 0x800) {
        bytes[0] = (uint8_t)(0xe0 | code >> 12);
        bytes[n++] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
        bytes[n++] = (uint8_t)(0x80 | (code & 0x3f));
    } else if (code >= 0x80) {
        bytes[0] = (uint8_t)(0xc0 | code >> 6);
        bytes[n++] = (uint8_t)(0x80 | (code & 0x3f));
    }
    fv__bytes_append(out, bytes, (size_t)n);
}

/* After a backslash: puts what it stands for and returns the bytes of the escape; 0: there is no such escape. */
static int escape_at(const char *p, fv_bytes *out) {
    static const char letters[] = "ntr\\\"'", values[] = "\n\t\r\\\"'";
    const char       *letter = p[1] ? strchr(letters, p[1]) : NULL;
    if (letter) {
        fv__bytes_append(out, &values[letter - letters], 1);
        return 2;
    }
    if (p[1] != 'u') return 0;
    unsigned code = 0;
    for (int i = 2; i < 6; i++) {
        if (!is_hex(p[i])) return 0;
        code = 16 * code + (unsigned)hex_value(p[i]);
    }
    if (!code || (code >= 0xd800 && code < 0xe000)) return 0;
    put_utf8(out, code);
    return 6;
}

static void lex_escape(lexer *l, fv_bytes *value) {
    int length = escape_at(l->p, value);
    if (length) {
        skip(l, length);
        return;
    }
    bool    valid, last = !l->p[1] || l->p[1] == '\n' || l->p[1] == '\r';
    int     next = last ? 0 : fv__utf8_length(l->p + 1, &valid);
    fv_span span = { l->line, l->column, last ? 1 : 2 };
    fv__diagnose(l->diagnostics, span, "write \\\\ for a backslash",
                 "'\\%.*s' stands for nothing in a text; expected \\n, \\t, \\r, \\\\, \\\", \\' or \\uXXXX", next > 1 ? 0 : next,
                 l->p + 1);
    skip(l, 1 + next);
}

static void lex_text(lexer *l) {
    fv__token token = begin(l, FV__TOKEN_TEXT);
    fv_bytes  value = { 0 };
    char      quote = *l->p;
    skip(l, 1);
    while (*l->p && *l->p != '\n' && *l->p != quote) {
        bool valid;
        int  length = fv__utf8_length(l->p, &valid);
        if (*l->p == '\\') {
            lex_escape(l, &value);
            continue;
        }
        if (!valid)
            fv__diagnose(l->diagnostics, (fv_span){ l->line, l->column, 1 }, "save the file as UTF-8",
                         "the byte 0x%02x is not UTF-8 text", (uint8_t)*l->p);
        fv__bytes_append(&value, l->p, (size_t)length);
        skip(l, length);
    }
    token.unclosed = *l->p != quote;
    if (!token.unclosed) skip(l, 1);
    token.text = value.size ? fv__arena_strndup(l->arena, (char *)value.data, value.size) : "";
    fv__bytes_release(&value);
    end(l, &token);
    if (token.unclosed)
        fv__diagnose(l->diagnostics, token.span, NULL, "the text is not closed; expected %c before the end of the line", quote);
}

/* ---------------------------------------------------------------- the rest */

static void lex_name(lexer *l) {
    fv__token token = begin(l, FV__TOKEN_NAME);
    int       length = 1;
    while (is_word(l->p[length])) length++;
    token.text = fv__arena_strndup(l->arena, l->p, (size_t)length);
    skip(l, length);
    end(l, &token);
}

static void lex_sign(lexer *l, const fv__sign *sign, int length) {
    fv__token token = begin(l, FV__TOKEN_SIGN);
    token.sign = sign;
    skip(l, length);
    end(l, &token);
}

static void lex_foreign(lexer *l, int which) {
    int     length = (int)strlen(foreign[which].text);
    bool    valid, one = fv__utf8_length(l->p, &valid) == length;
    fv_span span = { l->line, l->column, one ? 1 : length };
    fv__diagnose(l->diagnostics, span, foreign[which].hint, "'%s' means nothing here", foreign[which].text);
    if (foreign[which].means) {
        lex_sign(l, find_sign(foreign[which].means), length);
    } else {
        fv__token token = begin(l, FV__TOKEN_BAD);
        skip(l, length);
        end(l, &token);
    }
}

static bool starts_token(const char *p) {
    return !*p || *p == '\n' || is_space(*p) || is_word(*p) || strchr("\"'#", *p) || find_sign(p) || find_foreign(p) >= 0;
}

/* A run of characters that begin nothing is one mistake. */
static void lex_unknown(lexer *l) {
    fv__token   token = begin(l, FV__TOKEN_BAD);
    const char *first = l->p;
    bool        valid;
    int         length = fv__utf8_length(first, &valid);
    do {
        bool ignored;
        skip(l, fv__utf8_length(l->p, &ignored));
    } while (!starts_token(l->p));
    end(l, &token);
    bool visible =
        valid && (length > 1 || (*first > ' ' && *first != 0x7f)) && !((uint8_t)first[0] == 0xc2 && (uint8_t)first[1] < 0xa0);
    if (visible && length > 1)
        fv__diagnose(l->diagnostics, token.span, "names are made of a-z, A-Z, 0-9 and _", "'%.*s' means nothing here", length,
                     first);
    else if (visible)
        fv__diagnose(l->diagnostics, token.span, NULL, "'%c' means nothing here", *first);
    else if (valid)
        fv__diagnose(l->diagnostics, token.span, NULL, "a control character (0x%02x) means nothing here",
                     (uint8_t)first[length - 1]);
    else
        fv__diagnose(l->diagnostics, token.span, "save the file as UTF-8", "the byte 0x%02x is not UTF-8 text", (uint8_t)*first);
}

static void lex_newline(lexer *l) {
    fv__token token = begin(l, FV__TOKEN_NEWLINE);
    end(l, &token);
    l->p++;
    l->characters++;
    l->line++;
    l->column = 1;
}

void fv__lex(const char *text, fv_arena *arena, fv__tokens *tokens, fv_diagnostics *diagnostics) {
    lexer l = { .p = text, .line = 1, .column = 1, .arena = arena, .tokens = tokens, .diagnostics = diagnostics };
    if (!strncmp(text, "\xef\xbb\xbf", 3)) l.p += 3; /* byte order mark */
    while (*l.p && !tokens->cut) {
        const fv__sign *sign;
        int             which;
        if (*l.p == '\n')
            lex_newline(&l);
        else if (is_space(*l.p))
            skip(&l, 1);
        else if (*l.p == '#')
            skip(&l, (int)strcspn(l.p, "\n"));
        else if (is_letter(*l.p))
            lex_name(&l);
        else if (is_digit(*l.p) || (*l.p == '.' && is_digit(l.p[1])))
            lex_number(&l);
        else if (*l.p == '"' || *l.p == '\'')
            lex_text(&l);
        else if ((which = find_foreign(l.p)) >= 0)
            lex_foreign(&l, which);
        else if ((sign = find_sign(l.p)))
            lex_sign(&l, sign, (int)strlen(sign->text));
        else
            lex_unknown(&l);
    }
    fv__token last = begin(&l, FV__TOKEN_END);
    end(&l, &last);
}
