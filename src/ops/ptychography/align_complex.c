/* align_complex: a complex image laid upon another one: shifted, and with its ramp and constant of phase. */
#include "kernels/spectrum.h"
#include "op/scratch.h"
#include "ops/ptychography/phase_planes.h"
#include "ops/ptychography/phase_ramp.h"

enum { IMAGE, REFERENCE };
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "complex image to move; every plane y x is done for itself" },
    { "reference", FV_KIND_IMAGE, .doc = "complex image of the same shape that stays" },
    FV_INPUT_END,
};

enum { HALVINGS = 10, ROUNDS = 3, STEPS = 8 }; /* the shift is found to 1/1024 of a pixel */
static const double turn = 0x1.921fb54442d18p+2;

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *a = &i->in[IMAGE]->image, *b = &i->in[REFERENCE]->image;
    if (!fv_dtype_is_complex(a->dtype) || !fv_dtype_is_complex(b->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image and reference must be complex, not %s and %s; register aligns real images",
                       fv_dtype_name(a->dtype), fv_dtype_name(b->dtype));
    if (a->ndim != b->ndim || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) != 0)
        return fv_fail(error, FV_ERROR_USAGE, "image and reference must have the same shape");
    if (a->ndim < 2 || a->shape[a->ndim - 2] < 4 || a->shape[a->ndim - 1] < 4)
        return fv_fail(error, FV_ERROR_USAGE, "image must have the axes y x with at least 4 pixels each");
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    const fv_image_type *type = &n->in[IMAGE]->image;
    for (int k = 0; k < 2; k++)
        for (int d = type->ndim - 2; d < type->ndim; d++) {
            in[k].start[d] = 0;
            in[k].size[d] = type->shape[d];
        }
}

typedef struct {
    int64_t     height, width;
    fv_spectrum axes[2];
    double     *image[2]; /* image and reference */
    double     *product;  /* of their spectra */
    double     *sums;     /* of its rows */
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    const fv_image_type *type = &n->in[IMAGE]->image;
    fv_scratch           pieces = { memory };
    k->height = type->shape[type->ndim - 2];
    k->width = type->shape[type->ndim - 1];
    int64_t bytes = 16 * k->height * k->width;
    for (int i = 0; i < 2; i++) {
        int64_t side = i ? k->width : k->height;
        void   *room = fv__scratch_take(&pieces, FV_ISA_NAME(fv__spectrum_bytes)(side));
        if (memory) FV_ISA_NAME(fv__spectrum_prepare)(&k->axes[i], side, room);
        k->image[i] = fv__scratch_take(&pieces, bytes);
    }
    k->product = fv__scratch_take(&pieces, bytes);
    k->sums = fv__scratch_take(&pieces, 16 * k->height);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

/* ---------------------------------------------------------------- ramps */

/* A cosine from border to border: what is hardly lit there is mostly noise, and the middle tells enough. Nothing of what a shift
 * has brought in from the other side. */
static double fade(int64_t at, int64_t n, double shift) {
    double width = 0.5 * (double)n, from = (double)FV_MIN(at, n - 1 - at) + 0.5 - ceil(fabs(shift));
    return from <= 0 ? 0 : from < width ? 0.5 - 0.5 * fv__cos(turn / 2 * from / width) : 1;
}

/* The turn from b to a at a pixel; b NULL: that of a itself. */
static void turn_at(const double *a, const double *b, int64_t at, double here[2]) {
    static const double one[2] = { 1, 0 };
    here[0] = here[1] = 0;
    fv__turn_add(here, a + at, b ? b + at : one);
}

/* The plane of phase by which a is ahead of b, from the turns of neighbours: it needs no start, but noise of borders counts. */
static fv_phase_ramp ramp_of_neighbours(const work *k, const double *a, const double *b, const double shift[2]) {
    double step[2][2] = { { 0 } }, here[2], there[2];
    for (int64_t y = 1; y < k->height; y++)
        for (int64_t x = 1; x < k->width; x++) {
            int64_t at = 2 * (y * k->width + x), before[2] = { 2 * k->width, 2 };
            double  weight = fade(y, k->height, shift[0]) * fade(x, k->width, shift[1]);
            turn_at(a, b, at, here);
            for (int d = 0; d < 2; d++) {
                turn_at(a, b, at - before[d], there);
                for (int part = 0; part < 2; part++) there[part] *= weight;
                fv__turn_add(step[d], here, there);
            }
        }
    return (fv_phase_ramp){ .y = fv__turn_angle(step[0]), .x = fv__turn_angle(step[1]) };
}

/* What is left of rows and columns, counted from the middle, in the turns that a ramp leaves: sums of a 2 x 2 system, in which
 * the constant is taken out by the means. */
typedef struct {
    double weight, middle[2], square[3], right[2], rest[2]; /* square: y y, x x, y x */
} turns_left;

static turns_left add_turns(const work *k, const double *a, const double *b, const double shift[2], const fv_phase_ramp *ramp,
                            const turns_left *before) {
    turns_left t = { 0 };
    double     from[2] = { before ? before->middle[0] : 0, before ? before->middle[1] : 0 }, here[2];
    for (int64_t y = 0; y < k->height; y++)
        for (int64_t x = 0; x < k->width; x++) {
            double weight = fade(y, k->height, shift[0]) * fade(x, k->width, shift[1]), at[2];
            turn_at(a, b, 2 * (y * k->width + x), here);
            fv__ramp_remove(ramp, y, x, here);
            double size = weight * sqrt(fma(here[0], here[0], here[1] * here[1]));
            at[0] = (double)y - from[0];
            at[1] = (double)x - from[1];
            t.weight += size;
            for (int d = 0; d < 2; d++) {
                t.middle[d] += size * at[d];
                t.square[d] += size * at[d] * at[d];
                t.right[d] += weight * here[1] * at[d];
                t.rest[d] += weight * here[d];
            }
            t.square[2] += size * at[0] * at[1];
        }
    for (int d = 0; d < 2 && t.weight > 0; d++) t.middle[d] /= t.weight;
    return t;
}

/* The ramp with which both agree best (without b that of neighbours is kept): sum Re conj(b) a, turned back, is largest. Each
 * step goes to the top of a parabola that lies below it everywhere, so that none can make it worse. */
static fv_phase_ramp ramp_between(const work *k, const double *a, const double *b, const double shift[2]) {
    fv_phase_ramp ramp = ramp_of_neighbours(k, a, b, shift);
    turns_left    middle = add_turns(k, a, b, shift, &ramp, NULL);
    ramp.offset = fv__turn_angle(middle.rest);
    for (int step = 0; step < STEPS && b; step++) {
        turns_left t = add_turns(k, a, b, shift, &ramp, &middle);
        double     whole = t.square[0] * t.square[1] - t.square[2] * t.square[2];
        if (!(whole > 0)) break;
        double by[2] = { (t.right[0] * t.square[1] - t.right[1] * t.square[2]) / whole,
                         (t.right[1] * t.square[0] - t.right[0] * t.square[2]) / whole };
        ramp.y += by[0];
        ramp.x += by[1];
        ramp.offset += t.rest[1] / t.weight - by[0] * middle.middle[0] - by[1] * middle.middle[1];
    }
    return ramp;
}

static void remove_from(const work *k, const fv_phase_ramp *ramp, double *a) {
    for (int64_t y = 0; y < k->height; y++)
        for (int64_t x = 0; x < k->width; x++) fv__ramp_remove(ramp, y, x, a + 2 * (y * k->width + x));
}

/* ---------------------------------------------------------------- the shift */

static double frequency(int64_t at, int64_t n) { return (double)(2 * at > n ? at - n : at) / (double)n; }

/* The spectrum of an image without its mean, faded out to its borders. */
static void transform(const work *k, const double *from, double *to) {
    int64_t pixels = k->height * k->width;
    double  mean[2] = { 0 };
    for (int64_t i = 0; i < 2 * pixels; i++) mean[i % 2] += from[i];
    for (int64_t y = 0; y < k->height; y++)
        for (int64_t x = 0; x < k->width; x++)
            for (int part = 0; part < 2; part++) {
                int64_t at = 2 * (y * k->width + x) + part;
                to[at] = (from[at] - mean[part] / (double)pixels) * fade(y, k->height, 0) * fade(x, k->width, 0);
            }
    FV_ISA_NAME(fv__spectrum_image)(k->axes, 2, to, false);
}

/* The squared size of the correlation at a shift between pixels, from the product of the spectra. */
static double correlation(const work *k, double dy, double dx, bool new_x) {
    double sum[2] = { 0 };
    for (int64_t y = 0; y < k->height; y++) {
        double *row = k->sums + 2 * y, angle = turn * frequency(y, k->height) * dy, c = fv__cos(angle), s = fv__sin(angle);
        if (new_x) row[0] = row[1] = 0;
        for (int64_t x = 0; x < k->width && new_x; x++) {
            const double *p = k->product + 2 * (y * k->width + x);
            double        by = turn * frequency(x, k->width) * dx, cx = fv__cos(by), sx = fv__sin(by);
            row[0] += p[0] * cx - p[1] * sx;
            row[1] += p[1] * cx + p[0] * sx;
        }
        sum[0] += row[0] * c - row[1] * s;
        sum[1] += row[1] * c + row[0] * s;
    }
    return sum[0] * sum[0] + sum[1] * sum[1];
}

/* From the whole pixel with the largest correlation in ever smaller steps. */
static void refine(const work *k, double shift[2]) {
    double best = correlation(k, shift[0], shift[1], true);
    for (double step = 0.5; step >= 1.0 / (1 << HALVINGS); step /= 2) {
        double middle[2] = { shift[0], shift[1] };
        for (int j = -1; j <= 1; j++)
            for (int i = -1; i <= 1; i++) {
                double at[2] = { middle[0] + i * step, middle[1] + j * step }, size = correlation(k, at[0], at[1], i == -1);
                if (!(size > best)) continue;
                best = size;
                memcpy(shift, at, sizeof at);
            }
    }
}

/* How far the image must be moved to lie upon the reference. */
static void find_shift(const work *k, double shift[2]) {
    int64_t pixels = k->height * k->width, peak = 0;
    double *back = k->image[REFERENCE], best = -1; /* what is in it is read again */
    transform(k, k->image[REFERENCE], k->product);
    memcpy(back, k->product, (size_t)(2 * pixels) * sizeof *back);
    transform(k, k->image[IMAGE], k->product);
    for (int64_t i = 0; i < pixels; i++) {
        double product[2] = { 0 }, size;
        fv__turn_add(product, back + 2 * i, k->product + 2 * i);
        size = sqrt(sqrt(product[0] * product[0] + product[1] * product[1]));
        for (int part = 0; part < 2; part++) k->product[2 * i + part] = size > 0 ? product[part] / size : 0;
    }
    memcpy(back, k->product, (size_t)(2 * pixels) * sizeof *back);
    FV_ISA_NAME(fv__spectrum_image)(k->axes, 2, back, true);
    for (int64_t i = 0; i < pixels; i++) {
        double size = back[2 * i] * back[2 * i] + back[2 * i + 1] * back[2 * i + 1];
        if (!(size > best)) continue;
        best = size;
        peak = i;
    }
    shift[0] = frequency(peak / k->width, k->height) * (double)k->height;
    shift[1] = frequency(peak % k->width, k->width) * (double)k->width;
    refine(k, shift);
}

static void move(const work *k, const double shift[2]) {
    double *a = k->image[IMAGE], by = 1 / (double)(k->height * k->width);
    FV_ISA_NAME(fv__spectrum_image)(k->axes, 2, a, false);
    for (int64_t y = 0; y < k->height; y++)
        for (int64_t x = 0; x < k->width; x++) {
            double       *value = a + 2 * (y * k->width + x);
            fv_phase_ramp ramp = { .offset = turn * (frequency(y, k->height) * shift[0] + frequency(x, k->width) * shift[1]) };
            fv__ramp_remove(&ramp, 0, 0, value);
            value[0] *= by;
            value[1] *= by;
        }
    FV_ISA_NAME(fv__spectrum_image)(k->axes, 2, a, true);
}

/* ---------------------------------------------------------------- running */

static void load(const work *k, const fv_block *block, int64_t *at, double *to) {
    for (int64_t y = 0; y < k->height; y++) fv__plane_row(block, at, y, 0, 2 * k->width, to + 2 * y * k->width);
}

static fv_status check_finite(const work *k, fv_error *error) {
    for (int i = 0; i < 2; i++)
        for (int64_t j = 0; j < 2 * k->height * k->width; j++)
            if (!(fabs(k->image[i][j]) < INFINITY))
                return fv_fail(error, FV_ERROR_INPUT, "%s has pixels that are not finite", inputs[i].name);
    return FV_OK;
}

static void take_ramp(const work *k, double *a, const double *b, const double shift[2]) {
    fv_phase_ramp ramp = ramp_between(k, a, b, shift);
    remove_from(k, &ramp, a);
}

/* The first shift is found between images whose borders differ; the next ones of what is left of it. */
static fv_status align(const work *k, const fv_run *r, int64_t *at, fv_error *error) {
    static const double none[2] = { 0 };
    double              shift[2] = { 0 }, more[2];
    double             *image = k->image[IMAGE], *reference = k->image[REFERENCE];
    for (int round = 0; round <= ROUNDS; round++) {
        load(k, r->in[IMAGE], at, image);
        load(k, r->in[REFERENCE], at, reference);
        if (!round) FV_TRY(check_finite(k, error));
        take_ramp(k, image, NULL, none);
        if (round) move(k, shift);
        if (round == ROUNDS) break;
        take_ramp(k, reference, NULL, none);
        if (round) take_ramp(k, image, reference, shift);
        find_shift(k, more);
        for (int d = 0; d < 2; d++) shift[d] += more[d];
    }
    take_ramp(k, image, reference, shift);
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *out = r->out;
    fv_region       planes = fv__planes_of(&out->region);
    int             last = planes.ndim - 1;
    int64_t         y0 = out->region.start[last - 1], x0 = out->region.start[last], n = out->region.size[last];
    work            k;
    fv_rows         rows;
    lay_out(&r->need, &k, r->scratch);
    for (fv__rows_begin(&rows, &planes); fv__rows_next(&rows);) {
        int64_t at[FV_MAX_DIMS];
        memcpy(at, rows.position, sizeof at);
        FV_TRY(align(&k, r, at, error));
        for (int64_t y = y0; y < y0 + out->region.size[last - 1]; y++)
            fv__plane_row_put(out, at, y, x0, 2 * n, k.image[IMAGE] + 2 * (y * k.width + x0));
    }
    return FV_OK;
}

static double cost(const fv_need *n) {
    (void)n;
    return 2000;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(align_complex) = {
    .name = "align_complex",
    .family = "ptychography",
    .stage = "finish",
    .brief = "lay a complex image upon another: shift, ramp and constant of phase",
    .also = "align objects, dftregistration, subpixel registration",
    .version = 2,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = fv__planes_slab,
    .cost = cost,
    .doc =
        "Two reconstructions of one object may differ by a shift, by a phase that grows linearly, and by a constant phase. This "
        "finds the shift from the peak of their correlation, to a thousandth of a pixel, moves the image by its spectrum, and "
        "turns "
        "its phase to that of the reference: before frc, and to compare with a known object. What leaves the image on one side "
        "comes in on the other: cut borders off afterwards. Real images: register and transform.",
    .citation = "Guizar-Sicairos, Thurman and Fienup, Efficient subpixel image registration algorithms, Optics Letters 33, 2008",
    .example = "cells = gaussian(phantom(\"cells\", [200, 200]) / 255, 1)\n"
               "a = complex_image(1 - cells * 0.2, cells)\n"
               "b = complex_image(1 - shift(cells, [3.5, -5.25]) * 0.2, shift(cells, [3.5, -5.25]) + 1)\n"
               "write(phase(align_complex(b, a)), \"aligned.tif\")",
    .see = "remove_ramp frc register ptycho",
};
