/* Killed anywhere, a run goes on where it stopped: the same bytes, and no committed task runs again. */
#include "base/base.h"
#include "base/file.h"
#include "record/record.h"
#include "store/store.h"
#include "support/test.h"
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const pipeline = "volume = phantom(\"foam\", [48, 200, 200], seed = 2)\n"
                                    "smooth = gaussian(volume, 3)\n"
                                    "parts  = label(smooth > otsu(smooth))\n"
                                    "write(parts, \"parts.zarr\")\n"
                                    "write(smooth, \"smooth.npy\")\n"
                                    "write(smooth, \"smooth.nii.gz\")\n"
                                    "write(measure(parts, volume), \"parts.csv\")\n";
static const char *const outputs[] = { "parts.zarr", "smooth.npy", "smooth.nii.gz", "parts.csv" };

static const char *command(void) { return getenv("FOVEA"); }

static void quiet(void) {
    int null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    dup2(null, 2);
}

/* Starts `fovea run job.fov ...` in the folder; fault may be NULL. */
static pid_t start(const char *folder, const char *text, const char *fault, char *const *more) {
    char *path = fv__sprintf("%s/job.fov", folder);
    fv__file_write_all(path, text, strlen(text), false, NULL);
    free(path);
    pid_t pid = fork();
    if (pid) return pid;
    char *arguments[16] = { "fovea", "run", "job.fov", "-q", "--memory", "300M" };
    int   n = 6;
    for (; more && *more; more++) arguments[n++] = *more;
    if (chdir(folder)) _exit(99);
    if (fault) setenv("FOVEA_FAULT", fault, 1);
    quiet();
    execv(command(), arguments);
    _exit(98);
}

static int finish(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static fv_hash hash_file(const char *path) {
    fv_bytes bytes = { 0 };
    fv_hash  hash = { 0, 0 };
    if (fv__file_read_all(path, (size_t)1 << 31, &bytes, NULL) == FV_OK) hash = fv__hash_bytes(bytes.data, bytes.size);
    fv__bytes_release(&bytes);
    return hash;
}

/* Name and contents of everything below a path. */
static fv_hash hash_tree(const char *path) {
    if (!fv__path_is_folder(path)) return hash_file(path);
    fv_hasher hasher;
    char     *pattern = fv__sprintf("%s/*", path);
    glob_t    found = { 0 };
    fv__hasher_init(&hasher);
    glob(pattern, 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        fv_hash part = hash_tree(found.gl_pathv[i]);
        fv__hasher_text(&hasher, fv__path_name(found.gl_pathv[i]));
        fv__hasher_add(&hasher, &part, sizeof part);
    }
    globfree(&found);
    free(pattern);
    return fv__hasher_finish(&hasher);
}

static fv_hash hash_output(const char *folder, const char *name) {
    char   *path = fv__sprintf("%s/%s", folder, name);
    fv_hash hash = fv__file_exists(path) ? hash_tree(path) : (fv_hash){ 0, 0 };
    free(path);
    return hash;
}

static char *fresh_folder(const char *name) {
    char *folder = fv__sprintf("%s/%s", test_folder(), name);
    fv__path_remove(folder, NULL);
    fv__path_make_folders(folder, NULL);
    return folder;
}

static bool is_zero(fv_hash hash) { return !hash.low && !hash.high; }

TEST(a_kill_at_every_commit_point_loses_nothing) {
    if (!command()) SKIP("FOVEA does not name the fovea command");
    static const char *const points[] = { "task",   "end",        "write",     "rename",    "replace", "replaced",
                                          "ledger", "pack-write", "pack-sync", "log-write", "log-sync" };
    char                    *reference = fresh_folder("reference");
    fv_hash                  expected[FV_COUNT(outputs)];
    char                    *more[] = { "--patience", "0.005", "--chunk", "24x100x100", NULL };
    CHECK_INT(finish(start(reference, pipeline, NULL, more)), 0);
    for (int o = 0; o < FV_COUNT(outputs); o++) CHECK(!is_zero(expected[o] = hash_output(reference, outputs[o])));
    for (int p = 0; p < FV_COUNT(points); p++) {
        int hits = 0;
        for (int n = 1; n <= 400; n = n < 4 ? n + 1 : n * 2) {
            char *folder = fresh_folder("crash"), *fault = fv__sprintf("%s:%d", points[p], n);
            int   first = finish(start(folder, pipeline, fault, more));
            hits += first == 137;
            for (int o = 0; o < FV_COUNT(outputs); o++) { /* whatever has its name is whole */
                fv_hash seen = hash_output(folder, outputs[o]);
                CHECK_MESSAGE(is_zero(seen) || fv__hash_equal(seen, expected[o]), "%s: %s is there but not whole", fault,
                              outputs[o]);
            }
            int second = finish(start(folder, pipeline, NULL, more));
            CHECK_MESSAGE(second == 0, "after %s the same command ended with %d", fault, second);
            for (int o = 0; o < FV_COUNT(outputs); o++)
                CHECK_MESSAGE(fv__hash_equal(hash_output(folder, outputs[o]), expected[o]), "after %s: %s differs", fault,
                              outputs[o]);
            free(folder);
            free(fault);
            if (first == 0) break; /* the point is not passed so often */
        }
        CHECK_MESSAGE(hits > 0, "the point %s is never passed", points[p]);
    }
    free(reference);
}

TEST(a_run_goes_on_with_other_workers_and_memory_and_gives_the_same_bytes) {
    if (!command()) SKIP("FOVEA does not name the fovea command");
    char   *reference = fresh_folder("reference"), *folder = fresh_folder("other");
    fv_hash expected[FV_COUNT(outputs)];
    char   *one[] = { "--patience", "0.01", "--workers", "1", NULL }, *three[] = { "--workers", "3", "--memory", "200M", NULL };
    CHECK_INT(finish(start(reference, pipeline, NULL, NULL)), 0);
    for (int o = 0; o < FV_COUNT(outputs); o++) expected[o] = hash_output(reference, outputs[o]);
    CHECK_INT(finish(start(folder, pipeline, "task:3", one)), 137);
    CHECK_INT(finish(start(folder, pipeline, NULL, three)), 0);
    for (int o = 0; o < FV_COUNT(outputs); o++)
        CHECK_MESSAGE(fv__hash_equal(hash_output(folder, outputs[o]), expected[o]), "%s differs", outputs[o]);
    free(reference);
    free(folder);
}

/* ---------------------------------------------------------------- random kills of a long job */

typedef struct {
    fv_hash key;
    int     runs, runs_when_committed;
} done_task;
typedef struct {
    done_task *tasks;
    int        count;
} done_tasks;

static done_task *find(done_tasks *d, fv_hash key) {
    for (int i = 0; i < d->count; i++)
        if (fv__hash_equal(d->tasks[i].key, key)) return &d->tasks[i];
    d->tasks = fv__realloc(d->tasks, (size_t)(d->count + 1) * sizeof *d->tasks);
    d->tasks[d->count] = (done_task){ .key = key, .runs_when_committed = -1 };
    return &d->tasks[d->count++];
}

/* Counts how often each task has run so far, from the record. */
static bool count_runs(const char *folder, done_tasks *d) {
    char  *pattern = fv__sprintf("%s/.fovea/runs/*", folder);
    glob_t found = { 0 };
    bool   good = !glob(pattern, 0, NULL, &found) && found.gl_pathc == 1 && fv__record_build(found.gl_pathv[0], NULL) == FV_OK;
    for (int i = 0; i < d->count; i++) d->tasks[i].runs = 0;
    sqlite3      *database = NULL;
    sqlite3_stmt *statement = NULL;
    char         *path = good ? fv__sprintf("%s/record.db", found.gl_pathv[0]) : NULL;
    good = good && !sqlite3_open(path, &database) &&
           !sqlite3_prepare_v2(database, "SELECT key FROM task WHERE status = 'ok'", -1, &statement, NULL);
    while (good && sqlite3_step(statement) == SQLITE_ROW) {
        unsigned long long high, low;
        if (sscanf((const char *)sqlite3_column_text(statement, 0), "%16llx%16llx", &high, &low) == 2)
            find(d, (fv_hash){ .high = high, .low = low })->runs++;
    }
    sqlite3_finalize(statement);
    sqlite3_close(database);
    globfree(&found);
    free(pattern);
    free(path);
    return good;
}

static int note_committed(const char *folder, done_tasks *d) {
    char            *store_folder = fv__sprintf("%s/.fovea/store", folder);
    fv_store_options options = { .folder = store_folder, .writer = "looking-on", .memory = 1 << 20, .patience = 1e9 };
    fv_store        *store;
    int              committed = 0;
    if (fv__store_open(&options, &store, NULL) == FV_OK) {
        for (int i = 0; i < d->count; i++) {
            if (!fv__store_committed(store, d->tasks[i].key)) continue;
            committed++;
            if (d->tasks[i].runs_when_committed < 0) d->tasks[i].runs_when_committed = d->tasks[i].runs;
        }
        fv__store_close(store);
    }
    free(store_folder);
    return committed;
}

TEST(twenty_random_kills_of_a_long_job_repeat_no_committed_task) {
    if (!command()) SKIP("FOVEA does not name the fovea command");
    const char *job = "a = phantom(\"noise\", [400, 256, 256], seed = 5)\nwrite(gaussian(a, 24) |> gaussian(25) |> gaussian(26), "
                      "\"smooth.npy\")\n";
    char       *reference = fresh_folder("long-reference");
    char       *more[] = { "--chunk", "20x64x64", "--patience", "0.05", "--workers", "2", NULL };
    double      began = fv__now();
    CHECK_INT(finish(start(reference, job, NULL, more)), 0);
    double   whole = fv__now() - began;
    fv_hash  expected = hash_output(reference, "smooth.npy");
    uint64_t state = 99;
    double   slower = 1;
    int      kills = 0, early = 0, committed = 0, repeated = 0, jobs = 0;
    while (kills < 20 && jobs < 20) { /* the machine may be faster than it was just now: then another job is killed as well */
        char      *name = fv__sprintf("long-%d", jobs++);
        char      *folder = fresh_folder(name);
        done_tasks d = { 0 };
        int        code = 1;
        while (code != 0) {
            pid_t  pid = start(folder, job, NULL, more);
            double wait = slower * whole / 32 * (0.6 + 0.8 * (double)(test_random(&state) >> 11) * 0x1p-53);
            if (kills < 20) usleep((useconds_t)(wait * 1e6));
            if (kills < 20) kill(pid, SIGKILL);
            code = finish(pid);
            if (code == 0) break;
            CHECK(kills < 20 && early < 50);
            bool counted = count_runs(folder, &d);
            bool midway = counted && note_committed(folder, &d) > 0;
            kills += midway;
            early += !midway; /* nothing was committed: the machine is slower than it was, and later kills come later */
            slower *= midway ? 1 : 1.3;
            fv_hash found = hash_output(folder, "smooth.npy"); /* absent, or whole */
            CHECK(is_zero(found) || fv__hash_equal(found, expected));
        }
        CHECK(fv__hash_equal(hash_output(folder, "smooth.npy"), expected));
        CHECK(count_runs(folder, &d));
        for (int i = 0; i < d.count; i++) {
            if (d.tasks[i].runs_when_committed < 0) continue;
            committed++;
            repeated += d.tasks[i].runs > d.tasks[i].runs_when_committed;
        }
        free(d.tasks);
        free(folder);
        free(name);
    }
    fprintf(stderr,
            "job of %.1f s: %d kills in %d jobs after some work was committed, %d before; %d tasks committed early, %d "
            "repeated\n",
            whole, kills, jobs, early, committed, repeated);
    CHECK_INT(repeated, 0);
    CHECK_INT(kills, 20);
    free(reference);
}

TEST_MAIN
