/* What operators that run a program have in common: their parameters, and one run of the program with files for what goes in and
 * comes out.
 *
 * The command's words are split once, before {names} take their places, and no shell sees them unless the user says so. The
 * program works in the folder of the run; its files and its TMPDIR are in a folder of its own, which goes with it. It has no
 * descriptor of ours, its time and memory are limited as said, and all that it has started ends with it.
 */
#ifndef FV_PROGRAM_TASK_H
#define FV_PROGRAM_TASK_H

#include "base/command_words.h"
#include "op/op.h"

/* Begins the parameters of each such operator. */
#define FV_PROGRAM_FIELDS                                                                                                        \
    const char *command;                                                                                                         \
    const char *output;                                                                                                          \
    const char *format;                                                                                                          \
    const char *values;                                                                                                          \
    int64_t     cpus;                                                                                                            \
    const char *memory;                                                                                                          \
    const char *time;                                                                                                            \
    const char *ok;                                                                                                              \
    const char *version;                                                                                                         \
    int64_t     ranks;                                                                                                           \
    const char *device;                                                                                                          \
    bool        shell

typedef struct fv_program_params { /* as which the parameters of any of them may be looked at */
    FV_PROGRAM_FIELDS;
} fv_program_params;

#define FV_PROGRAM_COMMAND(type)                                                                                                 \
    FV_PARAM(type, command,                                                                                                      \
             .doc = "program and its words; {input}, {input2}, {input3} and {output} are files, {folder} is a folder of its "    \
                    "own, {cpus} their number, and other names in braces stand for arguments of this call. Without {output} "    \
                    "the result is what the program prints")
#define FV_PROGRAM_PARAMS(type)                                                                                                  \
    FV_PARAM(type, values, .values = true, .def = "",                                                                            \
             .doc = "the other arguments by name, for names in braces: f = 0.5 for {f}"),                                        \
        FV_PARAM(type, cpus, .def = "1", .min = 1, .max = 4096, .doc = "processors that the program uses"),                      \
        FV_PARAM(type, memory, .def = "",                                                                                        \
                 .doc = "memory that it may use, such as \"2G\"; so much is kept free for it, and if it uses more it is ended"), \
        FV_PARAM(type, time, .def = "", .doc = "how long it may run, such as \"10m\"; after that it is ended"),                  \
        FV_PARAM(type, ok, .def = "0", .doc = "exit codes that mean that all is well, with commas between them"),                \
        FV_PARAM(type, version, .def = "",                                                                                       \
                 .doc = "an option such as \"--version\", for which the program prints its version, or any text; another "       \
                        "version computes anew"),                                                                                \
        FV_PARAM(type, ranks, .def = "1", .min = 1, .max = 4096,                                                                 \
                 .doc = "MPI ranks of the program, each with so many processors; they are started by srun inside of a Slurm "    \
                        "job, else by mpiexec"),                                                                                 \
        FV_PARAM(type, device, .def = "",                                                                                        \
                 .doc = "memory of a device that it uses, such as \"1G\": it gets one from the node's scheduler (fovea devices " \
                        "serve), and its environment names it"),                                                                 \
        FV_PARAM(type, shell, .def = "false",                                                                                    \
                 .doc = "the command is a text for /bin/sh; what takes the place of names is quoted")

#define FV_PROGRAM_INPUTS                                                                                                        \
    { "input", FV_KIND_IMAGE, .optional = true, .doc = "image that the program gets as the file {input}" },                      \
        { "input2", FV_KIND_IMAGE, .optional = true, .doc = "another one, {input2}" }, {                                         \
        "input3", FV_KIND_IMAGE, .optional = true, .doc = "another one, {input3}"                                                \
    }
enum { FV_PROGRAM_NINPUTS = 3 };

/* Checks the command and its texts against the names that it may use, and that images can become files of that format. slices:
 * axis along which the program sees slices; "": it sees whole images. */
fv_status fv__program_check(const fv_infer *i, const char *ending, const char *slices, fv_error *error);
/* For fv_op.identity and .program. */
fv_status        fv__program_identity(const void *params, fv_hasher *hasher, fv_error *error);
fv_program_needs fv__program_needs(const void *params);

/* One image that goes in; type NULL: absent. */
typedef struct fv_program_input {
    const fv_image_type *type;
    fv_block             block; /* all of it */
} fv_program_input;

typedef struct fv_program_job {
    const fv_run    *run;
    fv_program_input inputs[FV_PROGRAM_NINPUTS];
    const char      *ending; /* of the file that it makes */
    int64_t          most;   /* bytes of that file */
    int64_t          slice;  /* names its log; -1: none */
    /* Takes what it has made. */
    fv_status (*take)(void *context, const char *path, fv_error *error);
    void *context;
} fv_program_job;

/* Stages, runs, takes back, cleans up. */
fv_status fv__program_do(const fv_program_job *job, fv_error *error);

/* ---- operators of a whole image that give no image: one task does it, the others nothing ---- */
/* For fv_pass.need: the chunk at the start needs all of every input. */
void fv__program_need_whole(const fv_need *n, fv_region *in);
bool fv__program_is_first(const fv_need *n);
/* For fv_pass.run: the chunk at the start runs the program; take gets the pass's partial. */
fv_status fv__program_run_whole(fv_run *r, int64_t most, fv_status (*take)(void *context, const char *path, fv_error *error),
                                fv_error *error);
/* The only partial that is not empty; the caller frees it. */
fv_status fv__program_partial(fv_finish *f, fv_bytes *out, fv_error *error);

#endif
