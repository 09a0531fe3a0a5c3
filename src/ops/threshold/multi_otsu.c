/* multi_otsu: thresholds that best separate several classes of values, as skimage.filters.threshold_multiotsu. */
#include "kernels/levels.h"
#include "kernels/partition.h"
#include <stdlib.h>

typedef struct {
    int64_t classes, index;
} multi_otsu;

enum { MOST = 16 };

static const fv_param params[] = {
    FV_PARAM(multi_otsu, classes, .def = "3", .min = 2, .max = MOST, .doc = "number of classes; there is one threshold less"),
    FV_PARAM(multi_otsu, index, .def = "0", .min = 0, .max = MOST - 2, .doc = "which threshold: 0 is the lowest"),
    FV_PARAM_END,
};

/* The variance between classes is largest where that inside them is least. */
static fv_status put(fv_finish *f, const fv__levels *l, fv_error *error) {
    const multi_otsu *p = l->params;
    double           *value = fv__alloc((size_t)l->count * 2 * sizeof *value), *weight = value + l->count, mean[MOST];
    int64_t          *level = fv__alloc((size_t)l->count * sizeof *level), first[MOST], n = 0;
    fv_status         status = FV_OK;
    for (int64_t i = 0; i < l->count; i++)
        if (l->counts[i]) value[n] = l->centres[i], weight[n] = (double)l->counts[i], level[n++] = i;
    if (n < p->classes)
        status = fv_fail(error, FV_ERROR_INPUT, "the image has only %lld different value%s; %lld classes need as many",
                         (long long)n, n == 1 ? "" : "s", (long long)p->classes);
    else {
        fv__partition(value, weight, n, (int)p->classes, first, mean);
        int64_t   last = level[first[p->index + 1] - 1]; /* of the class below the threshold */
        fv_scalar result = { .dtype = fv__scalar_type(f->in[0]->image.dtype), .natural = l->low + (uint64_t)last };
        if (result.dtype == FV_FLOAT64) result.real = l->centres[last];
        if (result.dtype == FV_BOOL) result = (fv_scalar){ .dtype = FV_FLOAT64, .real = l->centres[last] };
        status = fv__put_scalar(f, &result, error);
    }
    free(value);
    free(level);
    return status;
}

static const fv__method method = { .bins = 256, .put = put };

FV_LEVELS_FUNCTIONS
FV_LEVELS_ESTIMATE

static fv_status infer(fv_infer *i, fv_error *error) {
    const multi_otsu *p = i->params;
    fv_dtype          dtype = i->in[0]->image.dtype;
    if (p->index > p->classes - 2)
        return fv_fail(error, FV_ERROR_USAGE, "index = %lld: %lld classes have %lld thresholds, counted from 0",
                       (long long)p->index, (long long)p->classes, (long long)p->classes - 1);
    return fv__infer_scalar(i, dtype == FV_BOOL ? FV_FLOAT64 : fv__scalar_type(dtype), error);
}

static const fv_pass passes[] = { FV_LEVELS_SKETCH, FV_LEVELS_BINS, FV_PASS_END };

const fv_op FV_OP(multi_otsu) = {
    .name = "multi_otsu",
    .family = "threshold",
    .brief = "one of the thresholds that best separate several classes of values",
    .version = 2,
    .also = "threshold_multiotsu, multithresh, imquantize",
    .doc = "As skimage.filters.threshold_multiotsu; multi_otsu(a, 3, 0) and multi_otsu(a, 3, 1) are the two thresholds of three "
           "classes, and (a > multi_otsu(a, 3, 0)) + (a > multi_otsu(a, 3, 1)) numbers the classes from 0. Integers are counted "
           "value by value, other images in 256 bins from the smallest to the largest value. The best thresholds are found "
           "exactly, also for images of 16 bits. Nan and infinity are refused, and so is an image with fewer values than "
           "classes.",
    .citation = "P. Liao, T. Chen, P. Chung, A fast algorithm for multilevel thresholding, J. Inf. Sci. Eng. 17, 2001",
    .inputs = fv__levels_inputs,
    .params = params,
    .params_size = sizeof(multi_otsu),
    .result = FV_KIND_SCALAR,
    .infer = infer,
    .passes = passes,
    .example = "a = gaussian(phantom(\"cells\", [200, 200]), 2)\n"
               "classes = (a > multi_otsu(a, 3, 0)) + (a > multi_otsu(a, 3, 1))\n"
               "multi_otsu(a, 3, 0)\n"
               "colorize(classes, map = \"viridis\", low = 0, high = 2) |> write(\"classes.png\")",
    .see = "otsu kmeans histogram",
};

const fv_estimator FV_ESTIMATOR(multi_otsu) = FV_LEVELS_ESTIMATOR;
