/* frc: how well two images agree, frequency by frequency (Fourier ring and shell correlation). */
#include "base/math.h"
#include "kernels/spectrum.h"
#include "op/kernels.h"
#include "op/op.h"
#include "op/scratch.h"
#include "op/table_rows.h"

typedef struct {
    double taper;
} frc;

static const fv_param params[] = {
    FV_PARAM(frc, taper, .def = "0.1", .min = 0, .max = 0.5,
             .doc = "part of each side over which the images fade out, so that their borders do not correlate"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "a", FV_KIND_IMAGE, .doc = "image of one half of the data, real or complex; axes y x or z y x" },
    { "b", FV_KIND_IMAGE, .doc = "image of the other half, of the same shape" },
    FV_INPUT_END,
};
static const fv_table_type columns = { 6,
                                       { { "ring", FV_COLUMN_INTEGER },
                                         { "frequency", FV_COLUMN_REAL },
                                         { "correlation", FV_COLUMN_REAL },
                                         { "half_bit", FV_COLUMN_REAL },
                                         { "one_bit", FV_COLUMN_REAL },
                                         { "voxels", FV_COLUMN_INTEGER } } };

/* Of one ring: the products of both spectra, their squares, how many. */
typedef struct ring {
    double re, im, a, b, count;
} ring;

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *a = &i->in[0]->image, *b = &i->in[1]->image;
    if (a->ndim != b->ndim || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) != 0)
        return fv_fail(error, FV_ERROR_USAGE, "both images must have the same shape");
    if (a->ndim < 2 || a->ndim > 3)
        return fv_fail(error, FV_ERROR_USAGE, "the images have %d axes; 2 or 3 are possible", a->ndim);
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] < 4) return fv_fail(error, FV_ERROR_USAGE, "the images are too small: every axis needs 4 pixels");
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = &columns };
    return FV_OK;
}

/* The chunk with the corner does it all. */
static bool is_first(const fv_region *region) {
    for (int d = 0; d < region->ndim; d++)
        if (region->start[d]) return false;
    return true;
}

static void need(const fv_need *n, fv_region *in) {
    for (int k = 0; k < 2; k++) {
        in[k] = fv__region_whole(&n->in[k]->image);
        for (int d = 0; d < in[k].ndim && !is_first(&n->region); d++) in[k].size[d] = 1;
    }
}

static int64_t shortest(const fv_image_type *type) {
    int64_t least = type->shape[0];
    for (int d = 1; d < type->ndim; d++) least = FV_MIN(least, type->shape[d]);
    return least;
}

typedef struct {
    fv_spectrum axes[3];
    double     *data[2], *row, *fade[3];
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    const fv_image_type *type = &n->in[0]->image;
    fv_scratch           pieces = { memory };
    int64_t              voxels = fv_image_type_voxels(type), number = sizeof(double);
    for (int i = 0; i < 2; i++) k->data[i] = fv__scratch_take(&pieces, 2 * voxels * number);
    k->row = fv__scratch_take(&pieces, 2 * type->shape[type->ndim - 1] * number);
    for (int d = 0; d < type->ndim; d++) {
        void *room = fv__scratch_take(&pieces, FV_ISA_NAME(fv__spectrum_bytes)(type->shape[d]));
        k->fade[d] = fv__scratch_take(&pieces, type->shape[d] * number);
        if (memory) FV_ISA_NAME(fv__spectrum_prepare)(&k->axes[d], type->shape[d], room);
    }
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work k;
    return is_first(&n->region) ? lay_out(n, &k, NULL) : 64;
}

static size_t bound(const fv_need *n) { return (size_t)(shortest(&n->in[0]->image) / 2 + 1) * sizeof(ring); }

/* Half a cosine from 0 to 1 at both ends. */
static void fill_fade(double *fade, int64_t n, double taper) {
    double width = taper * (double)n;
    for (int64_t i = 0; i < n; i++) {
        double from = (double)FV_MIN(i, n - 1 - i) + 0.5;
        fade[i] = from < width ? 0.5 - 0.5 * fv__cos(0x1.921fb54442d18p+1 * from / width) : 1;
    }
}

static void load(const work *k, const fv_block *block, double *to) {
    int     last = block->region.ndim - 1;
    int64_t n = block->region.size[last];
    bool    is_complex = fv_dtype_is_complex(block->dtype);
    fv_rows rows;
    for (fv__rows_begin(&rows, &block->region); fv__rows_next(&rows); to += 2 * n) {
        const void *from = fv__block_at(block, rows.position);
        double      fade = last == 2 ? k->fade[0][rows.position[0]] * k->fade[1][rows.position[1]] : k->fade[0][rows.position[0]];
        if (!is_complex) fv__kernels_current()->convert(k->row, FV_FLOAT64, from, block->dtype, n);
        for (int64_t x = 0; x < 2 * n; x++) {
            double value = block->dtype == FV_COMPLEX64 ? (double)((const float *)from)[x]
                           : is_complex                 ? ((const double *)from)[x]
                           : x % 2                      ? 0
                                                        : k->row[x / 2];
            to[x] = value * fade * k->fade[last][x / 2];
        }
    }
}

static void add_rings(const work *k, const fv_image_type *type, ring *rings) {
    int64_t count = shortest(type) / 2 + 1, voxels = fv_image_type_voxels(type);
    for (int64_t i = 0; i < voxels; i++) {
        double  square = 0;
        int64_t rest = i;
        for (int d = type->ndim - 1; d >= 0; d--) {
            int64_t n = type->shape[d], at = rest % n;
            double  cycles = (double)(at <= n / 2 ? at : at - n) / (double)n;
            square += cycles * cycles;
            rest /= n;
        }
        int64_t at = (int64_t)floor(sqrt(square) * (double)shortest(type) + 0.5);
        if (at >= count) continue;
        const double *a = k->data[0] + 2 * i, *b = k->data[1] + 2 * i;
        rings[at].re += a[0] * b[0] + a[1] * b[1];
        rings[at].im += a[1] * b[0] - a[0] * b[1];
        rings[at].a += a[0] * a[0] + a[1] * a[1];
        rings[at].b += b[0] * b[0] + b[1] * b[1];
        rings[at].count += 1;
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_image_type *type = &r->need.in[0]->image;
    ring                 none = { 0 };
    work                 k;
    (void)error;
    if (!is_first(&r->need.region)) return FV_OK;
    lay_out(&r->need, &k, r->scratch);
    for (int d = 0; d < type->ndim; d++) fill_fade(k.fade[d], type->shape[d], ((const frc *)r->need.params)->taper);
    for (int i = 0; i < 2; i++) {
        load(&k, r->in[i], k.data[i]);
        FV_ISA_NAME(fv__spectrum_image)(k.axes, type->ndim, k.data[i], false);
    }
    for (int64_t i = 0; i < shortest(type) / 2 + 1; i++) fv__bytes_append(r->partial, &none, sizeof none);
    add_rings(&k, type, (ring *)r->partial->data);
    return FV_OK;
}

/* What a correlation must reach that a ring tells half a bit, or one, about each voxel. */
static double half_bit(double count) { return (0.2071 + 1.9102 / sqrt(count)) / (1.2071 + 0.9102 / sqrt(count)); }
static double one_bit(double count) { return (0.5 + 2.4142 / sqrt(count)) / (1.5 + 1.4142 / sqrt(count)); }

static fv_status write_rows(fv_finish *f, const ring *rings, int64_t count, fv_row_writer *writer, fv_error *error) {
    double re = 0, im = 0;
    for (int64_t i = 0; i < count; i++) {
        re += rings[i].re;
        im += rings[i].im;
    }
    double size = sqrt(re * re + im * im), c = size > 0 ? re / size : 1, s = size > 0 ? im / size : 0;
    for (int64_t i = 0; i < count; i++) {
        double   both = sqrt(rings[i].a * rings[i].b);
        fv_cell *row;
        if (!(rings[i].count > 0)) continue;
        FV_TRY(fv__row_writer_next(writer, &row, error));
        row[0].integer = i;
        row[1].real = (double)i / (double)shortest(&f->in[0]->image);
        row[2].real = both > 0 ? (rings[i].re * c + rings[i].im * s) / both : 0;
        row[3].real = half_bit(rings[i].count);
        row[4].real = one_bit(rings[i].count);
        row[5].integer = (int64_t)rings[i].count;
    }
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    fv_row_writer writer;
    const void   *data;
    fv_status     status = f->partial(f, 0, &data, error);
    fv__row_writer_init(&writer, f);
    if (status == FV_OK) status = write_rows(f, data, (int64_t)(f->size(f, 0) / sizeof(ring)), &writer, error);
    if (status == FV_OK) status = fv__row_writer_flush(&writer, error);
    fv__row_writer_release(&writer);
    return status;
}

static const fv_pass passes[] = {
    { .name = "rings", .need = need, .scratch = scratch, .bound = bound, .run = run, .finish = finish }, FV_PASS_END
};

static const fv_column_doc column_docs[] = {
    { "ring", .doc = "number of the ring (of a volume: shell), from 0" },
    { "frequency", .unit = "cycles/px", .doc = "its frequency, up to 0.5" },
    { "correlation", .doc = "of the two spectra in this ring, from -1 to 1; a phase that all rings share does not count" },
    { "half_bit", .doc = "threshold of half a bit; the resolution is the frequency where the correlation first falls below it" },
    { "one_bit", .doc = "threshold of one bit, where the halves themselves are used and not their mean" },
    { "voxels", .doc = "how many voxels the ring has" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(frc) = {
    .name = "frc",
    .family = "metrics",
    .brief = "correlation of two images frequency by frequency, with thresholds of resolution",
    .also = "fsc, Fourier ring correlation, Fourier shell correlation",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(frc),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .doc =
        "Reconstruct two halves of the data (every other projection, every other frame) and compare them: where the correlation "
        "falls below the half-bit curve, there is no more to be seen. The images must lie upon each other and should show "
        "the object only: cut borders off. One task holds both spectra, 32 bytes for each voxel.",
    .citation = "van Heel and Schatz, Fourier shell correlation threshold criteria, J. Struct. Biol. 151, 2005",
    .example = "cells = gaussian(phantom(\"cells\", [128, 128]), 1)\n"
               "top(frc(poisson(cells, seed = 1), poisson(cells, seed = 2)), 5, \"ring\")",
    .columns = column_docs,
    .see = "compare ssim ptycho fbp",
};
