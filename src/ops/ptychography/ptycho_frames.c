/* ptycho_frames: measured frames as the amplitudes that a reconstruction compares its waves with. */
#include "op/kernels.h"
#include "ops/ptychography/detector_pixel.h"
#include "ops/ptychography/exit_waves.h"

typedef struct {
    fv_wave_scan at;
    int64_t      orientation;
    bool         near;
} ptycho_frames;
enum { FRAMES, MASK };

static const fv_param params[] = {
    FV_WAVE_SCAN_PARAMS,
    FV_PARAM(ptycho_frames, orientation, .def = "0", .min = 0, .max = 7, .doc = FV_DETECTOR_ORIENTATION),
    FV_PARAM(ptycho_frames, near, .def = "false", .doc = "whether the detector is near by and sees places, not frequencies"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "frames", FV_KIND_IMAGE, .doc = "counts of each frame, zero frequency in the middle; axes frame y x" },
    { "mask", FV_KIND_IMAGE, .optional = true, .doc = "pixels of the detector that measure; 0: one that does not" },
    FV_INPUT_END,
};

static fv_status find(const fv_need *n, fv_waves *w, fv_error *error) {
    const fv_image_type *f = &n->in[FRAMES]->image;
    return fv__waves_find(n->params, f->shape[1], f->shape[2], 1, w, error);
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const ptycho_frames *p = i->params;
    const fv_image_type *f = &i->in[FRAMES]->image, *m = &i->in[MASK]->image;
    fv_waves             w;
    if (f->ndim != 3 || fv_dtype_is_complex(f->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "frames must be real and have three axes: frame, y and x");
    if (i->in[MASK]->kind == FV_KIND_IMAGE && (m->ndim != 2 || m->shape[0] != f->shape[1] || m->shape[1] != f->shape[2]))
        return fv_fail(error, FV_ERROR_USAGE, "mask must have the %lld x %lld pixels of a frame", (long long)f->shape[1],
                       (long long)f->shape[2]);
    FV_TRY(fv__waves_find(&p->at, f->shape[1], f->shape[2], 1, &w, error));
    for (int64_t k = 0; k < w.frames; k++)
        if (fv__wave_frame(&w, k)[FV_SCAN_FRAME] >= (double)f->shape[0])
            return fv_fail(error, FV_ERROR_USAGE, "scan names frame %g; there are %lld", fv__wave_frame(&w, k)[FV_SCAN_FRAME],
                           (long long)f->shape[0]);
    if (p->orientation & 4 && w.height != w.width)
        return fv_fail(error, FV_ERROR_USAGE, "orientation = %lld exchanges rows and columns of frames that are not square",
                       (long long)p->orientation);
    int64_t shape[] = { w.blocks, w.block * w.height, w.width };
    fv_image_type_init(&i->out->image, FV_FLOAT32, 3, shape);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    fv_waves w;
    double   first = INT32_MAX, last = 0;
    find(n, &w, NULL);
    in[FRAMES] = fv__region_whole(&n->in[FRAMES]->image);
    if (n->in[MASK]->kind == FV_KIND_IMAGE) in[MASK] = fv__region_whole(&n->in[MASK]->image);
    int64_t top = n->region.start[1] / w.height, below = (n->region.start[1] + n->region.size[1] - 1) / w.height;
    for (int64_t b = n->region.start[0]; b < n->region.start[0] + n->region.size[0]; b++)
        for (int64_t f = b * w.block + top; f <= b * w.block + below && f < w.frames; f++) {
            first = FV_MIN(first, fv__wave_frame(&w, f)[FV_SCAN_FRAME]);
            last = FV_MAX(last, fv__wave_frame(&w, f)[FV_SCAN_FRAME]);
        }
    if (first > last) first = last; /* no frame at all: the end of the last block */
    in[FRAMES].start[0] = (int64_t)first;
    in[FRAMES].size[0] = (int64_t)(last - first) + 1;
}

static size_t scratch(const fv_need *n) { return (size_t)(n->in[FRAMES]->image.shape[2] * 3) * sizeof(float); }

/* `count` pixels of a frame as numbers. */
static void load(const fv_run *r, int64_t frame, const int64_t pixel[2], int64_t count, float *row, float *good) {
    const fv_block *frames = r->in[FRAMES], *mask = r->in[MASK];
    int64_t         at[3] = { frame, pixel[0], pixel[1] };
    fv__kernels_current()->convert(row, FV_FLOAT32, fv__block_at(frames, at), frames->dtype, count);
    for (int64_t x = 0; x < count; x++) good[x] = 1;
    if (mask) fv__kernels_current()->convert(good, FV_FLOAT32, fv__block_at(mask, pixel), mask->dtype, count);
}

/* One row of one frame; the zero frequency moves to the corner. */
static void fill_row(const fv_run *r, const fv_waves *w, int64_t frame, int64_t y, float *to) {
    const ptycho_frames *p = r->need.params;
    fv_detector          detector = { w->height, w->width, p->orientation, p->near };
    int64_t              orientation = p->orientation, pixel[2];
    float               *row = r->scratch, *good = row + w->width, scale = (float)(w->height * w->width);
    fv__detector_pixel(&detector, y, 0, pixel);
    pixel[1] = 0;
    if (!(orientation & 4)) load(r, frame, pixel, w->width, row, good);
    for (int64_t x = 0; x < w->width; x++) {
        fv__detector_pixel(&detector, y, x, pixel);
        int64_t k = orientation & 4 ? 0 : pixel[1];
        if (orientation & 4) load(r, frame, pixel, 1, row, good);
        to[x] = row[k] >= 0 && row[k] < INFINITY && good[k] != 0 ? sqrtf(row[k] * scale) : -1;
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *out = r->out;
    fv_waves        w;
    FV_TRY(find(&r->need, &w, error));
    for (int64_t b = 0; b < out->region.size[0]; b++)
        for (int64_t y = 0; y < out->region.size[1]; y++) {
            int64_t line = out->region.start[1] + y;
            int64_t f = (out->region.start[0] + b) * w.block + line / w.height;
            float  *row = (float *)r->scratch + 2 * w.width;
            if (f < w.frames)
                fill_row(r, &w, (int64_t)fv__wave_frame(&w, f)[FV_SCAN_FRAME], line % w.height, row);
            else
                for (int64_t x = 0; x < w.width; x++) row[x] = -1;
            memcpy((float *)out->data + b * out->stride[0] + y * out->stride[1], row + out->region.start[2],
                   (size_t)out->region.size[2] * sizeof *row);
        }
    return FV_OK;
}

/* Frame by frame: neighbours in space may lie anywhere in the file, and all that lies between them would be read. */
static void slab(const fv_need *n, int64_t *chunk) {
    memcpy(chunk, n->out->image.shape, 3 * sizeof *chunk);
    chunk[0] = 1;
    chunk[1] = n->in[FRAMES]->image.shape[1];
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_frames) = {
    .name = "ptycho_frames",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "measured frames as sorted amplitudes: a step of ptycho",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_frames),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .doc =
        "Roots of the counts times the root of the number of pixels, in blocks of frames sorted in space, zero frequency at "
        "the corner. Where the mask is 0, and where a count is negative or not finite, nothing was measured: -1. ptycho writes "
        "itself in this and other steps; you need it only to build a method of your own.",
    .example = "write(ptycho_frames(phantom(\"noise\", [3, 16, 16]) * 100, [0, 0, 0, 0, 1, 4, 0, 0, 2, 8, 3, 0], [0, 0]), "
               "\"amplitudes.npy\")",
    .see = "ptycho ptycho_waves",
};
