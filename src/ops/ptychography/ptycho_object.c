/* ptycho_object: the object that fits the waves best, from the sums of all blocks in their order. */
#include "ops/ptychography/exit_waves.h"

typedef struct {
    fv_wave_scan at;
    double       damping, smoothness;
    fv_choice    kind;
} ptycho_object;
enum { OBJECT, SUMS, FACTS, PROBE };
enum { REPLACE, DIRECTION };

static const fv_param params[] = {
    FV_WAVE_SCAN_PARAMS,
    FV_PARAM(ptycho_object, damping, .def = "0.02", .min = 0, .max = 10,
             .doc = "what is added to the sums of |probe|^2, as a part of the largest sum that a block has"),
    FV_PARAM(ptycho_object, smoothness, .def = "0", .min = 0, .max = 10,
             .doc = "how much pixels are drawn to their four neighbours, as a part of the same"),
    FV_PARAM(ptycho_object, kind, .def = "replace", .choices = "replace|direction",
             .doc = "replace: the object; direction: in which to change it, from error waves"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "object", FV_KIND_IMAGE, .doc = "object before" },
    { "sums", FV_KIND_IMAGE, .doc = "what ptycho_waves or ptycho_sums gives" },
    { "facts", FV_KIND_IMAGE, .doc = "the same again" },
    { "probe", FV_KIND_IMAGE, .doc = "what ptycho_probe gives" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_waves w;
    FV_TRY(fv__waves_again(i->params, i->in[SUMS], true, i->in[PROBE], &w, error));
    return fv__waves_fit(&w, i->in[OBJECT], error);
}

/* Blocks whose boxes have rows of this region, and which rows of their sums these are in. */
static void find_blocks(const fv_waves *w, const fv_region *region, fv_region *sums) {
    int64_t first = w->blocks, end = 0, top = w->sum_rows, below = 0;
    for (int64_t b = 0; b < w->blocks; b++) {
        fv_wave_box box = fv__waves_box(w, b);
        int64_t     from = FV_MAX(box.y, region->start[0]), to = FV_MIN(box.y + box.height, region->start[0] + region->size[0]);
        if (from >= to) continue;
        first = FV_MIN(first, b);
        end = b + 1;
        top = FV_MIN(top, fv__wave_sums_at(w, from - box.y, 0) / w->row);
        below = FV_MAX(below, (fv__wave_sums_at(w, to - box.y, 0) + w->row - 1) / w->row);
    }
    if (first >= end) first = 0, end = 1, top = 0, below = 1;
    sums->start[0] = first;
    sums->size[0] = end - first;
    sums->start[1] += top;
    sums->size[1] = below - top;
}

static fv_region with_neighbours(const fv_need *n) {
    fv_region region = n->region;
    for (int d = 0; d < 3; d += 2) {
        int64_t end = FV_MIN(region.start[d] + region.size[d] + 1, n->out->image.shape[d]);
        region.start[d] = FV_MAX(0, region.start[d] - 1);
        region.size[d] = end - region.start[d];
    }
    return region;
}

static void need(const fv_need *n, fv_region *in) {
    fv_waves w;
    int64_t  rows = n->in[SUMS]->image.shape[1];
    fv__waves_again(n->params, n->in[SUMS], true, n->in[PROBE], &w, NULL);
    in[SUMS] = in[FACTS] = fv__region_whole(&n->in[SUMS]->image);
    in[SUMS].start[1] = rows - w.sum_rows;
    find_blocks(&w, &n->region, &in[SUMS]);
    in[FACTS].start[1] = rows - 1;
    in[FACTS].size[1] = 1;
    in[FACTS].start[2] = w.row - 3;
    in[FACTS].size[2] = 3;
    in[PROBE] = (fv_region){ .ndim = 4, .size = { 1, 1, 1, 1 } }; /* its type alone matters */
    if (((const ptycho_object *)n->params)->smoothness > 0) in[OBJECT] = with_neighbours(n);
}

static size_t scratch(const fv_need *n) { return (size_t)n->region.size[2] * 3 * sizeof(float); }

/* Adds `count` numbers of a block's sums, from number `at` on; they may go on in the next row of the image. */
static void add_numbers(const fv_waves *w, const fv_wave_plane *sums, int64_t at, int64_t count, float *to) {
    while (count > 0) {
        const float *from = sums->data + at / w->row * sums->row + at % w->row;
        int64_t      n = FV_MIN(count, w->row - at % w->row);
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) to[x] += from[x];
        at += n;
        to += n;
        count -= n;
    }
}

static void add_row(const fv_waves *w, const fv_run *r, int64_t y, int64_t x0, int64_t n, float *to) {
    const fv_region *blocks = &r->in[SUMS]->region;
    int64_t          before = (blocks->start[1] - (r->need.in[SUMS]->image.shape[1] - w->sum_rows)) * w->row; /* not needed */
    for (int64_t b = blocks->start[0]; b < blocks->start[0] + blocks->size[0]; b++) {
        fv_wave_box box = fv__waves_box(w, b);
        int64_t     first = FV_MAX(box.x, x0), end = FV_MIN(box.x + box.width, x0 + n);
        if (y < box.y || y >= box.y + box.height || first >= end) continue;
        fv_wave_plane sums = fv__wave_plane(r, SUMS, b);
        for (int part = 0; part < 3; part++)
            add_numbers(w, &sums, fv__wave_sums_at(w, y - box.y, part * w->box_width + first - box.x) - before, end - first,
                        to + part * n + first - x0);
    }
}

static float find_most(const fv_run *r) {
    float most = 0;
    for (int64_t b = 0; b < r->in[FACTS]->region.size[0]; b++) most = FV_MAX(most, *fv__wave_plane(r, FACTS, b).data);
    return most;
}

/* pull * (sum of the four neighbours - less * the pixel itself), added to a row of sums; beyond the object a pixel goes on. */
static void add_neighbours(const fv_run *r, const int64_t at[3], float pull, float less, float *restrict to) {
    const int64_t *shape = r->need.out->image.shape;
    const float   *row[3];
    for (int d = 0; d < 3; d++) {
        int64_t y[3] = { FV_MAX(0, FV_MIN(at[0] + d - 1, shape[0] - 1)), at[1], at[2] };
        row[d] = fv__block_at(r->in[OBJECT], y);
    }
    int64_t n = r->out->region.size[2], first = at[2] > 0 ? -1 : 0, last = at[2] + n < shape[2] ? n : n - 1;
    for (int64_t x = 0; x < n; x++) {
        float sides = row[1][FV_MAX(first, x - 1)] + row[1][FV_MIN(last, x + 1)];
        to[x] += pull * (row[0][x] + row[2][x] + sides - less * row[1][x]);
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    const ptycho_object *p = r->need.params;
    const fv_block      *out = r->out, *object = r->in[OBJECT];
    int64_t              n = out->region.size[2];
    float               *sums = r->scratch, most = find_most(r), damping = FV_MAX((float)p->damping * most, 1e-30f);
    float                old = p->kind.index == REPLACE, pull = (float)p->smoothness * most, added = damping + 4 * pull;
    fv_waves             w;
    FV_TRY(fv__waves_again(r->need.params, r->need.in[SUMS], true, r->need.in[PROBE], &w, error));
    for (int64_t y = 0; y < out->region.size[0]; y++) {
        memset(sums, 0, (size_t)(3 * n) * sizeof *sums);
        add_row(&w, r, out->region.start[0] + y, out->region.start[2], n, sums);
        for (int64_t part = 0; part < out->region.size[1]; part++) {
            int64_t      at[3] = { out->region.start[0] + y, out->region.start[1] + part, out->region.start[2] };
            float       *num = sums + at[1] * n;
            const float *den = sums + 2 * n, *before = fv__block_at(object, at);
            if (pull > 0) add_neighbours(r, at, pull, old != 0 ? 0 : 4, num);
            float *to = (float *)out->data + y * out->stride[0] + part * out->stride[1];
#pragma GCC ivdep
            for (int64_t x = 0; x < n; x++) to[x] = (num[x] + old * damping * before[x]) / (den[x] + added);
        }
    }
    return FV_OK;
}

/* In four pieces, but not in small ones: each reads the sums of all blocks that it meets, and whoever needs a part of the object
 * puts pieces together again. */
static void slab(const fv_need *n, int64_t *chunk) {
    enum { LEAST_PIXELS = 1 << 17 };
    memcpy(chunk, n->out->image.shape, 3 * sizeof *chunk);
    chunk[0] = FV_MIN(chunk[0], FV_MAX((chunk[0] + 3) / 4, LEAST_PIXELS / chunk[2] + 1));
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_object) = {
    .name = "ptycho_object",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "the object that fits exit waves best: a step of ptycho",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_object),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .doc = "(sum of conj(probe) wave + g object) / (sum of |probe|^2 + g), g from damping, so that it stays as it is where no "
           "frame was taken. With smoothness r, r times the sum of the four neighbours before is added above and 4 r below: a "
           "step of Jacobi towards the least sum that also has r |slopes|^2. The sums of blocks are added in their order.",
    .citation = "Thibault et al., Probe retrieval in ptychographic coherent diffractive imaging, Ultramicroscopy 109, 2009; "
                "slopes: Thibault and Guizar-Sicairos, Maximum-likelihood refinement for coherent diffractive imaging, New J. "
                "Phys. 14, 2012",
    .example = "scan = [0, 0, 0, 0, 1, 4, 0, 0, 2, 8, 3, 0]\n"
               "a = ptycho_frames(phantom(\"noise\", [3, 16, 16]) * 100, scan, [0, 0])\n"
               "p = ones([1, 16, 2, 16], \"float32\")\n"
               "o = ones([24, 2, 24], \"float32\")\n"
               "w = ptycho_waves(a, o, p, scan, [0, 0])\n"
               "write(ptycho_object(o, w, w, p, scan, [0, 0]), \"object.npy\")",
    .see = "ptycho ptycho_waves ptycho_probe",
};
