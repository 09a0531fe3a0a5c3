/* The store among several processes: killed at every point of a commit, shared between two, and left behind by another machine.
 * The children are this program itself with other arguments. */
#include "base/file.h"
#include "store/blobs.h"
#include "support/child.h"
#include <signal.h>

enum { BLOBS = 40 };

static fv_store *open_store(const char *folder, const char *writer, bool shared) {
    fv_store *store = NULL;
    fv_error  error;
    if (fv__store_open(&(fv_store_options){ folder, writer, 20000, 1, shared }, &store, &error) != FV_OK) {
        fprintf(stderr, "%s\n", error.message);
        _exit(9);
    }
    return store;
}

/* ---------------------------------------------------------------- children; they tell what they did on standard output */

static void tell_committed(fv_store *store, bool *told) {
    for (int i = 0; i < BLOBS; i++) {
        if (told[i] || !fv__store_committed(store, blob_key(i))) continue;
        test_child_say('c', i);
        told[i] = true;
    }
}

static int child_work(const char *folder, bool shared) {
    bool      told[BLOBS] = { 0 };
    fv_store *store = open_store(folder, "w", shared);
    for (int i = 0; i < BLOBS; i++) {
        blob_put(store, i, 0.15, i % 5 != 0, NULL); /* an injected error leaves it in memory */
        tell_committed(store, told);
        if (i % 20 == 19) {
            test_child_say('d', i - 10);
            fv__store_drop(store, blob_key(i - 10), true);
        }
    }
    for (int attempt = 0; fv__store_flush(store, NULL) != FV_OK; attempt++)
        if (attempt == 3) return 3;
    tell_committed(store, told);
    fv__store_close(store);
    return 0;
}

static int child_share(const char *folder, const char *what) { /* puts without flushing, says so, waits for the end of input */
    fv_store *store = open_store(folder, "child", true);
    for (int i = 0; i < BLOBS; i++)
        if (blob_put(store, i, 0.001, true, NULL) != FV_OK) return 3;
    if (!strcmp(what, "half")) fv__store_flush(store, NULL);
    if (!strcmp(what, "half"))
        for (int i = BLOBS; i < 2 * BLOBS; i++) blob_put(store, i, 0.001, true, NULL);
    test_child_say('p', 0);
    char byte;
    while (read(0, &byte, 1) == 1) {
        if (byte == 'k') _exit(7);
        if (byte == 'f') fv__store_flush(store, NULL);
        if (byte == 'm') blob_put(store, 1000, 0.001, true, NULL);
        if (byte == 'q') test_child_say(fv__store_has(store, blob_key(1)) ? 'y' : 'n', 1);
        if (byte != 'q') test_child_say('p', 0);
    }
    _exit(7); /* as if killed */
}

/* ---------------------------------------------------------------- parent */

typedef struct {
    bool committed[BLOBS], dropped[BLOBS];
    int  status;
} told;

static told run_worker(const char *folder, bool shared, const char *fault) {
    told       t = { 0 };
    test_child c = test_child_start("work", folder, shared ? "shared" : "own", fault);
    FILE      *lines = fdopen(dup(c.out), "r");
    char       what;
    int        number;
    while (fscanf(lines, "%c%d\n", &what, &number) == 2) (what == 'c' ? t.committed : t.dropped)[number] = true;
    fclose(lines);
    t.status = test_child_finish(&c);
    return t;
}

/* What was said to be committed is whole, what is claimed is whole, what was dropped is gone. */
static bool consistent(const char *folder, const told *t, bool shared, char message[128]) {
    fv_store *store = open_store(folder, "checker", shared);
    bool      good = true;
    for (int i = 0; i < BLOBS && good; i++) {
        bool has = fv__store_has(store, blob_key(i));
        good = (has || !t->committed[i] || t->dropped[i]) && (!has || blob_whole(store, i));
        snprintf(message, 128, "blob %d: there %d, committed %d, dropped %d", i, has, t->committed[i], t->dropped[i]);
        if (t->status == 0 && t->dropped[i] && has) good = false;
        if (t->status == 0 && i % 5 && !t->dropped[i] && !has) good = false;
    }
    fv__store_close(store);
    return good;
}

static const char *const points[] = { "pack-write", "pack-sync", "log-write", "log-sync", "write" };

static void crash_everywhere(bool shared, const char *how, int ended) {
    for (int p = 0; p < FV_COUNT(points); p++) {
        int passings = 1, step = shared ? 7 : 1;
        for (;; passings += step) {
            char *folder = test_fresh(), *fault = fv__sprintf("FOVEA_FAULT=%s:%d:%s", points[p], passings, how);
            told  t = run_worker(folder, shared, fault);
            char  message[128];
            bool  good = consistent(folder, &t, shared, message);
            CHECK_MESSAGE(t.status == 0 || t.status == ended, "%s: exit %d", fault, t.status);
            CHECK_MESSAGE(good, "%s: %s", fault, message);
            fv__path_remove(folder, NULL);
            free(fault);
            if (t.status == 0 && (ended || passings > 40)) break;
        }
        CHECK_MESSAGE(passings > 3, "the point %s was passed %d times only", points[p], passings - 1);
    }
}

TEST(killed_at_any_point_nothing_committed_is_lost_and_nothing_else_claimed) { crash_everywhere(false, "kill", 137); }
TEST(killed_at_any_point_of_a_shared_store_nothing_committed_is_lost) { crash_everywhere(true, "kill", 137); }
TEST(after_a_failure_at_any_point_the_same_process_can_go_on) { crash_everywhere(false, "error", 0); }
TEST(after_a_failure_at_any_point_a_sharing_process_can_go_on) { crash_everywhere(true, "error", 0); }

TEST(another_process_reads_at_once_what_was_put) {
    char     *folder = test_fresh();
    fv_store *store = open_store(folder, "parent", true); /* before the child's files exist */
    CHECK(!fv__store_has(store, blob_key(1)));
    test_child c = test_child_start("share", folder, "all", NULL);
    CHECK_INT(test_child_answer(&c), 'p');
    for (int i = 0; i < BLOBS; i++) CHECK(fv__store_has(store, blob_key(i)) && blob_whole(store, i));
    CHECK(!fv__store_committed(store, blob_key(1)));
    CHECK(!fv__store_has(store, blob_key(1000)));
    CHECK_INT(test_child_ask(&c, 'm'), 'p');
    CHECK(blob_whole(store, 1000)); /* get looks for itself */
    CHECK_INT(test_child_ask(&c, 'f'), 'p');
    CHECK_INT(fv__store_refresh(store, NULL), FV_OK);
    CHECK(fv__store_committed(store, blob_key(1)) && fv__store_committed(store, blob_key(1000)));
    CHECK_INT(test_child_ask(&c, 'q'), 'y');
    fv__store_drop(store, blob_key(1), true);
    CHECK(!fv__store_has(store, blob_key(1)));
    CHECK_INT(test_child_finish(&c), 7);
    CHECK(blob_whole(store, 2));
    fv__store_close(store);
    store = open_store(folder, "parent", true);
    CHECK(!fv__store_has(store, blob_key(1)) && blob_whole(store, 2));
    fv__store_close(store);
}

TEST(what_a_killed_process_had_shared_is_still_there) {
    char      *folder = test_fresh();
    test_child c = test_child_start("share", folder, "all", NULL);
    CHECK_INT(test_child_answer(&c), 'p');
    kill(c.pid, SIGKILL);
    CHECK_INT(test_child_finish(&c), -SIGKILL);
    fv_store *store = open_store(folder, "parent", false);
    for (int i = 0; i < BLOBS; i++) CHECK(fv__store_has(store, blob_key(i)) && blob_whole(store, i));
    CHECK(!fv__store_committed(store, blob_key(1)));
    CHECK_INT(blob_put(store, 1, 0, true, NULL), FV_OK); /* whoever wants to be sure puts it again */
    CHECK_INT(fv__store_flush(store, NULL), FV_OK);
    CHECK(fv__store_committed(store, blob_key(1)));
    fv__store_close(store);
}

TEST(of_another_machine_only_durable_lines_count_until_new_ones_come) {
    char      *folder = test_fresh();
    test_child c = test_child_start("share", folder, "half", "FOVEA_HOST=elsewhere");
    CHECK_INT(test_child_answer(&c), 'p');
    fv_store *store = open_store(folder, "parent", true);
    for (int i = 0; i < BLOBS; i++) CHECK(fv__store_committed(store, blob_key(i)) && blob_whole(store, i));
    for (int i = BLOBS; i < 2 * BLOBS; i++) CHECK(!fv__store_has(store, blob_key(i))); /* may have been lost with the power */
    CHECK_INT(test_child_ask(&c, 'm'), 'p');
    CHECK(fv__store_has(store, blob_key(1000)) && blob_whole(store, 1000)); /* came while we looked */
    CHECK(!fv__store_has(store, blob_key(BLOBS)));
    CHECK_INT(test_child_ask(&c, 'f'), 'p');
    for (int i = BLOBS; i < 2 * BLOBS; i++)
        CHECK(fv__store_has(store, blob_key(i)) && fv__store_committed(store, blob_key(i)) && blob_whole(store, i));
    CHECK(fv__store_committed(store, blob_key(1000)));
    CHECK_INT(test_child_finish(&c), 7);
    fv__store_close(store);
}

int main(int argc, char **argv) {
    if (argc > 4 && !strcmp(argv[1], "--child"))
        return !strcmp(argv[2], "work") ? child_work(argv[3], !strcmp(argv[4], "shared")) : child_share(argv[3], argv[4]);
    return test_main(argc, argv);
}
