/* plot_frc: the picture of a Fourier ring correlation with its thresholds. */
#include "op/op.h"

typedef struct {
    double      taper;
    const char *title;
} plot_frc;

static const fv_param params[] = {
    FV_PARAM(plot_frc, taper, .def = "0.1", .min = 0, .max = 0.5,
             .doc = "part of each side over which the images fade out, so that their borders do not correlate"),
    FV_PARAM(plot_frc, title, .def = "", .doc = "words above the picture"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "a", FV_KIND_IMAGE, .doc = "image of one half of the data, real or complex; axes y x or z y x" },
    { "b", FV_KIND_IMAGE, .doc = "image of the other half, of the same shape" },
    FV_INPUT_END,
};

static const fv_column_doc columns[] = {
    { "<columns of plot>", .doc = "what is drawn, as plot gives it" },
    FV_COLUMN_DOC_END,
};

#define CURVE(column, name)                                                                                                      \
    "select(with(frc(a, b, taper), \"curve = '" name "'\"), \"frequency, " column " as correlation, curve\")"

const fv_op FV_OP(plot_frc) = {
    .name = "plot_frc",
    .family = "metrics",
    .brief = "draw the correlation of two images frequency by frequency, with thresholds of resolution",
    .also = "fsc plot, Fourier ring correlation plot",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(plot_frc),
    .result = FV_KIND_TABLE,
    .columns = columns,
    .expands = "plot(concat(" CURVE("correlation", "correlation") ", " CURVE("half_bit", "half bit") ", " CURVE(
        "one_bit", "one bit") "), x = \"frequency\", y = \"correlation\", by = \"curve\", kind = \"line\", title = title, "
                              "x_label = \"frequency (cycles/px)\")",
    .doc = "The numbers are those of frc: write them into a table with frc. The resolution is where the correlation first falls "
           "below "
           "the curve of half a bit (the whole data) or one bit (each half).",
    .citation = "van Heel and Schatz, Fourier shell correlation threshold criteria, J. Struct. Biol. 151, 2005",
    .example = "cells = gaussian(phantom(\"cells\", [128, 128]), 1)\n"
               "plot_frc(poisson(cells, seed = 1), poisson(cells, seed = 2)) |> write(\"frc.svg\")",
    .see = "frc plot",
};
