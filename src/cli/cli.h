/* What a command is. One file src/cli/cmd_NAME.c defines one; nothing else is edited to add it. It includes this and
 * <fovea/...> only.
 *
 *     typedef struct { bool json; fv_texts set; const char *output; } plan_options;
 *
 *     static const fv_option options[] = {
 *         FV_OPTION(plan_options, json, .doc = "print JSON"),
 *         FV_OPTION(plan_options, set, .argument = "NAME=VALUE", .doc = "give a parameter another value"),
 *         FV_OPTION(plan_options, output, .letter = 'o', .argument = "FILE", .doc = "write there"),
 *         FV_OPTION_END,
 *     };
 *
 *     static int run(const void *options, int nargs, char **args);
 *
 *     const fv_command fv_cmd_plan = { .name = "plan", .brief = "say what a pipeline will do", .usage = "FILE", .least = 1,
 *         .most = 1, .options = options, .options_size = sizeof(plan_options), .run = run };
 *
 * The table makes the parsing and the help; --help is in every command. Results go to standard output, everything else to
 * standard error.
 */
#ifndef FV_CLI_H
#define FV_CLI_H

#include <fovea/status.h>
#include <fovea/text.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fv_exit {
    FV_EXIT_WELL = 0,
    FV_EXIT_FAILED = 1,        /* some work failed */
    FV_EXIT_REFUSED = 2,       /* nothing was started: usage, pipeline, missing input */
    FV_EXIT_AGAIN = 99,        /* a job that was asked to stop: Slurm queues it again */
    FV_EXIT_INTERRUPTED = 130, /* can go on */
} fv_exit;

typedef struct fv_texts { /* an option that may be given several times */
    int          count;
    const char **items;
} fv_texts;
typedef struct fv_size {
    int64_t bytes;
} fv_size; /* 512M, 4G */

typedef enum fv_option_kind {
    FV_OPTION_FLAG,    /* bool */
    FV_OPTION_TEXT,    /* const char * */
    FV_OPTION_TEXTS,   /* fv_texts */
    FV_OPTION_INTEGER, /* int64_t */
    FV_OPTION_NUMBER,  /* double */
    FV_OPTION_SIZE,    /* fv_size */
} fv_option_kind;

typedef struct fv_option {
    const char    *name; /* the field; an underscore is written as a dash */
    fv_option_kind kind;
    size_t         offset;
    char           letter;   /* short form, 0: none */
    const char    *argument; /* what the value is called in the help; NULL: by kind */
    const char    *def;      /* default, as the user would write it; NULL: zero */
    double         min, max; /* INTEGER and NUMBER, inclusive; both 0: any */
    const char    *choices;  /* TEXT: "threads|processes|slurm"; NULL: any */
    bool           once;     /* TEXT: twice is a mistake, and not a change of mind */
    const char    *doc;
} fv_option;

#define FV_OPTION(type, field, ...)                                                                                              \
    {                                                                                                                            \
        .name = #field, .offset = offsetof(type, field), .kind = _Generic(((type *)0)->field,                       \
          bool: FV_OPTION_FLAG, const char *: FV_OPTION_TEXT, fv_texts: FV_OPTION_TEXTS, int64_t: FV_OPTION_INTEGER, \
          double: FV_OPTION_NUMBER, fv_size: FV_OPTION_SIZE), __VA_ARGS__            \
    }
#define FV_OPTION_END                                                                                                            \
    { .name = NULL }

typedef struct fv_absent { /* an option that other commands have */
    const char *name;      /* NULL ends the list */
    const char *why;       /* this one has none, and what is done instead */
} fv_absent;

typedef struct fv_command {
    const char      *name, *brief;
    const char      *usage;       /* its arguments: "FILE...", "[NAME]"; NULL: none */
    int              least, most; /* number of arguments; most -1: any */
    const char      *doc;         /* further sentences; a line break starts a new paragraph */
    const char      *examples;    /* one a line */
    const fv_option *options;
    size_t           options_size;
    const fv_absent *absent;                                 /* NULL: none */
    bool             hidden;                                 /* for engines and scripts: not in the list of commands */
    int (*run)(const void *options, int nargs, char **args); /* returns the exit status */
} fv_command;

extern const fv_command *const fv__commands[]; /* found by the build, sorted by name, ended by NULL */

/* Fills the options (zeroed, with room for options_size) and moves the other arguments to the front of args. -1: go on;
 * otherwise the exit status, after help was shown or the mistake was explained. */
int  fv_options_parse(const fv_command *command, void *options, int *nargs, char **args);
void fv_options_release(const fv_command *command, void *options);
/* The option as the user writes it, "--dry-run". */
void fv_option_spelling(const fv_option *option, char text[48]);

/* "a|b" as "a, b". */
void fv_choices_format(const char *choices, char *text, size_t size);

void fv_help_overview(void);
void fv_help_command(const fv_command *command);
void fv_help_usage(const fv_command *command); /* one line, to standard error */

/* "fovea NAME: message" on standard error; name may be NULL. */
void fv_complain(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
