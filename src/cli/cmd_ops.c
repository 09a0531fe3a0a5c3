/* fovea ops: the operators and file formats, or one of them explained. */
#include "cli.h"
#include <fovea/describe.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    bool json;
} ops_options;

static const fv_option options[] = {
    FV_OPTION(ops_options, json, .doc = "print everything that is known, as JSON"),
    FV_OPTION_END,
};

static int run(const void *options_, int nargs, char **args) {
    const ops_options *o = options_;
    fv_error           error = { 0 };
    char              *text;
    if (!nargs) {
        text = fv_describe_all(o->json ? FV_FORM_JSON : FV_FORM_TEXT);
    } else if (fv_describe_name(args[0], o->json ? FV_FORM_JSON : FV_FORM_TEXT, &text, &error) != FV_OK) {
        fv_complain("ops", "%s", error.message);
        return FV_EXIT_REFUSED;
    }
    printf(o->json ? "%s\n" : "%s", text);
    if (!o->json && !nargs) printf("\n`fovea ops NAME` explains one of them.\n");
    free(text);
    return FV_EXIT_WELL;
}

const fv_command fv_cmd_ops = {
    .name = "ops",
    .brief = "list operators and file formats, or explain one",
    .usage = "[NAME]",
    .most = 1,
    .doc = "NAME is an operator (gaussian), what another program calls it (bwlabel), a family of operators (filter), a file "
           "format (tiff), or a word to look for (edges).",
    .examples = "fovea ops\nfovea ops write\nfovea ops --json",
    .options = options,
    .options_size = sizeof(ops_options),
    .run = run,
};
