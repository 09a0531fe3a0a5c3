/* motion: what transforms do, as a table. */
#include "base/math.h"
#include "op/physical.h"
#include "ops/registration/numbered_rows.h"
#include <stdio.h>

enum { TRANSFORM, ONTO };

static const fv_input inputs[] = {
    { "transform", FV_KIND_IMAGE, .doc = "linear transforms, as register gives them" },
    { "onto", FV_KIND_IMAGE, .doc = "the fixed image: motion is told at its middle and over its grid; its voxels are not read" },
    FV_INPUT_END,
};

static fv_status find(const fv_type *const *in, fv_transform *t, fv_physical *place, fv_error *error) {
    FV_TRY(fv__transform_find(&in[TRANSFORM]->image, "transform", t, error));
    FV_TRY(fv__physical_find(&in[ONTO]->image, "onto", place, error));
    if (t->n != place->n)
        return fv_fail(error, FV_ERROR_USAGE, "the transform has %d dimensions, and onto has %d spatial axes", t->n, place->n);
    return FV_OK;
}

static void add_column(fv_table_type *table, fv_column_kind kind, const char *name, const char *axis) {
    fv_column *column = &table->column[table->ncolumns++];
    column->kind = kind;
    snprintf(column->name, sizeof column->name, "%s%s", name, axis);
}

static fv_status infer(fv_infer *i, fv_error *error) {
    static const char *const axes[] = { "x", "y", "z" };
    const fv_image_type     *type = &i->in[TRANSFORM]->image;
    fv_table_type           *table = fv__arena_alloc(i->arena, sizeof *table);
    fv_transform             t;
    fv_physical              place;
    FV_TRY(find(i->in, &t, &place, error));
    for (int d = 0; d < t.before; d++) add_column(table, FV_COLUMN_INTEGER, type->axis[d], "");
    for (int c = 0; c < t.n; c++) add_column(table, FV_COLUMN_REAL, "shift_", axes[c]);
    for (int c = 0; c < t.n && t.n == 3; c++) add_column(table, FV_COLUMN_REAL, "rotation_", axes[c]);
    if (t.n == 2) add_column(table, FV_COLUMN_REAL, "rotation", "");
    add_column(table, FV_COLUMN_REAL, "scale", "");
    add_column(table, FV_COLUMN_REAL, "displacement", "");
    add_column(table, FV_COLUMN_REAL, "step", "");
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = table };
    return FV_OK;
}

/* A chunk that holds the first number of a transform tells of all of it. */
static bool begins(const fv_region *chunk) { return !chunk->start[chunk->ndim - 1] && !chunk->start[chunk->ndim - 2]; }

static void need(const fv_need *n, fv_region *in) {
    const fv_image_type *type = &n->in[TRANSFORM]->image;
    in[TRANSFORM] = n->region;
    for (int d = type->ndim - 2; d < type->ndim && begins(&n->region); d++) {
        in[TRANSFORM].start[d] = 0;
        in[TRANSFORM].size[d] = type->shape[d];
    }
    in[ONTO] = (fv_region){ .ndim = n->in[ONTO]->image.ndim };
}

typedef struct {
    int64_t number; /* of the transform, in raster order */
    double  matrix[12];
} record;

static size_t bound(const fv_need *n) {
    int64_t all = 1;
    for (int d = 0; d < n->region.ndim - 2; d++) all *= n->region.size[d];
    return (size_t)all * sizeof(record);
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_image_type *type = &r->need.in[TRANSFORM]->image;
    fv_region            places = r->need.region;
    fv_transform         t;
    fv_rows              walk;
    FV_TRY(fv__transform_find(type, "transform", &t, error));
    if (!begins(&places)) return FV_OK;
    for (int d = t.row; d < places.ndim; d++) places.size[d] = 1;
    for (fv__rows_begin(&walk, &places); fv__rows_next(&walk);) {
        record one = { 0 };
        for (int d = 0; d < t.before; d++) one.number = one.number * type->shape[d] + walk.position[d];
        fv__transform_load(r->in[TRANSFORM], &t, walk.position, one.matrix);
        fv__bytes_append(r->partial, &one, sizeof one);
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- numbers */

typedef struct {
    fv_physical place;
    double      middle[3];
    int64_t     size[3];
} grid;

static grid grid_of(const fv_image_type *type) {
    grid g = { .size = { 1, 1, 1 } };
    fv__physical_find(type, "onto", &g.place, NULL);
    for (int c = 0; c < g.place.n; c++) g.size[c] = type->shape[g.place.axis[c]];
    for (int r = 0; r < 3; r++) {
        g.middle[r] = g.place.space[r * 4 + 3];
        for (int c = 0; c < 3; c++) g.middle[r] += g.place.space[r * 4 + c] * (double)(g.size[c] - 1) / 2;
    }
    return g;
}

static double moved(const double m[12], const double at[3], int r) {
    return m[r * 4] * at[0] + m[r * 4 + 1] * at[1] + m[r * 4 + 2] * at[2] + m[r * 4 + 3];
}

/* Root of the mean square, over the voxels of the grid, of the distance between where two transforms lead to. */
static double apart(const grid *g, const double a[12], const double b[12]) {
    double sum = 0;
    for (int r = 0; r < 3; r++) {
        double at_middle = moved(a, g->middle, r) - moved(b, g->middle, r);
        sum += at_middle * at_middle;
        for (int c = 0; c < 3; c++) {
            double along = 0, voxels = (double)g->size[c];
            for (int i = 0; i < 3; i++) along += (a[r * 4 + i] - b[r * 4 + i]) * g->place.space[i * 4 + c];
            sum += along * along * (voxels * voxels - 1) / 12;
        }
    }
    return sqrt(sum);
}

static double degrees(double angle) { return angle * (180 / 0x1.921fb54442d18p+1); }

/* The determinant's root is what the transform scales by. */
static double scale_of(const double m[12], int n) {
    double all = m[0] * (m[5] * m[10] - m[6] * m[9]) - m[1] * (m[4] * m[10] - m[6] * m[8]) + m[2] * (m[4] * m[9] - m[5] * m[8]);
    return all > 0 ? fv__pow(all, 1.0 / n) : NAN;
}

static void fill_row(const grid *g, const record *one, const double before[12], int n, fv_cell *row) {
    static const double still[12] = { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0 };
    const double       *m = one->matrix;
    for (int c = 0; c < n; c++) row++->real = moved(m, g->middle, c) - g->middle[c];
    if (n == 3) {
        row++->real = degrees(fv__atan2(m[9], m[10]));
        row++->real = degrees(fv__atan2(0 - m[8], sqrt(m[9] * m[9] + m[10] * m[10])));
    }
    row++->real = degrees(fv__atan2(m[4], m[0]));
    row++->real = scale_of(m, n);
    row++->real = apart(g, m, still);
    row->real = before ? apart(g, m, before) : 0;
}

static fv_status put_rows(fv_finish *f, const void *records, int64_t count, fv_row_writer *rows, fv_error *error) {
    const fv_image_type *type = &f->in[TRANSFORM]->image;
    const record        *all = records;
    fv_transform         t;
    grid                 g = grid_of(&f->in[ONTO]->image);
    FV_TRY(fv__transform_find(type, "transform", &t, error));
    for (int64_t i = 0; i < count; i++) {
        fv_cell *row;
        int64_t  rest = all[i].number;
        FV_TRY(fv__row_writer_next(rows, &row, error));
        for (int d = t.before - 1; d >= 0; rest /= type->shape[d--]) row[d].integer = rest % type->shape[d];
        bool follows = t.before && row[t.before - 1].integer > 0;
        fill_row(&g, &all[i], follows ? all[i - 1].matrix : NULL, t.n, row + t.before);
    }
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) { return fv__numbered_rows(f, sizeof(record), put_rows, error); }

static const fv_pass passes[] = { { .name = "gather", .need = need, .bound = bound, .run = run, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<axis>", .doc = "one for each axis of the transforms before row, such as t: the place along it, counted from 0" },
    { "shift_AXIS", "length", .doc = "how far the middle of onto lies from its place, along x, y and z of ITK's space" },
    { "rotation", .doc = "of a plane: degrees from x towards y" },
    { "rotation_AXIS", .doc = "of a volume: degrees about x, then y, then z" },
    { "scale", .doc = "how much longer lines are (the root of the determinant)" },
    { "displacement", "length", .doc = "root mean square of the distance that voxels of onto move" },
    { "step", "length", .doc = "the same between this place and the one before, as the time before; 0 for the first" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(motion) = {
    .name = "motion",
    .family = "registration",
    .brief = "list by how much transforms shift, turn and scale",
    .also = "motion parameters, framewise displacement, realignment parameters, drift",
    .doc = "A row for each transform. Where things of onto are found in the moving image: a shift_x of 2 means that the moving "
           "image "
           "shows them 2 units further along x.",
    .example = "still = gaussian(phantom(\"cells\", [100, 100]), 1)\n"
               "movie = stack(still, shift(still, [3, -2]), rotate(still, 4, reshape = false), axis = \"t\")\n"
               "motion(register(movie, still, init = \"world\"), still)",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .see = "register stabilise transform",
    .columns = columns,
};
