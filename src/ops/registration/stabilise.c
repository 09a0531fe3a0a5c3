/* stabilise: a movie whose times lie upon each other. */
#include "op/axes.h"
#include "op/op.h"
#include "op/physical.h"

typedef struct {
    fv_choice kind, metric;
    int64_t   frame, channel, iterations, order;
    double    grid, bending;
} stabilise;

enum { IMAGE, REFERENCE };
enum { BSPLINE = 4 }; /* among the kinds */

static const fv_param params[] = {
    FV_PARAM(stabilise, kind, .def = "rigid", .choices = "shift|rigid|similarity|affine|bspline",
             .doc = "what may happen between times; see register"),
    FV_PARAM(stabilise, metric, .def = "auto", .choices = "auto|phase|mean_squares|correlation|mutual_information",
             .doc = "how images are compared; see register"),
    FV_PARAM(stabilise, frame, .def = "0", .min = 0, .max = 1e9, .doc = "time that the others are brought upon"),
    FV_PARAM(stabilise, channel, .def = "0", .min = 0, .max = 1e6, .doc = "channel that is compared, where there are several"),
    FV_PARAM(stabilise, iterations, .def = "40", .min = 1, .max = 10000, .doc = "most steps at each resolution"),
    FV_PARAM(stabilise, order, .def = "1", .min = 0, .max = 3, .doc = "of the interpolation: 0, 1 or 3"),
    FV_PARAM(stabilise, grid, .def = "0", .min = 0,
             .doc = "of bspline: distance of control points, in units of the spacing; 0: an eighth of the longest side"),
    FV_PARAM(
        stabilise, bending, .def = "0.01", .min = 0, .max = 1e6,
        .doc =
            "of bspline: weight of the bending energy, times 30 for mutual_information; the more, the smoother the displacement"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "a movie, with an axis t" },
    { "reference", FV_KIND_IMAGE, .optional = true, .doc = "image that all times are brought upon, instead of one of them" },
    FV_INPUT_END,
};

/* The movie with a place of one axis taken: image[:, 3, :, :]. */
static void say_place(const fv_image_type *type, int axis, int64_t place, fv_bytes *text) {
    fv__bytes_printf(text, "[");
    for (int d = 0; d < type->ndim; d++) {
        if (d == axis) fv__bytes_printf(text, "%s%lld", d ? ", " : "", (long long)place);
        if (d != axis) fv__bytes_printf(text, "%s:", d ? ", " : "");
    }
    fv__bytes_printf(text, "]");
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const stabilise     *p = i->params;
    const fv_image_type *movie = &i->in[IMAGE]->image;
    fv_image_type        seen = *movie;
    fv_physical          place;
    int                  time = fv__axis_find(movie, "t"), channel = fv__axis_find(movie, "c");
    FV_TRY(fv__physical_find(movie, "image", &place, error));
    if (time < 0 || movie->ndim - place.n - (channel >= 0) != 1)
        return fv_fail(error, FV_ERROR_USAGE,
                       "image must have an axis t, spatial axes, and at most channels c; name_axes(image, \"t y x\") names them");
    if (p->frame >= movie->shape[time])
        return fv_fail(error, FV_ERROR_USAGE, "frame = %lld: the movie has %lld times, counted from 0", (long long)p->frame,
                       (long long)movie->shape[time]);
    if (p->channel >= (channel < 0 ? 1 : movie->shape[channel]))
        return fv_fail(error, FV_ERROR_USAGE, "channel = %lld: the movie has %lld, counted from 0", (long long)p->channel,
                       (long long)(channel < 0 ? 1 : movie->shape[channel]));
    fv__bytes_printf(text, "seen = image");
    if (channel >= 0) {
        say_place(movie, channel, p->channel, text);
        fv__axis_drop(&seen, channel);
    }
    fv__bytes_printf(text, "\nstill = ");
    if (i->in[REFERENCE]->kind == FV_KIND_IMAGE)
        fv__bytes_printf(text, "reference");
    else {
        fv__bytes_printf(text, "seen");
        say_place(&seen, fv__axis_find(&seen, "t"), p->frame, text);
    }
    if (p->kind.index != BSPLINE && p->grid > 0)
        return fv_fail(error, FV_ERROR_USAGE, "grid is that of B-splines: give kind = \"bspline\" with it");
    fv__bytes_printf(text,
                     "\ntransform(image, register(seen, still, kind = kind, metric = metric, init = \"world\", "
                     "iterations = iterations%s%s), onto = still, order = order)\n",
                     p->kind.index == BSPLINE ? ", bending = bending" : "", p->grid > 0 ? ", grid = grid" : "");
    return FV_OK;
}

const fv_op FV_OP(stabilise) = {
    .name = "stabilise",
    .family = "registration",
    .brief = "bring all times of a movie upon one of them (motion correction)",
    .also = "stabilize, motion correction, mcflirt, 3dvolreg, StackReg, realign, NoRMCorre, suite2p registration",
    .doc =
        "The same as transform(image, register(image, image[0], kind = kind, init = \"world\"), onto = image[0]). To see the "
        "motion, keep the transforms: t = register(image, image[0], init = \"world\") and motion(t, image[0]) is a table of it. "
        "Times are independent of each other and are done in parallel.",
    .citation =
        "Jenkinson et al., Improved optimization for the robust and accurate linear registration and motion correction of "
        "brain images, NeuroImage 17, 2002",
    .example = "still = gaussian(phantom(\"cells\", [100, 100]), 1)\n"
               "movie = stack(still, shift(still, [3, -2]), rotate(still, 4, reshape = false), axis = \"t\")\n"
               "stabilise(movie) |> write(\"still.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(stabilise),
    .result = FV_KIND_IMAGE,
    .unroll = unroll,
    .see = "register transform motion",
};
