/* The frame of iterative reconstruction. */
#include "ops/tomography/solver.h"
#include "op/scratch.h"

enum { LANES = FV_BEAM_LANES };

static fv_status check_shape(const fv_type *type, const fv_image_type *volume, const char *name, fv_error *error) {
    if (type->kind != FV_KIND_IMAGE) return FV_OK;
    const fv_image_type *image = &type->image;
    bool same = image->ndim == volume->ndim && !memcmp(image->shape, volume->shape, sizeof(int64_t) * (size_t)volume->ndim);
    if (same && !fv_dtype_is_complex(image->dtype)) return FV_OK;
    char      have[96], wanted[96];
    fv_region a = fv__region_whole(image), b = fv__region_whole(volume);
    fv__region_format(&a, have, sizeof have);
    fv__region_format(&b, wanted, sizeof wanted);
    return fv_fail(error, FV_ERROR_USAGE, "%s spans %s, the volume %s; it must be real and of the same shape", name, have,
                   wanted);
}

fv_status fv__solver_shapes(const fv_infer *i, fv_error *error) {
    if (((const fv_solver *)i->params)->done <= 0) FV_TRY(check_shape(i->in[FV_SOLVER_START], &i->out->image, "start", error));
    return check_shape(i->in[FV_SOLVER_MASK], &i->out->image, "mask", error);
}

fv_status fv__solver_infer(fv_infer *i, fv_error *error) {
    fv_solver *p = i->params;
    fv_scan    scan;
    FV_TRY(fv__scan_find(&i->in[FV_SOLVER_PROJECTIONS]->image, &p->geometry, &scan, error));
    FV_TRY(fv__scan_volume(&i->in[FV_SOLVER_PROJECTIONS]->image, &scan, &p->size, &i->out->image, error));
    if (p->subsets && p->subsets != scan.nangles)
        return fv_fail(error, FV_ERROR_USAGE, "subsets = %lld: parallel beams are used projection by projection; leave it out",
                       (long long)p->subsets);
    FV_TRY(fv__solver_shapes(i, error));
    int64_t *rows = &i->out->image.shape[i->out->image.ndim - 2];
    if (p->state) *rows = p->state * *rows + 1;
    return FV_OK;
}

/* Rows of a slice, where the result has so many. */
static int64_t slice_rows(const fv_solver *p, const fv_image_type *out) {
    int64_t rows = out->shape[out->ndim - 2];
    return p->state ? (rows - 1) / p->state : rows;
}

void fv__solver_need(const fv_need *n, fv_region *in) {
    fv_scan scan;
    fv__scan_find(&n->in[0]->image, &((const fv_solver *)n->params)->geometry, &scan, NULL);
    in[FV_SOLVER_PROJECTIONS] = fv__scan_need(&scan, &n->in[0]->image, &n->region);
    for (int k = FV_SOLVER_START; k < FV_SOLVER_INPUTS; k++) { /* whole slices */
        if (n->in[k]->kind == FV_KIND_IMAGE) in[k] = fv__region_whole(&n->in[k]->image);
        if (in[k].ndim < 3) continue;
        in[k].start[0] = n->region.start[0];
        in[k].size[0] = n->region.size[0];
    }
}

size_t fv__solver_lay_out(const fv_need *n, const fv_method *method, fv_solving *s, void *memory) {
    const fv_image_type *out = &n->out->image;
    fv_scratch           pieces = { memory };
    *s = (fv_solving){ .solver = n->params };
    fv__scan_find(&n->in[0]->image, &s->solver->geometry, &s->scan, NULL);
    s->beam = (fv_beam){ s->scan.nangles, s->scan.ncolumns, slice_rows(s->solver, out), out->shape[out->ndim - 1], NULL };
    const fv_beam *b = &s->beam;
    int64_t        longest = FV_MAX(FV_MAX(b->rows, b->width), b->columns);
    s->beam.angle = fv__scratch_take(&pieces, b->nangles * (int64_t)sizeof(fv_beam_angle));
    s->rows = fv__scratch_take(&pieces, fv__bundle_rows_bytes(longest));
    s->order = fv__scratch_take(&pieces, b->nangles * (int64_t)sizeof(int32_t));
    s->line = fv__scratch_take(&pieces, fv__bundle_rows_bytes(longest));
    s->trail.offset = fv__scratch_take(&pieces, (longest + LANES) * (int64_t)sizeof(int32_t));
    s->trail.low = fv__scratch_take(&pieces, (longest + LANES) * (int64_t)sizeof(float));
    s->trail.high = fv__scratch_take(&pieces, (longest + LANES) * (int64_t)sizeof(float));
    s->lengths = fv__scratch_take(&pieces, method->weights ? b->nangles * b->columns * (int64_t)sizeof(float) : 0);
    s->coverage = fv__scratch_take(&pieces, method->weights ? b->rows * b->width * (int64_t)sizeof(float) : 0);
    s->measured = fv__scratch_take(&pieces, fv__beam_sinogram_bytes(b));
    s->rest = fv__scratch_take(&pieces, fv__beam_sinogram_bytes(b));
    s->image = fv__scratch_take(&pieces, fv__beam_image_bytes(b));
    for (int k = 0; k < method->spares; k++) s->spare[k] = fv__scratch_take(&pieces, fv__beam_image_bytes(b));
    if (n->in[FV_SOLVER_MASK]->kind == FV_KIND_IMAGE) s->mask = fv__scratch_take(&pieces, fv__beam_image_bytes(b));
    return pieces.used;
}

size_t fv__solver_scratch(const fv_need *n, const fv_method *method) {
    fv_solving s;
    return fv__solver_lay_out(n, method, &s, NULL);
}

void fv__solver_slab(const fv_need *n, int64_t *chunk) {
    memcpy(chunk, n->out->image.shape, sizeof(int64_t) * FV_MAX_DIMS);
    if (n->out->image.ndim == 3) chunk[0] = LANES;
}

bool fv__solver_notes(const void *params) {
    (void)params;
    return true;
}

double fv__solver_cost(const fv_need *n) {
    const fv_solver *p = n->params;
    return 0.5 * (double)p->geometry.angles.count * (double)p->iterations;
}

/* What a kill may cost at most: a task does not take longer than this, unless a single iteration does. */
#define LONGEST_TASK 2.5e9 /* nanoseconds */
enum { MOST_PARTS = 1000 };

/* The volume inside a state, limited as the last part of a solve does it. */
static void write_volume(const fv_solver *p, const fv_image_type *volume, bool mask, fv_bytes *text) {
    fv__bytes_printf(text, "volume = x%lld[%s0:%lld, :]\n", (long long)p->iterations, volume->ndim < 3 ? "" : ":, ",
                     (long long)volume->shape[volume->ndim - 2]);
    if (p->nonnegative) fv__bytes_printf(text, "volume = where(volume > 0, volume, 0)\n");
    if (mask) fv__bytes_printf(text, "volume = where(convert(mask, \"float32\") != 0, volume, 0)\n");
}

void fv__solver_unroll(fv_infer *i, const char *name, const fv_method *method, const fv_param *params, fv_bytes *text) {
    const fv_solver *p = i->params;
    fv_numbers       size = p->size;
    fv_scan          scan;
    if (p->done >= 0 || fv__scan_find(&i->in[0]->image, &p->geometry, &scan, NULL) != FV_OK ||
        fv__scan_volume(&i->in[0]->image, &scan, &size, &i->out->image, NULL) != FV_OK)
        return; /* a part already, or a mistake that inference will tell */
    const int64_t *shape = i->out->image.shape + i->out->image.ndim - 2;
    double         iteration = 0.5 * (double)scan.nangles * (double)(shape[0] * shape[1] * LANES);
    int64_t        most = FV_MAX((int64_t)(LONGEST_TASK / iteration), (p->iterations + MOST_PARTS - 1) / MOST_PARTS);
    bool           start = i->in[FV_SOLVER_START]->kind == FV_KIND_IMAGE, mask = i->in[FV_SOLVER_MASK]->kind == FV_KIND_IMAGE;
    int            state = method->carried || p->stop > 0 ? 1 + method->carried : 0; /* 0: the volume says all */
    int64_t        every = method->carried ? 0 : p->every; /* parts of a method that carries something have bits of their own */
    if (!every && p->iterations <= most) return;
    for (int64_t done = 0, n; done < p->iterations; done += n) {
        n = FV_MIN(most, p->iterations - done);
        if (every) n = FV_MIN(n, every - done % every);
        fv__bytes_printf(text, "x%lld = %s(projections%s%s, iterations = %lld, done = %lld, state = %d", (long long)(done + n),
                         name, mask ? ", mask = mask" : "", !done && start ? ", start = start" : "", (long long)n,
                         (long long)done, done + n < p->iterations || every ? state : 0);
        if (done) fv__bytes_printf(text, ", start = x%lld", (long long)done);
        for (const fv_param *each = params; each->name && !each->own; each++)
            if (strcmp(each->name, "iterations") && (strcmp(each->name, "size") || size.count))
                fv__bytes_printf(text, ", %s = %s", each->name, each->name);
        fv__bytes_printf(text, ")\n");
    }
    if (every && state) write_volume(p, &i->out->image, mask, text);
}

/* ---------------------------------------------------------------- what methods share */

void fv__solver_square(const float *from, int64_t n, double to[LANES]) {
    double sum[LANES] = { 0 };
    for (int64_t i = 0; i < n; i++)
        for (int l = 0; l < LANES; l++) sum[l] += (double)from[i * LANES + l] * (double)from[i * LANES + l];
    memcpy(to, sum, sizeof sum);
}

void fv__solver_residual(fv_solving *s) {
    const fv_beam *b = &s->beam;
    for (int64_t a = 0; a < b->nangles; a++) {
        float *to = fv__beam_ray(b, s->rest, a, 0), *from = fv__beam_ray(b, s->measured, a, 0);
        FV_ISA_NAME(fv__beam_project)(b, s->image, a, 0, b->columns, to);
        for (int64_t i = 0; i < b->columns * LANES; i++) to[i] = from[i] - to[i];
    }
    fv__solver_square(s->rest, b->nangles * (b->columns + 2 * FV_BEAM_PAD), s->residual);
}

bool fv__solver_stop(fv_solving *s) {
    double limit = s->solver->stop * s->solver->stop;
    bool   any = false;
    for (int l = 0; l < LANES; l++) {
        if (limit > 0 && s->step[l] > 0 && s->residual[l] <= limit * s->measure[l]) {
            s->step[l] = 0;
            s->reached[l] = s->residual[l];
        }
        any = any || s->step[l] > 0;
    }
    return any;
}

void fv__solver_limit(const fv_solving *s, int64_t y) {
    int64_t      n = s->beam.width * LANES;
    float       *x = fv__beam_voxel(&s->beam, s->image, y, 0);
    const float *inside = s->mask ? fv__beam_voxel(&s->beam, s->mask, y, 0) : NULL;
    for (int64_t i = 0; i < n && s->solver->nonnegative; i++) x[i] = x[i] > 0 ? x[i] : 0;
    for (int64_t i = 0; i < n && inside; i++) x[i] = inside[i] != 0 ? x[i] : 0;
}

/* ---------------------------------------------------------------- a bundle from start to end */

/* Rows [first, first + rows) of what a solve begins with, as a volume. */
static fv_block rows_of(const fv_block *start, int64_t first, int64_t rows) {
    int       y = start->region.ndim - 2;
    fv_region region = start->region;
    region.start[y] = first;
    region.size[y] = rows;
    return fv__block_window(start, &region);
}

/* The state that another part has left: what is carried, and which slices have stopped. */
static fv_status take_state(const fv_block *start, const fv_method *method, fv_solving *s, int64_t first, int64_t slices,
                            fv_error *error) {
    int64_t rows = s->beam.rows, images = start->region.size[start->region.ndim - 2] / rows;
    for (int k = 0; k < method->carried; k++) {
        fv_block from = rows_of(start, (k + 1) * rows, rows);
        float   *to = s->spare[method->spares - method->carried + k];
        FV_TRY(fv__bundle_pack(&s->beam, &from, first, slices, "state", s->rows, to, error));
    }
    fv_block last = rows_of(start, images * rows, 1);
    int      flat = last.region.ndim < 3;
    for (int64_t l = 0; l < slices; l++) {
        float reached = ((const float *)last.data)[flat ? 0 : (first + l - last.region.start[0]) * last.stride[0]];
        if (reached < 0) continue;
        s->step[l] = 0;
        s->reached[l] = (double)reached * s->measure[l];
    }
    return FV_OK;
}

static fv_status begin(fv_run *r, const fv_method *method, fv_solving *s, int64_t first, int64_t slices, fv_error *error) {
    const fv_beam *b = &s->beam;
    FV_TRY(fv__scan_pack(&s->scan, r->in[FV_SOLVER_PROJECTIONS], first, slices, s->rows, s->measured, error));
    memset(s->rest, 0, (size_t)fv__beam_sinogram_bytes(b));
    memset(s->image, 0, (size_t)fv__beam_image_bytes(b));
    for (int k = 0; k < method->spares; k++) memset(s->spare[k], 0, (size_t)fv__beam_image_bytes(b));
    if (r->in[FV_SOLVER_MASK]) FV_TRY(fv__bundle_pack(b, r->in[FV_SOLVER_MASK], first, slices, "mask", s->rows, s->mask, error));
    const fv_block *start = r->in[FV_SOLVER_START];
    if (start)
        FV_TRY(fv__bundle_pack(b, start, first, slices, "start", s->rows, s->image, error));
    else if (method->positive)
        for (int64_t y = 0; y < b->rows; y++)
            for (int64_t i = 0; i < b->width * LANES; i++) fv__beam_voxel(b, s->image, y, 0)[i] = 1;
    for (int64_t y = 0; y < b->rows && s->solver->done <= 0; y++) fv__solver_limit(s, y);
    fv__solver_square(s->measured, b->nangles * (b->columns + 2 * FV_BEAM_PAD), s->measure);
    for (int l = 0; l < LANES; l++)
        s->step[l] = s->solver->relaxation > 0 ? (float)s->solver->relaxation : 1; /* cgls and mlem have none */
    bool state = start && s->solver->done > 0 && start->region.size[start->region.ndim - 2] > b->rows;
    return state ? take_state(start, method, s, first, slices, error) : FV_OK;
}

static bool any_goes_on(const fv_solving *s, int64_t slices) {
    for (int l = 0; l < slices; l++)
        if (s->step[l] > 0) return true;
    return false;
}

void fv__solver_note(const fv_solving *s, int64_t first, int64_t slices, fv_bytes *to) {
    for (int l = 0; l < slices; l++) {
        fv_note step = { first + l, FV_MAX(s->solver->done, 0) + s->iteration + 1, s->residual[l], s->measure[l], 1 };
        if (s->step[l] > 0) fv__bytes_append(to, &step, sizeof step);
    }
}

/* What slices have reached that had stopped before this part of a solve. */
static void note_stopped(const fv_solving *s, int64_t first, int64_t slices, fv_bytes *to) {
    for (int l = 0; l < slices; l++) {
        fv_note step = { first + l, s->solver->done, s->reached[l], s->measure[l], 0 };
        if (!(s->step[l] > 0)) fv__bytes_append(to, &step, sizeof step);
    }
}

/* Line y of the result, from column x on: of the volume, of what is carried, or the last one of a state. */
static const float *result_line(const fv_solving *s, const fv_method *method, int64_t y, int64_t x) {
    int64_t image = y / s->beam.rows;
    if (image > method->carried) {
        memset(s->line, 0, (size_t)(s->beam.width * LANES) * sizeof(float));
        for (int l = 0; l < LANES; l++)
            s->line[l] = s->step[l] > 0 ? -1 : s->measure[l] > 0 ? (float)(s->reached[l] / s->measure[l]) : 0;
        return s->line + x * LANES;
    }
    float *from = image ? s->spare[method->spares - method->carried + image - 1] : s->image;
    return fv__beam_voxel(&s->beam, from, y % s->beam.rows, x);
}

static void take_out(const fv_solving *s, const fv_method *method, const fv_block *out, int64_t z, int64_t slices) {
    int     flat = out->region.ndim < 3;
    int64_t stride = flat ? 0 : out->stride[0];
    for (int64_t i = 0; i < out->region.size[1 - flat]; i++)
        fv__bundle_unpack(result_line(s, method, out->region.start[1 - flat] + i, out->region.start[2 - flat]),
                          out->region.size[2 - flat], slices, (float *)out->data + z * stride + i * out->stride[1 - flat],
                          stride);
}

/* Step k begins at the fraction k * 0.618... of all angles and takes the next one that is free. */
void fv__solver_spread(int64_t n, int32_t *order) {
    for (int64_t i = 0; i < n; i++) order[i] = -1;
    for (int64_t k = 0; k < n; k++) {
        double  turns = (double)k * 0.6180339887498949;
        int64_t at = FV_MIN((int64_t)((turns - floor(turns)) * (double)n), n - 1);
        for (int64_t tried = 0; tried < n; tried++, at = (at + 1) % n) {
            bool used = false;
            for (int64_t i = 0; i < k && !used; i++) used = order[i] == at;
            if (!used) break;
        }
        order[k] = (int32_t)at;
    }
}

fv_bytes *fv__solver_listener(const fv_run *r) {
    const fv_region *out = &r->out->region;
    return out->start[out->ndim - 1] || out->start[out->ndim - 2] ? NULL : r->notes;
}

fv_status fv__solver_run(fv_run *r, const fv_method *method, fv_error *error) {
    fv_solving s;
    int64_t    first, count;
    fv_bytes  *notes = fv__solver_listener(r);
    fv__solver_lay_out(&r->need, method, &s, r->scratch);
    FV_ISA_NAME(fv__beam_prepare)(&s.beam, &s.solver->geometry);
    fv__solver_spread(s.beam.nangles, s.order);
    for (int64_t a = 0; a < s.beam.nangles && method->weights; a++)
        FV_ISA_NAME(fv__beam_lengths)(&s.beam, a, s.lengths + a * s.beam.columns);
    for (int64_t y = 0; y < s.beam.rows && method->weights; y++)
        FV_ISA_NAME(fv__beam_coverage)(&s.beam, 0, s.beam.nangles, y, s.coverage + y * s.beam.width);
    fv__scan_slices(&r->out->region, r->out->region.ndim < 3 ? -1 : 0, &first, &count);
    for (int64_t z = 0; z < count; z += LANES) {
        int64_t slices = FV_MIN(LANES, count - z);
        FV_TRY(begin(r, method, &s, first + z, slices, error));
        if (notes && s.solver->done > 0) note_stopped(&s, first + z, slices, notes);
        for (s.iteration = 0; any_goes_on(&s, slices) && s.iteration < s.solver->iterations; s.iteration++) {
            method->iterate(&s);
            if (notes) fv__solver_note(&s, first + z, slices, notes);
            if (method->ordered) fv__solver_stop(&s);
        }
        for (int64_t y = 0; y < s.beam.rows && !s.solver->state; y++) fv__solver_limit(&s, y);
        take_out(&s, method, r->out, z, slices);
    }
    return FV_OK;
}
