/* The plug-in that holds DCMTK gives back what it takes, for whole files and for damaged ones. Runs of Fovea call it in children
 * that end without being looked at, so it is called here, in this process. */
#include "base/base.h"
#include "base/plugin.h"
#include "formats/dicom_plugin.h"
#include "support/test.h"
#include <malloc.h>
#include <unistd.h>

enum { ROWS = 3, COLUMNS = 4, TIMES = 2000, MOST_GROWTH = 64 << 10 };

static void put_element(fv_bytes *out, int group, int number, const char *kind, const void *value, size_t size) {
    bool          wide = !strcmp(kind, "OW");
    unsigned char head[12] = { (unsigned char)group,         (unsigned char)(group >> 8), (unsigned char)number,
                               (unsigned char)(number >> 8), (unsigned char)kind[0],      (unsigned char)kind[1] };
    head[wide ? 8 : 6] = (unsigned char)(size + size % 2);
    fv__bytes_append(out, head, wide ? 12 : 8);
    fv__bytes_append(out, value, size);
    if (size % 2) fv__bytes_append(out, "", 1);
}

static void put_short(fv_bytes *out, int number, int value) {
    unsigned char bytes[2] = { (unsigned char)value, (unsigned char)(value >> 8) };
    put_element(out, 0x28, number, "US", bytes, 2);
}

/* A frame of 3 x 4 pixels, explicit VR, little endian. */
static fv_bytes small_file(void) {
    static const char syntax[] = "1.2.840.10008.1.2.1", class[] = "1.2.840.10008.5.1.4.1.1.7";
    unsigned char     length[4] = { 8 + sizeof syntax }, pixels[ROWS * COLUMNS];
    fv_bytes          out = { 0 };
    memset(fv__bytes_append(&out, NULL, 128), 0, 128);
    fv__bytes_append(&out, "DICM", 4);
    put_element(&out, 2, 0, "UL", length, 4);
    put_element(&out, 2, 0x10, "UI", syntax, sizeof syntax);
    put_element(&out, 8, 0x16, "UI", class, sizeof class);
    put_short(&out, 2, 1);
    put_element(&out, 0x28, 4, "CS", "MONOCHROME2 ", 12);
    put_short(&out, 0x10, ROWS);
    put_short(&out, 0x11, COLUMNS);
    put_element(&out, 0x28, 0x30, "DS", "0.5\\0.5 ", 8);
    put_short(&out, 0x100, 8);
    put_short(&out, 0x101, 8);
    put_short(&out, 0x102, 7);
    put_short(&out, 0x103, 0);
    for (int i = 0; i < ROWS * COLUMNS; i++) pixels[i] = (unsigned char)(i * i);
    put_element(&out, 0x7fe0, 0x10, "OW", pixels, sizeof pixels);
    return out;
}

static void put_file(const char *path, const fv_bytes *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    fwrite(bytes->data, 1, size, file);
    fclose(file);
}

/* Header and frame, as often as it takes to see a leak; bytes that are then in use beyond those of before. */
static int64_t growth(const fv_dicom_plugin *dicom, const char *path, bool *good) {
    char           message[FV_DICOM_MESSAGE];
    unsigned char  pixels[ROWS * COLUMNS];
    fv_dicom_about about;
    int64_t        before = 0;
    for (int i = 0; i < TIMES + 10; i++) {
        if (i == 10) before = (int64_t)mallinfo2().uordblks; /* what is made once is there by then */
        *good = dicom->about(path, &about, message) && dicom->frame(path, 0, pixels, sizeof pixels, message);
    }
    return (int64_t)mallinfo2().uordblks - before;
}

TEST(reading_whole_and_damaged_files_leaks_nothing) {
    fv_error    error = { 0 };
    const void *found = NULL;
    bool        good = false;
    if (fv__plugin_load("dicom", FV_DICOM_SYMBOL, "DICOM", "", &found, &error) != FV_OK) SKIP("fovea-dicom.so is not built");
    const fv_dicom_plugin *dicom = found;
    fv_bytes               bytes = small_file();
    char                   path[64];
    snprintf(path, sizeof path, "/tmp/fovea-dicom-%d.dcm", (int)getpid());
    put_file(path, &bytes, bytes.size);
    int64_t grown = growth(dicom, path, &good);
    CHECK(good);
    CHECK_MESSAGE(grown < MOST_GROWTH, "%lld bytes are kept", (long long)grown);
    for (size_t cut = 1; cut <= 3; cut++) {
        put_file(path, &bytes, bytes.size - cut * bytes.size / 4);
        grown = growth(dicom, path, &good);
        CHECK(!good);
        CHECK_MESSAGE(grown < MOST_GROWTH, "%lld bytes are kept of a file that is cut", (long long)grown);
    }
    remove(path);
    fv__bytes_release(&bytes);
}

TEST_MAIN
