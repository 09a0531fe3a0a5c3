/* blobs_doh: blobs of either sign in a plane by the determinant of the Hessian, as skimage.feature.blob_doh.
 *
 * Second derivatives are differences of sums over boxes. A box is given by its corner and its size; scikit-image takes it from a
 * table of sums that ends at a voxel, so it begins one voxel after the corner, and corners outside the image move to its edge.
 */
#include "kernels/separable.h"
#include "op/scratch.h"
#include "ops/segmentation/blobs.h"

typedef struct {
    double  min_sigma, max_sigma;
    int64_t num_sigma;
    double  threshold, overlap;
    bool    log_scale;
} blobs_doh;

static const fv_param params[] = {
    FV_PARAM(blobs_doh, min_sigma, .def = "1", .min = 1, .max = 1000, .unit = "px", .doc = "smallest standard deviation"),
    FV_PARAM(blobs_doh, max_sigma, .def = "30", .min = 1, .max = 1000, .unit = "px", .doc = "largest standard deviation"),
    FV_PARAM(blobs_doh, num_sigma, .def = "10", .min = 1, .max = FV__BLOBS_SCALES,
             .doc = "number of scales from min_sigma "
                    "to max_sigma"),
    FV_PARAM(blobs_doh, threshold, .def = "0.01", .doc = "blobs with a weaker response are left out"),
    FV_PARAM(blobs_doh, overlap, .def = "0.5", .min = 0, .max = 1,
             .doc = "if two blobs overlap by more than this part, the smaller one is dropped"),
    FV_PARAM(blobs_doh, log_scale, .def = "false", .doc = "space the logarithms of the scales equally, instead of the scales"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "real image with the axes y and x" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    blobs_doh *p = i->params;
    int        spatial[FV_MAX_DIMS], n = fv_image_type_spatial(&i->in[0]->image, spatial);
    if (n != 2)
        return fv_fail(error, FV_ERROR_USAGE, "image has %d spatial axes; two are needed, y and x (blobs_log takes 1 to 3)", n);
    if (p->max_sigma < p->min_sigma)
        return fv_fail(error, FV_ERROR_USAGE, "max_sigma = %g: it must not be below min_sigma, which is %g", p->max_sigma,
                       p->min_sigma);
    return fv__blobs_infer(i, true, error);
}

static double sigma(const void *params_, int scale, int k) {
    const blobs_doh *p = params_;
    (void)k;
    return fv__blobs_spacing(p->min_sigma, p->max_sigma, (int)p->num_sigma, p->log_scale, scale);
}

static int64_t side_of(double s) { return (int64_t)(3 * s); }

/* A box whose corner was moved to the edge reaches further to the other side. */
static int64_t reach(const void *params_, int k) {
    (void)k;
    return side_of(((const blobs_doh *)params_)->max_sigma) + 2;
}

/* ---------------------------------------------------------------- sums over boxes */

typedef struct {
    const fv__blob_box *box;
    fv_type             type; /* of the image, as double */
    fv_block            in;
    double             *sums; /* of boxes that begin at a voxel; of the voxels of `region` */
    fv_region           region;
    void               *rest;
} summing;

/* Sums are wanted at corners off by -far ... +1 from the results, moved into the image. */
static fv_region sums_region(const fv__blob_box *box, int64_t far) {
    fv_region region = { .ndim = 2 };
    for (int d = 0; d < 2; d++) {
        const fv_scale_side *side = &box->side[d + 1];
        region.start[d] = FV_MAX(side->start - far, 0);
        region.size[d] = FV_MIN(side->start + side->size + 2, side->n) - region.start[d];
    }
    return region;
}

static fv_separable box_filter(const fv_type *type, int64_t rows, int64_t columns) {
    double       size[2] = { (double)rows, (double)columns };
    fv_separable s = { .box = fv__box_new(&type->image, size, FV_BORDER_CONSTANT, 0) };
    s.box.before[0] = s.box.before[1] = 0;
    return s;
}

static size_t separable_scratch(const fv__blob_box *box, int64_t rows, int64_t columns, int64_t far) {
    int64_t shape[2] = { box->side[1].n, box->side[2].n };
    fv_type type = { .kind = FV_KIND_IMAGE };
    fv_image_type_init(&type.image, FV_FLOAT64, 2, shape);
    fv_separable s = box_filter(&type, rows, columns);
    fv_need      need = { .ninputs = 1, .in[0] = &type, .out = &type, .region = sums_region(box, far) };
    return fv__separable_scratch(&s, &need);
}

/* Sides of the boxes of a scale. */
typedef struct {
    int64_t whole, third, half;
} sides;
static sides sides_of(double s) {
    int64_t size = side_of(s);
    return (sides){ size, size / 3, (size - 1) / 2 };
}

static size_t lay_out(const fv__blobs *b, const fv__blob_box *box, double *field[3], double **sums, void **rest, void *scratch) {
    fv_scratch pieces = { scratch, 0 };
    sides      s = sides_of(sigma(b->params, b->scales - 1, 0));
    fv_region  region = sums_region(box, s.whole);
    size_t     most = 0;
    for (int scale = 0; scale < b->scales; scale++) {
        sides t = sides_of(sigma(b->params, scale, 0));
        most = FV_MAX(most, separable_scratch(box, t.third, t.third, s.whole));
        most = FV_MAX(most, separable_scratch(box, 2 * t.third - 1, t.whole, s.whole));
        most = FV_MAX(most, separable_scratch(box, 2 * t.third - 1, t.third, s.whole));
        most = FV_MAX(most, separable_scratch(box, t.whole, 2 * t.third - 1, s.whole));
        most = FV_MAX(most, separable_scratch(box, t.third, 2 * t.third - 1, s.whole));
    }
    for (int k = 0; k < 3; k++) field[k] = fv__scratch_take(&pieces, box->side[1].size * box->side[2].size * 8);
    *sums = fv__scratch_take(&pieces, fv__region_voxels(&region) * 8);
    *rest = fv__scratch_take(&pieces, (int64_t)most);
    return pieces.used;
}

static void sum_boxes(summing *s, int64_t rows, int64_t columns) {
    fv_separable filter = box_filter(&s->type, rows, columns);
    fv_region    wanted = fv__box_need(&filter.box, &s->type.image, &s->region);
    fv_block     in = fv__block_window(&s->in, &wanted), out;
    fv__block_init(&out, FV_FLOAT64, &s->region, s->sums);
    fv_run part = { .need = { .ninputs = 1, .in[0] = &s->type, .out = &s->type, .region = s->region },
                    .in[0] = &in,
                    .out = &out,
                    .chunk = -1,
                    .scratch = s->rest };
    fv__separable_run(&filter, &part);
    for (int64_t i = 0; i < fv__region_voxels(&s->region); i++) s->sums[i] *= (double)(rows * columns);
}

/* to += factor * sum of the box that begins after corner (row + down, column + right), for every row and column. */
static void add_boxes(const summing *s, int64_t down, int64_t right, double factor, double *to) {
    const fv_scale_side *y = &s->box->side[1], *x = &s->box->side[2];
    for (int64_t i = 0; i < y->size; i++) {
        int64_t       row = FV_MIN(FV_MAX(y->start + i + down, 0), y->n - 1) + 1;
        const double *from = s->sums + (row - s->region.start[0]) * s->region.size[1] - s->region.start[1];
        for (int64_t k = 0; k < x->size && row < y->n; k++) {
            int64_t column = FV_MIN(FV_MAX(x->start + k + right, 0), x->n - 1) + 1;
            if (column < x->n) to[i * x->size + k] += factor * FV_MAX(from[column], 0);
        }
    }
}

static void respond(const fv__blobs *b, const fv__blob_box *box, int which, void *out, void *scratch) {
    double   *field[3], *result = out;
    int64_t   shape[2] = { box->side[1].n, box->side[2].n }, voxels = box->side[1].size * box->side[2].size;
    sides     t = sides_of(sigma(b->params, which, 0));
    summing   s = { .box = box,
                    .region = sums_region(box, sides_of(sigma(b->params, b->scales - 1, 0)).whole),
                    .type.kind = FV_KIND_IMAGE };
    fv_region held = { .ndim = 2,
                       .start = { box->side[1].in_start, box->side[2].in_start },
                       .size = { box->side[1].in_size, box->side[2].in_size } };
    lay_out(b, box, field, &s.sums, &s.rest, scratch);
    fv_image_type_init(&s.type.image, FV_FLOAT64, 2, shape);
    fv__block_init(&s.in, FV_FLOAT64, &held, box->image);
    for (int k = 0; k < 3; k++) memset(field[k], 0, (size_t)voxels * sizeof(double));
    sum_boxes(&s, t.third, t.third);
    add_boxes(&s, -t.third, 1, 1, field[0]);
    add_boxes(&s, 1, -t.third, 1, field[0]);
    add_boxes(&s, -t.third, -t.third, -1, field[0]);
    add_boxes(&s, 1, 1, -1, field[0]);
    sum_boxes(&s, 2 * t.third - 1, t.whole);
    add_boxes(&s, 1 - t.third, -t.half, 1, field[1]);
    sum_boxes(&s, 2 * t.third - 1, t.third);
    add_boxes(&s, 1 - t.third, -(t.third / 2), -3, field[1]);
    sum_boxes(&s, t.whole, 2 * t.third - 1);
    add_boxes(&s, -t.half, 1 - t.third, 1, field[2]);
    sum_boxes(&s, t.third, 2 * t.third - 1);
    add_boxes(&s, -(t.third / 2), 1 - t.third, -3, field[2]);
    double weight = 1 / (double)t.whole / (double)t.whole;
    for (int64_t i = 0; i < voxels; i++) {
        double xy = field[0][i] * weight, xx = field[1][i] * weight, yy = field[2][i] * weight;
        result[i] = xx * yy - 0.81 * (xy * xy);
    }
}

static size_t scratch_of(const fv__blobs *b, const fv__blob_box *box) {
    double *field[3], *sums;
    void   *rest;
    return lay_out(b, box, field, &sums, &rest, NULL);
}

static fv__blobs blobs(const void *params_) {
    const blobs_doh *p = params_;
    return (fv__blobs){ .params = p,
                        .scales = (int)p->num_sigma,
                        .always_wide = true,
                        .threshold = p->threshold,
                        .overlap = p->overlap,
                        .sigma = sigma,
                        .reach = reach,
                        .scratch = scratch_of,
                        .respond = respond };
}

FV__BLOBS_PASSES

static const fv_column_doc columns[] = {
    { "<axes of the image>", "px", .doc = "middle of the blob: one column for each axis, named like it (y, x)" },
    { "sigma", "px",
      .doc = "standard deviation of the Gaussian that fits best; the radius is about sigma times the square root of the "
             "number of axes" },
    { "sigma_AXIS", "px", .doc = "instead of sigma, if min_sigma or max_sigma differ between axes" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(blobs_doh) = {
    .name = "blobs_doh",
    .family = "segmentation",
    .brief = "find bright and dark blobs and their sizes (determinant of the Hessian)",
    .also = "blob_doh",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(blobs_doh),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .doc = "The result is a table with one row for each blob, the strongest first. The time hardly depends on sigma. Only "
           "for planes.\n"
           "The response at a scale is the determinant of the matrix of second derivatives, computed in float64 from sums "
           "over boxes of 3 sigma and less. These are the boxes of scikit-image, also at the border, where they are moved "
           "into the image and its first row and column do not count. With log_scale, the first and last sigma are exact; "
           "those of scikit-image may be rounded down, which makes its boxes one voxel smaller." FV__BLOBS_DOC,
    .citation = "scikit-image: skimage.feature.blob_doh; Bay, Ess, Tuytelaars, Van Gool: SURF, 2008",
    .example = "image = phantom(\"cells\", [200, 200])\n"
               "blobs_doh(image, min_sigma = 4, max_sigma = 12)",
    .see = "blobs_log blobs_dog peaks",
    .columns = columns,
};
