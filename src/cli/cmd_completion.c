/* fovea completion: what a shell needs to complete the words of this command, made from its own tables. */
#include "cli.h"
#include "names.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the arguments of a command are, told by its usage. */
static const char *argument_of(const fv_command *command) {
    const char *usage = command->usage ? command->usage : "";
    return strstr(usage, "NAME") ? "names" : strstr(usage, "SHELL") ? "shells" : "files";
}

/* A text between single quotes of a shell. */
static void put_quoted(const char *text) {
    putchar('\'');
    for (const char *c = text; *c; c++) {
        if (*c == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*c == '\n' ? ' ' : *c);
    }
    putchar('\'');
}

static void put_words(const char *choices) { /* a|b|c */
    for (const char *c = choices; *c; c++) putchar(*c == '|' ? ' ' : *c);
}

static bool shown(const fv_command *command) { return !command->hidden; }

/* ---------------------------------------------------------------- bash */

static void put_bash_options(const fv_command *command) {
    printf("    %s)\n        words='--help", command->name);
    for (const fv_option *o = command->options; o && o->name; o++) {
        char spelling[48];
        fv_option_spelling(o, spelling);
        printf(" %s", spelling);
    }
    printf("'\n        kind=%s\n        case $before in\n", argument_of(command));
    for (const fv_option *o = command->options; o && o->name; o++) {
        char spelling[48];
        if (o->kind == FV_OPTION_FLAG) continue;
        fv_option_spelling(o, spelling);
        printf("        %s", spelling);
        if (o->letter) printf("|-%c", o->letter);
        printf(") kind=value; choices='");
        if (o->choices) put_words(o->choices);
        printf("' ;;\n");
    }
    printf("        esac ;;\n");
}

static void bash(void) {
    printf("# bash completion of fovea, made by `fovea completion bash`\n"
           "_fovea() {\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words= kind=commands choices=\n"
           "    COMPREPLY=()\n"
           "    [ \"$COMP_CWORD\" -gt 1 ] && case ${COMP_WORDS[1]} in\n");
    for (const fv_command *const *c = fv__commands; *c; c++)
        if (shown(*c)) put_bash_options(*c);
    printf("    *) kind=files ;;\n    esac\n    case $kind in\n    commands) choices='--help --version");
    for (const fv_command *const *c = fv__commands; *c; c++)
        if (shown(*c)) printf(" %s", (*c)->name);
    printf("' ;;\n    names) choices='");
    fv_names_print(" ");
    printf("' ;;\n    shells) choices='bash zsh fish' ;;\n    esac\n"
           "    case $current in\n    -*) [ $kind = value ] || choices=$words ;;\n    esac\n"
           "    [ -n \"$choices\" ] && COMPREPLY=($(compgen -W \"$choices\" -- \"$current\"))\n"
           "}\n"
           "complete -o bashdefault -o default -F _fovea fovea\n");
}

/* ---------------------------------------------------------------- zsh */

static void put_zsh_option(const fv_option *o) {
    char spelling[48], line[1024];
    fv_option_spelling(o, spelling);
    const char *value = o->kind == FV_OPTION_FLAG ? "" : "=";
    for (int form = 0; form < (o->letter ? 2 : 1); form++) {
        char letter[3] = { '-', o->letter, 0 };
        snprintf(line, sizeof line, "%s%s%s", o->kind == FV_OPTION_TEXTS ? "*" : "", form ? letter : spelling,
                 form && *value ? "+" : value);
        printf(" \\\n            ");
        putchar('\'');
        printf("%s[", line);
        for (const char *c = o->doc ? o->doc : ""; *c; c++) {
            if (*c == '\'')
                fputs("'\\''", stdout);
            else if (strchr("[]:\\", *c))
                printf("\\%c", *c);
            else
                putchar(*c);
        }
        putchar(']');
        if (*value && o->choices) {
            printf(":value:(");
            put_words(o->choices);
            putchar(')');
        } else if (*value)
            printf(":value:_files");
        putchar('\'');
    }
}

static void zsh(void) {
    printf("#compdef fovea\n# zsh completion of fovea, made by `fovea completion zsh`\n_fovea() {\n    local -a commands names\n"
           "    commands=(\n");
    for (const fv_command *const *c = fv__commands; *c; c++) {
        if (!shown(*c)) continue;
        char line[512];
        snprintf(line, sizeof line, "%s:%s", (*c)->name, (*c)->brief);
        printf("        ");
        put_quoted(line);
        putchar('\n');
    }
    printf("    )\n    names=(");
    fv_names_print(" ");
    printf(")\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        return\n    fi\n"
           "    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $command in\n");
    for (const fv_command *const *c = fv__commands; *c; c++) {
        if (!shown(*c)) continue;
        const char *kind = argument_of(*c);
        printf("    %s)\n        _arguments '(-h --help)'{-h,--help}'[show help]'", (*c)->name);
        for (const fv_option *o = (*c)->options; o && o->name; o++) put_zsh_option(o);
        printf(" \\\n            '*:%s:%s' ;;\n", kind,
               !strcmp(kind, "names")    ? "($names)"
               : !strcmp(kind, "shells") ? "(bash zsh fish)"
                                         : "_files");
    }
    printf("    esac\n}\n_fovea \"$@\"\n");
}

/* ---------------------------------------------------------------- fish */

static void put_fish_option(const fv_command *command, const fv_option *o) {
    char spelling[48];
    fv_option_spelling(o, spelling);
    printf("complete -c fovea -n '__fish_seen_subcommand_from %s' -l %s", command->name, spelling + 2);
    if (o->letter) printf(" -s %c", o->letter);
    if (o->kind != FV_OPTION_FLAG) printf(" -r");
    if (o->choices) {
        printf(" -f -a '");
        put_words(o->choices);
        printf("'");
    }
    if (o->doc) {
        printf(" -d ");
        put_quoted(o->doc);
    }
    putchar('\n');
}

static void fish(void) {
    printf("# fish completion of fovea, made by `fovea completion fish`\n");
    for (const fv_command *const *c = fv__commands; *c; c++) {
        if (!shown(*c)) continue;
        const char *kind = argument_of(*c);
        printf("complete -c fovea -f -n __fish_use_subcommand -a %s -d ", (*c)->name);
        put_quoted((*c)->brief);
        putchar('\n');
        for (const fv_option *o = (*c)->options; o && o->name; o++) put_fish_option(*c, o);
        if (!strcmp(kind, "files")) continue;
        printf("complete -c fovea -f -n '__fish_seen_subcommand_from %s' -a '", (*c)->name);
        if (!strcmp(kind, "names"))
            fv_names_print(" ");
        else
            printf("bash zsh fish");
        printf("'\n");
    }
}

static int run(const void *options, int nargs, char **args) {
    (void)options;
    (void)nargs;
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (!strcmp(shells[i].name, args[0])) {
            shells[i].print();
            return FV_EXIT_WELL;
        }
    fv_complain("completion", "%s: expected bash, zsh or fish", args[0]);
    return FV_EXIT_REFUSED;
}

const fv_command fv_cmd_completion = {
    .name = "completion",
    .brief = "let a shell complete commands, options and operators",
    .usage = "SHELL",
    .least = 1,
    .most = 1,
    .doc = "SHELL is bash, zsh or fish. `make install` puts the scripts where the shells look for them.",
    .examples = "source <(fovea completion bash)\nfovea completion zsh > ~/.zfunc/_fovea\n"
                "fovea completion fish > ~/.config/fish/completions/fovea.fish",
    .run = run,
};
