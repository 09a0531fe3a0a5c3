/* fovea sql: a query on table files. */
#include "cli.h"
#include "within.h"
#include <fovea/sql.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

typedef struct {
    bool        csv, json, joint;
    const char *within, *within_error;
} sql_options;

static const fv_option options[] = {
    FV_OPTION(sql_options, csv, .doc = "print CSV"),
    FV_OPTION(sql_options, json, .doc = "print JSON, a list with one object per row"),
    FV_OPTION(sql_options, within, .argument = "TIME",
              .doc = "estimate counts, sums and means from a random part of the rows, in 5s or 500ms"),
    FV_OPTION(sql_options, within_error, .argument = "PART", .doc = "the same until each is known to 1% or 0.01"),
    FV_OPTION(sql_options, joint, .doc = "all of these intervals hold at once, and not each for itself"),
    FV_OPTION_END,
};

/* ---------------------------------------------------------------- for programs */

static void csv_value(const char *text, bool missing) {
    if (missing) return;
    if (*text && !strpbrk(text, "\",\r\n") && text[0] != ' ' && text[strlen(text) - 1] != ' ') {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"') putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static fv_status print_csv(fv_sql *sql, fv_error *error) {
    bool row;
    for (int c = 0; c < fv_sql_columns(sql); c++) {
        if (c) putchar(',');
        csv_value(fv_sql_column(sql, c), false);
    }
    putchar('\n');
    for (;;) {
        fv_status status = fv_sql_next(sql, &row, error);
        if (status != FV_OK || !row) return status;
        for (int c = 0; c < fv_sql_columns(sql); c++) {
            if (c) putchar(',');
            csv_value(fv_sql_text(sql, c), fv_sql_value(sql, c) == FV_SQL_MISSING);
        }
        putchar('\n');
    }
}

static void json_text(const char *text) {
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        if ((unsigned char)*text < 0x20)
            printf("\\u%04x", (unsigned char)*text);
        else
            putchar(*text);
    }
    putchar('"');
}

static void json_value(fv_sql *sql, int c) {
    fv_sql_kind kind = fv_sql_value(sql, c);
    if (kind == FV_SQL_MISSING || (kind == FV_SQL_REAL && !isfinite(fv_sql_real(sql, c))))
        fputs("null", stdout);
    else if (kind == FV_SQL_TEXT)
        json_text(fv_sql_text(sql, c));
    else
        fputs(fv_sql_text(sql, c), stdout);
}

static fv_status print_json(fv_sql *sql, fv_error *error) {
    bool row;
    putchar('[');
    for (bool first = true;; first = false) {
        fv_status status = fv_sql_next(sql, &row, error);
        if (status != FV_OK || !row) {
            puts(first ? "]" : "\n]");
            return status;
        }
        fputs(first ? "\n{" : ",\n{", stdout);
        for (int c = 0; c < fv_sql_columns(sql); c++) {
            if (c) fputs(", ", stdout);
            json_text(fv_sql_column(sql, c));
            fputs(": ", stdout);
            json_value(sql, c);
        }
        putchar('}');
    }
}

/* ---------------------------------------------------------------- for people */

enum { FIRST_ROWS = 1000, WIDEST = 60 };

typedef struct { /* rows that the widths of the columns follow from; later ones are printed as they come */
    int    ncolumns, nrows;
    int   *width;
    bool  *numbers;
    char **text; /* of a row after the other */
} page;

/* Characters, not bytes. */
static int length(const char *text) {
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static char *shown(const char *text) { /* line breaks would spoil the columns */
    char *copy = strdup(text);
    if (!copy) abort();
    for (char *c = copy; *c; c++)
        if ((unsigned char)*c < 0x20) *c = ' ';
    return copy;
}

static void print_cell(const page *p, int c, const char *text) {
    int pad = p->width[c] - length(text);
    if (c) fputs("  ", stdout);
    for (int i = 0; p->numbers[c] && i < pad; i++) putchar(' ');
    fputs(text, stdout);
    for (int i = 0; !p->numbers[c] && i < pad && c < p->ncolumns - 1; i++) putchar(' ');
    if (c == p->ncolumns - 1) putchar('\n');
}

static char *take_cell(page *p, fv_sql *sql, int c) {
    char *text = shown(fv_sql_text(sql, c));
    int   n = length(text);
    if (fv_sql_value(sql, c) == FV_SQL_TEXT) p->numbers[c] = false;
    if (n > p->width[c]) p->width[c] = n > WIDEST ? WIDEST : n;
    return text;
}

static fv_status fill_page(page *p, fv_sql *sql, bool *more, fv_error *error) {
    for (; p->nrows < FIRST_ROWS; p->nrows++) {
        fv_status status = fv_sql_next(sql, more, error);
        if (status != FV_OK || !*more) return status;
        for (int c = 0; c < p->ncolumns; c++) p->text[p->nrows * p->ncolumns + c] = take_cell(p, sql, c);
    }
    return FV_OK;
}

static fv_status print_rest(page *p, fv_sql *sql, fv_error *error) {
    bool row;
    for (;;) {
        fv_status status = fv_sql_next(sql, &row, error);
        if (status != FV_OK || !row) return status;
        for (int c = 0; c < p->ncolumns; c++) {
            char *text = shown(fv_sql_text(sql, c));
            print_cell(p, c, text);
            free(text);
        }
    }
}

static fv_status print_table(fv_sql *sql, fv_error *error) {
    page p = { .ncolumns = fv_sql_columns(sql) };
    bool more = true;
    p.width = calloc((size_t)p.ncolumns, sizeof *p.width);
    p.numbers = calloc((size_t)p.ncolumns, sizeof *p.numbers);
    p.text = calloc((size_t)(FIRST_ROWS * p.ncolumns), sizeof *p.text);
    if (!p.width || !p.numbers || !p.text) abort();
    for (int c = 0; c < p.ncolumns; c++) {
        p.width[c] = length(fv_sql_column(sql, c));
        p.numbers[c] = true;
    }
    fv_status status = fill_page(&p, sql, &more, error);
    for (int c = 0; c < p.ncolumns; c++) print_cell(&p, c, fv_sql_column(sql, c));
    for (int i = 0; i < p.nrows * p.ncolumns; i++) {
        print_cell(&p, i % p.ncolumns, p.text[i]);
        free(p.text[i]);
    }
    if (status == FV_OK && more) status = print_rest(&p, sql, error);
    free(p.width);
    free(p.numbers);
    free(p.text);
    return status;
}

/* ---------------------------------------------------------------- the command */

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* began: when the command did, to which a time counts. */
static fv_status ask(const sql_options *o, fv_sql *sql, const char *text, fv_sql_within *within, double began, fv_error *error) {
    if (!o->within && !o->within_error) return fv_sql_query(sql, text, error);
    if (within->time) within->time = within->time > seconds_now() - began ? within->time - (seconds_now() - began) : 1e-6;
    return fv_sql_estimate(sql, text, within, error);
}

/* Which argument is the question: the first that begins like one, where somebody says it before the files; else the last. */
static int find_question(int nargs, char **args) {
    for (int i = 0; i < nargs; i++)
        if (!strncasecmp(args[i], "select ", 7) || !strncasecmp(args[i], "with ", 5)) return i;
    return nargs - 1;
}

static int run(const void *options_, int nargs, char **args) {
    const sql_options *o = options_;
    double             began = seconds_now();
    fv_sql_within      within = { .confidence = 0.95, .joint = o->joint };
    fv_error           error = { 0 };
    fv_status          status = FV_OK;
    fv_sql            *sql = fv_sql_new();
    bool               started = false;
    int                question = find_question(nargs, args);
    const char        *mistake = o->csv && o->json                            ? "--csv and --json: only one of them is possible"
                                 : o->joint && !o->within && !o->within_error ? "--joint is about intervals: give --within 5s or "
                                                                                "--within-error 1% too"
                                                                              : NULL;
    if (mistake) {
        fv_complain("sql", "%s", mistake);
        fv_sql_free(sql);
        return FV_EXIT_REFUSED;
    }
    if (!fv_within("sql", o->within, o->within_error, &within.time, &within.error)) {
        fv_sql_free(sql);
        return FV_EXIT_REFUSED;
    }
    for (int i = 0; i < nargs && status == FV_OK; i++)
        if (i != question) status = (o->within || o->within_error ? fv_sql_add_sampled : fv_sql_add)(sql, args[i], &error);
    if (status == FV_OK) status = ask(o, sql, args[question], &within, began, &error);
    if (status == FV_OK) {
        started = true;
        status = o->csv ? print_csv(sql, &error) : o->json ? print_json(sql, &error) : print_table(sql, &error);
    }
    if (status != FV_OK) fv_complain("sql", "%s", error.message);
    fv_sql_free(sql);
    return status == FV_OK ? FV_EXIT_WELL : started ? FV_EXIT_FAILED : FV_EXIT_REFUSED;
}

const fv_command fv_cmd_sql = {
    .name = "sql",
    .brief = "ask table files a question in SQL",
    .usage = "FILE... \"SELECT ...\"",
    .least = 2,
    .most = -1,
    .doc = "Files are SQLite databases, CSV, JSON lines or Parquet. Each is a table with the name of the file without its "
           "extension; the tables of a database also have their own names. The SQL is SQLite's. Files are never changed.\n"
           "With --within or --within-error, counts, sums and means of one table (with WHERE and GROUP BY) are estimated from "
           "blocks of rows that are taken at random: behind each value come its interval, NAME_low and NAME_high, and at the end "
           "how many blocks were seen. Databases, and Parquet files of at least 32 row groups, are read only where the sample "
           "is; other files are read as a whole first. A "
           "group of which no row was met is not listed.",
    .examples = "fovea sql cells.csv \"SELECT type, avg(volume) FROM cells GROUP BY type\"\n"
                "fovea sql animals.csv cells.db \"SELECT weight, count(*) FROM cells JOIN animals ON animal = id GROUP BY id\"\n"
                "fovea sql --within 2s cells.db \"SELECT type, count(*), avg(volume) FROM cells GROUP BY type\"\n"
                "fovea sql --csv bubbles.db \"SELECT * FROM bubbles WHERE volume > 100\"",
    .options = options,
    .options_size = sizeof(sql_options),
    .run = run,
};
