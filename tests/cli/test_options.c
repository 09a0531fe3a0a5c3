/* Command-line options of every kind, parsed by table. The sources are taken in whole, since the command is no library. */
#include "cli/help.c"
#include "cli/options.c"
#include "support/test.h"
#include <stdarg.h>

typedef struct {
    bool        flag, dry_run;
    const char *output, *engine;
    fv_texts    set;
    int64_t     workers;
    double      fraction;
    fv_size     memory;
} sample_options;

static const fv_option sample_table[] = {
    FV_OPTION(sample_options, flag, .letter = 'f', .doc = "a flag"),
    FV_OPTION(sample_options, dry_run, .letter = 'n', .doc = "do nothing"),
    FV_OPTION(sample_options, output, .letter = 'o', .argument = "FILE", .doc = "where to"),
    FV_OPTION(sample_options, engine, .choices = "threads|processes", .def = "threads", .doc = "who works"),
    FV_OPTION(sample_options, set, .argument = "NAME=VALUE", .doc = "a value"),
    FV_OPTION(sample_options, workers, .letter = 'w', .min = 1, .max = 64, .def = "4", .doc = "how many"),
    FV_OPTION(sample_options, fraction, .min = 0.5, .doc = "how much"),
    FV_OPTION(sample_options, memory, .doc = "bound"),
    FV_OPTION_END,
};
static const fv_command sample_command = { .name = "sample",
                                           .brief = "sample",
                                           .usage = "FILE...",
                                           .least = 1,
                                           .most = 3,
                                           .options = sample_table,
                                           .options_size = sizeof(sample_options) };
const fv_command *const fv__commands[] = { &sample_command, NULL };

static char complaint[512];

void fv_complain(const char *name, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int n = snprintf(complaint, sizeof complaint, "%s: ", name);
    vsnprintf(complaint + n, sizeof complaint - (size_t)n, format, arguments);
    va_end(arguments);
}

/* Parses words separated by blanks; args are then the remaining arguments joined by commas. */
static int parse(const char *line, sample_options *options, char args[256]) {
    static char copy[512];
    char       *words[64];
    int         count = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) words[count++] = word;
    memset(options, 0, sizeof *options);
    complaint[0] = args[0] = 0;
    int status = fv_options_parse(&sample_command, options, &count, words);
    for (int i = 0; i < count && status < 0; i++) snprintf(args + strlen(args), 256 - strlen(args), i ? ",%s" : "%s", words[i]);
    return status;
}

TEST(options_may_stand_anywhere_and_have_two_spellings) {
    sample_options o;
    char           args[256];
    CHECK_INT(parse("a --flag b -o out.png c", &o, args), -1);
    CHECK(o.flag && !o.dry_run && !strcmp(o.output, "out.png"));
    CHECK_TEXT(args, "a,b,c");
    CHECK_INT(parse("-fn -w8 --output=x=y.png a", &o, args), -1);
    CHECK(o.flag && o.dry_run && o.workers == 8 && !strcmp(o.output, "x=y.png"));
    CHECK_INT(parse("-foout --dry-run a", &o, args), -1);
    CHECK(o.flag && o.dry_run && !strcmp(o.output, "out"));
    CHECK_INT(parse("a - -- --flag", &o, args), -1);
    CHECK(!o.flag);
    CHECK_TEXT(args, "a,-,--flag");
}

TEST(values_are_converted_and_defaults_filled_in) {
    sample_options o;
    char           args[256];
    CHECK_INT(parse("a", &o, args), -1);
    CHECK(o.workers == 4 && !strcmp(o.engine, "threads") && !o.output && !o.set.count);
    CHECK_INT(parse("a --workers 64 --fraction 2.5 --memory 1.5G --engine processes", &o, args), -1);
    CHECK(o.workers == 64 && o.fraction == 2.5 && o.memory.bytes == 3ll << 29 && !strcmp(o.engine, "processes"));
    CHECK_INT(parse("a --set x=1 --set y=2,3", &o, args), -1);
    CHECK_INT(o.set.count, 2);
    CHECK(!strcmp(o.set.items[0], "x=1") && !strcmp(o.set.items[1], "y=2,3"));
    fv_options_release(&sample_command, &o);
}

TEST(wrong_options_say_what_was_expected) {
    static const struct {
        const char *line, *complaint;
    } samples[] = {
        { "a --workers x", "sample: --workers x: expected a whole number" },
        { "a --workers 2.5", "sample: --workers 2.5: expected a whole number" },
        { "a --workers 0", "sample: --workers 0: expected a number from 1 to 64" },
        { "a --workers 65", "sample: --workers 65: expected a number from 1 to 64" },
        { "a --workers nan", "sample: --workers nan: expected a whole number" },
        { "a --fraction 0.25", "sample: --fraction 0.25: expected at least 0.5" },
        { "a --fraction 1x", "sample: --fraction 1x: expected a number" },
        { "a --memory lots", "sample: --memory lots: expected a size such as 512M or 4G" },
        { "a --engine gpu", "sample: --engine gpu: expected one of threads, processes" },
        { "a -w", "sample: -w needs a value" },
        { "a --output", "sample: --output needs a value" },
        { "a --flag=1", "sample: --flag takes no value" },
        { "a --dryrun", "sample: unknown option --dryrun; did you mean --dry-run?" },
        { "a --outptu=x", "sample: unknown option --outptu; did you mean --output?" },
        { "a -z", "sample: unknown option -z" },
        { "", "sample: FILE... is missing" },
        { "a b c d", "sample: unexpected argument d" },
    };
    sample_options o;
    char           args[256];
    for (int i = 0; i < (int)(sizeof samples / sizeof *samples); i++) {
        CHECK_INT(parse(samples[i].line, &o, args), FV_EXIT_REFUSED);
        CHECK_TEXT(complaint, samples[i].complaint);
        fv_options_release(&sample_command, &o);
    }
}

TEST_MAIN
