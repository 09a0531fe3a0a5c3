/* set_sform_later: an image brought to its place by a transform that the pipeline computes.
 *
 * The first pass looks at no voxel: its end makes the matrix of the transform's rows. Whoever writes the image asks for it
 * (fv_op.place_later). The second pass copies voxels.
 */
#include "op/physical.h"
#include "op/reduce.h"
#include "op/table_rows.h"

enum { IMAGE, ROWS };

typedef struct {
    int64_t code;
} placing;

static const fv_param params[] = {
    FV_PARAM(placing, code, .def = "2", .min = 1, .max = 5, .doc = "of that world, as set_sform has it"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "a volume; its voxels stay" },
    { "rows", FV_KIND_TABLE, .doc = "one linear transform of three dimensions, as list_transform gives it" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    static const char *const names[] = { "row", "x", "y", "z", "shift" };
    const fv_table_type     *rows = i->in[ROWS]->table;
    fv_physical              place;
    bool                     fits = rows->ncolumns == FV_COUNT(names);
    for (int c = 0; fits && c < FV_COUNT(names); c++) fits = !strcmp(rows->column[c].name, names[c]);
    if (!fits) return fv_fail(error, FV_ERROR_USAGE, "by must be one linear transform of three dimensions, and no other");
    FV_TRY(fv__physical_find(&i->in[IMAGE]->image, "image", &place, error));
    if (place.n != 3)
        return fv_fail(error, FV_ERROR_USAGE, "image has %d spatial axes: only a volume has a matrix to the world", place.n);
    i->out->image.has_affine = true;
    i->out->image.affine_code = (int)((const placing *)i->params)->code;
    return FV_OK;
}

static void need_nothing(const fv_need *n, fv_region *in) {
    (void)n;
    fv__need_nothing(&in[IMAGE]);
}

static fv_status load_row(void *context, const fv_cell *row, fv_error *error) {
    (void)error;
    for (int c = 0; c < 4 && row[0].integer < 3; c++) ((double *)context)[row[0].integer * 4 + c] = row[1 + c].real;
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    double      matrix[12] = { 0 };
    fv_physical place;
    FV_TRY(fv__table_each(f->table[ROWS], f->in[ROWS]->table, load_row, matrix, error));
    FV_TRY(fv__physical_find(&f->in[IMAGE]->image, "image", &place, error));
    if (!fv__physical_moved(&place, matrix, matrix))
        return fv_fail(error, FV_ERROR_INPUT, "the transform that was found has no inverse, so the image has no place");
    return f->put(f, 0, matrix, sizeof matrix, error);
}

static fv_status copy(fv_run *r, fv_error *error) {
    (void)error;
    fv__block_copy(r->out, r->in[IMAGE]);
    return FV_OK;
}

static double cost(const fv_need *n) { return 0.1 * (double)fv_dtype_size(n->out->image.dtype); }

static const fv_pass passes[] = { { .name = "place", .need = need_nothing, .run = fv__run_nothing, .finish = finish },
                                  { .name = "copy", .run = copy },
                                  FV_PASS_END };

const fv_op FV_OP(set_sform_later) = {
    .name = "set_sform_later",
    .family = "registration",
    .brief = "bring a volume to its place by a transform that the pipeline computes",
    .doc = "What set_sform(image, by) becomes. The result can be written to .nii and .nii.gz, and no operator takes it.",
    .example = "head = phantom(\"t1\", [20, 30, 30])\n"
               "found = register(shift(head, [0, 2, 1]), head)\n"
               "set_sform_later(head, list_transform(found)) |> write(\"head.nii.gz\")",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(placing),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .place_later = true,
    .cost = cost,
    .see = "set_sform list_transform",
};
