/* HDF5 files, where the plug-in is there. */
#include "base/plugin.h"
#include "formats/hdf5_parts.h"
#include "support/format.h"
#include "support/test.h"
#include <pthread.h>

/* The library itself leaks where it gives up on a damaged file; the address sanitizer is not to blame us. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libhdf5"; }

static bool plugin_is_there(void) {
    const fv_hdf5_plugin *plugin;
    return fv__hdf5_load(&plugin, NULL) == FV_OK;
}
#define NEEDS_PLUGIN                                                                                                             \
    if (!plugin_is_there()) SKIP("no fovea-hdf5.so: libhdf5 is not installed")

static char *in_folder(const char *name) { return fv__sprintf("%s/%s", test_folder(), name); }

TEST(hdf5_keeps_every_dtype_and_one_to_six_axes_with_every_compression) {
    static const int64_t shape[] = { 3, 2, 4, 3, 15, 17 };
    NEEDS_PLUGIN;
    char *path = in_folder("a.h5"), *shuffled = in_folder("b.h5"), message[256];
    for (int dtype = 0; dtype < FV_DTYPES; dtype++)
        for (int packed = 0; packed < 2; packed++) {
            int              ndim = 1 + (dtype + packed) % FV_MAX_DIMS;
            test_image       in = test_image_new((fv_dtype)dtype, ndim, shape + FV_MAX_DIMS - ndim), out;
            fv_error         error = { 0 };
            fv_write_options options = { .compression = packed ? NULL : "none", .chunk_ndim = 1, .chunk = { 6 } };
            if (packed) options.level = dtype % 3 * 3;
            test_image_random_any(&in, (uint64_t)(dtype * 7 + packed));
            CHECK_MESSAGE(test_write_file(path, &in, &options, 0, &error) == FV_OK, "%s", error.message);
            CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
            CHECK_MESSAGE(test_same_pixels(&in, &out), "%s %d axes", fv_dtype_name((fv_dtype)dtype), ndim);
            CHECK_MESSAGE(test_regions_equal_crops(path, 20, 5, message), "%s: %s", fv_dtype_name((fv_dtype)dtype), message);
            CHECK_MESSAGE(test_write_file(shuffled, &in, &options, 11, &error) == FV_OK, "%s", error.message);
            CHECK(test_same_files(path, shuffled));
            test_image_free(&in);
            test_image_free(&out);
        }
    free(path);
    free(shuffled);
}

TEST(hdf5_keeps_axes_spacing_units_and_the_world_matrix) {
    NEEDS_PLUGIN;
    test_image     in = test_image_new(FV_UINT16, 3, (int64_t[]){ 3, 4, 5 }), out;
    fv_image_type *type = &in.type.image, *back = &out.type.image;
    char          *path = in_folder("w.h5");
    fv_error       error = { 0 };
    for (int d = 0; d < 3; d++) {
        strcpy(type->axis[d], (const char *[]){ "angle", "v", "u" }[d]);
        strcpy(type->unit[d], d ? "micrometer" : "degree");
        type->spacing[d] = 0.1 * (d + 1);
        type->origin[d] = d - 1.3;
    }
    type->has_affine = true;
    for (int i = 0; i < 12; i++) type->affine[i] = 1.0 / (i + 3);
    CHECK_MESSAGE(test_write_file(path, &in, NULL, 0, &error) == FV_OK, "%s", error.message);
    CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
    CHECK(!memcmp(type->axis, back->axis, sizeof type->axis) && !memcmp(type->unit, back->unit, sizeof type->unit));
    CHECK(!memcmp(type->spacing, back->spacing, sizeof type->spacing) &&
          !memcmp(type->origin, back->origin, sizeof type->origin));
    CHECK(back->has_affine && !memcmp(type->affine, back->affine, sizeof type->affine));
    test_image_free(&in);
    test_image_free(&out);
    free(path);
}

typedef struct {
    fv_reader        *reader;
    const test_image *image;
    bool              same;
} share;

static void *read_share(void *argument) {
    share    *s = argument;
    fv_region all = fv__region_whole(&s->image->type.image);
    size_t    bytes = (size_t)fv_image_type_bytes(&s->image->type.image);
    uint8_t  *copy = fv__alloc(bytes);
    fv_block  block;
    fv__block_init(&block, s->image->type.image.dtype, &all, copy);
    s->same = true;
    for (int i = 0; i < 5 && s->same; i++)
        s->same = fv_format_hdf5.read(s->reader, &block, NULL) == FV_OK && !memcmp(copy, s->image->data, bytes);
    free(copy);
    return NULL;
}

TEST(hdf5_is_read_by_threads_at_once) {
    enum { THREADS = 4 };
    NEEDS_PLUGIN;
    test_image in = test_image_new(FV_INT16, 3, (int64_t[]){ 30, 40, 50 });
    char      *path = in_folder("threads.h5");
    share      shares[THREADS];
    pthread_t  threads[THREADS];
    fv_reader *reader;
    fv_error   error = { 0 };
    test_image_random_any(&in, 8);
    CHECK(test_write_file(path, &in, &(fv_write_options){ .chunk_ndim = 1, .chunk = { 16 } }, 0, &error) == FV_OK);
    CHECK_MESSAGE(fv_format_hdf5.open(path, NULL, &reader, &error) == FV_OK, "%s", error.message);
    for (int i = 0; i < THREADS; i++) {
        shares[i] = (share){ reader, &in, false };
        pthread_create(&threads[i], NULL, read_share, &shares[i]);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) CHECK(shares[i].same);
    fv_format_hdf5.close(reader);
    test_image_free(&in);
    free(path);
}

TEST(hdf5_filters_are_undone_in_any_order_and_damage_is_seen) {
    static const int orders[][3] = { { FV_HDF5_SHUFFLE, FV_HDF5_FLETCHER32, 0 },
                                     { FV_HDF5_FLETCHER32, FV_HDF5_SHUFFLE, 0 },
                                     { FV_HDF5_SHUFFLE, 0, 0 } };
    uint32_t         data[64], back[64];
    uint8_t          packed[600], scratch[2000], other[600];
    for (int i = 0; i < 64; i++) data[i] = (uint32_t)i * 0x01030507u;
    for (int k = 0; k < FV_COUNT(orders); k++) {
        fv_hdf5_about about = { .size = 4, .ndim = 1, .chunk = { 64 } };
        size_t        size = sizeof data;
        memcpy(packed, data, size);
        for (int i = 0; i < 3 && orders[k][i]; i++) {
            about.filters[about.nfilters++] = (fv_hdf5_filter){ orders[k][i], { 4 }, 1 };
            if (orders[k][i] == FV_HDF5_SHUFFLE) {
                fv__hdf5_shuffle(packed, other, size, 4);
                memcpy(packed, other, size);
            } else {
                uint64_t one = 0, two = 0; /* the sums from their definition, modulo 65535 */
                for (size_t w = 0; w + 1 < size; w += 2) {
                    one = (one + (uint64_t)(packed[w] << 8 | packed[w + 1])) % 65535;
                    two = (two + one) % 65535;
                }
                uint32_t sum = (uint32_t)(two << 16 | one);
                memcpy(packed + size, &sum, 4);
                size += 4;
            }
        }
        memcpy(other, packed, size);
        const char *fault = fv__hdf5_unpack(&about, 0, packed, size, scratch, back);
        CHECK_MESSAGE(!fault, "order %d: %s", k, fault);
        CHECK(!memcmp(data, back, sizeof data));
        CHECK(fv__hdf5_unpack(&about, 0, other, size - 1, scratch, back) != NULL);
        other[5] ^= 4;
        CHECK((fv__hdf5_unpack(&about, 0, other, size, scratch, back) == NULL) == (k == 2));
    }
}

TEST(hdf5_lzf_of_any_bytes_never_writes_beyond_its_room) {
    fv_hdf5_about about = { .size = 1, .ndim = 1, .chunk = { 40 }, .nfilters = 1, .filters = { { FV_HDF5_LZF, { 0 }, 0 } } };
    uint8_t       good[] = { 1, 'a', 'b', 0xe0, 29, 1 }, back[41] = { 0 }, scratch[2000], any[64];
    uint64_t      state = 4;
    CHECK(!fv__hdf5_unpack(&about, 0, good, sizeof good, scratch, back)); /* ab, then 38 bytes from two back */
    for (int i = 0; i < 40; i++) CHECK_INT(back[i], i % 2 ? 'b' : 'a');
    for (int i = 0; i < 20000; i++) {
        size_t size = 1 + test_random(&state) % sizeof any;
        for (size_t k = 0; k < size; k++) any[k] = (uint8_t)test_random(&state);
        fv__hdf5_unpack(&about, 0, any, size, scratch, back);
        CHECK_INT(back[40], 0);
    }
}

TEST(hdf5_survives_cut_and_changed_files) {
    NEEDS_PLUGIN;
    test_image in = test_image_new(FV_UINT16, 2, (int64_t[]){ 40, 50 });
    char      *path = in_folder("torn.h5"), message[256];
    test_image_random_any(&in, 4);
    CHECK(test_write_file(path, &in, &(fv_write_options){ .chunk_ndim = 1, .chunk = { 16 } }, 0, NULL) == FV_OK);
    CHECK_MESSAGE(test_survives_damage(path, "h5", 40, 160, 3, message), "%s", message);
    test_image_free(&in);
    free(path);
}

TEST(hdf5_refuses_options_it_cannot_follow) {
    static const struct {
        fv_write_options options;
        const char      *says;
    } cases[] = {
        { { .compression = "zstd" }, "deflate|none" },
        { { .compression = "none", .level = 3 }, "level = 3" },
        { { .chunk_ndim = 4 }, "chunk has 4" },
        { { .chunk_ndim = 1, .chunk = { 5000 } }, "gibibyte" },
    };
    NEEDS_PLUGIN;
    for (int i = 0; i < FV_COUNT(cases); i++) {
        fv_image_type type;
        fv_writer    *writer;
        fv_error      error = { 0 };
        fv_image_type_init(&type, FV_FLOAT32, 3, (int64_t[]){ 100000, 100000, 100000 });
        CHECK_INT(test_make_writer(&fv_format_hdf5, "x.h5", &type, &cases[i].options, &writer, &error), FV_ERROR_USAGE);
        CHECK_MESSAGE(strstr(error.message, cases[i].says), "%s", error.message);
    }
}

TEST_MAIN
