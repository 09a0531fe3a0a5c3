/* groupwise: images brought upon their own mean. */
#include "op/axes.h"
#include "op/op.h"
#include "op/physical.h"

typedef struct {
    const char *axis;
    fv_choice   kind, metric;
    int64_t     rounds, iterations;
    double      grid, bending;
} groupwise;

enum { BSPLINE = 4 }; /* among the kinds */

static const fv_param params[] = {
    FV_PARAM(groupwise, axis, .def = "item", .doc = "axis along which the images lie"),
    FV_PARAM(groupwise, kind, .def = "rigid", .choices = "shift|rigid|similarity|affine|bspline",
             .doc = "what the transforms may do; see register"),
    FV_PARAM(groupwise, metric, .def = "auto", .choices = "auto|phase|mean_squares|correlation|mutual_information",
             .doc = "how images are compared; see register"),
    FV_PARAM(groupwise, rounds, .def = "3", .min = 1, .max = 20,
             .doc = "how often all are brought upon the mean of the round before"),
    FV_PARAM(groupwise, iterations, .def = "40", .min = 1, .max = 10000, .doc = "most steps at each resolution, in each round"),
    FV_PARAM(groupwise, grid, .def = "0", .min = 0,
             .doc = "of bspline: distance of control points, in units of the spacing; 0: an eighth of the longest side"),
    FV_PARAM(
        groupwise, bending, .def = "0.01", .min = 0, .max = 1e6,
        .doc =
            "of bspline: weight of the bending energy, times 30 for mutual_information; the more, the smoother the displacement"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "images", FV_KIND_IMAGE,
      .doc = "all images as one, as together(read(\"scans/*.nii.gz\")) or stack(a, b, axis = \"item\")" },
    FV_INPUT_END,
};

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const groupwise     *p = i->params;
    const fv_image_type *images = &i->in[0]->image;
    fv_physical          place;
    FV_TRY(fv__physical_find(images, "images", &place, error));
    if (fv__axis_find(images, p->axis) < 0 || images->ndim != place.n + 1)
        return fv_fail(
            error, FV_ERROR_USAGE,
            "images must have the axis %s and spatial axes, and no other: together(read(\"scans/*.tif\")) has the axis item",
            p->axis);
    bool bends = p->kind.index == BSPLINE;
    if (!bends && p->grid > 0)
        return fv_fail(error, FV_ERROR_USAGE, "grid is that of B-splines: give kind = \"bspline\" with it");
    fv__bytes_printf(text, "mean0 = project(images, axis, \"mean\")\n");
    for (int64_t k = 0; k < p->rounds; k++) {
        fv__bytes_printf(text, "at%lld = register(images, mean%lld, ", (long long)k, (long long)k);
        if (k && !bends) fv__bytes_printf(text, "at%lld, ", (long long)k - 1); /* B-splines begin again with coarse grids */
        fv__bytes_printf(text, "kind = kind, metric = metric, init = \"world\", iterations = iterations%s%s)\n",
                         bends ? ", bending = bending" : "", p->grid > 0 ? ", grid = grid" : "");
        if (k + 1 < p->rounds)
            fv__bytes_printf(text,
                             "mean%lld = project(transform(images, at%lld, onto = mean0, mode = \"nearest\"), axis, \"mean\")\n",
                             (long long)k + 1, (long long)k);
    }
    fv__bytes_printf(text, "at%lld\n", (long long)p->rounds - 1);
    return FV_OK;
}

const fv_op FV_OP(groupwise) = {
    .name = "groupwise",
    .family = "registration",
    .brief = "find the transforms that bring many images upon their own mean",
    .also = "template construction, buildtemplateparallel, mri_robust_template, group mean registration",
    .doc =
        "The mean of all images is the first target; each round registers every image to the mean of the round before, which is "
        "sharper each time. No image is the reference, so none is preferred. transform(images, t) applies them, and its mean, "
        "project(transform(images, t), \"item\", \"mean\"), is the template.",
    .citation = "Joshi et al., Unbiased diffeomorphic atlas construction for computational anatomy, NeuroImage 23, 2004",
    .example = "a = gaussian(phantom(\"cells\", [100, 100]), 1)\n"
               "all = stack(a, shift(a, [3, -2], mode = \"mirror\"), shift(a, [-1, 4], mode = \"mirror\"), axis = \"item\")\n"
               "t = groupwise(all, kind = \"shift\")\n"
               "project(transform(all, t), \"item\", \"mean\") |> write(\"template.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(groupwise),
    .result = FV_KIND_IMAGE,
    .unroll = unroll,
    .see = "register transform project together",
};
