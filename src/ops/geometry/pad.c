/* pad: voxels put around an image, as numpy.pad. */
#include "op/axes.h"
#include "op/border.h"
#include "op/kernels.h"
#include "op/op.h"
#include "op/place.h"
#include "op/scratch.h"

typedef struct {
    fv_numbers  before, after;
    const char *axes;
    fv_choice   mode;
    double      cval;
} pad;

static const fv_param params[] = {
    FV_PARAM(pad, before, .min = 0, .max = 1e9, .unit = "px", .doc = "voxels before the first, one number or one per axis"),
    FV_PARAM(pad, after, .def = "", .min = 0, .max = 1e9, .unit = "px",
             .doc = "voxels behind the last; left out: as many as before"),
    FV_PARAM(pad, axes, .def = "", .doc = "axes that these belong to, as \"y x\"; left out: all spatial axes"),
    FV_PARAM(pad, mode, .def = "constant", .choices = FV_BORDER_CHOICES, .doc = "what they are filled with"),
    FV_PARAM(pad, cval, .def = "0", .doc = "their value, for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "any image" }, FV_INPUT_END };

/* Voxels before the first, by axis of the image. */
static void widths(const pad *p, const fv_image_type *type, int64_t before[FV_MAX_DIMS], int64_t after[FV_MAX_DIMS]) {
    int axis[FV_MAX_DIMS], count;
    memset(before, 0, sizeof(int64_t) * FV_MAX_DIMS);
    memset(after, 0, sizeof(int64_t) * FV_MAX_DIMS);
    fv__axes_pick(type, p->axes, axis, &count, NULL);
    for (int k = 0; k < count; k++) {
        before[axis[k]] = (int64_t)p->before.value[k];
        after[axis[k]] = (int64_t)p->after.value[k];
    }
}

static fv_status check_whole(const fv_numbers *list, const char *name, fv_error *error) {
    for (int k = 0; k < list->count; k++)
        if (list->value[k] != floor(list->value[k]))
            return fv_fail(error, FV_ERROR_USAGE, "%s = %g: must be a whole number", name, list->value[k]);
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    pad           *p = i->params;
    fv_image_type *out = &i->out->image;
    int            axis[FV_MAX_DIMS], count;
    int64_t        before[FV_MAX_DIMS], after[FV_MAX_DIMS];
    FV_TRY(fv__axes_pick(&i->in[0]->image, p->axes, axis, &count, error));
    if (!p->after.count) p->after = p->before;
    FV_TRY(fv__numbers_spread(&p->before, count, "before", error));
    FV_TRY(fv__numbers_spread(&p->after, count, "after", error));
    FV_TRY(check_whole(&p->before, "before", error));
    FV_TRY(check_whole(&p->after, "after", error));
    widths(p, &i->in[0]->image, before, after);
    for (int d = 0; d < out->ndim; d++) {
        out->shape[d] += before[d] + after[d];
        fv__place_step(out, d, -(double)before[d], 1);
    }
    if (fv_image_type_bytes(out) < 0) return fv_fail(error, FV_ERROR_USAGE, "the image would be larger than can be counted");
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    const pad           *p = n->params;
    const fv_image_type *type = &n->in[0]->image;
    int64_t              before[FV_MAX_DIMS], after[FV_MAX_DIMS];
    bool                 nothing = false;
    widths(p, type, before, after);
    for (int d = 0; d < in->ndim; d++) {
        int64_t first = INT64_MAX, last = -1;
        for (int64_t i = n->region.start[d] - before[d]; i < n->region.start[d] + n->region.size[d] - before[d]; i++) {
            int64_t index = fv__border_index((fv_border)p->mode.index, i, type->shape[d]);
            if (index < 0) continue;
            first = FV_MIN(first, index);
            last = FV_MAX(last, index);
        }
        nothing = nothing || last < 0;
        in->start[d] = last < 0 ? 0 : first;
        in->size[d] = last < 0 ? 0 : last - first + 1;
    }
    for (int d = 0; d < in->ndim && nothing; d++) in->start[d] = in->size[d] = 0;
}

/* cval in the type of the image. */
static void constant(const pad *p, fv_dtype dtype, char value[16]) {
    double both[2] = { p->cval, 0 };
    float  narrow[2] = { (float)p->cval, 0 };
    if (dtype == FV_COMPLEX64)
        memcpy(value, narrow, sizeof narrow);
    else if (dtype == FV_COMPLEX128)
        memcpy(value, both, sizeof both);
    else
        fv__kernels_current()->convert(value, dtype, both, FV_FLOAT64, 1);
}

/* n times the value; each copy doubles what there is. */
static void fill(char *to, int64_t n, const char *value, size_t size) {
    if (n <= 0) return;
    memcpy(to, value, size);
    for (size_t done = size, all = (size_t)n * size; done < all;) {
        size_t more = FV_MIN(done, all - done);
        memcpy(to + done, to, more);
        done += more;
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const pad           *p = r->need.params;
    const fv_image_type *type = &r->need.in[0]->image;
    const fv_block      *in = r->in[0], *out = r->out;
    int64_t              before[FV_MAX_DIMS], after[FV_MAX_DIMS], from[FV_MAX_DIMS];
    int                  x = out->region.ndim - 1;
    size_t               size = fv_dtype_size(out->dtype);
    char                 value[16];
    fv_rows              rows;
    widths(p, type, before, after);
    constant(p, out->dtype, value);
    int64_t first = FV_MIN(FV_MAX(before[x] - out->region.start[x], 0), out->region.size[x]); /* that comes from inside */
    int64_t end = FV_MAX(FV_MIN(before[x] + type->shape[x] - out->region.start[x], out->region.size[x]), first);
    for (fv__rows_begin(&rows, &out->region); fv__rows_next(&rows);) {
        char *to = fv__block_at(out, rows.position);
        bool  held = true;
        for (int d = 0; d < x; d++) {
            from[d] = fv__border_index((fv_border)p->mode.index, rows.position[d] - before[d], type->shape[d]);
            held = held && from[d] >= 0;
        }
        if (!held) {
            fill(to, out->region.size[x], value, size);
            continue;
        }
        from[x] = out->region.start[x] + first - before[x];
        if (end > first) memcpy(to + (size_t)first * size, fv__block_at(in, from), (size_t)(end - first) * size);
        if (p->mode.index == FV_BORDER_CONSTANT) {
            fill(to, first, value, size);
            fill(to + (size_t)end * size, out->region.size[x] - end, value, size);
            continue;
        }
        for (int64_t i = 0; i < out->region.size[x]; i++) {
            if (i == first) i = end;
            if (i >= out->region.size[x]) break;
            from[x] = fv__border_index((fv_border)p->mode.index, out->region.start[x] + i - before[x], type->shape[x]);
            memcpy(to + (size_t)i * size, fv__block_at(in, from), size);
        }
    }
    return FV_OK;
}

static double        cost(const fv_need *n) { return 0.1 * (double)fv_dtype_size(n->out->image.dtype); }
static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(pad) = {
    .name = "pad",
    .family = "geometry",
    .brief = "put voxels around an image",
    .also = "numpy.pad, padarray, copyMakeBorder, ConstantPad, extend, canvas size",
    .doc =
        "The image keeps its place in the world: the origin moves to the new first voxel. Modes have the names of scipy.ndimage: "
        "nearest is numpy's edge, reflect is symmetric, mirror is reflect. pad(before = [0, 3], after = [2, 3], axes = \"z x\") "
        "names the axes.",
    .citation = "numpy.pad",
    .example = "phantom(\"cells\", [200, 200]) |> pad(30, mode = \"mirror\") |> write(\"larger.png\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(pad),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "crop slice",
};
