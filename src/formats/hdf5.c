/* HDF5: datasets of scans (DataExchange, NeXus, CXI), of NetCDF 4 and of anybody else, read by region.
 *
 * The library, in a plug-in, finds things; voxels come to us as they lie in the file. A dataset in one run is read without the
 * library, chunks are fetched raw and unpacked here, and only what needs the library's own filters or conversions is left to it.
 * Written with one chunked dataset, "/data" or where CXI has it. */
#include "base/plugin.h"
#include "base/remote.h"
#include "base/take.h"
#include "formats/hdf5_parts.h"
#include "op/dense.h"
#include "op/kept_pieces.h"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static const bool host_is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

enum { MOST_TRIED = 4096 }; /* chunks that a rehearsal looks for */
/* Images of more bytes whose file is smaller by such a factor are damage: no compression does that. */
enum { SPARSE_BYTES = 1 << 30, SPARSEST = 1 << 16 };
static const int64_t VIRTUAL_BYTES = (int64_t)1 << 44; /* the voxels may lie in other files */

typedef enum { RUN, CHUNKS, LIBRARY } way;

typedef struct {
    fv_reader             base;
    const fv_hdf5_plugin *h5;
    void                 *file, *dataset;
    fv_hdf5_about         about;
    way                   how;
    fv_dense              run;    /* where the voxels lie, if in one run */
    int                   fd;     /* of the run; -1: not open, or the remote file's */
    int64_t               size;   /* of the file */
    fv_hdf5_remote       *remote; /* NULL: a local file */
    int64_t              *frames; /* planes of the dataset that are the image's, in order; NULL: all */
    int64_t               row;    /* frames of a row of a raster, which the dataset has two axes of and the image one; 0: none */
} reader;

fv_status fv__hdf5_load(const fv_hdf5_plugin **plugin, fv_error *error) {
    static pthread_mutex_t       mutex = PTHREAD_MUTEX_INITIALIZER;
    static const fv_hdf5_plugin *loaded; /* of the process, as every plug-in */
    const void                  *found = NULL;
    pthread_mutex_lock(&mutex);
    fv_status status = loaded ? FV_OK : fv__plugin_load("hdf5", FV_HDF5_SYMBOL, "HDF5", "libhdf5-dev", &found, error);
    if (status == FV_OK && !loaded) loaded = found;
    if (status == FV_OK && loaded->version != FV_HDF5_VERSION) {
        loaded = NULL;
        status = fv_fail(error, FV_ERROR_USAGE, "fovea-hdf5.so belongs to another version of Fovea; build or install it again");
    }
    *plugin = loaded;
    pthread_mutex_unlock(&mutex);
    return status;
}

/* ---------------------------------------------------------------- opening */

static fv_status check_dataset(const reader *r, const char *name, fv_error *error) {
    const fv_hdf5_about *a = &r->about;
    const char          *path = r->base.path;
    if (!a->kind)
        return fv_fail(error, FV_ERROR_INPUT, "%s: %s holds neither numbers nor booleans that an image can have", path, name);
    if (a->ndim < 1 || a->ndim > FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_INPUT, "%s: %s has %d axes; images have 1 to %d", path, name, a->ndim, FV_MAX_DIMS);
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] < 1) return fv_fail(error, FV_ERROR_INPUT, "%s: %s is empty: axis %d has length 0", path, name, d);
    if (fv_image_type_bytes(&r->base.type) < 0)
        return fv_fail(error, FV_ERROR_INPUT, "%s: the shape of %s overflows", path, name);
    int64_t bytes = fv_image_type_bytes(&r->base.type), believed = a->chunked && !a->elsewhere ? SPARSE_BYTES : VIRTUAL_BYTES;
    if (bytes > believed && bytes / SPARSEST > r->size)
        return fv_fail(error, FV_ERROR_INPUT,
                       "%s: the shape of %s claims %lld bytes, far more than a file of %lld bytes can hold", path, name,
                       (long long)bytes, (long long)r->size);
    if (a->chunked && fv__hdf5_chunk_bytes(a) < 0)
        return fv_fail(error, FV_ERROR_INPUT, "%s: a chunk of %s has more than a gibibyte, the most that is read", path, name);
    return FV_OK;
}

/* How voxels will be read; a run that the file is too short for is damage. */
static fv_status choose_way(reader *r, const char *name, fv_error *error) {
    const fv_hdf5_about *a = &r->about;
    r->how = a->chunked && a->exact && fv__hdf5_unpacks(a) ? CHUNKS : LIBRARY;
    if (a->chunked || a->offset < 0 || !a->exact) return FV_OK;
    r->how = RUN;
    r->run =
        (fv_dense){ .offset = a->offset, .dtype = r->base.type.dtype, .swapped = a->big_endian != host_is_big, .ndim = a->ndim };
    memcpy(r->run.shape, r->base.type.shape, sizeof r->run.shape);
    int64_t end = 0;
    if (!fv__add(a->offset, fv__dense_bytes(&r->run), &end) || end > r->size)
        return fv_fail(error, FV_ERROR_INPUT, "%s is damaged: %s would end at byte %lld, the file has %lld", r->base.path, name,
                       (long long)end, (long long)r->size);
    return r->remote ? FV_OK : fv__file_open_read(r->base.path, &r->fd, error);
}

static void describe(reader *r, const char *name) {
    const char *layout = fv__hdf5_layout(r->h5, r->file);
    char        text[200];
    fv_bytes   *facts = &r->base.facts;
    fv__bytes_printf(facts, "dataset: %s\n", name);
    if (layout) fv__bytes_printf(facts, "layout: %s\n", layout);
    fv__bytes_printf(facts, "compression: ");
    fv__hdf5_filter_names(&r->about, facts);
    fv__bytes_printf(facts, "\nbyte order: %s\n", r->about.big_endian ? "big" : "little");
    static const char *const attributes[] = { "description", "long_name", "units" };
    for (int i = 0; i < FV_COUNT(attributes); i++)
        if (r->h5->get_text(r->file, name, attributes[i], 0, text, sizeof text) && *text)
            fv__bytes_printf(facts, "%s: %s\n", attributes[i], text);
}

/* Identity of the header: the name and all that is known of the dataset. */
static fv_hash identify(const reader *r, const char *name) {
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, name);
    fv__hasher_add(&hasher, &r->about, sizeof r->about);
    return fv__hasher_finish(&hasher);
}

/* Frames of a scan are a list of them, whether or not the dataset has rows and columns of frames. */
static void list_frames(reader *r) {
    fv_image_type *type = &r->base.type;
    if (type->ndim == 4) {
        int64_t shape[3] = { type->shape[0] * type->shape[1], type->shape[2], type->shape[3] };
        r->row = type->shape[1];
        fv_image_type_init(type, type->dtype, 3, shape);
        memmove(r->base.chunk, r->base.chunk + 1, 3 * sizeof *r->base.chunk);
    }
    strcpy(type->axis[0], "frame");
    for (int d = 1; d < 3; d++) {
        strcpy(type->axis[d], d == 1 ? "y" : "x");
        type->spacing[d] = 1;
        if (!(r->base.diffraction->detector[d - 1] > 0)) continue;
        type->spacing[d] = r->base.diffraction->detector[d - 1];
        strcpy(type->unit[d], "meter");
    }
}

static void take_diffraction(reader *r, const char *name) {
    r->base.diffraction = fv__hdf5_diffraction(r->h5, r->file);
    if (!r->base.diffraction) return;
    char *frames = fv__hdf5_find_ptycho(r->h5, r->file, NULL);
    if (frames && !strcmp(frames, name) && (r->about.ndim == 3 || r->about.ndim == 4)) list_frames(r);
    free(frames);
    fv__hdf5_describe_diffraction(r->base.diffraction, &r->base.facts);
}

static fv_status open_name(reader *r, const char *name, fv_error *error) {
    char     message[FV_HDF5_MESSAGE];
    fv_dtype dtype = FV_UINT8;
    r->dataset = r->h5->open_dataset(r->file, name, &r->about, message);
    if (!r->dataset)
        return fv_fail(error, FV_ERROR_INPUT, "%s: %s: %s; `fovea info` lists what the file holds", r->base.path, name, message);
    if (r->about.kind && !fv__hdf5_dtype(&r->about, &dtype)) r->about.kind = 0;
    if (r->about.ndim >= 1 && r->about.ndim <= FV_MAX_DIMS)
        fv_image_type_init(&r->base.type, dtype, r->about.ndim, r->about.shape);
    FV_TRY(check_dataset(r, name, error));
    FV_TRY(choose_way(r, name, error));
    for (int d = 0; d < r->about.ndim; d++) r->base.chunk[d] = FV_MAX(FV_MIN(r->about.chunk[d], r->about.shape[d]), 1);
    r->base.whole_pieces = r->about.chunked;
    r->base.read_memory = r->how == RUN ? FV_DENSE_MEMORY : (int64_t)4 << 20;
    if (r->how == CHUNKS) r->base.read_memory = fv__hdf5_chunk_memory(&r->about) + fv__hdf5_chunk_bytes(&r->about);
    if (r->about.ndim == 3) r->base.angles = fv__hdf5_angles(r->h5, r->file, name, r->about.shape[0]);
    if (r->base.angles) r->base.nangles = r->about.shape[0];
    fv__hdf5_axes(r->h5, r->file, name, r->base.angles != NULL, &r->base.type);
    describe(r, name);
    take_diffraction(r, name);
    r->base.header = identify(r, name);
    return FV_OK;
}

/* Of the frames of a scan only those of one kind, with their angles. */
static fv_status select_frames(reader *r, const fv_hdf5_part *part, fv_error *error) {
    int64_t count[FV_HDF5_KINDS];
    FV_TRY(fv__hdf5_frames(r->h5, r->file, r->base.path, part, r->about.shape[0], &r->frames, count, error));
    fv__bytes_printf(&r->base.facts, "frames: %lld projections, %lld flat fields, %lld dark fields, %lld others\n",
                     (long long)count[FV_HDF5_PROJECTIONS], (long long)count[FV_HDF5_FLATS], (long long)count[FV_HDF5_DARKS],
                     (long long)count[FV_HDF5_OTHERS]);
    int64_t taken = count[part->kind];
    for (int64_t i = 0; i < taken && r->base.angles; i++) r->base.angles[i] = r->base.angles[r->frames[i]];
    if (r->base.angles) r->base.nangles = taken;
    r->base.type.shape[0] = taken;
    r->base.chunk[0] = FV_MIN(r->base.chunk[0], taken);
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    fv__hasher_add(&hasher, &r->base.header, sizeof r->base.header);
    fv__hasher_add(&hasher, r->frames, (size_t)taken * sizeof *r->frames);
    r->base.header = fv__hasher_finish(&hasher);
    return FV_OK;
}

/* Leaves the remote file to whoever opened it. */
static void close_reader(fv_reader *base) {
    reader *r = (reader *)base;
    if (r->dataset) r->h5->close_dataset(r->dataset);
    if (r->file) r->h5->close(r->file);
    if (r->fd >= 0) close(r->fd);
    free(r->frames);
    fv__reader_free(base);
}

static fv_status open_library(const char *path, fv_hdf5_remote *remote, const fv_hdf5_plugin **h5, void **file, fv_error *error) {
    char           message[FV_HDF5_MESSAGE];
    fv_hdf5_source source;
    FV_TRY(fv__hdf5_load(h5, error));
    if (remote) source = fv__hdf5_remote_source(remote);
    *file = remote ? (*h5)->open_source(&source, message) : (*h5)->open(path, message);
    return *file ? FV_OK : fv_fail(error, FV_ERROR_INPUT, "%s is not HDF5, or damaged: %s", path, message);
}

static fv_status find_size(reader *r, fv_error *error) {
    fv_file_id id = { .size = r->remote ? fv__hdf5_remote_size(r->remote) : 0 };
    if (!r->remote) FV_TRY(fv__file_identify(r->base.path, &id, error));
    r->size = id.size;
    return FV_OK;
}

static fv_status open_once(const char *path, fv_hdf5_remote *remote, const fv_read_options *options, fv_reader **out,
                           fv_error *error) {
    reader      *r = fv__reader_new(sizeof *r, &fv_format_hdf5, path);
    fv_hdf5_part part = { 0 };
    r->fd = -1;
    r->remote = remote;
    fv_status status = find_size(r, error);
    if (status == FV_OK) status = open_library(path, remote, &r->h5, &r->file, error);
    if (status == FV_OK && !remote && !(options && options->path_inside) && fv__hdf5_has_transform(r->h5, r->file)) {
        status = fv__hdf5_open_transform(r->h5, r->file, path, out, error);
        close_reader(&r->base);
        return status;
    }
    if (status == FV_OK) status = fv__hdf5_choose(r->h5, r->file, path, options ? options->path_inside : NULL, &part, error);
    if (status == FV_OK) status = open_name(r, part.name, error);
    if (status == FV_OK && part.key) status = select_frames(r, &part, error);
    free(part.name);
    free(part.key);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    *out = &r->base;
    return FV_OK;
}

typedef struct {
    const char            *path;
    fv_hdf5_remote        *remote;
    const fv_read_options *options;
    fv_bytes              *lines;
} request;

/* Opens the file and has the library look for some of its chunks, all over the image. */
static void try_opening(void *context) {
    const request *q = context;
    fv_reader     *base;
    fv_lattice     lattice;
    if (open_once(q->path, q->remote, q->options, &base, NULL) != FV_OK) return;
    if (base->format != &fv_format_hdf5) { /* a transform has been read whole */
        base->format->close(base);
        return;
    }
    const reader *r = (reader *)base;
    fv__lattice_init(&lattice, r->about.ndim, r->about.shape, r->about.chunk);
    int64_t count = fv__lattice_count(&lattice), step = FV_MAX(count / MOST_TRIED, 1);
    for (int64_t i = 0; r->how == CHUNKS && !r->remote && i < count; i += step) { /* of a remote one that is too much to fetch */
        char      message[FV_HDF5_MESSAGE];
        size_t    size;
        unsigned  mask;
        fv_region chunk = fv__lattice_chunk(&lattice, i);
        r->h5->read_chunk(r->dataset, chunk.start, NULL, 0, &size, &mask, message); /* no room: it is only looked for */
    }
    close_reader(base);
}

/* The library opens what has a name: what was unpacked into a nameless file gets one meanwhile. fd -1: it has one. */
static fv_status make_local(const char *path, char **local, int *fd, fv_error *error) {
    static const char descriptor[] = "/proc/self/fd/";
    *fd = -1;
    *local = NULL;
    if (strncmp(path, descriptor, sizeof descriptor - 1)) {
        *local = fv__strdup(path);
        return FV_OK;
    }
    FV_TRY(fv__file_open_read(path, fd, error));
    fv_status named = fv__file_name_nameless(*fd, local, error);
    if (named != FV_OK) close(*fd);
    return named;
}

static void end_local(char *local, int fd) {
    if (fd >= 0) unlink(local);
    if (fd >= 0) close(fd);
    free(local);
}

static fv_status open_local(const char *path, fv_hdf5_remote *remote, const fv_read_options *options, fv_reader **out,
                            fv_error *error) {
    const fv_hdf5_plugin *h5;
    request               q = { .path = path, .remote = remote, .options = options };
    FV_TRY(fv__hdf5_load(&h5, error));
    FV_TRY(fv__hdf5_rehearse(h5, path, try_opening, &q, error));
    return open_once(path, remote, options, out, error);
}

/* The library's lock is held while the network is waited for: whoever waits for it has lent its turn. */
static fv_status open_remote(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    fv_hdf5_remote *remote;
    FV_TRY(fv__hdf5_remote_open(path, &remote, error));
    fv__io_enter();
    fv_status status = fv__hdf5_remote_blame(remote, open_local(path, remote, options, out, error), error);
    fv__io_leave();
    if (status != FV_OK) fv__hdf5_remote_free(remote);
    return status;
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    char *local;
    int   fd;
    if (fv__is_remote(path)) return open_remote(path, options, out, error);
    if (fv__path_is_folder(path)) return fv_fail(error, FV_ERROR_INPUT, "cannot read %s: it is a folder", path);
    FV_TRY(make_local(path, &local, &fd, error));
    fv_status status = open_local(local, NULL, options, out, error);
    if (status != FV_OK) fv__error_rename(error, local, path);
    end_local(local, fd);
    if (status != FV_OK) return status;
    free((*out)->path);
    (*out)->path = fv__strdup(path);
    return FV_OK;
}

static void close_whole(fv_reader *base) {
    fv_hdf5_remote *remote = ((reader *)base)->remote;
    fv__kept_forget(base);
    fv__io_enter();
    close_reader(base);
    fv__io_leave();
    fv__hdf5_remote_free(remote);
}

/* ---------------------------------------------------------------- reading */

typedef struct {
    const reader *r;
    fv_met_chunks met;
    size_t        room, bytes;
    void         *packed, *scratch, *chunk; /* buffers; the last one is made when it is needed */
} job;

static void fill(const fv_block *block, const uint8_t *element) {
    size_t  size = fv_dtype_size(block->dtype), row = size * (size_t)block->region.size[block->region.ndim - 1];
    fv_rows rows;
    for (fv__rows_begin(&rows, &block->region); fv__rows_next(&rows);) {
        uint8_t *to = fv__block_at(block, rows.position);
        for (size_t i = 0; i < row; i += size) memcpy(to + i, element, size);
    }
}

static void normalise(const reader *r, void *data, size_t bytes) {
    if (r->about.big_endian != host_is_big)
        fv__swap_elements(r->base.type.dtype, data, (int64_t)(bytes / fv_dtype_size(r->base.type.dtype)));
    for (uint8_t *p = data; r->base.type.dtype == FV_BOOL && bytes; bytes--, p++) *p = *p != 0;
}

/* Packed bytes of a chunk; of a remote file the library tells only where they are, and several are fetched at a time. */
static fv_status fetch_chunk(const job *j, const fv_region *chunk, size_t *size, unsigned *mask, fv_error *error) {
    const reader *r = j->r;
    char          message[FV_HDF5_MESSAGE], place[128];
    int64_t       address = 0;
    fv__io_enter();
    bool found = r->remote ? r->h5->find_chunk(r->dataset, chunk->start, &address, size, mask, message)
                           : r->h5->read_chunk(r->dataset, chunk->start, j->packed, j->room, size, mask, message);
    fv__io_leave();
    fv__region_format(chunk, place, sizeof place);
    if (!found)
        return fv__hdf5_remote_blame(r->remote, fv_fail(error, FV_ERROR_INPUT, "%s: chunk %s: %s", r->base.path, place, message),
                                     error);
    if (!r->remote || !*size) return FV_OK;
    if (*size > j->room || address < 0 || address > r->size)
        return fv_fail(error, FV_ERROR_INPUT, "%s is damaged: chunk %s has %zu bytes at %lld", r->base.path, place, *size,
                       (long long)address);
    return fv__hdf5_remote_read(r->remote, address, j->packed, *size, error);
}

static void describe_chunk(void *context, int64_t i, fv_piece *piece) { fv__met_describe(&((job *)context)->met, i, piece); }

static fv_block window_of(const job *j, const fv_region *chunk) {
    fv_region part = fv__region_intersect(chunk, &j->met.block->region);
    return fv__block_window(j->met.block, &part);
}

static fv_status decode_chunk(void *context, int64_t i, void *data, fv_error *error) {
    const job    *j = context;
    const reader *r = j->r;
    fv_region     chunk = fv__met_chunk(&j->met, i);
    fv_block      all;
    char          place[128];
    size_t        size;
    unsigned      mask;
    FV_TRY(fetch_chunk(j, &chunk, &size, &mask, error));
    fv__block_init(&all, r->base.type.dtype, &chunk, data);
    if (!size) {
        fill(&all, r->about.fill);
        return FV_OK;
    }
    fv__region_format(&chunk, place, sizeof place);
    const char *fault = fv__hdf5_unpack(&r->about, mask, j->packed, size, j->scratch, data);
    if (fault) return fv_fail(error, FV_ERROR_INPUT, "%s is damaged: chunk %s: %s", r->base.path, place, fault);
    normalise(r, data, j->bytes);
    return FV_OK;
}

static void place_chunk(void *context, int64_t i, const void *data) {
    const job *j = context;
    fv_region  chunk = fv__met_chunk(&j->met, i);
    fv_block   window = window_of(j, &chunk), from;
    fv__block_init(&from, window.dtype, &chunk, (void *)data);
    fv__block_copy(&window, &from);
}

/* A chunk that is wanted whole is unpacked in its place. */
static fv_status read_chunk(void *context, int64_t i, fv_error *error) {
    job      *j = context;
    fv_region chunk = fv__met_chunk(&j->met, i);
    fv_block  window = window_of(j, &chunk);
    if (fv__region_equal(&chunk, &window.region) && fv__block_dense(&window)) return decode_chunk(j, i, window.data, error);
    if (!j->chunk) FV_TRY(FV_TAKE_BUFFER(j->chunk, j->bytes, error));
    FV_TRY(decode_chunk(j, i, j->chunk, error));
    place_chunk(j, i, j->chunk);
    return FV_OK;
}

static fv_status read_chunks(const reader *r, const fv_block *block, fv_error *error) {
    job j = { .r = r, .room = (size_t)fv__hdf5_room(&r->about), .bytes = (size_t)fv__hdf5_chunk_bytes(&r->about) };
    j.met = (fv_met_chunks){ r->about.ndim, r->about.shape, r->about.chunk, block };
    fv_status status = FV_TAKE_BUFFER(j.packed, j.room, error);
    if (status == FV_OK) status = FV_TAKE_BUFFER(j.scratch, j.room, error);
    fv_piece_source source = { .owner = r,
                               .count = fv__met_count(&j.met),
                               .bytes = j.bytes,
                               .context = &j,
                               .describe = describe_chunk,
                               .decode = decode_chunk,
                               .place = place_chunk,
                               .read = read_chunk };
    if (status == FV_OK) status = fv__pieces_read(&source, error);
    fv__buffer_free(j.packed, j.room);
    fv__buffer_free(j.scratch, j.room);
    if (j.chunk) fv__buffer_free(j.chunk, j.bytes);
    return status;
}

/* By the library: dense blocks at once, others in halves that are small enough to be copied. */
static fv_status read_by_library(const reader *r, const fv_block *block, fv_error *error) {
    const fv_region *region = &block->region;
    size_t           bytes = (size_t)fv__region_voxels(region) * fv_dtype_size(block->dtype);
    char             message[FV_HDF5_MESSAGE];
    bool             dense = fv__block_dense(block);
    int              longest = 0;
    for (int d = region->ndim - 1; d >= 0; d--)
        if (region->size[d] > 1) longest = d;
    if (!dense && bytes > 4 << 20 && region->size[longest] > 1) {
        fv_region first = *region, second = *region;
        first.size[longest] /= 2;
        second.start[longest] += first.size[longest];
        second.size[longest] -= first.size[longest];
        fv_block a = fv__block_window(block, &first), b = fv__block_window(block, &second);
        FV_TRY(read_by_library(r, &a, error));
        return read_by_library(r, &b, error);
    }
    void    *data = block->data;
    fv_block from;
    if (!dense) FV_TRY(FV_TAKE_BUFFER(data, bytes, error));
    fv__block_init(&from, block->dtype, region, data);
    fv__io_enter();
    bool good = r->h5->read_box(r->dataset, region->start, region->size, data, message);
    fv__io_leave();
    if (good && !dense) fv__block_copy(block, &from);
    if (!dense) fv__buffer_free(data, bytes);
    if (good) return FV_OK;
    return fv__hdf5_remote_blame(r->remote, fv_fail(error, FV_ERROR_INPUT, "%s: %s", r->base.path, message), error);
}

static fv_status read_planes(const reader *r, const fv_block *block, fv_error *error) {
    int fd = r->remote ? fv__hdf5_remote_descriptor(r->remote) : r->fd;
    if (r->how == RUN) return fv__dense_read(&r->run, fd, r->base.path, block, error);
    return r->how == CHUNKS ? read_chunks(r, block, error) : read_by_library(r, block, error);
}

/* Frames of a raster, row by row. */
static fv_status read_raster(const reader *r, const fv_block *block, fv_error *error) {
    int64_t first = block->region.start[0], end = first + block->region.size[0];
    for (int64_t i = first, next; i < end; i = next) {
        fv_block part = { .dtype = block->dtype, .region = { .ndim = 4 } };
        next = FV_MIN((i / r->row + 1) * r->row, end);
        part.region.start[0] = i / r->row;
        part.region.size[0] = 1;
        part.region.start[1] = i % r->row;
        part.region.size[1] = next - i;
        part.stride[0] = part.stride[1] = block->stride[0];
        for (int d = 1; d < 3; d++) {
            part.region.start[d + 1] = block->region.start[d];
            part.region.size[d + 1] = block->region.size[d];
            part.stride[d + 1] = block->stride[d];
        }
        part.data = (char *)block->data + (i - first) * block->stride[0] * (int64_t)fv_dtype_size(block->dtype);
        FV_TRY(read_planes(r, &part, error));
    }
    return FV_OK;
}

/* Frames that follow each other in the dataset are read together. */
static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    const reader *r = (reader *)base;
    if (fv__region_empty(&block->region)) return FV_OK;
    if (r->row) return read_raster(r, block, error);
    if (!r->frames) return read_planes(r, block, error);
    int64_t first = block->region.start[0], end = first + block->region.size[0];
    for (int64_t i = first, next; i < end; i = next) {
        fv_block part = *block;
        for (next = i + 1; next < end && r->frames[next] == r->frames[next - 1] + 1;) next++;
        part.region.start[0] = r->frames[i];
        part.region.size[0] = next - i;
        part.data = (char *)block->data + (i - first) * block->stride[0] * (int64_t)fv_dtype_size(block->dtype);
        FV_TRY(read_planes(r, &part, error));
    }
    return FV_OK;
}

static fv_status list_once(const request *q, fv_error *error) {
    const fv_hdf5_plugin *h5;
    void                 *file;
    FV_TRY(open_library(q->path, q->remote, &h5, &file, error));
    fv__hdf5_list(h5, file, q->lines);
    h5->close(file);
    return FV_OK;
}

static void try_listing(void *context) {
    fv_bytes lines = { 0 };
    request  q = *(const request *)context;
    q.lines = &lines;
    list_once(&q, NULL);
    fv__bytes_release(&lines);
}

static fv_status list(request *q, fv_error *error) {
    const fv_hdf5_plugin *h5;
    FV_TRY(fv__hdf5_load(&h5, error));
    FV_TRY(fv__hdf5_rehearse(h5, q->path, try_listing, q, error));
    return list_once(q, error);
}

static fv_status contents(const char *path, fv_bytes *lines, fv_error *error) {
    request   q = { .path = path, .lines = lines };
    char     *local;
    int       fd;
    fv_status status;
    if (fv__is_remote(path)) {
        FV_TRY(fv__hdf5_remote_open(path, &q.remote, error));
        status = fv__hdf5_remote_blame(q.remote, list(&q, error), error);
        fv__hdf5_remote_free(q.remote);
        return status;
    }
    FV_TRY(make_local(path, &local, &fd, error));
    q.path = local;
    status = list(&q, error);
    end_local(local, fd);
    return status;
}

const fv_format fv_format_hdf5 = {
    .name = "hdf5",
    .extensions = "h5 hdf5 hdf nxs nx5 cxi nc nc4",
    .brief = "HDF5, NetCDF 4, NeXus, DataExchange, CXI",
    .reads = "by region; `path` names a dataset; transforms of ITK",
    .writes = "chunks packed on all cores; transforms as ITK does, .cxi as CXI 1.6",
    .keeps = "axes, spacing, units, orientation",
    .compressions = "deflate|none",
    .magic = { { 0, 8, "\x89HDF\r\n\x1a\n" } },
    .open = open_reader,
    .read = read_block,
    .close = close_whole,
    .contents = contents,
    .layout = fv__hdf5_layout_file,
    .create = fv__hdf5_create,
    .encode = fv__hdf5_encode,
    .assemble = fv__hdf5_assemble,
    .free_writer = fv__writer_free,
};
