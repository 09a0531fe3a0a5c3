/* ssim: structural similarity, as skimage.metrics.structural_similarity. */
#include "op/window.h"
#include "ops/metrics/pair.h"
#include <stdio.h>

typedef struct {
    int64_t window_size;
    double  sigma;
} ssim;

enum { A, B, RANGE };

static const fv_param params[] = {
    FV_PARAM(ssim, window_size, .def = "7", .min = 3, .max = 255, .unit = "px",
             .doc = "edge of the box in which images are compared, an odd number"),
    FV_PARAM(ssim, sigma, .def = "0", .min = 0, .max = 30, .unit = "px",
             .doc = "standard deviation of a Gaussian to weight with instead of the box (1.5 is usual); 0: the box"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "a", FV_KIND_IMAGE, .doc = "an image" },
    { "b", FV_KIND_IMAGE, .doc = "an image of the same shape" },
    FV__PAIR_RANGE_INPUT,
    FV_INPUT_END,
};

static void write_crop(fv_bytes *text, const fv_image_type *image, const int *axis, int n, int64_t margin) {
    fv__bytes_printf(text, "mean(s[");
    for (int d = 0, k = 0; d < image->ndim; d++) {
        bool spatial = k < n && axis[k] == d;
        k += spatial;
        if (spatial)
            fv__bytes_printf(text, "%s%lld:%lld", d ? ", " : "", (long long)margin, (long long)(image->shape[d] - margin));
        else
            fv__bytes_printf(text, "%s:", d ? ", " : "");
    }
    fv__bytes_printf(text, "])");
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const ssim          *p = i->params;
    const fv_image_type *image = &i->in[A]->image;
    int                  axis[FV_MAX_DIMS], n;
    char                 filter[64];
    FV_TRY(fv__pair_check(i, "a", "b", error));
    FV_TRY(fv__window_axes(i->in[A], axis, &n, error));
    if (p->window_size % 2 == 0)
        return fv_fail(error, FV_ERROR_USAGE, "window_size = %lld: must be odd", (long long)p->window_size);
    int64_t size = p->sigma > 0 ? 2 * (int64_t)(3.5 * p->sigma + 0.5) + 1 : p->window_size;
    for (int k = 0; k < n; k++)
        if (image->shape[axis[k]] < size)
            return fv_fail(error, FV_ERROR_USAGE, "the window of %lld is wider than the images, which have %lld voxels along %s",
                           (long long)size, (long long)image->shape[axis[k]], image->axis[axis[k]]);
    FV_TRY(fv__pair_range(i, RANGE, text, error));
    if (p->sigma > 0)
        snprintf(filter, sizeof filter, "%.17g, truncate = 3.5", p->sigma);
    else
        snprintf(filter, sizeof filter, "%lld", (long long)size);
    double count = 1;
    for (int k = 0; k < n; k++) count *= (double)size;
    fv__bytes_printf(text, "x = convert(a, \"float64\")\ny = convert(b, \"float64\")\n");
    static const char *const moments[][2] = {
        { "mx", "x" }, { "my", "y" }, { "xx", "x * x" }, { "yy", "y * y" }, { "xy", "x * y" }
    };
    for (int k = 0; k < FV_COUNT(moments); k++)
        fv__bytes_printf(text, "%s = %s(%s, %s)\n", moments[k][0], p->sigma > 0 ? "gaussian" : "uniform", moments[k][1], filter);
    fv__bytes_printf(text,
                     "f = %.17g\nc1 = square(0.01 * range)\nc2 = square(0.03 * range)\n"
                     "s = (2 * mx * my + c1) * (2 * f * (xy - mx * my) + c2)"
                     " / ((mx * mx + my * my + c1) * (f * (xx - mx * mx) + f * (yy - my * my) + c2))\n",
                     count / (count - 1));
    write_crop(text, image, axis, n, (size - 1) / 2);
    return FV_OK;
}

const fv_op FV_OP(ssim) = {
    .name = "ssim",
    .family = "metrics",
    .brief = "structural similarity of two images; 1 for equal ones",
    .version = 1,
    .also = "structural_similarity, compare_ssim",
    .doc = "As skimage.metrics.structural_similarity with its usual settings, computed in float64: brightness, contrast and "
           "structure are compared in a window around each voxel, and the mean is taken, without a margin in which the window "
           "does not fit. Channels and times are compared by themselves.",
    .citation = "Z. Wang, A. Bovik, H. Sheikh, E. Simoncelli, Image quality assessment, IEEE Trans. Image Process. 13, 2004",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ssim),
    .result = FV_KIND_SCALAR,
    .unroll = unroll,
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "ssim(a, median(a, 3))",
    .see = "mse psnr compare",
};
