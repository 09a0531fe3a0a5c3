/* ptycho: object and probe from diffraction patterns, written as a pipeline of its steps.
 *
 * Every iteration is a few operators on images in the store, so that waves may be larger than memory, workers and ranks share the
 * work, and a killed run goes on with the iteration it was in. Frames are sorted and cut into blocks once, here; the order of all
 * sums follows from it.
 */
#include "ops/ptychography/ptycho_text.h"

enum { FRAMES, PROBE, OBJECT, MASK, BACKGROUND };
enum { MOST = 2000 };

static const fv_param params[] = {
    FV_PARAM(fv_ptycho, positions, .each = 2,
             .doc = "row and column of each frame's corner in the object, in pixels: y0, x0, y1, x1, ... (scan_positions or "
                    "read_positions)"),
    FV_PARAM(fv_ptycho, method, .def = "raar", .choices = "raar|dm|lsq|epie|rpie|mpie",
             .doc = "how waves are improved: see below"),
    FV_PARAM(fv_ptycho, iterations, .def = "100", .min = 1, .max = MOST, .doc = "how often all frames are used"),
    FV_PARAM(fv_ptycho, output, .def = "object", .choices = "object|probe|residuals|residual|positions|background",
             .doc = "what to give; calls that differ in nothing else share their work. residuals is a table, residual the last "
                    "of them; positions a table of where frames were found and how bright they are"),
    FV_PARAM(fv_ptycho, modes, .def = "1", .min = 1, .max = 16, .doc = "modes of the probe, for partly coherent light"),
    FV_PARAM(fv_ptycho, beta, .def = "0.5", .above = true, .max = 1,
             .doc = "of raar: how far waves are reflected in the last eighth of the iterations; 0.4 to 0.9"),
    FV_PARAM(fv_ptycho, beta_start, .def = "0.95", .above = true, .max = 1,
             .doc = "the same for the first five eighths, if it is more than beta; from there it sinks to beta"),
    FV_PARAM(fv_ptycho, polish, .def = "0", .min = 0, .max = MOST,
             .doc =
                 "of raar and dm: how many iterations at the end only give waves their measured amplitudes, without reflecting "
                 "them; 2 to 10 take noise out of fine details, and the residual rises"),
    FV_PARAM(fv_ptycho, rounds, .def = "2", .min = 1, .max = 20,
             .doc = "of raar and dm: how often object and probe are fitted in turn in an iteration"),
    FV_PARAM(fv_ptycho, group, .def = "64", .min = 1, .max = 1000000,
             .doc = "of lsq: how many frames are used at once; it is a part of the result's identity"),
    FV_PARAM(fv_ptycho, momentum, .def = "0.5", .min = 0, .max = 1,
             .doc = "of lsq: how much of the way of all iterations so far is gone once more after each; 0: nothing"),
    FV_PARAM(fv_ptycho, last_step, .def = "0.1", .above = true, .max = 1,
             .doc = "of lsq: which part of a step is gone in the last iteration; steps sink to it in the last quarter of them, "
                    "so that the noise of groups averages out; 1: whole steps"),
    FV_PARAM(fv_ptycho, probe_from, .def = "1", .min = 0, .max = MOST,
             .doc = "first iteration that changes the probe; 0: it stays as it is given"),
    FV_PARAM(fv_ptycho, object_damping, .def = "0", .min = 0, .max = 10,
             .doc = "how much of the object before is kept where there is little light, as a part of the largest sum of light of "
                    "a block; 0: 0.02, and with lsq 0.2, or 0.05 where positions are corrected"),
    FV_PARAM(fv_ptycho, probe_damping, .def = "0.3", .min = 0, .max = 10,
             .doc = "the same for the probe; below 0.1 object and probe may trade scale and diverge"),
    FV_PARAM(fv_ptycho, smoothness, .def = "0", .min = 0, .max = 10,
             .doc = "how much pixels of the object are drawn to their neighbours, as a part of the largest sum of light; 0.02 to "
                    "0.2 calm noise; 0: not at all"),
    FV_PARAM(fv_ptycho, amplitude_limits, .def = "", .min = 0, .max = 1e30,
             .doc = "least and most amplitude of the object, such as [0, 1]; left out: any"),
    FV_PARAM(fv_ptycho, phase_limits, .def = "", .min = -4, .max = 4, .unit = "rad",
             .doc = "least and most phase of the object, such as [-1.5, 0.1]; left out: any"),
    FV_PARAM(fv_ptycho, block, .def = "128", .min = 1, .max = FV_WAVES_LONGEST,
             .doc = "of epie, rpie and mpie: how many frames come one after the other; blocks are combined after each iteration. "
                    "It is a part of the result's identity"),
    FV_PARAM(fv_ptycho, subpixel, .def = "8", .min = 1, .max = FV_WAVES_PARTS,
             .doc =
                 "of raar, dm and lsq: positions are rounded to such a part of a pixel. More takes time and memory: there is a "
                 "shifted probe for each place between pixels that occurs"),
    FV_PARAM(fv_ptycho, alpha, .def = "0.2", .above = true, .max = 1,
             .doc = "of rpie and mpie: the part of the brightest spot in what the object's changes are divided by; 1 is epie"),
    FV_PARAM(fv_ptycho, positions_from, .def = "0", .min = 0, .max = MOST,
             .doc = "first iteration that moves frames to where they fit better; 0: positions are right"),
    FV_PARAM(fv_ptycho, reach, .def = "1", .above = true, .max = 10, .unit = "px",
             .doc = "how far a frame is moved at once when moving begins; it sinks to 0 until the last iteration"),
    FV_PARAM(fv_ptycho, light_from, .def = "0", .min = 0, .max = MOST,
             .doc = "first iteration that finds how bright each frame is; 0: all are alike"),
    FV_PARAM(fv_ptycho, background_from, .def = "0", .min = 0, .max = MOST,
             .doc = "first iteration that changes the background; 0: it stays as it is given"),
    FV_PARAM(fv_ptycho, near, .def = "0", .min = -1e9, .max = 1e9, .unit = "px^2",
             .doc = "a detector near by, as in diffract: wavelength times distance, by the area of a pixel; 0: far away"),
    FV_PARAM(fv_ptycho, orientation, .def = "0", .min = 0, .max = 7,
             .doc =
                 "how the detector is turned: 4: rows and columns of a frame change places; then 2: rows are flipped, 1: columns "
                 "are; added up. try_orientations finds it"),
    FV_PARAM(fv_ptycho, stop, .def = "0", .min = 0, .max = 1, .doc = "stop when the residual is at most this; 0: never"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "frames", FV_KIND_IMAGE, .doc = "counts, zero frequency in the middle; axes frame y x" },
    { "probe", FV_KIND_IMAGE, .optional = true,
      .doc = "probe to begin with, complex, y x or mode y x; left out: from the mean of the frames. Its scale does not matter" },
    { "object", FV_KIND_IMAGE, .optional = true,
      .doc = "object to begin with, complex, y x; left out: 1 everywhere. With it positions and the probe's scale are taken as "
             "they are" },
    { "mask", FV_KIND_IMAGE, .optional = true, .doc = "pixels of the detector that measure, y x; 0: one that does not" },
    { "background", FV_KIND_IMAGE, .optional = true,
      .doc = "counts that are not of the probe's light, the same in every frame, y x; left out: none, or from the mean of the "
             "frames if background_from says that it is to be found" },
    FV_INPUT_END,
};

/* Frames of a block. Blocks are tasks of about the same size: a multiple of four of them, so that two or four workers have the
 * same to do, and not more than fits into a part of a small memory. Of lsq, each group is cut into four. */
static int64_t block_of(const fv_ptycho *p, int64_t frames, const fv_image_type *f) {
    enum { PARTS = 4, LEAST = 16, MOST_BYTES = 1 << 25 };
    if (fv__ptycho_blocks(p)) return p->block;
    int64_t groups = fv__ptycho_groups(p, frames),
            each = FV_MAX(1, (frames + groups - 1) / groups); /* no positions: told later */
    int64_t blocks = PARTS * FV_MAX(1, (each + PARTS * FV_WAVES_BLOCK / 2) / (PARTS * FV_WAVES_BLOCK));
    blocks = FV_MIN(blocks, (each + LEAST - 1) / LEAST);
    double  bytes = f->ndim == 3 ? (double)p->modes * (double)f->shape[1] * (double)f->shape[2] * 2 * sizeof(float) : 1;
    int64_t fit = (int64_t)(MOST_BYTES / bytes);
    return FV_MIN(FV_WAVES_LONGEST, FV_MAX(1, FV_MIN((each + blocks - 1) / blocks, fit)));
}

/* Iterations from which on something is done, and what is asked for. */
static fv_status check_plan(const fv_infer *i, fv_error *error) {
    const fv_ptycho     *p = i->params;
    const fv_image_type *f = &i->in[FRAMES]->image, *b = &i->in[BACKGROUND]->image;
    const char          *names[] = { "positions_from", "light_from", "background_from" };
    int64_t              from[] = { p->positions_from, p->light_from, p->background_from };
    bool                 background = i->in[BACKGROUND]->kind == FV_KIND_IMAGE;
    for (int k = 0; k < 3; k++)
        if (from[k] > p->iterations)
            return fv_fail(error, FV_ERROR_USAGE, "%s is %lld, and there are %lld iterations", names[k], (long long)from[k],
                           (long long)p->iterations);
    if (p->output.index == FV_PTYCHO_POSITIONS && !p->positions_from && !p->light_from)
        return fv_fail(error, FV_ERROR_USAGE,
                       "output = \"positions\": nothing is found of frames unless positions_from or light_from says when");
    if (p->output.index == FV_PTYCHO_BACKGROUND && !background && !p->background_from)
        return fv_fail(error, FV_ERROR_USAGE, "output = \"background\": there is none; background_from says when to look for it");
    if (background && (b->ndim != 2 || fv_dtype_is_complex(b->dtype) || b->shape[0] != f->shape[1] || b->shape[1] != f->shape[2]))
        return fv_fail(error, FV_ERROR_USAGE, "background must be real and have the %lld x %lld pixels of a frame",
                       (long long)f->shape[1], (long long)f->shape[2]);
    if (p->near != 0 && i->in[PROBE]->kind != FV_KIND_IMAGE)
        return fv_fail(error, FV_ERROR_USAGE, "near = %g: a probe to begin with cannot be guessed from frames near by; give one",
                       p->near);
    return FV_OK;
}

static fv_status check(const fv_infer *i, int64_t frames, fv_error *error) {
    const fv_image_type *f = &i->in[FRAMES]->image;
    if (f->ndim != 3 || fv_dtype_is_complex(f->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "frames must be real and have three axes (frame, y, x); they have %d", f->ndim);
    if (frames != f->shape[0])
        return fv_fail(error, FV_ERROR_USAGE, "there are %lld frames and %lld positions", (long long)f->shape[0],
                       (long long)frames);
    if (frames < 2) return fv_fail(error, FV_ERROR_USAGE, "one frame is not enough: ptychography needs frames that overlap");
    for (int d = 1; d < 3; d++)
        if (!FV_ISA_NAME(fv__plane_fourier_able)(f->shape[d]))
            return fv_fail(
                error, FV_ERROR_USAGE,
                "frames have %lld x %lld pixels; both sides must be products of 2, 3, 5 and 7: cut them with crop_frames",
                (long long)f->shape[1], (long long)f->shape[2]);
    FV_TRY(check_plan(i, error));
    if (i->in[PROBE]->kind != FV_KIND_IMAGE) return FV_OK;
    const fv_image_type *p = &i->in[PROBE]->image;
    if (p->ndim < 2 || p->ndim > 3 || p->shape[p->ndim - 2] != f->shape[1] || p->shape[p->ndim - 1] != f->shape[2])
        return fv_fail(error, FV_ERROR_USAGE, "the probe must have the %lld x %lld pixels of a frame", (long long)f->shape[1],
                       (long long)f->shape[2]);
    return FV_OK;
}

/* Frames that do not overlap cannot be put together. The mean distance of neighbours, if they filled the scanned field. */
static fv_status check_overlap(const fv_image_type *f, int64_t frames, const int64_t extent[2], fv_error *error) {
    double area = ((double)extent[0] + (double)f->shape[1]) * ((double)extent[1] + (double)f->shape[2]);
    double covered = (double)frames * (double)f->shape[1] * (double)f->shape[2];
    if (covered >= 1.5 * area) return FV_OK;
    return fv_fail(
        error, FV_ERROR_USAGE,
        "%lld frames of %lld x %lld pixels on a field of %lld x %lld overlap too little; positions are in pixels of the "
        "object: are these of another unit?",
        (long long)frames, (long long)f->shape[1], (long long)f->shape[2], (long long)(extent[0] + f->shape[1]),
        (long long)(extent[1] + f->shape[2]));
}

/* Positions are those in the object that is given, or begin in its corner; frames that are moved have room around them. */
static fv_status place_frames(const fv_infer *i, fv_ptycho_text *t, const int64_t extent[2], fv_error *error) {
    const fv_image_type *o = &i->in[OBJECT]->image;
    double              *scan = (double *)(uintptr_t)t->at.scan.value;
    int64_t              margin = t->at.margin, by[2] = { margin, margin };
    for (int d = 0; d < 2; d++) t->size[d] = extent[d] + t->frame[d];
    for (int d = 0; d < 2 && t->object; d++) {
        by[d] = t->origin[d];
        if (o->ndim != 2 || t->origin[d] < 0 || t->origin[d] + t->size[d] > o->shape[d])
            return fv_fail(error, FV_ERROR_USAGE, "the object to begin with must be an image in which all frames lie");
        if (t->origin[d] < margin || t->origin[d] + t->size[d] + margin > o->shape[d])
            return fv_fail(error, FV_ERROR_USAGE,
                           "the object to begin with must have %lld pixels around all frames, to which these may be moved",
                           (long long)margin);
    }
    for (int64_t k = 0; k < t->at.scan.count; k += FV_SCAN_NUMBERS)
        for (int d = 0; d < 2; d++) scan[k + FV_SCAN_Y + d] += (double)by[d];
    for (int d = 0; d < 2; d++) {
        t->origin[d] -= by[d];
        t->size[d] += 2 * margin;
    }
    return FV_OK;
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const fv_ptycho     *p = i->params;
    const fv_image_type *f = &i->in[FRAMES]->image;
    fv_ptycho_text       t = { .p = p,
                               .text = text,
                               .axis = f->axis[0],
                               .probe = i->in[PROBE]->kind == FV_KIND_IMAGE,
                               .object = i->in[OBJECT]->kind == FV_KIND_IMAGE,
                               .mask = i->in[MASK]->kind == FV_KIND_IMAGE,
                               .background = i->in[BACKGROUND]->kind == FV_KIND_IMAGE };
    int64_t              extent[2];
    int64_t              told = p->positions.count / 2;
    fv_wave_cut          cut = { block_of(p, told, f), p->subpixel, !fv__ptycho_blocks(p), fv__ptycho_groups(p, told) };
    FV_TRY(fv__waves_sort(&p->positions, cut, i->arena, &t.at, t.origin, extent, error));
    int64_t frames = t.at.scan.count / FV_SCAN_NUMBERS;
    FV_TRY(check(i, frames, error));
    FV_TRY(check_overlap(f, frames, extent, error));
    memcpy(t.frame, f->shape + 1, sizeof t.frame);
    t.at.margin = fv__ptycho_moves(p) ? FV_PTYCHO_MARGIN : 0;
    FV_TRY(place_frames(i, &t, extent, error));
    fv__ptycho_write(&t);
    return FV_OK;
}

/* It is always written in its steps. */
static fv_status infer(fv_infer *i, fv_error *error) {
    (void)i;
    return fv_fail(error, FV_ERROR_INTERNAL, "ptycho was not written in its steps");
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)r;
    return fv_fail(error, FV_ERROR_INTERNAL, "ptycho was not written in its steps");
}
static const fv_pass passes[] = { { .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho) = {
    .name = "ptycho",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "reconstruct object and probe from diffraction patterns",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(fv_ptycho),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .part = 0.2,
    .unroll = unroll,
    .passes = passes,
    .doc =
        "raar: relaxed averaged alternating reflections, the choice for most scans; it needs memory (or disk) for the exit "
        "waves of all frames. Waves are reflected far at first and less at the end: beta near 0.5 is calmer with noise. dm: the "
        "difference map, raar "
        "with beta = 1. lsq: least squares of the amplitudes by preconditioned gradients, with exact steps for object and probe "
        "at once, group by group of frames; it keeps no exit waves. epie, rpie, mpie: frames one after the other inside of "
        "blocks; "
        "blocks begin with the same object and probe, and their changes are averaged, weighted by light, after each iteration. "
        "rpie takes larger steps where there is little light, mpie adds momentum (0.3 of a speed that keeps 0.7 of itself).\n"
        "Beside object and probe, all methods can find what else belongs to a frame. From iteration positions_from on, each "
        "frame "
        "is moved to where it fits better (in raar, dm and lsq one more pair of transforms). From light_from on, a frame may be "
        "brighter than others. background is light at the detector that is not of the probe; from background_from on it is "
        "changed by what the frames say. smoothness draws pixels of the object to their neighbours.\n"
        "Object and probe are complex64. Without an object to begin with, the first row and column of the result are those of "
        "the first frame. Positions between pixels are rounded to an eighth of a pixel, or to what subpixel says. Each iteration "
        "records its residual, "
        "sum |root of counts - amplitude| / sum of roots (of raar and dm for one frame in 16), which `fovea report` shows and "
        "output = \"residuals\" gives as a table. Sums over frames are made in an order that follows from their positions, so "
        "the same bits come out for any number of workers.",
    .citation =
        "Marchesini et al., SHARP: a distributed GPU-based ptychographic solver, J. Appl. Cryst. 49, 2016; Thibault et al., "
        "Ultramicroscopy 109, 2009; Odstrcil, Menzel and Guizar-Sicairos, Optics Express 26, 2018; "
        "Maiden and Rodenburg, Ultramicroscopy 109, 2009 (ePIE); Maiden, Johnson and Li, Optica 4, 2017 (rPIE, mPIE); Thibault "
        "and Menzel, Nature 494, 2013 (modes and background); "
        "Thibault and Guizar-Sicairos, New J. Phys. 14, 2012 (smoothness)",
    .example = "o = complex_image(ones([128, 128]), phantom(\"cells\", [128, 128]) / 255)\n"
               "at = scan_positions(\"fermat\", 64, 8)\n"
               "p = make_probe(64, radius = 16, defocus = 200, counts = 1e6)\n"
               "frames = diffract(o, p, at)\n"
               "write(phase(ptycho(frames, p, positions = at, iterations = 20)), \"phase.tif\")",
    .see = "diffract guess_probe make_probe phase amplitude try_orientations",
};
