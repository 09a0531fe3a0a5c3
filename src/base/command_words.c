/* Templates of commands. */
#include "base/command_words.h"
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- splitting */

/* Reads one word from *at on into out, without its quotes. False: there is none. */
static fv_status next_word(const char **at, fv_bytes *out, bool *found, fv_error *error) {
    const char *c = *at;
    char        quote = 0;
    fv__bytes_clear(out);
    while (*c == ' ' || *c == '\t' || *c == '\n') c++;
    *found = *c != 0;
    for (; *c && (quote || (*c != ' ' && *c != '\t' && *c != '\n')); c++) {
        if (quote ? *c == quote : *c == '\'' || *c == '"')
            quote = quote ? 0 : *c;
        else if (*c == '\\' && quote != '\'' && c[1])
            fv__bytes_append(out, ++c, 1);
        else
            fv__bytes_append(out, c, 1);
    }
    *at = c;
    if (quote) return fv_fail(error, FV_ERROR_USAGE, "the command has no closing %c", quote);
    fv__bytes_append(out, "", 1);
    return FV_OK;
}

static fv_status split(const char *command, fv_word_template *t, fv_error *error) {
    fv_bytes    word = { 0 };
    bool        found = true;
    const char *at = command;
    int         room = 0;
    fv_status   status = FV_OK;
    while (status == FV_OK && found) {
        status = next_word(&at, &word, &found, error);
        if (status != FV_OK || !found) break;
        if (t->nwords == room) {
            room = room ? 2 * room : 8;
            const char **more = fv__arena_alloc(&t->arena, (size_t)room * sizeof *more);
            if (t->nwords) memcpy(more, t->words, (size_t)t->nwords * sizeof *more);
            t->words = more;
        }
        t->words[t->nwords++] = fv__arena_strdup(&t->arena, (const char *)word.data);
    }
    fv__bytes_release(&word);
    return status;
}

fv_status fv__words_parse(const char *command, bool shell, const char *const *names, fv_word_template *t, fv_error *error) {
    *t = (fv_word_template){ .shell = shell };
    FV_TRY(fv__words_check(command, names, error));
    if (shell) {
        t->words = fv__arena_alloc(&t->arena, sizeof *t->words);
        t->words[t->nwords++] = fv__arena_strdup(&t->arena, command);
    } else {
        FV_TRY(split(command, t, error));
    }
    if (!t->nwords || !t->words[0][0]) return fv_fail(error, FV_ERROR_USAGE, "the command is empty");
    return FV_OK;
}

fv_status fv__words_check_signs(const char *command, fv_error *error) {
    static const char *const signs[] = { ">", ">>", "<", "|", "&&", "||", "2>", "2>&1", "&>" };
    fv_bytes                 word = { 0 };
    bool                     found = true;
    const char              *at = command;
    fv_status                status = FV_OK;
    while (status == FV_OK && found) {
        const char *start = at + strspn(at, " \t\n");
        status = next_word(&at, &word, &found, error);
        for (int i = 0; i < FV_COUNT(signs) && status == FV_OK && found; i++)
            if ((size_t)(at - start) == strlen(signs[i]) && !strncmp(signs[i], start, strlen(signs[i])))
                status = fv_fail(error, FV_ERROR_USAGE,
                                 "the command has %s, but no shell sees it: say --shell (shell = true in a pipeline), or put it "
                                 "in quotes if it is a word for the program",
                                 signs[i]);
    }
    fv__bytes_release(&word);
    return status;
}

void fv__words_release(fv_word_template *t) { fv__arena_release(&t->arena); }

/* ---------------------------------------------------------------- names in braces */

/* The name that starts at text, which is '{': its length; -1: this is a plain brace. */
static int name_length(const char *text) {
    const char *end = strchr(text, '}');
    return end && text[1] != '{' ? (int)(end - text) - 1 : -1;
}

static int find_name(const char *name, int length, const char *const *names) {
    for (int i = 0; names[i]; i++)
        if ((int)strlen(names[i]) == length && !strncmp(names[i], name, (size_t)length)) return i;
    return -1;
}

static int count_names(const char *const *names) {
    int count = 0;
    while (names[count]) count++;
    return count;
}

fv_status fv__words_check(const char *text, const char *const *names, fv_error *error) {
    for (const char *c = text; *c; c++) {
        if (*c != '{') continue;
        if (c[1] == '{') {
            c++;
            continue;
        }
        int length = name_length(c);
        if (length < 0) return fv_fail(error, FV_ERROR_USAGE, "\"%s\" has a { without a }; {{ is a brace itself", text);
        if (find_name(c + 1, length, names) < 0) {
            char word[64];
            snprintf(word, sizeof word, "%.*s", length, c + 1);
            const char *near = fv_nearest_word(word, names, count_names(names));
            return fv_fail(error, FV_ERROR_USAGE, "{%s} stands for nothing here%s%s%s ({{ is a brace itself)", word,
                           near && *near ? "; is {" : "", near ? near : "", near && *near ? "} meant?" : "");
        }
        c += length + 1;
    }
    return FV_OK;
}

static void append_value(fv_bytes *out, const char *value, bool quoted) {
    if (!quoted) {
        fv__bytes_append(out, value, strlen(value));
        return;
    }
    fv__bytes_append(out, "'", 1);
    for (const char *c = value; *c; c++)
        if (*c == '\'')
            fv__bytes_append(out, "'\\''", 4);
        else
            fv__bytes_append(out, c, 1);
    fv__bytes_append(out, "'", 1);
}

char *fv__words_fill(const char *text, const char *const *names, const char *const *values, bool quoted) {
    fv_bytes out = { 0 };
    for (const char *c = text; *c; c++) {
        int length = *c == '{' ? name_length(c) : -1;
        if (length >= 0) {
            append_value(&out, values[find_name(c + 1, length, names)], quoted);
            c += length + 1;
            continue;
        }
        fv__bytes_append(&out, c, 1);
        if ((*c == '{' || *c == '}') && c[1] == *c) c++;
    }
    fv__bytes_append(&out, "", 1);
    return (char *)out.data;
}

char **fv__words_make(const fv_word_template *t, const char *const *names, const char *const *values) {
    int    extra = t->shell ? 2 : 0;
    char **words = fv__calloc((size_t)(t->nwords + extra + 1) * sizeof *words);
    if (t->shell) {
        words[0] = fv__strdup("/bin/sh");
        words[1] = fv__strdup("-c");
    }
    for (int i = 0; i < t->nwords; i++) words[i + extra] = fv__words_fill(t->words[i], names, values, t->shell);
    return words;
}

void fv__words_free(char **words) {
    for (int i = 0; words && words[i]; i++) free(words[i]);
    free(words);
}
