/* ptycho: object and probe from diffraction patterns, written as a pipeline of its steps.
 *
 * Every iteration is a few operators on images in the store, so that waves may be larger than memory, workers and ranks share the
 * work, and a killed run goes on with the iteration it was in. Frames are sorted and cut into blocks once, here; the order of all
 * sums follows from it.
 */
#include "ops/ptychography/exit_waves.h"

typedef struct {
    fv_list   positions, amplitude_limits, phase_limits;
    fv_choice method, output;
    int64_t   iterations, rounds, modes, probe_from, group, block, subpixel, positions_from, orientation;
    double    beta, alpha, momentum, object_damping, probe_damping, reach, stop;
} ptycho;
enum { FRAMES, PROBE, OBJECT, MASK };
enum { RAAR, DM, LSQ, EPIE, RPIE, MPIE };
enum { GIVES_OBJECT, GIVES_PROBE, GIVES_RESIDUALS, GIVES_RESIDUAL, GIVES_POSITIONS };

enum { MOST = 2000 };

static const fv_param params[] = {
    FV_PARAM(ptycho, positions, .each = 2,
             .doc = "row and column of each frame's corner in the object, in pixels: y0, x0, y1, x1, ... (scan_positions or "
                    "read_positions)"),
    FV_PARAM(ptycho, method, .def = "raar", .choices = "raar|dm|lsq|epie|rpie|mpie", .doc = "how waves are improved: see below"),
    FV_PARAM(ptycho, iterations, .def = "100", .min = 1, .max = MOST, .doc = "how often all frames are used"),
    FV_PARAM(ptycho, output, .def = "object", .choices = "object|probe|residuals|residual|positions",
             .doc = "what to give; calls that differ in nothing else share their work. residuals is a table, residual the last "
                    "of them; positions a table of where frames were found"),
    FV_PARAM(ptycho, modes, .def = "1", .min = 1, .max = 16, .doc = "modes of the probe, for partly coherent light"),
    FV_PARAM(ptycho, beta, .def = "0.75", .above = true, .max = 1, .doc = "of raar: how far waves are reflected; 0.6 to 0.9"),
    FV_PARAM(ptycho, rounds, .def = "2", .min = 1, .max = 20,
             .doc = "of raar and dm: how often object and probe are fitted in turn in an iteration"),
    FV_PARAM(ptycho, group, .def = "64", .min = 1, .max = 1000000,
             .doc = "of lsq: how many frames are used at once; it is a part of the result's identity"),
    FV_PARAM(ptycho, momentum, .def = "0.5", .min = 0, .max = 1,
             .doc = "of lsq: how much of the way of all iterations so far is gone once more after each; 0: nothing"),
    FV_PARAM(ptycho, probe_from, .def = "1", .min = 0, .max = MOST,
             .doc = "first iteration that changes the probe; 0: it stays as it is given"),
    FV_PARAM(ptycho, object_damping, .def = "0.02", .min = 0, .max = 10,
             .doc = "how much of the object before is kept where there is little light, as a part of the largest sum of light"),
    FV_PARAM(ptycho, probe_damping, .def = "0.3", .min = 0, .max = 10,
             .doc = "the same for the probe; below 0.1 object and probe may trade scale and diverge"),
    FV_PARAM(ptycho, amplitude_limits, .def = "", .min = 0, .max = 1e30,
             .doc = "least and most amplitude of the object, such as [0, 1]; left out: any"),
    FV_PARAM(ptycho, phase_limits, .def = "", .min = -4, .max = 4, .unit = "rad",
             .doc = "least and most phase of the object, such as [-1.5, 0.1]; left out: any"),
    FV_PARAM(ptycho, block, .def = "128", .min = 1, .max = FV_WAVES_LONGEST,
             .doc = "of epie, rpie and mpie: how many frames come one after the other; blocks are combined after each iteration. "
                    "It is a part of the result's identity"),
    FV_PARAM(ptycho, subpixel, .def = "8", .min = 1, .max = FV_WAVES_PARTS,
             .doc =
                 "of raar, dm and lsq: positions are rounded to such a part of a pixel. More takes time and memory: there is a "
                 "shifted probe for each place between pixels that occurs"),
    FV_PARAM(ptycho, alpha, .def = "0.2", .above = true, .max = 1,
             .doc = "of rpie and mpie: the part of the brightest spot in what the object's changes are divided by; 1 is epie"),
    FV_PARAM(ptycho, positions_from, .def = "0", .min = 0, .max = MOST,
             .doc = "of epie, rpie and mpie: first iteration that moves frames to where they fit better; 0: positions are right"),
    FV_PARAM(ptycho, reach, .def = "1", .above = true, .max = 10, .unit = "px",
             .doc = "how far a frame is moved at once when moving begins; it sinks to 0 until the last iteration"),
    FV_PARAM(ptycho, orientation, .def = "0", .min = 0, .max = 7,
             .doc =
                 "how the detector is turned: 4: rows and columns of a frame change places; then 2: rows are flipped, 1: columns "
                 "are; added up. try_orientations finds it"),
    FV_PARAM(ptycho, stop, .def = "0", .min = 0, .max = 1, .doc = "stop when the residual is at most this; 0: never"),
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
    FV_INPUT_END,
};

/* ---------------------------------------------------------------- text */

typedef struct {
    const ptycho *p;
    fv_bytes     *text;
    int64_t       frames, groups;
    int64_t       origin[2]; /* position of the object's corner */
} writing;

static bool is_pie(const ptycho *p) { return p->method.index >= EPIE; }

static int64_t groups_of(const ptycho *p, int64_t frames) {
    return p->method.index == LSQ ? FV_MAX(1, (frames + p->group - 1) / p->group) : 1;
}

/* Frames of a block. Blocks are tasks of about the same size: a multiple of four of them, so that two or four workers have the
 * same to do, and not more than fits into a part of a small memory. Of lsq, each group is cut into four. */
static int64_t block_of(const ptycho *p, int64_t frames, const fv_image_type *f) {
    enum { PARTS = 4, LEAST = 16, MOST_BYTES = 1 << 25 };
    if (is_pie(p)) return p->block;
    int64_t each = FV_MAX(1, (frames + groups_of(p, frames) - 1) / groups_of(p, frames)); /* no positions are told of later */
    int64_t blocks = PARTS * FV_MAX(1, (each + PARTS * FV_WAVES_BLOCK / 2) / (PARTS * FV_WAVES_BLOCK));
    blocks = FV_MIN(blocks, (each + LEAST - 1) / LEAST);
    double  bytes = f->ndim == 3 ? (double)p->modes * (double)f->shape[1] * (double)f->shape[2] * 2 * sizeof(float) : 1;
    int64_t fit = (int64_t)(MOST_BYTES / bytes);
    return FV_MIN(FV_WAVES_LONGEST, FV_MAX(1, FV_MIN((each + blocks - 1) / blocks, fit)));
}

static void write_list(fv_bytes *text, const char *name, const fv_list *list) {
    fv__bytes_printf(text, "%s = [", name);
    for (int64_t i = 0; i < list->count; i++) fv__bytes_printf(text, "%s%.9g", i ? ", " : "", list->value[i]);
    fv__bytes_printf(text, "]\n");
}

/* Frames of the block methods have one class; where each lies between pixels is told frame by frame. */
static void write_between(const writing *t, fv_wave_scan *at) {
    double *scan = (double *)(uintptr_t)at->scan.value;
    fv__bytes_printf(t->text, "u = [");
    for (int64_t k = 0; k < t->frames; k++) {
        double *frame = scan + FV_SCAN_NUMBERS * k;
        for (int a = 0; a < 2; a++)
            fv__bytes_printf(t->text, "%s%.9g", k || a ? ", " : "",
                             t->p->positions.value[2 * (int64_t)frame[FV_SCAN_FRAME] + a] - frame[FV_SCAN_Y + a] -
                                 (double)t->origin[a]);
        frame[FV_SCAN_CLASS] = 0;
    }
    fv__bytes_printf(t->text, "]\n");
    at->shifts.count = 2;
}

/* Which frames belong to a group, of lsq alone more than one: every n-th in the order of the sums, so that a group lies all over
 * the object. Amplitudes are made frame by frame, and kept in blocks. */
static void write_groups(const writing *t, const fv_list *scan, bool mask) {
    for (int64_t g = 0; g < t->groups; g++) {
        fv__bytes_printf(t->text, "s%lld=[", (long long)g);
        for (int64_t f = g; f < t->frames; f += t->groups)
            for (int k = 0; k < FV_SCAN_NUMBERS; k++)
                fv__bytes_printf(t->text, "%s%.9g", f == g && !k ? "" : ",", scan->value[FV_SCAN_NUMBERS * f + k]);
        fv__bytes_printf(t->text,
                         "]\na%lld=checkpoint(ptycho_frames(frames%s,scan=s%lld,shifts=h,block=size,orientation=%lld))\n",
                         (long long)g, mask ? ",mask=mask" : "", (long long)g, (long long)t->p->orientation);
    }
}

static void write_start(const writing *t, const fv_infer *i, const int64_t size[2]) {
    bool probe = i->in[PROBE]->kind == FV_KIND_IMAGE, object = i->in[OBJECT]->kind == FV_KIND_IMAGE;
    if (object)
        fv__bytes_printf(t->text, "o = checkpoint(split_complex(object))\n");
    else
        fv__bytes_printf(t->text, "o = checkpoint(split_complex(ones([%lld, %lld], \"float32\")))\n", (long long)size[0],
                         (long long)size[1]);
    if (probe)
        fv__bytes_printf(t->text, "first = probe\n");
    else
        fv__bytes_printf(t->text, "first = guess_probe(project(frames, \"%s\", \"mean\"))\n", i->in[FRAMES]->image.axis[0]);
    if (object && probe)
        fv__bytes_printf(t->text, "p = ptycho_start(first, shifts = h, modes = %lld)\n", (long long)t->p->modes);
    else {
        fv__bytes_printf(t->text, "power=(0");
        for (int64_t g = 0; g < t->groups; g++) fv__bytes_printf(t->text, "+sum(square(maximum(a%lld,0)))", (long long)g);
        fv__bytes_printf(t->text, ")/%.17g\np=ptycho_start(first,power,shifts=h,modes=%lld)\n",
                         (double)t->frames * (double)i->in[FRAMES]->image.shape[1] * (double)i->in[FRAMES]->image.shape[2],
                         (long long)t->p->modes);
    }
}

/* Whether to go on, by what waves leave over. */
static void write_stop(const writing *t, int64_t k) {
    if (!(t->p->stop > 0)) return;
    if (k == 1)
        fv__bytes_printf(t->text, "go = left > %.17g * all\n", t->p->stop);
    else
        fv__bytes_printf(t->text, "go = choose(go, left > %.17g * all, 0)\n", t->p->stop);
}

/* Of the waves w: what they leave over, for the record and to stop. */
static void write_residual(const writing *t, int64_t k) {
    fv__bytes_printf(t->text, "left = sum(w[:, -1, -2])\nall = sum(w[:, -1, -1])\n");
    write_stop(t, k);
}

static void write_pair(fv_bytes *text, const char *name, const fv_list *pair) {
    if (!pair->count) return;
    fv__bytes_printf(text, ", %s = [", name);
    for (int64_t i = 0; i < pair->count; i++) fv__bytes_printf(text, "%s%.17g", i ? ", " : "", pair->value[i]);
    fv__bytes_printf(text, "]");
}

/* The new object within its limits. */
static void write_limits(const writing *t) {
    const ptycho *p = t->p;
    if (!p->amplitude_limits.count && !p->phase_limits.count) return;
    fv__bytes_printf(t->text, "next = ptycho_limit(next");
    write_pair(t->text, "amplitude", &p->amplitude_limits);
    write_pair(t->text, "phase", &p->phase_limits);
    fv__bytes_printf(t->text, ")\n");
}

static void write_keep(const writing *t, int64_t k) {
    bool stops = t->p->stop > 0, groups = t->p->method.index == LSQ; /* whose o and p have changed already */
    write_limits(t);
    fv__bytes_printf(t->text, "o = checkpoint(%s, square(%s), square(all), iteration = %lld)\n",
                     !stops   ? "next"
                     : groups ? "choose(go, next, old)"
                              : "choose(go, next, o)",
                     "left", (long long)k);
    if (stops)
        fv__bytes_printf(t->text, "p = choose(go, lit, %s)\n", groups ? "dim" : "p");
    else
        fv__bytes_printf(t->text, "p = lit\n");
    if (t->p->output.index != GIVES_RESIDUALS) return;
    fv__bytes_printf(t->text, "rows = row(%lld, second = left / maximum(all, 1e-300), names = \"iteration residual\"%s)\n",
                     (long long)k, k > 1 ? ", after = rows" : "");
}

static void write_object(const writing *t, const char *sums, const char *object, const char *probe) {
    fv__bytes_printf(t->text, "next = ptycho_object(%s, %s, %s, %s, scan = s0, shifts = h, block = size, damping = %.17g)\n",
                     object, sums, sums, probe, t->p->object_damping);
}

static void write_probe(const writing *t, const char *probe) {
    fv__bytes_printf(t->text,
                     "overlap = ptycho_overlap(w, next, %s, scan = s0, shifts = h, block = size)\n"
                     "lit = ptycho_probe(%s, overlap, shifts = h, damping = %.17g)\n",
                     probe, probe, t->p->probe_damping);
}

static void write_projections(const writing *t) {
    double beta = t->p->method.index == DM ? 1 : t->p->beta;
    for (int64_t k = 1; k <= t->p->iterations; k++) {
        bool probe = t->p->probe_from && k >= t->p->probe_from;
        fv__bytes_printf(t->text, "w = ptycho_waves(a0, o, p%s, scan = s0, shifts = h, block = size, beta = %.17g)\n",
                         k > 1 ? ", before = w" : "", beta);
        write_residual(t, k);
        write_object(t, "w", "o", "p");
        if (!probe) fv__bytes_printf(t->text, "lit = p\n");
        for (int64_t round = 1; probe && round <= t->p->rounds; round++) {
            if (round > 1) {
                fv__bytes_printf(t->text, "z = ptycho_sums(w, lit, scan = s0, shifts = h, block = size)\n");
                write_object(t, "z", "next", "lit");
            }
            write_probe(t, round > 1 ? "lit" : "p");
        }
        write_keep(t, k);
    }
}

/* How far frames are moved in an iteration. */
static double reach_of(const ptycho *p, int64_t k) {
    if (!p->positions_from || k < p->positions_from) return 0;
    return p->reach * (double)(p->iterations + 1 - k) / (double)(p->iterations + 1 - p->positions_from);
}

/* Blocks begin with the same object and probe; what they change is brought together by their light. */
static void write_blocks(const writing *t) {
    const ptycho *p = t->p;
    for (int64_t k = 1; k <= p->iterations; k++) {
        bool probe = p->probe_from && k >= p->probe_from;
        fv__bytes_printf(
            t->text, "w=ptycho_pie(a0,o,p%s,scan=s0,shifts=h,block=size,between=u,object_share=%.9g,probe_step=%d,reach=%.9g)\n",
            k > 1 && p->positions_from ? ",before=w" : "", p->method.index == EPIE ? 1 : p->alpha, probe, reach_of(p, k));
        write_residual(t, k);
        fv__bytes_printf(t->text,
                         "next=o+ptycho_object(o,w,w,p,scan=s0,shifts=h,block=size,damping=1e-6,kind=\"direction\")\nlit=%s\n",
                         probe ? "ptycho_mean(p,w)" : "p");
        if (p->method.index == MPIE)
            fv__bytes_printf(t->text, "speed=next-o%s\nnext=next+0.3*speed\n", k > 1 ? "+0.7*speed" : "");
        write_keep(t, k);
    }
}

/* Directions d and e of object and probe, and how far to go along both at once: the least squares of what is left. The text is
 * short, for a pipeline has at most a megabyte. */
static void write_group(const writing *t, int64_t group, bool probe) {
    long long g = group;
    fv__bytes_printf(t->text,
                     "w=ptycho_waves(a%lld,o,p,scan=s%lld,shifts=h,block=size,kind=\"error\")\n"
                     "left=%ssum(w[:,-1,-2])\nall=%ssum(w[:,-1,-1])\n"
                     "d=ptycho_object(o,w,w,p,scan=s%lld,shifts=h,block=size,damping=%.9g,kind=\"direction\")\n",
                     g, g, g ? "left+" : "", g ? "all+" : "", g, t->p->object_damping);
    if (probe)
        fv__bytes_printf(t->text,
                         "v=ptycho_overlap(w,o,p,scan=s%lld,shifts=h,block=size,kind=\"direction\")\n"
                         "e=ptycho_probe(p,v,shifts=h,damping=%.9g,kind=\"direction\")\n",
                         g, t->p->probe_damping);
    fv__bytes_printf(t->text, "t=ptycho_steps(w,o,p,d,%s,scan=s%lld,shifts=h,block=size)\nn=sum(t[:,0])\nb=sum(t[:,3])\n",
                     probe ? "e" : "p", g);
    if (probe)
        fv__bytes_printf(t->text, "m=sum(t[:,1])\nc=sum(t[:,2])\nf=sum(t[:,4])\ni=1/(n*m*1.000001-c*c+1e-300)\n"
                                  "o=ptycho_move(o,d,(b*m-f*c)*i)\np=ptycho_move(p,e,(f*n-b*c)*i)\n");
    else
        fv__bytes_printf(t->text, "o=ptycho_move(o,d,b/maximum(n,1e-300))\n");
}

/* Object and probe as they are, or a part of the way of all iterations beyond that: their changes, each kept to 0.7 from one
 * iteration to the next. What alternates from group to group cancels, and what goes on gets faster. */
static void write_momentum(const writing *t, int64_t k, bool probe) {
    if (!(t->p->momentum > 0)) {
        fv__bytes_printf(t->text, "next=o\nlit=p\n");
        return;
    }
    fv__bytes_printf(t->text, "speed=o-old%s\nnext=o+%.9g*speed\n", k > 1 ? "+0.7*speed" : "", t->p->momentum);
    if (probe && k > t->p->probe_from)
        fv__bytes_printf(t->text, "turn=ptycho_move(p-dim,turn,0.7)\n");
    else if (probe)
        fv__bytes_printf(t->text, "turn=p-dim\n");
    if (probe)
        fv__bytes_printf(t->text, "lit=ptycho_move(p,turn,%.9g)\n", t->p->momentum);
    else
        fv__bytes_printf(t->text, "lit=p\n");
}

static void write_least_squares(const writing *t) {
    for (int64_t k = 1; k <= t->p->iterations; k++) {
        bool probe = t->p->probe_from && k >= t->p->probe_from;
        fv__bytes_printf(t->text, "old=o\ndim=p\n");
        for (int64_t g = 0; g < t->groups; g++) write_group(t, g, probe);
        write_stop(t, k);
        write_momentum(t, k, probe);
        write_keep(t, k);
    }
}

static fv_status check(const fv_infer *i, int64_t frames, fv_error *error) {
    const fv_image_type *f = &i->in[FRAMES]->image;
    const ptycho        *given = i->params;
    if ((given->positions_from || given->output.index == GIVES_POSITIONS) && !is_pie(given))
        return fv_fail(error, FV_ERROR_USAGE, "positions are found by the methods epie, rpie and mpie only");
    if (given->positions_from > given->iterations)
        return fv_fail(error, FV_ERROR_USAGE, "positions_from is %lld, and there are %lld iterations",
                       (long long)given->positions_from, (long long)given->iterations);
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

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const ptycho        *p = i->params;
    const fv_image_type *f = &i->in[FRAMES]->image, *o = &i->in[OBJECT]->image;
    fv_wave_scan         at;
    int64_t              origin[2], extent[2];
    fv_wave_cut          cut = { block_of(p, p->positions.count / 2, f), p->subpixel };
    FV_TRY(fv__waves_sort(&p->positions, cut, i->arena, &at, origin, extent, error));
    int64_t frames = at.scan.count / FV_SCAN_NUMBERS;
    FV_TRY(check(i, frames, error));
    FV_TRY(check_overlap(f, frames, extent, error));
    int64_t size[2] = { extent[0] + f->shape[1], extent[1] + f->shape[2] };
    if (i->in[OBJECT]->kind == FV_KIND_IMAGE) { /* positions are those in this object */
        for (int d = 0; d < 2; d++)
            if (o->ndim != 2 || origin[d] < 0 || origin[d] + size[d] > o->shape[d])
                return fv_fail(error, FV_ERROR_USAGE, "the object to begin with must be an image in which all frames lie");
        double *scan = (double *)(uintptr_t)at.scan.value;
        for (int64_t k = 0; k < frames; k++) {
            scan[FV_SCAN_NUMBERS * k + FV_SCAN_Y] += (double)origin[0];
            scan[FV_SCAN_NUMBERS * k + FV_SCAN_X] += (double)origin[1];
        }
        origin[0] = origin[1] = 0;
    }
    writing t = { p, text, frames, groups_of(p, frames), { origin[0], origin[1] } };
    if (is_pie(p)) write_between(&t, &at);
    write_list(text, "h", &at.shifts);
    fv__bytes_printf(text, "size = %lld\n", (long long)at.block);
    write_groups(&t, &at.scan, i->in[MASK]->kind == FV_KIND_IMAGE);
    write_start(&t, i, size);
    if (p->method.index == LSQ)
        write_least_squares(&t);
    else if (is_pie(p))
        write_blocks(&t);
    else
        write_projections(&t);
    if (p->output.index == GIVES_RESIDUALS)
        fv__bytes_printf(text, "rows\n");
    else if (p->output.index == GIVES_RESIDUAL)
        fv__bytes_printf(text, "left / maximum(all, 1e-300)\n");
    else if (p->output.index == GIVES_POSITIONS)
        fv__bytes_printf(text, "ptycho_positions(w, p, scan = s0, shifts = h, block = size, origin = [%lld, %lld])\n",
                         (long long)t.origin[0], (long long)t.origin[1]);
    else if (p->output.index == GIVES_OBJECT)
        fv__bytes_printf(text, "join_complex(o)\n");
    else
        fv__bytes_printf(text, p->modes > 1 ? "join_complex(ptycho_modes(p[0:%lld]))\n" : "join_complex(p[0])\n",
                         (long long)p->modes);
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
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .part = 0.2,
    .unroll = unroll,
    .passes = passes,
    .doc =
        "raar: relaxed averaged alternating reflections, the choice for most scans; it needs memory (or disk) for the exit "
        "waves of all frames. beta near 0.9 converges faster, near 0.6 is calmer with noise. dm: the difference map, raar "
        "with beta = 1. lsq: least squares of the amplitudes by preconditioned gradients, with exact steps for object and probe "
        "at once, group by group of frames; it keeps no exit waves. epie, rpie, mpie: frames one after the other inside of "
        "blocks; "
        "blocks begin with the same object and probe, and their changes are averaged, weighted by light, after each iteration. "
        "rpie takes larger steps where there is little light, mpie adds momentum (0.3 of a speed that keeps 0.7 of itself). They "
        "can correct positions: from iteration positions_from on, each frame is moved to where it fits better.\n"
        "Object and probe are complex64. Without an object to begin with, the first row and column of the result are those of "
        "the first frame. Positions between pixels are rounded to an eighth of a pixel, or to what subpixel says. Each iteration "
        "records its residual, "
        "sum |root of counts - amplitude| / sum of roots (of raar and dm for one frame in 16), which `fovea report` shows and "
        "output = \"residuals\" gives as a table. Sums over frames are made in an order that follows from their positions, so "
        "the same bits come out for any number of workers.",
    .citation =
        "Marchesini et al., SHARP: a distributed GPU-based ptychographic solver, J. Appl. Cryst. 49, 2016; Thibault et al., "
        "Ultramicroscopy 109, 2009; Odstrcil, Menzel and Guizar-Sicairos, Optics Express 26, 2018; "
        "Maiden and Rodenburg, Ultramicroscopy 109, 2009 (ePIE); Maiden, Johnson and Li, Optica 4, 2017 (rPIE, mPIE)",
    .example = "o = complex_image(ones([128, 128]), phantom(\"cells\", [128, 128]) / 255)\n"
               "at = scan_positions(\"fermat\", 64, 8)\n"
               "p = make_probe(64, radius = 16, defocus = 200, counts = 1e6)\n"
               "frames = diffract(o, p, at)\n"
               "write(phase(ptycho(frames, p, positions = at, iterations = 20)), \"phase.tif\")",
    .see = "diffract guess_probe make_probe phase amplitude try_orientations",
};
