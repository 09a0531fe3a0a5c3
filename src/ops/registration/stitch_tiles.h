/* Tiles of a stitched image: which files they are, where they should lie, and which of them overlap.
 *
 * All operators of stitching take the same parameters and find the same tiles. What infer finds is kept in three parameters of
 * their own, so that tasks need not look again: paths, a line for each file; places: along how many axes tiles move (2: y and x;
 * 3: z too), depth, height and width of a tile, then z, y and x of each, counted from the first plane, row and column of all; and
 * pairs: the numbers of both tiles of each. Where tiles do not move along z, a depth of 1 stands for it, and every z is 0.
 */
#ifndef FV_TILES_OF_STITCH_H
#define FV_TILES_OF_STITCH_H

#include "op/op.h"

#define FV__TILES_FIELDS                                                                                                         \
    const char *file;                                                                                                            \
    fv_numbers  grid;                                                                                                            \
    fv_choice   order;                                                                                                           \
    fv_numbers  overlap;                                                                                                         \
    const char *positions;                                                                                                       \
    fv_numbers  pixel_size;                                                                                                      \
    fv_choice   flip;                                                                                                            \
    int64_t     limit;                                                                                                           \
    bool        refine;
#define FV__TILES_OWN                                                                                                            \
    const char *paths;                                                                                                           \
    fv_list     places;                                                                                                          \
    fv_list     pairs;

/* Every parameter struct begins like this one, and ends in what is its own. */
typedef struct fv__tiles {
    FV__TILES_FIELDS
} fv__tiles;

typedef struct fv__tiles_found { /* own parameters */
    FV__TILES_OWN
} fv__tiles_found;

#define FV__TILES_PARAMS(type)                                                                                                   \
    FV_PARAM(type, file, .file = true, .doc = "pattern that the files of the tiles match, such as \"tiles/*.tif\""),             \
        FV_PARAM(type, grid, .def = "", .min = 1, .max = 1e6,                                                                    \
                 .doc =                                                                                                          \
                     "[rows, columns] of tiles, or [layers, rows, columns] of volumes that overlap along z too or have errors "  \
                     "along it; left out: they lie where positions, or the files themselves, say"),                              \
        FV_PARAM(type, order, .def = "rows", .choices = "rows|snake|columns|snake_columns",                                      \
                 .doc = "of the files in the grid: row by row, row by row with every second one backwards, and the same by "     \
                        "columns"),                                                                                              \
        FV_PARAM(type, overlap, .def = "0.1", .min = 0, .max = 0.95,                                                             \
                 .doc = "part of a tile that its neighbour in the grid shows too, one number or one for each of (z) y x"),       \
        FV_PARAM(type, positions, .def = "",                                                                                     \
                 .doc = "table with columns x and y, and z for volumes: where the first pixel of each tile lies; a column file " \
                        "names the tile, otherwise its rows are in the order of the files"),                                     \
        FV_PARAM(type, pixel_size, .def = "1", .min = 0, .above = true, .max = 1e300,                                            \
                 .doc = "length of a pixel in the units of positions, one number or one for each of (z) y x"),                   \
        FV_PARAM(type, flip, .def = "none", .choices = "none|x|y|both",                                                          \
                 .doc = "axes along which positions grow against the image, as those of some stages do"),                        \
        FV_PARAM(type, limit, .def = "0", .min = 0, .max = 1e6, .unit = "px",                                                    \
                 .doc = "how far a tile may lie from where its neighbour expects it; 0: half of what they share"),               \
        FV_PARAM(type, refine, .def = "true", .doc = "find where tiles lie; false: take the places as they are given")
#define FV__TILES_OWN_PARAMS(type)                                                                                               \
    FV_PARAM(type, paths, .def = "", .own = true, .doc = "files that were found"),                                               \
        FV_PARAM(type, places, .def = "", .own = true, .doc = "places that were found"),                                         \
        FV_PARAM(type, pairs, .def = "", .own = true, .doc = "pairs of tiles that share enough to be compared"), FV_PARAM_END

/* The text of a call's arguments that hands these parameters on. */
#define FV__TILES_HAND_ON                                                                                                        \
    "file, grid = grid, order = order, overlap = overlap, positions = positions, pixel_size = pixel_size, flip = flip, limit = " \
    "limit, refine = refine"

/* ---------------------------------------------------------------- finding them */

/* Opens all tiles: they must be alike, as many as the grid has, and overlap. Gives their type. */
fv_status FV_ISA_NAME(fv__tiles_find)(const fv__tiles *p, fv_arena *arena, fv__tiles_found *found, fv_image_type *tile,
                                      fv_error *error);
/* The files as they are now. */
fv_status FV_ISA_NAME(fv__tiles_identify)(const fv__tiles *p, fv_hasher *hasher, fv_error *error);

/* ---------------------------------------------------------------- what was found */

static inline int     fv__tiles_axes(const fv__tiles_found *found) { return (int)found->places.value[0]; }
static inline int64_t fv__tiles_count(const fv__tiles_found *found) { return (found->places.count - 4) / 3; }
/* Along z (0), y (1) or x (2). */
static inline int64_t fv__tiles_edge(const fv__tiles_found *found, int d) { return (int64_t)found->places.value[1 + d]; }
static inline double  fv__tiles_place(const fv__tiles_found *found, int64_t tile, int d) {
     return found->places.value[4 + 3 * tile + d];
}

/* Two tiles and what they share: the box of that size starts at these pixels of each. Of a very large box the middle. */
typedef struct fv__tile_pair {
    int64_t tile[2];
    int64_t start[2][3], size[3];
} fv__tile_pair;

static inline int64_t fv__tiles_pairs(const fv__tiles_found *found) { return found->pairs.count / 2; }
fv__tile_pair         FV_ISA_NAME(fv__tiles_pair)(const fv__tiles_found *found, int64_t number);

/* Reads a box of a tile, in its own coordinates. */
fv_status FV_ISA_NAME(fv__tile_read)(const fv__tiles_found *found, int64_t tile, const fv_block *block, fv_error *error);
/* Bytes that reading needs beside the block, and the type of tiles. */
fv_status FV_ISA_NAME(fv__tile_type)(const fv__tiles_found *found, fv_image_type *type, int64_t *memory, fv_error *error);

#endif
