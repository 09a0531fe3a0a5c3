/* command: an image that a program of the machine makes of another one. */
#include "op/axes.h"
#include "op/program_task.h"
#include "op/whole_file.h"

enum { LIKE = FV_PROGRAM_NINPUTS };

typedef struct {
    FV_PROGRAM_FIELDS;
    fv_dtype_choice dtype;
    fv_numbers      shape;
    const char     *slices;
    bool            first;
} command;

static const fv_param params[] = {
    FV_PROGRAM_COMMAND(command),
    FV_PARAM(command, output, .def = "nii.gz",
             .doc = "format of the file {output}, by its ending: \"nii.gz\", \"tif\", \"png\", \"npy\""),
    FV_PARAM(command, format, .def = "", .doc = "format of the files that it gets; that of the output if left out"),
    FV_PROGRAM_PARAMS(command),
    FV_PARAM(command, dtype, .def = "", .doc = "element type of the result, if it is not that of like or of the input"),
    FV_PARAM(command, shape, .def = "", .min = 1, .max = 1e12, .doc = "its shape, slowest axis first, if that is another one"),
    FV_PARAM(command, first, .def = "false",
             .doc = "a first run on one item finds the type and shape that the program makes; they hold for all"),
    FV_PARAM(command, slices, .def = "",
             .doc = "axis along which the program gets one slice after another, such as \"z\"; left out: whole images"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    FV_PROGRAM_INPUTS,
    { "like", FV_KIND_IMAGE, .optional = true,
      .doc = "an image of the type and shape that the result has; the input if left out" },
    FV_INPUT_END,
};

/* ---------------------------------------------------------------- types */

static const char *slices_of(const command *p) { return p->slices ? p->slices : ""; }

static fv_status change_shape(const command *p, fv_image_type *type, fv_error *error) {
    int64_t shape[FV_MAX_DIMS];
    bool    same = p->shape.count == type->ndim;
    if (!p->shape.count) return FV_OK;
    if (p->shape.count > FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_USAGE, "shape has %d numbers; an image has at most %d axes", p->shape.count, FV_MAX_DIMS);
    for (int d = 0; d < p->shape.count; d++) {
        shape[d] = (int64_t)p->shape.value[d];
        same = same && shape[d] == type->shape[d];
    }
    if (!same) fv_image_type_init(type, type->dtype, p->shape.count, shape);
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const command *p = i->params;
    const char    *slices = slices_of(p);
    fv_image_type  type = i->in[i->in[LIKE]->kind == FV_KIND_IMAGE ? LIKE : 0]->image;
    FV_TRY(fv__program_check(i, p->output, slices, error));
    if (p->first && p->dtype.dtype < 0 && !p->shape.count)
        return fv_fail(error, FV_ERROR_USAGE,
                       "first = true needs a first run, which you have to allow (--allow-commands); to plan it without, say "
                       "dtype and shape");
    if (p->first && *slices) return fv_fail(error, FV_ERROR_USAGE, "first = true is for whole images; leave out slices");
    if (p->dtype.dtype >= 0) type.dtype = (fv_dtype)p->dtype.dtype;
    FV_TRY(change_shape(p, &type, error));
    if (*slices) {
        int in = fv__axis_find(&i->in[0]->image, slices), out = fv__axis_find(&type, slices);
        if (in < 0 || out < 0 || i->in[0]->image.ndim < 2 || type.ndim < 2)
            return fv_fail(error, FV_ERROR_USAGE, "slices = \"%s\": %s has no such axis, or no other", slices,
                           in < 0 ? "the input" : "the result");
        if (i->in[0]->image.shape[in] != type.shape[out])
            return fv_fail(error, FV_ERROR_USAGE, "slices = \"%s\": the input has %lld of them, and the result %lld", slices,
                           (long long)i->in[0]->image.shape[in], (long long)type.shape[out]);
    }
    *i->out = (fv_type){ .kind = FV_KIND_IMAGE, .image = type };
    const fv_format *format;
    char            *name = fv__arena_printf(i->arena, "output.%s", p->output);
    return fv__format_for_writing(name, &format, error);
}

/* ---------------------------------------------------------------- regions */

/* Axis of an image along which it is cut; -1: it is taken whole. */
static int cut_axis(const fv_need *n, const fv_type *type) {
    const char *slices = slices_of(n->params);
    int         axis = *slices ? fv__axis_find(&type->image, slices) : -1;
    int64_t     count = *slices ? n->out->image.shape[fv__axis_find(&n->out->image, slices)] : 0;
    return axis >= 0 && type->image.shape[axis] == count ? axis : -1;
}

static void need(const fv_need *n, fv_region *in) {
    int out = cut_axis(n, n->out);
    for (int k = 0; k < n->ninputs; k++) {
        if (n->in[k]->kind != FV_KIND_IMAGE) continue;
        in[k] = fv__region_whole(&n->in[k]->image);
        int axis = cut_axis(n, n->in[k]);
        if (k == LIKE) memset(in[k].size, 0, sizeof in[k].size);
        if (k == LIKE || axis < 0) continue;
        in[k].start[axis] = n->region.start[out];
        in[k].size[axis] = n->region.size[out];
    }
}

static void slab(const fv_need *n, int64_t *chunk) {
    int axis = cut_axis(n, n->out);
    memcpy(chunk, n->out->image.shape, sizeof n->out->image.shape);
    if (axis >= 0) chunk[axis] = 1;
}

static size_t scratch(const fv_need *n) {
    int     axis = cut_axis(n, n->out);
    int64_t bytes = fv_image_type_bytes(&n->out->image);
    return (size_t)(axis >= 0 ? bytes / n->out->image.shape[axis] : bytes);
}

static double cost(const fv_need *n) { return 1e9 / (double)FV_MAX(fv_image_type_voxels(&n->out->image), 1) + 1; }

/* ---------------------------------------------------------------- one program */

typedef struct {
    const fv_run *run;
    fv_region     part; /* of the result, that the program makes */
    fv_image_type type; /* of that as an image of its own */
} part;

static fv_status take(void *context, const char *path, fv_error *error) {
    const part *p = context;
    fv_block    made;
    FV_TRY(fv__whole_file_read(path, &p->type, p->run->scratch, error));
    fv__block_init(&made, p->type.dtype, &p->part, p->run->scratch);
    fv_region wanted = fv__region_intersect(&p->part, &p->run->out->region);
    fv_block  to = fv__block_window(p->run->out, &wanted);
    fv__block_copy(&to, &made);
    return FV_OK;
}

static void drop_axis(fv_block *block, int axis) {
    for (int d = axis; d + 1 < block->region.ndim; d++) {
        block->region.start[d] = block->region.start[d + 1];
        block->region.size[d] = block->region.size[d + 1];
        block->stride[d] = block->stride[d + 1];
    }
    block->region.ndim--;
}

static fv_status run_slice(fv_run *r, int64_t slice, fv_error *error) {
    fv_image_type  types[FV_PROGRAM_NINPUTS];
    part           made = { .run = r, .part = fv__region_whole(&r->need.out->image), .type = r->need.out->image };
    fv_program_job job = {
        .run = r, .ending = ((const command *)r->need.params)->output, .slice = slice, .take = take, .context = &made
    };
    int out = cut_axis(&r->need, r->need.out);
    for (int k = 0; k < FV_PROGRAM_NINPUTS; k++) {
        if (!r->in[k]) continue;
        int axis = cut_axis(&r->need, r->need.in[k]);
        types[k] = r->need.in[k]->image;
        job.inputs[k] = (fv_program_input){ &types[k], *r->in[k] };
        if (axis < 0) continue;
        fv_region one = r->in[k]->region;
        one.start[axis] = slice;
        one.size[axis] = 1;
        job.inputs[k].block = fv__block_window(r->in[k], &one);
        drop_axis(&job.inputs[k].block, axis);
        fv__axis_drop(&types[k], axis);
    }
    if (out >= 0) {
        made.part.start[out] = slice;
        made.part.size[out] = 1;
        fv__axis_drop(&made.type, out);
    }
    job.most = 8 * fv_image_type_bytes(&made.type) + ((int64_t)64 << 20);
    return fv__program_do(&job, error);
}

static fv_status run(fv_run *r, fv_error *error) {
    int axis = cut_axis(&r->need, r->need.out);
    if (axis < 0) return run_slice(r, -1, error);
    const fv_region *region = &r->out->region;
    for (int64_t s = region->start[axis]; s < region->start[axis] + region->size[axis]; s++) FV_TRY(run_slice(r, s, error));
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(command) = {
    .name = "command",
    .family = "program",
    .brief = "an image that any program makes of another one",
    .also = "system, subprocess, nipype, exec",
    .version = 1,
    .numerics = FV_SAME_CPU,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(command),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .identity = fv__program_identity,
    .program = fv__program_needs,
    .doc = "The image is written to a file of a folder of its own, the program runs, and the file that it makes is the result. "
           "It runs "
           "only if you allow it: fovea run --allow-commands. The words of the command are split once, quotes group them, and no "
           "shell sees them. The result has the type and shape of like or of the input, unless dtype and shape say another one. "
           "A changed program, or a changed file among the words such as a script, computes anew. A program that fails, runs "
           "longer than time or uses more than memory is ended with all that it started, the message has its exit code and its "
           "last lines, and other items go on.",
    .example = "image = phantom(\"cells\", [200, 200])\n"
               "halves = \"head -c 128 {input} && tail -c 20000 {input} && tail -c +129 {input} | head -c 20000\"\n"
               "command(image, halves, output = \"npy\", shell = true) |> write(\"swapped.tif\")",
    .see = "command_table command_number read",
};
