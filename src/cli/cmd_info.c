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

typedef struct {
    int asked, failed, shown; /* files */
} counts;

static void describe(const info_options *o, const char *path, counts *files) {
    fv_error error = { 0 };
    char    *text;
    if (fv_describe_file(path, o->path, o->json ? FV_FORM_JSON : FV_FORM_TEXT, &text, &error) != FV_OK) {
        fv_complain("info", "%s", error.message);
        files->failed++;
    }
    if (text) printf("%s%s", !files->shown++ ? "" : o->json ? ", " : "\n", text);
    free(text);
    files->asked++;
}

static int run(const void *options_, int nargs, char **args) {
    const info_options *o = options_;
    counts              files = { 0 };
    if (o->json) printf("[");
    for (int i = 0; i < nargs; i++) {
        fv_error error = { 0 };
        char   **paths = NULL;
        int      count = 0;
        if (fv_match_files(args[i], &paths, &count, &error) != FV_OK) {
            fv_complain("info", "%s", error.message);
            files.asked++;
            files.failed++;
        }
        for (int k = 0; k < count; k++) describe(o, paths[k], &files);
        free(paths);
    }
    if (o->json) printf("]\n");
    return !files.failed ? FV_EXIT_WELL : files.failed == files.asked ? FV_EXIT_REFUSED : FV_EXIT_FAILED;
}

const fv_command fv_cmd_info = {
    .name = "info",
    .brief = "show what image and table files hold",
    .usage = "FILE...",
    .least = 1,
    .most = -1,
    .doc = "Shows format, type, shape, axes, spacing, chunks, size and metadata of images, from their headers alone, and the "
           "tables, columns and rows of table files. A pattern in quotes shows what `read` of it would take.",
    .examples = "fovea info scan.nii.gz\nfovea info --json *.tif\nfovea info 'plates/**/*.tif'",
    .options = options,
    .options_size = sizeof(info_options),
    .run = run,
};
