/* rotate90: an image turned by right angles, as numpy.rot90. */
#include "kernels/rearrange.h"
#include "op/axes.h"
#include "op/place.h"

typedef struct {
    int64_t     times;
    const char *axes;
} rotate90;

static const fv_param params[] = {
    FV_PARAM(rotate90, times, .def = "1", .min = -1e9, .max = 1e9, .doc = "how many right angles"),
    FV_PARAM(rotate90, axes, .def = "",
             .doc = "the plane, from the first axis towards the second, as \"y x\"; left out: the last two spatial axes"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to turn" }, FV_INPUT_END };

static fv_status plane_of(const rotate90 *p, const fv_image_type *in, int plane[2], fv_error *error) {
    const char *words = p->axes ? p->axes : "";
    int         axis[FV_MAX_DIMS], count;
    FV_TRY(fv__axes_pick(in, words, axis, &count, error));
    if (count < 2 || (count > 2 && words[strspn(words, " ")]))
        return fv_fail(error, FV_ERROR_USAGE, "axes = \"%s\": a plane has two axes, as \"y x\"", words);
    plane[0] = axis[count - 2];
    plane[1] = axis[count - 1];
    return FV_OK;
}

static fv_rearrangement rearrangement(const rotate90 *p, const fv_image_type *in) {
    fv_rearrangement a = { { 0 } };
    int              plane[2] = { 0, 0 }, times = (int)(((p->times % 4) + 4) % 4);
    for (int d = 0; d < in->ndim; d++) {
        a.source[d] = d;
        a.step[d] = 1;
    }
    plane_of(p, in, plane, NULL);
    for (int turn = 0; turn < times; turn++) { /* numpy: the second axis backwards, then both exchanged */
        int     source = a.source[plane[0]];
        int64_t first = a.first[plane[0]], step = a.step[plane[0]];
        int64_t length = in->shape[a.source[plane[1]]];
        a.source[plane[0]] = a.source[plane[1]];
        a.first[plane[0]] = a.first[plane[1]] + a.step[plane[1]] * (length - 1);
        a.step[plane[0]] = -a.step[plane[1]];
        a.source[plane[1]] = source;
        a.first[plane[1]] = first;
        a.step[plane[1]] = step;
    }
    return a;
}

/* Names stay, and what belongs to an axis comes from that which lies along it now. */
static void place(const fv_rearrangement *a, const fv_image_type *in, fv_image_type *out) {
    static const char *const names[] = { "x", "y", "z" };
    for (int d = 0; d < in->ndim; d++) {
        int s = a->source[d];
        out->shape[d] = in->shape[s];
        out->spacing[d] = in->spacing[s];
        out->origin[d] = in->origin[s];
        memcpy(out->unit[d], in->unit[s], sizeof out->unit[d]);
    }
    for (int d = 0; d < in->ndim && in->has_affine; d++)
        for (int c = 0; c < 3; c++)
            for (int b = 0; b < 3; b++)
                if (!strcmp(in->axis[d], names[c]) && !strcmp(in->axis[a->source[d]], names[b]))
                    for (int row = 0; row < 3; row++) {
                        out->affine[row * 4 + c] = in->affine[row * 4 + b] * (double)a->step[d];
                        out->affine[row * 4 + 3] += in->affine[row * 4 + b] * (double)a->first[d];
                    }
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const rotate90      *p = i->params;
    const fv_image_type *in = &i->in[0]->image;
    int                  plane[2];
    FV_TRY(plane_of(p, in, plane, error));
    fv_rearrangement a = rearrangement(p, in);
    place(&a, in, &i->out->image);
    for (int k = 0; k < 2; k++) /* a matrix keeps nothing of an axis that is not in it */
        if (a.source[plane[k]] != plane[k] && in->has_affine && strlen(in->axis[plane[k]]) == 1 &&
            !!strchr("xyz", *in->axis[plane[k]]) != !!strchr("xyz", *in->axis[plane[1 - k]]))
            fv__place_forget_world(&i->out->image);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    fv_rearrangement a = rearrangement(n->params, &n->in[0]->image);
    in[0] = fv__rearrange_need(&a, &n->region);
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    fv_rearrangement a = rearrangement(r->need.params, &r->need.in[0]->image);
    fv__rearrange_run(&a, r->in[0], r->out);
    return FV_OK;
}

static double        cost(const fv_need *n) { return 0.2 * (double)fv_dtype_size(n->out->image.dtype); }
static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(rotate90) = {
    .name = "rotate90",
    .family = "geometry",
    .brief = "turn an image by right angles",
    .also = "rot90, numpy.rot90, cv2.rotate, imrotate 90, ROTATE_90_CLOCKWISE",
    .doc = "Turns from the first axis of the plane towards the second, as numpy.rot90: with \"y x\", a picture turns "
           "anticlockwise. Nothing is "
           "interpolated and the type stays. The axes keep their names; spacings change places, and a matrix to the world takes "
           "part, "
           "so that every voxel keeps its place there.",
    .citation = "numpy.rot90",
    .example = "phantom(\"cells\", [200, 150]) |> rotate90(1) |> write(\"turned.png\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(rotate90),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .moves = true,
    .cost = cost,
    .see = "rotate flip transpose",
};
