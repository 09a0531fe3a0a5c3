/* NPY files. */
#include "support/format.h"
#include "support/test.h"

static char *in_folder(const char *name) { return fv__sprintf("%s/%s", test_folder(), name); }

/* A file with this header text and these bytes behind it. */
static char *make_npy(const char *name, int version, const char *header, const void *data, size_t size) {
    fv_bytes file = { 0 };
    size_t   length = strlen(header);
    fv__bytes_append(&file, "\x93NUMPY", 6);
    fv__bytes_append(&file, (uint8_t[]){ (uint8_t)version, 0, length & 255, length >> 8 & 255, 0, 0 }, version == 1 ? 4 : 6);
    fv__bytes_append(&file, header, length);
    fv__bytes_append(&file, data, size);
    char *path = in_folder(name);
    if (fv__file_write_all(path, file.data, file.size, false, NULL) != FV_OK) abort();
    fv__bytes_release(&file);
    return path;
}

TEST(npy_keeps_every_dtype_in_one_to_six_axes) {
    static const int64_t shape[] = { 3, 2, 4, 3, 5, 7 };
    char                *path = in_folder("a.npy"), *shuffled = in_folder("b.npy");
    for (int dtype = 0; dtype < FV_DTYPES; dtype++)
        for (int ndim = 1; ndim <= FV_MAX_DIMS; ndim++) {
            test_image in = test_image_new((fv_dtype)dtype, ndim, shape + FV_MAX_DIMS - ndim), out;
            fv_error   error = { 0 };
            char       message[256];
            test_image_random_any(&in, (uint64_t)(dtype * 7 + ndim));
            CHECK_MESSAGE(test_write_file(path, &in, NULL, 0, &error) == FV_OK, "%s", error.message);
            CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
            CHECK(test_same_pixels(&in, &out));
            CHECK_MESSAGE(test_regions_equal_crops(path, 20, 5, message), "%s: %s", fv_dtype_name((fv_dtype)dtype), message);
            CHECK_MESSAGE(test_write_file(shuffled, &in, NULL, 11, &error) == FV_OK, "%s", error.message);
            CHECK(test_same_files(path, shuffled));
            test_image_free(&in);
            test_image_free(&out);
        }
    free(path);
    free(shuffled);
}

TEST(npy_header_is_what_numpy_writes) {
    test_image in = test_image_new(FV_FLOAT32, 2, (int64_t[]){ 3, 4 });
    char      *path = in_folder("header.npy");
    CHECK(test_write_file(path, &in, NULL, 0, NULL) == FV_OK);
    fv_bytes file = { 0 };
    CHECK(fv__file_read_all(path, 1000, &file, NULL) == FV_OK);
    CHECK_INT(file.size, 128 + 48);
    static const char start[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  ";
    CHECK(!memcmp(file.data, start, sizeof start - 1));
    CHECK_INT(file.data[127], '\n');
    fv__bytes_release(&file);
    test_image_free(&in);
    free(path);
}

TEST(npy_reads_fortran_order_by_region) {
    enum { A = 5, B = 6, C = 7 };
    int16_t data[A * B * C];
    for (int z = 0; z < A; z++)
        for (int y = 0; y < B; y++)
            for (int x = 0; x < C; x++) data[z + A * (y + B * x)] = (int16_t)(100 * z + 10 * y + x);
    char *path = make_npy("f.npy", 2, "{'shape': (5, 6, 7), 'fortran_order': True, \"descr\": '<i2'}\n", data, sizeof data),
         message[256];
    test_image out;
    fv_error   error = { 0 };
    CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
    for (int i = 0; i < A * B * C; i++) CHECK_INT(((int16_t *)out.data)[i], 100 * (i / (B * C)) + 10 * (i / C % B) + i % C);
    CHECK_MESSAGE(test_regions_equal_crops(path, 200, 3, message), "%s", message);
    test_image_free(&out);
    free(path);
}

TEST(npy_converts_swapped_bytes_half_floats_and_odd_bools) {
    test_image out;
    fv_error   error = { 0 };
    char      *path =
        make_npy("s.npy", 3, "{'descr': '>u4', 'fortran_order': False, 'shape': (2,), }", "\x01\x02\x03\x04\x00\x00\x00\x05", 8);
    CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
    CHECK_INT(((uint32_t *)out.data)[0], 0x01020304);
    CHECK_INT(((uint32_t *)out.data)[1], 5);
    test_image_free(&out);
    free(path);
    path =
        make_npy("c.npy", 1, "{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }", "\x3f\x80\x00\x00\xc0\x00\x00\x00", 8);
    CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
    CHECK(((float *)out.data)[0] == 1.0f && ((float *)out.data)[1] == -2.0f);
    test_image_free(&out);
    free(path);
    path = make_npy("h.npy", 1, "{'descr': '<f2', 'fortran_order': False, 'shape': (5,), }",
                    "\x00\x3c\x01\x00\xff\x7b\x00\xfc\x00\x80", 10);
    CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
    float *f = out.data;
    CHECK(f[0] == 1.0f && f[1] == 0x1p-24f && f[2] == 65504.0f && f[3] == -1.0f / 0.0f && f[4] == 0.0f && 1 / f[4] < 0);
    test_image_free(&out);
    free(path);
    path = make_npy("b.npy", 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", "\x00\x07\xff", 3);
    CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
    CHECK(!memcmp(out.data, "\x00\x01\x01", 3));
    test_image_free(&out);
    free(path);
}

TEST(npy_reads_regions_of_a_large_array_with_small_and_large_gaps) {
    static const int64_t shapes[][3] = { { 3, 50, 3000 }, { 2, 4, 70000 }, { 40, 40, 40 }, { 1, 1, 1 << 19 } };
    char                *path = in_folder("large.npy"), message[256];
    for (int i = 0; i < FV_COUNT(shapes); i++) {
        test_image in = test_image_new(FV_FLOAT64, 3, shapes[i]);
        fv_error   error = { 0 };
        test_image_random(&in, 9);
        CHECK_MESSAGE(test_write_file(path, &in, NULL, 3, &error) == FV_OK, "%s", error.message);
        CHECK_MESSAGE(test_regions_equal_crops(path, 30, 4, message), "%s", message);
        test_image_free(&in);
    }
    free(path);
}

TEST(npy_names_what_is_wrong_with_a_file) {
    static const struct {
        const char *header, *why;
    } bad[] = {
        { "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "named fields" },
        { "{'descr': '<f16', 'fortran_order': False, 'shape': (2,), }", "'<f16'" },
        { "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "'|O'" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "single number" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0), }", "axis 1" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1000, 1000), }", "ends early" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296), }", "ends early" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999, 2), }", "ends early" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1), }", "more than 6" },
        { "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }", "fortran_order" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1", "shape" },
        { "{'descr': '<f4', 'shape': (1,), }", "missing" },
        { "{'descr", "key" },
        { "", "begin" },
    };
    for (int i = 0; i < FV_COUNT(bad); i++) {
        char      *path = make_npy("bad.npy", 1, bad[i].header, "\0\0\0\0\0\0\0\0", 8);
        test_image out;
        fv_error   error = { 0 };
        CHECK_INT(test_read_file(path, &out, &error), FV_ERROR_INPUT);
        CHECK_MESSAGE(strstr(error.message, bad[i].why) && strstr(error.message, path), "%s gives: %s", bad[i].header,
                      error.message);
        free(path);
    }
}

TEST(npy_survives_damage) {
    test_image in = test_image_new(FV_UINT16, 2, (int64_t[]){ 9, 11 });
    char      *path = in_folder("whole.npy"), message[256];
    CHECK(test_write_file(path, &in, NULL, 0, NULL) == FV_OK);
    CHECK_MESSAGE(test_survives_damage(path, "npy", 0, 2000, 1, message), "%s", message);
    test_image_free(&in);
    free(path);
}

TEST(npy_keeps_what_is_there_when_begun_again) {
    test_image       in = test_image_new(FV_UINT8, 2, (int64_t[]){ 4, 4 }), out;
    char            *path = in_folder("again.npy");
    const fv_format *format;
    fv_writer       *writer;
    fv_write_options none = { 0 };
    fv_error         error = { 0 };
    fv_block         block;
    fv_region        all = fv__region_whole(&in.type.image);
    test_image_random(&in, 1);
    fv__block_init(&block, FV_UINT8, &all, in.data);
    CHECK(fv__format_for_writing(path, &format, &error) == FV_OK);
    CHECK(test_make_writer(format, path, &in.type.image, &none, &writer, &error) == FV_OK);
    CHECK(format->begin(writer, &error) == FV_OK && format->put(writer, &block, &error) == FV_OK);
    format->free_writer(writer);
    CHECK(test_make_writer(format, path, &in.type.image, &none, &writer, &error) == FV_OK);
    CHECK(format->begin(writer, &error) == FV_OK && format->finish(writer, &error) == FV_OK);
    format->free_writer(writer);
    CHECK(test_read_file(path, &out, &error) == FV_OK && test_same_pixels(&in, &out));
    test_image_free(&in);
    test_image_free(&out);
    free(path);
}

TEST(npy_reads_real_files) {
    static const char *const names[] = { "angle", "art", "dark", "fbp", "flat", "normalize", "proj", "sirt", "tomo" };
    if (!test_data()) SKIP("no real data here");
    for (int i = 0; i < FV_COUNT(names); i++) {
        char *path = fv__sprintf("%s/tomography/%s.npy", test_data(), names[i]), message[256];
        CHECK_MESSAGE(test_regions_equal_crops(path, 10, 2, message), "%s", message);
        free(path);
    }
}

TEST_MAIN
