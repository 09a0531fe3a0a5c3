/* Sums and magnitudes of separable filters, slab by slab. */
#include "kernels/terms.h"
#include "op/scratch.h"

enum { SLAB_BYTES = 512 << 10, SLAB_LEAST = 16 };

typedef struct {
    const fv_terms *terms;
    int             term;
} one;

static void weights(const void *params, int k, double *weight) {
    const one *o = params;
    o->terms->weights(o->terms->params, o->term, k, weight);
}

static fv_separable separable(const one *o, const fv_image_type *type) {
    double size[3] = { 1, 1, 1 };
    int    axis[FV_MAX_DIMS], n = fv_image_type_spatial(type, axis);
    for (int k = 0; k < n && k < 3; k++) size[k] = (double)o->terms->size(o->terms->params, o->term, k);
    return (fv_separable){ .box = fv__box_new(type, size, o->terms->border, o->terms->cval),
                           .weights = weights,
                           .params = o,
                           .padded = o->terms->padded };
}

fv_region fv__terms_need(const fv_terms *t, const fv_need *n) {
    fv_region all = { 0 };
    for (int term = 0; term < t->count; term++) {
        one          o = { t, term };
        fv_separable s = separable(&o, &n->in[0]->image);
        fv_region    region = fv__box_need(&s.box, &n->in[0]->image, &n->region);
        all = term ? fv__region_bound(&all, &region) : region;
    }
    return all;
}

/* Cuts along the first spatial axis, in whole blocks of the separable kernel. */
static fv_lattice slabs(const fv_terms *t, const fv_need *n) {
    fv_lattice lattice;
    int64_t    chunk[FV_MAX_DIMS], bytes = (int64_t)fv_dtype_size(n->out->image.dtype);
    int        axis[FV_MAX_DIMS];
    fv_image_type_spatial(&n->in[0]->image, axis);
    memcpy(chunk, n->region.size, sizeof chunk);
    for (int d = 0; d < n->region.ndim; d++) bytes *= d == axis[0] ? 1 : n->region.size[d];
    if (t->count > 1) chunk[axis[0]] = FV_MAX(SLAB_BYTES / FV_MAX(bytes, 1) / SLAB_LEAST * SLAB_LEAST, SLAB_LEAST);
    fv__lattice_init(&lattice, n->region.ndim, n->region.size, chunk);
    return lattice;
}

static fv_need slab_need(const fv_need *n, const fv_lattice *lattice, int64_t index) {
    fv_need slab = *n;
    slab.region = fv__lattice_chunk(lattice, index);
    for (int d = 0; d < n->region.ndim; d++) slab.region.start[d] += n->region.start[d];
    return slab;
}

/* Room for a term of the largest slab, and what the largest separable filter needs. */
static size_t lay_out(const fv_terms *t, const fv_need *n, void *memory, void **term_data, void **rest) {
    fv_scratch pieces = { memory, 0 };
    size_t     largest = 0;
    fv_lattice lattice = slabs(t, n);
    for (int64_t i = 0; i < fv__lattice_count(&lattice); i++)
        for (int term = 0; term < t->count; term++) {
            one          o = { t, term };
            fv_need      slab = slab_need(n, &lattice, i);
            fv_separable s = separable(&o, &n->in[0]->image);
            largest = FV_MAX(largest, fv__separable_scratch(&s, &slab));
        }
    fv_region first = fv__lattice_chunk(&lattice, 0);
    int64_t   bytes = t->count > 1 ? fv__region_voxels(&first) * (int64_t)fv_dtype_size(n->out->image.dtype) : 0;
    *term_data = fv__scratch_take(&pieces, bytes);
    *rest = fv__scratch_take(&pieces, (int64_t)largest);
    return pieces.used;
}

size_t fv__terms_scratch(const fv_terms *t, const fv_need *n) {
    void *term_data, *rest;
    return fv__region_empty(&n->region) ? 0 : lay_out(t, n, NULL, &term_data, &rest);
}

/* ---------------------------------------------------------------- adding up */

#define COMBINE(REAL, ROOT)                                                                                                      \
    static void combine_##REAL(REAL *restrict to, const REAL *restrict term, int64_t n, bool square) {                           \
        if (square)                                                                                                              \
            for (int64_t i = 0; i < n; i++) to[i] += term[i] * term[i];                                                          \
        else                                                                                                                     \
            for (int64_t i = 0; i < n; i++) to[i] += term[i];                                                                    \
    }                                                                                                                            \
    static void square_##REAL(REAL *to, int64_t n) {                                                                             \
        for (int64_t i = 0; i < n; i++) to[i] *= to[i];                                                                          \
    }                                                                                                                            \
    static void root_##REAL(REAL *to, int64_t n, REAL scale) {                                                                   \
        for (int64_t i = 0; i < n; i++) to[i] = ROOT(to[i]) * scale;                                                             \
    }
COMBINE(float, sqrtf)
COMBINE(double, sqrt)

typedef enum { ADD, ADD_SQUARE, SQUARE, ROOT } step;

static void apply(step what, const fv_block *to, const fv_block *term, double scale) {
    bool    single = to->dtype == FV_FLOAT32 || to->dtype == FV_COMPLEX64;
    int64_t n = to->region.size[to->region.ndim - 1] * (fv_dtype_is_complex(to->dtype) ? 2 : 1);
    fv_rows rows;
    for (fv__rows_begin(&rows, &to->region); fv__rows_next(&rows);) {
        void       *row = fv__block_at(to, rows.position);
        const void *other = term ? fv__block_at(term, rows.position) : NULL;
        if (what == ADD || what == ADD_SQUARE)
            single ? combine_float(row, other, n, what == ADD_SQUARE) : combine_double(row, other, n, what == ADD_SQUARE);
        else if (what == SQUARE)
            single ? square_float(row, n) : square_double(row, n);
        else
            single ? root_float(row, n, (float)scale) : root_double(row, n, scale);
    }
}

static void run_term(const one *o, const fv_run *r, const fv_need *slab, const fv_block *out, void *scratch) {
    fv_separable s = separable(o, &slab->in[0]->image);
    fv_region    in = fv__box_need(&s.box, &slab->in[0]->image, &slab->region);
    fv_block     window = fv__block_window(r->in[0], &in);
    fv_run       part = { .need = *slab, .in[0] = &window, .out = out, .chunk = -1, .scratch = scratch };
    fv__separable_run(&s, &part);
}

void fv__terms_run(const fv_terms *t, const fv_run *r) {
    void *term_data, *rest;
    if (fv__region_empty(&r->need.region)) return;
    lay_out(t, &r->need, r->scratch, &term_data, &rest);
    fv_lattice lattice = slabs(t, &r->need);
    for (int64_t i = 0; i < fv__lattice_count(&lattice); i++) {
        fv_need  slab = slab_need(&r->need, &lattice, i);
        fv_block out = fv__block_window(r->out, &slab.region), term;
        run_term(&(one){ t, 0 }, r, &slab, &out, rest);
        if (t->magnitude) apply(SQUARE, &out, NULL, 0);
        fv__block_init(&term, r->out->dtype, &slab.region, term_data);
        for (int k = 1; k < t->count; k++) {
            run_term(&(one){ t, k }, r, &slab, &term, rest);
            apply(t->magnitude ? ADD_SQUARE : ADD, &out, &term, 0);
        }
        if (t->magnitude) apply(ROOT, &out, NULL, t->scale);
    }
}

double fv__terms_cost(const fv_terms *t, const fv_need *n) {
    double taps = 0;
    int    axis[FV_MAX_DIMS], naxes = fv_image_type_spatial(&n->in[0]->image, axis);
    for (int term = 0; term < t->count; term++)
        for (int k = 0; k < naxes && k < 3; k++) taps += (double)t->size(t->params, term, k);
    return 0.4 * t->count + taps * (fv__separable_type(n->in[0]->image.dtype) == FV_FLOAT32 ? 0.03 : 0.06);
}

fv_status fv__spread_axis(int64_t *axis, int n, fv_error *error) {
    if (*axis < -n || *axis >= n)
        return fv_fail(error, FV_ERROR_USAGE, "axis = %lld: the image has %d spatial axes; 0 to %d (or -%d to -1) are possible",
                       (long long)*axis, n, n - 1, n);
    if (*axis < 0) *axis += n;
    return FV_OK;
}
