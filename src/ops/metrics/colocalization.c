/* colocalization: how much two channels are in the same places. */
#include "ops/metrics/pair.h"

enum { A, B, THRESHOLD_A, THRESHOLD_B };

static const fv_input inputs[] = {
    { "a", FV_KIND_IMAGE, .doc = "one channel" },
    { "b", FV_KIND_IMAGE, .doc = "the other, of the same shape" },
    { "threshold_a", FV_KIND_SCALAR, .optional = true, .doc = "a is there where it is above this; left out: otsu(a)" },
    { "threshold_b", FV_KIND_SCALAR, .optional = true, .doc = "b is there where it is above this; left out: otsu(b)" },
    FV_INPUT_END,
};

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    FV_TRY(fv__pair_check(i, "a", "b", error));
    fv__bytes_printf(text, "x = convert(a, \"float64\")\ny = convert(b, \"float64\")\n");
    fv__bytes_printf(text, "above_a = a > %s\n", i->in[THRESHOLD_A]->kind == FV_KIND_SCALAR ? "threshold_a" : "otsu(a)");
    fv__bytes_printf(text, "above_b = b > %s\n", i->in[THRESHOLD_B]->kind == FV_KIND_SCALAR ? "threshold_b" : "otsu(b)");
    fv__bytes_printf(text,
                     "pearson = mean((x - mean(x)) * (y - mean(y))) / (std(x) * std(y))\n"
                     "rx = equalize(a, bins = 65536, method = \"rank\")\nry = equalize(b, bins = 65536, method = \"rank\")\n"
                     "spearman = mean((rx - mean(rx)) * (ry - mean(ry))) / (std(rx) * std(ry))\n"
                     "overlap = sum(x * y) / sqrt(sum(square(x)) * sum(square(y)))\n"
                     "manders_a = sum(where(above_b, x, 0)) / sum(x)\n"
                     "manders_b = sum(where(above_a, y, 0)) / sum(y)\n"
                     "row(pearson, spearman, overlap, manders_a, manders_b, names = \"pearson spearman overlap manders_a "
                     "manders_b\")");
    return FV_OK;
}

static const fv_column_doc columns[] = {
    { "pearson", .doc = "correlation of the values, -1 to 1; nan if one of the images has a single value" },
    { "spearman", .doc = "correlation of their ranks, which brightness and contrast do not change" },
    { "overlap", .doc = "Manders' overlap coefficient: like pearson, but without subtracting the means" },
    { "manders_a", .doc = "M1: the part of a's intensity that lies where b is there" },
    { "manders_b", .doc = "M2: the part of b's intensity that lies where a is there" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(colocalization) = {
    .name = "colocalization",
    .family = "metrics",
    .brief = "measure how much two channels are in the same places",
    .version = 1,
    .also = "pearson_corr_coeff, manders_coloc_coeff, manders_overlap_coeff, coloc2, JACoP",
    .doc =
        "Pearson and Spearman as scipy.stats.pearsonr and spearmanr of all voxels, the others as skimage.measure's "
        "manders_coloc_coeff and manders_overlap_coeff. Equal values share their mean rank; ranks of floating-point images are "
        "those of 65536 bins. Take the background off first.",
    .citation = "E. Manders, F. Verbeek, J. Aten, Measurement of co-localization of objects in dual-colour confocal images, J. "
                "Microsc. 169, 1993",
    .inputs = inputs,
    .result = FV_KIND_TABLE,
    .columns = columns,
    .unroll = unroll,
    .example = "a = phantom(\"cells\", [200, 200], seed = 1)\n"
               "b = gaussian(a, 3)\n"
               "colocalization(a, b)",
    .see = "merge_channels composite background compare",
};
