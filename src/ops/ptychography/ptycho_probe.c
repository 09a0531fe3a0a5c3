/* ptycho_probe: the probe that fits the waves best, from the sums of ptycho_overlap, and its shifted copies.
 *
 * Written as a change of the probe before: what the sums say beyond it is added. So a probe that explains the waves stays exactly
 * as it is.
 */
#include "op/scratch.h"
#include "ops/ptychography/exit_waves.h"
#include "ops/ptychography/probe_classes.h"
#include "ops/ptychography/probe_sums.h"
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
    { "overlap", FV_KIND_IMAGE, .doc = "what ptycho_overlap or ptycho_errors gives" },
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
    bool    overlap = s->ndim == 4 && s->shape[1] == a->shape[1] && s->shape[3] == a->shape[3] && s->shape[2] == 2 * modes + 1;
    bool    errors = s->ndim == 3 && s->shape[2] == 2 * a->shape[3] && s->shape[1] > fv__probe_sum_rows(a->shape[1], modes);
    if (s->dtype != FV_FLOAT32 || (!overlap && !errors))
        return fv_fail(error, FV_ERROR_USAGE, "overlap is not what ptycho_overlap or ptycho_errors gives for this probe");
    return FV_OK;
}

/* Of the probe before only the class that is not shifted. */
static void need(const fv_need *n, fv_region *in) {
    for (int k = 0; k < 2; k++) in[k] = fv__region_whole(&n->in[k]->image);
    in[PROBE].size[0] = modes_of(n);
    if (in[OVERLAP].ndim == 3) in[OVERLAP].size[1] = fv__probe_sum_rows(n->in[PROBE]->image.shape[1], modes_of(n));
}

typedef struct {
    fv_probe_classes c;
    float           *den, *change; /* sums over all blocks */
    float           *probe;        /* the new one, not shifted: rows of re and im */
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    const fv_image_type *a = &n->in[PROBE]->image;
    fv_scratch           pieces = { memory };
    int64_t              plane = a->shape[1] * a->shape[3] * (int64_t)sizeof(float);
    k->probe = fv__scratch_take(&pieces, 2 * plane);
    k->den = fv__scratch_take(&pieces, plane);
    k->change = fv__scratch_take(&pieces, a->shape[1] * fv__plane_stride(a->shape[3]) * (int64_t)sizeof(float));
    return pieces.used + fv__probe_classes_lay_out(&k->c, a->shape[1], a->shape[3], &((const ptycho_probe *)n->params)->shifts,
                                                   memory ? (char *)memory + pieces.used : NULL);
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

/* Adds `lines` lines of each row of all blocks, in their order. */
static void add_blocks(const work *k, const fv_run *r, int64_t line, int64_t lines, float *sum, int64_t stride) {
    int64_t n = k->c.width, modes = modes_of(&r->need);
    for (int64_t y = 0; y < k->c.height; y++) memset(sum + y * stride, 0, (size_t)(lines * n) * sizeof *sum);
    for (int64_t b = 0; b < r->in[OVERLAP]->region.size[0]; b++)
        for (int64_t y = 0; y < k->c.height; y++)
            for (int64_t l = 0; l < lines; l++) {
                const float *row = fv__probe_sum_line(r->in[OVERLAP], b, modes, y, line + l);
                float *restrict to = sum + y * stride + l * n;
#pragma GCC ivdep
                for (int64_t x = 0; x < n; x++) to[x] += row[x];
            }
}

/* The new probe of a mode, not shifted. */
static void update_mode(work *k, const fv_run *r, int64_t mode, float added, float old) {
    const fv_block *probe = r->in[PROBE];
    int64_t         n = k->c.width;
    float           whole = 1;
    add_blocks(k, r, 2 * mode, 2, k->change, k->c.stride);
    if (k->c.shifts->count > 2) {
        FV_ISA_NAME(fv__plane_fourier)(&k->c.fourier, k->change, k->c.stride, true);
        whole = 1 / (float)(k->c.height * n);
    }
    for (int64_t y = 0; y < k->c.height; y++) {
        const float *p = (float *)probe->data + mode * probe->stride[0] + y * probe->stride[1], *d = k->change + y * k->c.stride;
        for (int part = 0; part < 2; part++)
#pragma GCC ivdep
            for (int64_t x = 0; x < n; x++)
                k->probe[(2 * y + part) * n + x] =
                    old * p[part * probe->stride[2] + x] + d[part * n + x] * whole / (k->den[y * n + x] + added);
    }
}

/* The part of a plane that is wanted; from: rows of re and im, a stride apart. */
static void put_plane(const fv_block *out, int64_t plane, const float *from, int64_t stride, int64_t n) {
    for (int64_t y = 0; y < out->region.size[1]; y++)
        for (int64_t part = 0; part < out->region.size[2]; part++) {
            int64_t at[4] = { plane, out->region.start[1] + y, out->region.start[2] + part, out->region.start[3] };
            memcpy(fv__block_at(out, at), from + at[1] * stride + at[2] * n + at[3], (size_t)out->region.size[3] * sizeof *from);
        }
}

/* Its planes of the region, shifted: where they belong if they are wanted whole. */
static void put_classes(work *k, const fv_run *r, int64_t mode, int64_t modes) {
    const fv_block *out = r->out;
    int64_t         n = k->c.width, first = out->region.start[0], end = first + out->region.size[0];
    bool            open = false, direct = fv__piece_direct(out, &r->need.out->image, 1);
    if (mode >= first && mode < end) put_plane(out, mode, k->probe, 2 * n, n);
    for (int64_t c = fv__probe_classes_next(&k->c, 0); c; c = fv__probe_classes_next(&k->c, c)) {
        int64_t plane = c * modes + mode;
        if (plane < first || plane >= end) continue;
        float  *to = direct ? (float *)out->data + (plane - first) * out->stride[0] : k->c.plane;
        int64_t stride = direct ? 2 * n : k->c.stride;
        if (!open) fv__probe_classes_open(&k->c, k->probe);
        open = true;
        fv__probe_classes_shift_to(&k->c, k->c.shifts->value + 2 * c, to, stride);
        if (!direct) put_plane(out, plane, to, stride, n);
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    const ptycho_probe *p = r->need.params;
    int64_t             modes = modes_of(&r->need);
    work                k;
    (void)error;
    lay_out(&r->need, &k, r->scratch);
    add_blocks(&k, r, 2 * modes, 1, k.den, k.c.width);
    float added = FV_MAX((float)p->damping * fv__lanes_most(k.den, k.c.height * k.c.width), 1e-30f);
    for (int64_t m = 0; m < modes; m++) {
        update_mode(&k, r, m, added, p->kind.index == REPLACE);
        put_classes(&k, r, m, modes);
    }
    return FV_OK;
}

/* In one: whoever needs it needs all classes, and would put pieces together again. */
static void slab(const fv_need *n, int64_t *chunk) { memcpy(chunk, n->out->image.shape, 4 * sizeof *chunk); }

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_probe) = {
    .name = "ptycho_probe",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "the probe that fits exit waves best: a step of ptycho",
    .version = 2,
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
