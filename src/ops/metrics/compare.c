/* compare: how two images or masks differ, as a table. */
#include "ops/metrics/pair.h"

enum { A, B, RANGE };

static const fv_input inputs[] = {
    { "a", FV_KIND_IMAGE, .doc = "the true image, or a mask" },
    { "b", FV_KIND_IMAGE, .doc = "an image or a mask of the same shape" },
    { "data_range", FV_KIND_SCALAR, .optional = true,
      .doc = "largest possible value minus the smallest; left out: that of the integer type of a, or max(a) - min(a)" },
    FV_INPUT_END,
};

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    bool masks = i->in[A]->image.dtype == FV_BOOL && i->in[B]->image.dtype == FV_BOOL;
    FV_TRY(fv__pair_check(i, "a", "b", error));
    if (masks) {
        fv__bytes_printf(text, "row(count(a), count(b), count(a != b), dice(a, b), jaccard(a, b), hausdorff(a, b), "
                               "names = \"voxels_a voxels_b different dice jaccard hausdorff\")");
        return FV_OK;
    }
    if (i->in[RANGE]->kind != FV_KIND_SCALAR && fv_dtype_is_float(i->in[A]->image.dtype))
        fv__bytes_printf(text, "range = max(a) - min(a)\n");
    else
        FV_TRY(fv__pair_range(i, RANGE, text, error));
    fv__bytes_printf(text, "x = convert(a, \"float64\")\ny = convert(b, \"float64\")\n"
                           "row(mse(a, b), sqrt(mse(a, b)), max(abs(x - y)), psnr(a, b, data_range = range), "
                           "ssim(a, b, data_range = range), "
                           "mean((x - mean(x)) * (y - mean(y))) / (std(x) * std(y)), "
                           "names = \"mse rmse largest psnr ssim pearson\")");
    return FV_OK;
}

static const fv_column_doc columns[] = {
    { "mse", .doc = "mean squared difference (of masks there are other columns)" },
    { "rmse", .doc = "its root" },
    { "largest", .doc = "the largest difference of two voxels" },
    { "psnr", .unit = "dB", .doc = "peak signal to noise ratio" },
    { "ssim", .doc = "structural similarity, 1 for equal images" },
    { "pearson", .doc = "correlation of the values, -1 to 1" },
    { "voxels_a", .doc = "of two masks: voxels of the first" },
    { "voxels_b", .doc = "voxels of the second" },
    { "different", .doc = "voxels that are in one of them only" },
    { "dice", .doc = "twice what they share, as a part of both" },
    { "jaccard", .doc = "what they share, as a part of what either covers" },
    { "hausdorff", .unit = "px", .doc = "how far they lie apart where they differ most" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(compare) = {
    .name = "compare",
    .family = "metrics",
    .brief = "tell in a table how two images or masks differ",
    .version = 1,
    .also = "imdiff, metrics",
    .doc = "Two masks (bool) are compared by their overlap and distance, other images by their values.",
    .inputs = inputs,
    .result = FV_KIND_TABLE,
    .columns = columns,
    .unroll = unroll,
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "compare(a, median(a, 3))",
    .see = "mse psnr ssim dice jaccard hausdorff colocalization",
};
