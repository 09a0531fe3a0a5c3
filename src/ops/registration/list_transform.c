/* list_transform: the numbers of a transform as a table, which is what a transform alone on a line prints.
 *
 * The numbers along one axis of the image that a transform is (op/physical.h, op/control_grid.h) make a row: those along column
 * of a linear one, those along control of B-splines. The places along all other axes come before them.
 */
#include "op/control_grid.h"
#include "ops/registration/numbered_rows.h"
#include <stdio.h>

static const fv_input inputs[] = { { "transform", FV_KIND_IMAGE, .doc = "transforms, as register gives them" }, FV_INPUT_END };

static fv_status find(const fv_image_type *type, int *along, fv_error *error) {
    fv_transform    t;
    fv_control_grid grid;
    if (fv__control_is(type)) {
        FV_TRY(fv__control_find(type, "transform", &grid, error));
        *along = grid.control;
        return FV_OK;
    }
    FV_TRY(fv__transform_find(type, "transform", &t, error));
    *along = t.row + 1;
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    static const char *const names[2][4] = { { "x", "y", "z", "shift" }, { "shift_x", "shift_y", "shift_z" } };
    const fv_image_type     *type = &i->in[0]->image;
    fv_table_type           *table = fv__arena_alloc(i->arena, sizeof *table);
    int                      along;
    FV_TRY(find(type, &along, error));
    for (int d = 0; d < type->ndim; d++) {
        if (d == along) continue;
        fv_column *column = &table->column[table->ncolumns++];
        column->kind = FV_COLUMN_INTEGER;
        snprintf(column->name, sizeof column->name, "%s", type->axis[d]);
    }
    bool bspline = fv__control_is(type);
    for (int64_t k = 0; k < type->shape[along]; k++) {
        bool       last = !bspline && k == type->shape[along] - 1;
        fv_column *column = &table->column[table->ncolumns++];
        column->kind = FV_COLUMN_REAL;
        snprintf(column->name, sizeof column->name, "%s", names[bspline][last ? 3 : k]);
    }
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = table };
    return FV_OK;
}

/* A chunk that holds the first number of a row tells of all of it. */
static void need(const fv_need *n, fv_region *in) {
    int along;
    if (find(&n->in[0]->image, &along, NULL) != FV_OK || n->region.start[along]) return;
    in[0].size[along] = n->in[0]->image.shape[along];
}

typedef struct {
    int64_t number; /* of the row, in raster order */
    double  value[4];
} record;

static size_t bound(const fv_need *n) { return (size_t)fv__region_voxels(&n->region) * sizeof(record); }

static fv_status run(fv_run *r, fv_error *error) {
    const fv_image_type *type = &r->need.in[0]->image;
    const fv_block      *from = r->in[0];
    fv_region            places = r->need.region;
    int                  along;
    FV_TRY(find(type, &along, error));
    if (places.start[along]) return FV_OK;
    places.size[along] = 1;
    for (int64_t k = 0; k < fv__region_voxels(&places); k++) {
        record  one = { 0 };
        int64_t rest = k, offset = 0, step = 1;
        for (int d = type->ndim - 1; d >= 0; rest /= places.size[d--]) {
            int64_t at = rest % places.size[d];
            offset += at * from->stride[d];
            if (d == along) continue;
            one.number += (places.start[d] + at) * step;
            step *= type->shape[d];
        }
        for (int64_t c = 0; c < type->shape[along]; c++)
            one.value[c] = ((const double *)from->data)[offset + c * from->stride[along]];
        fv__bytes_append(r->partial, &one, sizeof one);
    }
    return FV_OK;
}

static fv_status put_rows(fv_finish *f, const void *records, int64_t count, fv_row_writer *rows, fv_error *error) {
    const fv_image_type *type = &f->in[0]->image;
    const record        *all = records;
    int                  along;
    FV_TRY(find(type, &along, error));
    for (int64_t i = 0; i < count; i++) {
        fv_cell *row;
        int64_t  rest = all[i].number;
        FV_TRY(fv__row_writer_next(rows, &row, error));
        for (int d = type->ndim - 1, column = type->ndim - 2; d >= 0; d--) {
            if (d == along) continue;
            row[column--].integer = rest % type->shape[d];
            rest /= type->shape[d];
        }
        for (int64_t c = 0; c < type->shape[along]; c++) row[type->ndim - 1 + c].real = all[i].value[c];
    }
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) { return fv__numbered_rows(f, sizeof(record), put_rows, error); }

static const fv_pass passes[] = { { .name = "gather", .need = need, .bound = bound, .run = run, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<axis>", .doc = "one for each axis of the transforms before their own, such as t: the place along it, counted from 0" },
    { "row", .doc = "of a linear transform: 0 gives x of the moving image, 1 gives y, 2 gives z" },
    { "AXIS", .doc = "linear: what x, y and z of the fixed image are multiplied by; B-splines: the number of the control point "
                     "along each axis" },
    { "shift", "length", .doc = "linear: what is added" },
    { "shift_AXIS", "length", .doc = "B-splines: the displacement at the control point along x, y and z" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(list_transform) = {
    .name = "list_transform",
    .family = "registration",
    .brief = "list the numbers of transforms",
    .also = "print a transform, GetMatrix, GetParameters",
    .doc =
        "A row for each row of the matrix of a linear transform, or for each control point of B-splines. The numbers are those "
        "of ITK's space, as the files of transforms have them. A transform alone on a line of a pipeline is printed like this; "
        "motion tells of the same in shifts and degrees.",
    .example = "still = gaussian(phantom(\"cells\", [100, 100]), 1)\n"
               "list_transform(register(rotate(still, 4, reshape = false), still))",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_TABLE,
    .role = FV_OP_LIST,
    .infer = infer,
    .passes = passes,
    .see = "motion register write",
    .columns = columns,
};
