/* list_tiles: the places of tiles as a table. */
#include "op/table_rows.h"
#include "ops/registration/stitch_tiles.h"
#include <stdio.h>

typedef struct {
    FV__TILES_FIELDS
    FV__TILES_OWN
} list_tiles;

static const fv_param params[] = { FV__TILES_PARAMS(list_tiles), FV__TILES_OWN_PARAMS(list_tiles) };
static const fv_input inputs[] = { { "places", FV_KIND_IMAGE, .doc = "what place_tiles gives for the same tiles" },
                                   FV_INPUT_END };

static const char *const names[] = { "z", "y", "x" };

static const fv_column_doc columns[] = {
    { "tile", .doc = "number of the tile, in the order of the files, from 0" },
    { "z", .unit = "px", .doc = "of volumes that move along z: plane at which its first plane lies" },
    { "y", .unit = "px", .doc = "row at which its first row lies" },
    { "x", .unit = "px", .doc = "column at which its first column lies" },
    { "shift_z", .unit = "px", .doc = "how far that is from where the tile should lie" },
    { "shift_y", .unit = "px", .doc = "the same along y" },
    { "shift_x", .unit = "px", .doc = "the same along x" },
    { "neighbours", .doc = "how many neighbours agree with this place" },
    FV_COLUMN_DOC_END,
};

static void add_column(fv_table_type *table, fv_column_kind kind, const char *name, const char *axis) {
    fv_column *column = &table->column[table->ncolumns++];
    column->kind = kind;
    snprintf(column->name, sizeof column->name, "%s%s", name, axis);
}

static fv_status infer(fv_infer *i, fv_error *error) {
    list_tiles     *p = i->params;
    fv_image_type   tile;
    fv__tiles_found found;
    FV_TRY(FV_ISA_NAME(fv__tiles_find)((const fv__tiles *)p, i->arena, &found, &tile, error));
    p->paths = found.paths;
    p->places = found.places;
    p->pairs = found.pairs;
    const fv_image_type *places = &i->in[0]->image;
    int                  n = fv__tiles_axes(&found);
    if (places->ndim != 2 || places->shape[0] != fv__tiles_count(&found) || places->shape[1] != n + 1 ||
        places->dtype != FV_FLOAT64)
        return fv_fail(error, FV_ERROR_USAGE, "places is not what place_tiles gives for these tiles");
    fv_table_type *table = fv__arena_alloc(i->arena, sizeof *table);
    add_column(table, FV_COLUMN_INTEGER, "tile", "");
    for (int d = 3 - n; d < 3; d++) add_column(table, FV_COLUMN_REAL, "", names[d]);
    for (int d = 3 - n; d < 3; d++) add_column(table, FV_COLUMN_REAL, "shift_", names[d]);
    add_column(table, FV_COLUMN_INTEGER, "neighbours", "");
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = table };
    return FV_OK;
}

/* Whole rows, for the chunk that has their first number. */
static void need(const fv_need *n, fv_region *in) {
    if (n->region.start[1] > 0) return;
    in[0].size[1] = n->in[0]->image.shape[1];
}

static size_t bound(const fv_need *n) {
    return (size_t)n->region.size[0] * (size_t)n->out->table->ncolumns * sizeof(fv_cell) + 64;
}

static fv_status run(fv_run *r, fv_error *error) {
    const list_tiles      *p = r->need.params;
    const fv__tiles_found *found = (const fv__tiles_found *)&p->paths;
    const fv_region       *region = &r->need.region;
    (void)error;
    for (int64_t i = 0; i < region->size[0] && !region->start[1]; i++) {
        int64_t       tile = region->start[0] + i;
        const double *place = (const double *)r->in[0]->data + i * r->in[0]->stride[0];
        int           n = fv__tiles_axes(found);
        fv_cell       row[8] = { { .integer = tile } };
        for (int k = 0; k < n; k++) {
            row[1 + k].real = place[k];
            row[1 + n + k].real = place[k] - fv__tiles_place(found, tile, 3 - n + k);
        }
        row[1 + 2 * n].integer = (int64_t)place[n];
        fv__bytes_append(r->partial, row, (size_t)(2 + 2 * n) * sizeof *row);
    }
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .run = run, .bound = bound, .finish = fv__finish_rows }, FV_PASS_END };

const fv_op FV_OP(list_tiles) = {
    .name = "list_tiles",
    .family = "registration",
    .brief = "the places of tiles as a table",
    .version = 1,
    .doc = "What stitch_positions does last, with the places that place_tiles gives.",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(list_tiles),
    .result = FV_KIND_TABLE,
    .columns = columns,
    .infer = infer,
    .passes = passes,
    .example = "image = phantom(\"cells\", [200, 300])\n"
               "write(image[:, 0:180], \"tiles/left.tif\")\n"
               "write(image[:, 120:300], \"tiles/right.tif\")",
    .see = "stitch_positions place_tiles",
};
