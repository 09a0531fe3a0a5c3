/* Leases: one live owner, whoever races, dies or sleeps. */
#include "base/file.h"
#include "store/lease.h"
#include "support/child.h"
#include "support/test.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static char *path_in(const char *name) { /* in a fresh folder */
    static fv_arena names;
    static int      number;
    char           *folder = fv__arena_printf(&names, "%s/lease-%d-%d", test_folder(), (int)getpid(), number++);
    if (fv__path_make_folders(folder, NULL) != FV_OK) abort();
    return fv__arena_printf(&names, "%s/%s", folder, name);
}

static char *lease_file(const char *path) {
    static fv_arena names;
    return fv__arena_printf(&names, "%.*s.%s.fovea-lease", (int)(fv__path_name(path) - path), path, fv__path_name(path));
}

/* ---------------------------------------------------------------- children */

/* Acquires and says h (has it), t (took it over) or b (busy); then q: still held? y or n; a: acquire again; r: release. */
static fv_lease *try_it(const char *path) {
    fv_lease *lease = NULL;
    bool      taken_over;
    fv_status status = fv__lease_acquire(path, &lease, &taken_over, NULL);
    test_child_say(status == FV_OK ? (taken_over ? 't' : 'h') : status == FV_ERROR_BUSY ? 'b' : 'e', (int)status);
    return lease;
}

static int child_hold(const char *path, const char *waiting) {
    fv_lease *lease = strcmp(waiting, "wait") ? try_it(path) : NULL;
    char      what;
    while (read(0, &what, 1) == 1) {
        if (what == 'a') lease = try_it(path);
        if (what == 'q') test_child_say(lease && fv__lease_held(lease) ? 'y' : 'n', 0);
        if (what != 'r') continue;
        fv__lease_release(lease);
        lease = NULL;
        test_child_say('r', 0);
    }
    _exit(7); /* without releasing */
}

/* Takes and gives back the lease many times; inside it nobody else may be. */
static int child_race(const char *path, const char *rounds) {
    char *inside = fv__sprintf("%s.inside", path);
    for (int won = 0, round = 0; won < atoi(rounds) && round < 1000000; round++) {
        fv_lease *lease;
        fv_status status = fv__lease_acquire(path, &lease, NULL, NULL);
        if (status == FV_ERROR_BUSY) continue;
        if (status != FV_OK) return 2;
        int fd = open(inside, O_CREAT | O_EXCL | O_WRONLY, 0666);
        if (fd < 0) return 3; /* both have won */
        close(fd);
        if (!fv__lease_held(lease)) return 4;
        won++;
        unlink(inside);
        fv__lease_release(lease);
        usleep(20);
    }
    free(inside);
    return 0;
}

/* ---------------------------------------------------------------- one process */

TEST(a_lease_is_taken_held_and_given_back) {
    char     *path = path_in("out.zarr");
    fv_lease *lease, *second;
    fv_error  error;
    bool      taken_over = true;
    CHECK_INT(fv__lease_acquire(path, &lease, &taken_over, &error), FV_OK);
    CHECK(!taken_over && fv__lease_held(lease) && fv__file_exists(lease_file(path)));
    CHECK_INT(fv__lease_acquire(path, &second, NULL, &error), FV_ERROR_BUSY);
    char own[32];
    snprintf(own, sizeof own, "process %d on ", (int)getpid());
    CHECK_MESSAGE(strstr(error.message, own) && strstr(error.message, "since 20") && strstr(error.message, path), "%s",
                  error.message);
    fv__lease_release(lease);
    CHECK(!fv__file_exists(lease_file(path)));
    CHECK_INT(fv__lease_acquire(path, &lease, &taken_over, &error), FV_OK);
    CHECK(!taken_over);
    fv__lease_release(lease);
}

TEST(a_lease_in_a_missing_folder_is_refused) {
    fv_lease *lease;
    fv_error  error;
    CHECK_INT(fv__lease_acquire("/tmp/no/such/folder/out.tif", &lease, NULL, &error), FV_ERROR_INPUT);
    CHECK_MESSAGE(strstr(error.message, "/tmp/no/such/folder/out.tif") && strstr(error.message, "folder"), "%s", error.message);
}

TEST(a_very_long_name_and_a_trailing_slash_work) {
    char long_name[256];
    memset(long_name, 'x', 255);
    long_name[255] = 0;
    char     *path = path_in(long_name), *folder = path_in("out.zarr/");
    fv_lease *lease, *second;
    CHECK_INT(fv__lease_acquire(path, &lease, NULL, NULL), FV_OK);
    CHECK(fv__lease_held(lease));
    CHECK_INT(fv__lease_acquire(path, &second, NULL, NULL), FV_ERROR_BUSY);
    fv__lease_release(lease);
    CHECK_INT(fv__lease_acquire(folder, &lease, NULL, NULL), FV_OK);
    folder[strlen(folder) - 1] = 0;
    CHECK(fv__file_exists(lease_file(folder)));
    fv__lease_release(lease);
}

TEST(a_lease_that_was_removed_or_replaced_is_no_longer_held) {
    char     *path = path_in("out.png");
    fv_lease *lease;
    CHECK_INT(fv__lease_acquire(path, &lease, NULL, NULL), FV_OK);
    unlink(lease_file(path));
    CHECK(!fv__lease_held(lease));
    CHECK_INT(fv__file_write_all(lease_file(path), "somebody else", 13, false, NULL), FV_OK);
    CHECK(!fv__lease_held(lease));
    fv__lease_release(lease);
    CHECK(fv__file_exists(lease_file(path))); /* not ours to remove */
}

TEST(many_leases_at_once) {
    enum { N = 70000 }; /* more than the links that some file systems allow to one file */
    char      *path = path_in("x");
    fv_lease **leases = fv__calloc(N * sizeof *leases);
    double     t0 = fv__now();
    for (int i = 0; i < N; i++) {
        char *name = fv__sprintf("%s%d", path, i);
        CHECK_INT(fv__lease_acquire(name, &leases[i], NULL, NULL), FV_OK);
        free(name);
    }
    double t1 = fv__now();
    for (int i = 0; i < N; i++) CHECK(fv__lease_held(leases[i]));
    double t2 = fv__now();
    for (int i = 0; i < N; i++) fv__lease_release(leases[i]);
    double t3 = fv__now();
    printf("# acquire %.1f us, held %.1f us, release %.1f us\n", (t1 - t0) / N * 1e6, (t2 - t1) / N * 1e6, (t3 - t2) / N * 1e6);
    free(leases);
}

/* ---------------------------------------------------------------- several processes */

TEST(two_processes_that_race_never_both_win) {
    char      *path = path_in("out.tif");
    test_child a = test_child_start("race", path, "1000", NULL), b = test_child_start("race", path, "1000", NULL);
    CHECK_INT(test_child_finish(&a), 0);
    CHECK_INT(test_child_finish(&b), 0);
    CHECK(!fv__file_exists(lease_file(path)));
}

TEST(of_two_that_race_for_a_dead_owners_lease_one_wins) {
    char      *path = path_in("out.tif");
    fv_bytes   dead = { 0 };
    test_child owner = test_child_start("hold", path, "now", NULL);
    CHECK_INT(test_child_answer(&owner), 'h');
    CHECK_INT(fv__file_read_all(lease_file(path), 4096, &dead, NULL), FV_OK);
    kill(owner.pid, SIGKILL);
    test_child_finish(&owner);
    test_child a = test_child_start("hold", path, "wait", NULL), b = test_child_start("hold", path, "wait", NULL);
    for (int round = 0; round < 1000; round++) {
        CHECK_INT(fv__file_write_all(lease_file(path), dead.data, dead.size, false, NULL), FV_OK);
        test_child_tell(round % 2 ? &a : &b, 'a');
        test_child_tell(round % 2 ? &b : &a, 'a');
        char first = test_child_answer(&a), second = test_child_answer(&b);
        CHECK_MESSAGE((first == 't' && second == 'b') || (first == 'b' && second == 't'), "round %d: %c and %c", round, first,
                      second);
        CHECK_INT(test_child_ask(&a, 'q'), first == 't' ? 'y' : 'n');
        CHECK_INT(test_child_ask(&b, 'q'), second == 't' ? 'y' : 'n');
        test_child_ask(&a, 'r');
        test_child_ask(&b, 'r');
    }
    CHECK(!fv__file_exists(lease_file(path)));
    test_child_finish(&a);
    test_child_finish(&b);
    fv__bytes_release(&dead);
}

TEST(a_killed_owner_on_this_host_is_replaced_at_once) {
    char      *path = path_in("out.tif");
    test_child c = test_child_start("hold", path, "now", NULL);
    fv_lease  *lease;
    bool       taken_over;
    CHECK_INT(test_child_answer(&c), 'h');
    CHECK_INT(fv__lease_acquire(path, &lease, NULL, NULL), FV_ERROR_BUSY);
    kill(c.pid, SIGSTOP); /* it sleeps: still the owner */
    CHECK_INT(fv__lease_acquire(path, &lease, NULL, NULL), FV_ERROR_BUSY);
    kill(c.pid, SIGKILL);
    usleep(50000); /* not collected yet: a zombie */
    double start = fv__now();
    CHECK_INT(fv__lease_acquire(path, &lease, &taken_over, NULL), FV_OK);
    CHECK(taken_over && fv__now() - start < 15 && fv__lease_held(lease));
    test_child_finish(&c);
    fv__lease_release(lease);
}

TEST(an_owner_elsewhere_is_refused_while_its_heart_beats) {
    char      *path = path_in("out.tif");
    test_child c = test_child_start("hold", path, "now", "FOVEA_HOST=elsewhere FOVEA_LEASE_SECONDS=4");
    fv_lease  *lease;
    fv_error   error;
    CHECK_INT(test_child_answer(&c), 'h');
    setenv("FOVEA_LEASE_SECONDS", "4", 1);
    CHECK_INT(fv__lease_acquire(path, &lease, NULL, &error), FV_ERROR_BUSY);
    CHECK_MESSAGE(strstr(error.message, "on elsewhere"), "%s", error.message);
    CHECK_INT(test_child_ask(&c, 'q'), 'y');
    CHECK_INT(test_child_ask(&c, 'r'), 'r');
    CHECK_INT(fv__lease_acquire(path, &lease, NULL, &error), FV_OK);
    fv__lease_release(lease);
    test_child_finish(&c);
    unsetenv("FOVEA_LEASE_SECONDS");
}

TEST(an_owner_elsewhere_that_sleeps_too_long_loses_the_lease_and_knows_it) {
    char      *path = path_in("out.tif"), *other = path_in("other.tif");
    test_child c = test_child_start("hold", path, "now", "FOVEA_HOST=elsewhere FOVEA_LEASE_SECONDS=2");
    fv_lease  *lease, *second;
    bool       taken_over;
    CHECK_INT(test_child_answer(&c), 'h');
    fv_bytes copy = { 0 };
    kill(c.pid, SIGSTOP);
    setenv("FOVEA_LEASE_SECONDS", "2", 1);
    CHECK_INT(fv__file_read_all(lease_file(path), 4096, &copy, NULL), FV_OK);
    double start = fv__now();
    CHECK_INT(fv__lease_acquire(path, &lease, &taken_over, NULL), FV_OK);
    double waited = fv__now() - start;
    CHECK_MESSAGE(taken_over && waited > 1.9, "waited %.2f s", waited);
    /* Another lease of the same owner. */
    CHECK_INT(fv__file_write_all(lease_file(other), copy.data, copy.size, false, NULL), FV_OK);
    start = fv__now();
    CHECK_INT(fv__lease_acquire(other, &second, &taken_over, NULL), FV_OK);
    CHECK(taken_over && fv__now() - start < 1.5); /* its silence is known already */
    kill(c.pid, SIGCONT);
    CHECK_INT(test_child_ask(&c, 'q'), 'n');
    CHECK_INT(test_child_ask(&c, 'r'), 'r'); /* does not take ours away */
    CHECK(fv__lease_held(lease));
    fv__lease_release(lease);
    fv__lease_release(second);
    test_child_finish(&c);
    fv__bytes_release(&copy);
    unsetenv("FOVEA_LEASE_SECONDS");
}

TEST(a_damaged_lease_counts_as_dead_after_the_time) {
    char     *path = path_in("out.tif");
    fv_lease *lease;
    bool      taken_over;
    CHECK_INT(fv__file_write_all(lease_file(path), "", 0, false, NULL), FV_OK);
    setenv("FOVEA_LEASE_SECONDS", "0.3", 1);
    double start = fv__now();
    CHECK_INT(fv__lease_acquire(path, &lease, &taken_over, NULL), FV_OK);
    CHECK(taken_over && fv__now() - start > 0.25);
    fv__lease_release(lease);
    unsetenv("FOVEA_LEASE_SECONDS");
}

int main(int argc, char **argv) {
    if (argc > 4 && !strcmp(argv[1], "--child"))
        return !strcmp(argv[2], "race") ? child_race(argv[3], argv[4]) : child_hold(argv[3], argv[4]);
    return test_main(argc, argv);
}
