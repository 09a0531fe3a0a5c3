/* fovea man: pages of the manual, as man reads them, made from the tables of commands and the descriptors of operators. */
#include "cli.h"
#include "names.h"
#include <cjson/cJSON.h>
#include <errno.h>
#include <fovea/describe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

typedef struct {
    const char *into;
} man_options;

static const fv_option options[] = {
    FV_OPTION(man_options, into, .argument = "FOLDER", .doc = "write the pages of all commands and operators below this folder"),
    FV_OPTION_END,
};

/* ---------------------------------------------------------------- roff */

/* Letters that mean something to roff; a line that begins with a dot or a quote would be a request. */
static void put(FILE *out, const char *text) {
    bool start = true;
    for (const char *c = text; *c; c++) {
        if (start && (*c == '.' || *c == '\'')) fputs("\\&", out);
        if (*c == '\\')
            fputs("\\e", out);
        else if (*c == '-')
            fputs("\\-", out);
        else if (*c == '\'')
            fputs("\\(aq", out);
        else if (*c == '^')
            fputs("\\(ha", out);
        else if (*c == '~')
            fputs("\\(ti", out);
        else if (*c == '`')
            fputs("\\(ga", out);
        else
            putc(*c, out);
        start = *c == '\n';
    }
}

static void title(FILE *out, const char *page, int section) {
    fprintf(out, ".TH \"");
    for (const char *c = page; *c; c++) putc(*c >= 'a' && *c <= 'z' ? *c - 32 : *c, out);
    fprintf(out, "\" %d \"\" \"Fovea %s\" \"Fovea\"\n.SH NAME\n", section, fv_version());
}

static void heading(FILE *out, const char *text) { fprintf(out, ".SH %s\n", text); }

/* Paragraphs of a text, which are apart by line breaks. */
static void paragraphs(FILE *out, const char *text) {
    for (const char *p = text; *p;) {
        int   n = (int)strcspn(p, "\n");
        char *copy = strndup(p, (size_t)n);
        if (!copy) abort();
        fprintf(out, ".PP\n");
        put(out, copy);
        putc('\n', out);
        free(copy);
        p += n;
        p += strspn(p, "\n");
    }
}

static void lines(FILE *out, const char *text) {
    fprintf(out, ".PP\n.nf\n.RS 4\n");
    put(out, text);
    fprintf(out, "\n.RE\n.fi\n");
}

static void item(FILE *out, const char *name, const char *text) {
    fprintf(out, ".TP\n.B ");
    put(out, name);
    putc('\n', out);
    put(out, text);
    putc('\n', out);
}

/* ---------------------------------------------------------------- commands */

static void option_item(FILE *out, const fv_option *o) {
    char        spelling[48], letter[8] = "", name[160], text[1400], choices[256] = "";
    const char *value = o->kind == FV_OPTION_FLAG ? "" : o->argument ? o->argument : o->choices ? "WORD" : "VALUE";
    fv_option_spelling(o, spelling);
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(name, sizeof name, "%s%s%s%s", letter, spelling, *value ? " " : "", value);
    if (o->choices) fv_choices_format(o->choices, choices, sizeof choices);
    snprintf(text, sizeof text, "%s%s%s%s%s%s", o->doc ? o->doc : "", *choices ? ": " : "", choices, o->def ? " (default: " : "",
             o->def ? o->def : "", o->def ? ")" : "");
    item(out, name, text);
}

static void command_page(FILE *out, const fv_command *c) {
    char page[64];
    snprintf(page, sizeof page, "fovea-%s", c->name);
    title(out, page, 1);
    put(out, page);
    fprintf(out, " \\- ");
    put(out, c->brief);
    putc('\n', out);
    heading(out, "SYNOPSIS");
    fprintf(out, ".B fovea %s\n[options]", c->name);
    if (c->usage) putc(' ', out);
    if (c->usage) put(out, c->usage);
    putc('\n', out);
    if (c->doc) {
        heading(out, "DESCRIPTION");
        paragraphs(out, c->doc);
    }
    heading(out, "OPTIONS");
    for (const fv_option *o = c->options; o && o->name; o++) option_item(out, o);
    item(out, "-h, --help", "show help");
    if (c->examples) {
        heading(out, "EXAMPLES");
        lines(out, c->examples);
    }
    heading(out, "SEE ALSO");
    fprintf(out, ".BR fovea (1)\n");
}

static void list_op(const cJSON *op, void *context) {
    char name[80];
    snprintf(name, sizeof name, "fovea-%s(7)", cJSON_GetStringValue(cJSON_GetObjectItem(op, "name")));
    item(context, name, cJSON_GetStringValue(cJSON_GetObjectItem(op, "brief")));
}

static void overview_page(FILE *out) {
    title(out, "fovea", 1);
    fprintf(out, "fovea \\- a few lines of text become a finished image analysis\n");
    heading(out, "SYNOPSIS");
    fprintf(out, ".B fovea\nCOMMAND [options] [arguments]\n");
    heading(out, "COMMANDS");
    for (const fv_command *const *c = fv__commands; *c; c++) {
        char name[80];
        snprintf(name, sizeof name, "fovea-%s(1)", (*c)->name);
        if (!(*c)->hidden) item(out, name, (*c)->brief);
    }
    heading(out, "OPERATORS");
    fv_names_each(list_op, out);
    heading(out, "EXIT STATUS");
    item(out, "0", "all well");
    item(out, "1", "some work failed");
    item(out, "2", "nothing was started: usage, pipeline, missing input");
    item(out, "130", "interrupted; the same command goes on");
}

/* ---------------------------------------------------------------- operators */

static const char *field(const cJSON *json, const char *name) { return cJSON_GetStringValue(cJSON_GetObjectItem(json, name)); }

static void facts_of(const cJSON *p, char *text, size_t size) {
    const cJSON *value = cJSON_GetObjectItem(p, "default"), *choices = cJSON_GetObjectItem(p, "choices"), *choice;
    char        *printed = value ? cJSON_PrintUnformatted(value) : NULL;
    size_t       n = 0;
    n += (size_t)snprintf(text, size, "%s%s%s%s%s", field(p, "kind"),
                          cJSON_IsTrue(cJSON_GetObjectItem(p, "required")) ? ", required" : "", printed ? ", default " : "",
                          printed ? printed : "", field(p, "doc") ? ". " : "");
    if (n < size) n += (size_t)snprintf(text + n, size - n, "%s", field(p, "doc") ? field(p, "doc") : "");
    bool first = true;
    cJSON_ArrayForEach(choice, choices) {
        if (n < size) n += (size_t)snprintf(text + n, size - n, "%s%s", first ? ": " : ", ", cJSON_GetStringValue(choice));
        first = false;
    }
    free(printed);
}

static void values(FILE *out, const cJSON *op, const char *list, const char *caption) {
    const cJSON *all = cJSON_GetObjectItem(op, list), *p;
    if (cJSON_GetArraySize(all)) heading(out, caption);
    cJSON_ArrayForEach(p, all) {
        char text[2048];
        facts_of(p, text, sizeof text);
        item(out, field(p, "name"), text);
    }
}

static void op_page(FILE *out, const cJSON *op) {
    char page[80];
    snprintf(page, sizeof page, "fovea-%s", field(op, "name"));
    title(out, page, 7);
    put(out, page);
    fprintf(out, " \\- ");
    put(out, field(op, "brief"));
    putc('\n', out);
    heading(out, "SYNOPSIS");
    lines(out, field(op, "signature"));
    if (field(op, "doc")) {
        heading(out, "DESCRIPTION");
        paragraphs(out, field(op, "doc"));
    }
    values(out, op, "inputs", "INPUTS");
    values(out, op, "parameters", "PARAMETERS");
    if (field(op, "expands")) {
        heading(out, "SAME AS");
        lines(out, field(op, "expands"));
    }
    if (field(op, "example")) {
        heading(out, "EXAMPLE");
        lines(out, field(op, "example"));
    }
    if (field(op, "citation")) {
        heading(out, "REFERENCE");
        paragraphs(out, field(op, "citation"));
    }
    if (field(op, "also")) {
        heading(out, "ALSO KNOWN AS");
        paragraphs(out, field(op, "also"));
    }
    heading(out, "SEE ALSO");
    fprintf(out, ".BR fovea (1)\n");
}

/* ---------------------------------------------------------------- files */

typedef struct {
    const char *folder;
    bool        failed;
} writing;

static FILE *open_page(writing *w, const char *name, int section) {
    char path[4096];
    snprintf(path, sizeof path, "%s/man%d/%s.%d", w->folder, section, name, section);
    FILE *file = fopen(path, "w");
    if (!file) fv_complain("man", "cannot write %s: %s", path, strerror(errno));
    w->failed = w->failed || !file;
    return file;
}

static void close_page(writing *w, FILE *file) {
    bool bad = ferror(file);
    w->failed = fclose(file) || bad || w->failed;
}

static void write_op(const cJSON *op, void *context) {
    writing *w = context;
    char     name[80];
    snprintf(name, sizeof name, "fovea-%s", field(op, "name"));
    FILE *file = open_page(w, name, 7);
    if (!file) return;
    op_page(file, op);
    close_page(w, file);
}

static int write_all(const char *folder) {
    writing w = { folder, false };
    char    path[4096];
    mkdir(folder, 0777);
    for (int section = 1; section <= 7; section += 6) {
        snprintf(path, sizeof path, "%s/man%d", folder, section);
        if (mkdir(path, 0777) && errno != EEXIST) {
            fv_complain("man", "cannot make folder %s: %s", path, strerror(errno));
            return FV_EXIT_FAILED;
        }
    }
    FILE *file = open_page(&w, "fovea", 1);
    if (file) {
        overview_page(file);
        close_page(&w, file);
    }
    for (const fv_command *const *c = fv__commands; *c; c++) {
        char name[80];
        snprintf(name, sizeof name, "fovea-%s", (*c)->name);
        file = (*c)->hidden ? NULL : open_page(&w, name, 1);
        if (!file) continue;
        command_page(file, *c);
        close_page(&w, file);
    }
    fv_names_each(write_op, &w);
    return w.failed ? FV_EXIT_FAILED : FV_EXIT_WELL;
}

/* A command's page, or an operator's. */
static int print_page(const char *name) {
    for (const fv_command *const *c = fv__commands; *c; c++)
        if (!(*c)->hidden && !strcmp((*c)->name, name)) {
            command_page(stdout, *c);
            return FV_EXIT_WELL;
        }
    fv_error error = { 0 };
    char    *text = NULL;
    cJSON   *op = fv_describe_name(name, FV_FORM_JSON, &text, &error) == FV_OK ? cJSON_Parse(text) : NULL;
    bool     good = op && field(op, "signature");
    if (good)
        op_page(stdout, op);
    else
        fv_complain("man", "%s: no such command or operator", name);
    cJSON_Delete(op);
    free(text);
    return good ? FV_EXIT_WELL : FV_EXIT_REFUSED;
}

static int run(const void *options_, int nargs, char **args) {
    const man_options *o = options_;
    if (o->into) return write_all(o->into);
    if (nargs) return print_page(args[0]);
    overview_page(stdout);
    return FV_EXIT_WELL;
}

const fv_command fv_cmd_man = {
    .name = "man",
    .brief = "print a page of the manual for man to show",
    .usage = "[NAME]",
    .most = 1,
    .doc = "NAME is a command or an operator; without it the page lists both. `make install` installs all pages, so that `man "
           "fovea`, "
           "`man fovea-run` and `man fovea-gaussian` show them.",
    .examples = "fovea man gaussian | man -l -\nfovea man --into ~/.local/share/man",
    .options = options,
    .options_size = sizeof(man_options),
    .run = run,
};
