/* Formats that are a header and voxels: MRC, NRRD, MetaImage, PNM, raw and their compressed forms, each by the same table. */
#include "support/format.h"
#include "support/test.h"
#include <math.h>

static char *in_folder(const char *name) { return fv__sprintf("%s/%s", test_folder(), name); }

/* One way of writing: extension, compression, types that come back as they are, shapes that it takes. */
typedef struct {
    const char *extension, *compression;
    uint32_t    dtypes;
    int         least, most; /* axes */
} way;

#define BIT(dtype) (1u << (dtype))
#define INTEGERS                                                                                                                 \
    (BIT(FV_UINT8) | BIT(FV_INT8) | BIT(FV_UINT16) | BIT(FV_INT16) | BIT(FV_UINT32) | BIT(FV_INT32) | BIT(FV_UINT64) |           \
     BIT(FV_INT64))
#define REALS (BIT(FV_FLOAT32) | BIT(FV_FLOAT64))
#define COMPLEX (BIT(FV_COMPLEX64) | BIT(FV_COMPLEX128))
#define SOME (BIT(FV_UINT8) | BIT(FV_FLOAT32)) /* of formats whose files are synced one by one, which takes time */
#define MRC (BIT(FV_INT8) | BIT(FV_INT16) | BIT(FV_UINT16) | BIT(FV_FLOAT32) | BIT(FV_COMPLEX64))

static const way ways[] = {
    { "mrc", NULL, MRC, 2, 3 },
    { "rec.gz", NULL, MRC, 2, 3 },
    { "nrrd", NULL, INTEGERS | REALS | COMPLEX, 1, 6 },
    { "nrrd", "gzip", INTEGERS | REALS | COMPLEX, 1, 6 },
    { "mha", NULL, INTEGERS | REALS, 1, 6 },
    { "mhd", NULL, SOME, 1, 6 },
    { "mhd", "gzip", SOME, 1, 6 },
    { "nhdr", NULL, SOME | BIT(FV_COMPLEX64), 1, 6 },
    { "nhdr", "gzip", SOME, 1, 6 },
    { "npz", NULL, BIT(FV_BOOL) | INTEGERS | REALS | COMPLEX, 1, 6 },
    { "vti", NULL, INTEGERS | REALS, 2, 3 },
    { "vti", "zlib", INTEGERS | REALS, 2, 3 },
    { "pvti", NULL, SOME, 2, 3 },
    { "mha", "gzip", INTEGERS | REALS, 1, 6 },
    { "pgm", NULL, BIT(FV_UINT8) | BIT(FV_UINT16), 2, 2 },
};

TEST(compressed_vti_has_blocks_of_one_size_whatever_the_shape) {
    static const int64_t shapes[][3] = { { 3, 1021, 1031 }, { 2, 3000, 700 }, { 40, 64, 1000 }, { 1, 2500, 900 } };
    fv_write_options     options = { .compression = "zlib" };
    for (int i = 0; i < FV_COUNT(shapes); i++) {
        test_image in = test_image_new(FV_UINT8, 3, shapes[i]), out;
        fv_error   error = { 0 };
        char       message[256];
        char      *path = in_folder("blocks.vti");
        test_image_random_any(&in, 3);
        CHECK_MESSAGE(test_write_file(path, &in, &options, 0, &error) == FV_OK, "%s", error.message);
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
        CHECK(!memcmp(in.data, out.data, (size_t)fv_image_type_bytes(&in.type.image)));
        CHECK_MESSAGE(test_regions_equal_crops(path, 3, 5, message), "%s", message);
        test_image_free(&in);
        test_image_free(&out);
        free(path);
    }
}

TEST(every_way_keeps_every_voxel_type_shape_and_region) {
    static const int64_t shape[] = { 2, 3, 2, 5, 11, 7 };
    for (int w = 0; w < FV_COUNT(ways); w++)
        for (int dtype = 0; dtype < FV_DTYPES; dtype++)
            for (int ndim = ways[w].least; ndim <= ways[w].most; ndim++) {
                if (!(ways[w].dtypes >> dtype & 1)) continue;
                test_image       in = test_image_new((fv_dtype)dtype, ndim, shape + FV_MAX_DIMS - ndim), out;
                fv_error         error = { 0 };
                char             message[256], name[64];
                fv_write_options options = { .compression = ways[w].compression };
                snprintf(name, sizeof name, "a.%s", ways[w].extension);
                char *path = in_folder(name), *shuffled = fv__sprintf("%s/b.%s", test_folder(), ways[w].extension);
                test_image_random_any(&in, (uint64_t)(dtype * 7 + ndim));
                CHECK_MESSAGE(test_write_file(path, &in, &options, 0, &error) == FV_OK, "%s", error.message);
                CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
                CHECK_MESSAGE(test_same_pixels(&in, &out), "%s %s, %d axes", name, fv_dtype_name((fv_dtype)dtype), ndim);
                for (int d = 0; d < ndim && ndim <= 3; d++) CHECK_TEXT(out.type.image.axis[d], in.type.image.axis[d]);
                CHECK_MESSAGE(test_regions_equal_crops(path, 10, 5, message), "%s: %s", name, message);
                CHECK_MESSAGE(test_write_file(shuffled, &in, &options, 11, &error) == FV_OK, "%s", error.message);
                if (fv__format_in_parts(path)) /* the headers name different folders */
                    CHECK_MESSAGE(test_regions_equal_crops(shuffled, 3, 7, message), "%s: %s", name, message);
                else
                    CHECK(test_same_files(path, shuffled));
                test_image_free(&in);
                test_image_free(&out);
                free(path);
                free(shuffled);
            }
}

TEST(spacing_origin_and_units_come_back) {
    static const struct {
        const char *extension;
        bool        units;
    } kept[] = { { "mrc", true }, { "nrrd", true }, { "mha", false } };
    for (int k = 0; k < FV_COUNT(kept); k++) {
        test_image in = test_image_new(FV_FLOAT32, 3, (int64_t[]){ 3, 4, 5 }), out;
        char      *path = fv__sprintf("%s/geometry.%s", test_folder(), kept[k].extension);
        for (int d = 0; d < 3; d++) {
            in.type.image.spacing[d] = 1.5 + d;
            in.type.image.origin[d] = 10 * d - 4;
            strcpy(in.type.image.unit[d], "angstrom");
        }
        fv_error error = { 0 };
        CHECK_MESSAGE(test_write_file(path, &in, NULL, 0, &error) == FV_OK, "%s", error.message);
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
        CHECK(!out.type.image.has_affine);
        for (int d = 0; d < 3; d++) {
            CHECK_MESSAGE(fabs(out.type.image.spacing[d] - in.type.image.spacing[d]) < 1e-6, "%s: %g", path,
                          out.type.image.spacing[d]);
            CHECK_MESSAGE(fabs(out.type.image.origin[d] - in.type.image.origin[d]) < 1e-6, "%s: %g", path,
                          out.type.image.origin[d]);
            if (kept[k].units) CHECK_TEXT(out.type.image.unit[d], "angstrom");
        }
        test_image_free(&in);
        test_image_free(&out);
        free(path);
    }
}

TEST(the_voxel_to_world_matrix_comes_back) {
    static const char *const extensions[] = { "nrrd", "mha", "nii" };
    static const double      affine[] = { 0, -2, 0, 7, 1.5, 0, 0, -3, 0, 0, 4, 11 };
    for (int k = 0; k < FV_COUNT(extensions); k++) {
        test_image in = test_image_new(FV_INT16, 3, (int64_t[]){ 3, 4, 5 }), out;
        char      *path = fv__sprintf("%s/world.%s", test_folder(), extensions[k]);
        fv_error   error = { 0 };
        in.type.image.has_affine = true;
        in.type.image.affine_code = 1;
        memcpy(in.type.image.affine, affine, sizeof affine);
        in.type.image.spacing[0] = 4, in.type.image.spacing[1] = 2, in.type.image.spacing[2] = 1.5;
        CHECK_MESSAGE(test_write_file(path, &in, NULL, 0, &error) == FV_OK, "%s", error.message);
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
        CHECK_MESSAGE(out.type.image.has_affine, "%s", path);
        for (int i = 0; i < 12; i++)
            CHECK_MESSAGE(fabs(out.type.image.affine[i] - affine[i]) < 1e-6, "%s: %d is %g", path, i, out.type.image.affine[i]);
        for (int d = 0; d < 3; d++) CHECK(fabs(out.type.image.spacing[d] - in.type.image.spacing[d]) < 1e-6);
        test_image_free(&in);
        test_image_free(&out);
        free(path);
    }
}

TEST(colours_are_an_axis_of_their_own) {
    static const char *const extensions[] = { "nrrd", "mha", "ppm", "vti" };
    for (int k = 0; k < FV_COUNT(extensions); k++) {
        test_image in = test_image_new(FV_UINT8, 3, (int64_t[]){ 6, 5, 3 }), out;
        char      *path = fv__sprintf("%s/colour.%s", test_folder(), extensions[k]);
        fv_error   error = { 0 };
        for (int d = 0; d < 3; d++) snprintf(in.type.image.axis[d], 8, "%c", "yxc"[d]);
        test_image_random_any(&in, 3);
        CHECK_MESSAGE(test_write_file(path, &in, NULL, 0, &error) == FV_OK, "%s", error.message);
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
        CHECK(test_same_pixels(&in, &out));
        for (int d = 0; d < 3; d++) CHECK_TEXT(out.type.image.axis[d], in.type.image.axis[d]);
        test_image_free(&in);
        test_image_free(&out);
        free(path);
    }
}

/* ---------------------------------------------------------------- files made by hand */

static char *make(const char *name, const void *data, size_t size) {
    char *path = in_folder(name);
    if (fv__file_write_all(path, data, size, false, NULL) != FV_OK) abort();
    return path;
}

static fv_status open_file(const char *path, fv_reader **reader, fv_error *error) {
    const fv_format *format;
    FV_TRY(fv__format_for_reading(path, &format, error));
    return format->open(path, NULL, reader, error);
}

TEST(text_and_bitmaps_of_pnm_are_read) {
    static const struct {
        const char *text;
        uint8_t     values[6];
    } cases[] = {
        { "P2\n# a comment\n3 2 9\n1 2 3\n4 5 6\n", { 1, 2, 3, 4, 5, 6 } },
        { "P1 3 2 101 0 1 1", { 1, 0, 1, 0, 1, 1 } },
        { "P4\n3 2\n\xa0\x60", { 1, 0, 1, 0, 1, 1 } },
        { "P5 3 2 7 \1\2\3\4\5\6", { 1, 2, 3, 4, 5, 6 } },
    };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        char      *path = make("small.pnm", cases[i].text, strlen(cases[i].text));
        test_image out;
        fv_error   error = { 0 };
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%d: %s", i, error.message);
        CHECK_INT(out.type.image.shape[0], 2);
        CHECK_INT(out.type.image.shape[1], 3);
        CHECK_MESSAGE(!memcmp(out.data, cases[i].values, 6), "case %d", i);
        test_image_free(&out);
        free(path);
    }
}

TEST(headers_apart_from_their_voxels_are_read) {
    static const uint8_t voxels[] = { 9, 9, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6 }; /* big-endian behind two bytes to skip */
    static const struct {
        const char *name, *text;
    } headers[] = {
        { "apart.nhdr", "NRRD0004\ntype: short\ndimension: 2\nsizes: 3 2\nendian: big\nencoding: raw\nbyte skip: 2\n"
                        "data file: apart.bin\n" },
        { "apart.mhd", "ObjectType = Image\nNDims = 2\nBinaryData = True\nElementByteOrderMSB = True\nHeaderSize = -1\n"
                       "DimSize = 3 2\nElementType = MET_SHORT\nElementDataFile = apart.bin\n" },
    };
    free(make("apart.bin", voxels, sizeof voxels));
    for (int i = 0; i < FV_COUNT(headers); i++) {
        char      *path = make(headers[i].name, headers[i].text, strlen(headers[i].text));
        test_image out;
        fv_error   error = { 0 };
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
        for (int k = 0; k < 6; k++) CHECK_INT(((int16_t *)out.data)[k], k + 1);
        test_image_free(&out);
        free(path);
    }
}

/* A small MRC file in memory. */
static void put_mrc(fv_bytes *file, bool swapped, int mode, const char *exttyp, const void *extended, int32_t size, int nint,
                    int nreal, int nz) {
    int32_t words[256] = { 2, 1, nz, mode };
    words[7] = 2, words[8] = 1, words[9] = nz;
    ((float *)words)[10] = 5, ((float *)words)[11] = 7, ((float *)words)[12] = 11;
    words[16] = 1, words[17] = 2, words[18] = 3;
    words[23] = size;
    for (int i = 0; swapped && i < 56; i++) words[i] = (int32_t)__builtin_bswap32((uint32_t)words[i]);
    memcpy(&words[26], exttyp, 4);
    int16_t counts[] = { (int16_t)nint, (int16_t)nreal };
    for (int i = 0; swapped && i < 2; i++) counts[i] = (int16_t)__builtin_bswap16((uint16_t)counts[i]);
    memcpy(&words[32], counts, 4);
    memcpy(&words[52], "MAP ", 4);
    fv__bytes_clear(file);
    fv__bytes_append(file, words, sizeof words);
    fv__bytes_append(file, extended, (size_t)size);
}

TEST(mrc_reads_both_byte_orders_half_floats_and_the_voxel_size) {
    fv_bytes file = { 0 };
    for (int swapped = 0; swapped < 2; swapped++) {
        put_mrc(&file, swapped, 12, "    ", NULL, 0, 0, 0, 2);
        static const uint16_t halves[] = { 0x3c00, 0xc000, 0x0001, 0x7bff }; /* 1, -2, 2^-24, 65504 */
        for (int i = 0; i < 4; i++) {
            uint16_t half = swapped ? __builtin_bswap16(halves[i]) : halves[i];
            fv__bytes_append(&file, &half, 2);
        }
        char      *path = make("half.mrc", file.data, file.size);
        test_image out;
        fv_error   error = { 0 };
        CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
        float *v = out.data;
        CHECK(v[0] == 1 && v[1] == -2 && v[2] == 0x1p-24f && v[3] == 65504);
        CHECK(out.type.image.spacing[0] == 5.5 && out.type.image.spacing[1] == 7 && out.type.image.spacing[2] == 2.5);
        CHECK_TEXT(out.type.image.unit[0], "angstrom");
        test_image_free(&out);
        free(path);
    }
    fv__bytes_release(&file);
}

static bool has_angles(const char *path, const char *words) {
    fv_reader *reader;
    fv_error   error = { 0 };
    if (open_file(path, &reader, &error) != FV_OK) return false;
    char *facts = fv__sprintf("%.*s", (int)reader->facts.size, (char *)reader->facts.data);
    bool  good = strstr(facts, words) && !strcmp(reader->type.axis[0], "angle");
    if (!good) printf("# %s: %s\n", reader->type.axis[0], facts);
    free(facts);
    reader->format->close(reader);
    return good;
}

TEST(mrc_finds_tilt_angles_in_extended_headers_and_beside_the_file) {
    fv_bytes file = { 0 };
    int16_t  serial[] = { -6000, 7, 0, 7, 6000, 7 };
    float    agard[] = { -60, 1, 0, 1, 60, 1 };
    uint8_t  fei[3 * 768] = { 0 };
    for (int i = 0; i < 3; i++) memcpy(fei + i * 768 + 100, &(double){ 60.0 * (i - 1) }, 8);
    static const uint8_t voxels[6] = { 1, 2, 3, 4, 5, 6 };
    struct {
        const char *kind;
        const void *data;
        int         size, nint, nreal;
    } cases[] = { { "SERI", serial, sizeof serial, 4, 3 },
                  { "AGAR", agard, sizeof agard, 0, 2 },
                  { "FEI1", fei, sizeof fei, 0, 0 } };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        put_mrc(&file, false, 0, cases[i].kind, cases[i].data, cases[i].size, cases[i].nint, cases[i].nreal, 3);
        fv__bytes_append(&file, voxels, sizeof voxels);
        char *path = make("series.st", file.data, file.size);
        CHECK_MESSAGE(has_angles(path, "tilt angles: 3 from extended header: -60 0 60"), "%s", cases[i].kind);
        free(path);
    }
    put_mrc(&file, false, 0, "    ", NULL, 0, 0, 0, 3);
    fv__bytes_append(&file, voxels, sizeof voxels);
    char             *path = make("other.mrc", file.data, file.size);
    static const char mdoc[] = "PixelSpacing = 2\n[ZValue = 0]\nTiltAngle = -30.5\n[ZValue = 1]\nTiltAngle = 0\n[ZValue = 2]\n"
                               "TiltAngle = 30.5\n";
    free(make("other.mrc.mdoc", mdoc, strlen(mdoc)));
    CHECK(has_angles(path, "tilt angles: 3 from other.mrc.mdoc: -30.5 0 30.5"));
    free(make("other.rawtlt", "-2\n 0.00\n 2\n", 12));
    CHECK(has_angles(path, "tilt angles: 3 from other.rawtlt: -2 0 2"));
    free(path);
    fv__bytes_release(&file);
}

TEST(raw_files_take_shape_and_type_from_the_name_or_from_options) {
    uint8_t          bytes[50];
    const fv_format *format;
    fv_reader       *reader;
    fv_error         error = { 0 };
    for (int i = 0; i < 50; i++) bytes[i] = (uint8_t)i;
    char *named = make("scan_3x4x2_uint16.raw", bytes, 48), *bare = make("scan.raw", bytes, 50);
    CHECK(fv__format_for_reading(named, &format, &error) == FV_OK);
    CHECK_MESSAGE(format->open(named, NULL, &reader, &error) == FV_OK, "%s", error.message);
    CHECK_INT(reader->type.shape[1], 4);
    CHECK_INT(reader->type.dtype, FV_UINT16);
    format->close(reader);
    CHECK(format->open(bare, NULL, &reader, &error) == FV_ERROR_USAGE && strstr(error.message, "shape = ["));
    fv_read_options options = { .ndim = 2, .shape = { 6, 8 }, .has_dtype = true, .dtype = FV_UINT8, .offset = 2 };
    CHECK_MESSAGE(format->open(bare, &options, &reader, &error) == FV_OK, "%s", error.message);
    test_image crop;
    fv_region  region = { 2, { 1, 2 }, { 2, 3 } };
    CHECK_MESSAGE(test_read_region(reader, &region, &crop, &error) == FV_OK, "%s", error.message);
    CHECK_INT(((uint8_t *)crop.data)[3], 2 + 2 * 8 + 2);
    test_image_free(&crop);
    format->close(reader);
    options.shape[0] = 7;
    CHECK(format->open(bare, &options, &reader, &error) == FV_ERROR_INPUT && strstr(error.message, "too short"));
    options.shape[0] = (int64_t)1 << 62;
    CHECK(format->open(bare, &options, &reader, &error) != FV_OK);
    free(named);
    free(bare);
}

/* ---------------------------------------------------------------- damage */

TEST(every_way_survives_damage) {
    for (int w = 0; w < FV_COUNT(ways); w++) {
        test_image       in = test_image_new(FV_UINT16, FV_MAX(ways[w].least, 2), (int64_t[]){ 9, 11 });
        fv_write_options options = { .compression = ways[w].compression };
        fv_error         error = { 0 };
        char             message[256], *path = fv__sprintf("%s/damage.%s", test_folder(), ways[w].extension);
        test_image_random_any(&in, 4);
        CHECK_MESSAGE(test_write_file(path, &in, &options, 0, &error) == FV_OK, "%s", error.message);
        CHECK_MESSAGE(test_survives_damage(path, ways[w].extension, 60, 400, (uint64_t)w, message), "%s: %s", ways[w].extension,
                      message);
        test_image_free(&in);
        free(path);
    }
}

TEST(headers_that_cannot_be_true_are_refused_by_name) {
    static const struct {
        const char *name, *text, *words;
    } cases[] = {
        { "a.nrrd", "NRRD0004\ntype: float\ndimension: 3\nsizes: 100000 100000 100000\nencoding: raw\n\nx", "ends early" },
        { "b.nrrd", "NRRD0004\ntype: float\ndimension: 3\nsizes: -4 4 4\nencoding: raw\n\nx", "sizes" },
        { "c.nrrd", "NRRD0004\ntype: block\ndimension: 3\nsizes: 4 4 4\nencoding: raw\n\nx", "type" },
        { "d.nrrd", "NRRD0004\ndimension: 99\n\n", "dimension" },
        { "e.nrrd", "NRRD0004\ntype: float\ndimension: 1\nsizes: 4\nencoding: bzip2\n\nx", "encoding" },
        { "f.nrrd", "nothing", "not an NRRD file" },
        { "g.nrrd", "NRRD0004\ntype: float\nsizes: 4\n", "sizes" },
        { "h.nrrd", "NRRD0004\ntype: float\ndimension: 1\nsizes: 4\nbyte skip: -7\nencoding: raw\n\n0123456789abcdef",
          "byte skip" },
        { "a.mha",
          "ObjectType = Image\nNDims = 3\nDimSize = 100000 100000 100000\nElementType = MET_INT\nElementDataFile = LOCAL\nx",
          "ends early" },
        { "b.mha", "ObjectType = Image\nNDims = 3\nDimSize = 1 -1 1\nElementType = MET_INT\nElementDataFile = LOCAL\nx",
          "DimSize" },
        { "c.mha", "ObjectType = Image\nNDims = 3\nDimSize = 1 1\n", "DimSize" },
        { "d.mha", "ObjectType = Image\nNDims = 2\nDimSize = 1 1\nElementType = MET_STRING\n", "ElementType" },
        { "e.mha", "hello", "not a MetaImage file" },
        { "f.mha", "ObjectType = Image\nNDims = 1\nDimSize = 4\nElementType = MET_UCHAR\nElementDataFile = gone.raw\n",
          "gone.raw" },
        { "a.pgm", "P5\n100000000 10000000\n255\nx", "ends early" },
        { "b.pgm", "P5\n0 4\n255\n", "width" },
        { "c.pgm", "P7\n", "not a PGM" },
        { "d.pgm", "P2\n2 2\n9\n1 2 3", "ends early" },
        { "e.pgm", "P2\n2 2\n9\n1 2 3 77", "value 4" },
        { "f.mrc", "short", "ends early" },
        { "a.npz", "hello", "the end of a zip archive is missing" },
        { "b.npz", "PK\5\6xxxxxxxxxxxxxxxxxxxxxx", "its directory lies outside" },
        { "a.vti",
          "<VTKFile type=\"ImageData\"><ImageData WholeExtent=\"0 99999 0 99999 0 99999\"><PointData><DataArray "
          "type=\"Float32\" format=\"appended\"/></PointData></ImageData><AppendedData encoding=\"raw\">_x",
          "ends early" },
        { "b.vti", "<VTKFile type=\"ImageData\"><ImageData WholeExtent=\"0 -5 0 1 0 1\">", "WholeExtent" },
        { "c.vti", "<VTKFile type=\"PolyData\">", "type" },
        { "d.vti", "<VTKFile type=\"ImageData\" compressor=\"vtkBestDataCompressor\">", "compressor" },
        { "e.vti",
          "<VTKFile type=\"ImageData\"><ImageData WholeExtent=\"0 1 0 1 0 1\"><PointData><DataArray type=\"Float32\" "
          "format=\"runes\">1 2 3</DataArray>",
          "format" },
        { "f.vti", "no XML at all", "not a VTI file" },
        { "g.vti",
          "<VTKFile type=\"ImageData\"><ImageData WholeExtent=\"0 1 0 1 0 1\"><PointData><DataArray type=\"Float32\" "
          "format=\"appended\" offset=\"-9\"/></PointData><AppendedData encoding=\"raw\">_",
          "offset" },
        { "h.vti",
          "<VTKFile type=\"ImageData\"><ImageData WholeExtent=\"0 1 0 1 0 1\"><PointData><DataArray "
          "type=\"Int8\" format=\"ascii\">1 2 3 4 5 6 7</DataArray>",
          "7 of the 8 values" },
        { "i.vti",
          "<VTKFile type=\"ImageData\"><ImageData WholeExtent=\"0 1 0 1 0 1\"><PointData><DataArray "
          "type=\"Int8\" format=\"ascii\">1 2 3 4 5 6 7 8 9</DataArray>",
          "more than the 8 values" },
        { "j.vti",
          "<VTKFile type=\"ImageData\"><ImageData WholeExtent=\"0 1 0 1 0 1\"><PointData><DataArray "
          "type=\"Int8\" format=\"ascii\">1 2 3 400 5 6 7 8</DataArray>",
          "value 3" },
        { "k.vti",
          "<VTKFile type=\"ImageData\"><ImageData WholeExtent=\"0 99999 0 99999 0 99999\"><PointData><DataArray "
          "type=\"Float32\" format=\"ascii\">1 2 3 4</DataArray>",
          "ends early" },
        { "l.vti",
          "<VTKFile type=\"ImageData\"><ImageData WholeExtent=\"0 1 0 1 0 1\"><PointData><DataArray "
          "type=\"Int8\" format=\"binary\">CAAAA!ECAwQFBgcI</DataArray>",
          "base64" },
        { "m.vti",
          "<VTKFile type=\"ImageData\"><ImageData WholeExtent=\"0 1 0 1 0 1\"><PointData><DataArray "
          "type=\"Int8\" format=\"binary\">CAAAAAECAwQF</DataArray>",
          "ends early" },
        { "n.vti",
          "<VTKFile type=\"ImageData\"><ImageData WholeExtent=\"0 1 0 1 0 1\"><PointData><DataArray "
          "type=\"Int8\" format=\"binary\">CQAAAAECAwQFBgcI</DataArray>",
          "9 bytes" },
        { "o.vti",
          "<VTKFile type=\"ImageData\" compressor=\"vtkLZ4DataCompressor\"><ImageData WholeExtent=\"0 1 0 1 0 1\"><PointData>"
          "<DataArray type=\"Int8\" format=\"binary\">6AMAAAgAAAAAAAAABQAAAA==</DataArray>",
          "number of blocks" },
        { "a.pvti",
          "<VTKFile type=\"PImageData\"><PImageData WholeExtent=\"0 1 0 1 0 1\"><PPointData><PDataArray "
          "type=\"Int8\"/></PPointData><Piece Extent=\"0 9 0 1 0 1\" Source=\"x.vti\"/>",
          "Extent" },
        { "b.pvti", "<VTKFile type=\"PImageData\">", "not a PVTI file" },
        { "a.jpg", "\xff\xd8\xff nothing more", "a.jpg" },
        { "b.jpg", "GIF89a", "Not a JPEG file" },
    };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        char      *path = make(cases[i].name, cases[i].text, strlen(cases[i].text));
        fv_reader *reader;
        fv_error   error = { 0 };
        CHECK_MESSAGE(open_file(path, &reader, &error) != FV_OK, "%s was opened", cases[i].name);
        CHECK_MESSAGE(strstr(error.message, cases[i].words) &&
                          (strstr(error.message, cases[i].name) || strstr(error.message, "gone")),
                      "%s: \"%s\"", cases[i].name, error.message);
        free(path);
    }
}

TEST(deeply_nested_xml_is_only_long) {
    fv_bytes   text = { 0 };
    fv_reader *reader;
    fv_error   error = { 0 };
    fv__bytes_printf(&text, "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY b \"b\">]><!-- < > -->");
    for (int i = 0; i < 500000; i++) fv__bytes_append(&text, "<a>&b;", 6);
    char *path = make("deep.vti", text.data, text.size);
    CHECK(open_file(path, &reader, &error) == FV_ERROR_INPUT && strstr(error.message, "deep.vti: not a VTI file"));
    free(path);
    fv__bytes_release(&text);
}

TEST(mrc_names_what_is_wrong_with_a_header) {
    fv_bytes file = { 0 };
    put_mrc(&file, false, 3, "    ", NULL, 0, 0, 0, 3);
    static const struct {
        int         word;
        int32_t     value;
        const char *words;
    } cases[] = {
        { 3, 3, "mode 3" },           { 3, 101, "mode 101" },        { 2, 2000000000, "ends early" },
        { 0, -5, "not an MRC file" }, { 23, -1, "extended header" }, { 23, 1 << 30, "ends early" },
    };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        put_mrc(&file, false, 2, "    ", NULL, 0, 0, 0, 3);
        memcpy(file.data + 4 * cases[i].word, &cases[i].value, 4);
        char      *path = make("wrong.mrc", file.data, file.size);
        fv_reader *reader;
        fv_error   error = { 0 };
        CHECK(open_file(path, &reader, &error) != FV_OK);
        CHECK_MESSAGE(strstr(error.message, cases[i].words) && strstr(error.message, "wrong.mrc"), "\"%s\"", error.message);
        free(path);
    }
    fv__bytes_release(&file);
}

TEST(mrc_reads_a_real_map) {
    const char *data = test_data();
    if (!data) SKIP("no real files");
    char      *path = fv__sprintf("%s/mrc/EMD-3197.map", data), message[256];
    test_image out;
    fv_error   error = { 0 };
    CHECK_MESSAGE(test_read_file(path, &out, &error) == FV_OK, "%s", error.message);
    CHECK_INT(out.type.image.ndim, 3);
    CHECK(fabs(out.type.image.spacing[0] - 11.4) < 0.01);
    CHECK_MESSAGE(test_regions_equal_crops(path, 20, 7, message), "%s", message);
    test_image_free(&out);
    free(path);
}

TEST_MAIN
