/* sform: where the voxels of an image lie, as a transform. */
#include "op/op.h"
#include "op/physical.h"

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "an image with 2 or 3 spatial axes; its voxels are not read" }, FV_INPUT_END
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type none = { .ndim = 0 };
    fv_physical         place;
    FV_TRY(fv__physical_find(&i->in[0]->image, "image", &place, error));
    fv__transform_linear(&none, place.n, &i->out->image);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) { in[0] = (fv_region){ .ndim = n->in[0]->image.ndim }; }

static fv_status run(fv_run *r, fv_error *error) {
    fv_physical  place;
    fv_transform t;
    FV_TRY(fv__physical_find(&r->need.in[0]->image, "image", &place, error));
    FV_TRY(fv__transform_find(&r->need.out->image, "", &t, error));
    fv__transform_store(r->out, &t, NULL, place.space);
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(sform) = {
    .name = "sform",
    .family = "registration",
    .brief = "take the matrix from voxels to the world as a transform",
    .also = "get_sform, get_qform, fslorient -getsform, TransformIndexToPhysicalPoint",
    .doc =
        "The transform leads from voxels i, j, k to the world. Of a NIfTI file it is the sform, or the qform where that is not "
        "set; of others, spacing and origin. As all transforms here it is in ITK's space, x to the left and y to the back: its "
        "first two rows have the other sign than nibabel's img.affine. concatenate_transforms(sform(fixed), t) leads from "
        "voxels of the fixed image to places of the moving one.",
    .example = "head = phantom(\"t1\", [20, 30, 30])\n"
               "write(sform(head), \"head.tfm\")",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .see = "set_sform register concatenate_transforms",
};
