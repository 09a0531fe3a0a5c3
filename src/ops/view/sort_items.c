/* sort_items: the images of a collection in another order. What sort is for images; the graph does it. */
#include "op/op.h"

typedef struct {
    const char *by;
} sort_items;

static const fv_param params[] = {
    FV_PARAM(sort_items, by,
             .doc =
                 "words of facts, item or path, the most important first, such as \"-mean\" or \"x, item\"; - puts the largest "
                 "first"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "images of a collection" }, FV_INPUT_END };

const fv_op FV_OP(sort_items) = {
    .name = "sort_items",
    .family = "view",
    .brief = "put the items of a collection in an order",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(sort_items),
    .result = FV_KIND_IMAGE,
    .gathers = true,
    .expands = "facts(image, by)",
    .doc = "sort(c, \"-mean\") is a shorter name. The order is that in which together, and tables that are made of all items "
           "(group with first and last), see them: montage(together(sort(c, \"-mean\")), \"item\") shows the brightest first. "
           "Items that are equal in all of these keep their order. Files that are written for each item keep their names, and "
           "tables are sorted by sort(t, ...).",
    .example = "phantom(\"cells\", [200, 200]) |> write(\"cells/a.tif\")",
    .see = "sort facts filter_items together montage",
};
