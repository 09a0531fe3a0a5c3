/* What follows from an estimate: seconds, memory, requests to a scheduler. Made-up numbers with known answers. */
#include "support/test.h"
#include <fovea/estimate.h>
#include <math.h>

static fv_estimate made_up(void) {
    return (fv_estimate){ .items_present = 400,
                          .items = 400,
                          .work = { 100, 500, 300, 100 },
                          .start = 2,
                          .factor = 1,
                          .serial = 0.05,
                          .error = 0.1,
                          .memory_base = 100 << 20,
                          .memory_worker = 50 << 20,
                          .memory_error = 0.05,
                          .memory_bound = (int64_t)8 << 30,
                          .cores = 4,
                          .most_workers = 400 };
}

TEST(seconds_follow_amdahl) {
    fv_estimate e = made_up();
    CHECK(fabs(fv_estimate_seconds(&e, 1) - 1002) < 1e-9);
    CHECK(fabs(fv_estimate_seconds(&e, 10) - (2 + 1000 * (0.05 + 0.095))) < 1e-9);
}

TEST(more_workers_than_tasks_do_not_help) {
    fv_estimate e = made_up();
    CHECK(fv_estimate_seconds(&e, 400) == fv_estimate_seconds(&e, 40000));
    CHECK(fv_estimate_memory(&e, 400) == fv_estimate_memory(&e, 40000));
}

TEST(memory_grows_with_workers_up_to_the_bound) {
    fv_estimate e = made_up();
    CHECK_INT(fv_estimate_memory(&e, 2), 200 << 20);
    CHECK_INT(fv_estimate_memory(&e, 300), (int64_t)8 << 30);
}

TEST(a_serial_request_is_for_one_core) {
    fv_estimate e = made_up();
    fv_request  r = fv_estimate_request(&e, FV_JOB_SERIAL, 64);
    char        text[160];
    CHECK(r.tasks == 1 && r.cpus_per_task == 1 && r.elements == 1);
    CHECK(r.seconds >= 1002 * 1.2 && r.seconds <= 1002 * 1.2 * 1.2 + 60); /* the upper end, and a fifth more, in whole minutes */
    CHECK_INT((int64_t)r.seconds % 60, 0);
    fv_request_format(&r, text);
    CHECK_TEXT(text, "--ntasks=1 --cpus-per-task=1 --mem=256M --time=00:25:00");
}

TEST(each_style_asks_for_workers_in_its_own_way) {
    fv_estimate e = made_up();
    fv_request  threads = fv_estimate_request(&e, FV_JOB_THREADED, 8), ranks = fv_estimate_request(&e, FV_JOB_DISTRIBUTED, 8),
               array = fv_estimate_request(&e, FV_JOB_ARRAY, 8);
    char text[160];
    CHECK(threads.cpus_per_task == 8 && threads.tasks == 1 && threads.memory > (500 << 20));
    CHECK(ranks.tasks == 8 && ranks.cpus_per_task == 1 && ranks.memory >= (150 << 20) && ranks.memory < (300 << 20));
    CHECK(array.elements == 8 && array.tasks == 1 && array.memory == ranks.memory);
    fv_request_format(&array, text);
    CHECK(strstr(text, "--array=0-7 "));
    fv_request_format(&ranks, text);
    CHECK(strstr(text, "--ntasks=8 ") && strstr(text, "--mem-per-cpu="));
}

TEST(long_jobs_are_asked_for_in_days) {
    fv_estimate e = made_up();
    char        text[160];
    e.work[FV_COST_COMPUTE] = 5e5;
    fv_request r = fv_estimate_request(&e, FV_JOB_SERIAL, 1);
    fv_request_format(&r, text);
    CHECK_MESSAGE(strstr(text, "--time=8-"), "%s", text);
}

TEST(a_short_job_asks_for_a_minute_at_least) {
    fv_estimate e = made_up();
    for (int c = 0; c < FV_COSTS; c++) e.work[c] = 0.01;
    e.start = 0;
    CHECK(fv_estimate_request(&e, FV_JOB_SERIAL, 1).seconds == 60);
}

TEST(a_busy_machine_is_told) {
    fv_estimate e = made_up();
    e.load = 0.9;
    CHECK(!fv_estimate_disturbed(&e));
    e.load = 3.5;
    CHECK(fv_estimate_disturbed(&e));
    char *text = fv_estimate_print(&e, FV_FORM_TEXT);
    CHECK(strstr(text, "busy with other work (load 3.5 on 4 cores)"));
    free(text);
}

TEST_MAIN
