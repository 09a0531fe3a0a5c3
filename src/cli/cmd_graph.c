/* fovea graph: a drawing of a pipeline. */
#include "pipeline_options.h"
#include <ctype.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    FV_PIPELINE_FIELDS;
    bool        chunks;
    const char *output;
} graph_options;

static const fv_option options[] = {
    FV_PIPELINE_OPTIONS(graph_options),
    FV_OPTION(graph_options, chunks, .doc = "draw the tasks instead of the operators"),
    FV_OPTION(graph_options, output, .letter = 'o', .argument = "FILE",
              .doc = "file to write: .svg, .png or .pdf (need Graphviz), .dot or .gv; DOT to standard output if left out"),
    FV_OPTION_END,
};

static const char *ending_of(const char *path) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    return dot ? dot + 1 : "";
}

static bool is_one_of(const char *word, const char *const *words) {
    while (*words && strcasecmp(word, *words)) words++;
    return *words;
}

/* Graphviz lays the drawing out, told by argument and not by a shell. The text takes a file without a name, so that nobody has to
 * wait for a full pipe. */
static bool draw(const char *dot, const char *ending, const char *path, const char **why) {
    extern char              **environ;
    char                       form[16], *words[] = { "dot", form, "-o", (char *)path, NULL };
    FILE                      *text = tmpfile();
    pid_t                      child;
    int                        status = -1;
    posix_spawn_file_actions_t actions;
    *why = "a temporary file cannot be written";
    if (!text) return false;
    snprintf(form, sizeof form, "-T%s", ending);
    for (char *c = form; *c; c++) *c = c > form + 1 ? (char)tolower(*c) : *c;
    bool good = fputs(dot, text) >= 0 && fflush(text) == 0 && lseek(fileno(text), 0, SEEK_SET) == 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(text), 0);
    if (good) {
        good = posix_spawnp(&child, "dot", &actions, NULL, words, environ) == 0;
        *why =
            good ? "Graphviz's `dot` has failed; its reason stands above"
                 : "Graphviz's `dot` draws it and is not installed (Debian: apt-get install graphviz); a .dot file needs nothing";
    }
    posix_spawn_file_actions_destroy(&actions);
    fclose(text);
    return good && waitpid(child, &status, 0) == child && status == 0;
}

static int save(const char *dot, const char *path) {
    static const char *const texts[] = { "dot", "gv", NULL }, *const drawings[] = { "svg", "png", "pdf", NULL };
    const char *why;
    if (is_one_of(ending_of(path), drawings)) {
        if (draw(dot, ending_of(path), path, &why)) return FV_EXIT_WELL;
        fv_complain("graph", "%s is not made: %s", path, why);
        return FV_EXIT_FAILED;
    }
    if (!is_one_of(ending_of(path), texts)) {
        fv_complain("graph", "%s: the ending says what is drawn; .svg, .png, .pdf, .dot and .gv are possible", path);
        return FV_EXIT_REFUSED;
    }
    FILE *file = fopen(path, "w");
    bool  good = file && fputs(dot, file) >= 0;
    if (file && fclose(file)) good = false;
    if (good) return FV_EXIT_WELL;
    fv_complain("graph", "cannot write %s: %s", path, strerror(errno));
    return FV_EXIT_FAILED;
}

static int run(const void *options_, int nargs, char **args) {
    const graph_options *o = options_;
    int                  status;
    fv_pipeline         *pipeline = fv_pipeline_from_options("graph", &o->expression, &o->set, o->chunk, nargs, args, &status);
    if (!pipeline) return status;
    fv_error  error = { 0 };
    char     *dot;
    fv_status result = fv_pipeline_graph(pipeline, o->chunks, &dot, &error);
    if (result != FV_OK)
        status = fv_explain("graph", pipeline, result, &error);
    else if (o->output)
        status = save(dot, o->output);
    else
        status = fputs(dot, stdout) < 0 ? FV_EXIT_FAILED : FV_EXIT_WELL;
    free(dot);
    fv_pipeline_free(pipeline);
    return status;
}

const fv_command fv_cmd_graph = {
    .name = "graph",
    .brief = "draw a pipeline",
    .usage = "[FILE]",
    .least = 0,
    .most = 1,
    .doc = "Draws operators as boxes with the types of their results. Values that are stored between stages are coloured. "
           "With --chunks every task is a box.",
    .examples = "fovea graph foam.fov -o foam.svg\nfovea graph foam.fov --chunks | less",
    .options = options,
    .options_size = sizeof(graph_options),
    .run = run,
};
