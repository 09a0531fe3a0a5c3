/* fovea graph: a drawing of a pipeline. */
#include "pipeline_options.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct {
    FV_PIPELINE_FIELDS;
    bool        chunks;
    const char *output;
} graph_options;

static const fv_option options[] = {
    FV_PIPELINE_OPTIONS(graph_options),
    FV_OPTION(graph_options, chunks, .doc = "draw the tasks instead of the operators"),
    FV_OPTION(graph_options, output, .letter = 'o', .argument = "FILE",
              .doc = "file to write: .dot, or .svg (needs Graphviz); DOT to standard output if left out"),
    FV_OPTION_END,
};

/* Graphviz lays the drawing out. The file name is handed over in the environment, so that no shell reads it. */
static int draw(const char *dot, const char *path) {
    setenv("FOVEA_GRAPH_OUTPUT", path, 1);
    FILE *pipe = popen("dot -Tsvg -o \"$FOVEA_GRAPH_OUTPUT\"", "w");
    if (!pipe) return -1;
    fputs(dot, pipe);
    return pclose(pipe);
}

static int save(const char *dot, const char *path) {
    size_t length = strlen(path);
    if (length > 4 && !strcasecmp(path + length - 4, ".svg")) {
        if (!draw(dot, path)) return FV_EXIT_WELL;
        fv_complain("graph", "cannot draw %s: `dot` is needed (Debian: apt install graphviz); a .dot file needs nothing", path);
        return FV_EXIT_FAILED;
    }
    FILE *file = fopen(path, "w");
    if (!file || fputs(dot, file) < 0 || fclose(file)) {
        fv_complain("graph", "cannot write %s", path);
        return FV_EXIT_FAILED;
    }
    return FV_EXIT_WELL;
}

static int run(const void *options_, int nargs, char **args) {
    const graph_options *o = options_;
    int                  status;
    fv_pipeline         *pipeline = fv_pipeline_from_options("graph", o->expression, &o->set, o->chunk, nargs, args, &status);
    if (!pipeline) return status;
    fv_error  error = { 0 };
    char     *dot;
    fv_status result = fv_pipeline_graph(pipeline, o->chunks, &dot, &error);
    if (result != FV_OK) status = fv_explain("graph", pipeline, result, &error);
    else if (o->output) status = save(dot, o->output);
    else status = fputs(dot, stdout) < 0 ? FV_EXIT_FAILED : FV_EXIT_WELL;
    free(dot);
    fv_pipeline_free(pipeline);
    return status;
}

const fv_command fv_cmd_graph = {
    .name = "graph", .brief = "draw a pipeline as DOT or SVG", .usage = "[FILE]", .least = 0, .most = 1,
    .doc = "Draws operators as boxes with the types of their results. Values that are stored between stages are coloured. "
           "With --chunks every task is a box.",
    .examples = "fovea graph foam.fov -o foam.svg\nfovea graph foam.fov --chunks | less", .options = options,
    .options_size = sizeof(graph_options), .run = run,
};
