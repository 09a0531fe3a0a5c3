/* PNG files. */
#include "support/format.h"
#include "support/test.h"
#include <png.h>

static char *in_folder(const char *name) { return fv__sprintf("%s/%s", test_folder(), name); }

/* An image of y x, or y x c where channels are given. */
static test_image image_of(fv_dtype dtype, int64_t height, int64_t width, int64_t channels) {
    test_image image = test_image_new(dtype, channels ? 3 : 2, (int64_t[]){ height, width, channels });
    if (channels) {
        strcpy(image.type.image.axis[0], "y");
        strcpy(image.type.image.axis[1], "x");
        strcpy(image.type.image.axis[2], "c");
    }
    return image;
}

/* A smooth picture with some noise, so that every filter has its rows. */
static void paint(test_image *image, uint64_t seed) {
    fv_image_type *type = &image->type.image;
    int64_t        channels = type->ndim == 3 ? type->shape[2] : 1, i = 0;
    for (int64_t y = 0; y < type->shape[0]; y++)
        for (int64_t x = 0; x < type->shape[1]; x++)
            for (int64_t c = 0; c < channels; c++, i++) {
                uint64_t value = (uint64_t)(y * 7 + x * 3 + c * 40 + (y * x >> 5)) + test_random(&seed) % 5;
                if (type->dtype == FV_UINT16)
                    ((uint16_t *)image->data)[i] = (uint16_t)(value * 97);
                else
                    ((uint8_t *)image->data)[i] = (uint8_t)(type->dtype == FV_BOOL ? value >> 4 & 1 : value);
            }
}

/* libpng's own simplified reader, as 8-bit or 16-bit pixels; frees nothing on failure. */
static void *read_by_libpng(const char *path, png_uint_32 format, size_t *size) {
    png_image image = { .version = PNG_IMAGE_VERSION };
    if (!png_image_begin_read_from_file(&image, path)) return NULL;
    image.format = format;
    *size = PNG_IMAGE_SIZE(image);
    void *pixels = malloc(*size);
    return png_image_finish_read(&image, NULL, pixels, 0, NULL) ? pixels : NULL;
}

TEST(png_keeps_every_type_it_can_hold) {
    static const fv_dtype dtypes[] = { FV_UINT8, FV_UINT16 };
    static const int64_t  sizes[][2] = { { 1, 1 }, { 1, 300 }, { 300, 1 }, { 77, 91 }, { 700, 900 } };
    char                 *path = in_folder("a.png"), *shuffled = in_folder("b.png"), message[256];
    for (int t = 0; t < 2; t++)
        for (int64_t channels = 0; channels <= 4; channels++)
            for (int s = 0; s < FV_COUNT(sizes); s++) {
                if (channels == 1) continue;
                test_image in = image_of(dtypes[t], sizes[s][0], sizes[s][1], channels), out;
                fv_error   error = { 0 };
                paint(&in, 3);
                CHECK_MESSAGE(test_write_file(path, &in, NULL, 0, &error) == FV_OK, "%s", error.message);
                CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
                CHECK(test_same_pixels(&in, &out));
                if (channels) CHECK_TEXT(out.type.image.axis[2], "c");
                CHECK_TEXT(out.type.image.axis[1], "x");
                CHECK_MESSAGE(test_write_file(shuffled, &in, NULL, 8, &error) == FV_OK, "%s", error.message);
                CHECK(test_same_files(path, shuffled));
                CHECK_MESSAGE(test_regions_equal_crops(path, 6, 5, message), "%s", message);
                test_image_free(&in);
                test_image_free(&out);
            }
    free(path);
    free(shuffled);
}

TEST(png_writes_bool_as_black_and_white) {
    test_image in = image_of(FV_BOOL, 40, 50, 0), out;
    char      *path = in_folder("bool.png");
    paint(&in, 1);
    CHECK(test_write_file(path, &in, NULL, 0, NULL) == FV_OK);
    CHECK(test_read_file(path, &out, NULL) == FV_OK);
    CHECK_INT(out.type.image.dtype, FV_UINT8);
    for (int i = 0; i < 2000; i++) CHECK_INT(((uint8_t *)out.data)[i], ((uint8_t *)in.data)[i] ? 255 : 0);
    test_image_free(&in);
    test_image_free(&out);
    free(path);
}

TEST(png_files_open_in_libpng_at_every_level) {
    test_image in = image_of(FV_UINT8, 600, 1000, 3);
    char      *path = in_folder("level.png");
    paint(&in, 2);
    for (int64_t level = 0; level <= 9; level++) {
        size_t size = 0;
        CHECK(test_write_file(path, &in, &(fv_write_options){ .level = level }, 0, NULL) == FV_OK);
        void *pixels = read_by_libpng(path, PNG_FORMAT_RGB, &size);
        CHECK_MESSAGE(pixels && size == 1800000 && !memcmp(pixels, in.data, size), "level %d", (int)level);
        free(pixels);
    }
    fv_error error = { 0 };
    CHECK_INT(test_write_file(path, &in, &(fv_write_options){ .level = 10 }, 0, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "level = 10"));
    test_image_free(&in);
    free(path);
}

TEST(png_says_what_it_cannot_hold) {
    test_image real = image_of(FV_FLOAT32, 4, 4, 0), stack = test_image_new(FV_UINT8, 3, (int64_t[]){ 4, 4, 4 }),
               five = image_of(FV_UINT8, 4, 4, 5);
    char    *path = in_folder("no.png");
    fv_error error = { 0 };
    CHECK_INT(test_write_file(path, &real, NULL, 0, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "float32") && strstr(error.message, "rescale"));
    CHECK_INT(test_write_file(path, &stack, NULL, 0, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "z = 4"));
    CHECK_INT(test_write_file(path, &five, NULL, 0, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "c = 5"));
    test_image_free(&real);
    test_image_free(&stack);
    test_image_free(&five);
    free(path);
}

/* ---------------------------------------------------------------- files that only others write */

typedef struct {
    int depth, colour, interlace, entries, transparent;
} kind;

/* Written by libpng: pixel (y, x) has the sample values (3 y + x + channel) masked to the depth. */
static char *make_by_libpng(const char *name, int height, int width, kind k) {
    char       *path = in_folder(name);
    FILE       *file = fopen(path, "wb");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop   info = png_create_info_struct(png);
    if (setjmp(png_jmpbuf(png))) abort();
    png_init_io(png, file);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, k.depth, k.colour, k.interlace, 0, 0);
    png_color palette[256];
    png_byte  alpha[256];
    for (int i = 0; i < 256; i++) {
        palette[i] = (png_color){ (png_byte)i, (png_byte)(2 * i), (png_byte)(255 - i) };
        alpha[i] = (png_byte)(i * 10);
    }
    if (k.entries) png_set_PLTE(png, info, palette, k.entries);
    if (k.transparent) png_set_tRNS(png, info, alpha, k.transparent, NULL);
    png_write_info(png, info);
    if (k.depth < 8) png_set_packing(png);
    int       channels = png_get_channels(png, info), bytes = k.depth == 16 ? 2 : 1;
    png_bytep pixels = calloc((size_t)height, (size_t)(width * channels * bytes)), *rows = malloc(sizeof *rows * (size_t)height);
    for (int y = 0; y < height; y++) {
        rows[y] = pixels + y * width * channels * bytes;
        for (int i = 0; i < width * channels; i++) {
            int value = (3 * y + i) * (k.depth == 16 ? 301 : 1) & ((1 << k.depth) - 1);
            if (bytes == 2) rows[y][2 * i] = (png_byte)(value >> 8);
            rows[y][i * bytes + bytes - 1] = (png_byte)value;
        }
    }
    png_write_image(png, rows);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    fclose(file);
    free(pixels);
    free(rows);
    return path;
}

TEST(png_reads_every_depth_and_colour_also_interlaced) {
    static const kind kinds[] = {
        { 1, PNG_COLOR_TYPE_GRAY },        { 2, PNG_COLOR_TYPE_GRAY },       { 4, PNG_COLOR_TYPE_GRAY },
        { 8, PNG_COLOR_TYPE_GRAY },        { 16, PNG_COLOR_TYPE_GRAY },      { 8, PNG_COLOR_TYPE_GRAY_ALPHA },
        { 16, PNG_COLOR_TYPE_GRAY_ALPHA }, { 8, PNG_COLOR_TYPE_RGB },        { 16, PNG_COLOR_TYPE_RGB },
        { 8, PNG_COLOR_TYPE_RGB_ALPHA },   { 16, PNG_COLOR_TYPE_RGB_ALPHA },
    };
    for (int i = 0; i < 2 * FV_COUNT(kinds); i++) {
        kind k = kinds[i / 2];
        k.interlace = i % 2;
        char      *path = make_by_libpng("kind.png", 23, 37, k), message[256];
        test_image out;
        fv_error   error = { 0 };
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
        fv_image_type *type = &out.type.image;
        int            channels = type->ndim == 3 ? (int)type->shape[2] : 1, scale = k.depth == 2 ? 85 : k.depth == 4 ? 17 : 1;
        CHECK_INT(type->dtype, k.depth == 1 ? FV_BOOL : k.depth == 16 ? FV_UINT16 : FV_UINT8);
        for (int y = 0; y < 23; y++)
            for (int j = 0; j < 37 * channels; j++) {
                int at = y * 37 * channels + j, value = (3 * y + j) * (k.depth == 16 ? 301 : 1) & ((1 << k.depth) - 1);
                CHECK_INT(k.depth == 16 ? ((uint16_t *)out.data)[at] : ((uint8_t *)out.data)[at], value * scale);
            }
        CHECK_MESSAGE(test_regions_equal_crops(path, 10, 5, message), "%s", message);
        test_image_free(&out);
        free(path);
    }
}

TEST(png_palette_becomes_rgb_or_rgba) {
    for (int depth = 1; depth <= 8; depth *= 2)
        for (int transparent = 0; transparent < 2; transparent++) {
            char      *path = make_by_libpng("palette.png", 9, 20,
                                             (kind){ depth, PNG_COLOR_TYPE_PALETTE, transparent, 1 << depth, transparent * 2 });
            test_image out;
            CHECK(test_read_file(path, &out, NULL) == FV_OK);
            int channels = 3 + transparent;
            CHECK_INT(out.type.image.shape[2], channels);
            for (int y = 0; y < 9; y++)
                for (int x = 0; x < 20; x++) {
                    int      index = (3 * y + x) & ((1 << depth) - 1);
                    uint8_t *pixel = (uint8_t *)out.data + (y * 20 + x) * channels;
                    CHECK(pixel[0] == index && pixel[1] == (uint8_t)(2 * index) && pixel[2] == 255 - index);
                    if (transparent) CHECK_INT(pixel[3], index < 2 ? index * 10 : 255);
                }
            test_image_free(&out);
            free(path);
        }
}

TEST(png_survives_damage) {
    test_image in = image_of(FV_UINT8, 20, 30, 3);
    char      *path = in_folder("whole.png"), message[256];
    paint(&in, 4);
    CHECK(test_write_file(path, &in, NULL, 0, NULL) == FV_OK);
    CHECK_MESSAGE(test_survives_damage(path, "png", 0, 1500, 1, message), "%s", message);
    free(path);
    path = make_by_libpng("interlaced.png", 30, 40, (kind){ 4, PNG_COLOR_TYPE_PALETTE, 1, 16, 3 });
    CHECK_MESSAGE(test_survives_damage(path, "png", 0, 1500, 1, message), "%s", message);
    test_image_free(&in);
    free(path);
}

TEST(png_refuses_a_size_that_the_file_cannot_hold) {
    test_image in = image_of(FV_UINT8, 20, 30, 0), out;
    char      *path = in_folder("claims.png");
    fv_bytes   file = { 0 };
    fv_error   error = { 0 };
    CHECK(test_write_file(path, &in, NULL, 0, NULL) == FV_OK);
    CHECK(fv__file_read_all(path, 10000, &file, NULL) == FV_OK);
    memcpy(file.data + 16, "\x7f\xff\xff\xff\x7f\xff\xff\xff", 8);
    uint32_t crc = 0xffffffffu;
    for (int i = 12; i < 29; i++)
        for (int bit = (crc ^= file.data[i], 0); bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    png_save_uint_32(file.data + 29, ~crc);
    CHECK(fv__file_write_all(path, file.data, file.size, false, NULL) == FV_OK);
    CHECK_INT(test_read_file(path, &out, &error), FV_ERROR_INPUT);
    CHECK_MESSAGE(strstr(error.message, "2147483647") && strstr(error.message, path), "%s", error.message);
    fv__bytes_release(&file);
    test_image_free(&in);
    free(path);
}

TEST(png_reads_real_files_like_libpng) {
    static const char *const names[] = { "camera", "cell", "coins", "em_image", "phantom" };
    if (!test_data()) SKIP("no real data here");
    for (int i = 0; i < FV_COUNT(names); i++) {
        char      *path = fv__sprintf("%s/images/%s.png", test_data(), names[i]), message[256];
        test_image out;
        fv_error   error = { 0 };
        size_t     size = 0;
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
        int64_t channels = out.type.image.ndim == 3 ? out.type.image.shape[2] : 1;
        if (out.type.image.dtype == FV_UINT8) {
            void *pixels = read_by_libpng(path,
                                          channels == 1   ? PNG_FORMAT_GRAY
                                          : channels == 3 ? PNG_FORMAT_RGB
                                                          : PNG_FORMAT_RGBA,
                                          &size);
            CHECK_MESSAGE(pixels && !memcmp(pixels, out.data, size), "%s", names[i]);
            free(pixels);
        }
        CHECK_MESSAGE(test_regions_equal_crops(path, 5, 2, message), "%s", message);
        test_image_free(&out);
        free(path);
    }
}

TEST_MAIN
