/* Memory that runs out: each allocation whose size data decide fails once, in turn, while a pipeline is read, planned, run and
 * written. Whatever happens, there is an error or a right result, no half file under a final name, and the same run goes on. */
#include "base/file.h"
#include "base/take.h"
#include "support/test.h"
#include <dirent.h>
#include <fovea/fovea.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Thousands of small runs would wait for the disk, which does not matter here. */
__attribute__((constructor)) static void work_in_memory(void) {
    if (!getenv("TMPDIR") && !access("/dev/shm", W_OK | X_OK)) setenv("TMPDIR", "/dev/shm", 1);
}

static char *in_folder(const char *name) {
    static char paths[8][512];
    static int  next;
    char       *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", test_folder(), name);
    return path;
}

static const char *setting; /* as after --set; NULL: none */

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
    if (o.status == FV_OK && setting) o.status = fv_pipeline_set(p, setting, &error);
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

/* Of a file, or of all that is in a folder, with the names; what begins with a dot is no result. */
static void add_contents(const char *path, fv_hasher *hasher) {
    struct dirent **entries = NULL;
    int             count = scandir(path, &entries, NULL, alphasort);
    fv_bytes        bytes = { 0 };
    if (count < 0 && fv__file_read_all(path, (size_t)1 << 30, &bytes, NULL) == FV_OK)
        fv__hasher_add(hasher, bytes.data, bytes.size);
    fv__bytes_release(&bytes);
    for (int i = 0; i < count; i++) {
        char *inner = fv__sprintf("%s/%s", path, entries[i]->d_name);
        if (*entries[i]->d_name != '.') {
            fv__hasher_text(hasher, entries[i]->d_name);
            add_contents(inner, hasher);
        }
        free(inner);
        free(entries[i]);
    }
    free(entries);
}

static fv_hash contents(const char *path) {
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    add_contents(path, &hasher);
    return fv__hasher_finish(&hasher);
}

static void write_text(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
}

typedef struct expected {
    const char *fov, *store, *out, *good; /* good: what `out` is without faults */
    enum {
        ONE,
        MANY,
        ROWS
    } kind; /* MANY: a folder of results, some of which may be there; ROWS: a table without those of items
             * that failed */
} expected;

/* A database that was written twice has other pages than one that was written once: its rows, as CSV. */
static fv_hash rows(const char *path) {
    char text[2048], *fov = in_folder("rows.fov"), *store = in_folder("rows"), *csv = in_folder("rows.csv");
    snprintf(text, sizeof text, "read_table(\"%s\") |> write(\"%s\")\n", path, csv);
    write_text(fov, text);
    fv__path_remove(csv, NULL);
    run(fov, store);
    return contents(csv);
}

/* Whatever has its final name is whole. */
static bool is_whole(const expected *e, bool complete) {
    if (complete && strstr(e->out, ".sqlite")) return fv__hash_equal(rows(e->out), rows(e->good));
    if (complete || e->kind == ONE) return fv__hash_equal(contents(e->out), contents(e->good));
    if (e->kind == ROWS) return true;
    struct dirent **entries = NULL;
    int             count = scandir(e->out, &entries, NULL, alphasort);
    bool            whole = true;
    for (int i = 0; i < count; i++) {
        char *one = fv__sprintf("%s/%s", e->out, entries[i]->d_name), *good = fv__sprintf("%s/%s", e->good, entries[i]->d_name);
        if (*entries[i]->d_name != '.') whole = whole && fv__hash_equal(contents(one), contents(good));
        free(one);
        free(good);
        free(entries[i]);
    }
    free(entries);
    return whole;
}

/* Fails one allocation; *came is false if there were not so many. */
static void fail_one(const expected *e, int64_t n, int64_t (*fail)(int64_t), bool *came, int64_t *failed) {
    *came = false;
    fv__path_remove(e->store, NULL);
    fv__path_remove(e->out, NULL);
    fail(n);
    outcome o = run(e->fov, e->store);
    *came = fail(0) == 0;
    fv__memory_fail(0);     /* the small ones count no more */
    fv__memory_check(NULL); /* what happened outside of the pipeline, as in fv_pipeline_new, is no fault of what follows */
    CHECK_MESSAGE(o.status == FV_OK || strstr(o.message, "memory"), "allocation %lld: %s", (long long)n, o.message);
    CHECK_MESSAGE(o.status == FV_OK || *came, "%s", o.message);
    if (o.status == FV_OK || fv__file_exists(e->out))
        CHECK_MESSAGE(is_whole(e, o.status == FV_OK), "allocation %lld: another result; %d %s", (long long)n, (int)o.status,
                      o.message);
    if (o.status != FV_OK) {
        ++*failed;
        o = run(e->fov, e->store); /* the same again */
        CHECK_MESSAGE(o.status == FV_OK, "after allocation %lld had failed: %s", (long long)n, o.message);
        CHECK_MESSAGE(is_whole(e, true), "after allocation %lld had failed: another result", (long long)n);
    }
}

/* Of those that the reserve serves there are thousands: some of them, another part in each pipeline. STEP: of those that fail as
 * errors, each, or under a sanitizer, which is slow, each second. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SOME = 12, STEP = 2 };
#else
enum { SOME = 40, STEP = 1 };
#endif

static void fail_some(const expected *e) {
    int64_t  failed = 0;
    uint64_t state = 11 + strlen(e->out);
    bool     came;
    fv__path_remove(e->store, NULL);
    fv__path_remove(e->out, NULL);
    fv__memory_fail_any(INT64_MAX);
    run(e->fov, e->store);
    int64_t all = INT64_MAX - fv__memory_fail(0);
    CHECK(all > 200);
    for (int i = 0; i < SOME; i++)
        fail_one(e, 1 + i * all / SOME + (int64_t)(test_random(&state) % (uint64_t)(all / SOME)), fv__memory_fail_any, &came,
                 &failed);
    CHECK_MESSAGE(failed > SOME / 4, "only %lld of %d ended as errors", (long long)failed, SOME);
}

/* %s in the lines: the test's folder. The output is named `output`. */
static void fail_allocations(const char *lines, const char *output, int kind) {
    char     text[4096], good[512];
    char     fov[512], store[512], out[512];
    expected e = { fov, store, out, good, kind };
    snprintf(fov, sizeof fov, "%s/case.fov", test_folder());
    snprintf(store, sizeof store, "%s/store", test_folder());
    snprintf(out, sizeof out, "%s/%s", test_folder(), output);
    snprintf(good, sizeof good, "%s/good%s", test_folder(), fv__path_has_extension(output, "sqlite") ? ".sqlite" : "");
    snprintf(text, sizeof text, lines, test_folder(), test_folder());
    write_text(e.fov, text);
    fv__path_remove(e.store, NULL);
    fv__path_remove(e.out, NULL);
    fv__path_remove(good, NULL);
    outcome right = run(e.fov, e.store);
    CHECK_MESSAGE(right.status == FV_OK, "without faults: %s", right.message);
    CHECK(rename(e.out, good) == 0);
    int64_t failed = 0, n = 1;
    for (bool came = true; came; n += STEP) fail_one(&e, n, fv__memory_fail, &came, &failed);
    CHECK(failed > 3);
    fail_some(&e);
}

static void fail_each(const char *lines, const char *output) { fail_allocations(lines, output, ONE); }

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

/* ---------------------------------------------------------------- collections, tables, groups */

static void make_inputs(void) {
    char fov[512], text[1024];
    snprintf(fov, sizeof fov, "%s", in_folder("make.fov"));
    fv__path_make_folders(in_folder("many"), NULL);
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "phantom(\"cells\", [16, 18], seed = %d) |> write(\"%s/many/s%d.tif\")\n", i, test_folder(),
                 i);
        write_text(fov, text);
        outcome o = run(fov, in_folder("first"));
        CHECK_MESSAGE(o.status == FV_OK, "%s", o.message);
    }
}

#define SLICES "x = read(\"%s/many/s*.tif\")\n"

TEST(collection) {
    make_inputs();
    fail_allocations(SLICES "convert(gaussian(x, 1), \"uint8\") |> write(\"%s/made/{stem}.png\")\n", "made", MANY);
}
TEST(stack_of_files) {
    make_inputs();
    fail_each("read(\"%s/many/s*.tif\", stack = \"z\") |> write(\"%s/a.zarr\")\n", "a.zarr");
}
TEST(table_of_a_collection_in_sqlite) {
    make_inputs();
    fail_allocations(SLICES "measure(label(x > 100), x) |> write(\"%s/a.sqlite\")\n", "a.sqlite", ROWS);
}
TEST(groups_of_rows) {
    make_inputs();
    fail_allocations(SLICES "t = measure(label(x > 100), x)\ngroup(t, by = \"item\", values = \"count(), mean(volume)\") |> "
                            "write(\"%s/a.jsonl\")\n",
                     "a.jsonl", ROWS);
}
TEST(hulls) {
    fail_each(CELLS "measure(label(cells > 100), properties = \"convex_volume feret_max\") |> write(\"%s/a.csv\")\n", "a.csv");
}
TEST(classes_of_colours) {
    fail_each("a = phantom(\"cells\", [20, 20])\nkmeans(merge_channels(a, phantom(\"cells\", [20, 20], seed = 2))) |> "
              "write(\"%s/a.png\")\n",
              "a.png");
}
TEST(line_plot) {
    fail_each(CELLS "measure(label(cells > 100), cells) |> plot(\"volume\", \"mean\", kind = \"line\") |> write(\"%s/a.csv\")\n",
              "a.csv");
}
TEST(picture_of_a_table) {
    fail_each(CELLS "measure(label(cells > 100), cells) |> plot(\"volume\", \"mean\") |> write(\"%s/a.svg\")\n", "a.svg");
}
TEST(parameters_with_many_values) {
    setting = "s=1,2";
    fail_allocations("param s = 1\n" CELLS "gaussian(cells, s) |> write(\"%s/made/{s}.tif\")\n", "made", MANY);
    setting = NULL;
}

/* ---------------------------------------------------------------- really no memory */

/* What the child comes to with so many bytes of address space more than it has: 0 right, 1 an error. */
static int with_more(int64_t bytes, const char *fov, const char *store) {
    pid_t child = fork();
    int   status;
    if (child == 0) {
        long  pages = 0;
        FILE *f = fopen("/proc/self/statm", "r");
        if (!f || fscanf(f, "%ld", &pages) != 1) _exit(9);
        fclose(f);
        rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (rlim_t)bytes;
        setrlimit(RLIMIT_AS, &(struct rlimit){ most, most });
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        _exit(run(fov, store).status != FV_OK);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(with_too_little_address_space_a_run_ends_with_an_error) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SKIP("the sanitizer ends the process itself");
#endif
    char text[1024], *fov = in_folder("short.fov"), *store = in_folder("short"), *out = in_folder("short.csv");
    int  failed = 0, right = 0;
    snprintf(text, sizeof text, CELLS "t = measure(label(cells > 100), cells)\nt |> sort(\"volume\") |> write(\"%s\")\n", out);
    write_text(fov, text);
    for (int64_t bytes = 0; bytes <= (int64_t)512 << 20; bytes = bytes * 5 / 4 + (1 << 16)) {
        fv__path_remove(store, NULL);
        fv__path_remove(out, NULL);
        int ended = with_more(bytes, fov, store);
        CHECK_MESSAGE(ended == 0 || ended == 1, "with %lld bytes more it ends with %d", (long long)bytes, ended);
        *(ended ? &failed : &right) += 1;
        CHECK(ended == 0 || !fv__file_exists(out));
    }
    CHECK(failed > 3 && right > 0);
}

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
