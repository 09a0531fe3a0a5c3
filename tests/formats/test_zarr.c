/* Zarr folders. */
#include "support/format.h"
#include "support/test.h"
#include <isa-l/crc.h>
#include <pthread.h>
#include <unistd.h>
#include <zlib.h>

extern const fv_format fv_format_zarr;

static char *in_folder(const char *name) { return fv__sprintf("%s/%s", test_folder(), name); }

static bool same_folders(const char *a, const char *b) {
    char *command = fv__sprintf("diff -r %s %s >&2", a, b);
    bool  same = system(command) == 0;
    free(command);
    return same;
}

static void save(const char *folder, const char *name, const void *data, size_t size) {
    char *path = fv__sprintf("%s/%s", folder, name), *parent = fv__strdup(path);
    *strrchr(parent, '/') = 0;
    if (fv__path_make_folders(parent, NULL) != FV_OK || fv__file_write_all(path, data, size, false, NULL) != FV_OK) abort();
    free(path);
    free(parent);
}
static void save_text(const char *folder, const char *name, const char *text) { save(folder, name, text, strlen(text)); }

static char *load_text(const char *folder, const char *name) {
    char    *path = fv__sprintf("%s/%s", folder, name);
    fv_bytes bytes = { 0 };
    if (fv__file_read_all(path, 1 << 20, &bytes, NULL) != FV_OK) abort();
    free(path);
    return (char *)bytes.data;
}

static bool has(const char *folder, const char *name) {
    char *path = fv__sprintf("%s/%s", folder, name);
    bool  there = fv__file_exists(path);
    free(path);
    return there;
}

/* ---------------------------------------------------------------- round trips */

TEST(zarr_keeps_every_dtype_and_one_to_six_axes_with_every_compression) {
    static const int64_t     shape[] = { 3, 2, 4, 3, 5, 7 };
    static const char *const compressions[] = { NULL, "blosc", "blosc-zstd", "none" };
    char                    *path = in_folder("a.zarr"), *shuffled = in_folder("b.zarr"), message[256];
    for (int dtype = 0; dtype < FV_DTYPES; dtype++)
        for (int ndim = 1; ndim <= FV_MAX_DIMS; ndim++) {
            if (dtype != FV_UINT16 && ndim != 1 + dtype % FV_MAX_DIMS && ndim != 1 + (dtype + 2) % FV_MAX_DIMS) continue;
            test_image       in = test_image_new((fv_dtype)dtype, ndim, shape + FV_MAX_DIMS - ndim), out;
            fv_error         error = { 0 };
            fv_write_options options = { .compression = compressions[(dtype + ndim) % 4], .chunk_ndim = ndim };
            for (int d = 0; d < ndim; d++) options.chunk[d] = d < ndim - 3 ? 4 : 2 + (d + dtype) % 3;
            test_image_random_any(&in, (uint64_t)(dtype * 7 + ndim));
            CHECK(fv__path_remove(path, NULL) == FV_OK && fv__path_remove(shuffled, NULL) == FV_OK);
            CHECK_MESSAGE(test_write_file(path, &in, &options, 0, &error) == FV_OK, "%s", error.message);
            CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
            CHECK_MESSAGE(test_same_pixels(&in, &out), "%s %d axes", fv_dtype_name((fv_dtype)dtype), ndim);
            for (int d = 0; d < ndim; d++) CHECK_TEXT(out.type.image.axis[d], in.type.image.axis[d]);
            CHECK_MESSAGE(test_regions_equal_crops(path, 20, 5, message), "%s: %s", fv_dtype_name((fv_dtype)dtype), message);
            CHECK_MESSAGE(test_write_file(shuffled, &in, &options, 11, &error) == FV_OK, "%s", error.message);
            CHECK(same_folders(path, shuffled));
            CHECK(!has(path, ".partial"));
            test_image_free(&in);
            test_image_free(&out);
        }
    free(path);
    free(shuffled);
}

TEST(zarr_chunks_follow_the_stated_rule) {
    static const struct {
        int         ndim;
        int64_t     shape[5];
        const char *axes[5];
        int         given;
        int64_t     chunk[5], expected[5];
    } cases[] = {
        { 3, { 300, 200, 90 }, { "z", "y", "x" }, 0, { 0 }, { 128, 128, 90 } },
        { 2, { 3000, 200 }, { "y", "x" }, 0, { 0 }, { 1024, 200 } },
        { 3, { 1, 3000, 2000 }, { "z", "y", "x" }, 0, { 0 }, { 1, 1024, 1024 } },
        { 5, { 5, 2, 300, 300, 300 }, { "t", "c", "z", "y", "x" }, 0, { 0 }, { 1, 1, 128, 128, 128 } },
        { 3, { 2000, 2000, 3 }, { "y", "x", "c" }, 0, { 0 }, { 1024, 1024, 3 } },
        { 3, { 180, 500, 400 }, { "angle", "v", "u" }, 0, { 0 }, { 128, 128, 128 } },
        { 4, { 5, 300, 300, 300 }, { "t", "z", "y", "x" }, 1, { 64 }, { 1, 64, 64, 64 } },
        { 4, { 5, 300, 300, 300 }, { "t", "z", "y", "x" }, 2, { 50, 1000 }, { 1, 128, 50, 300 } },
    };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        fv_image_type    type;
        fv_write_options options = { .chunk_ndim = cases[i].given };
        fv_writer       *writer;
        memcpy(options.chunk, cases[i].chunk, sizeof cases[i].chunk);
        fv_image_type_init(&type, FV_UINT8, cases[i].ndim, cases[i].shape);
        for (int d = 0; d < type.ndim; d++) strcpy(type.axis[d], cases[i].axes[d]);
        CHECK(test_make_writer(&fv_format_zarr, "x.zarr", &type, &options, &writer, NULL) == FV_OK);
        for (int d = 0; d < type.ndim; d++)
            CHECK_MESSAGE(writer->layout.piece[d] == cases[i].expected[d], "case %d axis %d: %lld", i, d,
                          (long long)writer->layout.piece[d]);
        fv_format_zarr.free_writer(writer);
    }
}

TEST(zarr_packs_integers_by_zstd_and_other_numbers_by_blosc_unless_told) {
    static const struct {
        fv_dtype    dtype;
        const char *compression;
        int64_t     level;
        const char *name, *other;
    } cases[] = { { FV_UINT16, NULL, 0, "zstd", "blosc" },    { FV_BOOL, NULL, 0, "zstd", "blosc" },
                  { FV_FLOAT32, NULL, 0, "blosc", "gzip" },   { FV_COMPLEX64, "", 0, "blosc", "gzip" },
                  { FV_FLOAT32, "zstd", 0, "zstd", "blosc" }, { FV_FLOAT64, NULL, 19, "zstd", "blosc" },
                  { FV_FLOAT32, "gzip", 0, "gzip", "blosc" }, { FV_INT32, "blosc", 0, "blosc", "gzip" } };
    for (int k = 0; k < FV_COUNT(cases); k++) {
        test_image in = test_image_new(cases[k].dtype, 2, (int64_t[]){ 9, 11 });
        char      *path = in_folder("usual.zarr");
        fv_error   error = { 0 };
        CHECK(fv__path_remove(path, NULL) == FV_OK);
        fv_write_options options = { .compression = cases[k].compression, .level = cases[k].level };
        CHECK_MESSAGE(test_write_file(path, &in, &options, 0, &error) == FV_OK, "%s", error.message);
        char *text = load_text(path, "0/zarr.json");
        CHECK_MESSAGE(strstr(text, cases[k].name) && !strstr(text, cases[k].other), "case %d: %s", k, text);
        test_image_free(&in);
        free(text);
        free(path);
    }
}

TEST(zarr_refuses_options_it_cannot_follow) {
    fv_image_type type;
    fv_writer    *writer;
    fv_error      error = { 0 };
    fv_image_type_init(&type, FV_FLOAT64, 3, (int64_t[]){ 100000, 100000, 100000 });
    fv_write_options options = { .chunk_ndim = 4 };
    CHECK_INT(test_make_writer(&fv_format_zarr, "x.zarr", &type, &options, &writer, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "chunk has 4"));
    options = (fv_write_options){ .chunk_ndim = 1, .chunk = { 10000 } };
    CHECK_INT(test_make_writer(&fv_format_zarr, "x.zarr", &type, &options, &writer, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "one chunk"));
    options = (fv_write_options){ .compression = "blosc", .level = 10 };
    CHECK_INT(test_make_writer(&fv_format_zarr, "x.zarr", &type, &options, &writer, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "level = 10"));
    options = (fv_write_options){ .compression = "lzma" };
    CHECK_INT(test_make_writer(&fv_format_zarr, "x.zarr", &type, &options, &writer, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "zstd|blosc"));
}

TEST(zarr_keeps_axes_spacing_units_and_the_world_matrix) {
    static const char *const names[][4] = { { "t", "z", "y", "x" }, { "angle", "z", "v", "u" }, { "z", "y", "x", "c" } };
    for (int k = 0; k < FV_COUNT(names); k++) {
        test_image     in = test_image_new(FV_UINT16, 4, (int64_t[]){ 2, 3, 4, 5 }), out;
        fv_image_type *type = &in.type.image, *back = &out.type.image;
        char          *path = in_folder("w.ome.zarr");
        fv_error       error = { 0 };
        for (int d = 0; d < 4; d++) {
            strcpy(type->axis[d], names[k][d]);
            strcpy(type->unit[d], d ? "micrometer" : "second");
            type->spacing[d] = 0.1 * (d + 1);
            type->origin[d] = d - 1.3;
        }
        type->has_affine = true;
        type->affine_code = 4;
        for (int i = 0; i < 12; i++) type->affine[i] = 1.0 / (i + 3);
        CHECK(fv__path_remove(path, NULL) == FV_OK);
        CHECK_MESSAGE(test_write_file(path, &in, NULL, 0, &error) == FV_OK, "%s", error.message);
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
        CHECK_INT(has(path, "0/zarr.json"), k == 0);
        CHECK(!memcmp(type->axis, back->axis, sizeof type->axis) && !memcmp(type->unit, back->unit, sizeof type->unit));
        CHECK(!memcmp(type->spacing, back->spacing, sizeof type->spacing) &&
              !memcmp(type->origin, back->origin, sizeof type->origin));
        CHECK(back->has_affine && back->affine_code == 4 && !memcmp(type->affine, back->affine, sizeof type->affine));
        test_image_free(&in);
        test_image_free(&out);
        free(path);
    }
}

TEST(zarr_metadata_is_what_ome_zarr_asks_for) {
    test_image in = test_image_new(FV_UINT16, 3, (int64_t[]){ 3, 4, 5 });
    char      *path = in_folder("meta.zarr");
    strcpy(in.type.image.axis[0], "c");
    CHECK(test_write_file(path, &in, NULL, 0, NULL) == FV_OK);
    char                    *group = load_text(path, "zarr.json"), *array = load_text(path, "0/zarr.json");
    static const char *const in_group[] = { "\"zarr_format\":\t3",    "\"node_type\":\t\"group\"", "\"version\":\t\"0.5\"",
                                            "\"type\":\t\"channel\"", "\"type\":\t\"space\"",      "\"path\":\t\"0\"",
                                            "\"scale\":\t[1, 1, 1]" };
    static const char *const in_array[] = { "\"shape\":\t[3, 4, 5]",       "\"data_type\":\t\"uint16\"",
                                            "\"chunk_shape\":\t[1, 4, 5]", "\"separator\":\t\"/\"",
                                            "\"endian\":\t\"little\"",     "\"zstd\"",
                                            "\"fill_value\":\t0",          "\"dimension_names\":\t[\"c\", \"y\", \"x\"]" };
    for (int i = 0; i < FV_COUNT(in_group); i++) CHECK_MESSAGE(strstr(group, in_group[i]), "no %s in %s", in_group[i], group);
    for (int i = 0; i < FV_COUNT(in_array); i++) CHECK_MESSAGE(strstr(array, in_array[i]), "no %s in %s", in_array[i], array);
    CHECK(has(path, "0/c/0/0/0") && has(path, "0/c/2/0/0"));
    free(group);
    free(array);
    test_image_free(&in);
    free(path);
}

TEST(zarr_goes_on_with_the_chunks_that_are_there) {
    test_image in = test_image_new(FV_UINT8, 2, (int64_t[]){ 50, 40 }), out;
    char      *path = in_folder("resume.zarr");
    fv_error   error = { 0 };
    test_image_random_any(&in, 3);
    fv_write_options options = { .chunk_ndim = 2, .chunk = { 25, 40 } };
    fv_region        halves[2] = { { 2, { 0, 0 }, { 25, 40 } }, { 2, { 25, 0 }, { 25, 40 } } };
    for (int i = 0; i < 2; i++) { /* each half by a process of its own */
        fv_writer *writer;
        fv_block   whole, half;
        fv_region  all = fv__region_whole(&in.type.image);
        fv__block_init(&whole, FV_UINT8, &all, in.data);
        half = fv__block_window(&whole, &halves[i]);
        CHECK(test_make_writer(&fv_format_zarr, path, &in.type.image, &options, &writer, &error) == FV_OK);
        CHECK_MESSAGE(fv_format_zarr.begin(writer, &error) == FV_OK, "%s", error.message);
        save(path, ".partial-1-2-3", "cut", 3); /* what a killed writer left */
        CHECK_MESSAGE(fv_format_zarr.put(writer, &half, &error) == FV_OK, "%s", error.message);
        CHECK_MESSAGE(fv_format_zarr.sync(writer, &error) == FV_OK, "%s", error.message);
        if (i) CHECK_MESSAGE(fv_format_zarr.finish(writer, &error) == FV_OK, "%s", error.message);
        fv_format_zarr.free_writer(writer);
    }
    CHECK(!has(path, ".partial-1-2-3"));
    CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
    CHECK(test_same_pixels(&in, &out));
    test_image_free(&in);
    test_image_free(&out);
    free(path);
}

/* ---------------------------------------------------------------- several threads */

typedef struct {
    fv_writer  *writer;
    fv_reader  *reader;
    test_image *image;
    int         from, step;
    fv_status   status;
    fv_error    error;
} share;

static void *write_share(void *argument) {
    share     *s = argument;
    fv_lattice lattice;
    fv_region  all = fv__region_whole(&s->image->type.image);
    fv_block   whole;
    fv__block_init(&whole, s->image->type.image.dtype, &all, s->image->data);
    fv__lattice_init(&lattice, all.ndim, all.size, s->writer->layout.piece);
    for (int64_t i = s->from; i < fv__lattice_count(&lattice) && s->status == FV_OK; i += s->step) {
        fv_region region = fv__lattice_chunk(&lattice, i);
        fv_block  window = fv__block_window(&whole, &region);
        s->status = fv_format_zarr.put(s->writer, &window, &s->error);
        if (s->status == FV_OK && i % 7 == 0) s->status = fv_format_zarr.sync(s->writer, &s->error);
    }
    return NULL;
}

static void *read_share(void *argument) {
    share    *s = argument;
    fv_region all = fv__region_whole(&s->image->type.image);
    uint8_t  *copy = fv__alloc((size_t)fv_image_type_bytes(&s->image->type.image));
    fv_block  block;
    fv__block_init(&block, s->image->type.image.dtype, &all, copy);
    s->status = fv_format_zarr.read(s->reader, &block, &s->error);
    if (s->status == FV_OK && memcmp(copy, s->image->data, (size_t)fv_image_type_bytes(&s->image->type.image)))
        s->status = fv_fail(&s->error, FV_ERROR_INTERNAL, "a thread read other voxels");
    free(copy);
    return NULL;
}

TEST(zarr_is_written_and_read_by_threads_at_once) {
    enum { THREADS = 4 };
    test_image       in = test_image_new(FV_INT16, 3, (int64_t[]){ 30, 40, 50 });
    char            *path = in_folder("threads.zarr");
    fv_write_options options = { .chunk_ndim = 1, .chunk = { 9 } };
    fv_error         error = { 0 };
    share            shares[THREADS];
    pthread_t        threads[THREADS];
    fv_writer       *writer;
    fv_reader       *reader = NULL;
    test_image_random_any(&in, 8);
    CHECK(test_make_writer(&fv_format_zarr, path, &in.type.image, &options, &writer, &error) == FV_OK);
    CHECK(fv_format_zarr.begin(writer, &error) == FV_OK);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < THREADS; i++) {
            shares[i] = (share){ .writer = writer, .reader = reader, .image = &in, .from = i, .step = THREADS };
            pthread_create(&threads[i], NULL, pass ? read_share : write_share, &shares[i]);
        }
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        for (int i = 0; i < THREADS; i++) CHECK_MESSAGE(shares[i].status == FV_OK, "%s", shares[i].error.message);
        if (pass) break;
        CHECK(fv_format_zarr.finish(writer, &error) == FV_OK);
        CHECK_MESSAGE(fv_format_zarr.open(path, NULL, &reader, &error) == FV_OK, "%s", error.message);
    }
    fv_format_zarr.close(reader);
    fv_format_zarr.free_writer(writer);
    test_image_free(&in);
    free(path);
}

/* ---------------------------------------------------------------- what others write */

static const char plain_json[] =
    "{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": [3, 5], \"data_type\": \"%s\","
    "\"chunk_grid\": {\"name\": \"regular\", \"configuration\": {\"chunk_shape\": [2, 8]}},"
    "\"chunk_key_encoding\": {\"name\": \"%s\"%s}, \"fill_value\": %s, \"codecs\": [%s], \"attributes\": {}}";

static char *make_plain(const char *name, const char *dtype, const char *encoding, const char *separator, const char *fill,
                        const char *codecs) {
    char *path = in_folder(name), *text = fv__sprintf(plain_json, dtype, encoding, separator, fill, codecs);
    if (fv__path_remove(path, NULL) != FV_OK) abort();
    save_text(path, "zarr.json", text);
    free(text);
    return path;
}

/* Two rows of eight, of which the image shows five. */
static void make_chunk(int16_t *data, bool big) {
    for (int i = 0; i < 16; i++) data[i] = (int16_t)(big ? __builtin_bswap16((uint16_t)(300 + i)) : 300 + i);
}

static bool rows_are_right(const test_image *image, int missing) {
    const int16_t *v = image->data;
    for (int i = 0; i < 15; i++)
        if (v[i] != (i < 10 ? 300 + i / 5 * 8 + i % 5 : missing)) return false;
    return true;
}

static size_t deflated(const void *data, size_t size, int window, uint8_t *out, size_t room) {
    z_stream z = { .next_in = (Bytef *)data, .avail_in = (uInt)size, .next_out = out, .avail_out = (uInt)room };
    if (deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) != Z_OK || deflate(&z, Z_FINISH) != Z_STREAM_END) abort();
    deflateEnd(&z);
    return z.total_out;
}

TEST(zarr_reads_other_byte_orders_codecs_and_key_encodings) {
    static const char little[] = "{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}";
    static const char big[] = "{\"name\": \"bytes\", \"configuration\": {\"endian\": \"big\"}}";
    static const struct {
        const char *encoding, *separator, *key;
    } keys[] = {
        { "default", "", "c/0/0" },
        { "default", ", \"configuration\": {\"separator\": \".\"}", "c.0.0" },
        { "v2", "", "0.0" },
        { "v2", ", \"configuration\": {\"separator\": \"/\"}", "0/0" },
    };
    static const struct {
        const char *text;
        int         window;
        bool        sum;
    } packings[] = {
        { "", 0, false },
        { ", {\"name\": \"gzip\", \"configuration\": {\"level\": 5}}", 31, false },
        { ", {\"name\": \"zlib\"}", 15, false },
        { ", \"crc32c\"", 0, true },
        { ", {\"name\": \"gzip\"}, {\"name\": \"crc32c\"}", 31, true },
    };
    for (int k = 0; k < FV_COUNT(keys) * FV_COUNT(packings) * 2; k++) {
        int     key = k % FV_COUNT(keys), packing = k / FV_COUNT(keys) % FV_COUNT(packings);
        bool    swapped = k / FV_COUNT(keys) / FV_COUNT(packings);
        char   *codecs = fv__sprintf("%s%s", swapped ? big : little, packings[packing].text);
        char   *path = make_plain("others.zarr", "int16", keys[key].encoding, keys[key].separator, "-7", codecs), message[256];
        int16_t data[16];
        uint8_t packed[200];
        size_t  size = sizeof data;
        make_chunk(data, swapped);
        memcpy(packed, data, size);
        if (packings[packing].window) size = deflated(data, sizeof data, packings[packing].window, packed, sizeof packed);
        if (packings[packing].sum) {
            uint32_t sum = ~crc32_iscsi(packed, (int)size, ~0u);
            memcpy(packed + size, &sum, 4);
            size += 4;
        }
        save(path, keys[key].key, packed, size);
        test_image out;
        fv_error   error = { 0 };
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
        CHECK_MESSAGE(rows_are_right(&out, -7), "key %d packing %d", key, packing);
        CHECK_MESSAGE(test_regions_equal_crops(path, 10, 3, message), "%s", message);
        test_image_free(&out);
        packed[size / 2] ^= 1;
        save(path, keys[key].key, packed, size);
        fv_status status = test_read_file(path, &out, &error);
        CHECK(packings[packing].window || packings[packing].sum ? status == FV_ERROR_INPUT && strstr(error.message, keys[key].key)
                                                                : status == FV_OK);
        if (status == FV_OK) test_image_free(&out);
        free(codecs);
        free(path);
    }
}

TEST(zarr_missing_chunks_hold_the_fill_value) {
    static const struct {
        const char *dtype, *fill;
        size_t      size;
        uint8_t     bytes[16];
    } cases[] = {
        { "bool", "true", 1, { 1 } },
        { "uint8", "200", 1, { 200 } },
        { "int32", "-2", 4, { 254, 255, 255, 255 } },
        { "uint64", "18446744073709551615", 8, { 255, 255, 255, 255, 255, 255, 255, 255 } },
        { "int64", "-9223372036854775808", 8, { 0, 0, 0, 0, 0, 0, 0, 128 } },
        { "float32", "1.5", 4, { 0, 0, 0xc0, 0x3f } },
        { "float32", "\"Infinity\"", 4, { 0, 0, 0x80, 0x7f } },
        { "float64", "\"0x7ff8000000000001\"", 8, { 1, 0, 0, 0, 0, 0, 0xf8, 0x7f } },
        { "complex64", "[1, \"-Infinity\"]", 8, { 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xff } },
    };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        char      *path = make_plain("fill.zarr", cases[i].dtype, "default", "", cases[i].fill, "\"bytes\"");
        test_image out;
        fv_error   error = { 0 };
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
        for (int v = 0; v < 15; v++)
            CHECK_MESSAGE(!memcmp((char *)out.data + (size_t)v * cases[i].size, cases[i].bytes, cases[i].size), "%s %s",
                          cases[i].dtype, cases[i].fill);
        test_image_free(&out);
        free(path);
    }
    static const char *const bad[][2] = { { "uint8", "256" },    { "uint8", "-1" },
                                          { "int16", "1.5" },    { "int64", "9007199254740995" },
                                          { "uint8", "\"x\"" },  { "float32", "[1]" },
                                          { "complex64", "[1]" } };
    for (int i = 0; i < FV_COUNT(bad); i++) {
        char      *path = make_plain("fill.zarr", bad[i][0], "default", "", bad[i][1], "\"bytes\"");
        test_image out;
        fv_error   error = { 0 };
        CHECK_INT(test_read_file(path, &out, &error), FV_ERROR_INPUT);
        CHECK(strstr(error.message, "fill_value"));
        free(path);
    }
}

TEST(zarr_reads_version_2_and_ome_0_4) {
    char   *path = in_folder("old.zarr"), chunk[64];
    int16_t data[16];
    make_chunk(data, true);
    save_text(path, ".zgroup", "{\"zarr_format\": 2}");
    save_text(
        path, ".zattrs",
        "{\"multiscales\": [{\"version\": \"0.4\", \"axes\": [{\"name\": \"y\", \"type\": \"space\", \"unit\": \"nanometer\"},"
        "{\"name\": \"x\", \"type\": \"space\"}], \"coordinateTransformations\": [{\"type\": \"scale\", \"scale\": [10, 1]}], "
        "\"datasets\": ["
        "{\"path\": \"fine/a\", \"coordinateTransformations\": [{\"type\": \"scale\", \"scale\": [0.5, 2]}, {\"type\": "
        "\"translation\", \"translation\": [1, -3]}]},"
        "{\"path\": \"coarse\"}]}]}");
    save_text(path, "fine/a/.zarray",
              "{\"zarr_format\": 2, \"shape\": [3, 5], \"chunks\": [2, 8], \"dtype\": \">i2\", \"order\": \"C\","
              "\"compressor\": {\"id\": \"zlib\", \"level\": 1}, \"fill_value\": 9, \"filters\": null, \"dimension_separator\": "
              "\"/\"}");
    save(path, "fine/a/0/0", chunk, deflated(data, sizeof data, 15, (uint8_t *)chunk, sizeof chunk));
    test_image out;
    fv_error   error = { 0 };
    CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
    CHECK(rows_are_right(&out, 9));
    fv_image_type *type = &out.type.image;
    CHECK(type->spacing[0] == 5 && type->spacing[1] == 2 && type->origin[0] == 10 && type->origin[1] == -3);
    CHECK_TEXT(type->unit[0], "nanometer");
    CHECK_TEXT(type->axis[1], "x");
    test_image_free(&out);
    char *inside = fv__sprintf("%s::fine/a", path);
    CHECK_MESSAGE(test_read_file(inside, &out, &error) == FV_OK, "%s", error.message);
    CHECK(rows_are_right(&out, 9) && out.type.image.spacing[0] == 1);
    test_image_free(&out);
    free(inside);
    inside = fv__sprintf("%s::fine", path);
    CHECK_INT(test_read_file(inside, &out, &error), FV_ERROR_INPUT);
    CHECK_MESSAGE(strstr(error.message, "not Zarr"), "%s", error.message);
    free(inside);
    free(path);
}

TEST(zarr_reads_a_real_file) {
    if (!test_data()) SKIP("no folder of real files");
    char      *path = fv__sprintf("%s/zarr/simple_0.4", test_data());
    fv_reader *reader;
    fv_error   error = { 0 };
    if (!fv__file_exists(path)) SKIP("no Zarr files");
    CHECK_MESSAGE(fv_format_zarr.open(path, NULL, &reader, &error) == FV_OK, "%s", error.message);
    uint16_t data[100];
    CHECK(reader->type.shape[0] == 10 && reader->type.shape[1] == 10 && reader->type.dtype == FV_UINT16);
    CHECK(reader->type.spacing[0] == 4 && reader->type.spacing[1] == 30);
    fv_region all = fv__region_whole(&reader->type);
    fv_block  block;
    fv__block_init(&block, FV_UINT16, &all, data);
    CHECK_MESSAGE(fv_format_zarr.read(reader, &block, &error) == FV_OK, "%s", error.message);
    for (int i = 0; i < 100; i++) CHECK_INT(data[i], i);
    fv_format_zarr.close(reader);
    free(path);
}

/* ---------------------------------------------------------------- damage */

#define SHARD(CHUNK, INDEX, PLACE)                                                                                               \
    "[{\"name\": \"sharding_indexed\", \"configuration\": {\"chunk_shape\": [" CHUNK "], \"codecs\": [\"bytes\"], "              \
    "\"index_codecs\": [" INDEX "], \"index_location\": \"" PLACE "\"}}]"

TEST(zarr_names_what_is_wrong_with_the_metadata) {
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        { "[3, 5]", "[3, -5]", "\"shape\"" },
        { "[3, 5]", "[3]", "chunk_shape" },
        { "[3, 5]", "[9007199254740992, 9007199254740992]", "overflows" },
        { "[3, 5]", "[1, 2, 3, 4, 5, 6, 7]", "1 to 6" },
        { "[3, 5]", "\"x\"", "\"shape\"" },
        { "[2, 8]", "[0, 8]", "chunk_shape" },
        { "[2, 8]", "[2.5, 8]", "chunk_shape" },
        { "[2, 8]", "[1000000000000000, 8]", "1073741824" },
        { "\"int16\"", "\"float16\"", "float16" },
        { "\"int16\"", "17", "data type" },
        { "regular", "rectilinear", "rectilinear" },
        { "\"default\"", "\"fancy\"", "fancy" },
        { "\"bytes\"", "\"sharding_indexed\"", "chunk_shape" },
        { "[\"bytes\"]", "[\"sharding_indexed\", \"zstd\"]", "sharding_indexed" },
        { "[\"bytes\"]", SHARD("2, 3", "\"bytes\"", "end"), "whole number" },
        { "[\"bytes\"]", SHARD("2, 8", "\"zstd\"", "end"), "index_codecs" },
        { "[\"bytes\"]", SHARD("2, 8", "\"bytes\"", "middle"), "index_location" },
        { "[2, 8]}}", "[9007199254740990, 10]}}", "1073741824" },
        { "[\"bytes\"]", "[{\"name\": \"transpose\", \"configuration\": {\"order\": [1, 1]}}, \"bytes\"]", "transpose" },
        { "[\"bytes\"]", "[]", "bytes" },
        { "[\"bytes\"]", "[\"bytes\", \"zstd\", \"zstd\"]", "zstd" },
        { "{\"zarr", "[\"zarr", "JSON" },
        { "\"array\"", "\"group\"", "multiscale" },
    };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        char *path = make_plain("wrong.zarr", "int16", "default", "", "0", "\"bytes\""), *text = load_text(path, "zarr.json");
        char *at = strstr(text, cases[i].from);
        CHECK_MESSAGE(at, "%s", cases[i].from);
        char *changed = fv__sprintf("%.*s%s%s", (int)(at - text), text, cases[i].to, at + strlen(cases[i].from));
        save_text(path, "zarr.json", changed);
        test_image out;
        fv_error   error = { 0 };
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_ERROR_INPUT, "%s was taken", cases[i].to);
        CHECK_MESSAGE(strstr(error.message, cases[i].says), "%s: %s", cases[i].to, error.message);
        free(changed);
        free(text);
        free(path);
    }
}

TEST(zarr_does_not_leave_its_folder_nor_drown_in_nesting) {
    static const char *const paths[] = { "../other", "/etc", "a/../../b", "", ".." };
    char                    *path = in_folder("leave.zarr");
    test_image               out;
    fv_error                 error = { 0 };
    for (int i = 0; i < FV_COUNT(paths); i++) {
        char *text = fv__sprintf("{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {\"ome\": {\"multiscales\": "
                                 "[{\"datasets\": [{\"path\": \"%s\"}]}]}}}",
                                 paths[i]);
        save_text(path, "zarr.json", text);
        CHECK_INT(test_read_file(path, &out, &error), FV_ERROR_INPUT);
        CHECK_MESSAGE(strstr(error.message, "group without"), "%s", error.message);
        free(text);
    }
    char *deep = fv__alloc(1000001);
    memset(deep, '[', 1000000);
    deep[1000000] = 0;
    save_text(path, "zarr.json", deep);
    CHECK_INT(test_read_file(path, &out, &error), FV_ERROR_INPUT);
    free(deep);
    free(path);
}

TEST(zarr_a_damaged_chunk_is_named) {
    static const char *const compressions[] = { "zstd", "blosc", "blosc-zstd", "none" };
    for (int k = 0; k < FV_COUNT(compressions); k++) {
        test_image in = test_image_new(FV_UINT16, 3, (int64_t[]){ 6, 20, 30 }), out;
        char      *path = in_folder("hurt.zarr"), *chunk = fv__sprintf("%s/0/c/1/0/1", path);
        fv_error   error = { 0 };
        uint64_t   state = 5;
        fv_bytes   file = { 0 };
        test_image_random_any(&in, 8);
        CHECK(fv__path_remove(path, NULL) == FV_OK);
        CHECK(test_write_file(path, &in,
                              &(fv_write_options){ .compression = compressions[k], .chunk_ndim = 3, .chunk = { 3, 20, 15 } }, 0,
                              &error) == FV_OK);
        CHECK(fv__file_read_all(chunk, 100000, &file, NULL) == FV_OK);
        for (size_t size = 0; size < file.size; size += 1 + size / 20) { /* cut */
            CHECK(fv__file_write_all(chunk, file.data, size, false, NULL) == FV_OK);
            CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_ERROR_INPUT, "%s cut to %zu was taken", compressions[k], size);
            CHECK_MESSAGE(strstr(error.message, "0/c/1/0/1"), "%s", error.message);
        }
        for (int i = 0; i < 600; i++) { /* flipped: an error, or an image (without checksum) */
            size_t  at = test_random(&state) % (i % 2 ? file.size : FV_MIN(file.size, (size_t)32));
            uint8_t bit = (uint8_t)(1 << test_random(&state) % 8);
            file.data[at] ^= bit;
            CHECK(fv__file_write_all(chunk, file.data, file.size, false, NULL) == FV_OK);
            fv_status status = test_read_file(path, &out, &error);
            CHECK_MESSAGE(status == FV_OK || strstr(error.message, "0/c/1/0/1"), "%s", error.message);
            if (status == FV_OK) {
                CHECK_MESSAGE(k || test_same_pixels(&in, &out), "zstd with byte %zu changed gave other voxels", at);
                test_image_free(&out);
            }
            file.data[at] ^= bit;
        }
        fv__bytes_append(&file, NULL, 100000); /* far more than a chunk can take */
        memset(file.data, 0, file.size);
        CHECK(fv__file_write_all(chunk, file.data, file.size, false, NULL) == FV_OK);
        CHECK_INT(test_read_file(path, &out, &error), FV_ERROR_INPUT);
        CHECK(unlink(chunk) == 0); /* missing: the fill value */
        CHECK_INT(test_read_file(path, &out, &error), FV_OK);
        CHECK_INT(((uint16_t *)out.data)[3 * 600 + 20], 0);
        test_image_free(&out);
        fv__bytes_release(&file);
        test_image_free(&in);
        free(chunk);
        free(path);
    }
}

/* A packed chunk is read in pieces of a quarter of a MiB: noise makes three of them. */
TEST(zarr_a_chunk_of_several_pieces_is_read_whole_and_damage_in_any_is_found) {
    test_image in = test_image_new(FV_UINT16, 2, (int64_t[]){ 600, 600 }), out;
    char      *path = in_folder("pieces.zarr"), *chunk = fv__sprintf("%s/0/c/0/0", path), message[256];
    fv_error   error = { 0 };
    fv_bytes   file = { 0 };
    test_image_random_any(&in, 3);
    CHECK(test_write_file(path, &in, &(fv_write_options){ .compression = "zstd" }, 0, &error) == FV_OK);
    CHECK(test_read_file(path, &out, &error) == FV_OK && test_same_pixels(&in, &out));
    test_image_free(&out);
    CHECK_MESSAGE(test_regions_equal_crops(path, 10, 5, message), "%s", message);
    CHECK(fv__file_read_all(chunk, 1 << 20, &file, NULL) == FV_OK);
    CHECK(file.size > 2 << 18);
    const size_t places[] = { 1 << 17, (1 << 18) - 1, 1 << 18, 2 << 18, file.size - 1 };
    for (int i = 0; i < FV_COUNT(places); i++) {
        CHECK(fv__file_write_all(chunk, file.data, places[i], false, NULL) == FV_OK);
        CHECK_INT(test_read_file(path, &out, &error), FV_ERROR_INPUT);
        file.data[places[i]] ^= 16;
        CHECK(fv__file_write_all(chunk, file.data, file.size, false, NULL) == FV_OK);
        CHECK_INT(test_read_file(path, &out, &error), FV_ERROR_INPUT);
        CHECK_MESSAGE(strstr(error.message, "0/c/0/0 is damaged"), "%s", error.message);
        file.data[places[i]] ^= 16;
    }
    fv__bytes_release(&file);
    test_image_free(&in);
    free(chunk);
    free(path);
}

TEST(zarr_survives_damaged_metadata) {
    test_image in = test_image_new(FV_UINT16, 3, (int64_t[]){ 6, 20, 30 }), out;
    char      *path = in_folder("torn.zarr");
    uint64_t   state = 9;
    in.type.image.has_affine = true;
    CHECK(test_write_file(path, &in, NULL, 0, NULL) == FV_OK);
    static const char *const names[] = { "zarr.json", "0/zarr.json" };
    for (int k = 0; k < 2; k++) {
        char  *text = load_text(path, names[k]);
        size_t size = strlen(text);
        for (int i = 0; i < 1500; i++) {
            char *copy = fv__strdup(text);
            int   changes = 1 + (int)(test_random(&state) % 3);
            for (int c = 0; c < changes; c++) copy[test_random(&state) % size] ^= (char)(1 << test_random(&state) % 7);
            save(path, names[k], copy, i % 5 ? size : test_random(&state) % size);
            fv_error  error = { 0 };
            fv_status status = test_read_file(path, &out, &error);
            CHECK(status == FV_OK || error.message[0]);
            if (status == FV_OK) test_image_free(&out);
            free(copy);
        }
        save_text(path, names[k], text);
        free(text);
    }
    test_image_free(&in);
    free(path);
}

TEST_MAIN
