/* Command-line options by table: --name value, --name=value, -n value, -nvalue, -abc; "--" ends them. */
#include "cli.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fv_option_spelling(const fv_option *option, char text[48]) {
    snprintf(text, 48, "--%s", option->name);
    for (char *c = text; *c; c++)
        if (*c == '_') *c = '-';
}

static bool matches(const fv_option *option, const char *name, size_t length) { /* name without dashes in front */
    char spelling[48];
    fv_option_spelling(option, spelling);
    return strlen(spelling + 2) == length && !strncmp(spelling + 2, name, length);
}

static const fv_option *find_long(const fv_command *command, const char *name, size_t length) {
    for (const fv_option *o = command->options; o && o->name; o++)
        if (matches(o, name, length)) return o;
    return NULL;
}

static const fv_option *find_letter(const fv_command *command, char letter) {
    for (const fv_option *o = command->options; o && o->name; o++)
        if (o->letter == letter) return o;
    return NULL;
}

static const char *why_absent(const fv_command *command, const char *word, size_t length) {
    for (const fv_absent *a = command->absent; a && a->name; a++)
        if (strlen(a->name) + 2 == length && !strncmp(word, "--", 2) && !strncmp(word + 2, a->name, length - 2)) return a->why;
    return NULL;
}

static int unknown(const fv_command *command, const char *word, int length) {
    enum { MOST = 64 };
    const char *why = why_absent(command, word, (size_t)length);
    if (why) {
        fv_complain(command->name, "there is no %.*s here: %s", length, word, why);
        return FV_EXIT_REFUSED;
    }
    char        spellings[MOST][48], wrong[48];
    const char *candidates[MOST + 1] = { "--help" };
    int         count = 1;
    for (const fv_option *o = command->options; o && o->name && count <= MOST; o++, count++) {
        fv_option_spelling(o, spellings[count - 1]);
        candidates[count] = spellings[count - 1];
    }
    snprintf(wrong, sizeof wrong, "%.*s", length, word);
    const char *near = fv_nearest_word(wrong, candidates, count);
    bool        suggest = near && !strncmp(word, "--", 2);
    fv_complain(command->name, "unknown option %.*s%s%s%s", length, word, suggest ? "; did you mean " : "", suggest ? near : "",
                suggest ? "?" : "");
    fv_help_usage(command);
    return FV_EXIT_REFUSED;
}

/* ---------------------------------------------------------------- values */

static bool is_choice(const char *choices, const char *value) {
    size_t length = strlen(value);
    for (const char *p = choices; *p;) {
        size_t n = strcspn(p, "|");
        if (n == length && !strncmp(p, value, n)) return true;
        p += n + (p[n] == '|');
    }
    return false;
}

static bool parse_number(const fv_option *option, const char *value, double *number) {
    char *end;
    *number = strtod(value, &end);
    if (end == value || *end || !isfinite(*number)) return false;
    return option->kind == FV_OPTION_NUMBER || (*number == floor(*number) && fabs(*number) <= 0x1p53);
}

static int bad_value(const fv_command *command, const fv_option *option, const char *value, const char *expected) {
    char spelling[48];
    fv_option_spelling(option, spelling);
    fv_complain(command->name, "%s %s: expected %s", spelling, value, expected);
    return FV_EXIT_REFUSED;
}

static int set_number(const fv_command *command, const fv_option *option, void *field, const char *value) {
    double number;
    char   expected[96];
    if (!parse_number(option, value, &number))
        return bad_value(command, option, value, option->kind == FV_OPTION_INTEGER ? "a whole number" : "a number");
    bool any = option->min == 0 && option->max == 0, open = option->max == 0;
    if (!any && (number < option->min || (!open && number > option->max))) {
        if (open)
            snprintf(expected, sizeof expected, "at least %g", option->min);
        else
            snprintf(expected, sizeof expected, "a number from %g to %g", option->min, option->max);
        return bad_value(command, option, value, expected);
    }
    if (option->kind == FV_OPTION_INTEGER)
        *(int64_t *)field = (int64_t)number;
    else
        *(double *)field = number;
    return -1;
}

static int set_value(const fv_command *command, const fv_option *option, void *options, const char *value) {
    void     *field = (char *)options + option->offset;
    fv_texts *texts = field;
    switch (option->kind) {
    case FV_OPTION_FLAG: *(bool *)field = true; return -1;
    case FV_OPTION_TEXT:
        if (option->choices && !is_choice(option->choices, value)) {
            char expected[256] = "one of ";
            fv_choices_format(option->choices, expected + strlen(expected), sizeof expected - strlen(expected));
            return bad_value(command, option, value, expected);
        }
        if (option->once && *(const char **)field) {
            fv_complain(command->name, "--%s can be given once; it is %s already", option->name, *(const char **)field);
            return FV_EXIT_REFUSED;
        }
        *(const char **)field = value;
        return -1;
    case FV_OPTION_TEXTS:
        texts->items = realloc(texts->items, (size_t)(texts->count + 1) * sizeof *texts->items);
        if (!texts->items) abort();
        texts->items[texts->count++] = value;
        return -1;
    case FV_OPTION_SIZE:
        if (!fv_size_parse(value, &((fv_size *)field)->bytes))
            return bad_value(command, option, value, "a size such as 512M or 4G");
        return -1;
    case FV_OPTION_INTEGER:
    case FV_OPTION_NUMBER: return set_number(command, option, field, value);
    }
    return -1;
}

/* ---------------------------------------------------------------- words */

/* State while the words are walked through. */
typedef struct walk {
    const fv_command *command;
    void             *options;
    char            **words;
    int               count, next;
} walk;

/* A value in the same word, or the next word. */
static int take_value(walk *w, const fv_option *option, const char *attached, const char *shown) {
    if (attached) return set_value(w->command, option, w->options, attached);
    if (w->next < w->count) return set_value(w->command, option, w->options, w->words[w->next++]);
    fv_complain(w->command->name, "%s needs a value", shown);
    fv_help_usage(w->command);
    return FV_EXIT_REFUSED;
}

static int show_help(const fv_command *command) {
    fv_help_command(command);
    return FV_EXIT_WELL;
}

static int take_long(walk *w, const char *word) {
    size_t           length = strcspn(word + 2, "=");
    const char      *attached = word[2 + length] ? word + 3 + length : NULL;
    const fv_option *option = find_long(w->command, word + 2, length);
    if (!option && !strcmp(word, "--help")) return show_help(w->command);
    if (!option) return unknown(w->command, word, (int)length + 2);
    if (option->kind != FV_OPTION_FLAG) return take_value(w, option, attached, word);
    if (!attached) return set_value(w->command, option, w->options, NULL);
    fv_complain(w->command->name, "--%.*s takes no value", (int)length, word + 2);
    return FV_EXIT_REFUSED;
}

static int take_letters(walk *w, const char *word) {
    for (const char *c = word + 1; *c; c++) {
        const fv_option *option = find_letter(w->command, *c);
        char             shown[] = { '-', *c, 0 };
        if (!option && *c == 'h') return show_help(w->command);
        if (!option) return unknown(w->command, shown, 2);
        if (option->kind != FV_OPTION_FLAG) return take_value(w, option, c[1] ? c + 1 : NULL, shown);
        set_value(w->command, option, w->options, NULL);
    }
    return -1;
}

static int check_count(const fv_command *command, int count, char **words) {
    if (count >= command->least && (command->most < 0 || count <= command->most)) return -1;
    if (count < command->least)
        fv_complain(command->name, "%s is missing", count || !command->usage ? "an argument" : command->usage);
    else
        fv_complain(command->name, "unexpected argument %s", words[command->most]);
    fv_help_usage(command);
    return FV_EXIT_REFUSED;
}

int fv_options_parse(const fv_command *command, void *options, int *nargs, char **args) {
    walk w = { .command = command, .options = options, .words = args, .count = *nargs };
    int  kept = 0;
    bool ended = false;
    for (const fv_option *o = command->options; o && o->name; o++)
        if (o->def) set_value(command, o, options, o->def);
    while (w.next < w.count) {
        char *word = args[w.next++];
        int   status = -1;
        if (ended || word[0] != '-' || !word[1])
            args[kept++] = word; /* a lone dash is an argument */
        else if (!strcmp(word, "--"))
            ended = true;
        else
            status = word[1] == '-' ? take_long(&w, word) : take_letters(&w, word);
        if (status >= 0) return status;
    }
    *nargs = kept;
    return check_count(command, kept, args);
}

void fv_options_release(const fv_command *command, void *options) {
    for (const fv_option *o = command->options; o && o->name; o++)
        if (o->kind == FV_OPTION_TEXTS) free(((fv_texts *)((char *)options + o->offset))->items);
}
