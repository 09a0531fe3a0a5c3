/* One file for each slice, in any format that holds an image in a single file: "out/slice_{z}.tif" (op/output_slices.h). A slice
 * is encoded whole by the task that has it. */
#include "base/take.h"
#include "op/axes.h"
#include "op/format.h"
#include "op/output_slices.h"
#include "op/place.h"
#include <pthread.h>
#include <stdlib.h>

extern const fv_format fv_format_slices;

typedef struct { /* what one of the files is */
    const fv_format *format;
    int              axis[FV_MAX_DIMS], count; /* of the image that are cut */
    fv_image_type    type;
    fv_file_layout   layout;
} design;

/* Invariant: touched is guarded by the mutex. */
typedef struct {
    fv_writer       base;
    char           *name; /* of the output itself, with its words */
    design          design;
    fv_lattice      files; /* one chunk is one file */
    pthread_mutex_t mutex;
    uint8_t        *touched; /* files put since the last sync */
} writer;

/* The slice at a place, which is that of the first voxel of a file. */
static void slice_type(const design *chosen, const fv_image_type *whole, const int64_t *position, fv_image_type *type) {
    *type = *whole;
    for (int k = 0; k < chosen->count; k++) fv__place_move(type, chosen->axis[k], (double)position[chosen->axis[k]], 1);
    for (int k = chosen->count - 1; k >= 0; k--) fv__axis_drop(type, chosen->axis[k]);
}

static char *beside(const char *path, const char *name) {
    return fv__sprintf("%.*s%s", (int)(fv__path_name(path) - path), path, name);
}

static fv_status choose_for(const fv_image_file *file, const char *path, design *chosen, fv_error *error) {
    fv_image_file one = { path, &chosen->type, file->options };
    FV_TRY(fv__format_for_writing(path, &chosen->format, error));
    if (chosen->format->folder || fv__format_in_parts(path))
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s: slices are written to files such as .tif, .png, .npy, not to folders of the %s format", file->path,
                       chosen->format->name);
    FV_TRY(fv__write_options_check(chosen->format, file->options, error));
    return chosen->format->layout(&one, &chosen->layout, error);
}

static fv_status choose(const fv_image_file *file, design *chosen, fv_error *error) {
    const int64_t first[FV_MAX_DIMS] = { 0 };
    FV_TRY(fv__slices_axes(file->path, file->type, chosen->axis, &chosen->count, error));
    slice_type(chosen, file->type, first, &chosen->type);
    char     *name = fv__slices_name(file->path, file->type, first), *path = beside(file->path, name);
    fv_status status = choose_for(file, path, chosen, error);
    free(name);
    free(path);
    return status;
}

static fv_status lay_out(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    design chosen = { 0 };
    FV_TRY(choose(file, &chosen, error));
    memcpy(layout->piece, file->type->shape, sizeof layout->piece);
    for (int k = 0; k < chosen.count; k++) layout->piece[chosen.axis[k]] = 1;
    layout->parallel = true;
    int64_t bytes = fv_image_type_bytes(&chosen.type);
    layout->piece_memory = chosen.layout.piece_memory + (chosen.layout.parallel ? 0 : bytes + bytes / 2 + (1 << 20));
    return FV_OK;
}

static fv_status create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                        fv_error *error) {
    design chosen = { 0 };
    FV_TRY(choose(file, &chosen, error));
    writer *w = fv__writer_new(sizeof *w, &fv_format_slices, file, layout, temporary);
    w->name = fv__strdup(file->path);
    w->design = chosen;
    fv__lattice_init(&w->files, file->type->ndim, file->type->shape, layout->piece);
    pthread_mutex_init(&w->mutex, NULL);
    w->touched = fv__calloc((size_t)fv__lattice_count(&w->files));
    *out = &w->base;
    return FV_OK;
}

static void free_writer(fv_writer *base) {
    writer *w = (writer *)base;
    pthread_mutex_destroy(&w->mutex);
    free(w->touched);
    free(w->name);
    fv__writer_free(base);
}

static char *name_of(const writer *w, int64_t index) {
    fv_region region = fv__lattice_chunk(&w->files, index);
    return fv__slices_name(w->name, &w->base.type, region.start);
}

static fv_status begin(fv_writer *base, fv_error *error) { return fv__path_make_folders(base->path, error); }

/* ---------------------------------------------------------------- one file */

typedef struct { /* pieces of a file that lie in memory */
    fv_pieces base;
    fv_bytes *piece;
} encoded;

static fv_status get(fv_pieces *pieces, int64_t index, const void **data, size_t *size, fv_error *error) {
    (void)error;
    *data = ((encoded *)pieces)->piece[index].data;
    *size = ((encoded *)pieces)->piece[index].size;
    return FV_OK;
}

static fv_status encode_all(fv_writer *one, const fv_block *block, fv_error *error) {
    fv_lattice pieces;
    encoded    e = { .base.get = get };
    fv__lattice_init(&pieces, one->type.ndim, one->type.shape, one->layout.piece);
    e.base.count = fv__lattice_count(&pieces);
    FV_TRY(FV_TAKE_ZEROED(e.piece, (size_t)e.base.count * sizeof *e.piece, error));
    fv_status status = FV_OK;
    for (int64_t i = 0; i < e.base.count && status == FV_OK; i++) {
        fv_region region = fv__lattice_chunk(&pieces, i);
        fv_block  window = fv__block_window(block, &region);
        status = one->format->encode(one, i, &window, &e.piece[i], error);
    }
    if (status == FV_OK) status = one->format->assemble(one, &e.base, error);
    for (int64_t i = 0; i < e.base.count; i++) fv__bytes_release(&e.piece[i]);
    free(e.piece);
    return status;
}

static fv_status put_all(fv_writer *one, const fv_block *block, fv_error *error) {
    FV_TRY(one->format->begin(one, error));
    FV_TRY(one->format->put(one, block, error));
    return one->format->finish(one, error);
}

static fv_block slice_of(const design *chosen, const fv_block *block, const fv_region *region) {
    fv_block from = fv__block_window(block, region), to = { .dtype = from.dtype, .data = from.data };
    for (int d = 0; d < region->ndim; d++) {
        bool cut = false;
        for (int k = 0; k < chosen->count; k++) cut = cut || chosen->axis[k] == d;
        if (cut) continue;
        to.region.start[to.region.ndim] = from.region.start[d];
        to.region.size[to.region.ndim] = from.region.size[d];
        to.stride[to.region.ndim++] = from.stride[d];
    }
    return to;
}

static fv_status put_file(writer *w, int64_t index, const fv_block *block, fv_error *error) {
    const design *chosen = &w->design;
    fv_region     region = fv__lattice_chunk(&w->files, index);
    fv_image_type type;
    fv_writer    *one;
    slice_type(chosen, &w->base.type, region.start, &type);
    char         *name = name_of(w, index), *path = beside(w->name, name), *temporary = fv__path_inside(w->base.path, name);
    fv_image_file file = { path, &type, &w->base.options };
    fv_block      slice = slice_of(chosen, block, &region);
    fv_status     status = chosen->format->create(&file, &chosen->layout, temporary, &one, error);
    if (status == FV_OK) {
        status = chosen->layout.parallel ? put_all(one, &slice, error) : encode_all(one, &slice, error);
        chosen->format->free_writer(one);
    }
    free(name);
    free(path);
    free(temporary);
    return status;
}

/* ---------------------------------------------------------------- all of them */

static fv_status put(fv_writer *base, const fv_block *block, fv_error *error) {
    writer    *w = (writer *)base;
    fv_lattice within;
    fv__lattice_init(&within, block->region.ndim, block->region.size, base->layout.piece);
    for (int64_t i = 0, n = fv__lattice_count(&within); i < n; i++) {
        fv_region part = fv__lattice_chunk(&within, i);
        for (int d = 0; d < part.ndim; d++) part.start[d] += block->region.start[d];
        int64_t index = fv__lattice_index(&w->files, part.start);
        FV_TRY(put_file(w, index, block, error));
        pthread_mutex_lock(&w->mutex);
        w->touched[index] = 1;
        pthread_mutex_unlock(&w->mutex);
    }
    return FV_OK;
}

static fv_status sync_files(fv_writer *base, fv_error *error) {
    writer *w = (writer *)base;
    int64_t count = fv__lattice_count(&w->files);
    size_t  n = 0;
    char  **paths;
    FV_TRY(FV_TAKE_ZEROED(paths, (size_t)count * sizeof *paths, error));
    pthread_mutex_lock(&w->mutex);
    for (int64_t i = 0; i < count; i++) {
        if (w->touched[i]) {
            char *name = name_of(w, i);
            paths[n++] = fv__path_inside(base->path, name);
            free(name);
        }
        w->touched[i] = 0;
    }
    pthread_mutex_unlock(&w->mutex);
    fv_status status = n ? fv__paths_sync(paths, n, error) : FV_OK;
    for (size_t i = 0; i < n; i++) free(paths[i]);
    free(paths);
    return status;
}

static fv_status list_files(const writer *w, fv_error *error) {
    int64_t count = fv__lattice_count(&w->files);
    char  **names;
    FV_TRY(FV_TAKE_ZEROED(names, (size_t)count * sizeof *names, error));
    for (int64_t i = 0; i < count; i++) names[i] = name_of(w, i);
    fv_status status = fv__slices_write_list(w->base.path, names, count, error);
    for (int64_t i = 0; i < count; i++) free(names[i]);
    free(names);
    return status;
}

/* A list that is there is of a run that was stopped while it named the files, some of which are gone from here. */
static fv_status finish(fv_writer *base, fv_error *error) {
    char *list = fv__slices_list_inside(base->path);
    bool  listed = fv__file_exists(list);
    free(list);
    FV_TRY(sync_files(base, error));
    return listed ? FV_OK : list_files((const writer *)base, error);
}

const fv_format fv_format_slices = {
    .name = "slices",
    .extensions = "",
    .brief = "one file for each slice: a name with an axis in braces, such as out/slice_{z}.tif",
    .writes = "in parallel, in every format of single files",
    .keeps = "what the files keep",
    .takes = "shard levels version quality hyperstack",
    .per_slice = true,
    .layout = lay_out,
    .create = create,
    .begin = begin,
    .put = put,
    .sync = sync_files,
    .finish = finish,
    .free_writer = free_writer,
};
