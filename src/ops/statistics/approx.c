/* approx: a statistic from a part of its chunks, with an interval. The graph marks the statistic's node with these parameters,
 * and the run then samples its chunks (op/sampling.h, exec/sampled.c). */
#include "op/sampling.h"

static const fv_input inputs[] = {
    { "value", FV_KIND_SCALAR,
      .doc =
          "a statistic of an image: mean, sum, std, var, count, quantile, histogram or a threshold; or summaries of its objects: "
          "objects(mask), group(measure(label(mask)), \"\", ...); or group(...) of a table of all items of a collection" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) { return fv__sampling_check(i->params, error); }

const fv_op FV_OP(approx) = {
    .name = "approx",
    .family = "statistics",
    .brief = "a statistic from a part of the image, with an interval",
    .version = 1,
    .also = "approximate, estimate, sample, within_time, within_ci, AVG USING SAMPLE",
    .inputs = inputs,
    .params = fv__sampling_params,
    .params_size = sizeof(fv_sampling),
    .result = FV_KIND_SCALAR,
    .infer = infer,
    .doc =
        "Chunks of the image are taken in random order until the value is known as well as you ask, or until the time is over. "
        "With error or absolute, the result follows from the image, the seed and the chunks (those of the file, or --chunk): "
        "other chunks "
        "give another estimate, the same ones the same bits on every machine. With time, how far it came is kept with the run, "
        "so that the same command repeats it. The printed value has its interval, and how many chunks were seen; in "
        "tables and JSON these are columns low, high, seen, chunks and method. It can be used like any number, as in a > "
        "approx(otsu(a), error = 0.02). If all chunks were seen, the value is the exact one. Chunks that were seen are kept: "
        "another seed, a smaller error or the exact statistic does not read them again.",
    .citation = "W. G. Cochran, Sampling Techniques, Wiley, 1977",
    .example = "approx(mean(phantom(\"cells\", [200, 200])), error = 0.01)",
    .see = "mean quantile otsu count",
};
