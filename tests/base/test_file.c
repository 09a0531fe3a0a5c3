/* Files, folders and paths. */
#include "base/file.h"
#include "support/child.h"
#include "support/test.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char *in_folder(const char *name) { /* in a fresh folder */
    static fv_arena names;
    static int      number;
    char           *folder = fv__arena_printf(&names, "%s/f%d", test_folder(), number++);
    mkdir(folder, 0777);
    return fv__arena_printf(&names, "%s/%s", folder, name);
}

static bool holds(const char *path, const char *text) {
    fv_bytes bytes = { 0 };
    bool     same = fv__file_read_all(path, 1000, &bytes, NULL) == FV_OK && !strcmp((char *)bytes.data, text);
    fv__bytes_release(&bytes);
    return same;
}

static int entries_beside(const char *path) {
    char *command = fv__sprintf("ls -A \"$(dirname '%s')\" | wc -l", path);
    FILE *pipe = popen(command, "r");
    int   count = -1;
    if (fscanf(pipe, "%d", &count) != 1) count = -1;
    pclose(pipe);
    free(command);
    return count;
}

/* ---------------------------------------------------------------- whole files */

TEST(a_file_is_written_whole_and_read_back) {
    char    *path = in_folder("a.bin");
    fv_bytes bytes = { 0 };
    CHECK_INT(fv__file_write_all(path, "hello", 5, true, NULL), FV_OK);
    CHECK(holds(path, "hello"));
    CHECK_INT(fv__file_write_all(path, "", 0, false, NULL), FV_OK);
    CHECK(holds(path, ""));
    CHECK_INT(entries_beside(path), 1); /* no temporaries stay */
    fv_error error;
    CHECK_INT(fv__file_write_all(path, "0123456789", 10, false, NULL), FV_OK);
    CHECK_INT(fv__file_read_all(path, 9, &bytes, &error), FV_ERROR_INPUT);
    CHECK_MESSAGE(strstr(error.message, path) && strstr(error.message, "10 bytes"), "%s", error.message);
    fv__bytes_release(&bytes);
}

TEST(a_file_that_ends_early_is_an_input_error_that_says_where) {
    char    *path = in_folder("a.bin"), data[20];
    fv_error error;
    int      fd;
    CHECK_INT(fv__file_write_all(path, "0123456789", 10, false, NULL), FV_OK);
    CHECK_INT(fv__file_open_read(path, &fd, NULL), FV_OK);
    CHECK_INT(fv__file_read_at(fd, data, 10, 0, path, &error), FV_OK);
    CHECK_INT(fv__file_read_at(fd, data, 0, 100, path, &error), FV_OK);
    CHECK_INT(fv__file_read_at(fd, data, 10, 5, path, &error), FV_ERROR_INPUT);
    CHECK_MESSAGE(strstr(error.message, "5 bytes missing at offset 10"), "%s", error.message);
    close(fd);
}

TEST(missing_files_and_folders_give_input_errors) {
    int        fd;
    fv_error   error;
    fv_file_id id;
    fv_bytes   bytes = { 0 };
    char      *path = in_folder("none");
    CHECK_INT(fv__file_open_read(path, &fd, &error), FV_ERROR_INPUT);
    CHECK(strstr(error.message, "No such file"));
    CHECK_INT(fv__file_identify(path, &id, &error), FV_ERROR_INPUT);
    CHECK_INT(fv__file_read_all("/tmp", 1000, &bytes, &error), FV_ERROR_INPUT);
    CHECK(strstr(error.message, "it is a folder"));
    CHECK(!fv__file_exists(path) && fv__file_exists("/tmp") && fv__path_is_folder("/tmp") && !fv__path_is_folder(path));
}

TEST(identity_changes_with_size_and_time) {
    char           *path = in_folder("a.bin");
    fv_file_id      a, b;
    struct timespec when[2] = { { 1000, 5 }, { 1000, 5 } };
    CHECK_INT(fv__file_write_all(path, "hello", 5, false, NULL), FV_OK);
    CHECK(!utimensat(AT_FDCWD, path, when, 0));
    CHECK_INT(fv__file_identify(path, &a, NULL), FV_OK);
    CHECK(a.size == 5 && a.mtime_ns == 1000000000005);
    when[1].tv_nsec = 6;
    CHECK(!utimensat(AT_FDCWD, path, when, 0));
    CHECK_INT(fv__file_identify(path, &b, NULL), FV_OK);
    CHECK_INT(b.mtime_ns, a.mtime_ns + 1);
}

/* ---------------------------------------------------------------- folders */

static void make_tree(const char *path, const char *text) {
    char *deep = fv__sprintf("%s/c/d", path), *file = fv__sprintf("%s/c/d/file", path);
    if (fv__path_make_folders(deep, NULL) != FV_OK || fv__file_write_all(file, text, strlen(text), false, NULL) != FV_OK) abort();
    free(deep);
    free(file);
}

static bool tree_holds(const char *path, const char *text) {
    char *file = fv__sprintf("%s/c/d/file", path);
    bool  same = holds(file, text);
    free(file);
    return same;
}

TEST(a_result_takes_the_place_of_whatever_was_there) {
    char *path = in_folder("out.zarr"), *temporary = fv__sprintf("%s.part", path);
    make_tree(temporary, "one");
    CHECK_INT(fv__path_replace(temporary, path, NULL), FV_OK); /* nothing there */
    CHECK(tree_holds(path, "one"));
    make_tree(temporary, "two");
    CHECK_INT(fv__path_replace(temporary, path, NULL), FV_OK); /* folder for folder */
    CHECK(tree_holds(path, "two") && entries_beside(path) == 1);
    CHECK_INT(fv__file_write_all(temporary, "file", 4, false, NULL), FV_OK);
    CHECK_INT(fv__path_replace(temporary, path, NULL), FV_OK); /* file for folder */
    CHECK(holds(path, "file") && entries_beside(path) == 1);
    make_tree(temporary, "three");
    CHECK_INT(fv__path_replace(temporary, path, NULL), FV_OK); /* folder for file */
    CHECK(tree_holds(path, "three") && entries_beside(path) == 1);
    fv_error error;
    CHECK_INT(fv__path_replace(temporary, path, &error), FV_ERROR_INPUT); /* nothing to put there: what was there stays */
    CHECK(tree_holds(path, "three"));
    free(temporary);
}

TEST(removing_takes_whole_folders_but_not_what_links_lead_to) {
    char *path = in_folder("tree"), *other = in_folder("other"), *link = fv__sprintf("%s/c/link", path);
    make_tree(path, "x");
    make_tree(other, "keep");
    CHECK(!symlink(other, link));
    CHECK_INT(fv__path_remove(path, NULL), FV_OK);
    CHECK(!fv__file_exists(path) && tree_holds(other, "keep"));
    CHECK_INT(fv__path_remove(path, NULL), FV_OK); /* not there: fine */
    free(link);
}

TEST(folders_are_made_with_their_parents) {
    char *path = in_folder("a/b//c/"), *file = in_folder("file"), *below = fv__sprintf("%s/x", file);
    CHECK_INT(fv__path_make_folders(path, NULL), FV_OK);
    CHECK(fv__path_is_folder(path));
    CHECK_INT(fv__path_make_folders(path, NULL), FV_OK);
    CHECK_INT(fv__path_make_folders("/", NULL), FV_OK);
    CHECK_INT(fv__path_make_folders(".", NULL), FV_OK);
    CHECK_INT(fv__path_make_folders("", NULL), FV_OK); /* the working directory */
    CHECK_INT(fv__file_write_all(file, "", 0, false, NULL), FV_OK);
    fv_error error;
    CHECK(fv__path_make_folders(below, &error) != FV_OK);
    CHECK(fv__path_make_folders(file, &error) != FV_OK);
    CHECK_MESSAGE(strstr(error.message, file), "%s", error.message);
    free(below);
}

TEST(the_folder_of_a_path_is_synced) {
    char *path = in_folder("out.zarr/");
    CHECK_INT(fv__path_sync_folder(path, NULL), FV_OK); /* the folder that holds it, although it is not there itself */
    CHECK_INT(fv__path_sync_folder("name", NULL), FV_OK);
    CHECK_INT(fv__path_sync_folder("/name", NULL), FV_OK);
    CHECK(fv__path_sync_folder("/no/such/folder", NULL) != FV_OK);
}

/* ---------------------------------------------------------------- names */

TEST(pipes_devices_and_links_to_nothing_are_no_files) {
    fv_file_id id;
    fv_error   error;
    int        fd;
    char      *path = fv__sprintf("%s/pipe", test_folder());
    CHECK(!mkfifo(path, 0600));
    CHECK_INT(fv__file_identify(path, &id, &error), FV_ERROR_INPUT);
    CHECK_INT(fv__file_open_read(path, &fd, &error), FV_ERROR_INPUT);
    CHECK(strstr(error.message, "it is a pipe"));
    CHECK_INT(fv__file_open_read("/dev/zero", &fd, &error), FV_ERROR_INPUT);
    CHECK(strstr(error.message, "it is a device"));
    CHECK(!unlink(path) && !symlink("/nowhere/at/all", path));
    CHECK_INT(fv__file_identify(path, &id, &error), FV_ERROR_INPUT);
    CHECK(strstr(error.message, "it is a link to something that is not there"));
    free(path);
}

TEST(paths_inside_and_beside_keep_the_query_of_an_address) {
    char                    *paths[] = { fv__path_inside("a/b/", "c"),
                                         fv__path_inside("http://h/a.zarr/?k=1/2", "0/c"),
                                         fv__path_beside("a/b.hdr", "b.img"),
                                         fv__path_beside("https://h/a/b.hdr?k=1/2", "b.img"),
                                         fv__path_beside("a/b", "/c"),
                                         fv__path_beside("b", "c"),
                                         fv__path_bare_name("https://h/a/b.hdr/?k=1/2") };
    static const char *const expected[] = { "a/b/c", "http://h/a.zarr/0/c?k=1/2", "a/b.img", "https://h/a/b.img?k=1/2", "/c", "c",
                                            "b.hdr" };
    for (int i = 0; i < FV_COUNT(paths); i++) {
        CHECK_TEXT(paths[i], expected[i]);
        free(paths[i]);
    }
}

TEST(names_stems_and_extensions) {
    static const struct {
        const char *path, *name, *stem;
    } cases[] = {
        { "a/b/scan.nii.gz", "scan.nii.gz", "scan" },
        { "scan.png", "scan.png", "scan" },
        { "x.ome.tif", "x.ome.tif", "x" },
        { "x.ome.zarr", "x.ome.zarr", "x" },
        { "/a.b/c", "c", "c" },
        { ".hidden", ".hidden", ".hidden" },
        { "a.b.png", "a.b.png", "a.b" },
        { "out/x.zarr/", "", "x" },
        { "x.zarr//", "", "x" },
        { "X.NII.GZ", "X.NII.GZ", "X" },
        { "plain", "plain", "plain" },
        { "", "", "" },
    };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        char stem[64];
        fv__path_stem(cases[i].path, stem, sizeof stem);
        CHECK_TEXT(fv__path_name(cases[i].path), cases[i].name);
        CHECK_MESSAGE(!strcmp(stem, cases[i].stem), "stem of %s is %s", cases[i].path, stem);
    }
    char tiny[4], stem[64];
    fv__path_stem("abcdefgh.png", tiny, sizeof tiny);
    CHECK_TEXT(tiny, "abc");
    CHECK(fv__path_has_extension("a.NII.gz", "nii.gz") && fv__path_has_extension("a.nii.gz", "gz"));
    fv__path_stem("https://host/a.b/scan.ome.tif?name=x/y.png&sign=1#z", stem, sizeof stem);
    CHECK_TEXT(stem, "scan");
    CHECK(fv__path_has_extension("http://host/a.tif?b=c.png", "tif") && !fv__path_has_extension("http://host/a?b=c.png", "png"));
    CHECK(fv__path_has_extension("a?.png", "png") && fv__path_has_extension("s3://bucket/a?b.png", "png"));
    CHECK(fv__path_has_extension("x.zarr/", "zarr") && !fv__path_has_extension(".gz", "gz") &&
          !fv__path_has_extension("agz", "gz"));
}

/* ---------------------------------------------------------------- the gate and errors behind it */

static int  gates;
static void enter(void) { gates++; }
static void leave(void) {
    gates += 1000;
    errno = 0; /* as any code in a hook may */
}

TEST(who_waits_for_the_disk_passes_the_gate_and_keeps_the_cause_of_a_failure) {
    enum { SIZE = 1 << 17 };
    char    *path = in_folder("a.bin"), *data = fv__calloc(SIZE);
    fv_error error;
    int      fd;
    CHECK_INT(fv__file_open_write(path, &fd, NULL), FV_OK);
    fv__io_hooks(enter, leave);
    gates = 0;
    fv_status wrote = fv__file_write_at(fd, data, SIZE, 0, path, NULL), read = fv__file_read_at(fd, data, SIZE, 0, path, NULL);
    int       cached = gates; /* just written, so there is nothing to wait for, where the file system can tell */
    fv_status beyond = fv__file_read_at(fd, data, 4, SIZE - 2, path, NULL);
    int       waited = gates - cached;
    fv_status synced = fv__file_sync(fd, path, NULL);
    int       passed = gates - cached - waited;
    close(fd);
    fv_status closed_read = fv__file_read_at(fd, data, 4, 0, path, &error);
    bool      read_cause = strstr(error.message, "Bad file descriptor") != NULL;
    fv_status closed_sync = fv__file_sync(fd, path, &error);
    bool      sync_cause = strstr(error.message, "Bad file descriptor") != NULL;
    fv__io_hooks(NULL, NULL);
    CHECK(wrote == FV_OK && read == FV_OK && synced == FV_OK);
    free(data);
    CHECK(cached % 1001 == 0 && cached <= 2002); /* a write passes it where the one before had to wait */
    CHECK(beyond == FV_ERROR_INPUT && waited == 1001);
    CHECK_INT(passed, 1001);
    CHECK(closed_read == FV_ERROR_IO && read_cause && closed_sync == FV_ERROR_IO && sync_cause);
}

/* ---------------------------------------------------------------- fault points */

static int pass_points(void) {
    for (int i = 1; i <= 5; i++) {
        fv_error  error;
        fv_status other = fv__fault_point("other", &error), status = fv__fault_point("here", &error);
        test_child_say(other == FV_OK && status == FV_OK                          ? 'o'
                       : status == FV_ERROR_FULL && strstr(error.message, "here") ? 'f'
                                                                                  : '?',
                       i);
    }
    return 0;
}

TEST(a_fault_point_fails_or_ends_the_process_at_its_time) {
    test_child c = test_child_start("points", "", "", "FOVEA_FAULT=here:3:error");
    const char expected[] = "oofoo";
    for (int i = 0; i < 5; i++) CHECK_INT(test_child_answer(&c), expected[i]);
    CHECK_INT(test_child_finish(&c), 0);
    c = test_child_start("points", "", "", "FOVEA_FAULT=here:3");
    CHECK(test_child_answer(&c) == 'o' && test_child_answer(&c) == 'o' && test_child_answer(&c) == 0);
    CHECK_INT(test_child_finish(&c), 137);
    c = test_child_start("points", "", "", "FOVEA_FAULT=her:1");
    for (int i = 0; i < 5; i++) CHECK_INT(test_child_answer(&c), 'o');
    CHECK_INT(test_child_finish(&c), 0);
}

int main(int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[1], "--child")) return pass_points();
    return test_main(argc, argv);
}
