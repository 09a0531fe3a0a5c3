/* slice: part of an image, as the language writes x[50] and x[0:100, :, ::2]. */
#include "op/axes.h"
#include "op/channels.h"
#include "op/op.h"
#include "op/place.h"

typedef struct {
    fv_numbers start, stop, step, single;
} slice;

#define ANY_INDEX .min = -1e15, .max = 1e15, .blank = true, .unit = "px"

static const fv_param params[] = {
    FV_PARAM(slice, start, .def = "", ANY_INDEX,
             .doc = "first index on each axis; negative: counted from the end; nan: left "
                    "out"),
    FV_PARAM(slice, stop, .def = "", ANY_INDEX,
             .doc = "end of each axis, not included; negative: counted from the end; nan: "
                    "left out"),
    FV_PARAM(slice, step, .def = "", ANY_INDEX, .doc = "step from one voxel to the next; negative: backwards; nan: 1"),
    FV_PARAM(slice, single, .def = "", .min = 0, .max = 1,
             .doc = "1 on axes from which a single index is taken; the result "
                    "does not have them"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to cut" }, FV_INPUT_END };

/* Axes that are not mentioned are whole. */
static fv_status fill_list(fv_numbers *list, int ndim, double missing, const char *name, fv_error *error) {
    if (list->count > ndim)
        return fv_fail(error, FV_ERROR_USAGE, "%s has %d indices, but the image has %d axes", name, list->count, ndim);
    while (list->count < ndim) list->value[list->count++] = missing;
    for (int d = 0; d < ndim; d++)
        if (list->value[d] != floor(list->value[d]) && list->value[d] == list->value[d])
            return fv_fail(error, FV_ERROR_USAGE, "%s = %g: an index must be a whole number", name, list->value[d]);
    return FV_OK;
}

static fv_status resolve_single(const fv_image_type *type, int d, slice *p, fv_error *error) {
    double n = (double)type->shape[d], at = p->start.value[d];
    if (!(at >= -n && at < n))
        return fv_fail(error, FV_ERROR_USAGE, "index %g is outside axis %s, which has %g voxels", at, type->axis[d], n);
    p->start.value[d] = at < 0 ? at + n : at;
    p->stop.value[d] = p->start.value[d] + 1;
    p->step.value[d] = 1;
    return FV_OK;
}

/* numpy's meaning of start:stop:step. What is left in the parameters means the same when it is resolved again: a stop before
 * the first voxel has no number of its own and stays left out. Gives the number of voxels. */
static fv_status resolve_range(const fv_image_type *type, int d, slice *p, int64_t *size, fv_error *error) {
    double n = (double)type->shape[d], start = p->start.value[d], stop = p->stop.value[d];
    double step = p->step.value[d] == p->step.value[d] ? p->step.value[d] : 1;
    if (step == 0) return fv_fail(error, FV_ERROR_USAGE, "step = 0 on axis %s: must not be 0", type->axis[d]);
    double low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    if (start < 0) start += n;
    if (stop < 0) stop += n;
    start = start != start ? (step > 0 ? low : high) : FV_MIN(FV_MAX(start, low), high);
    stop = stop != stop ? (step > 0 ? high : low) : FV_MIN(FV_MAX(stop, low), high);
    double count = ceil((stop - start) / step);
    if (!(count > 0))
        return fv_fail(error, FV_ERROR_USAGE, "the slice takes nothing of axis %s, which has %g voxels", type->axis[d], n);
    *size = (int64_t)count;
    p->start.value[d] = start;
    p->stop.value[d] = stop < 0 ? NAN : stop;
    p->step.value[d] = step;
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    slice               *p = i->params;
    const fv_image_type *in = &i->in[0]->image;
    fv_image_type       *out = &i->out->image;
    FV_TRY(fill_list(&p->start, in->ndim, NAN, "start", error));
    FV_TRY(fill_list(&p->stop, in->ndim, NAN, "stop", error));
    FV_TRY(fill_list(&p->step, in->ndim, NAN, "step", error));
    FV_TRY(fill_list(&p->single, in->ndim, 0, "single", error));
    for (int d = 0; d < in->ndim; d++) {
        if (p->single.value[d]) {
            FV_TRY(resolve_single(in, d, p, error));
            continue;
        }
        FV_TRY(resolve_range(in, d, p, &out->shape[d], error));
        fv__place_step(out, d, p->start.value[d], p->step.value[d]);
    }
    int c = fv__axis_find(in, "c");
    if (c >= 0)
        fv__channels_step(out, (int64_t)p->start.value[c], (int64_t)p->step.value[c], p->single.value[c] ? 1 : out->shape[c]);
    for (int d = 0; d < in->ndim; d++)
        if (p->single.value[d]) fv__place_move(out, d, p->start.value[d], 1);
    for (int d = in->ndim - 1; d >= 0; d--)
        if (p->single.value[d]) fv__axis_drop(out, d);
    if (!out->ndim)
        return fv_fail(error, FV_ERROR_USAGE,
                       "the indices leave a single voxel and no axis; write a range such as 3:4 on one of them");
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    const slice *p = n->params;
    in->ndim = n->in[0]->image.ndim;
    for (int d = 0, e = 0; d < in->ndim; d++) {
        int64_t start = (int64_t)p->start.value[d], step = (int64_t)p->step.value[d], count = 1;
        if (!p->single.value[d]) {
            start += n->region.start[e] * step;
            count = n->region.size[e++];
        }
        int64_t last = start + (count - 1) * step;
        in->start[d] = FV_MIN(start, last);
        in->size[d] = FV_MAX(start, last) - in->start[d] + 1;
    }
}

#define TAKE(TYPE, STRIDE)                                                                                                       \
    {                                                                                                                            \
        const TYPE *restrict f = from;                                                                                           \
        TYPE *restrict t = to;                                                                                                   \
        for (int64_t i = 0; i < n; i++) t[i] = f[i * (STRIDE)];                                                                  \
        return;                                                                                                                  \
    }

/* n elements that lie stride elements apart. */
static void take(void *to, const void *from, int64_t n, int64_t stride, size_t size) {
    if (stride == 1) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    if (stride == -1) { /* a known step is turned round in vectors */
        switch (size) {
        case 1: TAKE(uint8_t, -1)
        case 2: TAKE(uint16_t, -1)
        case 4: TAKE(uint32_t, -1)
        case 8: TAKE(uint64_t, -1)
        default: break;
        }
    }
    typedef struct {
        uint64_t half[2];
    } sixteen;
    switch (size) {
    case 1: TAKE(uint8_t, stride)
    case 2: TAKE(uint16_t, stride)
    case 4: TAKE(uint32_t, stride)
    case 8: TAKE(uint64_t, stride)
    default: TAKE(sixteen, stride)
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const slice    *p = r->need.params;
    const fv_block *in = r->in[0], *out = r->out;
    int64_t         position[FV_MAX_DIMS];
    int             last = 0; /* axis of the input that runs along the output's rows */
    for (int d = 0; d < in->region.ndim; d++)
        if (!p->single.value[d]) last = d;
    int64_t stride = in->stride[last] * (int64_t)p->step.value[last];
    fv_rows rows;
    for (fv__rows_begin(&rows, &out->region); fv__rows_next(&rows);) {
        for (int d = 0, e = 0; d < in->region.ndim; d++) {
            position[d] = (int64_t)p->start.value[d];
            if (!p->single.value[d]) position[d] += rows.position[e++] * (int64_t)p->step.value[d];
        }
        take(fv__block_at(out, rows.position), fv__block_at(in, position), out->region.size[out->region.ndim - 1], stride,
             fv_dtype_size(out->dtype));
    }
    return FV_OK;
}

static double        cost(const fv_need *n) { return 0.1 * (double)fv_dtype_size(n->out->image.dtype); }
static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(slice) = {
    .name = "slice",
    .role = FV_OP_PART,
    .family = "view",
    .brief = "part of an image, written x[...]",
    .also = "subsample, duplicate_substack",
    .version = 2,
    .doc = "Indices mean what they mean in numpy: x[50] takes one slice and drops the axis, x[10:20] is a range, x[::2] "
           "every second voxel, x[-1] the last slice, and x[::-1] mirrors. The spacing grows with the step, and the origin "
           "moves to the first voxel. On a mirrored axis the spacing stays positive and the origin is the lowest coordinate "
           "(an affine matrix keeps the mirror). Channels keep their names and colours. A single slice keeps its place in the "
           "world of an affine matrix. A slice "
           "that contains nothing is an error.",
    .citation = "numpy, basic indexing: https://numpy.org/doc/stable/user/basics.indexing.html",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(slice),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .moves = true,
    .cost = cost,
    .example = "phantom(\"cells\", [200, 200])[20:120, ::2] |> write(\"part.png\")",
    .see = "montage project name_axes",
};
