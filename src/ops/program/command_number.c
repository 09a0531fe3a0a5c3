/* command_number: a number that a program of the machine prints about an image. */
#include "base/file.h"
#include "op/program_task.h"
#include "op/reduce.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    FV_PROGRAM_FIELDS;
} command_number;

static const fv_param params[] = {
    FV_PROGRAM_COMMAND(command_number),
    FV_PARAM(command_number, output, .def = "txt", .doc = "ending of the file {output}, where the command has one"),
    FV_PARAM(command_number, format, .def = "nii.gz",
             .doc = "format of the files that it gets, such as \"nii.gz\", \"tif\" or \"npy\""),
    FV_PROGRAM_PARAMS(command_number),
    FV_PARAM_END,
};
static const fv_input inputs[] = { FV_PROGRAM_INPUTS, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    FV_TRY(fv__program_check(i, ((const command_number *)i->params)->output, "", error));
    return fv__infer_scalar(i, FV_FLOAT64, error);
}

enum { MOST = 1 << 16 };

static fv_status take(void *context, const char *path, fv_error *error) {
    fv_bytes  text = { 0 };
    double    number;
    char     *end = NULL;
    fv_status status = fv__file_read_all(path, MOST, &text, error);
    if (status == FV_OK) {
        number = strtod((char *)text.data, &end);
        if (end == (char *)text.data || (*end && !isspace((unsigned char)*end)))
            status = fv_fail(error, FV_ERROR_INPUT, "what it printed does not begin with a number: %.60s", (char *)text.data);
        else
            fv__bytes_append(context, &number, sizeof number);
    }
    fv__bytes_release(&text);
    return status;
}

static fv_status run(fv_run *r, fv_error *error) { return fv__program_run_whole(r, MOST, take, error); }

static fv_status finish(fv_finish *f, fv_error *error) {
    fv_bytes  number = { 0 };
    fv_scalar scalar = { .dtype = FV_FLOAT64 };
    fv_status status = fv__program_partial(f, &number, error);
    if (status == FV_OK && number.size != sizeof scalar.real)
        status = fv_fail(error, FV_ERROR_INTERNAL, "the number of the program is not there");
    if (status == FV_OK) memcpy(&scalar.real, number.data, sizeof scalar.real);
    fv__bytes_release(&number);
    return status == FV_OK ? fv__put_scalar(f, &scalar, error) : status;
}

static const fv_pass passes[] = { { .need = fv__program_need_whole, .run = run, .finish = finish }, FV_PASS_END };

const fv_op FV_OP(command_number) = {
    .name = "command_number",
    .family = "program",
    .brief = "a number that any program prints about an image",
    .version = 1,
    .numerics = FV_SAME_CPU,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(command_number),
    .result = FV_KIND_SCALAR,
    .infer = infer,
    .passes = passes,
    .identity = fv__program_identity,
    .program = fv__program_needs,
    .doc = "What the program prints, or the file {output} if the command has one, must begin with a number. It can be used as "
           "any other "
           "number that is computed: image > command_number(\"threshold {input}\", input = image). See command for how programs "
           "run.",
    .example = "phantom(\"cells\", [200, 200]) |> command_number(\"wc -c {input}\", format = \"npy\")",
    .see = "command command_table",
};
