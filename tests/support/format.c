/* Whole images through formats, cleanly and with damage. */
#include "support/format.h"
#include "op/output_parts.h"
#include "support/test.h"

enum { POISON = 0xa5, MOST_VOXELS = 1 << 26 };

static fv_block whole_block(const test_image *image) {
    fv_region all = fv__region_whole(&image->type.image);
    fv_block  block;
    fv__block_init(&block, image->type.image.dtype, &all, image->data);
    return block;
}

/* ---------------------------------------------------------------- writing */

/* Region of the image as a window into a larger, poisoned block. */
static fv_block poisoned_copy(const test_image *image, const fv_region *region, void **memory) {
    int64_t before[FV_MAX_DIMS], after[FV_MAX_DIMS];
    for (int d = 0; d < region->ndim; d++) {
        before[d] = 1 + d;
        after[d] = 2;
    }
    fv_region grown = fv__region_grow(region, before, after);
    size_t    size = (size_t)fv__region_voxels(&grown) * fv_dtype_size(image->type.image.dtype);
    *memory = fv__alloc(size);
    memset(*memory, POISON, size);
    fv_block outer, whole = whole_block(image);
    fv__block_init(&outer, image->type.image.dtype, &grown, *memory);
    fv_block inner = fv__block_window(&outer, region);
    fv__block_copy(&inner, &whole);
    return inner;
}

static int64_t *order_of(int64_t count, uint64_t seed) {
    int64_t *order = fv__alloc((size_t)FV_MAX(count, 1) * sizeof *order);
    for (int64_t i = 0; i < count; i++) order[i] = i;
    for (int64_t i = count - 1; seed && i > 0; i--) {
        int64_t j = (int64_t)(test_random(&seed) % (uint64_t)(i + 1)), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    return order;
}

typedef struct {
    fv_pieces base;
    fv_bytes *piece;
} encoded;

static fv_status get_piece(fv_pieces *pieces, int64_t index, const void **data, size_t *size, fv_error *error) {
    (void)error;
    fv_bytes *piece = &((encoded *)pieces)->piece[index];
    *data = piece->data;
    *size = piece->size;
    return FV_OK;
}

/* One piece of the lattice: put, or encoded into out. */
static fv_status write_piece(fv_writer *writer, const test_image *image, const fv_lattice *lattice, int64_t index, bool poison,
                             fv_bytes *out, fv_error *error) {
    fv_region region = fv__lattice_chunk(lattice, index);
    fv_block  whole = whole_block(image);
    void     *memory = NULL;
    fv_block  block = poison ? poisoned_copy(image, &region, &memory) : fv__block_window(&whole, &region);
    fv_status status =
        out ? writer->format->encode(writer, index, &block, out, error) : writer->format->put(writer, &block, error);
    free(memory);
    return status;
}

static fv_status write_pieces(fv_writer *writer, const test_image *image, uint64_t seed, fv_error *error) {
    const fv_format     *format = writer->format;
    const fv_image_type *type = &image->type.image;
    int64_t              cut[FV_MAX_DIMS];
    memcpy(cut, writer->layout.piece, sizeof cut);
    uint64_t state = seed;
    for (int d = 0; seed && writer->layout.any_region && d < type->ndim; d++)
        cut[d] = 1 + (int64_t)(test_random(&state) % (uint64_t)type->shape[d]);
    fv_lattice lattice;
    fv__lattice_init(&lattice, type->ndim, type->shape, cut);
    int64_t   count = fv__lattice_count(&lattice), *order = order_of(count, seed);
    fv_status status = writer->layout.parallel ? format->begin(writer, error) : FV_OK;
    encoded   pieces = { .base = { .get = get_piece, .count = count } };
    if (!writer->layout.parallel) pieces.piece = fv__calloc((size_t)count * sizeof *pieces.piece);
    for (int64_t i = 0; i < count && status == FV_OK; i++)
        status = write_piece(writer, image, &lattice, order[i], seed != 0, pieces.piece ? &pieces.piece[order[i]] : NULL, error);
    if (status == FV_OK && writer->layout.parallel && format->sync) status = format->sync(writer, error);
    if (status == FV_OK && writer->layout.parallel && format->finish) status = format->finish(writer, error);
    if (status == FV_OK && !writer->layout.parallel) status = format->assemble(writer, &pieces.base, error);
    for (int64_t i = 0; pieces.piece && i < count; i++) fv__bytes_release(&pieces.piece[i]);
    free(pieces.piece);
    free(order);
    return status;
}

static fv_status make_writer(const fv_format *format, const char *path, const char *temporary, const fv_image_type *type,
                             const fv_write_options *options, fv_writer **writer, fv_error *error) {
    fv_image_file  file = { path, type, options };
    fv_file_layout layout = { 0 };
    FV_TRY(format->layout(&file, &layout, error));
    return format->create(&file, &layout, temporary, writer, error);
}

fv_status test_make_writer(const fv_format *format, const char *path, const fv_image_type *type, const fv_write_options *options,
                           fv_writer **writer, fv_error *error) {
    return make_writer(format, path, path, type, options, writer, error);
}

fv_status test_write_file(const char *path, const test_image *image, const fv_write_options *options, uint64_t seed,
                          fv_error *error) {
    const fv_format *format;
    fv_writer       *writer = NULL;
    fv_write_options none = { 0 };
    bool             in_parts = fv__format_in_parts(path); /* named from a temporary folder, as an engine does */
    FV_TRY(fv__format_for_writing(path, &format, error));
    char *temporary =
        in_parts ? fv__sprintf("%.*s.%s.0123456789abcdef.fovea", (int)(fv__path_name(path) - path), path, fv__path_name(path))
                 : fv__strdup(path);
    fv_status status = make_writer(format, path, temporary, &image->type.image, options ? options : &none, &writer, error);
    if (status == FV_OK) status = write_pieces(writer, image, seed, error);
    if (status == FV_OK && in_parts) status = fv__parts_name(temporary, path, error);
    if (writer) format->free_writer(writer);
    free(temporary);
    return status;
}

/* ---------------------------------------------------------------- reading */

static fv_status open_file(const char *path, fv_reader **reader, fv_error *error) {
    const fv_format *format;
    char            *file = fv__strdup(path), *inside = strstr(file, "::");
    if (inside) {
        *inside = 0;
        inside += 2;
    }
    fv_status status = fv__format_for_reading(file, &format, error);
    if (status == FV_OK) status = format->open(file, &(fv_read_options){ .path_inside = inside }, reader, error);
    free(file);
    return status;
}

static fv_status read_whole(fv_reader *reader, test_image *image, fv_error *error) {
    int64_t voxels = fv_image_type_voxels(&reader->type);
    if (voxels < 1 || voxels > MOST_VOXELS)
        return fv_fail(error, FV_ERROR_MEMORY, "test: %lld voxels are more than a test reads", (long long)voxels);
    *image = test_image_new(reader->type.dtype, reader->type.ndim, reader->type.shape);
    image->type.image = reader->type;
    fv_block  block = whole_block(image);
    fv_status status = reader->format->read(reader, &block, error);
    if (status != FV_OK) test_image_free(image);
    return status;
}

fv_status test_read_file(const char *path, test_image *image, fv_error *error) {
    fv_reader *reader;
    FV_TRY(open_file(path, &reader, error));
    fv_status status = read_whole(reader, image, error);
    reader->format->close(reader);
    return status;
}

fv_status test_read_region(fv_reader *reader, const fv_region *region, test_image *crop, fv_error *error) {
    int64_t margin[FV_MAX_DIMS];
    for (int d = 0; d < region->ndim; d++) margin[d] = 2;
    fv_region grown = fv__region_grow(region, margin, margin);
    size_t    element = fv_dtype_size(reader->type.dtype), size = (size_t)fv__region_voxels(&grown) * element;
    uint8_t  *memory = fv__alloc(size);
    memset(memory, POISON, size);
    fv_block outer, inner;
    fv__block_init(&outer, reader->type.dtype, &grown, memory);
    inner = fv__block_window(&outer, region);
    fv_status status = reader->format->read(reader, &inner, error);
    if (status == FV_OK) {
        *crop = test_image_new(reader->type.dtype, region->ndim, region->size);
        fv_block dense;
        fv__block_init(&dense, reader->type.dtype, region, crop->data);
        fv__block_copy(&dense, &inner);
        fv_rows rows; /* poison the inside again: then everything must be poison */
        for (fv__rows_begin(&rows, region); fv__rows_next(&rows);)
            memset(fv__block_at(&inner, rows.position), POISON, (size_t)region->size[region->ndim - 1] * element);
        for (size_t i = 0; i < size && status == FV_OK; i++)
            if (memory[i] != POISON) status = fv_fail(error, FV_ERROR_INTERNAL, "a read touched memory outside its region");
        if (status != FV_OK) test_image_free(crop);
    }
    free(memory);
    return status;
}

static fv_region random_region(const fv_image_type *type, bool slab, uint64_t *state) {
    fv_region region = fv__region_whole(type);
    for (int d = 0; d < (slab ? 1 : type->ndim); d++) {
        region.start[d] = (int64_t)(test_random(state) % (uint64_t)type->shape[d]);
        region.size[d] = 1 + (int64_t)(test_random(state) % (uint64_t)(type->shape[d] - region.start[d]));
        if (test_random(state) % 4 == 0) {
            region.start[d] = 0;
            region.size[d] = type->shape[d];
        }
    }
    return region;
}

static bool region_equals_crop(fv_reader *reader, const fv_region *region, const test_image *whole, char message[256]) {
    test_image crop;
    fv_error   error = { 0 };
    char       text[128];
    fv__region_format(region, text, sizeof text);
    if (test_read_region(reader, region, &crop, &error) != FV_OK) {
        snprintf(message, 256, "[%s]: %.100s", text, error.message);
        return false;
    }
    fv_block  from = whole_block(whole), to;
    fv_region flat = *region;
    void     *expected = fv__alloc((size_t)fv__region_voxels(region) * fv_dtype_size(whole->type.image.dtype));
    fv__block_init(&to, whole->type.image.dtype, &flat, expected);
    fv__block_copy(&to, &from);
    bool same = !memcmp(expected, crop.data, (size_t)fv__region_voxels(region) * fv_dtype_size(whole->type.image.dtype));
    if (!same) snprintf(message, 256, "[%s] differs from the crop of the whole", text);
    free(expected);
    test_image_free(&crop);
    return same;
}

bool test_regions_equal_crops(const char *path, int rounds, uint64_t seed, char message[256]) {
    fv_reader *reader;
    fv_error   error = { 0 };
    test_image whole;
    if (open_file(path, &reader, &error) != FV_OK || read_whole(reader, &whole, &error) != FV_OK) {
        snprintf(message, 256, "%.250s", error.message);
        return false;
    }
    uint64_t state = seed;
    bool     same = true;
    for (int i = 0; i < rounds && same; i++) {
        fv_region region = random_region(&reader->type, reader->sequential, &state);
        same = region_equals_crop(reader, &region, &whole, message);
    }
    reader->format->close(reader);
    test_image_free(&whole);
    return same;
}

/* ---------------------------------------------------------------- comparing */

bool test_same_pixels(const test_image *a, const test_image *b) {
    const fv_image_type *x = &a->type.image, *y = &b->type.image;
    if (x->dtype != y->dtype || x->ndim != y->ndim) return false;
    for (int d = 0; d < x->ndim; d++)
        if (x->shape[d] != y->shape[d]) return false;
    return !memcmp(a->data, b->data, (size_t)fv_image_type_bytes(x));
}

void test_image_random_any(test_image *image, uint64_t seed) {
    test_image parts = *image;
    bool       complex = fv_dtype_is_complex(image->type.image.dtype);
    if (complex) {
        parts.type.image.dtype = image->type.image.dtype == FV_COMPLEX64 ? FV_FLOAT32 : FV_FLOAT64;
        parts.type.image.shape[0] *= 2;
    }
    test_image_random(&parts, seed);
}

bool test_same_files(const char *a, const char *b) {
    fv_bytes x = { 0 }, y = { 0 };
    bool     same = fv__file_read_all(a, (size_t)1 << 32, &x, NULL) == FV_OK &&
                fv__file_read_all(b, (size_t)1 << 32, &y, NULL) == FV_OK && x.size == y.size && !memcmp(x.data, y.data, x.size);
    fv__bytes_release(&x);
    fv__bytes_release(&y);
    return same;
}

/* ---------------------------------------------------------------- damage */

static bool survives(const char *path, const char *what, char message[256]) {
    test_image image;
    fv_error   error = { 0 };
    if (test_read_file(path, &image, &error) == FV_OK) {
        test_image_free(&image);
        return true;
    }
    if (error.message[0]) return true;
    snprintf(message, 256, "%s: an error without a message", what);
    return false;
}

/* In place: a file system may wait for the disk when a file is replaced. */
static bool put_copy(const char *path, const fv_bytes *file, size_t size) {
    int fd;
    if (fv__file_open_update(path, &fd, NULL) != FV_OK) return false;
    bool good = fv__file_write_at(fd, file->data, size, 0, path, NULL) == FV_OK &&
                fv__file_resize(fd, (int64_t)size, path, NULL) == FV_OK;
    return fv__file_close(fd, path, NULL) == FV_OK && good;
}

/* Changes a few bits; the same state changes them back. */
static void flip(fv_bytes *file, uint64_t *state) {
    for (int changes = 1 + (int)(test_random(state) % 4); changes > 0; changes--) {
        uint64_t r = test_random(state);
        /* Half of them in the first kilobyte, where most headers are. */
        size_t at = (size_t)(r >> 8) % (r & 128 ? FV_MIN(file->size, (size_t)1024) : file->size);
        file->data[at] ^= (uint8_t)(1u << (r & 7));
    }
}

bool test_survives_damage(const char *path, const char *extension, int samples, int flips, uint64_t seed, char message[256]) {
    fv_bytes file = { 0 };
    fv_error error = { 0 };
    if (fv__file_read_all(path, (size_t)1 << 30, &file, &error) != FV_OK) {
        snprintf(message, 256, "%.250s", error.message);
        return false;
    }
    char    *copy = fv__sprintf("%s/damaged.%s", test_folder(), extension), what[64];
    uint64_t state = seed;
    bool     good = true;
    size_t   step = samples > 0 && file.size > (size_t)samples ? file.size / (size_t)samples : 1;
    for (size_t size = 0; size < file.size && good; size += step) {
        snprintf(what, sizeof what, "cut to %zu bytes", size);
        good = put_copy(copy, &file, size) && survives(copy, what, message);
    }
    for (int i = 0; i < flips && good; i++) {
        uint64_t before = state;
        flip(&file, &state);
        snprintf(what, sizeof what, "flip round %d", i);
        good = put_copy(copy, &file, file.size) && survives(copy, what, message);
        flip(&file, &before);
    }
    free(copy);
    fv__bytes_release(&file);
    return good;
}
