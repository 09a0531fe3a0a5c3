/* blobs_dog: bright blobs by the difference of Gaussians, as skimage.feature.blob_dog. */
#include "base/math.h"
#include "op/scratch.h"
#include "ops/segmentation/blobs.h"

typedef struct {
    fv_numbers min_sigma, max_sigma;
    double     sigma_ratio, threshold, overlap;
    int64_t    exclude_border;
} blobs_dog;

static const fv_param params[] = {
    FV_PARAM(blobs_dog, min_sigma, .def = "1", .min = 0.1, .max = 1000, .unit = "px",
             .doc = "smallest standard deviation, one number or one per spatial axis"),
    FV_PARAM(blobs_dog, max_sigma, .def = "50", .min = 0.1, .max = 1000, .unit = "px",
             .doc = "largest standard deviation, one number or one per spatial axis"),
    FV_PARAM(blobs_dog, sigma_ratio, .def = "1.6", .min = 1, .max = 100, .above = true,
             .doc = "ratio of each scale to the "
                    "one before"),
    FV_PARAM(blobs_dog, threshold, .def = "0.5", .doc = "blobs with a weaker response are left out"),
    FV_PARAM(blobs_dog, overlap, .def = "0.5", .min = 0, .max = 1,
             .doc = "if two blobs overlap by more than this part, the smaller one is dropped"),
    FV_PARAM(blobs_dog, exclude_border, .def = "0", .min = 0, .max = 1e9, .unit = "px",
             .doc = "no blobs nearer than this to the border"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "real image; blobs are brighter than their surroundings" },
                                   FV_INPUT_END };

/* Differences; there is one Gaussian more. */
static int64_t scales_of(const blobs_dog *p) {
    double mean = 0;
    for (int k = 0; k < p->min_sigma.count; k++)
        mean += fv__ln(p->max_sigma.value[k] / p->min_sigma.value[k]) / fv__ln(p->sigma_ratio) + 1;
    return (int64_t)(mean / p->min_sigma.count);
}

static double sigma(const void *params_, int scale, int k) {
    const blobs_dog *p = params_;
    return p->min_sigma.value[k] * fv__pow(p->sigma_ratio, scale);
}

static fv_status infer(fv_infer *i, fv_error *error) {
    blobs_dog *p = i->params;
    FV_TRY(fv__blobs_sigmas(&p->min_sigma, &p->max_sigma, &i->in[0]->image, error));
    if (scales_of(p) > FV__BLOBS_SCALES)
        return fv_fail(error, FV_ERROR_USAGE, "sigma_ratio = %g: there would be %lld scales; at most %d are possible",
                       p->sigma_ratio, (long long)scales_of(p), FV__BLOBS_SCALES);
    return fv__blobs_infer(i, fv__blobs_round(&p->min_sigma, &p->max_sigma), error);
}

static int64_t reach(const void *params_, int k) {
    const blobs_dog *p = params_;
    return fv__scale_radius(sigma(p, (int)scales_of(p), k));
}

/* ---------------------------------------------------------------- responses */

static fv_scale scale_of(const fv__blobs *b, const fv__blob_box *box, int which) {
    const blobs_dog *p = b->params;
    int              n = p->min_sigma.count;
    fv_scale         s = { .wide = box->wide, .factor = 1 };
    memcpy(s.side, box->side, sizeof s.side);
    for (int k = 0; k < n; k++) s.sigma[3 - n + k] = sigma(p, which, k);
    return s;
}

/* Two Gaussians: of the scale and of the next one, whose place changes from scale to scale. */
static size_t lay_out(const fv__blobs *b, const fv__blob_box *box, void *smooth[2], void **rest, void *scratch) {
    fv_scratch pieces = { scratch, 0 };
    fv_scale   s = scale_of(b, box, b->scales);
    int64_t    bytes = box->wide ? 8 : 4;
    for (int d = 0; d < 3; d++) bytes *= box->side[d].size;
    smooth[0] = fv__scratch_take(&pieces, bytes);
    smooth[1] = fv__scratch_take(&pieces, bytes);
    *rest = fv__scratch_take(&pieces, (int64_t)fv__scale_scratch(&s));
    return pieces.used;
}

static size_t scratch_of(const fv__blobs *b, const fv__blob_box *box) {
    void *smooth[2], *rest;
    return lay_out(b, box, smooth, &rest, NULL);
}

static void respond(const fv__blobs *b, const fv__blob_box *box, int which, void *out, void *scratch) {
    void   *smooth[2], *rest;
    double  factor = 1 / (((const blobs_dog *)b->params)->sigma_ratio - 1);
    int64_t voxels = box->side[0].size * box->side[1].size * box->side[2].size;
    lay_out(b, box, smooth, &rest, scratch);
    for (int scale = which ? which + 1 : 0; scale <= which + 1; scale++) {
        fv_scale s = scale_of(b, box, scale);
        fv__scale_run(&s, box->image, smooth[scale % 2], rest);
    }
    void *fine = smooth[which % 2], *coarse = smooth[(which + 1) % 2];
    if (box->wide)
        for (int64_t i = 0; i < voxels; i++) ((double *)out)[i] = (((double *)fine)[i] - ((double *)coarse)[i]) * factor;
    else
        for (int64_t i = 0; i < voxels; i++) ((float *)out)[i] = (((float *)fine)[i] - ((float *)coarse)[i]) * (float)factor;
}

static fv__blobs blobs(const void *params_) {
    const blobs_dog *p = params_;
    return (fv__blobs){ .params = p,
                        .scales = (int)scales_of(p),
                        .threshold = p->threshold,
                        .overlap = p->overlap,
                        .exclude_border = p->exclude_border,
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

const fv_op FV_OP(blobs_dog) = {
    .name = "blobs_dog",
    .family = "segmentation",
    .brief = "find bright blobs and their sizes (difference of Gaussians)",
    .also = "blob_dog",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(blobs_dog),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .doc = "Faster than blobs_log, with nearly the same result: a table with one row for each blob, the strongest first.\n"
           "The response at a scale is the image smoothed with sigma minus the image smoothed with sigma * sigma_ratio, "
           "divided by sigma_ratio - 1 (kernels reach 4 sigma, the image is reflected at its border). It is computed in "
           "float32, or in float64 for float64 and for 32 and 64-bit integers." FV__BLOBS_DOC,
    .citation = "scikit-image: skimage.feature.blob_dog; Lowe: Distinctive image features from scale-invariant keypoints, 2004",
    .example = "image = phantom(\"cells\", [200, 200])\n"
               "blobs_dog(image, min_sigma = 4, max_sigma = 12, threshold = 0.1)",
    .see = "blobs_log blobs_doh peaks difference_of_gaussians",
    .columns = columns,
};
