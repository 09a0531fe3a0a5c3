/* fovea info: what image and table files hold. */
#include "cli.h"
#include <fovea/describe.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *path;
    bool        json;
} info_options;

static const fv_option options[] = {
    FV_OPTION(info_options, path, .argument = "NAME", .doc = "dataset or table inside the file, for formats that hold several"),
    FV_OPTION(info_options, json, .doc = "print JSON, a list with one entry per file"),
    FV_OPTION_END,
};

static int run(const void *options_, int nargs, char **args) {
    const info_options *o = options_;
    int                 failed = 0, shown = 0;
    if (o->json) printf("[");
    for (int i = 0; i < nargs; i++) {
        fv_error error = { 0 };
        char    *text;
        if (fv_describe_file(args[i], o->path, o->json ? FV_FORM_JSON : FV_FORM_TEXT, &text, &error) != FV_OK) {
            fv_complain("info", "%s", error.message);
            failed++;
        }
        if (text) printf("%s%s", !shown++ ? "" : o->json ? ", " : "\n", text);
        free(text);
    }
    if (o->json) printf("]\n");
    return !failed ? FV_EXIT_WELL : failed == nargs ? FV_EXIT_REFUSED : FV_EXIT_FAILED;
}

const fv_command fv_cmd_info = {
    .name = "info",
    .brief = "show what image and table files hold",
    .usage = "FILE...",
    .least = 1,
    .most = -1,
    .doc = "Shows format, type, shape, axes, spacing, chunks, size and metadata of images, from their headers alone, and the "
           "tables, columns and rows of table files.",
    .examples = "fovea info scan.nii.gz\nfovea info --json *.tif",
    .options = options,
    .options_size = sizeof(info_options),
    .run = run,
};
