/* xray: the projections of a volume, what a detector behind it would record. */
#include "op/axes.h"
#include "op/scratch.h"
#include "ops/tomography/beam_device.h"
#include "ops/tomography/cone_scan.h"

typedef struct {
    fv_geometry geometry;
    int64_t     columns, rows;
} xray;

static const fv_param params[] = {
    FV_PARAM(xray, geometry, .doc = "parallel(angles = range(0, 179)) or cone(range(0, 359), 500, 200)"),
    FV_PARAM(xray, columns, .def = "0", .min = 0, .max = 8192, .unit = "px",
             .doc = "width of the detector; 0: the longer side of a slice"),
    FV_PARAM(xray, rows, .def = "0", .min = 0, .max = 8192, .unit = "px",
             .doc = "height of the detector of a cone beam; 0: as many rows as slices"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "volume", FV_KIND_IMAGE, .doc = "real volume z y x, or one slice y x" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    xray                *p = i->params;
    const fv_image_type *in = &i->in[0]->image;
    int                  spatial[FV_MAX_DIMS], flat = in->ndim == 2;
    if (in->ndim < 2 || in->ndim > 3 || fv_image_type_spatial(in, spatial) != in->ndim || fv_dtype_is_complex(in->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "volume must be real with the axes z y x or y x");
    bool cone = p->geometry.beam == FV_GEOMETRY_CONE;
    if (p->rows && (flat || !cone))
        return fv_fail(error, FV_ERROR_USAGE, "rows = %lld: only a cone through a volume has detector rows of its own",
                       (long long)p->rows);
    int64_t rows = in->shape[in->ndim - 2], width = in->shape[in->ndim - 1];
    if (!p->columns) p->columns = FV_MAX(rows, width);
    int64_t shape[3] = { p->geometry.angles.count, flat ? p->columns : p->rows ? p->rows : in->shape[0], p->columns };
    fv_image_type_init(&i->out->image, FV_FLOAT32, in->ndim, shape);
    FV_TRY(fv__axes_name(&i->out->image, flat ? "angle x" : "angle z x", error));
    for (int d = 1; d < in->ndim; d++) {
        int from = d == in->ndim - 1 ? d : 0;
        i->out->image.spacing[d] = in->spacing[from] * (cone ? p->geometry.pitch : 1);
        if (from == 0 && !cone) i->out->image.origin[d] = in->origin[from];
        memcpy(i->out->image.unit[d], in->unit[from], sizeof in->unit[from]);
    }
    fv_scan scan;
    if (FV_MAX(rows, width) > 8192) return fv_fail(error, FV_ERROR_USAGE, "slices may have at most 8192 rows and columns");
    FV_TRY(fv__scan_find(&i->out->image, &p->geometry, &scan, error));
    return cone ? fv__cone_check(&p->geometry, &i->out->image, in, error) : FV_OK;
}

static bool is_cone(const fv_need *n) { return ((const xray *)n->params)->geometry.beam == FV_GEOMETRY_CONE; }

static void need(const fv_need *n, fv_region *in) {
    if (is_cone(n)) {
        fv__cone_xray_need(n, &((const xray *)n->params)->geometry, in);
        return;
    }
    in[0] = fv__region_whole(&n->in[0]->image);
    if (in[0].ndim < 3) return;
    in[0].start[0] = n->region.start[1];
    in[0].size[0] = n->region.size[1];
}

typedef struct work {
    fv_beam beam;
    float  *rows, *image, *line;
} work;

static size_t lay_out(const fv_need *n, work *w, void *memory) {
    const xray          *p = n->params;
    const fv_image_type *in = &n->in[0]->image;
    fv_scratch           pieces = { memory };
    w->beam = (fv_beam){ p->geometry.angles.count, p->columns, in->shape[in->ndim - 2], in->shape[in->ndim - 1], NULL };
    w->beam.angle = fv__scratch_take(&pieces, w->beam.nangles * (int64_t)sizeof(fv_beam_angle));
    w->rows = fv__scratch_take(&pieces, fv__bundle_rows_bytes(w->beam.width));
    w->line = fv__scratch_take(&pieces, fv__bundle_rows_bytes(w->beam.columns));
    w->image = fv__scratch_take(&pieces, fv__beam_image_bytes(&w->beam));
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work w;
    if (is_cone(n)) return fv__cone_xray_scratch(n, &((const xray *)n->params)->geometry);
    return lay_out(n, &w, NULL);
}

static fv_status run(fv_run *r, fv_error *error) {
    const xray     *p = r->need.params;
    const fv_block *out = r->out;
    int             last = out->region.ndim - 1, row = last == 2 ? 1 : -1;
    int64_t         first, count, x = out->region.start[last], n = out->region.size[last];
    work            w;
    if (is_cone(&r->need)) return fv__cone_xray_run(r, &p->geometry, error);
    lay_out(&r->need, &w, r->scratch);
    FV_ISA_NAME(fv__beam_prepare)(&w.beam, &p->geometry);
    fv__scan_slices(&out->region, row, &first, &count);
    for (int64_t z = 0; z < count; z += FV_BEAM_LANES) {
        int64_t slices = FV_MIN(FV_BEAM_LANES, count - z);
        FV_TRY(fv__bundle_pack(&w.beam, r->in[0], first + z, slices, "volume", w.rows, w.image, error));
        for (int64_t a = 0; a < out->region.size[0]; a++) {
            FV_ISA_NAME(fv__beam_project)(&w.beam, w.image, out->region.start[0] + a, x, n, w.line);
            fv__bundle_unpack(w.line, n, slices, (float *)out->data + a * out->stride[0] + (row < 0 ? 0 : z * out->stride[1]),
                              row < 0 ? 0 : out->stride[1]);
        }
    }
    return FV_OK;
}

static bool able(const fv_need *n) { return !is_cone(n); }

static int64_t least(const fv_need *n) {
    work w;
    lay_out(n, &w, NULL);
    return fv__beam_project_least(&w.beam);
}

static int64_t wanted(const fv_need *n) {
    work w;
    lay_out(n, &w, NULL);
    return fv__beam_project_wanted(&w.beam);
}

static fv_status run_device(fv_run *r, fv_device *device, fv_error *error) {
    work w;
    lay_out(&r->need, &w, r->scratch);
    FV_ISA_NAME(fv__beam_prepare)(&w.beam, &((const xray *)r->need.params)->geometry);
    fv_beam_job job = { .beam = w.beam, .rows = w.rows };
    return fv__beam_project_run(r, &job, device, error);
}

static const fv_device_kernel device = { .tolerance = 1e-5, .able = able, .least = least, .wanted = wanted, .run = run_device };

static void slab(const fv_need *n, int64_t *chunk) {
    memcpy(chunk, n->out->image.shape, sizeof(int64_t) * FV_MAX_DIMS);
    if (n->out->image.ndim < 3)
        chunk[0] = 32;
    else if (!is_cone(n))
        chunk[1] = FV_BEAM_LANES;
    else /* rows of a cone look at many slices, and wide ones weigh */
        chunk[1] = n->in[0]->image.shape[1] * n->in[0]->image.shape[2] > 1 << 19 ? FV_CONE_HEIGHT / 4 : FV_CONE_HEIGHT;
}

static double cost(const fv_need *n) {
    return (is_cone(n) ? 0.8 : 0.2) * (double)n->in[0]->image.shape[n->in[0]->image.ndim - 1];
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(xray) = {
    .name = "xray",
    .family = "tomography",
    .also = "radon, forward_project, fp",
    .stage = "simulate",
    .brief = "project a volume: line integrals along the rays of a geometry",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(xray),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .device = &device,
    .doc = "The result has the axes angle z x (angle x for a single slice) and is float32. Along a ray, the image is "
           "interpolated linearly in every row or column that the ray crosses (Joseph's method). Voxels and detector pixels "
           "are 1 wide (those of a cone beam as wide as it says), and what lies outside the volume is 0. A cone through one "
           "slice, a fan beam, gives angle x. backproject is its exact adjoint.",
    .citation = "Joseph, An improved algorithm for reprojecting rays through pixel images, IEEE Trans. Med. Imaging 1, 1982",
    .example = "xray(phantom(\"shepp-logan\", [128, 128]), parallel(angles = range(0, 179))) |> write(\"sinogram.tif\")",
    .see = "backproject xray_phantom parallel cone fbp",
};
