/* fovea trust: texts that may run programs. */
#include "pipeline_options.h"
#include <fovea/trust.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    fv_texts expression;
    bool     remove, list;
} trust_options;

static const fv_option options[] = {
    FV_OPTION(trust_options, expression, .letter = 'e', .argument = "TEXT",
              .doc = "the pipeline itself, or a line of it, instead of a file"),
    FV_OPTION(trust_options, remove, .doc = "trust it no more"),
    FV_OPTION(trust_options, list, .doc = "print what is trusted: the hash of each text, and the file that it was"),
    FV_OPTION_END,
};

static int run(const void *options_, int nargs, char **args) {
    const trust_options *o = options_;
    fv_error             error = { 0 };
    fv_texts             none = { 0 };
    char                *text = NULL;
    int                  code = FV_EXIT_WELL;
    if (o->list) {
        fv_status status = fv_trusted_list(&text, &error);
        if (status == FV_OK) fputs(text, stdout);
        free(text);
        return status == FV_OK ? FV_EXIT_WELL : fv_explain("trust", NULL, status, &error);
    }
    fv_pipeline *pipeline = fv_pipeline_from_options("trust", &o->expression, &none, NULL, nargs, args, &code);
    if (!pipeline) return code;
    fv_status status = fv_pipeline_trust(pipeline, !o->remove, &text, &error);
    if (status != FV_OK)
        code = fv_explain("trust", pipeline, status, &error);
    else
        fprintf(stderr, o->remove ? "fovea: no longer in %s\n" : "fovea: this text may now run programs, as %s says\n", text);
    free(text);
    fv_pipeline_free(pipeline);
    return code;
}

const fv_command fv_cmd_trust = {
    .name = "trust",
    .brief = "let a pipeline run programs without --allow-commands",
    .usage = "[FILE]",
    .least = 0,
    .most = 1,
    .doc =
        "Read the pipeline first. Its text, by its hash, is put on a list of yours, ~/.config/fovea/trusted; a text that changes "
        "by a letter has to be trusted anew. Scripts and programs that the text names are not part of it. The lines of the list "
        "are as sha256sum prints them. /etc/fovea/trusted is the list of the site, and no other file can give consent.",
    .examples = "fovea trust brain.fov\nfovea trust --list\nfovea trust brain.fov --remove",
    .options = options,
    .options_size = sizeof(trust_options),
    .run = run,
};
