/* remove_ramp: a complex image or a phase without the plane of phase that a reconstruction leaves free. */
#include "op/scratch.h"
#include "ops/ptychography/phase_planes.h"
#include "ops/ptychography/phase_ramp.h"

enum { IMAGE = FV_PLANES_IMAGE, MASK = FV_PLANES_MASK };
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "complex image, or a phase in radians without jumps; every plane y x is done for itself" },
    { "mask", FV_KIND_IMAGE, .optional = true,
      .doc = "pixels that tell the ramp, axes y x, such as the air around a sample; 0: "
             "one that does not" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) { return fv__planes_check(i, "remove_ramp", error); }

typedef struct {
    int64_t height, width;
    bool    complex;
    double *row[2]; /* of the image: two that follow each other */
    double *good[2];
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    const fv_image_type *type = &n->in[IMAGE]->image;
    fv_scratch           pieces = { memory };
    k->height = type->shape[type->ndim - 2];
    k->width = type->shape[type->ndim - 1];
    k->complex = fv_dtype_is_complex(type->dtype);
    for (int i = 0; i < 2; i++) {
        k->row[i] = fv__scratch_take(&pieces, k->width * 16);
        k->good[i] = fv__scratch_take(&pieces, k->width * 8);
    }
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

/* Row y of a plane, and which of its pixels count. */
static void load(const work *k, const fv_run *r, int64_t *at, int64_t y) {
    const fv_block *mask = r->in[MASK];
    double         *row = k->row[y % 2], *good = k->good[y % 2];
    int64_t         parts = k->complex ? 2 : 1;
    fv__plane_row(r->in[IMAGE], at, y, 0, parts * k->width, row);
    if (mask) fv__plane_row(mask, (int64_t[]){ 0, 0 }, y, 0, k->width, good);
    for (int64_t x = 0; x < k->width; x++) {
        bool finite = fabs(row[parts * x]) < INFINITY && fabs(row[parts * x + parts - 1]) < INFINITY;
        good[x] = finite && (!mask || good[x] != 0);
    }
}

/* ---------------------------------------------------------------- complex images */

/* Steps from each pixel to the next, as directions whose lengths are weights, along x and y. */
static void add_steps(const work *k, int64_t y, double x_step[2], double y_step[2]) {
    const double *row = k->row[y % 2], *good = k->good[y % 2], *before = k->row[(y + 1) % 2], *good_before = k->good[(y + 1) % 2];
    for (int64_t x = 1; x < k->width; x++)
        if (good[x] != 0 && good[x - 1] != 0) fv__turn_add(x_step, row + 2 * x, row + 2 * (x - 1));
    for (int64_t x = 0; x < k->width && y; x++)
        if (good[x] != 0 && good_before[x] != 0) fv__turn_add(y_step, row + 2 * x, before + 2 * x);
}

static fv_phase_ramp ramp_of_complex(const work *k, const fv_run *r, int64_t *at) {
    double        x_step[2] = { 0 }, y_step[2] = { 0 }, rest[2] = { 0 };
    fv_phase_ramp ramp = { 0 };
    for (int64_t y = 0; y < k->height; y++) {
        load(k, r, at, y);
        add_steps(k, y, x_step, y_step);
    }
    ramp.y = fv__turn_angle(y_step);
    ramp.x = fv__turn_angle(x_step);
    for (int64_t y = 0; y < k->height; y++) {
        load(k, r, at, y);
        for (int64_t x = 0; x < k->width; x++) {
            double value[2] = { k->row[y % 2][2 * x], k->row[y % 2][2 * x + 1] };
            if (k->good[y % 2][x] == 0) continue;
            fv__ramp_remove(&ramp, y, x, value);
            rest[0] += value[0];
            rest[1] += value[1];
        }
    }
    ramp.offset = fv__turn_angle(rest);
    return ramp;
}

/* ---------------------------------------------------------------- phases */

/* The plane of least squares, around the middle of what counts. */
static fv_phase_ramp ramp_of_phase(const work *k, const fv_run *r, int64_t *at) {
    double n = 0, mean[3] = { 0 }, yy = 0, yx = 0, xx = 0, yv = 0, xv = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t y = 0; y < k->height; y++) {
            load(k, r, at, y);
            for (int64_t x = 0; x < k->width; x++) {
                double value = k->row[y % 2][x], dy = (double)y - mean[0], dx = (double)x - mean[1];
                if (k->good[y % 2][x] == 0) continue;
                if (!pass) {
                    double sums[3] = { (double)y, (double)x, value };
                    for (int i = 0; i < 3; i++) mean[i] += sums[i];
                    n++;
                    continue;
                }
                yy += dy * dy;
                yx += dy * dx;
                xx += dx * dx;
                yv += dy * (value - mean[2]);
                xv += dx * (value - mean[2]);
            }
        }
        for (int i = 0; i < 3 && !pass && n > 0; i++) mean[i] /= n;
    }
    double        det = yy * xx - yx * yx;
    bool          flat = det > 1e-12 * yy * xx; /* pixels on a line tell one slope only */
    fv_phase_ramp ramp = { .y = flat                  ? (yv * xx - xv * yx) / det
                                : yy > 0 && !(xx > 0) ? yv / yy
                                                      : 0,
                           .x = flat                  ? (xv * yy - yv * yx) / det
                                : xx > 0 && !(yy > 0) ? xv / xx
                                                      : 0 };
    ramp.offset = mean[2] - ramp.y * mean[0] - ramp.x * mean[1];
    return ramp;
}

/* ---------------------------------------------------------------- running */

static void put(const work *k, const fv_run *r, const fv_phase_ramp *ramp, int64_t *at) {
    const fv_block *out = r->out;
    int             last = out->region.ndim - 1;
    int64_t         n = out->region.size[last], x0 = out->region.start[last], parts = k->complex ? 2 : 1;
    for (int64_t y = out->region.start[last - 1]; y < out->region.start[last - 1] + out->region.size[last - 1]; y++) {
        double *row = k->row[0];
        fv__plane_row(r->in[IMAGE], at, y, 0, parts * k->width, row);
        for (int64_t x = x0; x < x0 + n; x++)
            if (k->complex)
                fv__ramp_remove(ramp, y, x, row + 2 * x);
            else
                row[x] -= ramp->y * (double)y + ramp->x * (double)x + ramp->offset;
        fv__plane_row_put(out, at, y, x0, parts * n, row + parts * x0);
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    work      k;
    fv_region planes = fv__planes_of(&r->out->region);
    fv_rows   rows;
    (void)error;
    lay_out(&r->need, &k, r->scratch);
    for (fv__rows_begin(&rows, &planes); fv__rows_next(&rows);) {
        int64_t at[FV_MAX_DIMS];
        memcpy(at, rows.position, sizeof at);
        fv_phase_ramp ramp = k.complex ? ramp_of_complex(&k, r, at) : ramp_of_phase(&k, r, at);
        put(&k, r, &ramp, at);
    }
    return FV_OK;
}

static double cost(const fv_need *n) {
    (void)n;
    return 60;
}

static const fv_pass passes[] = { { .need = fv__planes_need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(remove_ramp) = {
    .name = "remove_ramp",
    .family = "ptychography",
    .stage = "finish",
    .brief = "take the plane out of the phase of a complex image",
    .also = "rmphaseramp, phase ramp, tilt removal",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = fv__planes_slab,
    .cost = cost,
    .doc = "A ptychographic object is known but for a phase that grows linearly over it and a constant: a detector whose middle "
           "is a "
           "fraction of a pixel off is enough. Of a complex image the slopes are the mean steps of phase between neighbours, "
           "weighted "
           "by their amplitudes, so jumps of a whole turn do not matter; then the mean phase becomes 0. Of a phase the plane of "
           "least "
           "squares is subtracted: unwrap it first. Only pixels of the mask tell the ramp, and it is taken out everywhere.",
    .citation =
        "Guizar-Sicairos et al., Phase tomography from x-ray coherent diffractive imaging projections, Optics Express 19, "
        "2011",
    .example = "cells = gaussian(phantom(\"cells\", [200, 200]) / 255, 1)\n"
               "plane = fit_polynomial(cells, 1)\n"
               "tilted = complex_image(1 - cells * 0.2, cells + (plane - min(plane)) * 60)\n"
               "write(phase(remove_ramp(tilted)), \"phase.tif\")",
    .see = "unwrap phase align_complex ptycho",
};
