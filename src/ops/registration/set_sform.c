/* set_sform: an image brought to its place by its header alone. */
#include "op/format.h"
#include "op/op.h"
#include "op/physical.h"
#include "op/unchanged.h"

typedef struct {
    fv_numbers  matrix;
    int64_t     code;
    const char *transform;
    fv_numbers  found; /* of the operator's own: what the file says */
} setting;

static const fv_param params[] = {
    FV_PARAM(setting, matrix, .def = "",
             .doc = "12 numbers, row by row, from voxels i, j, k to the world, or 16 with the row 0 0 0 1"),
    FV_PARAM(setting, code, .def = "2", .min = 1, .max = 5,
             .doc = "of that world: 1 scanner, 2 aligned to something, 3 Talairach, 4 MNI, 5 another template"),
    FV_PARAM(setting, transform, .def = "",
             .doc = "in place of by: file of such a transform, which an earlier run has written, such as \"t.tfm\""),
    FV_PARAM(setting, found, .def = "", .own = true, .doc = "matrix that the file led to"),
    FV_PARAM_END,
};
enum { IMAGE, BY };
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "a volume; its voxels stay" },
    { "by", FV_KIND_IMAGE, .optional = true,
      .doc = "a linear transform that register finds with this image as moving; the image comes to lie upon the fixed one" },
    FV_INPUT_END,
};

/* The one linear transform that a file holds. */
static fv_status read_transform(const char *path, double matrix[12], fv_error *error) {
    fv_reader   *reader;
    fv_transform t;
    double       numbers[12];
    FV_TRY(fv__reader_acquire(path, NULL, &reader, error));
    fv_status status = fv__transform_find(&reader->type, path, &t, error);
    if (status == FV_OK && (t.n != 3 || t.before))
        status = fv_fail(error, FV_ERROR_INPUT, "%s: %s; one of three dimensions is asked for", path,
                         t.before ? "it holds several transforms" : "the transform is that of a plane");
    if (status == FV_OK) {
        fv_region whole = fv__region_whole(&reader->type);
        fv_block  block;
        fv__block_init(&block, FV_FLOAT64, &whole, numbers);
        status = fv__reader_read(reader, &block, error);
        if (status == FV_OK) fv__transform_load(&block, &t, NULL, matrix);
    }
    fv__reader_release(reader);
    return status;
}

static fv_status find_world(const char *path, const fv_physical *place, fv_numbers *world, fv_error *error) {
    double matrix[12];
    FV_TRY(read_transform(path, matrix, error));
    if (!fv__physical_moved(place, matrix, world->value))
        return fv_fail(error, FV_ERROR_INPUT, "%s: the transform has no inverse", path);
    world->count = 12;
    return FV_OK;
}

static fv_status check(const fv_infer *i, fv_physical *place, fv_error *error) {
    const setting *p = i->params;
    bool           by = i->in[BY]->kind == FV_KIND_IMAGE, file = p->transform && *p->transform;
    FV_TRY(fv__physical_find(&i->in[IMAGE]->image, "image", place, error));
    if (place->n != 3)
        return fv_fail(error, FV_ERROR_USAGE, "image has %d spatial axes: only a volume has a matrix to the world", place->n);
    int given = by + file + (p->matrix.count > 0);
    if (given > 1 || (!given && place->placed))
        return fv_fail(error, FV_ERROR_USAGE,
                       "%sgive one of by, matrix and transform, as in set_sform(moving, register(moving, fixed))",
                       given ? "" : "image has a matrix already: ");
    return FV_OK;
}

/* What is known while the pipeline runs only is another operator's. */
static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    fv_physical place;
    FV_TRY(check(i, &place, error));
    if (i->in[BY]->kind == FV_KIND_IMAGE) fv__bytes_printf(text, "set_sform_later(image, list_transform(by), code = code)\n");
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    setting       *p = i->params;
    fv_image_type *out = &i->out->image;
    fv_physical    place;
    double         unused[12];
    bool           file = p->transform && *p->transform;
    FV_TRY(check(i, &place, error));
    p->found = p->matrix;
    if (file) FV_TRY(find_world(p->transform, &place, &p->found, error));
    if (!file && !p->matrix.count) { /* of spacing and origin */
        p->found.count = 12;
        memcpy(p->found.value, place.space, sizeof place.space);
    }
    const double *m = p->found.value;
    if (p->found.count != 12 && p->found.count != 16)
        return fv_fail(error, FV_ERROR_USAGE, "matrix has %d numbers; give 12, or 16 with the row 0 0 0 1", p->found.count);
    if (p->found.count == 16 && (m[12] != 0 || m[13] != 0 || m[14] != 0 || m[15] != 1))
        return fv_fail(error, FV_ERROR_USAGE, "the last row of matrix is %g %g %g %g; it must be 0 0 0 1", m[12], m[13], m[14],
                       m[15]);
    if (!fv__matrix_invert(m, unused))
        return fv_fail(error, FV_ERROR_USAGE, "matrix is singular: voxels would lie upon each other");
    fv__image_place(out, m);
    out->affine_code = (int)p->code;
    return FV_OK;
}

const fv_op FV_OP(set_sform) = {
    .name = "set_sform",
    .family = "registration",
    .brief = "say where a volume lies in the world, in its header alone",
    .also = "fslorient -setsform, nibabel set_sform, hardening a transform",
    .doc =
        "Nothing is interpolated: the matrix from voxels to the world becomes this one, and a NIfTI file has it as sform. The "
        "numbers are NIfTI's own, as fslorient -setsform and nibabel's img.affine have them (x to the right, y to the front). "
        "set_sform(moving, register(moving, fixed)) brings moving upon fixed by its header alone (3D Slicer calls this hardening "
        "a "
        "transform). Where the image lies is known only when register is through. So the result can be written to .nii and "
        ".nii.gz, and no operator takes it. To go on with the image in the same pipeline, use transform(), or give the transform "
        "as the file of an earlier run: then the place is known before anything is computed.\n"
        "An image without a matrix, such as one from TIFF, gets one of its spacing and origin, as numpy.diag gives it to "
        "nibabel: "
        "set_sform(image) writes just this, and by or transform is applied to it. So that moving and fixed lie upon each other "
        "as NIfTI, write set_sform(fixed) too: without it, a file says nothing of where it lies, and every program guesses "
        "otherwise. TIFF, which cannot keep a matrix, is refused then.",
    .citation = "NIfTI-1: method 3 of the orientation of an image",
    .example = "head = phantom(\"t1\", [20, 30, 30])\n"
               "set_sform(head, [2, 0, 0, -30, 0, 2, 0, -30, 0, 0, 3, -25]) |> write(\"head.nii.gz\")",
    .version = 4,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(setting),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .cost = cost,
    .see = "sform register transform",
};
