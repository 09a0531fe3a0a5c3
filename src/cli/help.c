/* Help made from the tables of commands and options. */
#include "cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 80, SPELLING = 96, WIDEST = 28 }; /* an option spelled wider than WIDEST is explained on the next line */

static void put_wrapped(const char *text, int indent) { /* the cursor is at that column already */
    char *wrapped = fv_text_wrap(text, indent, WIDTH);
    printf("%s\n", wrapped);
    free(wrapped);
}

void fv_choices_format(const char *choices, char *text, size_t size) {
    size_t n = 0;
    for (const char *c = choices; *c && n + 3 < size; c++) n += (size_t)snprintf(text + n, size - n, *c == '|' ? ", " : "%c", *c);
    text[n] = 0;
}

static const char *argument_name(const fv_option *option) {
    if (option->argument) return option->argument;
    switch (option->kind) {
    case FV_OPTION_FLAG: return NULL;
    case FV_OPTION_TEXT: return option->choices ? "WORD" : "TEXT";
    case FV_OPTION_TEXTS: return "TEXT";
    case FV_OPTION_INTEGER: return "N";
    case FV_OPTION_NUMBER: return "NUMBER";
    case FV_OPTION_SIZE: return "SIZE";
    }
    return NULL;
}

/* "-o, --output FILE" */
static int spell(const fv_option *option, char text[SPELLING]) {
    char        name[48];
    const char *argument = argument_name(option);
    fv_option_spelling(option, name);
    if (option->letter)
        return snprintf(text, SPELLING, "-%c, %s%s%s", option->letter, name, argument ? " " : "", argument ? argument : "");
    return snprintf(text, SPELLING, "    %s%s%s", name, argument ? " " : "", argument ? argument : "");
}

static const fv_option help_option = { .name = "help", .letter = 'h', .doc = "show this" };

static void put_option(const fv_option *option, int width) {
    char spelling[SPELLING], choices[256] = "", doc[1024];
    spell(option, spelling);
    if (option->choices) fv_choices_format(option->choices, choices, sizeof choices);
    snprintf(doc, sizeof doc, "%s%s%s%s%s%s%s", option->doc ? option->doc : "", *choices ? ": " : "", choices,
             option->kind == FV_OPTION_TEXTS ? "; may be repeated" : "", option->def ? " (default: " : "",
             option->def ? option->def : "", option->def ? ")" : "");
    if ((int)strlen(spelling) > width)
        printf("  %s\n%*s", spelling, width + 4, "");
    else
        printf("  %-*s  ", width, spelling);
    put_wrapped(doc, width + 4);
}

void fv_help_usage(const fv_command *command) {
    fprintf(stderr, "usage: fovea %s [options]%s%s\n", command->name, command->usage ? " " : "",
            command->usage ? command->usage : "");
}

void fv_help_command(const fv_command *command) {
    char spelling[SPELLING];
    int  width = spell(&help_option, spelling);
    for (const fv_option *o = command->options; o && o->name; o++) {
        int length = spell(o, spelling);
        if (length > width && length <= WIDEST) width = length;
    }
    printf("usage: fovea %s [options]%s%s\n\n", command->name, command->usage ? " " : "", command->usage ? command->usage : "");
    put_wrapped(command->brief, 0);
    if (command->doc) {
        printf("\n");
        put_wrapped(command->doc, 0);
    }
    printf("\noptions\n");
    for (const fv_option *o = command->options; o && o->name; o++) put_option(o, width);
    put_option(&help_option, width);
    if (!command->examples) return;
    printf("\nexamples\n");
    for (const char *p = command->examples; *p;) {
        int n = (int)strcspn(p, "\n");
        printf("  %.*s\n", n, p);
        p += n + (p[n] == '\n');
    }
}

void fv_help_overview(void) {
    int width = 0;
    for (const fv_command *const *c = fv__commands; *c; c++)
        if (!(*c)->hidden && (int)strlen((*c)->name) > width) width = (int)strlen((*c)->name);
    printf("usage: fovea COMMAND [options] [arguments]\n\n"
           "A few lines of text become a finished image analysis.\n\ncommands\n");
    for (const fv_command *const *c = fv__commands; *c; c++) {
        if ((*c)->hidden) continue;
        printf("  %-*s  ", width, (*c)->name);
        put_wrapped((*c)->brief, width + 4);
    }
    printf("\n`fovea COMMAND --help` explains a command, `fovea ops` lists the operators.\n");
}
