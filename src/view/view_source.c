/* Image files that are shown. */
#include "view/view_source.h"
#include "base/take.h"
#include "op/axes.h"
#include "op/dense.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SMALL = 256, SLAB = 8 << 20, CUT = 4 << 20 };

/* ---------------------------------------------------------------- axes */

static int find_axis(const fv_image_type *type, const char *name) {
    for (int d = 0; d < type->ndim; d++)
        if (!strcmp(type->axis[d], name)) return d;
    return -1;
}

/* Colour is what lies beside its neighbours in the file: three or four samples of a pixel. */
static int find_colour(const fv_image_type *type) {
    int last = type->ndim - 1;
    return last >= 2 && !strcmp(type->axis[last], "c") && (type->shape[last] == 3 || type->shape[last] == 4) &&
                   (type->dtype == FV_UINT8 || type->dtype == FV_UINT16)
               ? last
               : -1;
}

/* z, y and x by name; of images that have other names, the last axes that are neither time nor channels. */
static void find_space(fv_view_source *s) {
    static const char *const names[] = { "z", "y", "x" };
    const fv_image_type     *type = &s->type;
    memcpy(s->axis, type->axis, sizeof s->axis);
    for (int i = 0; i < FV_VIEW_SPACE; i++) s->space[i] = find_axis(type, names[i]);
    if (s->space[2] >= 0 && (s->space[1] >= 0 || type->ndim == 1)) return;
    for (int i = 0; i < FV_VIEW_SPACE; i++) s->space[i] = -1;
    for (int d = type->ndim - 1, i = FV_VIEW_SPACE - 1; d >= 0 && i >= 0; d--)
        if (strcmp(type->axis[d], "t") && strcmp(type->axis[d], "c")) s->space[i--] = d;
    for (int i = 0; i < FV_VIEW_SPACE; i++)
        if (s->space[i] >= 0) snprintf(s->axis[s->space[i]], sizeof s->axis[0], "%s", names[i]);
}

/* ---------------------------------------------------------------- levels */

static void take_level(fv_view_source *s, const fv_reader *r, const char *inside) {
    fv_view_level *l = &s->level[s->nlevels++];
    l->inside = inside ? fv__strdup(inside) : NULL;
    l->whole_pieces = r->whole_pieces;
    for (int d = 0; d < r->type.ndim; d++) {
        l->shape[d] = l->full[d] = r->type.shape[d];
        l->chunk[d] = r->chunk[d] > 0 ? r->chunk[d] : r->type.shape[d];
        l->step[d] = 1;
        l->factor[d] = r->type.shape[d] > 0 ? (s->type.shape[d] + r->type.shape[d] / 2) / r->type.shape[d] : 1;
        l->factor[d] = FV_MAX(l->factor[d], 1);
    }
}

/* Every second voxel of the level before, along axes that are long. False: nothing is. */
static bool add_thinned(fv_view_source *s) {
    fv_view_level *before = &s->level[s->nlevels - 1], *l = before + 1;
    bool           thinned = false;
    if (s->nlevels == FV_VIEW_MOST_LEVELS) return false;
    *l = *before;
    l->inside = before->inside ? fv__strdup(before->inside) : NULL;
    for (int i = 0; i < FV_VIEW_SPACE; i++) {
        int d = s->space[i];
        if (d < 0 || before->shape[d] <= SMALL) continue;
        l->step[d] = 2 * before->step[d];
        l->factor[d] = 2 * before->factor[d];
        l->shape[d] = (l->full[d] + l->step[d] - 1) / l->step[d];
        thinned = true;
    }
    if (thinned)
        s->nlevels++;
    else
        free(l->inside);
    return thinned;
}

static bool same_axes(const fv_image_type *a, const fv_image_type *b) { return a->ndim == b->ndim && a->dtype == b->dtype; }

static fv_status add_pyramid(fv_view_source *s, const fv_format *format, fv_error *error) {
    fv_bytes  names = { 0 };
    fv_status status =
        format->levels ? format->levels(s->path, &(fv_read_options){ .path_inside = s->level[0].inside }, &names, error) : FV_OK;
    size_t at = names.size ? strlen((char *)names.data) + 1 : 0; /* the first is the image itself */
    for (; status == FV_OK && at < names.size && s->nlevels < FV_VIEW_MOST_LEVELS;) {
        const char *inside = (char *)names.data + at;
        fv_reader  *level;
        status = fv__reader_acquire(s->path, &(fv_read_options){ .path_inside = inside }, &level, error);
        if (status != FV_OK) break;
        if (same_axes(&level->type, &s->type)) take_level(s, level, inside);
        fv__reader_release(level);
        at += strlen(inside) + 1;
    }
    fv__bytes_release(&names);
    while (status == FV_OK && add_thinned(s)) continue;
    return status;
}

/* ---------------------------------------------------------------- opening */

static fv_view_source *new_source(const char *path, const fv_image_type *type, bool labels) {
    static atomic_ullong serial;
    fv_view_source      *s = fv__calloc(sizeof *s);
    s->path = fv__strdup(path);
    s->type = *type;
    s->serial = atomic_fetch_add(&serial, 1) + 1;
    s->unpacked = -1;
    s->users = 1;
    pthread_mutex_init(&s->mutex, NULL);
    s->colour = labels ? -1 : find_colour(type);
    find_space(s);
    return s;
}

fv_view_source *fv_view_source_new(const char *path, const fv_image_type *type, bool labels) {
    fv_view_source *s = new_source(path, type, labels);
    fv_view_level  *l = &s->level[s->nlevels++];
    for (int d = 0; d < type->ndim; d++) {
        l->shape[d] = l->full[d] = l->chunk[d] = type->shape[d];
        l->factor[d] = l->step[d] = 1;
    }
    while (add_thinned(s)) continue;
    return s;
}

fv_status fv_view_source_open(const char *path, const char *inside, bool labels, fv_view_source **source, fv_error *error) {
    fv_reader *r;
    FV_TRY(fv__reader_acquire(path, &(fv_read_options){ .path_inside = inside }, &r, error));
    fv_image_type type = r->type;
    if (!labels && !strcmp(r->format->name, "npy")) fv__axes_guess_colour(&type);
    fv_view_source *s = *source = new_source(path, &type, labels);
    fv_status       status = fv__file_identify(path, &s->id, error);
    s->sequential = r->sequential;
    take_level(s, r, inside);
    if (s->sequential) s->level[0].whole_pieces = false;
    if (s->sequential) memcpy(s->level[0].chunk, s->type.shape, sizeof s->type.shape);
    if (status == FV_OK) status = add_pyramid(s, r->format, error);
    fv__reader_release(r);
    if (status == FV_OK) return FV_OK;
    fv_view_source_unref(s);
    *source = NULL;
    return status;
}

fv_view_source *fv_view_source_ref(fv_view_source *s) {
    atomic_fetch_add(&s->users, 1);
    return s;
}

void fv_view_source_unref(fv_view_source *s) {
    if (!s || atomic_fetch_sub(&s->users, 1) > 1) return;
    for (int k = 0; k < s->nlevels; k++) free(s->level[k].inside);
    if (s->unpacked >= 0) close(s->unpacked);
    if (s->release) s->release(s->context);
    pthread_mutex_destroy(&s->mutex);
    free(s->path);
    free(s);
}

fv_status fv_view_source_current(const fv_view_source *s, bool *current, fv_error *error) {
    fv_file_id id;
    FV_TRY(fv__file_identify(s->path, &id, error));
    *current = id.size == s->id.size && id.mtime_ns == s->id.mtime_ns;
    return FV_OK;
}

/* ---------------------------------------------------------------- files that are read in order */

static fv_status unpack_slabs(const fv_view_source *s, fv_reader *r, int fd, void *slab, int64_t rows, fv_error *error) {
    int64_t whole = fv_image_type_bytes(&s->type), row = s->type.shape[0] ? whole / s->type.shape[0] : 0;
    for (int64_t at = 0; at < s->type.shape[0]; at += rows) {
        fv_region region = fv__region_whole(&s->type);
        fv_block  block;
        region.start[0] = at;
        region.size[0] = FV_MIN(rows, s->type.shape[0] - at);
        fv__block_init(&block, s->type.dtype, &region, slab);
        FV_TRY(fv__reader_read(r, &block, error));
        FV_TRY(fv__file_write_at(fd, slab, (size_t)(region.size[0] * row), at * row, s->path, error));
    }
    return FV_OK;
}

static fv_status unpack(fv_view_source *s, fv_error *error) {
    int64_t    bytes = fv_image_type_bytes(&s->type), row = bytes / FV_MAX(s->type.shape[0], 1);
    int64_t    rows = FV_MIN(FV_MAX(SLAB / FV_MAX(row, 1), 1), FV_MAX(s->type.shape[0], 1));
    fv_reader *r;
    void      *slab = NULL;
    int        fd = -1;
    FV_TRY(fv__reader_acquire(s->path, &(fv_read_options){ .path_inside = s->level[0].inside }, &r, error));
    fv_status status = fv__file_open_nameless(bytes, &fd, error);
    if (status == FV_OK) status = FV_TAKE(slab, (size_t)FV_MAX(rows * row, 1), error);
    if (status == FV_OK) status = unpack_slabs(s, r, fd, slab, rows, error);
    free(slab);
    fv__reader_release(r);
    if (status == FV_OK)
        s->unpacked = fd;
    else if (fd >= 0)
        close(fd);
    return status;
}

static fv_status read_unpacked(fv_view_source *s, const fv_block *block, fv_error *error) {
    fv_dense dense = { .dtype = s->type.dtype, .ndim = s->type.ndim };
    memcpy(dense.shape, s->type.shape, sizeof dense.shape);
    pthread_mutex_lock(&s->mutex);
    fv_status status = s->unpacked >= 0 ? FV_OK : unpack(s, error);
    int       fd = s->unpacked;
    pthread_mutex_unlock(&s->mutex);
    return status == FV_OK ? fv__dense_read(&dense, fd, s->path, block, error) : status;
}

/* ---------------------------------------------------------------- reading */

static fv_status read_block(fv_view_source *s, fv_reader *r, const fv_block *block, fv_error *error) {
    if (s->compute) return s->compute(s->context, &block->region, block->data, error); /* such blocks are dense */
    return s->sequential ? read_unpacked(s, block, error) : fv__reader_read(r, block, error);
}

/* Voxel i of a thinned level is the middle one of those that it stands for. */
static int64_t middle(const fv_view_level *l, int d, int64_t i) {
    return FV_MIN(i * l->step[d] + l->step[d] / 2, l->full[d] - 1);
}

/* The box of the file around some voxels of a thinned level. */
static fv_region around(const fv_view_level *l, const fv_region *region) {
    fv_region box = *region;
    for (int d = 0; d < region->ndim; d++) {
        box.start[d] = middle(l, d, region->start[d]);
        box.size[d] = middle(l, d, region->start[d] + region->size[d] - 1) - box.start[d] + 1;
    }
    return box;
}

static void pick(const fv_view_source *s, const fv_view_level *l, const fv_block *from, const fv_region *region, char *to) {
    size_t  size = fv_dtype_size(s->type.dtype);
    int     last = region->ndim - 1;
    fv_rows rows;
    for (fv__rows_begin(&rows, region); fv__rows_next(&rows);) {
        int64_t place[FV_MAX_DIMS];
        for (int d = 0; d <= last; d++) place[d] = middle(l, d, rows.position[d]);
        for (int64_t i = 0; i < region->size[last]; i++, to += size) {
            place[last] = middle(l, last, region->start[last] + i);
            memcpy(to, fv__block_at(from, place), size);
        }
    }
}

/* Part by part: halves the box along the first axis that has a length until what lies around it is little, and where rows that
 * are not wanted can be left out, until they are. */
static bool worth_halving(const fv_view_source *s, const fv_view_level *l, const fv_region *region, int cut, int64_t bytes) {
    int inner = region->ndim - 1;
    if (s->compute) return false; /* each part would compute the borders of its neighbours again */
    while (inner > 0 && l->step[inner] == 1) inner--;
    return region->size[cut] > 1 && (bytes > CUT || (!l->whole_pieces && cut < inner && l->step[cut] > 1));
}

static fv_status read_thinned(fv_view_source *s, const fv_view_level *l, fv_reader *r, const fv_region *region, char *to,
                              fv_error *error) {
    fv_region box = around(l, region);
    size_t    size = fv_dtype_size(s->type.dtype);
    int64_t   bytes = fv__region_voxels(&box) * (int64_t)size;
    int       cut = 0;
    while (cut < region->ndim - 1 && region->size[cut] == 1) cut++;
    if (worth_halving(s, l, region, cut, bytes)) {
        fv_region half[2] = { *region, *region };
        half[0].size[cut] = region->size[cut] / 2;
        half[1].start[cut] += half[0].size[cut];
        half[1].size[cut] -= half[0].size[cut];
        FV_TRY(read_thinned(s, l, r, &half[0], to, error));
        return read_thinned(s, l, r, &half[1], to + fv__region_voxels(&half[0]) * (int64_t)size, error);
    }
    void    *memory = NULL;
    fv_block block;
    FV_TRY(FV_TAKE(memory, (size_t)FV_MAX(bytes, 1), error));
    fv__block_init(&block, s->type.dtype, &box, memory);
    fv_status status = read_block(s, r, &block, error);
    if (status == FV_OK) pick(s, l, &block, region, to);
    free(memory);
    return status;
}

fv_status fv_view_source_read(fv_view_source *s, int level, const fv_region *region, void *data, fv_error *error) {
    const fv_view_level *l = &s->level[level];
    fv_reader           *r = NULL;
    bool                 thinned = false;
    if (fv__region_empty(region)) return FV_OK;
    for (int d = 0; d < region->ndim; d++) thinned = thinned || l->step[d] > 1;
    if (!s->sequential && !s->compute)
        FV_TRY(fv__reader_acquire(s->path, &(fv_read_options){ .path_inside = l->inside }, &r, error));
    fv_status status;
    if (r && !same_axes(&r->type, &s->type))
        status = fv_fail(error, FV_ERROR_INPUT, "%s has changed while it was shown; load the page again", s->path);
    else if (thinned)
        status = read_thinned(s, l, r, region, data, error);
    else {
        fv_block block;
        fv__block_init(&block, s->type.dtype, region, data);
        status = read_block(s, r, &block, error);
    }
    if (r) fv__reader_release(r);
    return status;
}

fv_status fv_view_source_block(fv_view_source *s, const fv_block *block, fv_error *error) {
    fv_reader *r = NULL;
    if (!s->sequential) FV_TRY(fv__reader_acquire(s->path, &(fv_read_options){ .path_inside = s->level[0].inside }, &r, error));
    fv_status status = r && !same_axes(&r->type, &s->type)
                           ? fv_fail(error, FV_ERROR_INPUT, "%s has changed while it was shown; load the page again", s->path)
                           : read_block(s, r, block, error);
    if (r) fv__reader_release(r);
    return status;
}
