/* The record of a run: nothing that was flushed is lost, and the database says what the logs say. */
#include "base/file.h"
#include "record/record.h"
#include "support/test.h"
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char *fresh(void) {
    static fv_arena names;
    static int      number;
    return fv__arena_printf(&names, "%s/run-%d-%d", test_folder(), (int)getpid(), number++);
}

static fv_task_facts task(int64_t i) {
    return (fv_task_facts){
        .key = fv__hash_bytes(&i, sizeof i),
        .item = i % 7,
        .stage = i % 3,
        .task = i,
        .worker = (int)(i % 5),
        .start = 1.7e9 + (double)i,
        .wait = 0.25,
        .read = 0.5,
        .compute = 1.5,
        .write = 0.125,
        .bytes_read = i * 10,
        .bytes_written = i * 20,
        .memory = 1 << 20,
        .status = i % 10 == 9 ? FV_ERROR_INPUT : FV_OK,
    };
}

static const char long_text[] = "a text that needs more than one slot, because it is longer than the eighty-eight bytes that fit "
                                "into a single one of them";

static fv_record *open_record(const char *folder, const char *worker) {
    fv_record *record;
    if (fv__record_open(folder, worker, &record, NULL) != FV_OK) abort();
    return record;
}

/* The first column of the first row, as text; NULL if there is none. */
static const char *query(const char *folder, const char *sql) {
    static char   text[65536];
    sqlite3      *db;
    sqlite3_stmt *statement = NULL;
    char         *path = fv__sprintf("%s/record.db", folder);
    const char   *result = NULL;
    if (!sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) && !sqlite3_prepare_v2(db, sql, -1, &statement, NULL) &&
        sqlite3_step(statement) == SQLITE_ROW) {
        snprintf(text, sizeof text, "%s", (const char *)sqlite3_column_text(statement, 0));
        result = text;
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    free(path);
    return result;
}

TEST(an_iteration_that_is_told_twice_is_kept_once_and_in_order) {
    char        *folder = fresh();
    fv_record   *a = open_record(folder, "one"), *b = open_record(folder, "two");
    fv_residual *found, r = { .call = { 1, 2 }, .op = "sirt", .line = 3, .slices = 16, .least = 0.25, .most = 0.75 };
    int64_t      count;
    for (int k = 5; k >= 1; k--) {
        r.iteration = k;
        r.residual = 1.0 / k;
        fv__record_residual(k % 2 ? a : b, &r);
        if (k > 2) fv__record_residual(b, &r);
    }
    r.call.low = 9;
    fv__record_residual(a, &r);
    fv__record_close(a);
    fv__record_close(b);
    CHECK(fv__record_residuals(folder, &found, &count, NULL) == FV_OK && count == 6);
    for (int k = 0; k < 5; k++) CHECK(found[k].iteration == k + 1 && found[k].residual == 1.0 / (k + 1) && found[k].line == 3);
    CHECK(!strcmp(found[0].op, "sirt") && found[0].slices == 16 && found[5].call.low == 9);
    free(found);
    CHECK(fv__record_build(folder, NULL) == FV_OK);
    CHECK(!strcmp(query(folder, "SELECT count(*) FROM residual WHERE operator = 'sirt' AND least = 0.25 AND most = 0.75"), "6"));
    CHECK(!strcmp(query(folder, "SELECT group_concat(iteration) FROM residual"), "1,2,3,4,5,1"));
}

TEST(what_operators_took_is_added_up_over_flushes_and_processes) {
    char      *folder = fresh();
    fv_spent   list[FV_MOST_SPENT];
    int        count;
    fv_record *a = open_record(folder, "one"), *b = open_record(folder, "two");
    for (int i = 0; i < 3; i++) {
        fv__record_spent(a, "gaussian", 0.5);
        fv__record_spent(b, i ? "gaussian" : "sirt", 0.25);
        CHECK(fv__record_flush(a, NULL) == FV_OK);
    }
    fv__record_close(a);
    fv__record_close(b);
    CHECK(fv__record_spent_all(folder, list, &count, NULL) == FV_OK && count == 2);
    CHECK(!strcmp(list[0].op, "gaussian") && list[0].seconds == 2 && !strcmp(list[1].op, "sirt") && list[1].seconds == 0.25);
    CHECK(fv__record_build(folder, NULL) == FV_OK);
    CHECK(!strcmp(query(folder, "SELECT seconds FROM spent WHERE operator = 'gaussian'"), "2.0"));
}

TEST(what_operators_with_long_names_took_is_one_sum_under_the_whole_name) {
    fv_spent    list[FV_MOST_SPENT];
    const char *name = "gaussian_gradient_magnitude", *endless = "an_operator_whose_name_is_longer_than_any_that_is_kept_here";
    int         count = 0;
    for (int i = 0; i < 4; i++) {
        fv__spent_add(list, &count, name, 0.5);
        fv__spent_add(list, &count, endless, 1);
    }
    CHECK(count == 2 && !strcmp(list[0].op, name) && list[0].seconds == 2 && list[1].seconds == 4);
}

TEST(the_database_says_what_the_logs_say) {
    char *folder = fresh(), *text = fv__calloc(20001);
    for (int i = 0; i < 20000; i++) text[i] = (char)('a' + i % 26);
    fv_record *a = open_record(folder, "one"), *b = open_record(folder, "two");
    for (int i = 0; i < 1000; i++) {
        fv_task_facts facts = task(i);
        fv__record_task(i % 2 ? a : b, &facts);
    }
    fv__record_fact(a, "text", text);
    fv__record_fact(a, "host", "here");
    fv__record_fact(b, "host", "here");
    fv__record_fact(b, "host", "there");
    fv__record_fact(b, "empty", "");
    fv__record_fact(b, "", "nameless");
    fv__record_close(a);
    fv__record_close(b);
    fv_error error;
    CHECK_MESSAGE(fv__record_build(folder, &error) == FV_OK, "%s", error.message);
    CHECK_TEXT(query(folder, "SELECT count(*) || ' ' || count(DISTINCT key) FROM task"), "1000 1000");
    CHECK_TEXT(query(folder, "SELECT count(*) FROM task WHERE status = 'input'"), "100");
    CHECK_TEXT(
        query(folder, "SELECT sum(bytes_read) || ' ' || sum(bytes_written) || ' ' || sum(compute) || ' ' || max(task) FROM task"),
        "4995000 9990000 1500.0 999");
    CHECK_TEXT(query(folder, "SELECT process || ' ' || item || ' ' || stage || ' ' || worker || ' ' || memory || ' ' || (start - "
                             "1.7e9) || ' ' || wait || ' ' || read || ' ' || write "
                             "FROM task WHERE task = 123"),
               "one 4 0 3 1048576 123.0 0.25 0.5 0.125");
    char key[33];
    fv__hash_format(task(123).key, key);
    CHECK_TEXT(query(folder, "SELECT key FROM task WHERE task = 123"), key);
    CHECK_TEXT(query(folder, "SELECT value FROM run WHERE name = 'text'"), text);
    CHECK_TEXT(query(folder, "SELECT count(*) FROM run WHERE name = 'host'"), "2");
    CHECK_TEXT(query(folder, "SELECT value FROM run WHERE name = 'empty'"), "");
    CHECK_TEXT(query(folder, "SELECT value FROM run WHERE name = ''"), "nameless");
    free(text);
}

TEST(tasks_done_twice_are_counted) {
    char      *folder = fresh();
    fv_record *a = open_record(folder, "one"), *b = open_record(folder, "two");
    int64_t    tasks, repeated;
    for (int i = 0; i < 100; i++) {
        fv_task_facts facts = task(i);
        fv__record_task(a, &facts);
        if (i < 20) fv__record_task(b, &facts); /* two of them failed both times */
        if (i < 5) fv__record_task(b, &facts);  /* thrice */
    }
    fv__record_close(a);
    fv__record_close(b);
    CHECK_INT(fv__record_count(folder, &tasks, &repeated, NULL), FV_OK);
    CHECK_INT(tasks, 125);
    CHECK_INT(repeated, 18);
    CHECK_INT(fv__record_count("/no/such/folder", &tasks, &repeated, NULL), FV_ERROR_INPUT);
}

TEST(a_resumed_process_appends_and_a_rebuild_replaces) {
    char *folder = fresh();
    for (int round = 1; round <= 3; round++) {
        fv_record    *record = open_record(folder, "same");
        fv_task_facts facts = task(round);
        char          expected[32];
        fv__record_task(record, &facts);
        fv__record_fact(record, "round", round == 1 ? "one" : "more");
        fv__record_close(record);
        CHECK_INT(fv__record_build(folder, NULL), FV_OK);
        snprintf(expected, sizeof expected, "%d %d", round, FV_MIN(round, 2));
        CHECK_TEXT(query(folder, "SELECT (SELECT count(*) FROM task) || ' ' || (SELECT count(*) FROM run)"), expected);
    }
}

TEST(a_killed_process_loses_only_what_was_not_flushed) {
    char *folder = fresh();
    pid_t child = fork();
    if (child == 0) {
        fv_record *record = open_record(folder, "w");
        for (int i = 0; i < 100; i++) {
            fv_task_facts facts = task(i);
            fv__record_task(record, &facts);
            if (i == 79) fv__record_flush(record, NULL);
        }
        kill(getpid(), SIGKILL);
    }
    waitpid(child, NULL, 0);
    int64_t tasks, repeated;
    CHECK_INT(fv__record_count(folder, &tasks, &repeated, NULL), FV_OK);
    CHECK_INT(tasks, 80);
}

TEST(what_is_older_than_a_second_is_written_with_the_next_task) {
    char         *folder = fresh();
    fv_record    *record = open_record(folder, "w");
    fv_task_facts facts = task(1);
    int64_t       tasks, repeated;
    fv__record_task(record, &facts);
    CHECK_INT(fv__record_count(folder, &tasks, &repeated, NULL), FV_OK);
    CHECK_INT(tasks, 0);
    usleep(1100000);
    fv__record_task(record, &facts);
    CHECK_INT(fv__record_count(folder, &tasks, &repeated, NULL), FV_OK);
    CHECK_INT(tasks, 2);
    fv__record_close(record);
}

TEST(damaged_and_torn_logs_give_what_is_whole) {
    char      *folder = fresh(), *path = fv__sprintf("%s/task-w.log", folder);
    fv_record *record = open_record(folder, "w");
    fv_bytes   log = { 0 };
    int64_t    tasks, repeated;
    for (int i = 0; i < 20; i++) {
        fv_task_facts facts = task(i);
        fv__record_task(record, &facts);
        if (i == 9) fv__record_fact(record, "long", long_text);
    }
    fv__record_close(record);
    CHECK_INT(fv__file_read_all(path, 1 << 20, &log, NULL), FV_OK);
    CHECK_INT(log.size, 24 * 128); /* the first and the last one tell the memory */
    for (size_t cut = 0; cut <= log.size; cut += 13) {
        CHECK_INT(fv__file_write_all(path, log.data, cut, false, NULL), FV_OK);
        CHECK_INT(fv__record_count(folder, &tasks, &repeated, NULL), FV_OK);
        int64_t slots = FV_MAX((int64_t)cut / 128 - 1, 0), expected = slots <= 10 ? slots : FV_MIN(FV_MAX(slots - 2, 10), 20);
        CHECK_MESSAGE(tasks == expected, "cut at %zu: %lld tasks", cut, (long long)tasks);
    }
    for (size_t i = 0; i < log.size; i += 37) {
        log.data[i] ^= 0x10;
        CHECK_INT(fv__file_write_all(path, log.data, log.size, false, NULL), FV_OK);
        log.data[i] ^= 0x10;
        CHECK_INT(fv__record_build(folder, NULL), FV_OK);
        bool  fact = i / 128 == 11 || i / 128 == 12, memory = i / 128 == 0 || i / 128 == 23;
        char *expected = fv__sprintf("%d %d", fact || memory ? 20 : 19, fact ? 0 : 1);
        CHECK_TEXT(query(folder, "SELECT (SELECT count(*) FROM task) || ' ' || (SELECT count(*) FROM run)"), expected);
        free(expected);
    }
    fv__bytes_release(&log);
    free(path);
}

TEST(a_log_that_cannot_grow_is_reported_by_flush) {
    char *folder = fresh();
    pid_t child = fork();
    int   status;
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 100000, 100000 });
        fv_record *record = open_record(folder, "w");
        for (int i = 0; i < 5000; i++) {
            fv_task_facts facts = task(i);
            fv__record_task(record, &facts);
        }
        fv_error error = { 0 };
        _exit(fv__record_flush(record, &error) == FV_ERROR_FULL && strstr(error.message, "task-w.log") ? 0 : 1);
    }
    waitpid(child, &status, 0);
    CHECK_INT(status, 0);
}

static void *many(void *record) {
    for (int i = 0; i < 20000; i++) {
        fv_task_facts facts = task(i);
        fv__record_task(record, &facts);
        if (i % 1000 == 0) fv__record_fact(record, "long", long_text);
    }
    return NULL;
}

TEST(threads_share_a_record) {
    char      *folder = fresh();
    fv_record *record = open_record(folder, "w");
    pthread_t  threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, many, record);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    fv__record_close(record);
    int64_t tasks, repeated;
    CHECK_INT(fv__record_count(folder, &tasks, &repeated, NULL), FV_OK);
    CHECK_INT(tasks, 80000);
    CHECK_INT(repeated, 18000);
    CHECK_INT(fv__record_build(folder, NULL), FV_OK);
    CHECK_TEXT(query(folder, "SELECT count(*) FROM run"), "1");
}

TEST(speed_of_a_million_tasks) {
    enum { N = 1000000 };
    char      *folder = fresh();
    fv_record *record = open_record(folder, "w");
    int64_t    tasks, repeated;
    double     t0 = fv__now();
    for (int i = 0; i < N; i++) {
        fv_task_facts facts = task(i);
        fv__record_task(record, &facts);
    }
    fv__record_close(record);
    double t1 = fv__now();
    CHECK_INT(fv__record_count(folder, &tasks, &repeated, NULL), FV_OK);
    double   t2 = fv__now();
    fv_error error;
    CHECK_MESSAGE(fv__record_build(folder, &error) == FV_OK, "%s", error.message);
    double t3 = fv__now();
    CHECK_INT(tasks, N);
    CHECK_INT(repeated, 0);
    printf("# task %.2f us; of a million: count %.2f s, build %.2f s\n", (t1 - t0) / N * 1e6, t2 - t1, t3 - t2);
}

TEST_MAIN
