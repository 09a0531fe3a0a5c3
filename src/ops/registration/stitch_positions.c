/* stitch_positions: where stitch puts tiles. */
#include "ops/registration/stitch_tiles.h"

typedef struct {
    FV__TILES_FIELDS
} stitch_positions;

static const fv_param params[] = { FV__TILES_PARAMS(stitch_positions), FV_PARAM_END };

static const fv_column_doc columns[] = {
    { "tile", .doc = "number of "
                     "the tile, in the order of the files, from 0" },
    { "z", .unit = "px", .doc = "of volumes that move along z: plane at which the first plane of the tile lies" },
    { "y", .unit = "px", .doc = "row of the stitched image at which the first row of the tile lies" },
    { "x", .unit = "px", .doc = "column at which its first column lies" },
    { "shift_z", .unit = "px", .doc = "how far that is from where the tile should lie" },
    { "shift_y", .unit = "px", .doc = "the same along y" },
    { "shift_x", .unit = "px", .doc = "the same along x" },
    { "neighbours", .doc = "how many neighbours agree with this place; 0: nothing is known, and it lies as its neighbours do" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(stitch_positions) = {
    .name = "stitch_positions",
    .family = "registration",
    .brief = "where stitch puts tiles, as a table",
    .version = 1,
    .also = "tile_configuration, TileConfiguration.registered",
    .doc = "The tiles of the example: stitch_positions(\"tiles/*.tif\", grid = [1, 2], overlap = 0.3). The places that stitch "
           "finds with the same parameters, to a fraction of a pixel.",
    .params = params,
    .params_size = sizeof(stitch_positions),
    .result = FV_KIND_TABLE,
    .columns = columns,
    .expands = "list_tiles(place_tiles(tile_shifts(" FV__TILES_HAND_ON "), " FV__TILES_HAND_ON "), " FV__TILES_HAND_ON ")",
    .example = "image = phantom(\"cells\", [200, 300])\n"
               "write(image[:, 0:180], \"tiles/left.tif\")\n"
               "write(image[:, 120:300], \"tiles/right.tif\")",
    .see = "stitch tile_shifts",
};
