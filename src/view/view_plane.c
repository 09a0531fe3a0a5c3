/* Cutting of planes. */
#include "view/view_plane.h"
#include "base/take.h"
#include "op/dense.h"
#include <stdatomic.h>
#include <stdlib.h>

enum { PLATE = 16, LEAST = 64, TILE = 512, MOST_TILE = 16 << 20 };

void fv_view_plane_axes(const fv_view_source *s, int axis, int *row, int *column) {
    static const int rows[] = { 1, 0, 0 }, columns[] = { 2, 2, 1 };
    *row = s->space[rows[axis]];
    *column = s->space[columns[axis]];
}

int fv_view_plane_samples(const fv_view_source *s) { return s->colour >= 0 ? 3 : 1; }

/* ---------------------------------------------------------------- plates */

/* A lattice of plates for planes across an axis. */
typedef struct {
    const fv_view_plane *plane;
    int                  row, column, across; /* axes; -1: none */
    int64_t              tile[2];             /* extent along rows and columns */
    int64_t              first, thick;        /* planes of the plate that the plane is in */
    int64_t              count[2], start[2];  /* tiles that the wanted part meets */
} plates;

static int64_t extent(const fv_view_level *l, int d) { return d < 0 ? 1 : l->shape[d]; }

/* Chunks as they are seen in a level that takes every n-th voxel. */
static int64_t chunk_of(const fv_view_level *l, int d) { return d < 0 ? 1 : FV_MAX(l->chunk[d] / l->step[d], 1); }

static int64_t tile_of(const fv_view_level *l, int d) {
    int64_t chunk = chunk_of(l, d);
    if (!l->whole_pieces && chunk > TILE) return TILE;
    return chunk >= LEAST ? chunk : (LEAST + chunk - 1) / chunk * chunk;
}

/* Pieces that lie dense in the file are read when they are wanted, but for planes that take one voxel of each row. */
static int64_t thickness(const fv_view_source *s, const fv_view_level *l, int across) {
    int64_t chunk = chunk_of(l, across);
    if (across < 0) return 1;
    if (!l->whole_pieces) return across == s->space[2] && !s->compute ? PLATE : 1;
    return FV_MIN(chunk, (int64_t)PLATE);
}

static void lay_out(plates *p, const fv_view_plane *plane) {
    const fv_view_level *l = &plane->source->level[plane->level];
    *p = (plates){ .plane = plane, .across = plane->source->space[plane->axis] };
    fv_view_plane_axes(plane->source, plane->axis, &p->row, &p->column);
    p->tile[0] = tile_of(l, p->row);
    p->tile[1] = tile_of(l, p->column);
    int64_t chunk = l->whole_pieces ? chunk_of(l, p->across) : extent(l, p->across),
            thick = thickness(plane->source, l, p->across);
    int64_t voxel = (int64_t)fv_dtype_size(plane->source->type.dtype) * 4;
    while (thick > 1 && p->tile[0] * p->tile[1] * voxel * thick > MOST_TILE) thick /= 2;
    int64_t corner = plane->index / chunk * chunk; /* plates do not cross chunks */
    p->first = corner + (plane->index - corner) / thick * thick;
    p->thick = FV_MIN(FV_MIN(thick, corner + chunk - p->first), extent(l, p->across) - p->first);
    p->start[0] = plane->row / p->tile[0];
    p->start[1] = plane->column / p->tile[1];
    p->count[0] = (plane->row + plane->height - 1) / p->tile[0] - p->start[0] + 1;
    p->count[1] = (plane->column + plane->width - 1) / p->tile[1] - p->start[1] + 1;
}

static fv_region tile_region(const plates *p, int64_t index) {
    const fv_view_source *s = p->plane->source;
    const fv_view_level  *l = &s->level[p->plane->level];
    const int             axis[2] = { p->row, p->column };
    const int64_t         place[2] = { p->start[0] + index / p->count[1], p->start[1] + index % p->count[1] };
    fv_region             region = { .ndim = s->type.ndim };
    for (int d = 0; d < region.ndim; d++) {
        region.start[d] = p->plane->fixed[d];
        region.size[d] = 1;
    }
    if (s->colour >= 0) region.start[s->colour] = 0;
    if (s->colour >= 0) region.size[s->colour] = s->type.shape[s->colour];
    for (int i = 0; i < 2; i++) {
        if (axis[i] < 0) continue;
        region.start[axis[i]] = place[i] * p->tile[i];
        region.size[axis[i]] = FV_MIN(p->tile[i], l->shape[axis[i]] - region.start[axis[i]]);
    }
    if (p->across >= 0) region.start[p->across] = p->first;
    if (p->across >= 0) region.size[p->across] = p->thick;
    return region;
}

typedef struct {
    fv_view_source *source;
    int             level;
    fv_region       region;
} wanted;

static fv_status load(void *context, void *data, fv_error *error) {
    const wanted *w = context;
    return fv_view_source_read(w->source, w->level, &w->region, data, error);
}

static fv_hash key_of(const wanted *w, int axis) {
    int64_t parts[3 + 2 * FV_MAX_DIMS] = { (int64_t)w->source->serial, w->level, axis };
    memcpy(parts + 3, w->region.start, sizeof w->region.start);
    memcpy(parts + 3 + FV_MAX_DIMS, w->region.size, sizeof w->region.size);
    return fv__hash_bytes(parts, sizeof parts);
}

static size_t bytes_of(const wanted *w) { return (size_t)fv__region_voxels(&w->region) * fv_dtype_size(w->source->type.dtype); }

/* ---------------------------------------------------------------- copying */

/* The part of a tile that the plane wants, to its place there. */
static void copy_part(const plates *p, const fv_region *tile, const char *from, char *to) {
    const fv_view_plane *plane = p->plane;
    size_t               size = fv_dtype_size(plane->source->type.dtype);
    int                  samples = fv_view_plane_samples(plane->source);
    fv_block             block;
    int64_t              start[2], end[2], step[2] = { 0, 0 };
    const int            axis[2] = { p->row, p->column };
    const int64_t        first[2] = { plane->row, plane->column }, length[2] = { plane->height, plane->width };
    fv__block_init(&block, plane->source->type.dtype, tile, (void *)from);
    for (int i = 0; i < 2; i++) {
        start[i] = axis[i] < 0 ? 0 : FV_MAX(first[i], tile->start[axis[i]]);
        end[i] = axis[i] < 0 ? 1 : FV_MIN(first[i] + length[i], tile->start[axis[i]] + tile->size[axis[i]]);
        if (axis[i] >= 0) step[i] = block.stride[axis[i]];
    }
    int64_t position[FV_MAX_DIMS];
    memcpy(position, tile->start, sizeof position);
    if (p->across >= 0) position[p->across] = plane->index;
    for (int i = 0; i < 2; i++)
        if (axis[i] >= 0) position[axis[i]] = start[i];
    from = fv__block_at(&block, position);
    for (int64_t r = start[0]; r < end[0]; r++, from += step[0] * (int64_t)size) {
        char *row = to + ((r - first[0]) * plane->width + start[1] - first[1]) * samples * (int64_t)size;
        for (int c = 0; c < samples; c++)
            fv__copy_strided(row + (size_t)c * size, samples, from + (size_t)c * size, step[1], end[1] - start[1], size);
    }
}

/* ---------------------------------------------------------------- planes */

typedef struct {
    plates         plates;
    fv_view_cache *cache;
    char          *to;
    bool (*stop)(const void *context);
    const void *context;
    atomic_int  failed; /* 1: one who failed fills the error */
    fv_status   status;
    fv_error   *error;
} job;

static void fail(job *j, fv_status status, const fv_error *error) {
    if (atomic_exchange(&j->failed, 1)) return;
    j->status = status;
    if (j->error) *j->error = *error;
}

static void do_tile(void *context, int64_t index) {
    job                 *j = context;
    const fv_view_plane *plane = j->plates.plane;
    wanted               w = { plane->source, plane->level, tile_region(&j->plates, index) };
    fv_view_piece       *piece;
    fv_error             error = { 0 };
    if (atomic_load(&j->failed)) return;
    if (j->stop && j->stop(j->context)) {
        fv_fail(&error, FV_ERROR_CANCELLED, "nobody waits for this any more");
        fail(j, FV_ERROR_CANCELLED, &error);
        return;
    }
    fv_status status = fv_view_cache_get(j->cache, key_of(&w, plane->axis), bytes_of(&w), load, &w, &piece, &error);
    if (status != FV_OK) {
        fail(j, status, &error);
        return;
    }
    copy_part(&j->plates, &w.region, fv_view_cache_data(piece), j->to);
    fv_view_cache_release(j->cache, piece);
}

/* Straight from the file: a box of it that is the plane already. */
static bool is_straight(const plates *p) {
    const fv_view_source *s = p->plane->source;
    return !s->level[p->plane->level].whole_pieces && p->thick == 1 && p->row < p->column && s->colour < 0;
}

static fv_status read_straight(const plates *p, void *data, fv_error *error) {
    const fv_view_plane *plane = p->plane;
    fv_region            region = { .ndim = plane->source->type.ndim };
    for (int d = 0; d < region.ndim; d++) {
        region.start[d] = plane->fixed[d];
        region.size[d] = 1;
    }
    if (p->across >= 0) region.start[p->across] = plane->index;
    if (p->row >= 0) region.start[p->row] = plane->row;
    if (p->row >= 0) region.size[p->row] = plane->height;
    region.start[p->column] = plane->column;
    region.size[p->column] = plane->width;
    return fv_view_source_read(plane->source, plane->level, &region, data, error);
}

fv_status fv_view_plane_read(const fv_view_plane *plane, fv_view_cache *cache, fv_view_pool *pool, void *data,
                             bool (*stop)(const void *context), const void *context, fv_error *error) {
    job j = { .cache = cache, .to = data, .stop = stop, .context = context, .error = error };
    if (plane->height < 1 || plane->width < 1) return FV_OK;
    lay_out(&j.plates, plane);
    if (is_straight(&j.plates)) return read_straight(&j.plates, data, error);
    fv_view_pool_share(pool, j.plates.count[0] * j.plates.count[1], do_tile, &j);
    return j.status;
}

/* ---------------------------------------------------------------- boxes */

static int shortest_axis(const fv_view_source *s, const fv_region *region) {
    int best = 0;
    for (int i = 1; i < FV_VIEW_SPACE; i++)
        if (s->space[i] >= 0 && (s->space[best] < 0 || region->size[s->space[i]] < region->size[s->space[best]])) best = i;
    return best;
}

static fv_status copy_plate(const plates *p, const fv_block *block, fv_view_cache *cache, fv_error *error) {
    for (int64_t i = 0; i < p->count[0] * p->count[1]; i++) {
        wanted         w = { p->plane->source, p->plane->level, tile_region(p, i) };
        fv_region      part = fv__region_intersect(&w.region, &block->region);
        fv_view_piece *piece;
        fv_block       tile, to = fv__block_window(block, &part);
        FV_TRY(fv_view_cache_get(cache, key_of(&w, p->plane->axis), bytes_of(&w), load, &w, &piece, error));
        fv__block_init(&tile, block->dtype, &w.region, (void *)fv_view_cache_data(piece));
        fv__block_copy(&to, &tile);
        fv_view_cache_release(cache, piece);
    }
    return FV_OK;
}

/* All plates of one place along axes that are not in space. */
static fv_status read_plates(fv_view_plane *plane, const fv_block *block, fv_view_cache *cache, fv_error *error) {
    const fv_region *region = &block->region;
    int              across = plane->source->space[plane->axis], row, column;
    int64_t          end = across < 0 ? 1 : region->start[across] + region->size[across];
    plates           p;
    fv_view_plane_axes(plane->source, plane->axis, &row, &column);
    plane->row = row < 0 ? 0 : region->start[row];
    plane->height = row < 0 ? 1 : region->size[row];
    plane->column = column < 0 ? 0 : region->start[column];
    plane->width = column < 0 ? 1 : region->size[column];
    for (plane->index = across < 0 ? 0 : region->start[across]; plane->index < end; plane->index = p.first + p.thick) {
        lay_out(&p, plane);
        FV_TRY(copy_plate(&p, block, cache, error));
    }
    return FV_OK;
}

fv_status fv_view_box_read(fv_view_source *s, const fv_block *block, fv_view_cache *cache, fv_error *error) {
    const fv_region *region = &block->region;
    fv_view_plane    plane = { .source = s, .axis = shortest_axis(s, region) };
    if (!s->level[0].whole_pieces || s->colour >= 0) return fv_view_source_block(s, block, error);
    memcpy(plane.fixed, region->start, sizeof plane.fixed);
    for (;;) { /* over all places along the other axes */
        FV_TRY(read_plates(&plane, block, cache, error));
        int d = region->ndim - 1;
        for (; d >= 0; d--) {
            if (d == s->space[0] || d == s->space[1] || d == s->space[2]) continue;
            if (++plane.fixed[d] < region->start[d] + region->size[d]) break;
            plane.fixed[d] = region->start[d];
        }
        if (d < 0) return FV_OK;
    }
}

/* ---------------------------------------------------------------- ahead of time */

void fv_view_plane_prepare(const fv_view_plane *plane, fv_view_cache *cache, bool (*stop)(const void *context),
                           const void *context) {
    plates p;
    lay_out(&p, plane);
    for (int64_t i = 0; i < p.count[0] * p.count[1] && !stop(context); i++) {
        wanted         w = { plane->source, plane->level, tile_region(&p, i) };
        fv_view_piece *piece;
        if (fv_view_cache_has(cache, key_of(&w, plane->axis))) continue;
        if (fv_view_cache_get(cache, key_of(&w, plane->axis), bytes_of(&w), load, &w, &piece, NULL) != FV_OK) return;
        fv_view_cache_release(cache, piece);
    }
}

int64_t fv_view_plane_beyond(const fv_view_plane *plane, int direction) {
    plates p;
    lay_out(&p, plane);
    int64_t next = direction > 0 ? p.first + p.thick : p.first - 1;
    bool    there = p.across >= 0 && next >= 0 && next < plane->source->level[plane->level].shape[p.across];
    return there && !is_straight(&p) ? next : -1;
}
