/* clear_border: takes away objects that touch the border of the image. */
#include "ops/morphology/sieve.h"

typedef struct {
    int64_t buffer_size, connectivity;
} clear_border;

static const fv_param params[] = {
    FV_PARAM(clear_border, buffer_size, .def = "0", .min = 0, .max = 0x1p40, .unit = "px",
             .doc = "voxels at most this far from the border count as touching it; 0: only the outermost voxels"),
    FV_PARAM(clear_border, connectivity, .def = "", .min = 1, .max = 3,
             .doc = "of masks, how voxels are connected: 1 by faces, 2 also by edges, 3 also by corners; left out: by all of "
                    "them"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "bool image, or label image" }, FV_INPUT_END };

static fv__sieve sieve_of(const void *p) {
    const clear_border *c = p;
    return (fv__sieve){ .connectivity = c->connectivity, .border = c->buffer_size + 1, .most = 0 };
}

static fv_status infer(fv_infer *i, fv_error *error) {
    clear_border *c = i->params;
    int           spatial[FV_MAX_DIMS], n = fv_image_type_spatial(&i->in[0]->image, spatial);
    if (!c->connectivity) c->connectivity = FV_MAX(n, 1);
    fv__sieve s = sieve_of(i->params);
    FV_TRY(fv__sieve_infer(i, &s, true, error));
    for (int k = 0; k < n; k++)
        if (c->buffer_size >= i->in[0]->image.shape[spatial[k]])
            return fv_fail(error, FV_ERROR_USAGE,
                           "buffer_size = %lld: it must be smaller than the image, which has %lld voxels "
                           "along %s",
                           (long long)c->buffer_size, (long long)i->in[0]->image.shape[spatial[k]],
                           i->in[0]->image.axis[spatial[k]]);
    return FV_OK;
}

static double cost(const fv_need *n) {
    (void)n;
    return 2;
}

FV__SIEVE_PASSES

const fv_op FV_OP(clear_border) = {
    .name = "clear_border",
    .family = "morphology",
    .brief = "remove objects that touch the border of the image",
    .also = "imclearborder, exclude_on_edges",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(clear_border),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "As skimage.segmentation.clear_border. Objects are the connected parts of a mask, or the labels of a label image. "
           "A label is removed with all its voxels, also those that are not connected to the border (scikit-image leaves "
           "these). Only the borders of the spatial axes count.",
    .citation = "scikit-image: skimage.segmentation.clear_border",
    .example = "phantom(\"cells\", [200, 200], noise = 0) > 100 |> label() |> clear_border() |> write(\"inside.tif\")",
    .see = "remove_small keep label",
};
