/* stitch: one image of overlapping tiles. */
#include "ops/registration/stitch_tiles.h"

typedef struct {
    FV__TILES_FIELDS
    fv_choice blend;
    int64_t   margin;
} stitch;

static const fv_param params[] = { FV__TILES_PARAMS(stitch),
                                   FV_PARAM(stitch, blend, .def = "linear", .choices = "linear|none",
                                            .doc = "where tiles overlap: "
                                                   "a steady change from one to the other, or the pixel of the "
                                                   "tile whose border is farthest"),
                                   FV_PARAM(stitch, margin, .def = "0", .min = 0, .max = 1e6, .unit = "px",
                                            .doc =
                                                "pixels around the image that tiles should fill, for those that lie farther out"),
                                   FV_PARAM_END };

const fv_op FV_OP(stitch) = {
    .name = "stitch",
    .family = "registration",
    .brief = "put overlapping tiles together to one image",
    .version = 1,
    .also = "stitching, mosaic, grid/collection stitching, ashlar, mist",
    .doc =
        "The tiles of the example: stitch(\"tiles/*.tif\", grid = [1, 2], overlap = 0.3). Neighbouring tiles are compared where "
        "they overlap, and all places are found together so that they fit best; "
        "stitch_positions gives these as a table. Each tile is put at the nearest whole pixel, and where tiles overlap the image "
        "changes steadily from one to the next. The image is as large as the tiles would fill where they should lie; margin adds "
        "room. Tiles may have further axes, such as c or z: all planes of a tile move together along y and x. Volumes "
        "move along z too if grid has three numbers ([1, 5, 5] for one layer of them), or if positions or the files say where "
        "they "
        "lie along z. Tiles are read "
        "only where they are needed, so the image may be larger than memory; write it as .zarr or .ome.tif, which add a pyramid "
        "for viewers. Tiles that need a correction are written corrected first.",
    .citation =
        "Preibisch, Saalfeld, Tomancak, Bioinformatics 25, 1463 (2009); Guizar-Sicairos, Thurman, Fienup, Optics Letters 33, "
        "156 (2008)",
    .params = params,
    .params_size = sizeof(stitch),
    .result = FV_KIND_IMAGE,
    .expands = "blend_tiles(place_tiles(tile_shifts(" FV__TILES_HAND_ON "), " FV__TILES_HAND_ON "), " FV__TILES_HAND_ON
               ", blend = blend, margin = margin)",
    .example = "image = phantom(\"cells\", [200, 300])\n"
               "write(image[:, 0:180], \"tiles/left.tif\")\n"
               "write(image[:, 120:300], \"tiles/right.tif\")",
    .see = "stitch_positions montage concatenate",
};
