/* NIfTI: .nii is read by region and written by many workers at once, .nii.gz is read in order and assembled from deflated
 * pieces; .hdr/.img pairs are read.
 *
 * Axes are t z y x; spacing, units and the voxel to world matrix (sform, else qform) are kept. Stored integers with a slope
 * become float32, or float64 where float32 could not tell them apart. With complex numbers the slope and the intercept count
 * for both parts, as the definition says. Descriptions, intents and extensions are not carried over. */
#include "formats/gzip.h"
#include "formats/nifti_header.h"
#include "op/dense_writer.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STRIP_BYTES = 1 << 18, PIECE_BYTES = 1 << 21, DEFAULT_LEVEL = 1 };
extern const fv_format fv_format_nifti, fv_format_nifti_gz, fv_format_nifti_pair;

typedef struct {
    fv_reader       base;
    fv_nifti_header header;
    fv_dense        dense; /* where the stored voxels lie, in the file or in its contents */
    int             fd;
    int64_t         file_size;
    char           *data_path; /* the file that holds the voxels */
    fv_gzip        *gzip;      /* NULL: not compressed */
} reader;

/* ---------------------------------------------------------------- opening */

static void close_file(reader *r) {
    if (r->gzip) fv_gzip_free(r->gzip);
    if (r->fd >= 0) close(r->fd);
    free(r->data_path);
    r->gzip = NULL;
    r->data_path = NULL;
    r->fd = -1;
}

static void close_reader(fv_reader *base) {
    close_file((reader *)base);
    fv_reader_free(base);
}

/* Takes the path. */
static fv_status open_file(reader *r, char *path_take, fv_error *error) {
    uint8_t    start[2] = { 0 };
    fv_file_id id;
    r->data_path = path_take;
    FV_TRY(fv_file_open_read(r->data_path, &r->fd, error));
    FV_TRY(fv_file_identify(r->data_path, &id, error));
    r->file_size = id.size;
    if (id.size >= 2) FV_TRY(fv_file_read_at(r->fd, start, 2, 0, r->data_path, error));
    if (start[0] == 0x1f && start[1] == 0x8b) r->gzip = fv_gzip_new(r->fd, id.size, r->data_path);
    return FV_OK;
}

static fv_status fetch(reader *r, int64_t offset, void *to, size_t size, fv_error *error) {
    return r->gzip ? fv_gzip_read(r->gzip, offset, to, size, error)
                   : fv_file_read_at(r->fd, to, size, offset, r->data_path, error);
}

static fv_status read_header(reader *r, fv_error *error) {
    uint8_t bytes[FV_NIFTI_2];
    FV_TRY(fetch(r, 0, bytes, 4, error));
    size_t size = fv_nifti_size(bytes);
    FV_TRY(fetch(r, 0, bytes, size, error));
    r->base.header = fv_hash_bytes(bytes, size);
    return fv_nifti_parse(bytes, size, r->data_path, &r->header, error);
}

/* "a.hdr" and "a.img" name each other, with or without .gz. */
static char *sibling(const char *path, const char *extension) {
    bool   packed = fv_path_has_extension(path, "gz");
    size_t length = strlen(path) - (packed ? 3 : 0);
    while (length > 0 && path[length - 1] != '.' && path[length - 1] != '/') length--;
    char *other = fv_sprintf("%.*s%s%s", (int)length, path, extension, packed ? ".gz" : "");
    if (packed && !fv_file_exists(other)) other[strlen(other) - 3] = 0;
    return other;
}

/* What the header promises must be there, or be possible in a compressed file. */
static fv_status check_size(const reader *r, fv_error *error) {
    int64_t bytes = fv_dense_bytes(&r->dense), end, most = r->file_size;
    if (bytes < 0 || !fv_add(bytes, r->dense.offset, &end))
        return fv_fail(error, FV_ERROR_INPUT, "%s: the dimensions of the NIfTI header overflow", r->data_path);
    if (r->gzip && !fv_mul(most, FV_GZIP_MOST_RATIO, &most)) most = INT64_MAX;
    if (end > most)
        return fv_fail(error, FV_ERROR_INPUT, "%s ends early: its header promises %lld bytes, the file has %lld%s", r->data_path,
                       (long long)end, (long long)r->file_size, r->gzip ? " compressed" : "");
    return FV_OK;
}

static void describe(reader *r) {
    const fv_nifti_header *h = &r->header;
    fv_bytes              *facts = &r->base.facts;
    static const char *const worlds[] = { "unknown", "scanner", "aligned", "Talairach", "MNI", "template" };
    fv_bytes_printf(facts, "version: NIfTI-%d\ncompression: %s\nbyte order: %s\n", h->version, r->gzip ? "gzip" : "none",
                    h->swapped ? "swapped" : "native");
    if (h->scaled)
        fv_bytes_printf(facts, "stored as: %s\nslope: %.9g\nintercept: %.9g\n", fv_dtype_name(h->stored), h->slope, h->inter);
    if (h->type.has_affine)
        fv_bytes_printf(facts, "world: %s\n", h->type.affine_code < FV_COUNT(worlds) ? worlds[h->type.affine_code] : "other");
    if (h->description[0]) fv_bytes_printf(facts, "description: %s\n", h->description);
}

static fv_status open_voxels(reader *r, fv_error *error) {
    const fv_nifti_header *h = &r->header;
    if (h->pair) {
        char *image = sibling(r->data_path, "img");
        close_file(r);
        FV_TRY(open_file(r, image, error));
    }
    r->dense = (fv_dense){ .offset = h->data_offset, .dtype = h->stored, .swapped = h->swapped, .ndim = h->type.ndim };
    memcpy(r->dense.shape, h->type.shape, sizeof r->dense.shape);
    FV_TRY(check_size(r, error));
    r->base.type = h->type;
    memcpy(r->base.chunk, h->type.shape, sizeof r->base.chunk);
    r->base.sequential = r->gzip != NULL;
    r->base.read_memory = (r->gzip ? (int64_t)fv_gzip_memory() : FV_DENSE_MEMORY) + (h->scaled ? 2 * STRIP_BYTES : 0);
    describe(r);
    return FV_OK;
}

static fv_status open_as(const fv_format *format, const char *path, fv_reader **out, fv_error *error) {
    reader *r = fv_reader_new(sizeof *r, format, path);
    r->fd = -1;
    bool      image = fv_path_has_extension(path, "img") || fv_path_has_extension(path, "img.gz");
    fv_status status = open_file(r, image ? sibling(path, "hdr") : fv_strdup(path), error);
    if (status == FV_OK) status = read_header(r, error);
    if (status == FV_OK) status = open_voxels(r, error);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    *out = &r->base;
    return FV_OK;
}

static fv_status open_plain(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    (void)options;
    return open_as(&fv_format_nifti, path, out, error);
}
static fv_status open_gz(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    (void)options;
    return open_as(&fv_format_nifti_gz, path, out, error);
}
static fv_status open_pair(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    (void)options;
    return open_as(&fv_format_nifti_pair, path, out, error);
}

/* ---------------------------------------------------------------- reading */

/* Trailing axes that lie in one run both in the file and in the block, and voxels of such a run. */
static int run_axes(const reader *r, const fv_block *block, int64_t *voxels) {
    int d = r->dense.ndim - 1;
    *voxels = block->region.size[d];
    while (d > 0 && block->region.size[d] == r->dense.shape[d] && block->stride[d - 1] == *voxels)
        *voxels *= block->region.size[--d];
    return r->dense.ndim - d;
}

static int64_t stored_offset(const reader *r, const int64_t *position) {
    int64_t voxel = 0;
    for (int d = 0; d < r->dense.ndim; d++) voxel = voxel * r->dense.shape[d] + position[d];
    return r->dense.offset + voxel * (int64_t)fv_dtype_size(r->dense.dtype);
}

/* Runs in file order, straight into the block; after the last voxel the checksum follows. */
static fv_status read_gzip(reader *r, const fv_block *block, fv_error *error) {
    int64_t   voxels;
    int       together = run_axes(r, block, &voxels);
    size_t    bytes = (size_t)voxels * fv_dtype_size(block->dtype);
    fv_region starts = block->region;
    int64_t   end = 0;
    for (int i = 1; i <= together; i++) starts.size[starts.ndim - i] = 1;
    fv_rows rows;
    for (fv_rows_begin(&rows, &starts); fv_rows_next(&rows);) {
        void   *to = fv_block_at(block, rows.position);
        int64_t offset = stored_offset(r, rows.position);
        FV_TRY(fv_gzip_read(r->gzip, offset, to, bytes, error));
        if (r->dense.swapped) fv_swap_elements(block->dtype, to, voxels);
        end = offset + (int64_t)bytes;
    }
    return end == r->dense.offset + fv_dense_bytes(&r->dense) ? fv_gzip_check_end(r->gzip, error) : FV_OK;
}

static fv_status read_stored(reader *r, const fv_block *block, fv_error *error) {
    return r->gzip ? read_gzip(r, block, error) : fv_dense_read(&r->dense, r->fd, r->data_path, block, error);
}

/* n stored elements to their values; complex ones count as two. */
static void scale(const fv_nifti_header *h, const void *from, void *to, int64_t n) {
    double slope = h->slope, inter = h->inter;
    bool   narrow = h->type.dtype == FV_FLOAT32 || h->type.dtype == FV_COMPLEX64;
#define SCALE(TYPE)                                                                                               \
    {                                                                                                             \
        const TYPE *restrict v = from;                                                                            \
        if (narrow)                                                                                               \
            for (int64_t i = 0; i < n; i++) ((float *restrict)to)[i] = (float)((double)v[i] * slope + inter);     \
        else                                                                                                      \
            for (int64_t i = 0; i < n; i++) ((double *restrict)to)[i] = (double)v[i] * slope + inter;             \
        return;                                                                                                   \
    }
    if (fv_dtype_is_complex(h->stored)) n *= 2;
    switch (h->stored) {
    case FV_UINT8: SCALE(uint8_t)
    case FV_INT8: SCALE(int8_t)
    case FV_UINT16: SCALE(uint16_t)
    case FV_INT16: SCALE(int16_t)
    case FV_UINT32: SCALE(uint32_t)
    case FV_INT32: SCALE(int32_t)
    case FV_UINT64: SCALE(uint64_t)
    case FV_INT64: SCALE(int64_t)
    case FV_FLOAT32: case FV_COMPLEX64: SCALE(float)
    case FV_FLOAT64: case FV_COMPLEX128: SCALE(double)
    default: return;
    }
#undef SCALE
}

/* Strip by strip in file order, so that a strip is still in the cache when it is scaled. */
static fv_status read_scaled(reader *r, const fv_block *block, fv_error *error) {
    const fv_region *region = &block->region;
    fv_image_type    part;
    fv_lattice       strips;
    int64_t          size[FV_MAX_DIMS];
    fv_image_type_init(&part, r->header.stored, region->ndim, region->size);
    fv_dense_piece(&part, STRIP_BYTES, size);
    fv_lattice_init(&strips, region->ndim, region->size, size);
    void     *memory = fv_buffer_new(STRIP_BYTES);
    fv_status status = FV_OK;
    for (int64_t i = 0, n = fv_lattice_count(&strips); i < n && status == FV_OK; i++) {
        fv_region strip = fv_lattice_chunk(&strips, i);
        for (int d = 0; d < strip.ndim; d++) strip.start[d] += region->start[d];
        fv_block stored;
        fv_block_init(&stored, r->header.stored, &strip, memory);
        status = read_stored(r, &stored, error);
        fv_rows rows;
        for (fv_rows_begin(&rows, &strip); status == FV_OK && fv_rows_next(&rows);)
            scale(&r->header, fv_block_at(&stored, rows.position), fv_block_at(block, rows.position), strip.size[strip.ndim - 1]);
    }
    fv_buffer_free(memory, STRIP_BYTES);
    return status;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    reader *r = (reader *)base;
    if (fv_region_empty(&block->region)) return FV_OK;
    return r->header.scaled ? read_scaled(r, block, error) : read_stored(r, block, error);
}

/* ---------------------------------------------------------------- writing */

static fv_status create_plain(const char *path, const fv_image_type *type, const fv_write_options *options, fv_writer **out,
                              fv_error *error) {
    int      compression;
    fv_bytes header = { 0 };
    FV_TRY(fv_compression_choose(&fv_format_nifti, options, &compression, error));
    FV_TRY(fv_nifti_compose(type, path, &header, error));
    *out = fv_dense_writer_new(&fv_format_nifti, path, type, options, &header);
    return FV_OK;
}

typedef struct {
    fv_writer base;
    int       level;
    fv_bytes  header;
} gz_writer;

static fv_status create_gz(const char *path, const fv_image_type *type, const fv_write_options *options, fv_writer **out,
                           fv_error *error) {
    int      compression;
    int64_t  level = options && options->level ? options->level : DEFAULT_LEVEL;
    fv_bytes header = { 0 };
    FV_TRY(fv_compression_choose(&fv_format_nifti_gz, options, &compression, error));
    if (level < 1 || level > FV_GZIP_LEVELS)
        return fv_fail(error, FV_ERROR_USAGE, "level = %lld: gzip has levels 1 (the default) to %d here", (long long)level,
                       FV_GZIP_LEVELS);
    FV_TRY(fv_nifti_compose(type, path, &header, error));
    gz_writer *w = fv_writer_new(sizeof *w, &fv_format_nifti_gz, path, type, options);
    w->level = (int)level;
    w->header = header;
    fv_dense_piece(type, PIECE_BYTES, w->base.piece);
    /* Encoded, and once more in one run where the block is a window. */
    w->base.piece_memory = fv_gzip_encode_memory(PIECE_BYTES + FV_NIFTI_2 + FV_NIFTI_EXTENDER) + PIECE_BYTES;
    *out = &w->base;
    return FV_OK;
}

static fv_status encode(fv_writer *base, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error) {
    (void)error;
    gz_writer *w = (gz_writer *)base;
    size_t     size = (size_t)fv_region_voxels(&block->region) * fv_dtype_size(block->dtype);
    fv_block   run = *block;
    void      *memory = NULL;
    if (!fv_block_dense(block)) {
        memory = fv_buffer_new(size);
        fv_block_init(&run, block->dtype, &block->region, memory);
        fv_block_copy(&run, block);
    }
    fv_gzip_part parts[] = { { w->header.data, piece == 0 ? w->header.size : 0 }, { run.data, size } };
    fv_gzip_encode(w->level, parts, FV_COUNT(parts), out);
    if (memory) fv_buffer_free(memory, size);
    return FV_OK;
}

static fv_status assemble(fv_writer *base, fv_pieces *pieces, fv_error *error) {
    return fv_gzip_assemble(base->path, pieces, error);
}

static void free_gz(fv_writer *base) {
    fv_bytes_release(&((gz_writer *)base)->header);
    fv_writer_free(base);
}

const fv_format fv_format_nifti = {
    .name = "nifti",
    .extensions = "nii",
    .magic = { { 344, 4, "n+1" }, { 4, 4, "n+2" } },
    .brief = "NIfTI volume",
    .open = open_plain,
    .read = read_block,
    .close = close_reader,
    .create = create_plain,
    .begin = fv_dense_begin,
    .put = fv_dense_put,
    .sync = fv_dense_sync,
    .finish = fv_dense_sync,
    .free_writer = fv_dense_free,
};

const fv_format fv_format_nifti_gz = {
    .name = "nifti-gz",
    .extensions = "nii.gz",
    .brief = "NIfTI volume, gzip",
    .compressions = "gzip",
    .open = open_gz,
    .read = read_block,
    .close = close_reader,
    .create = create_gz,
    .encode = encode,
    .assemble = assemble,
    .free_writer = free_gz,
};

const fv_format fv_format_nifti_pair = {
    .name = "nifti-pair",
    .extensions = "hdr img hdr.gz img.gz",
    .brief = "NIfTI volume in two files, only read",
    .open = open_pair,
    .read = read_block,
    .close = close_reader,
};
