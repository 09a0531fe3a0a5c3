/* ptycho_start: a probe to begin with, with further modes and shifted for each class. */
#include "base/math.h"
#include "op/scratch.h"
#include "ops/ptychography/complex_rows.h"
#include "ops/ptychography/probe_classes.h"
#include "ops/ptychography/whole_pieces.h"

typedef struct {
    fv_list shifts;
    int64_t modes;
} ptycho_start;

static const fv_param params[] = {
    FV_PARAM(ptycho_start, shifts, .doc = "two numbers of each class: its shift in rows and columns"),
    FV_PARAM(ptycho_start, modes, .def = "1", .min = 1, .max = 16, .doc = "number of modes"),
    FV_PARAM_END,
};
enum { PROBE, POWER };
static const fv_input inputs[] = {
    { "probe", FV_KIND_IMAGE, .doc = "complex probe; axes y x, or mode y x" },
    { "power", FV_KIND_SCALAR, .optional = true, .doc = "sum of |probe|^2 that it gets; left out: as it is" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const ptycho_start  *p = i->params;
    const fv_image_type *a = &i->in[PROBE]->image;
    int                  y = a->ndim - 2;
    if ((a->ndim != 2 && a->ndim != 3) || (a->ndim == 3 && a->shape[0] > p->modes))
        return fv_fail(error, FV_ERROR_USAGE, "probe must have the axes y x, or mode y x with at most %lld modes",
                       (long long)p->modes);
    if (p->shifts.count < 2 || p->shifts.count % 2) return fv_fail(error, FV_ERROR_USAGE, "shifts must have two numbers a class");
    for (int d = y; d < a->ndim; d++)
        if (!FV_ISA_NAME(fv__plane_fourier_able)(a->shape[d]))
            return fv_fail(error, FV_ERROR_USAGE,
                           "the probe has %lld x %lld pixels; both sides must be products of 2, 3, 5 and 7 (crop_frames does it)",
                           (long long)a->shape[y], (long long)a->shape[y + 1]);
    int64_t shape[] = { p->shifts.count / 2 * p->modes, a->shape[y], 2, a->shape[y + 1] };
    fv_image_type_init(&i->out->image, FV_FLOAT32, 4, shape);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) { in[PROBE] = fv__region_whole(&n->in[PROBE]->image); }

typedef struct {
    fv_probe_classes c;
    float           *room; /* where the result is made if only a part of it is wanted */
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    fv_scratch pieces = { memory };
    k->room = fv__scratch_take(&pieces, fv__piece_room(n, 0));
    return pieces.used + fv__probe_classes_lay_out(&k->c, n->out->image.shape[1], n->out->image.shape[3],
                                                   &((const ptycho_start *)n->params)->shifts,
                                                   memory ? (char *)memory + pieces.used : NULL);
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

static double power_of(const float *plane, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)plane[i] * (double)plane[i];
    return sum;
}

/* Mode m is the first one times a wave that turns m times across the probe in one of the axes, with less power. */
static void add_mode(float *modes, int64_t m, int64_t height, int64_t width) {
    int64_t plane = height * 2 * width;
    float  *to = modes + m * plane, share = 0.2f;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            double along = m % 2 ? (double)x / (double)width : (double)y / (double)height;
            float  by = share * (float)fv__cos(0x1.921fb54442d18p+1 * (double)((m + 1) / 2) * (2 * along + 0.5));
            for (int part = 0; part < 2; part++) to[(2 * y + part) * width + x] = by * modes[(2 * y + part) * width + x];
        }
}

static fv_status run(fv_run *r, fv_error *error) {
    const ptycho_start *p = r->need.params;
    const fv_block     *in = r->in[PROBE];
    const int64_t      *shape = r->need.out->image.shape;
    int64_t             height = shape[1], width = shape[3], plane = height * 2 * width;
    int64_t             given = in->region.ndim == 3 ? in->region.size[0] : 1;
    fv_region           whole = fv__region_whole(&r->need.out->image);
    work                k;
    lay_out(&r->need, &k, r->scratch);
    bool   direct = fv__piece_direct(r->out, &r->need.out->image, 0);
    float *modes = direct ? r->out->data : k.room;
    for (int64_t m = 0; m < given; m++)
        for (int64_t y = 0; y < height; y++) {
            int64_t at[3] = { m, y, 0 };
            float  *row = modes + m * plane + y * 2 * width;
            fv__complex_row(in, in->region.ndim == 3 ? at : at + 1, width, row, row + width);
        }
    for (int64_t i = 0; i < given * plane; i++)
        if (!isfinite(modes[i])) return fv_fail(error, FV_ERROR_INPUT, "the probe has values that are not finite");
    for (int64_t m = given; m < p->modes; m++) add_mode(modes, m, height, width);
    double power = power_of(modes, p->modes * plane);
    if (!(power > 0)) return fv_fail(error, FV_ERROR_INPUT, "the probe is 0 everywhere; nothing can be reconstructed with it");
    if (r->scalar[POWER]) {
        double wanted = fv__scalar_number(r->scalar[POWER]);
        if (!(wanted > 0)) return fv_fail(error, FV_ERROR_INPUT, "all frames are 0; there is nothing to reconstruct");
        float by = (float)sqrt(wanted / power);
        for (int64_t i = 0; i < p->modes * plane; i++) modes[i] *= by;
    }
    for (int64_t m = 0; m < p->modes; m++) fv__probe_classes_fill(&k.c, modes + m * plane, p->modes * plane);
    if (!direct) fv__piece_put(r->out, &whole, modes);
    return FV_OK;
}

static void slab(const fv_need *n, int64_t *chunk) { memcpy(chunk, n->out->image.shape, 4 * sizeof *chunk); }

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_start) = {
    .name = "ptycho_start",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "a probe to begin with, in all modes and shifts: a step of ptycho",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_start),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .doc =
        "Modes that are missing are the first one times slow waves across it, with 4 % of its power or less. The result is what "
        "the other steps of ptycho take: class and mode, y, part, x.",
    .example = "write(ptycho_start(make_probe(32, radius = 10), shifts = [0, 0, 0, 0.5], modes = 2), \"start.npy\")",
    .see = "ptycho make_probe ptycho_probe",
};
