/* fovea convert: a file in another format. */
#include "execute.h"
#include <cjson/cJSON.h>
#include <fovea/ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODEST ((int64_t)224 << 20) /* bytes that a conversion keeps to unless one task needs more */

typedef struct {
    const char *region;
    const char *stack;
    const char *compression;
    const char *dtype;
    FV_EXECUTE_FIELDS;
} convert_options;

static const fv_option options[] = {
    FV_OPTION(convert_options, region, .letter = 'r', .argument = "SLICES", .doc = "only this part, such as 0:100,:,::2"),
    FV_OPTION(convert_options, stack, .argument = "AXIS",
              .doc = "the files that match IN are slices of one image along this "
                     "axis"),
    FV_OPTION(convert_options, compression, .argument = "NAME",
              .doc = "compression of the new file; `fovea ops FORMAT` "
                     "lists those of a format"),
    FV_OPTION(convert_options, dtype, .argument = "TYPE", .doc = "element type of the new file, such as uint8 or float32"),
    FV_EXECUTE_OPTIONS(convert_options),
    FV_OPTION_END,
};

/* Appends text as a quoted string of the pipeline language. */
static void quote(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static char *pipeline_text(const convert_options *o, char **args) {
    char  *text = NULL;
    size_t size;
    FILE  *out = open_memstream(&text, &size);
    fprintf(out, "read(");
    quote(out, args[0]);
    if (o->stack) {
        fprintf(out, ", stack = ");
        quote(out, o->stack);
    }
    fprintf(out, ")");
    if (o->region) fprintf(out, "[%s]", o->region);
    if (o->dtype) {
        fprintf(out, " |> convert(");
        quote(out, o->dtype);
        fprintf(out, ")");
    }
    fprintf(out, " |> write(");
    quote(out, args[1]);
    if (o->compression) {
        fprintf(out, ", compression = ");
        quote(out, o->compression);
    }
    fprintf(out, ")\n");
    fclose(out);
    return text;
}

/* Converting gains nothing by more memory than its tasks need: what is stored on the way would only fill it. 0: no bound of its
 * own, for many files, of which only some are looked at, and for engines of several processes. */
static int64_t modest_memory(const convert_options *o, fv_pipeline *pipeline) {
    fv_run_options run = { .workers = (int)o->workers, .device = o->device };
    char          *text = NULL;
    fv_error       ignored = { 0 }; /* the run meets it again */
    int64_t        memory = 0;
    if (fv_ranks_several() || (o->engine && strcmp(o->engine, "threads"))) return 0;
    if (fv_pipeline_plan(pipeline, &run, FV_FORM_JSON, &text, &ignored) == FV_OK) {
        cJSON *plan = cJSON_Parse(text);
        double items = cJSON_GetNumberValue(cJSON_GetObjectItem(plan, "items"));
        double least = cJSON_GetNumberValue(cJSON_GetObjectItem(plan, "least_memory"));
        if (items == 1) memory = least > (double)MODEST ? (int64_t)least : MODEST;
        cJSON_Delete(plan);
    }
    free(text);
    return memory;
}

static int run(const void *options_, int nargs, char **args) {
    const convert_options *o = options_;
    int                    ranked;
    if (!fv_ranks_lead(o->engine, &ranked)) return ranked;
    char        *text = pipeline_text(o, args);
    fv_pipeline *pipeline = fv_pipeline_new();
    fv_error     error = { 0 };
    (void)nargs;
    fv_status status = fv_pipeline_add(pipeline, "convert", text, &error);
    free(text);
    if (status != FV_OK) {
        fputs(fv_pipeline_messages(pipeline), stderr);
        fv_pipeline_free(pipeline);
        return fv_ranks_end(FV_EXIT_REFUSED);
    }
    fv_size    memory = { o->memory.bytes ? o->memory.bytes : modest_memory(o, pipeline) };
    fv_execute execute = { o->engine, o->workers, memory,  o->patience, o->store, o->fresh,   o->overwrite, o->stop_on_error,
                           false,     o->items,   o->into, o->device,   o->quiet, o->verbose, o->json };
    return fv_ranks_end(fv_execute_pipeline("convert", pipeline, &execute));
}

const fv_command fv_cmd_convert = {
    .name = "convert",
    .brief = "write an image file in another format",
    .usage = "IN OUT",
    .least = 2,
    .most = 2,
    .doc = "The extensions decide the formats. The file may be larger than memory: without --memory, a single file is converted "
           "within 224M, or within what one task needs if that is more. If IN is a pattern and OUT contains {stem}, every file "
           "that matches is converted.",
    .examples = "fovea convert scan.nii.gz scan.zarr\nfovea convert 'slices/*.tif' volume.zarr --stack z\n"
                "fovea convert stack.tif part.npy --region 10:20,:,:\nfovea convert 'in/*.png' 'out/{stem}.tif'",
    .options = options,
    .options_size = sizeof(convert_options),
    .run = run,
};
