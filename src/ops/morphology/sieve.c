/* Objects that stay or go; see sieve.h. */
#include "ops/morphology/sieve.h"
#include "base/take.h"
#include "kernels/components.h"
#include "kernels/label_set.h"
#include "op/chunks.h"
#include "op/scratch.h"
#include <stdlib.h>

static bool has_labels(const fv_type *image) { return image->image.dtype != FV_BOOL; }

fv_status fv__sieve_infer(fv_infer *i, const fv__sieve *s, bool labels, fv_error *error) {
    const fv_image_type *image = &i->in[0]->image;
    int                  spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    if (image->dtype != FV_BOOL && !(labels && fv_dtype_is_integer(image->dtype)))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s; it must be bool%s (image > 0 makes a bool image)",
                       fv_dtype_name(image->dtype), labels ? " or an integer label image" : "");
    if (n < 1 || n > 3)
        return fv_fail(error, FV_ERROR_USAGE, "image has %d spatial axes; one to three named z, y, x are needed", n);
    if (s->connectivity > n)
        return fv_fail(error, FV_ERROR_USAGE, "connectivity = %lld: at most %d, the number of spatial axes of the image",
                       (long long)s->connectivity, n);
    return FV_OK;
}

/* ---------------------------------------------------------------- pass "objects" */

fv_region fv__sieve_objects_need(const fv_need *n) {
    return has_labels(n->in[0]) ? n->region : fv__components_need(&n->region, &n->in[0]->image);
}

size_t fv__sieve_objects_scratch(const fv_need *n, const fv__sieve *s) {
    fv_region     region = fv__sieve_objects_need(n);
    fv__label_set set;
    return has_labels(n->in[0]) ? fv__label_set_init(&set, &region, NULL)
                                : fv__runs_scratch(&n->in[0]->image, region.size, s->connectivity);
}

size_t fv__sieve_objects_bound(const fv_need *n, const fv__sieve *s) {
    return has_labels(n->in[0]) ? (size_t)fv__region_voxels(&n->region) * sizeof(fv__labelled)
                                : fv__components_bound(n, s->connectivity);
}

/* Image coordinates of the first voxel of a row. */
static void row_position(const fv__runs *r, int64_t group, int64_t z, int64_t y, int64_t *position) {
    const fv_region *region = &r->in->region;
    for (int i = r->nothers - 1; i >= 0; i--) {
        position[r->other[i]] = region->start[r->other[i]] + group % region->size[r->other[i]];
        group /= region->size[r->other[i]];
    }
    if (r->axis[0] >= 0) position[r->axis[0]] = region->start[r->axis[0]] + z;
    if (r->axis[1] >= 0) position[r->axis[1]] = region->start[r->axis[1]] + y;
    position[r->axis[2]] = region->start[r->axis[2]];
}

/* End of the run of ones that goes on at bit x. */
static int64_t run_end(const uint64_t *bits, int64_t x, int64_t n) {
    for (; x < n; x = (x | 63) + 1) {
        uint64_t zeros = ~bits[x / 64] >> (x & 63);
        if (zeros) return FV_MIN(n, x + __builtin_ctzll(zeros));
    }
    return n;
}

static int64_t run_start(const uint64_t *bits, int64_t x, int64_t n) {
    for (; x < n; x = (x | 63) + 1) {
        uint64_t ones = bits[x / 64] >> (x & 63);
        if (ones) return FV_MIN(n, x + __builtin_ctzll(ones));
    }
    return n;
}

/* Counts a chunk's own voxels of a row into their components. */
static void count_row(const fv__runs *r, const fv__sieve *s, const fv_image_type *image, int64_t group, int64_t z, int64_t y,
                      int64_t n, int64_t *count) {
    const uint64_t *bits = fv__runs_row(r, group, z, y);
    int64_t         row = fv__runs_joined(r, group, z, y), position[FV_MAX_DIMS], end;
    row_position(r, group, z, y, position);
    int64_t first = position[r->axis[2]];
    for (int64_t x = run_start(bits, 0, n); x < n; x = run_start(bits, end, n)) {
        end = run_end(bits, x, n);
        count[fv__runs_component(r, row, x / 64, (int)(x & 63))] +=
            2 * fv__border_count(image, s->border, r->axis[2], position, first + x, first + end);
    }
}

static fv_status objects_of_bool(fv_run *r, const fv__sieve *s, fv_error *error) {
    const fv_image_type *image = &r->need.in[0]->image;
    const fv_region     *own = &r->need.region;
    fv__components_head  head = { 0 };
    fv__runs             runs;
    FV_TRY(fv__components_check(image, &r->in[0]->region, s->connectivity, error));
    fv__runs_init(&runs, image, r->in[0], s->connectivity, r->scratch);
    runs.zeros = s->holes;
    fv__runs_find(&runs);
    fv__runs_number(&runs, NULL);
    fv__bytes_append(r->partial, &head, sizeof head);
    int64_t *count = fv__bytes_append(r->partial, NULL, (size_t)runs.ncomponents * sizeof *count);
    memset(count, 0, (size_t)runs.ncomponents * sizeof *count);
    int64_t nz = runs.axis[0] >= 0 ? own->size[runs.axis[0]] : 1, ny = runs.axis[1] >= 0 ? own->size[runs.axis[1]] : 1;
    for (int64_t group = 0; group < runs.groups; group++)
        for (int64_t z = 0; z < nz; z++)
            for (int64_t y = 0; y < ny; y++) count_row(&runs, s, image, group, z, y, own->size[runs.axis[2]], count);
    fv__components_close(&runs, own, r->partial);
    return FV_OK;
}

fv_status fv__sieve_objects(fv_run *r, const fv__sieve *s, fv_error *error) {
    fv__label_set set;
    if (!has_labels(r->need.in[0])) return objects_of_bool(r, s, error);
    fv__label_set_init(&set, &r->need.region, r->scratch);
    FV_TRY(fv__label_set_gather(&set, r->in[0], &r->need.in[0]->image, s->border, error));
    fv__bytes_append(r->partial, set.item, (size_t)set.count * sizeof *set.item);
    return FV_OK;
}

/* ---------------------------------------------------------------- deciding */

static uint8_t stays(const fv__sieve *s, int64_t count) { return count >= s->least && count <= s->most; }

static int64_t decide_label(void *context, int64_t label, int64_t count) {
    (void)label;
    return stays(context, count);
}

#define WINDOW 4096 /* components read at a time */

typedef struct {
    const fv__sieve *s;
    fv__components  *joined;
    int64_t         *total, chunk;
    fv_finish       *f;
} deciding;

static fv_status add_entry(deciding *d, int64_t entry, int64_t node, fv_error *error) {
    (void)error;
    if (node >= 0) d->total[fv__components_root(d->joined->parent, node)] += entry >> 1;
    return FV_OK;
}

static fv_status put_entry(deciding *d, int64_t entry, int64_t node, fv_error *error) {
    uint8_t keep = stays(d->s, node >= 0 ? d->total[fv__components_root(d->joined->parent, node)] : entry >> 1);
    return d->f->put(d->f, d->chunk, &keep, 1, error);
}

/* Calls visit for every component of a chunk, with its node if it lies on a shared plane, else -1. */
static fv_status each_component(deciding *d, fv_status (*visit)(deciding *, int64_t, int64_t, fv_error *), fv_error *error) {
    int64_t window[WINDOW], count = d->joined->head[d->chunk].components, node = d->joined->base[d->chunk];
    for (int64_t done = 0; done < count; done += WINDOW) {
        int64_t n = FV_MIN(WINDOW, count - done);
        FV_TRY(d->f->read(d->f, d->chunk, sizeof(fv__components_head) + (size_t)done * 8, window, (size_t)n * 8, error));
        for (int64_t i = 0; i < n; i++) FV_TRY(visit(d, window[i], window[i] & 1 ? node++ : -1, error));
    }
    return FV_OK;
}

fv_status fv__sieve_finish(fv_finish *f, const fv__sieve *s, fv_error *error) {
    fv__components joined;
    if (has_labels(f->in[0])) return fv__label_sets_merge(f, decide_label, (void *)(uintptr_t)s, error);
    fv_status status = fv__components_join(&joined, f, error);
    deciding  d = { .s = s, .joined = &joined, .f = f };
    if (status == FV_OK) status = FV_TAKE_ZEROED(d.total, (size_t)joined.nodes * sizeof *d.total + 1, error);
    for (int pass = 0; pass < 2; pass++)
        for (d.chunk = 0; d.chunk < f->npartials && status == FV_OK; d.chunk++)
            status = each_component(&d, pass ? put_entry : add_entry, error);
    free(d.total);
    fv__components_free(&joined);
    return status;
}

/* ---------------------------------------------------------------- pass "keep" */

static fv_region largest_chunk(const fv_need *n) {
    fv_region chunk = fv__region_whole(&n->in[0]->image);
    for (int d = 0; n->lattice && n->lattice->ndim && d < chunk.ndim; d++)
        chunk.size[d] = FV_MIN(n->lattice->chunk[d], n->lattice->shape[d]);
    return has_labels(n->in[0]) ? chunk : fv__components_need(&chunk, &n->in[0]->image);
}

fv_region fv__sieve_keep_need(const fv_need *n) {
    fv_region chunks = n->lattice && n->lattice->ndim ? fv__lattice_align(n->lattice, &n->region) : n->region;
    return has_labels(n->in[0]) ? chunks : fv__components_need(&chunks, &n->in[0]->image);
}

size_t fv__sieve_keep_scratch(const fv_need *n, const fv__sieve *s) {
    fv_region     chunk = largest_chunk(n);
    fv__label_set set;
    return has_labels(n->in[0]) ? fv__label_set_init(&set, &chunk, NULL)
                                : fv__runs_scratch(&n->in[0]->image, chunk.size, s->connectivity);
}

/* Writes what stays of positions from..to of a row; with holes, everything but the background that stays. */
static void keep_row(const fv__runs *r, const uint8_t *keep, bool holes, const int64_t *position, int64_t n,
                     const fv_block *out) {
    int64_t at[3] = { 0 }, group = 0, stride = out->stride[r->axis[2]], end;
    for (int which = 0; which < 3; which++)
        if (r->axis[which] >= 0) at[which] = position[r->axis[which]] - r->in->region.start[r->axis[which]];
    for (int k = 0; k < r->nothers; k++)
        group = group * r->in->region.size[r->other[k]] + position[r->other[k]] - r->in->region.start[r->other[k]];
    int64_t         row = fv__runs_joined(r, group, at[0], at[1]);
    const uint64_t *bits = fv__runs_row(r, group, at[0], at[1]);
    uint8_t        *to = fv__block_at(out, position);
    for (int64_t i = 0; i < n; i++) to[i * stride] = holes;
    for (int64_t x = run_start(bits, at[2], at[2] + n); x < at[2] + n; x = run_start(bits, end, at[2] + n)) {
        end = run_end(bits, x, at[2] + n);
        uint8_t value = keep[fv__runs_component(r, row, x / 64, (int)(x & 63))] ^ holes;
        for (int64_t i = x - at[2]; i < end - at[2]; i++) to[i * stride] = value;
    }
}

static void keep_rows(const fv__runs *r, const uint8_t *keep, bool holes, const fv_region *part, const fv_block *out) {
    int       last = part->ndim - 1;
    fv_region starts = *part; /* of the rows; they need not lie along the last axis */
    fv_rows   rows;
    starts.size[r->axis[2]] = 1;
    for (fv__rows_begin(&rows, &starts); fv__rows_next(&rows);)
        for (int64_t i = 0; i < starts.size[last]; i++) {
            int64_t position[FV_MAX_DIMS];
            memcpy(position, rows.position, sizeof position);
            position[last] += i;
            keep_row(r, keep, holes, position, part->size[r->axis[2]], out);
        }
}

static fv_status get_decisions(fv_run *r, int64_t chunk, int64_t count, size_t size, const void **data, fv_error *error) {
    size_t have;
    FV_TRY(r->results->get(r->results, chunk, data, &have, error));
    if (have == (size_t)count * size) return FV_OK;
    return fv_fail(error, FV_ERROR_INTERNAL, "what was decided for chunk %lld does not fit its objects", (long long)chunk);
}

static fv_status keep_bool(fv_run *r, const fv__sieve *s, int64_t chunk, fv_error *error) {
    const fv_image_type *image = &r->need.in[0]->image;
    fv_region            own = fv__lattice_chunk(r->need.lattice, chunk), region = fv__components_need(&own, image);
    fv_region            part = fv__region_intersect(&own, &r->need.region);
    fv_block             in = fv__block_window(r->in[0], &region);
    fv__runs             runs;
    const void          *keep;
    fv__runs_init(&runs, image, &in, s->connectivity, r->scratch);
    runs.zeros = s->holes;
    fv__runs_find(&runs);
    fv__runs_number(&runs, NULL);
    FV_TRY(get_decisions(r, chunk, runs.ncomponents, 1, &keep, error));
    keep_rows(&runs, keep, s->holes, &part, r->out);
    return FV_OK;
}

static fv_status keep_labels(fv_run *r, int64_t chunk, fv_error *error) {
    fv_region     own = fv__lattice_chunk(r->need.lattice, chunk), part = fv__region_intersect(&own, &r->need.region);
    fv_block      in = fv__block_window(r->in[0], &own);
    int           last = part.ndim - 1;
    size_t        size = fv_dtype_size(in.dtype);
    fv__label_set set;
    fv_rows       rows;
    const void   *keep;
    fv__label_set_init(&set, &own, r->scratch);
    FV_TRY(fv__label_set_gather(&set, &in, &r->need.in[0]->image, 0, error));
    FV_TRY(get_decisions(r, chunk, set.count, sizeof(int64_t), &keep, error));
    for (fv__rows_begin(&rows, &part); fv__rows_next(&rows);) {
        const char *from = fv__block_at(&in, rows.position);
        char       *to = fv__block_at(r->out, rows.position);
        int64_t     count = fv__stretches(set.row, in.dtype, from, part.size[last]);
        memset(to, 0, (size_t)part.size[last] * size);
        for (int64_t i = 0; i < count; i++) {
            const fv_stretch *x = &set.row[i];
            if (((const int64_t *)keep)[fv__label_set_find(&set, x->label)])
                memcpy(to + x->start * (int64_t)size, from + x->start * (int64_t)size, (size_t)(x->end - x->start) * size);
        }
    }
    return FV_OK;
}

fv_status fv__sieve_keep(fv_run *r, const fv__sieve *s, fv_error *error) {
    fv_chunks chunks;
    for (fv__chunks_begin(&chunks, r->need.lattice, &r->need.region); fv__chunks_next(&chunks);)
        FV_TRY(has_labels(r->need.in[0]) ? keep_labels(r, chunks.index, error) : keep_bool(r, s, chunks.index, error));
    return FV_OK;
}
