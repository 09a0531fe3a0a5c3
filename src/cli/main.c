/* fovea: finds the command and runs it. */
#include "cli.h"
#include <fovea/describe.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fv_complain(const char *name, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout); /* so that what was said before stands before */
    fprintf(stderr, "fovea%s%s: ", name ? " " : "", name ? name : "");
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

static const fv_command *find(const char *name) {
    for (const fv_command *const *c = fv__commands; *c; c++)
        if (!strcmp((*c)->name, name)) return *c;
    return NULL;
}

static int unknown(const char *word) {
    enum { MOST = 64 };
    const char *names[MOST] = { "--help", "--version" };
    int         count = 2;
    for (const fv_command *const *c = fv__commands; *c && count < MOST; c++)
        if (!(*c)->hidden) names[count++] = (*c)->name;
    const char *near = fv_nearest_word(word, names, count), *kind = word[0] == '-' ? "option" : "command";
    if (near)
        fv_complain(NULL, "unknown %s %s; did you mean %s?", kind, word, near);
    else
        fv_complain(NULL, "unknown %s %s", kind, word);
    fprintf(stderr, "`fovea --help` lists the commands.\n");
    return FV_EXIT_REFUSED;
}

static int run(const fv_command *command, int nargs, char **args) {
    void *options = calloc(1, command->options_size + 1);
    if (!options) abort();
    int status = fv_options_parse(command, options, &nargs, args);
    if (status < 0) status = command->run(options, nargs, args);
    fv_options_release(command, options);
    free(options);
    return status;
}

/* A result that could not be written is not a result. */
static int finish(int status) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    fv_complain(NULL, "cannot write to standard output");
    return status == FV_EXIT_WELL ? FV_EXIT_FAILED : status;
}

int main(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : NULL;
    if (!word) {
        fv_complain(NULL, "a command is missing");
        fprintf(stderr, "`fovea --help` lists the commands.\n");
        return FV_EXIT_REFUSED;
    }
    bool help = !strcmp(word, "help");
    if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
        printf("fovea %s\n", fv_version());
        return finish(FV_EXIT_WELL);
    }
    if (!strcmp(word, "--help") || !strcmp(word, "-h") || (help && argc == 2)) {
        fv_help_overview();
        return finish(FV_EXIT_WELL);
    }
    const fv_command *command = find(help ? argv[2] : word);
    if (!command) return unknown(help ? argv[2] : word);
    if (help) {
        fv_help_command(command);
        return finish(FV_EXIT_WELL);
    }
    return finish(run(command, argc - 2, argv + 2));
}
