/* The store against a model: committing, spilling, dropping, damage, disk budget. */
#include "base/file.h"
#include "store/blobs.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static fv_store *open_store(const char *folder, const char *writer, int64_t memory, double patience, bool shared) {
    fv_store *store = NULL;
    fv_error  error;
    if (fv__store_open(&(fv_store_options){ folder, writer, memory, patience, shared }, &store, &error) != FV_OK) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
    return store;
}

static int64_t disk_use(const char *folder, const char *file) {
    char       *path = fv__sprintf("%s/%s", folder, file);
    struct stat s;
    int64_t     bytes = stat(path, &s) ? -1 : s.st_blocks * 512;
    free(path);
    return bytes;
}

static bool file_there(const char *folder, const char *file) { return disk_use(folder, file) >= 0; }

/* ---------------------------------------------------------------- plain use */

TEST(what_was_put_is_got_back_whole_or_in_parts) {
    fv_store *store = open_store(test_fresh(), "w", 1 << 30, 1e9, false);
    for (int i = 0; i < 300; i++) CHECK_INT(blob_put(store, i, 0, true, NULL), FV_OK);
    for (int i = 0; i < 300; i++) {
        CHECK(fv__store_has(store, blob_key(i)) && blob_whole(store, i));
        CHECK_INT(fv__store_size(store, blob_key(i)), blob_size(i));
        uint8_t part[16];
        size_t  size = FV_MIN(blob_size(i), sizeof part), offset = blob_size(i) - size;
        CHECK_INT(fv__store_read(store, blob_key(i), offset, part, size, NULL), FV_OK);
        CHECK(blob_right(i, part, size, offset));
        CHECK_INT(fv__store_read(store, blob_key(i), offset, part, size + 1, NULL), FV_ERROR_INTERNAL);
    }
    fv_blob  blob;
    fv_error error;
    CHECK(!fv__store_has(store, blob_key(300)));
    CHECK_INT(fv__store_size(store, blob_key(300)), 0);
    CHECK_INT(fv__store_get(store, blob_key(300), &blob, &error), FV_ERROR_INTERNAL);
    fv__store_unpin(store, &blob); /* of nothing: fine */
    fv__store_close(store);
}

TEST(a_run_that_commits_nothing_leaves_no_files) {
    char     *folder = test_fresh();
    fv_store *store = open_store(folder, "w", 1 << 30, 1e9, false);
    for (int i = 0; i < 100; i++) blob_put(store, i, 0.001, true, NULL);
    CHECK(!file_there(folder, "w.log") && !file_there(folder, "w.pack"));
    fv__store_close(store);
    CHECK(!file_there(folder, "w.log") && !file_there(folder, "w.pack"));
    store = open_store(folder, "w", 1000, 1e9, false); /* spills, but commits nothing */
    for (int i = 0; i < 100; i++) blob_put(store, i, 0.001, false, NULL);
    CHECK(file_there(folder, "w.pack"));
    fv__store_close(store);
    CHECK(!file_there(folder, "w.log") && !file_there(folder, "w.pack"));
}

TEST(a_transient_store_spills_and_leaves_no_name) {
    char     *folder = test_fresh();
    fv_store *store = NULL;
    fv_error  error;
    CHECK(!mkdir(folder, 0777));
    CHECK_INT(
        fv__store_open(&(fv_store_options){ .folder = folder, .writer = "w", .memory = 1000, .transient = true }, &store, &error),
        FV_OK);
    for (int i = 0; i < 300; i++) CHECK_INT(blob_put(store, i, 100, true, NULL), FV_OK); /* and nothing is committed */
    CHECK(fv__store_resident(store) <= 1000 + 64);
    CHECK_INT(fv__store_uncommitted(store), 0);
    CHECK_INT(fv__store_flush(store, NULL), FV_OK);
    for (int i = 0; i < 300; i++) CHECK(blob_whole(store, i));
    fv__store_drop(store, blob_key(7), true);
    CHECK(!fv__store_has(store, blob_key(7)) && !fv__store_committed(store, blob_key(8)));
    CHECK(!rmdir(folder) && !mkdir(folder, 0777)); /* nothing is in it */
    fv__store_close(store);
    CHECK(!rmdir(folder));
}

TEST(what_was_flushed_outlives_the_process_and_nothing_else_does) {
    char     *folder = test_fresh();
    fv_store *store = open_store(folder, "w", 1 << 30, 1e9, false);
    for (int i = 0; i < 200; i++) blob_put(store, i, 1, i % 3 != 0, NULL);
    CHECK_INT(fv__store_uncommitted(store), 133);
    CHECK(!fv__store_committed(store, blob_key(1)));
    CHECK_INT(fv__store_flush(store, NULL), FV_OK);
    CHECK(fv__store_committed(store, blob_key(1)) && !fv__store_committed(store, blob_key(0)));
    CHECK_INT(fv__store_uncommitted(store), 0);
    for (int i = 200; i < 300; i++) blob_put(store, i, 1, true, NULL);
    fv__store_close(store);
    for (int round = 0; round < 3; round++) { /* also from a memory far too small, and under the same writer's name */
        store = open_store(folder, "w", round == 1 ? 1000 : 1 << 30, 1e9, false);
        for (int i = 0; i < 300; i++) {
            bool kept = i < 200 && i % 3 != 0;
            CHECK_INT(fv__store_has(store, blob_key(i)), kept);
            CHECK_INT(fv__store_committed(store, blob_key(i)), kept);
            if (kept) CHECK(blob_whole(store, i));
            uint8_t byte;
            if (kept && blob_size(i))
                CHECK(fv__store_read(store, blob_key(i), blob_size(i) - 1, &byte, 1, NULL) == FV_OK &&
                      blob_right(i, &byte, 1, blob_size(i) - 1));
        }
        fv__store_close(store);
    }
}

TEST(a_put_that_exceeds_patience_commits) {
    fv_store *store = open_store(test_fresh(), "w", 1 << 30, 5, false);
    for (int i = 0; i < 5; i++) blob_put(store, i, 1, true, NULL);
    CHECK(!fv__store_committed(store, blob_key(0)));
    blob_put(store, 5, 0.5, true, NULL);
    for (int i = 0; i < 6; i++) CHECK(fv__store_committed(store, blob_key(i)));
    CHECK(fv__store_uncommitted(store) == 0);
    fv__store_close(store);
}

TEST(a_second_process_with_the_same_name_makes_its_own_files) {
    char     *folder = test_fresh();
    fv_store *a = open_store(folder, "w", 1 << 30, 0, false), *b = open_store(folder, "w", 1 << 30, 0, false);
    CHECK_INT(blob_put(a, 1, 1, true, NULL), FV_OK);
    CHECK_INT(blob_put(b, 2, 1, true, NULL), FV_OK);
    CHECK(file_there(folder, "w.log") && file_there(folder, "w-2.log"));
    CHECK_INT(fv__store_refresh(a, NULL), FV_OK);
    CHECK(blob_whole(a, 1) && blob_whole(a, 2) && !fv__store_has(b, blob_key(1)));
    fv__store_close(a);
    fv__store_close(b);
}

/* ---------------------------------------------------------------- hook */

static int       hook_calls;
static fv_status hook_status;
static fv_status hook(void *context, fv_error *error) {
    hook_calls += *(int *)context;
    return hook_status == FV_OK ? FV_OK : fv_fail(error, hook_status, "the output cannot be synced");
}

TEST(nothing_is_committed_before_the_hook_made_outside_results_durable) {
    int       one = 1;
    char     *folder = test_fresh();
    fv_error  error;
    fv_store *store = open_store(folder, "w", 1 << 30, 1, false);
    fv__store_on_flush(store, hook, &one);
    hook_calls = 0;
    hook_status = FV_ERROR_IO;
    CHECK_INT(blob_put(store, 1, 2, true, &error), FV_ERROR_IO);
    CHECK_TEXT(error.message, "the output cannot be synced");
    CHECK(!fv__store_committed(store, blob_key(1)) && !file_there(folder, "w.log"));
    CHECK(fv__store_uncommitted(store) == 2 && blob_whole(store, 1));
    hook_status = FV_OK;
    CHECK_INT(blob_put(store, 2, 0, true, &error), FV_OK);
    CHECK(fv__store_committed(store, blob_key(1)) && fv__store_committed(store, blob_key(2)));
    CHECK_INT(hook_calls, 2);
    fv__store_close(store);
}

/* ---------------------------------------------------------------- memory */

TEST(memory_stays_in_its_budget_except_for_what_is_pinned) {
    int64_t   budget = 1 << 20;
    fv_store *store = open_store(test_fresh(), "w", budget, 1e9, false);
    for (int i = 0; i < 600; i++) {
        CHECK_INT(blob_put(store, i, 0, i % 2, NULL), FV_OK);
        CHECK(fv__store_resident(store) <= budget);
    }
    fv_blob blobs[600];
    int64_t pinned = 0;
    for (int i = 0; i < 600; i++) {
        CHECK_INT(fv__store_get(store, blob_key(i), &blobs[i], NULL), FV_OK);
        CHECK(blob_right(i, blobs[i].data, blobs[i].size, 0));
        pinned += (blob_size(i) + 63) / 64 * 64;
        CHECK(fv__store_resident(store) <= FV_MAX(budget, pinned));
    }
    for (int i = 0; i < 600; i++) CHECK(blob_right(i, blobs[i].data, blobs[i].size, 0));
    for (int i = 0; i < 600; i++) fv__store_unpin(store, &blobs[i]);
    CHECK(fv__store_resident(store) <= budget);
    fv__store_close(store);
}

TEST(a_dropped_blob_gives_memory_and_disk_back) {
    char     *folder = test_fresh();
    fv_store *store = open_store(folder, "w", 0, 1e9, false);
    size_t    size = 8 << 20;
    for (int i = 0; i < 4; i++) CHECK_INT(fv__store_put(store, blob_key(i), blob_new(i, size), size, 0, i >= 2, NULL), FV_OK);
    CHECK_INT(fv__store_flush(store, NULL), FV_OK);
    CHECK(disk_use(folder, "w.pack") >= 4 * (int64_t)size);
    fv__store_drop(store, blob_key(0), false);
    CHECK(!fv__store_has(store, blob_key(0)));
    CHECK(disk_use(folder, "w.pack") < 4 * (int64_t)size);
    fv_blob blob;
    CHECK_INT(fv__store_get(store, blob_key(1), &blob, NULL), FV_OK);
    fv__store_drop(store, blob_key(1), true);
    CHECK(!fv__store_has(store, blob_key(1)) && blob_right(1, blob.data, blob.size, 0)); /* still pinned */
    fv__store_unpin(store, &blob);
    CHECK(disk_use(folder, "w.pack") < 3 * (int64_t)size);
    fv__store_drop(store, blob_key(2), false); /* committed: stays */
    CHECK(fv__store_has(store, blob_key(2)));
    fv__store_drop(store, blob_key(3), true);
    CHECK(!fv__store_has(store, blob_key(3)) && disk_use(folder, "w.pack") < 2 * (int64_t)size);
    CHECK_INT(fv__store_resident(store), 0);
    fv__store_close(store);
    store = open_store(folder, "w", 0, 1e9, false);
    CHECK(!fv__store_has(store, blob_key(0)) && !fv__store_has(store, blob_key(1)) && !fv__store_has(store, blob_key(3)));
    CHECK(fv__store_has(store, blob_key(2)));
    fv__store_drop(store, blob_key(2), true); /* from a file of somebody else */
    CHECK(!fv__store_has(store, blob_key(2)));
    fv__store_close(store);
    store = open_store(folder, "w", 0, 1e9, false);
    CHECK(!fv__store_has(store, blob_key(2)));
    CHECK_INT(fv__store_put(store, blob_key(2), blob_new(2, 100), 100, 0, true, NULL), FV_OK); /* and made again */
    CHECK_INT(fv__store_flush(store, NULL), FV_OK);
    fv__store_close(store);
    store = open_store(folder, "w", 0, 1e9, false);
    CHECK_INT(fv__store_size(store, blob_key(2)), 100);
    fv__store_close(store);
}

/* ---------------------------------------------------------------- random operations against a model */

typedef struct {
    bool    there, keep, committed;
    fv_blob blob;
} modelled;
enum { KEYS = 150 };

static bool agree(fv_store *store, const modelled *model) {
    for (int i = 0; i < KEYS; i++) {
        bool has = fv__store_has(store, blob_key(i)), committed = fv__store_committed(store, blob_key(i));
        bool right = !model[i].blob.entry || blob_right(i, model[i].blob.data, model[i].blob.size, 0);
        if (has == model[i].there && committed == model[i].committed && right) continue;
        test_fail(__FILE__, __LINE__, "blob %d: has %d, committed %d, bytes right %d; the model has %d, %d", i, has, committed,
                  right, model[i].there, model[i].committed);
        return false;
    }
    return true;
}

static void reopened(fv_store **store, const char *folder, int64_t memory, bool shared, modelled *model) {
    for (int i = 0; i < KEYS; i++) {
        fv__store_unpin(*store, &model[i].blob);
        if (!model[i].committed && !shared) model[i] = (modelled){ 0 }; /* shared: written at once, and the machine still runs */
        model[i].keep = model[i].there;
    }
    fv__store_close(*store);
    *store = open_store(folder, "w", memory, 1e9, shared);
}

static void step(fv_store *store, int i, uint64_t what, modelled *m) {
    if (what < 40) {
        bool keep = what % 3 > 0;
        if (blob_put(store, i, 0.1, keep, NULL) != FV_OK) test_fail(__FILE__, __LINE__, "put %d", i);
        m->there = true;
        m->keep = m->keep || keep;
    } else if (what < 60 && m->there) {
        if (!blob_whole(store, i)) test_fail(__FILE__, __LINE__, "get %d", i);
    } else if (what < 75 && m->there && !m->blob.entry) {
        if (fv__store_get(store, blob_key(i), &m->blob, NULL) != FV_OK) test_fail(__FILE__, __LINE__, "pin %d", i);
    } else if (what < 90) {
        fv__store_unpin(store, &m->blob);
    } else if (what < 95 && m->there && blob_size(i) > 10) {
        uint8_t part[10];
        if (fv__store_read(store, blob_key(i), blob_size(i) - 10, part, 10, NULL) != FV_OK ||
            !blob_right(i, part, 10, blob_size(i) - 10))
            test_fail(__FILE__, __LINE__, "read %d", i);
    }
}

static void random_run(uint64_t seed, bool shared) {
    uint64_t  first = seed;
    char     *folder = test_fresh();
    modelled  model[KEYS] = { 0 };
    int64_t   memory = seed % 3 == 0 ? 1 << 30 : seed % 3 == 1 ? 200000 : 0;
    fv_store *store = open_store(folder, "w", memory, 1e9, shared);
    for (int t = 0; t < 1500 && !test_failed(); t++) {
        int       i = (int)(test_random(&seed) % KEYS);
        uint64_t  what = test_random(&seed) % 110;
        modelled *m = &model[i];
        if (what < 95) {
            step(store, i, what, m);
        } else if (what < 107) {
            bool durably = what % 4 == 0;
            fv__store_drop(store, blob_key(i), durably);
            if (durably || !m->committed) {
                fv__store_unpin(store, &m->blob);
                *m = (modelled){ 0 };
            }
        } else if (what < 109) {
            if (fv__store_flush(store, NULL) != FV_OK) test_fail(__FILE__, __LINE__, "flush");
            for (int k = 0; k < KEYS; k++) model[k].committed = model[k].there && model[k].keep;
        } else if (shared) { /* a reader cannot tell kept from other lines: commit all first */
            for (int k = 0; k < KEYS; k++)
                if (model[k].there) step(store, k, 1, &model[k]);
            if (fv__store_flush(store, NULL) != FV_OK) test_fail(__FILE__, __LINE__, "flush");
            for (int k = 0; k < KEYS; k++) model[k].committed = model[k].there;
            reopened(&store, folder, memory, shared, model);
        } else
            reopened(&store, folder, memory, shared, model);
        if (t % 50 == 0 && !agree(store, model)) printf("# seed %llu, after %d steps\n", (unsigned long long)first, t);
    }
    for (int i = 0; i < KEYS; i++) fv__store_unpin(store, &model[i].blob);
    fv__store_close(store);
}

TEST(random_operations_agree_with_a_model) {
    for (uint64_t seed = 0; seed < 30 && !test_failed(); seed++) random_run(seed, false);
}

TEST(random_operations_on_a_shared_store_agree_with_a_model) {
    for (uint64_t seed = 100; seed < 130 && !test_failed(); seed++) random_run(seed, true);
}

/* ---------------------------------------------------------------- damage */

static void small_store(const char *folder) { /* ten blobs of a few bytes, and facts */
    fv_store *store = open_store(folder, "w", 1 << 30, 1e9, false);
    for (int i = 0; i < 12; i++) {
        size_t size = i % 4 == 0 ? 0 : (size_t)(i * 5);
        fv__store_put(store, blob_key(i), blob_new(i, size), size, 0, true, NULL);
    }
    fv__store_flush(store, NULL);
    fv__store_close(store);
}

/* How many blobs are whole; -1 if one that is claimed is wrong. */
static int whole_ones(const char *folder) {
    fv_store *store = open_store(folder, "v", 1 << 30, 1e9, false);
    int       whole = 0;
    for (int i = 0; i < 12 && whole >= 0; i++) {
        if (!fv__store_has(store, blob_key(i))) continue;
        fv_blob   blob;
        uint8_t   byte;
        size_t    size = i % 4 == 0 ? 0 : (size_t)(i * 5);
        fv_status part = size ? fv__store_read(store, blob_key(i), size - 1, &byte, 1, NULL) : FV_OK;
        if (part == FV_OK && size && !blob_right(i, &byte, 1, size - 1)) whole = -1000;
        fv_status status = fv__store_get(store, blob_key(i), &blob, NULL);
        if (status == FV_OK) {
            whole += blob.size == size && blob_right(i, blob.data, size, 0) && part == FV_OK ? 1 : -1000;
            fv__store_unpin(store, &blob);
        } else if ((part == FV_OK && status != FV_ERROR_INPUT) || fv__store_has(store, blob_key(i)))
            whole = -1000;
    }
    fv__store_close(store);
    char *mine = fv__sprintf("%s/v.log", folder);
    unlink(mine); /* what was voided by this look */
    free(mine);
    return whole;
}

static void read_file(const char *folder, const char *name, fv_bytes *bytes) {
    char *path = fv__sprintf("%s/%s", folder, name);
    if (fv__file_read_all(path, 1 << 20, bytes, NULL) != FV_OK) abort();
    free(path);
}

static void write_file(const char *folder, const char *name, const void *data, size_t size) {
    char *path = fv__sprintf("%s/%s", folder, name);
    if (fv__file_write_all(path, data, size, false, NULL) != FV_OK) abort();
    free(path);
}

TEST(a_log_or_pack_cut_anywhere_loses_only_what_was_cut) {
    char    *folder = test_fresh();
    fv_bytes log = { 0 }, pack = { 0 };
    small_store(folder);
    read_file(folder, "w.log", &log);
    read_file(folder, "w.pack", &pack);
    CHECK_INT(log.size, 13 * 128);
    CHECK_INT(whole_ones(folder), 12);
    int before = 0;
    for (size_t cut = 0; cut <= log.size; cut++) {
        write_file(folder, "w.log", log.data, cut);
        int whole = whole_ones(folder);
        CHECK_MESSAGE(whole == FV_MAX((int)(cut / 128) - 1, 0), "log cut at %zu: %d are whole", cut, whole);
    }
    for (size_t cut = 0; cut <= pack.size; cut++) {
        write_file(folder, "w.pack", pack.data, cut);
        int whole = whole_ones(folder);
        CHECK_MESSAGE(whole >= before && whole >= 3, "pack cut at %zu: %d are whole", cut, whole);
        before = whole;
    }
    CHECK_INT(before, 12);
    fv__bytes_release(&log);
    fv__bytes_release(&pack);
}

TEST(a_flipped_bit_anywhere_costs_at_most_one_blob) {
    char    *folder = test_fresh();
    fv_bytes file = { 0 };
    small_store(folder);
    const char *names[] = { "w.log", "w.pack" };
    for (int f = 0; f < 2; f++) {
        read_file(folder, names[f], &file);
        for (size_t i = 0; i < file.size * 8; i += 3) {
            file.data[i / 8] ^= (uint8_t)(1 << i % 8);
            write_file(folder, names[f], file.data, file.size);
            int whole = whole_ones(folder);
            file.data[i / 8] ^= (uint8_t)(1 << i % 8);
            CHECK_MESSAGE(whole >= 11, "bit %zu of %s: %d are whole", i, names[f], whole);
        }
        write_file(folder, names[f], file.data, file.size);
    }
    fv__bytes_release(&file);
}

TEST(a_damaged_blob_can_be_made_again_and_stays_good) {
    char    *folder = test_fresh();
    fv_bytes pack = { 0 };
    small_store(folder);
    read_file(folder, "w.pack", &pack);
    memset(pack.data, 0xee, pack.size);
    write_file(folder, "w.pack", pack.data, pack.size);
    fv_store *store = open_store(folder, "w", 1 << 30, 1e9, false);
    fv_blob   blob;
    fv_error  error;
    CHECK(fv__store_has(store, blob_key(7)));
    CHECK_INT(fv__store_get(store, blob_key(7), &blob, &error), FV_ERROR_INPUT);
    CHECK(strstr(error.message, "damaged"));
    CHECK(!fv__store_has(store, blob_key(7)));
    CHECK_INT(fv__store_put(store, blob_key(7), blob_new(7, 35), 35, 1, true, NULL), FV_OK);
    CHECK_INT(fv__store_flush(store, NULL), FV_OK);
    fv__store_close(store);
    for (int round = 0; round < 2; round++) {
        store = open_store(folder, "w", 1 << 30, 1e9, false);
        CHECK_INT(fv__store_get(store, blob_key(7), &blob, NULL), FV_OK);
        CHECK(blob.size == 35 && blob_right(7, blob.data, 35, 0));
        fv__store_unpin(store, &blob);
        fv__store_close(store);
    }
    fv__bytes_release(&pack);
}

/* ---------------------------------------------------------------- full disk */

/* Puts until the disk is full, checks that what was committed before is still read and that the message is clear. */
static int fill(const char *folder, int64_t memory, bool shared) {
    fv_store *store = open_store(folder, "w", memory, 1, shared);
    fv_error  error = { 0 };
    size_t    size = 100000;
    int       i = 0, committed = 0;
    fv_status status = FV_OK;
    for (; i < 1000 && status == FV_OK; i++) {
        status = fv__store_put(store, blob_key(i), blob_new(i, size), size, 0.3, true, &error);
        if (status == FV_OK && fv__store_committed(store, blob_key(i))) committed = i + 1;
    }
    if (status != FV_ERROR_FULL || !strstr(error.message, "no space left for results in")) return 1;
    if (committed == 0 || fv__store_flush(store, &error) != FV_ERROR_FULL) return 2;
    for (int k = 0; k < i; k++) { /* all that was put is still there, committed or not */
        fv_blob blob;
        if (fv__store_get(store, blob_key(k), &blob, NULL) != FV_OK || !blob_right(k, blob.data, size, 0)) return 3;
        fv__store_unpin(store, &blob);
    }
    fv__store_close(store);
    store = open_store(folder, "v", 1 << 30, 1, false);
    for (int k = 0; k < committed; k++) {
        fv_blob blob;
        if (fv__store_get(store, blob_key(k), &blob, NULL) != FV_OK || !blob_right(k, blob.data, size, 0)) return 4;
        fv__store_unpin(store, &blob);
    }
    fv__store_close(store);
    return 0;
}

static int fill_in_child(const char *folder, int64_t memory, bool shared, rlim_t limit) {
    pid_t child = fork();
    if (child == 0) {
        struct rlimit most = { limit, limit };
        signal(SIGXFSZ, SIG_IGN);
        if (limit) setrlimit(RLIMIT_FSIZE, &most);
        _exit(fill(folder, memory, shared));
    }
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

TEST(a_file_that_may_not_grow_is_reported_and_what_was_committed_stays) {
    CHECK_INT(fill_in_child(test_fresh(), 1 << 30, false, 5 << 20), 0);
    CHECK_INT(fill_in_child(test_fresh(), 300000, false, 5 << 20), 0);
    CHECK_INT(fill_in_child(test_fresh(), 300000, true, 5 << 20), 0);
}

TEST(a_full_disk_is_reported_and_what_was_committed_stays) {
    char *folder = test_fresh();
    CHECK(!mkdir(folder, 0777));
    if (mount("none", folder, "tmpfs", 0, "size=6m")) SKIP("a tmpfs cannot be mounted here");
    int result = fill_in_child(folder, 1 << 30, false, 0);
    umount(folder);
    CHECK_INT(result, 0);
}

TEST(what_is_held_is_shown_to_other_processes_only_once_it_is_committed) {
    char     *folder = test_fresh();
    fv_store *own = open_store(folder, "own", 1 << 30, 1e9, true), *other = open_store(folder, "other", 1 << 30, 1e9, true);
    for (int i = 0; i < 3; i++) CHECK_INT(fv__store_hold(own, blob_key(i), blob_new(i, 5000), 5000, 1, i < 2, NULL), FV_OK);
    CHECK_INT(fv__store_hold(other, blob_key(1), blob_new(1, 5000), 5000, 0, false, NULL), FV_OK); /* came in another way */
    CHECK(fv__store_has(own, blob_key(0)) && !fv__store_has(other, blob_key(0)));
    CHECK_INT(fv__store_flush(own, NULL), FV_OK);
    CHECK(fv__store_committed(other, blob_key(0)) && !fv__store_has(other, blob_key(2)));
    fv__store_drop(other, blob_key(1), false); /* what came is gone, what its maker has committed is not */
    fv__store_close(other);
    fv__store_close(own);
    other = open_store(folder, "third", 1 << 30, 1e9, true);
    CHECK(fv__store_committed(other, blob_key(0)) && fv__store_committed(other, blob_key(1)) &&
          !fv__store_has(other, blob_key(2)));
    fv__store_close(other);
}

/* ---------------------------------------------------------------- disk budget */

static void commit_one(const char *folder, const char *writer, int number, size_t size, int days_ago) {
    fv_store *store = open_store(folder, writer, 1 << 30, 1e9, false);
    fv__store_put(store, blob_key(number), blob_new(number, size), size, 0, true, NULL);
    fv__store_flush(store, NULL);
    fv__store_close(store);
    char           *log = fv__sprintf("%s/%s.log", folder, writer);
    struct timespec when[2] = { { time(NULL) - days_ago * 86400, 0 }, { time(NULL) - days_ago * 86400, 0 } };
    utimensat(AT_FDCWD, log, when, 0);
    free(log);
}

TEST(the_disk_budget_removes_the_least_recently_used_files_of_dead_writers) {
    char *folder = test_fresh();
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        commit_one(folder, name, i, 1 << 20, 10 - i);
    }
    fv_store *store = open_store(folder, "u", 1 << 30, 1e9, false); /* uses the oldest */
    CHECK(fv__store_has(store, blob_key(0)));
    fv_store *live = open_store(folder, "live", 1 << 30, 0, false);
    CHECK_INT(fv__store_put(live, blob_key(9), blob_new(9, 1 << 20), 1 << 20, 1, true, NULL), FV_OK);
    char           *log = fv__sprintf("%s/live.log", folder);
    struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };
    CHECK(!utimensat(AT_FDCWD, log, old, 0));
    free(log);

    fv__store_trim(folder, (4 << 20) + (1 << 19)); /* room for four pairs of six */
    fv_store *budgeted = open_store(folder, "b", 1 << 30, 1e9, false);
    CHECK(fv__store_has(budgeted, blob_key(0)) && fv__store_has(budgeted, blob_key(9)));
    CHECK(!fv__store_has(budgeted, blob_key(1)) && !fv__store_has(budgeted, blob_key(2)));
    CHECK(fv__store_has(budgeted, blob_key(3)) && fv__store_has(budgeted, blob_key(4)));
    CHECK(!file_there(folder, "w1.log") && !file_there(folder, "w1.pack") && file_there(folder, "live.log"));
    fv__store_close(budgeted);
    fv__store_close(live);
    fv__store_close(store);
}

TEST(what_a_killed_run_had_spilled_is_given_back) {
    char *folder = test_fresh();
    pid_t child = fork();
    if (child == 0) {
        fv_store *store = open_store(folder, "w", 0, 1e9, false);
        size_t    size = 10 << 20;
        for (int i = 0; i < 10; i++) fv__store_put(store, blob_key(i), blob_new(i, size), size, 0, i == 5, NULL);
        _exit(fv__store_flush(store, NULL) != FV_OK);
    }
    int status;
    waitpid(child, &status, 0);
    CHECK_INT(status, 0);
    CHECK(disk_use(folder, "w.pack") >= 100 << 20);
    fv_store *store = open_store(folder, "v", 1 << 30, 1e9, false);
    int64_t   left = disk_use(folder, "w.pack");
    CHECK_MESSAGE(left >= 10 << 20 && left < 12 << 20, "%lld bytes are left", (long long)left);
    fv_blob blob;
    CHECK_INT(fv__store_get(store, blob_key(5), &blob, NULL), FV_OK);
    CHECK(blob_right(5, blob.data, blob.size, 0));
    fv__store_unpin(store, &blob);
    fv__store_close(store);
}

TEST(a_pack_without_a_log_is_removed) {
    char *folder = test_fresh();
    CHECK(!mkdir(folder, 0777));
    write_file(folder, "x.pack", "abc", 3);
    fv__store_close(open_store(folder, "w", 1, 1, false));
    CHECK(!file_there(folder, "x.pack"));
}

TEST(nonsense_in_the_folder_is_ignored) {
    char *folder = test_fresh();
    CHECK(!mkdir(folder, 0777));
    uint8_t  junk[5000];
    uint64_t seed = 5;
    for (size_t i = 0; i < sizeof junk; i++) junk[i] = (uint8_t)test_random(&seed);
    write_file(folder, "junk.log", junk, sizeof junk);
    write_file(folder, "junk.pack", junk, sizeof junk);
    write_file(folder, "note.txt", "hello", 5);
    fv_store *store = open_store(folder, "w", 1, 1, false);
    CHECK_INT(blob_put(store, 1, 5, true, NULL), FV_OK);
    CHECK(blob_whole(store, 1));
    fv__store_close(store);
}

/* ---------------------------------------------------------------- speed; printed, not judged */

TEST(speed_of_facts_and_small_blobs) {
    enum { N = 1000000 };
    char     *folder = test_fresh();
    fv_store *store = open_store(folder, "w", (int64_t)4 << 30, 1e9, false);
    double    t0 = fv__now();
    for (int i = 0; i < N; i++) fv__store_put(store, blob_key(i), NULL, 0, 1e-6, true, NULL);
    double t1 = fv__now();
    for (int i = 0; i < N; i++)
        if (!fv__store_has(store, blob_key(i))) CHECK(false);
    double t2 = fv__now();
    CHECK_INT(fv__store_flush(store, NULL), FV_OK);
    double t3 = fv__now();
    fv__store_close(store);
    double t4 = fv__now();
    store = open_store(folder, "v", (int64_t)4 << 30, 1e9, false);
    double t5 = fv__now();
    CHECK(fv__store_has(store, blob_key(0)) && fv__store_has(store, blob_key(N - 1)));
    fv__store_close(store);
    printf("# facts: put %.2f us, has %.2f us, flush of all %.2f us each; opening %d lines %.3f s\n", (t1 - t0) / N * 1e6,
           (t2 - t1) / N * 1e6, (t3 - t2) / N * 1e6, N, t5 - t4);
    store = open_store(test_fresh(), "w", (int64_t)4 << 30, 0.2, false);
    t0 = fv__now();
    for (int i = 0; i < N; i++) fv__store_put(store, blob_key(i), NULL, 0, 1e-3, true, NULL); /* a commit every 200 */
    t1 = fv__now();
    fv__store_close(store);
    store = open_store(test_fresh(), "w", (int64_t)4 << 30, 5, false);
    t2 = fv__now();
    for (int i = 0; i < N; i++) { /* a commit every 5000 */
        void *p = fv__buffer_new(120);
        memset(p, i, 120);
        fv__store_put(store, blob_key(i), p, 120, 1e-3, true, NULL);
    }
    t3 = fv__now();
    fv__store_close(store);
    store = open_store(test_fresh(), "w", 10 << 20, 1e9, false);
    t4 = fv__now();
    for (int i = 0; i < N; i++) {
        void *p = fv__buffer_new(120);
        memset(p, i, 120);
        fv__store_put(store, blob_key(i), p, 120, 1e-3, false, NULL);
    }
    t5 = fv__now();
    fv__store_close(store);
    printf("# committed facts (every 200) %.2f us; committed blobs of 120 bytes (every 5000) %.2f us; spilled ones %.2f us\n",
           (t1 - t0) / N * 1e6, (t3 - t2) / N * 1e6, (t5 - t4) / N * 1e6);
    store = open_store(test_fresh(), "w", 10 << 20, 1e9, true);
    t0 = fv__now();
    for (int i = 0; i < N / 10; i++) {
        void *p = fv__buffer_new(120);
        memset(p, i, 120);
        fv__store_put(store, blob_key(i), p, 120, 1e-3, false, NULL);
    }
    t1 = fv__now();
    fv__store_close(store);
    printf("# shared blobs of 120 bytes %.2f us\n", (t1 - t0) / (N / 10) * 1e6);
}

TEST(speed_of_large_blobs) {
    enum { N = 40 };
    size_t    size = 16 << 20;
    fv_store *store = open_store(test_fresh(), "w", 64 << 20, 1e9, false);
    double    t0 = fv__now();
    for (int i = 0; i < N; i++) {
        void *p = fv__buffer_new(size);
        memset(p, i, size);
        fv__store_put(store, blob_key(i), p, size, 1, false, NULL);
    }
    double t1 = fv__now();
    for (int i = 0; i < N; i++) {
        fv_blob blob;
        CHECK_INT(fv__store_get(store, blob_key(i), &blob, NULL), FV_OK);
        fv__store_unpin(store, &blob);
    }
    double t2 = fv__now(), gigabytes = N * (double)size / 1e9;
    printf("# blobs of 16 MB: spilled at %.2f GB/s, loaded at %.2f GB/s\n", gigabytes / (t1 - t0), gigabytes / (t2 - t1));
    fv__store_close(store);
}

TEST_MAIN
