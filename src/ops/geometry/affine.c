/* affine: an image seen through a matrix, as scipy.ndimage.affine_transform. */
#include "ops/geometry/spline.h"

typedef struct {
    fv_spline  spline;
    fv_numbers matrix, offset, output_shape;
} affine;

static const fv_param params[] = {
    FV_PARAM(affine, matrix,
             .doc = "rows of the matrix, one after the other, slowest axis first: n * n numbers for n spatial axes, n for its "
                    "diagonal alone, n * (n + 1) with the offset at the end of each row, or all (n + 1) * (n + 1)"),
    FV_PARAM(affine, offset, .def = "0", .unit = "px", .doc = "is added, one number or one per spatial axis"),
    FV_PARAM(affine, output_shape, .def = "", .min = 1, .max = 1e12, .unit = "px",
             .doc = "voxels of the result along each spatial axis; left out: as many as before"),
    FV_SPLINE_PARAMS("3", "constant"),
    FV_SPLINE_OWN,
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to move" }, FV_INPUT_END };

static double determinant(int n, double a[3][3]) {
    if (n == 1) return a[0][0];
    if (n == 2) return a[0][0] * a[1][1] - a[0][1] * a[1][0];
    return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) - a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
           a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

/* Product of the lengths of the rows: what the determinant is measured by. */
static double scale_of(int n, double a[3][3]) {
    double all = 1;
    for (int k = 0; k < n; k++) {
        double sum = 0;
        for (int j = 0; j < n; j++) sum += a[k][j] * a[k][j];
        all *= sqrt(sum);
    }
    return all;
}

static fv_status set(fv_mapping *m, const affine *p, fv_error *error) {
    int n = m->naxes, count = p->matrix.count;
    if (count != n && count != n * n && count != n * (n + 1) && count != (n + 1) * (n + 1))
        return fv_fail(
            error, FV_ERROR_USAGE,
            "matrix has %d numbers; an image of %d spatial axes takes %d, or %d (the diagonal), %d (with offsets) or %d", count,
            n, n * n, n, n * (n + 1), (n + 1) * (n + 1));
    int width = count == n * n || count == n ? n : n + 1;
    for (int k = 0; k < n; k++) {
        for (int j = 0; j < n; j++) m->matrix[k][j] = count == n ? (j == k) * p->matrix.value[k] : p->matrix.value[k * width + j];
        m->offset[k] = p->offset.value[p->offset.count == 1 ? 0 : k];
        if (width > n) m->offset[k] += p->matrix.value[k * width + n];
        if (!isfinite(m->offset[k])) return fv_fail(error, FV_ERROR_USAGE, "offset = %g: must be finite", m->offset[k]);
    }
    for (int j = 0; j <= n && count == (n + 1) * (n + 1) && count != n; j++)
        if (p->matrix.value[n * width + j] != (j == n))
            return fv_fail(error, FV_ERROR_USAGE, "the last row of the matrix must be %s",
                           n == 1   ? "0, 1"
                           : n == 2 ? "0, 0, 1"
                                    : "0, 0, 0, 1");
    if (!(fabs(determinant(n, m->matrix)) > 1e-12 * scale_of(n, m->matrix)))
        return fv_fail(error, FV_ERROR_USAGE,
                       "matrix is singular: its determinant is %g, so that it presses the image flat and cannot be undone",
                       determinant(n, m->matrix));
    return FV_OK;
}

static fv_mapping mapping(const fv_need *n) {
    const affine *p = n->params;
    fv_mapping    m = { 0 };
    if (fv__spline_check(&p->spline, n->in[0], &m, NULL) == FV_OK) set(&m, p, NULL);
    return m;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    affine    *p = i->params;
    fv_mapping m;
    int64_t    shape[3];
    FV_TRY(fv__spline_check(&p->spline, i->in[0], &m, error));
    FV_TRY(fv__numbers_spread(&p->offset, m.naxes, "offset", error));
    FV_TRY(set(&m, p, error));
    fv__spline_shape(&m, &i->in[0]->image, shape);
    if (p->output_shape.count) FV_TRY(fv__numbers_spread(&p->output_shape, m.naxes, "output_shape", error));
    for (int k = 0; k < m.naxes && !p->output_shape.count; k++) p->output_shape.value[k] = (double)shape[k];
    p->output_shape.count = m.naxes;
    FV_TRY(fv__spline_sizes(&m, p->output_shape.value, "output_shape", &i->out->image, error));
    i->out->image.dtype = fv__mapping_type(m.order, i->in[0]->image.dtype);
    fv__spline_place(&m, &i->out->image);
    return FV_OK;
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const affine *p = i->params;
    fv_mapping    m;
    FV_TRY(fv__spline_check(&p->spline, i->in[0], &m, error));
    if (p->offset.count != 1 && p->offset.count != m.naxes) return FV_OK; /* infer says it */
    FV_TRY(set(&m, p, error));
    fv__spline_expand(&p->spline, &m, &i->in[0]->image, "affine",
                      p->output_shape.count ? "matrix, offset, output_shape, " : "matrix, offset, ", text);
    return FV_OK;
}

FV_MAPPING_PASSES

const fv_op FV_OP(affine) = {
    .name = "affine",
    .family = "geometry",
    .brief = "move, turn, stretch or shear an image by a matrix",
    .also = "affine_transform, warpAffine, AffineTransform, imwarp, affine3d",
    .doc =
        "The result at o is the image at matrix * o + offset, in voxels: the matrix leads from places of the result to places of "
        "the "
        "image, as in scipy. The result lies on the same grid as the image (its spacing, origin and direction), and what is in "
        "it has moved. To see the same world on another grid, use resample or zoom.\n" FV_SPLINE_DOC,
    .citation = "scipy.ndimage.affine_transform",
    .example = "phantom(\"cells\", [200, 200]) |> affine([1, 0.3, 0, 1], offset = [-30, 0], order = 1) |> write(\"sheared.tif\")",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(affine),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .moves = true,
    .cost = cost,
    .see = "rotate shift zoom resample warp spline_filter",
};
