/* ptycho_probe: the probe that fits the waves best, from the sums of ptycho_overlap, and its shifted copies.
 *
 * Written as a change of the probe before: what the sums say beyond it is shifted back, class by class, and added. So a probe
 * that explains the waves stays exactly as it is.
 */
#include "op/scratch.h"
#include "ops/ptychography/probe_classes.h"
#include "ops/ptychography/whole_pieces.h"

typedef struct {
    fv_list   shifts;
    double    damping;
    fv_choice kind;
} ptycho_probe;
enum { PROBE, OVERLAP };
enum { REPLACE, DIRECTION };

static const fv_param params[] = {
    FV_PARAM(ptycho_probe, shifts, .doc = "two numbers of each class: its shift in rows and columns"),
    FV_PARAM(ptycho_probe, damping, .def = "0.3", .min = 0, .max = 100,
             .doc = "what is added to the sum of |object|^2, as a part of its largest value; without it object and probe trade "
                    "scale"),
    FV_PARAM(ptycho_probe, kind, .def = "replace", .choices = "replace|direction",
             .doc = "replace: the probe; direction: in which to change it, from error waves"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "probe", FV_KIND_IMAGE, .doc = "probe before" },
    { "overlap", FV_KIND_IMAGE, .doc = "what ptycho_overlap gives" },
    FV_INPUT_END,
};

static int64_t modes_of(const fv_need *n) {
    return n->in[PROBE]->image.shape[0] / (((const ptycho_probe *)n->params)->shifts.count / 2);
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const ptycho_probe  *p = i->params;
    const fv_image_type *a = &i->in[PROBE]->image, *s = &i->in[OVERLAP]->image;
    int64_t              classes = p->shifts.count / 2;
    if (a->ndim != 4 || a->dtype != FV_FLOAT32 || a->shape[2] != 2 || classes < 1 || p->shifts.count % 2 || a->shape[0] % classes)
        return fv_fail(error, FV_ERROR_USAGE, "probe must be float32: class and mode, y, part, x");
    int64_t modes = a->shape[0] / classes;
    if (s->ndim != 3 || s->dtype != FV_FLOAT32 || s->shape[0] != a->shape[1] || s->shape[2] != a->shape[3] ||
        s->shape[1] != classes * (2 * modes + 1))
        return fv_fail(error, FV_ERROR_USAGE, "overlap is not what ptycho_overlap gives for this probe");
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    for (int k = 0; k < 2; k++) in[k] = fv__region_whole(&n->in[k]->image);
}

typedef struct {
    fv_probe_classes c;
    float           *den;   /* of all classes */
    float           *probe; /* the result, and room for it where only a part of it is wanted */
    int64_t          plane;
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    const fv_image_type *a = &n->in[PROBE]->image;
    fv_scratch           pieces = { memory };
    k->plane = a->shape[1] * 2 * a->shape[3];
    k->probe = fv__scratch_take(&pieces, fv__piece_room(n, 0));
    k->den = fv__scratch_take(&pieces, a->shape[1] * a->shape[3] * (int64_t)sizeof(float));
    return pieces.used + fv__probe_classes_lay_out(&k->c, a->shape[1], a->shape[3], &((const ptycho_probe *)n->params)->shifts,
                                                   memory ? (char *)memory + pieces.used : NULL);
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

/* |object|^2 of all classes, and what damping adds to it. */
static float sum_weights(const work *k, const fv_block *overlap, int64_t modes, double damping) {
    int64_t n = k->c.width, each = 2 * modes + 1;
    float   most = 0;
    memset(k->den, 0, (size_t)(k->c.height * n) * sizeof *k->den);
    for (int64_t y = 0; y < k->c.height; y++)
        for (int64_t class = 0; class < overlap->region.size[1] / each; class ++) {
            const float *from = (float *)overlap->data + y * overlap->stride[0] + (class * each + 2 * modes) * overlap->stride[1];
#pragma GCC ivdep
            for (int64_t x = 0; x < n; x++) k->den[y * n + x] += from[x];
        }
    for (int64_t i = 0; i < k->c.height * n; i++) most = FV_MAX(most, k->den[i]);
    return FV_MAX((float)damping * most, 1e-30f);
}

/* What the sums of a class say beyond the probe before: num - den * probe. */
static void take_class(const work *k, const fv_run *r, int64_t class, int64_t mode, int64_t modes, float old) {
    const fv_block *overlap = r->in[OVERLAP], *probe = r->in[PROBE];
    int64_t         n = k->c.width, each = 2 * modes + 1;
    for (int64_t y = 0; y < k->c.height; y++) {
        const float *row = (float *)overlap->data + y * overlap->stride[0] + class * each * overlap->stride[1];
        const float *den = row + 2 * modes * overlap->stride[1];
        const float *p = (float *)probe->data + (class * modes + mode) * probe->stride[0] + y * probe->stride[1];
        float       *to = k->c.plane + y * k->c.stride;
        for (int part = 0; part < 2; part++)
#pragma GCC ivdep
            for (int64_t x = 0; x < n; x++)
                to[part * n + x] =
                    row[(2 * mode + part) * overlap->stride[1] + x] - old * den[x] * p[part * probe->stride[2] + x];
    }
}

static void update_mode(work *k, const fv_run *r, int64_t mode, int64_t modes, float added, float old) {
    const fv_block *probe = r->in[PROBE];
    int64_t         classes = k->c.shifts->count / 2, n = k->c.width;
    float          *change = k->c.spectrum, whole = 1 / (float)(k->c.height * n);
    if (classes == 1) {
        take_class(k, r, 0, mode, modes, old);
        change = k->c.plane;
        whole = 1;
    } else {
        for (int64_t class = 0; class < classes; class ++) {
            take_class(k, r, class, mode, modes, old);
            fv__probe_classes_add(&k->c, class, !class);
        }
        FV_ISA_NAME(fv__plane_fourier)(&k->c.fourier, change, k->c.stride, true);
    }
    float *to = k->probe + mode * k->plane;
    for (int64_t y = 0; y < k->c.height; y++) {
        const float *p = (float *)probe->data + mode * probe->stride[0] + y * probe->stride[1], *d = change + y * k->c.stride;
        for (int part = 0; part < 2; part++)
#pragma GCC ivdep
            for (int64_t x = 0; x < n; x++)
                to[(2 * y + part) * n + x] =
                    old * p[part * probe->stride[2] + x] + d[part * n + x] * whole / (k->den[y * n + x] + added);
    }
    fv__probe_classes_fill(&k->c, to, modes * k->plane);
}

static fv_status run(fv_run *r, fv_error *error) {
    const ptycho_probe *p = r->need.params;
    int64_t             modes = modes_of(&r->need);
    fv_region           whole = fv__region_whole(&r->need.out->image);
    bool                direct = fv__piece_direct(r->out, &r->need.out->image, 0);
    work                k;
    (void)error;
    lay_out(&r->need, &k, r->scratch);
    if (direct) k.probe = r->out->data;
    float added = sum_weights(&k, r->in[OVERLAP], modes, p->damping);
    for (int64_t m = 0; m < modes; m++) update_mode(&k, r, m, modes, added, p->kind.index == REPLACE);
    if (!direct) fv__piece_put(r->out, &whole, k.probe);
    return FV_OK;
}

/* All at once. */
static void slab(const fv_need *n, int64_t *chunk) { memcpy(chunk, n->out->image.shape, 4 * sizeof *chunk); }

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_probe) = {
    .name = "ptycho_probe",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "the probe that fits exit waves best: a step of ptycho",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_probe),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .doc =
        "(sum of conj(object) wave + g probe) / (sum of |object|^2 + g), g from damping, with the sums of all classes of shifts "
        "brought together; and the probe shifted for each class.",
    .citation = "Thibault et al., Probe retrieval in ptychographic coherent diffractive imaging, Ultramicroscopy 109, 2009",
    .example =
        "scan = [0, 0, 0, 0, 1, 4, 0, 0, 2, 8, 3, 0]\n"
        "a = ptycho_frames(phantom(\"noise\", [3, 16, 16]) * 100, scan, [0, 0])\n"
        "p = ones([1, 16, 2, 16], \"float32\")\n"
        "o = ones([24, 2, 24], \"float32\")\n"
        "write(ptycho_probe(p, ptycho_overlap(ptycho_waves(a, o, p, scan, [0, 0]), o, p, scan, [0, 0]), [0, 0]), \"probe.npy\")",
    .see = "ptycho ptycho_overlap ptycho_object",
};
