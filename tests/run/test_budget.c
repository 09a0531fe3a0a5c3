/* The arithmetic of memory: what is named as the least is the least, and what is divided adds up. */
#include "run/budget.h"
#include "support/test.h"

#define MIB ((int64_t)1 << 20)

static const fv_sharers everybody[] = {
    { 0 },
    { .children = 1 },
    { .children = 7 },
    { .ranks = 1 },
    { .ranks = 3 },
    { .ranks = 64 },
    { .driver = FV_DRIVER_LOADED },
    { .driver = FV_DRIVER_USED },
    { .children = 3, .driver = FV_DRIVER_USED },
    { .ranks = 2, .driver = FV_DRIVER_USED },
};

TEST(the_least_that_is_named_is_the_least_to_the_byte) {
    uint64_t state = 5;
    for (int s = 0; s < FV_COUNT(everybody); s++)
        for (int k = 0; k < 200; k++) {
            int64_t   task = k < 20 ? k : (int64_t)(test_random(&state) % ((uint64_t)1 << (21 + k % 20)));
            int64_t   least = fv__budget_least(&everybody[s], task);
            fv_budget enough = fv__budget_divide(least, &everybody[s]), less = fv__budget_divide(least - 1, &everybody[s]);
            CHECK(fv__budget_check(&enough, task, NULL) == FV_OK && enough.tasks >= task);
            CHECK(fv__budget_check(&less, task, NULL) == FV_ERROR_MEMORY);
        }
}

TEST(the_whole_mebibytes_that_a_message_names_are_enough) {
    for (int s = 0; s < FV_COUNT(everybody); s++) {
        int64_t   task = 93 * MIB + 12345;
        fv_error  error = { 0 };
        fv_budget little = fv__budget_divide(40 * MIB, &everybody[s]);
        CHECK_INT(fv__budget_check(&little, task, &error), FV_ERROR_MEMORY);
        const char *named = strstr(error.message, "at least --memory ");
        CHECK_MESSAGE(named, "%s", error.message);
        int64_t   mebibytes = named ? atoll(named + 18) : 0;
        fv_budget enough = fv__budget_divide(mebibytes * MIB, &everybody[s]);
        fv_budget less = fv__budget_divide((mebibytes - 1) * MIB, &everybody[s]);
        CHECK(fv__budget_check(&enough, task, NULL) == FV_OK && fv__budget_check(&less, task, NULL) == FV_ERROR_MEMORY);
    }
}

TEST(the_parts_are_no_more_than_the_whole) {
    for (int s = 0; s < FV_COUNT(everybody); s++)
        for (int64_t extra = 0; extra < 1000; extra += 37) {
            fv_budget b = fv__budget_divide(fv__budget_least(&everybody[s], 77 * MIB) + extra * 999983, &everybody[s]);
            int64_t   ranks = FV_MAX(everybody[s].ranks, 1);
            CHECK(ranks * (b.own + b.store * (everybody[s].children + 1) + b.tasks) <= b.memory);
            CHECK(b.buffers <= b.memory - b.own && b.store > 0);
            fv_demand demand = { .task = 77 * MIB, .tasks = 1000000, .kept = INT64_MAX / 4, .shared = MIB };
            CHECK(fv__budget_peak(&b, 1000000, &demand) <= b.memory);
        }
}

TEST(a_new_kernel_needs_memory_and_the_message_says_so) {
    fv_error  error = { 0 };
    fv_budget b = fv__budget_divide(200 * MIB, &(fv_sharers){ .driver = FV_DRIVER_USED });
    CHECK_INT(fv__budget_check(&b, MIB, &error), FV_ERROR_MEMORY);
    CHECK_MESSAGE(strstr(error.message, "OpenCL, whose compiler"), "%s", error.message);
}

TEST(a_job_that_was_given_what_it_asked_for_has_room_for_its_worker) {
    for (int s = 0; s < FV_COUNT(everybody); s++)
        for (int64_t task = 1; task < 4000 * MIB; task = task * 3 + 7) {
            int64_t   least = fv__budget_least_job(&everybody[s], task), named = (least + MIB - 1) / MIB * MIB;
            fv_budget inside = fv__budget_divide(fv__budget_inside(named), &everybody[s]);
            CHECK_INT(fv__budget_check(&inside, task, NULL), FV_OK);
            int64_t bound = fv__budget_bound(&everybody[s], task, 4);
            CHECK(fv__budget_inside(fv__budget_ask(bound)) == bound && bound % MIB == 0);
            fv_budget several = fv__budget_divide(bound, &everybody[s]);
            CHECK_INT(fv__budget_at_once(&several, 4, task), 4);
        }
}

TEST(a_job_of_slurm_may_use_what_it_was_given) {
    setenv("SLURM_MEM_PER_NODE", "300", 1);
    CHECK_INT(fv__budget_default(), fv__budget_inside(300 * MIB));
    unsetenv("SLURM_MEM_PER_NODE");
    setenv("SLURM_MEM_PER_CPU", "100", 1);
    setenv("SLURM_CPUS_ON_NODE", "3", 1);
    CHECK_INT(fv__budget_default(), fv__budget_inside(300 * MIB));
    unsetenv("SLURM_MEM_PER_CPU");
    unsetenv("SLURM_CPUS_ON_NODE");
    CHECK(fv__budget_default() >= 64 * MIB);
}

TEST(a_plan_of_few_tasks_takes_no_more_than_these) {
    fv_budget b = fv__budget_divide(8192 * MIB, &(fv_sharers){ 0 });
    fv_demand demand = { .task = 10 * MIB, .tasks = 2, .kept = 5 * MIB };
    CHECK_INT(fv__budget_peak(&b, 64, &demand), b.own + 25 * MIB);
}

TEST_MAIN
