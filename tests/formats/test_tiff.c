/* TIFF files: what is written, read back, and read from files that others wrote. */
#include "formats/tiff_parts.h"
#include "support/format.h"
#include "support/test.h"
#include <dirent.h>
#include <pthread.h>
#include <tiffio.h>
#include <time.h>

static char *in_folder(const char *name) { return fv__sprintf("%s/%s", test_folder(), name); }

static void name_axes(test_image *image, const char *letters) {
    for (int d = 0; d < image->type.image.ndim; d++) snprintf(image->type.image.axis[d], 8, "%c", letters[d]);
}

static test_image image_of(fv_dtype dtype, const char *axes, const int64_t *shape) {
    test_image image = test_image_new(dtype, (int)strlen(axes), shape);
    name_axes(&image, axes);
    test_image_random_any(&image, 77);
    /* Flat stretches too, so that compression has something to do. */
    size_t bytes = (size_t)fv_image_type_bytes(&image.type.image);
    if (bytes > 64) memset((char *)image.data + bytes / 4, 1, bytes / 4);
    return image;
}

/* ---------------------------------------------------------------- round trips */

static bool round_trip(test_image *in, const fv_write_options *options, char message[256]) {
    char      *path = in_folder("a.tif"), *shuffled = in_folder("b.tif");
    test_image out = { 0 };
    fv_error   error = { 0 };
    bool       good = test_write_file(path, in, options, 0, &error) == FV_OK && test_read_file(path, &out, &error) == FV_OK;
    if (!good) snprintf(message, 256, "%.250s", error.message);
    if (good && !(good = test_same_pixels(in, &out))) snprintf(message, 256, "other pixels");
    for (int d = 0; good && d < in->type.image.ndim; d++)
        if (!(good = !strcmp(in->type.image.axis[d], out.type.image.axis[d])))
            snprintf(message, 256, "axis %d is %s", d, out.type.image.axis[d]);
    if (good) good = test_regions_equal_crops(path, 12, 9, message);
    if (good && !(good = test_write_file(shuffled, in, options, 5, &error) == FV_OK && test_same_files(path, shuffled)))
        snprintf(message, 256, "the bytes depend on how it was written %.100s", error.message);
    test_image_free(&out);
    free(path);
    free(shuffled);
    return good;
}

TEST(tiff_keeps_every_dtype_with_every_compression) {
    static const char *const compressions[] = { "deflate", "zstd", "lzw", "none" };
    static const struct {
        const char *axes;
        int64_t     shape[4];
    } kinds[] = {
        { "yx", { 37, 53 } },         { "zyx", { 4, 30, 21 } }, { "yxc", { 20, 33, 3 } },
        { "zyxc", { 2, 20, 33, 4 } }, { "yxc", { 9, 8, 2 } },
    };
    char message[256];
    for (int dtype = FV_UINT8; dtype < FV_DTYPES; dtype++)
        for (int c = 0; c < FV_COUNT(compressions); c++) {
            int        k = (dtype + c) % FV_COUNT(kinds);
            test_image in = image_of((fv_dtype)dtype, kinds[k].axes, kinds[k].shape);
            CHECK_MESSAGE(round_trip(&in, &(fv_write_options){ .compression = compressions[c] }, message), "%s %s %s: %s",
                          fv_dtype_name((fv_dtype)dtype), kinds[k].axes, compressions[c], message);
            test_image_free(&in);
        }
}

TEST(tiff_keeps_strips_and_tiles_of_any_size) {
    static const int64_t     chunks[][2] = { { 1, 0 }, { 7, 0 }, { 16, 16 }, { 48, 32 }, { 100, 500 }, { 256, 256 } };
    static const char *const compressions[] = { "deflate", "zstd", "lzw", "none" };
    char                     message[256];
    for (int i = 0; i < FV_COUNT(chunks); i++)
        for (int colour = 0; colour < 2; colour++) {
            test_image       in = image_of(FV_UINT16, colour ? "zyxc" : "zyx", (int64_t[]){ 3, 70, 90, 3 });
            fv_write_options options = { .compression = compressions[(i + colour) % 4],
                                         .chunk = { chunks[i][0], chunks[i][1] },
                                         .chunk_ndim = 2 };
            CHECK_MESSAGE(round_trip(&in, &options, message), "%lldx%lld: %s", (long long)chunks[i][0], (long long)chunks[i][1],
                          message);
            test_image_free(&in);
        }
    test_image wide = image_of(FV_UINT8, "yx", (int64_t[]){ 40, 9000 });
    CHECK_MESSAGE(round_trip(&wide, NULL, message), "%s", message);
    test_image_free(&wide);
}

TEST(tiff_compresses_at_every_level) {
    test_image in = image_of(FV_INT32, "yx", (int64_t[]){ 300, 200 });
    char       message[256];
    for (int64_t level = 1; level <= 9; level += 2)
        CHECK_MESSAGE(round_trip(&in, &(fv_write_options){ .level = level }, message), "deflate %lld: %s", (long long)level,
                      message);
    for (int64_t level = 1; level <= 19; level += 6)
        CHECK_MESSAGE(round_trip(&in, &(fv_write_options){ .level = level, .compression = "zstd" }, message), "zstd %lld: %s",
                      (long long)level, message);
    test_image_free(&in);
}

TEST(tiff_lzw_survives_full_tables_and_long_runs) {
    char message[256];
    for (int kind = 0; kind < 4; kind++) {
        test_image in = image_of(FV_FLOAT64, "yx", (int64_t[]){ 200, 160 }); /* floats go to LZW as they are */
        if (kind < 2) memset(in.data, kind * 255, 200 * 160 * 8);
        if (kind == 2)
            for (int i = 0; i < 200 * 160 * 8; i++) ((uint8_t *)in.data)[i] = (uint8_t)(i % 251 * (i / 4001));
        CHECK_MESSAGE(round_trip(&in, &(fv_write_options){ .compression = "lzw" }, message), "kind %d: %s", kind, message);
        test_image_free(&in);
    }
    for (int64_t n = 1; n < 700; n += 1 + n / 9) { /* every way a code can end at a change of width */
        test_image in = image_of(FV_FLOAT32, "yx", (int64_t[]){ 1, n });
        CHECK_MESSAGE(round_trip(&in, &(fv_write_options){ .compression = "lzw" }, message), "%lld: %s", (long long)n, message);
        test_image_free(&in);
    }
}

typedef struct image_rows { /* of an image, as the pieces of a file */
    fv_pieces         base;
    const test_image *image;
} image_rows;

/* Assembles with a writer that would put in place. */
static fv_status get_strip(fv_pieces *pieces, int64_t index, const void **data, size_t *size, fv_error *error) {
    (void)error;
    const test_image *image = ((image_rows *)pieces)->image;
    *size = (size_t)(image->type.image.shape[1] * 2); /* strips of one row */
    *data = (char *)image->data + index * (int64_t)*size;
    return FV_OK;
}

TEST(tiff_put_in_place_has_the_bytes_of_an_assembled_one) {
    test_image       in = image_of(FV_UINT16, "yx", (int64_t[]){ 30, 25 });
    fv_write_options options = { .compression = "none", .chunk = { 1, 0 }, .chunk_ndim = 2 };
    char            *put = in_folder("put.tif"), *assembled = in_folder("assembled.tif");
    fv_writer       *writer;
    image_rows       pieces = { { .get = get_strip, .count = 30 }, &in };
    CHECK(test_write_file(put, &in, &options, 3, NULL) == FV_OK);
    CHECK(test_make_writer(&fv_format_tiff, assembled, &in.type.image, &options, &writer, NULL) == FV_OK &&
          writer->layout.parallel);
    CHECK(fv_format_tiff.assemble(writer, &pieces.base, NULL) == FV_OK);
    fv_format_tiff.free_writer(writer);
    CHECK(test_same_files(put, assembled));
    test_image_free(&in);
    free(put);
    free(assembled);
}

TEST(tiff_writes_bool_as_black_and_white) {
    test_image in = image_of(FV_BOOL, "zyx", (int64_t[]){ 2, 20, 30 }), out;
    char      *path = in_folder("bool.tif");
    test_image_random(&in, 2);
    CHECK(test_write_file(path, &in, NULL, 0, NULL) == FV_OK && test_read_file(path, &out, NULL) == FV_OK);
    CHECK_INT(out.type.image.dtype, FV_UINT8);
    for (int i = 0; i < 1200; i++) CHECK_INT(((uint8_t *)out.data)[i], ((uint8_t *)in.data)[i] ? 255 : 0);
    test_image_free(&in);
    test_image_free(&out);
    free(path);
}

TEST(tiff_beyond_four_gigabytes_is_big) {
    static const char *const compressions[] = { "deflate", "none" };
    char                     message[256], *path = in_folder("a.tif");
    fv__tiff_classic_limit = 1000;
    for (int c = 0; c < 2; c++)
        for (int64_t tile = 0; tile < 32; tile += 16) {
            test_image in = image_of(FV_UINT16, "zyxc", (int64_t[]){ 5, 40, 33, 4 });
            strcpy(in.type.image.unit[1], "micrometer"); /* gives it a description, too */
            CHECK_MESSAGE(round_trip(&in,
                                     &(fv_write_options){
                                         .compression = compressions[c], .chunk = { tile, tile }, .chunk_ndim = tile ? 2 : 0 },
                                     message),
                          "%s", message);
            TIFF *tif = TIFFOpen(path, "r");
            CHECK(tif && TIFFIsBigTIFF(tif));
            CHECK_INT(TIFFNumberOfDirectories(tif), 5);
            TIFFClose(tif);
            test_image_free(&in);
        }
    fv__tiff_classic_limit = UINT32_MAX;
    free(path);
}

TEST(tiff_keeps_axes_spacing_and_units) {
    static const struct {
        const char *axes;
        int64_t     shape[5];
        double      spacing[5];
        const char *unit;
        double      origin;
    } kinds[] = {
        { "yx", { 5, 6 }, { 0.3, 0.25 }, "micrometer", 0 },
        { "zyx", { 4, 5, 6 }, { 2, 0.3, 0.3 }, "micrometer", 0 },
        { "zyx", { 4, 5, 6 }, { 1.7, 1, 1 }, "", 0 },
        { "zyx", { 4, 5, 6 }, { 1, 1, 1 }, "millimeter", 3.25 },
        { "tzcyx", { 2, 3, 4, 5, 6 }, { 1, 5, 1, 7, 7 }, "nanometer", 0 },
        { "czyx", { 2, 3, 5, 6 }, { 1, 0.1, 0.2, 0.7 }, "millimeter", 0 },
        { "cyx", { 2, 5, 6 }, { 1, 1, 1 }, "", 0 },
        { "auv", { 9, 5, 6 }, { 2, 1, 1 }, "", 0 },
        { "tyx", { 9, 5, 6 }, { 1, 1, 1 }, "", 0 },
    };
    char *path = in_folder("axes.tif");
    for (int k = 0; k < FV_COUNT(kinds); k++) {
        test_image     in = image_of(FV_UINT8, kinds[k].axes, kinds[k].shape), out;
        fv_image_type *type = &in.type.image;
        fv_error       error = { 0 };
        for (int d = 0; d < type->ndim; d++) {
            type->spacing[d] = kinds[k].spacing[d];
            if (strchr("zyx", type->axis[d][0])) strcpy(type->unit[d], kinds[k].unit);
        }
        type->origin[0] = kinds[k].origin;
        CHECK_MESSAGE(test_write_file(path, &in, NULL, 0, &error) == FV_OK && test_read_file(path, &out, &error) == FV_OK, "%s",
                      error.message);
        CHECK(test_same_pixels(&in, &out));
        for (int d = 0; d < type->ndim; d++) {
            CHECK_MESSAGE(!strcmp(out.type.image.axis[d], type->axis[d]), "%s: axis %d is %s", kinds[k].axes, d,
                          out.type.image.axis[d]);
            CHECK_MESSAGE(out.type.image.spacing[d] > type->spacing[d] * 0.9999999 &&
                              out.type.image.spacing[d] < type->spacing[d] * 1.0000001,
                          "%s: spacing %d is %.17g, not %.17g", kinds[k].axes, d, out.type.image.spacing[d], type->spacing[d]);
            CHECK_MESSAGE(!strcmp(out.type.image.unit[d], type->unit[d]), "%s: unit %d is %s", kinds[k].axes, d,
                          out.type.image.unit[d]);
            CHECK(out.type.image.origin[d] == type->origin[d]);
        }
        test_image_free(&in);
        test_image_free(&out);
    }
    free(path);
}

TEST(tiff_says_what_it_cannot_write) {
    static const struct {
        fv_write_options options;
        const char      *why;
    } bad[] = {
        { { .compression = "gzip" }, "deflate|zstd|lzw|none" }, { { .level = 10 }, "level = 10" },
        { { .level = 3, .compression = "none" }, "no level" },  { { .chunk = { 20, 20 }, .chunk_ndim = 2 }, "multiples of 16" },
        { { .chunk = { 1, 20, 20 }, .chunk_ndim = 3 }, "two" },
    };
    test_image in = image_of(FV_UINT8, "yx", (int64_t[]){ 40, 50 }), line = test_image_new(FV_UINT8, 1, (int64_t[]){ 9 });
    char      *path = in_folder("no.tif");
    for (int i = 0; i < FV_COUNT(bad); i++) {
        fv_error error = { 0 };
        CHECK_INT(test_write_file(path, &in, &bad[i].options, 0, &error), FV_ERROR_USAGE);
        CHECK_MESSAGE(strstr(error.message, bad[i].why), "%s", error.message);
    }
    fv_error error = { 0 };
    CHECK_INT(test_write_file(path, &line, NULL, 0, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "y x"));
    test_image_free(&in);
    test_image_free(&line);
    free(path);
}

/* ---------------------------------------------------------------- files written by libtiff */

typedef struct {
    int         width, height, bits, samples, format, photometric, compression, planar, tile, rows;
    bool        reduced;
    const char *description;
} settings;

/* Sample (y, x, s) of the test pages. */
static uint32_t sample_of(const settings *s, int y, int x, int c) {
    uint32_t mask = s->bits == 32 ? ~0u : (1u << s->bits) - 1;
    return (uint32_t)(y * 31 + x * 7 + c * 101) * (s->bits > 16 ? 70001u : s->bits > 8 ? 13u : 1u) & mask;
}

static void put_bits(uint8_t *row, int64_t index, int bits, uint32_t value) {
    if (bits % 8 == 0)
        memcpy(row + index * bits / 8, &value, (size_t)bits / 8); /* little-endian */
    else
        for (int b = 0; b < bits; b++)
            if (value >> (bits - 1 - b) & 1) row[(index * bits + b) / 8] |= (uint8_t)(128 >> (index * bits + b) % 8);
}

/* A box of the page at (y, x) as libtiff wants it: all samples, or only sample c. */
static void fill_box(const settings *s, int y0, int x0, int height, int width, int c, uint8_t *to, size_t row_bytes) {
    bool separate = s->planar == PLANARCONFIG_SEPARATE;
    int  n = separate ? 1 : s->samples;
    memset(to, 0, row_bytes * (size_t)height);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int i = 0; i < n; i++)
                put_bits(to + (size_t)y * row_bytes, x * n + i, s->bits, sample_of(s, y0 + y, x0 + x, separate ? c : i));
}

static void add_page(TIFF *tif, const settings *s) {
    TIFFSetField(tif, TIFFTAG_IMAGEWIDTH, s->width);
    TIFFSetField(tif, TIFFTAG_IMAGELENGTH, s->height);
    TIFFSetField(tif, TIFFTAG_BITSPERSAMPLE, s->bits);
    TIFFSetField(tif, TIFFTAG_SAMPLESPERPIXEL, s->samples);
    TIFFSetField(tif, TIFFTAG_SAMPLEFORMAT, s->format ? s->format : SAMPLEFORMAT_UINT);
    TIFFSetField(tif, TIFFTAG_PHOTOMETRIC, s->photometric);
    TIFFSetField(tif, TIFFTAG_COMPRESSION, s->compression ? s->compression : COMPRESSION_NONE);
    TIFFSetField(tif, TIFFTAG_PLANARCONFIG, s->planar ? s->planar : PLANARCONFIG_CONTIG);
    if (s->reduced) TIFFSetField(tif, TIFFTAG_SUBFILETYPE, FILETYPE_REDUCEDIMAGE);
    if (s->description) TIFFSetField(tif, TIFFTAG_IMAGEDESCRIPTION, s->description);
    if (s->compression == COMPRESSION_JPEG && s->photometric == PHOTOMETRIC_YCBCR)
        TIFFSetField(tif, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    if (s->photometric == PHOTOMETRIC_PALETTE) {
        static uint16_t map[3][256];
        for (int i = 0; i < 256; i++) {
            map[0][i] = (uint16_t)(i << 8);
            map[1][i] = (uint16_t)((255 - i) << 8);
            map[2][i] = (uint16_t)((i * 7 & 255) << 8);
        }
        TIFFSetField(tif, TIFFTAG_COLORMAP, map[0], map[1], map[2]);
    }
    int planes = s->planar == PLANARCONFIG_SEPARATE ? s->samples : 1, rows = s->tile ? s->tile : s->rows ? s->rows : s->height;
    if (s->tile) {
        TIFFSetField(tif, TIFFTAG_TILEWIDTH, s->tile);
        TIFFSetField(tif, TIFFTAG_TILELENGTH, s->tile);
    } else
        TIFFSetField(tif, TIFFTAG_ROWSPERSTRIP, rows);
    size_t   row_bytes = (size_t)(s->tile ? TIFFTileRowSize(tif) : TIFFScanlineSize(tif));
    uint8_t *box = malloc(row_bytes * (size_t)rows + 64);
    for (int c = 0; c < planes; c++)
        for (int y = 0; y < s->height; y += rows)
            for (int x = 0; x < s->width; x += s->tile ? s->tile : s->width) {
                int height = s->tile ? s->tile : FV_MIN(rows, s->height - y);
                fill_box(s, y, x, height, s->tile ? s->tile : s->width, c, box, row_bytes);
                if (s->tile)
                    TIFFWriteEncodedTile(tif, TIFFComputeTile(tif, (uint32_t)x, (uint32_t)y, 0, (uint16_t)c), box,
                                         (tmsize_t)row_bytes * height);
                else
                    TIFFWriteEncodedStrip(tif, TIFFComputeStrip(tif, (uint32_t)y, (uint16_t)c), box,
                                          (tmsize_t)row_bytes * height);
            }
    free(box);
    TIFFWriteDirectory(tif);
}

static char *make_pages(const char *name, const char *mode, const settings *pages, int count) {
    char *path = in_folder(name);
    TIFF *tif = TIFFOpen(path, mode);
    for (int i = 0; i < count; i++) add_page(tif, &pages[i]);
    TIFFClose(tif);
    return path;
}

static double value_at(const test_image *image, int64_t i) {
    switch (image->type.image.dtype) {
    case FV_BOOL:
    case FV_UINT8: return ((uint8_t *)image->data)[i];
    case FV_UINT16: return ((uint16_t *)image->data)[i];
    case FV_UINT32: return ((uint32_t *)image->data)[i];
    default: return -1;
    }
}

static bool reads_as_stored(const settings *s, const char *mode, char message[256]) {
    char      *path = make_pages("made.tif", mode, s, 1);
    test_image out = { 0 };
    fv_error   error = { 0 };
    bool       good = test_read_file(path, &out, &error) == FV_OK;
    if (!good) snprintf(message, 256, "%.250s", error.message);
    for (int i = 0; good && i < s->height * s->width * s->samples; i++) {
        int    c = i % s->samples, x = i / s->samples % s->width, y = i / s->samples / s->width;
        double wanted = sample_of(s, y, x, c);
        good = value_at(&out, i) == wanted;
        if (!good) snprintf(message, 256, "sample %d of %d %d is %g, not %g", c, y, x, value_at(&out, i), wanted);
    }
    good = good && test_regions_equal_crops(path, 10, 3, message);
    test_image_free(&out);
    free(path);
    return good;
}

TEST(tiff_reads_every_number_of_bits_layout_and_byte_order) {
    static const int bits[] = { 1, 2, 4, 5, 7, 8, 12, 14, 16, 24, 32 };
    char             message[256];
    for (int b = 0; b < FV_COUNT(bits); b++)
        for (int big = 0; big < 2; big++)
            for (int layout = 0; layout < 12; layout++) {
                settings s = { .width = 41,
                               .height = 37,
                               .bits = bits[b],
                               .samples = layout & 1 ? 3 : 1,
                               .photometric = layout & 1 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK,
                               .planar = layout & 2 ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG };
                if (layout >= 8)
                    s.tile = 16;
                else if (layout >= 4)
                    s.rows = 5;
                if (layout % 4 == 2) s.compression = COMPRESSION_LZW;
                if (big && s.bits % 8 == 0 && s.bits > 8 && s.compression == 0)
                    s.compression = layout & 1 ? COMPRESSION_NONE : COMPRESSION_PACKBITS;
                CHECK_MESSAGE(reads_as_stored(&s, big ? "wb" : "wl", message), "%d bits, layout %d, %s: %s", s.bits, layout,
                              big ? "big" : "little", message);
            }
}

TEST(tiff_leaves_min_is_white_as_stored) {
    settings s = { .width = 20, .height = 10, .bits = 8, .samples = 1, .photometric = PHOTOMETRIC_MINISWHITE };
    char     message[256];
    CHECK_MESSAGE(reads_as_stored(&s, "w", message), "%s", message);
}

TEST(tiff_palette_becomes_rgb) {
    for (int bits = 1; bits <= 8; bits *= 2) {
        settings   s = { .width = 300, .height = 10, .bits = bits, .samples = 1, .photometric = PHOTOMETRIC_PALETTE };
        char      *path = make_pages("palette.tif", "w", &s, 1);
        test_image out;
        CHECK(test_read_file(path, &out, NULL) == FV_OK);
        CHECK(out.type.image.ndim == 3 && out.type.image.shape[2] == 3 && out.type.image.dtype == FV_UINT8);
        for (int i = 0; i < 3000; i++) {
            int      index = (int)sample_of(&s, i / 300, i % 300, 0);
            uint8_t *pixel = (uint8_t *)out.data + 3 * i;
            CHECK(pixel[0] == index && pixel[1] == 255 - index && pixel[2] == (index * 7 & 255));
        }
        test_image_free(&out);
        free(path);
    }
}

TEST(tiff_reads_jpeg_and_ycbcr_as_rgb) {
    for (int tile = 0; tile < 32; tile += 16) {
        settings   s = { .width = 64,
                         .height = 48,
                         .bits = 8,
                         .samples = 3,
                         .photometric = PHOTOMETRIC_YCBCR,
                         .compression = COMPRESSION_JPEG,
                         .tile = tile,
                         .rows = 16 };
        char      *path = make_pages("jpeg.tif", "w", &s, 1), message[256];
        test_image out;
        fv_error   error = { 0 };
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
        CHECK(out.type.image.ndim == 3 && out.type.image.shape[2] == 3);
        CHECK_MESSAGE(test_regions_equal_crops(path, 10, 4, message), "%s", message);
        test_image_free(&out);
        free(path);
    }
}

TEST(tiff_reads_half_floats) {
    char    *path = in_folder("half.tif");
    TIFF    *tif = TIFFOpen(path, "w");
    uint16_t values[4] = { 0x3c00, 0xc000, 0x0001, 0x7bff };
    TIFFSetField(tif, TIFFTAG_IMAGEWIDTH, 2);
    TIFFSetField(tif, TIFFTAG_IMAGELENGTH, 2);
    TIFFSetField(tif, TIFFTAG_BITSPERSAMPLE, 16);
    TIFFSetField(tif, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_IEEEFP);
    TIFFSetField(tif, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(tif, TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE);
    TIFFWriteEncodedStrip(tif, 0, values, sizeof values);
    TIFFClose(tif);
    test_image out;
    CHECK(test_read_file(path, &out, NULL) == FV_OK);
    float *f = out.data;
    CHECK(f[0] == 1 && f[1] == -2 && f[2] == 0x1p-24f && f[3] == 65504);
    test_image_free(&out);
    free(path);
}

TEST(tiff_pages_of_one_kind_are_a_stack_and_others_are_passed_over) {
    settings page = { .width = 20, .height = 10, .bits = 16, .samples = 1, .photometric = PHOTOMETRIC_MINISBLACK }, small = page,
             thumb = page, packed = page;
    small.width = 7;
    thumb.reduced = true;
    packed.compression = COMPRESSION_LZW;
    packed.tile = 16;
    settings   pages[] = { thumb, page, small, packed, thumb, page };
    char      *path = make_pages("pages.tif", "w", pages, 6), message[256];
    test_image out;
    fv_error   error = { 0 };
    CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
    CHECK(out.type.image.ndim == 3 && out.type.image.shape[0] == 3 && !strcmp(out.type.image.axis[0], "z"));
    for (int i = 0; i < 600; i++) CHECK_INT(((uint16_t *)out.data)[i], sample_of(&page, i % 200 / 20, i % 20, 0));
    CHECK_MESSAGE(test_regions_equal_crops(path, 20, 4, message), "%s", message);
    test_image_free(&out);
    char *inside = fv__sprintf("%s::2", path);
    CHECK_MESSAGE(test_read_file(inside, &out, &error) == FV_OK, "%s", error.message);
    CHECK(out.type.image.ndim == 2 && out.type.image.shape[1] == 7);
    test_image_free(&out);
    free(inside);
    inside = fv__sprintf("%s::6", path);
    CHECK_INT(test_read_file(inside, &out, &error), FV_ERROR_INPUT);
    CHECK(strstr(error.message, "no page 6"));
    free(inside);
    free(path);
}

TEST(tiff_understands_imagej_and_ome) {
    settings page = { .width = 4, .height = 3, .bits = 8, .samples = 1, .photometric = PHOTOMETRIC_MINISBLACK }, pages[12];
    static const char *const texts[] = {
        "ImageJ=1.53t\nimages=12\nchannels=2\nslices=3\nframes=2\nhyperstack=true\nunit=\\u00B5m\nspacing=0.5\nfinterval=3.5\n",
        "<?xml version=\"1.0\"?><OME><Image><Pixels DimensionOrder=\"XYZCT\" SizeC=\"2\" SizeT=\"2\" SizeX=\"4\" SizeY=\"3\" "
        "SizeZ=\"3\" "
        "PhysicalSizeX=\"0.25\" PhysicalSizeY=\"0.25\" PhysicalSizeZ=\"500\" PhysicalSizeZUnit=\"nm\" "
        "Type=\"uint8\"/></Image></OME>",
    };
    static const char *const axes[] = { "tzcyx", "tczyx" };
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 12; i++) pages[i] = page;
        pages[0].description = texts[k];
        char      *path = make_pages("described.tif", "w", pages, 12);
        test_image out;
        CHECK(test_read_file(path, &out, NULL) == FV_OK);
        fv_image_type *type = &out.type.image;
        CHECK_INT(type->ndim, 5);
        for (int d = 0; d < 5; d++) CHECK_INT(type->axis[d][0], axes[k][d]);
        int z = k ? 2 : 1;
        CHECK(type->shape[z] == 3 && type->shape[0] == 2);
        CHECK(type->spacing[z] == (k ? 500 : 0.5));
        CHECK_TEXT(type->unit[z], k ? "nanometer" : "micrometer");
        if (k)
            CHECK(type->spacing[4] == 0.25);
        else
            CHECK(type->spacing[0] == 3.5);
        test_image_free(&out);
        free(path);
    }
}

TEST(tiff_reads_imagej_stacks_under_one_directory) {
    settings page = { .width = 20,
                      .height = 10,
                      .bits = 8,
                      .samples = 1,
                      .photometric = PHOTOMETRIC_MINISBLACK,
                      .description = "ImageJ=1.53t\nimages=4\nslices=4\n" };
    char    *path = make_pages("single.tif", "w", &page, 1), message[256];
    /* libtiff puts the pixels at byte 8 and the directory behind them: move the directory to the end of a longer file. */
    fv_bytes file = { 0 }, longer = { 0 };
    CHECK(fv__file_read_all(path, 100000, &file, NULL) == FV_OK);
    uint32_t first;
    memcpy(&first, file.data + 4, 4);
    CHECK_INT(first, 8 + 200);
    fv__bytes_append(&longer, file.data, file.size);
    uint64_t state = 1;
    /* Here the other planes overwrite nothing only if the directory stays in front of them, so put pixels last. */
    uint32_t start = (uint32_t)longer.size;
    for (int i = 0; i < 800; i++) fv__bytes_append(&longer, (uint8_t[]){ (uint8_t)test_random(&state) }, 1);
    uint16_t entries;
    memcpy(&entries, longer.data + first, 2);
    for (int i = 0; i < entries; i++) {
        uint8_t *entry = longer.data + first + 2 + 12 * i;
        uint16_t tag;
        memcpy(&tag, entry, 2);
        if (tag == TIFFTAG_STRIPOFFSETS) {
            memcpy(entry + 2, (uint16_t[]){ TIFF_LONG }, 2);
            memcpy(entry + 8, &start, 4);
        }
    }
    CHECK(fv__file_write_all(path, longer.data, longer.size, false, NULL) == FV_OK);
    test_image out;
    CHECK(test_read_file(path, &out, NULL) == FV_OK);
    CHECK(out.type.image.ndim == 3 && out.type.image.shape[0] == 4);
    CHECK(!memcmp(out.data, longer.data + start, 800));
    CHECK_MESSAGE(test_regions_equal_crops(path, 20, 4, message), "%s", message);
    test_image_free(&out);
    fv__bytes_release(&file);
    fv__bytes_release(&longer);
    free(path);
}

/* ---------------------------------------------------------------- others */

TEST(tiff_files_open_in_libtiff) {
    test_image in = image_of(FV_UINT8, "zyxc", (int64_t[]){ 3, 50, 60, 3 });
    char      *path = in_folder("peer.tif");
    for (int k = 0; k < 3; k++) {
        CHECK(test_write_file(path, &in,
                              &(fv_write_options){
                                  .chunk = { 16, k == 2 ? 32 : 60 }, .chunk_ndim = 2, .compression = k ? "deflate" : "none" },
                              0, NULL) == FV_OK);
        TIFF    *tif = TIFFOpen(path, "r");
        uint32_t raster[3000];
        for (int page = 0; page < 3; page++) {
            CHECK(TIFFSetDirectory(tif, (tdir_t)page) && TIFFReadRGBAImageOriented(tif, 60, 50, raster, ORIENTATION_TOPLEFT, 1));
            for (int i = 0; i < 3000; i++) {
                const uint8_t *pixel = (uint8_t *)in.data + (page * 3000 + i) * 3;
                CHECK(TIFFGetR(raster[i]) == pixel[0] && TIFFGetG(raster[i]) == pixel[1] && TIFFGetB(raster[i]) == pixel[2]);
            }
        }
        CHECK(TIFFLastDirectory(tif));
        TIFFClose(tif);
    }
    test_image_free(&in);
    free(path);
}

typedef struct {
    fv_reader        *reader;
    const test_image *whole;
    uint64_t          seed;
    bool              same;
} reading;

static void *read_many(void *argument) {
    reading       *r = argument;
    fv_image_type *type = &r->reader->type;
    r->same = true;
    for (int i = 0; i < 60 && r->same; i++) {
        fv_region region = fv__region_whole(type);
        for (int d = 0; d < type->ndim; d++) {
            region.start[d] = (int64_t)(test_random(&r->seed) % (uint64_t)type->shape[d]);
            region.size[d] = 1 + (int64_t)(test_random(&r->seed) % (uint64_t)(type->shape[d] - region.start[d]));
        }
        test_image crop;
        if (test_read_region(r->reader, &region, &crop, NULL) != FV_OK) {
            r->same = false;
            break;
        }
        fv_region all = fv__region_whole(type);
        fv_block  from, to;
        fv__block_init(&from, type->dtype, &all, r->whole->data);
        void *expected = fv__alloc((size_t)fv__region_voxels(&region) * 2);
        fv__block_init(&to, type->dtype, &region, expected);
        fv__block_copy(&to, &from);
        r->same = !memcmp(expected, crop.data, (size_t)fv__region_voxels(&region) * 2);
        free(expected);
        test_image_free(&crop);
    }
    return NULL;
}

TEST(tiff_readers_serve_several_threads) {
    static const char *const compressions[] = { "deflate", "none" };
    test_image               in = image_of(FV_UINT16, "zyx", (int64_t[]){ 6, 120, 130 });
    char                    *path = in_folder("threads.tif");
    for (int k = 0; k < 2; k++) {
        CHECK(test_write_file(path, &in,
                              &(fv_write_options){ .chunk = { 32, 48 }, .chunk_ndim = 2, .compression = compressions[k] }, 0,
                              NULL) == FV_OK);
        fv_reader *reader;
        CHECK(fv_format_tiff.open(path, NULL, &reader, NULL) == FV_OK);
        pthread_t threads[4];
        reading   readings[4];
        for (int i = 0; i < 4; i++) {
            readings[i] = (reading){ reader, &in, (uint64_t)i + 1, false };
            pthread_create(&threads[i], NULL, read_many, &readings[i]);
        }
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        for (int i = 0; i < 4; i++) CHECK(readings[i].same);
        fv_format_tiff.close(reader);
    }
    test_image_free(&in);
    free(path);
}

/* ---------------------------------------------------------------- damage */

TEST(tiff_survives_damage) {
    static const char *const compressions[] = { "deflate", "zstd", "lzw", "none" };
    char                     message[256], *path = in_folder("whole.tif");
    for (int c = 0; c < 4; c++) {
        test_image in = image_of(FV_UINT8, "zyx", (int64_t[]){ 2, 18, 20 });
        CHECK(test_write_file(
                  path, &in,
                  &(fv_write_options){ .compression = compressions[c], .chunk = { 16, c % 2 ? 16 : 20 }, .chunk_ndim = 2 }, 0,
                  NULL) == FV_OK);
        CHECK_MESSAGE(test_survives_damage(path, "tif", 300, 1000, 6, message), "%s", message);
        test_image_free(&in);
    }
    free(path);
    settings kinds[] = {
        { .width = 33,
          .height = 20,
          .bits = 4,
          .samples = 1,
          .photometric = PHOTOMETRIC_PALETTE,
          .compression = COMPRESSION_PACKBITS },
        { .width = 33,
          .height = 20,
          .bits = 8,
          .samples = 3,
          .photometric = PHOTOMETRIC_YCBCR,
          .compression = COMPRESSION_JPEG,
          .tile = 16 },
        { .width = 33,
          .height = 20,
          .bits = 1,
          .samples = 1,
          .photometric = PHOTOMETRIC_MINISWHITE,
          .compression = COMPRESSION_CCITTFAX4 },
        { .width = 33, .height = 20, .bits = 12, .samples = 3, .photometric = PHOTOMETRIC_RGB, .planar = PLANARCONFIG_SEPARATE },
    };
    for (int k = 0; k < FV_COUNT(kinds); k++) {
        path = make_pages("kind.tif", "w", &kinds[k], 1);
        CHECK_MESSAGE(test_survives_damage(path, "tif", 300, 1000, 6, message), "%s", message);
        free(path);
    }
}

/* Reads every file of a folder; each gives an image or a message that names it, in good time. */
static double used_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

static bool reads_folder(const char *folder, bool all, char message[256]) {
    DIR           *dir = opendir(folder);
    struct dirent *entry;
    bool           good = dir != NULL;
    while (good && (entry = readdir(dir))) {
        char      *path = fv__sprintf("%s/%s", folder, entry->d_name);
        test_image out;
        fv_error   error = { 0 };
        double     start = used_seconds();
        if (fv__path_has_extension(path, "tif") || fv__path_has_extension(path, "tiff")) {
            fv_status status = test_read_file(path, &out, &error);
            if (status == FV_OK) test_image_free(&out);
            if (status == FV_OK && !fv__path_has_extension(path, "g4-multi.tiff"))
                good = test_regions_equal_crops(path, 3, 8, message);
            if (status != FV_OK && (all || !strstr(error.message, entry->d_name))) {
                snprintf(message, 256, "%.250s", error.message);
                good = false;
            }
            if (used_seconds() - start > 10) {
                snprintf(message, 256, "%.200s took %.0f s of processor time", entry->d_name, used_seconds() - start);
                good = false;
            }
        }
        free(path);
    }
    if (dir) closedir(dir);
    return good;
}

TEST(tiff_reads_all_real_files) {
    if (!test_data()) SKIP("no real data here");
    char *tiff = fv__sprintf("%s/tiff", test_data()), *images = fv__sprintf("%s/images", test_data()), message[256] = "";
    CHECK_MESSAGE(reads_folder(tiff, true, message), "%s", message);
    CHECK_MESSAGE(reads_folder(images, true, message), "%s", message);
    free(tiff);
    free(images);
}

TEST(tiff_survives_malformed_files) {
    if (!test_data()) SKIP("no real data here");
    char *folder = fv__sprintf("%s/malformed", test_data()), message[256] = "";
    CHECK_MESSAGE(reads_folder(folder, false, message), "%s", message);
    free(folder);
}

TEST_MAIN
