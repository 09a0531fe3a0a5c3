/* Finding formats and sharing open readers. */
#include "op/format.h"
#include "support/test.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

static char *npy(const char *name, int width) { /* a file of 2 x width bytes */
    static fv_arena names;
    char           *path = fv__arena_printf(&names, "%s/%s", test_folder(), name), header[129];
    memset(header, ' ', 128);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    int n = snprintf(header + 10, 118, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, %d), }", width);
    header[10 + n] = ' ';
    header[127] = '\n';
    fv_bytes bytes = { 0 };
    fv__bytes_append(&bytes, header, 128);
    memset(fv__bytes_append(&bytes, NULL, 2 * (size_t)width), 7, 2 * (size_t)width);
    if (fv__file_write_all(path, bytes.data, bytes.size, false, NULL) != FV_OK) abort();
    fv__bytes_release(&bytes);
    return path;
}

static int open_files(void) {
    int  count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir)) count++;
    closedir(dir);
    return count;
}

TEST(a_format_is_found_by_extension_and_an_unknown_one_lists_those_known) {
    const fv_format *format;
    fv_error         error;
    CHECK_INT(fv__format_for_reading("a/b.NPY", &format, &error), FV_OK);
    CHECK_TEXT(format->name, "npy");
    CHECK_INT(fv__format_for_writing("x.unknown", &format, &error), FV_ERROR_USAGE);
    CHECK_MESSAGE(strstr(error.message, "x.unknown") && strstr(error.message, "npy"), "%s", error.message);
    CHECK_INT(fv__format_for_reading("no_extension", &format, &error), FV_ERROR_USAGE);
    CHECK(fv__table_format_for("t.csv") && !fv__table_format_for("t.unknown"));
}

TEST(a_reader_is_opened_anew_when_the_file_of_its_voxels_was_replaced) {
    static const char header[] = "NDims = 2\nDimSize = 3 2\nElementType = MET_UCHAR\nElementDataFile = v.raw\n";
    char             *path = fv__sprintf("%s/v.mhd", test_folder()), *voxels = fv__sprintf("%s/v.raw", test_folder());
    fv_reader        *reader;
    fv_hash           before;
    CHECK_INT(fv__file_write_all(path, header, sizeof header - 1, false, NULL), FV_OK);
    for (int round = 0; round < 2; round++) {
        uint8_t         data[6] = { 0 };
        fv_block        block;
        struct timespec times[2] = { { .tv_sec = 1000 + round }, { .tv_sec = 1000 + round } };
        CHECK_INT(fv__file_write_all(voxels, round ? "fghijk" : "abcdef", 6, false, NULL), FV_OK);
        CHECK_INT(utimensat(AT_FDCWD, voxels, times, 0), 0);
        CHECK_INT(fv__reader_acquire(path, NULL, &reader, NULL), FV_OK);
        fv_region whole = fv__region_whole(&reader->type);
        fv__block_init(&block, FV_UINT8, &whole, data);
        CHECK_INT(reader->format->read(reader, &block, NULL), FV_OK);
        CHECK_INT(data[5], round ? 'k' : 'f');
        CHECK(!round || memcmp(&before, &reader->header, sizeof before));
        before = reader->header;
        fv__reader_release(reader);
    }
    free(path);
    free(voxels);
}

TEST(a_file_without_a_known_extension_is_known_by_its_first_bytes) {
    static const struct {
        const char *name, *bytes;
        size_t      size;
    } files[] = {
        { "png", "\x89PNG\r\n\x1a\n....", 12 },
        { "tiff", "MM\0*....", 8 },
        { "tiff", "II+\0....", 8 },
    };
    const fv_format *format;
    char            *path = fv__sprintf("%s/scan.0001", test_folder());
    for (int i = 0; i < FV_COUNT(files); i++) {
        CHECK_INT(fv__file_write_all(path, files[i].bytes, files[i].size, false, NULL), FV_OK);
        CHECK_INT(fv__format_for_reading(path, &format, NULL), FV_OK);
        CHECK_TEXT(format->name, files[i].name);
        CHECK_INT(fv__format_for_writing(path, &format, NULL), FV_ERROR_USAGE);
    }
    CHECK_INT(fv__format_for_reading(npy("scan.0002", 3), &format, NULL), FV_OK);
    CHECK_TEXT(format->name, "npy");
    CHECK_INT(fv__file_write_all(path, "plain", 5, false, NULL), FV_OK);
    CHECK_INT(fv__format_for_reading(path, &format, NULL), FV_ERROR_USAGE);
    free(path);
}

TEST(a_file_is_opened_once_and_again_when_it_changed) {
    fv_reader *a, *b, *c;
    char      *path = npy("shared.npy", 5);
    CHECK_INT(fv__reader_acquire(path, NULL, &a, NULL), FV_OK);
    CHECK_INT(fv__reader_acquire(path, NULL, &b, NULL), FV_OK);
    CHECK(a == b && a->type.ndim == 2 && a->type.shape[1] == 5);
    npy("shared.npy", 6);
    CHECK_INT(fv__reader_acquire(path, NULL, &c, NULL), FV_OK);
    CHECK(c != a && c->type.shape[1] == 6);
    fv__reader_release(a);
    fv__reader_release(b);
    fv__reader_release(c);
    fv_error error;
    CHECK_INT(fv__reader_acquire("/no/such/file.npy", NULL, &a, &error), FV_ERROR_INPUT);
    CHECK(strstr(error.message, "/no/such/file.npy"));
}

TEST(idle_readers_are_closed_when_there_are_many) {
    int before = open_files();
    for (int i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof name, "many%d.npy", i);
        fv_reader *reader;
        CHECK_INT(fv__reader_acquire(npy(name, i + 1), NULL, &reader, NULL), FV_OK);
        CHECK_INT(reader->type.shape[1], i + 1);
        fv__reader_release(reader);
    }
    CHECK(open_files() <= before + 40);
}

static void *read_many(void *context) {
    uint64_t seed = (uint64_t)(uintptr_t)context;
    for (int i = 0; i < 500; i++) {
        int        k = (int)(test_random(&seed) % 60);
        char      *path = fv__sprintf("%s/thread%d.npy", test_folder(), k);
        fv_reader *reader;
        uint8_t    row[64];
        if (fv__reader_acquire(path, NULL, &reader, NULL) != FV_OK) return "open";
        fv_block  block;
        fv_region region = { 2, { 1, 0 }, { 1, k + 1 } };
        fv__block_init(&block, FV_UINT8, &region, row);
        if (reader->type.shape[1] != k + 1 || reader->format->read(reader, &block, NULL) != FV_OK || row[k] != 7) return "read";
        fv__reader_release(reader);
        free(path);
    }
    return NULL;
}

TEST(threads_share_readers) {
    pthread_t threads[4];
    for (int i = 0; i < 60; i++) {
        char name[32];
        snprintf(name, sizeof name, "thread%d.npy", i);
        npy(name, i + 1);
    }
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, read_many, (void *)(i + 1));
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        CHECK_MESSAGE(!wrong, "could not %s", (char *)wrong);
    }
}

TEST(a_compression_is_one_of_the_formats_own) {
    fv_format        format = { .name = "x", .compressions = "none|deflate|zstd" }, plain = { .name = "y" };
    fv_write_options options = { .compression = "zstd" };
    fv_error         error;
    int              index = 9;
    CHECK(fv__compression_choose(&format, NULL, &index, NULL) == FV_OK && index == 0);
    CHECK(fv__compression_choose(&format, &options, &index, NULL) == FV_OK && index == 2);
    options.compression = "def";
    CHECK_INT(fv__compression_choose(&format, &options, &index, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "compression = \"def\"") && strstr(error.message, "none|deflate|zstd"));
    CHECK_INT(fv__compression_choose(&plain, &options, &index, &error), FV_ERROR_USAGE);
}

TEST_MAIN
