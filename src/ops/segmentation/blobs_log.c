/* blobs_log: bright blobs by the Laplacian of Gaussian, as skimage.feature.blob_log. */
#include "ops/segmentation/blobs.h"

typedef struct {
    fv_numbers min_sigma, max_sigma;
    int64_t    num_sigma;
    double     threshold, overlap;
    bool       log_scale;
    int64_t    exclude_border;
} blobs_log;

static const fv_param params[] = {
    FV_PARAM(blobs_log, min_sigma, .def = "1", .min = 0.1, .max = 1000, .unit = "px",
             .doc = "smallest standard deviation, one number or one per spatial axis"),
    FV_PARAM(blobs_log, max_sigma, .def = "50", .min = 0.1, .max = 1000, .unit = "px",
             .doc = "largest standard deviation, one number or one per spatial axis"),
    FV_PARAM(blobs_log, num_sigma, .def = "10", .min = 1, .max = FV__BLOBS_SCALES,
             .doc = "number of scales from min_sigma "
                    "to max_sigma"),
    FV_PARAM(blobs_log, threshold, .def = "0.2", .doc = "blobs with a weaker response are left out"),
    FV_PARAM(blobs_log, overlap, .def = "0.5", .min = 0, .max = 1,
             .doc = "if two blobs overlap by more than this part, the smaller one is dropped"),
    FV_PARAM(blobs_log, log_scale, .def = "false", .doc = "space the logarithms of the scales equally, instead of the scales"),
    FV_PARAM(blobs_log, exclude_border, .def = "0", .min = 0, .max = 1e9, .unit = "px",
             .doc = "no blobs nearer than this to the border"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "real image; blobs are brighter than their surroundings" },
                                   FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    blobs_log *p = i->params;
    FV_TRY(fv__blobs_sigmas(&p->min_sigma, &p->max_sigma, &i->in[0]->image, error));
    return fv__blobs_infer(i, fv__blobs_round(&p->min_sigma, &p->max_sigma), error);
}

static double sigma(const void *params_, int scale, int k) {
    const blobs_log *p = params_;
    return fv__blobs_spacing(p->min_sigma.value[k], p->max_sigma.value[k], (int)p->num_sigma, p->log_scale, scale);
}

static int64_t reach(const void *params_, int k) { return fv__scale_radius(((const blobs_log *)params_)->max_sigma.value[k]); }

static fv_scale scale_of(const fv__blobs *b, const fv__blob_box *box, int which) {
    const blobs_log *p = b->params;
    fv_scale         s = { .wide = box->wide, .laplacian = true };
    double           mean = 0;
    int              n = p->min_sigma.count;
    memcpy(s.side, box->side, sizeof s.side);
    for (int k = 0; k < n; k++) mean += s.sigma[3 - n + k] = sigma(p, which, k);
    mean /= n;
    s.factor = -mean * mean;
    return s;
}

static size_t scratch_of(const fv__blobs *b, const fv__blob_box *box) {
    fv_scale s = scale_of(b, box, b->scales - 1);
    return fv__scale_scratch(&s);
}

static void respond(const fv__blobs *b, const fv__blob_box *box, int which, void *out, void *scratch) {
    fv_scale s = scale_of(b, box, which);
    fv__scale_run(&s, box->image, out, scratch);
}

static fv__blobs blobs(const void *params_) {
    const blobs_log *p = params_;
    return (fv__blobs){ .params = p,
                        .scales = (int)p->num_sigma,
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

const fv_op FV_OP(blobs_log) = {
    .name = "blobs_log",
    .family = "segmentation",
    .brief = "find bright blobs and their sizes (Laplacian of Gaussian)",
    .also = "blob_log",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(blobs_log),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .doc = "The result is a table with one row for each blob, the strongest first.\n"
           "The response at a scale is -sigma^2 times the Laplacian of the image smoothed with sigma (kernels reach 4 sigma, "
           "the image is reflected at its border). It is computed in float32, or in float64 for float64 and for 32 and "
           "64-bit integers." FV__BLOBS_DOC,
    .citation = "scikit-image: skimage.feature.blob_log; Lindeberg: Feature detection with automatic scale selection, 1998",
    .example = "image = phantom(\"cells\", [200, 200])\n"
               "blobs_log(image, min_sigma = 4, max_sigma = 12)",
    .see = "blobs_dog blobs_doh peaks gaussian_laplace",
    .columns = columns,
};
