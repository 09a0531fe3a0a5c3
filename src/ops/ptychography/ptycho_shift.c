/* ptycho_shift: a probe shifted for each class of frames. */
#include "op/scratch.h"
#include "ops/ptychography/probe_classes.h"
#include "ops/ptychography/whole_pieces.h"

typedef struct {
    fv_list shifts;
} ptycho_shift;

static const fv_param params[] = {
    FV_PARAM(ptycho_shift, shifts, .doc = "two numbers of each class: its shift in rows and columns; the first class has none"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "probe", FV_KIND_IMAGE, .doc = "probe, not shifted: mode, y, part, x" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const ptycho_shift  *p = i->params;
    const fv_image_type *a = &i->in[0]->image;
    if (a->ndim != 4 || a->dtype != FV_FLOAT32 || a->shape[2] != 2)
        return fv_fail(error, FV_ERROR_USAGE, "probe must be float32: mode, y, part, x");
    if (p->shifts.count < 2 || p->shifts.count % 2 || p->shifts.value[0] != 0 || p->shifts.value[1] != 0)
        return fv_fail(error, FV_ERROR_USAGE, "shifts must have two numbers for each class, and the first class no shift");
    for (int d = 1; d < 4; d += 2)
        if (!FV_ISA_NAME(fv__plane_fourier_able)(a->shape[d]))
            return fv_fail(error, FV_ERROR_USAGE,
                           "the probe has %lld x %lld pixels; both sides must be products of 2, 3, 5 and 7",
                           (long long)a->shape[1], (long long)a->shape[3]);
    int64_t shape[] = { p->shifts.count / 2 * a->shape[0], a->shape[1], 2, a->shape[3] };
    fv_image_type_init(&i->out->image, FV_FLOAT32, 4, shape);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) { in[0] = fv__region_whole(&n->in[0]->image); }

typedef struct {
    fv_probe_classes c;
    float           *room; /* where the result is made if only a part of it is wanted */
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    fv_scratch pieces = { memory };
    k->room = fv__scratch_take(&pieces, fv__piece_room(n, 0));
    return pieces.used + fv__probe_classes_lay_out(&k->c, n->out->image.shape[1], n->out->image.shape[3],
                                                   &((const ptycho_shift *)n->params)->shifts,
                                                   memory ? (char *)memory + pieces.used : NULL);
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

static fv_status run(fv_run *r, fv_error *error) {
    const int64_t *shape = r->need.in[0]->image.shape;
    int64_t        modes = shape[0], plane = shape[1] * 2 * shape[3];
    fv_region      whole = fv__region_whole(&r->need.out->image);
    fv_block       first;
    work           k;
    (void)error;
    lay_out(&r->need, &k, r->scratch);
    bool   direct = fv__piece_direct(r->out, &r->need.out->image, 0);
    float *planes = direct ? r->out->data : k.room;
    fv__block_init(&first, FV_FLOAT32, &r->in[0]->region, planes);
    fv__block_copy(&first, r->in[0]);
    for (int64_t m = 0; m < modes; m++) fv__probe_classes_fill(&k.c, planes + m * plane, modes * plane);
    if (!direct) fv__piece_put(r->out, &whole, k.room);
    return FV_OK;
}

/* In one: whoever needs it needs all classes. */
static void slab(const fv_need *n, int64_t *chunk) { memcpy(chunk, n->out->image.shape, 4 * sizeof *chunk); }

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_shift) = {
    .name = "ptycho_shift",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "a probe shifted for each class of frames: a step of ptycho",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_shift),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .doc = "The modes of the first class as they are, then those of each other class, shifted by parts of a pixel.",
    .example = "write(ptycho_shift(ones([1, 16, 2, 16], \"float32\"), [0, 0, 0.5, 0.25]), \"probes.npy\")",
    .see = "ptycho ptycho_start ptycho_probe",
};
