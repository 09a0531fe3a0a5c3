/* filter_items: some of the images of a collection. What filter is for images; the graph does it. */
#include "op/op.h"

typedef struct {
    const char *condition;
} filter_items;

static const fv_param params[] = {
    FV_PARAM(filter_items, condition, .many = true,
             .doc =
                 "condition on an item, such as \"mean > 10 & part(item, '_', 1) == 'gfp'\": the words of facts, item and path, "
                 "numbers, texts in quotes, + - * /, comparisons, ! & | and brackets"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "images of a collection" }, FV_INPUT_END };

const fv_op FV_OP(filter_items) = {
    .name = "filter_items",
    .family = "view",
    .brief = "keep the items of a collection that satisfy a condition",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(filter_items),
    .result = FV_KIND_IMAGE,
    .gathers = true,
    .expands = "facts(image, condition)",
    .doc =
        "filter(c, \"mean > 10\") is a shorter name. What depends on the result is made only for the items that are kept, and "
        "together, fold, group and tables have no others. The condition goes by statistics of the image that is given "
        "(mean, std, var, min, max, sum, median), its voxels, type, lengths of axes (x, y, z, ...) and spacing_x and so on, and "
        "by item and path, the names of its file: part(item, '_', 0) is what stands before the first _.",
    .example = "phantom(\"cells\", [200, 200]) |> write(\"cells/a.tif\")",
    .see = "filter facts sort_items fold together",
};
