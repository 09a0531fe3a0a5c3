/* NIfTI files. */
#include "formats/gzip.h"
#include "support/format.h"
#include "support/test.h"
#include <math.h>
#include <zlib.h>

static char *in_folder(const char *name) { return fv__sprintf("%s/%s", test_folder(), name); }

/* ---------------------------------------------------------------- crafted headers */

typedef struct {
    uint8_t bytes[544];
    int     version;
    bool    big;
} crafted;

static void set(crafted *c, int offset, const void *value, size_t size) {
    for (size_t i = 0; i < size; i++) c->bytes[offset + (int)i] = ((const uint8_t *)value)[c->big ? size - 1 - i : i];
}
static void set16(crafted *c, int offset, int16_t value) { set(c, offset, &value, 2); }
static void set32(crafted *c, int offset, int32_t value) { set(c, offset, &value, 4); }
static void set64(crafted *c, int offset, int64_t value) { set(c, offset, &value, 8); }
static void setf(crafted *c, int offset, float value) { set(c, offset, &value, 4); }
static void setd(crafted *c, int offset, double value) { set(c, offset, &value, 8); }

/* A header of version 1 for n axes, x first. */
static crafted craft(bool big, int datatype, int n, const int *dim) {
    crafted c = { .version = 1, .big = big };
    set32(&c, 0, 348);
    set16(&c, 40, (int16_t)n);
    for (int i = 1; i <= 7; i++) set16(&c, 40 + 2 * i, (int16_t)(i <= n ? dim[i - 1] : 1));
    set16(&c, 70, (int16_t)datatype);
    for (int i = 0; i <= 7; i++) setf(&c, 76 + 4 * i, 1);
    setf(&c, 108, 352);
    memcpy(c.bytes + 344, "n+1", 4);
    return c;
}

static char *save(const char *name, const crafted *c, const void *data, size_t size) {
    char    *path = in_folder(name);
    bool     packed = fv__path_has_extension(name, "gz");
    gzFile   file = gzopen(path, packed ? "wb6" : "wbT");
    unsigned head = c->version == 1 ? 352 : 544;
    if (!file || gzwrite(file, c->bytes, head) != (int)head || (size && gzwrite(file, data, (unsigned)size) != (int)size))
        abort();
    gzclose(file);
    return path;
}

static void flip(void *data, size_t n, size_t size) {
    uint8_t *p = data;
    for (size_t i = 0; i < n; i++, p += size)
        for (size_t k = 0; k < size / 2; k++) {
            uint8_t kept = p[k];
            p[k] = p[size - 1 - k];
            p[size - 1 - k] = kept;
        }
}

/* ---------------------------------------------------------------- round trips */

TEST(nifti_keeps_every_dtype_in_one_to_six_axes) {
    static const int64_t shape[] = { 3, 2, 4, 3, 5, 7 };
    static const char   *names[][3] = { { "a.nii", "b.nii", "nii" }, { "a.nii.gz", "b.nii.gz", "nii.gz" } };
    static const char   *axes[] = { "p", "c", "t", "z", "y", "x" };
    for (int k = 0; k < 2; k++)
        for (int dtype = 0; dtype < FV_DTYPES; dtype++)
            for (int ndim = 1; ndim <= FV_MAX_DIMS; ndim++) {
                char      *path = in_folder(names[k][0]), *shuffled = in_folder(names[k][1]), message[256];
                test_image in = test_image_new((fv_dtype)dtype, ndim, shape + FV_MAX_DIMS - ndim), out;
                fv_error   error = { 0 };
                for (int d = 0; d < ndim; d++) strcpy(in.type.image.axis[d], axes[FV_MAX_DIMS - ndim + d]);
                test_image_random_any(&in, (uint64_t)(dtype * 7 + ndim));
                CHECK_MESSAGE(test_write_file(path, &in, NULL, 0, &error) == FV_OK, "%s", error.message);
                CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
                if (dtype == FV_BOOL) in.type.image.dtype = FV_UINT8;
                CHECK_MESSAGE(test_same_pixels(&in, &out), "%s %d axes", fv_dtype_name((fv_dtype)dtype), ndim);
                for (int d = 0; d < ndim; d++) CHECK_TEXT(out.type.image.axis[d], in.type.image.axis[d]);
                CHECK_MESSAGE(test_regions_equal_crops(path, 20, 5, message), "%s: %s", fv_dtype_name((fv_dtype)dtype), message);
                in.type.image.dtype = (fv_dtype)dtype;
                CHECK_MESSAGE(test_write_file(shuffled, &in, NULL, 11, &error) == FV_OK, "%s", error.message);
                CHECK_MESSAGE(test_same_files(path, shuffled), "%s %s %d axes", names[k][2], fv_dtype_name((fv_dtype)dtype),
                              ndim);
                test_image_free(&in);
                test_image_free(&out);
                free(path);
                free(shuffled);
            }
}

TEST(nifti_gz_of_many_pieces_is_one_member_that_zlib_reads_whole) {
    test_image     in = test_image_new(FV_FLOAT32, 4, (int64_t[]){ 2, 50, 120, 130 }), out;
    char          *path = in_folder("large.nii.gz"), *other = in_folder("large2.nii.gz"), message[256];
    fv_error       error = { 0 };
    fv_image_type *type = &in.type.image;
    strcpy(type->axis[0], "t");
    test_image_random_any(&in, 3);
    float *v = in.data; /* smooth half, noisy half: compressed and stored blocks */
    for (int64_t i = 0; i < 50 * 120 * 130; i++) v[i] = (float)(i / 1000);
    CHECK_MESSAGE(test_write_file(path, &in, NULL, 0, &error) == FV_OK, "%s", error.message);
    CHECK_MESSAGE(test_write_file(other, &in, NULL, 5, &error) == FV_OK, "%s", error.message);
    CHECK(test_same_files(path, other));
    CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
    CHECK(test_same_pixels(&in, &out));
    CHECK_MESSAGE(test_regions_equal_crops(path, 30, 6, message), "%s", message);
    fv_bytes file = { 0 };
    CHECK(fv__file_read_all(path, (size_t)1 << 30, &file, NULL) == FV_OK);
    z_stream z = { .next_in = file.data, .avail_in = (uInt)file.size };
    size_t   size = 352 + (size_t)fv_image_type_bytes(type);
    uint8_t *plain = fv__alloc(size + 1);
    z.next_out = plain;
    z.avail_out = (uInt)size + 1;
    CHECK_INT(inflateInit2(&z, 31), Z_OK);
    CHECK_INT(inflate(&z, Z_FINISH), Z_STREAM_END); /* one call, one member, checksum right */
    CHECK_INT(z.avail_in, 0);
    CHECK_INT(z.total_out, size);
    CHECK(!memcmp(plain + 352, in.data, size - 352));
    inflateEnd(&z);
    free(plain);
    fv__bytes_release(&file);
    test_image_free(&in);
    test_image_free(&out);
    free(path);
    free(other);
}

TEST(nifti_reads_any_region_of_a_compressed_file_in_any_order) {
    test_image in = test_image_new(FV_INT16, 3, (int64_t[]){ 40, 90, 110 });
    char      *path = in_folder("order.nii.gz");
    test_image_random_any(&in, 9);
    CHECK(test_write_file(path, &in, NULL, 0, NULL) == FV_OK);
    fv_reader *reader;
    CHECK(fv__reader_acquire(path, NULL, &reader, NULL) == FV_OK);
    CHECK(reader->sequential);
    uint64_t state = 4;
    for (int i = 0; i < 60; i++) {
        fv_region region = { .ndim = 3 };
        for (int d = 0; d < 3; d++) {
            region.start[d] = (int64_t)(test_random(&state) % (uint64_t)in.type.image.shape[d]);
            region.size[d] = 1 + (int64_t)(test_random(&state) % (uint64_t)(in.type.image.shape[d] - region.start[d]));
        }
        test_image crop;
        fv_error   error = { 0 };
        CHECK_MESSAGE(test_read_region(reader, &region, &crop, &error) == FV_OK, "%s", error.message);
        fv_region all = fv__region_whole(&in.type.image);
        fv_block  whole, part;
        fv__block_init(&whole, FV_INT16, &all, in.data);
        fv__block_init(&part, FV_INT16, &region, crop.data);
        fv_rows rows;
        for (fv__rows_begin(&rows, &region); fv__rows_next(&rows);)
            CHECK(!memcmp(fv__block_at(&whole, rows.position), fv__block_at(&part, rows.position), 2 * (size_t)region.size[2]));
        test_image_free(&crop);
    }
    fv__reader_release(reader);
    test_image_free(&in);
    free(path);
}

TEST(nifti_gz_reads_several_members_and_ignores_padding) {
    test_image in = test_image_new(FV_UINT16, 3, (int64_t[]){ 30, 80, 100 }), out;
    char      *plain = in_folder("members.nii"), *path = in_folder("members.nii.gz");
    fv_error   error = { 0 };
    test_image_random_any(&in, 1);
    CHECK(test_write_file(plain, &in, NULL, 0, NULL) == FV_OK);
    fv_bytes file = { 0 };
    CHECK(fv__file_read_all(plain, (size_t)1 << 30, &file, NULL) == FV_OK);
    for (size_t start = 0, n = 100; start < file.size; start += n, n = n * 3 + 1) { /* a first member shorter than the header */
        gzFile   gz = gzopen(path, start ? "ab1" : "wb9");
        unsigned part = (unsigned)FV_MIN(n, file.size - start);
        CHECK_INT(gzwrite(gz, file.data + start, part), part);
        gzclose(gz);
    }
    FILE *f = fopen(path, "ab");
    fwrite("\0\0\0\0\0\0\0\0\0\0\0\0", 1, 12, f);
    fclose(f);
    CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
    CHECK(test_same_pixels(&in, &out));
    fv__bytes_release(&file);
    test_image_free(&in);
    test_image_free(&out);
    free(plain);
    free(path);
}

/* ---------------------------------------------------------------- geometry */

static bool near(double a, double b) { return fabs(a - b) <= 1e-5 * FV_MAX(1, fabs(b)); }

TEST(nifti_keeps_spacing_units_and_the_world_matrix) {
    static const char *const names[] = { "w.nii", "w.nii.gz" };
    for (int k = 0; k < 2; k++)
        for (int shear = 0; shear < 2; shear++) {
            test_image     in = test_image_new(FV_UINT8, 4, (int64_t[]){ 2, 3, 4, 5 }), out;
            fv_image_type *type = &in.type.image, *back = &out.type.image;
            fv_error       error = { 0 };
            char          *path = in_folder(names[k]);
            strcpy(type->axis[0], "t");
            for (int d = 0; d < 4; d++) strcpy(type->unit[d], d ? "millimeter" : "second");
            memcpy(type->spacing, (double[]){ 2.5, 3, 2, 1.5 }, 4 * sizeof(double));
            type->origin[0] = 7;
            double turn = 0.3, c = cos(turn), s = sin(turn); /* about z, x mirrored */
            double affine[12] = { -1.5 * c, -2 * s, shear ? 0.7 : 0, 90, -1.5 * s, 2 * c, 0, -126, 0, 0, 3, -72 };
            type->has_affine = true;
            type->affine_code = 4;
            for (int i = 0; i < 12; i++) type->affine[i] = (float)affine[i];
            CHECK_MESSAGE(test_write_file(path, &in, NULL, 0, &error) == FV_OK, "%s", error.message);
            CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
            CHECK(back->has_affine);
            CHECK_INT(back->affine_code, 4);
            CHECK(!memcmp(back->affine, type->affine, sizeof type->affine));
            for (int d = 0; d < 4; d++) {
                CHECK(near(back->spacing[d], type->spacing[d]));
                CHECK_TEXT(back->unit[d], type->unit[d]);
            }
            CHECK(near(back->origin[0], 7));
            fv_bytes file = { 0 };
            if (k == 0) { /* without sform the quaternion must say the same, unless it cannot */
                CHECK(fv__file_read_all(path, 10000, &file, NULL) == FV_OK);
                memset(file.data + 254, 0, 2);
                CHECK(fv__file_write_all(path, file.data, file.size, false, NULL) == FV_OK);
                test_image_free(&out);
                CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
                CHECK(back->has_affine == !shear);
                for (int i = 0; i < 12 && !shear; i++)
                    CHECK_MESSAGE(near(back->affine[i], affine[i]), "%d: %g not %g", i, back->affine[i], affine[i]);
                fv__bytes_release(&file);
            }
            test_image_free(&in);
            test_image_free(&out);
            free(path);
        }
}

TEST(nifti_quaternion_holds_every_rotation) {
    char    *path = in_folder("q.nii");
    uint64_t state = 17;
    for (int round = 0; round < 200; round++) {
        test_image     in = test_image_new(FV_UINT8, 3, (int64_t[]){ 2, 2, 2 }), out;
        fv_image_type *type = &in.type.image, *back = &out.type.image;
        double         q[4], length = 0;
        for (int i = 0; i < 4; i++) {
            q[i] = round < 24 ? (double)((int)(test_random(&state) % 3) - 1) : (double)(test_random(&state) % 2001) / 1000 - 1;
            length += q[i] * q[i];
        }
        if (length == 0) q[0] = length = 1;
        for (int i = 0; i < 4; i++) q[i] /= sqrt(length);
        double a = q[0], b = q[1], c = q[2], d = q[3], mirror = round % 2 ? -1 : 1;
        double r[9] = { a * a + b * b - c * c - d * d, 2 * (b * c - a * d),           2 * (b * d + a * c),
                        2 * (b * c + a * d),           a * a + c * c - b * b - d * d, 2 * (c * d - a * b),
                        2 * (b * d - a * c),           2 * (c * d + a * b),           a * a + d * d - b * b - c * c };
        type->has_affine = true;
        type->affine_code = 1;
        for (int i = 0; i < 9; i++) type->affine[i / 3 * 4 + i % 3] = r[i] * (i % 3 == 2 ? mirror : 1);
        fv_error error = { 0 };
        CHECK_MESSAGE(test_write_file(path, &in, NULL, 0, &error) == FV_OK, "%s", error.message);
        fv_bytes file = { 0 };
        CHECK(fv__file_read_all(path, 10000, &file, NULL) == FV_OK);
        memset(file.data + 254, 0, 2);
        CHECK(fv__file_write_all(path, file.data, file.size, false, NULL) == FV_OK);
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
        CHECK(back->has_affine);
        /* near a half turn b c d hold the angle only to about 1e-3 in float32, which is the format's own limit */
        for (int i = 0; i < 12; i++)
            CHECK_MESSAGE(fabs(back->affine[i] - type->affine[i]) < 2e-3, "round %d: %d: %g not %g", round, i, back->affine[i],
                          type->affine[i]);
        fv__bytes_release(&file);
        test_image_free(&in);
        test_image_free(&out);
    }
    free(path);
}

TEST(nifti_without_matrix_stays_without_and_an_origin_makes_one) {
    test_image     in = test_image_new(FV_UINT8, 3, (int64_t[]){ 2, 3, 4 }), out;
    fv_image_type *type = &in.type.image, *back = &out.type.image;
    char          *path = in_folder("plain.nii");
    memcpy(type->spacing, (double[]){ 4, 0.5, 0.25 }, 3 * sizeof(double));
    CHECK(test_write_file(path, &in, NULL, 0, NULL) == FV_OK);
    CHECK(test_read_file(path, &out, NULL) == FV_OK);
    CHECK(!back->has_affine && back->spacing[0] == 4 && back->spacing[2] == 0.25 && !back->unit[0][0]);
    test_image_free(&out);
    memcpy(type->origin, (double[]){ 10, 20, 30 }, 3 * sizeof(double));
    for (int d = 0; d < 3; d++) strcpy(type->unit[d], d ? "nanometer" : "micrometer");
    CHECK(test_write_file(path, &in, NULL, 0, NULL) == FV_OK);
    CHECK(test_read_file(path, &out, NULL) == FV_OK);
    CHECK(back->has_affine);
    CHECK_TEXT(back->unit[2], "micrometer");
    CHECK(near(back->spacing[0], 4) && near(back->spacing[2], 0.25e-3));
    CHECK(near(back->origin[0], 10) && near(back->origin[1], 0.02) && near(back->affine[3], 0.03) && near(back->affine[11], 10));
    test_image_free(&in);
    test_image_free(&out);
    free(path);
}

TEST(nifti_puts_axes_in_their_dimension_and_refuses_an_order_it_cannot_hold) {
    test_image in = test_image_new(FV_UINT16, 3, (int64_t[]){ 5, 3, 4 }), out;
    char      *path = in_folder("axes.nii");
    fv_error   error = { 0 };
    strcpy(in.type.image.axis[0], "t");
    CHECK(test_write_file(path, &in, NULL, 0, NULL) == FV_OK);
    CHECK(test_read_file(path, &out, NULL) == FV_OK);
    CHECK_INT(out.type.image.ndim, 4);
    CHECK(out.type.image.shape[0] == 5 && out.type.image.shape[1] == 1);
    CHECK_TEXT(out.type.image.axis[0], "t");
    test_image_free(&out);
    strcpy(in.type.image.axis[0], "angle");
    strcpy(in.type.image.axis[1], "v");
    CHECK(test_write_file(path, &in, NULL, 0, NULL) == FV_OK);
    strcpy(in.type.image.axis[0], "y");
    strcpy(in.type.image.axis[1], "x");
    strcpy(in.type.image.axis[2], "c");
    CHECK_INT(test_write_file(path, &in, NULL, 0, &error), FV_ERROR_USAGE);
    CHECK_MESSAGE(strstr(error.message, "y x c of uint16"), "%s", error.message);
    test_image_free(&in);
    free(path);
}

TEST(nifti_keeps_rgb_and_rgba_as_last_axis) {
    for (int channels = 3; channels <= 4; channels++) {
        test_image in = test_image_new(FV_UINT8, 4, (int64_t[]){ 3, 4, 5, channels }), out;
        char      *path = in_folder("rgb.nii.gz");
        fv_error   error = { 0 };
        for (int d = 0; d < 4; d++) strcpy(in.type.image.axis[d], ((const char *[]){ "z", "y", "x", "c" })[d]);
        test_image_random_any(&in, 2);
        CHECK_MESSAGE(test_write_file(path, &in, NULL, 0, &error) == FV_OK, "%s", error.message);
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
        CHECK(test_same_pixels(&in, &out));
        CHECK_TEXT(out.type.image.axis[3], "c");
        CHECK_TEXT(out.type.image.axis[2], "x");
        test_image_free(&in);
        test_image_free(&out);
        free(path);
    }
}

TEST(nifti_writes_version_2_for_long_axes) {
    test_image in = test_image_new(FV_UINT8, 2, (int64_t[]){ 3, 40000 }), out;
    char      *path = in_folder("long.nii.gz");
    fv_error   error = { 0 };
    test_image_random_any(&in, 2);
    CHECK_MESSAGE(test_write_file(path, &in, NULL, 0, &error) == FV_OK, "%s", error.message);
    CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
    CHECK(test_same_pixels(&in, &out));
    test_image_free(&in);
    test_image_free(&out);
    free(path);
}

/* ---------------------------------------------------------------- what others write */

TEST(nifti_reads_both_byte_orders_of_every_datatype) {
    static const struct {
        int      code;
        fv_dtype dtype;
    } types[] = {
        { 2, FV_UINT8 },      { 4, FV_INT16 },    { 8, FV_INT32 },     { 16, FV_FLOAT32 },
        { 32, FV_COMPLEX64 }, { 64, FV_FLOAT64 }, { 256, FV_INT8 },    { 512, FV_UINT16 },
        { 768, FV_UINT32 },   { 1024, FV_INT64 }, { 1280, FV_UINT64 }, { 1792, FV_COMPLEX128 },
    };
    static const char *const names[] = { "swap.nii", "swap.nii.gz" };
    for (int t = 0; t < FV_COUNT(types); t++)
        for (int k = 0; k < 4; k++) {
            bool       big = k & 1;
            test_image in = test_image_new(types[t].dtype, 3, (int64_t[]){ 4, 5, 6 }), out;
            test_image_random_any(&in, (uint64_t)t);
            size_t   size = (size_t)fv_image_type_bytes(&in.type.image), part = fv_dtype_size(types[t].dtype);
            uint8_t *data = memcpy(fv__alloc(size), in.data, size);
            if (fv_dtype_is_complex(types[t].dtype)) part /= 2;
            if (big) flip(data, size / part, part);
            crafted  c = craft(big, types[t].code, 3, (int[]){ 6, 5, 4 });
            char    *path = save(names[k / 2], &c, data, size), message[256];
            fv_error error = { 0 };
            CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
            CHECK_MESSAGE(test_same_pixels(&in, &out), "datatype %d, %s", types[t].code, big ? "swapped" : "native");
            CHECK_MESSAGE(test_regions_equal_crops(path, 10, 5, message), "%s", message);
            test_image_free(&in);
            test_image_free(&out);
            free(data);
            free(path);
        }
}

TEST(nifti_reads_version_2_in_both_byte_orders) {
    for (int big = 0; big < 2; big++) {
        crafted c = { .version = 2, .big = big };
        int16_t data[6] = { 1, -2, 3, -4, 5, -6 }, copy[6];
        memcpy(copy, data, sizeof data);
        if (big) flip(copy, 6, 2);
        set32(&c, 0, 540);
        memcpy(c.bytes + 4, "n+2\0\r\n\032\n", 8);
        set16(&c, 12, 4);
        set64(&c, 16, 2);
        set64(&c, 24, 3);
        set64(&c, 32, 2);
        for (int i = 0; i < 8; i++) setd(&c, 104 + 8 * i, 0.5);
        set64(&c, 168, 544);
        set32(&c, 500, 2);
        set32(&c, 348, 1);
        for (int i = 0; i < 12; i++) setd(&c, 400 + 8 * i, i + 0.1);
        char      *path = save(big ? "two.nii.gz" : "two.nii", &c, copy, sizeof copy);
        test_image out;
        fv_error   error = { 0 };
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
        CHECK(!memcmp(out.data, data, sizeof data));
        CHECK(out.type.image.shape[0] == 2 && out.type.image.shape[1] == 3 && out.type.image.spacing[0] == 0.5);
        CHECK(out.type.image.has_affine && out.type.image.affine[7] == 7.1);
        CHECK_TEXT(out.type.image.unit[1], "millimeter");
        test_image_free(&out);
        free(path);
    }
}

TEST(nifti_applies_slope_and_intercept) {
    static const struct {
        int      code;
        float    slope, inter;
        fv_dtype dtype;
    } cases[] = {
        { 4, 0, 5, FV_INT16 },           { 4, 1, 0, FV_INT16 },          { 4, NAN, 0, FV_INT16 },     { 4, 0.5f, -3, FV_FLOAT32 },
        { 4, 1, 2, FV_FLOAT32 },         { 4, 1e-6f, 1e6f, FV_FLOAT64 }, { 4, 1e36f, 0, FV_FLOAT64 }, { 8, 0.1f, 0, FV_FLOAT64 },
        { 16, 2, 1, FV_FLOAT32 },        { 64, 2, 1, FV_FLOAT64 },       { 2, -1, 255, FV_FLOAT32 },  { 1280, 2, 0, FV_FLOAT64 },
        { 512, 0.1f, 0.3f, FV_FLOAT32 }, { 32, 2, 1, FV_COMPLEX64 },
    };
    static const char *const names[] = { "scale.nii", "scale.nii.gz" };
    for (int t = 0; t < FV_COUNT(cases); t++)
        for (int big = 0; big < 2; big++) {
            uint8_t raw[60 * 8];
            double  value[120];
            int     n = cases[t].code == 32 ? 120 : 60;
            size_t  part = cases[t].code == 2                             ? 1
                           : cases[t].code == 4 || cases[t].code == 512   ? 2
                           : cases[t].code == 64 || cases[t].code == 1280 ? 8
                                                                          : 4;
            for (int i = 0; i < n; i++) {
                int v = i * 2 + (cases[t].code == 4 ? -50 : 0);
                value[i] = v;
                if (cases[t].code == 2) raw[i] = (uint8_t)v;
                if (cases[t].code == 4 || cases[t].code == 512) ((int16_t *)raw)[i] = (int16_t)v;
                if (cases[t].code == 8) ((int32_t *)raw)[i] = v;
                if (cases[t].code == 16 || cases[t].code == 32) ((float *)raw)[i] = (float)v;
                if (cases[t].code == 64) ((double *)raw)[i] = v;
                if (cases[t].code == 1280) ((uint64_t *)raw)[i] = (uint64_t)v;
            }
            if (big) flip(raw, (size_t)n, part);
            crafted c = craft(big, cases[t].code, 3, (int[]){ 5, 4, 3 });
            setf(&c, 112, cases[t].slope);
            setf(&c, 116, cases[t].inter);
            char      *path = save(names[t % 2], &c, raw, part * (size_t)n), message[256];
            test_image out;
            fv_error   error = { 0 };
            CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
            CHECK_MESSAGE(out.type.image.dtype == cases[t].dtype, "case %d: %s", t, fv_dtype_name(out.type.image.dtype));
            for (int i = 0; i < n && cases[t].dtype != FV_INT16; i++) {
                double expected = value[i] * (double)cases[t].slope + (double)cases[t].inter;
                if (cases[t].dtype == FV_FLOAT64)
                    CHECK(((double *)out.data)[i] == expected);
                else
                    CHECK(((float *)out.data)[i] == (float)expected);
            }
            CHECK_MESSAGE(test_regions_equal_crops(path, 20, 5, message), "%s", message);
            test_image_free(&out);
            free(path);
        }
}

TEST(nifti_reads_a_pair_from_either_name) {
    static const char *const names[][2] = { { "pair.hdr", "pair.img" }, { "zip.hdr.gz", "zip.img.gz" } };
    for (int k = 0; k < 2; k++) {
        uint8_t data[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
        crafted c = craft(false, 2, 3, (int[]){ 2, 2, 3 });
        memcpy(c.bytes + 344, "ni1", 4);
        setf(&c, 108, 0);
        char  *header = save(names[k][0], &c, NULL, 0), *image = in_folder(names[k][1]);
        gzFile file = gzopen(image, k ? "wb" : "wbT");
        CHECK_INT(gzwrite(file, data, 12), 12);
        gzclose(file);
        for (int i = 0; i < 2; i++) {
            test_image out;
            fv_error   error = { 0 };
            CHECK_MESSAGE(test_read_file(i ? image : header, &out, &error) == FV_OK, "%s", error.message);
            CHECK(!memcmp(out.data, data, 12));
            test_image_free(&out);
        }
        free(header);
        free(image);
    }
}

/* ---------------------------------------------------------------- damage */

static fv_status open_crafted(const crafted *c, size_t data, fv_error *error) {
    uint8_t   *zeros = fv__calloc(data + 1);
    char      *path = save("bad.nii", c, zeros, data), *packed = save("bad.nii.gz", c, zeros, data);
    test_image out;
    fv_status  status = test_read_file(path, &out, error), second;
    if (status == FV_OK) test_image_free(&out);
    second = test_read_file(packed, &out, error);
    if (second == FV_OK) test_image_free(&out);
    free(path);
    free(packed);
    free(zeros);
    return second == status ? status : FV_ERROR_INTERNAL;
}

TEST(nifti_names_what_is_wrong_with_a_header) {
    fv_error error = { 0 };
    crafted  good = craft(false, 4, 3, (int[]){ 6, 5, 4 }), c = good;
    CHECK_INT(open_crafted(&c, 240, &error), FV_OK);
    set16(&c, 40, 0);
    CHECK_INT(open_crafted(&c, 240, &error), FV_ERROR_INPUT);
    CHECK(strstr(error.message, "dim[0]"));
    c = good;
    set16(&c, 44, -5);
    CHECK_INT(open_crafted(&c, 240, &error), FV_ERROR_INPUT);
    CHECK_MESSAGE(strstr(error.message, "dim[2] of the NIfTI header is -5"), "%s", error.message);
    c = craft(false, 1792, 7, (int[]){ 32767, 32767, 32767, 32767, 32767, 32767, 1 });
    CHECK_INT(open_crafted(&c, 240, &error), FV_ERROR_INPUT);
    CHECK_MESSAGE(strstr(error.message, "overflow"), "%s", error.message);
    c = craft(false, 16, 3, (int[]){ 32767, 32767, 100 });
    CHECK_INT(open_crafted(&c, 240, &error), FV_ERROR_INPUT);
    CHECK_MESSAGE(strstr(error.message, "ends early"), "%s", error.message);
    c = good;
    set16(&c, 70, 1536);
    CHECK_INT(open_crafted(&c, 240, &error), FV_ERROR_INPUT);
    CHECK(strstr(error.message, "datatype 1536"));
    c = good;
    memset(c.bytes + 344, 0, 4);
    CHECK_INT(open_crafted(&c, 240, &error), FV_ERROR_INPUT);
    CHECK(strstr(error.message, "not NIfTI"));
    c = good;
    setf(&c, 108, 1e30f);
    CHECK_INT(open_crafted(&c, 240, &error), FV_ERROR_INPUT);
    CHECK(strstr(error.message, "vox_offset"));
    c = good;
    setf(&c, 112, 2);
    setf(&c, 116, INFINITY);
    CHECK_INT(open_crafted(&c, 240, &error), FV_ERROR_INPUT);
    CHECK(strstr(error.message, "scl_inter"));
    CHECK_INT(open_crafted(&good, 239, &error), FV_ERROR_INPUT); /* one byte short */
    CHECK(strstr(error.message, "ends early"));
}

TEST(nifti_never_gives_other_voxels_for_a_flipped_bit) {
    test_image in = test_image_new(FV_UINT8, 3, (int64_t[]){ 20, 30, 40 }), out;
    char      *path = in_folder("flip.nii.gz");
    test_image_random_any(&in, 8);
    CHECK(test_write_file(path, &in, NULL, 0, NULL) == FV_OK);
    fv_bytes file = { 0 };
    CHECK(fv__file_read_all(path, (size_t)1 << 30, &file, NULL) == FV_OK);
    for (size_t at = 10; at < file.size; at += 1 + at / 40) {
        file.data[at] ^= 16;
        CHECK(fv__file_write_all(path, file.data, file.size, false, NULL) == FV_OK);
        fv_error  error = { 0 };
        fv_status status = test_read_file(path, &out, &error);
        /* some bits mean nothing: codes that no symbol uses */
        CHECK_MESSAGE(status == FV_OK ? test_same_pixels(&in, &out) : status == FV_ERROR_INPUT, "byte %zu: %s", at,
                      error.message);
        if (status == FV_OK) test_image_free(&out);
        file.data[at] ^= 16;
    }
    fv__bytes_release(&file);
    test_image_free(&in);
    free(path);
}

TEST(nifti_survives_damage) {
    static const char *const names[] = { "hurt.nii", "hurt.nii.gz" };
    for (int k = 0; k < 2; k++) {
        test_image in = test_image_new(FV_INT16, 3, (int64_t[]){ 9, 10, 11 });
        char      *path = in_folder(names[k]), message[256];
        test_image_random_any(&in, 8);
        CHECK(test_write_file(path, &in, NULL, 0, NULL) == FV_OK);
        CHECK_MESSAGE(test_survives_damage(path, names[k] + 5, 500, 1500, 3, message), "%s", message);
        test_image_free(&in);
        free(path);
    }
}

TEST(nifti_refuses_a_level_gzip_does_not_have) {
    test_image in = test_image_new(FV_UINT8, 2, (int64_t[]){ 3, 4 });
    fv_error   error = { 0 };
    char      *path = in_folder("level.nii.gz");
    CHECK_INT(test_write_file(path, &in, &(fv_write_options){ .level = 7 }, 0, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "level = 7"));
    for (int level = 1; level <= 3; level++)
        CHECK_INT(test_write_file(path, &in, &(fv_write_options){ .level = level }, 0, &error), FV_OK);
    test_image_free(&in);
    free(path);
}

TEST(nifti_reads_real_files) {
    if (!test_data()) SKIP("no folder of real files");
    static const struct {
        const char *name;
        int64_t     shape[4];
        int         ndim;
        fv_dtype    dtype;
    } files[] = {
        { "anatomical.nii", { 25, 41, 33 }, 3, FV_INT16 },
        { "functional.nii", { 20, 3, 21, 17 }, 4, FV_FLOAT32 },
        { "example4d.nii.gz", { 2, 24, 96, 128 }, 4, FV_INT16 },
    };
    for (int i = 0; i < FV_COUNT(files); i++) {
        char      *path = fv__sprintf("%s/nifti/%s", test_data(), files[i].name), *copy = in_folder("copy.nii.gz"), message[256];
        test_image in, out;
        fv_error   error = { 0 };
        if (!fv__file_exists(path)) SKIP("no NIfTI files");
        CHECK_MESSAGE(test_read_file(path, &in, &error) == FV_OK, "%s", error.message);
        CHECK_INT(in.type.image.ndim, files[i].ndim);
        for (int d = 0; d < files[i].ndim; d++) CHECK_INT(in.type.image.shape[d], files[i].shape[d]);
        CHECK_MESSAGE(in.type.image.dtype == files[i].dtype, "%s: %s", files[i].name, fv_dtype_name(in.type.image.dtype));
        CHECK_MESSAGE(test_regions_equal_crops(path, 10, 5, message), "%s", message);
        CHECK_MESSAGE(test_write_file(copy, &in, NULL, 0, &error) == FV_OK, "%s", error.message);
        CHECK_MESSAGE(test_read_file(copy, &out, &error) == FV_OK, "%s", error.message);
        CHECK(test_same_pixels(&in, &out));
        CHECK(!memcmp(in.type.image.affine, out.type.image.affine, sizeof in.type.image.affine));
        CHECK_INT(in.type.image.affine_code, out.type.image.affine_code);
        CHECK(!memcmp(in.type.image.unit, out.type.image.unit, sizeof in.type.image.unit));
        CHECK(!memcmp(in.type.image.spacing, out.type.image.spacing, sizeof in.type.image.spacing));
        test_image_free(&in);
        test_image_free(&out);
        free(path);
        free(copy);
    }
}

TEST_MAIN
