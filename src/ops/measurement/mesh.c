/* mesh: the surface between the voxels above a level and those below, as a table of triangles, by marching cubes.
 *
 * A cube has a voxel at each of its corners and is named by that of lowest coordinates. A task writes the cubes of its chunk that
 * the surface meets, in raster order, with the values at their corners; the merge brings all cubes of the image into raster order
 * and makes the triangles. So neither their order nor their bits depend on the chunks.
 */
#include "op/sorted_runs.h"
#include "ops/measurement/marching_cubes.h"

typedef struct {
    double level;
    bool   each;
} mesh;

static const fv_param params[] = {
    FV_PARAM(mesh, level, .def = "0.5", .doc = "value of the surface: voxels above it are inside. The default suits masks"),
    FV_PARAM(mesh, each, .def = "false",
             .doc = "of a label image: every label has a surface of its own, and the table a column label"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "volume: an image, a mask or a label image" }, FV_INPUT_END };

#define PLACES                                                                                                                   \
    { "x1", FV_COLUMN_REAL }, { "y1", FV_COLUMN_REAL }, { "z1", FV_COLUMN_REAL }, { "x2", FV_COLUMN_REAL },                      \
        { "y2", FV_COLUMN_REAL }, { "z2", FV_COLUMN_REAL }, { "x3", FV_COLUMN_REAL }, { "y3", FV_COLUMN_REAL }, {                \
        "z3", FV_COLUMN_REAL                                                                                                     \
    }

static fv_status infer(fv_infer *i, fv_error *error) {
    static const fv_table_type one = { 10, { PLACES, { "area", FV_COLUMN_REAL } } };
    static const fv_table_type many = { 11, { { "label", FV_COLUMN_INTEGER }, PLACES, { "area", FV_COLUMN_REAL } } };
    const fv_image_type       *image = &i->in[0]->image;
    int                        spatial[FV_MAX_DIMS];
    bool                       each = ((const mesh *)i->params)->each;
    if (image->ndim != 3 || fv_image_type_spatial(image, spatial) != 3)
        return fv_fail(error, FV_ERROR_USAGE,
                       "image must be a volume with the axes z, y, x; of others take a part first, as image[0] takes the first "
                       "time of t z y x");
    if (fv_dtype_is_complex(image->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s, which has no order: take its magnitude or one of its parts",
                       fv_dtype_name(image->dtype));
    if (each && image->dtype != FV_BOOL && !fv_dtype_is_integer(image->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "each = true: image is %s; it must be a label image, such as label() makes",
                       fv_dtype_name(image->dtype));
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = each ? &many : &one };
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    int64_t   none[FV_MAX_DIMS] = { 0 }, next[FV_MAX_DIMS] = { 1, 1, 1 };
    fv_region grown = fv__region_grow(&n->region, none, next);
    in[0] = fv__region_clip(&grown, n->in[0]->image.shape);
}

/* ---------------------------------------------------------------- cubes of a chunk */

typedef struct {
    int64_t cube; /* number of its voxel in the image */
    double  value[8];
} cut_cube; /* of one surface */

typedef struct {
    int64_t cube, label, corners;
} label_cube; /* of many */

static size_t bound(const fv_need *n) {
    size_t most = ((const mesh *)n->params)->each ? 8 * sizeof(label_cube) : sizeof(cut_cube);
    return (size_t)fv__region_voxels(&n->region) * most + sizeof(int64_t);
}

static double number_at(const fv_block *in, const char *at) {
    switch (in->dtype) {
    case FV_BOOL:
    case FV_UINT8: return *(const uint8_t *)at;
    case FV_INT8: return *(const int8_t *)at;
    case FV_UINT16: return *(const uint16_t *)at;
    case FV_INT16: return *(const int16_t *)at;
    case FV_UINT32: return *(const uint32_t *)at;
    case FV_INT32: return *(const int32_t *)at;
    case FV_UINT64: return (double)*(const uint64_t *)at;
    case FV_INT64: return (double)*(const int64_t *)at;
    case FV_FLOAT32: return *(const float *)at;
    default: return *(const double *)at;
    }
}

static int64_t label_at(const fv_block *in, const char *at) {
    switch (in->dtype) {
    case FV_UINT64: return (int64_t) * (const uint64_t *)at;
    case FV_INT64: return *(const int64_t *)at;
    default: return (int64_t)number_at(in, at);
    }
}

typedef struct {
    fv_run         *r;
    const fv_block *in;
    int64_t         offset[8]; /* of the corners, in bytes */
} walking;

/* A nan is outside, as nothing is above the level there; where it meets the surface there is no place for it. */
static void look_at_cube(const walking *w, const char *at, int64_t cube, double level) {
    cut_cube c = { .cube = cube };
    int      corners = 0, nans = 0;
    for (int k = 0; k < 8; k++) {
        c.value[k] = number_at(w->in, at + w->offset[k]);
        corners |= (c.value[k] > level) << k;
        nans += c.value[k] != c.value[k];
    }
    if (corners && corners != 255 && !nans) fv__bytes_append(w->r->partial, &c, sizeof c);
}

/* The labels of the corners, the least first. */
static void look_at_labels(const walking *w, const char *at, int64_t cube) {
    int64_t label[8], latest = INT64_MIN;
    bool    alike = true;
    for (int k = 0; k < 8; k++) {
        label[k] = label_at(w->in, at + w->offset[k]);
        alike = alike && label[k] == label[0];
    }
    for (bool found = !alike; found;) {
        label_cube c = { .cube = cube, .label = INT64_MAX };
        found = false;
        for (int k = 0; k < 8; k++)
            if (label[k] && label[k] > latest && label[k] <= c.label) {
                c.label = label[k];
                found = true;
            }
        for (int k = 0; k < 8; k++) c.corners |= (int64_t)(label[k] == c.label) << k;
        if (found) fv__bytes_append(w->r->partial, &c, sizeof c);
        latest = c.label;
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const mesh    *p = r->need.params;
    const int64_t *shape = r->need.in[0]->image.shape;
    const int64_t  size = (int64_t)fv_dtype_size(r->in[0]->dtype);
    fv_region      region = r->need.region;
    walking        w = { .r = r, .in = r->in[0] };
    for (int k = 0; k < 8; k++)
        w.offset[k] = size * ((k & 1) * w.in->stride[2] + (k >> 1 & 1) * w.in->stride[1] + (k >> 2) * w.in->stride[0]);
    for (int d = 0; d < 3; d++) region.size[d] = FV_MIN(region.size[d], shape[d] - 1 - region.start[d]);
    size_t  begun = fv__sorted_run_begin(r->partial);
    fv_rows rows;
    if (!fv__region_empty(&region))
        for (fv__rows_begin(&rows, &region); fv__rows_next(&rows);) {
            const char *at = fv__block_at(w.in, rows.position);
            int64_t     cube = (rows.position[0] * shape[1] + rows.position[1]) * shape[2] + rows.position[2];
            for (int64_t x = 0; x < region.size[2]; x++, at += size * w.in->stride[2], cube++)
                if (p->each)
                    look_at_labels(&w, at, cube);
                else
                    look_at_cube(&w, at, cube, p->level);
        }
    fv__sorted_run_end(r->partial, begun);
    return FV_OK;
}

/* ---------------------------------------------------------------- triangles */

typedef struct {
    fv_row_writer        rows;
    const fv_image_type *image;
    double               level;
    bool                 each;
    fv__marching_cubes   table;
    fv_status            status;
    fv_error             error;
} merge;

static void key(const void *context, const uint8_t *record, fv_run_key *key) {
    memcpy(&key->first, record, sizeof key->first);
    if (((const merge *)context)->each) memcpy(&key->second, record + sizeof key->first, sizeof key->second);
}

/* From x, y, z in voxels to where they lie. */
static void place(const fv_image_type *image, const double voxel[3], double *out) {
    for (int i = 0; i < 3; i++) {
        const double *row = image->affine + 4 * i;
        out[i] = image->has_affine ? row[0] * voxel[0] + row[1] * voxel[1] + row[2] * voxel[2] + row[3]
                                   : image->origin[2 - i] + image->spacing[2 - i] * voxel[i];
    }
}

static double area_of(const double *t) {
    double a[3], b[3];
    for (int i = 0; i < 3; i++) {
        a[i] = t[3 + i] - t[i];
        b[i] = t[6 + i] - t[i];
    }
    double x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2], z = a[0] * b[1] - a[1] * b[0];
    return sqrt(x * x + y * y + z * z) / 2;
}

/* Where the surface meets an edge: between its corners, in proportion. Both cubes at an edge reckon from the same end, so they
 * find the same bits. */
static void meet(const merge *m, int64_t cube, const double *value, int edge, double *out) {
    const int64_t *shape = m->image->shape;
    int            first = m->table.first[edge], second = m->table.second[edge];
    double         share = (m->level - value[first]) / (value[second] - value[first]);
    int64_t        corner[3] = { cube % shape[2], cube / shape[2] % shape[1], cube / shape[2] / shape[1] };
    double         voxel[3];
    if (!isfinite(share)) share = isinf(value[first]) ? 1 : 0; /* towards the finite end */
    for (int d = 0; d < 3; d++) {
        double from = (double)(corner[d] + (first >> d & 1)), to = (double)(corner[d] + (second >> d & 1));
        voxel[d] = from == to ? from : from + share;
    }
    place(m->image, voxel, out);
}

static fv_status put_triangles(merge *m, int64_t cube, int64_t label, const double *value, fv_error *error) {
    int corners = 0;
    for (int k = 0; k < 8; k++) corners |= (value[k] > m->level) << k;
    for (int t = 0; t < m->table.count[corners]; t++) {
        fv_cell *row;
        double   corner[9];
        FV_TRY(fv__row_writer_next(&m->rows, &row, error));
        for (int k = 0; k < 3; k++) meet(m, cube, value, m->table.edge[corners][3 * t + k], corner + 3 * k);
        if (m->each) (row++)->integer = label;
        for (int k = 0; k < 9; k++) row[k].real = corner[k];
        row[9].real = area_of(corner);
    }
    return FV_OK;
}

static const uint8_t *add(void *context, const uint8_t *record, const fv_region *chunk) {
    merge     *m = context;
    cut_cube   c;
    label_cube l;
    (void)chunk;
    if (!m->each)
        memcpy(&c, record, sizeof c);
    else {
        memcpy(&l, record, sizeof l);
        c.cube = l.cube;
        for (int k = 0; k < 8; k++) c.value[k] = (double)(l.corners >> k & 1);
    }
    if (m->status == FV_OK) m->status = put_triangles(m, c.cube, m->each ? l.label : 0, c.value, &m->error);
    return record + (m->each ? sizeof l : sizeof c);
}

static fv_status end(void *context, fv_error *error) {
    const merge *m = context;
    if (m->status != FV_OK && error) *error = m->error;
    return m->status;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    static const fv_sorted_runs runs = { .most = sizeof(cut_cube), .key = key, .add = add, .end = end };
    const mesh                 *p = f->params;
    merge                       m = { .image = &f->in[0]->image, .each = p->each, .level = p->each ? 0.5 : p->level };
    fv__marching_cubes_init(&m.table);
    fv__row_writer_init(&m.rows, f);
    fv_status status = fv__sorted_runs_merge(f, &runs, &m, error);
    if (status == FV_OK) status = fv__row_writer_flush(&m.rows, error);
    fv__row_writer_release(&m.rows);
    return status;
}

/* ---------------------------------------------------------------- the operator */

static double cost(const fv_need *n) {
    (void)n;
    return 10;
}

static const fv_pass passes[] = { { .name = "cubes", .need = need, .bound = bound, .run = run, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "label", .doc = "with each = true: the label that the triangle bounds" },
    { "x1", "length",
      .doc = "where the first corner lies along x, by the origin and spacing of the image, or its matrix to the world" },
    { "y1", "length", .doc = "where the first corner lies along y" },
    { "z1", "length", .doc = "where the first corner lies along z" },
    { "x2", "length", .doc = "where the second corner lies along x" },
    { "y2", "length", .doc = "where the second corner lies along y" },
    { "z2", "length", .doc = "where the second corner lies along z" },
    { "x3", "length", .doc = "where the third corner lies along x" },
    { "y3", "length", .doc = "where the third corner lies along y" },
    { "z3", "length", .doc = "where the third corner lies along z" },
    { "area", "area", .doc = "area of the triangle" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(mesh) = {
    .name = "mesh",
    .family = "measurement",
    .brief = "the surface of an image, a mask or labels as triangles",
    .also = "marching_cubes, isosurface, iso_surface",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(mesh),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .citation =
        "W. E. Lorensen and H. E. Cline, Marching cubes: a high resolution 3D surface construction algorithm, SIGGRAPH 1987",
    .doc =
        "A table with one row for each triangle, which write makes a .stl, .ply or .vtp file of. Corners come counterclockwise "
        "seen from outside, where the image is below the level; they lie on the lines between neighbouring voxels, where the "
        "level is reached in proportion. Triangles are in order of the voxels, so a file is the same for all chunks. Where "
        "four voxels of a face are inside and outside crosswise, those inside are kept apart. The surface ends at the border "
        "of the image; pad(image, 1) closes it. No triangle is made beside nan.\n"
        "group(mesh(labels, each = true), \"label\", \"sum(area) as surface\") gives the area of the mesh of each label; "
        "surface_area of measure is nearer to the true one for voxels, whose meshes have steps.",
    .example = "a = gaussian(phantom(\"foam\", [24, 40, 40]), 2)\ntop(mesh(a, level = 128), 5)",
    .see = "measure boundaries pad group",
    .columns = columns,
};
