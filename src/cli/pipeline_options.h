/* Options that every command on a pipeline takes. */
#ifndef FV_PIPELINE_OPTIONS_H
#define FV_PIPELINE_OPTIONS_H

#include "cli.h"
#include <fovea/pipeline.h>

/* Fields for a command's option struct, and lines for its table. */
#define FV_PIPELINE_FIELDS                                                                                                       \
    fv_texts    expression;                                                                                                      \
    fv_texts    set;                                                                                                             \
    const char *chunk

/* Of commands that run pipelines: the user lets these run programs. */
#define FV_ALLOW_COMMANDS(type)                                                                                                  \
    FV_OPTION(type, allow_commands,                                                                                              \
              .doc = "let the pipeline run programs of this machine, as the operator command does; read it first if you did "    \
                     "not write it. `fovea trust` remembers a text")

#define FV_PIPELINE_OPTIONS(type)                                                                                                \
    FV_OPTION(type, expression, .letter = 'e', .argument = "TEXT",                                                               \
              .doc = "the pipeline itself, or a line of it, instead of a file"),                                                 \
        FV_OPTION(type, set, .argument = "NAME=VALUE[,VALUE...]",                                                                \
                  .doc = "another value for a param of the pipeline; several values (1,2,4 or 0..10 or 0..1:0.25) run "          \
                         "it for each of them"),                                                                                 \
        FV_OPTION(type, chunk, .argument = "SIZE[xSIZE...]",                                                                     \
                  .doc = "size of the chunks, such as 64 or 32x256x256; results do not depend on it")

/* Makes the pipeline. NULL after the mistake was explained; *status is the exit status then. */
fv_pipeline *fv_pipeline_from_options(const char *command, const fv_texts *expression, const fv_texts *set, const char *chunk,
                                      int nargs, char **args, int *status);
/* Explains a failed call on standard error; the exit status. */
int fv_explain(const char *command, const fv_pipeline *pipeline, fv_status status, const fv_error *error);

#endif
