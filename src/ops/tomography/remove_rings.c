/* remove_rings: stripes of a sinogram, which a bad detector column leaves and which would become rings. */
#include "op/kernels.h"
#include "op/scratch.h"
#include "ops/tomography/scan.h"

typedef struct {
    int64_t size;
} remove_rings;

static const fv_param params[] = {
    FV_PARAM(remove_rings, size, .def = "9", .min = 3, .max = 999, .unit = "px",
             .doc = "how many columns a column is compared with: an odd number, a few more than the widest stripe"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "projections", FV_KIND_IMAGE, .doc = "axes angle z x, z angle x, or angle x; after minus_log" }, FV_INPUT_END
};

static fv_scan axes_of(const fv_image_type *type, fv_status *status, fv_error *error) {
    fv_geometry any = { .beam = FV_GEOMETRY_PARALLEL };
    int         angle = -1;
    fv_scan     scan;
    for (int d = 0; d < type->ndim; d++) angle = !strcmp(type->axis[d], "angle") ? d : angle;
    any.angles.count = angle < 0 ? 0 : type->shape[angle];
    *status = fv__scan_find(type, &any, &scan, error);
    return scan;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const remove_rings *p = i->params;
    fv_status           status;
    axes_of(&i->in[0]->image, &status, error);
    if (status == FV_OK && p->size % 2 == 0)
        return fv_fail(error, FV_ERROR_USAGE, "size = %lld: must be odd", (long long)p->size);
    i->out->image.dtype = FV_FLOAT32;
    return status;
}

/* All angles, and half a window of columns to each side. */
static void need(const fv_need *n, fv_region *in) {
    fv_status status;
    fv_scan   scan = axes_of(&n->in[0]->image, &status, NULL);
    int64_t half = ((const remove_rings *)n->params)->size / 2, end = n->region.start[scan.column] + n->region.size[scan.column];
    in[0].start[scan.angle] = 0;
    in[0].size[scan.angle] = scan.nangles;
    in[0].start[scan.column] = FV_MAX(n->region.start[scan.column] - half, 0);
    in[0].size[scan.column] = FV_MIN(end + half, scan.ncolumns) - in[0].start[scan.column];
}

typedef struct work {
    float  *raw, *window;
    double *mean;
} work;

static size_t lay_out(const fv_need *n, work *w, void *memory) {
    int64_t    half = ((const remove_rings *)n->params)->size / 2, width = n->region.size[n->region.ndim - 1] + 2 * half;
    fv_scratch pieces = { memory };
    w->raw = fv__scratch_take(&pieces, width * (int64_t)sizeof(float));
    w->mean = fv__scratch_take(&pieces, width * (int64_t)sizeof(double));
    w->window = fv__scratch_take(&pieces, (2 * half + 1) * (int64_t)sizeof(float));
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work w;
    return lay_out(n, &w, NULL);
}

static void load_row(const fv_block *in, int64_t offset, int64_t n, float *to) {
    fv__kernels_current()->convert(to, FV_FLOAT32, (const char *)in->data + offset * (int64_t)fv_dtype_size(in->dtype), in->dtype,
                                   n);
}

/* The median of means [first, end), by insertion: windows are short. */
static double median(const double *mean, int64_t first, int64_t end, float *window) {
    int64_t count = 0;
    for (int64_t i = first; i < end; i++) {
        float   v = (float)mean[i];
        int64_t k = count++;
        for (; k > 0 && window[k - 1] > v; k--) window[k] = window[k - 1];
        window[k] = v;
    }
    return count % 2 ? window[count / 2] : ((double)window[count / 2 - 1] + (double)window[count / 2]) / 2;
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *in = r->in[0], *out = r->out;
    fv_status       status;
    fv_scan         scan = axes_of(&r->need.in[0]->image, &status, error);
    int64_t         half = ((const remove_rings *)r->need.params)->size / 2, first, count;
    int64_t         n = in->region.size[scan.column], shift = out->region.start[scan.column] - in->region.start[scan.column];
    work            w;
    lay_out(&r->need, &w, r->scratch);
    fv__scan_slices(&out->region, scan.row, &first, &count);
    for (int64_t z = 0; z < count; z++) {
        int64_t in_row = scan.row < 0 ? 0 : z * in->stride[scan.row], out_row = scan.row < 0 ? 0 : z * out->stride[scan.row];
        memset(w.mean, 0, (size_t)n * sizeof *w.mean);
        for (int64_t a = 0; a < scan.nangles; a++) {
            load_row(in, in_row + a * in->stride[scan.angle], n, w.raw);
            for (int64_t x = 0; x < n; x++) w.mean[x] += (double)w.raw[x];
        }
        for (int64_t x = 0; x < n; x++) w.mean[x] /= (double)scan.nangles;
        for (int64_t a = 0; a < out->region.size[scan.angle]; a++) {
            float *to = (float *)out->data + out_row + a * out->stride[scan.angle];
            load_row(in, in_row + (out->region.start[scan.angle] + a) * in->stride[scan.angle] + shift,
                     out->region.size[scan.column], to);
        }
        for (int64_t x = 0; x < out->region.size[scan.column]; x++) {
            int64_t at = x + shift;
            float   extra = (float)(w.mean[at] - median(w.mean, FV_MAX(at - half, 0), FV_MIN(at + half + 1, n), w.window));
            for (int64_t a = 0; a < out->region.size[scan.angle]; a++)
                ((float *)out->data)[out_row + a * out->stride[scan.angle] + x] -= extra;
        }
    }
    return FV_OK;
}

static double cost(const fv_need *n) { return 2 + 0.1 * (double)((const remove_rings *)n->params)->size; }

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(remove_rings) = {
    .name = "remove_rings",
    .family = "tomography",
    .also = "remove_stripe, remove_stripe_fw, remove_all_stripe, remove_stripe_ti, remove_stripe_sf, destripe",
    .stage = "filter",
    .brief = "remove the stripes of sinograms that would become rings",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(remove_rings),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "The mean of every detector column over all angles is compared with the median of the means around it (at the "
           "ends of the detector, of those that exist). The difference is subtracted from the column. The result is float32.",
    .citation =
        "Vo, Atwood and Drakopoulos, Superior techniques for eliminating ring artifacts in X-ray micro-tomography, Optics "
        "Express 26, 2018 (the smoothing of column means)",
    .example = "g = parallel(range(0, 179))\n"
               "stripes = phantom(\"noise\", [1, 128]) > 0.9\n"
               "p = xray(phantom(\"shepp-logan\", [128, 128]), g) + matmul(ones([180, 1]), stripes) * 2\n"
               "remove_rings(p) |> write(\"clean.tif\")",
    .see = "remove_rings_polar minus_log fbp",
};
