/* Memory that runs out: each allocation whose size data decide fails once, in turn, while a pipeline is read, planned, run and
 * written. Whatever happens, there is an error or a right result, no half file under a final name, and the same run goes on. */
#include "base/file.h"
#include "base/take.h"
#include "support/test.h"
#include <fovea/fovea.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char *in_folder(const char *name) {
    static char paths[8][512];
    static int  next;
    char       *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", test_folder(), name);
    return path;
}

typedef struct outcome {
    fv_status status;
    char      message[1024]; /* of the run or of its first item that failed */
} outcome;

/* Everything from the file of the text to the last output. */
static outcome run(const char *text, const char *store) {
    outcome        o = { 0 };
    fv_error       error = { 0 };
    fv_pipeline   *p = fv_pipeline_new();
    fv_run_options options = { .workers = 2, .memory = (int64_t)256 << 20, .store = store };
    fv_result     *result = NULL;
    int64_t        chunk[] = { 12 };
    char          *plan = NULL;
    o.status = fv_pipeline_add_file(p, text, &error);
    if (o.status == FV_OK) o.status = fv_pipeline_chunk(p, chunk, 1, &error);
    fv_pipeline_log(p, 0, NULL, NULL);
    if (o.status == FV_OK) o.status = fv_pipeline_plan(p, &options, FV_FORM_TEXT, &plan, &error);
    if (o.status == FV_OK) o.status = fv_pipeline_run(p, &options, &result, &error);
    snprintf(o.message, sizeof o.message, "%s%s", error.message, fv_pipeline_messages(p));
    if (o.status != FV_OK && result && fv_result_failures(result)) {
        fv_result_failure(result, 0, &error);
        snprintf(o.message, sizeof o.message, "%s", error.message);
    }
    fv_result_free(result);
    free(plan);
    fv_pipeline_free(p);
    return o;
}

/* Of a file, or of all files in a folder by a command. */
static fv_hash contents(const char *path) {
    char     command[1200];
    fv_bytes bytes = { 0 };
    snprintf(command, sizeof command, "find %s -type f -not -path '*/.*' -print0 | sort -z | xargs -0 cat", path);
    FILE *f = popen(command, "r");
    for (int c; f && (c = fgetc(f)) != EOF;) fv__bytes_append(&bytes, &(uint8_t){ (uint8_t)c }, 1);
    if (f) pclose(f);
    fv_hash hash = fv__hash_bytes(bytes.data, bytes.size);
    fv__bytes_release(&bytes);
    return hash;
}

static void write_text(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
}

/* %s in the lines: the test's folder. The output is named `output`. */
static void fail_each(const char *lines, const char *output) {
    char text[4096], *fov = in_folder("case.fov"), *store = in_folder("store"), *out = in_folder(output);
    snprintf(text, sizeof text, lines, test_folder(), test_folder());
    write_text(fov, text);
    fv__path_remove(store, NULL);
    fv__path_remove(out, NULL);
    outcome right = run(fov, store);
    CHECK_MESSAGE(right.status == FV_OK, "without faults: %s", right.message);
    fv_hash good = contents(out);
    int64_t failed = 0;
    for (int64_t n = 1;; n++) {
        CHECK_MESSAGE(n < 3000, "there is no end to allocations");
        fv__path_remove(store, NULL);
        fv__path_remove(out, NULL);
        fv__memory_fail(n);
        outcome o = run(fov, store);
        bool    came = fv__memory_fail(0) == 0;
        if (o.status != FV_OK) {
            failed++;
            CHECK_MESSAGE(strstr(o.message, "memory"), "allocation %lld: %s", (long long)n, o.message);
        }
        CHECK_MESSAGE(o.status == FV_OK || came, "%s", o.message);
        if (o.status == FV_OK || fv__file_exists(out))
            CHECK_MESSAGE(fv__hash_equal(contents(out), good), "allocation %lld: another result", (long long)n);
        if (o.status != FV_OK) {
            o = run(fov, store); /* the same again */
            CHECK_MESSAGE(o.status == FV_OK, "after allocation %lld had failed: %s", (long long)n, o.message);
            CHECK_MESSAGE(fv__hash_equal(contents(out), good), "after allocation %lld had failed: another result", (long long)n);
        }
        if (!came) break;
    }
    CHECK(failed > 3);
}

#define CELLS "cells = phantom(\"cells\", [20, 24, 24])\n"

TEST(npy_written_in_parallel) { fail_each(CELLS "gaussian(cells, 1) |> write(\"%s/a.npy\")\n", "a.npy"); }
TEST(tiff_with_deflate) { fail_each(CELLS "cells |> write(\"%s/a.tif\", compression = \"deflate\")\n", "a.tif"); }
TEST(nifti_packed) { fail_each(CELLS "cells |> write(\"%s/a.nii.gz\")\n", "a.nii.gz"); }
TEST(png) { fail_each("phantom(\"cells\", [40, 40]) |> write(\"%s/a.png\")\n", "a.png"); }
TEST(zarr_with_levels) { fail_each(CELLS "cells |> write(\"%s/a.zarr\")\n", "a.zarr"); }
TEST(vti) { fail_each(CELLS "cells |> write(\"%s/a.vti\", compression = \"zlib\")\n", "a.vti"); }

TEST(labels_and_their_table) {
    fail_each(CELLS "labels = label(cells > otsu(cells))\nmeasure(labels, cells) |> write(\"%s/a.csv\")\n", "a.csv");
}
TEST(watershed) { fail_each(CELLS "watershed(cells, label(cells > 150), cells > 60) |> write(\"%s/a.npy\")\n", "a.npy"); }
TEST(tables_sorted_and_grouped) {
    fail_each(CELLS "t = measure(label(cells > 100))\nt |> sort(\"volume\") |> write(\"%s/a.csv\")\n", "a.csv");
}

/* ---------------------------------------------------------------- readers */

static void read_back(const char *name) {
    char lines[1024], made[512], fov[512];
    snprintf(made, sizeof made, "phantom(\"cells\", [20, 24, 24]) |> write(\"%s/in/%s\")\n", test_folder(), name);
    snprintf(fov, sizeof fov, "%s", in_folder("make.fov"));
    write_text(fov, made);
    fv__path_make_folders(in_folder("in"), NULL);
    outcome o = run(fov, in_folder("first"));
    CHECK_MESSAGE(o.status == FV_OK, "%s", o.message);
    snprintf(lines, sizeof lines, "read(\"%%s/in/%s\") |> median(3) |> write(\"%%s/a.npy\")\n", name);
    fail_each(lines, "a.npy");
}

TEST(npy_read) { read_back("x.npy"); }
TEST(tiff_read) { read_back("x.tif"); }
TEST(nifti_read) { read_back("x.nii.gz"); }
TEST(zarr_read) { read_back("x.zarr"); }
TEST(nrrd_read) { read_back("x.nrrd"); }
TEST(mrc_read) { read_back("x.mrc"); }

/* ---------------------------------------------------------------- small things */

static void note(size_t bytes) {
    if (bytes == (size_t)1 << 60) _exit(7);
    _exit(8);
}

TEST(what_is_small_ends_in_the_handler_that_was_set) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SKIP("the sanitizer ends the process itself");
#endif
    pid_t child = fork();
    int   status;
    if (child == 0) {
        fv_set_out_of_memory(note);
        free(fv__alloc((size_t)1 << 60));
        _exit(0);
    }
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 7);
}

TEST_MAIN
