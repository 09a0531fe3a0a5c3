/* Which devices a Slurm job may use, by what Slurm tells it. */
#include "support/test.h"
#include <fovea/device_lease.h>
#include <stdlib.h>

static const char *const names[] = { "SLURM_JOB_ID",       "SLURM_STEP_GPUS",      "SLURM_JOB_GPUS",
                                     "GPU_DEVICE_ORDINAL", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                     "SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE",  "SLURM_GPUS" };

/* The answer for so many visible devices inside a job with one variable; -1: it was given none. */
static int64_t ours(int visible, const char *name, const char *value) {
    uint64_t devices;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    setenv("SLURM_JOB_ID", "7", 1);
    if (name) setenv(name, value, 1);
    return fv_device_job(visible, &devices) ? (int64_t)devices : -1;
}

TEST(outside_of_jobs_and_where_slurm_says_nothing_all_devices_may_be_used) {
    uint64_t devices = 5;
    CHECK_INT(ours(4, NULL, NULL), 0);
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    unsetenv("SLURM_JOB_ID");
    CHECK(fv_device_job(4, &devices) && devices == 0);
}

TEST(lists_name_devices_of_the_node) {
    for (int i = 1; i <= 5; i++) {
        CHECK_INT(ours(4, names[i], "1,3"), 10);
        CHECK_INT(ours(4, names[i], "2-3"), 12);
        CHECK_INT(ours(4, names[i], "gpu:a100:0-1,gpu:a100:3"), 11);
        CHECK_INT(ours(4, names[i], "3"), 8);
    }
}

TEST(where_others_are_hidden_all_that_is_seen_is_ours) {
    CHECK_INT(ours(2, "SLURM_JOB_GPUS", "2,3"), 0);
    CHECK_INT(ours(1, "CUDA_VISIBLE_DEVICES", "GPU-8f1"), 0);
    CHECK_INT(ours(2, "SLURM_GPUS_ON_NODE", "2"), 0);
}

TEST(names_and_counts_say_how_many) {
    CHECK_INT(ours(4, "CUDA_VISIBLE_DEVICES", "GPU-8f1,GPU-9a2"), 3);
    CHECK_INT(ours(4, "SLURM_JOB_GPUS", "7,8"), 3);
    CHECK_INT(ours(4, "SLURM_GPUS_ON_NODE", "1"), 1);
    CHECK_INT(ours(4, "SLURM_GPUS_PER_NODE", "a100:2"), 3);
    CHECK_INT(ours(4, "SLURM_GPUS", "3"), 7);
}

TEST(a_job_without_devices_has_none) {
    CHECK_INT(ours(4, "CUDA_VISIBLE_DEVICES", "NoDevFiles"), -1);
    CHECK_INT(ours(4, "SLURM_STEP_GPUS", ""), -1);
    CHECK_INT(ours(4, "SLURM_GPUS_ON_NODE", "0"), -1);
}

TEST(odd_lists_do_no_harm) {
    static const char *const odd[] = { ",", ",,,", "-1", "1-", "3-1", "99999999999999999999", "1,x", "0-99999999", ":", "a:" };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        int64_t devices = ours(4, "SLURM_JOB_GPUS", odd[i]);
        CHECK(devices >= -1 && devices < 16);
    }
}

TEST(a_device_has_its_place_among_those_of_the_job) {
    CHECK_INT(fv_device_job_place(0, 3), 3);
    CHECK_INT(fv_device_job_place(10, 1), 0);
    CHECK_INT(fv_device_job_place(10, 3), 1);
}

TEST_MAIN
