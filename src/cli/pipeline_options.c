/* Options that every command on a pipeline takes. */
#include "pipeline_options.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int fv_explain(const char *command, const fv_pipeline *pipeline, fv_status status, const fv_error *error) {
    const char *messages = pipeline ? fv_pipeline_messages(pipeline) : "";
    if (*messages)
        fputs(messages, stderr);
    else if (status == FV_ERROR_CANCELLED)
        fprintf(stderr, "fovea: %s\n", error->message);
    else if (error->op[0])
        fv_complain(command, "%s: %s", error->op, error->message);
    else
        fv_complain(command, "%s", error->message);
    return status == FV_ERROR_CANCELLED ? FV_EXIT_INTERRUPTED : FV_EXIT_REFUSED;
}

static bool parse_chunk(const char *text, int64_t *chunk, int *ndim) {
    for (*ndim = 0; *ndim < FV_MAX_DIMS; text++) {
        char *end;
        chunk[(*ndim)++] = strtoll(text, &end, 10);
        if (end == text || chunk[*ndim - 1] < 1) return false;
        text = end;
        if (!*text) return true;
        if (*text != 'x' && *text != ',') return false;
    }
    return false;
}

static fv_status add_standard_input(fv_pipeline *pipeline, fv_error *error) {
    enum { LONGEST = 16 << 20 };
    char  *text = malloc(LONGEST + 1);
    size_t length = text ? fread(text, 1, LONGEST + 1, stdin) : 0;
    if (!text || ferror(stdin) || length > LONGEST) {
        free(text);
        return fv_fail(error, FV_ERROR_INPUT, "no pipeline can be read from standard input");
    }
    text[length] = 0;
    fv_status status = strlen(text) == length ? fv_pipeline_add(pipeline, "standard input", text, error)
                                              : fv_fail(error, FV_ERROR_USAGE, "what comes from standard input is not a text");
    free(text);
    return status;
}

/* Each text is a line. */
static fv_status add_lines(fv_pipeline *pipeline, const fv_texts *lines, fv_error *error) {
    size_t length = 1;
    for (int i = 0; i < lines->count; i++) length += strlen(lines->items[i]) + 1;
    char *text = malloc(length), *end = text;
    if (!text) return fv_fail(error, FV_ERROR_MEMORY, "no memory for the pipeline");
    for (int i = 0; i < lines->count; i++) end += sprintf(end, i ? "\n%s" : "%s", lines->items[i]);
    fv_status status = fv_pipeline_add(pipeline, "-e", text, error);
    free(text);
    return status;
}

fv_pipeline *fv_pipeline_from_options(const char *command, const fv_texts *expression, const fv_texts *set, const char *chunk,
                                      int nargs, char **args, int *status) {
    fv_pipeline *pipeline = fv_pipeline_new();
    fv_error     error = { 0 };
    fv_status    result = FV_OK;
    int64_t      sizes[FV_MAX_DIMS];
    int          ndim;
    if (!expression->count && !nargs)
        result = fv_fail(&error, FV_ERROR_USAGE, "give a pipeline: a FILE, - for standard input, or -e TEXT");
    else if (expression->count && nargs)
        result = fv_fail(&error, FV_ERROR_USAGE, "give either a file or -e, not both");
    else if (expression->count)
        result = add_lines(pipeline, expression, &error);
    else
        result = strcmp(args[0], "-") ? fv_pipeline_add_file(pipeline, args[0], &error) : add_standard_input(pipeline, &error);
    for (int i = 0; i < set->count && result == FV_OK; i++) result = fv_pipeline_set(pipeline, set->items[i], &error);
    if (result == FV_OK && chunk)
        result = parse_chunk(chunk, sizes, &ndim)
                     ? fv_pipeline_chunk(pipeline, sizes, ndim, &error)
                     : fv_fail(&error, FV_ERROR_USAGE, "--chunk %s: expected numbers from 1, as 64 or 32x256x256", chunk);
    if (result == FV_OK) return pipeline;
    *status = fv_explain(command, pipeline, result, &error);
    fv_pipeline_free(pipeline);
    return NULL;
}
