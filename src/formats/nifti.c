/* NIfTI: .nii is read by region and written by many workers at once, .nii.gz is read in order and assembled from deflated
 * pieces; .hdr/.img pairs are read.
 *
 * Axes are t z y x; spacing, units and the voxel to world matrix (sform, else qform) are kept. Stored integers with a slope
 * become float32, or float64 where float32 could not tell them apart. With complex numbers the slope and the intercept count
 * for both parts, as the definition says. Descriptions, intents and extensions are not carried over. */
#include "base/take.h"
#include "formats/nifti_header.h"
#include "formats/volume.h"
#include "op/physical.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STRIP_BYTES = 1 << 18 };
extern const fv_format fv_format_nifti, fv_format_nifti_gz, fv_format_nifti_pair;

typedef struct {
    fv_reader       base;
    fv_nifti_header header;
    fv_volume       volume;
} reader;

/* ---------------------------------------------------------------- opening */

static void close_reader(fv_reader *base) {
    fv__volume_close(&((reader *)base)->volume);
    fv__reader_free(base);
}

static fv_status read_header(reader *r, fv_error *error) {
    uint8_t bytes[FV_NIFTI_2];
    FV_TRY(fv__volume_fetch(&r->volume, 0, bytes, 4, error));
    size_t size = fv__nifti_size(bytes);
    FV_TRY(fv__volume_fetch(&r->volume, 0, bytes, size, error));
    r->base.header = fv__hash_bytes(bytes, size);
    return fv__nifti_parse(bytes, size, r->volume.path, &r->header, error);
}

/* "a.hdr" and "a.img" name each other, with or without .gz. */
static char *sibling(const char *path, const char *extension) {
    bool   packed = fv__path_has_extension(path, "gz");
    char  *name = fv__path_bare_name(path);
    size_t length = strlen(name) - (packed ? 3 : 0);
    while (length > 0 && name[length - 1] != '.') length--;
    char *bare = fv__sprintf("%.*s%s", (int)length, name, extension), *full = fv__sprintf("%s.gz", bare);
    char *plain = fv__path_beside(path, bare), *other = packed ? fv__path_beside(path, full) : NULL;
    free(name);
    free(bare);
    free(full);
    if (other && fv__file_exists(other)) {
        free(plain);
        return other;
    }
    free(other);
    return plain;
}

static void describe(reader *r) {
    const fv_nifti_header   *h = &r->header;
    fv_bytes                *facts = &r->base.facts;
    static const char *const worlds[] = { "unknown", "scanner", "aligned", "Talairach", "MNI", "template" };
    fv__bytes_printf(facts, "version: NIfTI-%d\ncompression: %s\nbyte order: %s\n", h->version, r->volume.gzip ? "gzip" : "none",
                     h->swapped ? "swapped" : "native");
    if (h->scaled)
        fv__bytes_printf(facts, "stored as: %s\nslope: %.9g\nintercept: %.9g\n", fv_dtype_name(h->stored), h->slope, h->inter);
    if (h->type.has_affine)
        fv__bytes_printf(facts, "world: %s\n", h->type.affine_code < FV_COUNT(worlds) ? worlds[h->type.affine_code] : "other");
    if (h->description[0]) fv__bytes_printf(facts, "description: %s\n", h->description);
}

static fv_status open_voxels(reader *r, fv_error *error) {
    const fv_nifti_header *h = &r->header;
    if (h->pair) {
        char *image = sibling(r->volume.path, "img");
        fv__volume_close(&r->volume);
        fv_status status = fv__volume_open(&r->volume, image, error);
        free(image);
        FV_TRY(status);
    }
    r->volume.dense = (fv_dense){ .offset = h->data_offset, .dtype = h->stored, .swapped = h->swapped, .ndim = h->type.ndim };
    memcpy(r->volume.dense.shape, h->type.shape, sizeof r->volume.dense.shape);
    FV_TRY(fv__volume_check(&r->volume, "NIfTI", error));
    r->base.type = h->type;
    fv__volume_layout(&r->volume, &r->base);
    if (h->scaled) r->base.read_memory += 2 * STRIP_BYTES;
    describe(r);
    return FV_OK;
}

static fv_status open_as(const fv_format *format, const char *path, fv_reader **out, fv_error *error) {
    reader   *r = fv__reader_new(sizeof *r, format, path);
    bool      image = fv__path_has_extension(path, "img") || fv__path_has_extension(path, "img.gz");
    char     *header = image ? sibling(path, "hdr") : fv__strdup(path);
    fv_status status = fv__volume_open(&r->volume, header, error);
    free(header);
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

/* n stored elements to their values; complex ones count as two. */
static void scale(const fv_nifti_header *h, const void *from, void *to, int64_t n) {
    double slope = h->slope, inter = h->inter;
    bool   narrow = h->type.dtype == FV_FLOAT32 || h->type.dtype == FV_COMPLEX64;
#define SCALE(TYPE)                                                                                                              \
    {                                                                                                                            \
        const TYPE *restrict v = from;                                                                                           \
        if (narrow)                                                                                                              \
            for (int64_t i = 0; i < n; i++) ((float *restrict)to)[i] = (float)((double)v[i] * slope + inter);                    \
        else                                                                                                                     \
            for (int64_t i = 0; i < n; i++) ((double *restrict)to)[i] = (double)v[i] * slope + inter;                            \
        return;                                                                                                                  \
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
    case FV_FLOAT32:
    case FV_COMPLEX64: SCALE(float)
    case FV_FLOAT64:
    case FV_COMPLEX128: SCALE(double)
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
    fv__dense_piece(&part, STRIP_BYTES, size);
    fv__lattice_init(&strips, region->ndim, region->size, size);
    void     *memory;
    fv_status status = FV_TAKE_BUFFER(memory, STRIP_BYTES, error);
    for (int64_t i = 0, n = fv__lattice_count(&strips); i < n && status == FV_OK; i++) {
        fv_region strip = fv__lattice_chunk(&strips, i);
        for (int d = 0; d < strip.ndim; d++) strip.start[d] += region->start[d];
        fv_block stored;
        fv__block_init(&stored, r->header.stored, &strip, memory);
        status = fv__volume_read(&r->volume, &stored, error);
        fv_rows rows;
        for (fv__rows_begin(&rows, &strip); status == FV_OK && fv__rows_next(&rows);)
            scale(&r->header, fv__block_at(&stored, rows.position), fv__block_at(block, rows.position),
                  strip.size[strip.ndim - 1]);
    }
    fv__buffer_free(memory, STRIP_BYTES);
    return status;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    reader *r = (reader *)base;
    if (fv__region_empty(&block->region)) return FV_OK;
    return r->header.scaled ? read_scaled(r, block, error) : fv__volume_read(&r->volume, block, error);
}

/* ---------------------------------------------------------------- writing */

static fv_status lay_out_plain(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    int      compression;
    fv_bytes header = { 0 };
    FV_TRY(fv__compression_choose(&fv_format_nifti, file->options, &compression, error));
    FV_TRY(fv__nifti_compose(file->type, file->path, &header, error));
    fv__bytes_release(&header);
    fv__dense_layout(file->type, file->type->dtype, false, layout);
    return FV_OK;
}

static fv_status create_plain(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                              fv_error *error) {
    fv_bytes header = { 0 };
    FV_TRY(fv__nifti_compose(file->type, file->path, &header, error));
    *out = fv__dense_writer_new(&fv_format_nifti, file, layout, temporary, &header);
    return FV_OK;
}

static fv_status lay_out_gz(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    int      compression;
    fv_bytes header = { 0 };
    FV_TRY(fv__compression_choose(&fv_format_nifti_gz, file->options, &compression, error));
    FV_TRY(fv__nifti_compose(file->type, file->path, &header, error));
    fv__bytes_release(&header);
    return fv__volume_gz_layout(file, file->type->dtype, layout, error);
}

static fv_status create_gz(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                           fv_error *error) {
    fv_bytes header = { 0 };
    FV_TRY(fv__nifti_compose(file->type, file->path, &header, error));
    *out = fv__volume_gz_new(&fv_format_nifti_gz, file, layout, temporary, file->type->dtype, &header, false);
    return FV_OK;
}

/* The header again, with another matrix: it is as long as before. */
static fv_status compose_placed(fv_writer *writer, const double affine[12], fv_bytes *header, fv_error *error) {
    fv__image_place(&writer->type, affine);
    return fv__nifti_compose(&writer->type, writer->path, header, error);
}

static fv_status place_plain(fv_writer *writer, const double affine[12], fv_error *error) {
    fv_bytes header = { 0 };
    FV_TRY(compose_placed(writer, affine, &header, error));
    return fv__dense_header(writer, &header, error);
}

static fv_status place_gz(fv_writer *writer, const double affine[12], fv_error *error) {
    fv_bytes header = { 0 };
    FV_TRY(compose_placed(writer, affine, &header, error));
    fv__volume_gz_replace(writer, &header);
    return FV_OK;
}

const fv_format fv_format_nifti = {
    .name = "nifti",
    .extensions = "nii",
    .magic = { { 344, 4, "n+1" }, { 4, 4, "n+2" } },
    .brief = "NIfTI volume",
    .reads = "by region",
    .writes = "in parallel; version 2 where an axis is longer than 32767",
    .keeps = "spacing, units, orientation",
    .open = open_plain,
    .read = read_block,
    .close = close_reader,
    .layout = lay_out_plain,
    .create = create_plain,
    .begin = fv__dense_begin,
    .put = fv__dense_put,
    .sync = fv__dense_sync,
    .finish = fv__dense_sync,
    .place = place_plain,
    .free_writer = fv__dense_free,
};

const fv_format fv_format_nifti_gz = {
    .name = "nifti-gz",
    .extensions = "nii.gz",
    .brief = "NIfTI volume, gzip",
    .reads = "in order",
    .writes = "on all cores",
    .keeps = "spacing, units, orientation",
    .compressions = "gzip",
    .open = open_gz,
    .read = read_block,
    .close = close_reader,
    .layout = lay_out_gz,
    .create = create_gz,
    .encode = fv__volume_gz_encode,
    .assemble = fv__volume_gz_assemble,
    .place = place_gz,
    .free_writer = fv__volume_gz_free,
};

const fv_format fv_format_nifti_pair = {
    .name = "nifti-pair",
    .extensions = "hdr img hdr.gz img.gz",
    .brief = "NIfTI volume in two files, only read",
    .reads = "by region; `.gz` in order",
    .keeps = "spacing, units, orientation",
    .open = open_pair,
    .read = read_block,
    .close = close_reader,
};
